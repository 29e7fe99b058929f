// SPDX-License-Identifier: Apache-2.0
/* rootfs.c — the layers of the host's own system: looked up by stamp, made when they are not there.
 *
 * state/rootfs/gen-RANDOM/{base,hide-usr,…} are the layers, state/rootfs/host-STAMP a link to the
 * generation that fits the machine as it was. A generation never changes once it has its name. */
#include "host/rootfs/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/rng.h"
#include "host/rootfs/inner.h"
#include "host/tree/inner.h"
#include "host/tree/tree.h"

#define TRIES 3 /* while packages are being installed on the host */

void rootfs_init(struct rootfs *r)
{
    r->mount_count = 0;
    r->joined = false;
    r->id[0] = '\0';
    r->held = -1;
}

void rootfs_done(struct rootfs *r)
{
    for (size_t i = 0; i < r->mount_count; i++) {
        for (size_t k = 0; k < r->mounts[i].lower_count; k++)
            own_close(r->mounts[i].lowers[k]);
    }
    own_close(r->held);
    rootfs_init(r);
}

struct rootfs_mount *rootfs_add_mount(struct rootfs *r, const char *where, const char *upper,
                                      const char *work)
{
    struct rootfs_mount *m = &r->mounts[r->mount_count++];

    m->where = where;
    m->upper = upper;
    m->work = work;
    m->lower_count = m->frozen = 0;
    m->redirects = false;
    return m;
}

void rootfs_add_lower(struct rootfs_mount *m, int fd)
{
    m->lowers[m->lower_count++] = fd;
}

static fallible copy_fd(int fd, int *ret_fd)
{
    *ret_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return *ret_fd < 0 ? err_sys("copy a descriptor") : NULL;
}

static fallible copy_mount(const struct rootfs_mount *m, struct rootfs_mount *to)
{
    for (size_t i = 0; i < m->lower_count; i++) {
        int fd;
        TRY(copy_fd(m->lowers[i], &fd));
        rootfs_add_lower(to, fd);
    }
    to->frozen = m->frozen;
    to->redirects = m->redirects;
    return NULL;
}

fallible rootfs_copy(const struct rootfs *r, struct rootfs *ret)
{
    struct rootfs copy;
    struct err *e = NULL;

    rootfs_init(&copy);
    memcpy(copy.id, r->id, sizeof copy.id);
    copy.joined = r->joined;
    for (size_t i = 0; !e && i < r->mount_count; i++) {
        const struct rootfs_mount *m = &r->mounts[i];
        e = copy_mount(m, rootfs_add_mount(&copy, m->where, m->upper, m->work));
    }
    if (!e && r->held >= 0)
        e = copy_fd(r->held, &copy.held);
    if (e)
        rootfs_done(&copy);
    else
        *ret = copy;
    return e;
}

/* --- opening a generation --- */

static const struct {
    const char *hide, *upper, *work;
} dir_names[HOST_DIRS] = {
    {"hide-usr", ROOTFS_UPPER_USR, "work-usr"},     {"hide-bin", "upper-bin", "work-bin"},
    {"hide-sbin", "upper-sbin", "work-sbin"},       {"hide-lib", "upper-lib", "work-lib"},
    {"hide-lib32", "upper-lib32", "work-lib32"},    {"hide-lib64", "upper-lib64", "work-lib64"},
    {"hide-libx32", "upper-libx32", "work-libx32"},
};

static int open_layer(int dir, const char *name)
{
    return openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
}

static fallible open_host_dirs(int gen, int host, struct rootfs *r)
{
    for (size_t i = 0; i < HOST_DIRS; i++) {
        own_fd dir = open_layer(host, host_dirs[i]), hide = open_layer(gen, dir_names[i].hide);
        if (dir < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
            continue; /* a link */
        if (dir < 0)
            return err_sys("open '/%s'", host_dirs[i]);
        if (hide < 0 && geteuid() == 0) /* never the bare directory: guest root could read it all */
            return err_sys("open layer '%s'", dir_names[i].hide);
        if (i == 0 && hide >= 0) {
            rootfs_add_lower(&r->mounts[0], take_fd(&dir));
            r->mounts[0].redirects = r->joined = true;
            continue;
        }
        struct rootfs_mount *m =
            rootfs_add_mount(r, host_dirs[i], dir_names[i].upper, dir_names[i].work);
        if (hide >= 0)
            rootfs_add_lower(m, take_fd(&hide));
        rootfs_add_lower(m, take_fd(&dir));
    }
    return NULL;
}

static fallible open_generation(int dir, int host, const char *name, struct rootfs *ret)
{
    struct rootfs r;
    own_fd gen = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);

    rootfs_init(&r);
    snprintf(r.id, sizeof r.id, "%s", name);
    if (gen >= 0 && flock(gen, LOCK_SH) < 0)
        return err_sys("hold the layers '%s'", name);
    own_fd base = gen < 0 ? -1 : open_layer(gen, "base");
    if (base < 0)
        return err_sys("open the layers '%s'", name);
    rootfs_add_lower(rootfs_add_mount(&r, "", "upper", "work"), take_fd(&base));
    struct err *e = open_host_dirs(gen, host, &r);
    if (e) {
        rootfs_done(&r);
        return e;
    }
    r.held = take_fd(&gen);
    *ret = r;
    return NULL;
}

fallible rootfs_split(struct rootfs *r)
{
    if (!r->joined)
        return NULL;
    const struct rootfs_mount *root = &r->mounts[0];
    own_fd dir = -1, hide = open_layer(r->held, dir_names[0].hide);
    own_fd usr = open_layer(root->lowers[root->frozen], host_dirs[0]);
    if (hide < 0 || usr < 0)
        return err_sys("open the layers of '/usr'");
    TRY(copy_fd(root->lowers[root->lower_count - 1], &dir));
    struct rootfs_mount *m =
        rootfs_add_mount(r, host_dirs[0], dir_names[0].upper, dir_names[0].work);
    rootfs_add_lower(m, take_fd(&hide));
    rootfs_add_lower(m, take_fd(&usr));
    rootfs_add_lower(m, take_fd(&dir));
    m->redirects = true;
    r->joined = false;
    return NULL;
}

/* --- letting go --- */

static fallible is_noted(int boxes, const char *gen, bool *ret)
{
    own_done(buf) names = {0};
    size_t count = 0;
    char path[NAME_MAX + 8], text[ROOTFS_ID_LEN];

    *ret = false;
    if (boxes >= 0)
        TRY(tree_read_names(boxes, 16u << 20, &names, &count));
    for (const char *name = names.p; count--; name += strlen(name) + 1) {
        snprintf(path, sizeof path, "%s/root", name);
        ssize_t n = readlinkat(boxes, path, text, sizeof text);
        *ret = *ret || (n > 0 && str_eq(str_n(text, (size_t)n), str_of(gen)));
    }
    return NULL;
}

/* Removes layers that no process holds or can come to hold while we look. */
static fallible prune_one(int dir, int boxes, const char *gen)
{
    own_fd fd = openat(dir, gen, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    bool noted = true;

    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return NULL;
    TRY(is_noted(boxes, gen, &noted));
    return noted ? NULL : tree_remove(dir, gen);
}

static bool look_up(int dir, const char *link, char gen[ROOTFS_ID_LEN]);

static fallible rootfs_prune(int dir, int boxes, const char *current)
{
    own_done(buf) names = {0};
    size_t count;
    char gen[ROOTFS_ID_LEN];

    TRY(tree_read_names(dir, 1u << 20, &names, &count));
    for (const char *name = names.p; count--; name += strlen(name) + 1) {
        struct str s = str_of(name);
        bool link = str_starts(s, STR("host-"));
        if (link && look_up(dir, name, gen) && strcmp(gen, current) == 0)
            continue;
        if (str_starts(s, STR("gen-")) && strcmp(name, current) != 0)
            TRY(prune_one(dir, boxes, name));
        if (link || str_starts(s, STR(".new-")) || str_starts(s, STR(".link-")))
            TRY(tree_remove(dir, name));
    }
    return NULL;
}

/* --- making one --- */

/* base/usr hides too; hide-usr has what lies at its top. */
static fallible build_joined(int gen, int host, int dir, int hide)
{
    own_fd base = -1, usr = -1;

    TRY(fd_make_dirs(gen, STR("base/usr"), 0755, &usr));
    TRY(fd_make_dirs(gen, STR("base"), 0755, &base));
    TRY(join_build(host, base));
    TRY(hide_build(dir, usr));
    return hide_lift(dir, usr, hide);
}

static fallible build_hidden(int gen, int host)
{
    for (size_t i = 0; geteuid() == 0 && i < HOST_DIRS; i++) {
        own_fd hide = -1,
               dir = openat(host, host_dirs[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
        if (dir < 0)
            continue; /* a link, or not there */
        TRY(fd_make_dirs(gen, str_of(dir_names[i].hide), 0755, &hide));
        TRY_WRAP(i ? hide_build(dir, hide) : build_joined(gen, host, dir, hide),
                 "hide what is private in '/%s'", host_dirs[i]);
    }
    return NULL;
}

static fallible build_layers(int gen, int host)
{
    own_fd base = -1;

    TRY(fd_make_dirs(gen, STR("base"), 0755, &base));
    TRY_WRAP(base_build(host, base), "make the root's layer");
    TRY(build_hidden(gen, host));
    own_fd joined = open_layer(gen, dir_names[0].hide);
    if (joined >= 0)
        TRY_WRAP(join_cover(host, base), "join '/usr' to the root's layer");
    if (syncfs(base) < 0)
        return err_sys("write the layers to disk");
    return NULL;
}

/* Gives the generation the name its stamp is looked up by; an older one of that stamp is let go. */
static fallible rootfs_publish(int dir, const char *gen, const char *link)
{
    char temp[sizeof ".link-" + RNG_HEX_LEN] = ".link-";

    rng_hex(rng_system(), temp + strlen(temp));
    if (symlinkat(gen, dir, temp) < 0)
        return err_sys("make a link");
    if (renameat(dir, temp, dir, link) < 0) {
        struct err *e = err_sys("name the layers");
        unlinkat(dir, temp, 0);
        return e;
    }
    return NULL;
}

static fallible rootfs_build(int dir, int host, const char *link)
{
    char temp[ROOTFS_ID_LEN] = ".new-", gen[ROOTFS_ID_LEN] = "gen-", hex[RNG_HEX_LEN + 1];

    rng_hex(rng_system(), hex);
    strcat(temp, hex);
    strcat(gen, hex);
    if (mkdirat(dir, temp, 0700) < 0)
        return err_sys("make a directory for layers");
    own_fd at = openat(dir, temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    struct err *e = at < 0 ? err_sys("open the directory for layers") : build_layers(at, host);
    if (!e && renameat(dir, temp, dir, gen) < 0)
        e = err_sys("name the layers");
    if (!e)
        e = rootfs_publish(dir, gen, link);
    if (e)
        err_free(tree_remove(dir, temp)); /* prune removes what is left */
    return e;
}

static fallible open_dir(int state, int *ret_fd)
{
    return err_wrap(fd_make_dirs(state, STR("rootfs"), 0700, ret_fd), "state directory");
}

static bool look_up(int dir, const char *link, char gen[ROOTFS_ID_LEN])
{
    ssize_t n = readlinkat(dir, link, gen, ROOTFS_ID_LEN - 1);

    if (n <= 0 || memchr(gen, '/', (size_t)n))
        return false;
    gen[n] = '\0';
    return faccessat(dir, gen, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static fallible link_name(int host, char link[ROOTFS_ID_LEN])
{
    char stamp[STAMP_LEN + 1];

    TRY(stamp_take(host, stamp));
    snprintf(link, ROOTFS_ID_LEN, "host-%s", stamp);
    return NULL;
}

static fallible rootfs_ensure(int dir, int host, int boxes, bool anew, char gen[ROOTFS_ID_LEN])
{
    char link[ROOTFS_ID_LEN];
    own_fd locked = -1;
    struct err *e = NULL;

    TRY_WRAP(tree_lock(dir, &locked), "the root file systems");
    for (int i = 0; i < TRIES; i++) {
        TRY(link_name(host, link));
        if (!(anew && i == 0) && look_up(dir, link, gen)) /* made while we waited, or just now */
            return i ? rootfs_prune(dir, boxes, gen) : NULL;
        err_free(e);
        e = rootfs_build(dir, host,
                         link); /* a stamp from before: a change meanwhile shows next time */
        if (e && err_code(e) != ERR_CONFLICT && err_errno(e) != ENOENT)
            break;
    }
    if (e || !look_up(dir, link, gen))
        return err_wrap(e ? e : err_new(ERR_BUSY, "the host keeps changing"),
                        "make the layers of the host's system");
    return rootfs_prune(dir, boxes, gen);
}

static int open_boxes(int state)
{
    return openat(state, "box", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
}

static fallible open_at(int state, int host, void (*on_making)(void *arg), void *arg,
                        struct rootfs *ret)
{
    char link[ROOTFS_ID_LEN], gen[ROOTFS_ID_LEN];
    own_fd dir = -1;

    TRY(open_dir(state, &dir));
    for (int i = 0;; i++) {
        TRY(link_name(host, link));
        if (!look_up(dir, link, gen)) {
            own_fd boxes = open_boxes(state);
            if (on_making)
                on_making(arg);
            TRY(rootfs_ensure(dir, host, boxes, false, gen));
        }
        struct err *e = open_generation(dir, host, gen, ret);
        if (!e || err_errno(e) != ENOENT || i == TRIES)
            return e;
        err_free(e); /* another process saw the machine change, and removed it while we opened it */
    }
}

fallible rootfs_host_open_at(int state, int host, struct rootfs *ret)
{
    return open_at(state, host, NULL, NULL, ret);
}

static fallible open_root(int *ret_fd)
{
    own_fd host = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);

    if (host < 0)
        return err_sys("open '/'");
    *ret_fd = take_fd(&host);
    return NULL;
}

fallible rootfs_host_open_or_make(int state, void (*on_making)(void *arg), void *arg,
                                  struct rootfs *ret)
{
    own_fd host = -1;

    TRY(open_root(&host));
    return open_at(state, host, on_making, arg, ret);
}

fallible rootfs_host_open(int state, struct rootfs *ret)
{
    return rootfs_host_open_or_make(state, NULL, NULL, ret);
}

/* Makes the whiteouts once more and compares. */
static fallible hides_the_same(int dir, int host, const char *gen, bool *ret_same)
{
    static const char temp[] = ".new-hidden";

    TRY(tree_remove(dir, temp));
    if (mkdirat(dir, temp, 0700) < 0)
        return err_sys("make a directory");
    own_fd fresh = openat(dir, temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    own_fd old = openat(dir, gen, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fresh < 0 || old < 0)
        return err_sys("open the layers");
    TRY(build_hidden(fresh, host));
    *ret_same = true;
    for (size_t i = geteuid() ? 1 : 0; *ret_same && i <= HOST_DIRS; i++) {
        const char *name = i ? dir_names[i - 1].hide : "base/usr";
        own_fd a = open_layer(fresh, name), b = open_layer(old, name);
        *ret_same = (a < 0) == (b < 0);
        if (a >= 0 && b >= 0)
            TRY(hide_compare(a, b, ret_same));
    }
    if (*ret_same && futimens(old, NULL) < 0)
        return err_sys("note the time");
    return tree_remove(dir, temp);
}

static fallible rootfs_refresh(int dir, int host, bool *ret_same)
{
    char link[ROOTFS_ID_LEN], gen[ROOTFS_ID_LEN];
    own_fd locked = -1;

    TRY_WRAP(tree_lock(dir, &locked), "the root file systems");
    TRY(link_name(host, link));
    *ret_same = false;
    return look_up(dir, link, gen) ? hides_the_same(dir, host, gen, ret_same) : NULL;
}

fallible rootfs_host_refresh_at(int state, int host)
{
    char gen[ROOTFS_ID_LEN];
    own_fd dir = -1, boxes = open_boxes(state);
    bool same;

    TRY(open_dir(state, &dir));
    TRY(rootfs_refresh(dir, host, &same));
    return same ? NULL : rootfs_ensure(dir, host, boxes, true, gen);
}

fallible rootfs_host_refresh(int state)
{
    own_fd host = -1;

    TRY(open_root(&host));
    return rootfs_host_refresh_at(state, host);
}

/* The current generation; false when there is none. */
static bool find_current(int state, struct stat *ret)
{
    own_fd dir = openat(state, "rootfs", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    own_fd host = -1;
    char link[ROOTFS_ID_LEN], gen[ROOTFS_ID_LEN];
    struct err *e = open_root(&host);

    if (!e)
        e = link_name(host, link);
    bool found = !e && dir >= 0 && look_up(dir, link, gen) &&
                 fstatat(dir, gen, ret, AT_SYMLINK_NOFOLLOW) == 0;
    err_free(e); /* opening them will say it */
    return found;
}

bool rootfs_host_is_stale(int state)
{
    struct stat st;
    uint64_t now_s = clock_wall_ns(&clock_system) / NS_PER_S;

    return find_current(state, &st) && (uint64_t)st.st_mtim.tv_sec + ROOTFS_FRESH_S < now_s;
}

fallible rootfs_host_prune(int state)
{
    char link[ROOTFS_ID_LEN], current[ROOTFS_ID_LEN];
    own_fd dir = -1, host = -1, locked = -1, boxes = open_boxes(state);

    TRY(open_dir(state, &dir));
    TRY(open_root(&host));
    TRY_WRAP(tree_lock(dir, &locked), "the root file systems");
    TRY(link_name(host, link));
    if (!look_up(dir, link, current))
        current[0] = '\0';
    return rootfs_prune(dir, boxes, current);
}

bool rootfs_host_has_old(int state)
{
    own_done(buf) names = {0};
    own_fd dir = openat(state, "rootfs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    size_t count = 0, gens = 0;
    struct err *e = dir < 0 ? NULL : tree_read_names(dir, 1u << 20, &names, &count);

    for (const char *name = names.p; !e && count--; name += strlen(name) + 1)
        gens += str_starts(str_of(name), STR("gen-"));
    err_free(e); /* then the next process that makes layers removes them */
    return gens > 1;
}
