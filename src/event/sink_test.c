// SPDX-License-Identifier: Apache-2.0
/* One producer, two sinks: the file, and a stand-in for the host behind a control channel that
 * appends to its own log and acknowledges some turns later, in order. */
#include "base/log.h"
#include "test/event_kit.h"

/* --- the stand-in --- */

#define CHANNEL 64

struct message {
    struct event_append host; /* the host's append */
    struct list waiter;       /* holds the producer's node, so that it can cancel */
    uint64_t seq;
    bool durable;
};

struct remote {
    struct event_sink sink;
    struct loop *loop;
    struct event_log *log; /* the host's */
    struct message messages[CHANNEL];
    unsigned sent, acked;
    struct loop_timer line;
    bool cut; /* the channel broke */
};

static void acknowledge(struct message *m)
{
    struct event_append *a = LIST_FIRST(&m->waiter, struct event_append, link);
    struct err *why = m->durable ? NULL : err_new(ERR_CLOSED, "the channel broke");

    event_append_cancel(&m->host);
    if (a) {
        list_del(&a->link);
        a->seq = m->seq;
        a->done(a, why);
    }
    err_free(why);
}

static void on_line(struct loop_timer *t)
{
    struct remote *r = container_of(t, struct remote, line);

    while (r->acked < r->sent && (r->messages[r->acked].durable || r->cut))
        acknowledge(&r->messages[r->acked++]);
    if (r->acked < r->sent)
        loop_timer_start(r->loop, &r->line, 1, on_line);
}

static void on_host_done(struct event_append *a, const struct err *why)
{
    struct message *m = container_of(a, struct message, host);

    CHECK(why == NULL);
    m->seq = a->seq;
    m->durable = true;
}

static fallible remote_append(struct event_sink *sink, const struct event_record *rec,
                              struct event_append *a)
{
    struct remote *r = container_of(sink, struct remote, sink);

    if (r->cut)
        return err_new(ERR_CLOSED, "the channel broke");
    if (r->sent == CHANNEL)
        return err_new(ERR_BUSY, "the channel is full");
    TRY(event_record_check(rec, EVENT_RECORD_MAX));
    struct message *m = &r->messages[r->sent];
    *m = (struct message){.host.done = on_host_done};
    list_init(&m->waiter);
    TRY(event_log_append(r->log, rec, &m->host));
    r->sent++;
    if (a) {
        a->seq = 0;
        list_add(&m->waiter, &a->link);
    }
    loop_timer_start(r->loop, &r->line, 2, on_line);
    return NULL;
}

static fallible remote_live(struct event_sink *sink, const struct event_record *rec)
{
    struct remote *r = container_of(sink, struct remote, sink);

    return r->cut ? err_new(ERR_CLOSED, "the channel broke") : event_log_live(r->log, rec);
}

static const struct event_sink_ops remote_ops = {remote_append, remote_live};

/* --- the producer: knows event.h only --- */

struct producer {
    struct event_append a;
    struct event_sink *sink;
    unsigned *order;
    unsigned number, acked_as;
    uint64_t seq;
    bool failed;
};

static void on_acked(struct event_append *a, const struct err *why)
{
    struct producer *p = container_of(a, struct producer, a);

    p->failed = why != NULL;
    p->seq = a->seq;
    p->acked_as = ++*p->order;
}

static void produce(struct event_sink *sink, struct producer *p, unsigned n, unsigned *order)
{
    for (unsigned i = 0; i < n; i++) {
        char text[16];
        struct event_record r = {.kind = STR("action"),
                                 .payload =
                                     str_n(text, (size_t)snprintf(text, sizeof text, "%u", i + 1))};
        p[i] = (struct producer){.a.done = on_acked, .order = order, .number = i + 1};
        CHECK_OK(event_append(sink, &r, &p[i].a));
        CHECK_INT(p[i].acked_as, 0); /* never from inside append */
    }
}

static void expect_in_order(const struct producer *p, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        CHECK_INT(p[i].acked_as, i + 1);
        CHECK_INT(p[i].seq, i + 1);
        CHECK(!p[i].failed);
    }
}

static void open_both(struct kit *k, struct remote *r)
{
    kit_init(k);
    k->options.inline_sync = false;
    kit_open(k);
    *r = (struct remote){.sink.ops = &remote_ops, .loop = k->loop, .log = k->log};
}

TEST(a_producer_is_acknowledged_in_order_by_a_file)
{
    struct kit k;
    struct remote r;
    struct producer p[20];
    unsigned order = 0;

    open_both(&k, &r);
    produce(event_log_sink(k.log), p, 20, &order);
    while (order < 20)
        CHECK_OK(loop_turn(k.loop, 1000));
    expect_in_order(p, 20);
    kit_done(&k);
}

TEST(a_producer_is_acknowledged_in_order_by_a_remote_sink)
{
    struct kit k;
    struct remote r;
    struct producer p[20];
    unsigned order = 0;

    open_both(&k, &r);
    produce(&r.sink, p, 20, &order);
    CHECK_INT(p[0].a.seq, 0); /* only the host knows */
    while (order < 20)
        CHECK_OK(loop_turn(k.loop, 1000));
    expect_in_order(p, 20);
    CHECK_INT(kit_verify(&k).records, 20);
    kit_done(&k);
}

TEST(a_producer_may_forget_an_append_at_either_sink)
{
    for (int remote = 0; remote < 2; remote++) {
        struct kit k;
        struct remote r;
        struct producer p[3];
        unsigned order = 0;
        open_both(&k, &r);
        struct event_info info;
        event_log_info(k.log, &info);
        produce(remote ? &r.sink : event_log_sink(k.log), p, 3, &order);
        event_append_cancel(&p[1].a);
        while (order < 2 || r.acked < r.sent)
            CHECK_OK(loop_turn(k.loop, 1000));
        CHECK_INT(p[1].acked_as, 0);
        CHECK_INT(p[2].seq, info.last_seq + 3);
        kit_done(&k);
    }
}

TEST(a_producer_hears_that_the_channel_broke)
{
    struct kit k;
    struct remote r;
    struct producer p[3];
    unsigned order = 0;
    struct event_record rec = kit_record(STR("x"));

    open_both(&k, &r);
    produce(&r.sink, p, 3, &order);
    r.cut = true;
    CHECK_ERR(event_append(&r.sink, &rec, NULL), ERR_CLOSED, "broke");
    while (order < 3)
        CHECK_OK(loop_turn(k.loop, 1000));
    CHECK(p[2].acked_as == 3);
    kit_done(&k);
}

TEST(both_sinks_refuse_the_same_records)
{
    struct kit k;
    struct remote r;
    struct event_record rec = {.payload = STR("no kind")};

    open_both(&k, &r);
    CHECK_ERR(event_append(&r.sink, &rec, NULL), ERR_INVALID, "kind");
    CHECK_ERR(event_append(event_log_sink(k.log), &rec, NULL), ERR_INVALID, "kind");
    CHECK_ERR(event_live(&r.sink, &rec), ERR_INVALID, "kind");
    CHECK_ERR(event_live(event_log_sink(k.log), &rec), ERR_INVALID, "kind");
    kit_done(&k);
}
