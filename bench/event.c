// SPDX-License-Identifier: Apache-2.0
/* event — durable appends beside SQLite, the newest page of a long log, replay with verification.
 *
 * SQLite runs in this process (libsqlite3 by dlopen, WAL, synchronous=FULL) with the same group
 * size: one transaction of 256 inserts. Files lie beside the program, on the disk of the build. */
#include <dlfcn.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "event/log.h"

#define OUTSTANDING 256
#define PAYLOAD     500
#define ROUNDS      5
#define ROUND_NS    NS_PER_S
#define LONG        1000000u
#define TMPFS_MAGIC 0x01021994

static void must(struct err *e, const char *what)
{
    if (!e)
        return;
    fprintf(stderr, "bench/event: %s: %s\n", what, err_text(e));
    exit(1);
}

static double seconds_since(uint64_t start_ns)
{
    return (double)(clock_mono_ns(&clock_system) - start_ns) / 1e9;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, compare);
    return v[n / 2];
}

/* --- our own appends --- */

struct producer {
    struct event_append a;
    struct event_log *log;
    uint64_t *acked;
    const bool *stop;
};

static const char payload[PAYLOAD];

static void append_one(struct producer *p)
{
    struct event_record r = {.kind = STR("observation"), .payload = str_n(payload, PAYLOAD)};

    must(event_log_append(p->log, &r, &p->a), "append");
}

static void on_acked(struct event_append *a, const struct err *why)
{
    struct producer *p = container_of(a, struct producer, a);

    if (why)
        must(err_copy(why), "commit");
    ++*p->acked;
    if (!*p->stop)
        append_one(p);
}

static double appends_per_s(struct loop *loop, struct event_log *log)
{
    static struct producer producers[OUTSTANDING];
    uint64_t acked = 0, start = clock_mono_ns(&clock_system);
    bool stop = false;

    for (size_t i = 0; i < OUTSTANDING; i++) {
        producers[i] =
            (struct producer){.a.done = on_acked, .log = log, .acked = &acked, .stop = &stop};
        append_one(&producers[i]);
    }
    while (clock_mono_ns(&clock_system) - start < ROUND_NS)
        must(loop_turn(loop, -1), "loop");
    double rate = (double)acked / seconds_since(start);
    stop = true;
    struct event_info info;
    for (event_log_info(log, &info); info.last_seq + 1 < info.next_seq; event_log_info(log, &info))
        must(loop_turn(loop, 100), "loop");
    return rate;
}

/* --- the peer --- */

struct sqlite {
    void *lib, *db, *insert;
    int (*open)(const char *, void **);
    int (*exec)(void *, const char *, void *, void *, char **);
    int (*prepare)(void *, const char *, int, void **, const char **);
    int (*bind_blob)(void *, int, const void *, int, void (*)(void *));
    int (*bind_int)(void *, int, long long);
    int (*step)(void *);
    int (*reset)(void *);
    int (*finalize)(void *);
    int (*close)(void *);
    const char *(*version)(void);
};

static void sql(struct sqlite *s, const char *text)
{
    if (s->exec(s->db, text, NULL, NULL, NULL) != 0) {
        fprintf(stderr, "bench/event: sqlite: %s failed\n", text);
        exit(1);
    }
}

static bool sqlite_start(struct sqlite *s, const char *path)
{
    s->lib = dlopen("libsqlite3.so.0", RTLD_NOW);
    if (!s->lib)
        return false;
    s->open = dlsym(s->lib, "sqlite3_open");
    s->exec = dlsym(s->lib, "sqlite3_exec");
    s->prepare = dlsym(s->lib, "sqlite3_prepare_v2");
    s->bind_blob = dlsym(s->lib, "sqlite3_bind_blob");
    s->bind_int = dlsym(s->lib, "sqlite3_bind_int64");
    s->step = dlsym(s->lib, "sqlite3_step");
    s->reset = dlsym(s->lib, "sqlite3_reset");
    s->finalize = dlsym(s->lib, "sqlite3_finalize");
    s->close = dlsym(s->lib, "sqlite3_close");
    s->version = dlsym(s->lib, "sqlite3_libversion");
    if (s->open(path, &s->db) != 0)
        return false;
    sql(s, "PRAGMA journal_mode=WAL");
    sql(s, "PRAGMA synchronous=FULL");
    sql(s, "CREATE TABLE event(seq INTEGER PRIMARY KEY, wall INTEGER, kind TEXT, payload BLOB)");
    return s->prepare(s->db, "INSERT INTO event(wall, kind, payload) VALUES(?, 'observation', ?)",
                      -1, &s->insert, NULL) == 0;
}

static double sqlite_per_s(struct sqlite *s)
{
    uint64_t start = clock_mono_ns(&clock_system), done = 0;

    while (clock_mono_ns(&clock_system) - start < ROUND_NS) {
        sql(s, "BEGIN");
        for (size_t i = 0; i < OUTSTANDING; i++) {
            s->bind_int(s->insert, 1, (long long)clock_wall_ns(&clock_system));
            s->bind_blob(s->insert, 2, payload, PAYLOAD, NULL);
            s->step(s->insert);
            s->reset(s->insert);
        }
        sql(s, "COMMIT");
        done += OUTSTANDING;
    }
    return (double)done / seconds_since(start);
}

/* --- the long log --- */

static bool count_bytes(const struct event_record *r, void *arg)
{
    *(uint64_t *)arg += r->payload.len;
    return true;
}

static void finish(struct loop *loop, struct event_log *log)
{
    event_log_free(log);
    for (int i = 0; i < 3; i++)
        must(loop_turn(loop, 0), "loop");
}

static void fill_long(struct loop *loop, int dir)
{
    struct event_options o = {.inline_sync = true};
    struct event_log *log;
    struct event_record r = {.kind = STR("observation"), .payload = str_n(payload, PAYLOAD)};

    must(event_log_open(loop, dir, STR("long"), &o, &log), "open");
    for (unsigned i = 0; i < LONG; i++) {
        must(event_log_append(log, &r, NULL), "append");
        if (i % 16384 == 0)
            must(loop_turn(loop, 0), "loop");
    }
    must(loop_turn(loop, 0), "loop");
    finish(loop, log);
}

static void forget_pages(int dir)
{
    const char *const names[] = {"long", "long.idx"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        own_fd fd = openat(dir, names[i], O_RDWR | O_CLOEXEC);
        if (fd < 0 || fsync(fd) < 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
            must(err_sys("%s", names[i]), "forget pages");
    }
}

static double newest_ms(struct loop *loop, int dir, size_t n)
{
    struct event_log *log;
    struct event_page page;
    uint64_t bytes = 0, start = clock_mono_ns(&clock_system);
    struct event_query q = {.descending = true, .limit = n};

    must(event_log_open(loop, dir, STR("long"), NULL, &log), "open");
    must(event_log_read(log, &q, count_bytes, &bytes, &page), "read");
    double ms = seconds_since(start) * 1e3;
    if (page.count != n || bytes != n * PAYLOAD)
        must(err_new(ERR_INTERNAL, "got %zu records", page.count), "newest");
    finish(loop, log);
    return ms;
}

static double replay_mb_per_s(struct loop *loop, int dir)
{
    struct event_log *log;
    struct event_page page;
    struct event_info info;
    uint64_t bytes = 0;

    must(event_log_open(loop, dir, STR("long"), NULL, &log), "open");
    uint64_t start = clock_mono_ns(&clock_system);
    must(event_log_read(log, &(struct event_query){0}, count_bytes, &bytes, &page), "replay");
    double s = seconds_since(start);
    event_log_info(log, &info);
    if (page.count != LONG)
        must(err_new(ERR_INTERNAL, "got %zu records", page.count), "replay");
    finish(loop, log);
    return (double)info.bytes / 1e6 / s;
}

/* --- putting it together --- */

static int make_dir(char *path, size_t size)
{
    char exe[512];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    struct statfs fs;

    exe[n > 0 ? n : 0] = '\0';
    snprintf(path, size, "%s/event-data.%d", dirname(exe), (int)getpid());
    if (mkdir(path, 0700) < 0 || chdir(path) < 0)
        must(err_sys("mkdir %s", path), "directory");
    int dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    statfs(".", &fs);
    printf("files in %s (%s)\n", path,
           fs.f_type == TMPFS_MAGIC ? "TMPFS: syncs cost nothing, figures mean nothing"
                                    : "a real file system, not tmpfs");
    return dir;
}

static void remove_files(int dir, const char *path)
{
    const char *const names[] = {"append",    "append.idx",    "long",         "long.idx",
                                 "sqlite.db", "sqlite.db-wal", "sqlite.db-shm"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        unlinkat(dir, names[i], 0);
    rmdir(path);
}

static void compare_appends(struct loop *loop, int dir, double *ret_ours, double *ret_theirs)
{
    struct event_log *log;
    struct sqlite s = {0};
    double ours[ROUNDS], theirs[ROUNDS] = {0};

    must(event_log_open(loop, dir, STR("append"), NULL, &log), "open");
    bool peer = sqlite_start(&s, "sqlite.db");
    for (int i = 0; i < ROUNDS; i++) { /* in turns: the machine is noisy */
        ours[i] = appends_per_s(loop, log);
        theirs[i] = peer ? sqlite_per_s(&s) : 0;
    }
    finish(loop, log);
    if (peer) {
        printf("peer: SQLite %s, WAL, synchronous=FULL, %d inserts per transaction, in process\n",
               s.version(), OUTSTANDING);
        s.finalize(s.insert);
        s.close(s.db);
    } else {
        printf("peer: libsqlite3.so.0 is not installed\n");
    }
    *ret_ours = median(ours, ROUNDS);
    *ret_theirs = median(theirs, ROUNDS);
}

int main(void)
{
    char path[600];
    struct loop *loop;
    double ours, theirs, newest[21], replay[5];

    log_setup(2, LOG_WARN, LOG_TEXT);
    must(loop_new(&clock_system, &loop), "loop");
    int dir = make_dir(path, sizeof path);
    compare_appends(loop, dir, &ours, &theirs);
    fill_long(loop, dir);
    for (size_t i = 0; i < ARRAY_LEN(newest); i++) {
        forget_pages(dir);
        newest[i] = newest_ms(loop, dir, 50);
    }
    double cold_ms = median(newest, ARRAY_LEN(newest));
    for (size_t i = 0; i < ARRAY_LEN(newest); i++)
        newest[i] = newest_ms(loop, dir, 50);
    double ms = median(newest, ARRAY_LEN(newest));
    for (size_t i = 0; i < ARRAY_LEN(replay); i++)
        replay[i] = replay_mb_per_s(loop, dir);
    double mb = median(replay, ARRAY_LEN(replay));
    double ratio = theirs > 0 ? ours / theirs : 0;
    printf("%-46s %10s %10s\n", "", "here", "budget");
    printf("%-46s %8.0f/s %8d/s\n", "durable appends, 256 outstanding, 500 bytes", ours, 20000);
    printf("%-46s %8.0f/s %10s\n", "the same by SQLite", theirs, "-");
    printf("%-46s %7.2f ms %7d ms\n", "open and newest 50 of 1,000,000", ms, 5);
    printf("%-46s %7.2f ms %7d ms\n", "the same, nothing of it in the page cache", cold_ms, 5);
    printf("%-46s %5.0f MB/s %5d MB/s\n", "replay, every hash checked", mb, 200);
    remove_files(dir, path);
    loop_free(loop);
    close(dir);
    printf("bench/event: append %.0f/s (%.1fx SQLite WAL), newest 50 of 1M %.2f ms, "
           "replay %.0f MB/s\n",
           ours, ratio, ms, mb);
    return 0;
}
