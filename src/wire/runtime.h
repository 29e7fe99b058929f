// SPDX-License-Identifier: Apache-2.0
/* runtime.h — bodies of the Runtime API: what POST /start asks for, and the runtime object that
 * every route answers with. All members of it are always there: some clients crash otherwise. */
#pragma once

#include "base/json.h"

#define WIRE_WORKERS 2

struct wire_start {
    struct str image, session_id;
    const struct json *command;     /* an array of strings or one string; NULL: null */
    const struct json *environment; /* an object of strings; NULL: none */
    struct str working_dir;         /* .p NULL: not given */
    int64_t resource_factor;
    int64_t run_as_user, run_as_group, fs_group; /* -1: not given */
};
#define WIRE_FACTOR_MAX  16
#define WIRE_SESSION_MAX 256
#define WIRE_IMAGE_MAX   512

/* Points into the body. What is refused is named: "environment.PATH: wanted a string". */
fallible wire_decode_start(const struct json *body, struct wire_start *ret_start);
/* {"runtime_id": …}; .p NULL: it is null, which clients send when their start had failed. */
fallible wire_decode_runtime_id(const struct json *body, struct str *ret_id);

struct wire_runtime {
    struct str runtime_id, session_id, url, session_api_key, status, pod_status;
    struct str status_detail; /* .p NULL: null */
    struct {
        struct str url;
        int64_t port; /* inside */
    } work_hosts[WIRE_WORKERS];
    struct str vscode_url; /* .p NULL: null */
    int64_t restart_count;
    struct str restart_reason; /* the last one; .p NULL: none */
};
void wire_put_runtime(struct jw *w, const struct wire_runtime *r);

/* An element of /api/warm-runtime-configs: what clients are told to start with. */
struct wire_warm_config {
    struct str name, image, working_dir;         /* working_dir .p NULL: not set */
    const struct json *command, *environment;    /* array, object; NULL: not set */
    int64_t run_as_user, run_as_group, fs_group; /* -1: not set */
};
void wire_put_warm_config(struct jw *w, const struct wire_warm_config *c);
