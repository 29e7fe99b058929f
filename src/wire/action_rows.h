// SPDX-License-Identifier: Apache-2.0
/* action_rows.h — the rows of every action; private to action*.c.
 *
 * A row says name, type and default; the order is the order on the wire. */
#pragma once

#include "wire/action.h"
#include "wire/field.h"

struct wire_action_row {
    const char *name, *class_name;
    bool is_runnable;
    struct wire_fields fields;
    const char *message; /* a pattern; or, when words are not enough: */
    void (*add_message)(struct buf *out, const struct json *args);
    fallible (*check)(const struct json *args);
};

const struct wire_action_row *wire_action_row(enum wire_action_type type);

/* action_text.c: what takes more than a pattern */
#define WIRE_FORGOTTEN_MAX 1000000 /* events one condensation may name */
fallible wire_check_condensation(const struct json *args);
void wire_add_condensation_message(struct buf *out, const struct json *args);
void wire_add_finish_message(struct buf *out, const struct json *args);
void wire_add_reject_message(struct buf *out, const struct json *args);
void wire_add_recall_message(struct buf *out, const struct json *args);
void wire_add_task_message(struct buf *out, const struct json *args);
