// SPDX-License-Identifier: Apache-2.0
/* box_dirs.c — see box_dirs.h.
 *
 * Most sandboxes end without having written to their root file system. Of such a one the directory
 * with its empty layers is renamed and becomes the next one's: to make and delete ten inodes is a
 * fourth of a millisecond. It is fit for that if its overlays are gone (a watch on each ends with
 * it, whoever held it last) and everything in it is as it was made: owner, mode, size, attributes,
 * flags, no name, and above all the time of change, which the kernel moves at every other change.
 * What cannot be had back is the time of birth, which the next sandbox sees of its "/". */
#include "host/launcher/box_dirs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/log.h"
#include "base/own.h"
#include "host/launcher/box_inner.h"
#include "host/launcher/disk.h"
#include "host/launcher/identity.h"
#include "host/launcher/record.h"
#include "host/tree/tree.h"

#define LIVES      16 /* then a new one, elsewhere on the disk: see box_host_spread() */
#define UPPER_MODE (S_IFDIR | 0755)
#define WORK_MODE  (S_IFDIR | 0700)
#define NAME_SIZE  24

/* --- deletion
 * ------------------------------------------------------------------------------------- */

/* "w", "work-usr", "m0w": only overlay itself writes there. Below an upper layer a guest chose
 * every name, and one that is a link would lead elsewhere. */
static bool is_work(const char *name)
{
    return name[0] == 'w' || (name[0] == 'm' && name[strlen(name) - 1] == 'w');
}

/* What an overlay that is not synced leaves there. False: there is more. */
static bool clear_work(int dir, const char *name)
{
    static const char *const below[] = {"/work/incompat/volatile", "/work/incompat", "/work"};
    char path[320];

    snprintf(path, sizeof path, "%s/work/incompat/volatile/dirty", name);
    unlinkat(dir, path, 0);
    bool clear = false;
    for (size_t i = 0; i < ARRAY_LEN(below); i++) {
        snprintf(path, sizeof path, "%s%s", name, below[i]);
        clear = unlinkat(dir, path, AT_REMOVEDIR) == 0;
    }
    return clear;
}

/* False: it holds something, or something that is none of our layers. */
static bool remove_layer(int dir, const char *name)
{
    if (strcmp(name, IDENTITY_DIR) == 0) {
        identity_drop(dir, IDENTITY_DIR);
        return faccessat(dir, IDENTITY_DIR, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
    }
    if (is_work(name))
        clear_work(dir, name);
    return unlinkat(dir, name, AT_REMOVEDIR) == 0;
}

/* Most sandboxes leave empty layers and what overlay made in their work directories: gone by name,
 * without listing any of it. Gives false when more is there, which is for tree_remove; the record
 * goes when nothing else is left. */
static bool remove_skeleton(int dir)
{
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
    bool bare = true;

    if (!d) {
        own_close_p(&copy);
        return false;
    }
    for (struct dirent *at; (at = readdir(d));) {
        if (at->d_name[0] == '.')
            continue;
        bool ours = strcmp(at->d_name, RECORD_NAME) == 0 || strcmp(at->d_name, "root") == 0 ||
                    (strcmp(at->d_name, DISK_IMAGE) == 0 && unlinkat(dir, DISK_IMAGE, 0) == 0);
        bare &= at->d_type == DT_DIR ? remove_layer(dir, at->d_name) : ours;
    }
    closedir(d);
    return bare && unlinkat(dir, RECORD_NAME, 0) == 0 &&
           (unlinkat(dir, "root", 0) == 0 || errno == ENOENT);
}

fallible box_delete(int parent, const char *name)
{
    own_fd dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    if (dir >= 0 && remove_skeleton(dir) && unlinkat(parent, name, AT_REMOVEDIR) == 0)
        return NULL;
    return tree_remove(parent, name);
}

/* --- notes, while a sandbox is made
 * --------------------------------------------------------------------------------------- */

static bool look(int fd, struct statx *x)
{
    return statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, x) == 0;
}

static void forget(struct box_layers *l)
{
    l->count = l->lives = 0;
}

void box_dirs_note(const struct box_host *h, const struct box_root *r, int upper, int mount,
                   struct box_layers *layers)
{
    struct box_layer *l = &layers->at[layers->count];
    struct statx x;
    char path[40];

    if (!layers->lives)
        return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", mount);
    int watch = -1;
    if (layers->count < BOX_LAYERS && look(upper, &x))
        watch = inotify_add_watch(h->dirs.watch, path, IN_DELETE_SELF);
    if (watch < 0) {
        forget(layers);
        return;
    }
    *l = (struct box_layer){.upper = r->upper,
                            .work = r->work,
                            .ino = x.stx_ino,
                            .bytes = x.stx_size,
                            .blocks = x.stx_blocks,
                            .changed_s = x.stx_ctime.tv_sec,
                            .changed_ns = x.stx_ctime.tv_nsec,
                            .written_s = x.stx_mtime.tv_sec,
                            .written_ns = x.stx_mtime.tv_nsec,
                            .watch = watch};
    layers->count++;
}

/* --- is it fit?
 * --------------------------------------------------------------------------------------- */

/* What a directory has from the one it was made in. */
struct marks {
    uint32_t flags, project;
    ssize_t len;
    char names[256]; /* of attributes */
};

static bool read_marks(int fd, struct marks *m)
{
    struct fsxattr x = {0};

    if (ioctl(fd, FS_IOC_FSGETXATTR, &x) < 0 && errno != ENOTTY && errno != EOPNOTSUPP)
        return false;
    m->flags = x.fsx_xflags;
    m->project = x.fsx_projid;
    m->len = flistxattr(fd, m->names, sizeof m->names);
    return m->len >= 0 || errno == EOPNOTSUPP;
}

static bool has_marks(int fd, const struct marks *want)
{
    struct marks m;

    return read_marks(fd, &m) && m.flags == want->flags && m.project == want->project &&
           m.len == want->len && (m.len <= 0 || memcmp(m.names, want->names, (size_t)m.len) == 0);
}

static bool is_known(const char *name, const struct box_layers *l)
{
    for (unsigned i = 0; i < l->count; i++)
        if (strcmp(name, l->at[i].upper) == 0 || strcmp(name, l->at[i].work) == 0)
            return true;
    return strcmp(name, RECORD_NAME) == 0 || strcmp(name, "root") == 0;
}

/* Nothing but what we know is there; l NULL: nothing at all. */
static bool has_only(int dir, const struct box_layers *l)
{
    char page[4096] __attribute__((aligned(8)));
    ssize_t n;

    while ((n = getdents64(dir, page, sizeof page)) > 0)
        for (ssize_t at = 0; at < n;) {
            const struct dirent64 *d = (const struct dirent64 *)(page + at);
            if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0 &&
                !(l && is_known(d->d_name, l)))
                return false;
            at += d->d_reclen;
        }
    return n == 0;
}

static bool is_as_noted(const struct statx *x, const struct box_layer *l)
{
    return x->stx_mode == UPPER_MODE && x->stx_uid == 0 && x->stx_gid == 0 &&
           x->stx_ino == l->ino && x->stx_size == l->bytes && x->stx_blocks == l->blocks &&
           x->stx_ctime.tv_sec == l->changed_s && x->stx_ctime.tv_nsec == l->changed_ns &&
           x->stx_mtime.tv_sec == l->written_s && x->stx_mtime.tv_nsec == l->written_ns;
}

/* The name of its file system that an overlay gives itself is in its upper layer: the next one
 * takes another. */
static bool drop_uuid(int dir)
{
    return fremovexattr(dir, "trusted.overlay.uuid") == 0 || errno == ENODATA ||
           errno == EOPNOTSUPP;
}

/* An upper layer: empty, and as it was made. */
static bool is_new(int parent, const struct box_layer *l, const struct marks *marks)
{
    own_fd dir = openat(parent, l->upper, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct statx x;

    return dir >= 0 && look(dir, &x) && is_as_noted(&x, l) && has_only(dir, NULL) &&
           drop_uuid(dir) && has_marks(dir, marks);
}

/* Only overlay itself reaches it, and what that made there is cleared. */
static bool is_work_dir(int parent, const struct box_layer *l)
{
    struct stat st;

    return fstatat(parent, l->work, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_mode == WORK_MODE &&
           st.st_uid == 0 && st.st_gid == 0;
}

/* A watch that is still there is one on an overlay that somebody holds. */
static bool are_unmounted(const struct box_dirs *d, const struct box_layers *l)
{
    char events[4096];
    bool gone = true;

    for (unsigned i = 0; i < l->count; i++)
        gone &= inotify_rm_watch(d->watch, l->at[i].watch) < 0 && errno == EINVAL;
    while (read(d->watch, events, sizeof events) == sizeof events)
        ; /* nobody wants to know more */
    return gone;
}

static bool is_fit(int dir, const struct box_layers *l)
{
    struct marks marks;

    if (dir < 0 || !has_only(dir, l) || !read_marks(dir, &marks))
        return false;
    for (unsigned i = 0; i < l->count; i++)
        if (!is_new(dir, &l->at[i], &marks) || !is_work_dir(dir, &l->at[i]))
            return false;
    return true;
}

/* --- keeping
 * --------------------------------------------------------------------------------------- */

enum { WORN = 1, READY, KINDS = 4 };

static void name_of(uint64_t number, char out[NAME_SIZE])
{
    snprintf(out, NAME_SIZE, BOX_SPARE "/%" PRIx64, number);
}

static uint64_t word_of(const struct box_spare *s)
{
    return __atomic_load_n(&s->word, __ATOMIC_ACQUIRE);
}

static void set_word(struct box_spare *s, uint64_t word)
{
    __atomic_store_n(&s->word, word, __ATOMIC_RELEASE);
}

static struct box_spare *free_place(const struct box_dirs *d)
{
    for (unsigned i = 0; i < BOX_SPARES; i++)
        if (!word_of(&d->spares[i]))
            return &d->spares[i];
    return NULL;
}

/* The place is made when it is missing. */
static bool rename_to(const struct box_host *h, const char *id, const char *name)
{
    int gone = h->dirs.gone;

    return renameat(h->boxes, id, gone, name) == 0 ||
           (errno == ENOENT && mkdirat(gone, BOX_SPARE, 0700) == 0 &&
            renameat(h->boxes, id, gone, name) == 0);
}

/* Without its record it is nobody's, there as in box/<ID>, if we die on the way. */
bool box_dirs_keep(struct box_host *h, struct box *b)
{
    struct box_dirs *d = &h->dirs;
    struct box_layers l = b->layers;
    char name[NAME_SIZE];

    forget(&b->layers);
    if (!d->spares || !l.count || !are_unmounted(d, &l) || l.lives >= LIVES)
        return false;
    own_fd dir = openat(h->boxes, b->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct box_spare *to = free_place(d);
    if (!to || !is_fit(dir, &l) || renameat(dir, RECORD_NAME, dir, RECORD_NEW) < 0)
        return false;
    uint64_t number = ++d->next;
    name_of(number, name);
    if (!rename_to(h, b->id, name))
        return false;
    to->lives = l.lives;
    to->layers = l.count;
    for (unsigned i = 0; i < l.count; i++) {
        to->upper[i] = l.at[i].upper;
        to->work[i] = l.at[i].work;
    }
    set_word(to, number * KINDS + WORN);
    return true;
}

static bool clear_all(int dir, const struct box_spare *s)
{
    bool clear = dir >= 0;

    for (unsigned i = 0; i < s->layers && clear; i++)
        clear = clear_work(dir, s->work[i]);
    return clear;
}

/* Whoever forgot it meanwhile, or put another in its place, is not told anything. */
void box_dirs_clear(const struct box_dirs *d)
{
    for (unsigned i = 0; d->spares && i < BOX_SPARES; i++) {
        struct box_spare *s = &d->spares[i];
        uint64_t was = word_of(s);
        char name[NAME_SIZE];
        if (was % KINDS != WORN)
            continue;
        name_of(was / KINDS, name);
        own_fd dir = openat(d->gone, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        bool clear = clear_all(dir, s);
        if (!clear)
            err_free(tree_remove(d->gone, name)); /* else it goes with the others */
        __atomic_compare_exchange_n(&s->word, &was, clear ? was - WORN + READY : 0, false,
                                    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
}

bool box_dirs_any(const struct box_dirs *d)
{
    for (unsigned i = 0; d->spares && i < BOX_SPARES; i++)
        if (word_of(&d->spares[i]))
            return true;
    return false;
}

void box_dirs_forget(struct box_dirs *d)
{
    for (unsigned i = 0; d->spares && i < BOX_SPARES; i++)
        set_word(&d->spares[i], 0);
}

/* --- using again
 * --------------------------------------------------------------------------------------- */

static bool fits(const struct box_spare *s, const struct box_spec *spec)
{
    bool same = word_of(s) % KINDS == READY && s->layers == spec->root_count;

    for (unsigned i = 0; i < s->layers && same; i++)
        same = strcmp(s->upper[i], spec->roots[i].upper) == 0;
    return same;
}

static bool take_spare(struct box_host *h, struct box_spec *spec)
{
    struct box_dirs *d = &h->dirs;
    char name[NAME_SIZE];
    unsigned i = 0;

    while (d->spares && i < BOX_SPARES && !fits(&d->spares[i], spec))
        i++;
    if (!d->spares || i == BOX_SPARES)
        return false;
    struct box_spare *s = &d->spares[i];
    name_of(word_of(s) / KINDS, name);
    if (syscall(SYS_renameat2, d->gone, name, h->boxes, spec->req->id, RENAME_NOREPLACE) < 0) {
        if (errno != EEXIST) /* else it is the name's fault */
            set_word(s, 0);
        return false;
    }
    spec->lives = s->lives + 1;
    set_word(s, 0);
    return true;
}

fallible box_dirs_make(struct box_host *h, struct box_spec *spec)
{
    if (spec->disk == NATIVE_DISK_NONE && take_spare(h, spec))
        return NULL;
    TRY(box_make_dir(h, spec->req->id));
    spec->lives = 1;
    return NULL;
}

/* Before Linux 6.13 times of change are too coarse to tell. */
static fallible open_dirs(struct box_host *h)
{
    size_t bytes = BOX_SPARES * sizeof *h->dirs.spares;

    if (!h->many || h->by_path)
        return NULL;
    own_fd watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    void *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return err_sys("map a page to share");
    h->dirs.spares = shared;
    if (watch < 0)
        return err_sys("watch overlays");
    h->dirs.watch = take_fd(&watch);
    return NULL;
}

void box_dirs_open(struct box_host *h, int gone)
{
    struct err *e = open_dirs(h);

    h->dirs.gone = gone;
    if (e) {
        log_warn("each sandbox makes its own directory", KV_ERR(e));
        box_dirs_close(h);
    }
    err_free(e);
}

void box_dirs_close(struct box_host *h)
{
    if (h->dirs.spares)
        munmap(h->dirs.spares, BOX_SPARES * sizeof *h->dirs.spares);
    own_close_p(&h->dirs.watch);
    h->dirs = (struct box_dirs){.gone = -1, .watch = -1};
}
