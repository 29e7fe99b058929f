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
#include "cli/keep.h"
#include "host/changes/changes.h"
#include "host/overlay/overlay.h"

struct listing {
    struct buf *out;
    struct jw w;
    bool json;
    const struct overlay_run *at;
    uint64_t keep_ns; /* 0: for good */
    bool running;
};

void changes_put_run(struct jw *w, const struct overlay_run *run)
{
    char made[CLOCK_ISO_MAX];

    jw_cstr(w, "sandbox", run->id);
    jw_str(w, "made", str_n(made, clock_format_iso(run->wall_ns, true, made)));
    if (run->command[0])
        jw_cstr(w, "command", run->command);
}

static uint64_t goes_in_ns(const struct listing *l)
{
    uint64_t now = clock_wall_ns(&clock_system), end = l->at->wall_ns + l->keep_ns;

    return end > now ? end - now : 0;
}

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
    cli_put_age(l->out, l->at->wall_ns);
    plain_put_name(l->out, str_of(path));
    buf_add_cstr(l->out, other ? " (another directory now): " : ": ");
    if (c)
        changes_put_summary(l->out, c);
    else
        buf_addf(l->out, "cannot be compared: %s", err_text(why));
    if (l->running)
        buf_add_cstr(l->out, "; it runs");
    else if (l->keep_ns) {
        buf_add_cstr(l->out, "; goes in ");
        cli_put_span(l->out, goes_in_ns(l));
    }
    if (l->at->command[0]) {
        buf_add_cstr(l->out, "; ");
        plain_put_name(l->out, str_of(l->at->command));
    }
    buf_add_char(l->out, '\n');
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
    char goes[CLOCK_ISO_MAX];

    l->running = k->running;
    if (l->json) {
        jw_begin_object(&l->w, NULL);
        changes_put_run(&l->w, l->at);
        jw_bool(&l->w, "running", k->running);
        if (l->keep_ns && !k->running)
            jw_str(&l->w, "goes",
                   str_n(goes, clock_format_iso(l->at->wall_ns + l->keep_ns, true, goes)));
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

fallible changes_list(struct cli *cli, int state, bool json, struct buf *out)
{
    own_done(arena) a;
    struct listing l = {.out = out, .json = json};
    struct overlay_run *list;
    size_t count;

    arena_init(&a, 64u << 20);
    TRY(keep_expire(cli, state, &l.keep_ns));
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
