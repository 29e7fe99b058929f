// SPDX-License-Identifier: Apache-2.0
/* store.h — the host's own rows: tables, reads and durable changes, in SQLite.
 *
 * One worker writes; what is asked for meanwhile goes into the next batch, one transaction (WAL,
 * synchronous=FULL), so a thousand waiting rows cost one sync. Another one reads; it sees every
 * change that was acknowledged. All answers come by callbacks on the loop. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/rows.h"
#include "base/str.h"

struct loop;
struct store;

/* Below the state directory; the folder belongs to the server's user, 0700. */
#define STORE_PATH         "server/croft.db"
#define STORE_QUEUE        4096        /* changes that may wait */
#define STORE_QUEUE_BYTES  (16u << 20) /* and their bytes */
#define STORE_BUSY_MS      5000        /* another process may hold the file this long, */
#define STORE_READ_BUSY_MS 1000        /* and a reader waits this long behind it */
#define STORE_COLUMNS      40          /* of one table, at most */

/* --- values --- */

enum store_type { STORE_NULL, STORE_INT, STORE_TEXT, STORE_BLOB };
struct store_value {
    enum store_type type;
    int64_t i;
    struct str text; /* of STORE_TEXT and STORE_BLOB */
};

static inline struct store_value store_null(void)
{
    return (struct store_value){.type = STORE_NULL};
}
static inline struct store_value store_int(int64_t i)
{
    return (struct store_value){.type = STORE_INT, .i = i};
}
static inline struct store_value store_text(struct str s) /* .p NULL is NULL */
{
    return (struct store_value){.type = s.p ? STORE_TEXT : STORE_NULL, .text = s};
}
static inline struct store_value store_blob(struct str s)
{
    return (struct store_value){.type = s.p ? STORE_BLOB : STORE_NULL, .text = s};
}

/* --- tables --- */

struct store_column {
    const char *name;
    enum store_type type;
    bool required; /* never NULL; an integer that was not given is 0 */
};

/* By one or two columns, and within the same values by the table's key. */
struct store_index {
    const char *columns[2];
    bool unique;
};

/* A module's own table, declared beside the code that uses it:
 *
 *   STORE_TABLE(things) = {.name = "things", .columns = {{"id", STORE_TEXT, true}, …}};
 *
 * store_open() makes what is missing in the file: tables, columns, indexes. A column that was once
 * there is never renamed and never gets another type; one that is added later is not a required
 * text. The first column is the key; rows of an integer key lie in its order. */
struct store_table {
    const char *name;
    struct store_column columns[STORE_COLUMNS];
    struct store_index indexes[4];
};
#define STORE_TABLE(id) ROW(store_tables, struct store_table, id)

/* --- its life --- */

/* Makes the file when it is missing (0600) and brings its schema up to date. Refuses one that is
 * damaged, not ours or of a newer croft, with a remedy. */
fallible store_open(struct loop *loop, const char *path, struct store **ret_store);
/* Changes that were asked for are written, and told, before it returns. Reads end with ERR_CLOSED.
 * NULL is fine. */
void store_close(struct store *s);
struct loop *store_loop(const struct store *s);

/* The part "store". */
struct host;
struct store *store_of(const struct host *h);

/* --- changes --- */

/* e is the callee's; NULL: durable, or for a read: all rows were given. ERR_CONFLICT: it breaks a
 * unique key, or the row is not as expected. ERR_NOT_FOUND: no such row.
 *
 * ERR_BUSY: no room in the queue or on the disk, or another process held the file; the same change
 * may be tried again. */
typedef void store_done(void *arg, struct err *e);

struct store_field {
    const char *column; /* a constant */
    struct store_value value;
};

enum store_when {
    STORE_ANY,      /* a new row, or the given fields of one that is there */
    STORE_IF_NEW,   /* ERR_CONFLICT if the row is there */
    STORE_IF_THERE, /* ERR_NOT_FOUND if it is not; without done that is no error */
};

struct store_change {
    const struct store_table *table;
    struct store_value key;
    const struct store_field *fields; /* NULL: the row is deleted, if it is there */
    size_t count;
    enum store_when when;
    struct store_field expect; /* ERR_CONFLICT unless the row has this; column NULL: whatever */
};

/* Several changes that all happen or none; copied. They are done in the order they were asked for,
 * and one that fails, fails alone. done, which may be NULL, is called later from the loop, except
 * that a store that is closed or has no memory says so at once. */
void store_change(struct store *s, const struct store_change *changes, size_t count,
                  store_done *done, void *arg);

static inline void store_put(struct store *s, const struct store_table *table,
                             struct store_value key, const struct store_field *fields, size_t count,
                             store_done *done, void *arg)
{
    const struct store_change c = {.table = table, .key = key, .fields = fields, .count = count};
    store_change(s, &c, 1, done, arg);
}
static inline void store_update(struct store *s, const struct store_table *table,
                                struct store_value key, const struct store_field *fields,
                                size_t count, store_done *done, void *arg)
{
    const struct store_change c = {
        .table = table, .key = key, .fields = fields, .count = count, .when = STORE_IF_THERE};
    store_change(s, &c, 1, done, arg);
}
static inline void store_delete(struct store *s, const struct store_table *table,
                                struct store_value key, store_done *done, void *arg)
{
    const struct store_change c = {.table = table, .key = key};
    store_change(s, &c, 1, done, arg);
}

/* --- reads --- */

/* values are in the order of the table's columns, and lent for the call; an error ends the reading.
 */
typedef fallible store_row(void *arg, const struct store_value *values);

/* ERR_NOT_FOUND if there is no such row. */
void store_get(struct store *s, const struct store_table *table, struct store_value key,
               store_row *row, store_done *done, void *arg);

struct store_query {
    const struct store_table *table;
    const struct store_index *index; /* one of the table's; NULL: by key */
    const struct store_value *equal; /* the index's first column is this; NULL: whatever */
    /* Behind the row that has these, which need not be there; from is the index's last column. The
     * next page begins behind the last row of the one before. Both NULL: from the first row. */
    const struct store_value *from, *key;
    size_t limit; /* 0: all rows, read in pages while others write */
    bool backwards;
};
/* A page costs its own length, wherever it begins. */
void store_find(struct store *s, const struct store_query *q, store_row *row, store_done *done,
                void *arg);

static inline void store_each(struct store *s, const struct store_table *table, store_row *row,
                              store_done *done, void *arg)
{
    const struct store_query q = {.table = table};
    store_find(s, &q, row, done, arg);
}

/* Was the machine started anew since store_note_boot? Then no process of a row lives. A new store
 * says no. */
void store_boot_changed(struct store *s, void (*done)(void *arg, bool changed, struct err *e),
                        void *arg);
void store_note_boot(struct store *s, store_done *done, void *arg);
