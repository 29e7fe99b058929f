// SPDX-License-Identifier: Apache-2.0
/* field.c — fields by their rows; see field.h. */
#include "wire/field.h"

#include "base/utf8.h"
#include "wire/event.h"
#include "wire/pyrepr.h"

static const struct json empty_object = {.type = JSON_OBJECT}, empty_list = {.type = JSON_ARRAY};

/* --- looking --- */

static const struct json *field_member(const struct wire_members *from, const char *name)
{
    if (from->without && strcmp(from->without, name) == 0)
        return NULL;
    const struct json *v = json_get(from->over, str_of(name));
    return v ? v : json_get(from->object, str_of(name));
}

/* NULL when it is not there, or null. */
static const struct json *value_of(const struct wire_field *f, const struct wire_members *from)
{
    const struct json *v = f->old_name ? field_member(from, f->old_name) : NULL;

    if (!v || v->type == JSON_NULL)
        v = field_member(from, f->name);
    return v && v->type != JSON_NULL ? v : NULL;
}

/* Up to two required fields that are not there: no type has more of them. */
static size_t find_missing(const struct wire_fields *fields, const struct wire_members *from,
                           const char *ret_names[2])
{
    size_t n = 0;

    for (size_t i = 0; i < fields->len && n < 2; i++)
        if (fields->rows[i].flags & WIRE_REQUIRED && !field_member(from, fields->rows[i].name))
            ret_names[n++] = fields->rows[i].name;
    return n;
}

fallible wire_check_missing(const char *name, const char *class_name,
                            const struct wire_fields *fields, const struct wire_members *from)
{
    const char *names[2];
    size_t n = find_missing(fields, from, names);

    if (n == 0)
        return NULL;
    return err_new(ERR_INVALID,
                   "'%s' has the wrong arguments: %s.__init__() missing %zu required positional "
                   "argument%s: '%s'%s%s%s",
                   name, class_name, n, n > 1 ? "s" : "", names[0], n > 1 ? " and '" : "",
                   n > 1 ? names[1] : "", n > 1 ? "'" : "");
}

/* NULL when the values are a tree. */
static void *place_of(const struct wire_values *values, const struct wire_field *f)
{
    return values->base ? (char *)values->base + f->offset : NULL;
}

bool wire_to_int(const struct json *v, int64_t *ret_value)
{
    if (v->type == JSON_INT)
        *ret_value = v->i;
    else if (v->type == JSON_DOUBLE && v->d >= -0x1p53 && v->d <= 0x1p53 &&
             v->d == (double)(int64_t)v->d)
        *ret_value = (int64_t)v->d;
    else
        return false;
    return true;
}

/* --- checking --- */

static bool is_of(const struct json *v, unsigned kind)
{
    int64_t i;

    switch ((enum wire_kind)kind) {
    case WIRE_ANY:
    case WIRE_RISK: /* what is no risk is dropped, not refused */
        return true;
    case WIRE_STR:
        return v->type == JSON_STR;
    case WIRE_BOOL:
        return v->type == JSON_BOOL;
    case WIRE_LINE:
        if (v->type == JSON_STR)
            return true;
        /* fall through */
    case WIRE_INT:
    case WIRE_OPT_INT:
        return wire_to_int(v, &i);
    case WIRE_DOUBLE:
        return v->type == JSON_INT || v->type == JSON_DOUBLE;
    case WIRE_LIST:
    case WIRE_GROUPS:
        return v->type == JSON_ARRAY;
    case WIRE_OBJECT:
    case WIRE_GROUP:
        return v->type == JSON_OBJECT;
    }
    return false;
}

static const char *phrase_of(unsigned kind)
{
    static const char *const phrases[] = {
        [WIRE_ANY] = "anything",    [WIRE_STR] = "a string",       [WIRE_BOOL] = "true or false",
        [WIRE_INT] = "an integer",  [WIRE_OPT_INT] = "an integer", [WIRE_LINE] = "an integer",
        [WIRE_RISK] = "an integer", [WIRE_LIST] = "an array",      [WIRE_OBJECT] = "an object",
        [WIRE_GROUP] = "an object", [WIRE_GROUPS] = "an array",    [WIRE_DOUBLE] = "a number",
    };

    return phrases[kind];
}

#define SHOWN_MAX 60 /* characters of a value in an error, which is one line */

static void add_shown(struct buf *out, struct str value)
{
    struct str shown = str_first(value, utf8_offset(value, SHOWN_MAX));

    buf_init(out, 1024); /* an escape has ten bytes at most */
    pyrepr_add_str(out, shown);
    buf_add_cstr(out, shown.len < value.len ? "..." : "");
}

fallible wire_refuse_value(const char *field, struct str value, const char *why)
{
    own_done(buf) shown = {0};

    add_shown(&shown, value);
    return err_new(ERR_INVALID, "field '%s': %.*s %s", field, (int)shown.len,
                   shown.len ? shown.p : "", why);
}

static fallible refuse_member(const char *path, const struct wire_field *f, const struct json *e)
{
    own_done(buf) key = {0};

    add_shown(&key, e->key);
    return err_new(ERR_INVALID, "field '%s%s' must have %s, not %s, under %.*s", path, f->name,
                   phrase_of(f->of), json_type_word(e), (int)key.len, key.len ? key.p : "");
}

static fallible field_check(const char *path, const struct wire_field *f, const struct json *v)
{
    size_t index = 0;

    if (!is_of(v, f->kind))
        return err_new(ERR_INVALID, "field '%s%s' must be %s, not %s", path, f->name,
                       phrase_of(f->kind), json_type_word(v));
    if (f->kind != WIRE_LIST && f->kind != WIRE_OBJECT)
        return NULL;
    for (const struct json *e = v->first; e; e = e->next, index++) {
        if (is_of(e, f->of))
            continue;
        if (f->kind == WIRE_LIST)
            return err_new(ERR_INVALID, "field '%s%s[%zu]' must be %s, not %s", path, f->name,
                           index, phrase_of(f->of), json_type_word(e));
        return refuse_member(path, f, e);
    }
    return NULL;
}

/* -1, 0, 1 and 2 as Python compares them: 1.0 and true are 1. Anything else is the default. */
static int64_t risk_of(const struct json *v, int64_t otherwise)
{
    int64_t i = WIRE_RISK_NULL;

    if (v->type == JSON_BOOL)
        return v->b;
    return wire_to_int(v, &i) && i >= WIRE_RISK_UNKNOWN && i <= WIRE_RISK_HIGH ? i : otherwise;
}

/* --- structs --- */

static struct str text_of(struct str s)
{
    return s.p ? s : STR(""); /* NULL would be null */
}

static struct str default_text(const struct wire_field *f)
{
    if (f->text)
        return str_of(f->text);
    return f->flags & WIRE_NULLABLE ? (struct str){0} : STR("");
}

void wire_set_defaults(const struct wire_fields *fields, void *base)
{
    for (size_t i = 0; i < fields->len; i++) {
        const struct wire_field *f = &fields->rows[i];
        void *to = (char *)base + f->offset;
        switch ((enum wire_kind)f->kind) {
        case WIRE_STR:
            *(struct str *)to = default_text(f);
            break;
        case WIRE_BOOL:
            *(bool *)to = f->number;
            break;
        case WIRE_INT:
        case WIRE_RISK:
            *(int64_t *)to = f->number;
            break;
        case WIRE_DOUBLE:
            *(double *)to = (double)f->number;
            break;
        case WIRE_OPT_INT:
            *(struct wire_opt_int *)to = (struct wire_opt_int){0};
            break;
        case WIRE_LINE:
        case WIRE_LIST:
        case WIRE_OBJECT:
        case WIRE_GROUPS:
        case WIRE_ANY:
            *(const struct json **)to = NULL;
            break;
        case WIRE_GROUP:
            wire_set_defaults(f->group, to);
            break;
        }
    }
}

static fallible field_store(struct arena *a, const char *path, const struct wire_field *f, void *to,
                            const struct json *v)
{
    switch ((enum wire_kind)f->kind) {
    case WIRE_STR:
        *(struct str *)to = text_of(v->s);
        break;
    case WIRE_BOOL:
        *(bool *)to = v->b;
        break;
    case WIRE_INT:
        wire_to_int(v, to);
        break;
    case WIRE_RISK:
        *(int64_t *)to = risk_of(v, f->number);
        break;
    case WIRE_DOUBLE:
        *(double *)to = v->type == JSON_INT ? (double)v->i : v->d;
        break;
    case WIRE_OPT_INT:
        ((struct wire_opt_int *)to)->is_set = wire_to_int(v, &((struct wire_opt_int *)to)->value);
        break;
    case WIRE_LINE:
    case WIRE_LIST:
    case WIRE_OBJECT:
    case WIRE_GROUPS:
    case WIRE_ANY:
        *(const struct json **)to = v;
        break;
    case WIRE_GROUP: {
        struct wire_values inner = {.fields = f->group, .base = to};
        struct str under = arena_printf(a, "%s%s.", path, f->name);
        TRY(arena_check(a));
        return wire_decode_fields(a, under.p, &(struct wire_members){.object = v}, &inner);
    }
    }
    return NULL;
}

/* --- trees --- */

static struct json *copy_node(struct arena *a, const struct json *v)
{
    struct json *copy = json_new(a, v->type);

    if (!copy)
        return NULL;
    *copy = *v;
    copy->next = NULL;
    return copy;
}

static struct json *default_node(struct arena *a, const struct wire_field *f)
{
    if (f->kind == WIRE_STR && default_text(f).p)
        return json_new_str(a, default_text(f));
    if (f->kind == WIRE_BOOL)
        return json_new_bool(a, f->number);
    if (f->kind == WIRE_INT || f->kind == WIRE_RISK)
        return json_new_int(a, f->number);
    if (f->flags & WIRE_NULLABLE)
        return json_new(a, JSON_NULL);
    return json_new(a, f->kind == WIRE_OBJECT ? JSON_OBJECT : JSON_ARRAY);
}

static fallible make_groups(struct arena *a, const char *path, const struct wire_field *f,
                            const struct json *list, struct json **ret_node)
{
    size_t index = 0;

    *ret_node = json_new(a, JSON_ARRAY);
    for (const struct json *e = list->first; e; e = e->next, index++) {
        struct wire_values item = {.fields = f->group};
        const char *missing[2];
        struct wire_members from = {.object = e};
        if (e->type != JSON_OBJECT)
            return err_new(ERR_INVALID, "field '%s%s[%zu]' must be an object, not %s", path,
                           f->name, index, json_type_word(e));
        if (find_missing(f->group, &from, missing))
            return err_new(ERR_INVALID, "field '%s%s[%zu].%s' is missing", path, f->name, index,
                           missing[0]);
        struct str under = arena_printf(a, "%s%s[%zu].", path, f->name, index);
        TRY(arena_check(a));
        TRY(wire_decode_fields(a, under.p, &from, &item));
        json_push(*ret_node, item.tree);
    }
    return NULL;
}

static fallible make_node(struct arena *a, const char *path, const struct wire_field *f,
                          const struct json *v, struct json **ret_node)
{
    int64_t i;

    if (!v)
        *ret_node = default_node(a, f);
    else if (f->kind == WIRE_GROUPS)
        TRY(make_groups(a, path, f, v, ret_node));
    else if (f->kind == WIRE_RISK)
        *ret_node = json_new_int(a, risk_of(v, f->number));
    else if ((f->kind == WIRE_INT || f->kind == WIRE_OPT_INT) && wire_to_int(v, &i))
        *ret_node = json_new_int(a, i);
    else
        *ret_node = copy_node(a, v);
    return arena_check(a);
}

/* --- decoding --- */

static bool is_null_risk(const struct wire_field *f, const struct wire_members *from)
{
    const struct json *v = f->kind == WIRE_RISK ? field_member(from, f->name) : NULL;

    return v && v->type == JSON_NULL;
}

fallible wire_decode_fields(struct arena *a, const char *path, const struct wire_members *from,
                            struct wire_values *values)
{
    const struct wire_fields *fields = values->fields;

    if (values->base)
        wire_set_defaults(fields, values->base);
    else
        values->tree = json_new(a, JSON_OBJECT);
    TRY(arena_check(a));
    for (size_t i = 0; i < fields->len; i++) {
        const struct wire_field *f = &fields->rows[i];
        const struct json *v = value_of(f, from);
        struct json *node;
        void *to = place_of(values, f);
        if (v)
            TRY(field_check(path, f, v));
        else if (f->flags & WIRE_REQUIRED)
            return err_new(ERR_INVALID, "field '%s%s' %s %s%s", path, f->name,
                           field_member(from, f->name) ? "must be" : "is missing, it must be",
                           phrase_of(f->kind), field_member(from, f->name) ? ", not null" : "");
        if (to && is_null_risk(f, from)) {
            *(int64_t *)to = WIRE_RISK_NULL;
        } else if (to && v) {
            TRY(field_store(a, path, f, to, v));
        } else if (!to && !is_null_risk(f, from)) {
            TRY(make_node(a, path, f, v, &node));
            json_set(values->tree, str_of(f->name), node);
        }
    }
    return NULL;
}

/* --- encoding --- */

static void put_tree(struct jw *w, const struct wire_field *f, const struct json *v)
{
    if (!v && !(f->flags & WIRE_NULLABLE))
        v = f->kind == WIRE_OBJECT ? &empty_object : &empty_list;
    jw_value(w, f->name, v);
}

static void put_field(struct jw *w, const struct wire_field *f, const void *from)
{
    const struct wire_opt_int *opt = from;
    const struct str *s = from;
    const int64_t *i = from;

    switch ((enum wire_kind)f->kind) {
    case WIRE_STR:
        if (!s->p && f->flags & WIRE_NULLABLE)
            return jw_null(w, f->name);
        return jw_str(w, f->name, *s);
    case WIRE_BOOL:
        return jw_bool(w, f->name, *(const bool *)from);
    case WIRE_INT:
        return jw_int(w, f->name, *i);
    case WIRE_RISK:
        if (*i != WIRE_RISK_NULL)
            jw_int(w, f->name, *i);
        return;
    case WIRE_DOUBLE:
        return jw_double(w, f->name, *(const double *)from);
    case WIRE_OPT_INT:
        if (opt->is_set)
            return jw_int(w, f->name, opt->value);
        return jw_null(w, f->name);
    case WIRE_LINE:
    case WIRE_LIST:
    case WIRE_OBJECT:
    case WIRE_GROUPS:
    case WIRE_ANY:
        return put_tree(w, f, *(const struct json *const *)from);
    case WIRE_GROUP:
        return wire_put_fields(w, f->name,
                               &(struct wire_values){.fields = f->group, .base = (void *)from});
    }
}

void wire_put_fields(struct jw *w, const char *key, const struct wire_values *values)
{
    if (!values->base)
        return jw_value(w, key, values->tree ? values->tree : &empty_object);
    JW_OBJECT(w, key) {
        for (size_t i = 0; i < values->fields->len; i++)
            put_field(w, &values->fields->rows[i], place_of(values, &values->fields->rows[i]));
    }
}

/* --- messages --- */

static void add_node(struct buf *out, const struct json *v)
{
    if (v && v->type == JSON_STR)
        buf_add(out, v->s);
    else
        pyrepr_add(out, v);
}

static void add_value(struct buf *out, struct str name, const struct wire_values *values)
{
    for (size_t i = 0; i < values->fields->len; i++) {
        const struct wire_field *f = &values->fields->rows[i];
        if (!str_eq(str_of(f->name), name))
            continue;
        const void *at = place_of(values, f);
        if (!at)
            add_node(out, json_get(values->tree, name));
        else if (f->kind == WIRE_INT)
            buf_addf(out, "%lld", (long long)*(const int64_t *)at);
        else if (f->kind == WIRE_STR)
            buf_add(out, *(const struct str *)at);
        return;
    }
    buf_add(out, values->content);
}

void wire_add_message(struct buf *out, const char *pattern, const struct wire_values *values)
{
    struct str rest = str_of(pattern), piece;

    while (str_cut(&rest, '{', &piece)) {
        buf_add(out, piece);
        str_cut(&rest, '}', &piece);
        add_value(out, piece, values);
    }
    buf_add(out, piece);
}
