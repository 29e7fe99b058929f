// SPDX-License-Identifier: Apache-2.0
/* inner.h — what the files of remote/ share; nobody else includes it. */
#pragma once

#include "base/json.h"
#include "net/client.h"
#include "sandbox/sandbox.h"

#define REMOTE_CALL_MS  180000 /* as the oldest clients wait for the API */
#define REMOTE_ADOPT_MS 30000  /* for what there is; who asks waits with all it has to do */
#define REMOTE_ALIVE_MS 5000   /* for one answer of /alive */
#define REMOTE_ATTEMPTS 6
#define REMOTE_AGAIN_MS 500   /* at most, before the second attempt; doubled for each after it */
#define REMOTE_MOST_MS  30000 /* never more than that */
#define REMOTE_AFTER_S  60    /* a longer Retry-After is not waited for: it is the caller's */
#define ANSWER_MAX      (1u << 20)
#define BODY_MAX        (4u << 20)

struct remote;
/* body borrowed; e is the callee's. One of both is NULL, or both: an empty answer. */
typedef void remote_then(struct remote *r, const struct json *body, struct err *e);

struct remote_driver {
    struct sbx_driver base;
    struct http_client *client;
    struct rng *rng; /* of the jitter */
    bool croft;      /* on the other side: its additions can be used */
};

struct remote {
    struct sbx base;
    char *image, *working_dir, *hostname;
    struct buf env, command; /* strings one after the other */
    bool has_command, has_user, has_group, has_fs_group;
    enum sbx_face face;
    uint32_t uid, gid, fs_group, factor;
    struct sbx_limits limits;

    char runtime_id[SBX_ID_MAX + 1];
    char url[sizeof((struct sbx_address *)0)->url];
    char session_key[SBX_KEY_MAX + 1];
    bool there; /* the server may have it: a start was sent, and no end was told */
    bool ended; /* by us, and its files with it */

    /* the call under way */
    const char *method;
    char path[160];
    bool inside; /* it goes to the sandbox's url, without the server's key */
    struct buf body;
    struct http_call *call;
    struct buf answer;
    int status;
    unsigned attempt, attempts;
    uint64_t after_s; /* Retry-After */
    struct loop_timer timer;
    remote_then *then;

    /* the operation under way */
    uint64_t give_up_ns, poll_ms;
    unsigned unreached;   /* times its url could not be reached */
    bool resumed, looked; /* what is done once */
};

static inline struct remote_driver *remote_driver_of(const struct remote *r)
{
    return container_of(r->base.driver, struct remote_driver, base);
}

/* --- call.c --- */
/* The body is what is in r->body. All calls may come twice: /start and its like are told apart by
 * the session, the others by the runtime's id, and the second has nothing left to do. */
fallible remote_call(struct remote *r, const char *method, const char *path, remote_then *then);
fallible remote_call_id(struct remote *r, const char *path, remote_then *then);
/* /croft/v1/sandboxes/ID and what follows; no body. */
fallible remote_call_croft(struct remote *r, const char *method, const char *what,
                           remote_then *then);
/* Is the sandbox's own server alive? Asked once. */
fallible remote_call_alive(struct remote *r, remote_then *then);
/* How long before the attempt after this one, the first is 1: grows, and is never the same. */
uint64_t remote_wait_ms(const struct remote_driver *d, unsigned attempt);

/* --- wait.c --- */
struct wire_remote;
/* Keeps what is known of the runtime. */
fallible remote_take_object(struct remote *r, const struct json *body, struct wire_remote *ret);
/* Once for each operation that waits. */
void remote_begin_waiting(struct remote *r);
void remote_look_then(struct remote *r, remote_then *then);
/* Of starts, resumes and adoptions: until it can be used, or is told to be what it is. */
void remote_on_object(struct remote *r, const struct json *body, struct err *e);
void remote_on_look(struct remote *r, const struct json *body, struct err *e);
/* The operation has failed; if the server does not know it any more, it has ended. */
void remote_end_if_gone(struct remote *r, struct err *e);
