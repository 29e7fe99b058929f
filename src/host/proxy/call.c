// SPDX-License-Identifier: Apache-2.0
/* call.c — a request on its way in and its answer on the way out. One side is read only as fast as
 * the other takes: each has at most STREAM_HIGH and one piece waiting. */
#include "base/log.h"
#include "base/mem.h"
#include "host/proxy/inner.h"

#define INTERIM_MAX 10 /* 1xx answers */

static const struct stream_events call_events;

/* --- life --- */

static struct call *call_new(struct proxy *p)
{
    struct call *c = p->spare;

    if (!c)
        return mem_try(sizeof *c);
    p->spare = c->next_spare;
    p->spare_count--;
    *c = (struct call){0};
    return c;
}

struct http_req *call_end(struct call *c)
{
    struct proxy *p = c->p;
    struct http_req *req = take(&c->req);

    count_end(c);
    call_unpark(c);
    req->on_body = NULL;
    req->on_gone = req->on_hangup = req->on_drain = NULL;
    req->user = NULL;
    dial_cancel(take(&c->dial));
    stream_close(take(&c->stream));
    loop_timer_stop(&c->timer);
    attempts_stop(&c->dials);
    list_del(&c->link);
    c->target->open--;
    c->target->last_ns = loop_now_ns(p->loop);
    if (p->spare_count >= SPARE_CALLS) {
        free(c);
    } else {
        c->next_spare = p->spare;
        p->spare = c;
        p->spare_count++;
    }
    return req;
}

void call_free_spares(struct proxy *p)
{
    while (p->spare) {
        struct call *c = p->spare;
        p->spare = c->next_spare;
        free(c);
    }
}

/* --- refusals --- */

void call_fail(struct call *c, struct err *e)
{
    struct proxy *p = c->p;
    struct proxy_target *t = c->target;

    if (call_is_put_off(c) && c->state != CALL_HEAD && c->state != CALL_BODY) {
        err_free(e);
        call_put_off(c, true); /* nothing of it went in */
        return;
    }
    struct http_req *req = call_end(c);
    if (t->on_trouble)
        t->on_trouble(t);
    switch (err_code(e)) {
    case ERR_BUSY:
    case ERR_NO_MEMORY:
    case ERR_LIMIT:
        err_free(e);
        call_reply_later(p, req, "the sandbox is busy");
        return;
    case ERR_TIMEOUT:
        http_reply_err(req, e);
        return;
    default:
        http_reply_err(req, err_recode(e, ERR_UPSTREAM));
    }
}

void call_cut(struct call *c, struct err *e)
{
    http_reply_err(call_end(c), e); /* cuts the connection when the answer has begun */
}

static bool may_repeat(const struct http_req *req)
{
    static const struct str safe[] = {STR_INIT("GET"), STR_INIT("HEAD"), STR_INIT("OPTIONS"),
                                      STR_INIT("PUT"), STR_INIT("DELETE")};

    for (size_t i = 0; i < ARRAY_LEN(safe); i++)
        if (str_eq(req->head.method, safe[i]))
            return true;
    return false;
}

/* The server itself went, and not for a client that did: once for all its connections. An answer
 * that has begun may be cut on purpose. A connection used before counts too: the server keeps those
 * far longer than we do. */
static void tell_lost(const struct call *c)
{
    struct proxy_target *t = c->target;

    if (!t->on_lost || c->inside || c->half_closed || c->state != CALL_HEAD ||
        t->state != PROXY_OPEN || c->taken_ns < t->lost_ns)
        return;
    t->lost_ns = loop_now_ns(c->p->loop) + 1;
    t->on_lost(t);
}

/* Nothing came on a connection used before: most likely it was closed inside already. A request
 * that may be repeated is, once. For any other the client's connection breaks, as it would without
 * us: 502 would tell it not to ask again for an answer that is kept inside. */
static void call_lost(struct call *c, struct err *e)
{
    bool again = may_repeat(c->req);
    bool whole = again && c->req->head.framing == HTTP_NO_BODY;

    tell_lost(c);
    if (c->state == CALL_HEAD && call_is_put_off(c)) {
        err_free(e);
        call_put_off(c, whole);
        return;
    }
    if (c->state == CALL_HEAD && !c->answered && c->reused && whole) {
        err_free(e);
        stream_close(take(&c->stream));
        c->retried = true;
        c->state = CALL_DIAL;
        up_connect(c);
        return;
    }
    if (again && c->state == CALL_HEAD) {
        call_fail(c, err_recode(e, ERR_UPSTREAM));
        return;
    }
    log_debug("connection lost inside a sandbox", KV("id", c->target->id),
              KV("request_id", http_req_id(c->req)), KV_ERR(e));
    err_free(e);
    http_reply_abort(call_end(c));
}

/* --- the client --- */

static void on_client_gone(struct http_req *req)
{
    http_reply_abort(call_end(req->user));
}

/* It may have gone, or wait all the same. The sandbox is told, for it keeps an answer that was not
 * taken. A paused one is not woken for it. */
static void on_client_hangup(struct http_req *req)
{
    struct call *c = req->user;

    if (c->state == CALL_WAIT) {
        struct proxy *p = c->p;
        call_reply_later(p, call_end(c), "the sandbox is not running");
        return;
    }
    c->half_closed = true;
    if (c->state >= CALL_HEAD && c->body_ended)
        stream_shutdown(c->stream);
}

static void on_client_drain(struct http_req *req)
{
    struct call *c = req->user;

    if (c->stream)
        stream_resume(c->stream);
}

static fallible on_client_body(struct http_req *req, struct str piece)
{
    struct call *c = req->user;
    bool chunked = req->head.framing == HTTP_CHUNKED;
    char size[20];

    c->target->last_ns = loop_now_ns(c->p->loop);
    count_asked(c, piece);
    if (!piece.len) {
        c->body_ended = true;
        if (chunked)
            stream_write(c->stream, STR("0\r\n\r\n"));
        if (c->half_closed) /* before its body was read */
            stream_shutdown(c->stream);
        return NULL;
    }
    if (chunked)
        stream_write(c->stream, str_n(size, http_chunk_head(piece.len, size)));
    stream_pass(c->stream, piece);
    if (chunked)
        stream_write(c->stream, STR("\r\n"));
    if (stream_pending(c->stream) >= STREAM_HIGH)
        http_body_pause(req);
    return NULL;
}

/* --- the sandbox --- */

void call_open(struct call *c, struct stream *s, bool reused)
{
    c->stream = s;
    c->reused = reused;
    c->state = CALL_HEAD;
    c->scanned = 0;
    stream_set_events(s, &call_events, c);
    stream_set_idle(s, 0);
    struct str head = c->head; /* which may go to a second connection */
    struct err *e = head_to_far(c, &head);
    if (e) {
        call_fail(c, e);
        return;
    }
    stream_write(s, head);
    call_set_timer(c, c->p->config.answer_ms);
    if (!c->body_ended)
        http_body_resume(c->req);
    else if (c->half_closed)
        stream_shutdown(s);
}

static void tell_first(const struct call *c)
{
    struct proxy_target *t = c->target;
    void (*fn)(struct proxy_target * t, uint64_t ns) = take(&t->on_first);

    if (fn)
        fn(t, t->last_ns - c->begun_ns);
}

static void call_finish(struct call *c, struct str left)
{
    bool whole = c->body_ended && !stream_pending(c->stream) && !left.len && !c->half_closed;

    if (c->begun_ns)
        tell_first(c);
    c->whole = true;
    if (c->keep_alive && whole && c->target->state == PROXY_OPEN)
        up_keep(c);
    http_reply_end(call_end(c));
}

static void bad_answer(struct call *c, struct err *e)
{
    call_fail(c, err_wrap(err_recode(e, ERR_UPSTREAM), "the answer from inside is not HTTP"));
}

static void call_upgrade(struct call *c, const struct http_head *h)
{
    struct proxy *p = c->p;
    struct proxy_target *t = c->target;

    if (!c->req->head.upgrade) {
        bad_answer(c, err_new(ERR_UPSTREAM, "101 without an upgrade in the request"));
        return;
    }
    struct str head = head_of_upgrade(c, h);
    struct stream *inside = take(&c->stream);
    struct stream *client = http_take_stream(call_end(c));
    if (!client) {
        stream_close(inside);
        return;
    }
    stream_write(client, head);
    relay_start(p, t, client, inside);
}

static uint64_t length_of(const struct call *c, const struct http_head *h)
{
    if (str_eq(c->req->head.method, STR("HEAD")))
        return http_header_get(h, STR("content-length")).p ? h->length : HTTP_LENGTH_UNKNOWN;
    return h->framing == HTTP_LENGTH || h->framing == HTTP_NO_BODY ? h->length
                                                                   : HTTP_LENGTH_UNKNOWN;
}

/* False: the call is over. */
static bool take_final_head(struct call *c, const struct http_head *h, struct str left)
{
    if (h->status == 101) {
        call_upgrade(c, h);
        return false;
    }
    c->state = CALL_BODY;
    if (h->status != 200)
        c->begun_ns = 0;
    c->keep_alive = h->keep_alive;
    loop_timer_stop(&c->timer);
    http_body_init(&c->in, h);
    count_head(c, h);
    head_to_client(c, h);
    http_reply_begin(c->req, h->status, STR(""), length_of(c, h));
    if (c->target->on_trouble && (h->status == 404 || (h->status >= 502 && h->status <= 504)))
        c->target->on_trouble(c->target);
    if (!c->in.done)
        return true;
    call_finish(c, left);
    return false;
}

/* False: more is needed, or the call is over. */
static bool take_head(struct call *c, struct str *in)
{
    struct http_head h;
    size_t end = 0;
    struct err *e = http_head_end(*in, &c->scanned, &end);

    if (!e && end)
        e = http_parse_response(&c->req->arena, str_first(*in, end), c->req->head.method, &h);
    if (e) {
        bad_answer(c, e);
        return false;
    }
    if (!end)
        return false;
    struct str text = str_first(*in, end);
    *in = str_from(*in, end);
    c->scanned = 0;
    if (h.status >= 200 || h.status == 101)
        return take_final_head(c, &h, *in);
    if (++c->interim > INTERIM_MAX) {
        bad_answer(c, err_new(ERR_UPSTREAM, "more than %d interim answers", INTERIM_MAX));
        return false;
    }
    if (h.status != 100 || c->req->head.expect_continue)
        http_reply_interim(c->req, text);
    return true;
}

static bool take_body(struct call *c, struct str *in)
{
    struct str piece;
    struct err *e = http_body_next(&c->in, in, &piece);

    if (e) {
        bad_answer(c, e);
        return false;
    }
    count_answered(c, piece);
    http_reply_pass(c->req, piece);
    if (c->in.done) {
        call_finish(c, *in);
        return false;
    }
    if (http_reply_pending(c->req) >= STREAM_HIGH) {
        stream_pause(c->stream);
        return false;
    }
    return piece.len > 0;
}

static size_t on_inside_data(struct stream *s, struct str data)
{
    struct call *c = stream_owner(s);
    struct str in = data;
    bool more = true;

    c->answered = true;
    c->target->last_ns = loop_now_ns(c->p->loop);
    while (more && in.len)
        more = c->state == CALL_HEAD ? take_head(c, &in) : take_body(c, &in);
    return data.len - in.len;
}

static void on_inside_eof(struct stream *s)
{
    struct call *c = stream_owner(s);
    struct err *e = c->state == CALL_BODY
                        ? http_body_eof(&c->in)
                        : err_new(ERR_UPSTREAM, "the sandbox closed the connection");

    if (e) {
        call_lost(c, e);
        return;
    }
    c->keep_alive = false;
    call_finish(c, STR(""));
}

static void on_inside_error(struct stream *s, struct err *why)
{
    call_lost(stream_owner(s), why);
}

static void on_inside_drain(struct stream *s)
{
    struct call *c = stream_owner(s);

    if (!c->body_ended)
        http_body_resume(c->req);
}

static const struct stream_events call_events = {
    .on_data = on_inside_data,
    .on_drain = on_inside_drain,
    .on_eof = on_inside_eof,
    .on_error = on_inside_error,
};

/* --- the beginning --- */

fallible call_take(struct proxy *p, struct proxy_target *t, struct http_req *req, uint16_t inside,
                   const struct proxy_name *name)
{
    if (str_eq(req->head.method, STR("CONNECT")))
        return err_new(ERR_METHOD, "CONNECT is not for clients");
    struct call *c = call_new(p);
    if (!c)
        return err_no_memory();
    c->p = p;
    c->target = t;
    c->req = req;
    c->inside = inside;
    c->prefix = name->prefix;
    c->state = CALL_WAIT;
    c->body_ended = req->head.framing == HTTP_NO_BODY;
    list_add(&t->calls, &c->link);
    t->open++;
    c->taken_ns = t->last_ns = loop_now_ns(p->loop);
    count_begin(c);
    if (t->on_first && c->kind && c->kind != COUNT_LIVE)
        c->begun_ns = t->last_ns;
    struct err *e = head_to_sandbox(c, name, &c->head);
    if (e) {
        call_end(c);
        return e;
    }
    req->user = c;
    req->on_gone = on_client_gone;
    req->on_hangup = on_client_hangup;
    req->on_drain = on_client_drain;
    req->on_body = on_client_body;
    http_body_pause(req); /* until the sandbox takes it */
    call_go_on(c);
    return NULL;
}
