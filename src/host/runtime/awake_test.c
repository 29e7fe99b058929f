// SPDX-License-Identifier: Apache-2.0
#include "host/runtime/awake.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "test/test.h"

#define SO_LONG_MS 20

struct pair {
    struct awake a;
    struct loop *loop;
    int from;
};

static void pair_open(struct pair *p)
{
    int fds[2];

    signal(SIGPIPE, SIG_IGN);
    CHECK_INT(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    p->from = fds[0];
    CHECK_OK(loop_new(&clock_system, &p->loop));
    p->a = (struct awake){.loop = p->loop, .fd = fds[1], .ms = SO_LONG_MS};
}

static void pair_close(struct pair *p)
{
    awake_close(&p->a);
    loop_free(p->loop);
    if (p->from >= 0)
        close(p->from);
}

/* What the device would have been told, as one number; -2: nothing more. */
static int told(const struct pair *p)
{
    int32_t us;

    return read(p->from, &us, sizeof us) == (ssize_t)sizeof us ? us : -2;
}

static void wait_until_over(struct pair *p)
{
    while (p->a.held)
        CHECK_OK(loop_turn(p->loop, 10000));
}

TEST(processors_are_kept_awake_once_however_many_start)
{
    struct pair p;

    pair_open(&p);
    awake_hold(&p.a);
    awake_hold(&p.a);
    CHECK_INT(told(&p), 0);
    CHECK_INT(told(&p), -2);
    wait_until_over(&p);
    CHECK_INT(told(&p), -1);
    CHECK_INT(told(&p), -2);
    awake_hold(&p.a);
    CHECK_INT(told(&p), 0);
    pair_close(&p);
}

TEST(processors_stay_awake_from_the_last_start_on)
{
    struct pair p;

    pair_open(&p);
    awake_hold(&p.a);
    uint64_t first = p.a.over.when_ns;
    CHECK_OK(loop_turn(p.loop, 1));
    awake_hold(&p.a);
    CHECK(p.a.over.when_ns > first);
    pair_close(&p);
}

TEST(without_the_device_processors_sleep_when_they_like)
{
    struct awake none = {.fd = -1, .ms = SO_LONG_MS};

    awake_hold(&none);
    CHECK(!none.held);
    awake_hold(NULL);
    awake_close(&none);
}

TEST(processors_sleep_when_they_like_if_the_setting_says_so)
{
    struct pair p;

    pair_open(&p);
    p.a.ms = 0;
    awake_hold(&p.a);
    CHECK(!p.a.held);
    CHECK_INT(told(&p), -2);
    pair_close(&p);
}

TEST(a_device_that_fails_is_let_go)
{
    struct pair p;

    pair_open(&p);
    awake_hold(&p.a);
    close(p.from);
    p.from = -1;
    wait_until_over(&p);
    CHECK_INT(p.a.fd, -1);
    awake_hold(&p.a);
    CHECK(!p.a.held);
    pair_close(&p);
}
