// SPDX-License-Identifier: Apache-2.0
/* client_request.c — from a spec to the bytes of a request. Nothing a caller passes can add a line:
 * names are tokens, values hold no CR or LF, and the framing is ours alone. */
#include <stdio.h>

#include "net/url.h"
#include "out/client_inner.h"

#define WHAT_MAX 200 /* of a URL in errors */

static const struct str ours[] = {
    STR_INIT("content-length"),
    STR_INIT("transfer-encoding"),
};

static fallible check_headers(const struct http_call_spec *spec)
{
    for (size_t i = 0; i < spec->header_count; i++) {
        const struct http_header *h = &spec->headers[i];
        if (!http_is_token(h->name))
            return err_new(ERR_INVALID, "a header's name is not a token");
        if (!http_is_field_value(h->value))
            return err_new(ERR_INVALID, "header '" STR_FMT "' holds a control character",
                           STR_ARG(h->name));
        for (size_t j = 0; j < ARRAY_LEN(ours); j++)
            if (str_eq_nocase(h->name, ours[j]))
                return err_new(ERR_INVALID, "header '" STR_FMT "' is the client's own",
                               STR_ARG(h->name));
    }
    return NULL;
}

static bool has_header(const struct http_call_spec *spec, struct str name)
{
    for (size_t i = 0; i < spec->header_count; i++)
        if (str_eq_nocase(spec->headers[i].name, name))
            return true;
    return false;
}

static void put_framing(struct buf *b, const struct http_call_spec *spec)
{
    struct str m = spec->method;

    if (spec->stream_body && spec->body_length)
        buf_addf(b, "Content-Length: %llu\r\n", (unsigned long long)spec->body_length);
    else if (spec->stream_body)
        buf_add_cstr(b, "Transfer-Encoding: chunked\r\n");
    else if (spec->body.p || str_eq(m, STR("POST")) || str_eq(m, STR("PUT")) ||
             str_eq(m, STR("PATCH")))
        buf_addf(b, "Content-Length: %zu\r\n", spec->body.len);
}

static void put_head(struct buf *b, const struct http_call_spec *spec, const struct url *u)
{
    buf_add(b, spec->method);
    buf_add_char(b, ' ');
    if (str_eq(spec->method, STR("CONNECT"))) {
        url_put_host(b, u, true);
    } else {
        url_put_target(b, u);
    }
    buf_add_cstr(b, " HTTP/1.1\r\n");
    if (!has_header(spec, STR("host"))) {
        buf_add_cstr(b, "Host: ");
        url_put_host(b, u, false);
        buf_add_cstr(b, "\r\n");
    }
    for (size_t i = 0; i < spec->header_count; i++) {
        buf_add(b, spec->headers[i].name);
        buf_add_cstr(b, ": ");
        buf_add(b, spec->headers[i].value);
        buf_add_cstr(b, "\r\n");
    }
    put_framing(b, spec);
    buf_add_cstr(b, "\r\n");
}

/* The target of a call, and its name in errors, which repeats neither password nor query. */
static fallible keep_target(struct http_call *c, const struct http_call_spec *spec,
                            const struct url *u)
{
    struct arena *a = &c->arena;
    bool by_unix = spec->unix_path.len || str_eq(u->scheme, STR("unix"));
    struct str scheme = u->scheme, path = str_first(u->path, WHAT_MAX);

    c->method = arena_copy(a, spec->method);
    c->host = arena_copy(a, u->host);
    c->port = u->port;
    c->tls = url_is_tls(u);
    if (by_unix)
        c->unix_path = arena_copy(a, spec->unix_path.len ? spec->unix_path : u->host);
    c->key = by_unix ? arena_printf(a, "%sunix:" STR_FMT, c->tls ? "s" : "", STR_ARG(c->unix_path))
                     : arena_printf(a, STR_FMT ":" STR_FMT ":%u", STR_ARG(scheme), STR_ARG(c->host),
                                    c->port);
    if (str_eq(scheme, STR("unix")))
        c->what = arena_printf(a, STR_FMT " unix:" STR_FMT ":" STR_FMT, STR_ARG(c->method),
                               STR_ARG(u->host), STR_ARG(path));
    else
        c->what =
            arena_printf(a, STR_FMT " " STR_FMT "://" STR_FMT ":%u" STR_FMT, STR_ARG(c->method),
                         STR_ARG(scheme), STR_ARG(u->host), u->port, STR_ARG(path));
    return arena_check(a);
}

static fallible check_spec(const struct http_call_spec *spec, const struct url *u)
{
    if (!http_is_token(spec->method))
        return err_new(ERR_INVALID, "the method is not a token");
    if (str_eq(u->scheme, STR("ws")) || str_eq(u->scheme, STR("wss")))
        return err_new(ERR_INVALID, "a WebSocket URL is not called but connected to");
    if (u->userinfo.p)
        return err_new(ERR_INVALID, "credentials in a URL are not sent: use a header");
    if (spec->stream_body && spec->body.p)
        return err_new(ERR_INVALID, "a body is given and to be streamed as well");
    return check_headers(spec);
}

fallible call_prepare(struct http_call *c, const struct http_call_spec *spec)
{
    own_done(buf) head;
    struct url u;

    buf_init(&head, HTTP_MAX_HEAD);
    TRY(url_parse(spec->url, &u));
    TRY(check_spec(spec, &u));
    TRY(keep_target(c, spec, &u));
    put_head(&head, spec, &u);
    TRY_WRAP(buf_check(&head), "the head of the request");
    c->head = arena_copy(&c->arena, buf_str(&head));
    TRY(arena_check(&c->arena));
    c->body.limit_bytes = spec->body.len;
    buf_add(&c->body, spec->body);
    TRY(buf_check(&c->body));
    c->stream_body = spec->stream_body;
    c->chunked = spec->stream_body && !spec->body_length;
    c->length_left = spec->body_length;
    c->ended = !spec->stream_body;
    c->connect_ms = spec->connect_ms ? spec->connect_ms : 10000;
    c->idle_ms = spec->idle_ms ? spec->idle_ms : 60000;
    c->total_ms = spec->total_ms;
    c->max_body_bytes = spec->max_body_bytes ? spec->max_body_bytes : 64u << 20;
    return NULL;
}
