// SPDX-License-Identifier: Apache-2.0
/* statement.c — prepared statements of one connection, found again by their text. */
#include <stdlib.h>
#include <string.h>

#include "host/store/inner.h"

fallible store_conn_prepare(struct store_conn *c, sqlite3_stmt **ret_stmt)
{
    TRY(buf_check(&c->sql));
    const char *sql = buf_cstr(&c->sql);

    for (size_t i = 0; i < STORE_STATEMENTS; i++)
        if (c->statements[i].sql && strcmp(c->statements[i].sql, sql) == 0) {
            *ret_stmt = c->statements[i].stmt;
            return NULL;
        }
    int rc = sqlite3_prepare_v3(c->db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret_stmt, NULL);
    if (rc != SQLITE_OK)
        return store_err(c->db, c->path, rc);
    char *copy = strdup(sql);
    if (!copy) {
        sqlite3_finalize(*ret_stmt);
        return err_no_memory();
    }
    size_t at = c->next++ % STORE_STATEMENTS;
    sqlite3_finalize(c->statements[at].stmt);
    free(c->statements[at].sql);
    c->statements[at].sql = copy;
    c->statements[at].stmt = *ret_stmt;
    return NULL;
}

static int bind_one(sqlite3_stmt *stmt, int at, const struct store_value *v)
{
    const char *p = v->text.len ? v->text.p : "";

    switch (v->type) {
    case STORE_INT:
        return sqlite3_bind_int64(stmt, at, v->i);
    case STORE_TEXT:
        return sqlite3_bind_text64(stmt, at, p, v->text.len, SQLITE_STATIC, SQLITE_UTF8);
    case STORE_BLOB:
        return sqlite3_bind_blob64(stmt, at, p, v->text.len, SQLITE_STATIC);
    default:
        return sqlite3_bind_null(stmt, at);
    }
}

fallible store_conn_bind(struct store_conn *c, sqlite3_stmt *stmt, const struct store_value *values,
                         size_t count)
{
    int rc = SQLITE_OK;

    for (size_t i = 0; i < count && rc == SQLITE_OK; i++)
        rc = bind_one(stmt, (int)i + 1, &values[i]);
    return rc == SQLITE_OK ? NULL : store_err(c->db, c->path, rc);
}

fallible store_conn_run(struct store_conn *c, const struct store_value *values, size_t count)
{
    sqlite3_stmt *stmt;

    TRY(store_conn_prepare(c, &stmt));
    struct err *e = store_conn_bind(c, stmt, values, count);
    if (!e) {
        int rc = sqlite3_step(stmt);
        e = rc == SQLITE_DONE || rc == SQLITE_ROW ? NULL : store_err(c->db, c->path, rc);
    }
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
    return e;
}

fallible store_conn_exec(struct store_conn *c, const char *sql)
{
    buf_reset(&c->sql);
    buf_add_cstr(&c->sql, sql);
    return store_conn_run(c, NULL, 0);
}

void store_conn_close(struct store_conn *c)
{
    for (size_t i = 0; i < STORE_STATEMENTS; i++) {
        sqlite3_finalize(c->statements[i].stmt);
        free(c->statements[i].sql);
    }
    sqlite3_close(c->db); /* the last to close moves the log into the file */
    buf_done(&c->sql);
}
