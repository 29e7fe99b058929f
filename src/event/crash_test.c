// SPDX-License-Identifier: Apache-2.0
/* A child appends and tells each acknowledgement over a pipe; it is killed at random moments. */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/log.h"
#include "base/rng.h"
#include "test/event_kit.h"

#define OUTSTANDING 16
#define ROUNDS      50

struct writer {
    struct event_append a;
    struct kit *k;
    int tell;
};

static struct event_record record_of(uint64_t seq, char *bytes)
{
    size_t n = 8 + (size_t)(seq * 7919 % 3000);

    memset(bytes, 'a' + (int)(seq % 26), n);
    memcpy(bytes, &seq, sizeof seq);
    return kit_record(str_n(bytes, n));
}

static void append_next(struct writer *w)
{
    struct event_info info;
    char bytes[4096];

    event_log_info(w->k->log, &info);
    struct event_record r = record_of(info.next_seq, bytes);
    CHECK_OK(event_log_append(w->k->log, &r, &w->a));
}

static void on_done(struct event_append *a, const struct err *why)
{
    struct writer *w = container_of(a, struct writer, a);

    CHECK(why == NULL);
    CHECK_INT(write(w->tell, &a->seq, sizeof a->seq), sizeof a->seq);
    append_next(w);
}

static _Noreturn void child(int tell, bool threads)
{
    struct kit k;
    static struct writer w[OUTSTANDING];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int dir = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    k = (struct kit){.options = {.inline_sync = !threads}, .dir = dir};
    CHECK_OK(loop_new(&clock_system, &k.loop));
    kit_open(&k);
    for (unsigned i = 0; i < OUTSTANDING; i++) {
        w[i] = (struct writer){.a.done = on_done, .k = &k, .tell = tell};
        append_next(&w[i]);
    }
    err_free(loop_run(k.loop));
    _exit(1);
}

static bool check_record(const struct event_record *r, void *arg)
{
    char bytes[4096];
    struct event_record want = record_of(r->seq, bytes);

    (void)arg;
    CHECK_STR(r->payload, want.payload);
    return true;
}

/* Runs a child until it told `acks` acknowledgements and a little longer; gives the last told. */
static uint64_t one_life(uint64_t acks, int linger_us, bool threads)
{
    int p[2];
    uint64_t seq, last = 0, told = 0;

    CHECK(pipe2(p, O_CLOEXEC) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        close(p[0]);
        child(p[1], threads);
    }
    close(p[1]);
    while (told < acks && read(p[0], &seq, sizeof seq) == sizeof seq) {
        last = seq;
        told++;
    }
    CHECK_INT(told, acks);
    usleep((useconds_t)linger_us); /* the moment is meant to be random */
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    while (read(p[0], &seq, sizeof seq) == sizeof seq)
        last = seq;
    close(p[0]);
    return last;
}

TEST_LIMIT(killed_at_random_moments_loses_nothing_acknowledged, 180)
{
    struct kit k;
    uint64_t seed = rng_u64(rng_system()), total = 0;
    struct rng_fixed fixed;
    struct rng *rng = rng_fixed_init(&fixed, seed);

    printf("seed %llu\n", (unsigned long long)seed);
    kit_init(&k);
    CHECK(chdir(test_dir()) == 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t acked = one_life(rng_below(rng, 120), (int)rng_below(rng, 4000), round % 3 != 0);
        if (rng_below(rng, 8) == 0)
            unlinkat(k.dir, "log.idx", 0);
        kit_open(&k);
        struct event_info info;
        event_log_info(k.log, &info);
        if (info.last_seq < acked || info.repair.lost_records)
            FAIL("round %u: %llu acknowledged, %llu there", round, (unsigned long long)acked,
                 (unsigned long long)info.last_seq);
        CHECK(info.last_seq >= total);
        total = info.last_seq;
        CHECK_OK(event_log_read(k.log, &(struct event_query){0}, check_record, NULL, NULL));
        kit_close(&k);
        CHECK_INT(kit_verify(&k).state, EVENT_OK);
    }
    CHECK(total > ROUNDS);
    kit_done(&k);
}

/* No commit of its own turn comes to them: the loop never runs. */
TEST(killed_at_once_keeps_what_was_written_at_once)
{
    struct kit k;
    struct event_info info;
    int status;

    kit_init(&k);
    k.options = (struct event_options){.write_at_once = true, .delay_ms = 60000};
    CHECK(chdir(test_dir()) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        char bytes[4096];
        kit_open(&k);
        for (uint64_t seq = 1; seq <= 100; seq++) {
            struct event_record r = record_of(seq, bytes);
            CHECK_OK(event_log_append(k.log, &r, NULL));
        }
        kill(getpid(), SIGKILL);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    kit_open(&k);
    event_log_info(k.log, &info);
    CHECK_INT(info.last_seq, 100);
    CHECK_INT(info.repair.cut_bytes, 0);
    CHECK_OK(event_log_read(k.log, &(struct event_query){0}, check_record, NULL, NULL));
    kit_close(&k);
    kit_done(&k);
}
