// SPDX-License-Identifier: Apache-2.0
/* api.c — /croft/v1/tokens: an administrator makes, lists and revokes keys. The secret is in the
 * answer that makes a key and nowhere else. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "host/keys/inner.h"
#include "host/keys/keys.h"
#include "host/ops/body.h"
#include "net/server.h"

static fallible api_admin(struct http_req *req, struct keys **ret_keys)
{
    const struct key *key;

    *ret_keys = req->owner;
    return keys_check(*ret_keys, req, KEY_ADMIN, &key);
}

static void put_listed(void *w, const struct key *key)
{
    keys_put_one(w, NULL, key, NULL);
}

static fallible on_list(struct http_req *req)
{
    struct keys *k;

    TRY(api_admin(req, &k));
    struct jw *w = http_reply_writer(req);
    JW_OBJECT(w, NULL)
        JW_ARRAY(w, "tokens")
            keys_list(k, put_listed, w);
    http_reply_written(req, 200);
    return NULL;
}

struct change {
    struct http_req *req;
    struct keys *keys;
    char name[KEY_NAME_SIZE], secret[KEY_SECRET_SIZE];
    int status;
};

static void on_changed(void *arg, struct err *e)
{
    struct change *c = arg;

    if (e) {
        http_reply_err(c->req, e);
    } else {
        log_info(c->secret[0] ? "key made" : "key revoked", KV("key", (const char *)c->name),
                 KV("request_id", http_req_id(c->req)));
        keys_put_one(http_reply_writer(c->req), NULL, keys_find_name(c->keys, str_of(c->name)),
                     c->secret[0] ? c->secret : NULL);
        http_reply_written(c->req, c->status);
    }
    explicit_bzero(c->secret, sizeof c->secret);
    free(c);
}

static fallible change_new(struct http_req *req, struct keys *k, struct str name, int status,
                           struct change **ret_change)
{
    struct change *c = mem_try(sizeof *c);

    if (!c)
        return err_no_memory();
    *c = (struct change){.req = req, .keys = k, .status = status};
    snprintf(c->name, sizeof c->name, STR_FMT, STR_ARG(name));
    *ret_change = c;
    return NULL;
}

static fallible on_create(struct http_req *req)
{
    struct keys *k;
    struct json *body;
    struct key want;
    struct change *c;

    TRY(api_admin(req, &k));
    TRY(body_json(req, &body));
    TRY(keys_parse_want(body, &want));
    TRY(change_new(req, k, str_of(want.name), 201, &c));
    struct err *e = keys_create(k, &want, c->secret, on_changed, c);
    if (e)
        free(c);
    return e;
}

static fallible on_revoke(struct http_req *req)
{
    struct keys *k;
    struct change *c;
    struct str name = http_req_param(req, "name");

    TRY(api_admin(req, &k));
    if (!str_eq(http_req_query(req, "force"), STR("true")))
        TRY(keys_check_last(k, name));
    TRY(change_new(req, k, name, 200, &c));
    struct err *e = keys_revoke(k, name, on_changed, c);
    if (e)
        free(c);
    return e;
}

const struct route keys_routes[KEYS_ROUTES] = {
    {"GET", "/croft/v1/tokens", on_list, 0, 0},
    {"POST", "/croft/v1/tokens", on_create, 0, 64u << 10},
    {"DELETE", "/croft/v1/tokens/{name}", on_revoke, 0, 0},
};
