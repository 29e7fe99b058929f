// SPDX-License-Identifier: Apache-2.0
/* store.c — layers, and notes of what stands on them; see inner.h. */
#include "host/snaps/inner.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/rng.h"
#include "host/snaps/merge.h"
#include "host/tree/tree.h"

void snapstore_close(struct snapstore *s)
{
    own_close(s->dir);
    own_close(s->layers);
    own_close(s->boxes);
    own_close(s->lock);
}

static fallible open_parts(struct snapstore *s, int state, bool change)
{
    TRY(fd_make_dirs(state, STR("snap"), 0700, &s->dir));
    TRY(fd_make_dirs(s->dir, STR("layers"), 0700, &s->layers));
    TRY(fd_make_dirs(state, STR("box"), 0700, &s->boxes));
    if (!change)
        return NULL;
    return tree_lock(s->dir, &s->lock);
}

fallible snapstore_open(int state, bool change, struct snapstore *ret)
{
    struct snapstore s = {-1, -1, -1, -1};
    struct err *e = open_parts(&s, state, change);

    if (e) {
        snapstore_close(&s);
        return err_wrap(e, "the store of snapshots");
    }
    *ret = s;
    return NULL;
}

/* --- names of layers --- */

bool snapstore_is_taken(const struct snapstore *s, const char *name)
{
    char path[NAME_LIMIT + 16];

    snprintf(path, sizeof path, "%s.json", name);
    if (faccessat(s->dir, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return true;
    snprintf(path, sizeof path, "whole/%s", name);
    return faccessat(s->dir, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

bool snapstore_is_layer(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (str_digit(s.p[i]) > 15)
            return false;
    }
    return s.len == SNAPS_LAYER_LEN;
}

/* "hex,hex,…", topmost first; then "@" and when it began, if that is not the lowest's birth. */
static fallible parse_stack(struct arena *a, struct str text, struct snap *into)
{
    struct str name, since = text;

    into->layer_count = 0;
    into->since_ns = 0;
    if (str_cut(&since, '@', &text) && !str_to_u64(since, &into->since_ns))
        return err_new(ERR_CORRUPT, "the note of a sandbox's layers is broken");
    while (text.len && (str_cut(&text, ',', &name) || name.len)) {
        if (!snapstore_is_layer(name) || into->layer_count == SNAPS_LAYERS_MAX)
            return err_new(ERR_CORRUPT, "the note of a sandbox's layers is broken");
        into->layers[into->layer_count] = arena_copy(a, name);
        if (!into->layers[into->layer_count++].p)
            return arena_check(a);
    }
    return NULL;
}

void snapstore_mount_name(unsigned n, char kind, char out[16])
{
    snprintf(out, 16, "m%u%c", n, kind);
}

fallible snapstore_link(int box, const char *name, char out[PATH_MAX])
{
    ssize_t n = readlinkat(box, name, out, PATH_MAX - 1);

    if (n < 0 && errno != ENOENT)
        return err_sys("read the sandbox's note");
    out[n < 0 ? 0 : n] = '\0';
    return NULL;
}

/* The next note, until it is in place: see snapstore_freeze. */
static void next_name(const char *note, char out[SNAPS_NOTE + 1])
{
    snprintf(out, SNAPS_NOTE + 1, ".%s", note);
}

static fallible write_next(int box, const char *note, const struct snap *s)
{
    own_done(buf) text;
    char next[SNAPS_NOTE + 1];

    buf_init(&text, PATH_MAX - 1);
    for (size_t i = 0; i < s->layer_count; i++)
        buf_addf(&text, "%s" STR_FMT, i ? "," : "", STR_ARG(s->layers[i]));
    if (s->since_ns)
        buf_addf(&text, "@%llu", (unsigned long long)s->since_ns);
    TRY(buf_check(&text));
    if (!buf_cstr(&text))
        return err_no_memory();
    next_name(note, next);
    unlinkat(box, next, 0); /* of a call that was cut short */
    if (symlinkat(text.p, box, next) < 0)
        return err_sys("note the layers");
    return NULL;
}

static fallible put_next(int box, const char *note)
{
    char next[SNAPS_NOTE + 1];

    next_name(note, next);
    if (renameat(box, next, box, note) < 0)
        return err_sys("note the layers");
    return NULL;
}

fallible snapstore_note(int box, const char *note, const struct snap *s)
{
    if (!s->layer_count && !s->since_ns)
        return NULL;
    TRY(write_next(box, note, s));
    return put_next(box, note);
}

fallible snapstore_read_plain(int box, const char *note, struct arena *a, struct snap *ret)
{
    char text[PATH_MAX];

    TRY(snapstore_link(box, note, text));
    return parse_stack(a, str_of(text), ret);
}

/* A process died between announcing a frozen layer and noting it: is it there? */
static fallible store_recover(const struct snapstore *s, int box, const char *note, struct arena *a)
{
    struct snap next = {.layer_count = 0};
    char name[SNAPS_NOTE + 1];

    next_name(note, name);
    TRY(snapstore_read_plain(box, name, a, &next));
    if (!next.layer_count)
        return NULL;
    if (faccessat(s->layers, next.layers[0].p, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return put_next(box, note);
    return unlinkat(box, name, 0) < 0 ? err_sys("forget a layer that never was") : NULL;
}

fallible snapstore_read(const struct snapstore *s, int box, const char *note, struct arena *a,
                        struct snap *ret)
{
    TRY(store_recover(s, box, note, a));
    return snapstore_read_plain(box, note, a, ret);
}

bool snapstore_is_noted(int box, const char *note)
{
    char next[SNAPS_NOTE + 1];

    next_name(note, next);
    return faccessat(box, note, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
           faccessat(box, next, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* --- opening --- */

void snaps_stack_done(struct snaps_stack *s)
{
    while (s->count)
        own_close(s->fds[--s->count]);
}

fallible snapstore_open_stack(const struct snapstore *s, const struct snap *snap,
                              struct snaps_stack *ret)
{
    struct snaps_stack stack = {.since_ns = snap->since_ns};

    for (size_t i = 0; i < snap->layer_count; i++) {
        int fd = openat(s->layers, snap->layers[i].p, DIR_FLAGS, 0);
        if (fd < 0) {
            struct err *e = err_sys("layer '" STR_FMT "'", STR_ARG(snap->layers[i]));
            snaps_stack_done(&stack);
            return e;
        }
        stack.fds[stack.count++] = fd;
    }
    *ret = stack;
    return NULL;
}

fallible snapstore_check_name(const char *name)
{
    struct str s = str_of(name);

    for (size_t i = 0; i < s.len; i++) {
        char c = s.p[i], low = (char)(c | 0x20);
        bool word = (low >= 'a' && low <= 'z') || str_is_digit(c);
        if (!word && (i == 0 || !strchr("._-", c)))
            s.len = 0;
    }
    if (!s.len || s.len > NAME_LIMIT || strcmp(name, "layers") == 0)
        return err_new(ERR_INVALID,
                       "'%.80s' is no name for a snapshot: letters, digits, '-', '_', '.'", name);
    return NULL;
}
fallible snapstore_layer_name(struct arena *a, struct str *ret)
{
    char hex[RNG_HEX_LEN + 1];

    rng_hex(rng_system(), hex);
    *ret = arena_copy(a, str_of(hex));
    return ret->p ? NULL : arena_check(a);
}

/* Fills layers/NAME, under another name until it is whole. */
fallible snapstore_make(const struct snapstore *s, const char *name, const int *from, size_t count,
                        bool link)
{
    TRY(tree_remove(s->layers, ".new"));
    if (mkdirat(s->layers, ".new", 0755) < 0)
        return err_sys("make a layer");
    own_fd into = openat(s->layers, ".new", DIR_FLAGS, 0);
    if (into < 0)
        return err_sys("open the new layer");
    struct err *e = merge_layers(from, count, link, into, NULL);
    if (!e && renameat(s->layers, ".new", s->layers, name) < 0)
        e = err_sys("name the layer");
    if (e)
        err_free(tree_remove(s->layers, ".new")); /* the next one removes it too */
    return e;
}

fallible snapstore_empty(int box, const char *upper, const struct stat *like)
{
    if (mkdirat(box, upper, 0755) < 0)
        return err_sys("make an empty layer");
    own_fd fd = openat(box, upper, DIR_FLAGS, 0);
    if (fd < 0)
        return err_sys("open the empty layer");
    TRY(tree_chown_like(fd, "", like));
    return fchmod(fd, like->st_mode & 07777) < 0 ? err_sys("set the empty layer's mode") : NULL;
}

/* Announced, exchanged, noted: after a kill in between nothing is lost, and the next look sees at
 * worst one layer more, an empty one. */
fallible snapstore_freeze(const struct snapstore *s, int box, const char *upper, const char *note,
                          const struct snap *with)
{
    const char *layer = with->layers[0].p;
    struct stat st;

    if (fstatat(box, upper, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys("look at the sandbox's changes");
    TRY(snapstore_empty(s->layers, layer, &st));
    TRY(write_next(box, note, with));
    if (renameat2(box, upper, s->layers, layer, RENAME_EXCHANGE) < 0)
        return err_sys("freeze the sandbox's changes");
    return put_next(box, note);
}

void snapstore_keep_since(struct snap *snap, int dir, const char *name)
{
    struct statx x;

    if (snap->since_ns || statx(dir, name, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &x) < 0 ||
        !(x.stx_mask & STATX_BTIME)) /* a comparison will say so */
        return;
    snap->since_ns = (uint64_t)x.stx_btime.tv_sec * NS_PER_S + x.stx_btime.tv_nsec;
}

void snapstore_push(struct snap *snap, struct str name)
{
    memmove(snap->layers + 1, snap->layers, snap->layer_count * sizeof *snap->layers);
    snap->layers[0] = name;
    snap->layer_count++;
}

/* A stack that has grown long becomes one layer; sandboxes on the old ones keep them. */
fallible snapstore_flatten(const struct snapstore *s, struct arena *a, struct snap *snap)
{
    struct snaps_stack stack;
    struct str name;

    TRY(snapstore_layer_name(a, &name));
    TRY(snapstore_open_stack(s, snap, &stack));
    struct err *e = snapstore_make(s, name.p, stack.fds, stack.count, true);
    snaps_stack_done(&stack);
    TRY(e);
    snapstore_keep_since(snap, s->layers, snap->layers[snap->layer_count - 1].p);
    snap->layers[0] = name;
    snap->layer_count = 1;
    return NULL;
}
