// SPDX-License-Identifier: Apache-2.0
#include "event/log.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/log.h"
#include "test/event_kit.h"

static uint64_t commits(struct kit *k)
{
    struct event_info info;

    event_log_info(k->log, &info);
    return info.commits;
}

TEST(an_append_is_acknowledged_once_and_with_its_id)
{
    struct kit k;

    kit_init(&k);
    k.options.inline_sync = false;
    kit_open(&k);
    CHECK_INT(kit_append(&k, STR("one")), 1);
    CHECK_INT(kit_append(&k, STR("two")), 2);
    kit_turns(&k, 3);
    CHECK_INT(kit_verify(&k).records, 2);
    kit_done(&k);
}

TEST(appends_of_one_turn_share_one_commit)
{
    struct kit k;
    struct kit_wait w[100];

    kit_init(&k);
    kit_open(&k);
    for (unsigned i = 0; i < 100; i++) {
        kit_push(&k, &w[i], STR("x"));
        CHECK_INT(w[i].a.seq, i + 1);
        CHECK_INT(w[i].calls, 0);
    }
    kit_turns(&k, 2);
    for (unsigned i = 0; i < 100; i++)
        CHECK_INT(w[i].calls, 1);
    CHECK_INT(commits(&k), 1);
    kit_done(&k);
}

TEST(appends_during_a_sync_gather_for_the_next_one)
{
    struct kit k;
    struct kit_wait first, rest[50];

    kit_init(&k);
    k.options.inline_sync = false;
    kit_open(&k);
    kit_push(&k, &first, STR("first"));
    kit_turns(&k, 1); /* the thread has it now, or is even done */
    for (unsigned i = 0; i < 50; i++)
        kit_push(&k, &rest[i], STR("rest"));
    while (!rest[49].calls)
        CHECK_OK(loop_turn(k.loop, 1000));
    CHECK_INT(first.calls, 1);
    CHECK_INT(commits(&k), 2);
    kit_done(&k);
}

TEST(a_delay_gathers_over_several_turns_and_then_ends)
{
    struct kit k;
    struct kit_wait a, b;

    kit_init(&k);
    k.options.delay_ms = 60000;
    kit_open(&k);
    kit_push(&k, &a, STR("a"));
    kit_turns(&k, 3);
    CHECK_INT(a.calls, 0);
    kit_push(&k, &b, STR("b"));
    k.clock.ahead_ns += 60000 * NS_PER_MS;
    kit_turns(&k, 3);
    CHECK(a.calls == 1 && b.calls == 1);
    CHECK_INT(commits(&k), 1);
    kit_done(&k);
}

TEST(a_delay_ends_early_when_enough_has_gathered)
{
    struct kit k;
    struct kit_wait w[2];
    static char bytes[1000];

    kit_init(&k);
    k.options.delay_ms = 60000;
    k.options.pending_bytes = 6000;
    kit_open(&k);
    kit_push(&k, &w[0], str_n(bytes, sizeof bytes));
    kit_turns(&k, 2);
    CHECK_INT(w[0].calls, 0);
    kit_push(&k, &w[1], str_n(bytes, sizeof bytes));
    kit_turns(&k, 2);
    CHECK(w[0].calls == 1 && w[1].calls == 1);
    kit_done(&k);
}

TEST(where_threads_are_forbidden_the_loop_syncs_itself)
{
    struct kit k;

    kit_init(&k);
    k.options.inline_sync = false;
    loop_forbid_threads(k.loop);
    kit_open(&k);
    CHECK_INT(kit_append(&k, STR("one")), 1);
    CHECK_INT(kit_verify(&k).records, 1);
    kit_done(&k);
}

TEST(records_of_wrong_shape_are_refused)
{
    struct kit k;
    static char big[5000];
    struct event_record r = kit_record(str_n(big, sizeof big));

    kit_init(&k);
    k.options.record_max = 4096;
    kit_open(&k);
    CHECK_ERR(event_log_append(k.log, &r, NULL), ERR_TOO_LARGE, "5000");
    r.payload.len = 4096 - 104 - 4;
    CHECK_OK(event_log_append(k.log, &r, NULL));
    r.payload.len++;
    CHECK_ERR(event_log_append(k.log, &r, NULL), ERR_TOO_LARGE, "limit is 3988");
    r = kit_record(STR(""));
    r.kind = STR("");
    CHECK_ERR(event_log_append(k.log, &r, NULL), ERR_INVALID, "kind");
    r.kind = str_n(big, EVENT_KIND_MAX + 1);
    CHECK_ERR(event_log_append(k.log, &r, NULL), ERR_INVALID, "kind");
    r.kind = STR("k");
    r.id = str_n(big, EVENT_ID_MAX + 1);
    CHECK_ERR(event_log_append(k.log, &r, NULL), ERR_INVALID, "id");
    kit_turns(&k, 2);
    CHECK_INT(kit_verify(&k).records, 1);
    kit_done(&k);
}

TEST(a_record_of_the_largest_size_survives)
{
    struct kit k;
    size_t n = EVENT_RECORD_MAX - 104 - 4;
    char *big = malloc(n);
    struct event_record r = kit_record(str_n(big, n + 1));

    memset(big, 'x', n);
    kit_init(&k);
    kit_open(&k);
    CHECK_ERR(event_log_append(k.log, &r, NULL), ERR_TOO_LARGE, "limit");
    kit_append(&k, str_n(big, n));
    kit_append(&k, STR("small"));
    kit_close(&k);
    k.options.check_all = true;
    kit_open(&k);
    own_done(buf) got;
    buf_init(&got, 1000);
    CHECK_HAS(kit_read(&k, &(struct event_query){.descending = true}, &got), "2:small 1:xxxxx");
    kit_done(&k);
    free(big);
}

TEST(too_much_waiting_for_the_disk_is_busy_until_it_is_written)
{
    struct kit k;
    static char bytes[1000];
    struct event_record r = kit_record(str_n(bytes, sizeof bytes));
    struct kit_wait w;

    kit_init(&k);
    k.options.pending_bytes = 4000;
    kit_open(&k);
    for (unsigned i = 0; i < 3; i++)
        kit_push(&k, &w, r.payload), event_append_cancel(&w.a);
    CHECK_ERR(event_log_append(k.log, &r, NULL), ERR_BUSY, "waiting for the disk");
    kit_turns(&k, 2);
    CHECK_OK(event_log_append(k.log, &r, NULL));
    kit_done(&k);
}

struct chain_of_appends {
    struct event_append a;
    struct kit *k;
    unsigned left;
};

static void on_append_again(struct event_append *a, const struct err *why)
{
    struct chain_of_appends *c = container_of(a, struct chain_of_appends, a);
    struct event_record r = kit_record(STR("again"));

    CHECK(why == NULL);
    if (c->left-- > 0)
        CHECK_OK(event_log_append(c->k->log, &r, a));
}

TEST(done_may_append_with_the_same_object)
{
    struct kit k;
    struct chain_of_appends c = {.a.done = on_append_again, .k = &k, .left = 9};
    struct event_record r = kit_record(STR("first"));

    kit_init(&k);
    kit_open(&k);
    CHECK_OK(event_log_append(k.log, &r, &c.a));
    kit_turns(&k, 20);
    CHECK_INT(kit_verify(&k).records, 10);
    kit_done(&k);
}

static void on_done_free_log(struct event_append *a, const struct err *why)
{
    struct chain_of_appends *c = container_of(a, struct chain_of_appends, a);
    struct event_record r = kit_record(STR("late"));

    CHECK(why == NULL);
    event_log_free(c->k->log);
    CHECK_ERR(event_log_append(c->k->log, &r, NULL), ERR_CLOSED, "closed");
    c->k->log = NULL;
}

TEST(done_may_free_the_log_and_the_rest_is_still_told)
{
    struct kit k;
    struct chain_of_appends c = {.a.done = on_done_free_log, .k = &k};
    struct event_record r = kit_record(STR("first"));
    struct kit_wait after, cancelled;

    kit_init(&k);
    kit_open(&k);
    CHECK_OK(event_log_append(k.log, &r, &c.a));
    kit_push(&k, &cancelled, STR("x"));
    kit_push(&k, &after, STR("y"));
    event_append_cancel(&cancelled.a);
    event_append_cancel(&cancelled.a);
    kit_turns(&k, 3);
    CHECK_INT(after.calls, 1);
    CHECK(!after.failed);
    CHECK_INT(cancelled.calls, 0);
    CHECK_INT(kit_verify(&k).records, 3);
    kit_done(&k);
}

TEST(freeing_commits_what_was_appended)
{
    for (int threads = 0; threads < 2; threads++) {
        struct kit k;
        struct kit_wait a, b;
        kit_init(&k);
        k.options.inline_sync = !threads;
        kit_open(&k);
        uint64_t before = kit_verify(&k).records;
        kit_push(&k, &a, STR("a"));
        kit_turns(&k, 1); /* with threads: in flight */
        kit_push(&k, &b, STR("b"));
        event_log_free(k.log);
        k.log = NULL;
        int dir = dup(k.dir);
        kit_done(&k);
        CHECK(a.calls == 1 && b.calls == 1 && !a.failed && !b.failed);
        k.dir = dir;
        CHECK_INT(kit_verify(&k).records, before + 2);
        close(dir);
    }
}

TEST(a_log_is_open_once)
{
    struct kit k;
    struct event_log *second = NULL;

    kit_init(&k);
    kit_open(&k);
    CHECK_ERR(event_log_open(k.loop, k.dir, STR("log"), NULL, &second), ERR_CONFLICT, "elsewhere");
    kit_close(&k);
    kit_open(&k);
    kit_done(&k);
}

TEST(names_may_not_lead_anywhere_else)
{
    struct kit k;

    kit_init(&k);
    CHECK_ERR(event_log_open(k.loop, k.dir, STR("../log"), NULL, &k.log), ERR_INVALID, "name");
    CHECK_ERR(event_log_open(k.loop, k.dir, STR(""), NULL, &k.log), ERR_INVALID, "name");
    CHECK_ERR(event_log_open(k.loop, k.dir, STR("a\0b"), NULL, &k.log), ERR_INVALID, "NUL");
    CHECK(mkfifoat(k.dir, "fifo", 0600) == 0);
    CHECK_ERR(event_log_open(k.loop, k.dir, STR("fifo"), NULL, &k.log), ERR_INVALID, "regular");
    CHECK(symlinkat("/etc/passwd", k.dir, "link") == 0);
    struct err *e = event_log_open(k.loop, k.dir, STR("link"), NULL, &k.log);
    CHECK(e != NULL);
    err_free(e);
    k.options.must_exist = true;
    CHECK_ERR(event_log_open(k.loop, k.dir, STR("none"), &k.options, &k.log), ERR_NOT_FOUND,
              "none");
    kit_done(&k);
}

TEST(a_full_disk_fails_all_that_waits_and_the_log_goes_on)
{
    struct kit k;
    struct kit_wait w[3];

    log_setup(2, LOG_OFF, LOG_TEXT);
    kit_init(&k);
    kit_open(&k);
    kit_append(&k, STR("one"));
    for (unsigned i = 0; i < 3; i++)
        kit_push(&k, &w[i], STR("lost"));
    fault_at(1); /* the write */
    kit_turns(&k, 2);
    CHECK(fault_fired());
    fault_at(0);
    for (unsigned i = 0; i < 3; i++) {
        CHECK(w[i].calls == 1 && w[i].failed);
        CHECK_HAS(str_of(w[i].text), "No space left");
    }
    CHECK_INT(kit_append(&k, STR("two")), 2);
    CHECK_INT(kit_verify(&k).state, EVENT_OK);
    CHECK_INT(kit_verify(&k).records, 2);
    kit_done(&k);
}

TEST(after_a_failed_sync_nothing_is_appended_until_the_log_is_opened_again)
{
    struct kit k;
    struct kit_wait w;
    struct event_record r = kit_record(STR("no"));
    struct event_info info;
    own_done(buf) got;

    log_setup(2, LOG_OFF, LOG_TEXT);
    buf_init(&got, 1000);
    kit_init(&k);
    kit_open(&k);
    kit_append(&k, STR("one"));
    kit_push(&k, &w, STR("lost"));
    fault_at(2); /* the write passes, the sync does not */
    kit_turns(&k, 2);
    CHECK(fault_fired());
    fault_at(0);
    CHECK(w.calls == 1 && w.failed);
    CHECK_INT(w.code, ERR_IO);
    CHECK_ERR(event_log_append(k.log, &r, NULL), ERR_IO, "opened again");
    event_log_info(k.log, &info);
    CHECK(info.poisoned);
    CHECK_INT(info.last_seq, 1);
    CHECK_STR(kit_read(&k, &(struct event_query){0}, &got), "1:one ");
    kit_close(&k);
    kit_open(&k);
    CHECK_STR(kit_read(&k, &(struct event_query){0}, &got), "1:one ");
    CHECK_INT(kit_append(&k, STR("two")), 2);
    kit_done(&k);
}

TEST(an_index_that_cannot_be_written_does_not_stop_the_log)
{
    struct kit k;
    own_done(buf) got;

    log_setup(2, LOG_OFF, LOG_TEXT);
    buf_init(&got, 1000);
    kit_init(&k);
    kit_open(&k);
    kit_append(&k, STR("one"));
    struct kit_wait w;
    kit_push(&k, &w, STR("two"));
    fault_at(3); /* the entry; the loop tries once more and succeeds */
    kit_turns(&k, 2);
    CHECK(fault_fired());
    fault_at(0);
    CHECK(w.calls == 1 && !w.failed);
    CHECK_STR(kit_read(&k, &(struct event_query){.descending = true}, &got), "2:two 1:one ");
    CHECK_INT(kit_verify(&k).index, EVENT_INDEX_OK);
    kit_done(&k);
}

TEST(a_sync_that_fails_on_the_thread_poisons_too)
{
    struct kit k;
    struct kit_wait w;
    struct event_record r = kit_record(STR("no"));

    log_setup(2, LOG_OFF, LOG_TEXT);
    kit_init(&k);
    k.options.inline_sync = false;
    kit_open(&k);
    kit_append(&k, STR("one"));
    kit_push(&k, &w, STR("lost"));
    fault_at(2);
    while (!w.calls)
        CHECK_OK(loop_turn(k.loop, 1000));
    CHECK(fault_fired());
    fault_at(0);
    CHECK(w.failed);
    CHECK_ERR(event_log_append(k.log, &r, NULL), ERR_IO, "opened again");
    kit_done(&k);
}

TEST(without_a_thread_to_be_had_the_loop_syncs_itself)
{
    struct kit k;
    struct kit_wait w;

    kit_init(&k);
    k.options.inline_sync = false;
    kit_open(&k);
    kit_push(&k, &w, STR("one"));
    fault_at(1); /* memory for the workers */
    kit_turns(&k, 1);
    CHECK(fault_fired());
    fault_at(0);
    CHECK(w.calls == 1 && !w.failed);
    kit_done(&k);
}

TEST(the_clock_of_the_loop_stamps_what_has_no_time)
{
    struct kit k;
    struct event_record r = {.kind = STR("k")};
    uint64_t before = clock_wall_ns(&clock_system);
    struct event_filter f = {.from_ns = before, .until_ns = before + 60 * NS_PER_S};
    own_done(buf) got = {.limit_bytes = 1000};

    kit_init(&k);
    kit_open(&k);
    CHECK_OK(event_log_append(k.log, &r, NULL));
    kit_turns(&k, 2);
    CHECK_STR(kit_read(&k, &(struct event_query){.filter = &f}, &got), "1: ");
    kit_done(&k);
}

/* The kernel takes part of the batch and then refuses, as a disk does that fills up. */
static void stop_half_way(bool at_once)
{
    struct kit k;
    struct kit_wait w[20];
    struct rlimit limit, tight;
    static char bytes[1000];

    log_setup(2, LOG_OFF, LOG_TEXT);
    signal(SIGXFSZ, SIG_IGN);
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    kit_init(&k);
    k.options.write_at_once = at_once;
    kit_open(&k);
    kit_append(&k, STR("one"));
    tight = limit;
    tight.rlim_cur = 7000;
    CHECK(setrlimit(RLIMIT_FSIZE, &tight) == 0);
    for (unsigned i = 0; i < 20; i++)
        kit_push(&k, &w[i], str_n(bytes, sizeof bytes));
    kit_turns(&k, 2);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    for (unsigned i = 0; i < 20; i++)
        CHECK(w[i].calls == 1 && w[i].failed);
    CHECK_INT(kit_verify(&k).state, EVENT_OK);
    CHECK_INT(kit_verify(&k).records, 1);
    CHECK_INT(kit_append(&k, STR("two")), 2);
    kit_close(&k);
    kit_open(&k);
    CHECK_INT(kit_append(&k, STR("three")), 3);
    kit_done(&k);
}

TEST(a_write_that_stops_half_way_is_undone)
{
    stop_half_way(false);
}

TEST(a_write_ahead_that_stops_half_way_is_undone)
{
    stop_half_way(true);
}
