// SPDX-License-Identifier: Apache-2.0
/* What one who waits alone asked for, and every end that can come before SQLite has it. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/log.h"
#include "host/store/inner.h"
#include "test/store_kit.h"

#define NEW    "SELECT name FROM meta WHERE name NOT LIKE 'q%' ORDER BY name"
#define INSERT "INSERT INTO meta (name, value) VALUES (?1, ?2)"

struct ticking { /* each look at it is so much later than the one before */
    struct clock clock;
    uint64_t step_ns;
};

static uint64_t tick(const struct clock *c)
{
    static uint64_t now;

    return __atomic_add_fetch(&now, container_of(c, const struct ticking, clock)->step_ns,
                              __ATOMIC_RELAXED); /* the worker looks at it, too */
}

static struct ticking ticking_of(uint64_t step_us)
{
    return (struct ticking){{.mono_ns = tick}, step_us * 1000};
}

/* A store whose disk was quick so often. */
static void begin_quick(struct rows_kit *k, struct ticking *clock, int syncs)
{
    struct rows_wait w;
    char name[16];

    rows_open(k);
    if (k->store->ahead.fd < 0) {
        rows_done(k);
        SKIP("no direct writes on this disk");
    }
    rows_put(k, &w, "q", "1"); /* the log's head is synced with it */
    rows_wait(k, &w);
    k->store->vfs.clock = &clock->clock;
    k->store->quick = 0;
    for (int i = 0; i < syncs; i++) {
        snprintf(name, sizeof name, "q%d", i);
        rows_put(k, &w, name, "1");
        rows_wait(k, &w);
        CHECK(!w.failed);
    }
}

static void start_quick(struct rows_kit *k, struct buf *got, struct ticking *clock, int syncs)
{
    log_setup(2, LOG_OFF, LOG_TEXT);
    buf_init(got, 1u << 20);
    rows_init(k);
    begin_quick(k, clock, syncs);
}

struct alone {
    struct rows_wait w; /* first: what is told of it */
    struct rows_kit *k;
    struct rows_wait *also; /* what is asked for meanwhile; NULL: nothing */
    unsigned calls;
    const struct clock *clock; /* by which that takes a hundred looks; NULL: no time */
};

static void on_meanwhile(void *arg)
{
    struct alone *a = arg;

    a->calls++;
    if (a->also)
        rows_put(a->k, a->also, "meanwhile", "1");
    for (unsigned i = 0; a->clock && i < 100; i++)
        clock_mono_ns(a->clock);
}

/* Was it written ahead? */
static bool put_text_alone(struct rows_kit *k, struct alone *a, const char *name, struct str text)
{
    struct store_value v[] = {store_text(str_of(name)), store_text(text)};
    uint64_t before = k->store->ahead.seq;

    a->w = (struct rows_wait){0};
    a->k = k;
    a->calls = 0;
    store_write_alone(k->store, INSERT, v, 2, rows_on_done, a, on_meanwhile);
    CHECK_INT(a->calls, 1);
    CHECK_INT(a->w.calls, 0); /* told from the loop, as ever */
    return k->store->ahead.seq > before;
}

static bool put_alone(struct rows_kit *k, struct alone *a, const char *name)
{
    return put_text_alone(k, a, name, STR("1"));
}

static void told(struct rows_kit *k, const struct alone *a)
{
    rows_wait(k, &a->w);
    CHECK(!a->w.failed);
}

static void until_landed(struct rows_kit *k)
{
    while (k->store->ahead.from != k->store->ahead.at)
        CHECK_OK(loop_turn(k->loop, 1000));
}

TEST(where_the_disk_is_quick_one_alone_is_told_before_sqlite_has_it)
{
    struct rows_kit k;
    struct rows_wait also;
    struct alone a = {.also = &also};
    own_done(buf) got;
    struct ticking quick = ticking_of(10);

    start_quick(&k, &got, &quick, STORE_QUICK_RUN);
    store_gather(k.store, 3600 * 1000);
    CHECK(put_alone(&k, &a, "a"));
    told(&k, &a);
    CHECK(k.store->ahead.from < k.store->ahead.at);
    CHECK_STR(rows_read(&k, NEW, &got), "a "); /* who reads sees it all the same */
    store_hurry(k.store);
    rows_wait(&k, &also);
    CHECK(!also.failed);
    until_landed(&k);
    CHECK_STR(rows_read(&k, NEW, &got), "a meanwhile "); /* once */
    rows_done(&k);
}

/* A process that has written ahead is gone at once: nothing is closed, and no turn is taken. */
static void write_and_die(struct rows_kit *k, const char *const *names, bool told_first)
{
    struct ticking quick = ticking_of(10);
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK_OK(loop_new(&clock_system, &k->loop));
        begin_quick(k, &quick, STORE_QUICK_RUN);
        for (; *names; names++) {
            struct alone a = {0};
            CHECK(put_alone(k, &a, *names));
            if (told_first)
                told(k, &a);
        }
        _exit(0);
    }
    int status;
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK_INT(status, 0);
}

static void prepare(struct rows_kit *k, struct buf *got)
{
    struct ticking quick = ticking_of(10);

    start_quick(k, got, &quick, 0);
    rows_close(k);
}

TEST(what_a_store_had_no_time_to_write_the_next_one_does_in_its_order)
{
    struct rows_kit k;
    own_done(buf) got;

    prepare(&k, &got);
    write_and_die(&k, (const char *const[]){"c", "a", "b", NULL}, false);
    rows_open(&k);
    CHECK_STR(rows_read(&k, NEW, &got), "a b c ");
    CHECK_STR(rows_read(&k, "SELECT seq FROM ahead", &got), "3 ");
    rows_close(&k);
    rows_open(&k); /* and not a second time */
    CHECK_INT(k.store->ahead.seq, 3);
    CHECK_STR(rows_read(&k, NEW, &got), "a b c ");
    rows_done(&k);
}

static int open_ring(const struct rows_kit *k)
{
    char path[600];

    snprintf(path, sizeof path, "%s-ahead", k->path);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    return fd;
}

TEST(a_record_that_is_not_whole_is_none)
{
    struct rows_kit k;
    own_done(buf) got;
    char byte;

    prepare(&k, &got);
    write_and_die(&k, (const char *const[]){"a", "b", NULL}, false);
    int fd = open_ring(&k);
    CHECK_INT(pread(fd, &byte, 1, RECORD_BLOCK + 110), 1); /* of the second */
    byte ^= 1;
    CHECK_INT(pwrite(fd, &byte, 1, RECORD_BLOCK + 110), 1);
    close(fd);
    rows_open(&k);
    CHECK_STR(rows_read(&k, NEW, &got), "a ");
    rows_done(&k);
}

TEST(records_of_another_database_are_left_alone)
{
    struct rows_kit k;
    own_done(buf) got;

    prepare(&k, &got);
    write_and_die(&k, (const char *const[]){"a", NULL}, false);
    CHECK(unlink(k.path) == 0); /* somebody began anew, and left what was beside it */
    char log[600];
    snprintf(log, sizeof log, "%s-wal", k.path);
    unlink(log);
    rows_open(&k);
    CHECK_STR(rows_read(&k, NEW, &got), "");
    rows_done(&k);
}

TEST(a_disk_that_was_slow_once_or_is_not_known_is_waited_for_by_the_worker)
{
    struct rows_kit k;
    struct alone a = {0};
    own_done(buf) got;
    struct ticking clock = ticking_of(STORE_QUICK_US);

    start_quick(&k, &got, &clock, STORE_QUICK_RUN - 1);
    CHECK(!put_alone(&k, &a, "a")); /* one short of a run */
    told(&k, &a);
    clock.step_ns++;
    CHECK(put_alone(&k, &a, "b"));
    told(&k, &a);
    CHECK(!put_alone(&k, &a, "c")); /* that one was too slow */
    told(&k, &a);
    CHECK_STR(rows_read(&k, NEW, &got), "a b c ");
    rows_done(&k);
}

TEST(what_is_done_meanwhile_is_not_the_disk_s_time)
{
    struct rows_kit k;
    own_done(buf) got;
    struct ticking clock = ticking_of(STORE_QUICK_US / 10);
    struct alone a = {.clock = &clock.clock};

    start_quick(&k, &got, &clock, STORE_QUICK_RUN);
    CHECK(put_alone(&k, &a, "a"));
    told(&k, &a);
    CHECK(put_alone(&k, &a, "b"));
    told(&k, &a);
    rows_done(&k);
}

static sqlite3 *hold(const struct rows_kit *k)
{
    sqlite3 *other;

    CHECK_INT(sqlite3_open(k->path, &other), SQLITE_OK);
    CHECK_INT(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    return other;
}

static void let_go(sqlite3 *other)
{
    CHECK_INT(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
}

TEST(one_alone_is_told_while_another_process_holds_the_file_and_written_when_it_can_be)
{
    struct rows_kit k;
    struct alone a = {0}, b = {0};
    own_done(buf) got;
    struct ticking quick = ticking_of(10);

    start_quick(&k, &got, &quick, STORE_QUICK_RUN);
    sqlite3_busy_timeout(k.store->db, 1);
    sqlite3 *other = hold(&k);
    CHECK(put_alone(&k, &a, "a"));
    told(&k, &a);
    while (!k.store->undone)
        CHECK_OK(loop_turn(k.loop, 1000));
    CHECK(!put_alone(&k, &b, "b")); /* who comes now is told what is wrong */
    rows_wait(&k, &b.w);
    CHECK_INT(b.w.code, ERR_BUSY);
    let_go(other);
    until_landed(&k);
    CHECK_STR(rows_read(&k, NEW, &got), "a ");
    CHECK(put_alone(&k, &b, "b"));
    told(&k, &b);
    rows_done(&k);
}

TEST(what_was_told_and_could_not_be_written_by_the_end_is_done_by_the_next_store)
{
    struct rows_kit k;
    struct alone a = {0};
    own_done(buf) got;
    struct ticking quick = ticking_of(10);

    start_quick(&k, &got, &quick, STORE_QUICK_RUN);
    sqlite3_busy_timeout(k.store->db, 1);
    sqlite3 *other = hold(&k);
    CHECK(put_alone(&k, &a, "a"));
    told(&k, &a);
    rows_close(&k);
    let_go(other);
    rows_open(&k);
    CHECK_STR(rows_read(&k, NEW, &got), "a ");
    rows_done(&k);
}

TEST(closing_tells_and_writes_what_one_alone_asked_for)
{
    struct rows_kit k;
    struct rows_wait also;
    struct alone a = {.also = &also};
    own_done(buf) got;
    struct ticking quick = ticking_of(10);

    start_quick(&k, &got, &quick, STORE_QUICK_RUN);
    store_expect(k.store); /* nobody is woken up for it */
    CHECK(!k.store->flying);
    CHECK(put_alone(&k, &a, "a"));
    rows_close(&k);
    CHECK(a.w.calls == 1 && !a.w.failed);
    CHECK(also.calls == 1 && !also.failed);
    rows_open(&k);
    CHECK_INT(k.store->ahead.seq, 1);
    CHECK_STR(rows_read(&k, NEW, &got), "a meanwhile ");
    rows_done(&k);
}

/* A statement that fails for want of something is not taken for done with the others. */
TEST(what_was_told_and_fails_alone_stays_until_it_succeeds)
{
    struct rows_kit k;
    struct alone a = {0};
    struct rows_wait other;
    own_done(buf) got;
    struct ticking quick = ticking_of(10);
    sqlite3 *db;

    start_quick(&k, &got, &quick, STORE_QUICK_RUN);
    CHECK_INT(sqlite3_open(k.path, &db), SQLITE_OK);
    CHECK_INT(sqlite3_exec(db, "ALTER TABLE meta RENAME TO gone", NULL, NULL, NULL), SQLITE_OK);
    CHECK(put_alone(&k, &a, "a"));
    told(&k, &a);
    while (!k.store->undone)
        CHECK_OK(loop_turn(k.loop, 1000));
    CHECK(k.store->ahead.from < k.store->ahead.at);
    CHECK_INT(sqlite3_exec(db, "ALTER TABLE gone RENAME TO meta", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    rows_put(&k, &other, "b", "1");
    rows_wait(&k, &other);
    CHECK(!other.failed);
    until_landed(&k);
    CHECK_STR(rows_read(&k, NEW, &got), "a b ");
    rows_done(&k);
}

/* Its asker was told something else, so the next store must not do it. */
TEST(a_record_that_failed_is_not_done_later)
{
    struct rows_kit k;
    struct alone a = {0};
    struct rows_wait other;
    own_done(buf) got;
    struct ticking quick = ticking_of(10);

    start_quick(&k, &got, &quick, STORE_QUICK_RUN);
    int fd = k.store->ahead.fd, none = open("/dev/null", O_RDONLY | O_CLOEXEC);
    own_fd kept = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    CHECK(none >= 0 && kept >= 0);
    CHECK_INT(dup2(none, fd), fd); /* nothing can be written there */
    close(none);
    own_close(take_fd(&k.store->ahead.top));
    put_alone(&k, &a, "a");
    told(&k, &a); /* the long way */
    CHECK(!put_alone(&k, &a, "b"));
    told(&k, &a);
    rows_put(&k, &other, "c", "1");
    rows_wait(&k, &other);
    rows_close(&k);
    rows_open(&k);
    CHECK_STR(rows_read(&k, NEW, &got), "a b c "); /* each once */
    rows_done(&k);
}

/* No turn is taken, so that SQLite gets nothing; the ring goes round meanwhile. */
TEST(where_there_is_no_room_ahead_it_goes_the_long_way)
{
    struct rows_kit k;
    struct alone a[100] = {0};
    own_done(buf) got;
    struct ticking quick = ticking_of(10);
    char name[16], large[RECORD_BLOCK * 2];
    unsigned ahead = 0, before = 0;

    memset(large, 'x', sizeof large);
    start_quick(&k, &got, &quick, STORE_QUICK_RUN);
    for (int round = 0; round < 3; round++) {
        ahead = 0;
        for (unsigned i = 0; i < ARRAY_LEN(a); i++) {
            snprintf(name, sizeof name, "n%d.%u", round, i);
            ahead += put_text_alone(&k, &a[i], name, str_n(large, i % 3 ? 1 : sizeof large));
        }
        CHECK(ahead > 20 && ahead < ARRAY_LEN(a));
        for (unsigned i = 0; i < ARRAY_LEN(a); i++)
            told(&k, &a[i]);
        until_landed(&k);
        before += ahead;
    }
    CHECK_INT(k.store->ahead.seq, before);
    CHECK_STR(rows_read(&k, "SELECT count(*) FROM meta WHERE name LIKE 'n%'", &got), "300 ");
    rows_done(&k);
}

TEST(what_is_too_large_to_go_ahead_goes_the_long_way)
{
    struct rows_kit k;
    struct alone a = {0};
    own_done(buf) got;
    struct ticking quick = ticking_of(10);
    own_free char *large = malloc(STORE_QUICK_BYTES);

    memset(large, 'x', STORE_QUICK_BYTES);
    start_quick(&k, &got, &quick, STORE_QUICK_RUN);
    CHECK(!put_text_alone(&k, &a, "a", str_n(large, STORE_QUICK_BYTES)));
    told(&k, &a);
    rows_done(&k);
}

TEST(a_second_process_does_without)
{
    struct rows_kit k;
    struct alone a = {0};
    own_done(buf) got;
    struct ticking quick = ticking_of(10);
    int status;

    start_quick(&k, &got, &quick, STORE_QUICK_RUN);
    CHECK(put_alone(&k, &a, "a"));
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        struct rows_kit other = k;
        CHECK_OK(loop_new(&clock_system, &other.loop));
        rows_open(&other);
        _exit(other.store->ahead.fd >= 0);
    }
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK_INT(status, 0);
    told(&k, &a);
    until_landed(&k);
    CHECK_STR(rows_read(&k, NEW, &got), "a ");
    rows_done(&k);
}

/* What is moved is not taken for part of it, and it is not forgotten. */
TEST(the_log_is_not_moved_while_others_are_gathered)
{
    struct rows_kit k;
    struct alone a = {0};
    own_done(buf) got;
    struct ticking quick = ticking_of(10);

    start_quick(&k, &got, &quick, STORE_QUICK_RUN);
    k.store->wal_pages = 1000; /* worth moving when nobody writes */
    store_gather(k.store, 0);
    while (!k.store->quiet.loop)
        CHECK_OK(loop_turn(k.loop, 1000));
    store_gather(k.store, 3600 * 1000);
    while (k.store->quiet.loop)
        CHECK_OK(loop_turn(k.loop, 1000));
    CHECK(!k.store->checkpoints);
    CHECK(put_alone(&k, &a, "a"));
    CHECK_STR(rows_read(&k, NEW, &got), "a ");
    told(&k, &a);
    rows_done(&k);
}
