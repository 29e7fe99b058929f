// SPDX-License-Identifier: Apache-2.0
/* mcp.h — bodies of /update_mcp_server: the stdio servers a sandbox shall run.
 *
 * `args` may come as one shell-quoted string, `env` as "K=V,K2=V2"; both are lists here. */
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"

struct wire_mcp_server {
    struct str name, command;
    const struct json *args; /* array of strings */
    const struct json *env;  /* object of strings */
};

struct wire_mcp_servers {
    struct wire_mcp_server *at;
    size_t count;
};

/* Not an array: ERR_INVALID with the `detail` of the 400. An element that does not fit:
 * ERR_UNPROCESSABLE, which names its place. */
fallible wire_decode_mcp_servers(struct arena *a, const struct json *body,
                                 struct wire_mcp_servers *ret_servers);
void wire_put_mcp_servers(struct jw *w, const struct wire_mcp_servers *servers);
/* Same name, command, args, and env in any order. */
bool wire_mcp_server_equal(const struct wire_mcp_server *x, const struct wire_mcp_server *y);
void wire_put_mcp_updated(struct jw *w, struct str router_error_log);

/* Words as a POSIX shell splits them (Python's shlex.split, comments off), as an array of strings.
 */
fallible wire_split_words(struct arena *a, struct str text, struct json **ret_words);
