// SPDX-License-Identifier: Apache-2.0
/* open.c — the file of a store: opened, looked at, and what its errors mean. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "host/store/inner.h"

#define CHECK_BYTES (64u << 20) /* a larger file is not read through at every start */
#define LOG_BYTES   (2 << 20)   /* a quiet server moves its log before it has so many */

static enum err_code code_of(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_FULL:
        return ERR_BUSY;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return ERR_CORRUPT;
    case SQLITE_NOMEM:
        return ERR_NO_MEMORY;
    case SQLITE_CONSTRAINT:
        return ERR_CONFLICT;
    case SQLITE_TOOBIG:
        return ERR_TOO_LARGE;
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_READONLY:
        return ERR_FORBIDDEN;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
        return ERR_IO;
    default:
        return ERR_INTERNAL;
    }
}

static const char *remedy_of(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return ": another process holds it; end that one, or try again";
    case SQLITE_FULL:
        return ": make room on its disk and try again";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return ": move it away to begin anew, or read what is left of it with 'sqlite3 FILE "
               ".recover'";
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
        return ": file and folder must belong to the server's user";
    case SQLITE_IOERR:
        return ": look at its disk (dmesg)";
    default:
        return "";
    }
}

fallible store_err(sqlite3 *db, const char *path, int rc)
{
    int code = db ? sqlite3_extended_errcode(db) : rc;
    int errnum = db ? sqlite3_system_errno(db) : 0;
    const char *text = db ? sqlite3_errmsg(db) : sqlite3_errstr(rc);

    if ((code & 0xff) != (rc & 0xff)) /* what the connection remembers is of another call */
        code = rc, errnum = 0, text = sqlite3_errstr(rc);
    if ((code & 0xff) == SQLITE_IOERR && (errnum == ENOSPC || errnum == EDQUOT))
        code = SQLITE_FULL;
    bool sys = errnum && ((code & 0xff) == SQLITE_IOERR || (code & 0xff) == SQLITE_CANTOPEN);
    return err_new(code_of(code), "database '%s': %s%s%s%s", path, text, sys ? ": " : "",
                   sys ? strerrordesc_np(errnum) : "", remedy_of(code));
}

fallible store_exec(sqlite3 *db, const char *path, const char *sql)
{
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK ? NULL : store_err(db, path, rc);
}

/* Ours, a plain file, closed to others: its rows hold the keys of sessions. */
static fallible make_file(const char *path)
{
    struct stat st;
    own_fd fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

    if (fd < 0)
        return err_sys("open database '%s'", path);
    if (fstat(fd, &st) < 0)
        return err_sys("look at database '%s'", path);
    if (!S_ISREG(st.st_mode))
        return err_new(ERR_INVALID, "database '%s' is not a file", path);
    if (st.st_uid != geteuid())
        return err_new(ERR_FORBIDDEN,
                       "database '%s' belongs to user %u, and this is user %u: chown it", path,
                       (unsigned)st.st_uid, (unsigned)geteuid());
    if ((st.st_mode & 077) && fchmod(fd, 0600) < 0)
        return err_sys("close database '%s' to others", path);
    return NULL;
}

static fallible open_one(const char *path, sqlite3 **ret_db)
{
    sqlite3 *db = NULL;
    int rc = sqlite3_open_v2(path, &db,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                                 SQLITE_OPEN_NOFOLLOW,
                             NULL);
    struct err *e = rc == SQLITE_OK ? NULL : store_err(db, path, rc);

    if (!e) {
        sqlite3_busy_timeout(db, STORE_BUSY_MS);
        sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        e = store_exec(db, path,
                       "PRAGMA synchronous=FULL; PRAGMA cache_size=-1024; PRAGMA temp_store=MEMORY;"
                       "PRAGMA cell_size_check=ON; PRAGMA journal_size_limit=16777216;"
                       "PRAGMA wal_autocheckpoint=0");
    }
    if (e) {
        sqlite3_close(db);
        return e;
    }
    *ret_db = db;
    return NULL;
}

static fallible want_word(sqlite3 *db, const char *path, const char *sql, const char *word,
                          enum err_code code, const char *story)
{
    sqlite3_stmt *stmt = NULL;
    struct err *e = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    const char *got = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(stmt, 0) : NULL;
    if (rc != SQLITE_ROW)
        e = store_err(db, path, rc);
    else if (!got || strcmp(got, word) != 0)
        e = err_new(code, "database '%s': %s (%s)%s", path, story, got ? got : "nothing",
                    code == ERR_CORRUPT ? remedy_of(SQLITE_CORRUPT) : "");
    sqlite3_finalize(stmt);
    return e;
}

static fallible check_sound(sqlite3 *db, const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return err_sys("look at database '%s'", path);
    if (st.st_size > CHECK_BYTES)
        return NULL;
    return want_word(db, path, "PRAGMA quick_check(1)", "ok", ERR_CORRUPT, "it is damaged");
}

static int write_zeros(sqlite3_file *log, sqlite3_int64 size)
{
    static const char zeros[1u << 16];
    int rc = SQLITE_OK;

    for (sqlite3_int64 at = size; rc == SQLITE_OK && at < LOG_BYTES; at += (int)sizeof zeros)
        rc = log->pMethods->xWrite(log, zeros, sizeof zeros, at);
    return rc == SQLITE_OK ? log->pMethods->xSync(log, SQLITE_SYNC_NORMAL) : rc;
}

/* The head of the log is laid out beforehand: a sync of what replaces bytes that are there has no
 * size and no place of the file to note as well, and takes half as long. Zeros are the end of the
 * log to a reader. In a transaction, so that no other process writes meanwhile. */
static void lay_out_log(sqlite3 *db, const char *path)
{
    sqlite3_file *log = NULL;
    sqlite3_int64 size = 0;

    sqlite3_busy_timeout(db, 0);
    own(err) e = store_exec(db, path, "BEGIN IMMEDIATE");
    sqlite3_busy_timeout(db, STORE_BUSY_MS);
    if (e)
        return;
    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, (void *)&log) == SQLITE_OK &&
        log && log->pMethods && log->pMethods->xFileSize(log, &size) == SQLITE_OK &&
        size < LOG_BYTES && write_zeros(log, size) != SQLITE_OK)
        log->pMethods->xTruncate(log, size);    /* no room: then it grows as it is needed */
    err_free(store_exec(db, path, "ROLLBACK")); /* of nothing */
}

fallible store_open_files(struct store *s)
{
    size_t version;

    TRY(make_file(s->path));
    TRY(open_one(s->path, &s->write.db));
    TRY(store_schema_check(s->write.db, s->path, &version));
    TRY(want_word(s->write.db, s->path, "PRAGMA journal_mode=WAL", "wal", ERR_UNSUPPORTED,
                  "its file system cannot keep a write-ahead log"));
    TRY(check_sound(s->write.db, s->path));
    if (version >= STORE_AHEAD_FIRST && version <= STORE_AHEAD_LAST)
        TRY(store_ahead_check(s->write.db, s->path));
    TRY(store_schema_apply(s->write.db, s->path));
    lay_out_log(s->write.db, s->path);
    TRY(open_one(s->path, &s->read.db));
    sqlite3_busy_timeout(s->read.db, STORE_READ_BUSY_MS);
    return NULL;
}
