// SPDX-License-Identifier: Apache-2.0
/* inner.h — shared by the files of store/, included by no other. */
#pragma once

#include <pthread.h>
#include <sqlite3.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "host/store/store.h"
#include "loop/loop.h"

#define STORE_STATEMENTS 32  /* prepared and kept, per connection */
#define STORE_PAGE       256 /* rows that are read at a time */

/* Schemas that kept rows in a second file beside the database, and named its records. */
#define STORE_AHEAD_FIRST 9
#define STORE_AHEAD_LAST  10

struct store_conn {
    sqlite3 *db;
    const char *path; /* the store's */
    struct {
        char *sql;
        sqlite3_stmt *stmt;
    } statements[STORE_STATEMENTS];
    unsigned next;  /* the slot that is used again, if there are too many */
    struct buf sql; /* of the statement that is being made */
};

struct store_job { /* behind the changes: their fields, and what the values hold */
    struct list link;
    store_done *done; /* NULL: no one waits */
    void *arg;
    struct err *err;
    size_t bytes, count;
    struct store_change changes[];
};

struct store_page_row {
    struct store_page_row *next;
    struct store_value values[];
};

struct store_read {
    struct list link;
    struct store_query q; /* its pointers lead to the values below */
    struct store_value equal, from, key;
    struct arena holds, page; /* holds: what those values hold */
    struct store_page_row *rows;
    size_t count; /* of rows */
    store_row *row;
    store_done *done;
    void *arg;
    struct err *err;
    bool one, limited; /* one: of store_get() */
};

struct store_thread { /* one of the two workers; see store.c */
    struct store *store;
    struct loop_work work;
    void (*run)(struct store *s);
    void (*ended)(struct store *s);
    bool working, finished; /* finished: under the store's lock */
};

struct store {
    struct loop *loop;
    char *path;
    struct store_conn write, read; /* a worker's while it works, else the loop's */

    struct list queue, batch, refused;
    unsigned queued; /* in queue */
    size_t queued_bytes;
    struct store_thread writer;
    bool checkpoints;        /* the writer moves the log into the file; else it writes the batch */
    int wal_pages;           /* in the log, to be moved into the file */
    struct loop_timer quiet; /* until the log is moved into the file */
    struct loop_timer gathering; /* until the next batch may begin */

    struct list reads, reading;
    struct store_thread reader;

    struct loop_later start, gone;
    bool closing, closed;
    pthread_mutex_t lock; /* of finished, for store_close() */
    pthread_cond_t finish;
};

/* The error for SQLite's code, with the file and a remedy. */
fallible store_err(sqlite3 *db, const char *path, int rc);
fallible store_exec(sqlite3 *db, const char *path, const char *sql);
/* Ours, and not of a newer croft? Reads only. */
fallible store_schema_check(sqlite3 *db, const char *path, size_t *ret_version);
/* Brings a fresh or old database to the newest schema. */
fallible store_schema_apply(sqlite3 *db, const char *path);
/* Refuses a database with rows that are only in the file beside it. */
fallible store_ahead_check(sqlite3 *db, const char *path);
/* Opens both connections and looks whether the file is sound. */
fallible store_open_files(struct store *s);

/* --- statement.c --- */
/* A prepared statement of c->sql. */
fallible store_conn_prepare(struct store_conn *c, sqlite3_stmt **ret_stmt);
fallible store_conn_bind(struct store_conn *c, sqlite3_stmt *stmt, const struct store_value *values,
                         size_t count);
/* Runs a statement that gives no rows. */
fallible store_conn_run(struct store_conn *c, const struct store_value *values, size_t count);
fallible store_conn_exec(struct store_conn *c, const char *sql);
void store_conn_close(struct store_conn *c);

/* --- change.c: on the writer --- */
void store_batch_run(struct store *s); /* writes the batch, or moves the log into the file */

/* --- read.c --- */
void store_reads_run(struct store *s);  /* on the reader: the next page of each */
void store_reads_tell(struct store *s); /* on the loop: gives the rows; asks for the next pages */
void store_reads_end(struct store *s);  /* of a store that is closing */

/* --- store.c --- */
void store_reads_soon(struct store *s); /* they begin in this turn, or behind those that run */
size_t store_column_count(const struct store_table *t);
