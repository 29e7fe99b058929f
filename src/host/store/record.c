// SPDX-License-Identifier: Apache-2.0
/* record.c — see record.h. */
#include "host/store/record.h"

#include <string.h>

#include "base/hash.h"

#define MAGIC "croftgo1"

struct value {
    uint32_t type, len;
    int64_t i;
};

struct record {
    char magic[8];
    char store[RECORD_ID]; /* of which database it is */
    uint64_t seq;
    uint32_t bytes, sql_len, count, zero; /* bytes: of all of it; sql_len: with its NUL */
    uint8_t hash[SHA256_LEN];             /* of all of it with zeros here */
    struct value values[];                /* then the SQL, then what the values hold */
};

static void hash_of(const struct record *r, const char *rest, uint8_t out[SHA256_LEN])
{
    struct record head = *r;
    struct sha256 h;

    memset(head.hash, 0, sizeof head.hash);
    sha256_init(&h);
    sha256_add(&h, &head, sizeof head);
    sha256_add(&h, rest, r->bytes - sizeof head);
    sha256_done(&h, out);
}

bool store_record_fits(size_t count, size_t bytes)
{
    return count <= RECORD_VALUES && bytes <= RECORD_BYTES &&
           sizeof(struct record) + count * sizeof(struct value) + bytes <= RECORD_BYTES;
}

size_t store_record_put(char *block, const char store[RECORD_ID], uint64_t seq, const char *sql,
                        const struct store_value *values, size_t count)
{
    struct record *r = (struct record *)block;
    char *at = (char *)&r->values[count];

    memset(r, 0, sizeof *r);
    memcpy(r->magic, MAGIC, sizeof r->magic);
    memcpy(r->store, store, sizeof r->store);
    r->seq = seq;
    r->sql_len = (uint32_t)strlen(sql) + 1;
    r->count = (uint32_t)count;
    at = mempcpy(at, sql, r->sql_len);
    for (size_t i = 0; i < count; i++) {
        size_t len = values[i].type >= STORE_TEXT ? values[i].text.len : 0;
        r->values[i] = (struct value){values[i].type, (uint32_t)len, values[i].i};
        at = mempcpy(at, len ? values[i].text.p : "", len);
    }
    r->bytes = (uint32_t)(at - block);
    hash_of(r, block + sizeof *r, r->hash);
    size_t whole = (r->bytes + RECORD_BLOCK - 1u) / RECORD_BLOCK * RECORD_BLOCK;
    memset(at, 0, whole - r->bytes);
    return whole;
}

static bool is_record(struct str from, const char *store, struct record *ret)
{
    uint8_t hash[SHA256_LEN];

    if (from.len < sizeof *ret)
        return false;
    memcpy(ret, from.p, sizeof *ret);
    if (memcmp(ret->magic, MAGIC, sizeof ret->magic) != 0 ||
        memcmp(ret->store, store, sizeof ret->store) != 0 || ret->bytes < sizeof *ret ||
        ret->bytes > from.len || ret->count > RECORD_VALUES)
        return false;
    hash_of(ret, from.p + sizeof *ret, hash);
    return memcmp(hash, ret->hash, sizeof hash) == 0;
}

bool store_record_read(struct str from, const char store[RECORD_ID], struct store_record_asked *ret)
{
    struct record r;

    if (!is_record(from, store, &r))
        return false;
    struct str rest = str_first(str_from(from, sizeof r), r.bytes - sizeof r);
    size_t table = r.count * sizeof(struct value);
    if (!r.sql_len || table + r.sql_len > rest.len || rest.p[table + r.sql_len - 1] != '\0')
        return false;
    *ret = (struct store_record_asked){.seq = r.seq, .sql = rest.p + table, .count = r.count};
    const char *values = rest.p;
    rest = str_from(rest, table + r.sql_len);
    for (size_t i = 0; i < r.count; i++) {
        struct value v;
        memcpy(&v, values + i * sizeof v, sizeof v);
        if (v.type > STORE_BLOB || v.len > rest.len)
            return false;
        ret->values[i] = (struct store_value){v.type, v.i, str_first(rest, v.len)};
        rest = str_from(rest, v.len);
    }
    return true;
}
