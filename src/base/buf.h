// SPDX-License-Identifier: Apache-2.0
/* buf.h — bytes that grow up to a limit given at birth.
 *
 * Append freely, check once: an append that would pass the limit, or for which memory cannot be
 * had, adds nothing and the buffer remembers it. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

struct buf {
    char *p;
    size_t len, cap, limit_bytes;
    bool over_limit, no_memory;
};

void buf_init(struct buf *b, size_t limit_bytes); /* allocates nothing yet */
void buf_done(struct buf *b);                     /* may be initialised again */
void buf_reset(struct buf *b);                    /* empty, memory kept, failures forgotten */

void buf_add(struct buf *b, struct str s);
void buf_add_mem(struct buf *b, const void *p, size_t n);
void buf_add_char(struct buf *b, char c);
void buf_add_cstr(struct buf *b, const char *s);
void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vaddf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/* Room for n more bytes at the end, NULL if it cannot be had; then buf_commit what was written. */
char *buf_reserve(struct buf *b, size_t n);
static inline void buf_commit(struct buf *b, size_t n)
{
    b->len += n;
}

void buf_consume(struct buf *b, size_t n); /* drops n bytes from the front */
void buf_shrink(struct buf *b);            /* gives unused memory back */

static inline struct str buf_str(const struct buf *b)
{
    return (struct str){b->p, b->len};
}

static inline bool buf_failed(const struct buf *b)
{
    return b->over_limit || b->no_memory;
}

/* ERR_TOO_LARGE or ERR_NO_MEMORY if any append was refused. */
fallible buf_check(const struct buf *b);
/* The bytes, terminated, for a system call; the buffer keeps them. NULL if memory cannot be had. */
const char *buf_cstr(struct buf *b);
/* Gives the memory away (not terminated) and leaves the buffer empty. */
char *buf_steal(struct buf *b);
