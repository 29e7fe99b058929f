// SPDX-License-Identifier: Apache-2.0
/* conn.c — one connection: heads, bodies, one request at a time. Pipelined requests wait in the
 * socket until the answer is complete. A request outlives its connection if its handler has not
 * answered yet. */
#include "base/log.h"
#include "base/mem.h"
#include "net/local.h"
#include "net/server_inner.h"

/* --- requests: taken from and given back to a short list of spare ones --- */

static struct request *request_new(struct conn *c)
{
    struct http_server *s = c->server;
    struct request *r = s->spare;

    if (r) {
        s->spare = r->next;
        s->spare_count--;
    } else {
        r = mem_try(sizeof *r);
        if (!r)
            return NULL;
        arena_init(&r->pub.arena, s->config.limits.arena_bytes);
        buf_init(&r->headers, HTTP_MAX_HEAD);
        buf_init(&r->body, 0);
    }
    r->conn = c;
    r->pub.server = s;
    r->pub.tag = c->tag;
    r->start_ns = loop_now_ns(net_loop(s->net));
    list_add(&s->requests, &r->link);
    c->req = r;
    return r;
}

void request_destroy(struct request *r)
{
    arena_done(&r->pub.arena);
    buf_done(&r->headers);
    buf_done(&r->json);
    buf_done(&r->body);
    free(r);
}

static void request_recycle(struct request *r)
{
    struct http_server *s = r->pub.server;

    list_del(&r->link);
    if (!s || s->freeing || s->spare_count >= SPARE_REQUESTS) {
        request_destroy(r);
        return;
    }
    struct arena arena = r->pub.arena;
    struct buf headers = r->headers;
    arena_reset(&arena);
    buf_reset(&headers);
    buf_done(&r->json);
    buf_done(&r->body);
    *r = (struct request){.pub = {.arena = arena}, .headers = headers};
    r->next = s->spare;
    s->spare = r;
    s->spare_count++;
}

static void tell_hangup(struct request *r)
{
    if (r->hangup_told || r->answer == ANSWER_DONE)
        return;
    r->hangup_told = true;
    if (r->pub.on_hangup)
        r->pub.on_hangup(&r->pub);
}

/* --- connections --- */

static void body_complete(struct conn *c, struct request *r);

static void on_conn_later(struct loop_later *l)
{
    struct conn *c = container_of(l, struct conn, later);

    if (!c->stream)
        free(c);
    else if (c->state == CONN_BODY && c->body.done && !c->req->body_paused)
        body_complete(c, c->req);
}

static void conn_drop_request(struct conn *c)
{
    struct request *r = take(&c->req);

    if (!r)
        return;
    r->conn = NULL;
    if (r->answer == ANSWER_DONE || !r->handed) /* no handler is going to answer */
        request_recycle(r);
    else if (r->pub.on_gone)
        r->pub.on_gone(&r->pub);
}

/* The connection is over; its stream is closed, or has another owner. */
static void conn_end(struct conn *c)
{
    struct http_server *s = c->server;

    c->stream = NULL;
    loop_timer_stop(&c->head_deadline);
    list_del(&c->link);
    loop_later(net_loop(s->net), &c->later, on_conn_later);
    server_lost_conn(s);
    conn_drop_request(c);
}

void conn_close(struct conn *c)
{
    if (!c->stream)
        return;
    stream_close(c->stream);
    conn_end(c);
}

/* It counts as a connection until its last byte is out: see on_conn_closed. */
void conn_close_when_sent(struct conn *c)
{
    if (!c->stream || c->state == CONN_CLOSING)
        return;
    c->state = CONN_CLOSING;
    put_among(c, &c->server->conns);
    loop_timer_stop(&c->head_deadline);
    stream_close_when_sent(c->stream);
    conn_drop_request(c);
}

static void on_conn_closed(struct stream *stream)
{
    conn_end(stream_owner(stream));
}

void conn_abandon(struct conn *c)
{
    static const struct stream_events nobody = {0};

    if (c->state != CONN_CLOSING) {
        conn_close(c);
        return;
    }
    stream_set_events(c->stream, &nobody, NULL); /* the net has it now */
    conn_end(c);
}

static void on_head_deadline(struct loop_timer *t)
{
    struct conn *c = container_of(t, struct conn, head_deadline);

    reply_bare(c, err_new(ERR_REQUEST_TIMEOUT, "the request head took longer than %u ms",
                          c->server->config.limits.head_ms));
    conn_close_when_sent(c);
}

static void conn_refuse(struct conn *c, struct err *e)
{
    reply_bare(c, e);
    conn_close_when_sent(c);
}

void conn_set_deadline(struct conn *c)
{
    const struct request *r = c->req;
    bool owes = (c->state == CONN_BODY && !c->body.done && !r->body_paused) || r->slow;

    stream_set_idle(c->stream, owes ? c->server->config.limits.body_idle_ms : 0);
}

static void to_head_state(struct conn *c)
{
    c->state = CONN_HEAD;
    c->scanned = 0;
    put_among(c, &c->server->idle);
    if (c->used) /* it might make room */
        server_wake(c->server);
    c->used = true;
    stream_set_idle(c->stream, c->server->config.limits.idle_ms);
}

/* --- from head to handler --- */

static void call_handler(struct request *r)
{
    r->handed = true;
    struct err *e = r->route->handle(&r->pub);
    if (e)
        http_reply_err(&r->pub, e);
}

/* A URL as target loses its host; "http://a?/b" has the path "/" and the query "/b". */
static void split_target(struct http_req *req)
{
    struct str target = req->head.target;

    if (str_starts(target, STR("http"))) {
        target = str_from(target, (size_t)str_find(target, STR("://")) + 3);
        while (target.len && target.p[0] != '/' && target.p[0] != '?')
            target = str_from(target, 1);
    }
    str_cut(&target, '?', &req->path);
    req->query = target;
    if (!req->path.len)
        req->path = STR("/");
}

/* Whole head in data: a request is born. Refusals before the handler are answered here. */
static fallible begin_request(struct conn *c, struct str head)
{
    struct request *r = request_new(c);
    if (!r)
        return err_no_memory();
    struct http_req *req = &r->pub;
    struct str copy = arena_copy(&req->arena, head);
    if (!copy.p)
        return arena_check(&req->arena);
    TRY(http_parse_request(&req->arena, copy, &req->head));
    r->keep_alive = req->head.keep_alive && !c->server->draining;
    r->head_only = str_eq(req->head.method, STR("HEAD"));
    http_body_init(&c->body, &req->head);
    c->state = c->body.done ? CONN_BUSY : CONN_BODY;
    put_among(c, &c->server->conns);
    split_target(req);
    return NULL;
}

static fallible route_request(struct conn *c, struct request *r)
{
    const struct http_server_config *config = &c->server->config;
    const struct http_head *head = &r->pub.head;

    if (config->intercept)
        TRY(config->intercept(config->ctx, &r->pub, &r->route));
    if (!r->route) {
        if (config->local_names)
            TRY(local_check(&r->pub));
        TRY(router_find(config->router, &r->pub, &r->route));
        if (!r->route)
            return NULL; /* answered */
        TRY(router_check_auth(config->router, &r->pub, r->route));
    }
    r->body_limit = r->route->body_bytes               ? r->route->body_bytes
                    : (r->route->flags & ROUTE_STREAM) ? UINT64_MAX
                                                       : config->limits.body_bytes;
    if (head->framing == HTTP_LENGTH && head->length > r->body_limit)
        return err_new(ERR_TOO_LARGE, "the body has %llu bytes, at most %llu are taken",
                       (unsigned long long)head->length, (unsigned long long)r->body_limit);
    buf_init(&r->body, (size_t)r->body_limit);
    return NULL;
}

static void start_request(struct conn *c, struct request *r)
{
    struct err *e = route_request(c, r);

    if (e) {
        http_reply_err(&r->pub, e);
        return;
    }
    if (c->req != r || r->answer != ANSWER_NONE)
        return;
    if (r->pub.head.expect_continue && !(r->route->flags & ROUTE_EXPECT))
        stream_write(c->stream, STR("HTTP/1.1 100 Continue\r\n\r\n"));
    conn_set_deadline(c); /* a handler has its own */
    if ((r->route->flags & ROUTE_STREAM) || c->state == CONN_BUSY)
        call_handler(r);
    if (c->req == r && r->route->flags & ROUTE_STREAM && c->state == CONN_BUSY && r->pub.on_body &&
        r->answer != ANSWER_DONE) {
        e = r->pub.on_body(&r->pub, STR("")); /* no body: its end comes at once */
        if (e)
            http_reply_err(&r->pub, e);
    }
}

/* Gives how much of data was taken: a whole head or nothing. */
static size_t feed_head(struct conn *c, struct str data)
{
    size_t end = 0;
    struct err *e = http_head_end(data, &c->scanned, &end);

    if (!e && !end) {
        if (!c->head_deadline.loop)
            loop_timer_start(net_loop(c->server->net), &c->head_deadline,
                             c->server->config.limits.head_ms, on_head_deadline);
        return 0;
    }
    loop_timer_stop(&c->head_deadline);
    if (!e)
        e = begin_request(c, str_first(data, end));
    if (e) {
        if (c->req) {
            c->req->answer = ANSWER_DONE; /* no handler knows of it */
            struct request *r = take(&c->req);
            request_recycle(r);
        }
        conn_refuse(c, e);
        return data.len;
    }
    start_request(c, c->req);
    return end;
}

/* --- bodies --- */

static void body_complete(struct conn *c, struct request *r)
{
    c->state = CONN_BUSY;
    conn_set_deadline(c);
    if (r->route->flags & ROUTE_STREAM) {
        struct err *e = r->pub.on_body ? r->pub.on_body(&r->pub, STR("")) : NULL;
        if (e)
            http_reply_err(&r->pub, e);
        return;
    }
    r->pub.body = buf_str(&r->body);
    call_handler(r);
}

static fallible check_limit(struct request *r, struct str piece)
{
    r->body_bytes += piece.len;
    if (r->body_bytes > r->body_limit)
        return err_new(ERR_TOO_LARGE, "the body has more than %llu bytes",
                       (unsigned long long)r->body_limit);
    return NULL;
}

static fallible take_piece(struct request *r, struct str piece)
{
    if (r->route->flags & ROUTE_STREAM)
        return r->pub.on_body ? r->pub.on_body(&r->pub, piece) : NULL;
    buf_add(&r->body, piece);
    return buf_check(&r->body);
}

/* The body broke, or took too long. A handler that waits for the rest of it hears that its peer is
 * gone; the peer hears why. */
static void body_failed(struct conn *c, struct request *r, struct err *e)
{
    r->keep_alive = false; /* where the next request begins is not known */
    if (!r->handed) {
        http_reply_err(&r->pub, e);
        return;
    }
    if (r->answer == ANSWER_NONE) {
        reply_bare(c, e);
        conn_close_when_sent(c);
    } else {
        err_free(e);
        conn_close(c);
    }
}

static size_t feed_body(struct conn *c, struct str data)
{
    struct request *r = c->req;
    struct str in = data, piece;

    while (r && c->req == r && c->state == CONN_BODY && !r->body_paused) {
        struct err *e = http_body_next(&c->body, &in, &piece);
        if (!e && piece.len)
            e = check_limit(r, piece);
        if (e) {
            body_failed(c, r, e);
            break;
        }
        if (piece.len)
            e = take_piece(r, piece);
        if (e && c->req != r) { /* answered, and failed all the same */
            err_free(e);
            conn_close(c);
            break;
        }
        if (e) {
            r->keep_alive = false;
            http_reply_err(&r->pub, e);
            break;
        }
        if (c->req != r || c->state != CONN_BODY || r->body_paused)
            break;
        if (c->body.done)
            body_complete(c, r);
        else if (!in.len)
            break;
    }
    return data.len - in.len;
}

static size_t feed_discard(struct conn *c, struct str data)
{
    struct str in = data, piece;

    while (in.len && !c->body.done) {
        size_t before = in.len;
        struct err *e = http_body_next(&c->body, &in, &piece);
        c->discarded += before - in.len;
        if (e || c->discarded > CONN_DISCARD_MAX) {
            err_free(e);
            conn_close_when_sent(c);
            return data.len;
        }
    }
    if (c->body.done)
        to_head_state(c);
    return data.len - in.len;
}

static size_t on_conn_data(struct stream *stream, struct str data)
{
    struct conn *c = stream_owner(stream);
    size_t used = 0;

    while (c->stream && used < data.len) {
        struct str rest = str_from(data, used);
        size_t n = 0;
        if (c->state == CONN_HEAD && stream_pending(c->stream) >= STREAM_HIGH)
            stream_pause(c->stream); /* answers pile up: on_conn_drain goes on */
        else if (c->state == CONN_HEAD)
            n = feed_head(c, rest);
        else if (c->state == CONN_BODY)
            n = feed_body(c, rest);
        else if (c->state == CONN_DISCARD)
            n = feed_discard(c, rest);
        if (n == 0)
            break;
        used += n;
    }
    if (c->stream && (c->state == CONN_BUSY || (c->req && c->req->body_paused)))
        stream_pause(c->stream);
    return used;
}

static void on_conn_eof(struct stream *stream)
{
    struct conn *c = stream_owner(stream);

    if (c->state == CONN_BODY && !c->body.done) /* nothing whole can come; a handler that can be
                                                 * told is */
        body_failed(c, c->req, err_new(ERR_INVALID, "the body ends too early"));
    else if (c->state == CONN_HEAD || c->state == CONN_DISCARD)
        conn_close_when_sent(c); /* answers may still be on their way */
    else if (c->req)
        tell_hangup(c->req);
}

static void on_conn_hangup(struct stream *stream)
{
    struct conn *c = stream_owner(stream);

    if (c->req)
        tell_hangup(c->req);
}

static void on_conn_drain(struct stream *stream)
{
    struct conn *c = stream_owner(stream);

    if (!c->req) {
        stream_resume(stream);
        return;
    }
    if (c->req->slow) {
        c->req->slow = false;
        conn_set_deadline(c);
    }
    if (c->req->pub.on_drain)
        c->req->pub.on_drain(&c->req->pub);
}

static void on_conn_error(struct stream *stream, struct err *why)
{
    struct conn *c = stream_owner(stream);

    if (err_code(why) == ERR_TIMEOUT && c->req && c->state == CONN_BODY &&
        c->req->answer == ANSWER_NONE) {
        body_failed(c, c->req, err_recode(why, ERR_REQUEST_TIMEOUT));
        return;
    }
    if (c->req)
        log_debug("connection lost", KV_ERR(why));
    err_free(why);
    conn_close(c);
}

static const struct stream_events conn_events = {
    .on_data = on_conn_data,
    .on_drain = on_conn_drain,
    .on_eof = on_conn_eof,
    .on_hangup = on_conn_hangup,
    .on_error = on_conn_error,
    .on_closed = on_conn_closed,
};

/* The answer to r is complete: back to the next head, or the end. */
void request_answered(struct request *r)
{
    struct conn *c = r->conn;

    r->answer = ANSWER_DONE;
    if (!c) {
        request_recycle(r);
        return;
    }
    c->req = NULL;
    bool keep = r->keep_alive && !c->server->draining;
    request_recycle(r);
    if (!keep) {
        conn_close_when_sent(c);
        return;
    }
    if (c->state == CONN_BODY && !c->body.done) {
        c->state = CONN_DISCARD;
        c->discarded = 0;
        stream_set_idle(c->stream, c->server->config.limits.body_idle_ms);
    } else {
        to_head_state(c);
    }
    stream_resume(c->stream);
}

struct stream *http_take_stream(struct http_req *req)
{
    struct request *r = request_of(req);
    struct conn *c = r->conn;
    struct stream *stream = NULL;

    r->answer = ANSWER_DONE;
    if (c) {
        stream = c->stream;
        stream_set_idle(stream, 0);
        c->req = NULL;
        conn_end(c);
    }
    request_recycle(r);
    return stream;
}

void http_body_pause(struct http_req *req)
{
    struct request *r = request_of(req);

    r->body_paused = true;
    if (r->conn)
        conn_set_deadline(r->conn); /* it is not the peer that is slow */
}

void http_body_resume(struct http_req *req)
{
    struct request *r = request_of(req);
    struct conn *c = r->conn;

    r->body_paused = false;
    if (!c || c->state != CONN_BODY)
        return;
    conn_set_deadline(c);
    if (c->body.done)
        loop_later(net_loop(c->server->net), &c->later, on_conn_later);
    else
        stream_resume(c->stream);
}

fallible http_server_serve(struct http_server *s, int fd)
{
    return conn_new(s, fd, 0);
}

fallible conn_new(struct http_server *s, int fd, uint64_t tag)
{
    own_fd sock = fd;
    struct conn *c = mem_try(sizeof *c);

    if (!c)
        return err_no_memory();
    c->server = s;
    c->tag = tag;
    struct err *e = stream_new(s->net, take_fd(&sock), &conn_events, c, &c->stream);
    if (!e && s->config.filter) {
        e = s->config.filter(s->config.filter_ctx, c->stream);
        if (e)
            stream_close(c->stream);
    }
    if (e) {
        free(c);
        return e;
    }
    list_init(&c->link);
    s->conn_count++;
    to_head_state(c);
    if (s->config.filter) /* a handshake is part of the first head, and moves no byte of it */
        stream_set_idle(c->stream, s->config.limits.head_ms);
    return NULL;
}
