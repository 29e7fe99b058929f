// SPDX-License-Identifier: Apache-2.0
/* hash_impl.h — the two ways to compress SHA-256 blocks, for hash.c and for the test that holds
 * one against the other. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern const uint32_t sha256_k[64];

void sha256_blocks_scalar(uint32_t state[8], const uint8_t *p, size_t blocks);
bool sha256_ni_usable(void);
void sha256_blocks_ni(uint32_t state[8], const uint8_t *p, size_t blocks);
