// SPDX-License-Identifier: Apache-2.0
/* schema.c — tables as their modules declare them, and what changed in ways that adding cannot do.
 *
 * A fresh database is made from the declarations alone. An older one goes through the numbered
 * steps it has not had, then gets what is missing. A step that was landed is never edited. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/own.h"
#include "host/store/inner.h"

ROWS_OF(store_tables, struct store_table)

#define APPLICATION 0x63726674 /* "crft" in the file's header */

static const char *const steps[] = {
    /* 1 */
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;"
    "CREATE TABLE runtimes ("
    " id TEXT PRIMARY KEY,"
    " session_id TEXT NOT NULL,"
    " key_name TEXT NOT NULL,"
    " status TEXT NOT NULL,"
    " status_detail TEXT,"
    " image TEXT NOT NULL,"
    " command TEXT," /* JSON: array, string or null, as asked */
    " working_dir TEXT,"
    " environment TEXT,"          /* JSON object */
    " session_key TEXT NOT NULL," /* clients read it back, so it cannot be hashed */
    " resource_factor INTEGER NOT NULL DEFAULT 1,"
    " run_as_user INTEGER,"
    " run_as_group INTEGER,"
    " fs_group INTEGER,"
    " sandbox_id TEXT," /* by which the launcher knows it; NULL: as id */
    " pool TEXT,"       /* it was claimed from; NULL: cold */
    " keep INTEGER NOT NULL DEFAULT 0,"
    " port INTEGER," /* of its loopback listener */
    " ports TEXT,"   /* JSON object: inner port to listener */
    " restart_count INTEGER NOT NULL DEFAULT 0,"
    " restart_reasons TEXT," /* JSON array */
    " cpu_millicores INTEGER,"
    " memory_mb INTEGER,"
    " storage_mb INTEGER,"
    " created_ms INTEGER NOT NULL,"
    " changed_ms INTEGER NOT NULL,"
    " active_ms INTEGER," /* last call, connection or process */
    " stopped_ms INTEGER,"
    " running_ms INTEGER NOT NULL DEFAULT 0," /* spent so */
    " paused_ms INTEGER NOT NULL DEFAULT 0,"
    " timeline TEXT," /* JSON: phases of its start */
    " extra TEXT"     /* JSON object */
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX runtimes_session ON runtimes (key_name, session_id);"
    "CREATE TABLE api_keys ("
    " name TEXT PRIMARY KEY,"
    " hash BLOB NOT NULL UNIQUE,"
    " scopes INTEGER NOT NULL,"
    " most_runtimes INTEGER NOT NULL DEFAULT 0,"
    " starts_per_minute INTEGER NOT NULL DEFAULT 0,"
    " made_ms INTEGER NOT NULL,"
    " revoked_ms INTEGER NOT NULL DEFAULT 0"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE pools ("
    " name TEXT PRIMARY KEY,"
    " image TEXT NOT NULL,"
    " target INTEGER NOT NULL,"
    " ceiling INTEGER NOT NULL,"
    " extra TEXT," /* JSON object: command, environment, working_dir … */
    " changed_ms INTEGER NOT NULL"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE builds ("
    " id TEXT PRIMARY KEY,"
    " key_name TEXT NOT NULL,"
    " status TEXT NOT NULL,"
    " image TEXT NOT NULL,"
    " tags TEXT," /* JSON array */
    " error TEXT,"
    " created_ms INTEGER NOT NULL,"
    " changed_ms INTEGER NOT NULL"
    ") STRICT, WITHOUT ROWID;",
    /* 2 */
    "ALTER TABLE runtimes ADD COLUMN snapshot TEXT;" /* it was started from; NULL: none */
    "CREATE TABLE snapshots ("
    " id TEXT PRIMARY KEY," /* by which the backend knows it */
    " key_name TEXT NOT NULL,"
    " name TEXT NOT NULL,"
    " sandbox TEXT NOT NULL,"
    " image TEXT NOT NULL,"
    " created_ms INTEGER NOT NULL,"
    " UNIQUE (key_name, name)"
    ") STRICT, WITHOUT ROWID;",
    /* 3 */
    "ALTER TABLE runtimes ADD COLUMN wants TEXT;", /* JSON object: limits, hostname, mounts */
    /* 4 */
    "ALTER TABLE runtimes ADD COLUMN inner_key TEXT;", /* NULL: session_key is */
    /* 5: sessions are looked up in memory, and it was a page more to write for each start */
    "DROP INDEX runtimes_session;",
    /* 6: Env, WorkingDir, User of the image as it was at the start, a JSON object; NULL: none */
    "ALTER TABLE runtimes ADD COLUMN image_config TEXT;",
    /* 7: the key whose runtimes it sees; NULL: it sees its own */
    "ALTER TABLE api_keys ADD COLUMN tenant TEXT;",
    /* 8: rows lie in the order of their starts, not of their random ids. A new one then writes one
     * page instead of the four to six of a tree that is balanced anew. Unread columns are
     * dropped. */
    "CREATE TABLE started ("
    " seq INTEGER PRIMARY KEY," /* the manager's number of it, by which it is changed */
    " id TEXT NOT NULL,"
    " session_id TEXT NOT NULL,"
    " key_name TEXT NOT NULL,"
    " status TEXT NOT NULL,"
    " status_detail TEXT,"
    " image TEXT NOT NULL,"
    " command TEXT," /* JSON: array, string or null, as asked */
    " working_dir TEXT,"
    " environment TEXT,"          /* JSON object */
    " session_key TEXT NOT NULL," /* clients read it back, so it cannot be hashed */
    " resource_factor INTEGER NOT NULL DEFAULT 1,"
    " run_as_user INTEGER,"
    " run_as_group INTEGER,"
    " fs_group INTEGER,"
    " pool TEXT," /* it was claimed from; NULL: cold */
    " keep INTEGER NOT NULL DEFAULT 0,"
    " port INTEGER," /* of its loopback listener */
    " created_ms INTEGER NOT NULL,"
    " changed_ms INTEGER NOT NULL,"
    " snapshot TEXT,"     /* it was started from; NULL: none */
    " wants TEXT,"        /* JSON object: limits, hostname, mounts */
    " image_config TEXT," /* as of step 6 */
    " inner_key TEXT,"    /* NULL: session_key is */
    " restart_count INTEGER NOT NULL DEFAULT 0,"
    " restart_reasons TEXT," /* JSON array */
    " stopped_ms INTEGER,"
    " timeline TEXT" /* JSON: phases of its start */
    ") STRICT;"
    "INSERT INTO started (id, session_id, key_name, status, status_detail, image, command,"
    " working_dir, environment, session_key, resource_factor, run_as_user, run_as_group, fs_group,"
    " pool, keep, port, created_ms, changed_ms, snapshot, wants, image_config, inner_key,"
    " restart_count, restart_reasons, stopped_ms, timeline)"
    " SELECT id, session_id, key_name, status, status_detail, image, command, working_dir,"
    " environment, session_key, resource_factor, run_as_user, run_as_group, fs_group, pool, keep,"
    " port, created_ms, changed_ms, snapshot, wants, image_config, inner_key, restart_count,"
    " restart_reasons, stopped_ms, timeline FROM runtimes ORDER BY created_ms, id;"
    "DROP TABLE runtimes;"
    "ALTER TABLE started RENAME TO runtimes;",
    /* 9: a second file had rows that were not in the database yet; this says how far it came */
    "CREATE TABLE ahead (id TEXT NOT NULL, seq INTEGER NOT NULL) STRICT;"
    "INSERT INTO ahead VALUES (lower(hex(randomblob(16))), 0);",
    /* 10: those before session_key that open as long as it was not used, with spaces between */
    "ALTER TABLE runtimes ADD COLUMN old_keys TEXT;",
    /* 11: that file is gone */
    "DROP TABLE ahead;",
};

static fallible get_int(sqlite3 *db, const char *path, const char *sql, int64_t *ret_value)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    struct err *e = rc == SQLITE_ROW ? NULL : store_err(db, path, rc);
    if (!e)
        *ret_value = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return e;
}

fallible store_schema_check(sqlite3 *db, const char *path, size_t *ret_version)
{
    int64_t version, application, tables;

    TRY(get_int(db, path, "PRAGMA user_version", &version));
    TRY(get_int(db, path, "PRAGMA application_id", &application));
    TRY(get_int(db, path, "SELECT count(*) FROM sqlite_master", &tables));
    if (application != APPLICATION && (application || version || tables))
        return err_new(ERR_INVALID,
                       "database '%s' is another program's: move it away, or name another --state",
                       path);
    if (version < 0 || version > (int64_t)ARRAY_LEN(steps))
        return err_new(
            ERR_UNSUPPORTED,
            "database '%s' has schema %lld and this croft knows up to %zu: run the newer "
            "croft that made it, or name another --state",
            path, (long long)version, ARRAY_LEN(steps));
    *ret_version = (size_t)version;
    return NULL;
}

/* --- what is declared --- */

static void put_column(struct buf *sql, const struct store_column *c, bool key, bool created)
{
    static const char *const types[] = {"", "INTEGER", "TEXT", "BLOB"};

    buf_addf(sql, "%s %s", c->name, types[c->type]);
    if (key)
        buf_add_cstr(sql, " PRIMARY KEY");
    else if (c->required && c->type == STORE_INT)
        buf_add_cstr(sql, " NOT NULL DEFAULT 0");
    else if (c->required && created)
        buf_add_cstr(sql, " NOT NULL");
}

static void put_table(struct buf *sql, const struct store_table *t)
{
    buf_addf(sql, "CREATE TABLE %s (", t->name);
    for (size_t i = 0; i < store_column_count(t); i++) {
        if (i)
            buf_add_char(sql, ',');
        put_column(sql, &t->columns[i], i == 0, true);
    }
    buf_addf(sql, ") STRICT%s;", t->columns[0].type == STORE_INT ? "" : ", WITHOUT ROWID");
}

static fallible put_missing(struct buf *sql, sqlite3 *db, const char *path,
                            const struct store_table *t)
{
    char ask[200];
    int64_t there;

    for (size_t i = 0; i < store_column_count(t); i++) {
        snprintf(ask, sizeof ask, "SELECT count(*) FROM pragma_table_info('%s') WHERE name='%s'",
                 t->name, t->columns[i].name);
        TRY(get_int(db, path, ask, &there));
        if (there)
            continue;
        buf_addf(sql, "ALTER TABLE %s ADD COLUMN ", t->name);
        put_column(sql, &t->columns[i], false, false);
        buf_add_char(sql, ';');
    }
    return NULL;
}

static void put_indexes(struct buf *sql, const struct store_table *t)
{
    for (size_t i = 0; i < ARRAY_LEN(t->indexes) && t->indexes[i].columns[0]; i++) {
        const struct store_index *x = &t->indexes[i];
        const char *a = x->columns[0], *b = x->columns[1];
        buf_addf(sql, "CREATE %sINDEX IF NOT EXISTS %s_by_%s%s%s ON %s (%s%s%s);",
                 x->unique ? "UNIQUE " : "", t->name, a, b ? "_" : "", b ? b : "", t->name, a,
                 b ? "," : "", b ? b : "");
    }
}

static fallible table_apply(sqlite3 *db, const char *path, const struct store_table *t)
{
    own_done(buf) sql;
    char ask[200];
    int64_t there;

    buf_init(&sql, 64u << 10);
    snprintf(ask, sizeof ask, "SELECT count(*) FROM pragma_table_info('%s')", t->name);
    TRY(get_int(db, path, ask, &there));
    if (there)
        TRY(put_missing(&sql, db, path, t));
    else
        put_table(&sql, t);
    put_indexes(&sql, t);
    TRY(buf_check(&sql));
    return store_exec(db, path, buf_cstr(&sql));
}

static fallible schema_apply(sqlite3 *db, const char *path)
{
    size_t version;
    char sql[64];

    TRY(store_schema_check(db, path, &version));
    for (size_t at = version; version && at < ARRAY_LEN(steps); at++)
        TRY_WRAP(store_exec(db, path, steps[at]), "schema step %zu", at + 1);
    for (size_t i = 0; i < ROWS_LEN(store_tables); i++)
        TRY_WRAP(table_apply(db, path, ROWS_AT(store_tables, i)), "table %s",
                 ROWS_AT(store_tables, i)->name);
    if (version == ARRAY_LEN(steps))
        return NULL;
    snprintf(sql, sizeof sql, "PRAGMA user_version=%zu", ARRAY_LEN(steps));
    TRY(store_exec(db, path, sql));
    snprintf(sql, sizeof sql, "PRAGMA application_id=%d", APPLICATION);
    return store_exec(db, path, sql);
}

fallible store_schema_apply(sqlite3 *db, const char *path)
{
    TRY(store_exec(db, path, "BEGIN IMMEDIATE"));
    struct err *e = schema_apply(db, path);
    if (!e)
        e = store_exec(db, path, "COMMIT");
    if (e && !sqlite3_get_autocommit(db))
        err_free(store_exec(db, path, "ROLLBACK")); /* the first error is the story */
    return e;
}

/* --- what schemas 9 and 10 kept beside the database --- */

#define AHEAD_BLOCK 4096
#define AHEAD_MAGIC "croftgo1"

struct ahead_head { /* of a record; each begins a block */
    char magic[8];
    char id[40]; /* of its database */
    uint64_t seq;
};

static fallible get_ahead_id(sqlite3 *db, const char *path, char id[40])
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, "SELECT id FROM ahead", -1, &stmt, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    struct err *e = rc == SQLITE_ROW ? NULL : store_err(db, path, rc);
    if (!e)
        snprintf(id, 40, "%s", (const char *)sqlite3_column_text(stmt, 0));
    sqlite3_finalize(stmt);
    return e;
}

static bool has_newer_record(struct str file, const char id[40], uint64_t seq)
{
    struct ahead_head head;

    for (size_t at = 0; at + sizeof head <= file.len; at += AHEAD_BLOCK) {
        memcpy(&head, file.p + at, sizeof head);
        if (!memcmp(head.magic, AHEAD_MAGIC, sizeof head.magic) &&
            !strncmp(head.id, id, sizeof head.id) && head.seq > seq)
            return true;
    }
    return false;
}

fallible store_ahead_check(sqlite3 *db, const char *path)
{
    char id[40] = "", name[4096];
    own_done(buf) file;
    int64_t seq;

    buf_init(&file, 1u << 20);
    snprintf(name, sizeof name, "%s-ahead", path);
    own(err) none = fd_read_file(name, &file);
    if (none && err_code(none) == ERR_NOT_FOUND)
        return NULL;
    if (none)
        return err_copy(none);
    TRY(get_ahead_id(db, path, id));
    TRY(get_int(db, path, "SELECT seq FROM ahead", &seq));
    if (has_newer_record(buf_str(&file), id, (uint64_t)seq))
        return err_new(
            ERR_UNSUPPORTED,
            "database '%s': rows are only in '%s', which this croft does not read: start "
            "and stop the croft that wrote it once, then try again",
            path, name);
    unlink(name);
    return NULL;
}
