// SPDX-License-Identifier: Apache-2.0
/* timer_test.c — timers on a clock that stands still until it is moved. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "loop/loop.h"
#include "test/test.h"

struct fake {
    struct clock clock;
    uint64_t now_ns;
    struct loop *loop;
};

static uint64_t fake_now(const struct clock *c)
{
    return container_of(c, struct fake, clock)->now_ns;
}

static void fake_init(struct fake *f)
{
    *f = (struct fake){.clock = {fake_now, fake_now}, .now_ns = NS_PER_S};
    CHECK_OK(loop_new(&f->clock, &f->loop));
}

static void pass(struct fake *f, uint64_t ms)
{
    f->now_ns += ms * NS_PER_MS;
    CHECK_OK(loop_turn(f->loop, 0));
}

struct mark {
    struct loop_timer timer;
    struct loop *loop;
    struct mark *stops, *starts;
    uint64_t starts_ms, due_ns;
    int calls, order;
};

static int fired; /* of all marks, in this test's own process */

static void on_mark(struct loop_timer *t)
{
    struct mark *m = container_of(t, struct mark, timer);

    m->calls++;
    m->order = ++fired;
    if (m->stops)
        loop_timer_stop(&m->stops->timer);
    if (m->starts)
        loop_timer_start(m->loop, &m->starts->timer, m->starts_ms, on_mark);
}

TEST(timers_run_in_the_order_they_are_due)
{
    struct fake f;
    struct mark m[5] = {0};
    static const int ms[] = {50, 10, 40, 20, 30};

    fake_init(&f);
    for (int i = 0; i < 5; i++)
        loop_timer_start(f.loop, &m[i].timer, (uint64_t)ms[i], on_mark);
    pass(&f, 9);
    CHECK_INT(fired, 0);
    pass(&f, 91);
    for (int i = 0; i < 5; i++)
        CHECK_INT(m[i].order, ms[i] / 10);
    pass(&f, 1000);
    CHECK_INT(fired, 5);
    loop_free(f.loop);
}

TEST(a_timer_moved_later_or_earlier_runs_once_at_its_last_time)
{
    struct fake f;
    struct mark later = {0}, earlier = {0};

    fake_init(&f);
    loop_timer_start(f.loop, &later.timer, 10, on_mark);
    loop_timer_start(f.loop, &earlier.timer, 100, on_mark);
    loop_timer_start(f.loop, &later.timer, 50, on_mark);
    loop_timer_start(f.loop, &later.timer, 30, on_mark); /* between its place and its time */
    loop_timer_start(f.loop, &earlier.timer, 5, on_mark);
    pass(&f, 10);
    CHECK_INT(earlier.calls, 1);
    CHECK_INT(later.calls, 0);
    pass(&f, 19);
    CHECK_INT(later.calls, 0);
    pass(&f, 1);
    CHECK_INT(later.calls, 1);
    pass(&f, 200);
    CHECK_INT(fired, 2);
    loop_free(f.loop);
}

TEST(a_callback_may_stop_a_timer_that_is_due_in_the_same_turn)
{
    struct fake f;
    struct mark a = {0}, b = {0};

    fake_init(&f);
    a.stops = &b;
    loop_timer_start(f.loop, &a.timer, 10, on_mark);
    loop_timer_start(f.loop, &b.timer, 11, on_mark);
    pass(&f, 20);
    CHECK_INT(a.calls, 1);
    CHECK_INT(b.calls, 0);
    loop_timer_stop(&a.timer);
    loop_timer_stop(&b.timer);
    loop_free(f.loop);
}

TEST(a_timer_of_no_time_started_by_a_timer_waits_for_the_next_turn)
{
    struct fake f;
    struct mark a = {0};

    fake_init(&f);
    a.loop = f.loop;
    a.starts = &a;
    loop_timer_start(f.loop, &a.timer, 0, on_mark);
    pass(&f, 0);
    CHECK_INT(a.calls, 1); /* not for ever */
    pass(&f, 1);
    CHECK_INT(a.calls, 2);
    loop_free(f.loop);
}

TEST(a_time_beyond_all_times_never_comes)
{
    struct fake f;
    struct mark a = {0}, b = {0};

    fake_init(&f);
    loop_timer_start(f.loop, &a.timer, UINT64_MAX, on_mark);
    loop_timer_start(f.loop, &b.timer, UINT64_MAX / NS_PER_MS, on_mark);
    pass(&f, 1000000);
    CHECK_INT(fired, 0);
    CHECK_OK(loop_turn(f.loop, 1));
    CHECK_INT(fired, 0);
    loop_free(f.loop);
}

TEST(a_real_timer_ends_a_turn_that_waits_without_end)
{
    struct loop *l;
    struct mark a = {0}, b = {0};

    CHECK_OK(loop_new(&clock_system, &l));
    loop_timer_start(l, &b.timer, 100000, on_mark);
    loop_timer_start(l, &a.timer, 2, on_mark);
    while (!a.calls)
        CHECK_OK(loop_turn(l, -1));
    loop_timer_start(l, &a.timer, 2, on_mark); /* and it is armed anew */
    while (a.calls < 2)
        CHECK_OK(loop_turn(l, -1));
    CHECK_INT(b.calls, 0);
    loop_free(l);
}

TEST(a_timer_comes_also_when_the_timerfd_cannot_be_set)
{
    struct loop *l;
    struct mark a = {0}, b = {0};

    CHECK_OK(loop_new(&clock_system, &l));
    loop_timer_start(l, &a.timer, 2, on_mark);
    fault_at(1);
    for (int i = 0; i < 3 && !a.calls; i++)
        CHECK_OK(loop_turn(l, -1));
    CHECK(fault_fired());
    CHECK_INT(a.calls, 1);
    loop_timer_start(l, &b.timer, 1ull << 40, on_mark); /* more ms than an int holds */
    fault_at(1);
    CHECK_OK(loop_turn(l, 1));
    CHECK(fault_fired());
    CHECK_INT(b.calls, 0);
    loop_free(l);
}

TEST(a_hundred_thousand_idle_timers_cost_nothing_per_turn)
{
    struct loop *l;
    struct mark *m = mem_new(100000 * sizeof *m);

    CHECK_OK(loop_new(&clock_system, &l));
    for (int i = 0; i < 100000; i++)
        loop_timer_start(l, &m[i].timer, 3600000 + (uint64_t)(i * 7919 % 100000), on_mark);
    CHECK_OK(loop_turn(l, 1)); /* arms the timerfd, once */
    fault_at(UINT32_MAX);
    for (int i = 0; i < 20; i++)
        CHECK_OK(loop_turn(l, 1));
    CHECK_INT(fault_calls(), 0); /* no memory, no timerfd_settime */
    for (int i = 0; i < 100000; i++)
        loop_timer_start(l, &m[i].timer, 7200000, on_mark); /* deadlines renewed */
    CHECK_OK(loop_turn(l, 1));
    CHECK_INT(fault_calls(), 0);
    fault_at(0);
    CHECK_INT(fired, 0);
    loop_free(l);
    free(m);
}

/* --- against a model: an array that is searched from end to end --- */

#define MODEL_TIMERS 64

static void model_check(struct mark *m, uint64_t now_ns)
{
    for (int i = 0; i < MODEL_TIMERS; i++) {
        bool due = m[i].due_ns && m[i].due_ns <= now_ns;
        CHECK_INT(m[i].calls, due);
        CHECK((m[i].timer.loop != NULL) == (m[i].due_ns > now_ns));
        if (due)
            for (int k = 0; k < MODEL_TIMERS; k++) /* who was due before me ran before me */
                if (m[k].calls && m[k].due_ns < m[i].due_ns)
                    CHECK(m[k].order < m[i].order);
    }
    for (int i = 0; i < MODEL_TIMERS; i++) {
        if (m[i].calls)
            m[i].due_ns = 0;
        m[i].calls = 0;
    }
}

TEST_LIMIT(random_operations_agree_with_a_sorted_model, 120)
{
    struct fake f;
    struct mark m[MODEL_TIMERS] = {0};
    struct rng_fixed fixed;
    struct rng *r = rng_fixed_init(&fixed, 20261115);

    fake_init(&f);
    for (int step = 0; step < 100000; step++) {
        struct mark *one = &m[rng_below(r, MODEL_TIMERS)];
        uint64_t what = rng_below(r, 10), ms = rng_below(r, 40) + 1;
        if (what < 6) {
            loop_timer_start(f.loop, &one->timer, ms, on_mark);
            one->due_ns = f.now_ns + ms * NS_PER_MS;
        } else if (what < 8) {
            loop_timer_stop(&one->timer);
            one->due_ns = 0;
        } else {
            pass(&f, rng_below(r, 6));
            model_check(m, f.now_ns);
        }
    }
    pass(&f, 1000);
    model_check(m, f.now_ns);
    loop_free(f.loop);
}
