// SPDX-License-Identifier: Apache-2.0
/* work_test.c — blocking calls on threads: results come back on the loop's own thread. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "loop/loop.h"
#include "test/test.h"

struct job {
    struct loop_work work;
    struct loop *loop;
    pthread_t ran_on, done_on;
    int gate; /* a descriptor that run() waits on; -1: none */
    int runs, dones;
    struct err *again; /* what asking for more in done() gave */
    bool asks_again;
    sigset_t mask;
};

static void run_job(struct loop_work *w)
{
    struct job *j = container_of(w, struct job, work);
    char c;

    j->ran_on = pthread_self();
    pthread_sigmask(SIG_BLOCK, NULL, &j->mask);
    if (j->gate >= 0 && read(j->gate, &c, 1) != 1)
        return;
    j->runs++;
}

static void job_done(struct loop_work *w)
{
    struct job *j = container_of(w, struct job, work);

    j->done_on = pthread_self();
    j->dones++;
    if (j->asks_again) {
        j->asks_again = false;
        j->again = loop_work(j->loop, &j->work, run_job, job_done);
    }
}

static struct loop *new_loop(void)
{
    struct loop *l;

    CHECK_OK(loop_new(&clock_system, &l));
    return l;
}

TEST(work_runs_on_a_thread_and_is_told_on_the_loop)
{
    own(loop) l = new_loop();
    struct job j = {.gate = -1};

    CHECK_OK(loop_work(l, &j.work, run_job, job_done));
    while (!j.dones)
        CHECK_OK(loop_turn(l, 10000));
    CHECK_INT(j.runs, 1);
    CHECK(!pthread_equal(j.ran_on, pthread_self()));
    CHECK(pthread_equal(j.done_on, pthread_self()));
    CHECK(sigismember(&j.mask, SIGTERM) == 1 && sigismember(&j.mask, SIGCHLD) == 1);
}

TEST(a_thousand_works_are_each_told_once)
{
    own(loop) l = new_loop();
    struct job *j = mem_new(1000 * sizeof *j);
    int done = 0;

    for (int i = 0; i < 1000; i++) {
        j[i].gate = -1;
        CHECK_OK(loop_work(l, &j[i].work, run_job, job_done));
    }
    while (done < 1000) {
        CHECK_OK(loop_turn(l, 10000));
        done = 0;
        for (int i = 0; i < 1000; i++)
            done += j[i].dones;
    }
    for (int i = 0; i < 1000; i++) {
        CHECK_INT(j[i].runs, 1);
        CHECK_INT(j[i].dones, 1);
    }
    free(j);
}

/* One thread is idle when two works come at once: the second must not queue up behind the first. */
TEST(a_work_that_blocks_does_not_hold_up_the_next_while_threads_are_free)
{
    own(loop) l = new_loop();
    struct job first = {.gate = -1}, stuck = {0}, quick = {.gate = -1};
    int gate[2];

    CHECK_INT(pipe2(gate, O_CLOEXEC), 0);
    CHECK_OK(loop_work(l, &first.work, run_job, job_done));
    while (!first.dones)
        CHECK_OK(loop_turn(l, 10000));
    CHECK_OK(loop_turn(l, 1)); /* likely, not surely, the thread waits again; right either way */
    stuck.gate = gate[0];
    CHECK_OK(loop_work(l, &stuck.work, run_job, job_done));
    CHECK_OK(loop_work(l, &quick.work, run_job, job_done));
    while (!quick.dones)
        CHECK_OK(loop_turn(l, -1));
    CHECK_INT(stuck.dones, 0);
    CHECK_INT(write(gate[1], "x", 1), 1);
    while (!stuck.dones)
        CHECK_OK(loop_turn(l, 10000));
    close(gate[0]);
    close(gate[1]);
}

TEST(freeing_the_loop_waits_for_work_and_tells_it)
{
    struct loop *l = new_loop();
    struct job j[20];

    for (int i = 0; i < 20; i++) {
        j[i] = (struct job){.gate = -1};
        CHECK_OK(loop_work(l, &j[i].work, run_job, job_done));
    }
    loop_free(l);
    for (int i = 0; i < 20; i++)
        CHECK_INT(j[i].dones, 1);
}

TEST(work_asked_for_while_the_loop_ends_is_refused)
{
    struct loop *l = new_loop();
    struct job j = {.gate = -1, .loop = l, .asks_again = true};

    CHECK_OK(loop_work(l, &j.work, run_job, job_done));
    loop_free(l);
    CHECK_INT(j.dones, 1);
    CHECK_ERR(j.again, ERR_CLOSED, "ending");
}

TEST(a_process_that_clones_may_not_have_threads)
{
    own(loop) l = new_loop();
    struct job j = {.gate = -1};

    loop_forbid_threads(l);
    CHECK_ERR(loop_work(l, &j.work, run_job, job_done), ERR_UNSUPPORTED, "threads");
}

TEST(work_without_memory_is_refused_and_works_the_next_time)
{
    own(loop) l = new_loop();
    struct job j = {.gate = -1};

    fault_at(1);
    struct err *e = loop_work(l, &j.work, run_job, job_done);
    fault_at(0);
    CHECK_ERR(e, ERR_NO_MEMORY, "memory");
    CHECK_OK(loop_work(l, &j.work, run_job, job_done));
    while (!j.dones)
        CHECK_OK(loop_turn(l, 10000));
}

static void *wake_it(void *loop)
{
    loop_wake(loop);
    return NULL;
}

TEST(a_thread_ends_a_turn_that_waits_without_end)
{
    own(loop) l = new_loop();
    pthread_t t;

    CHECK_INT(pthread_create(&t, NULL, wake_it, l), 0);
    CHECK_OK(loop_turn(l, -1));
    CHECK_INT(pthread_join(t, NULL), 0);
}
