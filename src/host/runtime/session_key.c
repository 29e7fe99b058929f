// SPDX-License-Identifier: Apache-2.0
/* session_key.c — the key that opens a sandbox, and another at each resume where that is wanted.
 *
 * V0 clients do not read the new key from the answer to their resume. So an old key still opens
 * until the new one was shown once, if a key of the API is shown beside it that would be told the
 * new one anyway. */
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/rng.h"
#include "host/keys/keys.h"
#include "host/runtime/hooks.h"
#include "host/runtime/inner.h"
#include "host/runtime/row.h"
#include "host/runtime/start.h"
#include "net/server.h"

/* May it act on the runtime, and says so as V0 clients do? */
static bool is_client_of(const struct runtime *r, struct http_req *req)
{
    struct keys *keys = r->manager->config.keys;
    const struct key *key = http_req_header(req, STR("x-api-key")).p ? keys_shown(keys, req) : NULL;

    if (!key || strcmp(key_tenant(key), r->tenant->name) != 0)
        return false;
    struct err *e = keys_check(keys, req, KEY_RUNTIME, &key);
    err_free(e); /* the sandbox answers it, as any other wrong key */
    return !e;
}

/* The one that is used comes first: of two the first is kept over the next resume. */
static bool takes_old_key(struct proxy_target *t, struct http_req *req, struct str shown)
{
    struct runtime *r = container_of(t, struct runtime, target);
    char used[sizeof r->keys.old[0]];
    bool first = hash_equal(shown, str_of(r->keys.old[0]));

    if (!shown.len || (!first && !hash_equal(shown, str_of(r->keys.old[1]))) ||
        !is_client_of(r, req))
        return false;
    if (first)
        return true;
    memcpy(used, r->keys.old[1], sizeof used);
    memcpy(r->keys.old[1], r->keys.old[0], sizeof used);
    memcpy(r->keys.old[0], used, sizeof used);
    return true;
}

static void on_new_key(struct proxy_target *t)
{
    struct runtime *r = container_of(t, struct runtime, target);

    r->keys.old[0][0] = r->keys.old[1][0] = '\0';
    t->takes_old = NULL;
    r->keys.forgets = r->keys.next != NULL; /* they are on their way to the row */
    if (!r->keys.forgets)
        row_forget_old_keys(r);
}

void runtime_set_keys(struct runtime *r)
{
    const char *inner = r->keys.far ? r->keys.far : r->keys.inner;
    bool same = strcmp(r->keys.session, inner) == 0;
    bool old = !same && r->keys.old[0][0];

    r->target.key = same ? NULL : r->keys.session;
    r->target.inner_key = same ? NULL : inner;
    r->target.takes_old = old ? takes_old_key : NULL;
    r->target.on_key = old ? on_new_key : NULL;
}

/* The oldest of two stays: a client may still use it. */
static void add_old_key(char old[2][RUNTIME_KEY_LEN + 1], const char *key)
{
    memcpy(old[old[0][0] ? 1 : 0], key, RUNTIME_KEY_LEN + 1);
}

/* A key that is not on disk is not its key. */
static void key_take(struct runtime *r, const struct err *e)
{
    own_free char *key = take(&r->keys.next);
    bool forgets = r->keys.forgets;

    r->keys.forgets = false;
    if (e && forgets)
        row_forget_old_keys(r);
    if (e)
        return;
    add_old_key(r->keys.old, r->keys.session);
    memcpy(r->keys.session, key, sizeof r->keys.session);
    runtime_set_keys(r);
    if (forgets)
        row_set_key(r, r->keys.session, r->keys.old, NULL);
}

/* The client may get a changed key, or an error, but never the old key as if it were new. */
static void on_key_written(void *arg, struct err *e)
{
    struct runtime *r = arg;

    key_take(r, e);
    if (e)
        start_answer_watchers(r, e);
    else
        start_tell_watchers(r);
    operation_wrote(r, e);
}

/* Only for a client that is told: a sandbox that a request woke up is known by its old key. */
void runtime_rotate_key(struct runtime *r)
{
    char old[2][RUNTIME_KEY_LEN + 1];

    if (!r->manager->config.rotate || !r->op.asked || r->op.asked == &r->own)
        return;
    r->keys.next = mem_new(sizeof r->keys.session);
    rng_token(rng_system(), r->keys.next, sizeof r->keys.session);
    r->op.writes++;
    memcpy(old, r->keys.old, sizeof old);
    add_old_key(old, r->keys.session);
    row_set_key(r, r->keys.next, old, on_key_written);
}
