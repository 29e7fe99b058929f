// SPDX-License-Identifier: Apache-2.0
/* whole.c — see whole.h. */
#include "host/snaps/whole.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "base/rng.h"
#include "host/snaps/inner.h"
#include "host/snaps/merge.h"
#include "host/tree/inner.h"
#include "host/tree/tree.h"

#define MEMORY      (4u << 20)
#define STAGING     ".new-"
#define STAGING_MAX (sizeof STAGING + RNG_HEX_LEN)
#define NOTE        ".l"

/* --- names --- */

/* The names of upper layers: "u", "upper", "upper-usr", and "m0u" of a mount. */
bool whole_is_upper(const char *name)
{
    size_t n = strlen(name);

    if (n >= PART_MAX || strchr(name, '.'))
        return false;
    return strcmp(name, "u") == 0 || strncmp(name, "upper", 5) == 0 ||
           (n == 3 && name[0] == 'm' && name[2] == 'u');
}

/* For a mount, the note that snaps.h writes. */
void whole_note_of(const char *upper, char out[SNAPS_NOTE])
{
    if (upper[0] == 'm')
        snprintf(out, SNAPS_NOTE, "%.2sl", upper);
    else
        snprintf(out, SNAPS_NOTE, "%s" NOTE, upper);
}

static fallible open_wholes(const struct snapstore *s, int *ret_fd)
{
    return fd_make_dirs(s->dir, STR("whole"), 0700, ret_fd);
}

static void new_staging(char out[STAGING_MAX])
{
    char hex[RNG_HEX_LEN + 1];

    rng_hex(rng_system(), hex);
    snprintf(out, STAGING_MAX, STAGING "%s", hex);
}

typedef fallible part_fn(void *arg, const char *name);

/* fn for each upper named in dir. */
static fallible each_part(int dir, part_fn *fn, void *arg)
{
    own_done(buf) names = {0};
    size_t count = 0;

    TRY(tree_read_names(dir, 1u << 20, &names, &count));
    for (const char *name = names.p; count--; name += strlen(name) + 1)
        if (whole_is_upper(name))
            TRY_WRAP(fn(arg, name), "'%s'", name);
    return NULL;
}

/* --- with the store --- */

struct at_work {
    struct snapstore s;
    struct arena a;
    int wholes, dir; /* of all, and of the one */
};

static void work_done(struct at_work *w)
{
    own_close_p(&w->dir);
    own_close_p(&w->wholes);
    arena_done(&w->a);
    snapstore_close(&w->s);
}

static fallible work_open(int state, bool change, struct at_work *w)
{
    TRY(snapstore_open(state, change, &w->s));
    arena_init(&w->a, MEMORY);
    w->wholes = w->dir = -1;
    struct err *e = open_wholes(&w->s, &w->wholes);
    if (e)
        work_done(w);
    return e;
}

static fallible open_named(struct at_work *w, const char *name)
{
    w->dir = openat(w->wholes, name, DIR_FLAGS, 0);
    if (w->dir >= 0)
        return NULL;
    return errno == ENOENT ? err_new(ERR_NOT_FOUND, "no snapshot '%s' of a sandbox", name)
                           : err_sys("open snapshot '%s'", name);
}

static fallible check_new(const struct at_work *w, const char *name)
{
    if (snapstore_is_taken(&w->s, name))
        return err_new(ERR_CONFLICT, "there is a snapshot '%s' already", name);
    return NULL;
}

fallible whole_check_new(int state, const char *name)
{
    struct at_work w;

    TRY(snapstore_check_name(name));
    TRY(work_open(state, false, &w));
    struct err *e = check_new(&w, name);
    work_done(&w);
    return e;
}

fallible whole_open(int state, const char *name, int *ret_dir)
{
    struct at_work w;

    TRY(snapstore_check_name(name));
    TRY(work_open(state, false, &w));
    struct err *e = open_named(&w, name);
    if (!e)
        *ret_dir = take_fd(&w.dir);
    work_done(&w);
    return e;
}

/* --- taking one --- */

struct taking {
    struct at_work *w;
    int box, uppers, staging;
    bool copy;
    struct whole_taken taken;
};

/* Not under the lock: it takes as long as there is to copy. */
static fallible copy_part(void *arg, const char *upper)
{
    struct taking *t = arg;
    char copy[PART_MAX + 2];

    own_fd from = openat(t->uppers, upper, DIR_FLAGS, 0);
    snprintf(copy, sizeof copy, "+%s", upper);
    if (from < 0 || mkdirat(t->staging, copy, 0755) < 0)
        return err_sys("make a copy");
    own_fd into = openat(t->staging, copy, DIR_FLAGS, 0);
    if (into < 0)
        return err_sys("open the copy");
    int layers[] = {from};
    return merge_layers(layers, 1, false, into, &t->taken.copied_bytes);
}

/* The copy becomes a layer, or the upper itself does. */
static fallible take_part(void *arg, const char *upper)
{
    struct taking *t = arg;
    struct at_work *w = t->w;
    struct snap stack = {.layer_count = 0};
    struct str layer;
    char note[SNAPS_NOTE], copy[PART_MAX + 2];

    whole_note_of(upper, note);
    TRY(snapstore_read(&w->s, t->box, note, &w->a, &stack));
    if (stack.layer_count == SNAPS_LAYERS_MAX - 1) /* it has not been done since layer 20 */
        TRY_WRAP(snapstore_flatten(&w->s, &w->a, &stack), "flatten its layers");
    TRY(snapstore_layer_name(&w->a, &layer));
    if (t->copy && !stack.layer_count)
        snapstore_keep_since(&stack, t->uppers, upper);
    snapstore_push(&stack, layer);
    if (!t->copy)
        TRY(snapstore_freeze(&w->s, t->box, upper, note, &stack));
    snprintf(copy, sizeof copy, "+%s", upper);
    if (t->copy && renameat(t->staging, copy, w->s.layers, layer.p) < 0)
        return err_sys("name the layer");
    if (stack.layer_count > t->taken.deepest)
        t->taken.deepest = stack.layer_count;
    return snapstore_note(t->staging, upper, &stack);
}

static fallible whole_commit(struct taking *t, const char *staging, const char *name)
{
    struct at_work *w = t->w;

    TRY(check_new(w, name));
    /* It is replaced by rename, never written again. */
    if (linkat(t->box, "record", t->staging, "record", 0) < 0)
        return err_sys("keep the sandbox's record");
    TRY(each_part(t->uppers, take_part, t));
    if (renameat(w->wholes, staging, w->wholes, name) < 0)
        return err_sys("name the snapshot");
    return NULL;
}

static fallible take_in(struct taking *t, const char *staging, const char *name)
{
    struct at_work *w = t->w;

    if (mkdirat(w->wholes, staging, 0700) < 0)
        return err_sys("make room for a snapshot");
    own_fd dir = openat(w->wholes, staging, DIR_FLAGS, 0);
    if (dir < 0)
        return err_sys("open room for a snapshot");
    t->staging = dir;
    if (t->copy)
        TRY(each_part(t->uppers, copy_part, t));
    TRY(tree_lock(w->s.dir, &w->s.lock));
    return whole_commit(t, staging, name);
}

fallible whole_take(int state, int box, int uppers, const char *name, bool copy,
                    struct whole_taken *ret_taken)
{
    struct at_work w;
    struct taking t = {.w = &w, .box = box, .uppers = uppers, .copy = copy};
    char staging[STAGING_MAX];

    TRY(whole_check_new(state, name));
    TRY(work_open(state, false, &w));
    new_staging(staging);
    struct err *e = take_in(&t, staging, name);
    if (e)
        err_free(tree_remove(w.wholes, staging)); /* the first error is the one to tell */
    else if (ret_taken)
        *ret_taken = t.taken;
    work_done(&w);
    return err_wrap(e, "snapshot '%s'", name);
}

/* --- standing on one --- */

struct standing {
    struct at_work *w;
    int box;
};

static fallible stand_part(void *arg, const char *upper)
{
    const struct standing *t = arg;
    struct snap stack = {.layer_count = 0};
    struct stat top;
    char note[SNAPS_NOTE];

    TRY(snapstore_read_plain(t->w->dir, upper, &t->w->a, &stack));
    if (!stack.layer_count)
        return err_new(ERR_CORRUPT, "a part of the snapshot has no layers");
    if (fstatat(t->w->s.layers, stack.layers[0].p, &top, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys("look at a layer");
    TRY(snapstore_empty(t->box, upper, &top));
    whole_note_of(upper, note);
    return snapstore_note(t->box, note, &stack);
}

fallible whole_stand(int state, const char *name, int box)
{
    struct at_work w;
    struct standing t = {.w = &w, .box = box};

    TRY(snapstore_check_name(name));
    TRY(work_open(state, true, &w));
    struct err *e = open_named(&w, name);
    if (!e)
        e = each_part(w.dir, stand_part, &t);
    work_done(&w);
    return e;
}

fallible whole_layers(int state, int box, const char *upper, struct snaps_stack *ret)
{
    struct at_work w;
    struct snap stack = {.layer_count = 0};
    char note[SNAPS_NOTE];

    whole_note_of(upper, note);
    *ret = (struct snaps_stack){.count = 0};
    if (!snapstore_is_noted(box, note))
        return NULL;
    TRY(work_open(state, false, &w));
    struct err *e = snapstore_read(&w.s, box, note, &w.a, &stack);
    if (!e)
        e = snapstore_open_stack(&w.s, &stack, ret);
    work_done(&w);
    return e;
}

fallible whole_add_below(int state, int box, struct rootfs_mount *m)
{
    struct snaps_stack below = {.count = 0};

    TRY(whole_layers(state, box, m->upper, &below));
    if (m->lower_count + below.count > ROOTFS_LOWERS_MAX) {
        snaps_stack_done(&below);
        return err_new(ERR_LIMIT, "more than %d layers", ROOTFS_LOWERS_MAX);
    }
    memmove(m->lowers + below.count, m->lowers, m->lower_count * sizeof *m->lowers);
    memcpy(m->lowers, below.fds, below.count * sizeof *m->lowers);
    m->lower_count += below.count;
    m->frozen = below.count;
    return NULL;
}

bool whole_has(int dir, const char *upper)
{
    return faccessat(dir, upper, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static fallible part_fits(void *arg, const char *upper)
{
    const struct rootfs *fs = arg;

    for (size_t i = 0; i < fs->mount_count; i++)
        if (strcmp(fs->mounts[i].upper, upper) == 0)
            return NULL;
    if (upper[0] == 'm')
        return err_new(ERR_UNSUPPORTED, "a copy of a directory that its server alone can find");
    return err_new(ERR_INVALID, upper[0] == 'u' && !upper[1]
                                    ? "it is of an image: name that with --image or --root"
                                    : "it is of this machine's own system, not of an image");
}

fallible whole_check_fits(int whole, struct rootfs *fs)
{
    return each_part(whole, part_fits, fs);
}

/* --- keeping stacks short --- */

/* The name of the layers a part had before it was flattened. */
static void was_of(const char *upper, char out[SNAPS_NOTE])
{
    snprintf(out, SNAPS_NOTE, "%s.was", upper);
}

/* Is the part still what was merged? Then the layer takes the place of its stack. */
static fallible put_flat(struct at_work *w, const char *upper, const char *staging,
                         const struct snap *merged)
{
    struct snap now = {.layer_count = 0}, flat = {.layer_count = 1};
    char was[SNAPS_NOTE];

    TRY(snapstore_read_plain(w->dir, upper, &w->a, &now));
    if (now.layer_count != merged->layer_count || !str_eq(now.layers[0], merged->layers[0]))
        return err_new(ERR_CONFLICT, "the snapshot changed meanwhile");
    TRY(snapstore_layer_name(&w->a, &flat.layers[0]));
    flat.since_ns = now.since_ns;
    snapstore_keep_since(&flat, w->s.layers, now.layers[now.layer_count - 1].p);
    if (renameat(w->wholes, staging, w->s.layers, flat.layers[0].p) < 0)
        return err_sys("name the layer");
    was_of(upper, was);
    TRY(snapstore_note(w->dir, was, &now));
    return snapstore_note(w->dir, upper, &flat);
}

/* Merged without the lock, put in place under it. */
static fallible merge_part(struct at_work *w, const char *upper, const char *staging,
                           const struct snap *stack)
{
    struct snaps_stack from = {.count = 0};

    if (mkdirat(w->wholes, staging, 0755) < 0)
        return err_sys("make a layer");
    own_fd into = openat(w->wholes, staging, DIR_FLAGS, 0);
    if (into < 0)
        return err_sys("open the new layer");
    TRY(snapstore_open_stack(&w->s, stack, &from));
    struct err *e = merge_layers(from.fds, from.count, true, into, NULL);
    snaps_stack_done(&from);
    TRY(e);
    own_fd lock = -1;
    TRY(tree_lock(w->s.dir, &lock));
    return put_flat(w, upper, staging, stack);
}

static fallible flatten_part(void *arg, const char *upper)
{
    struct at_work *w = arg;
    struct snap stack = {.layer_count = 0};
    char staging[STAGING_MAX];

    TRY(snapstore_read_plain(w->dir, upper, &w->a, &stack));
    if (stack.layer_count <= SNAPS_FLATTEN_AT)
        return NULL;
    new_staging(staging);
    struct err *e = merge_part(w, upper, staging, &stack);
    if (e)
        err_free(tree_remove(w->wholes, staging)); /* the first error is the one to tell */
    return e;
}

fallible whole_flatten(int state, const char *name)
{
    struct at_work w;

    TRY(snapstore_check_name(name));
    TRY(work_open(state, false, &w));
    struct err *e = open_named(&w, name);
    if (!e)
        e = each_part(w.dir, flatten_part, &w);
    work_done(&w);
    return e;
}

static fallible restand_part(void *arg, const char *upper)
{
    const struct standing *t = arg;
    struct snap stack = {.layer_count = 0};
    char note[SNAPS_NOTE], was[SNAPS_NOTE], old[PATH_MAX], now[PATH_MAX];

    whole_note_of(upper, note);
    was_of(upper, was);
    TRY(snapstore_link(t->w->dir, was, old));
    TRY(snapstore_link(t->box, note, now));
    if (!old[0])
        return NULL;
    if (strcmp(old, now) == 0) {
        TRY(snapstore_read_plain(t->w->dir, upper, &t->w->a, &stack));
        TRY(snapstore_note(t->box, note, &stack));
    }
    return unlinkat(t->w->dir, was, 0) < 0 ? err_sys("forget what it was") : NULL;
}

fallible whole_restand(int state, const char *name, int box)
{
    struct at_work w;
    struct standing t = {.w = &w, .box = box};

    TRY(work_open(state, true, &w));
    struct err *e = open_named(&w, name);
    if (!e)
        e = each_part(w.dir, restand_part, &t);
    work_done(&w);
    return e;
}

/* --- letting go --- */

fallible whole_remove(int state, const char *name)
{
    struct at_work w;
    char gone[STAGING_MAX];

    TRY(snapstore_check_name(name));
    TRY(work_open(state, true, &w));
    new_staging(gone);
    struct err *e = open_named(&w, name);
    if (!e && renameat(w.wholes, name, w.wholes, gone) < 0)
        e = err_sys("remove snapshot '%s'", name);
    if (!e)
        e = tree_remove(w.wholes, gone);
    work_done(&w);
    return e ? e : snaps_sweep(state);
}

fallible whole_list(int state, struct buf *names, size_t *ret_count)
{
    own_done(buf) all = {0};
    struct at_work w;
    size_t count = 0;

    TRY(work_open(state, false, &w));
    struct err *e = tree_read_names(w.wholes, 16u << 20, &all, &count);
    work_done(&w);
    *ret_count = 0;
    for (const char *name = all.p; !e && count--; name += strlen(name) + 1) {
        if (name[0] == '.')
            continue;
        buf_add(names, str_n(name, strlen(name) + 1));
        ++*ret_count;
    }
    return e ? e : buf_check(names);
}

fallible whole_sweep(int state)
{
    own_done(buf) names = {0};
    struct at_work w;
    size_t count = 0;
    struct stat st;

    if (fstatat(state, "snap", &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
        return NULL;
    TRY(work_open(state, true, &w));
    struct err *e = tree_read_names(w.wholes, 16u << 20, &names, &count);
    for (const char *name = names.p; !e && count--; name += strlen(name) + 1)
        if (name[0] == '.')
            e = tree_remove(w.wholes, name);
    work_done(&w);
    return e ? e : snaps_sweep(state);
}

/* --- what stands on what --- */

struct using
{
    int dir;
    struct arena *a;
    whole_each *fn;
    void *arg;
};

static fallible use_part(void *arg, const char *upper)
{
    const struct using *u = arg;
    struct snap stack = {.layer_count = 0};

    TRY(snapstore_read_plain(u->dir, upper, u->a, &stack));
    u->fn(u->arg, &stack);
    return NULL;
}

fallible whole_each_used(const struct snapstore *s, struct arena *a, whole_each *fn, void *arg)
{
    own_done(buf) names = {0};
    own_fd wholes = -1;
    size_t count = 0;

    TRY(open_wholes(s, &wholes));
    TRY(tree_read_names(wholes, 16u << 20, &names, &count));
    for (const char *name = names.p; count--; name += strlen(name) + 1) {
        own_fd dir = name[0] == '.' ? -1 : openat(wholes, name, DIR_FLAGS, 0);
        if (dir < 0 && name[0] != '.')
            return err_sys("open snapshot '%s'", name);
        if (dir >= 0)
            TRY(each_part(dir, use_part, &(struct using){dir, a, fn, arg}));
    }
    return NULL;
}

/* Notes that are, and those that were about to be. */
static bool is_note(const char *name)
{
    name += name[0] == '.';
    size_t n = strlen(name);
    return (n > 2 && n < SNAPS_NOTE && strcmp(name + n - 2, NOTE) == 0) ||
           (n == 3 && name[0] == 'm' && name[2] == 'l');
}

fallible whole_each_of_box(int box, struct arena *a, whole_each *fn, void *arg)
{
    own_done(buf) names = {0};
    size_t count = 0;

    TRY(tree_read_names(box, 1u << 20, &names, &count));
    for (const char *name = names.p; count--; name += strlen(name) + 1) {
        struct snap stack = {.layer_count = 0};
        if (!is_note(name))
            continue;
        TRY(snapstore_read_plain(box, name, a, &stack));
        fn(arg, &stack);
    }
    return NULL;
}

static void count_one(void *arg, const struct snap *stack)
{
    *(size_t *)arg += stack->layer_count;
}

bool whole_stands(int box)
{
    struct arena a;
    size_t count = 0;

    arena_init(&a, MEMORY);
    err_free(whole_each_of_box(box, &a, count_one, &count)); /* unreadable: for the next sweep */
    arena_done(&a);
    return count != 0;
}
