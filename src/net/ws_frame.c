// SPDX-License-Identifier: Apache-2.0
/* ws_frame.c — RFC 6455 section 5, as a machine that takes any split of its input.
 *
 * Checks run in the order of the bytes, never by what the buffer happens to hold. So the outcome
 * does not depend on the splits. */
#include "net/ws_frame.h"

#include <string.h>

#include "base/utf8.h"
#include "net/ws.h"

size_t ws_head_put(uint8_t out[WS_HEAD_MAX], uint8_t first, uint64_t payload_len,
                   const uint8_t key[4])
{
    size_t n = 2, width = payload_len < 126 ? 0 : payload_len <= 0xffff ? 2 : 8;

    out[0] = first;
    out[1] = (uint8_t)(width == 0 ? payload_len : width == 2 ? 126 : 127);
    for (size_t i = width; i-- > 0;)
        out[n++] = (uint8_t)(payload_len >> (8 * i));
    if (!key)
        return n;
    out[1] |= 0x80;
    memcpy(out + n, key, 4);
    return n + 4;
}

void ws_mask_copy(void *to, const void *from, size_t n, const uint8_t key[4], uint64_t at)
{
    uint8_t *out = to, turned[8];
    const uint8_t *in = from;
    uint64_t wide;
    size_t i = 0;

    for (size_t k = 0; k < 8; k++)
        turned[k] = key[(at + k) & 3];
    memcpy(&wide, turned, 8);
    for (; n - i >= 8; i += 8) {
        uint64_t word;
        memcpy(&word, in + i, 8);
        word ^= wide;
        memcpy(out + i, &word, 8);
    }
    for (; i < n; i++)
        out[i] = in[i] ^ turned[i & 7];
}

bool ws_close_code_valid(unsigned code)
{
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
           (code >= 3000 && code <= 4999);
}

void ws_reader_init(struct ws_reader *r, enum ws_role role, size_t message_bytes,
                    const struct ws_deflate_terms *terms)
{
    *r = (struct ws_reader){.role = role, .limit_bytes = message_bytes, .head_need = 2};
    if (terms)
        r->terms = *terms;
    buf_init(&r->message, message_bytes);
}

void ws_reader_done(struct ws_reader *r)
{
    buf_done(&r->message);
    ws_inflate_free(r->inflate);
    r->inflate = NULL;
    r->ended = true;
}

static bool frame_fail(struct ws_reader *r, struct ws_event *ev, int code, struct str why)
{
    ws_reader_done(r);
    *ev = (struct ws_event){WS_EV_FAIL, code, why};
    return true;
}

static bool is_control(const struct ws_reader *r)
{
    return r->head[0] & 8;
}

static bool is_last(const struct ws_reader *r)
{
    return r->head[0] & WS_FIN;
}

/* The steps below give true when there is something to tell. */

static bool check_first_byte(struct ws_reader *r, struct ws_event *ev)
{
    unsigned op = r->head[0] & 15;
    bool starts = op == WS_OP_TEXT || op == WS_OP_BINARY;

    if (r->head[0] & 0x30)
        return frame_fail(r, ev, WS_PROTOCOL, STR("reserved bit set"));
    if ((r->head[0] & WS_RSV1) && (!r->terms.on || !starts))
        return frame_fail(r, ev, WS_PROTOCOL, STR("unexpected compression bit"));
    if ((op > WS_OP_BINARY && op < WS_OP_CLOSE) || op > WS_OP_PONG)
        return frame_fail(r, ev, WS_PROTOCOL, STR("reserved opcode"));
    if (is_control(r) && !is_last(r))
        return frame_fail(r, ev, WS_PROTOCOL, STR("fragmented control frame"));
    if (op == WS_OP_CONTINUE && !r->kind)
        return frame_fail(r, ev, WS_PROTOCOL, STR("continuation of nothing"));
    if (starts && r->kind)
        return frame_fail(r, ev, WS_PROTOCOL, STR("message inside a message"));
    return false;
}

static bool check_second_byte(struct ws_reader *r, struct ws_event *ev)
{
    bool masked = r->head[1] & 0x80;
    unsigned len = r->head[1] & 0x7f;

    if (masked != (r->role == WS_SERVER))
        return frame_fail(r, ev, WS_PROTOCOL, masked ? STR("masked frame") : STR("unmasked frame"));
    if (is_control(r) && len > WS_CONTROL_MAX)
        return frame_fail(r, ev, WS_PROTOCOL, STR("control frame too long"));
    r->head_need = (uint8_t)(2 + (len == 126 ? 2 : len == 127 ? 8 : 0) + (masked ? 4 : 0));
    return false;
}

/* The limit of the whole message as sent. Compressed data may be longer than its content, but not
 * without end: empty blocks inflate to nothing. */
static uint64_t wire_limit(const struct ws_reader *r)
{
    return r->compressed ? (uint64_t)r->limit_bytes * 2 + 1024 : r->limit_bytes;
}

static bool check_length(struct ws_reader *r, struct ws_event *ev)
{
    unsigned small = r->head[1] & 0x7f;
    size_t width = small == 126 ? 2 : small == 127 ? 8 : 0;
    uint64_t len = width ? 0 : small;

    for (size_t i = 0; i < width; i++)
        len = len << 8 | r->head[2 + i];
    if ((width == 2 && len < 126) || (width == 8 && len <= 0xffff))
        return frame_fail(r, ev, WS_PROTOCOL, STR("length not in its shortest form"));
    if (len >> 63)
        return frame_fail(r, ev, WS_PROTOCOL, STR("length above 2^63"));
    r->left = len;
    if (is_control(r))
        return false;
    if (!r->kind) {
        r->kind = r->head[0] & 15;
        r->compressed = r->head[0] & WS_RSV1;
        r->wire_bytes = 0;
        r->utf8 = 0;
    }
    if (len > wire_limit(r) - r->wire_bytes)
        return frame_fail(r, ev, WS_TOO_BIG, STR("message too big"));
    r->wire_bytes += len;
    return false;
}

/* The mask key has no rules, so the length is judged as soon as it is there. */
static bool check_head_byte(struct ws_reader *r, struct ws_event *ev)
{
    if (r->head_len == 1)
        return check_first_byte(r, ev);
    if (r->head_len == 2 && check_second_byte(r, ev))
        return true;
    if (r->head_len == r->head_need - (r->role == WS_SERVER ? 4 : 0))
        return check_length(r, ev);
    return false;
}

static bool take_head(struct ws_reader *r, struct str *in, struct ws_event *ev)
{
    while (in->len && r->head_len < r->head_need) {
        r->head[r->head_len++] = (uint8_t)*in->p;
        *in = str_from(*in, 1);
        if (check_head_byte(r, ev))
            return true;
    }
    if (r->head_len < 2 || r->head_len < r->head_need)
        return false;
    if (r->role == WS_SERVER)
        memcpy(r->key, r->head + r->head_need - 4, 4);
    r->in_payload = true;
    r->frame_at = 0;
    r->control_len = 0;
    return false;
}

static void frame_unmask(const struct ws_reader *r, void *to, struct str piece)
{
    if (r->role == WS_SERVER)
        ws_mask_copy(to, piece.p, piece.len, r->key, r->frame_at);
    else if (piece.len)
        memcpy(to, piece.p, piece.len);
}

/* Text that came since `from`. */
static bool check_text(struct ws_reader *r, size_t from, struct ws_event *ev)
{
    if (r->kind == WS_OP_TEXT && !utf8_feed(&r->utf8, str_from(buf_str(&r->message), from)))
        return frame_fail(r, ev, WS_BAD_DATA, STR("text is not UTF-8"));
    return false;
}

static bool check_inflated(struct ws_reader *r, enum ws_inflated result, size_t from,
                           struct ws_event *ev)
{
    if (r->message.len > from && check_text(r, from, ev)) /* it came before what stopped us */
        return true;
    switch (result) {
    case WS_INFLATED:
        return false;
    case WS_INFLATE_FULL:
        return frame_fail(r, ev, WS_TOO_BIG, STR("message too big"));
    case WS_INFLATE_CORRUPT:
        return frame_fail(r, ev, WS_BAD_DATA, STR("compressed data is corrupt"));
    case WS_INFLATE_NO_MEMORY:
        break;
    }
    return frame_fail(r, ev, WS_INTERNAL, STR("out of memory"));
}

static bool add_compressed(struct ws_reader *r, struct str piece, struct ws_event *ev)
{
    char plain[4096];

    if (!r->inflate && !(r->inflate = ws_inflate_new(r->terms.receive_bits)))
        return frame_fail(r, ev, WS_INTERNAL, STR("out of memory"));
    while (piece.len) {
        struct str part = str_first(piece, sizeof plain);
        size_t from = r->message.len;
        frame_unmask(r, plain, part);
        enum ws_inflated result = ws_inflate_add(r->inflate, str_n(plain, part.len), &r->message);
        if (check_inflated(r, result, from, ev))
            return true;
        r->frame_at += part.len;
        piece = str_from(piece, part.len);
    }
    return false;
}

static bool add_plain(struct ws_reader *r, struct str piece, struct ws_event *ev)
{
    size_t from = r->message.len;
    char *to = buf_reserve(&r->message, piece.len);

    if (!to) /* the limit was checked at the head */
        return frame_fail(r, ev, WS_INTERNAL, STR("out of memory"));
    frame_unmask(r, to, piece);
    buf_commit(&r->message, piece.len);
    r->frame_at += piece.len;
    return check_text(r, from, ev);
}

static bool end_message(struct ws_reader *r, struct ws_event *ev)
{
    size_t from = r->message.len;

    if (r->compressed && r->wire_bytes) { /* some peers send an empty message as nothing at all */
        enum ws_inflated result = ws_inflate_end(r->inflate, r->terms.receive_forgets, &r->message);
        if (check_inflated(r, result, from, ev))
            return true;
    }
    if (r->kind == WS_OP_TEXT && r->utf8 != 0)
        return frame_fail(r, ev, WS_BAD_DATA, STR("text ends inside a character"));
    *ev = (struct ws_event){
        .kind = r->kind == WS_OP_TEXT ? WS_EV_TEXT : WS_EV_BINARY,
        .data = buf_str(&r->message),
    };
    r->kind = 0;
    r->delivered = true;
    return true;
}

static bool end_close(struct ws_reader *r, struct ws_event *ev)
{
    struct str reason = str_n(r->control + 2, r->control_len < 2 ? 0 : r->control_len - 2u);
    unsigned code = (unsigned)r->control[0] << 8 | r->control[1];

    if (r->control_len == 1)
        return frame_fail(r, ev, WS_PROTOCOL, STR("close code cut short"));
    if (r->control_len && !ws_close_code_valid(code))
        return frame_fail(r, ev, WS_PROTOCOL, STR("invalid close code"));
    if (!utf8_valid(reason))
        return frame_fail(r, ev, WS_BAD_DATA, STR("close reason is not UTF-8"));
    ws_reader_done(r);
    *ev = (struct ws_event){WS_EV_CLOSE, r->control_len ? (int)code : WS_NO_STATUS, reason};
    return true;
}

static bool end_frame(struct ws_reader *r, struct ws_event *ev)
{
    unsigned op = r->head[0] & 15;

    r->in_payload = false;
    r->head_len = 0;
    r->head_need = 2;
    if (op == WS_OP_CLOSE)
        return end_close(r, ev);
    if (op == WS_OP_PING || op == WS_OP_PONG) {
        *ev = (struct ws_event){
            .kind = op == WS_OP_PING ? WS_EV_PING : WS_EV_PONG,
            .data = str_n(r->control, r->control_len),
        };
        return true;
    }
    return is_last(r) && end_message(r, ev);
}

/* A whole message in one unmasked frame is told where it lies. */
static bool is_whole(const struct ws_reader *r, struct str in)
{
    return r->role == WS_CLIENT && !is_control(r) && is_last(r) && !r->compressed &&
           r->frame_at == 0 && r->message.len == 0 && r->left == r->wire_bytes && in.len >= r->left;
}

static bool take_whole(struct ws_reader *r, struct str *in, struct ws_event *ev)
{
    struct str data = str_first(*in, (size_t)r->left);

    if (r->kind == WS_OP_TEXT && !utf8_feed(&r->utf8, data))
        return frame_fail(r, ev, WS_BAD_DATA, STR("text is not UTF-8"));
    *in = str_from(*in, data.len);
    r->left = 0;
    bool told = end_frame(r, ev);
    if (ev->kind != WS_EV_FAIL)
        ev->data = data;
    return told;
}

static bool take_payload(struct ws_reader *r, struct str *in, struct ws_event *ev)
{
    if (is_whole(r, *in))
        return take_whole(r, in, ev);
    struct str piece = str_first(*in, r->left > in->len ? in->len : (size_t)r->left);
    *in = str_from(*in, piece.len);
    r->left -= piece.len;
    if (piece.len == 0) {
        /* an empty frame, or nothing has come */
    } else if (is_control(r)) {
        frame_unmask(r, r->control + r->control_len, piece);
        r->control_len += (uint8_t)piece.len;
        r->frame_at += piece.len;
    } else if (r->compressed ? add_compressed(r, piece, ev) : add_plain(r, piece, ev)) {
        return true;
    }
    return r->left == 0 && end_frame(r, ev);
}

/* Frees what lasts no longer than a message; called between messages. */
static void let_go(struct ws_reader *r)
{
    buf_done(&r->message);
    if (r->terms.receive_forgets || !r->terms.on) {
        ws_inflate_free(r->inflate);
        r->inflate = NULL;
    }
}

struct ws_event ws_reader_next(struct ws_reader *r, struct str *in)
{
    struct ws_event ev = {.kind = WS_EV_NONE};

    if (r->delivered) {
        buf_reset(&r->message);
        r->delivered = false;
    }
    while (!r->ended) {
        if (!r->in_payload && take_head(r, in, &ev))
            break;
        if (r->in_payload && take_payload(r, in, &ev))
            break;
        if (in->len == 0 && (r->in_payload || r->head_len < r->head_need)) {
            if (!r->kind)
                let_go(r);
            break;
        }
    }
    if (r->ended)
        *in = str_from(*in, in->len);
    return ev;
}
