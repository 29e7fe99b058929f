// SPDX-License-Identifier: Apache-2.0
/* output.c — see output.h. */
#include "guest/jupyter/output.h"

#include "base/utf8.h"

#define CUT_MARK    STR("\n[... Observation truncated due to length ...]\n")
#define NO_OUTPUT   STR("[Code executed successfully with no output]")
#define DATA_PREFIX STR("data:image/png;base64,")

void output_init(struct output *o, size_t limit_bytes)
{
    size_t limit = limit_bytes ? limit_bytes : OUTPUT_DEFAULT_SIZE;

    *o = (struct output){.half_bytes = limit / 2};
    buf_init(&o->head, limit);
    buf_init(&o->tail, 2 * limit);
    buf_init(&o->images, OUTPUT_IMAGE_BYTES);
}

void output_done(struct output *o)
{
    buf_done(&o->head);
    buf_done(&o->tail);
    buf_done(&o->images);
}

static bool output_continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* The most that fits into n bytes without cutting a character. */
static size_t whole_chars(struct str s, size_t n)
{
    if (n >= s.len)
        return s.len;
    for (unsigned back = 0; back < 3 && n && output_continues(s.p[n]); back++)
        n--;
    return n;
}

static void keep_end(struct output *o)
{
    size_t cut = o->tail.len - o->half_bytes;

    for (unsigned on = 0; on < 3 && cut < o->tail.len && output_continues(o->tail.p[cut]); on++)
        cut++;
    buf_consume(&o->tail, cut);
    o->dropped_bytes += cut;
}

void output_add(struct output *o, struct str text)
{
    o->any = true;
    if (!o->tail.len && !o->dropped_bytes && o->head.len < o->half_bytes) {
        size_t n = whole_chars(text, o->half_bytes - o->head.len);
        buf_add(&o->head, str_first(text, n));
        text = str_from(text, n);
    }
    while (text.len) {
        struct str piece = str_first(text, o->half_bytes ? o->half_bytes : 1);
        buf_add(&o->tail, piece);
        text = str_from(text, piece.len);
        if (o->tail.len > 2 * o->half_bytes)
            keep_end(o);
    }
}

void output_end_line(struct output *o)
{
    const struct buf *last = o->tail.len ? &o->tail : &o->head;

    if (last->len && last->p[last->len - 1] != '\n')
        output_add(o, STR("\n"));
}

void output_add_png(struct output *o, struct str base64)
{
    struct str data = str_trim(base64);
    size_t before = o->images.len;

    if (o->image_count == OUTPUT_IMAGES_MAX || data.len > OUTPUT_IMAGE_BYTES / 2) {
        output_add(o, STR("[image dropped: the cell shows too much]\n"));
        return;
    }
    buf_add(&o->images, DATA_PREFIX);
    buf_add(&o->images, data);
    if (buf_failed(&o->images)) {
        o->images.len = before;
        o->images.over_limit = o->images.no_memory = false;
        output_add(o, STR("[image dropped: the cell shows too much]\n"));
        return;
    }
    o->ends[o->image_count++] = o->images.len;
}

struct str output_image(const struct output *o, unsigned i)
{
    size_t from = i ? o->ends[i - 1] : 0;

    return str_n(o->images.p + from, o->ends[i] - from);
}

static size_t output_digits(struct str s, size_t at)
{
    size_t n = 0;

    while (at + n < s.len && s.p[at + n] >= '0' && s.p[at + n] <= '9')
        n++;
    return n;
}

/* Length of the SGR sequence that s starts with; 0: none. */
static size_t sgr_len(struct str s)
{
    size_t at = 2;

    if (!str_starts(s, STR("\033[")))
        return 0;
    for (unsigned numbers = 0; numbers < 3; numbers++) {
        size_t n = output_digits(s, at);
        if (!n)
            return 0;
        at += n;
        if (at < s.len && s.p[at] == 'm')
            return at + 1;
        if (at >= s.len || s.p[at++] != ';')
            return 0;
    }
    return 0;
}

void output_add_plain(struct buf *into, struct str text)
{
    while (text.len) {
        ptrdiff_t esc = str_find_char(text, '\033');
        size_t n = esc < 0 ? text.len : (size_t)esc;
        buf_add(into, str_first(text, n));
        text = str_from(text, n);
        if (!text.len)
            return;
        size_t skip = sgr_len(text);
        if (!skip)
            buf_add_char(into, '\033');
        text = str_from(text, skip ? skip : 1);
    }
}

static bool is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

struct str output_rstrip(struct str text)
{
    while (text.len) {
        size_t at = text.len - 1;
        uint32_t cp;
        while (at && text.len - at < 4 && output_continues(text.p[at]))
            at--;
        if (utf8_decode(str_from(text, at), &cp) != text.len - at || !is_space(cp))
            return text;
        text.len = at;
    }
    return text;
}

void output_content(const struct output *o, struct buf *into)
{
    own_done(buf) raw, valid;
    size_t start = into->len;

    buf_init(&raw, 8 * o->half_bytes + 4096);
    buf_init(&valid, 24 * o->half_bytes + 4096); /* each broken byte becomes three */
    if (!o->any)
        buf_add(&raw, NO_OUTPUT);
    buf_add(&raw, buf_str(&o->head));
    struct str tail = buf_str(&o->tail);
    uint64_t dropped = o->dropped_bytes;
    if (tail.len > o->half_bytes) { /* not cut yet, or cut some time ago */
        size_t cut = tail.len - o->half_bytes;
        while (cut < tail.len && output_continues(tail.p[cut]))
            cut++;
        tail = str_from(tail, cut);
        dropped += cut;
    }
    if (dropped || buf_failed(&o->head) || buf_failed(&o->tail))
        buf_add(&raw, CUT_MARK);
    buf_add(&raw, tail);
    utf8_add_replaced(&valid, buf_str(&raw));
    output_add_plain(into, buf_str(&valid));
    into->len = start + output_rstrip(str_from(buf_str(into), start)).len;
}
