// SPDX-License-Identifier: Apache-2.0
/* buf.c — growth doubles, so appending is linear over all; see buf.h. */
#include "base/buf.h"

#include <stdio.h>

void buf_init(struct buf *b, size_t limit_bytes)
{
    *b = (struct buf){.limit_bytes = limit_bytes};
}

void buf_done(struct buf *b)
{
    free(b->p);
    buf_init(b, b->limit_bytes);
}

void buf_reset(struct buf *b)
{
    b->len = 0;
    b->over_limit = b->no_memory = false;
}

char *buf_reserve(struct buf *b, size_t n)
{
    if (n > b->limit_bytes - b->len) { /* first: buf_cstr makes cap one more than the limit */
        b->over_limit = true;
        return NULL;
    }
    if (b->p && n <= b->cap - b->len)
        return b->p + b->len;
    size_t cap = b->cap < 32 ? 64 : b->cap * 2;
    if (cap < b->len + n)
        cap = b->len + n;
    if (cap > b->limit_bytes)
        cap = b->limit_bytes;
    char *p = realloc(b->p, cap ? cap : 1);
    if (!p) {
        b->no_memory = true;
        return NULL;
    }
    b->p = p;
    b->cap = cap;
    return p + b->len;
}

void buf_add_mem(struct buf *b, const void *p, size_t n)
{
    if (n == 0)
        return;
    char *to = buf_reserve(b, n);
    if (!to)
        return;
    memcpy(to, p, n);
    b->len += n;
}

void buf_add(struct buf *b, struct str s)
{
    buf_add_mem(b, s.p, s.len);
}

void buf_add_char(struct buf *b, char c)
{
    char *to = buf_reserve(b, 1);

    if (to) {
        *to = c;
        b->len++;
    }
}

void buf_add_cstr(struct buf *b, const char *s)
{
    buf_add_mem(b, s, strlen(s));
}

void buf_vaddf(struct buf *b, const char *fmt, va_list ap)
{
    char small[256];
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(small, sizeof small, fmt, again);
    va_end(again);
    if (n < 0) { /* longer than an int can say */
        b->over_limit = true;
        return;
    }
    if ((size_t)n < sizeof small) {
        buf_add_mem(b, small, (size_t)n);
        return;
    }
    /* vsnprintf wants room for its NUL, which is not ours to keep and may pass the limit by one */
    if ((size_t)n > b->limit_bytes - b->len) {
        b->over_limit = true;
        return;
    }
    own_free char *text = malloc((size_t)n + 1);
    if (!text) {
        b->no_memory = true;
        return;
    }
    vsnprintf(text, (size_t)n + 1, fmt, ap);
    buf_add_mem(b, text, (size_t)n);
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    buf_vaddf(b, fmt, ap);
    va_end(ap);
}

void buf_consume(struct buf *b, size_t n)
{
    if (n >= b->len) {
        b->len = 0;
        return;
    }
    if (n == 0)
        return;
    memmove(b->p, b->p + n, b->len - n);
    b->len -= n;
}

void buf_shrink(struct buf *b)
{
    if (b->len == 0) {
        free(b->p);
        b->p = NULL;
        b->cap = 0;
        return;
    }
    char *p = realloc(b->p, b->len);
    if (p) {
        b->p = p;
        b->cap = b->len;
    }
}

fallible buf_check(const struct buf *b)
{
    if (b->no_memory)
        return err_no_memory();
    if (b->over_limit)
        return err_new(ERR_TOO_LARGE, "more than %zu bytes", b->limit_bytes);
    return NULL;
}

const char *buf_cstr(struct buf *b)
{
    if (b->len == b->cap) {
        char *p = realloc(b->p, b->len + 1); /* the NUL may stand one past the limit */
        if (!p) {
            b->no_memory = true;
            return NULL;
        }
        b->p = p;
        b->cap = b->len + 1;
    }
    b->p[b->len] = '\0';
    return b->p;
}

char *buf_steal(struct buf *b)
{
    char *p = b->p;

    buf_init(b, b->limit_bytes);
    return p;
}
