// SPDX-License-Identifier: Apache-2.0
/* rng.c — getrandom, and a fixed sequence for tests. */
#include "base/rng.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/hash.h"
#include "base/own.h"

static void system_fill(struct rng *r, void *p, size_t n)
{
    char *at = p;

    (void)r;
    while (n) {
        ssize_t got = getrandom(at, n, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            abort(); /* ids and keys that are not random are worse than none */
        at += got;
        n -= (size_t)got;
    }
}

struct rng *rng_system(void)
{
    static const struct rng system_rng = {system_fill};
    return (struct rng *)&system_rng; /* fill keeps no state */
}

static void fixed_fill(struct rng *r, void *p, size_t n)
{
    struct rng_fixed *f = container_of(r, struct rng_fixed, rng);
    unsigned char *at = p;

    for (size_t i = 0; i < n; i++) {
        f->state += 0x9e3779b97f4a7c15u; /* splitmix64 */
        uint64_t z = f->state;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        at[i] = (unsigned char)(z >> 56);
    }
}

struct rng *rng_fixed_init(struct rng_fixed *r, uint64_t seed)
{
    *r = (struct rng_fixed){{fixed_fill}, seed};
    return &r->rng;
}

uint64_t rng_u64(struct rng *r)
{
    uint64_t v;

    r->fill(r, &v, sizeof v);
    return v;
}

uint64_t rng_below(struct rng *r, uint64_t bound)
{
    uint64_t reject = (0 - bound) % bound,
             v; /* the first 2^64 mod bound values would be too many */

    do
        v = rng_u64(r);
    while (v < reject);
    return v % bound;
}

void rng_hex(struct rng *r, char out[RNG_HEX_LEN + 1])
{
    uint8_t raw[RNG_HEX_LEN / 2];

    r->fill(r, raw, sizeof raw);
    hash_hex(raw, sizeof raw, out);
}

void rng_uuid(struct rng *r, char out[RNG_UUID_LEN + 1])
{
    static const uint8_t groups[] = {8, 4, 4, 4, 12};
    uint8_t raw[16];
    char hex[33], *to = out;
    const char *from = hex;

    r->fill(r, raw, sizeof raw);
    raw[6] = (raw[6] & 0x0f) | 0x40;
    raw[8] = (raw[8] & 0x3f) | 0x80;
    hash_hex(raw, sizeof raw, hex);
    for (size_t i = 0; i < sizeof groups; i++) {
        memcpy(to, from, groups[i]);
        to += groups[i];
        from += groups[i];
        *to++ = '-';
    }
    to[-1] = '\0';
}

void rng_token(struct rng *r, char *out, size_t size)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

    uint64_t drawn[10] = {0}; /* with one call for a key of ours */
    size_t have = 0, at = 0;

    for (size_t i = 0; i + 1 < size; i++, drawn[at] /= sizeof letters - 1) {
        if (i % 5 == 0 && ++at >= have) { /* 62^5 is far below 2^64: no character is likelier */
            size_t more = (size - 1 - i + 4) / 5;
            have = more < ARRAY_LEN(drawn) ? more : ARRAY_LEN(drawn);
            r->fill(r, drawn, have * sizeof *drawn);
            at = 0;
        }
        out[i] = letters[drawn[at] % (sizeof letters - 1)];
    }
    if (size)
        out[size - 1] = '\0';
}
