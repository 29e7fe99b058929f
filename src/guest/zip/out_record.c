// SPDX-License-Identifier: Apache-2.0
/* out_record.c — what stands between the data of an archive: local records, sizes after the data,
 * the index, the end. 64-bit forms are used only where a number needs them. */
#include <time.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "guest/zip/format.h"
#include "guest/zip/out.h"

#define TIME_EXTRA  9u
#define LOCAL_EXTRA (TIME_EXTRA + 20u)
#define INDEX_EXTRA (TIME_EXTRA + 28u)

/* In UTC; the exact time stands in the extra field, which readers prefer. */
static uint32_t dos_time(int64_t seconds)
{
    struct tm tm;

    if (!clock_split(seconds, &tm) || tm.tm_year < 80)
        return 1u << 21 | 1u << 16; /* 1980-01-01: the format knows nothing older */
    if (tm.tm_year > 207)
        return 127u << 25 | 12u << 21 | 31u << 16 | 23u << 11 | 59u << 5 | 29u;
    return (uint32_t)(tm.tm_year - 80) << 25 | (uint32_t)(tm.tm_mon + 1) << 21 |
           (uint32_t)tm.tm_mday << 16 | (uint32_t)tm.tm_hour << 11 | (uint32_t)tm.tm_min << 5 |
           (uint32_t)(tm.tm_sec > 59 ? 59 : tm.tm_sec) / 2;
}

/* Bit 11 says UTF-8; a name of other bytes goes as it is, for readers that make the best of it. */
static uint16_t flags_of(const struct zip_out_entry *e)
{
    struct str name = buf_str(&e->name);
    bool ascii = true;

    for (size_t i = 0; i < name.len; i++)
        ascii &= (unsigned char)name.p[i] < 0x80;
    return (uint16_t)((e->data_after ? ZIP_FLAG_DATA_AFTER : 0) |
                      (!ascii && utf8_valid(name) ? ZIP_FLAG_UTF8 : 0));
}

static void put_time(char **p, const struct zip_out_entry *e)
{
    int64_t t = e->mtime_s < 0 ? 0 : e->mtime_s > INT32_MAX ? INT32_MAX : e->mtime_s;

    zip_put16(p, ZIP_EXTRA_TIME);
    zip_put16(p, TIME_EXTRA - 4);
    *(*p)++ = 1; /* time of change only */
    zip_put32(p, (uint64_t)t);
}

static uint64_t record_cap32(uint64_t n)
{
    return n < ZIP_MAX32 ? n : ZIP_MAX32;
}

static void add_head(struct zip_out *z, struct str s)
{
    buf_add(&z->head, s);
    z->made += s.len;
}

void zip_out_put_local(struct zip_out *z)
{
    struct zip_out_entry *e = &z->entry;
    char record[ZIP_LOCAL_SIZE + LOCAL_EXTRA], *p = record;

    e->offset = z->made;
    zip_put32(&p, ZIP_SIG_LOCAL);
    zip_put16(&p, e->large ? 45 : 20);
    zip_put16(&p, flags_of(e));
    zip_put16(&p, ZIP_STORED);
    zip_put32(&p, dos_time(e->mtime_s));
    zip_put32(&p, e->crc);
    zip_put32(&p, e->large ? ZIP_MAX32 : e->packed_bytes);
    zip_put32(&p, e->large ? ZIP_MAX32 : e->size_bytes);
    zip_put16(&p, e->name.len);
    zip_put16(&p, TIME_EXTRA + (e->large ? 20 : 0));
    add_head(z, str_n(record, ZIP_LOCAL_SIZE));
    add_head(z, buf_str(&e->name));
    p = record;
    if (e->large) { /* tells readers that the sizes after the data have 64 bits */
        zip_put16(&p, ZIP_EXTRA_64);
        zip_put16(&p, 16);
        zip_put64(&p, 0);
        zip_put64(&p, 0);
    }
    put_time(&p, e);
    add_head(z, str_n(record, (size_t)(p - record)));
}

void zip_out_put_after(struct zip_out *z)
{
    struct zip_out_entry *e = &z->entry;
    char record[24], *p = record;

    zip_put32(&p, ZIP_SIG_DATA);
    zip_put32(&p, e->crc);
    if (e->large) {
        zip_put64(&p, e->packed_bytes);
        zip_put64(&p, e->size_bytes);
    } else {
        zip_put32(&p, e->packed_bytes);
        zip_put32(&p, e->size_bytes);
    }
    add_head(z, str_n(record, (size_t)(p - record)));
}

static size_t put_index_extra(char extra[INDEX_EXTRA], const struct zip_out_entry *e)
{
    const uint64_t numbers[] = {e->size_bytes, e->packed_bytes, e->offset};
    char *p = extra;
    size_t wide = 0;

    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        wide += numbers[i] >= ZIP_MAX32;
    if (wide) {
        zip_put16(&p, ZIP_EXTRA_64);
        zip_put16(&p, 8 * wide);
        for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
            if (numbers[i] >= ZIP_MAX32)
                zip_put64(&p, numbers[i]);
    }
    put_time(&p, e);
    return (size_t)(p - extra);
}

void zip_out_put_central(struct zip_out *z)
{
    struct zip_out_entry *e = &z->entry;
    char record[ZIP_CENTRAL_SIZE], extra[INDEX_EXTRA], *p = record;
    size_t extra_len = put_index_extra(extra, e);
    bool wide = e->large || extra_len > TIME_EXTRA;

    zip_put32(&p, ZIP_SIG_CENTRAL);
    zip_put16(&p, ZIP_MADE_BY_UNIX << 8 | (wide ? 45 : 20));
    zip_put16(&p, wide ? 45 : 20);
    zip_put16(&p, flags_of(e));
    zip_put16(&p, ZIP_STORED);
    zip_put32(&p, dos_time(e->mtime_s));
    zip_put32(&p, e->crc);
    zip_put32(&p, record_cap32(e->packed_bytes));
    zip_put32(&p, record_cap32(e->size_bytes));
    zip_put16(&p, e->name.len);
    zip_put16(&p, extra_len);
    zip_put16(&p, 0); /* comment */
    zip_put16(&p, 0); /* disk */
    zip_put16(&p, 0); /* internal attributes */
    zip_put32(&p, (uint64_t)e->mode << 16 | (e->mode >> 12 == 4 ? 0x10 : 0)); /* a DOS directory */
    zip_put32(&p, record_cap32(e->offset));
    buf_add(&z->index, str_n(record, ZIP_CENTRAL_SIZE));
    buf_add(&z->index, buf_str(&e->name));
    buf_add(&z->index, str_n(extra, extra_len));
    z->entries++;
}

static void put_end64(struct zip_out *z, uint64_t index_bytes)
{
    char record[ZIP_END64_SIZE + ZIP_LOCATOR64_SIZE], *p = record;

    zip_put32(&p, ZIP_SIG_END64);
    zip_put64(&p, ZIP_END64_SIZE - 12);
    zip_put16(&p, ZIP_MADE_BY_UNIX << 8 | 45);
    zip_put16(&p, 45);
    zip_put32(&p, 0);
    zip_put32(&p, 0);
    zip_put64(&p, z->entries);
    zip_put64(&p, z->entries);
    zip_put64(&p, index_bytes);
    zip_put64(&p, z->index_start);
    zip_put32(&p, ZIP_SIG_LOCATOR64);
    zip_put32(&p, 0);
    zip_put64(&p, z->made);
    zip_put32(&p, 1);
    add_head(z, str_n(record, sizeof record));
}

void zip_out_put_end(struct zip_out *z)
{
    char record[ZIP_END_SIZE], *p = record;
    uint64_t index_bytes = z->made - z->index_start;
    uint64_t count = z->entries < ZIP_MAX16 ? z->entries : ZIP_MAX16;

    if (z->entries >= ZIP_MAX16 || index_bytes >= ZIP_MAX32 || z->index_start >= ZIP_MAX32)
        put_end64(z, index_bytes);
    zip_put32(&p, ZIP_SIG_END);
    zip_put16(&p, 0);
    zip_put16(&p, 0);
    zip_put16(&p, count);
    zip_put16(&p, count);
    zip_put32(&p, record_cap32(index_bytes));
    zip_put32(&p, record_cap32(z->index_start));
    zip_put16(&p, 0);
    add_head(z, str_n(record, sizeof record));
}
