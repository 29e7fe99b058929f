// SPDX-License-Identifier: Apache-2.0
/* Disks that are full, files that others hold, damaged or foreign ones, calls that fail. */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "base/log.h"
#include "host/store/inner.h"
#include "test/store_kit.h"

#define ALL "SELECT name, value FROM things ORDER BY name"

static void start(struct rows_kit *k)
{
    log_setup(2, LOG_OFF, LOG_TEXT);
    rows_init(k);
}

static void put_file(const char *path, struct str bytes)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
    CHECK_OK(fd_write_all(fd, bytes));
    close(fd);
}

/* By SQLite itself, as another program would. */
static void sql(const char *path, const char *text)
{
    sqlite3 *db;

    CHECK_INT(sqlite3_open(path, &db), SQLITE_OK);
    CHECK_INT(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    CHECK_INT(sqlite3_close(db), SQLITE_OK);
}

static void refused(struct rows_kit *k, enum err_code code, const char *part)
{
    unsigned fds = test_open_fds();

    CHECK_ERR(store_open(k->loop, k->path, &k->store), code, part);
    CHECK_INT(test_open_fds(), fds);
}

static int version_of(const char *path)
{
    sqlite3_stmt *stmt;
    sqlite3 *db;

    CHECK_INT(sqlite3_open(path, &db), SQLITE_OK);
    CHECK_INT(sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &stmt, NULL), SQLITE_OK);
    CHECK_INT(sqlite3_step(stmt), SQLITE_ROW);
    int version = sqlite3_column_int(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return version;
}

TEST(a_database_of_a_newer_croft_is_refused_and_left_alone)
{
    struct rows_kit k;
    char back[64];

    start(&k);
    rows_open(&k);
    rows_close(&k);
    snprintf(back, sizeof back, "PRAGMA user_version=%d", version_of(k.path));
    sql(k.path, "PRAGMA user_version=1000");
    refused(&k, ERR_UNSUPPORTED, "schema 1000 and this croft knows up to");
    refused(&k, ERR_UNSUPPORTED, k.path);
    sql(k.path, back);
    rows_open(&k);
    rows_done(&k);
}

TEST(a_database_of_another_program_is_refused_and_left_alone)
{
    struct rows_kit k;
    own_done(buf) before, after;

    start(&k);
    buf_init(&before, 1u << 20);
    buf_init(&after, 1u << 20);
    sql(k.path, "CREATE TABLE theirs (a)");
    CHECK_OK(fd_read_file(k.path, &before));
    refused(&k, ERR_INVALID, "is another program's: move it away, or name another --state");
    CHECK_OK(fd_read_file(k.path, &after));
    CHECK_STR(buf_str(&after), buf_str(&before));
    rows_done(&k);
}

TEST(a_file_that_is_no_database_is_refused_with_a_remedy)
{
    struct rows_kit k;

    start(&k);
    put_file(k.path, STR("This is not a database, and longer than a hundred bytes it is as well: "
                         "........................................"));
    refused(&k, ERR_CORRUPT, "file is not a database: move it away to begin anew, or read what");
    rows_done(&k);
}

TEST(damage_is_found_when_opening)
{
    struct rows_kit k;
    struct rows_wait w;
    char text[8000];

    start(&k);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    rows_open(&k);
    rows_put(&k, &w, "a", text);
    rows_wait(&k, &w);
    rows_close(&k);
    int fd = open(k.path, O_RDWR | O_CLOEXEC);
    off_t size = lseek(fd, 0, SEEK_END);
    for (off_t at = 4096; at < size; at += 4096) /* the head of every page but the first */
        CHECK_INT(pwrite(fd, "\xff\xff\xff\xff", 4, at), 4);
    close(fd);
    refused(&k, ERR_CORRUPT, "move it away to begin anew");
    rows_done(&k);
}

/* Behind its last frame: zeros follow, laid out for the next ones. */
static off_t log_end(const char *wal)
{
    static char bytes[4 << 20];
    const off_t head = 32, frame = 24 + 4096;
    own_fd fd = open(wal, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, bytes, sizeof bytes);

    while (n > 0 && !bytes[n - 1])
        n--;
    return head + (n - head + frame - 1) / frame * frame;
}

TEST(a_log_cut_short_or_damaged_at_its_end_costs_no_older_row)
{
    struct rows_kit k;
    struct rows_wait w;
    char wal[600];
    own_done(buf) got;

    start(&k);
    buf_init(&got, 4096);
    rows_open(&k);
    rows_put(&k, &w, "a", "1");
    rows_wait(&k, &w);
    snprintf(wal, sizeof wal, "%s-wal", k.path);
    off_t one = log_end(wal);
    rows_put(&k, &w, "b", "2");
    rows_wait(&k, &w);
    pid_t pid = fork(); /* the files as a death would leave them */
    if (pid == 0) {
        char cmd[4000];
        snprintf(cmd, sizeof cmd, "cp %s %s.copy; cp %s %s.copy-wal; truncate -s %lld %s.copy-wal",
                 k.path, k.path, wal, k.path, (long long)one + 1000, k.path);
        _exit(system(cmd) != 0);
    }
    int status;
    waitpid(pid, &status, 0);
    CHECK_INT(status, 0);
    rows_close(&k);
    snprintf(k.path + strlen(k.path), 10, ".copy");
    rows_open(&k);
    CHECK_STR(rows_read(&k, ALL, &got), "a 1 ");
    rows_done(&k);
}

TEST(the_file_is_closed_to_others_and_links_are_not_followed)
{
    struct rows_kit k;
    struct stat st;
    char other[600];

    start(&k);
    umask(0);
    rows_open(&k);
    for (const char *const *suffix = (const char *const[]){"", "-wal", "-shm", NULL}; *suffix;
         suffix++) {
        snprintf(other, sizeof other, "%s%s", k.path, *suffix);
        CHECK(stat(other, &st) == 0);
        CHECK_INT(st.st_mode & 0777, 0600);
    }
    rows_close(&k);
    CHECK(chmod(k.path, 0644) == 0);
    rows_open(&k);
    CHECK(stat(k.path, &st) == 0);
    CHECK_INT(st.st_mode & 0777, 0600);
    rows_close(&k);
    snprintf(other, sizeof other, "%s.real", k.path);
    CHECK(rename(k.path, other) == 0 && symlink(other, k.path) == 0);
    refused(&k, ERR_FORBIDDEN, "symbolic links");
    rows_done(&k);
}

TEST(what_cannot_be_opened_says_why)
{
    struct rows_kit k;

    start(&k);
    CHECK(mkdir(k.path, 0700) == 0);
    refused(&k, ERR_INVALID, "open database");
    snprintf(k.path + strlen(k.path), 20, "/none/x");
    refused(&k, ERR_NOT_FOUND, "open database");
    if (geteuid() == 0) {
        snprintf(k.path, sizeof k.path, "%s/theirs.db", test_dir());
        put_file(k.path, STR(""));
        CHECK(chown(k.path, 65534, 65534) == 0);
        refused(&k, ERR_FORBIDDEN, "belongs to user 65534, and this is user 0: chown it");
    }
    rows_done(&k);
}

/* A child that holds the file for writing until it is told to go. */
struct holder {
    pid_t pid;
    int go;
};

static void hold(struct holder *h, const char *path)
{
    int ready[2], go[2];
    char c;

    CHECK(pipe2(ready, O_CLOEXEC) == 0 && pipe2(go, O_CLOEXEC) == 0);
    h->pid = fork();
    CHECK(h->pid >= 0);
    if (h->pid == 0) {
        sqlite3 *db;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(go[1]);
        CHECK_INT(sqlite3_open(path, &db), SQLITE_OK);
        CHECK_INT(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
        CHECK_INT(write(ready[1], "r", 1), 1);
        err_free(fd_wait(go[0], POLLIN, 60000));
        _exit(0);
    }
    close(ready[1]);
    close(go[0]);
    h->go = go[1];
    CHECK_INT(read(ready[0], &c, 1), 1);
    close(ready[0]);
}

static void let_go(struct holder *h)
{
    int status;

    close(h->go);
    waitpid(h->pid, &status, 0);
}

TEST(a_file_that_another_process_holds_is_busy_and_then_works_again)
{
    struct rows_kit k;
    struct rows_wait w[2];
    struct holder h;
    own_done(buf) got;

    start(&k);
    buf_init(&got, 4096);
    rows_open(&k);
    hold(&h, k.path);
    sqlite3_busy_timeout(k.store->write.db, 20);
    rows_put(&k, &w[0], "a", "1");
    CHECK_STR(rows_read(&k, ALL, &got), ""); /* readers are not held up */
    rows_wait(&k, &w[0]);
    CHECK(w[0].failed && w[0].code == ERR_BUSY);
    CHECK_HAS(w[0].text, "croft.db': database is locked: another process holds it");
    let_go(&h);
    rows_put(&k, &w[1], "a", "1");
    rows_wait(&k, &w[1]);
    CHECK(!w[1].failed);
    CHECK_STR(rows_read(&k, ALL, &got), "a 1 ");
    rows_done(&k);
}

TEST(writes_wait_for_another_process_while_the_loop_goes_on)
{
    struct rows_kit k;
    struct rows_wait w[3];
    struct holder h;

    start(&k);
    rows_open(&k);
    hold(&h, k.path);
    sqlite3_busy_timeout(k.store->write.db, 60000);
    rows_put(&k, &w[0], "a", "1");
    for (int i = 0; i < 20; i++)
        CHECK_OK(loop_turn(k.loop, 1));
    rows_put(&k, &w[1], "b", "1");
    rows_put(&k, &w[2], "c", "1");
    CHECK_OK(loop_turn(k.loop, 1));
    CHECK(!w[0].calls && !w[1].calls && !w[2].calls);
    let_go(&h);
    rows_wait(&k, &w[2]);
    CHECK(!w[0].failed && !w[1].failed && !w[2].failed);
    rows_done(&k);
}

TEST(a_full_disk_is_said_and_loses_nothing_that_was_told)
{
    struct rows_kit k;
    struct rows_wait w;
    own_done(buf) got;
    char name[16], dir[300];
    char text[3000];
    unsigned kept = 0, refusals = 0;

    start(&k);
    buf_init(&got, 1u << 20);
    snprintf(dir, sizeof dir, "%s/small", test_dir());
    CHECK_INT(mkdir(dir, 0700), 0);
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", dir, "tmpfs", 0, "size=1m") < 0)
        SKIP("no private mount namespace here");
    snprintf(k.path, sizeof k.path, "%s/croft.db", dir);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    rows_open(&k);
    for (unsigned i = 0; refusals < 3; i++) {
        CHECK(i < 1000);
        snprintf(name, sizeof name, "%03u", i);
        rows_put(&k, &w, name, text);
        rows_wait(&k, &w);
        kept += !w.failed;
        refusals += w.failed;
        if (w.failed)
            CHECK_INT(w.code, ERR_BUSY);
    }
    CHECK_HAS(w.text, "disk is full: make room on its disk and try again");
    CHECK(kept > 10);
    char count[16];
    snprintf(count, sizeof count, "%u ", kept);
    CHECK_STR(rows_read(&k, "SELECT count(*) FROM things", &got), count);
    CHECK_INT(mount(NULL, dir, "tmpfs", MS_REMOUNT, "size=8m"), 0); /* room again */
    rows_put(&k, &w, "last", "1");
    rows_wait(&k, &w);
    CHECK_STR(w.text, "");
    rows_close(&k);
    rows_open(&k);
    snprintf(count, sizeof count, "%u ", kept + 1);
    CHECK_STR(rows_read(&k, "SELECT count(*) FROM things", &got), count);
    rows_done(&k);
}

TEST_LIMIT(opening_survives_the_failure_of_any_call, 300)
{
    struct rows_kit k;
    unsigned n = 0, failed = 0;

    start(&k);
    do {
        unsigned fds = test_open_fds();
        fault_at(++n);
        struct err *e = store_open(k.loop, k.path, &k.store);
        bool fired = fault_fired();
        fault_at(0);
        failed += e != NULL;
        if (e)
            CHECK_INT(test_open_fds(), fds);
        else
            rows_close(&k);
        err_free(e);
        if (!fired)
            break;
        for (const char *const *s = (const char *const[]){"", "-wal", "-shm", NULL}; *s; s++) {
            char path[600];
            snprintf(path, sizeof path, "%s%s", k.path, *s);
            if (n % 3 == 0) /* as often on a fresh file as on one that is there */
                unlink(path);
        }
    } while (true);
    CHECK(n > 50 && failed > 20);
    rows_open(&k);
    rows_done(&k);
}

/* Told: it is there. Refused: it may be asked for again. */
TEST_LIMIT(a_write_survives_the_failure_of_any_call, 120)
{
    struct rows_kit k;
    struct rows_wait w[2];
    own_done(buf) got;
    unsigned failed = 0;

    start(&k);
    buf_init(&got, 1u << 20);
    loop_forbid_threads(k.loop);
    rows_open(&k);
    for (unsigned n = 1;; n++) {
        char a[16], b[16];
        snprintf(a, sizeof a, "a%u", n);
        snprintf(b, sizeof b, "b%u", n);
        fault_at(n);
        rows_put(&k, &w[0], a, "1");
        rows_put(&k, &w[1], b, "1");
        for (int i = 0; i < 10 && !w[1].calls; i++)
            err_free(loop_turn(k.loop, 0));
        bool fired = fault_fired();
        fault_at(0);
        rows_wait(&k, &w[0]);
        rows_wait(&k, &w[1]);
        for (int i = 0; i < 2; i++) {
            struct rows_wait again;
            char want[64], sql_text[128];
            const char *name = i ? b : a;
            snprintf(sql_text, sizeof sql_text, "SELECT name FROM things WHERE name='%s'", name);
            snprintf(want, sizeof want, "%s ", w[i].failed ? "" : name);
            CHECK_STR(rows_read(&k, sql_text, &got), w[i].failed ? "" : want);
            failed += w[i].failed;
            if (!w[i].failed)
                continue;
            rows_put(&k, &again, name, "1");
            rows_wait(&k, &again);
            CHECK_STR(again.text, "");
        }
        if (!fired)
            break;
    }
    CHECK(failed > 3);
    rows_close(&k);
    rows_open(&k);
    rows_done(&k);
}
