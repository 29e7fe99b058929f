// SPDX-License-Identifier: Apache-2.0
/* arena.c — a chain of chunks, each twice the last up to 256 KB; see arena.h. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>

#define FIRST_CHUNK 4032u /* with what malloc adds still one page */
#define LAST_CHUNK  (256u << 10)

struct arena_chunk {
    struct arena_chunk *older;
    size_t size; /* of data */
    char data[] __attribute__((aligned(16)));
};

void arena_init(struct arena *a, size_t limit_bytes)
{
    *a = (struct arena){.limit_bytes = limit_bytes};
}

static void free_chunks(struct arena_chunk *c)
{
    while (c) {
        struct arena_chunk *older = c->older;
        free(c);
        c = older;
    }
}

void arena_done(struct arena *a)
{
    free_chunks(a->chunks);
    arena_init(a, a->limit_bytes);
}

void arena_reset(struct arena *a)
{
    struct arena_chunk *keep = a->chunks;

    while (keep && keep->older) {
        struct arena_chunk *older = keep->older;
        free(keep);
        keep = older;
    }
    if (keep && keep->size > FIRST_CHUNK) {
        free(keep);
        keep = NULL;
    }
    a->chunks = keep;
    a->at = keep ? keep->data : NULL;
    a->end = keep ? keep->data + keep->size : NULL;
    a->used_bytes = keep ? keep->size : 0;
    a->failed = false;
}

void *arena_alloc_slow(struct arena *a, size_t size)
{
    size_t need = arena_round(size);
    size_t left = a->used_bytes < a->limit_bytes ? a->limit_bytes - a->used_bytes : 0;

    if (size + !size > left || need < size || need > PTRDIFF_MAX - sizeof(struct arena_chunk)) {
        a->failed = true;
        return NULL;
    }
    size_t chunk = a->chunks ? a->chunks->size * 2 : FIRST_CHUNK;
    if (chunk > LAST_CHUNK)
        chunk = LAST_CHUNK;
    if (chunk > left)
        chunk = left & ~(size_t)7; /* what is in a chunk is given out without asking again */
    if (chunk < need)
        chunk = need;
    struct arena_chunk *c = malloc(sizeof *c + chunk);
    if (!c) {
        a->failed = true;
        return NULL;
    }
    c->size = chunk;
    c->older = a->chunks;
    a->chunks = c;
    a->used_bytes += chunk;
    a->at = c->data + need;
    a->end = c->data + chunk;
    return c->data;
}

void *arena_zalloc(struct arena *a, size_t size)
{
    void *p = arena_alloc(a, size);

    return p ? memset(p, 0, size) : NULL;
}

struct str arena_copy(struct arena *a, struct str s)
{
    char *p = s.len < SIZE_MAX ? arena_alloc(a, s.len + 1) : arena_alloc_slow(a, SIZE_MAX);

    if (!p)
        return (struct str){NULL, 0};
    if (s.len)
        memcpy(p, s.p, s.len);
    p[s.len] = '\0';
    return str_n(p, s.len);
}

const char *arena_cstr(struct arena *a, struct str s)
{
    return arena_copy(a, s).p;
}

struct str arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *p = n < 0 ? arena_alloc_slow(a, SIZE_MAX) : arena_alloc(a, (size_t)n + 1);
    if (!p)
        return (struct str){NULL, 0};
    va_start(ap, fmt);
    vsnprintf(p, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return str_n(p, (size_t)n);
}

void *arena_grow(struct arena *a, void *p, size_t old_size, size_t new_size)
{
    size_t old = arena_round(old_size), want = arena_round(new_size);

    if (p && new_size <= old_size)
        return p;
    if (p && (char *)p + old == a->at && want >= old && want - old <= (size_t)(a->end - a->at)) {
        a->at += want - old;
        return p;
    }
    void *moved = arena_alloc(a, new_size);
    if (moved && old_size)
        memcpy(moved, p, old_size);
    return moved;
}

fallible arena_check(const struct arena *a)
{
    if (!a->failed)
        return NULL;
    return err_new(ERR_NO_MEMORY,
                   "the request needs more than %zu bytes of memory, or there is none left",
                   a->limit_bytes);
}
