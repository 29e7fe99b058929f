// SPDX-License-Identifier: Apache-2.0
/* crc.h — zip's checksum as crc32() of zlib, several times as fast where the processor multiplies
 * without carry. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint32_t zip_crc(uint32_t crc, const void *p, size_t n); /* starts at 0 */
