// SPDX-License-Identifier: Apache-2.0
/* crc.h — zip's checksum as crc32() of zlib, several times as fast where the processor multiplies
 * without carry. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Asks the processor. In a virtual machine that takes as long as 64 KB of folding: ask once. */
bool zip_crc_can_fold(void);
uint32_t zip_crc(uint32_t crc, const void *p, size_t n, bool fold); /* starts at 0 */
