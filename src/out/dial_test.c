// SPDX-License-Identifier: Apache-2.0
/* dial_test.c — several addresses: the first that answers is taken. */
#include "out/dial.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/loop.h"
#include "net/listen.h"
#include "net/stream.h"
#include "out/resolve.h"
#include "test/test.h"

struct dialed {
    bool done;
    struct err *error;
};

static void on_done(void *owner, struct err *e, struct stream *s)
{
    struct dialed *d = owner;

    *d = (struct dialed){.done = true, .error = e};
    stream_close(s);
}

static int listener(struct resolve_addrs *addrs)
{
    int fd;

    CHECK_OK(listen_open(STR("127.0.0.1:0"), &fd));
    addrs->at[addrs->count].len = sizeof addrs->at[0].addr;
    CHECK(getsockname(fd, (struct sockaddr *)&addrs->at[addrs->count].addr,
                      &addrs->at[addrs->count].len) == 0);
    addrs->count++;
    return fd;
}

/* Who asks there is refused. */
static void add_nobody(struct resolve_addrs *addrs)
{
    size_t i = addrs->count++;

    CHECK(addr_numeric(STR("127.0.0.1"), (uint16_t)test_free_port(), &addrs->at[i].addr,
                       &addrs->at[i].len));
}

static struct dialed run(const struct resolve_addrs *addrs, uint32_t timeout_ms)
{
    own(loop) loop = NULL;
    own(net) net = NULL;
    struct dialed got = {0};
    struct dial *d;

    CHECK_OK(loop_new(&clock_system, &loop));
    CHECK_OK(net_new(loop, &net));
    struct dialer dialer = {.net = net};
    struct dial_target target = {.addrs = addrs, .timeout_ms = timeout_ms};
    struct err *e = dial_start(&dialer, &target, on_done, &got, &d);
    CHECK(!got.done);
    if (e)
        return (struct dialed){.done = true, .error = e};
    while (!got.done)
        CHECK_OK(loop_turn(loop, 1000));
    return got;
}

TEST(an_address_that_refuses_is_followed_by_the_next)
{
    struct resolve_addrs addrs = {0};

    add_nobody(&addrs);
    add_nobody(&addrs);
    own_fd fd = listener(&addrs);
    struct dialed got = run(&addrs, 60000);
    CHECK_OK(got.error);
    own_fd peer = accept(fd, NULL, NULL);
    CHECK(peer >= 0);
    addrs.count = 2;
    got = run(&addrs, 60000);
    CHECK_ERR(got.error, ERR_UPSTREAM, "connect: Connection refused");
    addrs.count = 0;
    got = run(&addrs, 1000);
    CHECK_ERR(got.error, ERR_INVALID, "no address");
}

TEST(an_address_that_does_not_answer_leaves_time_for_the_next)
{
    struct resolve_addrs addrs = {0};
    own_fd mute = listener(&addrs), fd = listener(&addrs);
    int fill[8];

    CHECK(listen(mute, 0) == 0); /* a full backlog of none: connects get no answer */
    for (size_t i = 0; i < ARRAY_LEN(fill); i++)
        CHECK_OK(connect_start(&addrs.at[0].addr, addrs.at[0].len, &fill[i]));
    struct dialed got = run(&addrs, 400);
    CHECK_OK(got.error);
    own_fd peer = accept(fd, NULL, NULL);
    CHECK(peer >= 0);
    addrs.count = 1;
    got = run(&addrs, 30);
    CHECK_ERR(got.error, ERR_TIMEOUT, "no answer for 30 ms");
    for (size_t i = 0; i < ARRAY_LEN(fill); i++)
        close(fill[i]);
}

TEST(a_cancelled_dial_leaves_nothing)
{
    struct resolve_addrs addrs = {0};
    own_fd fd = listener(&addrs);
    unsigned fds = test_open_fds();
    own(loop) loop = NULL;
    own(net) net = NULL;
    struct dialed got = {0};
    struct dial *d;

    CHECK_OK(loop_new(&clock_system, &loop));
    CHECK_OK(net_new(loop, &net));
    struct dialer dialer = {.net = net};
    struct dial_target target = {.addrs = &addrs, .timeout_ms = 1000};
    CHECK_OK(dial_start(&dialer, &target, on_done, &got, &d));
    dial_cancel(d);
    CHECK_OK(loop_turn(loop, 0));
    net_free(take(&net));
    loop_free(take(&loop));
    CHECK(!got.done);
    CHECK_INT(test_open_fds(), fds);
}
