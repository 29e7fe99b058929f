// SPDX-License-Identifier: Apache-2.0
/* remote.h — the Runtime API from its client's side: the body of POST /start, and what a client
 * reads of a runtime object. See runtime.h for the server's. */
#pragma once

#include <stdbool.h>

#include "base/json.h"

struct wire_wants;

struct wire_remote_start {
    struct str image, session_id, working_dir; /* .p NULL: left out */
    const char *const *command;                /* NULL: null */
    const char *const *env;                    /* "NAME=value"; NULL: none */
    bool has_user, has_group, has_fs_group;
    uint32_t uid, gid, fs_group, factor;
    const struct wire_wants *wants; /* for a croft, see wants.h; NULL: left out */
    struct str from;                /* the same: a snapshot; .p NULL: left out */
};
void wire_put_remote_start(struct jw *w, const struct wire_remote_start *s);
void wire_put_remote_id(struct jw *w, struct str runtime_id);
void wire_put_remote_name(struct jw *w, struct str name); /* of a snapshot */
void wire_put_remote_to(struct jw *w, struct str to);     /* the same, to go back to; empty: none */

#define WIRE_REMOTE_VSCODE 60001 /* inside */

enum wire_remote_state { /* what a client does next */
                         WIRE_REMOTE_WAIT,
                         WIRE_REMOTE_READY,
                         WIRE_REMOTE_PAUSED,
                         WIRE_REMOTE_STOPPED,
                         WIRE_REMOTE_FAILED,
};

struct wire_remote {
    struct str runtime_id, url, session_api_key, detail;
    struct str status, pod; /* words of the server; empty: it says none */
    struct str pod_logs;    /* the last words of one that failed */
    struct {
        struct str url;
        uint16_t port;
    } ports[3]; /* inside, and where they are reached: workers and VS Code */
    size_t port_count;
    enum wire_remote_state state;
};
/* Points into the body. pod_status decides where there is one: "running" is not yet ready. */
fallible wire_decode_remote(const struct json *body, struct wire_remote *ret);
/* The first snapshot of a croft's list, the others are its siblings; NULL: none. */
const struct json *wire_remote_snapshots(const struct json *body);
/* Both empty: it is none. */
void wire_decode_remote_snapshot(const struct json *one, struct str *ret_name,
                                 struct str *ret_sandbox);
/* One event of a croft's log: a text, and the place behind it. */
fallible wire_decode_remote_said(const struct json *one, struct str *ret_place,
                                 struct str *ret_text);
struct wire_remote_usage { /* 0: not counted */
    uint64_t memory_bytes, cpu_ns, pids, oom_kills;
};
fallible wire_decode_remote_usage(const struct json *body, struct wire_remote_usage *ret);
/* The text after {"sandbox":"ID" in an answer about files; .p NULL: it does not begin so. */
struct str wire_remote_after_sandbox(struct str text, struct str id);
/* The text of {"detail": …}; empty when there is none. */
struct str wire_remote_detail(const struct json *body);
