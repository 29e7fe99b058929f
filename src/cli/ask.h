// SPDX-License-Identifier: Apache-2.0
/* ask.h — questions of a command to a croft server, one at a time, each with its answer.
 *
 * The server is CROFT_HOST ("http://host:port", "unix:/path"), else the socket of the state
 * directory; the key is CROFT_API_KEY. */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/json.h"
#include "cli/cli.h"
#include "out/dial.h"
#include "out/retry.h"

#define ASK_SOCKET "server/api.sock" /* below the state directory */

struct ask {
    struct cli *cli;
    struct arena arena; /* answers live here */
    struct loop *loop;
    struct net *net;
    struct http_client *client;
    struct dialer dialer;
    struct str url, unix_path, key; /* unix_path.p NULL: by url */
    bool nobody;                    /* the last question: no server listens there */
    bool cut;                       /* its answer had begun, and did not end */
    bool tells;                     /* a person at a terminal is told that an answer is late */
    uint32_t wait_ms, late_ms;
};

fallible ask_open(struct ask *k, struct cli *cli);
void ask_close(struct ask *k); /* of one that was opened, or zeroed */

/* On a terminal, a wait of more than two seconds is announced. */
struct ask_answer {
    int status;
    struct json *body; /* NULL: there was none */
    struct str text;
};
/* body: JSON; body.p NULL: none. These are errors: a status of 300 and more, with the server's
 * detail; an answer that is not JSON, so not from a croft server; no server, with how to start
 * one. */
fallible ask_json(struct ask *k, const char *method, struct str path, struct str body,
                  struct ask_answer *ret_answer);
/* The same of what a server does and not only knows: that lasts as long as it has to. */
fallible ask_work(struct ask *k, const char *method, struct str path, struct str body,
                  struct ask_answer *ret_answer);
/* The server inside a sandbox. It is reached through the server that runs the sandbox, because only
 * that server's address is known to be right here. */
struct ask_inside {
    struct str path; /* "/sandbox/ID" */
    struct str key;
};
/* ERR_CONFLICT for a sandbox that runs a command of its own: whatever listens there is not ours. */
fallible ask_inside(struct ask *k, const struct json *sandbox, struct ask_inside *ret_inside);
struct http_call;
struct http_call_events;
struct http_call_spec;
/* A call to it; spec: without url and headers, type may have .p NULL. */
fallible ask_inside_start(struct ask *k, const struct ask_inside *in, struct str path,
                          struct str type, const struct http_call_spec *spec,
                          const struct http_call_events *events, void *owner,
                          struct http_call **ret_call);

/* An answer of any length, as it comes; each false: enough. */
struct ask_stream {
    const char *method;
    const struct ask_inside *inside; /* NULL: the server */
    struct str path;
    struct str body, type; /* type: of the body */
    struct str accept;     /* .p NULL: anything */
    bool (*each)(void *arg, struct str piece);
    void *arg;
    uint32_t wait_ms;    /* without a byte; 0: ten minutes */
    struct buf *refused; /* gets the body of a status of 300 and more instead; NULL: each does */
};
fallible ask_stream(struct ask *k, const struct ask_stream *s, int *ret_status);
/* NULL below 300; otherwise what the body says of itself, which may not be ours. */
fallible ask_refused(struct ask *k, int status, struct str text);
bool ask_keep(void *buf, struct str piece); /* an `each` that gathers up to the buffer's limit */

/* Whether to ask again after e, which is then freed. For a command that follows an endless answer
 * and knows where to go on.
 *
 * It prints the error and waits between attempts. After the connection was cut it tries for a
 * minute. tries: zero at first. */
bool ask_once_more(struct ask *k, struct attempts *tries, struct err **e);

/* The sandbox a person means: its id, its session, also as KEY/SESSION, or the beginning of an id
 * or session that only one has. ERR_CONFLICT names those that share a session, of several keys;
 * ERR_NOT_FOUND names the nearest. */
fallible ask_sandbox(struct ask *k, const char *name, struct json **ret_sandbox);
/* "/croft/v1/sandboxes/ID" and what follows it. */
struct str ask_path(struct ask *k, const struct json *sandbox, const char *rest);
