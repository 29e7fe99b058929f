// SPDX-License-Identifier: Apache-2.0
/* runtime.h — bodies of the Runtime API: what POST /start asks for, and the runtime object that
 * every route answers with. All members of it are always there: some clients crash otherwise. */
#pragma once

#include "base/json.h"

#define WIRE_WORKERS 2

struct wire_wants;

struct wire_start {
    struct str image, session_id;
    const struct json *command;     /* an array of strings or one string; NULL: null */
    const struct json *environment; /* an object of strings; NULL: none */
    struct str working_dir;         /* .p NULL: not given */
    int64_t resource_factor;
    int64_t run_as_user, run_as_group, fs_group; /* -1: not given */
    struct str from;                 /* the backend's name of a snapshot; not decoded here */
    const struct wire_wants *wants;  /* the same; NULL: none */
    const struct json *image_config; /* the same: the image's own Env, WorkingDir, User */
    struct str image_id; /* the same: which image its name means now; .p NULL: its own */
    bool no_bash;        /* the same: there is none in the image */
};
#define WIRE_FACTOR_MAX  16
#define WIRE_SESSION_MAX 256
#define WIRE_IMAGE_MAX   512

/* Points into the body. An error names the member: "environment.PATH: wanted a string". */
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
    struct str changed_at;     /* when it became what it is */
    struct str pod_logs;       /* its last words; of one that failed */
};
void wire_put_runtime(struct jw *w, const struct wire_runtime *r);
void wire_put_runtime_members(struct jw *w, const struct wire_runtime *r); /* of an open object */

/* An element of /api/warm-runtime-configs: what clients are told to start with. */
struct wire_warm_config {
    struct str name, image, working_dir;         /* working_dir .p NULL: not set */
    const struct json *command, *environment;    /* array, object; NULL: not set */
    int64_t run_as_user, run_as_group, fs_group; /* -1: not set */
};
void wire_put_warm_config(struct jw *w, const struct wire_warm_config *c);

/* The object of /croft/v1/sandboxes: a runtime and what only croft knows of it. */
#define WIRE_PHASES 12
#define WIRE_CAPS   32
struct wire_lack {
    struct str name, why, remedy; /* remedy .p NULL: none is known */
};

struct wire_sandbox {
    struct str face; /* what answers inside: action (our server), command (its own program) */
    struct wire_runtime runtime;
    struct str image, backend, key, created_at, changed_at;
    struct str pool;   /* it came from; .p NULL: none */
    struct str launch; /* how: warm, cold, fork, resume */
    struct str miss;   /* why it is not warm; .p NULL: it is, or the reason is lost */
    bool keep;
    bool halted; /* "paused", and of that its files alone */
    int64_t resource_factor;
    const struct wire_wants *has; /* limits, host name, mounts */
    bool with_caps;               /* what is real, and what is not: in all but lists */
    struct str caps[WIRE_CAPS];
    struct wire_lack lacks[WIRE_CAPS];
    size_t cap_count, lack_count;
    struct str warning; /* of its backend; .p NULL: none */
    struct {
        struct str name; /* "queue_ns" */
        uint64_t ns;
    } phases[WIRE_PHASES];
    size_t phase_count;
};
void wire_put_sandbox(struct jw *w, const struct wire_sandbox *s);

#define WIRE_MISSES 8
struct wire_pool {
    struct str name, image;
    uint64_t target, ceiling, ready, starting, hits;
    struct {
        struct str reason;
        uint64_t count;
    } misses[WIRE_MISSES];
    size_t miss_count;
};
void wire_put_pool(struct jw *w, const struct wire_pool *p);
