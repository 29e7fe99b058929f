// SPDX-License-Identifier: Apache-2.0
/* journal.c — see journal.h. The tenant is the record's id, so that a follower is filtered before
 * anything is decoded. */
#include "host/ops/journal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "host/ops/trail.h"
#include "loop/loop.h"
#include "net/server.h"
#include "net/sse.h"

#define NAME       "journal"
#define NOTE_BYTES (64u << 10)
#define NOTE_USUAL 400
#define DELAY_MS   25 /* each commit is a sync, and rows need the disk too */
#define BEAT_MS    15000

struct journal {
    struct loop *loop;
    struct trail *trail;
    bool failed;             /* said already */
    uint64_t paced_ns, left; /* when as many as came had been at their pace; left out since */
};

static const struct str kinds[] = {
    [JOURNAL_STATUS] = {"status", 6},
    [JOURNAL_AUDIT] = {"audit", 5},
};

fallible journal_open(const struct journal_config *config, struct journal **ret_journal)
{
    const struct trail_config trail = {
        .loop = config->loop,
        .dir = config->dir,
        .name = NAME,
        .keep_bytes = config->keep_bytes,
        .options = {.delay_ms = DELAY_MS,
                    .write_at_once = true, /* what it tells of was acknowledged */
                    .on_commit = config->on_commit,
                    .arg = config->arg}};
    struct journal *j = mem_new(sizeof *j);
    struct err *e = trail_open(&trail, &j->trail);

    if (e) {
        free(j);
        return err_wrap(e, "the journal");
    }
    j->loop = config->loop;
    *ret_journal = j;
    return NULL;
}

void journal_free(struct journal *j)
{
    if (j)
        trail_free(j->trail);
    free(j);
}

void journal_keep(struct journal *j, uint64_t keep_bytes)
{
    trail_keep(j->trail, keep_bytes);
}

static void put_text(struct jw *w, const char *key, struct str value)
{
    if (value.len)
        jw_str(w, key, value);
}

static bool is_too_much(struct journal *j)
{
    uint64_t now = loop_now_ns(j->loop), gap = JOURNAL_PACE_MS * NS_PER_MS;

    if (j->paced_ns > now + (JOURNAL_BURST - 1) * gap) {
        j->left++;
        return true;
    }
    j->paced_ns = (j->paced_ns > now ? j->paced_ns : now) + gap;
    return false;
}

void journal_add(struct journal *j, const struct journal_note *n)
{
    own_done(buf) payload;
    struct jw w;

    buf_init(&payload, NOTE_BYTES);
    if (n->paced && is_too_much(j))
        return;
    buf_reserve(&payload, NOTE_USUAL);
    jw_init(&w, &payload, JW_WEB);
    JW_OBJECT(&w, NULL) {
        put_text(&w, "actor", n->actor.len ? n->actor : n->tenant);
        put_text(&w, "sandbox", n->sandbox);
        put_text(&w, "session_id", n->session);
        put_text(&w, "level", n->level);
        put_text(&w, "status", n->status);
        put_text(&w, "message", n->message);
        put_text(&w, "action", n->action);
        put_text(&w, "object", n->object);
        put_text(&w, "decision", n->decision);
        put_text(&w, "rule", n->rule);
        put_text(&w, "request_id", n->request);
        if (n->paced && j->left)
            jw_uint(&w, "left_out", j->left);
    }
    if (n->paced)
        j->left = 0;
    const struct event_record r = {
        .kind = kinds[n->kind],
        .id = str_first(n->tenant, EVENT_ID_MAX),
        .payload = buf_str(&payload),
    };
    struct err *e = buf_check(&payload);
    if (!e)
        e = trail_append(j->trail, &r);
    if (e && !j->failed)
        log_error("the journal cannot be written", KV_ERR(e));
    j->failed = e != NULL;
    err_free(e);
}

/* --- followers --- */

struct follower { /* in the arena of its request */
    struct trail_sub sub;
    struct event_filter filter;
    struct str kind;
    uint64_t old; /* was there when it was asked for what comes from now on */
    struct http_req *req;
    struct loop *loop;
    struct loop_timer beat;
    bool (*welcome)(const struct http_req *req);
};

static void end_follower(struct follower *f);

static bool is_welcome(const struct follower *f)
{
    return !f->welcome || f->welcome(f->req);
}

static void on_beat(struct loop_timer *t)
{
    struct follower *f = container_of(t, struct follower, beat);

    if (!is_welcome(f)) {
        end_follower(f);
        http_reply_end(f->req);
        return;
    }
    http_reply_write(f->req, STR(":\n\n"));
    loop_timer_start(f->loop, t, BEAT_MS, on_beat);
}

static void put_record(struct follower *f, uint64_t number, const struct event_record *r)
{
    own_done(buf) data;
    own_done(buf) out;
    char id[24], when[CLOCK_ISO_MAX];
    struct jw w;

    buf_init(&data, 2 * NOTE_BYTES);
    buf_init(&out, 3 * NOTE_BYTES);
    jw_init(&w, &data, JW_WEB);
    JW_OBJECT(&w, NULL) {
        jw_str(&w, "ts", str_n(when, clock_format_iso(r->wall_ns, true, when)));
        jw_raw(&w, "event", r->payload);
    }
    snprintf(id, sizeof id, "%" PRIu64, number);
    sse_put(&out, str_of(id), r->kind, buf_str(&data));
    http_reply_write(f->req, buf_str(&out));
}

static void on_record(struct trail_sub *s, uint64_t number, const struct event_record *r)
{
    struct follower *f = container_of(s, struct follower, sub);
    bool welcome = is_welcome(f); /* else its key was revoked, and the next beat ends it */

    if (welcome && number > f->old)
        put_record(f, number, r);
    loop_timer_start(f->loop, &f->beat, welcome ? BEAT_MS : 0, on_beat);
    if (http_reply_pending(f->req) >= STREAM_HIGH)
        trail_sub_pause(s);
}

static void end_follower(struct follower *f)
{
    trail_sub_stop(&f->sub);
    loop_timer_stop(&f->beat);
    f->req->on_gone = f->req->on_hangup = NULL;
    f->req->on_drain = NULL;
}

static void on_end(struct trail_sub *s, const struct err *why)
{
    struct follower *f = container_of(s, struct follower, sub);
    own_done(buf) out;

    buf_init(&out, NOTE_BYTES);
    sse_put(&out, STR(""), STR("end"), str_of(err_text(why)));
    http_reply_write(f->req, buf_str(&out));
    end_follower(f);
    http_reply_end(f->req);
}

static void on_drain(struct http_req *req)
{
    trail_sub_resume(&((struct follower *)req->user)->sub);
}

static void on_gone(struct http_req *req)
{
    end_follower(req->user);
    http_reply_abort(req);
}

static fallible read_question(const struct journal *j, struct http_req *req, struct follower *f)
{
    struct str after = http_req_header(req, STR("last-event-id"));
    struct str kind = http_req_query(req, "kind");

    if (!after.p)
        after = http_req_query(req, "after");
    if (str_eq(after, STR("now"))) {
        f->sub.after = trail_last(j->trail);
        f->old = trail_newest(j->trail);
    } else if (after.p && !str_to_u64(after, &f->sub.after))
        return err_new(ERR_UNPROCESSABLE,
                       "'after' and Last-Event-ID must be the id of an event, or 'now'");
    if (!kind.p)
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (str_eq(kind, kinds[i])) {
            f->kind = kind;
            f->filter.kinds = &f->kind;
            f->filter.kind_count = 1;
            return NULL;
        }
    return err_new(ERR_UNPROCESSABLE, "'kind' is 'status' or 'audit'");
}

fallible journal_follow(struct journal *j, struct http_req *req, struct str tenant,
                        bool (*welcome)(const struct http_req *req))
{
    struct follower *f = arena_alloc(&req->arena, sizeof *f);

    if (!f)
        return err_no_memory();
    *f = (struct follower){.sub = {.on_record = on_record, .on_end = on_end},
                           .req = req,
                           .loop = j->loop,
                           .welcome = welcome};
    f->sub.filter = &f->filter;
    TRY(read_question(j, req, f));
    assert(!tenant.p || tenant.len); /* an empty id would let everything through */
    if (tenant.p)
        f->filter.id = arena_copy(&req->arena, str_first(tenant, EVENT_ID_MAX));
    TRY(arena_check(&req->arena));
    TRY(trail_sub_start(j->trail, &f->sub));
    req->user = f;
    req->on_gone = req->on_hangup = on_gone;
    req->on_drain = on_drain;
    http_reply_header(req, STR("cache-control"), STR("no-store"));
    http_reply_begin(req, 200, STR("text/event-stream"), HTTP_LENGTH_UNKNOWN);
    loop_timer_start(j->loop, &f->beat, BEAT_MS, on_beat);
    return NULL;
}
