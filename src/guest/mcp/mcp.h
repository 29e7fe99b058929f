// SPDX-License-Identifier: Apache-2.0
/* mcp.h — servers of tools (Model Context Protocol) on their standard input and output, as one.
 *
 * Each is a process that is initialised and asked for its tools once. With one server tools keep
 * their names; with more they are "server_tool". A server that dies fails the calls it had and is
 * started again by the next one; one that never came up waits for the next update. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/list.h"
#include "base/str.h"

struct mcp;
struct mcp_server;
struct net;
struct proc_user;
struct rpc;
struct spawner;
struct wire_mcp_servers;

#define MCP_SERVERS_MAX 32
#define MCP_CALLS_MAX   256 /* of one server, at a time */

struct mcp_config { /* all is borrowed for the life of the set */
    struct net *net;
    const char *const *env;
    const char *cwd;
    const struct proc_user *user;
    struct spawner *spawner;
    void (*on_change)(void *owner); /* a server is ready, has failed, or has other tools */
    void (*on_note)(void *owner, const struct rpc *note); /* a note of a server to all clients */
    void *owner;
};

struct mcp *mcp_new(const struct mcp_config *config);
void mcp_free(struct mcp *m); /* calls are not answered any more */

/* The whole list that is wanted: what is equal and well runs on, the rest is started or ended. */
fallible mcp_update(struct mcp *m, const struct wire_mcp_servers *servers);
bool mcp_is_empty(const struct mcp *m);
bool mcp_is_settled(const struct mcp *m); /* none is starting */
/* server 'x': why, one line for each that is not ready. */
void mcp_put_errors(const struct mcp *m, struct buf *out);
void mcp_put_states(const struct mcp *m, struct jw *w); /* an array */
void mcp_put_tools(const struct mcp *m, struct jw *w);  /* {"tools":[…]} */

struct mcp_call { /* embedded in its owner, which may free it in done */
    /* answer: RPC_RESULT or RPC_ERROR; NULL: why there is none */
    void (*done)(struct mcp_call *c, const struct rpc *answer, const struct err *why);
    void (*progress)(struct mcp_call *c, const struct json *params); /* may be NULL */
    struct list link;
    struct mcp_server *server;
    struct buf text; /* until it is sent */
    int64_t id;
};
/* params of tools/call: name, arguments, _meta. done never comes before this returns. */
fallible mcp_call_start(struct mcp *m, struct mcp_call *c, const struct json *params);
void mcp_call_cancel(struct mcp_call *c); /* the server is told; done does not come */
