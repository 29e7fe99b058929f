// SPDX-License-Identifier: Apache-2.0
/* str.h — a slice: length and pointer, passed by value, not terminated, never owned. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
    const char *p;
    size_t len;
};

#define STR(literal) ((struct str){"" literal, sizeof(literal) - 1})
#define STR_INIT(literal)                                                                          \
    {                                                                                              \
        "" literal, sizeof(literal) - 1                                                            \
    } /* in static initialisers */
#define STR_FMT    "%.*s"
#define STR_ARG(s) (int)(s).len, (s).p

static inline struct str str_n(const void *p, size_t len)
{
    return (struct str){p, len};
}

static inline struct str str_of(const char *cstr)
{
    return (struct str){cstr, cstr ? strlen(cstr) : 0};
}

static inline bool str_eq(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

static inline struct str str_from(struct str s, size_t at)
{
    size_t n = at < s.len ? at : s.len;

    return (struct str){n ? s.p + n : s.p, s.len - n}; /* NULL + 0 is undefined */
}

static inline struct str str_first(struct str s, size_t n)
{
    return n < s.len ? (struct str){s.p, n} : s;
}

bool str_eq_nocase(struct str a, struct str b); /* ASCII only */
int str_cmp(struct str a, struct str b);        /* bytes, then length */
bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
/* Does s fit one of these words, with a blank between them? */
bool str_fits(struct str s, const char *words, bool (*fits)(struct str s, struct str word));
/* Offset of the first hit, or -1. */
ptrdiff_t str_find(struct str s, struct str what);
ptrdiff_t str_find_char(struct str s, char c);
/* Splits at the first sep: the part before goes to *ret_head, *s keeps the rest. False, with the
 * whole of s in *ret_head and s empty, when sep is not there; false with both empty at the end. */
bool str_cut(struct str *s, char sep, struct str *ret_head);
struct str str_trim(struct str s); /* spaces, tabs, CR, LF */

static inline bool str_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The worth of a digit in any base up to 16, letters in both cases; 16 for what is none. */
static inline unsigned str_digit(char c)
{
    char low = (char)(c | 0x20);

    if (str_is_digit(c))
        return (unsigned)(c - '0');
    return low >= 'a' && low <= 'f' ? (unsigned)(low - 'a') + 10 : 16;
}

/* The whole slice must be a number in range; digits only, no sign for u64, no spaces. */
bool str_to_u64(struct str s, uint64_t *ret_value);
bool str_to_i64(struct str s, int64_t *ret_value);
bool str_to_double(struct str s, double *ret_value);

/* Edit distance, for "did you mean"; cheap and bounded: slices over 64 bytes are all far apart. */
unsigned str_distance(struct str a, struct str b);
