// SPDX-License-Identifier: Apache-2.0
/* inner.h — what the files of store/ share; nobody else includes it. */
#pragma once

#include <linux/aio_abi.h>
#include <pthread.h>
#include <sqlite3.h>

#include "base/clock.h"
#include "base/list.h"
#include "host/store/record.h"
#include "host/store/store.h"
#include "loop/loop.h"

#define STORE_STATEMENTS 32 /* prepared and kept, for writes */

struct store_stmt {
    char *sql;
    sqlite3_stmt *stmt;
};

struct store_vfs { /* log.c: SQLite's own, but for the sync of logs */
    sqlite3_vfs base, *real;
    char name[32];
    bool whole;      /* the log may hold what another process wrote: all of it is to be synced */
    unsigned ranges; /* syncs of what was written alone */
    const struct clock *clock;
    uint64_t sync_ns; /* that the syncs of this flight took */
};

#define STORE_AHEAD_SCHEMA 9 /* the first that has it */

struct store_ahead { /* ahead.c; the loop's */
    int fd, top;     /* fd -1: none; top: see store_log_place() */
    aio_context_t aio;
    char id[RECORD_ID];
    char *block;       /* RECORD_BYTES, aligned */
    size_t writing;    /* bytes of the record under way; 0: none */
    uint64_t seq;      /* of the last record */
    uint64_t at, from; /* blocks that were ever used; SQLite has what is before from */
    bool stuck;        /* the disk failed */
};

struct store_job {
    struct list link, told; /* told: among those that are on disk, and whose askers do not know */
    store_done *done;       /* NULL: nobody is to be told, or he was */
    void *arg;
    struct err *err;
    uint64_t seq; /* of its record; 0: none */
    bool safe;    /* by that */
    bool written; /* by SQLite, out of turn */
    size_t bytes;
    char *sql; /* behind the values, with what they hold */
    size_t count;
    struct store_value values[];
};

struct store {
    struct loop *loop;
    char *path;
    sqlite3 *db, *reader; /* db is the worker's until what flies has landed, else the loop's */
    struct store_vfs vfs; /* the same */

    struct list gather, flight, refused;
    unsigned queued; /* in gather */
    size_t queued_bytes;
    bool flying, closing, closed, checkpoints; /* checkpoints: that is what flies */
    int wal_pages;                             /* that wait to be moved into the file */
    struct loop_work work;
    struct loop_later start, gone;
    struct loop_timer quiet;     /* until the log is moved into the file */
    struct loop_timer gathering; /* until the next flight may leave */

    pthread_mutex_t lock; /* landed, for who waits for it; boarding, and the flight so long */
    pthread_cond_t landing, leaving;
    bool landed;
    bool boarding; /* the worker has begun, and waits for what it is to write */

    unsigned quick; /* syncs in a row, up to STORE_QUICK_RUN */

    struct store_ahead ahead;
    struct list told;               /* on disk by it, and to be told */
    uint64_t aboard, aboard_blocks; /* of ahead's records, the last that flies; 0: none */
    bool failed;                    /* the flight, as a whole */
    bool undone;                    /* the last one did */

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
/* Binds and keeps the values until the statement is reset. */
int store_bind(sqlite3_stmt *stmt, const struct store_value *values, size_t count);
/* True where the inode of a log need not be synced: the log, and a directory of its disk. */
bool store_log_place(const char *path, int *ret_fd, int *ret_top);
/* False: there is no memory. Twice closed is fine, as is one never opened. */
bool store_vfs_open(struct store_vfs *v);
void store_vfs_close(struct store_vfs *v);
/* All that are aboard, or the log. */
void store_flight(struct store *s);
/* Of those that wait, and of a flight that failed, what is on disk already. */
fallible store_flight_of_those_ahead(struct store *s);
/* SQLite has all that was acknowledged when this returns. */
fallible store_settle(struct store *s);
/* Opens both connections and looks whether the file is sound. */
fallible store_open_files(struct store *s);
/* One statement on the writing connection. */
fallible store_run(struct store *s, const char *sql, const struct store_value *values,
                   size_t count);
/* That the database has the records up to this one; in the transaction that has them. */
fallible store_ahead_note(struct store *s, uint64_t seq);
/* Writes what an earlier store had no time to. Where none can be kept there is none. */
fallible store_ahead_open(struct store *s);
void store_ahead_close(struct store_ahead *a);
/* Begins to write a record of so many bytes of text; false: nothing was begun. */
bool store_ahead_begin(struct store_ahead *a, const char *sql, const struct store_value *values,
                       size_t count, size_t bytes);
/* Waits until that is on disk; false: it is not. */
bool store_ahead_finish(struct store_ahead *a);
