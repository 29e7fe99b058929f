// SPDX-License-Identifier: Apache-2.0
/* batch.c — what the worker does: one transaction of the whole batch, or the log moved into the
 * file. On its thread, or on the loop where no thread is to be had. */
#include <stdlib.h>
#include <string.h>

#include "host/store/inner.h"

int store_bind(sqlite3_stmt *stmt, const struct store_value *values, size_t count)
{
    int rc = SQLITE_OK;

    for (size_t i = 0; i < count && rc == SQLITE_OK; i++) {
        const struct store_value *v = &values[i];
        int at = (int)i + 1;
        switch (v->type) {
        case STORE_NULL:
            rc = sqlite3_bind_null(stmt, at);
            break;
        case STORE_INT:
            rc = sqlite3_bind_int64(stmt, at, v->i);
            break;
        case STORE_TEXT:
            rc = sqlite3_bind_text64(stmt, at, v->text.len ? v->text.p : "", v->text.len,
                                     SQLITE_STATIC, SQLITE_UTF8);
            break;
        case STORE_BLOB:
            rc = sqlite3_bind_blob64(stmt, at, v->text.len ? v->text.p : "", v->text.len,
                                     SQLITE_STATIC);
            break;
        }
    }
    return rc;
}

static int statement_get(struct store *s, const char *sql, sqlite3_stmt **ret_stmt)
{
    for (size_t i = 0; i < STORE_STATEMENTS; i++)
        if (s->statements[i].sql && strcmp(s->statements[i].sql, sql) == 0) {
            *ret_stmt = s->statements[i].stmt;
            return SQLITE_OK;
        }
    int rc = sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret_stmt, NULL);
    if (rc != SQLITE_OK)
        return rc;
    char *copy = strdup(sql);
    if (!copy) {
        sqlite3_finalize(*ret_stmt);
        return SQLITE_NOMEM;
    }
    struct store_stmt *slot = &s->statements[s->statement_next++ % STORE_STATEMENTS];
    sqlite3_finalize(slot->stmt);
    free(slot->sql);
    *slot = (struct store_stmt){copy, *ret_stmt};
    return SQLITE_OK;
}

/* One statement on the writing connection. */
static fallible statement_run(struct store *s, const char *sql, const struct store_value *values,
                              size_t count)
{
    sqlite3_stmt *stmt;
    int rc = statement_get(s, sql, &stmt);

    if (rc != SQLITE_OK)
        return store_err(s->db, s->path, rc);
    rc = store_bind(stmt, values, count);
    while (rc == SQLITE_OK || rc == SQLITE_ROW)
        rc = sqlite3_step(stmt);
    struct err *e = rc == SQLITE_DONE ? NULL : store_err(s->db, s->path, rc);
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
    return e;
}

static fallible batch_write(struct store *s)
{
    TRY(statement_run(s, "BEGIN IMMEDIATE", NULL, 0));
    LIST_EACH(w, &s->batch, struct store_job, link) {
        w->err = statement_run(s, w->sql, w->values, w->count);
        if (w->err && sqlite3_get_autocommit(s->db)) /* SQLite undid the whole transaction */
            return err_copy(w->err);
    }
    return statement_run(s, "COMMIT", NULL, 0);
}

/* None of the batch is on disk. A write that failed by itself keeps its own story. */
static void batch_fail(struct store *s, struct err *why)
{
    if (!sqlite3_get_autocommit(s->db))
        err_free(store_exec(s->db, s->path, "ROLLBACK")); /* why is the story */
    LIST_EACH(w, &s->batch, struct store_job, link)
        if (!w->err)
            w->err = err_copy(why);
    err_free(why);
}

void store_batch_run(struct store *s)
{
    if (s->checkpoints) { /* what cannot be moved now stays in the log, where it is as safe */
        sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        s->wal_pages = 0; /* counted anew by the next commit */
        return;
    }
    struct err *e = batch_write(s);
    if (e)
        batch_fail(s, e);
}
