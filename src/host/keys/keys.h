// SPDX-License-Identifier: Apache-2.0
/* keys.h — named keys with scopes and quotas: what a request may do.
 *
 * A secret is 256 random bits, and the store has its SHA-256. For a secret that cannot be guessed
 * this is as good as a slow hash, and costs a microsecond per request.
 *
 * Keys are looked up by that digest and compared in constant time. While no key exists, peers on
 * this machine need none. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "host/store/store.h"
#include "net/router.h"

struct http_req;
struct jw;
struct json;

enum key_scope {
    KEY_ADMIN = 1,   /* keys and pools; sees the runtimes of every key */
    KEY_RUNTIME = 2, /* makes and ends runtimes of its own */
    KEY_READ = 4,    /* looks at them */
    KEY_MOUNT = 8,   /* may have directories of the host in them, those of [mount.NAME] */
};
#define KEY_ALL         (KEY_ADMIN | KEY_RUNTIME | KEY_READ | KEY_MOUNT)

#define KEY_NAME_SIZE   64
#define KEY_SECRET_SIZE 56 /* "croft_", 43 letters and digits, NUL */
#define KEYS_MOST       10000

struct key {
    char name[KEY_NAME_SIZE];
    char of[KEY_NAME_SIZE]; /* the key of its tenant, see key_tenant(); empty: its own */
    unsigned scopes;
    uint64_t made_ms, revoked_ms;              /* wall clock; 0: not revoked */
    uint32_t most_runtimes, starts_per_minute; /* 0: no limit */
};

/* The tenant, which owns runtimes, events, snapshots, builds and quotas: the first of the keys that
 * this one was made from. */
static inline const char *key_tenant(const struct key *key)
{
    return key->of[0] ? key->of : key->name;
}

struct keys;
struct keys *keys_new(struct store *s);
void keys_load(struct keys *k, store_done *done, void *arg); /* first; done when all are there */
void keys_free(struct keys *k);                              /* after store_close */
OWNABLE(keys)

/* Has there ever been one? Revoking the last key does not open the server to all. */
bool keys_any(const struct keys *k);
/* NULL: unknown or revoked. A key lives as long as keys, revoked or not. */
const struct key *keys_find(const struct keys *k, struct str secret);
const struct key *keys_find_name(const struct keys *k, struct str name);
/* Revoked ones too, oldest first. */
void keys_list(const struct keys *k, void (*fn)(void *arg, const struct key *key), void *arg);

/* want gives name (letters, digits, "-", "_", "."), scopes and quotas. secret is filled at once and
 * valid when done says that the row is on disk. A name is used once: a revoked one stays taken. */
fallible keys_create(struct keys *k, const struct key *want, char secret[KEY_SECRET_SIZE],
                     store_done *done, void *arg);
/* Not accepted from now on; done when that is on disk. Once more is fine. ERR_NOT_FOUND at once. */
fallible keys_revoke(struct keys *k, struct str name, store_done *done, void *arg);
/* ERR_CONFLICT: it is the last one that can administer. */
fallible keys_check_last(const struct keys *k, struct str name);
/* Makes a key whose secret comes from outside (CROFT_API_KEY), or replaces its secret and scopes.
 * Accepted at once. A revoked secret stays revoked, and the log says so. */
fallible keys_ensure(struct keys *k, const char *name, struct str secret, unsigned scopes);

/* Quotas of keys that have none of their own; 0: no limit. */
void keys_set_defaults(struct keys *k, uint32_t most_runtimes, uint32_t starts_per_minute);
/* One more start, please: ERR_LIMIT names the limit, and says when again. A start that is not made
 * after all gives its turn back. */
fallible keys_admit(struct keys *k, const struct key *key, unsigned live_runtimes);
/* The same for a runtime of this tenant that is there, and has to be started once more. */
fallible keys_admit_again(struct keys *k, struct str tenant);
void keys_give_back(struct keys *k, const struct key *key);

/* {"name": …, "scopes": ["runtime"], "most_runtimes": 5, "starts_per_minute": 0}; default scopes:
 * runtime and read.
 *
 * With "of" the key joins that key's tenant. Its scopes are some of that key's (default: read), and
 * its quotas are the tenant's. ERR_UNPROCESSABLE names the field. */
fallible keys_parse_want(const struct json *body, struct key *ret_want);
/* As the routes answer; secret may be NULL. */
void keys_put_one(struct jw *w, const char *name, const struct key *key, const char *secret);

/* X-API-Key, or Authorization: Bearer. Any one of several scopes will do; 403 when none is there.
 *
 * Without a key: 401, unless no key exists and the peer is on this machine. That peer is key
 * "default" with every scope. */
/* The key of a request, whatever it may do; NULL: none, or not accepted. */
const struct key *keys_shown(const struct keys *k, const struct http_req *req);
/* May it act, or only look? A key that only looks is not told the keys of sandboxes. */
bool keys_may_act(const struct keys *k, const struct http_req *req);
fallible keys_check(struct keys *k, struct http_req *req, unsigned scope,
                    const struct key **ret_key);

/* GET, POST /croft/v1/tokens; DELETE /croft/v1/tokens/{name}; for KEY_ADMIN. Owned by keys. */
#define KEYS_ROUTES 3
extern const struct route keys_routes[KEYS_ROUTES];

/* The part "keys". */
struct host;
struct keys *keys_of(const struct host *h);
