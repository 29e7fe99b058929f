// SPDX-License-Identifier: Apache-2.0
/* changes_list.c — see changes_list.h. One that cannot be compared with its directory is listed all
 * the same, with the reason. */
#include "cli/changes_list.h"

#include <limits.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/plain.h"
#include "cli/age.h"
#include "host/changes/changes.h"
#include "host/overlay/overlay.h"

struct listing {
    struct buf *out;
    struct jw w;
    bool json;
    const struct overlay_found *at;
    bool running;
};

static void put_directory(struct listing *l, const char *path, bool other, const struct changes *c,
                          const struct err *why)
{
    if (l->json) {
        JW_OBJECT(&l->w, NULL) {
            jw_cstr(&l->w, "directory", path);
            if (other)
                jw_bool(&l->w, "other_directory", true);
            if (c)
                changes_put_counts(&l->w, c);
            else
                jw_cstr(&l->w, "error", err_text(why));
        }
        return;
    }
    plain_put_cell(l->out, str_of(l->at->id), 14);
    buf_add_cstr(l->out, "  ");
    cli_put_age(l->out, l->at->made_wall_ns);
    plain_put_name(l->out, str_of(path));
    buf_add_cstr(l->out, other ? " (another directory now): " : ": ");
    if (c)
        changes_put_summary(l->out, c);
    else
        buf_addf(l->out, "cannot be compared: %s", err_text(why));
    buf_add_cstr(l->out, l->running ? "; it runs\n" : "\n");
}

static void put_layer(struct listing *l, const struct overlay_layer *layer)
{
    struct changes_source src = overlay_source(layer);
    struct changes c;
    struct err *e = changes_scan(&src, &c);

    put_directory(l, layer->path, layer->other, e ? NULL : &c, e);
    if (!e)
        changes_done(&c);
    err_free(e);
}

/* Its directory may be gone. */
static void put_noted(struct listing *l, const struct overlays *k, const struct err *why)
{
    char path[PATH_MAX];

    for (unsigned n = 0; n < OVERLAY_LAYERS_MAX; n++)
        if (overlay_read_note(k->dir, n, path))
            put_directory(l, path, false, NULL, why);
}

static void put_sandbox(struct listing *l, const struct overlays *k, const struct err *why)
{
    char made[CLOCK_ISO_MAX];

    l->running = k->running;
    if (l->json) {
        jw_begin_object(&l->w, NULL);
        jw_cstr(&l->w, "sandbox", k->id);
        jw_str(&l->w, "made", str_n(made, clock_format_iso(l->at->made_wall_ns, true, made)));
        jw_bool(&l->w, "running", k->running);
        jw_begin_array(&l->w, "directories");
    }
    for (size_t i = 0; i < k->count; i++)
        put_layer(l, &k->layers[i]);
    if (why)
        put_noted(l, k, why);
    if (l->json) {
        jw_end_array(&l->w);
        jw_end_object(&l->w);
    }
}

static void list_one(struct listing *l, int state)
{
    own_done(overlays) k = {.dir = -1};
    struct err *e = overlay_open(state, l->at->id, NULL, &k);
    struct err *box = e ? overlay_open_box(state, l->at->id, NULL, &k) : NULL;

    if (!box) /* else it was dropped while we looked */
        put_sandbox(l, &k, e);
    err_free(box);
    err_free(e);
}

fallible changes_list(int state, bool json, struct buf *out)
{
    own_done(arena) a;
    struct listing l = {.out = out, .json = json};
    struct overlay_found *list;
    size_t count;

    arena_init(&a, 64u << 20);
    TRY(overlay_list(state, &a, &list, &count));
    jw_init(&l.w, out, JW_SPACED);
    if (json)
        jw_begin_array(&l.w, NULL);
    for (size_t i = 0; i < count; i++) {
        l.at = &list[i];
        list_one(&l, state);
    }
    if (json) {
        jw_end_array(&l.w);
        buf_add_char(out, '\n');
    }
    return buf_check(out);
}
