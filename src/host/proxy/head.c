// SPDX-License-Identifier: Apache-2.0
/* head.c — heads on their way through. Headers between two machines stay behind, and so do our
 * keys. The sandbox learns the client's address and the name it used. Framing is made anew. */
#include "base/hash.h"
#include "host/proxy/inner.h"
#include "net/local.h"
#include "net/url.h"

static const struct str hop_by_hop[] = {
    STR_INIT("connection"),
    STR_INIT("keep-alive"),
    STR_INIT("te"),
    STR_INIT("trailer"),
    STR_INIT("transfer-encoding"),
    STR_INIT("upgrade"),
    STR_INIT("proxy-connection"),
    STR_INIT("proxy-authorization"),
    STR_INIT("content-length"),
    STR_INIT("proxy-authenticate"),
};

/* Request headers that we set ourselves, or that are not for the sandbox. */
static const struct str not_inside[] = {
    STR_INIT("x-api-key"),         STR_INIT("x-forwarded-for"),    STR_INIT("x-forwarded-host"),
    STR_INIT("x-forwarded-proto"), STR_INIT("x-forwarded-prefix"), STR_INIT("forwarded"),
    STR_INIT("x-request-id"),
};

static bool is_one_of(struct str name, const struct str *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].len == name.len && str_eq_nocase(name, list[i]))
            return true;
    return false;
}

/* Does a Connection header name it? The usual values name nothing. */
static bool is_named(const struct http_head *h, struct str name)
{
    for (size_t i = 0; i < h->header_count; i++) {
        struct str value = h->headers[i].value;
        if (h->headers[i].name.len == 10 && str_eq_nocase(h->headers[i].name, STR("connection")) &&
            !str_eq_nocase(value, STR("keep-alive")) && !str_eq_nocase(value, STR("close")) &&
            !str_eq_nocase(value, STR("upgrade")) && http_has_token(value, name))
            return true;
    }
    return false;
}

static bool stays_behind(const struct http_head *h, struct str name)
{
    return is_one_of(name, hop_by_hop, ARRAY_LEN(hop_by_hop)) || is_named(h, name);
}

/* A key of croft's, as a bearer: other programs' are theirs. */
static bool is_our_bearer(const struct proxy_config *config, const struct http_header *h)
{
    if (h->name.len != 13 || !str_eq_nocase(h->name, STR("authorization")) || h->value.len < 8 ||
        !str_eq_nocase(str_first(h->value, 7), STR("bearer ")))
        return false;
    struct str secret = str_trim(str_from(h->value, 7));
    return str_starts(secret, STR("croft_")) ||
           (config->is_key && config->is_key(config->ctx, secret));
}

static void put_line(struct buf *b, struct str name, struct str value)
{
    buf_add(b, name);
    buf_add(b, STR(": "));
    buf_add(b, value);
    buf_add(b, STR("\r\n"));
}

/* --- in --- */

/* A key that was changed outside; the sandbox's own may not be shown. */
static struct str key_inside(struct proxy_target *t, struct str shown)
{
    if (hash_equal(shown, str_of(t->key))) {
        void (*fn)(struct proxy_target * t) = take(&t->on_key);
        if (fn)
            fn(t);
        return str_of(t->inner_key);
    }
    return hash_equal(shown, str_of(t->inner_key)) ? STR("") : shown;
}

static struct str header_inside(const struct call *c, struct str shown)
{
    struct proxy_target *t = c->target;

    return t->takes_old && t->takes_old(t, c->req, shown) ? str_of(t->inner_key)
                                                          : key_inside(t, shown);
}

/* As a server inside reads it; what cannot be decoded is read as it stands. */
static struct str head_decoded(const struct call *c, struct str s)
{
    struct str plain = s;

    err_free(url_decode(&c->req->arena, s, true, &plain));
    return plain;
}

/* One parameter of the query; the key may be written with escapes, as its name may. VS Code's token
 * is the key to newer clients. */
static void put_param(struct buf *b, const struct call *c, struct str one)
{
    static const struct str names[] = {STR_INIT("session_api_key"), STR_INIT("tkn")};
    struct str value = one, name;

    if (!str_cut(&value, '=', &name) ||
        !is_one_of(head_decoded(c, name), names, ARRAY_LEN(names))) {
        buf_add(b, one);
        return;
    }
    struct str shown = head_decoded(c, value), inside = key_inside(c->target, shown);
    buf_add(b, name);
    buf_add_char(b, '=');
    buf_add(b, inside.p == shown.p ? value : inside);
}

static void put_query(struct buf *b, const struct call *c)
{
    struct str rest = c->req->query, one;

    if (!c->target->inner_key) {
        buf_add(b, rest);
        return;
    }
    for (bool more = true; more;) {
        more = str_cut(&rest, '&', &one);
        put_param(b, c, one);
        if (more)
            buf_add_char(b, '&');
    }
}

static void put_request_headers(struct buf *b, const struct call *c, const struct http_head *h)
{
    bool rekey = c->target->inner_key != NULL;

    for (size_t i = 0; i < h->header_count; i++) {
        const struct http_header *one = &h->headers[i];
        bool key = one->name.len == 17 && str_eq_nocase(one->name, STR("x-session-api-key"));
        if (!stays_behind(h, one->name) && !(key && c->inside) && /* it is the server's, only */
            !is_one_of(one->name, not_inside, ARRAY_LEN(not_inside)) &&
            !is_our_bearer(&c->p->config, one))
            put_line(b, one->name, rekey && key ? header_inside(c, one->value) : one->value);
    }
}

/* "127.0.0.1:5123" without its port; "unix" is an unknown one. */
static struct str peer_address(struct str peer)
{
    size_t n = peer.len;

    while (n && peer.p[n - 1] != ':')
        n--;
    return n ? str_first(peer, n - 1) : STR("unknown");
}

/* A peer on this machine may be another proxy and is believed; no other is. */
static void put_forwarded(struct buf *b, const struct call *c, const struct proxy_name *name)
{
    struct str peer = http_req_peer(c->req);
    bool believed = str_eq(peer, STR("unix")) || local_is_name(peer);
    bool tls = c->p->config.tls && c->req->server != c->p->server;
    const struct {
        struct str name, ours;
    } rows[] = {
        {STR("X-Forwarded-Host"), http_req_header(c->req, STR("host"))},
        {STR("X-Forwarded-Proto"), tls ? STR("https") : STR("http")},
        {STR("X-Forwarded-Prefix"), name->prefix},
    };
    struct str before = http_req_header(c->req, STR("x-forwarded-for"));

    buf_add(b, STR("X-Forwarded-For: "));
    if (believed && before.len) {
        buf_add(b, before);
        buf_add(b, STR(", "));
    }
    buf_add(b, peer_address(peer));
    buf_add(b, STR("\r\n"));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct str theirs = http_req_header(c->req, rows[i].name);
        bool keep = believed && theirs.len && !(i == 2 && rows[i].ours.len);
        if (keep || rows[i].ours.len)
            put_line(b, rows[i].name, keep ? theirs : rows[i].ours);
    }
}

static void put_framing(struct buf *b, const struct http_head *h)
{
    if (h->framing == HTTP_CHUNKED)
        buf_add(b, STR("Transfer-Encoding: chunked\r\n"));
    else if (h->framing == HTTP_LENGTH || http_header_get(h, STR("content-length")).p)
        buf_addf(b, "Content-Length: %llu\r\n", (unsigned long long)h->length);
    if (h->upgrade) {
        buf_add(b, STR("Connection: Upgrade\r\n"));
        put_line(b, STR("Upgrade"), http_header_get(h, STR("upgrade")));
    }
}

fallible head_to_sandbox(const struct call *c, const struct proxy_name *name, struct str *ret_head)
{
    const struct http_head *h = &c->req->head;
    struct buf *b = &c->p->scratch;

    buf_reset(b);
    buf_add(b, h->method);
    buf_add_char(b, ' ');
    buf_add(b, name->path);
    if (c->req->query.len) {
        buf_add_char(b, '?');
        put_query(b, c);
    }
    buf_add(b, STR(" HTTP/1.1\r\n"));
    if (!http_header_get(h, STR("host")).p) /* HTTP/1.0 need not have one */
        buf_add(b, STR("Host: localhost\r\n"));
    put_request_headers(b, c, h);
    if (http_req_id(c->req).len)
        put_line(b, STR("X-Request-ID"), http_req_id(c->req));
    put_forwarded(b, c, name);
    put_framing(b, h);
    buf_add(b, STR("\r\n"));
    TRY_WRAP(buf_check(b), "the head of the request");
    *ret_head = arena_copy(&c->req->arena, buf_str(b));
    return arena_check(&c->req->arena);
}

static struct str without_slash(struct str path)
{
    while (path.len && path.p[path.len - 1] == '/')
        path.len--;
    return path;
}

/* Our own head, so it is as it should be: a line, then fields, then an empty line. */
fallible head_to_far(const struct call *c, struct str *head)
{
    struct buf *b = &c->p->scratch;
    struct str rest = *head, line;
    struct url u;

    if (!up_is_far(c, &u))
        return NULL;
    buf_reset(b);
    str_cut(&rest, ' ', &line);
    buf_add(b, line);
    buf_add_char(b, ' ');
    buf_add(b, without_slash(u.path));
    str_cut(&rest, '\n', &line);
    buf_add(b, line);
    buf_add(b, STR("\nHost: "));
    url_put_host(b, &u, false);
    buf_add(b, STR("\r\n"));
    while (rest.len) {
        str_cut(&rest, '\n', &line);
        if (line.len >= 5 && str_eq_nocase(str_first(line, 5), STR("host:")))
            continue;
        buf_add(b, line);
        buf_add_char(b, '\n');
    }
    TRY_WRAP(buf_check(b), "the head of the request");
    *head = arena_copy(&c->req->arena, buf_str(b));
    return arena_check(&c->req->arena);
}

/* --- out --- */

/* A path of the sandbox's is one below the prefix to the client. */
static struct str client_location(const struct call *c, struct str value)
{
    struct url u;

    if (up_is_far(c, &u) && str_starts(value, without_slash(u.path)))
        value = str_from(value, without_slash(u.path).len);
    if (!c->prefix.len || !str_starts(value, STR("/")) || str_starts(value, STR("//")))
        return value;
    return arena_printf(&c->req->arena, STR_FMT STR_FMT, STR_ARG(c->prefix), STR_ARG(value));
}

/* Puts a cookie's path below the sandbox's. Cookies know no ports and no sandboxes: one for "/"
 * would go to every other sandbox of this host, and to the API.
 *
 * Clients then refuse a cookie named "__Host-…", which must be for a whole host. */
static struct str client_cookie(const struct call *c, struct str value)
{
    struct arena *a = &c->req->arena;
    struct str path, new;

    if (!c->prefix.len)
        return value;
    if (!name_cookie_path(value, &path) || !str_starts(path, STR("/"))) {
        bool above = c->req->path.len <= c->prefix.len; /* else theirs is below the prefix */
        return above
                   ? arena_printf(a, STR_FMT "; Path=" STR_FMT, STR_ARG(value), STR_ARG(c->prefix))
                   : value;
    }
    new = client_location(c, path);
    while (new.len > 1 && str_ends(new, STR("/")) && path.len == 1)
        new.len--; /* of "/": all below, and itself */
    struct str before = str_first(value, (size_t)(path.p - value.p));
    struct str after = str_from(value, before.len + path.len);
    return arena_printf(a, STR_FMT STR_FMT STR_FMT, STR_ARG(before), STR_ARG(new), STR_ARG(after));
}

static struct str client_value(const struct call *c, const struct http_header *h)
{
    if (h->name.len == 8 && str_eq_nocase(h->name, STR("location")))
        return client_location(c, h->value);
    if (h->name.len == 10 && str_eq_nocase(h->name, STR("set-cookie")))
        return client_cookie(c, h->value);
    if (c->prefix.len && h->name.len == 22 &&
        str_eq_nocase(h->name, STR("service-worker-allowed"))) /* not the pages of all others */
        return arena_printf(&c->req->arena, STR_FMT "/", STR_ARG(c->prefix));
    return h->value;
}

/* The client hears the id that we gave the request. */
static bool is_our_id(const struct call *c, struct str name)
{
    return c->req->id.p && name.len == 12 && str_eq_nocase(name, STR("x-request-id"));
}

void head_to_client(const struct call *c, const struct http_head *h)
{
    http_reply_foreign(c->req, h->reason);
    for (size_t i = 0; i < h->header_count; i++) {
        const struct http_header *one = &h->headers[i];
        if (stays_behind(h, one->name) || is_our_id(c, one->name))
            continue;
        http_reply_header(c->req, one->name, client_value(c, one));
    }
}

struct str head_of_upgrade(const struct call *c, const struct http_head *h)
{
    struct buf *b = &c->p->scratch;

    buf_reset(b);
    buf_add(b, STR("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"));
    put_line(b, STR("Upgrade"), http_header_get(h, STR("upgrade")));
    for (size_t i = 0; i < h->header_count; i++)
        if (!stays_behind(h, h->headers[i].name) && !is_our_id(c, h->headers[i].name))
            put_line(b, h->headers[i].name, client_value(c, &h->headers[i]));
    if (c->req->id.p)
        put_line(b, STR("x-request-id"), c->req->id);
    buf_add(b, STR("\r\n"));
    return buf_str(b);
}
