// SPDX-License-Identifier: Apache-2.0
/* logs.c — the log of a sandbox: its newest part, or from a place on and as it is written. It goes
 * out as plain bytes, or as server-sent events whose ids are places.
 *
 * A reader gets more once it took what it has; one that takes nothing for long is cut off. */
#include "base/clock.h"
#include "base/utf8.h"
#include "host/v1/inner.h"
#include "net/sse.h"
#include "sandbox/follow.h"

#define REST_BYTES   (4u << 20) /* for slow readers, when it ends */
#define PIECE_BYTES  (16u << 10)
#define EVENT_BYTES  (8 * PIECE_BYTES)
#define BEAT_MS      15000
#define PLACE_HEADER "x-croft-log-place"

struct reading { /* in the arena of its request */
    struct sbx_follower follower;
    struct http_req *req;
    struct loop *loop;
    struct loop_timer beat;
    bool events, follows, begun, ended;
};

/* --- what is sent --- */

/* Cuts off a last character that is not complete yet. */
static struct str whole_characters(struct str text)
{
    size_t n = text.len;

    while (n && text.len - n < 3 && ((unsigned char)text.p[n - 1] & 0xc0) == 0x80)
        n--;
    if (!n || (unsigned char)text.p[n - 1] < 0xc0)
        return text;
    unsigned char first = (unsigned char)text.p[n - 1];
    size_t wanted = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    return text.len - (n - 1) < wanted ? str_first(text, n - 1) : text;
}

static void send_event(struct http_req *req, const struct sbx_place *at, struct str text)
{
    own_done(buf) data;
    own_done(buf) out;
    char id[SBX_PLACE_MAX];
    struct str place = str_n(id, sbx_place_format(at, id));
    struct jw w;

    buf_init(&data, EVENT_BYTES);
    buf_init(&out, 2 * EVENT_BYTES);
    jw_init(&w, &data, JW_WEB);
    JW_OBJECT(&w, NULL) {
        jw_str(&w, "place", place);
        jw_str(&w, "text", text);
    }
    sse_put(&out, place, STR("log"), buf_str(&data));
    http_reply_write(req, buf_str(&out));
}

/* False: that is all so far. */
static bool send_piece(struct reading *g)
{
    own_done(buf) piece;
    struct sbx_place *at = &g->follower.at, before = *at;

    buf_init(&piece, PIECE_BYTES);
    sbx_log_next(&g->follower, &piece);
    struct str text = buf_str(&piece);
    if (!text.len)
        return false;
    if (!g->events) {
        http_reply_write(g->req, text);
        return true;
    }
    struct str whole = g->ended ? text : whole_characters(text);
    size_t cut = text.len - whole.len;
    if (at->output - before.output >= cut) /* the end of the piece is of the command, if it spoke */
        at->output -= cut;
    else
        at->file -= cut;
    if (whole.len)
        send_event(g->req, at, whole);
    return whole.len > 0;
}

static void send_all(struct reading *g)
{
    while (http_reply_pending(g->req) < STREAM_HIGH && send_piece(g))
        ;
}

/* --- following --- */

static void on_beat(struct loop_timer *t);

static void on_more(struct sbx_follower *f)
{
    struct reading *g = container_of(f, struct reading, follower);

    if (v1_is_welcome(g->req))
        send_all(g);
    else
        loop_timer_start(g->loop, &g->beat, 0, on_beat);
}

static void on_drain(struct http_req *req)
{
    struct reading *g = req->user;

    if (g->follower.open && g->begun)
        on_more(&g->follower);
}

static void let_go(struct reading *g)
{
    sbx_unfollow(&g->follower);
    loop_timer_stop(&g->beat);
    g->req->on_gone = g->req->on_hangup = g->req->on_drain = NULL;
}

static void on_beat(struct loop_timer *t)
{
    struct reading *g = container_of(t, struct reading, beat);

    if (!v1_is_welcome(g->req)) { /* its key was revoked */
        let_go(g);
        http_reply_end(g->req);
        return;
    }
    if (g->events)
        http_reply_write(g->req, STR(":\n\n"));
    loop_timer_start(g->loop, t, BEAT_MS, on_beat);
}

static void on_gone(struct http_req *req)
{
    let_go(req->user);
    http_reply_abort(req);
}

/* Sends the rest of the log, whatever is queued already. */
static void send_rest(struct reading *g)
{
    g->ended = true;
    for (size_t sent = 0; sent < REST_BYTES && send_piece(g); sent += PIECE_BYTES)
        ;
}

/* A follower that is cut off gets no end, and may ask again from its last place. */
static void logs_fail(struct reading *g, const struct err *e)
{
    if (!g->begun)
        http_reply_err(g->req, err_copy(e));
    else
        http_reply_abort(g->req);
}

static void on_end(struct sbx_follower *f, const struct err *e)
{
    struct reading *g = container_of(f, struct reading, follower);

    if (g->begun && v1_is_welcome(g->req))
        send_rest(g);
    let_go(g);
    if (e) {
        logs_fail(g, e);
        return;
    }
    if (g->events && g->follows)
        http_reply_write(g->req, STR("event: end\ndata: the sandbox ended\n\n"));
    http_reply_end(g->req);
}

static void on_begin(struct sbx_follower *f)
{
    struct reading *g = container_of(f, struct reading, follower);
    char place[SBX_PLACE_MAX];

    g->begun = true;
    http_reply_header(g->req, STR(PLACE_HEADER), str_n(place, sbx_place_format(&f->at, place)));
    http_reply_header(g->req, STR("cache-control"), STR("no-store"));
    http_reply_begin(g->req, 200,
                     g->events ? STR("text/event-stream") : STR("text/plain; charset=utf-8"),
                     HTTP_LENGTH_UNKNOWN);
    if (!g->follows)
        return;
    if (!v1_is_welcome(g->req)) { /* any more: another machine may take its time */
        loop_timer_start(g->loop, &g->beat, 0, on_beat);
        return;
    }
    on_beat(&g->beat);
    send_all(g);
}

/* --- the question --- */

static fallible read_flag(struct http_req *req, const char *name, bool *ret)
{
    struct str text = http_req_query(req, name);

    *ret = str_eq(text, STR("true")) || str_eq(text, STR("1"));
    if (text.p && !*ret && !str_eq(text, STR("false")) && !str_eq(text, STR("0")))
        return err_new(ERR_UNPROCESSABLE, "'%s' is true or false", name);
    return NULL;
}

/* since=PLACE or Last-Event-ID, else the last lines, else the newest that fits. */
static fallible read_from(struct http_req *req, struct sbx_log_from *ret)
{
    struct str since = http_req_header(req, STR("last-event-id"));
    struct str tail = http_req_query(req, "tail");

    ret->lines = UINT64_MAX;
    if (!since.p)
        since = http_req_query(req, "since");
    if (tail.p && !str_eq(tail, STR("all")) && !str_to_u64(tail, &ret->lines))
        return err_new(ERR_UNPROCESSABLE, "'tail' is a number of lines, or 'all'");
    ret->has_place = since.p != NULL;
    if (since.p && !sbx_place_parse(since, &ret->place))
        return err_new(ERR_UNPROCESSABLE,
                       "'since' and Last-Event-ID must be a place in the log, as in '1200.0'");
    return NULL;
}

static fallible logs_begin(struct reading *g, struct sbx *s, const struct sbx_log_from *from)
{
    struct http_req *req = g->req;

    g->follower.on_begin = on_begin;
    g->follower.on_more = on_more;
    g->follower.on_end = on_end;
    g->follows = from->follow;
    req->user = g;
    req->on_gone = req->on_hangup = on_gone;
    req->on_drain = on_drain;
    struct err *e = sbx_follow(s, from, &g->follower);
    if (e)
        let_go(g);
    return e;
}

/* ?follow=true&since=PLACE&tail=LINES; events, if text/event-stream is accepted. */
fallible v1_handle_logs(struct http_req *req)
{
    struct reading *g = arena_new(&req->arena, struct reading);
    struct sbx_log_from from = {0};
    struct runtime *r;

    TRY(v1_find(req, KEY_RUNTIME | KEY_READ, &r));
    TRY(read_flag(req, "follow", &from.follow));
    if (!g)
        return arena_check(&req->arena);
    if (!r->sbx) {
        http_reply(req, 200, STR("text/plain; charset=utf-8"), STR(""));
        return NULL;
    }
    g->req = req;
    g->loop = net_loop(http_server_net(req->server));
    g->events = str_find(http_req_header(req, STR("accept")), STR("text/event-stream")) >= 0;
    TRY(read_from(req, &from));
    from.follow = from.follow && r->sbx->state.now != SBX_STOPPED;
    return logs_begin(g, r->sbx, &from);
}
