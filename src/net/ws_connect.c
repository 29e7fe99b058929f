// SPDX-License-Identifier: Apache-2.0
/* ws_connect.c — the client's way to an open WebSocket: connection, request, answer. */
#include "base/b64.h"
#include "base/mem.h"
#include "base/rng.h"
#include "net/dial.h"
#include "net/http.h"
#include "net/url.h"
#include "net/ws_handshake.h"
#include "net/ws_inner.h"

#define CONNECT_MS  10000
#define REQUEST_MAX (64u << 10)
#define ARENA_BYTES (64u << 10)

struct ws_dial {
    struct ws *ws;
    struct net *net;
    struct dial *dial;     /* until there is a connection */
    struct stream *stream; /* from then on */
    struct arena arena;    /* host, protocol and the head of the answer */
    struct str host;       /* for the filter; .p NULL: none is wanted */
    struct ws_ask ask;     /* but for key and protocol used up once the request is made */
    struct buf request;
    size_t scanned;
};

void ws_dial_free(struct ws_dial *d)
{
    if (!d)
        return;
    dial_cancel(d->dial);
    stream_close(d->stream);
    buf_done(&d->request);
    arena_done(&d->arena);
    free(d);
}

static void dial_fail(struct ws_dial *d, struct err *why)
{
    struct ws *ws = d->ws;

    ws_dial_free(take(&ws->dial));
    ws_lose(ws, err_wrap(why, "open WebSocket"));
}

static fallible open_from(struct ws_dial *d, struct str head_bytes)
{
    struct http_head head;
    struct ws_deflate_terms terms;

    TRY(http_parse_response(&d->arena, head_bytes, STR("GET"), &head));
    TRY(ws_check_answer(&head, &d->ask, &terms));
    struct ws *ws = d->ws;
    ws_open(ws, take(&d->stream), &terms);
    ws_dial_free(take(&ws->dial));
    if (ws->events->on_open)
        ws->events->on_open(ws);
    return NULL;
}

static size_t on_dial_data(struct stream *s, struct str data)
{
    struct ws_dial *d = stream_owner(s);
    size_t end = 0;
    struct err *e = http_head_end(data, &d->scanned, &end);

    if (!e && !end)
        return 0;
    if (!e)
        e = open_from(d, str_first(data, end));
    if (e)
        dial_fail(d, e);
    return end;
}

static void on_dial_eof(struct stream *s)
{
    dial_fail(stream_owner(s), err_new(ERR_UPSTREAM, "the server hung up"));
}

static void on_dial_error(struct stream *s, struct err *why)
{
    dial_fail(stream_owner(s), why);
}

static const struct stream_events dial_events = {
    .on_data = on_dial_data,
    .on_eof = on_dial_eof,
    .on_error = on_dial_error,
};

static void on_dialed(void *owner, struct err *e, int fd)
{
    struct ws_dial *d = owner;
    const struct ws_config *config = &d->ws->config;

    d->dial = NULL;
    if (!e)
        e = stream_new(d->net, fd, &dial_events, d, &d->stream);
    if (!e && d->host.p)
        e = config->filter(config->filter_ctx, d->stream, d->host);
    if (e)
        dial_fail(d, e);
    else
        stream_write(d->stream, buf_str(&d->request));
}

static void on_connect_deadline(struct loop_timer *t)
{
    struct ws *ws = container_of(t, struct ws, timer);

    dial_fail(ws->dial, err_new(ERR_TIMEOUT, "nothing within %d ms", CONNECT_MS));
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

static fallible make_request(struct ws_dial *d, const struct url *url, struct str headers,
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
    if (url_is_tls(url))
        d->host = arena_copy(&d->arena, url->host);
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

static fallible check_url(const struct url *url, const struct ws_config *config)
{
    if (str_starts(url->scheme, STR("http")))
        return err_new(ERR_UNSUPPORTED,
                       "a WebSocket is reached by ws:, wss: or unix:, not " STR_FMT ":",
                       STR_ARG(url->scheme));
    if (url_is_tls(url) && !(config && config->filter))
        return err_new(ERR_UNSUPPORTED, "wss: needs TLS, which this client does not speak");
    if (url->userinfo.p)
        return err_new(ERR_INVALID, "credentials belong in a header, not in the URL");
    return NULL;
}

static fallible ws_connect_start(struct ws_dial *d, const struct url *url)
{
    struct dial_target target = {.host = url->host, .port = url->port, .timeout_ms = CONNECT_MS};

    if (str_eq(url->scheme, STR("unix")))
        target.unix_path = url->host;
    return dial_start(net_loop(d->net), &target, on_dialed, d, &d->dial);
}

fallible ws_connect(struct net *net, struct str url_text, struct str headers,
                    const struct ws_config *config, const struct ws_events *events, void *owner,
                    struct ws **ret_ws)
{
    struct url url;

    TRY(url_parse(url_text, &url));
    TRY(check_url(&url, config));
    if (!headers_fit(headers))
        return err_new(ERR_INVALID, "headers are not 'Name: value' lines that end in CRLF");
    own(ws) ws = ws_new(net, WS_CLIENT, config, events, owner);
    own(ws_dial) d = mem_try(sizeof *d);
    if (!ws || !d)
        return err_no_memory();
    d->ws = ws;
    d->net = net;
    arena_init(&d->arena, ARENA_BYTES);
    buf_init(&d->request, REQUEST_MAX);
    TRY_WRAP(make_request(d, &url, headers, config), "open WebSocket");
    TRY_WRAP(ws_connect_start(d, &url), "open WebSocket");
    loop_timer_start(ws->loop, &ws->timer, CONNECT_MS, on_connect_deadline);
    ws->dial = take(&d);
    *ret_ws = take(&ws);
    return NULL;
}
