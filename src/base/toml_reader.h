// SPDX-License-Identifier: Apache-2.0
/* toml_reader.h — shared by the files of the TOML reader, included by no other. */
#pragma once

#include "base/toml.h"

/* How a value came to be, which decides what may still be added to it. */
enum toml_kind {
    TOML_VALUE,    /* a scalar, an array or an inline table: closed */
    TOML_IMPLIED,  /* [a.b] made a; a header or dotted keys may still define it */
    TOML_DOTTED,   /* a.b = 1 made a; more dotted keys may join, a header may not */
    TOML_DEFINED,  /* by a header of its own */
    TOML_REPEATED, /* an array of tables */
};

struct toml_slot {
    const struct json *parent;
    struct json *value; /* NULL: empty; its key is value->key */
    uint32_t hash;
    enum toml_kind kind;
};

struct toml {
    struct arena *arena;
    struct str text;
    size_t at;
    struct json *root, *table; /* the table that keys go to now */
    unsigned table_depth;
    struct toml_slot *slots; /* every member of every table, by parent and key */
    size_t slot_count, slot_cap;
    uint64_t seed[2];
};

/* The character here, or -1 at the end. */
static inline int toml_peek(const struct toml *t)
{
    return t->at < t->text.len ? (unsigned char)t->text.p[t->at] : -1;
}

static inline struct str toml_rest(const struct toml *t)
{
    return str_from(t->text, t->at);
}

fallible toml_error(const struct toml *t, size_t at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* "unexpected 'x'", or the end of the line or file, where `want` should be. */
fallible toml_expected(const struct toml *t, const char *want);

/* A string of any of the four kinds, at its opening quote. */
fallible toml_read_string(struct toml *t, struct str *ret_value);
/* One key on a line, quoted or bare; never multi-line. */
fallible toml_read_key_string(struct toml *t, struct str *ret_value);
/* A number, date, time or boolean: the word that starts here. */
fallible toml_read_word(struct toml *t, struct json **ret_value);
