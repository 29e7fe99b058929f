// SPDX-License-Identifier: Apache-2.0
/* zmtp.c — see zmtp.h. Commands after READY are skipped: we announce 3.0, which has none. */
#include "guest/jupyter/zmtp.h"

#include <string.h>

enum { FLAG_MORE = 1, FLAG_LONG = 2, FLAG_COMMAND = 4, FLAG_KNOWN = 7 };
enum { GREETING, FRAME_HEAD, FRAME_BODY, FAILED };

#define SIGNATURE_LEN 10
#define MECHANISM_AT  12
#define MECHANISM_LEN 20
#define LONG_HEAD     9
#define KEEP_BYTES    (64u << 10) /* memory kept between messages */

static const char mechanism[MECHANISM_LEN] = "NULL";

void zmtp_init(struct zmtp *z, enum zmtp_role role, size_t limit_bytes)
{
    *z = (struct zmtp){.role = role, .phase = GREETING};
    buf_init(&z->command, ZMTP_COMMAND_MAX);
    buf_init(&z->body, limit_bytes ? limit_bytes : ZMTP_DEFAULT_SIZE);
}

void zmtp_done(struct zmtp *z)
{
    buf_done(&z->command);
    buf_done(&z->body);
    err_free(z->why);
    z->why = NULL;
}

static enum zmtp_event zmtp_fail(struct zmtp *z, struct err *why)
{
    z->phase = FAILED;
    err_free(z->why);
    z->why = why;
    return ZMTP_FAIL;
}

/* Moves bytes into the head until it has want of them. */
static bool fill_head(struct zmtp *z, struct str *rest, size_t want)
{
    while (z->head_len < want && rest->len) {
        z->head[z->head_len++] = (uint8_t)rest->p[0];
        *rest = str_from(*rest, 1);
    }
    return z->head_len >= want;
}

static enum zmtp_event take_greeting(struct zmtp *z, struct str *rest)
{
    /* the signature is judged as soon as it is there: another protocol may never send 64 bytes */
    if (z->head_len < SIGNATURE_LEN) {
        if (!fill_head(z, rest, SIGNATURE_LEN))
            return ZMTP_NONE;
        if (z->head[0] != 0xff || z->head[SIGNATURE_LEN - 1] != 0x7f)
            return zmtp_fail(z, err_new(ERR_UPSTREAM, "the peer does not speak ZMTP"));
    }
    if (!fill_head(z, rest, ZMTP_GREETING_LEN))
        return ZMTP_NONE;
    if (z->head[10] < 3)
        return zmtp_fail(z, err_new(ERR_UPSTREAM, "the peer speaks ZMTP %u, not 3", z->head[10]));
    if (memcmp(z->head + MECHANISM_AT, mechanism, MECHANISM_LEN) != 0)
        return zmtp_fail(z, err_new(ERR_UPSTREAM, "the peer wants another mechanism than NULL"));
    z->phase = FRAME_HEAD;
    z->head_len = 0;
    return ZMTP_GREETED;
}

static bool peer_fits(enum zmtp_role role, struct str type)
{
    if (role == ZMTP_SUB)
        return str_eq(type, STR("PUB")) || str_eq(type, STR("XPUB"));
    return str_eq(type, STR("ROUTER")) || str_eq(type, STR("DEALER")) || str_eq(type, STR("REP"));
}

/* One name and value of READY; false at the end or when it is broken, which leaves some of it. */
static bool cut_property(struct str *s, struct str *name, struct str *value)
{
    if (s->len < 1)
        return false;
    size_t name_len = (uint8_t)s->p[0];
    if (name_len == 0 || s->len < 1 + name_len + 4)
        return false;
    const uint8_t *n = (const uint8_t *)s->p + 1 + name_len;
    size_t value_len = (size_t)n[0] << 24 | (size_t)n[1] << 16 | (size_t)n[2] << 8 | n[3];
    if (value_len > s->len - 1 - name_len - 4)
        return false;
    *name = str_n(s->p + 1, name_len);
    *value = str_n(s->p + 1 + name_len + 4, value_len);
    *s = str_from(*s, 1 + name_len + 4 + value_len);
    return true;
}

static fallible check_ready(enum zmtp_role role, struct str properties)
{
    struct str name, value, type = {NULL, 0};

    while (cut_property(&properties, &name, &value))
        if (str_eq_nocase(name, STR("Socket-Type")))
            type = value;
    if (properties.len)
        return err_new(ERR_UPSTREAM, "the peer's READY is broken");
    if (!peer_fits(role, type))
        return err_new(ERR_UPSTREAM, "the peer is a '" STR_FMT "' socket, of no use here",
                       STR_ARG(str_first(type, 16)));
    return NULL;
}

static enum zmtp_event take_command(struct zmtp *z)
{
    struct str c = buf_str(&z->command);

    if (z->ready)
        return ZMTP_NONE;
    if (str_starts(c, STR("\5ERROR")))
        return zmtp_fail(z, err_new(ERR_UPSTREAM, "the peer refused: '" STR_FMT "'",
                                    STR_ARG(str_first(str_from(c, 7), 200))));
    if (!str_starts(c, STR("\5READY")))
        return zmtp_fail(z, err_new(ERR_UPSTREAM, "the peer sent a command before READY"));
    struct err *e = check_ready(z->role, str_from(c, 6));
    if (e)
        return zmtp_fail(z, e);
    z->ready = true;
    return ZMTP_READY;
}

static enum zmtp_event take_message(struct zmtp *z)
{
    size_t at = 0;

    for (unsigned i = 0; i < z->count; i++) {
        z->message.parts[i] = str_n(z->body.p ? z->body.p + at : "", z->ends[i] - at);
        at = z->ends[i];
    }
    z->message.count = z->count;
    z->message.dropped_bytes = z->dropped_bytes;
    z->count = 0;
    return ZMTP_MESSAGE;
}

static uint64_t frame_len(const struct zmtp *z)
{
    uint64_t n = 0;

    if (!(z->head[0] & FLAG_LONG))
        return z->head[1];
    for (unsigned i = 1; i < LONG_HEAD; i++)
        n = n << 8 | z->head[i];
    return n;
}

static fallible check_frame(const struct zmtp *z)
{
    uint8_t flags = z->head[0];

    if (flags & ~FLAG_KNOWN)
        return err_new(ERR_UPSTREAM, "the peer set reserved frame flags 0x%02x", flags);
    if ((flags & FLAG_COMMAND) && (flags & FLAG_MORE))
        return err_new(ERR_UPSTREAM, "the peer sent a command in pieces");
    if ((flags & FLAG_COMMAND) && z->left > ZMTP_COMMAND_MAX)
        return err_new(ERR_UPSTREAM, "the peer sent a command of %llu bytes",
                       (unsigned long long)z->left);
    if (z->left > ZMTP_FRAME_MAX)
        return err_new(ERR_UPSTREAM, "the peer announced a part of %llu bytes",
                       (unsigned long long)z->left);
    if (!(flags & FLAG_COMMAND) && !z->ready)
        return err_new(ERR_UPSTREAM, "the peer sent a message before READY");
    if (!(flags & FLAG_COMMAND) && z->count == ZMTP_PARTS_MAX)
        return err_new(ERR_UPSTREAM, "the peer sent more than %u parts", ZMTP_PARTS_MAX);
    return NULL;
}

/* Between messages nothing large is kept; what the last event pointed to is gone from here on. */
static void forget_message(struct zmtp *z)
{
    z->dropped_bytes = 0;
    if (z->body.cap > KEEP_BYTES) {
        size_t limit = z->body.limit_bytes;
        buf_done(&z->body);
        buf_init(&z->body, limit);
    } else {
        buf_reset(&z->body);
    }
}

static enum zmtp_event take_head(struct zmtp *z, struct str *rest)
{
    if (!rest->len)
        return ZMTP_NONE;
    if (z->count == 0 && z->head_len == 0)
        forget_message(z);
    if (!fill_head(z, rest, 1))
        return ZMTP_NONE;
    if (!fill_head(z, rest, z->head[0] & FLAG_LONG ? LONG_HEAD : 2))
        return ZMTP_NONE;
    z->left = frame_len(z);
    struct err *e = check_frame(z);
    if (e)
        return zmtp_fail(z, e);
    z->phase = FRAME_BODY;
    buf_reset(&z->command);
    z->skipping = !(z->head[0] & FLAG_COMMAND) && z->left > z->body.limit_bytes - z->body.len;
    if (z->skipping)
        z->dropped_bytes += z->left;
    return ZMTP_NONE;
}

static enum zmtp_event end_frame(struct zmtp *z)
{
    uint8_t flags = z->head[0];

    z->phase = FRAME_HEAD;
    z->head_len = 0;
    if (flags & FLAG_COMMAND)
        return take_command(z);
    z->ends[z->count++] = z->body.len;
    return flags & FLAG_MORE ? ZMTP_NONE : take_message(z);
}

static enum zmtp_event take_body(struct zmtp *z, struct str *rest)
{
    struct buf *into = z->head[0] & FLAG_COMMAND ? &z->command : &z->body;
    struct str piece = str_first(*rest, z->left < rest->len ? (size_t)z->left : rest->len);

    if (!z->skipping && piece.len) {
        buf_add(into, piece);
        if (buf_failed(into))
            return zmtp_fail(z, buf_check(into));
    }
    *rest = str_from(*rest, piece.len);
    z->left -= piece.len;
    return z->left ? ZMTP_NONE : end_frame(z);
}

enum zmtp_event zmtp_next(struct zmtp *z, struct str *rest)
{
    enum zmtp_event ev = ZMTP_NONE;

    while (ev == ZMTP_NONE && (rest->len || (z->phase == FRAME_BODY && !z->left))) {
        if (z->phase == GREETING)
            ev = take_greeting(z, rest);
        else if (z->phase == FRAME_HEAD)
            ev = take_head(z, rest);
        else if (z->phase == FRAME_BODY)
            ev = take_body(z, rest);
        else
            *rest = str_from(*rest, rest->len); /* failed: it was told once */
    }
    return ev;
}

void zmtp_put_greeting(struct buf *out)
{
    uint8_t g[ZMTP_GREETING_LEN] = {0xff, [9] = 0x7f, [10] = 3, [11] = 0};

    memcpy(g + MECHANISM_AT, mechanism, MECHANISM_LEN);
    buf_add_mem(out, g, sizeof g);
}

static void put_head(struct buf *out, uint8_t flags, uint64_t len)
{
    uint8_t head[LONG_HEAD] = {flags, (uint8_t)len};

    if (len < 256) {
        buf_add_mem(out, head, 2);
        return;
    }
    head[0] = flags | FLAG_LONG;
    for (unsigned i = 1; i < LONG_HEAD; i++)
        head[i] = (uint8_t)(len >> (64 - 8 * i));
    buf_add_mem(out, head, LONG_HEAD);
}

void zmtp_put_ready(struct buf *out, enum zmtp_role role)
{
    struct str dealer = STR("\5READY\13Socket-Type\0\0\0\6DEALER\10Identity\0\0\0\0");
    struct str sub = STR("\5READY\13Socket-Type\0\0\0\3SUB");
    struct str ready = role == ZMTP_SUB ? sub : dealer;

    put_head(out, FLAG_COMMAND, ready.len);
    buf_add(out, ready);
}

void zmtp_put_subscription(struct buf *out)
{
    zmtp_put_part(out, STR("\1"), false);
}

void zmtp_put_part(struct buf *out, struct str part, bool more)
{
    put_head(out, more ? FLAG_MORE : 0, part.len);
    buf_add(out, part);
}
