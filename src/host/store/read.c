// SPDX-License-Identifier: Apache-2.0
/* read.c — rows read on the loop, by a connection of their own: writers do not hold readers up. */
#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "host/store/inner.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

static struct store_value read_column(sqlite3_stmt *stmt, int at)
{
    struct store_value v = {.type = STORE_NULL};

    switch (sqlite3_column_type(stmt, at)) {
    case SQLITE_INTEGER:
        return store_int(sqlite3_column_int64(stmt, at));
    case SQLITE_TEXT:
        v.type = STORE_TEXT;
        break;
    case SQLITE_BLOB:
        v.type = STORE_BLOB;
        break;
    default:
        return v;
    }
    const char *p = v.type == STORE_TEXT ? (const char *)sqlite3_column_text(stmt, at)
                                         : sqlite3_column_blob(stmt, at);
    v.text = str_n(p ? p : "", (size_t)sqlite3_column_bytes(stmt, at));
    return v;
}

static fallible give_row(sqlite3_stmt *stmt, struct store_value *values,
                         fallible (*row)(void *arg, const struct store_value *values, size_t count),
                         void *arg)
{
    int count = sqlite3_column_count(stmt);

    for (int i = 0; i < count; i++)
        values[i] = read_column(stmt, i);
    return row(arg, values, (size_t)count);
}

fallible store_read(struct store *s, const char *sql, const struct store_value *values,
                    size_t count,
                    fallible (*row)(void *arg, const struct store_value *values, size_t count),
                    void *arg)
{
    sqlite3_stmt *stmt = NULL;
    struct err *e = NULL;
    own_free struct store_value *got = NULL;

    int rc = sqlite3_prepare_v2(s->reader, sql, -1, &stmt, NULL);
    if (rc == SQLITE_OK)
        rc = store_bind(stmt, values, count);
    if (rc == SQLITE_OK) {
        got = mem_try((size_t)(sqlite3_column_count(stmt) + 1) * sizeof *got);
        rc = got ? SQLITE_OK : SQLITE_NOMEM;
    }
    if (rc == SQLITE_OK)
        while ((rc = sqlite3_step(stmt)) == SQLITE_ROW && !e)
            e = give_row(stmt, got, row, arg);
    if (!e && rc != SQLITE_DONE)
        e = store_err(s->reader, s->path, rc);
    sqlite3_finalize(stmt);
    return e;
}

/* --- which start of the machine the rows are of --- */

static fallible read_boot(struct buf *into)
{
    buf_init(into, 128);
    TRY(fd_read_file(BOOT_ID, into));
    while (into->len && into->p[into->len - 1] == '\n')
        into->len--;
    return NULL;
}

struct boot {
    struct str now;
    bool changed;
};

static fallible on_boot(void *arg, const struct store_value *values, size_t count)
{
    struct boot *b = arg;

    (void)count;
    b->changed = !str_eq(values[0].text, b->now);
    return NULL;
}

fallible store_boot_changed(struct store *s, bool *ret_changed)
{
    own_done(buf) now = {0};
    struct boot b = {.changed = false};

    TRY(read_boot(&now));
    b.now = buf_str(&now);
    TRY(store_read(s, "SELECT value FROM meta WHERE name='boot'", NULL, 0, on_boot, &b));
    *ret_changed = b.changed;
    return NULL;
}

void store_note_boot(struct store *s, store_done *done, void *arg)
{
    own_done(buf) now = {0};
    struct err *e = read_boot(&now);

    if (!e) {
        struct store_value value = store_text(buf_str(&now));
        store_write(s, "INSERT OR REPLACE INTO meta (name, value) VALUES ('boot', ?1)", &value, 1,
                    done, arg);
        return;
    }
    if (done)
        done(arg, e);
    else
        err_free(e);
}
