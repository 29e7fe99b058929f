// SPDX-License-Identifier: Apache-2.0
/* observation_rows.h — the rows of every observation; private to observation*.c. */
#pragma once

#include "wire/field.h"
#include "wire/observation.h"

struct wire_observation_row {
    const char *name, *class_name;
    bool is_sandbox;
    bool has_success; /* the envelope ends in "success" */
    struct wire_fields fields;
    const char *message; /* a pattern; {content} is the content; or: */
    void (*add_message)(struct buf *out, const struct wire_observation *o);
    fallible (*adapt)(const struct json *extras,
                      struct wire_observation *o); /* old fields, checks */
};

const struct wire_observation_row *wire_observation_row(enum wire_observation_type type);

/* observation.c */
void wire_add_run_message(struct buf *out, const struct wire_observation *o);
void wire_add_recalled_message(struct buf *out, const struct wire_observation *o);
fallible wire_adapt_run(const struct json *extras, struct wire_observation *o);
fallible wire_check_recall(const struct json *extras, struct wire_observation *o);
