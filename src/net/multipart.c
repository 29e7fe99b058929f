// SPDX-License-Identifier: Apache-2.0
/* multipart.c — finds parts; multipart_head.c reads their heads.
 *
 * The delimiter is CRLF "--" boundary, and a boundary holds no CR. So after a partial match a new
 * one can begin only at the byte that broke it. A match cut by the end of a piece is remembered by
 * its length alone: its bytes are known. */
#include "net/multipart.h"

#include "base/mem.h"
#include "net/multipart_head.h"

enum state {
    PREAMBLE,
    AFTER_DELIMITER, /* "--" for the last one, or blanks and CRLF */
    DELIMITER_PAD,
    DELIMITER_LF,
    LAST_DASH,
    LAST_PAD,
    LAST_LF,
    HEAD,
    DATA,
    EPILOGUE,
    FAILED,
};

#define PAD_MAX 64 /* blanks behind a boundary */

struct multipart {
    const struct multipart_events *events;
    void *ctx;
    enum state state;
    unsigned parts, pad;
    size_t matched;  /* bytes of the delimiter at the end of what came so far */
    size_t presumed; /* of those, that were never sent: the CRLF a first line need not have */
    struct buf head;
    size_t delimiter_len;
    char delimiter[4 + MULTIPART_MAX_BOUNDARY];
};

fallible multipart_new(struct str content_type, const struct multipart_events *events, void *ctx,
                       struct multipart **ret_parser)
{
    struct str boundary;

    TRY_WRAP(multipart_boundary(content_type, &boundary), "Content-Type");
    struct multipart *m = mem_try(sizeof *m);
    if (!m)
        return err_no_memory();
    m->events = events;
    m->ctx = ctx;
    m->matched = m->presumed = 2;
    buf_init(&m->head, MULTIPART_MAX_HEAD);
    memcpy(m->delimiter, "\r\n--", 4);
    memcpy(m->delimiter + 4, boundary.p, boundary.len);
    m->delimiter_len = 4 + boundary.len;
    *ret_parser = m;
    return NULL;
}

void multipart_free(struct multipart *m)
{
    if (!m)
        return;
    buf_done(&m->head);
    free(m);
}

static fallible multipart_give(struct multipart *m, struct str piece)
{
    if (m->state != DATA || piece.len == 0)
        return NULL;
    return m->events->on_data(m->ctx, piece);
}

/* Goes on with a match that an earlier piece began. */
static fallible resume_match(struct multipart *m, struct str *in)
{
    while (m->matched && m->matched < m->delimiter_len && in->len) {
        if (in->p[0] != m->delimiter[m->matched]) {
            struct str was = str_n(m->delimiter + m->presumed, m->matched - m->presumed);
            m->matched = m->presumed = 0;
            return multipart_give(m, was);
        }
        m->matched++;
        *in = str_from(*in, 1);
    }
    return NULL;
}

/* Length of the longest end of s that begins a delimiter: only the last CR can be its start. */
static size_t match_at_end(const struct multipart *m, struct str s)
{
    size_t most = m->delimiter_len - 1;
    struct str tail = s.len > most ? str_from(s, s.len - most) : s;
    const char *cr = memrchr(tail.p, '\r', tail.len);

    if (!cr)
        return 0;
    size_t n = (size_t)(tail.p + tail.len - cr);
    return memcmp(cr, m->delimiter, n) == 0 ? n : 0;
}

/* Content (or preamble) up to the next delimiter. */
static fallible take_content(struct multipart *m, struct str *in)
{
    TRY(resume_match(m, in));
    if (m->matched == 0 && in->len) {
        ptrdiff_t hit = str_find(*in, str_n(m->delimiter, m->delimiter_len));
        size_t end = hit >= 0 ? (size_t)hit : in->len - match_at_end(m, *in);
        struct str piece = str_first(*in, end);
        m->matched = hit >= 0 ? m->delimiter_len : in->len - end;
        *in = str_from(*in, hit >= 0 ? end + m->delimiter_len : in->len);
        TRY(multipart_give(m, piece));
    }
    if (m->matched < m->delimiter_len)
        return NULL;
    m->matched = m->presumed = 0;
    bool part_ends = m->state == DATA;
    m->state = AFTER_DELIMITER;
    m->pad = 0;
    return part_ends ? m->events->on_part_end(m->ctx) : NULL;
}

static fallible bad_boundary(void)
{
    return err_new(ERR_INVALID, "a boundary is followed by neither '--' nor a line end");
}

static bool is_pad(struct multipart *m, char c)
{
    return (c == ' ' || c == '\t') && ++m->pad <= PAD_MAX;
}

/* One byte of the rest of a boundary's line. */
static fallible after_delimiter(struct multipart *m, char c)
{
    switch (m->state) {
    case AFTER_DELIMITER:
        if (c == '-') {
            m->state = LAST_DASH;
            return NULL;
        }
        m->state = DELIMITER_PAD;
        /* fall through */
    case DELIMITER_PAD:
        if (c == '\r')
            m->state = DELIMITER_LF;
        return c == '\r' || is_pad(m, c) ? NULL : bad_boundary();
    case LAST_DASH:
        m->state = LAST_PAD;
        return c == '-' ? NULL : bad_boundary();
    case LAST_PAD:
        if (c == '\r')
            m->state = LAST_LF;
        return c == '\r' || is_pad(m, c) ? NULL : bad_boundary();
    default: /* DELIMITER_LF, LAST_LF */
        m->state = m->state == LAST_LF ? EPILOGUE : HEAD;
        return c == '\n' ? NULL : bad_boundary();
    }
}

static fallible begin_part(struct multipart *m)
{
    struct multipart_part part;

    if (++m->parts > MULTIPART_MAX_PARTS)
        return err_new(ERR_TOO_LARGE, "a form has at most %d parts", MULTIPART_MAX_PARTS);
    TRY_WRAP(multipart_parse_head(&m->head, &part), "part %u", m->parts);
    m->state = DATA;
    m->matched = m->presumed = 2; /* the head's last line end counts as the delimiter's */
    struct err *e = m->events->on_part(m->ctx, &part);
    buf_reset(&m->head);
    return e;
}

static fallible take_head(struct multipart *m, struct str *in)
{
    ptrdiff_t lf = str_find_char(*in, '\n');
    struct str line = lf < 0 ? *in : str_first(*in, (size_t)lf + 1);

    buf_add(&m->head, line);
    *in = str_from(*in, line.len);
    if (m->head.over_limit)
        return err_new(ERR_TOO_LARGE, "the head of a part is over %u bytes", MULTIPART_MAX_HEAD);
    TRY(buf_check(&m->head));
    struct str head = buf_str(&m->head);
    if (lf >= 0 && (str_eq(head, STR("\r\n")) || str_ends(head, STR("\r\n\r\n"))))
        return begin_part(m);
    return NULL;
}

static fallible multipart_step(struct multipart *m, struct str *in)
{
    char c = in->p[0];

    switch (m->state) {
    case PREAMBLE:
    case DATA:
        return take_content(m, in);
    case HEAD:
        return take_head(m, in);
    case EPILOGUE:
        *in = str_from(*in, in->len);
        return NULL;
    case FAILED:
        return err_new(ERR_INVALID, "the form was refused before");
    default:
        *in = str_from(*in, 1);
        return after_delimiter(m, c);
    }
}

fallible multipart_feed(struct multipart *m, struct str data)
{
    while (data.len) {
        struct err *e = multipart_step(m, &data);
        if (e) {
            m->state = FAILED;
            return e;
        }
    }
    return NULL;
}

fallible multipart_end(struct multipart *m)
{
    switch (m->state) {
    case LAST_PAD: /* the last line end may be missing */
    case LAST_LF:
    case EPILOGUE:
        return NULL;
    default:
        return err_new(ERR_INVALID, "the form stops before its last boundary");
    }
}
