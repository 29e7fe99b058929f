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
#include "base/rng.h"
#include "host/snaps/merge.h"
#include "host/tree/inner.h"
#include "host/tree/tree.h"

#define DIR_FLAGS  (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define RECORD_MAX (1u << 16)
#define NAME_LIMIT 64

struct store {
    int dir, layers, boxes, lock;
};

static void store_done(struct store *s)
{
    own_close(s->dir);
    own_close(s->layers);
    own_close(s->boxes);
    own_close(s->lock);
}

static fallible open_parts(struct store *s, int state, bool change)
{
    TRY(fd_make_dirs(state, STR("snap"), 0700, &s->dir));
    TRY(fd_make_dirs(s->dir, STR("layers"), 0700, &s->layers));
    TRY(fd_make_dirs(state, STR("box"), 0700, &s->boxes));
    if (!change)
        return NULL;
    return tree_lock(s->dir, &s->lock);
}

static fallible store_open(int state, bool change, struct store *ret)
{
    struct store s = {-1, -1, -1, -1};
    struct err *e = open_parts(&s, state, change);

    if (e) {
        store_done(&s);
        return err_wrap(e, "the store of snapshots");
    }
    *ret = s;
    return NULL;
}

/* --- names of layers --- */

static bool is_layer(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (str_digit(s.p[i]) > 15)
            return false;
    }
    return s.len == SNAPS_LAYER_LEN;
}

/* "hex,hex,…", topmost first. */
static fallible parse_stack(struct arena *a, struct str text, struct snap *into)
{
    struct str name;

    into->layer_count = 0;
    while (text.len && (str_cut(&text, ',', &name) || name.len)) {
        if (!is_layer(name) || into->layer_count == SNAPS_LAYERS_MAX)
            return err_new(ERR_CORRUPT, "the note of a sandbox's layers is broken");
        into->layers[into->layer_count] = arena_copy(a, name);
        if (!into->layers[into->layer_count++].p)
            return arena_check(a);
    }
    return NULL;
}

static void note_name(unsigned n, char kind, char out[16])
{
    snprintf(out, 16, "m%u%c", n, kind);
}

static fallible read_link(int box, const char *name, char out[PATH_MAX])
{
    ssize_t n = readlinkat(box, name, out, PATH_MAX - 1);

    if (n < 0 && errno != ENOENT)
        return err_sys("read the sandbox's note");
    out[n < 0 ? 0 : n] = '\0';
    return NULL;
}

/* Replaces the link in one step. */
static fallible write_note(int box, unsigned n, const struct snap *s)
{
    own_done(buf) text;
    char name[16], temp[24];

    buf_init(&text, PATH_MAX - 1);
    for (size_t i = 0; i < s->layer_count; i++)
        buf_addf(&text, "%s" STR_FMT, i ? "," : "", STR_ARG(s->layers[i]));
    TRY(buf_check(&text));
    if (!s->layer_count)
        return NULL;
    note_name(n, 'l', name);
    snprintf(temp, sizeof temp, ".%s", name);
    unlinkat(box, temp, 0); /* of one who was killed here */
    if (!buf_cstr(&text))
        return err_no_memory();
    if (symlinkat(text.p, box, temp) < 0 || renameat(box, temp, box, name) < 0)
        return err_sys("note the layers");
    return NULL;
}

fallible snaps_note(int box, unsigned n, const struct snap *snap)
{
    return write_note(box, n, snap);
}

/* --- opening --- */

void snaps_stack_done(struct snaps_stack *s)
{
    while (s->count)
        own_close(s->fds[--s->count]);
}

static fallible open_stack(const struct store *s, const struct snap *snap, struct snaps_stack *ret)
{
    struct snaps_stack stack = {.count = 0};

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

fallible snaps_open(int state, const struct snap *snap, struct snaps_stack *ret)
{
    struct store s;

    TRY(store_open(state, false, &s));
    struct err *e = open_stack(&s, snap, ret);
    store_done(&s);
    return e;
}

static fallible read_noted(int box, unsigned n, struct arena *a, struct snap *ret)
{
    char name[16], text[PATH_MAX];

    note_name(n, 'l', name);
    TRY(read_link(box, name, text));
    return parse_stack(a, str_of(text), ret);
}

fallible snaps_open_noted(int state, int box, unsigned n, struct snaps_stack *ret)
{
    struct arena a;
    struct snap snap = {.layer_count = 0};

    ret->count = 0;
    arena_init(&a, 1u << 20);
    struct err *e = read_noted(box, n, &a, &snap);
    if (!e && snap.layer_count)
        e = snaps_open(state, &snap, ret);
    arena_done(&a);
    return e;
}

/* --- records --- */

static fallible check_name(const char *name)
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

static void put_record(struct buf *to, const struct snap *snap)
{
    struct jw w;

    jw_init(&w, to, 0);
    JW_OBJECT(&w, NULL) {
        jw_str(&w, "name", snap->name);
        jw_str(&w, "source", snap->source);
        jw_uint(&w, "made_wall_ns", snap->made_wall_ns);
        JW_ARRAY(&w, "layers") {
            for (size_t i = 0; i < snap->layer_count; i++)
                jw_str(&w, NULL, snap->layers[i]);
        }
    }
}

static fallible write_record(const struct store *s, const struct snap *snap)
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
                         .made_wall_ns = (uint64_t)json_get_int(doc, "made_wall_ns", 0)};
    if (!layers || layers->type != JSON_ARRAY || layers->count > SNAPS_LAYERS_MAX)
        return err_new(ERR_CORRUPT, "not a record of a snapshot");
    for (const struct json *l = layers->first; l; l = l->next) {
        if (l->type != JSON_STR || !is_layer(l->s))
            return err_new(ERR_CORRUPT, "not a record of a snapshot: a layer without a name");
        ret->layers[ret->layer_count] = arena_copy(a, l->s); /* with a NUL, for openat */
        if (!ret->layers[ret->layer_count++].p)
            return arena_check(a);
    }
    return NULL;
}

static fallible read_record(const struct store *s, const char *file, struct arena *a,
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
    struct store s;
    char file[NAME_LIMIT + 8];

    TRY(check_name(name));
    TRY(store_open(state, false, &s));
    snprintf(file, sizeof file, "%s.json", name);
    struct err *e = read_record(&s, file, a, ret);
    store_done(&s);
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

static fallible read_all(const struct store *s, struct arena *a, struct snap **ret_list,
                         size_t *ret_count)
{
    own_done(buf) names;
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
    struct store s;

    TRY(store_open(state, false, &s));
    struct err *e = read_all(&s, a, ret_list, ret_count);
    store_done(&s);
    return e;
}

/* --- taking one --- */

static fallible new_layer_name(struct arena *a, struct str *ret)
{
    char hex[RNG_HEX_LEN + 1];

    rng_hex(rng_system(), hex);
    *ret = arena_copy(a, str_of(hex));
    return ret->p ? NULL : arena_check(a);
}

/* Fills layers/NAME, under another name until it is whole. */
static fallible make_layer(const struct store *s, const char *name, const int *from, size_t count,
                           bool link)
{
    TRY(tree_remove(s->layers, ".new"));
    if (mkdirat(s->layers, ".new", 0755) < 0)
        return err_sys("make a layer");
    own_fd into = openat(s->layers, ".new", DIR_FLAGS, 0);
    if (into < 0)
        return err_sys("open the new layer");
    struct err *e = merge_layers(from, count, link, into);
    if (!e && renameat(s->layers, ".new", s->layers, name) < 0)
        e = err_sys("name the layer");
    if (e)
        err_free(tree_remove(s->layers, ".new")); /* the next one removes it too */
    return e;
}

/* The upper becomes a layer; an empty one of the same owner and mode takes its place. */
static fallible freeze(const struct store *s, int box, const char *upper, const char *layer)
{
    struct stat st;

    if (fstatat(box, upper, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys("look at the sandbox's changes");
    if (renameat(box, upper, s->layers, layer) < 0)
        return err_sys("freeze the sandbox's changes");
    if (mkdirat(box, upper, 0755) < 0)
        return err_sys("make an empty layer");
    own_fd fd = openat(box, upper, DIR_FLAGS, 0);
    if (fd < 0 || (geteuid() == 0 && fchown(fd, st.st_uid, st.st_gid) < 0) ||
        fchmod(fd, st.st_mode & 07777) < 0)
        return err_sys("give the empty layer its owner");
    return NULL;
}

static void push_layer(struct snap *snap, struct str name)
{
    memmove(snap->layers + 1, snap->layers, snap->layer_count * sizeof *snap->layers);
    snap->layers[0] = name;
    snap->layer_count++;
}

/* A stack that has grown long becomes one layer; who stands on the old ones keeps them. */
static fallible flatten(const struct store *s, struct arena *a, struct snap *snap)
{
    struct snaps_stack stack;
    struct str name;

    TRY(new_layer_name(a, &name));
    TRY(open_stack(s, snap, &stack));
    struct err *e = make_layer(s, name.p, stack.fds, stack.count, true);
    snaps_stack_done(&stack);
    TRY(e);
    snap->layers[0] = name;
    snap->layer_count = 1;
    return NULL;
}

static fallible take_upper(const struct store *s, int box, const char *upper, bool copy,
                           const char *layer)
{
    if (!copy)
        return freeze(s, box, upper, layer);
    own_fd fd = openat(box, upper, DIR_FLAGS, 0);
    if (fd < 0)
        return err_sys("open the sandbox's changes");
    return make_layer(s, layer, &fd, 1, false);
}

static fallible take_one(const struct store *s, int box, unsigned n, bool copy, struct arena *a,
                         struct snap *snap)
{
    char upper[16], source[16], path[PATH_MAX];
    struct str layer;

    note_name(n, 'u', upper);
    note_name(n, 's', source);
    TRY(read_link(box, source, path));
    if (!path[0] || faccessat(box, upper, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return err_new(ERR_NOT_FOUND, "the sandbox has no copy of a directory");
    snap->source = arena_copy(a, str_of(path));
    TRY(read_noted(box, n, a, snap));
    if (snap->layer_count == SNAPS_LAYERS_MAX - 1) /* nobody has done it since layer 20 */
        TRY_WRAP(flatten(s, a, snap), "flatten its layers");
    TRY(new_layer_name(a, &layer));
    TRY(take_upper(s, box, upper, copy, layer.p));
    push_layer(snap, layer);
    return copy ? NULL : write_note(box, n, snap);
}

fallible snaps_take(int state, int box, unsigned n, const char *name, bool copy, struct arena *a,
                    struct snap *ret)
{
    struct store s;
    struct snap snap = {.name = arena_copy(a, str_of(name)),
                        .made_wall_ns = clock_wall_ns(&clock_system)};
    char file[NAME_LIMIT + 8];

    TRY(check_name(name));
    TRY(store_open(state, true, &s));
    snprintf(file, sizeof file, "%s.json", name);
    struct err *e = NULL;
    if (faccessat(s.dir, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        e = err_new(ERR_CONFLICT, "there is a snapshot '%s' already", name);
    if (!e)
        e = take_one(&s, box, n, copy, a, &snap);
    if (!e)
        e = write_record(&s, &snap);
    store_done(&s);
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

static fallible flatten_open(const struct store *s, const char *name, int box, unsigned n,
                             struct arena *a)
{
    struct snap old, noted = {.layer_count = 0};
    char file[NAME_LIMIT + 8];

    snprintf(file, sizeof file, "%s.json", name);
    TRY(read_record(s, file, a, &old));
    TRY(read_noted(box, n, a, &noted));
    if (old.layer_count <= SNAPS_FLATTEN_AT)
        return NULL;
    struct snap flat = old;
    TRY(flatten(s, a, &flat));
    TRY(write_record(s, &flat));
    return same_stack(&old, &noted) ? write_note(box, n, &flat) : NULL;
}

fallible snaps_flatten(int state, int box, unsigned n, const char *name)
{
    struct store s;
    struct arena a;

    TRY(check_name(name));
    TRY(store_open(state, true, &s));
    arena_init(&a, 1u << 20);
    struct err *e = flatten_open(&s, name, box, n, &a);
    arena_done(&a);
    store_done(&s);
    return e;
}

/* --- letting go --- */

#define MOUNTS_MAX 8

struct used { /* every layer somebody stands on, by name */
    struct map map;
    struct arena a;
};

static void add_used(struct used *u, const struct snap *s)
{
    for (size_t i = 0; i < s->layer_count; i++)
        map_put(&u->map, s->layers[i], u);
}

static fallible add_box(const struct store *s, const char *id, struct used *u)
{
    own_fd box = openat(s->boxes, id, DIR_FLAGS, 0);
    struct snap noted = {.layer_count = 0};

    for (unsigned n = 0; box >= 0 && n < MOUNTS_MAX; n++) {
        TRY(read_noted(box, n, &u->a, &noted));
        add_used(u, &noted);
    }
    return NULL;
}

static fallible find_used(const struct store *s, struct used *u)
{
    own_done(buf) boxes = {0};
    struct snap *list;
    size_t count;

    TRY(read_all(s, &u->a, &list, &count));
    for (size_t i = 0; i < count; i++)
        add_used(u, &list[i]);
    TRY(tree_read_names(s->boxes, 16u << 20, &boxes, &count));
    for (const char *id = boxes.p; count--; id += strlen(id) + 1)
        TRY(add_box(s, id, u));
    return NULL;
}

static fallible sweep(const struct store *s)
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
        if (!map_get(&u.map, str_of(name)))
            e = tree_remove(s->layers, name);
    }
    map_done(&u.map);
    arena_done(&u.a);
    return e;
}

fallible snaps_sweep(int state)
{
    struct store s;

    TRY(store_open(state, true, &s));
    struct err *e = sweep(&s);
    store_done(&s);
    return e;
}

fallible snaps_remove(int state, const char *name)
{
    struct arena a;
    struct snap snap;
    struct store s;
    char file[NAME_LIMIT + 8];

    arena_init(&a, 1u << 20);
    struct err *e = snaps_find(state, name, &a, &snap);
    if (!e)
        e = store_open(state, true, &s);
    if (!e) {
        snprintf(file, sizeof file, "%s.json", name);
        if (unlinkat(s.dir, file, 0) < 0)
            e = err_sys("remove snapshot '%s'", name);
        if (!e)
            e = sweep(&s);
        store_done(&s);
    }
    arena_done(&a);
    return e;
}
