// SPDX-License-Identifier: Apache-2.0
/* ws_connect.c — the client's handshake: request and answer. */
#include "base/b64.h"
#include "base/mem.h"
#include "base/rng.h"
#include "net/http.h"
#include "net/url.h"
#include "net/ws_handshake.h"
#include "net/ws_inner.h"

#define CONNECT_MS  10000
#define REQUEST_MAX (64u << 10)
#define ARENA_BYTES (64u << 10)

struct ws_opening {
    struct ws *ws;
    struct stream *stream;
    struct arena arena; /* protocol and the head of the answer */
    struct ws_ask ask;  /* but for key and protocol used up once the request is made */
    struct buf request;
    size_t scanned;
};

void ws_opening_free(struct ws_opening *d)
{
    if (!d)
        return;
    stream_close(d->stream);
    buf_done(&d->request);
    arena_done(&d->arena);
    free(d);
}

static void opening_fail(struct ws_opening *d, struct err *why)
{
    struct ws *ws = d->ws;

    ws_opening_free(take(&ws->opening));
    ws_lose(ws, err_wrap(why, "open WebSocket"));
}

static fallible open_from(struct ws_opening *d, struct str head_bytes)
{
    struct http_head head;
    struct ws_deflate_terms terms;

    TRY(http_parse_response(&d->arena, head_bytes, STR("GET"), &head));
    TRY(ws_check_answer(&head, &d->ask, &terms));
    struct ws *ws = d->ws;
    ws_open(ws, take(&d->stream), &terms);
    ws_opening_free(take(&ws->opening));
    if (ws->events->on_open)
        ws->events->on_open(ws);
    return NULL;
}

static size_t on_opening_data(struct stream *s, struct str data)
{
    struct ws_opening *d = stream_owner(s);
    size_t end = 0;
    struct err *e = http_head_end(data, &d->scanned, &end);

    if (!e && !end)
        return 0;
    if (!e)
        e = open_from(d, str_first(data, end));
    if (e)
        opening_fail(d, e);
    return end;
}

static void on_opening_eof(struct stream *s)
{
    opening_fail(stream_owner(s), err_new(ERR_UPSTREAM, "the server hung up"));
}

static void on_opening_error(struct stream *s, struct err *why)
{
    opening_fail(stream_owner(s), why);
}

static const struct stream_events opening_events = {
    .on_data = on_opening_data,
    .on_eof = on_opening_eof,
    .on_error = on_opening_error,
};

static void on_connect_deadline(struct loop_timer *t)
{
    struct ws *ws = container_of(t, struct ws, timer);

    opening_fail(ws->opening, err_new(ERR_TIMEOUT, "nothing within %d ms", CONNECT_MS));
}

static bool headers_fit(struct str headers)
{
    struct str line;

    while (headers.len) {
        if (!str_cut(&headers, '\n', &line) || !str_ends(line, STR("\r")))
            return false;
        line.len--;
        ptrdiff_t colon = str_find_char(line, ':');
        if (colon < 0 || !http_is_token(str_first(line, (size_t)colon)) ||
            !http_is_field_value(str_trim(str_from(line, (size_t)colon + 1))))
            return false;
    }
    return true;
}

static fallible make_request(struct ws_opening *d, const struct url *url, struct str headers,
                             const struct ws_config *config)
{
    uint8_t raw[16];
    own_done(buf) host, target;

    buf_init(&host, REQUEST_MAX);
    buf_init(&target, REQUEST_MAX);
    url_put_host(&host, url, false);
    url_put_target(&target, url);
    d->ws->config.rng->fill(d->ws->config.rng, raw, sizeof raw);
    b64_encode(raw, sizeof raw, d->ask.key, false, true);
    if (config && config->protocol)
        d->ask.protocol = arena_copy(&d->arena, str_of(config->protocol));
    d->ask.deflate = !config || !config->no_deflate;
    d->ask.host = buf_str(&host);
    d->ask.target = buf_str(&target);
    d->ask.headers = headers;
    ws_put_request(&d->request, &d->ask);
    TRY(buf_check(&host));
    TRY(buf_check(&target));
    TRY(buf_check(&d->request));
    return arena_check(&d->arena);
}

static fallible check_url(const struct url *url)
{
    if (str_starts(url->scheme, STR("http")))
        return err_new(ERR_UNSUPPORTED,
                       "a WebSocket is reached by ws:, wss: or unix:, not " STR_FMT ":",
                       STR_ARG(url->scheme));
    if (url->userinfo.p)
        return err_new(ERR_INVALID, "credentials belong in a header, not in the URL");
    return NULL;
}

static fallible connect_begin(struct stream *s, struct str url_text, struct str headers,
                              const struct ws_config *config, const struct ws_events *events,
                              void *owner, struct ws **ret_ws)
{
    struct url url;

    TRY(url_parse(url_text, &url));
    TRY(check_url(&url));
    if (!headers_fit(headers))
        return err_new(ERR_INVALID, "headers are not 'Name: value' lines that end in CRLF");
    own(ws) ws = ws_new(stream_net(s), WS_CLIENT, config, events, owner);
    own(ws_opening) d = mem_try(sizeof *d);
    if (!ws || !d)
        return err_no_memory();
    d->ws = ws;
    arena_init(&d->arena, ARENA_BYTES);
    buf_init(&d->request, REQUEST_MAX);
    TRY_WRAP(make_request(d, &url, headers, config), "open WebSocket");
    d->stream = s;
    stream_set_events(s, &opening_events, d);
    stream_write(s, buf_str(&d->request));
    loop_timer_start(ws->loop, &ws->timer, CONNECT_MS, on_connect_deadline);
    ws->opening = take(&d);
    *ret_ws = take(&ws);
    return NULL;
}

fallible ws_connect(struct stream *s, struct str url, struct str headers,
                    const struct ws_config *config, const struct ws_events *events, void *owner,
                    struct ws **ret_ws)
{
    struct err *e = connect_begin(s, url, headers, config, events, owner, ret_ws);

    if (e)
        stream_close(s);
    return e;
}
