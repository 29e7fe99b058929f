// SPDX-License-Identifier: Apache-2.0
/* client.c — the life of a call: connect or reuse, send, read, report. See client.h.
 *
 * A call that is over stays in memory until the end of the turn: stream callbacks up the stack look
 * at its state before they go on. */
#include "out/client.h"

#include "base/mem.h"
#include "out/client_inner.h"
#include "out/dial.h"

#define ARENA_BYTES (512u << 10) /* request head, strings, headers of answers */
#define EARLY_BYTES (16u << 20)
#define BODY_PIECE  (64u << 10)
#define INTERIM_MAX 10 /* 1xx answers */

static const struct stream_events call_stream_events;

fallible http_client_new(struct dialer *dialer, const struct http_client_config *config,
                         struct http_client **ret_client)
{
    struct http_client *client = mem_try(sizeof *client);

    if (!client)
        return err_no_memory();
    client->dialer = dialer;
    client->loop = net_loop(dialer->net);
    pool_init(&client->pool, config && config->idle_ms ? config->idle_ms : 30000,
              config && config->idle_per_host ? config->idle_per_host : 8);
    list_init(&client->calls);
    *ret_client = client;
    return NULL;
}

void http_client_free(struct http_client *client)
{
    if (!client)
        return;
    while (!list_empty(&client->calls))
        http_call_cancel(container_of(client->calls.next, struct http_call, link));
    pool_done(&client->pool);
    free(client);
}

/* --- endings --- */

static void call_free(struct http_call *c)
{
    err_free(c->failing);
    buf_done(&c->body);
    buf_done(&c->early);
    arena_done(&c->arena);
    free(c);
}

static void on_reap(struct loop_later *l)
{
    call_free(container_of(l, struct http_call, reap));
}

/* Lets go of everything; the stream is closed unless it was taken from c before. */
static void call_end(struct http_call *c)
{
    c->state = CALL_OVER;
    dial_cancel(take(&c->dial));
    stream_close(take(&c->stream));
    loop_timer_stop(&c->total);
    loop_later_cancel(&c->soon);
    list_del(&c->link);
    loop_later(c->client->loop, &c->reap, on_reap);
}

void http_call_cancel(struct http_call *c)
{
    if (c && c->state != CALL_OVER)
        call_end(c);
}

static void call_fail(struct http_call *c, struct err *e)
{
    call_end(c);
    c->events->on_done(c, err_wrap(e, STR_FMT, STR_ARG(c->what)));
}

/* The connection's error as the caller should see it: our faults stay ours, others are the
 * peer's. */
static struct err *as_upstream(struct err *e)
{
    switch (err_code(e)) {
    case ERR_TIMEOUT:
    case ERR_NO_MEMORY:
    case ERR_INVALID: /* an impossible host or path */
    case ERR_UNSUPPORTED:
    case ERR_LIMIT:
    case ERR_BUSY:
        return e;
    default:
        return err_recode(e, ERR_UPSTREAM);
    }
}

static void fail_bad_answer(struct http_call *c, struct err *e)
{
    if (err_code(e) != ERR_NO_MEMORY)
        e = err_recode(e, ERR_UPSTREAM);
    call_fail(c, err_wrap(e, "answer is not HTTP"));
}

static void fail_too_large(struct http_call *c)
{
    call_fail(c, err_new(ERR_TOO_LARGE, "the answer is over %llu bytes",
                         (unsigned long long)c->max_body_bytes));
}

static void on_total(struct loop_timer *t)
{
    struct http_call *c = container_of(t, struct http_call, total);

    call_fail(c, err_new(ERR_TIMEOUT, "not done after %u ms", c->total_ms));
}

/* --- sending --- */

/* The given body goes out as fast as the stream takes it, so it is never there twice. */
static void send_body(struct http_call *c)
{
    while (c->body_sent < c->body.len && stream_pending(c->stream) < STREAM_HIGH) {
        struct str piece = str_first(str_from(buf_str(&c->body), c->body_sent), BODY_PIECE);
        stream_write(c->stream, piece);
        c->body_sent += piece.len;
    }
}

static void apply_pause(struct http_call *c)
{
    if (!c->stream)
        return;
    stream_set_idle(c->stream,
                    c->paused ? 0 : c->idle_ms); /* our own pause is no fault of theirs */
    if (c->paused)
        stream_pause(c->stream);
}

static void client_attach(struct http_call *c, struct stream *s, bool reused)
{
    c->stream = s;
    c->reused = reused;
    c->state = CALL_HEAD;
    c->scanned = 0;
    c->body_sent = 0;
    stream_set_events(s, &call_stream_events, c);
    apply_pause(c);
    stream_write(s, c->head);
    send_body(c);
    stream_write(s, buf_str(&c->early));
    buf_done(&c->early);
}

static void on_dialed(void *owner, struct err *e, struct stream *s)
{
    struct http_call *c = owner;

    c->dial = NULL;
    if (e)
        call_fail(c, as_upstream(e));
    else
        client_attach(c, s, false);
}

static void connect_call(struct http_call *c)
{
    struct stream *s = c->retried ? NULL : pool_take(&c->client->pool, c->key);

    if (s) {
        client_attach(c, s, true);
        return;
    }
    struct dial_target target = {
        .host = c->host,
        .port = c->port,
        .unix_path = c->unix_path,
        .tls = c->tls,
        .timeout_ms = c->connect_ms,
    };
    struct err *e = dial_start(c->client->dialer, &target, on_dialed, c, &c->dial);
    if (e)
        call_fail(c, as_upstream(e));
}

static void on_soon(struct loop_later *l)
{
    struct http_call *c = container_of(l, struct http_call, soon);

    if (c->failing)
        call_fail(c, take(&c->failing));
    else
        connect_call(c);
}

static void fail_soon(struct http_call *c, struct err *e)
{
    err_free(c->failing);
    c->failing = e;
    loop_later(c->client->loop, &c->soon, on_soon);
}

fallible http_call_start(struct http_client *client, const struct http_call_spec *spec,
                         const struct http_call_events *events, void *owner,
                         struct http_call **ret_call)
{
    struct http_call *c = mem_try(sizeof *c);

    if (!c)
        return err_no_memory();
    c->client = client;
    c->events = events;
    c->owner = owner;
    arena_init(&c->arena, ARENA_BYTES);
    buf_init(&c->body, 0);
    buf_init(&c->early, EARLY_BYTES);
    struct err *e = call_prepare(c, spec);
    if (e) {
        call_free(c);
        return e;
    }
    list_add(&client->calls, &c->link);
    if (c->total_ms)
        loop_timer_start(client->loop, &c->total, c->total_ms, on_total);
    loop_later(client->loop, &c->soon, on_soon);
    *ret_call = c;
    return NULL;
}

void *http_call_owner(const struct http_call *c)
{
    return c->owner;
}

static void client_put(struct http_call *c, struct str bytes)
{
    if (c->stream) {
        stream_write(c->stream, bytes);
        return;
    }
    buf_add(&c->early, bytes);
    if (buf_failed(&c->early))
        fail_soon(c, err_wrap(buf_check(&c->early), "body before there is a connection"));
}

void http_call_write(struct http_call *c, struct str piece)
{
    char head[20];

    if (c->state == CALL_OVER || c->ended || piece.len == 0)
        return;
    if (c->chunked) {
        client_put(c, str_n(head, http_chunk_head(piece.len, head)));
        client_put(c, piece);
        client_put(c, STR("\r\n"));
    } else if (piece.len > c->length_left) {
        c->ended = true;
        fail_soon(c, err_new(ERR_INVALID, "more body than its length says"));
    } else {
        c->length_left -= piece.len;
        client_put(c, piece);
    }
}

size_t http_call_pending(const struct http_call *c)
{
    return c->early.len + (c->stream ? stream_pending(c->stream) : 0);
}

void http_call_write_end(struct http_call *c)
{
    if (c->state == CALL_OVER || c->ended)
        return;
    c->ended = true;
    if (c->chunked)
        client_put(c, STR("0\r\n\r\n"));
    else if (c->length_left)
        fail_soon(c, err_new(ERR_INVALID, "less body than its length says"));
}

void http_call_pause(struct http_call *c)
{
    if (c->state == CALL_OVER || c->paused)
        return;
    c->paused = true;
    apply_pause(c);
}

void http_call_resume(struct http_call *c)
{
    if (c->state == CALL_OVER || !c->paused)
        return;
    c->paused = false;
    apply_pause(c);
    if (c->stream)
        stream_resume(c->stream);
}

struct stream *http_call_take_stream(struct http_call *c)
{
    struct stream *s = take(&c->stream);

    if (s)
        stream_set_idle(s, 0);
    call_end(c);
    return s;
}

/* --- reading --- */

/* The whole answer is there; left is what came behind it. */
static void call_finish(struct http_call *c, struct str left)
{
    bool sent = c->ended && c->body_sent == c->body.len && stream_pending(c->stream) == 0;

    if (c->keep_alive && sent && left.len == 0)
        pool_put(&c->client->pool, c->key, take(&c->stream));
    call_end(c);
    c->events->on_done(c, NULL);
}

static void take_final_head(struct http_call *c, const struct http_head *head, struct str left)
{
    bool tunnel =
        head->status == 101 || (str_eq(c->method, STR("CONNECT")) && head->status / 100 == 2);

    c->state = CALL_BODY;
    c->keep_alive = head->keep_alive;
    http_body_init(&c->in, head);
    if (head->framing == HTTP_LENGTH && head->length > c->max_body_bytes) {
        fail_too_large(c);
        return;
    }
    if (c->events->on_head)
        c->events->on_head(c, head);
    if (c->state == CALL_OVER)
        return;
    if (tunnel)
        call_fail(c, err_new(ERR_UPSTREAM, "the server left HTTP and nobody took the connection"));
    else if (c->in.done)
        call_finish(c, left);
}

/* False when more input is needed or the call is over. */
static bool take_head(struct http_call *c, struct str *in)
{
    struct http_head head;
    size_t end = 0;
    struct err *e = http_head_end(*in, &c->scanned, &end);

    if (!e && end)
        e = http_parse_response(&c->arena, str_first(*in, end), c->method, &head);
    if (e) {
        fail_bad_answer(c, e);
        return false;
    }
    if (!end)
        return false;
    *in = str_from(*in, end);
    c->scanned = 0;
    if (head.status >= 200 || head.status == 101) {
        take_final_head(c, &head, *in);
    } else if (++c->interim > INTERIM_MAX) {
        fail_bad_answer(c, err_new(ERR_UPSTREAM, "more than %d interim answers", INTERIM_MAX));
    }
    return c->state != CALL_OVER;
}

static bool take_body(struct http_call *c, struct str *in)
{
    struct str piece;
    struct err *e = http_body_next(&c->in, in, &piece);

    if (e) {
        fail_bad_answer(c, e);
        return false;
    }
    if (piece.len > c->max_body_bytes - c->got_bytes) {
        fail_too_large(c);
        return false;
    }
    c->got_bytes += piece.len;
    if (piece.len && c->events->on_body)
        c->events->on_body(c, piece);
    if (c->state == CALL_OVER)
        return false;
    if (c->in.done)
        call_finish(c, *in);
    return c->state != CALL_OVER && piece.len > 0;
}

static size_t on_call_data(struct stream *s, struct str data)
{
    struct http_call *c = stream_owner(s);
    struct str in = data;
    bool more = data.len > 0;

    c->answered = true;
    while (more && !c->paused)
        more = c->state == CALL_HEAD ? take_head(c, &in) : take_body(c, &in);
    return data.len - in.len;
}

/* The connection is lost. If it had been used before and no answer came, the server had most likely
 * closed it. Then a request that is safe to repeat is sent once more on a new connection. */
static void call_lost(struct http_call *c, struct err *why)
{
    static const struct str safe[] = {STR_INIT("GET"), STR_INIT("HEAD"), STR_INIT("OPTIONS"),
                                      STR_INIT("PUT"), STR_INIT("DELETE")};
    bool again = c->reused && !c->answered && !c->stream_body && err_code(why) != ERR_TIMEOUT;
    size_t i = 0;

    while (i < ARRAY_LEN(safe) && !str_eq(safe[i], c->method))
        i++;
    if (!again || i == ARRAY_LEN(safe)) {
        call_fail(c, as_upstream(why));
        return;
    }
    err_free(why);
    c->retried = true;
    c->state = CALL_CONNECT;
    stream_close(take(&c->stream));
    connect_call(c);
}

static void on_call_eof(struct stream *s)
{
    struct http_call *c = stream_owner(s);

    if (c->state == CALL_HEAD) {
        call_lost(c, err_new(ERR_UPSTREAM, c->answered
                                               ? "the connection ended inside the answer's head"
                                               : "the connection ended before an answer"));
        return;
    }
    struct err *e = http_body_eof(&c->in);
    if (e) {
        call_fail(c, err_recode(e, ERR_UPSTREAM));
        return;
    }
    c->keep_alive = false;
    call_finish(c, STR(""));
}

static void on_call_error(struct stream *s, struct err *why)
{
    call_lost(stream_owner(s), why);
}

static void on_call_drain(struct stream *s)
{
    struct http_call *c = stream_owner(s);

    send_body(c);
    if (c->stream_body && !c->ended && c->events->on_drain)
        c->events->on_drain(c);
}

static const struct stream_events call_stream_events = {
    .on_data = on_call_data,
    .on_drain = on_call_drain,
    .on_eof = on_call_eof,
    .on_error = on_call_error,
};
