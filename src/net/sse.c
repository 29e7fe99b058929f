// SPDX-License-Identifier: Apache-2.0
/* sse.c — the event stream format of the HTML standard, section 9.2.6.
 *
 * A line that lies whole in one piece is never copied. Bytes are not checked as UTF-8: what comes
 * in the data goes out as it came. */
#include "net/sse.h"

/* The next line off the front of *s, at any of the three line ends. False after the last. */
static bool next_line(struct str *s, struct str *ret_line)
{
    size_t n = 0;

    if (!s->p)
        return false;
    while (n < s->len && s->p[n] != '\n' && s->p[n] != '\r')
        n++;
    *ret_line = str_first(*s, n);
    if (n == s->len) {
        s->p = NULL;
        return true;
    }
    bool crlf = s->p[n] == '\r' && n + 1 < s->len && s->p[n + 1] == '\n';
    *s = str_from(*s, n + (crlf ? 2 : 1));
    return true;
}

static void put_lines(struct buf *out, struct str prefix, struct str text)
{
    struct str line;

    if (!text.p)
        text = STR("");
    while (next_line(&text, &line)) {
        buf_add(out, prefix);
        buf_add(out, line);
        buf_add_char(out, '\n');
    }
}

/* One line whatever value holds: a line end in it would let it forge other fields. */
static void put_field(struct buf *out, struct str prefix, struct str value)
{
    if (value.len == 0)
        return;
    buf_add(out, prefix);
    for (size_t i = 0; i < value.len; i++)
        if (value.p[i] != '\n' && value.p[i] != '\r' && value.p[i] != '\0')
            buf_add_char(out, value.p[i]);
    buf_add_char(out, '\n');
}

void sse_put(struct buf *out, struct str id, struct str event, struct str data)
{
    put_field(out, STR("id: "), id);
    put_field(out, STR("event: "), event);
    put_lines(out, STR("data: "), data);
    buf_add_char(out, '\n');
}

void sse_put_comment(struct buf *out, struct str text)
{
    put_lines(out, STR(": "), text);
    buf_add_char(out, '\n');
}

void sse_parser_init(struct sse_parser *p, size_t limit_bytes,
                     void (*on_event)(void *ctx, const struct sse_event *e), void *ctx)
{
    *p = (struct sse_parser){.retry_ms = -1, .on_event = on_event, .ctx = ctx};
    buf_init(&p->line, limit_bytes);
    buf_init(&p->data, limit_bytes);
    buf_init(&p->event, limit_bytes);
    buf_init(&p->id, limit_bytes);
}

void sse_parser_done(struct sse_parser *p)
{
    buf_done(&p->line);
    buf_done(&p->data);
    buf_done(&p->event);
    buf_done(&p->id);
}

static void sse_dispatch(struct sse_parser *p)
{
    struct str data = buf_str(&p->data);

    if (data.len > 0) {
        struct sse_event e = {
            .id = buf_str(&p->id),
            .event = p->event.len ? buf_str(&p->event) : STR("message"),
            .data = str_first(data, data.len - 1), /* without the last line end */
            .retry_ms = p->retry_ms,
        };
        p->retry_ms = -1; /* one without an event waits for the next */
        p->on_event(p->ctx, &e);
    }
    buf_reset(&p->data);
    buf_reset(&p->event);
}

static void sse_set(struct buf *b, struct str value)
{
    buf_reset(b);
    buf_add(b, value);
}

static void take_field(struct sse_parser *p, struct str name, struct str value)
{
    uint64_t ms;

    if (str_eq(name, STR("data"))) {
        buf_add(&p->data, value);
        buf_add_char(&p->data, '\n');
    } else if (str_eq(name, STR("event"))) {
        sse_set(&p->event, value);
    } else if (str_eq(name, STR("id"))) {
        if (str_find_char(value, '\0') < 0)
            sse_set(&p->id, value);
    } else if (str_eq(name, STR("retry"))) {
        if (str_to_u64(value, &ms) && ms <= INT64_MAX)
            p->retry_ms = (int64_t)ms;
    }
}

static fallible sse_check(const struct sse_parser *p)
{
    const struct buf *b[] = {&p->line, &p->data, &p->event, &p->id};
    size_t sum = p->data.len + p->event.len;

    for (size_t i = 0; i < ARRAY_LEN(b); i++)
        if (b[i]->no_memory)
            return err_no_memory();
        else if (b[i]->over_limit || sum > p->data.limit_bytes)
            return err_new(ERR_TOO_LARGE, "a server-sent event is over %zu bytes",
                           p->data.limit_bytes);
    return NULL;
}

static fallible take_line(struct sse_parser *p, struct str line)
{
    struct str name;

    if (!p->started && str_starts(line, STR("\xef\xbb\xbf")))
        line = str_from(line, 3);
    p->started = true;
    if (line.len == 0) {
        sse_dispatch(p);
        return NULL;
    }
    if (str_cut(&line, ':', &name) && line.len && line.p[0] == ' ')
        line = str_from(line, 1);
    if (name.len) /* else a comment */
        take_field(p, name, line);
    return sse_check(p);
}

/* piece ends a line, of which the buffer may hold the front. */
static fallible end_line(struct sse_parser *p, struct str piece)
{
    if (p->line.len == 0 && piece.len <= p->line.limit_bytes)
        return take_line(p, piece);
    buf_add(&p->line, piece);
    TRY(sse_check(p));
    struct err *e = take_line(p, buf_str(&p->line));
    buf_reset(&p->line);
    return e;
}

fallible sse_parser_feed(struct sse_parser *p, struct str data)
{
    const char *at = data.p, *end = data.p + data.len, *lf = at, *cr = at;

    TRY(sse_check(p)); /* what failed stays so */
    while (at < end) {
        if (p->skip_lf && *at == '\n')
            at++;
        p->skip_lf = false;
        /* Each kind is searched once per hit, so one that is absent is not searched again. */
        if (lf && lf <= at)
            lf = memchr(at, '\n', (size_t)(end - at));
        if (cr && cr <= at)
            cr = memchr(at, '\r', (size_t)(end - at));
        const char *stop = !cr || (lf && lf < cr) ? lf : cr;
        if (!stop) {
            buf_add_mem(&p->line, at, (size_t)(end - at));
            return sse_check(p);
        }
        p->skip_lf = stop == cr;
        TRY(end_line(p, str_n(at, (size_t)(stop - at))));
        at = stop + 1;
    }
    return NULL;
}
