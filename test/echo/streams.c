// SPDX-License-Identifier: Apache-2.0
/* streams.c — the echo server's uploads, server-sent events and WebSockets. */
#include "test/echo/echo.h"

#include <stdio.h>

#include "test/echo/inner.h"
#include "net/router.h"
#include "net/server.h"
#include "net/sse.h"
#include "net/upload.h"
#include "net/ws.h"

/* --- upload: a form to disk --- */

static void on_upload_gone(struct http_req *req)
{
    upload_free(req->user);
    http_reply_abort(req);
}

static void put_files(struct jw *w, const struct upload *u)
{
    JW_OBJECT(w, NULL) {
        JW_ARRAY(w, "files")
            for (const struct upload_file *f = upload_files(u); f; f = f->next)
                JW_OBJECT(w, NULL) {
                    jw_str(w, "field", f->field);
                    jw_str(w, "name", f->name);
                    jw_uint(w, "bytes", f->size_bytes);
                }
        JW_OBJECT(w, "fields")
            for (const struct upload_field *f = upload_fields(u); f; f = f->next) {
                jw_key(w, f->name);
                jw_str(w, NULL, f->value);
            }
    }
}

static fallible upload_piece(struct http_req *req, struct str piece)
{
    struct upload *u = req->user;
    own_done(buf) out;
    struct jw w;

    buf_init(&out, 4u << 20);
    if (piece.len)
        return upload_feed(u, piece);
    TRY(upload_end(u));
    jw_init(&w, &out, JW_WEB);
    put_files(&w, u);
    TRY(buf_check(&out));
    upload_free(u);
    req->on_gone = NULL;
    http_reply_json(req, 200, buf_str(&out));
    return NULL;
}

static fallible on_upload_body(struct http_req *req, struct str piece)
{
    struct upload *u = req->user;
    struct err *e = upload_piece(req, piece);

    if (e) {
        req->on_gone = NULL;
        req->on_body = NULL;
        upload_free(u);
    }
    return e;
}

static fallible handle_upload(struct http_req *req)
{
    struct echo *e = req->owner;
    struct upload *u;

    if (e->dir_fd < 0)
        return err_new(ERR_NOT_FOUND, "no directory takes uploads; start with --dir DIR");
    TRY(upload_new(http_req_header(req, STR("content-type")),
                   &(struct upload_config){.dir = e->dir_fd}, &u));
    req->user = u;
    req->on_gone = on_upload_gone;
    req->on_body = on_upload_body;
    return NULL;
}

/* --- server-sent events: a count, as fast as the peer reads --- */

struct ticks {
    uint64_t next, count;
};

static void on_ticks_drain(struct http_req *req)
{
    struct ticks *t = req->user;
    own_done(buf) out;
    char number[24];

    buf_init(&out, 64u << 10);
    while (t->next < t->count && http_reply_pending(req) < STREAM_HIGH) {
        int n = snprintf(number, sizeof number, "%llu", (unsigned long long)t->next++);
        buf_reset(&out);
        sse_put(&out, str_n(number, (size_t)n), STR("tick"), str_n(number, (size_t)n));
        http_reply_write(req, buf_str(&out));
    }
    if (t->next < t->count)
        return;
    req->on_drain = NULL;
    req->on_gone = NULL;
    http_reply_end(req);
}

static fallible handle_ticks(struct http_req *req)
{
    struct ticks *t = arena_new(&req->arena, struct ticks);
    struct str last = http_req_header(req, STR("last-event-id")),
               count = http_req_query(req, "count");

    if (!t)
        return arena_check(&req->arena);
    t->count = 10;
    if (count.p && !str_to_u64(count, &t->count))
        return err_new(ERR_UNPROCESSABLE, "query parameter 'count' must be a number");
    if (last.p && str_to_u64(last, &t->next))
        t->next++;
    req->user = t;
    req->on_drain = on_ticks_drain;
    req->on_gone = http_reply_abort;
    http_reply_header(req, STR("cache-control"), STR("no-store"));
    http_reply_begin(req, 200, STR("text/event-stream"), HTTP_LENGTH_UNKNOWN);
    on_ticks_drain(req);
    return NULL;
}

/* --- WebSocket: whatever comes goes back --- */

static void on_echo_message(struct ws *ws, enum ws_kind kind, struct str data)
{
    ws_send(ws, kind, data);
    if (ws_pending(ws) >= STREAM_HIGH)
        ws_pause(ws); /* a peer that does not read is not read from either */
}

static void on_echo_drain(struct ws *ws)
{
    ws_resume(ws);
}

static void on_echo_close(struct ws *ws, int code, struct str reason)
{
    (void)ws;
    (void)code;
    (void)reason;
}

static const struct ws_events echo_events = {
    .on_message = on_echo_message,
    .on_drain = on_echo_drain,
    .on_close = on_echo_close,
};

static fallible handle_ws(struct http_req *req)
{
    struct ws *ws;
    struct ws_config config = {.message_bytes = 64u << 20, .queue_bytes = 80u << 20};

    return ws_accept(req, &config, &echo_events, NULL, &ws);
}

static const struct route routes[] = {
    {"POST", "/upload", handle_upload, .flags = ROUTE_STREAM},
    {"GET", "/events", handle_ticks},
    {"GET", "/ws", handle_ws},
};

void echo_add_streams(struct router *r, struct echo *e)
{
    router_add(r, routes, ARRAY_LEN(routes), e);
}
