// SPDX-License-Identifier: Apache-2.0
/* reply.c — answers: one head, then a body that is counted, chunked, or ends with the connection.
 */
#include <poll.h>
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "net/server_inner.h"

#define LARGE_BODY (8u << 20) /* may not fit a stream's output limit */
#define MAX_JSON   (256u << 20)
#define USUAL_JSON 1000
#define HEAD_ROOM  256 /* status line, date, length and type; names of ours are short */

static char *reply_put(char *to, struct str s)
{
    if (s.len)
        memcpy(to, s.p, s.len);
    return to + s.len;
}

void http_reply_header(struct http_req *req, struct str name, struct str value)
{
    struct request *r = request_of(req);

    if (!http_is_token(name) || !http_is_field_value(value)) {
        log_error("answer header dropped: it would break the head", KV("name", name),
                  KV("request_id", http_req_id(req)));
        return;
    }
    char *at = buf_reserve(&r->headers, name.len + value.len + 4); /* whole, or not at all */
    if (!at)
        return;
    reply_put(reply_put(reply_put(reply_put(at, name), STR(": ")), value), STR("\r\n"));
    buf_commit(&r->headers, name.len + value.len + 4);
}

static const char *date_now(struct http_server *s)
{
    const struct loop *loop = net_loop(s->net);
    uint64_t now_s = loop_now_ns(loop) / NS_PER_S + 1;

    if (now_s != s->date_s) {
        s->date_s = now_s;
        clock_format_http(clock_wall_ns(loop_clock(loop)) / NS_PER_S, s->date);
    }
    return s->date;
}

static char *put_number(char *to, uint64_t n)
{
    char digits[20];
    size_t len = 0;

    do
        digits[len++] = (char)('0' + n % 10);
    while (n /= 10);
    while (len)
        *to++ = digits[--len];
    return to;
}

static bool has_body(int status)
{
    return status >= 200 && status != 204 && status != 304;
}

/* Whether to close instead of reading the rest of a body to reach the next request.
 *
 * It may be too long. It may also never come: after a refusal a client that waits for "100
 * Continue" need not send it, and what it sends instead looks like a body. */
static bool body_too_long_to_skip(const struct request *r)
{
    const struct conn *c = r->conn;

    if (c->state != CONN_BODY || c->body.done ||
        r->pub.on_body) /* a handler that streams takes it */
        return false;
    return r->pub.head.expect_continue || c->body.left > CONN_DISCARD_MAX;
}

/* Writes the head and leaves room for extra bytes behind it; gives where they go, or NULL. */
static char *put_head(struct request *r, int status, struct str type, uint64_t length, size_t extra)
{
    struct conn *c = r->conn;
    struct str reason = r->reason.p ? r->reason : str_of(http_reason(status));

    if (!http_is_field_value(type))
        type = STR("application/octet-stream");
    if (c->server->draining)
        r->keep_alive = false;
    if (body_too_long_to_skip(r))
        r->keep_alive = false;
    const char *name = r->reason.p ? NULL : c->server->config.server_name;
    if (extra > LARGE_BODY) /* it is in memory already: that it is large says nothing of the peer */
        stream_set_out_limit(c->stream, stream_pending(c->stream) + extra + LARGE_BODY);
    char *start = stream_reserve(c->stream, HEAD_ROOM + reason.len + type.len + r->headers.len +
                                                (name ? strlen(name) : 0) + extra);
    if (!start)
        return NULL;
    char *at = reply_put(start, STR("HTTP/1.1 "));
    at = reply_put(reply_put(put_number(at, (unsigned)status), STR(" ")), reason);
    if (!r->reason.p)
        at =
            reply_put(reply_put(at, STR("\r\ndate: ")), str_n(date_now(c->server), CLOCK_HTTP_LEN));
    if (name)
        at = reply_put(reply_put(at, STR("\r\nserver: ")), str_of(name));
    if (type.len)
        at = reply_put(reply_put(at, STR("\r\ncontent-type: ")), type);
    if (r->chunked)
        at = reply_put(at, STR("\r\ntransfer-encoding: chunked"));
    else if (length != HTTP_LENGTH_UNKNOWN && has_body(status))
        at = put_number(reply_put(at, STR("\r\ncontent-length: ")), length);
    if (!r->keep_alive)
        at = reply_put(at, STR("\r\nconnection: close"));
    else if (r->pub.head.minor == 0)
        at = reply_put(at, STR("\r\nconnection: keep-alive"));
    at = reply_put(at, STR("\r\n"));
    at = reply_put(at, buf_str(&r->headers));
    at = reply_put(at, STR("\r\n"));
    stream_commit(c->stream, (size_t)(at - start));
    r->answer = ANSWER_BEGUN;
    r->status = status;
    return at;
}

static void tell_answer(const struct request *r)
{
    const struct http_server *s = r->pub.server;

    if (!s || !(s->config.access_log || s->config.on_answer))
        return;
    /* Measured now: the turn the request came in may be the one it is answered in. */
    uint64_t ns = clock_mono_ns(loop_clock(net_loop(s->net))) - r->start_ns;
    if (s->config.on_answer)
        s->config.on_answer(s->config.ctx, &r->pub, r->status, ns);
    if (s->config.access_log)
        log_info("request", KV("method", r->pub.head.method), KV("path", r->pub.path),
                 KV("status", r->status), KV("bytes", r->sent_bytes), KV("ms", (double)ns / 1e6),
                 KV("request_id", http_req_id(&r->pub)));
}

static void reply_finish(struct request *r)
{
    if (r->conn)
        stream_push(r->conn->stream); /* before others are told of it */
    tell_answer(r);
    request_answered(r);
}

bool http_req_is_cut(struct http_req *req)
{
    const struct conn *c = request_of(req)->conn;
    struct pollfd p = {.fd = c ? stream_fd(c->stream) : -1, .events = POLLRDHUP};

    return !c || poll(&p, 1, 0) > 0;
}

void http_reply(struct http_req *req, int status, struct str content_type, struct str body)
{
    struct request *r = request_of(req);

    if (r->conn) {
        bool with_body = has_body(status) && !r->head_only;
        if (buf_failed(&r->headers))
            r->keep_alive = false;
        char *at = put_head(r, status, content_type, body.len, with_body ? body.len : 0);
        if (at && with_body && body.len) {
            memcpy(at, body.p, body.len);
            stream_commit(r->conn->stream, body.len);
            r->sent_bytes = body.len;
        }
        if (!at)
            r->keep_alive = false; /* the stream has failed and will say so */
    }
    reply_finish(r);
}

void http_reply_json(struct http_req *req, int status, struct str json)
{
    http_reply(req, status, STR("application/json"), json);
}

struct jw *http_reply_writer(struct http_req *req)
{
    struct request *r = request_of(req);

    buf_init(&r->json, MAX_JSON);
    buf_reserve(&r->json, USUAL_JSON);
    jw_init(&r->writer, &r->json, JW_WEB);
    return &r->writer;
}

void http_reply_written(struct http_req *req, int status)
{
    struct request *r = request_of(req);
    own_done(buf) json = r->json; /* the request may be gone with its answer */
    struct err *e = buf_check(&json);

    r->json = (struct buf){0};
    if (e)
        http_reply_err(req, e);
    else
        http_reply_json(req, status, buf_str(&json));
}

static void put_detail(struct buf *out, const struct err *e)
{
    struct jw w;

    jw_init(&w, out, JW_WEB);
    JW_OBJECT(&w, NULL)
        jw_cstr(&w, "detail", err_text(e));
}

/* Answers that ask a client to come back say when: soon, unless the handler has set a time. */
static bool is_for_later(int status)
{
    return status == 429 || status == 503;
}

void http_reply_err(struct http_req *req, struct err *e)
{
    struct request *r = request_of(req);
    int status = err_http_status(err_code(e));
    unsigned again_s = err_again_s(e);
    own_done(buf) body;
    char seconds[16];

    buf_init(&body, 64u << 10);
    put_detail(&body, e);
    if (status >= 500)
        log_error("request failed", KV("method", req->head.method), KV("path", req->path),
                  KV("status", status), KV("request_id", http_req_id(req)), KV_ERR(e));
    err_free(e);
    if (r->answer == ANSWER_BEGUN) { /* too late for a status: the peer must see it broke */
        http_reply_abort(req);
        return;
    }
    snprintf(seconds, sizeof seconds, "%u", again_s ? again_s : 1);
    if (is_for_later(status))
        http_reply_header(req, STR("retry-after"), str_of(seconds));
    http_reply_json(req, status, buf_str(&body));
}

void reply_bare(struct conn *c, struct err *e)
{
    int status = err_http_status(err_code(e));
    own_done(buf) body;
    char head[256];

    buf_init(&body, 4096);
    put_detail(&body, e);
    err_free(e);
    int n = snprintf(head, sizeof head,
                     "HTTP/1.1 %d %s\r\ndate: %s\r\ncontent-type: application/json\r\n"
                     "content-length: %zu\r\nconnection: close\r\n",
                     status, http_reason(status), date_now(c->server), body.len);
    stream_write(c->stream, str_n(head, (size_t)n));
    if (c->req)
        stream_write(c->stream, buf_str(&c->req->headers)); /* CORS, or a browser hides the rest */
    stream_write(c->stream, STR("\r\n"));
    stream_write(c->stream, buf_str(&body));
    if (c->server->config.access_log)
        log_info("request refused", KV("status", status));
}

void http_reply_interim(struct http_req *req, struct str head)
{
    struct request *r = request_of(req);

    if (r->conn && r->answer == ANSWER_NONE && req->head.minor)
        stream_write(r->conn->stream, head);
}

void http_reply_foreign(struct http_req *req, struct str reason)
{
    struct request *r = request_of(req);

    r->reason = arena_copy(&req->arena, http_is_field_value(reason) ? reason : STR(""));
}

void http_reply_begin(struct http_req *req, int status, struct str content_type, uint64_t length)
{
    struct request *r = request_of(req);

    r->answer = ANSWER_BEGUN;
    r->promised_bytes = length;
    if (!r->conn)
        return;
    if (length == HTTP_LENGTH_UNKNOWN && has_body(status)) {
        r->chunked = r->pub.head.minor > 0;
        r->keep_alive &= r->chunked;
    }
    if (!put_head(r, status, content_type, length, 0))
        r->keep_alive = false;
    conn_set_deadline(r->conn);
}

static bool takes_body(const struct request *r)
{
    return r->conn && !r->head_only && has_body(r->status);
}

/* Only a peer that does not read is on the clock, not a handler that has nothing to say. */
static void reply_wrote(struct request *r, size_t n)
{
    r->sent_bytes += n;
    if (stream_pending(r->conn->stream) < STREAM_HIGH || r->slow)
        return;
    r->slow = true; /* until on_conn_drain */
    conn_set_deadline(r->conn);
}

static void put_piece(struct http_req *req, struct str piece,
                      void (*write)(struct stream *s, struct str data))
{
    struct request *r = request_of(req);
    char size[20];

    if (!piece.len || !takes_body(r))
        return;
    struct stream *s = r->conn->stream;
    if (r->chunked)
        stream_write(s, str_n(size, http_chunk_head(piece.len, size)));
    write(s, piece);
    if (r->chunked)
        stream_write(s, STR("\r\n"));
    reply_wrote(r, piece.len);
}

void http_reply_write(struct http_req *req, struct str piece)
{
    put_piece(req, piece, stream_write);
}

void http_reply_pass(struct http_req *req, struct str piece)
{
    put_piece(req, piece, stream_pass);
}

#define CHUNK_HEAD 10 /* a size of eight digits, whatever comes to be there, and a line end */

char *http_reply_reserve(struct http_req *req, size_t n)
{
    struct request *r = request_of(req);

    if (!takes_body(r))
        return NULL;
    char *at = stream_reserve(r->conn->stream, n + (r->chunked ? CHUNK_HEAD + 2 : 0));
    return at && r->chunked ? at + CHUNK_HEAD : at;
}

void http_reply_commit(struct http_req *req, size_t n)
{
    struct request *r = request_of(req);
    char head[20];

    if (!n || !takes_body(r))
        return;
    struct stream *s = r->conn->stream;
    size_t frame = r->chunked ? CHUNK_HEAD + 2 : 0;
    char *at = stream_reserve(s, n + frame); /* it is there already */
    if (r->chunked) {
        snprintf(head, sizeof head, "%08zx\r\n", n);
        reply_put(reply_put(at, str_n(head, CHUNK_HEAD)) + n, STR("\r\n"));
    }
    stream_commit(s, n + frame);
    reply_wrote(r, n);
}

size_t http_reply_pending(const struct http_req *req)
{
    const struct request *r = container_of(req, struct request, pub);

    if (!r->conn)
        return 0;
    return stream_failed(r->conn->stream) ? SIZE_MAX : stream_pending(r->conn->stream);
}

void http_reply_end(struct http_req *req)
{
    struct request *r = request_of(req);

    if (r->conn && r->promised_bytes != HTTP_LENGTH_UNKNOWN && !r->head_only &&
        has_body(r->status) && r->sent_bytes != r->promised_bytes) {
        log_error("answer cut: its length is not what its head says", KV("path", req->path),
                  KV("promised", r->promised_bytes), KV("written", r->sent_bytes),
                  KV("request_id", http_req_id(req)));
        http_reply_abort(req); /* the next answer would be read as the rest of this one */
        return;
    }
    if (r->conn && r->chunked && !r->head_only)
        stream_write(r->conn->stream, STR("0\r\n\r\n"));
    reply_finish(r);
}

void http_reply_abort(struct http_req *req)
{
    struct request *r = request_of(req);

    tell_answer(r);
    r->answer = ANSWER_DONE;
    if (r->conn)
        conn_close(r->conn); /* recycles the request too */
    else
        request_answered(r);
}
