// SPDX-License-Identifier: Apache-2.0
/* term — any split gives the same text; the text is UTF-8 and within its bounds, and so are its
 * lines. The first three bytes choose the size of the screen, what is kept and the pieces. */
#include <stdlib.h>

#include "base/utf8.h"
#include "guest/term/term.h"

#define CLUSTER_MAX_BYTES 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool cond)
{
    if (!cond)
        abort();
}

static void feed_pieces(struct term *t, struct str s, uint32_t seed)
{
    uint32_t longest = 1 + seed % 16;

    while (s.len) {
        seed = seed * 1103515245u + 12345u;
        struct str piece = str_first(s, 1 + (seed >> 16) % longest);
        term_feed(t, piece);
        s = str_from(s, piece.len);
    }
}

/* Trailing blanks, and line ends at the end, are never shown. */
static size_t count_lines(struct str text)
{
    size_t lines = 1;

    for (size_t i = 0; i < text.len; i++) {
        must(text.p[i] == '\n' || (unsigned char)text.p[i] >= ' ');
        if (text.p[i] != '\n')
            continue;
        must(i == 0 || text.p[i - 1] != ' ');
        lines++;
    }
    must(!text.len || (text.p[text.len - 1] != '\n' && text.p[text.len - 1] != ' '));
    return lines;
}

static void check(const struct term *t, const struct term_config *c, struct str text)
{
    must(utf8_valid(text));
    must(count_lines(text) <= c->history_lines + c->rows); /* the alternate screen's come on top */
    must(text.len <= c->history_bytes + (size_t)2 * c->rows * (c->columns * CLUSTER_MAX_BYTES + 1));
    must(term_replies(t).len <= 4096);
    must(!term_no_memory(t));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    struct term_config config = {.columns = 1 + data[0] % 40u,
                                 .rows = 1 + data[0] / 40u * 3,
                                 .history_lines = 1 + data[1] % 16u,
                                 .history_bytes = 1 + data[1] / 16u * 40};
    struct str s = str_n(data + 3, size - 3);
    struct term *whole = term_new(&config), *pieces = term_new(&config);
    struct buf one, other;
    buf_init(&one, SIZE_MAX / 2);
    buf_init(&other, SIZE_MAX / 2);

    term_feed(whole, s);
    term_text(whole, &one);
    check(whole, &config, buf_str(&one));
    feed_pieces(pieces, s, data[2]);
    term_text(pieces, &other);
    must(str_eq(buf_str(&one), buf_str(&other)));
    must(term_dropped_lines(whole) == term_dropped_lines(pieces));

    term_reset(pieces); /* as new */
    feed_pieces(pieces, s, data[2]);
    buf_reset(&other);
    term_text(pieces, &other);
    must(str_eq(buf_str(&one), buf_str(&other)));
    term_free(whole);
    term_free(pieces);
    buf_done(&one);
    buf_done(&other);
    return 0;
}
