// SPDX-License-Identifier: Apache-2.0
/* format.h — numbers of the zip format (APPNOTE 6.3.9) and its little-endian fields. */
#pragma once

#include <endian.h>
#include <stdint.h>
#include <string.h>

enum {
    ZIP_SIG_LOCAL = 0x04034b50,
    ZIP_SIG_CENTRAL = 0x02014b50,
    ZIP_SIG_DATA = 0x08074b50,
    ZIP_SIG_END = 0x06054b50,
    ZIP_SIG_END64 = 0x06064b50,
    ZIP_SIG_LOCATOR64 = 0x07064b50,
};
enum {
    ZIP_LOCAL_SIZE = 30,
    ZIP_CENTRAL_SIZE = 46,
    ZIP_END_SIZE = 22,
    ZIP_END64_SIZE = 56,
    ZIP_LOCATOR64_SIZE = 20,
};
enum {
    ZIP_FLAG_ENCRYPTED = 1u << 0,
    ZIP_FLAG_DATA_AFTER = 1u << 3, /* sizes and checksum follow the data */
    ZIP_FLAG_PATCH = 1u << 5,
    ZIP_FLAG_STRONG = 1u << 6,
    ZIP_FLAG_UTF8 = 1u << 11,
    ZIP_FLAG_MASKED = 1u << 13,
};
enum { ZIP_STORED = 0, ZIP_DEFLATED = 8 };
enum { ZIP_EXTRA_64 = 0x0001, ZIP_EXTRA_TIME = 0x5455 };
enum { ZIP_MADE_BY_UNIX = 3 };
#define ZIP_MAX16 0xffffu
#define ZIP_MAX32 0xffffffffu

static inline uint16_t zip_get16(const void *p)
{
    uint16_t v;

    memcpy(&v, p, sizeof v);
    return le16toh(v);
}
static inline uint32_t zip_get32(const void *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof v);
    return le32toh(v);
}
static inline uint64_t zip_get64(const void *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof v);
    return le64toh(v);
}

/* Each writes at *p and moves it on. */
static inline void zip_put16(char **p, uint64_t n)
{
    uint16_t v = htole16((uint16_t)n);

    memcpy(*p, &v, sizeof v);
    *p += sizeof v;
}
static inline void zip_put32(char **p, uint64_t n)
{
    uint32_t v = htole32((uint32_t)n);

    memcpy(*p, &v, sizeof v);
    *p += sizeof v;
}
static inline void zip_put64(char **p, uint64_t n)
{
    uint64_t v = htole64(n);

    memcpy(*p, &v, sizeof v);
    *p += sizeof v;
}
