// SPDX-License-Identifier: Apache-2.0
/* live_sse.c — see live_sse.h. */
#include "guest/live/live_sse.h"

#include <stdio.h>

#include "base/b64.h"
#include "base/json.h"
#include "base/utf8.h"
#include "guest/live/live.h"
#include "loop/loop.h"
#include "net/server.h"
#include "net/sse.h"

#define EVENT_BYTES (16u << 10)       /* of output in one event */
#define CODED_BYTES (8 * EVENT_BYTES) /* as JSON a byte takes up to six */
#define BEAT_MS     15000             /* a comment: silence would look like a dead server */

struct watch { /* in the arena of its request */
    struct live_reader reader;
    struct http_req *req;
    struct loop *loop;
    bool text;
    struct loop_timer beat;
};

static void on_beat(struct loop_timer *t)
{
    struct watch *w = container_of(t, struct watch, beat);

    http_reply_write(w->req, STR(":\n\n"));
    loop_timer_start(w->loop, t, BEAT_MS, on_beat);
}

static void send_event(struct watch *w, struct str event, struct str data)
{
    own_done(buf) out;
    char id[24];

    buf_init(&out, CODED_BYTES + 1024);
    snprintf(id, sizeof id, "%llu", (unsigned long long)w->reader.at);
    sse_put(&out, str_of(id), event, data);
    http_reply_write(w->req, buf_str(&out));
    loop_timer_start(w->loop, &w->beat, BEAT_MS, on_beat);
}

/* Cuts off a last character that is not complete yet. */
static struct str whole_characters(struct str s)
{
    for (size_t n = 1; n <= 3 && n <= s.len; n++) {
        unsigned char c = (unsigned char)s.p[s.len - n];
        if ((c & 0xc0) == 0x80)
            continue;
        size_t want = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
        return want > n ? str_first(s, s.len - n) : s;
    }
    return s;
}

static size_t on_bytes(struct live_reader *r, struct str bytes)
{
    struct watch *w = container_of(r, struct watch, reader);
    own_done(buf) data;
    own_done(buf) clean;
    struct jw jw;

    buf_init(&data, CODED_BYTES);
    buf_init(&clean, CODED_BYTES);
    if (http_reply_pending(w->req) >= STREAM_HIGH)
        return 0; /* on_drain */
    bytes = str_first(bytes, EVENT_BYTES);
    if (w->text) {
        bytes = whole_characters(bytes);
        utf8_add_replaced(&clean, bytes);
        jw_init(&jw, &data, JW_WEB);
        jw_str(&jw, NULL, buf_str(&clean));
    } else {
        b64_add(&data, bytes);
    }
    if (bytes.len == 0)
        return 0;
    uint64_t at = r->at;
    r->at += bytes.len; /* the id names what follows */
    send_event(w, STR("output"), buf_str(&data));
    r->at = at;
    return bytes.len;
}

static void close_watch(struct watch *w)
{
    loop_timer_stop(&w->beat);
    w->req->on_gone = w->req->on_hangup = NULL;
    w->req->on_drain = NULL;
}

static void on_end(struct live_reader *r, uint64_t lost_bytes)
{
    struct watch *w = container_of(r, struct watch, reader);
    char data[96];

    if (lost_bytes)
        snprintf(data, sizeof data, "{\"reason\":\"too slow\",\"lost_bytes\":%llu}",
                 (unsigned long long)lost_bytes);
    send_event(w, STR("end"), lost_bytes ? str_of(data) : STR("{\"reason\":\"closed\"}"));
    close_watch(w);
    http_reply_end(w->req);
}

static void on_drain(struct http_req *req)
{
    live_read(&((struct watch *)req->user)->reader);
}

void live_sse_gone(struct http_req *req)
{
    struct watch *w = req->user;

    live_detach(&w->reader);
    close_watch(w);
    http_reply_abort(req);
}

/* The place to begin at; the header, which a browser sends by itself, wins. */
static fallible read_start(struct http_req *req, uint64_t *ret_at)
{
    struct str after = http_req_header(req, STR("last-event-id"));

    if (!after.p)
        after = http_req_query(req, "after");
    if (after.p && !str_to_u64(after, ret_at))
        return err_new(ERR_UNPROCESSABLE, "'after' and Last-Event-ID must be the id of an event");
    return NULL;
}

static fallible read_encoding(struct http_req *req, bool *ret_text)
{
    struct str encoding = http_req_query(req, "encoding");

    *ret_text = str_eq(encoding, STR("text"));
    if (encoding.p && !*ret_text && !str_eq(encoding, STR("base64")))
        return err_new(ERR_UNPROCESSABLE, "query parameter 'encoding' must be base64 or text");
    return NULL;
}

fallible live_sse(struct live *l, struct loop *loop, struct http_req *req)
{
    struct watch *w = arena_new(&req->arena, struct watch);
    uint64_t from = l->start;
    char lost[24];

    if (str_eq(req->head.method, STR("HEAD"))) {
        http_reply(req, 200, STR("text/event-stream"), STR(""));
        return NULL;
    }
    if (!w)
        return arena_check(&req->arena);
    *w = (struct watch){
        .req = req, .loop = loop, .reader = {.on_bytes = on_bytes, .on_end = on_end}};
    TRY(read_start(req, &from));
    TRY(read_encoding(req, &w->text));
    w->reader.at = from;
    TRY(live_attach(l, &w->reader));
    req->user = w;
    req->on_drain = on_drain;
    req->on_gone = req->on_hangup = live_sse_gone; /* a reader sends no more */
    http_reply_header(req, STR("cache-control"), STR("no-store"));
    http_reply_begin(req, 200, STR("text/event-stream"), HTTP_LENGTH_UNKNOWN);
    if (from < w->reader.at) {
        snprintf(lost, sizeof lost, "%llu", (unsigned long long)(w->reader.at - from));
        send_event(w, STR("gap"), str_of(lost));
    } else {
        on_beat(&w->beat); /* the head leaves at once */
    }
    live_read(&w->reader);
    return NULL;
}
