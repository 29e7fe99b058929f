// SPDX-License-Identifier: Apache-2.0
/* arena.h — memory with one lifetime, such as a request's; nothing in it is freed singly.
 *
 * Whatever is put in is bounded by the limit given at birth. A refusal (limit or no memory) gives
 * NULL and is remembered, so a peer's request fails alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

struct arena_chunk;

struct arena {
    char *at, *end;
    struct arena_chunk *chunks;
    size_t used_bytes, limit_bytes;
    bool failed;
};

void arena_init(struct arena *a, size_t limit_bytes); /* allocates nothing yet */
void arena_done(struct arena *a);
void arena_reset(struct arena *a); /* empty; keeps one small chunk for the next use */

void *arena_alloc_slow(struct arena *a, size_t size);

/* Never 0, so that every allocation has an address of its own; wraps round for the largest. */
static inline size_t arena_round(size_t size)
{
    return (size + 7 + !size) & ~(size_t)7;
}

/* 8-aligned, not cleared. NULL when refused. */
static inline void *arena_alloc(struct arena *a, size_t size)
{
    size_t n = arena_round(size);

    if (__builtin_expect(n < size || (size_t)(a->end - a->at) < n, 0))
        return arena_alloc_slow(a, size);
    void *p = a->at;
    a->at += n;
    return p;
}

void *arena_zalloc(struct arena *a, size_t size);
#define arena_new(a, type) ((type *)arena_zalloc((a), sizeof(type)))

/* Refused: .p is NULL. A copy is followed by a NUL that is not counted. */
struct str arena_copy(struct arena *a, struct str s);
struct str arena_printf(struct arena *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
const char *arena_cstr(struct arena *a, struct str s); /* for system calls */
/* Makes the newest allocation, old_size long, larger: in place if it is still the last one. */
void *arena_grow(struct arena *a, void *p, size_t old_size, size_t new_size);

fallible arena_check(const struct arena *a);
