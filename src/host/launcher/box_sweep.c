// SPDX-License-Identifier: Apache-2.0
/* box_sweep.c — removes what a killed croft could not. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/own.h"
#include "base/str.h"
#include "host/launcher/box.h"
#include "host/record/record.h"
#include "host/launcher/box_sweep.h"
#include "host/launcher/setid.h"
#include "host/kernel/sys.h"
#include "host/tree/inner.h"
#include "host/tree/tree.h"

/* --- directories it could write --- */

static void writable_name(unsigned i, char out[BOX_NAME])
{
    snprintf(out, BOX_NAME, "m%ur", i);
}

static int open_box(const struct box_host *h, const char *id)
{
    return openat(h->boxes, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

fallible box_note_writable(const struct box_host *h, const char *id, unsigned i, const char *path)
{
    char name[BOX_NAME], real[PATH_MAX];
    own_fd dir = open_box(h, id);

    writable_name(i, name);
    if (dir < 0 || !realpath(path, real) || symlinkat(real, dir, name) < 0)
        return err_sys("note the directory '%s'", path);
    return NULL;
}

/* As root alone: an ordinary user's set-id file gives nothing but that user. */
static void strip_writable(const struct box_host *h, const char *id, uint64_t since_wall_ns)
{
    own_fd dir = open_box(h, id);

    for (unsigned i = 0; i < NATIVE_MOUNTS && dir >= 0 && since_wall_ns && !h->user; i++) {
        char name[BOX_NAME], path[PATH_MAX];
        writable_name(i, name);
        ssize_t n = readlinkat(dir, name, path, sizeof path - 1);
        if (n <= 0)
            continue;
        path[n] = '\0';
        own_fd source = sys_open_plain(path);
        struct err *e = source < 0 ? err_sys("open it") : setid_strip(source, since_wall_ns);
        if (e)
            log_warn("set-id files may be left in a directory", KV("path", path), KV_ERR(e));
        else
            unlinkat(dir, name, 0);
        err_free(e);
    }
}

/* --- directories of sandboxes --- */

/* Layers of mounts, notes of them, and the record stay: nothing else of an ended sandbox is of use.
 */
static bool is_worth_keeping(const char *name)
{
    return strcmp(name, RECORD) == 0 || (name[0] == 'm' && name[1] >= '0' && name[1] <= '9' &&
                                         name[2] && strchr("usialr", name[2]) && !name[3]);
}

static fallible thin_out(int dir)
{
    own_done(buf) names = {0};
    size_t count = 0;

    TRY(tree_read_names(dir, 1u << 20, &names, &count));
    for (const char *name = names.p; count--; name += strlen(name) + 1)
        if (!is_worth_keeping(name))
            TRY(tree_remove(dir, name));
    return NULL;
}

/* Something ran in it: what it wrote into a copy of the user's files is kept, the rest goes. */
fallible box_clear_dir(const struct box_host *h, const char *id)
{
    own_fd dir = open_box(h, id);
    bool keep = false;

    if (dir < 0)
        return errno == ENOENT ? NULL : err_sys("open '%s'", id);
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++) {
        char upper[BOX_NAME], work[BOX_NAME];
        box_upper_name(i, upper, work);
        /* An empty one goes; one that holds something cannot. */
        keep |= unlinkat(dir, upper, AT_REMOVEDIR) < 0 && errno != ENOENT;
        TRY(tree_remove(dir, work));
    }
    return keep ? thin_out(dir) : tree_remove(h->boxes, id);
}

/* No record, or a torn one, belongs to no sandbox: all zero. One that cannot be read, or is of
 * another version, is an error: to take it for none would end a living sandbox and clear its files.
 */
static fallible read_record(const struct box_host *h, const char *id, struct record *ret_record)
{
    own_fd dir = open_box(h, id);

    *ret_record = (struct record){.flags = 0};
    if (dir < 0)
        return errno == ENOENT || errno == ENOTDIR ? NULL : err_sys("open '%s'", id);
    struct err *e = record_read(dir, ret_record);
    if (!e || (err_code(e) != ERR_CORRUPT && err_code(e) != ERR_NOT_FOUND))
        return err_wrap(e, "sandbox '%s'", id);
    err_free(e);
    return NULL;
}

/* A launcher's sandboxes are left to the next launcher: their user may want to start them again. */
static fallible sweep_dir(const struct box_host *h, const char *id)
{
    struct record r;
    struct stat st;

    TRY(read_record(h, id, &r));
    if (r.flags & RECORD_LAUNCHER)
        return NULL;
    own_fd dir = open_box(h, id);
    if (dir < 0 || fstat(dir, &st) < 0)
        return errno == ENOENT || errno == ENOTDIR ? NULL : err_sys("open '%s'", id);
    strip_writable(h, id, r.made_wall_ns);
    TRY(box_clear_dir(h, id));
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, st.st_mtim};
    futimens(dir,
             times); /* host/overlay knows the last of several by it; else it seems to be this */
    return NULL;
}

static bool read_claim(const struct box_host *h, const char *name, unsigned *ret_slot,
                       char id[static NATIVE_ID_MAX + 1])
{
    uint64_t slot;
    ssize_t n = readlinkat(h->ids, name, id, NATIVE_ID_MAX + 1);

    if (n <= 0 || n >= NATIVE_ID_MAX || !str_to_u64(str_of(name), &slot) || slot >= IDS_SLOTS)
        return false; /* not a claim of ours */
    id[n] = '\0';
    *ret_slot = (unsigned)slot;
    return true;
}

/* A newer croft's sandbox is left alone, and does not stop the sweep. */
static bool is_anothers(const char *id, struct err **e)
{
    if (!*e || err_code(*e) != ERR_UNSUPPORTED)
        return false;
    log_warn("a sandbox is left as it is", KV("id", id), KV_ERR(*e));
    err_free(*e);
    *e = NULL;
    return true;
}

static fallible sweep_claim(struct box_host *h, const char *name)
{
    char id[NATIVE_ID_MAX + 1], group[BOX_NAME];
    unsigned slot;

    if (!read_claim(h, name, &slot, id))
        return NULL;
    box_group_name(slot, group);
    if (!cg_is_anothers(&h->cg, group)) {
        bool alive = true;
        TRY(cg_populated(&h->cg, group, &alive));
        if (alive)
            return NULL;
        TRY(cg_remove(&h->cg, group));
    }
    struct err *e = native_id_ok(id, sizeof id) ? sweep_dir(h, id) : NULL;
    if (is_anothers(id, &e))
        return NULL;
    return e ? e : ids_release(h->ids, slot);
}

struct clearing {
    bool (*in_use)(void *arg, unsigned slot);
    void *arg;
};

/* "+PID" is a launcher's spare or a sandbox made of one; a name is judged by its record. */
static fallible by_launcher(const struct box_host *h, const char *id, bool *ret_yes)
{
    struct record r = {.flags = 0};

    if (native_id_ok(id, NATIVE_ID_MAX))
        TRY(read_record(h, id, &r));
    *ret_yes = id[0] == '+' || r.flags & RECORD_LAUNCHER;
    return NULL;
}

static fallible clear_claim(struct box_host *h, const char *name, const struct clearing *c)
{
    char id[NATIVE_ID_MAX + 1], group[BOX_NAME];
    unsigned slot;
    bool ours = false;

    if (!read_claim(h, name, &slot, id) || c->in_use(c->arg, slot))
        return NULL;
    TRY(by_launcher(h, id, &ours));
    if (!ours)
        return NULL;
    box_group_name(slot, group);
    if (!cg_is_anothers(&h->cg, group)) {
        TRY(cg_end(&h->cg, group, BOX_WAIT_MS));
        TRY(cg_remove(&h->cg, group));
    }
    return ids_release(h->ids, slot);
}

static fallible each_claim(struct box_host *h, const struct clearing *c)
{
    int fd = openat(h->ids, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    struct err *e = NULL;

    if (!d) {
        own_close_p(&fd);
        return err_sys("list the claims");
    }
    for (struct dirent *at; !e && (at = readdir(d));)
        e = c ? clear_claim(h, at->d_name, c) : sweep_claim(h, at->d_name);
    closedir(d);
    return e;
}

/* Deletes what a launcher removed and had no time to delete. */
static fallible sweep_gone(const struct box_host *h)
{
    own_fd dir = openat(h->dir, BOX_GONE, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    return dir < 0 ? NULL : err_wrap(tree_empty(dir), "delete what was removed");
}

fallible box_sweep(struct box_host *h, bool gone)
{
    if (flock(h->boxes, LOCK_EX | LOCK_NB) < 0)
        return flock(h->boxes, LOCK_SH) < 0 ? err_sys("lock 'box'") : NULL; /* others are at work */
    struct err *e = each_claim(h, NULL);
    if (!e && gone)
        e = sweep_gone(h);
    if (flock(h->boxes, LOCK_SH) < 0 && !e)
        e = err_sys("lock 'box'");
    return e;
}

fallible box_clear_claims(struct box_host *h, bool (*in_use)(void *arg, unsigned slot), void *arg)
{
    return each_claim(h, &(struct clearing){in_use, arg});
}

static fallible is_claimed(const struct box_host *h, const char *id, bool *ret_yes)
{
    char name[NATIVE_ID_MAX + 1];
    int fd = openat(h->ids, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    unsigned slot;

    *ret_yes = false;
    if (!d) {
        own_close_p(&fd);
        return err_sys("list the claims");
    }
    for (struct dirent *at; (at = readdir(d));)
        *ret_yes |= read_claim(h, at->d_name, &slot, name) && strcmp(name, id) == 0;
    closedir(d);
    return NULL;
}

fallible box_clear_unrecorded(const struct box_host *h, const char *id)
{
    struct record r;
    bool claimed = true;

    TRY(read_record(h, id, &r));
    if (r.id[0])
        return NULL; /* it has an owner */
    TRY(is_claimed(h, id, &claimed));
    return claimed ? NULL : box_clear_dir(h, id);
}

/* --- adoption --- */

/* Opened before it is looked at: from then on the number cannot become another process. */
static fallible open_living(const struct box_host *h, const struct record *r, int *ret_pidfd)
{
    char group[BOX_NAME];
    bool same = false, inside = false;

    if (r->pid <= 1)
        return NULL;
    own_fd pidfd = (int)syscall(SYS_pidfd_open, r->pid, 0);
    if (pidfd < 0)
        return errno == ESRCH || errno == EINVAL ? NULL : err_sys("open process %d", r->pid);
    struct err *e = record_is(r, pidfd, &same);
    if (e && (err_errno(e) == ENOENT || err_errno(e) == ESRCH)) {
        err_free(e); /* it went while we looked */
        return NULL;
    }
    if (e || !same)
        return e;
    box_group_name(r->slot, group);
    TRY(cg_holds(&h->cg, group, r->pid, &inside));
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    if (inside && poll(&p, 1, 0) == 0) /* readable: dead, and not yet buried */
        *ret_pidfd = take_fd(&pidfd);
    return NULL;
}

fallible box_adopt(struct box_host *h, const char *id, struct box *ret_box,
                   struct record *ret_record, bool *ret_alive)
{
    struct box b = {
        .tty = -1, .pidfd = -1, .disk = -1, .home = -1, .userns = -1, .single_use = true};
    struct record r;

    TRY(read_record(h, id, &r));
    if (strcmp(r.id, id) != 0 || !(r.flags & RECORD_LAUNCHER))
        return err_new(ERR_NOT_FOUND, "'%s' is no launcher's", id);
    if (strcmp(r.boot, h->boot) == 0 && r.slot < IDS_SLOTS)
        TRY(open_living(h, &r, &b.pidfd));
    memcpy(b.id, r.id, sizeof b.id);
    *ret_alive = b.pidfd >= 0;
    if (*ret_alive) {
        b.slot = r.slot;
        b.pid = r.pid;
        b.cpu_ns = r.cpu_ns;
    }
    *ret_box = b;
    *ret_record = r;
    return NULL;
}
