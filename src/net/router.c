// SPDX-License-Identifier: Apache-2.0
/* router.c — a tree of path segments; a static segment wins over a parameter, a parameter over a
 * rest. CORS as browsers need it. */
#include "net/router.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "net/server.h"

#define MAX_DEPTH  32
#define MAX_PARAMS 8

struct entry { /* one method of one path */
    const struct route *route;
    void *owner;
    struct entry *next;
    struct str names[MAX_PARAMS];
    size_t name_count;
};

struct node {
    struct str segment;
    struct node *kids; /* static children, sorted */
    size_t kid_count;
    struct node *param, *rest;
    struct entry *entries;
};

struct router {
    struct router_config config;
    struct node root;
};

struct router *router_new(const struct router_config *config)
{
    struct router *r = mem_new(sizeof *r);

    if (config)
        r->config = *config;
    return r;
}

static void node_clear(struct node *n)
{
    for (size_t i = 0; i < n->kid_count; i++)
        node_clear(&n->kids[i]);
    free(n->kids);
    for (struct node **sub = &n->param; sub; sub = sub == &n->param ? &n->rest : NULL)
        if (*sub) {
            node_clear(*sub);
            free(*sub);
        }
    while (n->entries) {
        struct entry *e = n->entries;
        n->entries = e->next;
        free(e);
    }
}

void router_free(struct router *r)
{
    if (!r)
        return;
    node_clear(&r->root);
    free(r);
}

/* The place of segment among the sorted kids, or where it belongs. */
static size_t kid_place(const struct node *n, struct str segment, bool *ret_found)
{
    size_t lo = 0, hi = n->kid_count;

    *ret_found = false;
    while (lo < hi && !*ret_found) {
        size_t mid = (lo + hi) / 2;
        int order = str_cmp(n->kids[mid].segment, segment);
        if (order < 0)
            lo = mid + 1;
        else
            hi = mid;
        if (order == 0) {
            *ret_found = true;
            lo = mid;
        }
    }
    return lo;
}

static struct node *kid_add(struct node *n, struct str segment)
{
    bool found;
    size_t at = kid_place(n, segment, &found);

    if (found)
        return &n->kids[at];
    struct node *kids = mem_new((n->kid_count + 1) * sizeof *kids);
    if (n->kid_count) {
        memcpy(kids, n->kids, at * sizeof *kids);
        memcpy(kids + at + 1, n->kids + at, (n->kid_count - at) * sizeof *kids);
    }
    kids[at] = (struct node){.segment = segment};
    free(n->kids);
    n->kids = kids;
    n->kid_count++;
    return &kids[at];
}

static struct node *sub_node(struct node **where)
{
    if (!*where)
        *where = mem_new(sizeof **where);
    return *where;
}

static void add_one(struct router *r, const struct route *route, void *owner)
{
    struct str rest = str_of(route->pattern), segment;
    struct node *n = &r->root;
    struct entry *e = mem_new(sizeof *e);

    assert(str_starts(rest, STR("/")));
    rest = str_from(rest, 1);
    for (bool more = true; more;) {
        more = str_cut(&rest, '/', &segment);
        if (!str_starts(segment, STR("{"))) {
            n = kid_add(n, segment);
            continue;
        }
        assert(e->name_count < MAX_PARAMS && str_ends(segment, STR("}")));
        bool takes_rest = str_ends(segment, STR("...}"));
        assert(!takes_rest || !more);
        n = sub_node(takes_rest ? &n->rest : &n->param);
        e->names[e->name_count++] = str_n(segment.p + 1, segment.len - (takes_rest ? 5 : 2));
    }
    for (const struct entry *other = n->entries; other; other = other->next)
        assert(strcmp(other->route->method, route->method) != 0);
    e->route = route;
    e->owner = owner;
    e->next = n->entries;
    n->entries = e;
}

void router_add(struct router *r, const struct route *routes, size_t count, void *owner)
{
    for (size_t i = 0; i < count; i++)
        add_one(r, &routes[i], owner);
}

struct match {
    struct http_req *req;
    struct str segments[MAX_DEPTH]; /* decoded */
    struct str raw[MAX_DEPTH];      /* from here to the end of the path, as sent */
    size_t count;
    struct str values[MAX_PARAMS];
    struct err *error;
};

static const struct node *router_walk(struct match *m, const struct node *n, size_t at,
                                      size_t values)
{
    const struct node *hit = NULL;
    bool found;

    if (at == m->count)
        return n->entries ? n : NULL;
    size_t place = kid_place(n, m->segments[at], &found);
    if (found)
        hit = router_walk(m, &n->kids[place], at + 1, values);
    if (!hit && !m->error && n->param && m->segments[at].len && values < MAX_PARAMS) {
        m->values[values] = m->segments[at];
        hit = router_walk(m, n->param, at + 1, values + 1);
    }
    if (!hit && !m->error && n->rest && values < MAX_PARAMS) {
        m->error = url_decode(&m->req->arena, m->raw[at], false, &m->values[values]);
        hit = m->error ? NULL : n->rest;
    }
    return hit;
}

static fallible router_split(const struct router *r, struct http_req *req, struct match *m)
{
    struct str rest = req->path, one;

    m->req = req;
    for (bool more = str_cut(&rest, '/', &one); more;) {
        struct str from_here = rest;
        more = str_cut(&rest, '/', &one);
        if (r->config.collapse_slashes && !one.len && more)
            continue;
        if (m->count == MAX_DEPTH) { /* only a rest can take it */
            m->raw[MAX_DEPTH - 1] =
                str_n(m->raw[MAX_DEPTH - 1].p,
                      (size_t)(req->path.p + req->path.len - m->raw[MAX_DEPTH - 1].p));
            break;
        }
        m->raw[m->count] = from_here;
        m->segments[m->count] = one;
        if (str_find_char(one, '%') >= 0)
            TRY(url_decode(&req->arena, one, false, &m->segments[m->count]));
        m->count++;
    }
    return NULL;
}

static const struct entry *router_pick(const struct node *n, struct str method)
{
    const struct entry *get = NULL;

    for (const struct entry *e = n->entries; e; e = e->next) {
        if (str_eq(str_of(e->route->method), method))
            return e;
        if (strcmp(e->route->method, "GET") == 0)
            get = e;
    }
    return str_eq(method, STR("HEAD")) ? get : NULL;
}

static bool origin_allowed(const struct router *r, struct str origin)
{
    for (const char *const *o = r->config.cors_origins; o && *o; o++)
        if (strcmp(*o, "*") == 0 || str_eq(str_of(*o), origin))
            return true;
    if (!r->config.cors_localhost)
        return false;
    struct url u;
    struct err *e = url_parse(origin, &u);
    bool local = !e && (str_eq(u.host, STR("localhost")) || str_eq(u.host, STR("127.0.0.1")));
    err_free(e);
    return local;
}

static bool any_origin(const struct router *r)
{
    const char *const *o = r->config.cors_origins;
    return o && *o && strcmp(*o, "*") == 0 && !r->config.cors_credentials;
}

void router_put_headers(const struct router *r, struct http_req *req)
{
    if (!r->config.cors_origins && !r->config.cors_localhost)
        return;
    struct str origin = http_req_header(req, STR("origin"));
    if (!origin.p || !origin_allowed(r, origin))
        return;
    http_reply_header(req, STR("access-control-allow-origin"), any_origin(r) ? STR("*") : origin);
    if (r->config.cors_credentials)
        http_reply_header(req, STR("access-control-allow-credentials"), STR("true"));
    if (!any_origin(r))
        http_reply_header(req, STR("vary"), STR("Origin"));
}

static void put_allow(struct http_req *req, const struct node *n)
{
    struct buf list;
    buf_init(&list, 256);
    for (const struct entry *e = n->entries; e; e = e->next) {
        buf_addf(&list, "%s%s", list.len ? ", " : "", e->route->method);
        if (strcmp(e->route->method, "GET") == 0)
            buf_add_cstr(&list, ", HEAD");
    }
    http_reply_header(req, STR("allow"), buf_str(&list));
    buf_done(&list);
}

/* A preflight is answered the same for every path, because it shows no key. */
static bool router_preflight(const struct router *r, struct http_req *req)
{
    struct str method = http_req_header(req, STR("access-control-request-method"));
    struct str origin = http_req_header(req, STR("origin"));

    if (!str_eq(req->head.method, STR("OPTIONS")) || !method.p || !origin.p ||
        (!r->config.cors_origins && !r->config.cors_localhost))
        return false;
    if (!origin_allowed(r, origin)) {
        http_reply(req, 400, STR("text/plain; charset=utf-8"), STR("Disallowed CORS origin"));
        return true;
    }
    http_reply_header(req, STR("access-control-allow-methods"),
                      STR("DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT"));
    http_reply_header(req, STR("access-control-max-age"), STR("600"));
    struct str wanted = http_req_header(req, STR("access-control-request-headers"));
    if (wanted.p)
        http_reply_header(req, STR("access-control-allow-headers"), wanted);
    http_reply(req, 200, STR("text/plain; charset=utf-8"), STR("OK"));
    return true;
}

/* The path with or without its last slash, when that one exists. */
static bool router_redirect(const struct router *r, struct http_req *req, struct match *m)
{
    bool slash = m->count && !m->segments[m->count - 1].len;
    struct match other = *m;

    if (!r->config.redirect_slashes || m->count == MAX_DEPTH || req->path.len < 2)
        return false;
    if (slash) {
        other.count--;
    } else {
        other.raw[other.count] = STR("");
        other.segments[other.count++] = STR("");
    }
    if (!router_walk(&other, &r->root, 0, 0)) {
        err_free(other.error);
        return false;
    }
    struct str path = slash ? str_first(req->path, req->path.len - 1) : req->path;
    struct str to = arena_printf(&req->arena, STR_FMT "%s%s" STR_FMT, STR_ARG(path),
                                 slash ? "" : "/", req->query.len ? "?" : "", STR_ARG(req->query));
    /* "//host" would send the client to another server, and browsers read "\\" as "/" */
    if (!to.p || str_starts(to, STR("//")) || str_starts(to, STR("/\\")))
        return false;
    http_reply_header(req, STR("location"), to);
    http_reply(req, 307, STR(""), STR(""));
    return true;
}

static fallible set_params(struct http_req *req, const struct entry *e, const struct match *m)
{
    req->params = arena_alloc(&req->arena, (e->name_count + 1) * sizeof *req->params);
    if (!req->params)
        return arena_check(&req->arena);
    for (size_t i = 0; i < e->name_count; i++)
        req->params[i] = (struct http_param){e->names[i], m->values[i]};
    req->param_count = e->name_count;
    return NULL;
}

fallible router_find(const struct router *r, struct http_req *req, const struct route **ret_route)
{
    struct match m; /* its arrays are filled as far as count says */

    m.count = 0;
    m.error = NULL;
    *ret_route = NULL;
    router_put_headers(r, req);
    if (router_preflight(r, req))
        return NULL;
    if (str_eq(req->path, STR("*"))) { /* OPTIONS *: about the server, not about a path */
        http_reply_header(req, STR("allow"), STR("DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT"));
        http_reply(req, 204, STR(""), STR(""));
        return NULL;
    }
    TRY(router_split(r, req, &m));
    const struct node *n = router_walk(&m, &r->root, 0, 0);
    if (m.error)
        return m.error;
    const struct entry *e = n ? router_pick(n, req->head.method) : NULL;
    if (!e) /* a client without a key does not learn which paths exist */
        TRY(r->config.auth ? r->config.auth(r->config.ctx, req) : NULL);
    if (!n && router_redirect(r, req, &m))
        return NULL;
    if (!n)
        return err_new(ERR_NOT_FOUND, "Not Found");
    if (!e) {
        put_allow(req, n);
        return err_new(ERR_METHOD, "Method Not Allowed");
    }
    TRY(set_params(req, e, &m));
    req->owner = e->owner;
    *ret_route = e->route;
    return NULL;
}

fallible router_check_auth(const struct router *r, struct http_req *req, const struct route *route)
{
    if (!r->config.auth || (route->flags & ROUTE_OPEN))
        return NULL;
    return r->config.auth(r->config.ctx, req);
}
