// SPDX-License-Identifier: Apache-2.0
/* map.h — slices to pointers, hashed with a secret seed so that peers cannot aim for collisions.
 *
 * Keys are borrowed: keep the bytes in the value, alive as long as the entry. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct map_slot {
    struct str key;
    void *value; /* NULL: empty */
    uint64_t hash;
};

struct map {
    struct map_slot *slots;
    size_t count, cap; /* cap is a power of two, or 0 */
    uint64_t seed[2];
};

void map_init(struct map *m);
void map_done(struct map *m);
void *map_get(const struct map *m, struct str key);
/* Gives the value that was there before, or NULL. value must not be NULL. */
void *map_put(struct map *m, struct str key, void *value);
void *map_del(struct map *m, struct str key);

/* Do not put or delete inside. */
#define MAP_EACH(slot, m)                                                                          \
    for (struct map_slot *slot = (m)->slots; (size_t)(slot - (m)->slots) < (m)->cap; slot++)       \
        if (slot->value)

uint64_t map_hash(const uint64_t seed[2], const void *p, size_t n); /* SipHash-1-3 */
