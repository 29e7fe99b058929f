// SPDX-License-Identifier: Apache-2.0
/* json_walk.h — ways around a tree that a hostile document cannot make slow or deep; private to
 * json*.c.
 *
 * Nothing here recurses: a stack of 128 KB, as musl gives a thread, must be enough for any depth.
 */
#pragma once

#include "base/json.h"

/* v.next is the caller's to clear. */
static inline void json_append(struct json *in, struct json *v)
{
    if (in->last)
        in->last->next = v;
    else
        in->first = v;
    in->last = v;
    in->count++;
}

/* --- a stack of nodes, on the C stack until it is deep --- */
struct json_stack {
    const struct json **at;
    size_t len, cap;
    const struct json *small[64];
};
void json_stack_init(struct json_stack *s);
void json_stack_done(struct json_stack *s);
bool json_stack_push(struct json_stack *s, const struct json *v); /* false: no memory */
static inline const struct json *json_stack_pop(struct json_stack *s)
{
    return s->len ? s->at[--s->len] : NULL;
}

/* --- the members of one object by key; the hash has a secret, so keys cannot be made to collide */
#define JSON_INDEX_FROM 16 /* up to so many members a plain search is faster */
struct json_index {
    struct json **slots;
    size_t cap; /* slots there is memory for */
    size_t used_slots;
    uint64_t secret[2];
};
void json_index_init(struct json_index *x);
void json_index_done(struct json_index *x);
bool json_index_clear(struct json_index *x, size_t count); /* empty, room for count; false: none */
/* The member with this key, or the one added when there is none (which may be NULL). */
struct json *json_index_find(struct json_index *x, struct str key, struct json *otherwise_add);

/* Last duplicate wins and keeps the first one's place. False when there is no memory. */
bool json_merge_duplicates(struct json_index *x, struct json *object);
