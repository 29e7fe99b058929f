// SPDX-License-Identifier: Apache-2.0
/* scan.c — the entries of the layers against the directory: what became different?
 *
 * Copy-up alone is no change: bytes are compared. After an apply the same scan finds nothing. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "host/changes/inner.h"
#include "host/tree/inner.h"
#include "host/tree/tree.h"

#define PIECE (64u << 10)

struct scan {
    const struct changes_source *src;
    struct changes *c;
    struct moved moved;
    struct lookup lower, *uppers;
    struct nodes nodes;
    size_t cap, linked_cap;
    struct str opaque;  /* the directory we are below that hides the lower one; .p NULL: none */
    struct str mounted; /* the same for one of the lower's that something is mounted on */
    struct str fresh;   /* ... and for one that the sandbox made */
    char *piece[2];
};

static fallible list_add(struct change **list, size_t *count, size_t *cap, const struct change *c)
{
    if (*count == *cap) {
        size_t more_cap = *cap ? 2 * *cap : 64;
        struct change *more = realloc(*list, more_cap * sizeof *more);
        if (!more)
            return err_no_memory();
        *list = more;
        *cap = more_cap;
    }
    (*list)[(*count)++] = *c;
    return NULL;
}

static fallible scan_add(struct scan *s, const struct change *c)
{
    return list_add(&s->c->list, &s->c->count, &s->cap, c);
}

static fallible read_piece(int fd, off_t at, char *into, size_t *ret_len)
{
    size_t len = 0;

    while (len < PIECE) {
        ssize_t n = pread(fd, into + len, PIECE - len, at + (off_t)len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys("read");
        if (n == 0)
            break;
        len += (size_t)n;
    }
    *ret_len = len;
    return NULL;
}

/* The place of the next bytes, or the end of the file: a guest's empty terabytes are not read. */
static off_t next_data(int fd, off_t at, off_t end)
{
    off_t data = lseek(fd, at, SEEK_DATA);

    if (data < 0)
        return errno == ENXIO ? end : at;
    return data < end ? data : end;
}

static fallible same_bytes(struct scan *s, const struct node *n, bool *ret_same)
{
    own_fd a = -1, b = -1;
    off_t end = (off_t)n->size;

    TRY(lookup_open(&s->uppers[n->layer], n->path, S_IFREG, &a));
    struct err *e = lookup_open(&s->lower, n->path, S_IFREG, &b);
    *ret_same = !e;
    if (e && is_closed(e)) { /* to us, not to the sandbox */
        err_free(e);
        return NULL;
    }
    TRY(e);
    for (off_t at = 0; *ret_same && at < end; at += PIECE) {
        off_t next[2] = {next_data(a, at, end), next_data(b, at, end)};
        size_t len[2];
        at = next[0] < next[1] ? next[0] : next[1];
        TRY_WRAP(read_piece(a, at, s->piece[0], &len[0]), "'%.200s'", n->path.p);
        TRY_WRAP(read_piece(b, at, s->piece[1], &len[1]), "'%.200s'", n->path.p);
        *ret_same = len[0] == len[1] && memcmp(s->piece[0], s->piece[1], len[0]) == 0;
    }
    return NULL;
}

/* --- one entry --- */

static fallible on_deleted(struct scan *s, struct str path, const struct stat *old)
{
    struct change c = {.kind = CHANGE_DELETED,
                       .path = path,
                       .old_mode = old->st_mode,
                       .old_size = S_ISREG(old->st_mode) ? (uint64_t)old->st_size : 0,
                       .old_changed = old->st_ctim};

    TRY(moved_look(&s->moved, &s->lower, path, old, &c.conflict, &c.mounted));
    return scan_add(s, &c);
}

static fallible scan_compare(struct scan *s, const struct node *n, const struct stat *old,
                             struct change *c, bool *ret_same)
{
    bool same = true;

    if (n->kind == NODE_FILE)
        same = n->size == (uint64_t)old->st_size;
    if (n->kind == NODE_FILE && same)
        TRY(same_bytes(s, n, &same));
    if (n->kind == NODE_LINK) {
        struct str text;
        TRY(lookup_link(&s->lower, n->path, &s->c->arena, &text));
        same = str_eq(text, c->target);
    }
    *ret_same = same && (n->kind == NODE_LINK || ((n->mode ^ old->st_mode) & 0777) == 0);
    c->kind = same ? CHANGE_MODE : CHANGE_MODIFIED;
    if (n->kind != NODE_DIR) /* a directory's times change with every name in it */
        c->conflict = moved_is(&s->moved, old);
    return NULL;
}

static bool has_node(const struct scan *s, struct str path)
{
    size_t low = 0, high = s->nodes.count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = path_cmp(s->nodes.at[mid].path, path);
        if (order == 0)
            return true;
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return false;
}

/* Names of the lower directory that an opaque one does not have. */
static fallible on_opaque(struct scan *s, const struct node *dir)
{
    own_done(buf) names = {0};
    own_fd fd = -1;
    size_t count;

    TRY(lookup_open(&s->lower, dir->path, S_IFDIR, &fd));
    TRY(tree_read_names(fd, TREE_NAMES_MAX, &names, &count));
    for (const char *name = names.p; count--; name += strlen(name) + 1) {
        struct str path = arena_printf(&s->c->arena, STR_FMT "/%s", STR_ARG(dir->path), name);
        struct stat old;
        if (!path.p)
            return arena_check(&s->c->arena);
        if (has_node(s, path))
            continue;
        TRY(lookup_stat(&s->lower, path, &old));
        TRY(on_deleted(s, path, &old));
    }
    return NULL;
}

/* Finds an entry copied up from a place that is empty now: its file was removed, or the sandbox
 * moved the entry here. A directory is never moved: overlay would need a redirect. */
static fallible look_for_origin(struct scan *s, const struct node *n, struct change *c)
{
    own_fd fd = -1;

    if (s->src->since_ns == CHANGES_NEVER || n->layer + 1u < s->src->upper_count)
        return NULL; /* it may have been copied up from another layer */
    if ((n->kind != NODE_DIR && n->kind != NODE_FILE) ||
        (s->fresh.p && path_beneath(n->path, s->fresh)))
        return NULL;
    TRY(lookup_open(&s->uppers[n->layer], n->path, type_of(n->mode), &fd));
    TRY(origin_read(fd, s->src->user, &s->c->arena, &c->origin));
    if (n->kind == NODE_FILE)
        return NULL;
    c->conflict = c->origin.p;
    if (!c->conflict)
        s->fresh = n->path;
    c->origin = (struct str){0};
    return NULL;
}

static fallible on_new(struct scan *s, const struct node *n, const struct stat *old,
                       struct change *c)
{
    c->kind = n->kind == NODE_SPECIAL ? CHANGE_SPECIAL
              : n->kind == NODE_DEEP  ? CHANGE_DEEP
              : old                   ? CHANGE_REPLACED
                                      : CHANGE_ADDED;
    TRY(old ? moved_look(&s->moved, &s->lower, c->path, old, &c->conflict, &c->mounted)
            : look_for_origin(s, n, c));
    return scan_add(s, c);
}

/* The sandbox saw and changed what lies under a mount here. No other program sees that. */
static fallible on_mounted(struct scan *s, const struct node *n, const struct stat *old)
{
    struct change c = {.kind = n->kind == NODE_WHITEOUT  ? CHANGE_DELETED
                               : n->kind == NODE_SPECIAL ? CHANGE_SPECIAL
                               : n->kind == NODE_DEEP    ? CHANGE_DEEP
                               : old                     ? CHANGE_REPLACED
                                                         : CHANGE_ADDED,
                       .conflict = true,
                       .mounted = true,
                       .path = n->path,
                       .mode = n->kind == NODE_WHITEOUT ? 0 : n->mode & ~(mode_t)07000,
                       .old_mode = old ? old->st_mode : 0,
                       .size = n->size,
                       .layer = n->layer};

    if (n->kind == NODE_LINK)
        TRY(lookup_link(&s->uppers[n->layer], n->path, &s->c->arena, &c.target));
    return scan_add(s, &c);
}

/* A directory that something is mounted on is there in the layer for what is in it. */
static fallible on_mount(struct scan *s, const struct node *n, const struct stat *old)
{
    if (n->kind != NODE_DIR || !S_ISDIR(old->st_mode))
        return on_mounted(s, n, old);
    s->mounted = n->path;
    return NULL;
}

static bool is_place(const struct changes_source *src, struct str path)
{
    for (size_t i = 0; src->places && src->places[i]; i++) {
        struct str place = str_of(src->places[i]);
        if (str_eq(path, place) || path_beneath(place, path))
            return true;
    }
    return false;
}

/* Made for something to be mounted there, as was all that is in it. */
static bool is_bare_place(const struct scan *s, const struct node *n)
{
    const struct node *end = s->nodes.at + s->nodes.count;

    if ((n->kind != NODE_DIR && n->kind != NODE_FILE) || n->size || !is_place(s->src, n->path))
        return false;
    for (const struct node *in = n + 1; in < end && path_beneath(in->path, n->path); in++)
        if (in->size || !is_place(s->src, in->path))
            return false;
    return true;
}

static fallible on_node(struct scan *s, const struct node *n)
{
    struct stat old = {0};
    bool same = false, mount = false;

    if (s->mounted.p && path_beneath(n->path, s->mounted))
        return on_mounted(s, n, NULL);
    struct err *e = lookup_stat(&s->lower, n->path, &old);
    bool there = !e;
    if (e && err_code(e) != ERR_NOT_FOUND)
        return e;
    err_free(e);
    if (there)
        TRY(lookup_mount(&s->lower, n->path, &mount));
    if (mount)
        return on_mount(s, n, &old);
    if (n->kind == NODE_WHITEOUT)
        return there ? on_deleted(s, n->path, &old) : NULL;
    struct change c = {.path = n->path,
                       .mode = n->mode & ~(mode_t)07000,
                       .old_mode = old.st_mode,
                       .size = n->size,
                       .old_size = S_ISREG(old.st_mode) ? (uint64_t)old.st_size : 0,
                       .old_changed = old.st_ctim,
                       .layer = n->layer,
                       .link = {n->inode, n->inode ? n->layer : 0}};
    if (n->kind == NODE_LINK)
        TRY(lookup_link(&s->uppers[n->layer], n->path, &s->c->arena, &c.target));
    if (!there && is_bare_place(s, n))
        return NULL;
    if (!there || n->kind >= NODE_SPECIAL || type_of(n->mode) != type_of(old.st_mode))
        return on_new(s, n, there ? &old : NULL, &c);
    TRY(scan_compare(s, n, &old, &c, &same));
    if (!same)
        TRY(scan_add(s, &c));
    else if (n->inode)
        TRY(list_add(&s->c->linked, &s->c->linked_count, &s->linked_cap, &c));
    bool below = s->opaque.p && path_beneath(n->path, s->opaque);
    if (n->kind == NODE_DIR && (n->opaque || below)) {
        if (!below)
            s->opaque = n->path;
        return on_opaque(s, n);
    }
    return NULL;
}

/* An entry that cannot be read does not stop the others. */
static fallible on_any(struct scan *s, const struct node *n)
{
    struct err *e = on_node(s, n);

    if (!e || !is_closed(e))
        return e;
    err_free(e);
    return scan_add(s, &(struct change){.kind = CHANGE_SPECIAL,
                                        .path = n->path,
                                        .mode = n->mode & ~(mode_t)07000,
                                        .size = n->size,
                                        .layer = n->layer});
}

static int by_path(const void *a, const void *b)
{
    return path_cmp(((const struct change *)a)->path, ((const struct change *)b)->path);
}

static fallible scan_all(struct scan *s)
{
    struct changes *c = s->c;

    TRY(moved_init(&s->moved, s->src));
    TRY(layers_read(s->src, &c->arena, &s->nodes));
    for (size_t i = 0; i < s->nodes.count; i++)
        TRY(on_any(s, &s->nodes.at[i]));
    if (c->count)
        qsort(c->list, c->count, sizeof *c->list, by_path);
    TRY(renames_find(s->src, c));
    for (size_t i = 0; i < c->count; i++)
        c->kinds[c->list[i].kind]++;
    TRY(origins_check(s->src, &s->moved.notes, c));
    for (size_t i = 0; i < c->count; i++)
        c->conflicts += c->list[i].conflict;
    return arena_check(&c->arena);
}

fallible changes_scan(const struct changes_source *src, struct changes *ret)
{
    struct changes c = {0};
    struct lookup uppers[CHANGES_MAX_LAYERS];
    struct scan s = {.src = src, .c = &c, .uppers = uppers};

    if (!src->upper_count || src->upper_count > CHANGES_MAX_LAYERS)
        return err_new(ERR_INVALID, "%zu layers, 1 to %d can be compared", src->upper_count,
                       CHANGES_MAX_LAYERS);
    arena_init(&c.arena, CHANGES_MEMORY);
    lookup_init(&s.lower, src->lower);
    for (size_t i = 0; i < src->upper_count; i++)
        lookup_init_layer(&uppers[i], src->uppers[i]);
    s.piece[0] = mem_try(PIECE);
    s.piece[1] = mem_try(PIECE);
    struct err *e = s.piece[0] && s.piece[1] ? scan_all(&s) : err_no_memory();
    for (size_t i = 0; i < src->upper_count; i++)
        lookup_done(&uppers[i]);
    lookup_done(&s.lower);
    nodes_done(&s.nodes);
    moved_done(&s.moved);
    free(s.piece[0]);
    free(s.piece[1]);
    if (e)
        changes_done(&c);
    else
        *ret = c;
    return e;
}

void changes_done(struct changes *c)
{
    free(c->list);
    free(c->linked);
    arena_done(&c->arena);
    *c = (struct changes){0};
}
