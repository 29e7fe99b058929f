// SPDX-License-Identifier: Apache-2.0
/* A child writes rows and tells each acknowledgement over a pipe; it is killed at random moments.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/log.h"
#include "base/rng.h"
#include "test/store_kit.h"

#define OUTSTANDING 16
#define ROUNDS      50

struct writer {
    struct rows_kit *k;
    uint64_t *next, mine;
    int tell;
};

static void write_next(struct writer *w);

static void on_done(void *arg, struct err *e)
{
    struct writer *w = arg;

    CHECK_OK(e);
    CHECK_INT(write(w->tell, &w->mine, sizeof w->mine), sizeof w->mine);
    write_next(w);
}

static size_t text_of(uint64_t n, char out[4096])
{
    int head = snprintf(out, 4096, "%llu ", (unsigned long long)n);
    size_t len = (size_t)head + (size_t)(n * 7919 % 3000);

    memset(out + head, 'a' + (int)(n % 26), len - (size_t)head);
    return len;
}

static void write_next(struct writer *w)
{
    char name[32], text[4096];

    w->mine = (*w->next)++;
    snprintf(name, sizeof name, "%llu", (unsigned long long)w->mine);
    const struct store_field field = {"value", store_text(str_n(text, text_of(w->mine, text)))};
    store_put(w->k->store, rows_table, store_text(str_of(name)), &field, 1, on_done, w);
}

static _Noreturn void child(const char *path, uint64_t next, int tell, bool threads)
{
    struct rows_kit k = {0};
    struct writer w[OUTSTANDING];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(k.path, sizeof k.path, "%s", path);
    CHECK_OK(loop_new(&clock_system, &k.loop));
    if (!threads)
        loop_forbid_threads(k.loop);
    rows_open(&k);
    for (unsigned i = 0; i < OUTSTANDING; i++) {
        w[i] = (struct writer){.k = &k, .next = &next, .tell = tell};
        write_next(&w[i]);
    }
    err_free(loop_run(k.loop));
    _exit(1);
}

struct acked {
    bool *seen; /* by number */
    uint64_t most, count;
};

static void note(struct acked *a, uint64_t n)
{
    CHECK(n < a->most && !a->seen[n]);
    a->seen[n] = true;
    a->count++;
}

/* Runs a child until it told `acks` acknowledgements and a little longer. */
static void one_life(const char *path, uint64_t next, uint64_t acks, int linger_us, bool threads,
                     struct acked *acked)
{
    int p[2];
    uint64_t n, told = 0;

    CHECK(pipe2(p, O_CLOEXEC) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        close(p[0]);
        child(path, next, p[1], threads);
    }
    close(p[1]);
    for (; told < acks && read(p[0], &n, sizeof n) == sizeof n; told++)
        note(acked, n);
    CHECK_INT(told, acks);
    usleep((useconds_t)linger_us); /* the moment is meant to be random */
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    while (read(p[0], &n, sizeof n) == sizeof n)
        note(acked, n);
    close(p[0]);
}

struct look {
    struct rows_wait w; /* first: what is told of it */
    struct acked *acked;
    uint64_t found, next;
};

static fallible on_row(void *arg, const struct store_value *v)
{
    struct look *l = arg;
    uint64_t n;
    char text[4096];

    CHECK(str_to_u64(v[0].text, &n));
    CHECK_STR(v[1].text, str_n(text, text_of(n, text)));
    l->found += l->acked->seen[n];
    l->next = n >= l->next ? n + 1 : l->next;
    return NULL;
}

TEST_LIMIT(rows_told_to_be_on_disk_survive_kills_at_random_moments, 180)
{
    struct rows_kit k;
    struct rng_fixed fixed;
    uint64_t seed = rng_u64(rng_system());
    struct rng *rng = rng_fixed_init(&fixed, seed);
    struct acked acked = {.most = 1u << 22};
    uint64_t next = 0;

    printf("seed %llu\n", (unsigned long long)seed);
    log_setup(2, LOG_OFF, LOG_TEXT);
    acked.seen = calloc(acked.most, 1);
    rows_init(&k);
    for (unsigned round = 0; round < ROUNDS; round++) {
        one_life(k.path, next, rng_below(rng, 120), (int)rng_below(rng, 4000), round % 3 != 0,
                 &acked);
        struct look l = {.acked = &acked, .next = next};
        rows_open(&k);
        store_each(k.store, rows_table, on_row, rows_on_done, &l);
        rows_wait(&k, &l.w);
        CHECK_STR(l.w.text, "");
        if (l.found != acked.count)
            FAIL("round %u: %llu acknowledged, %llu there", round, (unsigned long long)acked.count,
                 (unsigned long long)l.found);
        next = l.next;
        rows_close(&k);
    }
    CHECK(acked.count > ROUNDS);
    rows_done(&k);
    free(acked.seen);
}
