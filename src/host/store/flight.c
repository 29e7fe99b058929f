// SPDX-License-Identifier: Apache-2.0
/* flight.c — what a flight does: one transaction of all who are aboard, or the log moved into the
 * file. On the thread, or on the loop while none flies. */
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

static int flight_prepare(struct store *s, const char *sql, sqlite3_stmt **ret_stmt)
{
    for (size_t i = 0; i < STORE_STATEMENTS; i++)
        if (s->statements[i].sql && strcmp(s->statements[i].sql, sql) == 0) {
            *ret_stmt = s->statements[i].stmt;
            return SQLITE_OK;
        }
    int rc = sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret_stmt, NULL);
    if (rc != SQLITE_OK)
        return rc;
    char *kept = strdup(sql);
    if (!kept) {
        sqlite3_finalize(*ret_stmt);
        return SQLITE_NOMEM;
    }
    struct store_stmt *slot = &s->statements[s->statement_next++ % STORE_STATEMENTS];
    sqlite3_finalize(slot->stmt);
    free(slot->sql);
    *slot = (struct store_stmt){kept, *ret_stmt};
    return SQLITE_OK;
}

fallible store_run(struct store *s, const char *sql, const struct store_value *values, size_t count)
{
    sqlite3_stmt *stmt;
    int rc = flight_prepare(s, sql, &stmt);

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

/* Nobody of this flight is on disk. One that failed by itself keeps its own story. */
static void fail_all(struct store *s, struct err *why)
{
    LIST_EACH(w, &s->flight, struct store_job, link) {
        if (!w->err)
            w->err = err_copy(why);
    }
    err_free(why);
}

static void wait_for_all(struct store *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->boarding)
        pthread_cond_wait(&s->leaving, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static fallible flight_begin(struct store *s)
{
    return store_run(s, "BEGIN IMMEDIATE", NULL, 0);
}

fallible store_ahead_note(struct store *s, uint64_t seq)
{
    const struct store_value v = store_int((int64_t)seq);

    return store_run(s, "UPDATE ahead SET seq=?1", &v, 1);
}

static fallible run_all(struct store *s)
{
    LIST_EACH(w, &s->flight, struct store_job, link) {
        w->err = w->written ? NULL : store_run(s, w->sql, w->values, w->count);
        if (!w->err)
            continue;
        /* SQLite undid the whole transaction, or it would be noted as done and is not. */
        if (sqlite3_get_autocommit(s->db) || (w->seq && err_code(w->err) != ERR_CONFLICT))
            return err_copy(w->err);
    }
    if (s->aboard)
        TRY(store_ahead_note(s, s->aboard));
    return store_run(s, "COMMIT", NULL, 0);
}

/* e: why it could not begin. */
static void flight_finish(struct store *s, struct err *e)
{
    if (!e)
        e = run_all(s);
    s->failed = e != NULL;
    if (e && !sqlite3_get_autocommit(s->db))
        err_free(store_exec(s->db, s->path, "ROLLBACK")); /* e is the story */
    if (e)
        fail_all(s, e);
}

void store_flight(struct store *s)
{
    int left = 0;

    if (s->checkpoints) { /* what cannot be moved now stays in the log, where it is as safe */
        s->vfs.whole = true;
        int rc = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &left, NULL);
        s->vfs.whole = false;
        s->wal_pages = 0;   /* counted anew by the next commit */
        s->vfs.sync_ns = 0; /* nobody waited for it */
        (void)rc;
        return;
    }
    struct err *e = flight_begin(s);
    wait_for_all(s);
    flight_finish(s, e);
}

/* --- out of turn --- */

static bool is_due(const struct store_job *w)
{
    return w->safe && !w->written;
}

static fallible write_those_ahead(struct store *s, struct list *of, uint64_t *last)
{
    LIST_EACH(w, of, struct store_job, link) {
        if (!is_due(w))
            continue;
        TRY(store_run(s, w->sql, w->values, w->count));
        *last = w->seq > *last ? w->seq : *last;
    }
    return NULL;
}

static fallible write_out_of_turn(struct store *s, struct list *failed)
{
    uint64_t last = 0;

    TRY(flight_begin(s));
    TRY(write_those_ahead(s, failed, &last));
    TRY(write_those_ahead(s, &s->gather, &last));
    TRY(store_ahead_note(s, last));
    return store_run(s, "COMMIT", NULL, 0);
}

static bool any_due(const struct list *of)
{
    LIST_EACH(w, of, const struct store_job, link)
        if (is_due(w))
            return true;
    return false;
}

static void note_those_ahead(struct list *of)
{
    LIST_EACH(w, of, struct store_job, link) {
        if (!is_due(w))
            continue;
        w->written = true;
        err_free(take(&w->err)); /* of the flight that failed */
    }
}

fallible store_flight_of_those_ahead(struct store *s)
{
    struct list none, *failed = s->flying && s->failed ? &s->flight : &none;

    list_init(&none);
    if (!any_due(failed) && !any_due(&s->gather))
        return NULL;
    struct err *e = write_out_of_turn(s, failed);
    if (e && !sqlite3_get_autocommit(s->db))
        err_free(store_exec(s->db, s->path, "ROLLBACK")); /* e is the story */
    if (e)
        return e;
    note_those_ahead(failed);
    note_those_ahead(&s->gather);
    return NULL;
}
