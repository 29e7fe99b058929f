// SPDX-License-Identifier: Apache-2.0
/* json.h — JSON as Python reads and writes it.
 *
 * A value lives in an arena, its strings point into the input where they hold no escapes (keep the
 * input alive). Strings are WTF-8: a lone surrogate survives as its three bytes and comes out as
 * \udXXX. Integers too large for 64 bits keep their digits. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

enum json_type {
    JSON_NULL,
    JSON_BOOL,
    JSON_INT,
    JSON_BIGINT,
    JSON_DOUBLE,
    JSON_STR,
    JSON_ARRAY,
    JSON_OBJECT
};

struct json {
    uint8_t type;      /* enum json_type */
    uint32_t count;    /* children of an array or object */
    struct str key;    /* name, when the parent is an object */
    struct json *next; /* sibling */
    union {
        bool b;
        int64_t i;
        double d;
        struct str s; /* text of a string, digits of a JSON_BIGINT */
        struct {
            struct json *first, *last;
        };
    };
};

struct json_limits {
    size_t size_bytes; /* of the text; 0: JSON_DEFAULT_SIZE */
    unsigned depth;    /* 0: JSON_DEFAULT_DEPTH */
    bool allow_nan;    /* NaN, Infinity, -Infinity, and 1e999 */
};
#define JSON_DEFAULT_SIZE  (64u << 20)
#define JSON_DEFAULT_DEPTH 512

/* One document and nothing after it. limits may be NULL. Errors name line and column. */
fallible json_parse(struct arena *a, struct str text, const struct json_limits *limits,
                    struct json **ret_value);

/* --- reading a tree --- */

/* NULL and wrong types are answered with NULL or the default. 30.0 is an integer, 30.5 is not. */
struct json *json_get(const struct json *object, struct str key);
struct json *json_at(const struct json *array, size_t index);
struct str json_get_str(const struct json *object, const char *key, struct str otherwise);
int64_t json_get_int(const struct json *object, const char *key, int64_t otherwise);
double json_get_double(const struct json *object, const char *key, double otherwise); /* ints too */
bool json_get_bool(const struct json *object, const char *key, bool otherwise);
const char *json_type_word(const struct json *v); /* "string", "null", … */

/* --- required or checked members: the error is ERR_UNPROCESSABLE and names the field --- */
fallible json_want_str(const struct json *object, const char *key, struct str *ret_value);
fallible json_want_int(const struct json *object, const char *key, int64_t min, int64_t max,
                       int64_t *ret_value);
fallible json_want_bool(const struct json *object, const char *key, bool *ret_value);
/* Missing or null leaves *ret_value alone; a wrong type is refused. */
fallible json_take_str(const struct json *object, const char *key, struct str *ret_value);
fallible json_take_int(const struct json *object, const char *key, int64_t min, int64_t max,
                       int64_t *ret_value);
fallible json_take_bool(const struct json *object, const char *key, bool *ret_value);

/* --- building a tree; NULL when the arena refuses --- */
struct json *json_new(struct arena *a, enum json_type type);
struct json *json_new_str(struct arena *a, struct str s); /* borrowed, not copied */
struct json *json_new_int(struct arena *a, int64_t i);
struct json *json_new_double(struct arena *a, double d);
struct json *json_new_bool(struct arena *a, bool b);
/* Both give the value back, NULL when an argument is NULL. A duplicate key replaces the value and
 * keeps its place; finding it walks the members. */
struct json *json_set(struct json *object, struct str key, struct json *value);
struct json *json_push(struct json *array, struct json *value);
void json_remove(struct json *object, struct str key);
bool json_equal(const struct json *a, const struct json *b); /* as Python's ==: 1 == 1.0 == true */

/* --- writing; broken UTF-8 in a string becomes U+FFFD, so what comes out is always JSON --- */
enum {
    JW_ASCII = 1,     /* ensure_ascii */
    JW_SPACED = 2,    /* ", " and ": ", json.dumps' default; without it "," and ":" */
    JW_ALLOW_NAN = 4, /* NaN and Infinity as Python prints them; otherwise they become null */
    JW_INDENT2 = 8,   /* indent=2 */
};
#define JW_PYTHON (JW_ASCII | JW_SPACED | JW_ALLOW_NAN) /* json.dumps(x) */
#define JW_WEB    0                                     /* what FastAPI sends */

struct jw {
    struct buf *out;
    unsigned flags;
    unsigned depth;
    bool comma; /* the next value needs one before it */
};

void jw_init(struct jw *w, struct buf *out, unsigned flags);
/* key is NULL in arrays and at the top. */
void jw_begin_object(struct jw *w, const char *key);
void jw_end_object(struct jw *w);
void jw_begin_array(struct jw *w, const char *key);
void jw_end_array(struct jw *w);
void jw_key(struct jw *w, struct str key); /* a key that is not a C string; then a value without */
void jw_str(struct jw *w, const char *key, struct str s);
void jw_cstr(struct jw *w, const char *key, const char *s); /* NULL writes null */
void jw_int(struct jw *w, const char *key, int64_t i);
void jw_uint(struct jw *w, const char *key, uint64_t u);
void jw_double(struct jw *w, const char *key, double d);
void jw_bool(struct jw *w, const char *key, bool b);
void jw_null(struct jw *w, const char *key);
void jw_raw(struct jw *w, const char *key, struct str json); /* text that is JSON already */
void jw_value(struct jw *w, const char *key, const struct json *v);

/* The code has the shape of the document. No return inside. */
#define JW_OBJECT(w, key)                JW_BLOCK_(w, key, jw_begin_object, jw_end_object, __COUNTER__)
#define JW_ARRAY(w, key)                 JW_BLOCK_(w, key, jw_begin_array, jw_end_array, __COUNTER__)
#define JW_BLOCK_(w, key, begin, end, n) JW_BLOCK__(w, key, begin, end, n)
#define JW_BLOCK__(w, key, begin, end, n)                                                          \
    for (int jw_once_##n = (begin(w, key), 1); jw_once_##n; jw_once_##n = (end(w), 0))

void json_write(struct buf *out, const struct json *v, unsigned flags);

/* repr(float): shortest digits that read back the same, "1e-07", "1e+16", "1.0", "nan", "inf".
 * Gives the length; no NUL. */
#define JSON_DOUBLE_MAX 32
size_t json_format_double(double d, char out[JSON_DOUBLE_MAX]);
