// SPDX-License-Identifier: Apache-2.0
/* relay.c — after an upgrade: bytes both ways, ends included, in bounded memory. */
#include "base/mem.h"
#include "host/proxy/inner.h"

struct relay {
    struct proxy *p;
    struct proxy_target *target;
    struct list link;
    struct stream *client, *inside;
    bool client_ended, inside_ended;
};

const char *const proxy_drop_names[PROXY_DROPS] = {"client", "sandbox", "removed"};

static void relay_end(struct relay *r, bool at_once)
{
    void (*close)(struct stream * s) = at_once ? stream_close : stream_close_when_sent;

    close(r->client);
    close(r->inside);
    list_del(&r->link);
    r->p->stats.relays--;
    r->target->open--;
    r->target->last_ns = loop_now_ns(r->p->loop);
    free(r);
}

void relay_close_all(struct proxy_target *t)
{
    while (!list_empty(&t->relays)) {
        struct relay *r = container_of(t->relays.next, struct relay, link);
        r->p->stats.drops[PROXY_DROP_REMOVED]++;
        relay_end(r, true);
    }
}

static struct stream *other_side(const struct relay *r, const struct stream *s)
{
    return s == r->client ? r->inside : r->client;
}

static size_t on_side_data(struct stream *s, struct str data)
{
    struct relay *r = stream_owner(s);
    struct stream *to = other_side(r, s);

    r->target->last_ns = loop_now_ns(r->p->loop);
    stream_pass(to, data);
    if (stream_pending(to) >= STREAM_HIGH)
        stream_pause(s);
    return data.len;
}

static void on_side_drain(struct stream *s)
{
    stream_resume(other_side(stream_owner(s), s));
}

static void on_side_eof(struct stream *s)
{
    struct relay *r = stream_owner(s);
    bool *ended = s == r->client ? &r->client_ended : &r->inside_ended;

    if (*ended)
        return;
    *ended = true;
    if (r->client_ended && r->inside_ended)
        relay_end(r, false);
    else
        stream_shutdown(other_side(r, s));
}

static void on_side_error(struct stream *s, struct err *why)
{
    struct relay *r = stream_owner(s);

    err_free(why); /* a connection that breaks on one side ends on the other */
    r->p->stats.drops[s == r->client ? PROXY_DROP_CLIENT : PROXY_DROP_SANDBOX]++;
    relay_end(r, false);
}

static const struct stream_events relay_events = {
    .on_data = on_side_data,
    .on_drain = on_side_drain,
    .on_eof = on_side_eof,
    .on_error = on_side_error,
};

void relay_start(struct proxy *p, struct proxy_target *t, struct stream *client,
                 struct stream *inside)
{
    struct relay *r = mem_try(sizeof *r);

    if (!r) {
        stream_close(client);
        stream_close(inside);
        return;
    }
    *r = (struct relay){.p = p, .target = t, .client = client, .inside = inside};
    list_add(&t->relays, &r->link);
    t->open++;
    p->stats.relays++;
    stream_set_events(client, &relay_events, r);
    stream_set_events(inside, &relay_events, r);
}
