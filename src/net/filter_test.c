// SPDX-License-Identifier: Apache-2.0
/* filter_test.c — streams through a filter that must write before it reads and read before it
 * writes, as a handshake does at a bad moment. */
#include "net/stream.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test/test.h"

struct shy {
    unsigned read_refusals, write_refusals, shutdown_refusals;
    bool freed;
};

struct owner {
    struct buf got;
    struct err *why;
};

static ssize_t refuse(unsigned *left, uint32_t want, uint32_t *ret_want)
{
    --*left;
    *ret_want = want;
    errno = EAGAIN;
    return -1;
}

static ssize_t shy_read(void *state, int fd, void *p, size_t n, uint32_t *ret_want)
{
    struct shy *shy = state;

    if (shy->read_refusals)
        return refuse(&shy->read_refusals, EPOLLOUT, ret_want);
    *ret_want = EPOLLIN;
    return recv(fd, p, n < 3 ? n : 3, MSG_DONTWAIT);
}

static ssize_t shy_write(void *state, int fd, const void *p, size_t n, uint32_t *ret_want)
{
    struct shy *shy = state;

    if (shy->write_refusals)
        return refuse(&shy->write_refusals, EPOLLIN, ret_want);
    *ret_want = EPOLLOUT;
    return send(fd, p, n < 5 ? n : 5, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int shy_shutdown(void *state, int fd, uint32_t *ret_want)
{
    struct shy *shy = state;

    if (shy->shutdown_refusals)
        return (int)refuse(&shy->shutdown_refusals, EPOLLOUT, ret_want);
    CHECK_INT(send(fd, "bye", 3, MSG_NOSIGNAL), 3);
    return 0;
}

static void shy_free(void *state)
{
    ((struct shy *)state)->freed = true;
}

static fallible shy_why(void *state)
{
    (void)state;
    return err_new(ERR_UPSTREAM, "shy");
}

static const struct stream_filter shy_filter = {shy_read, shy_write, shy_shutdown, shy_why,
                                                shy_free};

static ssize_t broken_read(void *state, int fd, void *p, size_t n, uint32_t *ret_want)
{
    (void)state, (void)fd, (void)p, (void)n, (void)ret_want;
    errno = EPROTO;
    return -1;
}

static const struct stream_filter broken_filter = {broken_read, shy_write, shy_shutdown, shy_why,
                                                   shy_free};

static size_t on_data(struct stream *s, struct str data)
{
    struct owner *o = stream_owner(s);

    buf_add(&o->got, data);
    return data.len;
}

static void on_error(struct stream *s, struct err *why)
{
    struct owner *o = stream_owner(s);

    o->why = why;
    stream_close(s);
}

static const struct stream_events events = {.on_data = on_data, .on_error = on_error};

struct rig {
    struct loop *loop;
    struct net *net;
    struct stream *stream;
    struct owner owner;
    struct shy shy;
    int peer;
};

static void rig_open(struct rig *r, const struct stream_filter *filter)
{
    int pair[2];

    CHECK_OK(loop_new(&clock_system, &r->loop));
    CHECK_OK(net_new(r->loop, &r->net));
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    r->peer = pair[1];
    buf_init(&r->owner.got, 1000);
    CHECK_OK(stream_new(r->net, pair[0], &events, &r->owner, &r->stream));
    stream_set_filter(r->stream, filter, &r->shy);
}

static void rig_turn(struct rig *r)
{
    for (int i = 0; i < 10; i++)
        CHECK_OK(loop_turn(r->loop, 1));
}

static void rig_close(struct rig *r)
{
    close(r->peer);
    rig_turn(r);
    CHECK(r->shy.freed);
    buf_done(&r->owner.got);
    loop_free(r->loop);
    net_free(r->net);
}

TEST(a_filter_may_write_before_it_reads)
{
    struct rig r = {.shy = {.read_refusals = 2}};

    rig_open(&r, &shy_filter);
    CHECK_INT(write(r.peer, "abcdefgh", 8), 8);
    rig_turn(&r);
    CHECK_STR(buf_str(&r.owner.got), "abcdefgh");
    stream_close(r.stream);
    rig_close(&r);
}

TEST(a_filter_may_read_before_it_writes)
{
    struct rig r = {.shy = {.write_refusals = 1}};
    char text[32];

    rig_open(&r, &shy_filter);
    stream_pause(r.stream);
    stream_write(r.stream, STR("0123456789"));
    rig_turn(&r);
    CHECK_INT(poll(&(struct pollfd){r.peer, POLLIN, 0}, 1, 0), 0);
    CHECK_INT(write(r.peer, "x", 1), 1);
    rig_turn(&r);
    CHECK_STR(str_n(text, (size_t)read(r.peer, text, sizeof text)), "0123456789");
    CHECK_INT(r.owner.got.len, 0);
    stream_close(r.stream);
    rig_close(&r);
}

TEST(the_goodbye_of_a_filter_waits_for_room)
{
    struct rig r = {.shy = {.shutdown_refusals = 2}};
    char text[32];

    rig_open(&r, &shy_filter);
    stream_write(r.stream, STR("last "));
    stream_close_when_sent(r.stream);
    rig_turn(&r);
    CHECK_STR(str_n(text, (size_t)read(r.peer, text, sizeof text)), "last bye");
    CHECK_INT(read(r.peer, text, sizeof text), 0);
    rig_close(&r);
}

TEST(a_filter_tells_why_it_broke)
{
    struct rig r = {0};

    rig_open(&r, &broken_filter);
    CHECK_INT(write(r.peer, "x", 1), 1);
    rig_turn(&r);
    CHECK_ERR(r.owner.why, ERR_UPSTREAM, "shy");
    rig_close(&r);
}
