// SPDX-License-Identifier: Apache-2.0
/* served.h — a `croft serve` of the bench's own: the real program with default settings, on a free
 * port, with a scratch directory for its state. */
#pragma once

#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "host/bench/scratch.h"
#include "host/bench/talk.h"

#define SERVED_STATE 512

struct served {
    struct scratch scratch;
    char state[SERVED_STATE];
    pid_t pid; /* of the server itself; 0: none */
    uint16_t port;
    struct talk api; /* for requests that are not measured */
    struct arena arena;
    unsigned sessions; /* names given out */
};

fallible served_open(struct served *s, const char *tmp, const char *self, const char *state);
/* SIGTERM, its end, and nothing left: an error says what is. For one that did not open as well. */
fallible served_close(struct served *s);

/* The answer is good until the next question. */
fallible served_ask(struct served *s, const char *method, const char *target, const char *body,
                    struct json **ret_json);
fallible served_set_pool(struct served *s, unsigned target);
fallible served_wait_full(struct served *s); /* until the pool has what it wants */
/* A line of /proc/PID/status or smaps_rollup, such as VmRSS. */
fallible served_kb(pid_t pid, const char *file, const char *field, uint64_t *ret_kb);
