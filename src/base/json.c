// SPDX-License-Identifier: Apache-2.0
/* json.c — trees: reading, checking, building, comparing; see json.h. */
#include "base/json.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/json_walk.h"

static bool json_is(const struct json *v, enum json_type type)
{
    return v && v->type == type;
}

struct json *json_get(const struct json *object, struct str key)
{
    if (!json_is(object, JSON_OBJECT))
        return NULL;
    struct json *v = object->first;
    while (v && !str_eq(v->key, key))
        v = v->next;
    return v;
}

struct json *json_at(const struct json *array, size_t index)
{
    if (!json_is(array, JSON_ARRAY) || index >= array->count)
        return NULL;
    struct json *v = array->first;
    while (index--)
        v = v->next;
    return v;
}

/* An integer, or a double without a fraction: some clients write every number as 30.0. */
static bool as_int(const struct json *v, int64_t *ret_value)
{
    if (json_is(v, JSON_INT)) {
        *ret_value = v->i;
        return true;
    }
    if (!json_is(v, JSON_DOUBLE) || !(v->d >= -0x1p63 && v->d < 0x1p63) ||
        v->d != (double)(int64_t)v->d)
        return false;
    *ret_value = (int64_t)v->d;
    return true;
}

struct str json_get_str(const struct json *object, const char *key, struct str otherwise)
{
    const struct json *v = json_get(object, str_of(key));

    return json_is(v, JSON_STR) ? v->s : otherwise;
}

int64_t json_get_int(const struct json *object, const char *key, int64_t otherwise)
{
    int64_t i;

    return as_int(json_get(object, str_of(key)), &i) ? i : otherwise;
}

double json_get_double(const struct json *object, const char *key, double otherwise)
{
    const struct json *v = json_get(object, str_of(key));

    if (json_is(v, JSON_DOUBLE))
        return v->d;
    return json_is(v, JSON_INT) ? (double)v->i : otherwise;
}

bool json_get_bool(const struct json *object, const char *key, bool otherwise)
{
    const struct json *v = json_get(object, str_of(key));

    return json_is(v, JSON_BOOL) ? v->b : otherwise;
}

static const char *type_phrase(const struct json *v)
{
    static const char *const phrases[] = {
        [JSON_NULL] = "null",         [JSON_BOOL] = "a boolean",   [JSON_INT] = "an integer",
        [JSON_BIGINT] = "an integer", [JSON_DOUBLE] = "a number",  [JSON_STR] = "a string",
        [JSON_ARRAY] = "an array",    [JSON_OBJECT] = "an object",
    };

    return v ? phrases[v->type] : "nothing";
}

const char *json_type_word(const struct json *v)
{
    const char *phrase = type_phrase(v), *space = strchr(phrase, ' ');

    return space ? space + 1 : phrase;
}

/* --- required or checked members --- */

#define SHOWN_MAX 40 /* bytes of a refused value: an error is one line */

static fallible json_refuse(const char *key, const char *wanted, const struct json *found)
{
    if (!found)
        return err_new(ERR_UNPROCESSABLE, "field '%s' is missing, it must be %s", key, wanted);
    if (found->type == JSON_ARRAY || found->type == JSON_OBJECT)
        return err_new(ERR_UNPROCESSABLE, "field '%s' must be %s, not %s", key, wanted,
                       type_phrase(found));
    struct json shown = *found;
    bool cut = (found->type == JSON_STR || found->type == JSON_BIGINT) && found->s.len > SHOWN_MAX;
    if (cut)
        shown.s.len = SHOWN_MAX;
    own_done(buf) text;
    buf_init(&text, 16 * SHOWN_MAX);
    json_write(&text, &shown, JW_PYTHON);
    return err_new(ERR_UNPROCESSABLE, "field '%s' must be %s, not %.*s%s", key, wanted,
                   (int)text.len, text.len ? text.p : "", cut ? "..." : "");
}

/* The member, which may be NULL unless it is required. */
static fallible json_member(const struct json *object, const char *key, const char *wanted,
                            bool required, const struct json **ret_member)
{
    const struct json *v = json_get(object, str_of(key));

    if (object && object->type != JSON_OBJECT)
        return err_new(ERR_UNPROCESSABLE, "expected an object with the field '%s', not %s", key,
                       type_phrase(object));
    if (required && !v)
        return json_refuse(key, wanted, v);
    *ret_member = !required && json_is(v, JSON_NULL) ? NULL : v;
    return NULL;
}

static fallible read_str(const struct json *object, const char *key, bool required,
                         struct str *ret_value)
{
    const struct json *v;

    TRY(json_member(object, key, "a string", required, &v));
    if (!v)
        return NULL;
    if (v->type != JSON_STR)
        return json_refuse(key, "a string", v);
    *ret_value = v->s;
    return NULL;
}

static fallible read_int(const struct json *object, const char *key, int64_t min, int64_t max,
                         bool required, int64_t *ret_value)
{
    const struct json *v;
    char wanted[96];
    int64_t i;

    if (min == INT64_MIN && max == INT64_MAX)
        snprintf(wanted, sizeof wanted, "an integer");
    else if (max == INT64_MAX)
        snprintf(wanted, sizeof wanted, "an integer of at least %lld", (long long)min);
    else
        snprintf(wanted, sizeof wanted, "an integer between %lld and %lld", (long long)min,
                 (long long)max);
    TRY(json_member(object, key, wanted, required, &v));
    if (!v)
        return NULL;
    if (!as_int(v, &i) || i < min || i > max)
        return json_refuse(key, wanted, v);
    *ret_value = i;
    return NULL;
}

static fallible read_bool(const struct json *object, const char *key, bool required,
                          bool *ret_value)
{
    const struct json *v;

    TRY(json_member(object, key, "true or false", required, &v));
    if (!v)
        return NULL;
    if (v->type != JSON_BOOL)
        return json_refuse(key, "true or false", v);
    *ret_value = v->b;
    return NULL;
}

fallible json_want_str(const struct json *object, const char *key, struct str *ret_value)
{
    return read_str(object, key, true, ret_value);
}

fallible json_want_int(const struct json *object, const char *key, int64_t min, int64_t max,
                       int64_t *ret_value)
{
    return read_int(object, key, min, max, true, ret_value);
}

fallible json_want_bool(const struct json *object, const char *key, bool *ret_value)
{
    return read_bool(object, key, true, ret_value);
}

fallible json_take_str(const struct json *object, const char *key, struct str *ret_value)
{
    return read_str(object, key, false, ret_value);
}

fallible json_take_int(const struct json *object, const char *key, int64_t min, int64_t max,
                       int64_t *ret_value)
{
    return read_int(object, key, min, max, false, ret_value);
}

fallible json_take_bool(const struct json *object, const char *key, bool *ret_value)
{
    return read_bool(object, key, false, ret_value);
}

/* --- building --- */

struct json *json_new(struct arena *a, enum json_type type)
{
    struct json *v = arena_new(a, struct json);

    if (v)
        v->type = (uint8_t)type;
    return v;
}

struct json *json_new_str(struct arena *a, struct str s)
{
    struct json *v = json_new(a, JSON_STR);

    if (v)
        v->s = s;
    return v;
}

struct json *json_new_int(struct arena *a, int64_t i)
{
    struct json *v = json_new(a, JSON_INT);

    if (v)
        v->i = i;
    return v;
}

struct json *json_new_double(struct arena *a, double d)
{
    struct json *v = json_new(a, JSON_DOUBLE);

    if (v)
        v->d = d;
    return v;
}

struct json *json_new_bool(struct arena *a, bool b)
{
    struct json *v = json_new(a, JSON_BOOL);

    if (v)
        v->b = b;
    return v;
}

/* The member and the one in front of it (NULL at the front). */
static struct json *find_with_previous(struct json *object, struct str key, struct json **ret_prev)
{
    struct json *v = object->first;

    *ret_prev = NULL;
    for (; v && !str_eq(v->key, key); v = v->next)
        *ret_prev = v;
    return v;
}

struct json *json_set(struct json *object, struct str key, struct json *value)
{
    struct json *prev;

    if (!object || !value)
        return NULL;
    assert(object->type == JSON_OBJECT);
    struct json *old = find_with_previous(object, key, &prev);
    value->key = key;
    if (!old) {
        value->next = NULL;
        json_append(object, value);
        return value;
    }
    value->next = old->next;
    if (prev)
        prev->next = value;
    else
        object->first = value;
    if (object->last == old)
        object->last = value;
    return value;
}

struct json *json_push(struct json *array, struct json *value)
{
    if (!array || !value)
        return NULL;
    assert(array->type == JSON_ARRAY);
    value->next = NULL;
    json_append(array, value);
    return value;
}

void json_remove(struct json *object, struct str key)
{
    struct json *prev,
        *v = json_is(object, JSON_OBJECT) ? find_with_previous(object, key, &prev) : NULL;

    if (!v)
        return;
    if (prev)
        prev->next = v->next;
    else
        object->first = v->next;
    if (object->last == v)
        object->last = prev;
    object->count--;
}

/* --- comparing --- */

static bool equal_numbers(const struct json *a, const struct json *b)
{
    if (a->type == JSON_BIGINT && b->type == JSON_BIGINT)
        return str_eq(a->s, b->s);
    if (a->type == JSON_DOUBLE && b->type == JSON_DOUBLE)
        return a->d == b->d;
    if (a->type == JSON_BIGINT || b->type == JSON_BIGINT) {
        const struct json *big = a->type == JSON_BIGINT ? a : b, *other = big == a ? b : a;
        if (other->type != JSON_DOUBLE || !isfinite(other->d))
            return false;
        char digits[320]; /* the largest double has 309 */
        int n = snprintf(digits, sizeof digits, "%.0f", other->d);
        return str_eq(big->s, str_n(digits, (size_t)n));
    }
    struct json x = *a, y = *b;
    if (x.type == JSON_BOOL)
        x = (struct json){.type = JSON_INT, .i = a->b};
    if (y.type == JSON_BOOL)
        y = (struct json){.type = JSON_INT, .i = b->b};
    int64_t i, j;
    return as_int(&x, &i) && as_int(&y, &j) && i == j;
}

/* Everything but the children of two containers. */
static bool equal_alone(const struct json *a, const struct json *b)
{
    bool a_number = a->type >= JSON_BOOL && a->type <= JSON_DOUBLE;
    bool b_number = b->type >= JSON_BOOL && b->type <= JSON_DOUBLE;

    if (a_number && b_number)
        return equal_numbers(a, b);
    if (a->type != b->type)
        return false;
    if (a->type == JSON_STR)
        return str_eq(a->s, b->s);
    return a->type == JSON_NULL || a->count == b->count;
}

struct comparison {
    struct json_stack left; /* pairs of containers still to look into */
    struct json_index index;
};

static bool equal_pair(struct comparison *c, const struct json *a, const struct json *b)
{
    if (!equal_alone(a, b))
        return false;
    if (a->type != JSON_ARRAY && a->type != JSON_OBJECT)
        return true;
    return json_stack_push(&c->left, a) && json_stack_push(&c->left, b);
}

/* Members are mostly in the same order; only when they are not is the object looked up. */
static bool equal_objects(struct comparison *c, const struct json *a, const struct json *b)
{
    const struct json *beside = b->first;
    bool indexed = false;

    for (const struct json *v = a->first; v; v = v->next) {
        const struct json *same = beside;
        if (!beside || !str_eq(v->key, beside->key)) {
            if (!indexed && b->count > JSON_INDEX_FROM) {
                if (!json_index_clear(&c->index, b->count))
                    return false;
                for (struct json *m = b->first; m; m = m->next)
                    json_index_find(&c->index, m->key, m);
                indexed = true;
            }
            same = indexed ? json_index_find(&c->index, v->key, NULL) : json_get(b, v->key);
        }
        if (!same || !equal_pair(c, v, same))
            return false;
        beside = same->next;
    }
    return true;
}

static bool equal_children(struct comparison *c, const struct json *a, const struct json *b)
{
    if (a->type == JSON_OBJECT)
        return equal_objects(c, a, b);
    for (a = a->first, b = b->first; a && b; a = a->next, b = b->next)
        if (!equal_pair(c, a, b))
            return false;
    return true;
}

bool json_equal(const struct json *a, const struct json *b)
{
    struct comparison c;

    if (!a || !b)
        return a == b;
    json_stack_init(&c.left);
    json_index_init(&c.index);
    bool same = equal_pair(&c, a, b);
    while (same && c.left.len) {
        b = json_stack_pop(&c.left);
        a = json_stack_pop(&c.left);
        same = equal_children(&c, a, b);
    }
    json_stack_done(&c.left);
    json_index_done(&c.index);
    return same;
}
