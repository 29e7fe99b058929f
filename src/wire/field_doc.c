// SPDX-License-Identifier: Apache-2.0
/* field_doc.c — what the rows say, in words. */
#include "wire/field.h"

static const char *word_of(unsigned kind)
{
    static const char *const words[] = {
        [WIRE_ANY] = "any",       [WIRE_STR] = "str",      [WIRE_BOOL] = "bool",
        [WIRE_INT] = "int",       [WIRE_DOUBLE] = "float", [WIRE_OPT_INT] = "int",
        [WIRE_LINE] = "int",      [WIRE_RISK] = "int",     [WIRE_LIST] = "list",
        [WIRE_OBJECT] = "object", [WIRE_GROUP] = "object", [WIRE_GROUPS] = "list",
    };

    return words[kind];
}

static void add_type(struct buf *out, const struct wire_field *f)
{
    if (f->kind == WIRE_LIST && f->of)
        buf_addf(out, "[%s]", word_of(f->of));
    else if (f->kind == WIRE_OBJECT && f->of)
        buf_addf(out, "{str:%s}", word_of(f->of));
    else
        buf_add_cstr(out, word_of(f->kind));
    if (f->flags & WIRE_NULLABLE)
        buf_add(out, STR("|null"));
}

static void add_default(struct buf *out, const struct wire_field *f)
{
    buf_add_char(out, '=');
    if (f->kind == WIRE_STR && (f->text || !(f->flags & WIRE_NULLABLE)))
        buf_addf(out, "\"%s\"", f->text ? f->text : "");
    else if (f->flags & WIRE_NULLABLE)
        buf_add(out, STR("null"));
    else if (f->kind == WIRE_BOOL)
        buf_add_cstr(out, f->number ? "true" : "false");
    else if (f->kind == WIRE_INT || f->kind == WIRE_RISK)
        buf_addf(out, "%lld", (long long)f->number);
    else if (f->kind == WIRE_DOUBLE)
        buf_addf(out, "%lld.0", (long long)f->number);
    else
        buf_add_cstr(out, f->kind == WIRE_OBJECT ? "{}" : "[]");
}

void wire_add_fields_doc(struct buf *out, const struct wire_fields *fields)
{
    for (size_t i = 0; i < fields->len; i++) {
        const struct wire_field *f = &fields->rows[i];
        buf_addf(out, "%s%s: ", i ? "; " : "", f->name);
        if (f->kind == WIRE_GROUP) {
            buf_add_char(out, '{');
            wire_add_fields_doc(out, f->group);
            buf_add_char(out, '}');
            continue;
        }
        add_type(out, f);
        if (!(f->flags & WIRE_REQUIRED))
            add_default(out, f);
    }
}
