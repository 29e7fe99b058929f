// SPDX-License-Identifier: Apache-2.0
/* rpc.h — JSON-RPC 2.0 as MCP speaks it: one object per message, no batches.
 *
 * Values point into the text that was read: keep it and its arena. */
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"

enum rpc_kind { RPC_REQUEST, RPC_NOTE, RPC_RESULT, RPC_ERROR };

/* Errors we send. */
#define RPC_NO_METHOD STR("{\"code\":-32601,\"message\":\"Method not found\"}")
#define RPC_TOO_LARGE STR("{\"code\":-32603,\"message\":\"the answer is over 16 MB\"}")

struct rpc {
    enum rpc_kind kind;
    const struct json *id;     /* a string or an integer; NULL: a note, or an error of no request */
    struct str method;         /* of requests and notes */
    const struct json *params; /* of requests and notes: an object, or NULL */
    const struct json *result; /* an object */
    const struct json *error;  /* an object with code and message */
    struct str raw;            /* written in their place: text that is JSON already */
};

/* ERR_INVALID says which member does not fit. */
fallible rpc_parse(struct arena *a, struct str text, struct rpc *ret_message);
bool rpc_same_id(const struct json *a, const struct json *b); /* NULL is like no other */
void rpc_put(struct buf *out, const struct rpc *m);
