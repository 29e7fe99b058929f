// SPDX-License-Identifier: Apache-2.0
/* map.c — open addressing with linear probing; deletion shifts back, so there are no tombstones. */
#include "base/map.h"

#include "base/mem.h"
#include "base/rng.h"

#include <stdlib.h>

static uint64_t map_rotl(uint64_t x, int b)
{
    return (x << b) | (x >> (64 - b));
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = map_rotl(v[1], 13) ^ v[0];
    v[0] = map_rotl(v[0], 32);
    v[2] += v[3];
    v[3] = map_rotl(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = map_rotl(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = map_rotl(v[1], 17) ^ v[2];
    v[2] = map_rotl(v[2], 32);
}

uint64_t map_hash(const uint64_t seed[2], const void *p, size_t n)
{
    uint64_t v[4] = {seed[0] ^ 0x736f6d6570736575u, seed[1] ^ 0x646f72616e646f6du,
                     seed[0] ^ 0x6c7967656e657261u, seed[1] ^ 0x7465646279746573u};
    const unsigned char *at = p;
    uint64_t word, last = (uint64_t)n << 56;

    for (size_t left = n; left >= 8; left -= 8, at += 8) {
        memcpy(&word, at, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    for (size_t i = 0; i < (n & 7); i++)
        last |= (uint64_t)at[i] << (8 * i);
    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    sip_round(v);
    sip_round(v);
    sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void map_init(struct map *m)
{
    *m = (struct map){0};
    m->seed[0] = rng_u64(rng_system());
    m->seed[1] = rng_u64(rng_system());
}

void map_done(struct map *m)
{
    free(m->slots);
    m->slots = NULL;
    m->count = m->cap = 0;
}

/* The slot that holds key, or the empty one where it would go. */
static struct map_slot *map_find(const struct map *m, struct str key, uint64_t hash)
{
    size_t i = hash & (m->cap - 1);

    while (m->slots[i].value && !(m->slots[i].hash == hash && str_eq(m->slots[i].key, key)))
        i = (i + 1) & (m->cap - 1);
    return &m->slots[i];
}

static void map_grow(struct map *m)
{
    struct map_slot *old = m->slots;
    size_t old_cap = m->cap;

    m->cap = old_cap ? old_cap * 2 : 16;
    m->slots = mem_new(m->cap * sizeof *m->slots);
    for (size_t i = 0; i < old_cap; i++)
        if (old[i].value)
            *map_find(m, old[i].key, old[i].hash) = old[i];
    free(old);
}

void *map_get(const struct map *m, struct str key)
{
    return m->count ? map_find(m, key, map_hash(m->seed, key.p, key.len))->value : NULL;
}

void *map_put(struct map *m, struct str key, void *value)
{
    if ((m->count + 1) * 4 > m->cap * 3)
        map_grow(m);
    uint64_t hash = map_hash(m->seed, key.p, key.len);
    struct map_slot *slot = map_find(m, key, hash);
    void *old = slot->value;
    *slot = (struct map_slot){key, value, hash};
    m->count += !old;
    return old;
}

void *map_del(struct map *m, struct str key)
{
    if (!m->count)
        return NULL;
    struct map_slot *slot = map_find(m, key, map_hash(m->seed, key.p, key.len));
    void *old = slot->value;
    if (!old)
        return NULL;
    size_t mask = m->cap - 1, hole = (size_t)(slot - m->slots);
    for (size_t i = (hole + 1) & mask; m->slots[i].value; i = (i + 1) & mask) {
        size_t home = m->slots[i].hash & mask;
        if (((i - home) & mask) < ((i - hole) & mask))
            continue; /* it may not stand before its home */
        m->slots[hole] = m->slots[i];
        hole = i;
    }
    m->slots[hole] = (struct map_slot){.value = NULL};
    m->count--;
    return old;
}
