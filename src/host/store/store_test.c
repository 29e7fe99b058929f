// SPDX-License-Identifier: Apache-2.0
#include "host/store/store.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/log.h"
#include "host/store/inner.h"
#include "test/store_kit.h"

#define ALL "SELECT name, value FROM things ORDER BY name"

STORE_TABLE(things) = {
    .name = "things",
    .columns = {{"name", STORE_TEXT, true},
                {"value", STORE_TEXT, false},
                {"number", STORE_INT, true},
                {"mark", STORE_BLOB, false}},
    .indexes = {{{"number"}, false}, {{"value", "number"}, false}, {{"mark"}, true}}};
const struct store_table *const rows_table = &store_tables_things;
#define THINGS rows_table

STORE_TABLE(numbers) = {.name = "numbers",
                        .columns = {{"seq", STORE_INT, true}, {"text", STORE_TEXT, false}}};

static void start(struct rows_kit *k, struct buf *got)
{
    log_setup(2, LOG_OFF, LOG_TEXT);
    buf_init(got, 1u << 20);
    rows_init(k);
    rows_open(k);
}

TEST(a_row_that_was_told_is_there_after_opening_again)
{
    struct rows_kit k;
    struct rows_wait w;
    own_done(buf) got;

    start(&k, &got);
    rows_put(&k, &w, "a", "1");
    CHECK_INT(w.calls, 0); /* never before the row is on disk */
    rows_wait(&k, &w);
    CHECK(!w.failed);
    CHECK_STR(rows_read(&k, ALL, &got), "a 1 ");
    rows_close(&k);
    rows_open(&k);
    CHECK_STR(rows_read(&k, ALL, &got), "a 1 ");
    rows_done(&k);
}

TEST(writes_are_done_in_the_order_they_were_asked_for)
{
    struct rows_kit k;
    struct rows_wait w[100];
    char name[16], value[16];
    own_done(buf) got;

    start(&k, &got);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "n%d", i % 3);
        snprintf(value, sizeof value, "%d", i);
        rows_change(&k, &w[i], name, value, STORE_ANY);
    }
    rows_wait(&k, &w[99]);
    for (int i = 0; i < 100; i++)
        CHECK(w[i].calls == 1 && !w[i].failed);
    CHECK_STR(rows_read(&k, ALL, &got), "n0 99 n1 97 n2 98 ");
    rows_done(&k);
}

TEST(one_that_breaks_a_constraint_fails_alone)
{
    struct rows_kit k;
    struct rows_wait w[4];
    own_done(buf) got;

    start(&k, &got);
    rows_put(&k, &w[0], "a", "1");
    rows_put(&k, &w[1], "a", "2");
    rows_put(&k, &w[2], "b", "3");
    rows_change(&k, &w[3], "c", "4", STORE_IF_THERE);
    rows_wait(&k, &w[3]);
    CHECK(!w[0].failed && !w[2].failed);
    CHECK(w[1].failed && w[1].code == ERR_CONFLICT);
    CHECK_HAS(w[1].text, "UNIQUE constraint failed: things.name");
    CHECK(w[3].failed && w[3].code == ERR_NOT_FOUND);
    CHECK_HAS(w[3].text, "table things: the row is gone");
    CHECK_STR(rows_read(&k, ALL, &got), "a 1 b 3 ");
    rows_done(&k);
}

TEST(closing_writes_and_tells_what_was_asked_for)
{
    struct rows_kit k;
    struct rows_wait w[3];
    own_done(buf) got;

    start(&k, &got);
    rows_put(&k, &w[0], "a", "1");
    CHECK_OK(loop_turn(k.loop, 0)); /* the thread has it now, or had it */
    rows_put(&k, &w[1], "b", "2");
    rows_put(&k, &w[2], "c", "3");
    store_close(k.store);
    for (int i = 0; i < 3; i++)
        CHECK(w[i].calls == 1 && !w[i].failed);
    rows_open(&k);
    CHECK_STR(rows_read(&k, ALL, &got), "a 1 b 2 c 3 ");
    rows_done(&k);
}

struct closer {
    struct rows_kit *k;
    unsigned calls;
};

static void close_it(void *arg, struct err *e)
{
    struct closer *c = arg;

    err_free(e);
    c->calls++;
    store_close(c->k->store);
    c->k->store = NULL;
}

TEST(who_is_told_may_close_the_store)
{
    struct rows_kit k;
    struct rows_wait w;
    own_done(buf) got;
    struct closer c = {.k = &k};
    const struct store_field field = {"value", store_text(STR("y"))};

    start(&k, &got);
    store_put(k.store, THINGS, store_text(STR("x")), &field, 1, close_it, &c);
    rows_put(&k, &w, "a", "1");
    rows_wait(&k, &w);
    CHECK(c.calls == 1 && !w.failed);
    rows_done(&k);
}

TEST(a_full_queue_refuses_and_forgets_nothing)
{
    struct rows_kit k;
    static struct rows_wait w[STORE_QUEUE + 10];
    char name[16];
    own_done(buf) got;

    start(&k, &got);
    for (unsigned i = 0; i < STORE_QUEUE + 10; i++) {
        snprintf(name, sizeof name, "n%u", i);
        rows_put(&k, &w[i], name, "x");
    }
    for (unsigned i = 0; i < STORE_QUEUE + 10; i++)
        rows_wait(&k, &w[i]);
    for (unsigned i = 0; i < STORE_QUEUE + 10; i++)
        CHECK_INT(w[i].failed, i >= STORE_QUEUE);
    CHECK_INT(w[STORE_QUEUE].code, ERR_BUSY);
    CHECK_HAS(w[STORE_QUEUE].text, "4096 writes wait already");
    CHECK_STR(rows_read(&k, "SELECT count(*) FROM things", &got), "4096 ");
    rows_done(&k);
}

TEST(bytes_that_wait_are_limited_too)
{
    struct rows_kit k;
    struct rows_wait w;
    own_done(buf) got;
    own_free char *big = malloc(STORE_QUEUE_BYTES);

    start(&k, &got);
    memset(big, 'x', STORE_QUEUE_BYTES - 1);
    big[STORE_QUEUE_BYTES - 1] = 0;
    rows_put(&k, &w, "a", big);
    rows_wait(&k, &w);
    CHECK(w.failed && w.code == ERR_BUSY);
    rows_done(&k);
}

TEST(a_loop_without_threads_waits_for_the_disk_itself)
{
    struct rows_kit k;
    struct rows_wait w[2];
    own_done(buf) got;

    start(&k, &got);
    loop_forbid_threads(k.loop);
    rows_put(&k, &w[0], "a", "1");
    rows_put(&k, &w[1], "b", "2");
    CHECK_INT(w[0].calls, 0);
    rows_wait(&k, &w[1]);
    CHECK_STR(rows_read(&k, ALL, &got), "a 1 b 2 ");
    rows_done(&k);
}

TEST(the_log_does_not_grow_without_end)
{
    struct rows_kit k;
    struct rows_wait w;
    own_done(buf) got;
    struct stat st;
    char wal[600];
    own_free char *value = malloc(40000);

    start(&k, &got);
    memset(value, 'x', 39999);
    value[39999] = 0;
    for (int i = 0; i < 1000; i++) { /* 40 MB through it */
        rows_change(&k, &w, "a", value, STORE_ANY);
        rows_wait(&k, &w);
        CHECK_STR(w.text, "");
    }
    snprintf(wal, sizeof wal, "%s-wal", k.path);
    CHECK(stat(wal, &st) == 0);
    CHECK(st.st_size < 8 << 20);
    rows_done(&k);
}

TEST(the_log_has_its_bytes_before_they_are_needed)
{
    struct rows_kit k;
    struct rows_wait w;
    own_done(buf) got;
    struct stat before, after;
    char wal[600], name[16];

    start(&k, &got);
    snprintf(wal, sizeof wal, "%s-wal", k.path);
    CHECK(stat(wal, &before) == 0);
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "%d", i);
        rows_put(&k, &w, name, "1");
        rows_wait(&k, &w);
        CHECK(!w.failed);
    }
    CHECK(stat(wal, &after) == 0);
    CHECK_INT(before.st_size, after.st_size);
    CHECK(before.st_size > 20 * 4096);
    rows_done(&k);
}

/* By SQLite itself, as another program would. */
static void sql(const struct rows_kit *k, const char *text)
{
    sqlite3 *db;

    CHECK_INT(sqlite3_open(k->path, &db), SQLITE_OK);
    CHECK_INT(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    CHECK_INT(sqlite3_close(db), SQLITE_OK);
}

struct boot_answer {
    unsigned calls;
    bool changed;
};

static void on_boot(void *arg, bool changed, struct err *e)
{
    struct boot_answer *b = arg;

    CHECK_OK(e);
    b->calls++;
    b->changed = changed;
}

static bool is_another_boot(struct rows_kit *k)
{
    struct boot_answer b = {0};

    store_boot_changed(k->store, on_boot, &b);
    while (!b.calls)
        CHECK_OK(loop_turn(k->loop, 1000));
    return b.changed;
}

TEST(a_machine_that_was_started_anew_is_noticed)
{
    struct rows_kit k;
    struct rows_wait w = {0};
    own_done(buf) got;

    start(&k, &got);
    CHECK(!is_another_boot(&k));
    store_note_boot(k.store, rows_on_done, &w);
    rows_wait(&k, &w);
    CHECK(!is_another_boot(&k));
    sql(&k, "UPDATE meta SET value='another' WHERE name='boot'");
    CHECK(is_another_boot(&k));
    rows_done(&k);
}

static void put_many(struct rows_kit *k, struct rows_wait *w, unsigned n, char of)
{
    char name[16];

    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%c%u", of, i);
        rows_put(k, &w[i], name, "x");
    }
}

TEST(behind_a_large_batch_the_next_one_gathers_and_is_written_all_the_same)
{
    struct rows_kit k;
    struct rows_wait crowd[20], w;
    own_done(buf) got;

    start(&k, &got);
    put_many(&k, crowd, 20, 'c');
    rows_wait(&k, &crowd[19]);
    CHECK(k.store->gathering.loop);
    rows_put(&k, &w, "a", "1");
    CHECK(!k.store->writer.working);
    rows_wait(&k, &w);
    CHECK(!w.failed);
    CHECK_STR(rows_read(&k, "SELECT count(*) FROM things", &got), "21 ");
    put_many(&k, crowd, 20, 'd');
    rows_wait(&k, &crowd[19]);
    rows_put(&k, &w, "b", "1");
    rows_close(&k); /* while it gathers */
    CHECK(w.calls == 1 && !w.failed);
    rows_open(&k);
    CHECK_STR(rows_read(&k, "SELECT count(*) FROM things", &got), "42 ");
    rows_done(&k);
}

/* --- what an older croft left --- */

#define OLD_RUNTIMES                                                                               \
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;"        \
    "CREATE TABLE runtimes (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, key_name TEXT NOT"      \
    " NULL, status TEXT NOT NULL, status_detail TEXT, image TEXT NOT NULL, command TEXT,"          \
    " working_dir TEXT, environment TEXT, session_key TEXT NOT NULL, resource_factor INTEGER NOT"  \
    " NULL DEFAULT 1, run_as_user INTEGER, run_as_group INTEGER, fs_group INTEGER, sandbox_id"     \
    " TEXT, pool TEXT, keep INTEGER NOT NULL DEFAULT 0, port INTEGER, ports TEXT, restart_count"   \
    " INTEGER NOT NULL DEFAULT 0, restart_reasons TEXT, cpu_millicores INTEGER, memory_mb"         \
    " INTEGER, storage_mb INTEGER, created_ms INTEGER NOT NULL, changed_ms INTEGER NOT NULL,"      \
    " active_ms INTEGER, stopped_ms INTEGER, running_ms INTEGER NOT NULL DEFAULT 0, paused_ms"     \
    " INTEGER NOT NULL DEFAULT 0, timeline TEXT, extra TEXT, snapshot TEXT, wants TEXT,"           \
    " inner_key TEXT, image_config TEXT) STRICT, WITHOUT ROWID;"                                   \
    "INSERT INTO runtimes (id, session_id, key_name, status, image, session_key, port, "           \
    "created_ms,"                                                                                  \
    " changed_ms, timeline, wants, inner_key, restart_count)"                                      \
    " VALUES ('aa', 's2', 'k', 'paused', 'host', 'key2', 7, 200, 201, '[1]', '{}', 'in', 3),"      \
    " ('zz', 's1', 'k', 'running', 'host', 'key1', 8, 100, 101, NULL, NULL, NULL, 0);"             \
    "PRAGMA user_version=7; PRAGMA application_id=0x63726674"

TEST(runtimes_of_an_older_croft_are_there_in_the_order_of_their_starts)
{
    struct rows_kit k;
    own_done(buf) got;

    log_setup(2, LOG_OFF, LOG_TEXT);
    buf_init(&got, 1u << 20);
    rows_init(&k);
    sql(&k, OLD_RUNTIMES);
    rows_open(&k);
    CHECK_STR(rows_read(&k,
                        "SELECT seq, id, session_id, status, session_key, port, created_ms, wants,"
                        " inner_key, restart_count, timeline FROM runtimes ORDER BY seq",
                        &got),
              "1 zz s1 running key1 8 100 null null 0 null "
              "2 aa s2 paused key2 7 200 {} in 3 [1] ");
    rows_done(&k);
}

/* A record as schemas 9 and 10 left it in a file beside the database. */
static void put_ahead(const struct rows_kit *k, uint64_t seq)
{
    char path[600], block[3 * 4096] = "";

    memcpy(block + 4096, "croftgo1us", 10);
    memcpy(block + 4096 + 48, &seq, sizeof seq);
    snprintf(path, sizeof path, "%s-ahead", k->path);
    own_fd fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK_INT(write(fd, block, sizeof block), sizeof block);
}

TEST(rows_that_an_older_croft_left_beside_its_database_are_not_lost_silently)
{
    struct rows_kit k;
    struct rows_wait w;
    own_done(buf) got;

    start(&k, &got);
    rows_put(&k, &w, "a", "1");
    rows_wait(&k, &w);
    rows_close(&k);
    sql(&k, "CREATE TABLE ahead (id TEXT NOT NULL, seq INTEGER NOT NULL) STRICT;"
            "INSERT INTO ahead VALUES ('us', 7); PRAGMA user_version=10");
    put_ahead(&k, 8);
    CHECK_ERR(store_open(k.loop, k.path, &k.store), ERR_UNSUPPORTED,
              "start and stop the croft that wrote it once");
    put_ahead(&k, 7); /* which the database has */
    rows_open(&k);
    CHECK_STR(rows_read(&k, ALL, &got), "a 1 ");
    snprintf(k.path + strlen(k.path), 10, "-ahead");
    CHECK(access(k.path, F_OK) < 0);
    rows_done(&k);
}
