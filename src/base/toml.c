// SPDX-License-Identifier: Apache-2.0
/* toml.c — tables, keys, arrays and the rules on defining things twice; see toml.h.
 *
 * One hash table over the members of all tables says whether a member is there and how it was made.
 * So a file of a million keys costs a million look-ups, whatever its shape. */
#include "base/toml_reader.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/utf8.h"

static fallible read_value(struct toml *t, unsigned depth, struct json **ret_value);

/* --- errors --- */

fallible toml_error(const struct toml *t, size_t at, const char *fmt, ...)
{
    char what[256];
    size_t line = 1, start = 0;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    for (size_t i = 0; i < at; i++) {
        if (t->text.p[i] != '\n')
            continue;
        line++;
        start = i + 1;
    }
    size_t column = utf8_count(str_n(t->text.p + start, at - start)) + 1;
    return err_new(ERR_INVALID, "line %zu column %zu: %s", line, column, what);
}

fallible toml_expected(const struct toml *t, const char *want)
{
    int c = toml_peek(t);
    uint32_t cp;

    if (c < 0)
        return toml_error(t, t->at, "the file ends where %s should be", want);
    if (c == '\r' && !str_starts(toml_rest(t), STR("\r\n")))
        return toml_error(t, t->at, "a carriage return without a line feed");
    if (c == '\n' || c == '\r')
        return toml_error(t, t->at, "the line ends where %s should be", want);
    if (c < 0x20 || c == 0x7f)
        return toml_error(t, t->at, "control character U+%04X where %s should be", (unsigned)c,
                          want);
    size_t n = utf8_decode(toml_rest(t), &cp);
    return toml_error(t, t->at, "'%.*s' where %s should be", (int)n, t->text.p + t->at, want);
}

/* --- members --- */

static uint32_t hash_of(const struct toml *t, const struct json *parent, struct str key)
{
    uint64_t seed[2] = {t->seed[0] ^ (uintptr_t)parent, t->seed[1]};

    return (uint32_t)map_hash(seed, key.p, key.len);
}

/* The member's slot, or the empty one where it would go. */
static struct toml_slot *toml_find(const struct toml *t, const struct json *parent, struct str key)
{
    uint32_t hash = hash_of(t, parent, key);
    size_t i = hash & (t->slot_cap - 1);

    for (;; i = (i + 1) & (t->slot_cap - 1)) {
        struct toml_slot *s = &t->slots[i];
        if (!s->value || (s->hash == hash && s->parent == parent && str_eq(s->value->key, key)))
            return s;
    }
}

static fallible toml_grow(struct toml *t)
{
    size_t cap = t->slot_cap ? t->slot_cap * 2 : 64;
    struct toml_slot *slots = mem_try(cap * sizeof *slots);

    if (!slots)
        return err_no_memory();
    for (size_t i = 0; i < t->slot_cap; i++) {
        if (!t->slots[i].value)
            continue;
        size_t to = t->slots[i].hash & (cap - 1);
        while (slots[to].value)
            to = (to + 1) & (cap - 1);
        slots[to] = t->slots[i];
    }
    free(t->slots);
    t->slots = slots;
    t->slot_cap = cap;
    return NULL;
}

static void toml_append(struct json *parent, struct json *child)
{
    child->next = NULL;
    if (parent->last)
        parent->last->next = child;
    else
        parent->first = child;
    parent->last = child;
    parent->count++;
}

/* key must not be there yet. */
static fallible toml_add(struct toml *t, struct json *parent, struct str key, struct json *value,
                         enum toml_kind kind)
{
    if ((t->slot_count + 1) * 4 > t->slot_cap * 3)
        TRY(toml_grow(t));
    value->key = key;
    toml_append(parent, value);
    *toml_find(t, parent, key) = (struct toml_slot){parent, value, hash_of(t, parent, key), kind};
    t->slot_count++;
    return NULL;
}

static fallible add_new(struct toml *t, struct json *parent, struct str key, enum json_type type,
                        enum toml_kind kind, struct json **ret_value)
{
    struct json *value = json_new(t->arena, type);

    if (!value)
        return arena_check(t->arena);
    TRY(toml_add(t, parent, key, value, kind));
    *ret_value = value;
    return NULL;
}

/* --- white space --- */

static void skip_blanks(struct toml *t)
{
    while (toml_peek(t) == ' ' || toml_peek(t) == '\t')
        t->at++;
}

static bool skip_newline(struct toml *t)
{
    size_t n = str_starts(toml_rest(t), STR("\r\n")) ? 2 : toml_peek(t) == '\n';

    t->at += n;
    return n > 0;
}

static fallible skip_comment(struct toml *t)
{
    if (toml_peek(t) != '#')
        return NULL;
    for (; t->at < t->text.len; t->at++) {
        int c = toml_peek(t);
        if (c == '\n' || (c == '\r' && str_starts(toml_rest(t), STR("\r\n"))))
            break;
        if (c == '\r')
            return toml_error(t, t->at, "a carriage return without a line feed");
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return toml_error(t, t->at, "control character U+%04X in a comment", (unsigned)c);
    }
    return NULL;
}

static fallible end_line(struct toml *t)
{
    skip_blanks(t);
    TRY(skip_comment(t));
    if (toml_peek(t) < 0 || skip_newline(t))
        return NULL;
    return toml_expected(t, "the end of the line");
}

/* Blanks, line ends and comments, as between the values of an array. */
static fallible skip_lines(struct toml *t)
{
    do {
        skip_blanks(t);
        TRY(skip_comment(t));
    } while (skip_newline(t));
    return NULL;
}

/* --- keys --- */

/* Takes a '.' with the blanks around it. */
static bool take_dot(struct toml *t)
{
    skip_blanks(t);
    if (toml_peek(t) != '.')
        return false;
    t->at++;
    skip_blanks(t);
    return true;
}

static fallible too_deep(const struct toml *t, size_t at)
{
    return toml_error(t, at, "nested deeper than %d", TOML_MAX_DEPTH);
}

static fallible defined_twice(const struct toml *t, size_t at, struct str key)
{
    struct str shown = str_first(key, utf8_offset(key, 40));

    return toml_error(t, at, "'" STR_FMT "' is defined already", STR_ARG(shown));
}

static fallible not_a_table(const struct toml *t, size_t at, struct str key,
                            const struct toml_slot *s)
{
    struct str shown = str_first(key, utf8_offset(key, 40));
    const char *what = "a value, not a table";

    if (s->kind == TOML_VALUE && s->value->type == JSON_OBJECT)
        what = "an inline table, which is closed";
    else if (s->kind == TOML_VALUE && s->value->type == JSON_ARRAY)
        what = "an array of values, which is closed";
    else if (s->kind == TOML_REPEATED)
        what = "an array of tables";
    else if (s->kind == TOML_DEFINED)
        what = "a table with a header of its own; add the key there";
    return toml_error(t, at, "'" STR_FMT "' is %s", STR_ARG(shown), what);
}

/* One step of a dotted key into the table that part names, made if missing. */
static fallible enter_dotted(struct toml *t, struct json **table, size_t at, struct str part)
{
    struct toml_slot *s = t->slot_cap ? toml_find(t, *table, part) : NULL;

    if (!s || !s->value)
        return add_new(t, *table, part, JSON_OBJECT, TOML_DOTTED, table);
    if (s->kind != TOML_DOTTED && s->kind != TOML_IMPLIED)
        return not_a_table(t, at, part, s);
    s->kind = TOML_DOTTED;
    *table = s->value;
    return NULL;
}

/* key = value, into table, which is depth deep. */
static fallible read_pair(struct toml *t, struct json *table, unsigned depth)
{
    size_t at = t->at;
    struct str part;
    struct json *value;

    TRY(toml_read_key_string(t, &part));
    while (take_dot(t)) {
        if (++depth > TOML_MAX_DEPTH)
            return too_deep(t, at);
        TRY(enter_dotted(t, &table, at, part));
        at = t->at;
        TRY(toml_read_key_string(t, &part));
    }
    if (t->slot_cap && toml_find(t, table, part)->value)
        return defined_twice(t, at, part);
    if (toml_peek(t) != '=')
        return toml_expected(t, "'='");
    t->at++;
    skip_blanks(t);
    TRY(read_value(t, depth + 1, &value));
    return toml_add(t, table, part, value, TOML_VALUE);
}

/* --- headers --- */

/* One step of a header's path. */
static fallible enter_header(struct toml *t, struct json **table, unsigned *depth, size_t at,
                             struct str part)
{
    struct toml_slot *s = t->slot_cap ? toml_find(t, *table, part) : NULL;

    if (!s || !s->value)
        return add_new(t, *table, part, JSON_OBJECT, TOML_IMPLIED, table);
    if (s->kind == TOML_VALUE)
        return not_a_table(t, at, part, s);
    *depth += s->kind == TOML_REPEATED;
    *table = s->kind == TOML_REPEATED ? s->value->last : s->value;
    return NULL;
}

static fallible open_table(struct toml *t, struct json *parent, size_t at, struct str key)
{
    struct toml_slot *s = t->slot_cap ? toml_find(t, parent, key) : NULL;

    if (!s || !s->value)
        return add_new(t, parent, key, JSON_OBJECT, TOML_DEFINED, &t->table);
    if (s->kind != TOML_IMPLIED)
        return defined_twice(t, at, key);
    s->kind = TOML_DEFINED;
    t->table = s->value;
    return NULL;
}

static fallible open_repeated(struct toml *t, struct json *parent, size_t at, struct str key)
{
    struct toml_slot *s = t->slot_cap ? toml_find(t, parent, key) : NULL;
    struct json *array = s ? s->value : NULL, *element;

    if (array && s->kind != TOML_REPEATED)
        return array->type == JSON_OBJECT && s->kind != TOML_VALUE ? defined_twice(t, at, key)
                                                                   : not_a_table(t, at, key, s);
    if (!array)
        TRY(add_new(t, parent, key, JSON_ARRAY, TOML_REPEATED, &array));
    element = json_new(t->arena, JSON_OBJECT);
    if (!element)
        return arena_check(t->arena);
    toml_append(array, element);
    t->table_depth++;
    t->table = element;
    return NULL;
}

static fallible read_header(struct toml *t)
{
    bool repeated = str_starts(toml_rest(t), STR("[["));
    struct json *table = t->root;
    struct str part;

    t->at += repeated ? 2 : 1;
    skip_blanks(t);
    size_t at = t->at;
    t->table_depth = 1;
    TRY(toml_read_key_string(t, &part));
    while (take_dot(t)) {
        TRY(enter_header(t, &table, &t->table_depth, at, part));
        at = t->at;
        if (++t->table_depth > TOML_MAX_DEPTH)
            return too_deep(t, at);
        TRY(toml_read_key_string(t, &part));
    }
    if (!str_starts(toml_rest(t), repeated ? STR("]]") : STR("]"))) {
        t->at += repeated && toml_peek(t) == ']';
        return toml_expected(t, repeated ? "']]'" : "']'");
    }
    t->at += repeated ? 2 : 1;
    return repeated ? open_repeated(t, table, at, part) : open_table(t, table, at, part);
}

/* --- values --- */

static fallible read_array(struct toml *t, unsigned depth, struct json **ret_value)
{
    struct json *array = json_new(t->arena, JSON_ARRAY), *value;

    if (!array)
        return arena_check(t->arena);
    t->at++;
    for (;;) {
        TRY(skip_lines(t));
        if (toml_peek(t) == ']')
            break;
        TRY(read_value(t, depth + 1, &value));
        toml_append(array, value);
        TRY(skip_lines(t));
        if (toml_peek(t) == ']')
            break;
        if (toml_peek(t) != ',')
            return toml_expected(t, "',' or ']'");
        t->at++;
    }
    t->at++;
    *ret_value = array;
    return NULL;
}

static fallible read_inline_table(struct toml *t, unsigned depth, struct json **ret_value)
{
    struct json *table = json_new(t->arena, JSON_OBJECT);

    if (!table)
        return arena_check(t->arena);
    t->at++;
    skip_blanks(t);
    bool more = toml_peek(t) != '}';
    while (more) {
        TRY(read_pair(t, table, depth));
        skip_blanks(t);
        more = toml_peek(t) == ',';
        if (!more && toml_peek(t) != '}')
            return toml_expected(t, "',' or '}'");
        t->at += more;
        skip_blanks(t);
    }
    t->at++;
    *ret_value = table;
    return NULL;
}

static fallible read_value(struct toml *t, unsigned depth, struct json **ret_value)
{
    struct str s;

    if (depth > TOML_MAX_DEPTH)
        return too_deep(t, t->at);
    switch (toml_peek(t)) {
    case '"':
    case '\'':
        TRY(toml_read_string(t, &s));
        *ret_value = json_new_str(t->arena, s);
        return *ret_value ? NULL : arena_check(t->arena);
    case '[':
        return read_array(t, depth, ret_value);
    case '{':
        return read_inline_table(t, depth, ret_value);
    default:
        return toml_read_word(t, ret_value);
    }
}

/* --- the document --- */

static fallible check_utf8(const struct toml *t)
{
    uint32_t cp;
    size_t at = 0;

    if (utf8_valid(t->text))
        return NULL;
    while (at < t->text.len) {
        size_t n = utf8_decode(str_from(t->text, at), &cp);
        if (cp == 0xfffd && n == 1)
            break;
        at += n;
    }
    return toml_error(t, at, "the text is not UTF-8 here");
}

static fallible read_document(struct toml *t)
{
    if (str_starts(t->text, STR("\xef\xbb\xbf")))
        t->at = 3; /* editors on Windows put it there */
    while (toml_peek(t) >= 0) {
        skip_blanks(t);
        int c = toml_peek(t);
        if (c == '[')
            TRY(read_header(t));
        else if (c >= 0 && c != '#' && c != '\n' && c != '\r')
            TRY(read_pair(t, t->table, t->table_depth));
        TRY(end_line(t));
    }
    return NULL;
}

fallible toml_parse(struct arena *a, struct str text, struct json **ret_table)
{
    struct toml t = {.arena = a, .text = text, .root = json_new(a, JSON_OBJECT)};

    if (text.len > TOML_MAX_SIZE)
        return err_new(ERR_TOO_LARGE, "%zu bytes are too much; the limit is %u", text.len,
                       TOML_MAX_SIZE);
    if (!t.root)
        return arena_check(a);
    t.table = t.root;
    t.seed[0] = rng_u64(rng_system());
    t.seed[1] = rng_u64(rng_system());
    TRY(check_utf8(&t));
    struct err *e = read_document(&t);
    free(t.slots);
    if (!e)
        *ret_table = t.root;
    return e;
}
