// SPDX-License-Identifier: Apache-2.0
/* origin.c — entries of a layer that were copied up from files that have left their place.
 *
 * Overlay writes a file handle of the lower file into its copy, and the handle stays when the
 * sandbox moves the copy. Then the old name is gone in the layer, and the directory's file of that
 * name has that handle.
 *
 * If no file has it, the file was removed or moved in the directory, and the sandbox's version must
 * not bring it back unasked.
 *
 * Overlays of ordinary users note that there was a copy, not of which file. There a sandbox that
 * took any file away gets the benefit of the doubt. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/map.h"
#include "host/changes/inner.h"
#include "host/tree/tree.h"

#define VALUE_MAX 256

/* As the kernel lays it out: version, magic, length, flags, type, 16 bytes of identity, handle. */
enum { AT_TYPE = 4, AT_HANDLE = 21 };

fallible origin_read(int fd, bool user, struct arena *a, struct str *ret)
{
    char value[VALUE_MAX];
    ssize_t n =
        fgetxattr(fd, user ? "user.overlay.origin" : "trusted.overlay.origin", value, sizeof value);

    if (n < 0)
        return NULL;
    if (n <= AT_HANDLE)
        *ret = STR("");
    else {
        value[AT_HANDLE - 1] = value[AT_TYPE];
        *ret = arena_copy(a, str_n(value + AT_HANDLE - 1, (size_t)n - AT_HANDLE + 1));
    }
    return ret->p ? NULL : arena_check(a);
}

struct seeker {
    struct tree_visitor v;
    struct map lost;   /* changes by their origin */
    struct map linked; /* what did not change, by change_link */
    struct lookup lower;
};

struct str origin_of(int dir, const char *name, char key[ORIGIN_MAX])
{
    _Static_assert(ORIGIN_MAX == 1 + MAX_HANDLE_SZ, "a handle fits");
    struct {
        struct file_handle h;
        unsigned char bytes[MAX_HANDLE_SZ];
    } f = {.h.handle_bytes = MAX_HANDLE_SZ};
    int mount;

    if (name_to_handle_at(dir, name, &f.h, &mount, 0) < 0)
        return (struct str){0};
    key[0] = (char)f.h.handle_type;
    memcpy(key + 1, f.h.f_handle, f.h.handle_bytes);
    return str_n(key, 1 + f.h.handle_bytes);
}

/* The sandbox moved the entry that came from this file. */
static void origin_seen(struct seeker *k, int dir, const char *name)
{
    char key[ORIGIN_MAX];
    struct str origin = origin_of(dir, name, key);

    if (origin.p)
        map_del(&k->lost, origin);
}

static fallible walk_one(struct tree_visitor *v, enum tree_when when, const struct tree_at *at,
                         bool *skip)
{
    (void)skip;
    if (when == TREE_LEAF && S_ISREG(at->st->st_mode))
        origin_seen(container_of(v, struct seeker, v), at->dir, at->name);
    return NULL;
}

static fallible look_below(struct seeker *k, const struct change *c)
{
    own_fd fd = -1;
    struct err *e = lookup_open(&k->lower, c->path, S_IFDIR, &fd);

    if (!e)
        e = tree_walk(fd, &k->v);
    if (!e || !is_closed(e))
        return e;
    err_free(e);
    return NULL;
}

static fallible look_at(struct seeker *k, const struct change *c)
{
    const char *name;
    int dir;

    if (c->mounted || (!c->old_mode && c->kind != CHANGE_RENAMED))
        return NULL;
    if (S_ISDIR(c->old_mode))
        return c->kind == CHANGE_MODE ? NULL : look_below(k, c);
    TRY(lookup_parent(&k->lower, c->kind == CHANGE_RENAMED ? c->from : c->path, &dir, &name));
    origin_seen(k, dir, name);
    return NULL;
}

/* The sandbox gave a file that is still there another name. */
static fallible see_linked(struct seeker *k, const struct changes *c)
{
    const char *name;
    int dir;

    for (size_t i = 0; i < c->linked_count && k->lost.count; i++) {
        TRY(lookup_parent(&k->lower, c->linked[i].path, &dir, &name));
        origin_seen(k, dir, name);
    }
    return NULL;
}

static fallible origin_seek(struct seeker *k, const struct notes *notes, struct changes *c)
{
    bool took = c->kinds[CHANGE_DELETED] || c->kinds[CHANGE_REPLACED] || notes_have_removed(notes);

    for (size_t i = 0; i < c->linked_count; i++) /* an ordinary user's overlay tells no more */
        map_put(&k->linked, str_n(&c->linked[i].link, sizeof c->linked[i].link), &c->linked[i]);
    for (size_t i = 0; i < c->count; i++) {
        struct change *x = &c->list[i];
        if (!x->origin.p || x->kind != CHANGE_ADDED)
            continue;
        if (x->origin.len && notes_have_origin(notes, x->origin))
            continue;
        if (x->origin.len)
            map_put(&k->lost, x->origin, x);
        else
            x->conflict |= !took && !map_get(&k->linked, str_n(&x->link, sizeof x->link));
    }
    TRY(see_linked(k, c));
    for (size_t i = 0; i < c->count && k->lost.count; i++)
        TRY(look_at(k, &c->list[i]));
    for (size_t i = 0; i < c->count && k->lost.count; i++) {
        struct change *x = &c->list[i]; /* of several that came from one file each is */
        if (x->kind == CHANGE_ADDED && x->origin.len && map_get(&k->lost, x->origin))
            x->conflict = true;
    }
    return NULL;
}

fallible origins_check(const struct changes_source *src, const struct notes *notes,
                       struct changes *c)
{
    struct seeker k = {.v.visit = walk_one};

    map_init(&k.lost);
    map_init(&k.linked);
    lookup_init(&k.lower, src->lower);
    struct err *e = origin_seek(&k, notes, c);
    lookup_done(&k.lower);
    map_done(&k.lost);
    map_done(&k.linked);
    return e;
}
