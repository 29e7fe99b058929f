// SPDX-License-Identifier: Apache-2.0
/* hash.c — FIPS 180-4 and RFC 2104 in portable C; the fast way is in hash_ni.c. */
#include "base/hash.h"

#include <string.h>

#include "base/hash_impl.h"

const uint32_t sha256_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t hash_rotr(uint32_t x, unsigned n)
{
    return (x >> n) | (x << (32 - n));
}

static uint32_t hash_rotl(uint32_t x, unsigned n)
{
    return (x << n) | (x >> (32 - n));
}

static uint32_t get_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void put_be32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

static void put_be64(uint8_t *p, uint64_t v)
{
    put_be32(p, (uint32_t)(v >> 32));
    put_be32(p + 4, (uint32_t)v);
}

/* One round; instead of moving eight words along, the caller turns the order of their names. */
static inline void hash_round256(uint32_t a, uint32_t b, uint32_t c, uint32_t *d, uint32_t e,
                                 uint32_t f, uint32_t g, uint32_t *h, uint32_t wk)
{
    uint32_t t =
        *h + (hash_rotr(e, 6) ^ hash_rotr(e, 11) ^ hash_rotr(e, 25)) + (g ^ (e & (f ^ g))) + wk;

    *d += t;
    *h = t + (hash_rotr(a, 2) ^ hash_rotr(a, 13) ^ hash_rotr(a, 22)) + ((a & b) | (c & (a | b)));
}

static void hash_compress256(uint32_t state[8], const uint8_t *p)
{
    uint32_t w[64], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4],
                    f = state[5], g = state[6], h = state[7];

    for (int i = 0; i < 16; i++)
        w[i] = get_be32(p + 4 * i);
    for (int i = 16; i < 64; i++) {
        uint32_t s0 = hash_rotr(w[i - 15], 7) ^ hash_rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t s1 = hash_rotr(w[i - 2], 17) ^ hash_rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    for (int i = 0; i < 64; i += 8) {
        hash_round256(a, b, c, &d, e, f, g, &h, w[i] + sha256_k[i]);
        hash_round256(h, a, b, &c, d, e, f, &g, w[i + 1] + sha256_k[i + 1]);
        hash_round256(g, h, a, &b, c, d, e, &f, w[i + 2] + sha256_k[i + 2]);
        hash_round256(f, g, h, &a, b, c, d, &e, w[i + 3] + sha256_k[i + 3]);
        hash_round256(e, f, g, &h, a, b, c, &d, w[i + 4] + sha256_k[i + 4]);
        hash_round256(d, e, f, &g, h, a, b, &c, w[i + 5] + sha256_k[i + 5]);
        hash_round256(c, d, e, &f, g, h, a, &b, w[i + 6] + sha256_k[i + 6]);
        hash_round256(b, c, d, &e, f, g, h, &a, w[i + 7] + sha256_k[i + 7]);
    }
    uint32_t add[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; i++)
        state[i] += add[i];
}

void sha256_blocks_scalar(uint32_t state[8], const uint8_t *p, size_t blocks)
{
    for (; blocks; blocks--, p += 64)
        hash_compress256(state, p);
}

static void hash_blocks256(uint32_t state[8], const uint8_t *p, size_t blocks)
{
    if (sha256_ni_usable())
        sha256_blocks_ni(state, p, blocks);
    else
        sha256_blocks_scalar(state, p, blocks);
}

void sha256_init(struct sha256 *h)
{
    *h = (struct sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                   0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(struct sha256 *h, const void *p, size_t n)
{
    const uint8_t *at = p;
    size_t held = h->total_bytes % 64;

    if (n == 0)
        return;
    h->total_bytes += n;
    if (held) {
        size_t some = n < 64 - held ? n : 64 - held;
        memcpy(h->block + held, at, some);
        if (held + some < 64)
            return;
        hash_blocks256(h->state, h->block, 1);
        at += some;
        n -= some;
    }
    if (n >= 64)
        hash_blocks256(h->state, at, n / 64);
    memcpy(h->block, at + n / 64 * 64, n % 64);
}

void sha256_done(struct sha256 *h, uint8_t out[SHA256_LEN])
{
    static const uint8_t end[64] = {0x80};
    uint8_t bits[8];

    put_be64(bits, h->total_bytes * 8);
    sha256_add(h, end, 1 + (119 - h->total_bytes % 64) % 64);
    sha256_add(h, bits, sizeof bits);
    for (int i = 0; i < 8; i++)
        put_be32(out + 4 * i, h->state[i]);
}

void sha256(struct str data, uint8_t out[SHA256_LEN])
{
    struct sha256 h;

    sha256_init(&h);
    sha256_add(&h, data.p, data.len);
    sha256_done(&h, out);
}

static uint32_t hash_choose1(int i, uint32_t b, uint32_t c, uint32_t d)
{
    if (i < 20)
        return (d ^ (b & (c ^ d))) + 0x5a827999;
    if (i < 40)
        return (b ^ c ^ d) + 0x6ed9eba1;
    if (i < 60)
        return ((b & c) | (d & (b | c))) + 0x8f1bbcdc;
    return (b ^ c ^ d) + 0xca62c1d6;
}

static void hash_compress1(uint32_t state[5], const uint8_t *p)
{
    uint32_t w[80], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];

    for (int i = 0; i < 16; i++)
        w[i] = get_be32(p + 4 * i);
    for (int i = 16; i < 80; i++)
        w[i] = hash_rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (int i = 0; i < 80; i++) {
        uint32_t t = hash_rotl(a, 5) + hash_choose1(i, b, c, d) + e + w[i];
        e = d;
        d = c;
        c = hash_rotl(b, 30);
        b = a;
        a = t;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

void sha1(struct str data, uint8_t out[SHA1_LEN])
{
    uint32_t state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    const uint8_t *p = (const uint8_t *)data.p;
    uint8_t last[128] = {0};
    size_t whole = data.len / 64, rest = data.len % 64, size = rest < 56 ? 64 : 128;

    for (size_t i = 0; i < whole; i++)
        hash_compress1(state, p + 64 * i);
    if (rest)
        memcpy(last, p + 64 * whole, rest);
    last[rest] = 0x80;
    put_be64(last + size - 8, (uint64_t)data.len * 8);
    for (size_t at = 0; at < size; at += 64)
        hash_compress1(state, last + at);
    for (int i = 0; i < 5; i++)
        put_be32(out + 4 * i, state[i]);
}

void hmac_sha256_init(struct hmac_sha256 *h, struct str key)
{
    uint8_t pad[64] = {0};

    if (key.len > sizeof pad)
        sha256(key, pad);
    else if (key.len)
        memcpy(pad, key.p, key.len);
    for (size_t i = 0; i < sizeof pad; i++)
        pad[i] ^= 0x36;
    sha256_init(&h->inner);
    sha256_add(&h->inner, pad, sizeof pad);
    for (size_t i = 0; i < sizeof pad; i++)
        pad[i] ^= 0x36 ^ 0x5c;
    sha256_init(&h->outer);
    sha256_add(&h->outer, pad, sizeof pad);
}

void hmac_sha256_add(struct hmac_sha256 *h, const void *p, size_t n)
{
    sha256_add(&h->inner, p, n);
}

void hmac_sha256_done(struct hmac_sha256 *h, uint8_t out[SHA256_LEN])
{
    sha256_done(&h->inner, out);
    sha256_add(&h->outer, out, SHA256_LEN);
    sha256_done(&h->outer, out);
}

void hash_hex(const void *p, size_t n, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *at = p;

    for (size_t i = 0; i < n; i++) {
        *out++ = digits[at[i] >> 4];
        *out++ = digits[at[i] & 15];
    }
    *out = '\0';
}

bool hash_equal(struct str a, struct str b)
{
    volatile unsigned char differ = 0; /* volatile: no early way out for the compiler to find */

    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        differ |= (unsigned char)(a.p[i] ^ b.p[i]);
    return differ == 0;
}
