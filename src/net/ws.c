// SPDX-License-Identifier: Apache-2.0
/* ws.c — a WebSocket on a stream, the same for both roles once it is open.
 *
 * Owners hear of an end only from the loop, never inside a call of theirs. So ws_send to a list of
 * peers may drop one without changing the list under the walk. */
#include "net/ws.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/utf8.h"
#include "net/server.h"
#include "net/ws_handshake.h"
#include "net/ws_inner.h"

#define MESSAGE_BYTES (16u << 20)
#define QUEUE_BYTES   (4u << 20)
#define PING_MS       20000
#define CLOSE_MS      5000
#define GRACE_MS      100 /* timers run before sockets: after a stall the answer may lie unread */
#define REASON_MAX    (WS_CONTROL_MAX - 2)
#define ANSWER_MAX    1024

static const struct stream_events stream_events;

struct ws *ws_new(struct net *net, enum ws_role role, const struct ws_config *config,
                  const struct ws_events *events, void *owner)
{
    struct ws *ws = mem_try(sizeof *ws);

    if (!ws)
        return NULL;
    ws->loop = net_loop(net);
    ws->events = events;
    ws->owner = owner;
    ws->state = WS_CONNECTING;
    if (config)
        ws->config = *config;
    struct ws_config *c = &ws->config;
    c->message_bytes = c->message_bytes ? c->message_bytes : MESSAGE_BYTES;
    c->queue_bytes = c->queue_bytes ? c->queue_bytes : QUEUE_BYTES;
    c->ping_ms = c->ping_ms ? c->ping_ms : PING_MS;
    c->close_ms = c->close_ms ? c->close_ms : CLOSE_MS;
    c->rng = c->rng ? c->rng : rng_system();
    c->protocol = NULL;
    ws_reader_init(&ws->reader, role, c->message_bytes, NULL);
    return ws;
}

void ws_free(struct ws *ws)
{
    if (!ws)
        return;
    ws_reader_done(&ws->reader);
    err_free(ws->why);
    free(ws);
}

static void on_end(struct loop_later *l)
{
    struct ws *ws = container_of(l, struct ws, end);

    if (!ws->silent)
        ws->events->on_close(ws, ws->code, ws->reason);
    ws_free(ws);
}

/* Lets go of the stream; on_close comes from the loop. */
static void ws_end(struct ws *ws, int code, struct str reason)
{
    ws->state = WS_ENDED;
    ws->code = code;
    ws->reason = reason;
    ws->stream = NULL;
    loop_timer_stop(&ws->timer);
    loop_later(ws->loop, &ws->end, on_end);
}

void ws_lose(struct ws *ws, struct err *why)
{
    ws->why = why;
    stream_close(ws->stream);
    ws_end(ws, WS_ABNORMAL, str_of(err_text(why)));
}

/* --- output --- */

static void put_frame(struct ws *ws, uint8_t first, struct str payload)
{
    uint8_t head[WS_HEAD_MAX], key[4];
    bool masked = ws->reader.role == WS_CLIENT;

    if (masked)
        ws->config.rng->fill(ws->config.rng, key, sizeof key);
    size_t n = ws_head_put(head, first, payload.len, masked ? key : NULL);
    char *to = stream_reserve(ws->stream, n + payload.len);
    if (!to)
        return; /* the stream has failed and says so after the turn */
    memcpy(to, head, n);
    if (masked)
        ws_mask_copy(to + n, payload.p, payload.len, key, 0);
    else if (payload.len)
        memcpy(to + n, payload.p, payload.len);
    stream_commit(ws->stream, n + payload.len);
    ws->queued_bytes += n + payload.len;
}

static void put_close(struct ws *ws, int code, struct str reason)
{
    char payload[WS_CONTROL_MAX] = {(char)(code >> 8), (char)code};

    if (code < 0 || !ws_close_code_valid((unsigned)code)) {
        put_frame(ws, WS_FIN | WS_OP_CLOSE, STR(""));
        return;
    }
    size_t n = reason.len;
    if (n > REASON_MAX)
        for (n = REASON_MAX; n && (reason.p[n] & 0xc0) == 0x80;)
            n--;
    if (!utf8_valid(str_first(reason, n)))
        n = 0;
    if (n)
        memcpy(payload + 2, reason.p, n);
    put_frame(ws, WS_FIN | WS_OP_CLOSE, str_n(payload, 2 + n));
}

/* Says why, if the peer still listens, and is done with it. */
static void ws_refuse(struct ws *ws, int code, struct str reason)
{
    put_close(ws, code, reason);
    stream_set_idle(ws->stream, ws->config.close_ms);
    stream_close_when_sent(ws->stream);
    ws_end(ws, code, reason);
}

/* False when the peer was dropped instead. */
static bool has_room(struct ws *ws, size_t n)
{
    size_t pending = stream_pending(ws->stream);

    if (pending == 0 || pending + n <= ws->config.queue_bytes)
        return true;
    ws_refuse(ws, WS_POLICY, STR("too slow"));
    return false;
}

void ws_send(struct ws *ws, enum ws_kind kind, struct str data)
{
    struct ws_deflate_terms *terms = &ws->reader.terms;
    uint8_t first = (uint8_t)(WS_FIN | kind);
    own_done(buf) packed;

    buf_init(&packed, 0);
    if (ws->state != WS_OPEN)
        return;
    if (terms->on && ws_deflate(data, terms->send_bits, &packed)) {
        data = buf_str(&packed);
        first |= WS_RSV1;
    }
    if (has_room(ws, data.len + WS_HEAD_MAX))
        put_frame(ws, first, data);
}

/* --- input --- */

static void note_life(struct ws *ws)
{
    ws->heard_ns = loop_now_ns(ws->loop);
    ws->asked = ws->overdue = false;
}

static void on_closed_by_peer(struct ws *ws, int code, struct str reason)
{
    if (ws->state == WS_OPEN)
        put_close(ws, code, STR(""));
    stream_set_idle(ws->stream, ws->config.close_ms);
    stream_close_when_sent(ws->stream);
    ws_end(ws, code, reason);
}

static void on_event(struct ws *ws, const struct ws_event *ev)
{
    switch (ev->kind) {
    case WS_EV_TEXT:
    case WS_EV_BINARY:
        if (ws->state == WS_OPEN)
            ws->events->on_message(ws, ev->kind == WS_EV_TEXT ? WS_TEXT : WS_BINARY, ev->data);
        break;
    case WS_EV_PING:
        if (ws->state == WS_OPEN && has_room(ws, ev->data.len + WS_HEAD_MAX))
            put_frame(ws, WS_FIN | WS_OP_PONG, ev->data);
        break;
    case WS_EV_CLOSE:
        on_closed_by_peer(ws, ev->code, ev->data);
        break;
    case WS_EV_FAIL:
        if (ws->state == WS_OPEN)
            ws_refuse(ws, ev->code, ev->data);
        else
            ws_lose(ws, err_new(ERR_UPSTREAM, "while closing: " STR_FMT, STR_ARG(ev->data)));
        break;
    case WS_EV_PONG:
    case WS_EV_NONE:
        break;
    }
}

static size_t on_stream_data(struct stream *s, struct str data)
{
    struct ws *ws = stream_owner(s);
    struct str rest = data, nothing = STR("");

    note_life(ws);
    while (ws->state != WS_ENDED && !ws->paused) {
        struct ws_event ev = ws_reader_next(&ws->reader, &rest);
        if (ev.kind == WS_EV_NONE)
            return data.len;
        on_event(ws, &ev);
    }
    if (ws->state != WS_ENDED)
        ws_reader_next(&ws->reader, &nothing); /* frees the message just told */
    return data.len - rest.len;
}

static void on_stream_drain(struct stream *s)
{
    struct ws *ws = stream_owner(s);

    if (ws->state == WS_OPEN && ws->events->on_drain)
        ws->events->on_drain(ws);
}

static void on_stream_eof(struct stream *s)
{
    ws_lose(stream_owner(s), err_new(ERR_CLOSED, "the peer hung up"));
}

static void on_stream_error(struct stream *s, struct err *why)
{
    struct ws *ws = stream_owner(s);

    log_debug("websocket lost", KV_ERR(why));
    ws_lose(ws, why);
}

static const struct stream_events stream_events = {
    .on_data = on_stream_data,
    .on_drain = on_stream_drain,
    .on_eof = on_stream_eof,
    .on_error = on_stream_error,
};

/* --- life --- */

/* Silence proves nothing while we do not read, or while the peer still takes the output queued
 * before our ping. */
static bool is_excused(struct ws *ws)
{
    size_t pending = stream_pending(ws->stream);
    uint64_t sent = ws->queued_bytes - pending;
    bool moving = pending && sent != ws->sent_mark;

    ws->sent_mark = sent;
    return ws->paused || moving;
}

static void on_tick(struct loop_timer *t)
{
    struct ws *ws = container_of(t, struct ws, timer);
    uint64_t now_ns = loop_now_ns(ws->loop), ping_ms = ws->config.ping_ms;

    if (is_excused(ws))
        note_life(ws);
    uint64_t silent_ms = (now_ns - ws->heard_ns) / NS_PER_MS;
    if (silent_ms < ping_ms) {
        loop_timer_start(ws->loop, t, ping_ms - silent_ms, on_tick);
    } else if (!ws->asked) {
        ws->asked = true;
        put_frame(ws, WS_FIN | WS_OP_PING, STR(""));
        loop_timer_start(ws->loop, t, ping_ms, on_tick);
    } else if (!ws->overdue) {
        ws->overdue = true;
        loop_timer_start(ws->loop, t, ping_ms < GRACE_MS ? ping_ms : GRACE_MS, on_tick);
    } else {
        ws_lose(ws, err_new(ERR_TIMEOUT, "no answer to a ping for %u ms", ws->config.ping_ms));
    }
}

static void on_close_deadline(struct loop_timer *t)
{
    struct ws *ws = container_of(t, struct ws, timer);

    ws_lose(ws, err_new(ERR_TIMEOUT, "the peer did not close within %u ms", ws->config.close_ms));
}

void ws_open(struct ws *ws, struct stream *stream, const struct ws_deflate_terms *terms)
{
    ws->state = WS_OPEN;
    ws->stream = stream;
    note_life(ws);
    ws->reader.terms = *terms;
    stream_set_idle(stream, 0);
    stream_set_out_limit(stream, SIZE_MAX / 2); /* has_room() is stricter */
    stream_set_events(stream, &stream_events, ws);
    loop_timer_start(ws->loop, &ws->timer, ws->config.ping_ms, on_tick);
    if (ws->paused)
        stream_pause(stream);
}

static fallible check_request(struct http_req *req)
{
    struct err *e = ws_check_request(&req->head);

    if (e && err_code(e) == ERR_UPGRADE) {
        http_reply_header(req, STR("Upgrade"), STR("websocket"));
        http_reply_header(req, STR("Sec-WebSocket-Version"), STR("13"));
    }
    return e;
}

fallible ws_accept(struct http_req *req, const struct ws_config *config,
                   const struct ws_events *events, void *owner, struct ws **ret_ws)
{
    struct str protocol = STR("");
    struct ws_deflate_terms terms = {0};
    own_done(buf) answer;

    buf_init(&answer, ANSWER_MAX);
    if (!req->server)
        return err_new(ERR_CLOSED, "the server is going down");
    TRY(check_request(req));
    if (!config || !config->no_deflate)
        TRY(ws_choose_deflate(&req->head, &terms));
    if (config && config->protocol && ws_offers_protocol(&req->head, str_of(config->protocol)))
        protocol = str_of(config->protocol);
    ws_put_answer(&answer, &req->head, protocol, &terms);
    TRY(buf_check(&answer));
    struct ws *ws = ws_new(http_server_net(req->server), WS_SERVER, config, events, owner);
    if (!ws)
        return err_no_memory();
    *ret_ws = ws;
    struct stream *stream = http_take_stream(req);
    if (!stream) {
        ws_lose(ws, err_new(ERR_CLOSED, "the peer hung up"));
        return NULL;
    }
    stream_write(stream, buf_str(&answer));
    ws_open(ws, stream, &terms);
    return NULL;
}

void *ws_owner(const struct ws *ws)
{
    return ws->owner;
}

size_t ws_pending(const struct ws *ws)
{
    return ws->stream ? stream_pending(ws->stream) : 0;
}

void ws_pause(struct ws *ws)
{
    ws->paused = ws->state <= WS_OPEN; /* a closing one reads on, for the peer's Close */
    if (ws->paused && ws->stream)
        stream_pause(ws->stream);
}

void ws_resume(struct ws *ws)
{
    if (ws->paused && ws->stream)
        stream_resume(ws->stream);
    ws->paused = false;
}

void ws_close(struct ws *ws, int code, struct str reason)
{
    if (ws->state == WS_CONNECTING) {
        ws_opening_free(take(&ws->opening));
        ws_lose(ws, err_new(ERR_CLOSED, "closed while connecting"));
    }
    if (ws->state != WS_OPEN)
        return;
    put_close(ws, code, reason);
    ws->state = WS_CLOSING;
    ws_resume(ws);
    loop_timer_start(ws->loop, &ws->timer, ws->config.close_ms, on_close_deadline);
}

void ws_abort(struct ws *ws)
{
    if (!ws)
        return;
    ws->silent = true;
    if (ws->state == WS_ENDED)
        return;
    if (ws->opening)
        ws_opening_free(take(&ws->opening));
    stream_close(ws->stream);
    ws_end(ws, WS_ABNORMAL, STR(""));
}
