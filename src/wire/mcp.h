// SPDX-License-Identifier: Apache-2.0
/* mcp.h — servers of tools (Model Context Protocol): which shall run, and what a call gives.
 *
 * In the bodies of /update_mcp_server `args` may come as one shell-quoted string, `env` as
 * "K=V,K2=V2"; both are lists here. */
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

/* The result of a tool, or why there is none, as Python's client writes it in an observation. */
void wire_put_mcp_client_result(struct jw *w, const struct json *result);
void wire_put_mcp_client_error(struct jw *w, struct str why);
/* The same as the result of tools/call, for the model to read; the result of initialize. */
void wire_put_mcp_failure(struct jw *w, struct str why);
void wire_put_mcp_initialized(struct jw *w, const char *version);

/* Words as a POSIX shell splits them (Python's shlex.split, comments off), as an array of strings.
 */
fallible wire_split_words(struct arena *a, struct str text, struct json **ret_words);
