// SPDX-License-Identifier: Apache-2.0
/* log.c — the log of a remote sandbox. Its server has the log: each reader has a request there, in
 * events, so that places here are that server's.
 *
 * Text its reader has not taken is kept up to a bound; then the request is not read further. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net/sse.h"
#include "sandbox/follow.h"
#include "sandbox/remote/inner.h"
#include "wire/remote.h"

#define EVENT_BYTES   (1u << 20)
#define REFUSAL_BYTES (64u << 10)
#define WAITING_BYTES (64u << 10) /* beyond it the server is not read */
#define BEATS_MS      60000       /* without a byte; it says something every 15 s */
#define PLACE_HEADER  "x-croft-log-place"

struct piece { /* an event; its place is reached when all of it was taken */
    struct list link;
    struct sbx_place at;
    size_t len, taken;
    char text[];
};

struct reading {
    struct list link;
    struct remote_driver *driver;
    struct remote *remote; /* NULL: it was removed, its log is still read */
    struct sbx_follower *follower;
    struct sbx_log_from from;
    struct http_call *http; /* NULL: it has not run yet */
    int status;
    bool begun, ended; /* on_begin was called; the server told the end */
    struct sse_parser events;
    struct buf refusal;
    struct list pieces;
    size_t waiting; /* bytes of them */
    struct err *broken;
};

static void reading_free(struct reading *g)
{
    list_del(&g->link);
    if (g->http)
        http_call_cancel(take(&g->http));
    sse_parser_done(&g->events);
    buf_done(&g->refusal);
    LIST_EACH(p, &g->pieces, struct piece, link)
        free(p);
    err_free(g->broken);
    free(g);
}

static void log_end_follow(struct reading *g, struct err *e)
{
    sbx_follower_end(g->follower, e);
    err_free(e);
    reading_free(g);
}

static void log_begin(struct reading *g, const struct sbx_place *at)
{
    g->begun = true;
    g->follower->at = *at;
    g->follower->on_begin(g->follower);
}

/* --- what comes --- */

static fallible take_text(struct reading *g, struct str data)
{
    own_done(arena) a;
    struct json *one;
    struct str place, text;

    arena_init(&a, 16 * (size_t)EVENT_BYTES);
    TRY(json_parse(&a, data, NULL, &one));
    TRY(wire_decode_remote_said(one, &place, &text));
    struct sbx_place at;
    if (!sbx_place_parse(place, &at))
        return err_new(ERR_UPSTREAM, "'" STR_FMT "' is no place", STR_ARG(str_first(place, 80)));
    if (!text.len)
        return NULL;
    struct piece *p = mem_try(sizeof *p + text.len);
    if (!p)
        return err_no_memory();
    *p = (struct piece){.at = at, .len = text.len};
    memcpy(p->text, text.p, text.len);
    list_add(&g->pieces, &p->link);
    g->waiting += text.len;
    return NULL;
}

static void on_event(void *ctx, const struct sse_event *e)
{
    struct reading *g = ctx;

    if (str_eq(e->event, STR("end")))
        g->ended = true;
    else if (str_eq(e->event, STR("log")) && !g->broken)
        g->broken = take_text(g, e->data);
}

static void on_head(struct http_call *call, const struct http_head *head)
{
    struct reading *g = http_call_owner(call);
    struct sbx_place at = {0}; /* none: the log is empty */

    g->status = head->status;
    if (g->status != 200 || g->begun)
        return;
    sbx_place_parse(http_header_get(head, STR(PLACE_HEADER)), &at);
    log_begin(g, &at);
}

static void on_body(struct http_call *call, struct str piece)
{
    struct reading *g = http_call_owner(call);

    if (g->status != 200) {
        buf_add(&g->refusal, piece);
        return;
    }
    struct err *e = sse_parser_feed(&g->events, piece);
    if (!e)
        e = take(&g->broken);
    if (e) {
        log_end_follow(g, err_recode(err_wrap(e, "the log of the other server"), ERR_UPSTREAM));
        return;
    }
    if (g->waiting > WAITING_BYTES)
        http_call_pause(call);
    if (g->waiting)
        g->follower->on_more(g->follower); /* which may let go of it */
}

static fallible refusal_of(const struct reading *g)
{
    own_done(arena) a;
    struct json *body = NULL;

    arena_init(&a, 16 * (size_t)REFUSAL_BYTES);
    err_free(json_parse(&a, buf_str(&g->refusal), NULL, &body)); /* its status tells, then */
    struct err *e = remote_refusal(g->status, "the log", body);
    return e ? e : err_new(ERR_UPSTREAM, "the server answered a log with %d", g->status);
}

static void on_done(struct http_call *call, struct err *e)
{
    struct reading *g = http_call_owner(call);

    g->http = NULL;
    if (e)
        e = err_wrap(e, g->begun ? "the rest of the log" : "the server cannot be reached");
    else if (g->status != 200)
        e = refusal_of(g);
    else if (g->from.follow && !g->ended)
        e = err_new(ERR_UPSTREAM, "the server ended the log before the sandbox did");
    log_end_follow(g, e);
}

/* --- asking --- */

static fallible put_url(const struct reading *g, char *url, size_t size)
{
    char where[SBX_PLACE_MAX + 32] = "", place[SBX_PLACE_MAX];

    sbx_place_format(&g->from.place, place);
    if (g->from.has_place)
        snprintf(where, sizeof where, "&since=%s", place);
    else if (g->from.lines != UINT64_MAX)
        snprintf(where, sizeof where, "&tail=%llu", (unsigned long long)g->from.lines);
    int n = snprintf(url, size, STR_FMT "/croft/v1/sandboxes/%s/logs?follow=%s%s",
                     STR_ARG(g->driver->settings->url), g->remote->runtime_id,
                     g->from.follow ? "true" : "false", where);
    return n < (int)size ? NULL : err_new(ERR_INVALID, "the address of the server is too long");
}

static fallible log_ask(struct reading *g)
{
    static const struct http_call_events events = {
        .on_head = on_head, .on_body = on_body, .on_done = on_done};
    struct str key = g->driver->settings->key;
    const struct http_header headers[] = {
        {STR("Accept"), STR("text/event-stream")},
        {STR("X-API-Key"), key},
    };
    char url[512];

    TRY(put_url(g, url, sizeof url));
    const struct http_call_spec spec = {
        .method = STR("GET"),
        .url = str_of(url),
        .headers = headers,
        .header_count = key.len ? 2 : 1,
        .idle_ms = BEATS_MS,
        .max_body_bytes = UINT64_MAX,
    };
    return http_call_start(g->driver->client, &spec, &events, g, &g->http);
}

static struct reading *reading_new(struct remote *r, struct sbx_follower *f,
                                   const struct sbx_log_from *from)
{
    struct reading *g = mem_new(sizeof *g);

    *g = (struct reading){.driver = remote_driver_of(r), .remote = r, .follower = f, .from = *from};
    sse_parser_init(&g->events, EVENT_BYTES, on_event, g);
    buf_init(&g->refusal, REFUSAL_BYTES);
    list_init(&g->pieces);
    list_add(&g->driver->readings, &g->link);
    f->mine = g;
    f->open = true;
    return g;
}

/* One that never ran has an empty log; one that starts is followed when it runs. */
fallible remote_log_open(struct sbx_follower *f, const struct sbx_log_from *from)
{
    struct remote *r = container_of(f->sbx, struct remote, base);
    bool new = !r->runtime_id[0], starts = r->base.state.now == SBX_STARTING;

    if (new && r->there && !starts)
        return err_new(ERR_BUSY, "its server has not told yet what there is of sandbox '%s'",
                       r->base.id);
    struct reading *g = reading_new(r, f, from);
    struct err *e = NULL;
    if (new) {
        g->from.has_place = true;
        g->from.place = (struct sbx_place){0};
        log_begin(g, &g->from.place); /* it may be let go of in there, but for what ends below */
    } else if (!starts || !from->follow)
        e = log_ask(g);
    if (e) {
        f->open = false;
        reading_free(g);
    } else if (new && !from->follow)
        log_end_follow(g, NULL);
    return e;
}

void remote_log_moved(struct sbx *s)
{
    const struct remote *r = container_of(s, struct remote, base);
    bool over = s->state.now == SBX_STOPPED;

    if (s->state.now == SBX_STARTING)
        return;
    LIST_EACH(g, &remote_driver_of(r)->readings, struct reading, link) {
        if (g->remote != r || g->http)
            continue;
        struct err *e = over ? NULL : log_ask(g);
        if (e || over)
            log_end_follow(g, e);
    }
}

void remote_log_left(struct remote *r)
{
    LIST_EACH(g, &remote_driver_of(r)->readings, struct reading, link) {
        if (g->remote != r)
            continue;
        g->remote = NULL;
        if (!g->http)
            log_end_follow(g, NULL);
    }
}

void remote_drop_readings(struct remote_driver *d)
{
    LIST_EACH(g, &d->readings, struct reading, link)
        reading_free(g);
}

/* --- reading --- */

/* Whole characters of it, which begins with one. */
static struct str that_fits(struct str text, size_t room)
{
    if (text.len <= room)
        return text;
    while (room && ((unsigned char)text.p[room] & 0xc0) == 0x80)
        room--;
    return str_first(text, room);
}

void remote_log_next(struct sbx_follower *f, struct buf *out)
{
    struct reading *g = f->mine;

    LIST_EACH(p, &g->pieces, struct piece, link) {
        struct str text = str_from(str_n(p->text, p->len), p->taken);
        struct str part = that_fits(text, out->limit_bytes - out->len);
        buf_add(out, part);
        p->taken += part.len;
        g->waiting -= part.len;
        if (p->taken < p->len)
            break;
        f->at = p->at;
        list_del(&p->link);
        free(p);
    }
    if (g->http && g->waiting <= WAITING_BYTES)
        http_call_resume(g->http);
}

void remote_log_close(struct sbx_follower *f)
{
    reading_free(f->mine);
}

/* The end of it, told with the failure. */
void remote_logs(struct sbx *s, struct buf *out)
{
    const struct remote *r = container_of(s, struct remote, base);
    struct str words = str_of(r->last_words ? r->last_words : "");
    size_t room = out->limit_bytes - out->len;

    buf_add(out, words.len > room ? str_from(words, words.len - room) : words);
}
