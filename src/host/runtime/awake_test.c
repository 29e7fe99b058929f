// SPDX-License-Identifier: Apache-2.0
#include "host/runtime/awake.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "test/test.h"

/* What the device would have been told, as one number; -2: nothing more. */
static int told(int from)
{
    int32_t us;

    return read(from, &us, sizeof us) == (ssize_t)sizeof us ? us : -2;
}

struct pair {
    struct awake a;
    struct loop *loop;
    int from;
};

static void pair_open(struct pair *p)
{
    int fds[2];

    CHECK_INT(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    p->from = fds[0];
    CHECK_OK(loop_new(&clock_system, &p->loop));
    p->a = (struct awake){.loop = p->loop, .fd = fds[1]};
}

static void pair_close(struct pair *p)
{
    awake_close(&p->a);
    loop_free(p->loop);
    if (p->from >= 0)
        close(p->from);
}

TEST(processors_are_kept_awake_once_however_many_start)
{
    struct pair p;

    pair_open(&p);
    awake_end(&p.a);
    awake_begin(&p.a);
    awake_begin(&p.a);
    CHECK_INT(told(p.from), 0);
    CHECK_INT(told(p.from), -2);
    awake_end(&p.a);
    awake_end(&p.a);
    CHECK_INT(told(p.from), -1);
    CHECK_INT(told(p.from), -2);
    awake_begin(&p.a);
    CHECK_INT(told(p.from), 0);
    pair_close(&p);
}

TEST(processors_may_sleep_again_though_nobody_says_so)
{
    struct pair p;

    pair_open(&p);
    awake_begin(&p.a);
    CHECK_INT(told(p.from), 0);
    while (p.a.held)
        CHECK_OK(loop_turn(p.loop, 10000));
    CHECK_INT(told(p.from), -1);
    pair_close(&p);
}

TEST(without_the_device_processors_sleep_when_they_like)
{
    struct pair p;

    pair_open(&p);
    close(p.a.fd);
    p.a.fd = -1;
    awake_begin(&p.a);
    CHECK(!p.a.held);
    awake_end(&p.a);
    pair_close(&p);
}

TEST(a_device_that_fails_is_let_go)
{
    struct pair p;

    pair_open(&p);
    awake_begin(&p.a);
    close(p.from);
    signal(SIGPIPE, SIG_IGN);
    awake_end(&p.a);
    CHECK_INT(p.a.fd, -1);
    awake_begin(&p.a);
    CHECK(!p.a.held);
    awake_begin(NULL);
    awake_end(NULL);
    p.from = -1;
    pair_close(&p);
}
