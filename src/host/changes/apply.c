// SPDX-License-Identifier: Apache-2.0
/* apply.c — a sandbox's changes go into the directory they were made over.
 *
 * It runs as the user that asked for it. Bytes, names, permissions without set-id bits and the time
 * of the last change come through.
 *
 * Owner and attributes are those of the old file. A new file belongs to the owner of its
 * directory. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"
#include "host/changes/inner.h"
#include "host/tree/tree.h"

#define ACL         "system.posix_acl_access"
#define NOTES_BYTES (128u << 20)
#define XATTR_MAX   65536 /* the kernel's own bound, of a list and of a value */

struct applier {
    const struct changes_source *src;
    struct changes_apply *how;
    struct lookup to;
    struct moved moved;
    struct map links; /* by change_link: one that is there already under another name */
    struct buf notes;
};

struct spot { /* where an entry goes */
    int dir;
    const char *name;
    bool there;
    struct stat old, above;
    char temp[sizeof ".croft-" + RNG_HEX_LEN];
};

static fallible not_mounted(int dir, const char *name)
{
    bool mount;

    TRY(tree_is_mount(dir, name, &mount));
    return mount ? err_new(ERR_CONFLICT, "something is mounted on it") : NULL;
}

static fallible find_spot(struct applier *a, struct str path, struct spot *s)
{
    TRY(lookup_parent(&a->to, path, &s->dir, &s->name));
    if (fstat(s->dir, &s->above) < 0)
        return err_sys("look at the directory");
    s->there = fstatat(s->dir, s->name, &s->old, AT_SYMLINK_NOFOLLOW) == 0;
    if (!s->there && errno != ENOENT)
        return err_sys("look");
    if (s->there)
        TRY(not_mounted(s->dir, s->name));
    strcpy(s->temp, ".croft-");
    rng_hex(rng_system(), s->temp + strlen(s->temp));
    return NULL;
}

static fallible changed_now(void)
{
    return err_new(ERR_CONFLICT, "it was changed a moment ago; run 'croft diff' and look again");
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* The directory may have changed between the look and now. */
static fallible still_as_seen(const struct applier *a, const struct change *c, const struct spot *s)
{
    bool was = c->old_mode != 0;
    bool same = was == s->there;

    if (same && was && !S_ISDIR(c->old_mode))
        same = same_time(s->old.st_ctim, c->old_changed) || moved_is_touched(&a->moved, &s->old);
    return same || a->how->force ? NULL : changed_now();
}

static fallible give_owner(int fd, const struct spot *s)
{
    uid_t uid = s->there ? s->old.st_uid : s->above.st_uid;
    gid_t gid = s->there ? s->old.st_gid : s->above.st_gid;

    if (geteuid() == 0 && fchownat(fd, "", uid, gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys("set the owner");
    return NULL;
}

/* A file that goes: what the sandbox made of it has lost nothing that we did not take. */
static void note_going(struct applier *a, int dir, const char *name, const struct stat *st)
{
    char key[ORIGIN_MAX];
    struct str origin = {0};

    if (S_ISREG(st->st_mode) && !a->src->user && a->src->notes > 0)
        origin = origin_of(dir, name, key);
    if (origin.p)
        notes_add_origin(&a->notes, origin);
}

/* A file that has other names: taking this one away changes its time, which is no change of theirs.
 */
static int hold_old(const struct spot *s)
{
    bool several = s->there && S_ISREG(s->old.st_mode) && s->old.st_nlink > 1;

    return several ? openat(s->dir, s->name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0) : -1;
}

static void note_touched(struct applier *a, int fd)
{
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || !st.st_nlink)
        return;
    notes_add(&a->notes, &st);
    moved_touch(&a->moved, &st);
}

struct remover {
    struct tree_visitor v;
    struct applier *a;
};

static fallible look_last(struct applier *a, int dir, const char *name, const struct stat *st)
{
    if (!a->how->force && moved_is_written(&a->moved, st))
        return changed_now();
    note_going(a, dir, name, st);
    return NULL;
}

static fallible look_last_below(struct tree_visitor *v, enum tree_when when,
                                const struct tree_at *at, bool *skip)
{
    struct applier *a = container_of(v, struct remover, v)->a;

    if (when == TREE_ENTER)
        return entry_is_mount(at->dir, at->name, skip); /* the removal says it */
    return when == TREE_LEAF ? look_last(a, at->dir, at->name, at->st) : NULL;
}

/* Once more at the last moment, for what was written while others were removed. By now our own
 * removals have changed directories, and files that have several names. */
static fallible look_at_going(struct applier *a, const struct spot *s)
{
    struct remover r = {{.visit = look_last_below}, a};

    if (!S_ISDIR(s->old.st_mode))
        return look_last(a, s->dir, s->name, &s->old);
    own_fd fd = openat(s->dir, s->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    return fd < 0 ? err_sys("open") : tree_walk(fd, &r.v);
}

static fallible clear_spot(struct applier *a, const struct spot *s)
{
    size_t noted = a->notes.len;

    if (!s->there)
        return NULL;
    own_fd old = hold_old(s);
    struct err *e = look_at_going(a, s);
    if (e && a->how->force) { /* no matter what is there */
        err_free(e);
        e = NULL;
    }
    if (!e)
        e = tree_remove(s->dir, s->name);
    if (e)
        a->notes.len = noted; /* it is still there */
    else
        note_touched(a, old);
    return e;
}

static bool is_own_attribute(const char *name)
{
    return strncmp(name, "user.", 5) == 0 || strcmp(name, ACL) == 0;
}

/* Attributes that the owner set on the old file go to the new one. Attributes about the bytes, such
 * as capabilities, do not, and neither does anything that the sandbox wrote. */
static fallible keep_attributes(const struct spot *s, int to)
{
    own_fd from = -1;

    if (!s->there || !S_ISREG(s->old.st_mode))
        return NULL;
    from = openat(s->dir, s->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
    if (from < 0)
        return errno == EACCES ? NULL : err_sys("open the old file");
    own_free char *names = mem_try(XATTR_MAX), *value = mem_try(XATTR_MAX);
    if (!names || !value)
        return err_no_memory();
    fremovexattr(to, ACL); /* what a new file gets here by default, if anything */
    ssize_t n = flistxattr(from, names, XATTR_MAX);
    if (n < 0)
        return errno == EOPNOTSUPP ? NULL : err_sys("list attributes");
    for (const char *name = names; name < names + n; name += strlen(name) + 1) {
        if (!is_own_attribute(name))
            continue;
        ssize_t len = fgetxattr(from, name, value, XATTR_MAX);
        if (len < 0 || fsetxattr(to, name, value, (size_t)len, 0) < 0)
            return err_sys("keep attribute '%.100s'", name);
    }
    return NULL;
}

static fallible write_file(struct applier *a, const struct change *c, const struct spot *s)
{
    struct lookup upper;
    struct stat st;
    own_fd from = -1;

    lookup_init_layer(&upper, a->src->uppers[c->layer]);
    struct err *e = lookup_open(&upper, c->path, S_IFREG, &from);
    lookup_done(&upper);
    TRY(e);
    if (fstat(from, &st) < 0)
        return err_sys("look at the sandbox's file");
    own_fd to = openat(s->dir, s->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0)
        return err_sys("create a file");
    TRY(tree_copy_bytes(from, to));
    TRY(give_owner(to, s));
    TRY(keep_attributes(s, to)); /* before the mode, which is part of an access list */
    struct timespec times[2] = {st.st_atim, st.st_mtim};
    if (fchmod(to, c->mode & 0777) < 0 || futimens(to, times) < 0)
        return err_sys("set mode and times");
    return NULL;
}

static fallible write_link(const struct change *c, const struct spot *s)
{
    char text[4097];

    if (c->target.len >= sizeof text)
        return err_new(ERR_TOO_LARGE, "the link is too long");
    memcpy(text, c->target.p, c->target.len);
    text[c->target.len] = '\0';
    if (symlinkat(text, s->dir, s->temp) < 0)
        return err_sys("make a link");
    own_fd fd = openat(s->dir, s->temp, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return err_sys("open the link");
    return give_owner(fd, s);
}

/* Copying may have taken long, too. */
static fallible still_the_old(const struct applier *a, const struct spot *s)
{
    struct stat now;

    if (!s->there || S_ISDIR(s->old.st_mode) || a->how->force)
        return NULL;
    if (fstatat(s->dir, s->name, &now, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? changed_now() : err_sys("look again");
    bool same = now.st_ino == s->old.st_ino && same_time(now.st_ctim, s->old.st_ctim);
    return same ? NULL : changed_now();
}

/* The finished entry takes its name; one that was not there must not be there now either. */
static fallible name_it(struct applier *a, const struct change *c, const struct spot *s)
{
    bool fresh = c->kind == CHANGE_ADDED || c->kind == CHANGE_RENAMED;

    TRY(still_the_old(a, s));
    if (s->there && S_ISDIR(s->old.st_mode))
        TRY(clear_spot(a, s));
    if (fresh && !a->how->force) {
        if (renameat2(s->dir, s->temp, s->dir, s->name, RENAME_NOREPLACE) == 0)
            return NULL;
        if (errno != EINVAL)
            return err_sys("name it");
    }
    if (renameat(s->dir, s->temp, s->dir, s->name) < 0)
        return err_sys("name it");
    return NULL;
}

/* The file is there under another name, which the sandbox gave it too. Gives false when it is not,
 * or cannot have one more. */
static bool link_entry(struct applier *a, const struct change *c, const struct spot *s)
{
    const struct change *other =
        c->link.inode ? map_get(&a->links, str_n(&c->link, sizeof c->link)) : NULL;
    struct stat seen, now;
    const char *name;
    int dir;
    struct lookup at;

    if (!other || other == c)
        return false;
    lookup_init(&at, a->src->lower);
    struct err *e = lookup_parent(&at, other->path, &dir, &name);
    bool linked =
        !e && fstatat(dir, name, &seen, AT_SYMLINK_NOFOLLOW) == 0 &&
        (same_time(seen.st_ctim, other->old_changed) || moved_is_touched(&a->moved, &seen)) &&
        linkat(dir, name, s->dir, s->temp, 0) == 0;
    if (linked &&
        (fstatat(s->dir, s->temp, &now, AT_SYMLINK_NOFOLLOW) < 0 || now.st_ino != seen.st_ino)) {
        unlinkat(s->dir, s->temp, 0);
        linked = false;
    }
    if (linked)
        moved_touch(&a->moved, &now);
    err_free(e); /* then it is copied */
    lookup_done(&at);
    return linked;
}

static fallible write_entry(struct applier *a, const struct change *c, const struct spot *s)
{
    if (S_ISLNK(c->mode))
        return write_link(c, s);
    return link_entry(a, c, s) ? NULL : write_file(a, c, s);
}

static fallible put_entry(struct applier *a, const struct change *c, const struct spot *s)
{
    struct err *e = write_entry(a, c, s);
    size_t noted = a->notes.len;
    own_fd old = hold_old(s);

    if (s->there)
        note_going(a, s->dir, s->name, &s->old);
    if (!e)
        e = name_it(a, c, s);
    if (!e) {
        note_touched(a, old);
        return NULL;
    }
    a->notes.len = noted;
    unlinkat(s->dir, s->temp, 0);
    return e;
}

static fallible put_dir(struct applier *a, const struct change *c, const struct spot *s)
{
    if (s->there && S_ISDIR(s->old.st_mode))
        return NULL;
    TRY(clear_spot(a, s));
    if (mkdirat(s->dir, s->name, 0700 | (c->mode & 0777)) < 0)
        return err_sys("make the directory");
    own_fd fd = openat(s->dir, s->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return err_sys("open the directory");
    struct spot fresh = *s;
    fresh.there = false;
    return give_owner(fd, &fresh);
}

/* A directory's own set-group-id and sticky bits stay. */
static mode_t new_mode(const struct change *c, const struct stat *st)
{
    return (c->mode & 0777) | (S_ISDIR(st->st_mode) ? st->st_mode & 07000 : 0);
}

static fallible set_mode_open(const struct change *c, const struct spot *s)
{
    struct stat st;
    own_fd fd = openat(s->dir, s->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys("open");
    if (type_of(st.st_mode) != type_of(c->mode))
        return err_new(ERR_CONFLICT, "it was replaced meanwhile");
    return fchmod(fd, new_mode(c, &st)) < 0 ? err_sys("set the mode") : NULL;
}

static fallible set_mode(const struct change *c, const struct spot *s)
{
    char path[40];
    struct stat st;
    own_fd fd = openat(s->dir, s->name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys("open");
    if (type_of(st.st_mode) != type_of(c->mode) || S_ISLNK(st.st_mode))
        return err_new(ERR_CONFLICT, "it was replaced meanwhile");
    struct err *e = set_mode_open(c, s); /* without /proc, which may be out of reach */
    if (!e || err_errno(e) != EACCES)
        return e;
    err_free(e);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (chmod(path, new_mode(c, &st)) < 0)
        return err_sys("set the mode");
    return NULL;
}

static fallible remove_old(struct applier *a, struct str path)
{
    struct spot s;
    struct err *e = find_spot(a, path, &s);

    if (e && err_code(e) == ERR_NOT_FOUND) { /* it went with its directory */
        err_free(e);
        return NULL;
    }
    TRY(e);
    TRY(clear_spot(a, &s));
    lookup_forget(&a->to);
    return NULL;
}

static fallible put_one(struct applier *a, const struct change *c)
{
    struct spot s;

    TRY(find_spot(a, c->path, &s));
    if (c->kind == CHANGE_DELETED)
        return remove_old(a, c->path);
    TRY(still_as_seen(a, c, &s));
    if (c->kind == CHANGE_MODE)
        return S_ISDIR(c->mode) ? NULL : set_mode(c, &s); /* directories when they are full */
    if (!S_ISDIR(c->mode))
        return put_entry(a, c, &s);
    return put_dir(a, c, &s);
}

/* Removals come last: if a step fails before, nothing is gone. */
static bool is_removal(const struct change *c)
{
    return c->kind == CHANGE_DELETED || (c->kind == CHANGE_REPLACED && S_ISDIR(c->old_mode));
}

static fallible finish_dir(struct applier *a, const struct change *c)
{
    struct spot s;

    TRY(find_spot(a, c->path, &s));
    return set_mode(c, &s);
}

/* Whether it is to be done at all; counts what is left out. */
static bool is_done(struct changes_apply *how, const struct change *c)
{
    if (!c->chosen)
        return false;
    how->mounted += c->mounted;
    how->deep += c->kind == CHANGE_DEEP;
    bool out = c->mounted || c->kind == CHANGE_SPECIAL || c->kind == CHANGE_DEEP;
    how->skipped += out;
    return !out;
}

static void link_known(struct applier *a, const struct change *c)
{
    struct str key = str_n(&c->link, sizeof c->link);

    if (!map_get(&a->links, key))
        map_put(&a->links, key, (void *)(uintptr_t)c);
}

/* Names that are there, and stay. */
static void link_known_all(struct applier *a, const struct changes *c)
{
    for (size_t i = 0; i < c->linked_count; i++)
        link_known(a, &c->linked[i]);
    for (size_t i = 0; i < c->count; i++)
        if (c->list[i].chosen && c->list[i].kind == CHANGE_MODE && c->list[i].link.inode)
            link_known(a, &c->list[i]);
}

/* Noted at once: a later change by another program is a conflict. */
static fallible note_file(struct applier *a, const struct change *c)
{
    struct stat st;

    if (S_ISDIR(c->mode))
        return NULL;
    TRY(lookup_stat(&a->to, c->path, &st));
    notes_add(&a->notes, &st);
    if (st.st_nlink > 1 || c->link.inode)
        moved_touch(&a->moved, &st);
    if (c->link.inode)
        link_known(a, c);
    return NULL;
}

static fallible put_all(struct applier *a, struct changes *c)
{
    for (size_t i = 0; i < c->count; i++) {
        struct change *x = &c->list[i];
        if (!x->chosen || is_removal(x))
            continue;
        TRY_WRAP(put_one(a, x), "apply '%.200s'", x->path.p);
        TRY_WRAP(note_file(a, x), "apply '%.200s'", x->path.p);
        x->done = true;
        a->how->applied += x->kind != CHANGE_RENAMED;
    }
    return NULL;
}

static bool takes_away(const struct change *c)
{
    return c->chosen && (is_removal(c) || c->kind == CHANGE_RENAMED);
}

static fallible check_renamed(struct applier *a, const struct change *c)
{
    struct stat st;
    struct err *e = lookup_stat(&a->to, c->from, &st);

    if (e && err_code(e) == ERR_NOT_FOUND) { /* another process was quicker */
        err_free(e);
        return NULL;
    }
    TRY(e);
    bool same = same_time(st.st_ctim, c->old_changed) || moved_is_touched(&a->moved, &st);
    return same ? NULL : changed_now();
}

static fallible check_removal(struct applier *a, const struct change *c)
{
    bool moved = false, mounted = false;
    struct spot s;

    if (c->kind == CHANGE_RENAMED)
        return check_renamed(a, c);
    TRY(find_spot(a, c->path, &s));
    TRY(still_as_seen(a, c, &s));
    if (S_ISDIR(s.old.st_mode))
        TRY(moved_look(&a->moved, &a->to, c->path, &s.old, &moved, &mounted));
    return moved ? changed_now() : NULL;
}

/* Looks again, because files may have changed while we wrote. All checks come before the first
 * removal, which changes the times of its neighbours. */
static fallible check_removals(struct applier *a, const struct changes *c)
{
    lookup_forget(&a->to);
    for (size_t i = 0; i < c->count && !a->how->force; i++)
        if (takes_away(&c->list[i]))
            TRY_WRAP(check_removal(a, &c->list[i]), "apply '%.200s'", c->list[i].path.p);
    return NULL;
}

static fallible remove_all(struct applier *a, struct changes *c)
{
    for (size_t i = 0; i < c->count; i++) {
        struct change *x = &c->list[i];
        if (!takes_away(x))
            continue;
        TRY_WRAP(is_removal(x) ? put_one(a, x) : remove_old(a, x->from), "apply '%.200s'",
                 x->path.p);
        if (x->kind == CHANGE_REPLACED)
            TRY_WRAP(note_file(a, x), "apply '%.200s'", x->path.p);
        else
            notes_add(&a->notes, NULL);
        x->done = true;
        a->how->applied++;
    }
    return NULL;
}

static void note_dir(struct applier *a, struct str path, ino_t *last)
{
    const char *name;
    struct stat st;
    int dir = -1;
    struct err *e = lookup_parent(&a->to, path, &dir, &name);

    if (!e && fstat(dir, &st) == 0 && st.st_ino != *last) {
        notes_add(&a->notes, &st);
        *last = st.st_ino;
    }
    err_free(e); /* it went too */
}

/* Directories have changed with every name put in or taken out: at the end. */
static void note_dirs(struct applier *a, const struct changes *c)
{
    ino_t last = 0, last_from = 0;

    for (size_t i = 0; i < c->count; i++) {
        const struct change *x = &c->list[i];
        struct stat st;
        if (!x->done)
            continue;
        note_dir(a, x->path, &last);
        if (x->from.len)
            note_dir(a, x->from, &last_from);
        struct err *e = S_ISDIR(x->mode) ? lookup_stat(&a->to, x->path, &st) : NULL;
        if (!e && S_ISDIR(x->mode))
            notes_add(&a->notes, &st);
        err_free(e); /* a conflict too many */
    }
    notes_write(a->src->notes, &a->notes);
}

static fallible apply_all(struct applier *a, struct changes *c)
{
    TRY(put_all(a, c));
    TRY(check_removals(a, c));
    TRY(remove_all(a, c));
    for (size_t i = c->count; i--;) {
        const struct change *x = &c->list[i];
        if (x->chosen && S_ISDIR(x->mode))
            TRY_WRAP(finish_dir(a, x), "apply '%.200s'", x->path.p);
    }
    own_fd fd = openat(a->src->lower, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0 || syncfs(fd) < 0)
        return err_sys("write the changes to disk");
    return NULL;
}

fallible changes_apply(const struct changes_source *src, struct changes *c,
                       struct changes_apply *how)
{
    struct applier a = {.src = src, .how = how};
    size_t conflicts = changes_select(c, how);

    how->applied = how->skipped = how->mounted = how->deep = 0;
    if (conflicts && !how->force)
        return changes_refuse(c, conflicts);
    size_t chosen = 0;
    for (size_t i = 0; i < c->count; i++) {
        c->list[i].chosen = is_done(how, &c->list[i]);
        c->list[i].done = false;
        chosen += c->list[i].chosen;
    }
    lookup_init(&a.to, src->lower);
    buf_init(&a.notes, NOTES_BYTES);
    struct err *e = moved_init(&a.moved, src);
    map_init(&a.links);
    link_known_all(&a, c);
    if (!e)
        e = apply_all(&a, c);
    note_dirs(&a, c);
    map_done(&a.links);
    moved_done(&a.moved);
    buf_done(&a.notes);
    lookup_done(&a.to);
    if (!e || !how->applied)
        return e;
    return err_wrap(e, "%zu of %zu changes were applied before this, 'croft diff' lists the rest",
                    how->applied, chosen);
}
