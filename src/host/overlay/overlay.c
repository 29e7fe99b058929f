// SPDX-License-Identifier: Apache-2.0
/* overlay.c — see overlay.h. */
#include "host/overlay/overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "host/record/record.h"
#include "host/tree/inner.h"
#include "host/tree/tree.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static void name_of(unsigned n, char kind, char out[16])
{
    snprintf(out, 16, "m%u%c", n, kind);
}

fallible overlay_note(int box, unsigned n, const char *path)
{
    char name[16], real[PATH_MAX];

    name_of(n, 's', name);
    if (!realpath(path, real))
        return err_sys("find '%s'", path);
    if (symlinkat(real, box, name) < 0)
        return err_sys("note the directory '%s'", path);
    return NULL;
}

void overlay_forget(int box, unsigned n)
{
    char name[16];

    name_of(n, 's', name);
    unlinkat(box, name, 0); /* not there: not noted */
    overlay_forget_which(box, n);
}

fallible overlay_note_image(int box, struct str id)
{
    char text[128];

    snprintf(text, sizeof text, STR_FMT, STR_ARG(id));
    if (symlinkat(text, box, "image") < 0)
        return err_sys("note the image");
    return NULL;
}

bool overlay_image_in_use(int state, struct str id)
{
    own_done(buf) names = {0};
    own_fd boxes = openat(state, "box", DIR_FLAGS, 0);
    size_t count = 0;

    if (boxes < 0)
        return errno != ENOENT;
    struct err *e = tree_read_names(boxes, 16u << 20, &names, &count);
    if (e) {
        err_free(e);
        return true;
    }
    for (const char *name = names.p; count--; name += strlen(name) + 1) {
        char path[PATH_MAX], text[128];
        snprintf(path, sizeof path, "%s/image", name);
        ssize_t n = readlinkat(boxes, path, text, sizeof text);
        if (n > 0 && str_eq(str_n(text, (size_t)n), id))
            return true;
    }
    return false;
}

void overlays_done(struct overlays *k)
{
    for (size_t i = 0; i < k->count; i++) {
        free(k->layers[i].path);
        own_close(k->layers[i].notes);
        for (size_t n = 0; k->layers[i].places[n]; n++)
            free(k->layers[i].places[n]);
        for (size_t n = 0; n < k->layers[i].upper_count; n++)
            own_close(k->layers[i].uppers[n]);
        own_close(k->layers[i].lower);
    }
    own_close(k->dir);
    *k = (struct overlays){.dir = -1};
}

struct changes_source overlay_source(const struct overlay_layer *l)
{
    return (struct changes_source){.uppers = l->uppers,
                                   .upper_count = l->upper_count,
                                   .lower = l->lower,
                                   .user = l->user,
                                   .notes = l->notes,
                                   .places = (const char *const *)l->places,
                                   .since_ns = l->since_ns};
}

void overlay_begin_notes(struct overlays *k)
{
    for (size_t i = 0; i < k->count; i++)
        if (k->layers[i].notes < 0 && !k->layers[i].other)
            k->layers[i].notes = overlay_open_notes(k->dir, k->layers[i].mount, true);
}

bool overlay_read_note(int box, unsigned n, char out[PATH_MAX])
{
    char name[16];

    name_of(n, 's', name);
    ssize_t len = readlinkat(box, name, out, PATH_MAX - 1);
    if (len > 0)
        out[len] = '\0';
    return len > 0;
}

/* The path was one without links: a link put in since would send what croft writes elsewhere. */
static fallible open_source(const char *path, int *ret_fd)
{
    char link[40], now[PATH_MAX];
    own_fd fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

    if (fd < 0)
        return err_sys("open '%s'", path);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, now, sizeof now - 1);
    if (n < 0)
        return err_sys("look at '%s'", path);
    now[n] = '\0';
    if (strcmp(now, path) != 0)
        return err_new(ERR_CONFLICT, "'%s' now leads to '%s'", path, now);
    *ret_fd = take_fd(&fd);
    return NULL;
}

static fallible open_layer(int state, struct overlays *k, unsigned n, const char *path)
{
    char name[16];
    struct overlay_layer *l = &k->layers[k->count];
    struct snaps_stack below;

    name_of(n, 'u', name);
    own_fd upper = openat(k->dir, name, DIR_FLAGS, 0);
    if (upper < 0)
        return errno == ENOENT ? NULL : err_sys("open layer '%s'", name);
    own_fd lower = -1;
    TRY_WRAP(open_source(path, &lower), "the directory sandbox '%s' worked on", k->id);
    bool other = false;
    TRY_WRAP(overlay_look_which(k->dir, n, lower, &other), "'%s'", path);
    TRY(snaps_open_noted(state, k->dir, n, &below));
    own_free struct record *r = mem_new(sizeof *r);
    const char *places[NATIVE_MOUNTS + 1] = {0};
    struct err *e = record_read(k->dir, r);
    if (!e)
        record_places(r, n, places);
    err_free(e); /* older ones have none: then a place to mount on is a change */
    *l = (struct overlay_layer){.mount = n,
                                .path = mem_dup_cstr(path),
                                .lower = take_fd(&lower),
                                .since_ns = below.since_ns,
                                .user = overlay_by_user(k->dir, n),
                                .other = other,
                                .notes = other ? -1 : overlay_open_notes(k->dir, n, false)};
    for (size_t i = 0; places[i]; i++)
        l->places[i] = mem_dup_cstr(places[i]);
    l->uppers[l->upper_count++] = take_fd(&upper);
    for (size_t i = 0; i < below.count; i++)
        l->uppers[l->upper_count++] = below.fds[i];
    k->count++;
    return NULL;
}

/* A sandbox holds a range of ids while it lives: a link with its name. After its croft was killed
 * it holds the range until it is swept. */
static fallible is_claimed(int state, const char *id, bool *ret_claimed)
{
    own_done(buf) names = {0};
    own_fd ids = openat(state, "ids", DIR_FLAGS, 0);
    size_t count = 0;
    char text[OVERLAY_ID_MAX + 1];

    *ret_claimed = false;
    if (ids < 0)
        return errno == ENOENT ? NULL : err_sys("open 'ids'");
    TRY(tree_read_names(ids, 16u << 20, &names, &count));
    for (const char *name = names.p; count--; name += strlen(name) + 1) {
        ssize_t n = readlinkat(ids, name, text, sizeof text);
        if (n > 0 && str_eq(str_n(text, (size_t)n), str_of(id)))
            *ret_claimed = true;
    }
    return NULL;
}

/* By its record, as the sweep does: a sandbox without one, or with an unreadable one, may live. */
static bool may_live(int box)
{
    own_free struct record *r = mem_new(sizeof *r);
    char boot[RECORD_BOOT];
    bool same = false;
    struct err *e = record_read(box, r);

    if (!e)
        e = record_boot(boot);
    if (e) {
        err_free(e);
        return true;
    }
    own_fd pidfd = strcmp(r->boot, boot) == 0 ? (int)syscall(SYS_pidfd_open, r->pid, 0) : -1;
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    if (pidfd < 0 || poll(&p, 1, 0) != 0) /* readable: dead, and not yet buried */
        return false;
    err_free(record_is(r, pidfd, &same)); /* it went while we looked */
    return same;
}

static fallible open_one(int state, int boxes, const char *id, bool layers, struct overlays *ret)
{
    char path[PATH_MAX];
    size_t noted = 0;
    struct overlays k = {.dir = openat(boxes, id, DIR_FLAGS, 0)};
    struct err *e = k.dir < 0 ? err_sys("open sandbox '%s'", id) : NULL;

    snprintf(k.id, sizeof k.id, "%s", id);
    for (unsigned n = 0; !e && n < OVERLAY_LAYERS_MAX; n++) {
        if (!overlay_read_note(k.dir, n, path))
            continue;
        noted++;
        if (layers)
            e = open_layer(state, &k, n, path);
    }
    if (!e && !(layers ? k.count : noted))
        e = err_new(ERR_NOT_FOUND, "sandbox '%s' has no copy of a directory", id);
    if (!e)
        overlay_read_run(k.dir, id, &k.run);
    if (!e)
        e = is_claimed(state, id, &k.claimed);
    k.running = !e && k.claimed && may_live(k.dir);
    if (e)
        overlays_done(&k);
    else
        *ret = k;
    return e;
}

static bool is_over(const char *path, const char *here)
{
    size_t n = strlen(path);

    return strncmp(path, here, n) == 0 && (here[n] == '\0' || here[n] == '/' || n == 1);
}

static bool has_changes(int box, unsigned n)
{
    own_done(buf) names = {0};
    char name[16], text[8];
    size_t count = 0;

    name_of(n, 'l', name);
    if (readlinkat(box, name, text, sizeof text) > 0)
        return true; /* it stands on snapshots */
    name_of(n, 'u', name);
    own_fd upper = openat(box, name, DIR_FLAGS, 0);
    struct err *e = upper < 0 ? NULL : tree_read_names(upper, 1u << 20, &names, &count);
    bool any = count > 0 || (e && err_code(e) == ERR_TOO_LARGE);
    err_free(e);
    return any;
}

struct choice {
    struct overlay_run run; /* the last one over the directory */
    bool any;
    struct buf others; /* all that have changes, for the error */
};

static void overlay_consider(struct choice *c, int boxes, const char *id, const char *here)
{
    own_fd box = openat(boxes, id, DIR_FLAGS, 0);
    char path[PATH_MAX];
    struct overlay_run run;

    if (box < 0 || strlen(id) >= OVERLAY_ID_MAX)
        return;
    overlay_read_run(box, id, &run);
    for (unsigned n = 0; n < OVERLAY_LAYERS_MAX; n++) {
        if (!overlay_read_note(box, n, path))
            continue;
        if (has_changes(box, n))
            buf_addf(&c->others, "%s'%s' over '%s'", c->others.len ? ", " : "", id, path);
        if (!here || !is_over(path, here) || (c->any && run.wall_ns <= c->run.wall_ns))
            continue;
        c->run = run;
        c->any = true;
    }
}

static fallible overlay_choose(int boxes, const char *here, struct choice *c)
{
    own_done(buf) names = {0};
    size_t count = 0;

    TRY(tree_read_names(boxes, 16u << 20, &names, &count));
    for (const char *name = names.p; count--; name += strlen(name) + 1)
        overlay_consider(c, boxes, name, here);
    return NULL;
}

static int last_first(const void *x, const void *y)
{
    const struct overlay_run *a = x, *b = y;

    return (a->wall_ns < b->wall_ns) - (a->wall_ns > b->wall_ns);
}

static bool has_any(int box)
{
    char path[PATH_MAX];

    for (unsigned n = 0; n < OVERLAY_LAYERS_MAX; n++)
        if (overlay_read_note(box, n, path) && has_changes(box, n))
            return true;
    return false;
}

fallible overlay_list(int state, struct arena *a, struct overlay_run **ret_list, size_t *ret_count)
{
    own_done(buf) names = {0};
    own_fd boxes = openat(state, "box", DIR_FLAGS, 0);
    size_t count = 0, n = 0;

    if (boxes < 0 && errno != ENOENT)
        return err_sys("open the sandboxes' directory");
    if (boxes >= 0)
        TRY(tree_read_names(boxes, 16u << 20, &names, &count));
    struct overlay_run *list = arena_zalloc(a, (count + 1) * sizeof *list);
    TRY(arena_check(a));
    for (const char *name = names.p; count--; name += strlen(name) + 1) {
        own_fd box = strlen(name) < OVERLAY_ID_MAX ? openat(boxes, name, DIR_FLAGS, 0) : -1;
        if (box >= 0 && has_any(box))
            overlay_read_run(box, name, &list[n++]);
    }
    qsort(list, n, sizeof *list, last_first);
    *ret_list = list;
    *ret_count = n;
    return NULL;
}

/* Lists the other sandboxes, when the one that was meant is missing. */
static fallible nothing_there(const char *id, struct choice *c)
{
    int shown = c->others.len > 400 ? 400 : (int)c->others.len;
    own_done(buf) said;

    buf_init(&said, 1u << 16);
    if (c->any) {
        overlay_put_run(&said, &c->run);
        return err_new(ERR_NOT_FOUND, "the changes of the last run here, %.*s, were dropped%s%.*s",
                       (int)said.len, said.p, shown ? "; name one of: " : "; 'croft run' makes one",
                       shown, c->others.p);
    }
    if (!c->others.len)
        return err_new(ERR_NOT_FOUND, "no sandbox has left changes; 'croft run' makes one");
    if (id)
        return err_new(ERR_NOT_FOUND, "no sandbox '%.80s' has left changes; there are: %.*s", id,
                       shown, c->others.p);
    return err_new(ERR_NOT_FOUND,
                   "no sandbox has left changes to this directory; name one of: %.*s", shown,
                   c->others.p);
}

static fallible open_boxes(int state, int *ret_fd)
{
    *ret_fd = openat(state, "box", DIR_FLAGS, 0);
    return *ret_fd < 0 && errno != ENOENT ? err_sys("open the sandboxes' directory") : NULL;
}

static fallible overlay_find(int state, int boxes, const char *id, const char *here,
                             struct overlay_run *ret)
{
    struct overlay_run gone;
    struct choice c = {0};

    buf_init(&c.others, 64u << 10);
    struct err *e = boxes < 0 ? NULL : overlay_choose(boxes, id ? NULL : here, &c);
    if (!id && here && overlay_read_last(state, here, &gone) &&
        (!c.any || gone.wall_ns >= c.run.wall_ns)) {
        c.run = gone;
        c.any = true;
    }
    if (!e && (!c.any || c.run.end == OVERLAY_DROPPED))
        e = nothing_there(id, &c);
    if (!e)
        *ret = c.run;
    buf_done(&c.others);
    return e;
}

fallible overlay_last(int state, const char *here, struct overlay_run *ret)
{
    own_fd boxes = -1;

    TRY(open_boxes(state, &boxes));
    return overlay_find(state, boxes, NULL, here, ret);
}

static fallible open_any(int state, const char *id, const char *here, bool layers,
                         struct overlays *ret)
{
    struct overlay_run run;
    own_fd boxes = -1;

    TRY(open_boxes(state, &boxes));
    if (id && (!id[0] || strchr(id, '/') || id[0] == '.' || strlen(id) >= OVERLAY_ID_MAX))
        return err_new(ERR_INVALID, "'%.80s' is no name of a sandbox", id);
    if (id && boxes >= 0 && faccessat(boxes, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return open_one(state, boxes, id, layers, ret);
    TRY(overlay_find(state, boxes, id, here, &run));
    if (run.end != OVERLAY_KEPT)
        return err_new(ERR_NOT_FOUND, "the last run here, '%s', left no changes", run.id);
    return open_one(state, boxes, run.id, layers, ret);
}

fallible overlay_open(int state, const char *id, const char *here, struct overlays *ret)
{
    return open_any(state, id, here, true, ret);
}

fallible overlay_open_box(int state, const char *id, const char *here, struct overlays *ret)
{
    return open_any(state, id, here, false, ret);
}

static void note_dropped(int state, const struct overlays *k, enum overlay_end end)
{
    struct overlay_run run = k->run;
    char path[PATH_MAX];

    run.end = end;
    for (unsigned n = 0; n < OVERLAY_LAYERS_MAX; n++)
        if (overlay_read_note(k->dir, n, path))
            overlay_note_last(state, path, &run);
}

fallible overlay_drop(int state, struct overlays *k, enum overlay_end end)
{
    if (k->running)
        return err_new(ERR_BUSY, "sandbox '%s' still runs; end it first", k->id);
    note_dropped(state, k, end);
    own_fd boxes = openat(state, "box", DIR_FLAGS, 0);
    if (boxes < 0)
        return err_sys("open the sandboxes' directory");
    if (k->claimed) { /* set-id files it may have left elsewhere are named in its directory */
        for (unsigned n = 0; n < OVERLAY_LAYERS_MAX; n++) {
            char upper[16];
            name_of(n, 'u', upper);
            TRY_WRAP(tree_remove(k->dir, upper), "drop changes of '%s'", k->id);
            name_of(n, 'l', upper);
            unlinkat(k->dir, upper, 0); /* not there: it stood on nothing */
            overlay_forget(k->dir, n);
        }
        return snaps_sweep(state);
    }
    TRY_WRAP(tree_remove(boxes, k->id), "drop sandbox '%s'", k->id);
    return snaps_sweep(state);
}

fallible overlay_expire(int state, uint64_t before_wall_ns)
{
    own_done(arena) a;
    struct overlay_run *list;
    size_t count;

    arena_init(&a, 64u << 20);
    TRY(overlay_list(state, &a, &list, &count));
    for (size_t i = 0; i < count; i++) {
        own_done(overlays) k = {.dir = -1};
        if (list[i].wall_ns >= before_wall_ns)
            continue;
        struct err *e = overlay_open_box(state, list[i].id, NULL, &k);
        if (!e && !k.running)
            e = overlay_drop(state, &k, OVERLAY_DROPPED);
        if (e && err_code(e) != ERR_NOT_FOUND) /* another dropped it */
            return e;
        err_free(e);
    }
    overlay_forget_last(state, before_wall_ns);
    return NULL;
}
