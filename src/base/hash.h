// SPDX-License-Identifier: Apache-2.0
/* hash.h — SHA-256, SHA-1 and HMAC, with the processor's own instructions where it has them.
 *
 * SHA-1 is here because RFC 6455 asks for it; nothing else may use it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define SHA256_LEN 32
#define SHA1_LEN   20

struct sha256 {
    uint32_t state[8];
    uint64_t total_bytes;
    uint8_t block[64];
};
void sha256_init(struct sha256 *h);
void sha256_add(struct sha256 *h, const void *p, size_t n);
void sha256_done(struct sha256 *h, uint8_t out[SHA256_LEN]);
void sha256(struct str data, uint8_t out[SHA256_LEN]);

void sha1(struct str data, uint8_t out[SHA1_LEN]);

struct hmac_sha256 {
    struct sha256 inner, outer;
};
void hmac_sha256_init(struct hmac_sha256 *h, struct str key);
void hmac_sha256_add(struct hmac_sha256 *h, const void *p, size_t n);
void hmac_sha256_done(struct hmac_sha256 *h, uint8_t out[SHA256_LEN]);

void hash_hex(const void *p, size_t n, char *out); /* 2n digits and a NUL */
/* Takes the same time wherever they differ; different lengths are simply unequal. */
bool hash_equal(struct str a, struct str b);
