// SPDX-License-Identifier: Apache-2.0
/* check.c — which key a request shows. */
#include "host/keys/inner.h"
#include "host/keys/keys.h"
#include "net/local.h"
#include "net/server.h"

/* admin could make itself any key, so it grants all; runtime grants read. */
unsigned keys_grants(unsigned has)
{
    if (has & KEY_ADMIN)
        return KEY_ALL;
    return has & KEY_RUNTIME ? has | KEY_READ : has;
}

/* Accepts pages of this server only. A sandbox serves pages from this machine too, on another port
 * or below another path; a browser says which page asks. */
static fallible check_page(const struct http_req *req)
{
    struct str host = http_req_header(req, STR("host"));
    struct str origin = http_req_header(req, STR("origin"));
    struct str site = http_req_header(req, STR("sec-fetch-site"));
    ptrdiff_t at = str_find(origin, STR("://"));

    TRY(local_check(req));
    if (origin.p && (at < 0 || !str_eq_nocase(str_from(origin, (size_t)at + 3), host)))
        return err_new(ERR_FORBIDDEN,
                       "Origin '" STR_FMT "' is not this server; pages of others are served with a "
                       "key only: 'croft token create'",
                       STR_ARG(str_first(origin, 80)));
    if (site.p && !str_eq(site, STR("same-origin")) && !str_eq(site, STR("none")))
        return err_new(ERR_FORBIDDEN,
                       "Sec-Fetch-Site: a page of another server asks; those are served with a key "
                       "only: 'croft token create'");
    return NULL;
}

/* A page in a browser here has a peer address of this machine too: Host and Origin tell. */
static fallible check_local(struct http_req *req)
{
    struct str peer = http_req_peer(req);

    if (str_eq(peer, STR("unix")))
        return NULL;
    if (!str_starts(peer, STR("127.")) && !str_starts(peer, STR("[::1]:")) &&
        !str_starts(peer, STR("[::ffff:127.")))
        return err_new(
            ERR_UNAUTHORIZED,
            "there is no key yet, and only peers on this machine are served without one: "
            "make one there with 'croft token create'");
    return check_page(req);
}

static struct str shown_secret(const struct http_req *req)
{
    struct str secret = http_req_header(req, STR("X-API-Key"));
    struct str bearer = http_req_header(req, STR("Authorization"));

    if (secret.p)
        return str_trim(secret);
    if (bearer.len > 7 && str_eq_nocase(str_first(bearer, 7), STR("Bearer ")))
        return str_trim(str_from(bearer, 7));
    return (struct str){0};
}

/* Refuses two keys: a program in front of us might count the other one. */
static fallible check_once(const struct http_req *req)
{
    static const struct str names[] = {STR_INIT("X-API-Key"), STR_INIT("Authorization")};

    for (size_t n = 0; n < ARRAY_LEN(names); n++) {
        unsigned there = 0;
        for (size_t i = 0; i < req->head.header_count; i++)
            there += str_eq_nocase(req->head.headers[i].name, names[n]);
        if (there > 1)
            return err_new(ERR_INVALID, STR_FMT ": it is there %u times; send one key",
                           STR_ARG(names[n]), there);
    }
    return NULL;
}

const struct key *keys_shown(const struct keys *k, const struct http_req *req)
{
    return keys_any(k) ? keys_find(k, shown_secret(req)) : &k->open.key;
}

bool keys_may_act(const struct keys *k, const struct http_req *req)
{
    const struct key *key = keys_shown(k, req);

    return key && keys_grants(key->scopes) & KEY_RUNTIME;
}

fallible keys_check(struct keys *k, struct http_req *req, unsigned scope,
                    const struct key **ret_key)
{
    const struct key *key = &k->open.key;

    TRY(check_once(req));
    if (!keys_any(k)) {
        TRY(check_local(req));
    } else {
        struct str secret = shown_secret(req);
        key = keys_find(k, secret);
        if (!key)
            http_reply_header(req, STR("WWW-Authenticate"), STR("Bearer"));
        if (!key && !secret.len)
            return err_new(ERR_UNAUTHORIZED, "wanted a key in X-API-Key");
        if (!key)
            return err_new(ERR_UNAUTHORIZED, "the key in X-API-Key is not accepted");
    }
    if (!(keys_grants(key->scopes) & scope))
        return err_new(ERR_FORBIDDEN, "key '%s' lacks the scope '%s'", key->name,
                       scope & KEY_READ      ? "read"
                       : scope & KEY_RUNTIME ? "runtime"
                                             : "admin");
    *ret_key = key;
    return NULL;
}
