// SPDX-License-Identifier: Apache-2.0
/* part.h — the servers of tools as clients see them; for the files of parts/mcp. */
#pragma once

#include "guest/exec/inner.h"
#include "guest/mcp/mcp.h"
#include "loop/loop.h"

struct rpc;

struct mcp_part {
    struct exec *exec;
    struct mcp *servers;
    struct list updates; /* requests that wait until no server is starting */
    struct list streams; /* of sse.c */
    unsigned stream_count;
    struct loop_timer ping;
};

struct mcp *mcp_part_servers(const struct exec *e);
/* sse.c */
fallible mcp_handle_sse(struct http_req *req);
fallible mcp_handle_message(struct http_req *req);
void mcp_streams_changed(struct mcp_part *p);
void mcp_streams_note(struct mcp_part *p, const struct rpc *note);
void mcp_streams_close(struct mcp_part *p);
