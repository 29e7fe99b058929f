// SPDX-License-Identifier: Apache-2.0
/* inner.h — one server, for the files of mcp/. */
#pragma once

#include "base/arena.h"
#include "guest/mcp/mcp.h"
#include "guest/proc/proc.h"
#include "wire/mcp.h"

enum mcp_status { MCP_STARTING, MCP_READY, MCP_FAILED };

struct mcp {
    struct mcp_config config;
    struct list servers;
    unsigned count;
    struct loop_later changed;
};

struct mcp_server {
    struct mcp *set;
    struct list link;
    struct arena arena; /* of config */
    struct wire_mcp_server config;
    struct str text; /* of config, as JSON: equal ones are equal servers */
    enum mcp_status status;
    bool came_up; /* once: a call may start it again */
    bool stale;   /* its tools changed while they were being listed */
    struct err *why;
    struct proc proc;
    struct stream *io;
    struct buf line; /* the part of it that has come */
    unsigned ended;  /* its output, its process: the story of a death needs both */
    struct loop_timer deadline;
    struct list calls; /* those with text wait for it to be ready */
    unsigned call_count;
    int64_t next_id, own_id; /* own_id: of what we asked it ourselves; 0: nothing */
    bool listing;            /* own_id is about tools */
    struct {
        struct arena arena;
        struct json *list; /* an array; NULL: never listed, or too much */
    } tools, fresh;        /* fresh: while they are being listed */
};

/* mcp.c: on_change comes after the turn. */
void mcp_changed(struct mcp *set);

/* server.c */
#define MCP_CONFIG_BYTES (1u << 20)
fallible mcp_server_new(struct mcp *set, struct str text, struct mcp_server **ret_server);
void mcp_server_free(struct mcp_server *s); /* fails its calls */
void mcp_server_start(struct mcp_server *s);
void mcp_server_send(struct mcp_server *s, struct str message);
void mcp_server_note(struct mcp_server *s, const char *method, struct str params);
