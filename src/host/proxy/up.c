// SPDX-License-Identifier: Apache-2.0
/* up.c — connections to sandboxes: dialled, through pid 1 where a port inside is meant, and kept a
 * few seconds for the next request. An idle sandbox has none. */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "host/proxy/inner.h"
#include "net/url.h"

struct idle_up {
    struct stream *stream;
    struct proxy_target *target;
    struct list link;
    uint16_t inside;
};

/* --- unused ones --- */

static void idle_drop(struct idle_up *u)
{
    stream_close(u->stream);
    list_del(&u->link);
    u->target->idlers--;
    free(u);
}

/* Whatever it says, it was not asked. */
static size_t on_idle_data(struct stream *s, struct str data)
{
    idle_drop(stream_owner(s));
    return data.len;
}

static void on_idle_eof(struct stream *s)
{
    idle_drop(stream_owner(s));
}

static void on_idle_error(struct stream *s, struct err *why)
{
    err_free(why);
    idle_drop(stream_owner(s));
}

static const struct stream_events idle_events = {
    .on_data = on_idle_data,
    .on_eof = on_idle_eof,
    .on_error = on_idle_error,
};

void up_keep(struct call *c)
{
    struct proxy_target *t = c->target;
    struct idle_up *u = t->idlers < IDLE_PER_TARGET ? mem_try(sizeof *u) : NULL;

    if (!u) {
        stream_close(take(&c->stream));
        return;
    }
    *u = (struct idle_up){.stream = take(&c->stream), .target = t, .inside = c->inside};
    list_push(&t->idle, &u->link); /* the one used last is used first */
    t->idlers++;
    stream_set_events(u->stream, &idle_events, u);
    stream_set_idle(u->stream, c->p->config.idle_ms);
}

void up_drop_idle(struct proxy_target *t)
{
    while (!list_empty(&t->idle))
        idle_drop(container_of(t->idle.next, struct idle_up, link));
}

/* It may have been closed inside in this very turn, before we were told. */
static bool is_quiet(const struct stream *s)
{
    char byte;

    return recv(stream_fd(s), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           (errno == EAGAIN || errno == EWOULDBLOCK);
}

static struct stream *take_idle(struct call *c)
{
    LIST_EACH(u, &c->target->idle, struct idle_up, link) {
        if (u->inside != c->inside)
            continue;
        struct stream *s = is_quiet(u->stream) ? take(&u->stream) : NULL;
        idle_drop(u);
        if (s)
            return s;
    }
    return NULL;
}

/* --- pid 1 reaches the port --- */

static size_t on_tunnel_data(struct stream *s, struct str data)
{
    struct call *c = stream_owner(s);
    struct http_head head;
    size_t end = 0;
    struct err *e = http_head_end(data, &c->scanned, &end);

    if (!e && !end)
        return 0;
    if (!e)
        e = http_parse_response(&c->req->arena, str_first(data, end), STR("CONNECT"), &head);
    if (e) {
        call_fail(c, err_wrap(err_recode(e, ERR_UPSTREAM), "port %u inside", c->inside));
        return data.len;
    }
    if (head.status != 200) {
        unsigned port = c->inside ? c->inside : c->target->address.tunnel_port;
        call_fail(c, head.status == 504
                         ? err_new(ERR_TIMEOUT, "port %u inside does not answer", port)
                         : err_new(ERR_UPSTREAM, "nobody listens on port %u inside", port));
        return data.len;
    }
    call_open(c, take(&c->stream), false);
    return end;
}

static void on_tunnel_eof(struct stream *s)
{
    struct call *c = stream_owner(s);

    call_fail(c, err_new(ERR_UPSTREAM, "port %u inside: the connection ended", c->inside));
}

static void on_tunnel_error(struct stream *s, struct err *why)
{
    struct call *c = stream_owner(s);

    call_fail(c, err_wrap(err_recode(why, ERR_UPSTREAM), "port %u inside", c->inside));
}

static const struct stream_events tunnel_events = {
    .on_data = on_tunnel_data,
    .on_eof = on_tunnel_eof,
    .on_error = on_tunnel_error,
};

static void ask_for_port(struct call *c, uint16_t port)
{
    char line[128];
    int n = snprintf(line, sizeof line,
                     "CONNECT localhost:%u HTTP/1.1\r\nHost: localhost:%u\r\n\r\n", port, port);

    c->state = CALL_TUNNEL;
    c->scanned = 0;
    stream_write(c->stream, str_n(line, (size_t)n));
}

/* --- dialling --- */

static const struct sbx_address *address_of(const struct call *c)
{
    const struct proxy_target *t = c->target;

    for (size_t i = 0; c->inside && i < t->far_count; i++)
        if (t->far[i].port == c->inside)
            return &t->far[i].address;
    return c->inside ? &t->inner : &t->address;
}

bool up_is_far(const struct call *c, struct url *ret_url)
{
    const struct sbx_address *a = address_of(c);

    if (a->unix_path[0] || !a->url[0])
        return false;
    struct err *e = url_parse(str_of(a->url), ret_url);
    err_free(e); /* it was looked at before it was dialled */
    return e == NULL;
}

static void on_dialled(void *owner, struct err *e, struct stream *s)
{
    struct call *c = owner;
    struct url far;
    uint16_t port = c->inside ? c->inside : c->target->address.tunnel_port;

    c->dial = NULL;
    if (e) {
        call_fail(c, err_wrap(e, "connect to the sandbox"));
        return;
    }
    /* room for one piece read from a client, or every piece goes in two */
    setsockopt(stream_fd(s), SOL_SOCKET, SO_SNDBUF, &(int){2 * STREAM_READ_SIZE}, sizeof(int));
    if (!port || up_is_far(c, &far)) { /* a far url is that port's own */
        call_open(c, s, false);
        return;
    }
    c->stream = s;
    stream_set_events(s, &tunnel_events, c);
    ask_for_port(c, port);
}

static fallible up_dial(struct call *c)
{
    const struct sbx_address *a = address_of(c);
    struct dial_target target = {
        .unix_path = str_of(a->unix_path),
        .timeout_ms = c->p->config.connect_ms,
    };

    if (!target.unix_path.len) {
        struct url u;
        if (!a->url[0])
            return err_new(ERR_UPSTREAM, c->inside ? "ports inside are not reached in this sandbox"
                                                   : "the sandbox has no address");
        TRY(url_parse(str_of(a->url), &u));
        target.host = u.host;
        target.port = u.port;
        target.tls = url_is_tls(&u);
    }
    return dial_start(c->p->config.dialer, &target, on_dialled, c, &c->dial);
}

static void connect_now(struct call *c);

static void on_dial_again(struct attempts *a)
{
    struct call *c = container_of(a, struct call, dials);

    if (c->target->state != PROXY_PAUSED) /* else call_resumed() does it */
        connect_now(c);
}

/* A full backlog does not tell when it has room. */
static bool dial_later(struct call *c)
{
    const struct retry policy = {.within_ms = c->p->config.connect_ms, .first_ms = 5};

    loop_timer_stop(&c->timer);
    return attempts_again(&c->dials, c->p->loop, &policy, 0, on_dial_again);
}

static void connect_now(struct call *c)
{
    struct err *e = up_dial(c);

    if (!e)
        call_set_timer(c, c->p->config.connect_ms);
    else if (err_errno(e) == EAGAIN && dial_later(c))
        err_free(e);
    else
        call_fail(c, err_wrap(e, "connect to the sandbox"));
}

void up_connect(struct call *c)
{
    struct stream *s = c->retried ? NULL : take_idle(c);

    if (s) {
        call_open(c, s, true);
        return;
    }
    attempts_begin(&c->dials, c->p->loop);
    connect_now(c);
}
