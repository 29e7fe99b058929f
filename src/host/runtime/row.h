// SPDX-License-Identifier: Apache-2.0
/* row.h — rows of runtimes. */
#pragma once

#include "host/runtime/runtime.h"
#include "host/store/store.h"

void row_insert(struct runtime *r, const struct wire_start *start, store_done *done);
void row_update(struct runtime *r, store_done *done); /* status, detail, restarts; done NULL */
void row_set_port(struct runtime *r);
/* That clients show, and those from before. */
void row_set_key(struct runtime *r, const char *key, const char old[2][RUNTIME_KEY_LEN + 1],
                 store_done *done);
void row_forget_old_keys(struct runtime *r);
void row_delete(const struct runtime *r);
fallible row_load(struct manager *m, fallible (*fn)(struct manager *m, struct runtime *r));
