// SPDX-License-Identifier: Apache-2.0
/* box_host.c — the state directory and what all sandboxes of a process share. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/fd.h"
#include "base/own.h"
#include "host/launcher/box_inner.h"
#include "host/kernel/sys.h"
#include "host/launcher/reuse/reuse.h"
#include "host/launcher/mounts.h"
#include "host/record/record.h"

extern const char croft_guest_start[], croft_guest_end[];

static fallible make_dir(int parent, const char *name, int *ret_dir)
{
    if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
        return err_sys("make '%s'", name);
    own_fd dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return err_sys("open '%s'", name);
    if (fchmod(dir, 0700) < 0)
        return err_sys("close '%s' to others", name);
    *ret_dir = take_fd(&dir);
    return NULL;
}

/* Others may at most pass through (0711), which a server needs that is not root. An upper layer can
 * hold real set-uid files, and every directory of the launcher's in it is 0700. */
static fallible open_state(const char *path, int *ret_dir)
{
    struct stat st;
    own_fd dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0 && errno == ENOENT) {
        own_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        own_fd made = -1;
        if (root < 0)
            return err_sys("open '/'");
        TRY(fd_make_dirs(root, str_of(path + (*path == '/')), 0700, &made));
        dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (dir < 0 || fstat(dir, &st) < 0)
        return err_sys("open");
    if (st.st_uid != geteuid())
        return err_new(ERR_FORBIDDEN, "belongs to user %u, not to us", st.st_uid);
    if ((st.st_mode & 066) && fchmod(dir, 0700) < 0)
        return err_sys("close it to others");
    *ret_dir = take_fd(&dir);
    return NULL;
}

/* Those of other builds: sandboxes that run from one keep it, a croft that misses it writes it
 * anew. */
static void drop_old_guests(int state)
{
    int fd = openat(state, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

    if (!d) {
        own_close_p(&fd);
        return; /* they take space, nothing else */
    }
    for (struct dirent *at; (at = readdir(d));)
        if (strncmp(at->d_name, "guest-", 6) == 0)
            unlinkat(state, at->d_name, 0);
    closedir(d);
}

/* One file per build of croft, so that all sandboxes share its pages. Named by what changes with
 * the build, because hashing it would cost as much as a start. */
static fallible open_guest(int state, int *ret_exe)
{
    struct stat self, st;
    char name[64];
    struct str program = str_n(croft_guest_start, (size_t)(croft_guest_end - croft_guest_start));

    if (stat("/proc/self/exe", &self) < 0)
        return err_sys("look at ourselves");
    snprintf(name, sizeof name, "guest-%" PRIx64 "-%" PRIx64 "%08lx", (uint64_t)self.st_ino,
             (uint64_t)self.st_mtim.tv_sec, self.st_mtim.tv_nsec);
    if (fstatat(state, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || (size_t)st.st_size != program.len) {
        drop_old_guests(state);
        TRY(fd_replace_file(state, name, program, 0555));
    }
    *ret_exe = openat(state, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return *ret_exe < 0 ? err_sys("open '%s'", name) : NULL;
}

static int last_fd(const struct box_host *h)
{
    const int fds[] = {h->dir, h->boxes, h->ids, h->exe, h->cg.v2};
    int last = STDERR_FILENO;

    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        last = fds[i] > last ? fds[i] : last;
    for (size_t i = 0; i < CG_COUNT; i++)
        last = h->cg.v1[i] > last ? h->cg.v1[i] : last;
    return last;
}

/* Root has its layers mounted for a moment; an ordinary user is in a namespace of its own. */
static fallible open_alone(struct box_host *h)
{
    TRY(open_state(h->state, &h->dir));
    h->by_path = mounts_by_path(h->dir);
    if (!h->by_path || h->user)
        return NULL;
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return err_sys("keep mounts to ourselves");
    own_close_p(&h->dir); /* of the old namespace */
    h->dir = -1;
    return open_state(h->state, &h->dir);
}

static fallible open_all(struct box_host *h)
{
    own_fd mnt = -1, exe = -1;
    struct stat ids;

    TRY(open_alone(h));
    TRY(make_dir(h->dir, "box", &h->boxes));
    if (flock(h->boxes, LOCK_SH) < 0)
        return err_sys("lock 'box'");
    TRY(make_dir(h->dir, "ids", &h->ids));
    if (fstat(h->ids, &ids) < 0)
        return err_sys("look at 'ids'");
    h->cg.owner = (struct cg_owner){ids.st_dev, ids.st_ino};
    TRY(make_dir(h->dir, BOX_PLACE, &mnt));
    if (h->by_path)
        TRY(make_dir(h->dir, BOX_LOOK, &h->look));
    TRY(open_guest(h->dir, &exe));
    TRY(mounts_clone(exe, -1, true, &h->exe));
    return fd_slot_open(&h->fd_slot, last_fd(h));
}

/* For a state that does not exist yet: the directory it will be made in, on the same file
 * system. */
static int open_nearest(const char *path)
{
    char at[BOX_STATE];
    int dir = -1;

    snprintf(at, sizeof at, "%s", path);
    for (char *slash = at + strlen(at); slash && dir < 0; slash = strrchr(at, '/')) {
        *slash = '\0';
        dir = open(*at ? at : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0 && errno != ENOENT)
            break;
    }
    return dir;
}

void box_host_look(struct box_host *h, const char *state)
{
    *h = (struct box_host){.dir = -1,
                           .boxes = -1,
                           .ids = -1,
                           .exe = -1,
                           .look = -1,
                           .names = -1,
                           .bare = -1,
                           .noted = -1,
                           .user = geteuid() != 0,
                           .fd_slot = {.fd = -1, .waits = -1}};
    if (state)
        h->dir = open_nearest(state);
    own_done(buf) member;
    buf_init(&member, 1u << 16);
    if (h->user)
        err_free(fd_read_file("/proc/self/cgroup", &member)); /* then there is none */
    cg_open(&h->cg, "/sys/fs/cgroup", buf_str(&member), false);
    h->landlock = confine_landlock_abi();
    subids_find(&h->sub);
}

fallible box_host_open(struct box_host *h, const char *state, struct rng *rng)
{
    if (state[0] != '/' || strlen(state) >= sizeof h->state - 64)
        return err_new(ERR_INVALID, "state directory '%s': wanted an absolute path", state);
    box_host_look(h, NULL);
    umask(022); /* what is private is made so; the rest is for every user inside */
    strcpy(h->state, state);
    h->rng = rng;
    confine_build(&h->filter, false);
    confine_build(&h->nested, true);
    struct err *e = record_boot(h->boot);
    if (!e && h->user)
        e = subids_enter(&h->sub);
    if (!e)
        e = open_all(h);
    if (e)
        box_host_close(h);
    return err_wrap(e, "state directory '%s'", state);
}

struct ids_range box_ids(const struct box_host *h, unsigned slot)
{
    if (h->user)
        return (struct ids_range){geteuid(), getegid(), 1, h->sub.uid, h->sub.gid, h->sub.count};
    return (struct ids_range){.uid = ids_base(slot), .gid = ids_base(slot), .count = IDS_COUNT};
}

static bool has_no_journal(int dir)
{
    struct stat st;
    char path[320], to[256], text[16] = "";

    if (fstat(dir, &st) < 0)
        return false;
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u", major(st.st_dev), minor(st.st_dev));
    ssize_t n = readlink(path, to, sizeof to - 1);
    if (n <= 0)
        return false;
    to[n] = '\0';
    const char *slash = strrchr(to, '/');
    snprintf(path, sizeof path, "/sys/fs/ext4/%s/journal_task", slash ? slash + 1 : to);
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && read(fd, text, sizeof text - 1) > 0 && strncmp(text, "<none>", 6) == 0;
}

void box_host_spread(const struct box_host *h)
{
    int flags = 0;

    if (!has_no_journal(h->boxes) || ioctl(h->boxes, FS_IOC_GETFLAGS, &flags) < 0)
        return;
    flags |= FS_TOPDIR_FL;
    (void)ioctl(h->boxes, FS_IOC_SETFLAGS, &flags); /* refused: it costs time, nothing else */
}

fallible box_host_many(struct box_host *h)
{
    static const char *const memory[] = {"mode=700", NULL};

    h->many = !h->user;
    if (h->many && !h->by_path) /* of one that is mounted nowhere older kernels take no layer */
        err_free(mounts_new("tmpfs", memory, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID, &h->names));
    box_host_spread(h);
    return h->many ? box_bare_open(h) : NULL;
}

fallible box_host_forked(struct box_host *h)
{
    fd_slot_close(&h->fd_slot);
    return fd_slot_open(&h->fd_slot, last_fd(h));
}

void box_host_close(struct box_host *h)
{
    box_tidy(h);
    reuse_clear(h->reuse);
    reuse_free(h->reuse);
    h->reuse = NULL;
    own_close_p(&h->dir);
    own_close_p(&h->boxes);
    own_close_p(&h->ids);
    own_close_p(&h->exe);
    own_close_p(&h->look);
    own_close_p(&h->names);
    own_close_p(&h->bare);
    own_close_p(&h->noted);
    fd_slot_close(&h->fd_slot);
    cg_close(&h->cg);
    h->dir = h->boxes = h->ids = h->exe = h->look = h->names = h->bare = h->noted = -1;
}
