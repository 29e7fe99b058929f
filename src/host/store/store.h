// SPDX-License-Identifier: Apache-2.0
/* store.h — the host's own rows, in SQLite.
 *
 * One worker writes; what is asked for meanwhile goes into the next batch, one transaction (WAL,
 * synchronous=FULL), so a thousand waiting rows cost one sync. done is called on the loop when the
 * row is on disk. Reads happen at start and in rare commands; they see what was acknowledged. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct loop;
struct store;

/* Below the state directory; the folder belongs to the server's user, 0700. */
#define STORE_PATH         "server/croft.db"
#define STORE_QUEUE        4096        /* writes that may wait */
#define STORE_QUEUE_BYTES  (16u << 20) /* and their bytes */
#define STORE_BUSY_MS      5000        /* another process may hold the file this long, */
#define STORE_READ_BUSY_MS 1000        /* and a reader, who stops the loop, this long behind it */

enum store_type { STORE_NULL, STORE_INT, STORE_TEXT, STORE_BLOB };
struct store_value {
    enum store_type type;
    int64_t i;
    struct str text; /* of STORE_TEXT and STORE_BLOB */
};

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

/* e is the callee's; NULL: durable. ERR_BUSY: no room in the queue or on the disk, or another
 * process held the file; the same write may be tried again. ERR_CONFLICT: against a constraint. */
typedef void store_done(void *arg, struct err *e);

/* Makes the file when it is missing (0600) and brings its schema up to date. Refuses one that is
 * damaged, not ours or of a newer croft, with a remedy. */
fallible store_open(struct loop *loop, const char *path, struct store **ret_store);
/* What was asked for is written, and told, before it returns. NULL is fine. */
void store_close(struct store *s);
struct loop *store_loop(const struct store *s);

/* The part "store". */
struct host;
struct store *store_of(const struct host *h);

/* sql is one statement with ?1, ?2, …; it and the values are copied. Writes are done in the order
 * they were asked for; one that breaks a constraint fails alone. done, which may be NULL, is called
 * later from the loop, except that a store that is closing or has no memory says so at once. */
void store_write(struct store *s, const char *sql, const struct store_value *values, size_t count,
                 store_done *done, void *arg);
/* Blocks. row's values are borrowed until it returns; its error ends the reading. */
fallible store_read(struct store *s, const char *sql, const struct store_value *values,
                    size_t count,
                    fallible (*row)(void *arg, const struct store_value *values, size_t count),
                    void *arg);

/* Was the machine started anew since store_note_boot? Then no process of a row lives. A new store
 * says no. */
fallible store_boot_changed(struct store *s, bool *ret_changed);
void store_note_boot(struct store *s, store_done *done, void *arg);
