// SPDX-License-Identifier: Apache-2.0
/* inner.h — shared by the files of remote/, included by no other. */
#pragma once

#include "base/json.h"
#include "out/client.h"
#include "out/retry.h"
#include "sandbox/sandbox.h"

#define REMOTE_CALL_MS  180000 /* as the oldest clients wait for the API */
#define REMOTE_ADOPT_MS 30000  /* for what there is, or uses; the rest of a start-up waits */
#define REMOTE_ALIVE_MS 5000   /* for one answer of /alive */
#define REMOTE_ATTEMPTS 6
#define REMOTE_AFTER_MS 60000 /* a longer Retry-After is not waited for: it is the caller's */
#define ANSWER_MAX      (1u << 20)
#define CHANGES_MAX     (32u << 20) /* of an answer about files */
#define BODY_MAX        (4u << 20)

/* Features of a croft at the other side that other servers lack. */
#define REMOTE_CROFT_CAPS (SBX_CAN_SNAPSHOT | SBX_CAN_EXPOSE | SBX_CAN_LOG)

struct remote_settings {
    struct str url, key; /* of the other server, "http://host:3000"; a key of it, empty: none */
    struct str key_file;
};

struct remote;
struct remote_call;
/* body borrowed; e is the callee's. One of both is NULL, or both: an empty answer. */
typedef void remote_then(struct remote *r, const struct json *body, struct err *e);
typedef void remote_answered(struct remote_call *c, const struct json *body, struct err *e);

struct remote_call { /* one at a time */
    struct remote_driver *driver;
    const char *sandbox; /* for the log */
    const char *method;
    char path[256];
    const char *inside; /* it goes to this url, of a sandbox, without the server's key; NULL: not */
    bool as_it_is;      /* what it is answered is handed on: it stays in answer, unread */
    struct buf body;
    struct http_call *http;
    struct buf answer;
    int status;
    struct attempts tries;
    unsigned attempts; /* at most; 0: until it is answered */
    uint32_t most_ms;
    uint64_t after_ms; /* Retry-After */
    remote_answered *answered;
};

struct remote_driver {
    struct sbx_driver base;
    const struct remote_settings *settings;
    struct http_client *client;
    struct retry retry; /* but for the number of attempts, which is a call's */
    bool croft;         /* on the other side: its additions can be used */
    struct remote_call hello;
    struct list asks;     /* of queries, see stored.c */
    struct list readings; /* of logs, see log.c */
};

#define REMOTE_PORTS 3 /* that a server may publish of a sandbox: two workers, VS Code */
struct remote_port {
    uint16_t port; /* 0: none */
    char url[sizeof((struct sbx_address *)0)->url];
};

struct remote {
    struct sbx base;
    char *image, *working_dir, *hostname;
    char *from;              /* the snapshot it begins with; NULL: none */
    char *last_words;        /* of one that failed, as its server told them; NULL: none */
    struct buf env, command; /* strings one after the other */
    bool has_command, has_user, has_group, has_fs_group;
    enum sbx_face face;
    uint32_t uid, gid, fs_group, factor;
    struct sbx_limits limits;

    char runtime_id[SBX_ID_MAX + 1];
    char url[sizeof((struct sbx_address *)0)->url];
    char session_key[SBX_KEY_MAX + 1];
    struct remote_port ports[REMOTE_PORTS];
    bool there; /* the server may have it: a start was sent, and no end was told */
    bool ended; /* by us, and its files with it */

    struct remote_call call; /* under way */
    remote_then *then;

    /* the operation under way */
    struct loop_timer timer;
    uint64_t give_up_ns, poll_ms;
    struct attempts reaching;    /* its url */
    bool resumed, looked;        /* what is done once */
    char wanted[SBX_ID_MAX + 1]; /* the snapshot that is taken */
};

static inline struct remote_driver *remote_driver_of(const struct remote *r)
{
    return container_of(r->base.driver, struct remote_driver, base);
}

/* --- call.c --- */
void remote_call_init(struct remote_call *c, struct remote_driver *d, const char *sandbox);
void remote_call_done(struct remote_call *c); /* no answer comes any more; twice is fine */
/* The body is what is in c->body; the path may be c->path. answered never comes from inside. */
fallible remote_call_send(struct remote_call *c, const char *method, const char *path,
                          remote_answered *answered);
/* Repeats a failed call after a wait. False: it was tried often enough. */
bool remote_call_again(struct remote_call *c, const struct err *e);

/* The body is what is in r->body. All calls may come twice: /start and its like are told apart by
 * the session, the others by the runtime's id, and the second has nothing left to do. */
fallible remote_call(struct remote *r, const char *method, const char *path, remote_then *then);
fallible remote_call_id(struct remote *r, const char *path, remote_then *then);
/* /croft/v1/sandboxes/ID and what follows; no body. */
fallible remote_call_croft(struct remote *r, const char *method, const char *what,
                           remote_then *then);
/* The same by POST, with what is in r->call.body, or with {"name": …}. */
fallible remote_call_body(struct remote *r, const char *what, remote_then *then);
fallible remote_call_name(struct remote *r, const char *what, struct str name, remote_then *then);
/* Is the sandbox's own server alive? Asked once. */
fallible remote_call_alive(struct remote *r, remote_then *then);

/* The server's refusal, in its words; NULL: it did not refuse. */
fallible remote_refusal(int status, const char *path, const struct json *body);

/* --- look.c --- */
fallible remote_measure(struct sbx *s);
fallible remote_diff(struct sbx *s, struct str text);
fallible remote_apply(struct sbx *s, struct str text);
fallible remote_rollback(struct sbx *s, struct str to);

/* --- log.c --- */
fallible remote_log_open(struct sbx_follower *f, const struct sbx_log_from *from);
void remote_log_next(struct sbx_follower *f, struct buf *out);
void remote_log_close(struct sbx_follower *f);
void remote_log_moved(struct sbx *s);
void remote_log_left(struct remote *r);             /* it is removed; what is read goes on */
void remote_drop_readings(struct remote_driver *d); /* without a callback */
void remote_logs(struct sbx *s, struct buf *out);

/* --- stored.c --- */
fallible remote_snapshot(struct sbx *s, struct str name);
fallible remote_snapshot_list(struct sbx_query *q);
fallible remote_snapshot_remove(struct sbx_query *q);
void remote_drop_asks(struct remote_driver *d); /* they are not answered any more */

/* --- wait.c --- */
struct wire_remote;
/* Keeps what is known of the runtime. */
fallible remote_take_object(struct remote *r, const struct json *body, struct wire_remote *ret);
/* Once for each operation that waits. */
void remote_begin_waiting(struct remote *r);
void remote_look_then(struct remote *r, remote_then *then);
/* Waits, after starts, resumes and adoptions, until the sandbox can be used or has another
 * state. */
void remote_on_object(struct remote *r, const struct json *body, struct err *e);
void remote_on_look(struct remote *r, const struct json *body, struct err *e);
/* The operation has failed; if the server does not know it any more, it has ended. */
void remote_end_if_gone(struct remote *r, struct err *e);
