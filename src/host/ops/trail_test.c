// SPDX-License-Identifier: Apache-2.0
/* trail_test.c — several logs as one history; each record's text is its place in that history. */
#include "host/ops/trail.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/rng.h"
#include "host/ops/trail_verify.h"
#include "test/event_kit.h"

#define KEEP   64000 /* eight logs of some 25 records each */
#define FILLER 200

struct world {
    struct kit k;
    struct trail *trail;
    unsigned said, durable; /* records, as we number them; seals are not counted in said */
    int tell;               /* -1: nobody */
};

struct reader {
    struct trail_sub sub;
    struct event_filter filter;
    unsigned first, last; /* texts */
    uint64_t number;      /* of the last */
    enum err_code why;
    bool ended, wait; /* wait: is paused after each */
};

static void on_commit(void *arg, uint64_t records, uint64_t sync_ns)
{
    struct world *w = arg;

    (void)sync_ns;
    w->durable += (unsigned)records;
    if (w->tell >= 0 && write(w->tell, &w->durable, sizeof w->durable) < 0)
        _exit(1);
}

static void open_trail(struct world *w, uint64_t keep)
{
    const struct trail_config c = {
        .loop = w->k.loop,
        .dir = w->k.dir,
        .name = "log",
        .keep_bytes = keep,
        .options = {.inline_sync = true, .on_commit = on_commit, .arg = w}};

    CHECK_OK(trail_open(&c, &w->trail));
}

static void begin(struct world *w, uint64_t keep)
{
    *w = (struct world){.tell = -1};
    kit_init(&w->k);
    open_trail(w, keep);
}

static void turns(struct world *w)
{
    kit_turns(&w->k, 20);
}

static void close_trail(struct world *w)
{
    trail_free(w->trail);
    w->trail = NULL;
    turns(w);
}

static void end(struct world *w)
{
    close_trail(w);
    kit_done(&w->k);
}

static fallible try_say(struct world *w)
{
    char text[FILLER];

    memset(text, 'x', sizeof text);
    snprintf(text, sizeof text, "%u", w->said + 1);
    struct event_record r = {.kind = STR("note"), .payload = str_n(text, sizeof text)};
    TRY(trail_append(w->trail, &r));
    w->said++;
    return NULL;
}

static void say(struct world *w, unsigned n)
{
    while (n--) {
        CHECK_OK(try_say(w));
        turns(w);
    }
}

static void on_record(struct trail_sub *s, uint64_t number, const struct event_record *r)
{
    struct reader *d = container_of(s, struct reader, sub);
    unsigned text = (unsigned)atoi(r->payload.p);

    CHECK(number > d->number);
    if (d->last)
        CHECK_INT(text, d->last + 1); /* none is missing and none comes twice */
    else
        d->first = text;
    d->last = text;
    d->number = number;
    if (d->wait)
        trail_sub_pause(s);
}

static void on_end(struct trail_sub *s, const struct err *why)
{
    struct reader *d = container_of(s, struct reader, sub);

    d->ended = true;
    d->why = err_code(why);
}

static fallible follow(struct world *w, struct reader *d, uint64_t after)
{
    *d = (struct reader){.sub = {.on_record = on_record, .on_end = on_end, .after = after}};
    d->sub.filter = &d->filter;
    return trail_sub_start(w->trail, &d->sub);
}

static unsigned count_files(struct world *w, uint64_t *ret_bytes)
{
    DIR *d = opendir(test_dir());
    unsigned n = 0;
    struct stat st;

    *ret_bytes = 0;
    for (struct dirent *e; (e = readdir(d));)
        if (strncmp(e->d_name, "log", 3) == 0 && fstatat(w->k.dir, e->d_name, &st, 0) == 0) {
            *ret_bytes += (uint64_t)st.st_size;
            n++;
        }
    closedir(d);
    return n;
}

TEST(a_history_goes_on_over_logs_and_over_being_opened_again)
{
    struct world w;
    struct reader d;
    uint64_t bytes;

    begin(&w, 0);
    say(&w, 30);
    CHECK_INT(count_files(&w, &bytes), 2); /* everything is kept: one log and its index */
    close_trail(&w);
    open_trail(&w, KEEP);
    say(&w, 100);
    CHECK(count_files(&w, &bytes) > 6);
    CHECK_INT(trail_first(w.trail), 1);
    CHECK_OK(follow(&w, &d, 0));
    kit_turns(&w.k, 200);
    CHECK_INT(d.first, 1);
    CHECK_INT(d.last, 130);
    uint64_t middle = 0;
    close_trail(&w);
    CHECK(d.ended && d.why == ERR_CLOSED);
    open_trail(&w, KEEP);
    CHECK_OK(follow(&w, &d, 0));
    d.wait = true;
    while (d.last < 77) {
        trail_sub_resume(&d.sub);
        turns(&w);
    }
    middle = d.number;
    trail_sub_stop(&d.sub);
    CHECK_OK(follow(&w, &d, middle)); /* who comes back */
    kit_turns(&w.k, 200);
    CHECK_INT(d.first, 78);
    CHECK_INT(d.last, 130);
    say(&w, 1);
    CHECK_INT(d.last, 131);
    end(&w);
}

TEST(the_oldest_goes_and_who_asks_for_it_is_told)
{
    struct world w;
    struct reader d;
    uint64_t bytes;

    begin(&w, KEEP);
    say(&w, 1000);
    count_files(&w, &bytes);
    CHECK(bytes <= KEEP + KEEP / 8 && bytes > KEEP / 2);
    CHECK(trail_first(w.trail) > 500);
    CHECK_ERR(follow(&w, &d, 1), ERR_GONE, "");
    CHECK_ERR(follow(&w, &d, trail_first(w.trail) - 2), ERR_GONE, "");
    CHECK_ERR(follow(&w, &d, 100000), ERR_INVALID, "");
    CHECK_OK(follow(&w, &d, 0));
    kit_turns(&w.k, 200);
    unsigned oldest = d.first;
    CHECK_INT(d.last, 1000);
    trail_sub_stop(&d.sub);
    CHECK_OK(follow(&w, &d, trail_first(w.trail) - 1));
    kit_turns(&w.k, 200);
    CHECK_INT(d.first, oldest);
    trail_keep(w.trail, 1); /* the one written to stays, and the one before it */
    CHECK_INT(count_files(&w, &bytes), 4);
    say(&w, 1);
    CHECK_INT(d.last, 1001);
    end(&w);
}

TEST(who_follows_misses_nothing_while_logs_change_under_it)
{
    struct world w;
    struct reader all, slow, late;

    begin(&w, KEEP);
    CHECK_OK(follow(&w, &all, 0));
    CHECK_OK(follow(&w, &slow, 0));
    slow.wait = true;
    for (unsigned i = 0; i < 90; i++) {
        say(&w, 1);
        if (i % 3 == 0)
            trail_sub_resume(&slow.sub);
    }
    CHECK_INT(all.last, 90);
    CHECK(slow.last < 50);
    while (slow.last < 90) {
        trail_sub_resume(&slow.sub);
        turns(&w);
    }
    CHECK_INT(slow.first, 1);
    CHECK_OK(follow(&w, &late, all.number)); /* at the very end: nothing yet */
    turns(&w);
    CHECK_INT(late.last, 0);
    for (unsigned i = 0; i < 60; i++) /* many at once, while a log is being sealed */
        CHECK_OK(try_say(&w));
    kit_turns(&w.k, 200);
    CHECK_INT(late.first, 91);
    CHECK_INT(late.last, 150);
    CHECK_INT(all.last, 150);
    end(&w);
}

TEST(who_stands_still_until_its_place_is_gone_is_dropped_with_the_reason)
{
    struct world w;
    struct reader d;

    begin(&w, KEEP);
    CHECK_OK(follow(&w, &d, 0));
    d.wait = true;
    say(&w, 1000);
    CHECK(d.ended);
    CHECK_INT(d.why, ERR_GONE);
    end(&w);
}

TEST(what_cannot_be_divided_goes_on_in_one)
{
    struct world w;
    struct reader d;
    char name[64];
    uint64_t bytes;

    begin(&w, KEEP);
    say(&w, 10);
    for (unsigned i = 11; i < 60; i++) { /* wherever the next would begin */
        snprintf(name, sizeof name, "log.%020u", i);
        CHECK_INT(mkdirat(w.k.dir, name, 0700), 0);
    }
    CHECK_OK(follow(&w, &d, 0));
    say(&w, 60);
    CHECK_INT(d.last, 70);
    for (unsigned i = 11; i < 60; i++) {
        snprintf(name, sizeof name, "log.%020u", i);
        unlinkat(w.k.dir, name, AT_REMOVEDIR);
    }
    say(&w, 80);
    CHECK_INT(d.last, 150);
    CHECK(count_files(&w, &bytes) > 4);
    end(&w);
}

static bool keep_seal(const struct event_record *r, void *arg)
{
    if (str_eq(r->kind, STR(TRAIL_SEAL)))
        buf_add((struct buf *)arg, r->payload);
    return true;
}

TEST(a_log_that_is_full_is_sealed_by_its_hash_in_the_next)
{
    struct world w;
    struct event_log *log;
    struct event_info info;
    own_done(buf) seal;
    char name[64] = "", hex[65];

    buf_init(&seal, 4096);
    begin(&w, KEEP);
    say(&w, 40);
    close_trail(&w);
    DIR *d = opendir(test_dir());
    for (struct dirent *e; (e = readdir(d));)
        if (strncmp(e->d_name, "log.0", 5) == 0 && !strstr(e->d_name, "idx"))
            snprintf(name, sizeof name, "%.63s", e->d_name);
    closedir(d);
    CHECK_OK(event_log_open(w.k.loop, w.k.dir, STR("log"), NULL, &log));
    event_log_info(log, &info);
    event_log_free(log);
    CHECK_INT(atoll(name + 4), info.last_seq);
    for (size_t i = 0; i < sizeof info.head; i++)
        snprintf(hex + 2 * i, 3, "%02x", info.head[i]);
    CHECK_OK(event_log_open(w.k.loop, w.k.dir, str_of(name), NULL, &log));
    CHECK_OK(event_log_read(log, &(struct event_query){0}, keep_seal, &seal, NULL));
    event_log_free(log);
    CHECK_HAS(buf_str(&seal), str_of(hex));
    end(&w);
}

/* --- all of them, and their seals --- */

static void verify_all(struct world *w, struct arena *a, struct trail_verdict *ret)
{
    CHECK_OK(trail_verify(w->k.dir, "log", a, ret));
    for (const struct trail_part *p = ret->parts; p; p = p->next)
        CHECK(!p->next == (p->seal == TRAIL_OPEN));
}

/* What a kill leaves, whose seal did not come to the disk: the next log as it is after its birth.
 */
static void lose_seals(struct world *w, const char *name)
{
    struct event_log *log;
    char index[300];

    snprintf(index, sizeof index, "%s.idx", name);
    CHECK(unlinkat(w->k.dir, name, 0) == 0 && unlinkat(w->k.dir, index, 0) == 0);
    CHECK_OK(event_log_open(w->k.loop, w->k.dir, str_of(name), NULL, &log));
    event_log_free(log);
    turns(w);
}

TEST(a_seal_that_a_kill_took_is_named_and_put_at_the_next_start)
{
    struct world w;
    struct trail_verdict v;
    own_done(arena) a;
    char newest[256];

    arena_init(&a, 1u << 20);
    begin(&w, KEEP);
    say(&w, 40);
    close_trail(&w);
    verify_all(&w, &a, &v);
    CHECK(v.count == 2 && !v.bad);
    CHECK_INT(v.parts->seal, TRAIL_SEALED);
    CHECK_STR(v.parts->sealed_in, v.parts->next->name);
    snprintf(newest, sizeof newest, "%s", v.parts->next->name);
    lose_seals(&w, newest);
    verify_all(&w, &a, &v);
    CHECK(v.bad == v.parts);
    CHECK_INT(v.parts->seal, TRAIL_UNSEALED);
    CHECK_HAS(v.why, "not sealed");
    open_trail(&w, KEEP);
    turns(&w);
    close_trail(&w);
    verify_all(&w, &a, &v);
    CHECK(!v.bad);
    CHECK_INT(v.parts->seal, TRAIL_SEALED);
    uint64_t records = v.parts->next->verdict.records;
    open_trail(&w, KEEP); /* once is enough */
    turns(&w);
    close_trail(&w);
    verify_all(&w, &a, &v);
    CHECK_INT(v.parts->next->verdict.records, records);
    end(&w);
}

TEST(a_log_that_is_not_what_was_sealed_is_told_from_one_that_is)
{
    struct world w;
    struct trail_verdict v;
    own_done(arena) a;
    struct event_log *log;

    arena_init(&a, 1u << 20);
    begin(&w, KEEP);
    say(&w, 40);
    close_trail(&w);
    const struct event_options now = {.inline_sync = true};
    CHECK_OK(event_log_open(w.k.loop, w.k.dir, STR("log"), &now, &log)); /* one more, well made */
    const struct event_record r = {.kind = STR("x"), .payload = STR("late")};
    CHECK_OK(event_log_append(log, &r, NULL));
    turns(&w);
    event_log_free(log);
    turns(&w);
    verify_all(&w, &a, &v);
    CHECK(v.bad == v.parts);
    CHECK_INT(v.parts->verdict.state, EVENT_OK);
    CHECK_INT(v.parts->seal, TRAIL_REWRITTEN);
    end(&w);
}

/* --- kill -9 --- */

static _Noreturn void child(int tell)
{
    struct world w = {.tell = tell};

    kit_init(&w.k);
    open_trail(&w, 6 * KEEP);
    struct reader d;
    CHECK_OK(follow(&w, &d, 0));
    kit_turns(&w.k, 500);
    w.said = d.last;
    for (;;) {
        CHECK_OK(try_say(&w));
        kit_turns(&w.k, 1);
    }
}

static void all_sealed(struct world *w)
{
    own_done(arena) a;
    struct trail_verdict v;

    arena_init(&a, 1u << 20);
    verify_all(w, &a, &v);
    if (v.bad)
        FAIL("'%s' %s: %s", v.bad->name, v.why, v.bad->verdict.why);
}

TEST_LIMIT(killed_at_any_moment_a_history_keeps_what_was_acknowledged, 180)
{
    struct world w;
    struct reader d;
    unsigned had = 0;

    begin(&w, 6 * KEEP);
    for (unsigned round = 0; round < 20; round++) {
        int p[2];
        unsigned durable = 0, told;
        unsigned until = 20 + (unsigned)rng_below(rng_system(), 300);

        close_trail(&w);
        CHECK_INT(pipe2(p, O_CLOEXEC), 0);
        pid_t pid = fork();
        if (pid == 0)
            child(p[1]);
        close(p[1]);
        while (durable < until && read(p[0], &told, sizeof told) == sizeof told)
            durable = told;
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        while (read(p[0], &told, sizeof told) == sizeof told)
            durable = told;
        close(p[0]);
        open_trail(&w, 6 * KEEP);
        CHECK_OK(follow(&w, &d, 0));
        kit_turns(&w.k, 600);
        /* Its seals are durable records too. */
        CHECK(d.last + durable / 100 + 1 >= had + durable);
        had = d.last;
        trail_sub_stop(&d.sub);
        all_sealed(&w);
    }
    CHECK(trail_first(w.trail) > 1);
    end(&w);
}
