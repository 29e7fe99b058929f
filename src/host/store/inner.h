// SPDX-License-Identifier: Apache-2.0
/* inner.h — what the files of store/ share; nobody else includes it. */
#pragma once

#include <pthread.h>
#include <sqlite3.h>

#include "base/clock.h"
#include "base/list.h"
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
    uint64_t sync_ns;             /* that the syncs of this flight took, without meanwhile */
    void (*meanwhile)(void *arg); /* to be called when the disk has begun; NULL: nothing */
    void *meanwhile_arg;
};

struct store {
    struct loop *loop;
    char *path;
    sqlite3 *db, *reader; /* db is the worker's while one flies that is not here, else the loop's */
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

    pthread_mutex_t lock; /* landed, for store_close alone; boarding, and the flight so long */
    pthread_cond_t landing, leaving;
    bool landed;
    bool boarding; /* the worker has begun, and waits for what it is to write */

    unsigned quick; /* syncs in a row, up to STORE_QUICK_RUN */
    bool here;      /* what flies was written by the loop itself, and is to be told */

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
/* What somebody has to do while the disk works, once. */
void store_vfs_meanwhile(struct store_vfs *v);
/* False: there is no memory. Twice closed is fine, as is one never opened. */
bool store_vfs_open(struct store_vfs *v);
void store_vfs_close(struct store_vfs *v);
/* Opens both connections and looks whether the file is sound. */
fallible store_open_files(struct store *s);
