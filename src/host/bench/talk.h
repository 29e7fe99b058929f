// SPDX-License-Identifier: Apache-2.0
/* talk.h — a bench's open connection to a server: a request, then its answer.
 *
 * Plain sockets and no loop: little of a measured time is the bench's own. To wait for several,
 * poll their descriptors and call talk_read() for those that can be read. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define TALK_WAIT_MS 60000 /* for one answer, on a machine that is on its knees */

struct talk {
    int fd; /* -1: none */
    struct buf in;
    int status; /* of the answer that is there */
    struct str body;
};

fallible talk_tcp(struct talk *t, uint16_t port); /* of 127.0.0.1 */
fallible talk_unix(struct talk *t, const char *path);
void talk_close(struct talk *t);

/* key: for X-Session-API-Key, body: JSON; NULL: none. */
fallible talk_send(struct talk *t, const char *method, const char *target, const char *key,
                   const char *body);
/* Reads what has come. With *ret_whole, status and body are there until the next talk_send(). A
 * status of 300 and more is an error that holds the body's first letters. */
fallible talk_read(struct talk *t, bool *ret_whole);
/* Sends, waits and reads. */
fallible talk_ask(struct talk *t, const char *method, const char *target, const char *key,
                  const char *body);
