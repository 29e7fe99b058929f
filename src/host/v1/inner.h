// SPDX-License-Identifier: Apache-2.0
/* inner.h — what the files of v1/ share. */
#pragma once

#include "base/json.h"
#include "host/runtime/asking.h"

struct watch;

struct v1 { /* the part */
    struct runtime_api *api;
    struct watch *watch;
};

static inline const struct runtime_api *v1_api(const struct http_req *req)
{
    const struct v1 *v = req->owner;

    return v->api;
}

fallible v1_check(struct http_req *req, unsigned scope, const struct key **ret_key);
bool v1_is_welcome(const struct http_req *req);    /* its key was not revoked since */
const struct key *v1_whose(const struct key *key); /* its owner filter; NULL: sees all */
fallible v1_take_body(struct http_req *req, struct json **ret); /* none is an empty object */
fallible v1_find(struct http_req *req, unsigned scope, struct runtime **ret); /* {id} of the path */
fallible v1_put(struct http_req *req, struct jw *w, const struct runtime *r);
struct str v1_time(struct arena *a, uint64_t wall_ms);

/* metrics.c */
fallible v1_handle_metrics(struct http_req *req);

/* logs.c */
fallible v1_handle_logs(struct http_req *req);

/* changes.c */
fallible v1_handle_diff(struct http_req *req);
fallible v1_handle_apply(struct http_req *req);
fallible v1_handle_rollback(struct http_req *req);

/* files.c */
fallible v1_handle_snapshot(struct http_req *req);
fallible v1_handle_fork(struct http_req *req);
fallible v1_handle_snapshots(struct http_req *req);
fallible v1_handle_snapshot_delete(struct http_req *req);
/* "from" of a start: a snapshot of the key's tenant. The start then has the snapshot's image. */
fallible v1_take_from(struct http_req *req, const struct key *key, const struct json *body,
                      struct wire_start *start);
