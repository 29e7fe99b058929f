// SPDX-License-Identifier: Apache-2.0
/* inner.h — what the files of store/ share; nobody else includes it. */
#pragma once

#include <pthread.h>
#include <sqlite3.h>

#include "base/list.h"
#include "host/store/store.h"
#include "loop/loop.h"

#define STORE_STATEMENTS 32 /* prepared and kept, for writes */

/* Schemas that kept rows in a second file beside the database, and named its records. */
#define STORE_AHEAD_FIRST 9
#define STORE_AHEAD_LAST  10

struct store_stmt {
    char *sql;
    sqlite3_stmt *stmt;
};

struct store_job {
    struct list link;
    store_done *done; /* NULL: nobody is to be told */
    void *arg;
    struct err *err;
    size_t bytes;
    char *sql; /* behind the values, with what they hold */
    size_t count;
    struct store_value values[];
};

struct store {
    struct loop *loop;
    char *path;
    sqlite3 *db, *reader; /* db is the worker's while it works, else the loop's */

    struct list queue, batch, refused;
    unsigned queued; /* in queue */
    size_t queued_bytes;
    bool working, closing, closed;
    bool checkpoints; /* the worker moves the log into the file; else it writes the batch */
    int wal_pages;    /* in the log, to be moved into the file */
    struct loop_work work;
    struct loop_later start, gone;
    struct loop_timer quiet;     /* until the log is moved into the file */
    struct loop_timer gathering; /* until the next batch may begin */

    pthread_mutex_t lock; /* of finished, for store_close() */
    pthread_cond_t finish;
    bool finished;

    struct store_stmt statements[STORE_STATEMENTS];
    unsigned statement_next;
};

/* What SQLite's code means for us, with the file and a remedy. */
fallible store_err(sqlite3 *db, const char *path, int rc);
fallible store_exec(sqlite3 *db, const char *path, const char *sql);
/* Ours, and not of a newer croft? Reads only. */
fallible store_schema_check(sqlite3 *db, const char *path, size_t *ret_version);
/* Brings a fresh or old database to the newest schema. */
fallible store_schema_apply(sqlite3 *db, const char *path);
/* Refuses a database with rows that are only in the file beside it. */
fallible store_ahead_check(sqlite3 *db, const char *path);
/* Binds and keeps the values until the statement is reset. */
int store_bind(sqlite3_stmt *stmt, const struct store_value *values, size_t count);
/* Writes the batch, or moves the log into the file. */
void store_batch_run(struct store *s);
/* Opens both connections and looks whether the file is sound. */
fallible store_open_files(struct store *s);
