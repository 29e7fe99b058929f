// SPDX-License-Identifier: Apache-2.0
/* row.h — rows of runtimes. */
#pragma once

#include "host/runtime/runtime.h"
#include "host/store/store.h"

void row_insert(struct runtime *r, const struct wire_start *start, store_done *done);
void row_update(struct runtime *r, store_done *done); /* status, detail, restarts; done NULL */
void row_set_port(struct runtime *r);
/* Stores the key that clients send, and the earlier ones. */
void row_set_key(struct runtime *r, const char *key, const char old[2][RUNTIME_KEY_LEN + 1],
                 store_done *done);
void row_forget_old_keys(struct runtime *r);
void row_delete(const struct runtime *r);
void row_set_config(const struct runtime *r, const struct json *config); /* of its image */
/* All rows, in the order of their starts; row is for row_spec(). */
typedef void row_fn(struct manager *m, struct runtime *r, const struct store_value *row);
void row_load(struct manager *m, row_fn *fn, store_done *done); /* whose arg is m */
/* The request it was started with; it lies in the arena. */
fallible row_spec(const struct store_value *row, struct arena *a, struct wire_start *ret);
