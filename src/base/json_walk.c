// SPDX-License-Identifier: Apache-2.0
/* json_walk.c — stack and index for trees that strangers shaped; see json_walk.h. */
#include "base/json_walk.h"

#include <stdlib.h>
#include <sys/auxv.h>

void json_stack_init(struct json_stack *s)
{
    s->at = s->small;
    s->len = 0;
    s->cap = ARRAY_LEN(s->small);
}

void json_stack_done(struct json_stack *s)
{
    if (s->at != s->small)
        free(s->at);
}

bool json_stack_push(struct json_stack *s, const struct json *v)
{
    if (s->len == s->cap) {
        bool first = s->at == s->small;
        const struct json **more = realloc(first ? NULL : s->at, s->cap * 2 * sizeof *more);
        if (!more)
            return false;
        if (first)
            memcpy(more, s->small, sizeof s->small);
        s->at = more;
        s->cap *= 2;
    }
    s->at[s->len++] = v;
    return true;
}

void json_index_init(struct json_index *x)
{
    *x = (struct json_index){0};
    /* 16 random bytes the kernel gave this process; what is computed does not depend on them */
    const void *random = (const void *)getauxval(AT_RANDOM);
    if (random)
        memcpy(x->secret, random, sizeof x->secret);
}

void json_index_done(struct json_index *x)
{
    free(x->slots);
}

/* At most 32 bytes a key: less than the members themselves took of the arena and its limit. */
static size_t slots_for(size_t count)
{
    size_t n = 64;

    while (n < count * 2)
        n *= 2;
    return n;
}

bool json_index_clear(struct json_index *x, size_t count)
{
    size_t want = slots_for(count);

    if (want > x->cap) {
        free(x->slots);
        x->cap = 0;
        x->slots = malloc(want * sizeof *x->slots);
        if (!x->slots)
            return false;
        x->cap = want;
    }
    x->used_slots = want;
    memset(x->slots, 0, want * sizeof *x->slots);
    return true;
}

static uint64_t walk_rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1], v[2] += v[3];
    v[1] = walk_rotate(v[1], 13) ^ v[0], v[3] = walk_rotate(v[3], 16) ^ v[2];
    v[0] = walk_rotate(v[0], 32);
    v[2] += v[1], v[0] += v[3];
    v[1] = walk_rotate(v[1], 17) ^ v[2], v[3] = walk_rotate(v[3], 21) ^ v[0];
    v[2] = walk_rotate(v[2], 32);
}

/* SipHash-1-3, as Python hashes its own strings. */
static uint64_t walk_hash(const uint64_t secret[2], struct str key)
{
    uint64_t v[4] = {secret[0] ^ 0x736f6d6570736575u, secret[1] ^ 0x646f72616e646f6du,
                     secret[0] ^ 0x6c7967656e657261u, secret[1] ^ 0x7465646279746573u};
    uint64_t word;
    size_t at = 0;

    for (; key.len - at >= 8; at += 8) {
        memcpy(&word, key.p + at, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    word = 0;
    if (key.len > at)
        memcpy(&word, key.p + at, key.len - at);
    word ^= (uint64_t)key.len << 56;
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

struct json *json_index_find(struct json_index *x, struct str key, struct json *otherwise_add)
{
    size_t mask = x->used_slots - 1;
    size_t at = walk_hash(x->secret, key) & mask;

    for (; x->slots[at]; at = (at + 1) & mask)
        if (str_eq(x->slots[at]->key, key))
            return x->slots[at];
    x->slots[at] = otherwise_add;
    return otherwise_add;
}

static unsigned key_bit(struct str key)
{
    return key.len ? (unsigned)((unsigned char)key.p[0] * 5 +
                                (unsigned char)key.p[key.len - 1] * 3 + key.len) &
                         63
                   : 0;
}

/* The earlier member of the same name, or v itself. */
static struct json *first_of(struct json_index *x, struct json *object, struct json *v,
                             uint64_t *seen)
{
    if (x->used_slots)
        return json_index_find(x, v->key, v);
    uint64_t bit = (uint64_t)1 << key_bit(v->key);
    struct json *same = v;
    if (*seen & bit)
        for (same = object->first; same != v && !str_eq(same->key, v->key);)
            same = same->next;
    *seen |= bit;
    return same;
}

bool json_merge_duplicates(struct json_index *x, struct json *object)
{
    struct json *before = NULL, *next;
    uint64_t seen = 0;

    x->used_slots = 0;
    if (object->count > JSON_INDEX_FROM && !json_index_clear(x, object->count))
        return false;
    for (struct json *v = object->first; v; v = next) {
        next = v->next;
        struct json *first = first_of(x, object, v, &seen);
        if (first == v) {
            before = v;
            continue;
        }
        struct json *after = first->next;
        *first = *v;
        first->next = after == v ? next : after;
        if (before != first)
            before->next = next;
        object->count--;
    }
    object->last = before;
    return true;
}
