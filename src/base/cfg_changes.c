// SPDX-License-Identifier: Apache-2.0
/* cfg_changes.c — which values differ between two readings of the same rows. */
#include "base/cfg_row.h"

static const struct cfg_row *find_row(const struct cfg *c, const char *key, const void **ret_into)
{
    for (size_t t = 0; t < c->table_count; t++)
        for (size_t i = 0; i < c->tables[t].count; i++)
            if (strcmp(c->tables[t].rows[i].key, key) == 0) {
                *ret_into = c->tables[t].into;
                return &c->tables[t].rows[i];
            }
    return NULL;
}

static bool is_same(const struct cfg_row *row, const void *before, const void *after)
{
    union cfg_value a, b;

    cfg_value_load(row, before, &a);
    cfg_value_load(row, after, &b);
    switch (row->type) {
    case CFG_TYPE_STR:
    case CFG_TYPE_SECRET:
        return !a.s.p == !b.s.p && str_eq(a.s, b.s);
    case CFG_TYPE_LIST:
    case CFG_TYPE_DICT:
        return a.j && b.j ? json_equal(a.j, b.j) : a.j == b.j;
    default:
        return a.u == b.u;
    }
}

/* Those of `here` that `there` does not have, or, if differ is true, has with another value. */
static void each_change(const struct cfg *here, const struct cfg *there, bool differ,
                        void (*fn)(void *arg, const struct cfg_row *row), void *arg)
{
    for (size_t t = 0; t < here->table_count; t++)
        for (size_t i = 0; i < here->tables[t].count; i++) {
            const struct cfg_row *row = &here->tables[t].rows[i];
            const void *into;
            if (cfg_row_is_option(row))
                continue;
            if (!find_row(there, row->key, &into) ||
                (differ && !is_same(row, into, here->tables[t].into)))
                fn(arg, row);
        }
}

void cfg_each_change(const struct cfg *before, const struct cfg *after,
                     void (*fn)(void *arg, const struct cfg_row *row), void *arg)
{
    each_change(after, before, true, fn, arg);
    each_change(before, after, false, fn, arg);
}
