// SPDX-License-Identifier: Apache-2.0
/* sse.c — streams, which MCP calls sessions: a client reads events from one request and posts its
 * messages in others. We answer, or the server that has the tool. A stream that goes cancels the
 * calls it waits for. */
#include "net/sse.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "guest/exec/parts/mcp/part.h"
#include "net/server.h"
#include "wire/mcp.h"
#include "wire/rpc.h"

#define STREAMS_MAX   64
#define ASKS_MAX      128 /* of one stream */
#define MESSAGE_BYTES (16u << 20)
#define PING_MS       15000
#define SSE_TYPE      STR("text/event-stream; charset=utf-8")

struct mcp_stream {
    struct mcp_part *part;
    struct http_req *req;
    struct list link;
    struct list asks;
    unsigned ask_count;
    bool listed; /* the client has a list of tools, which may change */
    char id[RNG_HEX_LEN + 1];
};

struct ask { /* a request of the client that waits for its answer */
    struct mcp_stream *stream;
    struct list link;
    struct mcp_call call;
    bool is_call; /* else it waits for the list of tools */
    struct arena arena;
    struct rpc m;
};

static void ask_free(struct ask *k)
{
    list_del(&k->link);
    k->stream->ask_count--;
    arena_done(&k->arena);
    free(k);
}

/* --- one stream --- */

static void mcp_stream_free(struct mcp_stream *s)
{
    LIST_EACH(k, &s->asks, struct ask, link) {
        if (k->is_call)
            mcp_call_cancel(&k->call);
        ask_free(k);
    }
    list_del(&s->link);
    s->part->stream_count--;
    free(s);
}

static void on_stream_gone(struct http_req *req)
{
    mcp_stream_free(req->user);
    http_reply_abort(req);
}

static void send_event(struct mcp_stream *s, struct str event, const struct buf *data)
{
    own_done(buf) out;

    buf_init(&out, (size_t)4 * MESSAGE_BYTES);
    sse_put(&out, STR(""), event, buf_str(data));
    if (!buf_failed(data) && !buf_failed(&out))
        http_reply_write(s->req, buf_str(&out));
}

static void send_message(struct mcp_stream *s, const struct rpc *m)
{
    own_done(buf) text;

    buf_init(&text, MESSAGE_BYTES);
    rpc_put(&text, m);
    if (buf_failed(&text)) {
        buf_reset(&text);
        rpc_put(&text, &(struct rpc){.kind = RPC_ERROR, .id = m->id, .raw = RPC_TOO_LARGE});
    }
    send_event(s, STR("message"), &text);
}

static void send_answer(struct mcp_stream *s, enum rpc_kind kind, const struct json *id,
                        struct str raw)
{
    send_message(s, &(struct rpc){.kind = kind, .id = id, .raw = raw});
}

static void on_ping(struct loop_timer *t)
{
    struct mcp_part *p = container_of(t, struct mcp_part, ping);

    LIST_EACH(s, &p->streams, struct mcp_stream, link)
        http_reply_write(s->req, STR(": ping\n\n"));
    if (p->stream_count)
        loop_timer_start(p->exec->loop, &p->ping, PING_MS, on_ping);
}

fallible mcp_handle_sse(struct http_req *req)
{
    struct mcp_part *p = req->owner;
    own_done(buf) place;

    buf_init(&place, 256);
    if (mcp_is_empty(p->servers))
        return err_new(ERR_NOT_FOUND, "Not Found");
    if (str_eq(req->head.method, STR("HEAD"))) { /* it has no body for events */
        http_reply(req, 200, SSE_TYPE, STR(""));
        return NULL;
    }
    if (p->stream_count >= STREAMS_MAX)
        return err_new(ERR_LIMIT, "%d sessions are open already", STREAMS_MAX);
    struct mcp_stream *s = mem_try(sizeof *s);
    if (!s)
        return err_no_memory();
    s->part = p;
    s->req = req;
    list_init(&s->asks);
    list_add(&p->streams, &s->link);
    p->stream_count++;
    rng_hex(rng_system(), s->id);
    req->user = s;
    req->on_gone = on_stream_gone;
    http_reply_header(req, STR("Cache-Control"), STR("no-store"));
    http_reply_header(req, STR("X-Accel-Buffering"), STR("no"));
    http_reply_begin(req, 200, SSE_TYPE, HTTP_LENGTH_UNKNOWN);
    buf_addf(&place, STR_FMT "/messages/?session_id=%s",
             STR_ARG(str_first(req->path, req->path.len - strlen("/sse"))), s->id);
    send_event(s, STR("endpoint"), &place);
    if (!p->ping.loop)
        loop_timer_start(p->exec->loop, &p->ping, PING_MS, on_ping);
    return NULL;
}

/* --- what it asks --- */

static void put_tools(struct mcp_stream *s, const struct json *id)
{
    own_done(buf) text;
    struct jw w;

    buf_init(&text, MESSAGE_BYTES);
    jw_init(&w, &text, JW_WEB);
    mcp_put_tools(s->part->servers, &w);
    s->listed = true;
    bool whole = !buf_failed(&text);
    send_answer(s, whole ? RPC_RESULT : RPC_ERROR, id, whole ? buf_str(&text) : RPC_TOO_LARGE);
}

static void sse_initialize(struct mcp_stream *s, const struct rpc *m)
{
    static const char *const versions[] = {"2025-06-18", "2025-03-26", "2024-11-05"};
    struct str asked = json_get_str(m->params, "protocolVersion", STR(""));
    const char *version = versions[0];
    own_done(buf) text;
    struct jw w;

    for (size_t i = 0; i < ARRAY_LEN(versions); i++)
        if (str_eq(asked, str_of(versions[i])))
            version = versions[i];
    buf_init(&text, 1024);
    jw_init(&w, &text, JW_WEB);
    wire_put_mcp_initialized(&w, version);
    send_answer(s, RPC_RESULT, m->id, buf_str(&text));
}

/* A failed call has a result too: the model reads it. */
static void send_failure(struct mcp_stream *s, const struct json *id, const struct err *why)
{
    own_done(buf) text;
    struct jw w;

    buf_init(&text, 64u << 10);
    jw_init(&w, &text, JW_WEB);
    wire_put_mcp_failure(&w, str_of(err_text(why)));
    send_answer(s, RPC_RESULT, id, buf_str(&text));
}

static void on_call_done(struct mcp_call *c, const struct rpc *answer, const struct err *why)
{
    struct ask *k = container_of(c, struct ask, call);

    if (answer) {
        struct rpc m = *answer;
        m.id = k->m.id;
        send_message(k->stream, &m);
    } else {
        send_failure(k->stream, k->m.id, why);
    }
    ask_free(k);
}

/* With the token of the client again. */
static void on_progress(struct mcp_call *c, const struct json *params)
{
    struct ask *k = container_of(c, struct ask, call);
    const struct json *token = json_get(json_get(k->m.params, STR("_meta")), STR("progressToken"));
    own_done(buf) text;
    struct jw w;

    buf_init(&text, MESSAGE_BYTES);
    if (!token)
        return;
    jw_init(&w, &text, JW_WEB);
    JW_OBJECT(&w, NULL)
        for (const struct json *v = params->first; v; v = v->next) {
            jw_key(&w, v->key);
            jw_value(&w, NULL, str_eq(v->key, STR("progressToken")) ? token : v);
        }
    send_message(k->stream, &(struct rpc){.kind = RPC_NOTE,
                                          .method = STR("notifications/progress"),
                                          .raw = buf_str(&text)});
}

static void start_call(struct ask *k)
{
    k->call.done = on_call_done;
    k->call.progress = on_progress;
    own(err) e = mcp_call_start(k->stream->part->servers, &k->call, k->m.params);
    k->is_call = !e;
    if (!e)
        return;
    send_failure(k->stream, k->m.id, e);
    ask_free(k);
}

static void sse_cancel(struct mcp_stream *s, const struct rpc *m)
{
    const struct json *id = json_get(m->params, STR("requestId"));

    LIST_EACH(k, &s->asks, struct ask, link)
        if (rpc_same_id(k->m.id, id)) {
            if (k->is_call)
                mcp_call_cancel(&k->call);
            ask_free(k);
            return;
        }
}

/* Takes k over. */
static void on_message(struct ask *k)
{
    struct mcp_stream *s = k->stream;
    const struct rpc *m = &k->m;

    if (m->kind == RPC_REQUEST && str_eq(m->method, STR("tools/call"))) {
        start_call(k);
        return;
    }
    if (m->kind == RPC_REQUEST && str_eq(m->method, STR("tools/list"))) {
        if (!mcp_is_settled(s->part->servers))
            return; /* mcp_streams_changed answers */
        put_tools(s, m->id);
    } else if (m->kind == RPC_REQUEST && str_eq(m->method, STR("initialize"))) {
        sse_initialize(s, m);
    } else if (m->kind == RPC_REQUEST &&
               (str_eq(m->method, STR("ping")) || str_eq(m->method, STR("logging/setLevel")))) {
        send_answer(s, RPC_RESULT, m->id, STR("{}"));
    } else if (m->kind == RPC_REQUEST) {
        send_answer(s, RPC_ERROR, m->id, RPC_NO_METHOD);
    } else if (m->kind == RPC_NOTE && str_eq(m->method, STR("notifications/cancelled"))) {
        sse_cancel(s, m);
    }
    ask_free(k);
}

/* --- its messages --- */

static bool is_hex_id(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (str_digit(s.p[i]) > 15)
            return false;
    return s.len == RNG_HEX_LEN;
}

static fallible find_stream(struct http_req *req, struct mcp_stream **ret_stream)
{
    struct str id = http_req_query(req, "session_id");

    if (!id.p)
        return err_new(ERR_INVALID, "session_id is required");
    if (!is_hex_id(id))
        return err_new(ERR_INVALID, "Invalid session ID");
    const struct mcp_part *p = req->owner;
    LIST_EACH(s, &p->streams, struct mcp_stream, link)
        if (str_eq(str_of(s->id), id)) {
            *ret_stream = s;
            return NULL;
        }
    return err_new(ERR_NOT_FOUND, "Could not find session");
}

static fallible read_message(struct mcp_stream *s, struct str body, struct ask **ret_ask)
{
    if (s->ask_count >= ASKS_MAX)
        return err_new(ERR_LIMIT, "%d requests of this session are under way", ASKS_MAX);
    struct ask *k = mem_try(sizeof *k);
    if (!k)
        return err_no_memory();
    k->stream = s;
    arena_init(&k->arena, (size_t)8 * MESSAGE_BYTES);
    list_add(&s->asks, &k->link);
    s->ask_count++;
    struct str text = arena_copy(&k->arena, body);
    struct err *e = text.p ? rpc_parse(&k->arena, text, &k->m) : arena_check(&k->arena);
    if (e) {
        err_free(e);
        ask_free(k);
        return err_new(ERR_INVALID, "Could not parse message");
    }
    *ret_ask = k;
    return NULL;
}

fallible mcp_handle_message(struct http_req *req)
{
    struct mcp_stream *s = NULL;
    struct ask *k = NULL;
    own(err) e = find_stream(req, &s);

    if (!e)
        e = read_message(s, req->body, &k);
    http_reply(req, e ? err_http_status(err_code(e)) : 202, STR("text/plain"),
               str_of(e ? err_text(e) : "Accepted"));
    if (!e)
        on_message(k);
    return NULL;
}

/* --- what all of them hear --- */

void mcp_streams_changed(struct mcp_part *p)
{
    if (!mcp_is_settled(p->servers))
        return;
    LIST_EACH(s, &p->streams, struct mcp_stream, link) {
        if (s->listed)
            send_message(s, &(struct rpc){.kind = RPC_NOTE,
                                          .method = STR("notifications/tools/list_changed")});
        LIST_EACH(k, &s->asks, struct ask, link)
            if (!k->is_call) {
                put_tools(s, k->m.id);
                ask_free(k);
            }
    }
}

void mcp_streams_note(struct mcp_part *p, const struct rpc *note)
{
    LIST_EACH(s, &p->streams, struct mcp_stream, link)
        send_message(s, note);
}

void mcp_streams_close(struct mcp_part *p)
{
    loop_timer_stop(&p->ping);
    LIST_EACH(s, &p->streams, struct mcp_stream, link) {
        struct http_req *req = s->req;
        req->on_gone = NULL;
        mcp_stream_free(s);
        http_reply_end(req);
    }
}
