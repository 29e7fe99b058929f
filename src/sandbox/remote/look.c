// SPDX-License-Identifier: Apache-2.0
/* look.c — what only the other server can see of a sandbox, if it is a croft: what it uses,
 * and what it changed, which goes out as it came. One attempt each: the caller hears at once that
 * there is no answer now. */
#include <stdio.h>

#include "sandbox/remote/inner.h"
#include "wire/files.h"
#include "wire/remote.h"

/* --- what it uses --- */

static void on_measured(struct remote *r, const struct json *body, struct err *e)
{
    struct wire_remote_usage u;

    if (!e)
        e = wire_decode_remote_usage(body, &u);
    if (e) {
        remote_end_if_gone(r, e);
        return;
    }
    r->base.usage = (struct sbx_usage){.memory_bytes = u.memory_bytes,
                                       .cpu_ns = u.cpu_ns,
                                       .pids = u.pids,
                                       .oom_kills = u.oom_kills};
    sbx_finish(&r->base, NULL);
}

fallible remote_measure(struct sbx *s)
{
    struct remote *r = container_of(s, struct remote, base);

    TRY(sbx_need(s->driver, REMOTE_CROFT_CAPS, "count what a sandbox uses"));
    return remote_call_croft(r, "GET", "/stats", on_measured);
}

/* --- what it changed --- */

/* It is called by our id here. */
static fallible take_report(struct remote *r)
{
    struct buf *answer = &r->call.answer;
    struct str rest = wire_remote_after_sandbox(buf_str(answer), str_of(r->runtime_id));
    own_done(buf) text;

    buf_init(&text, CHANGES_MAX + SBX_ID_MAX + 1);
    if (!rest.p)
        return err_new(ERR_UPSTREAM, "the server's answer is not about its sandbox");
    buf_addf(&text, "{\"sandbox\":\"%s\"", r->base.id);
    buf_add(&text, rest);
    buf_add_char(&text, '\0');
    TRY(buf_check(&text));
    buf_done(answer); /* it was large, and is not needed for what is asked next */
    buf_init(answer, CHANGES_MAX);
    r->base.report = buf_steal(&text);
    return NULL;
}

static void on_output(struct remote *r, const struct json *body, struct err *e)
{
    (void)body;
    if (!e)
        e = take_report(r);
    if (e)
        remote_end_if_gone(r, e);
    else
        sbx_finish(&r->base, NULL);
}

static fallible check_files(const struct remote *r)
{
    TRY(sbx_need(r->base.driver, REMOTE_CROFT_CAPS, "tell what a sandbox changed, or undo it"));
    if (r->runtime_id[0])
        return NULL;
    return err_new(ERR_CONFLICT, "sandbox '%s' was never started: it has no files", r->base.id);
}

fallible remote_diff(struct sbx *s, struct str text)
{
    struct remote *r = container_of(s, struct remote, base);
    own_done(arena) a;
    struct json *asked;
    struct wire_files f;
    char what[80];

    arena_init(&a, BODY_MAX);
    TRY(check_files(r));
    TRY(json_parse(&a, text, NULL, &asked));
    TRY(wire_decode_files(asked, &f));
    snprintf(what, sizeof what, "/diff?offset=%llu&limit=%llu", (unsigned long long)f.offset,
             (unsigned long long)f.limit);
    return remote_call_croft(r, "GET", what, on_output);
}

/* --- and undone --- */

/* ERR_NOT_FOUND: the snapshot or the sandbox. For a stopped one this makes no difference. */
static void on_back(struct remote *r, const struct json *body, struct err *e)
{
    (void)body;
    sbx_finish(&r->base, e);
}

/* Snapshots are known here by their names there. */
fallible remote_rollback(struct sbx *s, struct str to)
{
    struct remote *r = container_of(s, struct remote, base);
    struct jw w;

    TRY(check_files(r));
    buf_reset(&r->call.body);
    jw_init(&w, &r->call.body, JW_WEB);
    wire_put_remote_to(&w, to);
    return remote_call_body(r, "/rollback", on_back);
}

fallible remote_apply(struct sbx *s, struct str text)
{
    (void)s, (void)text;
    return err_new(ERR_UNSUPPORTED,
                   "a sandbox of backend 'remote' has no directory of this machine to apply "
                   "its changes to; 'croft cp' brings its files here");
}
