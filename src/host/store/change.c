// SPDX-License-Identifier: Apache-2.0
/* change.c — what the writer does: one transaction of the whole batch, or the log moved into the
 * file. On its thread, or on the loop where no thread is to be had. */
#include "host/store/inner.h"

static void put_columns(struct buf *sql, const struct store_change *ch)
{
    buf_addf(sql, "INSERT INTO %s (%s", ch->table->name, ch->table->columns[0].name);
    for (size_t i = 0; i < ch->count; i++)
        buf_addf(sql, ",%s", ch->fields[i].column);
    buf_add_cstr(sql, ") VALUES (?1");
    for (size_t i = 0; i < ch->count; i++)
        buf_addf(sql, ",?%zu", i + 2);
    buf_add_char(sql, ')');
}

static fallible change_insert(struct store_conn *c, const struct store_change *ch)
{
    struct store_value v[STORE_COLUMNS + 1] = {ch->key};

    for (size_t i = 0; i < ch->count; i++)
        v[i + 1] = ch->fields[i].value;
    buf_reset(&c->sql);
    put_columns(&c->sql, ch);
    return store_conn_run(c, v, ch->count + 1);
}

/* Changes a row that exists and is as expected; otherwise nothing. */
static fallible change_row(struct store_conn *c, const struct store_change *ch)
{
    struct store_value v[STORE_COLUMNS + 2] = {ch->key};
    size_t n = 1;

    buf_reset(&c->sql);
    buf_addf(&c->sql, ch->fields ? "UPDATE %s SET" : "DELETE FROM %s", ch->table->name);
    for (size_t i = 0; i < ch->count; i++) {
        v[n++] = ch->fields[i].value;
        buf_addf(&c->sql, "%s %s=?%zu", i ? "," : "", ch->fields[i].column, n);
    }
    buf_addf(&c->sql, " WHERE %s=?1", ch->table->columns[0].name);
    if (ch->expect.column) {
        v[n++] = ch->expect.value;
        buf_addf(&c->sql, " AND %s IS ?%zu", ch->expect.column, n);
    }
    return store_conn_run(c, v, n);
}

static fallible change_run(struct store_conn *c, const struct store_change *ch)
{
    const char *table = ch->table->name;

    if (ch->fields && ch->when == STORE_IF_NEW)
        return change_insert(c, ch);
    TRY(change_row(c, ch));
    if (sqlite3_changes(c->db))
        return NULL;
    if (ch->expect.column)
        return err_new(ERR_CONFLICT, "table %s: column '%s' of the row is another, or it is gone",
                       table, ch->expect.column);
    if (!ch->fields)
        return NULL;
    if (ch->when == STORE_IF_THERE)
        return err_new(ERR_NOT_FOUND, "table %s: the row is gone", table);
    return change_insert(c, ch);
}

/* All of its changes, or none. */
static fallible job_run(struct store_conn *c, const struct store_job *w)
{
    struct err *e = NULL;

    if (w->count == 1)
        return change_run(c, &w->changes[0]);
    TRY(store_conn_exec(c, "SAVEPOINT job"));
    for (size_t i = 0; i < w->count && !e; i++)
        e = change_run(c, &w->changes[i]);
    if (sqlite3_get_autocommit(c->db))
        return e;
    struct err *undo = e ? store_conn_exec(c, "ROLLBACK TO job") : NULL;
    if (!undo)
        undo = store_conn_exec(c, "RELEASE job");
    if (undo)
        err_free(store_exec(c->db, c->path, "ROLLBACK")); /* half of it must not stay */
    if (e)
        err_free(undo);
    return e ? e : undo;
}

static fallible batch_write(struct store *s)
{
    TRY(store_conn_exec(&s->write, "BEGIN IMMEDIATE"));
    LIST_EACH(w, &s->batch, struct store_job, link) {
        w->err = job_run(&s->write, w);
        if (w->err && sqlite3_get_autocommit(s->write.db)) /* SQLite undid the whole batch */
            return err_copy(w->err);
    }
    return store_conn_exec(&s->write, "COMMIT");
}

/* None of the batch is on disk. A change that failed by itself keeps its own story. */
static void batch_fail(struct store *s, struct err *why)
{
    if (!sqlite3_get_autocommit(s->write.db))
        err_free(store_exec(s->write.db, s->path, "ROLLBACK")); /* why is the story */
    LIST_EACH(w, &s->batch, struct store_job, link)
        if (!w->err)
            w->err = err_copy(why);
    err_free(why);
}

void store_batch_run(struct store *s)
{
    if (s->checkpoints) { /* what cannot be moved now stays in the log, where it is as safe */
        sqlite3_wal_checkpoint_v2(s->write.db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        s->wal_pages = 0; /* counted anew by the next commit */
        return;
    }
    struct err *e = batch_write(s);
    if (e)
        batch_fail(s, e);
}
