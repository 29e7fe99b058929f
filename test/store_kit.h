// SPDX-License-Identifier: Apache-2.0
/* store_kit.h — a store in the test's directory, driven turn by turn. */
#pragma once

#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "host/store/store.h"
#include "loop/loop.h"
#include "test/test.h"

struct rows_kit {
    struct loop *loop;
    struct store *store;
    char path[512];
};

struct rows_wait {
    unsigned calls;
    enum err_code code;
    bool failed;
    char text[512];
};

static inline void rows_on_done(void *arg, struct err *e)
{
    struct rows_wait *w = arg;

    w->calls++;
    w->failed = e != NULL;
    if (e) {
        w->code = err_code(e);
        snprintf(w->text, sizeof w->text, "%s", err_text(e));
    }
    err_free(e);
}

static inline void rows_init(struct rows_kit *k)
{
    *k = (struct rows_kit){0};
    snprintf(k->path, sizeof k->path, "%s/croft.db", test_dir());
    CHECK_OK(loop_new(&clock_system, &k->loop));
}

static inline void rows_open(struct rows_kit *k)
{
    CHECK_OK(store_open(k->loop, k->path, &k->store));
}

/* The files are closed before it returns. */
static inline void rows_close(struct rows_kit *k)
{
    unsigned fds = test_open_fds();

    store_close(k->store);
    k->store = NULL;
    while (test_open_fds() >= fds)
        CHECK_OK(loop_turn(k->loop, 10));
}

static inline void rows_done(struct rows_kit *k)
{
    store_close(k->store);
    loop_free(k->loop);
}

/* A table of the tests' own: unique names, and pages by a number. */
extern const struct store_table *const rows_table;

static inline void rows_change(struct rows_kit *k, struct rows_wait *w, const char *name,
                               const char *value, enum store_when when)
{
    const struct store_field field = {"value", store_text(str_of(value))};
    const struct store_change c = {.table = rows_table,
                                   .key = store_text(str_of(name)),
                                   .fields = &field,
                                   .count = 1,
                                   .when = when};

    *w = (struct rows_wait){0};
    store_change(k->store, &c, 1, rows_on_done, w);
}

/* A new one. */
static inline void rows_put(struct rows_kit *k, struct rows_wait *w, const char *name,
                            const char *value)
{
    rows_change(k, w, name, value, STORE_IF_NEW);
}

static inline void rows_wait(struct rows_kit *k, const struct rows_wait *w)
{
    while (!w->calls)
        CHECK_OK(loop_turn(k->loop, 1000));
}

/* By SQLite itself, "name value name value ": what is on disk. */
static inline struct str rows_read(struct rows_kit *k, const char *sql, struct buf *into)
{
    sqlite3_stmt *stmt;
    sqlite3 *db;
    int rc;

    buf_reset(into);
    CHECK_INT(sqlite3_open(k->path, &db), SQLITE_OK);
    CHECK_INT(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW)
        for (int i = 0; i < sqlite3_column_count(stmt); i++) {
            const char *text = (const char *)sqlite3_column_text(stmt, i);
            buf_addf(into, "%s ", text ? text : "null");
        }
    CHECK_INT(rc, SQLITE_DONE);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return buf_str(into);
}
