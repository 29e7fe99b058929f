// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "base/log.h"
#include "base/own.h"
#include "host/store/inner.h"
#include "test/store_kit.h"

#define LARGE (3u << 20) /* more than a log is laid out for */

/* A store that synced once as a whole, on a disk where it need not always do so. */
static void start(struct rows_kit *k)
{
    struct rows_wait w;
    char log[520];

    log_setup(2, LOG_OFF, LOG_TEXT);
    rows_init(k);
    rows_open(k);
    snprintf(log, sizeof log, "%s-wal", k->path);
    own_fd fd = -1, top = -1;
    if (!store_log_place(log, &fd, &top)) {
        rows_done(k);
        SKIP("not an ext4 without a journal");
    }
    rows_put(k, &w, "first", "1");
    rows_wait(k, &w);
}

static void put(struct rows_kit *k, const char *name, const char *value)
{
    struct rows_wait w;

    rows_put(k, &w, name, value);
    rows_wait(k, &w);
    CHECK(!w.failed);
}

TEST(a_row_that_fits_into_the_log_is_synced_without_its_inode)
{
    struct rows_kit k;

    start(&k);
    unsigned before = k.store->vfs.ranges;
    put(&k, "a", "1");
    put(&k, "b", "2");
    CHECK_INT(k.store->vfs.ranges, before + 2);
    rows_done(&k);
}

TEST(a_log_that_grows_is_synced_as_a_whole)
{
    struct rows_kit k;
    own_free char *large = malloc(LARGE + 1);

    memset(large, 'x', LARGE);
    large[LARGE] = '\0';
    start(&k);
    unsigned before = k.store->vfs.ranges;
    put(&k, "large", large);
    put(&k, "behind", "1"); /* which makes it grow once more */
    CHECK_INT(k.store->vfs.ranges, before);
    rows_done(&k);
}

TEST(a_log_that_somebody_cut_short_is_synced_as_a_whole)
{
    struct rows_kit k;
    sqlite3 *other;

    start(&k);
    unsigned before = k.store->vfs.ranges;
    CHECK_INT(sqlite3_open(k.path, &other), SQLITE_OK);
    CHECK_INT(sqlite3_exec(other, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL), SQLITE_OK);
    put(&k, "a", "1");
    CHECK_INT(k.store->vfs.ranges, before);
    sqlite3_close(other);
    rows_done(&k);
}

TEST(what_is_moved_into_the_file_was_synced_as_a_whole)
{
    struct rows_kit k;

    start(&k);
    unsigned before = k.store->vfs.ranges;
    put(&k, "a", "1");
    CHECK_INT(k.store->vfs.ranges, before + 1);
    k.store->vfs.whole = true; /* as while it is moved */
    put(&k, "b", "2");
    CHECK_INT(k.store->vfs.ranges, before + 1);
    rows_done(&k);
}
