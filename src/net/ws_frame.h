// SPDX-License-Identifier: Apache-2.0
/* ws_frame.h — the WebSocket codec: bytes to messages and back; no I/O, both roles.
 *
 * However the input is split, the same events come out, and a violation is told at the first byte
 * that proves it. Nothing is allocated for what a header merely claims, and nothing at all is held
 * between messages. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "net/ws_deflate.h"

enum ws_role { WS_SERVER, WS_CLIENT }; /* ours, not the peer's */

enum ws_op {
    WS_OP_CONTINUE = 0,
    WS_OP_TEXT = 1,
    WS_OP_BINARY = 2,
    WS_OP_CLOSE = 8,
    WS_OP_PING = 9,
    WS_OP_PONG = 10,
};

#define WS_FIN         0x80
#define WS_RSV1        0x40 /* on a message's first frame: compressed */
#define WS_HEAD_MAX    14
#define WS_CONTROL_MAX 125

/* --- writing --- */
/* first is WS_FIN, WS_RSV1 and the opcode; key NULL: not masked. Gives the length. */
size_t ws_head_put(uint8_t out[WS_HEAD_MAX], uint8_t first, uint64_t payload_len,
                   const uint8_t key[4]);
/* Copies and masks, or unmasks; at is the offset of from[0] in the payload. */
void ws_mask_copy(void *to, const void *from, size_t n, const uint8_t key[4], uint64_t at);
/* May this code stand in a Close frame? */
bool ws_close_code_valid(unsigned code);

/* --- reading --- */
enum ws_event_kind {
    WS_EV_NONE, /* more input is needed */
    WS_EV_TEXT,
    WS_EV_BINARY,
    WS_EV_PING,
    WS_EV_PONG,
    WS_EV_CLOSE, /* code 1005 when the peer gave none */
    WS_EV_FAIL,  /* the peer broke a rule: code and data say what to close with */
};

struct ws_event {
    enum ws_event_kind kind;
    int code;
    struct str data; /* until the next call */
};

struct ws_reader {
    enum ws_role role;
    size_t limit_bytes;            /* of a message, after inflating */
    struct ws_deflate_terms terms; /* what was agreed; .on false: RSV1 is refused */
    struct ws_inflate *inflate;    /* NULL while unused */
    struct buf message;            /* as far as it has come */
    uint64_t left;                 /* of the frame's payload */
    uint64_t frame_at;             /* offset in the payload, for the mask */
    uint64_t wire_bytes;           /* of the message, before inflating */
    uint32_t utf8;                 /* state between pieces */
    uint8_t kind;                  /* of the message in progress: WS_OP_TEXT, WS_OP_BINARY or 0 */
    uint8_t head_len, head_need;   /* of the frame head */
    uint8_t control_len;
    bool in_payload, compressed, delivered, ended;
    uint8_t head[WS_HEAD_MAX];
    uint8_t key[4];
    uint8_t control[WS_CONTROL_MAX];
};

void ws_reader_init(struct ws_reader *r, enum ws_role role, size_t message_bytes,
                    const struct ws_deflate_terms *terms); /* NULL: no compression */
void ws_reader_done(struct ws_reader *r);
/* Takes bytes off the front of *in up to the next event. After WS_EV_CLOSE and WS_EV_FAIL
 * everything is swallowed in silence. */
struct ws_event ws_reader_next(struct ws_reader *r, struct str *in);
