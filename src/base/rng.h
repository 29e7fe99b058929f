// SPDX-License-Identifier: Apache-2.0
/* rng.h — randomness as an argument, and the ids made from it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct rng {
    void (*fill)(struct rng *r, void *p, size_t n);
};

struct rng *rng_system(void); /* getrandom */

struct rng_fixed { /* repeatable, for tests only */
    struct rng rng;
    uint64_t state;
};
struct rng *rng_fixed_init(struct rng_fixed *r, uint64_t seed);

uint64_t rng_u64(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t bound); /* without bias; bound > 0 */
#define RNG_UUID_LEN 36
void rng_uuid(struct rng *r, char out[RNG_UUID_LEN + 1]); /* version 4, with dashes */
#define RNG_HEX_LEN 32
void rng_hex(struct rng *r, char out[RNG_HEX_LEN + 1]); /* 128 bits */
/* Letters and digits, for keys; size includes the NUL. */
void rng_token(struct rng *r, char *out, size_t size);
