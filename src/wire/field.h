// SPDX-License-Identifier: Apache-2.0
/* field.h — one row per field; decoding, encoding and defaults read the same row.
 *
 * The values live in a struct, at the offset of the row, or (base NULL) in a tree that holds
 * exactly the fields of the rows in their order. Private to src/wire. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json.h"

enum wire_kind {
    WIRE_ANY,     /* only as .of: nothing is checked */
    WIRE_STR,     /* struct str; .p NULL is null */
    WIRE_BOOL,    /* bool */
    WIRE_INT,     /* int64_t */
    WIRE_DOUBLE,  /* double; structs only */
    WIRE_OPT_INT, /* struct wire_opt_int */
    WIRE_LINE,    /* const struct json *: an integer, or a string the editor judges */
    WIRE_RISK,    /* int64_t; null is WIRE_RISK_NULL, which is left out when written */
    WIRE_LIST,    /* const struct json *; NULL is null or [] */
    WIRE_OBJECT,  /* const struct json *; NULL is null or {} */
    WIRE_GROUP,   /* a struct with rows of its own */
    WIRE_GROUPS,  /* trees only: a list of objects with rows of their own */
};

enum {
    WIRE_REQUIRED = 1,
    WIRE_NULLABLE = 2,
};

struct wire_fields {
    const struct wire_field *rows;
    size_t len;
};

struct wire_field {
    const char *name, *old_name; /* old_name: read first, never written */
    uint8_t kind, of;            /* enum wire_kind; of: of the elements */
    uint8_t flags;
    uint16_t offset;
    int64_t number;   /* default of integers and booleans */
    const char *text; /* default of strings; NULL with WIRE_NULLABLE is null, otherwise "" */
    const struct wire_fields *group;
};

#define WIRE_FIELDS(table)                                                                         \
    {                                                                                              \
        (table), ARRAY_LEN(table)                                                                  \
    }

/* The source of members: the first that has a name wins; `without` has none. */
struct wire_members {
    const struct json *over, *object;
    const char *without;
};

struct wire_values {
    const struct wire_fields *fields;
    void *base;         /* the struct, or NULL: */
    struct json *tree;  /* decoding makes it */
    struct str content; /* what {content} says when no row has that name */
};

void wire_set_defaults(const struct wire_fields *fields, void *base);
/* path is what an error puts before the field's name: "args." */
fallible wire_decode_fields(struct arena *a, const char *path, const struct wire_members *from,
                            struct wire_values *values);
/* Refuses, in Python's words, when a required field is not there. */
fallible wire_check_missing(const char *name, const char *class_name,
                            const struct wire_fields *fields, const struct wire_members *from);
/* "field 'source': 'robot' is not a valid EventSource"; the value is cut and escaped. */
fallible wire_refuse_value(const char *field, struct str value, const char *why);
void wire_put_fields(struct jw *w, const char *key, const struct wire_values *values);
/* "Running command: {command}" with the fields named, printed as Python's str() does. */
void wire_add_message(struct buf *out, const char *pattern, const struct wire_values *values);

/* "command: str; cwd: str|null=null": names, types and defaults for people; field_doc.c. */
void wire_add_fields_doc(struct buf *out, const struct wire_fields *fields);

bool wire_to_int(const struct json *v, int64_t *ret_value); /* 30.0 is one, true is not */
