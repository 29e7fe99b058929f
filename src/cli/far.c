// SPDX-License-Identifier: Apache-2.0
/* far.c — see far.h. */
#include "cli/far.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/plain.h"
#include "base/rng.h"
#include "cli/ask.h"
#include "host/changes/changes.h"

struct far {
    struct ask k;
    const struct far_ask *a;
    struct buf *out;
};

static fallible open_and_do(struct far *f, struct cli *cli, const char *name, far_fn *fn)
{
    TRY(ask_open(&f->k, cli));
    return fn(f, name);
}

fallible far_try(struct cli *cli, const struct far_ask *a, const char *name, far_fn *fn,
                 struct buf *out, struct err *local)
{
    struct far f = {.a = a, .out = out};
    struct err *e = open_and_do(&f, cli, name, fn);
    bool nobody = f.k.nobody && !cfg_env_get(cli->envp, "CROFT_HOST");

    ask_close(&f.k);
    if (e && local && nobody) {
        err_free(e);
        return local;
    }
    err_free(local);
    return e;
}

static struct str text_of(const struct json *v, const char *key)
{
    return json_get_str(v, key, STR(""));
}

/* --- diff --- */

static void put_letter(struct buf *out, const struct json *c)
{
    char letter = '?';

    for (size_t i = 0; i < CHANGE_KINDS; i++)
        if (str_eq(text_of(c, "kind"), str_of(change_words[i])))
            letter = change_letters[i];
    const struct json *conflict = json_get(c, STR("conflict"));
    buf_addf(out, "%c%c ", letter, conflict && conflict->b ? '!' : ' ');
}

/* As changes_put_text() has them. */
static void put_change(struct buf *out, const struct json *c)
{
    put_letter(out, c);
    if (json_get(c, STR("from"))) {
        plain_put_name(out, text_of(c, "from"));
        buf_add_cstr(out, " -> ");
    }
    plain_put_name(out, text_of(c, "path"));
    if (str_eq(text_of(c, "type"), STR("directory")))
        buf_add_char(out, '/');
    if (json_get(c, STR("target"))) {
        buf_add_cstr(out, " -> ");
        plain_put_name(out, text_of(c, "target"));
    }
    if (str_eq(text_of(c, "kind"), STR("mode")))
        buf_addf(out, " %03o -> %03o", (unsigned)json_get_int(c, "old_mode", 0),
                 (unsigned)json_get_int(c, "mode", 0));
    buf_add_char(out, '\n');
}

static bool is_asked(const struct far_ask *a, struct str path)
{
    for (size_t i = 0; a->paths && a->paths[i]; i++) {
        struct str p = str_of(a->paths[i]);
        if (str_eq(path, p) || (str_starts(path, p) && path.p[p.len] == '/'))
            return true;
    }
    return !a->paths;
}

static void put_page(struct far *f, struct jw *w, const struct json *page)
{
    const struct json *list = json_get(page, STR("changes"));

    for (const struct json *c = list ? list->first : NULL; c; c = c->next) {
        if (!is_asked(f->a, text_of(c, "path")))
            continue;
        if (f->a->json)
            jw_value(w, NULL, c);
        else
            put_change(f->out, c);
    }
}

static fallible refuse_deep(int64_t count)
{
    return err_new(ERR_TOO_LARGE,
                   "%" PRId64 " lie too deep to be looked into, so what is in them was "
                   "left out",
                   count);
}

/* All pages, as one. */
fallible far_diff(struct far *f, const char *name)
{
    struct json *sandbox;
    struct ask_answer page;
    struct jw w;
    int64_t next = 0, deep = 0;

    if (f->a->patch)
        return err_new(ERR_UNSUPPORTED,
                       "--patch is for runs of 'croft run'; 'croft cp' brings a file of '%s' here",
                       name);
    TRY(ask_sandbox(&f->k, name, &sandbox));
    jw_init(&w, f->out, JW_SPACED);
    for (bool first = true; next >= 0; first = false) {
        char rest[64];
        snprintf(rest, sizeof rest, "/diff?offset=%" PRId64, next);
        TRY(ask_work(&f->k, "GET", ask_path(&f->k, sandbox, rest), (struct str){0}, &page));
        if (f->a->json && first) {
            jw_begin_object(&w, NULL);
            jw_str(&w, "sandbox", text_of(page.body, "sandbox"));
            jw_value(&w, "directories", json_get(page.body, STR("directories")));
            jw_value(&w, "counts", json_get(page.body, STR("counts")));
            jw_begin_array(&w, "changes");
        }
        put_page(f, &w, page.body);
        const struct json *counts = json_get(page.body, STR("counts"));
        deep = counts ? json_get_int(counts, "deep", 0) : 0;
        next = json_get_int(page.body, "next", -1);
    }
    if (f->a->json) {
        jw_end_array(&w);
        jw_end_object(&w);
        buf_add_char(f->out, '\n');
    }
    if (deep && f->a->rest)
        *f->a->rest = refuse_deep(deep);
    return NULL;
}

/* --- apply --- */

static void put_target(struct buf *out, const struct json *d)
{
    buf_addf(out, "applied %" PRId64 " to the directory of '", json_get_int(d, "applied", 0));
    plain_put_name(out, text_of(d, "target"));
    buf_addf(out, "'%s",
             json_get(d, STR("other_directory")) ? ", another one than the sandbox worked on" : "");
    changes_put_skipped(out, (size_t)(json_get_int(d, "skipped", 0) - json_get_int(d, "deep", 0)),
                        (size_t)json_get_int(d, "mounted", 0));
    buf_add_char(out, '\n');
}

static void put_applied(struct buf *out, const struct json *body)
{
    const struct json *list = json_get(body, STR("directories"));

    for (const struct json *d = list ? list->first : NULL; d; d = d->next)
        put_target(out, d);
}

static void note_deep(struct far *f, const struct json *body)
{
    const struct json *list = json_get(body, STR("directories"));
    int64_t deep = 0;

    for (const struct json *d = list ? list->first : NULL; d; d = d->next)
        deep += json_get_int(d, "deep", 0);
    if (deep && f->a->rest)
        *f->a->rest = refuse_deep(deep);
}

static fallible far_post(struct far *f, const char *name, const char *rest, const struct buf *body,
                         struct ask_answer *ret)
{
    struct json *sandbox;

    TRY(buf_check(body));
    TRY(ask_sandbox(&f->k, name, &sandbox));
    TRY(ask_work(&f->k, "POST", ask_path(&f->k, sandbox, rest), buf_str(body), ret));
    if (f->a->json)
        buf_addf(f->out, STR_FMT "\n", STR_ARG(ret->text));
    return NULL;
}

fallible far_apply(struct far *f, const char *name)
{
    own_done(buf) body;
    struct ask_answer r;
    struct jw w;

    buf_init(&body, 4u << 20);
    jw_init(&w, &body, JW_WEB);
    JW_OBJECT(&w, NULL) {
        jw_bool(&w, "force", f->a->force);
        if (f->a->paths)
            JW_ARRAY(&w, "paths")
                for (size_t i = 0; f->a->paths[i]; i++)
                    jw_cstr(&w, NULL, f->a->paths[i]);
    }
    TRY(far_post(f, name, "/apply", &body, &r));
    if (!f->a->json)
        put_applied(f->out, r.body);
    note_deep(f, r.body);
    return NULL;
}

/* --- rollback --- */

fallible far_rollback(struct far *f, const char *name)
{
    own_done(buf) body;
    struct ask_answer r;
    struct jw w;

    buf_init(&body, 1u << 20);
    jw_init(&w, &body, JW_WEB);
    JW_OBJECT(&w, NULL)
        if (f->a->to.p)
            jw_str(&w, "to", f->a->to);
    TRY(far_post(f, name, "/rollback", &body, &r));
    if (!f->a->json)
        buf_addf(f->out, "'%s' is as it was %s; 'croft resume %s' goes on from there\n", name,
                 f->a->to.p ? "in the snapshot" : "when it began", name);
    return NULL;
}

/* --- snapshots --- */

fallible far_take(struct far *f, const char *name)
{
    own_done(buf) body;
    struct ask_answer r;
    char hex[RNG_HEX_LEN + 1];
    struct jw w;

    buf_init(&body, 1u << 20);
    rng_hex(rng_system(), hex);
    struct str called = f->a->name.p ? f->a->name : arena_printf(&f->k.arena, "snap-%.8s", hex);
    jw_init(&w, &body, JW_WEB);
    JW_OBJECT(&w, NULL)
        jw_str(&w, "name", called);
    TRY(far_post(f, name, "/snapshot", &body, &r));
    if (!f->a->json)
        buf_addf(f->out, STR_FMT "\tsandbox %s\n", STR_ARG(called), name);
    return NULL;
}

fallible far_remove_snapshot(struct far *f, const char *name)
{
    struct ask_answer r;

    const char *slash = strrchr(name, '/'); /* KEY/NAME, for a client that sees the sandboxes of all
                                             * keys */
    struct str key = str_n(name, slash ? (size_t)(slash - name) : 0);
    if (strpbrk(name, "?#% &"))
        return err_new(ERR_NOT_FOUND, "no snapshot '%.80s'", name);
    TRY(ask_work(&f->k, "DELETE",
                 arena_printf(&f->k.arena, "/croft/v1/snapshots/%s%s" STR_FMT,
                              slash ? slash + 1 : name, slash ? "?key=" : "", STR_ARG(key)),
                 (struct str){0}, &r));
    if (f->a->json)
        buf_addf(f->out, "{\"name\": \"%s\"}\n", name);
    else
        buf_addf(f->out, "%s\n", name);
    return NULL;
}

fallible far_list_snapshots(struct far *f, const char *name)
{
    struct ask_answer r;
    struct jw w;

    (void)name;
    TRY(ask_json(&f->k, "GET", STR("/croft/v1/snapshots"), (struct str){0}, &r));
    const struct json *list = json_get(r.body, STR("snapshots"));
    for (const struct json *s = list ? list->first : NULL; s; s = s->next) {
        if (!f->a->json) {
            plain_put_name(f->out, text_of(s, "name"));
            buf_add_cstr(f->out, "\tsandbox ");
            plain_put_name(f->out, text_of(s, "sandbox"));
            buf_add_char(f->out, '\n');
            continue;
        }
        buf_add_cstr(f->out, f->out->len ? ", " : ""); /* elements of an array */
        jw_init(&w, f->out, JW_SPACED);
        JW_OBJECT(&w, NULL) {
            jw_str(&w, "name", text_of(s, "name"));
            jw_str(&w, "sandbox", text_of(s, "sandbox"));
            jw_str(&w, "made", text_of(s, "created_at"));
        }
    }
    return NULL;
}
