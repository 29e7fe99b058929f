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
    err_free(e); /* it is answered by the sandbox, as any other whose key does not open */
    return !e;
}

/* The one that is used comes first: of two the first is kept over the next resume. */
static bool takes_old_key(struct proxy_target *t, struct http_req *req, struct str shown)
{
    struct runtime *r = container_of(t, struct runtime, target);
    char used[sizeof r->old_keys[0]];
    bool first = hash_equal(shown, str_of(r->old_keys[0]));

    if (!shown.len || (!first && !hash_equal(shown, str_of(r->old_keys[1]))) ||
        !is_client_of(r, req))
        return false;
    if (first)
        return true;
    memcpy(used, r->old_keys[1], sizeof used);
    memcpy(r->old_keys[1], r->old_keys[0], sizeof used);
    memcpy(r->old_keys[0], used, sizeof used);
    return true;
}

static void on_new_key(struct proxy_target *t)
{
    struct runtime *r = container_of(t, struct runtime, target);

    r->old_keys[0][0] = r->old_keys[1][0] = '\0';
    t->takes_old = NULL;
    r->forgets = r->next_key != NULL; /* they are on their way to the row */
    if (!r->forgets)
        row_forget_old_keys(r);
}

void runtime_set_keys(struct runtime *r)
{
    const char *inner = r->far_key ? r->far_key : r->inner_key;
    bool same = strcmp(r->session_key, inner) == 0;
    bool old = !same && r->old_keys[0][0];

    r->target.key = same ? NULL : r->session_key;
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
    own_free char *key = take(&r->next_key);
    bool forgets = r->forgets;

    r->forgets = false;
    if (e && forgets)
        row_forget_old_keys(r);
    if (e)
        return;
    add_old_key(r->old_keys, r->session_key);
    memcpy(r->session_key, key, sizeof r->session_key);
    runtime_set_keys(r);
    if (forgets)
        row_set_key(r, r->session_key, r->old_keys, NULL);
}

/* Who asked may have a key that was changed, or an error, and not the old key as if it were new. */
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
    r->next_key = mem_new(sizeof r->session_key);
    rng_token(rng_system(), r->next_key, sizeof r->session_key);
    r->op.writes++;
    memcpy(old, r->old_keys, sizeof old);
    add_old_key(old, r->session_key);
    row_set_key(r, r->next_key, old, on_key_written);
}
