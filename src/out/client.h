// SPDX-License-Identifier: Apache-2.0
/* client.h — HTTP/1.1 client on the codec of net/: TCP, TLS and unix sockets, connections reused,
 * bodies streamed in both directions. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "net/http.h"
#include "net/stream.h"

struct dialer;
struct http_client;
struct http_call;

struct http_client_config { /* zero: the default */
    uint32_t idle_ms;       /* 30 s: an unused connection is kept so long */
    unsigned idle_per_host; /* 8 */
};

fallible http_client_new(struct dialer *dialer, const struct http_client_config *config,
                         struct http_client **ret_client);
void http_client_free(struct http_client *client); /* cancels calls without telling them */
OWNABLE(http_client)

struct http_call_events {
    /* Called for the final answer; head is valid only inside. May be NULL. */
    void (*on_head)(struct http_call *call, const struct http_head *head);
    void (*on_body)(struct http_call *call, struct str piece); /* may be NULL */
    /* Request body from a producer: write with http_call_write, end with http_call_write_end. */
    void (*on_drain)(struct http_call *call); /* may be NULL */
    /* Last callback, once. e is NULL when the whole answer came (whatever its status); otherwise it
     * is the callee's to free: ERR_UPSTREAM (refused, reset, not HTTP), ERR_TIMEOUT,
     * ERR_TOO_LARGE. The call is freed after the turn. */
    void (*on_done)(struct http_call *call, struct err *e);
};

struct http_call_spec {
    struct str method;
    struct str url;       /* "http://host:port/path?query", "unix:/path.sock:/target" */
    struct str unix_path; /* connect here instead of to the url's host */
    const struct http_header *headers;
    size_t header_count;
    struct str body;  /* copied; .p NULL: none */
    bool stream_body; /* body comes by http_call_write, chunked (or body_length when not 0) */
    uint64_t body_length;
    uint32_t connect_ms;     /* 10 s */
    uint32_t idle_ms;        /* 60 s without a byte, while not paused */
    uint32_t total_ms;       /* 0: no limit */
    uint64_t max_body_bytes; /* of the answer; 0: 64 MB; more is ERR_TOO_LARGE. UINT64_MAX: any */
};

/* The spec is copied as far as needed. Never calls back before it returns.
 *
 * A safe request (GET, HEAD, OPTIONS, PUT, DELETE with no streamed body) that fails on a reused
 * connection before any byte of the answer is sent once more on a new one. */
fallible http_call_start(struct http_client *client, const struct http_call_spec *spec,
                         const struct http_call_events *events, void *owner,
                         struct http_call **ret_call);
void *http_call_owner(const struct http_call *call);
void http_call_cancel(struct http_call *call); /* no callback comes any more */
void http_call_write(struct http_call *call, struct str piece);
size_t http_call_pending(const struct http_call *call);
void http_call_write_end(struct http_call *call);
void http_call_pause(struct http_call *call); /* back-pressure on the answer */
void http_call_resume(struct http_call *call);
/* For 101 and CONNECT: takes the connection; on_done does not follow. Call it inside on_head. */
struct stream *http_call_take_stream(struct http_call *call);
