// SPDX-License-Identifier: Apache-2.0
/* zmtp.h — ZMTP 3.0 with the NULL mechanism, as bytes in and messages out; no I/O.
 *
 * One reader takes the peer's greeting, its READY and then messages of several parts. Any split of
 * the input tells the same. A message over the limit is not fatal: the parts that fit are given and
 * the rest is counted, because whatever a cell prints in one go arrives as one message. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define ZMTP_GREETING_LEN 64
#define ZMTP_PARTS_MAX    64
#define ZMTP_COMMAND_MAX  4096         /* bytes of a command; longer is refused */
#define ZMTP_FRAME_MAX    (4ull << 30) /* what a peer may announce for one part */
#define ZMTP_DEFAULT_SIZE (32u << 20)  /* bytes kept of one message */

enum zmtp_role { ZMTP_DEALER, ZMTP_SUB };

struct zmtp_message {
    struct str parts[ZMTP_PARTS_MAX];
    unsigned count;
    uint64_t dropped_bytes; /* over the limit; the part they belonged to has what fitted: nothing */
};

enum zmtp_event { ZMTP_NONE, ZMTP_GREETED, ZMTP_READY, ZMTP_MESSAGE, ZMTP_FAIL };

struct zmtp {
    enum zmtp_role role;
    uint8_t phase, head_len;
    uint8_t head[ZMTP_GREETING_LEN]; /* greeting, then the head of the frame that comes */
    uint64_t left;                   /* of the frame's body */
    bool ready, skipping;
    struct buf command, body;
    size_t ends[ZMTP_PARTS_MAX];
    unsigned count;
    uint64_t dropped_bytes;
    struct zmtp_message message; /* points into body */
    struct err *why;
};

void zmtp_init(struct zmtp *z, enum zmtp_role role, size_t limit_bytes);
void zmtp_done(struct zmtp *z);

/* Takes from *rest up to the next event. ZMTP_NONE: all is taken, more must come. ZMTP_MESSAGE:
 * z->message, valid until the next call. ZMTP_FAIL: z->why says it, for good. */
enum zmtp_event zmtp_next(struct zmtp *z, struct str *rest);

/* --- our side --- */

/* Each is sent after the peer's part: libzmq's PUB hangs up on a READY and a subscription that come
 * together with the greeting. */
void zmtp_put_greeting(struct buf *out);
void zmtp_put_ready(struct buf *out, enum zmtp_role role); /* after ZMTP_GREETED */
void zmtp_put_subscription(struct buf *out);               /* to everything; after ZMTP_READY */
void zmtp_put_part(struct buf *out, struct str part, bool more);
