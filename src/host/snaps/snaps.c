// SPDX-License-Identifier: Apache-2.0
/* snaps.c — see snaps.h. */
#include "host/snaps/snaps.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/map.h"
#include "host/snaps/inner.h"
#include "host/snaps/whole.h"
#include "host/tree/inner.h"
#include "host/tree/tree.h"

#define RECORD_MAX (1u << 16)

fallible snaps_note(int box, unsigned n, const struct snap *snap)
{
    char note[16];

    snapstore_mount_name(n, 'l', note);
    return snapstore_note(box, note, snap);
}

fallible snaps_note_copy(int box, unsigned n, int of)
{
    struct snap since = {.layer_count = 0};
    char note[16];

    snapstore_mount_name(n, 'l', note);
    if (snapstore_is_noted(box, note))
        return NULL;
    snapstore_keep_since(&since, of, ".");
    return snapstore_note(box, note, &since);
}

/* --- opening --- */

fallible snaps_open(int state, const struct snap *snap, struct snaps_stack *ret)
{
    struct snapstore s;

    TRY(snapstore_open(state, false, &s));
    struct err *e = snapstore_open_stack(&s, snap, ret);
    snapstore_close(&s);
    return e;
}

static fallible read_noted(const struct snapstore *s, int box, unsigned n, struct arena *a,
                           struct snap *ret)
{
    char note[16];

    snapstore_mount_name(n, 'l', note);
    return snapstore_read(s, box, note, a, ret);
}

fallible snaps_open_noted(int state, int box, unsigned n, struct snaps_stack *ret)
{
    char upper[16];

    snapstore_mount_name(n, 'u', upper);
    return whole_layers(state, box, upper, ret);
}

/* --- records --- */

static void put_record(struct buf *to, const struct snap *snap)
{
    struct jw w;

    jw_init(&w, to, 0);
    JW_OBJECT(&w, NULL) {
        jw_str(&w, "name", snap->name);
        jw_str(&w, "source", snap->source);
        if (snap->which.len)
            jw_str(&w, "which", snap->which);
        jw_uint(&w, "made_wall_ns", snap->made_wall_ns);
        if (snap->since_ns)
            jw_uint(&w, "since_ns", snap->since_ns);
        JW_ARRAY(&w, "layers") {
            for (size_t i = 0; i < snap->layer_count; i++)
                jw_str(&w, NULL, snap->layers[i]);
        }
    }
}

static fallible write_record(const struct snapstore *s, const struct snap *snap)
{
    own_done(buf) text;
    char file[NAME_LIMIT + 8];

    buf_init(&text, RECORD_MAX);
    put_record(&text, snap);
    TRY(buf_check(&text));
    snprintf(file, sizeof file, STR_FMT ".json", STR_ARG(snap->name));
    return fd_replace_file(s->dir, file, buf_str(&text), 0600);
}

static fallible parse_record(struct arena *a, struct str text, struct snap *ret)
{
    struct json *doc;

    TRY(json_parse(a, text, NULL, &doc));
    const struct json *layers = json_get(doc, STR("layers"));
    *ret = (struct snap){.name = json_get_str(doc, "name", STR("")),
                         .source = json_get_str(doc, "source", STR("")),
                         .which = arena_copy(a, json_get_str(doc, "which", STR(""))),
                         .made_wall_ns = (uint64_t)json_get_int(doc, "made_wall_ns", 0),
                         .since_ns = (uint64_t)json_get_int(doc, "since_ns", 0)};
    if (!layers || layers->type != JSON_ARRAY || layers->count > SNAPS_LAYERS_MAX)
        return err_new(ERR_CORRUPT, "not a record of a snapshot");
    for (const struct json *l = layers->first; l; l = l->next) {
        if (l->type != JSON_STR || !snapstore_is_layer(l->s))
            return err_new(ERR_CORRUPT, "not a record of a snapshot: a layer without a name");
        ret->layers[ret->layer_count] = arena_copy(a, l->s); /* with a NUL, for openat */
        if (!ret->layers[ret->layer_count++].p)
            return arena_check(a);
    }
    return NULL;
}

static fallible read_record(const struct snapstore *s, const char *file, struct arena *a,
                            struct snap *ret)
{
    own_done(buf) text;
    own_fd fd = openat(s->dir, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);

    buf_init(&text, RECORD_MAX);
    if (fd < 0)
        return err_sys("open '%s'", file);
    TRY(fd_read_all(fd, &text));
    struct str kept = arena_copy(a, buf_str(&text));
    if (!kept.p)
        return arena_check(a);
    return err_wrap(parse_record(a, kept, ret), "'%s'", file);
}

fallible snaps_find(int state, const char *name, struct arena *a, struct snap *ret)
{
    struct snapstore s;
    char file[NAME_LIMIT + 8];

    TRY(snapstore_check_name(name));
    TRY(snapstore_open(state, false, &s));
    snprintf(file, sizeof file, "%s.json", name);
    struct err *e = read_record(&s, file, a, ret);
    snapstore_close(&s);
    if (e && err_errno(e) == ENOENT) {
        err_free(e);
        return err_new(ERR_NOT_FOUND, "no snapshot '%s'; 'croft snapshot ls' lists them", name);
    }
    return e;
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const struct snap *)a)->name, ((const struct snap *)b)->name);
}

static fallible read_all(const struct snapstore *s, struct arena *a, struct snap **ret_list,
                         size_t *ret_count)
{
    own_done(buf) names = {0};
    size_t count, n = 0;

    TRY(tree_read_names(s->dir, 1u << 20, &names, &count));
    struct snap *list = arena_alloc(a, count * sizeof *list);
    if (!list)
        return arena_check(a);
    for (const char *name = names.p; count--; name += strlen(name) + 1) {
        if (str_ends(str_of(name), STR(".json")))
            TRY(read_record(s, name, a, &list[n++]));
    }
    qsort(list, n, sizeof *list, by_name);
    *ret_list = list;
    *ret_count = n;
    return NULL;
}

fallible snaps_list(int state, struct arena *a, struct snap **ret_list, size_t *ret_count)
{
    struct snapstore s;

    TRY(snapstore_open(state, false, &s));
    struct err *e = read_all(&s, a, ret_list, ret_count);
    snapstore_close(&s);
    return e;
}

/* --- taking one --- */

static fallible take_upper(const struct snapstore *s, int box, unsigned n, bool copy,
                           const struct snap *with)
{
    char upper[16], note[16];

    snapstore_mount_name(n, 'u', upper);
    snapstore_mount_name(n, 'l', note);
    if (!copy)
        return snapstore_freeze(s, box, upper, note, with);
    own_fd fd = openat(box, upper, DIR_FLAGS, 0);
    if (fd < 0)
        return err_sys("open the sandbox's changes");
    return snapstore_make(s, with->layers[0].p, &fd, 1, false);
}

static fallible take_one(const struct snapstore *s, int box, unsigned n, bool copy, struct arena *a,
                         struct snap *snap)
{
    char upper[16], source[16], which[16], path[PATH_MAX], noted[PATH_MAX];
    struct str layer;

    snapstore_mount_name(n, 'u', upper);
    snapstore_mount_name(n, 's', source);
    TRY(snapstore_link(box, source, path));
    if (!path[0] || faccessat(box, upper, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return err_new(ERR_NOT_FOUND, "the sandbox has no copy of a directory");
    snap->source = arena_copy(a, str_of(path));
    snapstore_mount_name(n, 'i', which);
    TRY(snapstore_link(box, which, noted));
    snap->which = arena_copy(a, str_of(noted));
    TRY(read_noted(s, box, n, a, snap));
    if (snap->layer_count == SNAPS_LAYERS_MAX - 1) /* it has not been done since layer 20 */
        TRY_WRAP(snapstore_flatten(s, a, snap), "flatten its layers");
    TRY(snapstore_layer_name(a, &layer));
    if (copy && !snap->layer_count)
        snapstore_keep_since(snap, box, upper);
    snapstore_push(snap, layer);
    return take_upper(s, box, n, copy, snap);
}

fallible snaps_take(int state, int box, unsigned n, const char *name, bool copy, struct arena *a,
                    struct snap *ret)
{
    struct snapstore s;
    struct snap snap = {.name = arena_copy(a, str_of(name)),
                        .made_wall_ns = clock_wall_ns(&clock_system)};
    char file[NAME_LIMIT + 8];

    TRY(snapstore_check_name(name));
    TRY(snapstore_open(state, true, &s));
    snprintf(file, sizeof file, "%s.json", name);
    struct err *e = NULL;
    if (snapstore_is_taken(&s, name))
        e = err_new(ERR_CONFLICT, "there is a snapshot '%s' already", name);
    if (!e)
        e = take_one(&s, box, n, copy, a, &snap);
    if (!e)
        e = write_record(&s, &snap);
    snapstore_close(&s);
    if (!e)
        *ret = snap;
    return e ? e : arena_check(a);
}

/* --- keeping stacks short --- */

static bool same_stack(const struct snap *a, const struct snap *b)
{
    for (size_t i = 0; i < a->layer_count && a->layer_count == b->layer_count; i++) {
        if (!str_eq(a->layers[i], b->layers[i]))
            return false;
    }
    return a->layer_count == b->layer_count;
}

static fallible flatten_open(const struct snapstore *s, const char *name, int box, unsigned n,
                             struct arena *a)
{
    struct snap old, noted = {.layer_count = 0};
    char file[NAME_LIMIT + 8];

    snprintf(file, sizeof file, "%s.json", name);
    TRY(read_record(s, file, a, &old));
    TRY(read_noted(s, box, n, a, &noted));
    if (old.layer_count <= SNAPS_FLATTEN_AT)
        return NULL;
    struct snap flat = old;
    TRY(snapstore_flatten(s, a, &flat));
    TRY(write_record(s, &flat));
    return same_stack(&old, &noted) ? snaps_note(box, n, &flat) : NULL;
}

fallible snaps_flatten(int state, int box, unsigned n, const char *name)
{
    struct snapstore s;
    struct arena a;

    TRY(snapstore_check_name(name));
    TRY(snapstore_open(state, true, &s));
    arena_init(&a, 1u << 20);
    struct err *e = flatten_open(&s, name, box, n, &a);
    arena_done(&a);
    snapstore_close(&s);
    return e;
}

/* --- letting go --- */

struct used { /* every layer that is stood on, by name */
    struct map map;
    struct arena a;
};

static void add_used(void *arg, const struct snap *s)
{
    struct used *u = arg;

    for (size_t i = 0; i < s->layer_count; i++)
        map_put(&u->map, s->layers[i], u);
}

static fallible find_used(const struct snapstore *s, struct used *u)
{
    own_done(buf) boxes = {0};
    struct snap *list;
    size_t count;

    TRY(read_all(s, &u->a, &list, &count));
    for (size_t i = 0; i < count; i++)
        add_used(u, &list[i]);
    TRY(whole_each_used(s, &u->a, add_used, u));
    TRY(tree_read_names(s->boxes, 16u << 20, &boxes, &count));
    for (const char *id = boxes.p; count--; id += strlen(id) + 1) {
        own_fd box = openat(s->boxes, id, DIR_FLAGS, 0);
        if (box >= 0)
            TRY(whole_each_of_box(box, &u->a, add_used, u));
    }
    return NULL;
}

/* Out of the store by name: what takes long is done when the store is free again. */
static fallible set_aside(const struct snapstore *s, int gone)
{
    own_done(buf) names = {0};
    struct used u;
    size_t count = 0;

    map_init(&u.map);
    arena_init(&u.a, 256u << 20);
    struct err *e = find_used(s, &u);
    if (!e)
        e = tree_read_names(s->layers, 16u << 20, &names, &count);
    for (const char *name = names.p; !e && count--; name += strlen(name) + 1) {
        if (map_get(&u.map, str_of(name)))
            continue;
        if (strcmp(name, ".new") == 0) /* of a snapshot that was cut short */
            e = tree_remove(s->layers, name);
        else if (renameat(s->layers, name, gone, name) < 0)
            e = err_sys("set layer '%.100s' aside", name);
    }
    map_done(&u.map);
    arena_done(&u.a);
    return e;
}

static fallible remove_gone(int gone)
{
    own_done(buf) names = {0};
    own_fd lock = -1;
    size_t count = 0;

    TRY(tree_lock(gone, &lock));
    TRY(tree_read_names(gone, 16u << 20, &names, &count));
    for (const char *name = names.p; count--; name += strlen(name) + 1)
        if (snapstore_is_layer(str_of(name)))
            TRY(tree_remove(gone, name));
    return NULL;
}

fallible snaps_sweep(int state)
{
    struct snapstore s;
    own_fd gone = -1;

    TRY(snapstore_open(state, true, &s));
    struct err *e = fd_make_dirs(s.dir, STR("gone"), 0700, &gone);
    if (!e)
        e = set_aside(&s, gone);
    snapstore_close(&s);
    return e ? e : remove_gone(gone);
}

fallible snaps_remove(int state, const char *name)
{
    struct arena a;
    struct snap snap;
    struct snapstore s;
    char file[NAME_LIMIT + 8];

    arena_init(&a, 1u << 20);
    struct err *e = snaps_find(state, name, &a, &snap);
    if (!e)
        e = snapstore_open(state, true, &s);
    if (!e) {
        snprintf(file, sizeof file, "%s.json", name);
        if (unlinkat(s.dir, file, 0) < 0)
            e = err_sys("remove snapshot '%s'", name);
        snapstore_close(&s);
        if (!e)
            e = snaps_sweep(state);
    }
    arena_done(&a);
    return e;
}
