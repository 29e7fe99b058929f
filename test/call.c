// SPDX-License-Identifier: Apache-2.0
/* call.c — see call.h. */
#include "test/call.h"

#include <stdio.h>

#include "test/test.h"

static void on_head(struct http_call *call, const struct http_head *head)
{
    struct result *r = http_call_owner(call);

    r->status = head->status;
    buf_add(&r->x_a, http_header_get(head, STR("x-a")));
}

static void on_body(struct http_call *call, struct str piece)
{
    struct result *r = http_call_owner(call);

    r->pieces++;
    buf_add(&r->body, piece);
}

static void on_done(struct http_call *call, struct err *e)
{
    struct result *r = http_call_owner(call);

    CHECK(!r->done);
    r->done = true;
    r->error = e;
}

void call_fix_client(struct call_fix *f, struct loop *loop, struct net *net)
{
    *f = (struct call_fix){.loop = loop,
                           .net = net,
                           .dialer = {.net = net},
                           .events = {.on_head = on_head, .on_body = on_body, .on_done = on_done}};
    CHECK_OK(http_client_new(&f->dialer, NULL, &f->client));
}

void call_fix_init_at(struct call_fix *f, const struct raw_script *scripts, size_t count,
                      const char *address)
{
    struct loop *loop;
    struct net *net;

    CHECK_OK(loop_new(&clock_system, &loop));
    CHECK_OK(net_new(loop, &net));
    call_fix_client(f, loop, net);
    raw_start(&f->raw, f->loop, address, scripts, count);
}

void call_fix_init(struct call_fix *f, const struct raw_script *scripts, size_t count)
{
    call_fix_init_at(f, scripts, count, "127.0.0.1:0");
}

void call_fix_done(struct call_fix *f)
{
    http_client_free(f->client);
    raw_stop(&f->raw);
    CHECK_OK(loop_turn(f->loop, 0)); /* streams are freed after the turn, before their net */
    net_free(f->net);
    loop_free(f->loop);
}

void raw_close_all(struct call_fix *f)
{
    raw_close_conns(&f->raw);
    for (unsigned i = 0; i < 3; i++)
        CHECK_OK(loop_turn(f->loop, 0));
}

struct err *call_try_begin(struct call_fix *f, const char *tail, const struct http_call_spec *spec,
                           struct result *r)
{
    struct http_call_spec copy = *spec;
    char url[400];

    *r = (struct result){0};
    buf_init(&r->body, 64u << 20);
    buf_init(&r->x_a, 1 << 20);
    if (tail) {
        snprintf(url, sizeof url, "%s%s", f->raw.url, tail);
        copy.url = str_of(url);
    }
    return http_call_start(f->client, &copy, &f->events, r, &r->call);
}

void call_begin(struct call_fix *f, const char *tail, const struct http_call_spec *spec,
                struct result *r)
{
    CHECK_OK(call_try_begin(f, tail, spec, r));
    CHECK(!r->done); /* never before it returns */
}

void call_wait(struct call_fix *f, struct result *r)
{
    while (!r->done)
        CHECK_OK(loop_turn(f->loop, 1000));
}

struct result call_run(struct call_fix *f, const char *tail, const struct http_call_spec *spec)
{
    static struct result r; /* callbacks hold its address until it is done */

    call_begin(f, tail, spec, &r);
    call_wait(f, &r);
    return r;
}

struct result call_get(struct call_fix *f, const char *tail)
{
    return call_run(f, tail, &(struct http_call_spec){.method = STR("GET")});
}

void call_check(struct call_fix *f, const char *tail, int status, const char *body)
{
    struct result r = call_get(f, tail);

    CHECK_OK(r.error);
    CHECK_INT(r.status, status);
    CHECK_STR(buf_str(&r.body), body);
    result_done(&r);
}

void result_done(struct result *r)
{
    buf_done(&r->body);
    buf_done(&r->x_a);
    err_free(r->error);
    r->error = NULL;
}
