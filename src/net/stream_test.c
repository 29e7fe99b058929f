// SPDX-License-Identifier: Apache-2.0
/* stream_test.c — bytes through a stream: queues, pauses, deadlines, ends. Filters have
 * filter_test.c. */
#include "net/stream.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test/test.h"

struct world {
    struct clock clock;
    uint64_t now_ns;
    struct loop *loop;
    struct net *net;
};

struct side { /* the owner of a stream, and the bare other end */
    struct stream *stream;
    int peer;
    struct buf got;
    size_t take_at_most; /* of each on_data; 0: all */
    int datas, eofs, hangups, drains, errors, closed;
    enum err_code why;
    bool pause, close_in_data, close_on_eof;
};

static uint64_t world_now(const struct clock *c)
{
    return container_of(c, struct world, clock)->now_ns;
}

static size_t on_data(struct stream *s, struct str data)
{
    struct side *o = stream_owner(s);
    size_t n = o->take_at_most && o->take_at_most < data.len ? o->take_at_most : data.len;

    o->datas++;
    buf_add(&o->got, str_first(data, n));
    if (o->pause)
        stream_pause(s);
    if (o->close_in_data)
        stream_close(s);
    return n;
}

static void on_drain(struct stream *s)
{
    ((struct side *)stream_owner(s))->drains++;
}

static void on_eof(struct stream *s)
{
    struct side *o = stream_owner(s);

    o->eofs++;
    if (o->close_on_eof)
        stream_close_when_sent(s);
}

static void on_hangup(struct stream *s)
{
    ((struct side *)stream_owner(s))->hangups++;
}

static void on_error(struct stream *s, struct err *why)
{
    struct side *o = stream_owner(s);

    o->errors++;
    o->why = err_code(why);
    err_free(why);
    stream_close(s);
}

static void on_closed(struct stream *s)
{
    ((struct side *)stream_owner(s))->closed++;
}

static const struct stream_events events = {
    .on_data = on_data,
    .on_drain = on_drain,
    .on_eof = on_eof,
    .on_hangup = on_hangup,
    .on_error = on_error,
    .on_closed = on_closed,
};

static void world_open(struct world *w)
{
    *w = (struct world){.clock = {world_now, world_now}, .now_ns = 1000 * NS_PER_S};
    CHECK_OK(loop_new(&w->clock, &w->loop));
    CHECK_OK(net_new(w->loop, &w->net));
}

static void world_close(struct world *w)
{
    net_free(w->net);
    loop_free(w->loop);
}

static void turns(struct world *w, int n)
{
    for (int i = 0; i < n; i++)
        CHECK_OK(loop_turn(w->loop, 0));
}

static void pass(struct world *w, uint64_t ms)
{
    w->now_ns += ms * NS_PER_MS;
    turns(w, 3);
}

static void side_open(struct world *w, struct side *o)
{
    int pair[2];

    *o = (struct side){0};
    buf_init(&o->got, 64u << 20);
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    o->peer = pair[1];
    CHECK_OK(stream_new(w->net, pair[0], &events, o, &o->stream));
}

static void side_close(struct side *o)
{
    close(o->peer);
    buf_done(&o->got);
}

static void peer_sends(struct side *o, const char *text)
{
    CHECK_INT(syscall(SYS_sendto, o->peer, text, strlen(text), 0, NULL, 0), (long)strlen(text));
}

/* What the peer can read now; "<end>" for the end, "<reset>" for an error. */
static const char *peer_reads(struct side *o)
{
    static char text[1000];
    ssize_t n = recv(o->peer, text, sizeof text - 1, MSG_DONTWAIT);

    if (n == 0)
        return "<end>";
    if (n < 0)
        return errno == EAGAIN ? "" : "<reset>";
    text[n] = '\0';
    return text;
}

TEST(output_is_queued_and_goes_out_in_one_call)
{
    struct world w;
    struct side o;

    world_open(&w);
    side_open(&w, &o);
    stream_write(o.stream, STR("a"));
    stream_write(o.stream, STR("b"));
    stream_write(o.stream, STR(""));
    CHECK_INT(stream_pending(o.stream), 2);
    CHECK_STR(peer_reads(&o), "");
    fault_at(UINT32_MAX);
    turns(&w, 3);
    CHECK_INT(fault_calls(), 1);
    fault_at(0);
    CHECK_STR(peer_reads(&o), "ab");
    CHECK_INT(stream_pending(o.stream), 0);
    side_close(&o);
    world_close(&w);
}

TEST(input_that_is_left_comes_again_with_more)
{
    struct world w;
    struct side o;

    world_open(&w);
    side_open(&w, &o);
    o.take_at_most = 2;
    peer_sends(&o, "abcdef");
    turns(&w, 3);
    CHECK_INT(o.datas, 1); /* not until more arrives */
    peer_sends(&o, "g");
    turns(&w, 3);
    CHECK_INT(o.datas, 2);
    stream_resume(o.stream); /* or it is asked for */
    turns(&w, 3);
    CHECK_INT(o.datas, 3);
    CHECK_STR(buf_str(&o.got), "abcdef");
    side_close(&o);
    world_close(&w);
}

TEST(a_little_input_that_is_left_holds_little_memory)
{
    struct world w;
    static struct side o[100];

    world_open(&w);
    for (int i = 0; i < 100; i++) {
        side_open(&w, &o[i]);
        o[i].take_at_most = 1;
    }
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 100; i++)
            peer_sends(&o[i], "half a head");
        turns(&w, 2);
    }
    size_t now = mallinfo2().uordblks + mallinfo2().hblkhd;
    if (now > before) /* ASan's malloc has no mallinfo */
        CHECK((now - before) / 100 < 1024);
    for (int i = 0; i < 100; i++)
        side_close(&o[i]);
    world_close(&w);
}

TEST(a_paused_stream_reads_nothing_and_costs_no_turns)
{
    struct world w;
    struct side o;

    world_open(&w);
    side_open(&w, &o);
    o.pause = true;
    peer_sends(&o, "one");
    turns(&w, 1);
    peer_sends(&o, "two");
    turns(&w, 2);
    CHECK_STR(buf_str(&o.got), "one");
    fault_at(UINT32_MAX);
    turns(&w, 10);
    CHECK_INT(fault_calls(), 0);
    fault_at(0);
    stream_resume(o.stream);
    turns(&w, 2);
    CHECK_STR(buf_str(&o.got), "onetwo");
    side_close(&o);
    world_close(&w);
}

TEST(an_owner_that_takes_nothing_is_not_sent_more_than_the_limit)
{
    struct world w;
    struct side o;
    static char filler[60000];
    size_t sent = 0;

    world_open(&w);
    side_open(&w, &o);
    o.take_at_most = 1;
    for (int i = 0; i < 100; i++) {
        ssize_t n = send(o.peer, filler, sizeof filler, MSG_DONTWAIT);
        sent += n > 0 ? (size_t)n : 0;
        turns(&w, 2);
    }
    CHECK(sent < 1u << 20);
    CHECK_INT(o.errors, 0);
    o.take_at_most = 0;
    stream_resume(o.stream);
    turns(&w, 20);
    CHECK_INT(o.got.len, sent);
    side_close(&o);
    world_close(&w);
}

TEST(the_end_is_told_after_all_input_and_again_after_a_resume)
{
    struct world w;
    struct side o;

    world_open(&w);
    side_open(&w, &o);
    o.pause = true;
    peer_sends(&o, "last");
    turns(&w, 1);
    CHECK_INT(shutdown(o.peer, SHUT_WR), 0);
    turns(&w, 3);
    CHECK_INT(o.hangups, 1);
    CHECK_INT(o.eofs, 0);
    o.pause = false;
    stream_resume(o.stream);
    turns(&w, 3);
    CHECK_INT(o.eofs, 1);
    stream_write(o.stream, STR("answer"));
    stream_resume(o.stream);
    turns(&w, 3);
    CHECK_INT(o.eofs, 2);
    CHECK_STR(peer_reads(&o), "answer");
    fault_at(UINT32_MAX);
    turns(&w, 5);
    CHECK_INT(fault_calls(), 0); /* a half-open stream does not spin */
    fault_at(0);
    side_close(&o);
    turns(&w, 3);
    world_close(&w);
}

static size_t on_first(struct stream *s, struct str data)
{
    struct side *o = stream_owner(s);

    (void)data;
    stream_set_events(s, &events, o);
    return 3;
}

TEST(a_new_owner_gets_what_the_old_one_left)
{
    static const struct stream_events first = {.on_data = on_first, .on_error = on_error};
    struct world w;
    struct side o;

    world_open(&w);
    side_open(&w, &o);
    stream_set_events(o.stream, &first, &o);
    peer_sends(&o, "oldnew");
    turns(&w, 3);
    CHECK_STR(buf_str(&o.got), "new");
    side_close(&o);
    world_close(&w);
}

TEST(output_over_high_is_drained_and_told_once)
{
    struct world w;
    struct side o;
    static char filler[600000], sink[100000];
    size_t got = 0;

    world_open(&w);
    side_open(&w, &o);
    stream_write(o.stream, str_n(filler, sizeof filler));
    while (got < sizeof filler) {
        turns(&w, 1);
        ssize_t n = recv(o.peer, sink, sizeof sink, MSG_DONTWAIT);
        got += n > 0 ? (size_t)n : 0;
        CHECK(o.drains == 0 || stream_pending(o.stream) < STREAM_LOW);
    }
    turns(&w, 2);
    CHECK_INT(o.drains, 1);
    side_close(&o);
    world_close(&w);
}

TEST(output_over_the_limit_fails_the_stream_and_sends_no_more)
{
    struct world w;
    struct side o;

    world_open(&w);
    side_open(&w, &o);
    stream_set_out_limit(o.stream, 10);
    stream_write(o.stream, STR("12345678"));
    stream_write(o.stream, STR("abcdef"));
    CHECK(stream_failed(o.stream));
    stream_write(o.stream, STR("x")); /* would fit, behind a hole */
    turns(&w, 3);
    CHECK_INT(o.errors, 1);
    CHECK_INT(o.why, ERR_LIMIT);
    CHECK(strchr(peer_reads(&o), 'x') == NULL);
    side_close(&o);
    world_close(&w);
}

TEST(what_was_sent_does_not_count_against_the_limit)
{
    struct world w;
    struct side o;
    static char filler[400000], sink[400000];

    world_open(&w);
    side_open(&w, &o);
    stream_set_out_limit(o.stream, 500000);
    stream_write(o.stream, str_n(filler, sizeof filler));
    turns(&w, 1);
    size_t left = stream_pending(o.stream);
    CHECK(left > 0 && left < sizeof filler);
    stream_write(o.stream, str_n(filler, 500000 - left));
    CHECK(!stream_failed(o.stream));
    for (int i = 0; i < 50; i++) {
        turns(&w, 1);
        CHECK(recv(o.peer, sink, sizeof sink, MSG_DONTWAIT) != 0);
    }
    CHECK_INT(stream_pending(o.stream), 0);
    side_close(&o);
    world_close(&w);
}

TEST(a_stream_without_traffic_times_out_and_traffic_renews_it)
{
    struct world w;
    struct side o;

    world_open(&w);
    side_open(&w, &o);
    stream_set_idle(o.stream, 100);
    pass(&w, 99);
    peer_sends(&o, "x");
    turns(&w, 1);
    pass(&w, 99);
    stream_write(o.stream, STR("y"));
    turns(&w, 1);
    pass(&w, 99);
    CHECK_INT(o.errors, 0);
    pass(&w, 1);
    CHECK_INT(o.errors, 1);
    CHECK_INT(o.why, ERR_TIMEOUT);
    side_close(&o);
    world_close(&w);
}

TEST(closing_when_sent_sends_all_and_waits_for_the_peer)
{
    struct world w;
    struct side o;

    world_open(&w);
    unsigned fds = test_open_fds();
    side_open(&w, &o);
    stream_write(o.stream, STR("bye"));
    stream_close_when_sent(o.stream);
    stream_write(o.stream, STR("not this"));
    peer_sends(&o, "unread");
    turns(&w, 2);
    CHECK_STR(peer_reads(&o), "bye");
    CHECK_STR(peer_reads(&o), "<end>");
    peer_sends(&o, "still talking");
    turns(&w, 2);
    CHECK_INT(o.closed, 0);
    CHECK_INT(o.datas, 0);
    side_close(&o);
    turns(&w, 3);
    CHECK_INT(o.closed, 1);
    CHECK_INT(test_open_fds(), fds);
    world_close(&w);
}

TEST(lingering_has_an_end_in_time_and_in_bytes)
{
    struct world w;
    struct side o;
    static char filler[100000];

    world_open(&w);
    side_open(&w, &o);
    stream_close_when_sent(o.stream);
    turns(&w, 2);
    pass(&w, 1999);
    CHECK_INT(o.closed, 0);
    pass(&w, 1);
    CHECK_INT(o.closed, 1);
    side_close(&o);
    side_open(&w, &o);
    stream_close_when_sent(o.stream);
    ssize_t sent = 0, n;
    while (!o.closed && (n = send(o.peer, filler, sizeof filler, MSG_DONTWAIT | MSG_NOSIGNAL))) {
        sent += n > 0 ? n : 0;
        turns(&w, 1);
    }
    CHECK(sent >= 64 << 20 && sent < 80 << 20);
    side_close(&o);
    world_close(&w);
}

/* The deadline has passed and brought about the close: it must run anew for the rest. */
static void on_error_say_goodbye(struct stream *s, struct err *why)
{
    struct side *o = stream_owner(s);

    o->errors++;
    err_free(why);
    stream_close_when_sent(s);
}

TEST(what_cannot_be_sent_after_a_timeout_is_given_up)
{
    static const struct stream_events polite = {
        .on_data = on_data, .on_error = on_error_say_goodbye, .on_closed = on_closed};
    struct world w;
    struct side o;
    static char filler[2u << 20];

    world_open(&w);
    side_open(&w, &o);
    stream_set_events(o.stream, &polite, &o);
    stream_set_idle(o.stream, 100);
    stream_write(o.stream, str_n(filler, sizeof filler));
    pass(&w, 100);
    pass(&w, 100);
    CHECK_INT(o.errors, 1);
    pass(&w, 20000);
    CHECK_INT(o.closed, 1);
    side_close(&o);
    world_close(&w);
}

TEST(a_peer_that_resets_is_an_error_or_an_end)
{
    struct world w;
    struct side o;

    world_open(&w);
    side_open(&w, &o);
    stream_write(o.stream, STR("x"));
    turns(&w, 2);
    close(o.peer); /* with unread input: a reset */
    turns(&w, 3);
    CHECK_INT(o.errors + o.eofs, 1);
    if (o.eofs)
        stream_close(o.stream);
    buf_done(&o.got);
    world_close(&w);
}

TEST(a_stream_may_be_closed_in_its_own_callback)
{
    struct world w;
    struct side o;

    world_open(&w);
    side_open(&w, &o);
    o.close_in_data = true;
    peer_sends(&o, "abc");
    stream_write(o.stream, STR("never sent"));
    o.take_at_most = 1;
    CHECK_OK(loop_turn(w.loop, 0));
    turns(&w, 3);
    CHECK_INT(o.datas, 1);
    CHECK_INT(o.closed, 0); /* that is for closing when sent */
    side_close(&o);
    world_close(&w);
}

TEST(a_net_closes_what_is_left_in_it)
{
    unsigned fds = test_open_fds();
    struct world w;
    struct side o, p;

    world_open(&w);
    side_open(&w, &o);
    side_open(&w, &p);
    stream_write(o.stream, STR("queued"));
    stream_close_when_sent(p.stream);
    world_close(&w);
    side_close(&o);
    side_close(&p);
    CHECK_INT(test_open_fds(), fds);
}

TEST(a_stream_that_cannot_be_made_closes_its_descriptor)
{
    struct world w;
    unsigned n = 0;

    world_open(&w);
    unsigned fds = test_open_fds();
    for (bool fired = true; fired;) {
        struct stream *s = NULL;
        int pair[2];
        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        fault_at(++n);
        struct err *e = stream_new(w.net, pair[0], &events, NULL, &s);
        fired = fault_fired();
        fault_at(0);
        CHECK(fired == (e != NULL));
        err_free(e);
        stream_close(s);
        turns(&w, 2);
        close(pair[1]);
        CHECK_INT(test_open_fds(), fds);
    }
    CHECK(n >= 3);
    world_close(&w);
}
