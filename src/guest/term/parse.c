// SPDX-License-Identifier: Apache-2.0
/* parse.c — bytes to characters and sequences, the same however they are split.
 *
 * Most bytes are printable ASCII: they are found eight at a time and drawn as one run. A byte that
 * cannot belong to a sequence ends it and is shown: no start of one may swallow what follows. */
#include "guest/term/inner.h"

#include "base/utf8.h"

#define ESC '\033'
#define CAN 0x18
#define SUB 0x1a
#define DEL 0x7f
#define DCS_MAX_BYTES                                                                              \
    (1u << 20) /* then it was no DCS but a binary file on its way to the screen                    \
                */
#define EACH_BYTE(value) (0x0101010101010101u * (value))

static size_t printable_run(const char *p, size_t n)
{
    size_t i = 0;

    for (; n - i >= 8; i += 8) {
        uint64_t w;
        memcpy(&w, p + i, sizeof w);
        /* a borrow or carry only spoils bytes after the first one that is found */
        uint64_t other = ((w - EACH_BYTE(0x20)) | w | (w + EACH_BYTE(1))) & EACH_BYTE(0x80);
        if (other)
            return i + (size_t)__builtin_ctzll(other) / 8;
    }
    while (i < n && p[i] >= ' ' && p[i] < DEL)
        i++;
    return i;
}

/* Length of a whole colour sequence at ESC, or 0. */
static size_t colour_length(const char *p, size_t n)
{
    size_t i = 2;

    if (n < 3 || p[1] != '[')
        return 0;
    while (i < n && ((p[i] >= '0' && p[i] <= '9') || p[i] == ';' || p[i] == ':'))
        i++;
    return i < n && p[i] == 'm' ? i + 1 : 0;
}

/* --- characters --- */

/* False: c starts something new, and what came before it was no character. */
static bool take_utf8_byte(struct term *t, char c)
{
    struct term_parser *p = &t->parser;
    unsigned had = p->utf8_len;
    uint32_t cp;

    if (!utf8_feed(&p->utf8_state, str_n(&c, 1))) {
        p->utf8_len = 0;
        p->utf8_state = 0;
        term_draw(t, 0xfffd);
        return had == 0;
    }
    p->utf8[p->utf8_len++] = c;
    if (p->utf8_state == 0) {
        utf8_decode(str_n(p->utf8, p->utf8_len), &cp);
        p->utf8_len = 0;
        term_draw(t, cp);
    }
    return true;
}

/* Gives how many bytes were used. */
static size_t take_text(struct term *t, const char *p, size_t n)
{
    if (t->parser.utf8_len)
        return take_utf8_byte(t, *p);
    size_t run = printable_run(p, n);
    if (run) {
        term_draw_ascii(t, str_n(p, run));
        return run;
    }
    if (*p == ESC) {
        size_t colour = colour_length(p, n);
        if (!colour)
            t->parser.state = TERM_ESC;
        t->parser.middle = 0;
        return colour ? colour : 1;
    }
    if ((unsigned char)*p < 0x80) {
        term_control(t, *p);
        return 1;
    }
    uint32_t cp;
    size_t len = utf8_decode(str_n(p, n), &cp);
    if (len == 1)
        return take_utf8_byte(t, *p);
    term_draw(t, cp);
    return len;
}

/* --- sequences --- */

/* Control characters work in the middle of a sequence; some end it. */
static void take_control(struct term *t, char c)
{
    struct term_parser *p = &t->parser;

    if (c == ESC) {
        p->state = TERM_ESC;
        p->middle = 0;
    } else if (c == CAN || c == SUB) {
        p->state = TERM_GROUND;
    } else {
        term_control(t, c);
    }
}

static void start_string(struct term_parser *p, enum term_state string)
{
    p->state = p->string = string;
    p->string_bytes = 0;
}

static void start_csi(struct term_parser *p)
{
    p->state = TERM_CSI;
    p->param_count = 0;
    p->prefix = p->middle = 0;
    p->has_colon = false;
}

static void take_escape(struct term *t, char c)
{
    struct term_parser *p = &t->parser;

    if (c >= ' ' && c <= '/') {
        p->middle = p->middle ? p->middle : c;
        p->state = TERM_ESC_MORE;
    } else if (p->state == TERM_ESC && c == '[') {
        start_csi(p);
    } else if (p->state == TERM_ESC && c == 'P') {
        start_string(p, TERM_STRING_DCS);
    } else if (p->state == TERM_ESC && strchr("]X^_k", c)) {
        start_string(p, TERM_STRING);
    } else {
        p->state = TERM_GROUND;
        term_escape(t, c);
    }
}

static void take_digit(struct term_parser *p, unsigned digit)
{
    if (p->param_count == 0)
        p->params[p->param_count++] = 0;
    if (p->param_count > TERM_PARAM_COUNT)
        return;
    unsigned *value = &p->params[p->param_count - 1];
    *value = *value * 10 + digit;
    if (*value > TERM_PARAM_MAX)
        *value = TERM_PARAM_MAX;
}

static void next_param(struct term_parser *p)
{
    if (p->param_count == 0)
        p->params[p->param_count++] = 0;
    if (p->param_count < TERM_PARAM_COUNT)
        p->params[p->param_count] = 0;
    if (p->param_count <= TERM_PARAM_COUNT)
        p->param_count++;
}

static void take_csi(struct term *t, char c)
{
    struct term_parser *p = &t->parser;

    if (c >= '0' && c <= '9') {
        take_digit(p, (unsigned)(c - '0'));
    } else if (c == ';') {
        next_param(p);
    } else if (c == ':') {
        p->has_colon = true;
    } else if (c >= '<' && c <= '?') {
        p->prefix = c;
    } else if (c >= ' ' && c <= '/') {
        p->middle = c;
    } else {
        p->state = TERM_GROUND;
        if (p->param_count > TERM_PARAM_COUNT)
            p->param_count = TERM_PARAM_COUNT;
        term_csi(t, c);
    }
}

/* False: c is not part of the string. */
static bool take_string(struct term_parser *p, char c)
{
    if (c == ESC) {
        p->state = TERM_STRING_ESC;
        return true;
    }
    if (c == CAN || c == SUB || (c == '\a' && p->state == TERM_STRING)) {
        p->state = TERM_GROUND;
        return true;
    }
    bool over =
        p->state == TERM_STRING ? c == '\r' || c == '\n' : p->string_bytes++ > DCS_MAX_BYTES;
    if (over)
        p->state = TERM_GROUND;
    return !over;
}

/* False: the byte ended a sequence without being part of it. */
static bool take_sequence_byte(struct term *t, char c)
{
    struct term_parser *p = &t->parser;

    if (p->state == TERM_STRING || p->state == TERM_STRING_DCS)
        return take_string(p, c);
    if (p->state == TERM_STRING_ESC) {
        p->state = c == '\\' ? TERM_GROUND : TERM_ESC;
        p->middle = 0;
        return c == '\\';
    }
    if ((unsigned char)c >= 0x80) {
        p->state = TERM_GROUND;
        return false;
    }
    if (c < ' ')
        take_control(t, c);
    else if (c != DEL && p->state == TERM_CSI)
        take_csi(t, c);
    else if (c != DEL)
        take_escape(t, c);
    return true;
}

void term_feed(struct term *t, struct str bytes)
{
    buf_reset(&t->replies);
    t->changed = false;
    while (bytes.len) {
        size_t n = t->parser.state == TERM_GROUND ? take_text(t, bytes.p, bytes.len)
                                                  : take_sequence_byte(t, *bytes.p);
        bytes = str_from(bytes, n);
    }
    t->version += t->changed;
}
