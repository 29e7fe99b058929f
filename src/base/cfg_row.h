// SPDX-License-Identifier: Apache-2.0
/* cfg_row.h — what the files behind cfg.h share: one value on its way into one row. */
#pragma once

#include "base/cfg.h"

union cfg_value {
    bool b;
    int64_t i;
    uint64_t u;
    double d;
    struct str s;
    struct json *j;
};

/* Errors show the value and what would be right ("'abc' is not a whole number"); the caller puts
 * key and source in front. Text follows the rules of the row's project: see cfg.h. */
fallible cfg_value_from_text(struct arena *a, const struct cfg_row *row, struct str text,
                             union cfg_value *ret_value);
/* null leaves *ret_value alone and gives *ret_unset. */
fallible cfg_value_from_json(struct arena *a, const struct cfg_row *row, const struct json *v,
                             union cfg_value *ret_value, bool *ret_unset);
void cfg_value_store(const struct cfg_row *row, void *into, const union cfg_value *v);
void cfg_value_load(const struct cfg_row *row, const void *from, union cfg_value *ret_value);
bool cfg_value_is_set(const struct cfg_row *row, const union cfg_value *v);

/* Rows without a section are options of one command: flags, but not in files or variables. */
bool cfg_row_is_option(const struct cfg_row *row);
/* False: the row has none. out holds CFG_NAME_MAX bytes. */
#define CFG_NAME_MAX  96
#define CHOICES_BYTES 4096u
bool cfg_row_env(const struct cfg_row *row, char *out);
bool cfg_row_flag(const struct cfg_row *row, char *out);
/* "a|b|c", terminated, in out if it is not in the row; NULL: anything will do. */
const char *cfg_row_choices(const struct cfg_row *row, struct buf *out);
