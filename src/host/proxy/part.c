// SPDX-License-Identifier: Apache-2.0
/* part.c — the proxy of a server: requests that name a sandbox, on the server's own listener too.
 */
#include "host/config/settings.h"
#include "host/keys/keys.h"
#include "host/part/part.h"
#include "host/proxy/inner.h"
#include "host/proxy/name.h"
#include "net/server.h"

#define SPARE_PORTS_KEPT 16

struct proxy_settings {
    struct str domain; /* sandboxes answer at ID.domain too; unset: not */
};

static const struct cfg_row rows[] = {
    CFG_STR(
        proxy_settings, domain, "server.domain", NULL,
        "Sandboxes answer at ID.domain instead, on the server's own port or public_url's: a name "
        "without a port, to which all names below it lead too; \"-example.com\" is joined without "
        "a dot.",
        .flag = "", .at_start = true),
};

static bool is_domain(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.p[i], before = i ? s.p[i - 1] : 0;
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || str_is_digit(c);
        if (!letter && c != '-' && !(c == '.' && before && before != '.'))
            return false;
    }
    return s.len <= PROXY_DOMAIN_MAX && !str_ends(s, STR(".")) && !str_ends(s, STR("-"));
}

/* A port in it would be compared with names, and no sandbox be found by them. */
static fallible check_domain(const struct cfg *c, void *into)
{
    const struct proxy_settings *s = into;

    if (!s->domain.len || is_domain(s->domain))
        return NULL;
    return err_new(ERR_INVALID,
                   "server.domain (%s): '" STR_FMT "': wanted a name like run.example.com, without "
                   "scheme and port; urls get the port of server.listen, or scheme and port of "
                   "server.public_url where that is set",
                   cfg_source(c, "server.domain"), STR_ARG(str_first(s->domain, 300)));
}
CFG_TABLE(proxy) = {rows, ARRAY_LEN(rows), .size = sizeof(struct proxy_settings),
                    .check = check_domain};

struct proxy *proxy_of(const struct host *h)
{
    return host_part(h, "proxy");
}

struct str proxy_domain(const struct settings *s)
{
    const struct proxy_settings *own = settings_of(s, CFG_TABLE_OF(proxy));

    return own->domain;
}

static bool is_key(void *keys, struct str secret)
{
    return keys_find(keys, secret) != NULL;
}

static bool has_tenants(void *keys)
{
    return keys_any(keys);
}

static fallible proxy_part_open(struct host *h, void **ret_state)
{
    const struct proxy_config config = {.dialer = h->dialer,
                                        .domain = proxy_domain(h->settings),
                                        .spare_ports = SPARE_PORTS_KEPT,
                                        .is_key = is_key,
                                        .has_tenants = has_tenants,
                                        .ctx = keys_of(h)};
    struct proxy *p;

    TRY(proxy_new(&config, &p));
    *ret_state = p;
    return NULL;
}

static void proxy_part_close(void *proxy)
{
    proxy_free(proxy);
}

/* A request that names a sandbox needs that sandbox's key, not ours. While we ask for none, what a
 * sandbox shows below our own address is no page of ours to a browser. */
static fallible proxy_part_intercept(void *proxy, struct http_req *req,
                                     const struct route **ret_route)
{
    struct proxy *p = proxy;

    TRY(proxy_intercept(p, req, ret_route));
    req->passed_on = *ret_route;
    struct str host = http_req_header(req, STR("host"));
    if (*ret_route && !keys_any(p->config.ctx) && !name_is_below(host, p->config.domain))
        http_reply_header(req, STR("Content-Security-Policy"),
                          STR("sandbox allow-scripts allow-forms allow-popups allow-modals "
                              "allow-downloads"));
    return NULL;
}

HOST_PART(proxy) = {
    .name = "proxy",
    .needs = PART_NEEDS("keys"),
    .open = proxy_part_open,
    .close = proxy_part_close,
    .intercept = proxy_part_intercept,
};
