// SPDX-License-Identifier: Apache-2.0
/* proxy.c — targets, their listeners and states. See proxy.h; a request's way is in call.c. */
#include "host/proxy/proxy.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/rng.h"
#include "host/ops/request_id.h"
#include "host/proxy/inner.h"
#include "net/local.h"
#include "net/router.h"

#define PORTS       12000 /* of the default range */
#define CLIENTS_MAX 16384 /* connections to all listeners together */

static uint32_t or_default(uint32_t value, uint32_t fallback)
{
    return value ? value : fallback;
}

/* Takes the ports below those of outgoing connections. Without room there the kernel chooses. */
static void default_ports(struct proxy_config *c)
{
    own_done(buf) text;
    struct str rest, word;
    uint64_t first;

    buf_init(&text, 256);
    struct err *e = fd_read_file("/proc/sys/net/ipv4/ip_local_port_range", &text);
    rest = str_trim(buf_str(&text));
    str_cut(&rest, '\t', &word);
    if (!e && str_to_u64(word, &first) && first > PORTS + 1024 && first <= UINT16_MAX) {
        c->port_first = (uint16_t)(first - PORTS);
        c->port_last = (uint16_t)(first - 1);
    }
    err_free(e);
}

static void fill_config(struct proxy_config *c)
{
    if (!c->port_first)
        default_ports(c);
    c->address = c->address ? c->address : "127.0.0.1";
    c->most_parked = or_default(c->most_parked, 1024);
    c->park_ms = or_default(c->park_ms, 30000);
    c->start_ms = or_default(c->start_ms, 60000);
    c->connect_ms = or_default(c->connect_ms, 10000);
    c->answer_ms = or_default(c->answer_ms, 6u * 3600 * 1000);
    c->idle_ms = or_default(c->idle_ms, 4000);
    c->closed_ms = or_default(c->closed_ms, 60000);
    c->retry_after_s = or_default(c->retry_after_s, 1);
}

const struct proxy_stats *proxy_stats(const struct proxy *p)
{
    return &p->stats;
}

struct proxy_target *proxy_find(const struct proxy *p, struct str id)
{
    return map_get(&p->by_id, id);
}

/* --- requests --- */

/* Pages of other sites must not reach a sandbox by a name that leads here, nor by ours. */
static bool host_is_ours(const struct proxy *p, struct str host)
{
    char label[NAME_ID_MAX];
    struct str found;

    return local_is_name(host) || name_by_host(host, p->config.domain, label, &found);
}

static fallible check_names(const struct proxy *p, const struct http_req *req)
{
    struct str host = http_req_header(req, STR("host"));
    struct str origin = http_req_header(req, STR("origin"));
    ptrdiff_t at = origin.p ? str_find(origin, STR("://")) : -1;

    if (host.p && !host_is_ours(p, host))
        return err_new(ERR_FORBIDDEN, "Host '" STR_FMT "' is not this machine",
                       STR_ARG(str_first(host, 80)));
    if (origin.p && !host_is_ours(p, at < 0 ? STR("") : str_from(origin, (size_t)at + 3)))
        return err_new(ERR_FORBIDDEN, "Origin '" STR_FMT "' is not this machine",
                       STR_ARG(str_first(origin, 80)));
    return NULL;
}

/* The port inside that a request is for; 0: its server. */
static uint16_t inside_of(const struct proxy_target *t, const struct proxy_name *n)
{
    static const uint16_t usual[PROXY_SERVICES] = {60001, 12000, 12001};

    if (n->service < 0)
        return 0;
    return t->services[n->service] ? t->services[n->service] : usual[n->service];
}

/* Whether id names another sandbox. A port may have belonged to another one before: its old urls
 * must not lead to this one.
 *
 * No path of our own server looks like an id. A program's paths may: there only ids of existing
 * sandboxes count. */
static bool is_of_another(const struct proxy *p, const struct proxy_target *t, struct str id)
{
    if (proxy_find(p, id))
        return true;
    return t->address.unix_path[0] && !t->address.tunnel_port && name_is_id(id);
}

/* A request of an own listener; the target may have gone since its connection was made. "/ID" in
 * front is taken off: clients find VS Code and workers below it, and others leave it away. */
static fallible on_listener_request(struct http_req *req)
{
    struct proxy *p = req->owner;
    struct proxy_target *t = map_get(&p->by_tag, str_n(&req->tag, sizeof req->tag));
    struct proxy_name name = {.service = -1, .path = req->path};

    TRY(check_names(p, req));
    if (!t) {
        http_reply_header(req, STR("connection"), STR("close"));
        return err_new(ERR_NOT_FOUND, "this sandbox is gone");
    }
    struct proxy_name first;
    if (name_by_first(req->path, &first)) {
        if (str_eq(first.id, str_of(t->id)))
            name = first;
        else if (is_of_another(p, t, first.id))
            return err_new(ERR_NOT_FOUND, "no such sandbox here");
    }
    return call_take(p, t, req, inside_of(t, &name), &name);
}

static fallible check_target(const struct http_req *req)
{
    return name_check_target(req->head.target, http_req_header(req, STR("host")));
}

static fallible listener_intercept(void *proxy, struct http_req *req,
                                   const struct route **ret_route)
{
    static const struct route route = {.handle = on_listener_request,
                                       .flags = ROUTE_STREAM | ROUTE_OPEN | ROUTE_EXPECT};

    request_id_set(req);
    req->owner = proxy;
    *ret_route = &route;
    return check_target(req);
}

static struct proxy_target *find_label(const struct proxy *p, struct str label,
                                       struct proxy_name *n)
{
    struct proxy_target *t = proxy_find(p, label);
    struct str id;
    int service;

    n->id = label;
    if (t || !name_split_label(label, &service, &id))
        return t;
    n->id = id;
    n->service = service;
    return proxy_find(p, id);
}

/* False: the request names no sandbox at all. *ret_target may be NULL all the same. */
static bool find_named(const struct proxy *p, struct http_req *req, struct proxy_name *n,
                       struct proxy_target **ret_target)
{
    struct str host = http_req_header(req, STR("host")), label;
    char bytes[NAME_ID_MAX];

    if (host.p && name_by_host(host, p->config.domain, bytes, &label)) {
        *n = (struct proxy_name){.service = -1, .path = req->path};
        *ret_target = find_label(p, label, n);
        n->id = STR(""); /* its bytes do not last */
        return true;
    }
    if (host.p && name_is_below(host, p->config.domain)) {
        *ret_target = NULL; /* the names below are sandboxes', also those that none can have */
        return true;
    }
    if (name_by_path(req->path, n)) {
        *ret_target = proxy_find(p, n->id);
        return true;
    }
    *ret_target = name_by_first(req->path, n) ? proxy_find(p, n->id) : NULL;
    return *ret_target != NULL; /* else it is a path of ours, or unknown */
}

static fallible on_main_request(struct http_req *req)
{
    struct proxy *p = req->owner;
    struct proxy_target *t = NULL;
    struct proxy_name n;

    if (!find_named(p, req, &n, &t))
        return err_new(ERR_NOT_FOUND, "Not Found");
    if (!t)
        return err_new(ERR_NOT_FOUND, "no such sandbox");
    return call_take(p, t, req, inside_of(t, &n), &n);
}

fallible proxy_intercept(struct proxy *p, struct http_req *req, const struct route **ret_route)
{
    static const struct route route = {.handle = on_main_request,
                                       .flags = ROUTE_STREAM | ROUTE_OPEN | ROUTE_EXPECT};
    struct proxy_target *t;
    struct proxy_name n;

    TRY(check_target(req));
    if (find_named(p, req, &n, &t)) {
        request_id_set(req);
        req->owner = p;
        *ret_route = &route;
    }
    return NULL;
}

/* --- listeners --- */

static fallible open_port(struct proxy *p, uint16_t port, int *ret_fd)
{
    char address[80];
    bool v6 = strchr(p->config.address, ':') != NULL;

    snprintf(address, sizeof address, v6 ? "[%s]:%u" : "%s:%u", p->config.address, port);
    struct err *e = listen_open(str_of(address), ret_fd);
    return e && err_errno(e) == EADDRINUSE ? err_recode(e, ERR_CONFLICT) : e;
}

/* The next free one of the range; those used before come last. */
static fallible open_next(struct proxy *p, int *ret_fd)
{
    const struct proxy_config *c = &p->config;

    for (unsigned i = c->port_first; i <= c->port_last; i++) {
        uint16_t port = p->next_port;
        p->next_port = port == c->port_last ? c->port_first : port + 1;
        struct err *e = open_port(p, port, ret_fd);
        if (!e || err_code(e) != ERR_CONFLICT)
            return e;
        err_free(e);
    }
    return err_new(ERR_LIMIT, "all ports from %u to %u are taken", c->port_first, c->port_last);
}

static fallible open_any(struct proxy *p, int *ret_fd)
{
    if (!p->config.port_first)
        return open_port(p, 0, ret_fd);
    struct err *e = open_next(p, ret_fd);
    if (!e || err_code(e) != ERR_LIMIT || !p->closed_count)
        return e;
    err_free(e);
    closed_ports_drop_all(p);
    return open_next(p, ret_fd);
}

static uint16_t port_of(int fd)
{
    struct sockaddr_storage a = {0};
    socklen_t len = sizeof a;

    if (getsockname(fd, (struct sockaddr *)&a, &len) < 0)
        return 0;
    return ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a)->sin6_port
                                         : ((struct sockaddr_in *)&a)->sin_port);
}

static fallible open_listener(struct proxy *p, uint16_t port, struct proxy_port *ret)
{
    struct proxy_port new = {.tag = ++p->last_tag};
    int fd = -1;

    if (port)
        closed_port_drop(p, port);
    TRY(port ? open_port(p, port, &fd) : open_any(p, &fd));
    new.port = port_of(fd);
    TRY(http_server_listen_as(p->server, fd, new.tag, &new.listener));
    *ret = new;
    return NULL;
}

static void on_more_ports(struct loop_timer *t)
{
    struct proxy *p = container_of(t, struct proxy, more_ports);
    struct err *e = NULL;

    while (!e && p->port_count < SPARE_PORTS && p->port_count < p->config.spare_ports) {
        e = open_listener(p, 0, &p->ports[p->port_count]);
        p->port_count += !e;
    }
    err_free(e); /* a start that needs one is told */
}

/* Takes an open listener, if any port will do or the port is among them. The timer opens the next
 * ones: only after the start that needs this one was answered. */
static fallible take_port(struct proxy *p, uint16_t port, struct proxy_port *ret)
{
    unsigned i = p->port_count;

    if (!p->more_ports.loop)
        loop_timer_start(p->loop, &p->more_ports, SPARE_MS, on_more_ports);
    while (i && port && p->ports[i - 1].port != port)
        i--;
    if (!i)
        return open_listener(p, port, ret);
    *ret = p->ports[i - 1];
    p->ports[i - 1] = p->ports[--p->port_count];
    return NULL;
}

/* --- targets --- */

static bool is_added(const struct proxy *p, const struct proxy_target *t)
{
    return proxy_find(p, str_of(t->id)) == t;
}

fallible proxy_add(struct proxy *p, struct proxy_target *t, uint16_t port)
{
    struct proxy_port at;

    TRY(take_port(p, port, &at));
    t->listener = at.listener;
    t->tag = at.tag;
    t->port = at.port;
    t->open = t->idlers = t->waiting = 0;
    t->woken = false;
    t->last_ns = loop_now_ns(p->loop);
    list_init(&t->calls);
    list_init(&t->parked);
    list_init(&t->relays);
    list_init(&t->idle);
    list_add(&p->targets, &t->link);
    map_put(&p->by_id, str_of(t->id), t);
    map_put(&p->by_tag, str_n(&t->tag, sizeof t->tag), t);
    return NULL;
}

static void cut_calls(struct list *calls)
{
    while (!list_empty(calls))
        call_cut(container_of(calls->next, struct call, link),
                 err_new(ERR_NOT_FOUND, "this sandbox is gone"));
}

static void let_go(struct proxy_target *t)
{
    cut_calls(&t->parked);
    cut_calls(&t->calls);
    relay_close_all(t);
    up_drop_idle(t);
}

void proxy_remove(struct proxy *p, struct proxy_target *t)
{
    if (!is_added(p, t))
        return;
    t->state = PROXY_GONE;
    map_del(&p->by_tag, str_n(&t->tag, sizeof t->tag));
    closed_port_add(p, t->listener, t->port);
    map_del(&p->by_id, str_of(t->id));
    list_del(&t->link);
    let_go(t);
    t->port = 0;
}

static void wake_parked(struct proxy_target *t)
{
    struct list waiting;

    list_init(&waiting); /* what is parked again meanwhile must not come round in this turn */
    while (!list_empty(&t->parked)) {
        struct list *first = t->parked.next;
        list_del(first);
        list_add(&waiting, first);
    }
    while (!list_empty(&waiting)) {
        struct call *c = container_of(waiting.next, struct call, link);
        list_del(&c->link);
        list_add(&t->parked, &c->link);
        call_go_on(c);
    }
}

void proxy_set_state(struct proxy *p, struct proxy_target *t, enum proxy_state state)
{
    if (t->state == state)
        return;
    t->state = state;
    if (!is_added(p, t))
        return;
    t->woken = false;
    if (state == PROXY_GONE) {
        let_go(t);
        return;
    }
    if (state == PROXY_OPEN)
        call_resumed(t);
    else
        up_drop_idle(t); /* their age is not seen inside while it stands still */
    wake_parked(t);
}

/* --- the proxy --- */

static void on_listener_answer(void *ctx, const struct http_req *req, int status, uint64_t ns)
{
    const struct proxy *p = ctx;

    if (p->watch.on_answer)
        p->watch.on_answer(p->watch.ctx, req, status, ns);
}

fallible proxy_new(const struct proxy_config *config, struct proxy **ret_proxy)
{
    if (config->port_first > config->port_last)
        return err_new(ERR_INVALID, "ports %u to %u are no range", config->port_first,
                       config->port_last);
    struct proxy *p = mem_new(sizeof *p);
    p->config = *config;
    fill_config(&p->config);
    p->net = config->dialer->net;
    p->loop = net_loop(p->net);
    /* Servers beside each other should not meet: one's ports are free while it restarts. */
    unsigned range = p->config.port_last - p->config.port_first + 1u;
    p->next_port = (uint16_t)(p->config.port_first + rng_u64(rng_system()) % range);
    map_init(&p->by_id);
    map_init(&p->by_tag);
    list_init(&p->targets);
    buf_init(&p->scratch, HTTP_MAX_HEAD + 4096);
    struct http_server_config sc = {
        .ctx = p,
        .intercept = listener_intercept,
        .on_answer = on_listener_answer,
        .limits = {.connections = CLIENTS_MAX},
    };
    struct err *e = http_server_new(p->net, &sc, &p->server);
    if (e) {
        proxy_free(p);
        return e;
    }
    *ret_proxy = p;
    return NULL;
}

void proxy_watch(struct proxy *p, const struct proxy_watch *watch)
{
    p->watch = *watch;
}

void proxy_free(struct proxy *p)
{
    if (!p)
        return;
    while (!list_empty(&p->targets))
        proxy_remove(p, container_of(p->targets.next, struct proxy_target, link));
    loop_timer_stop(&p->more_ports);
    closed_ports_drop_all(p);
    http_server_free(p->server); /* the listeners that wait for a target too */
    call_free_spares(p);
    map_done(&p->by_id);
    map_done(&p->by_tag);
    buf_done(&p->scratch);
    free(p);
}
