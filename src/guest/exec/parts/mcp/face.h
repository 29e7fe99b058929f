// SPDX-License-Identifier: Apache-2.0
/* face.h — the servers of tools as clients see them; for the files of parts/mcp. */
#pragma once

#include "guest/exec/inner.h"
#include "guest/mcp/mcp.h"
#include "loop/loop.h"

struct rpc;

struct mcp_face {
    struct exec *exec;
    struct mcp *servers;
    struct list updates;  /* requests that wait until no server is starting */
    struct list sessions; /* of sse.c */
    unsigned session_count;
    struct loop_timer ping;
};

/* sse.c */
fallible mcp_handle_sse(struct http_req *req);
fallible mcp_handle_message(struct http_req *req);
void mcp_sessions_changed(struct mcp_face *f);
void mcp_sessions_note(struct mcp_face *f, const struct rpc *note);
void mcp_sessions_close(struct mcp_face *f);
