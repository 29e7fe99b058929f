// SPDX-License-Identifier: Apache-2.0
/* wait.c — a request whose sandbox is not ready is parked, or told to come back. Requests under way
 * when a sandbox is paused are held, and their timers stand. */
#include <stdio.h>

#include "host/proxy/inner.h"

static const char *why_later(const struct proxy_target *t)
{
    return t->state == PROXY_STARTING ? "the sandbox is starting" : "the sandbox is paused";
}

/* Not an error of ours, and no reason for a line in the log. */
void call_reply_later(struct proxy *p, struct http_req *req, const char *why)
{
    char seconds[16], body[96];

    snprintf(seconds, sizeof seconds, "%u", p->config.retry_after_s);
    http_reply_header(req, STR("retry-after"), str_of(seconds));
    snprintf(body, sizeof body, "{\"detail\":\"%s\"}", why);
    http_reply_json(req, 503, str_of(body));
}

static void reply_failed(struct http_req *req, const char *id)
{
    char body[160];

    snprintf(
        body, sizeof body,
        "{\"detail\":\"the sandbox has failed: GET /runtime/%.64s says why, POST /resume starts "
        "it again\"}",
        id);
    http_reply_json(req, 502, str_of(body));
}

void call_unpark(struct call *c)
{
    if (c->state != CALL_WAIT || !c->parked)
        return;
    c->parked = false;
    c->p->parked--;
    c->target->waiting--;
    if (c->target->parked_of)
        --*c->target->parked_of;
}

static void on_call_timer(struct loop_timer *timer)
{
    struct call *c = container_of(timer, struct call, timer);

    if (c->state == CALL_WAIT) {
        struct proxy *p = c->p;
        const char *why = why_later(c->target);
        call_reply_later(p, call_end(c), why);
    } else if (c->target->state == PROXY_PAUSED) { /* its clock stands still */
        call_set_timer(c, c->state == CALL_HEAD ? c->p->config.answer_ms : c->p->config.connect_ms);
    } else {
        call_fail(c, err_new(ERR_TIMEOUT, "the sandbox did not answer in time"));
    }
}

void call_set_timer(struct call *c, uint32_t ms)
{
    loop_timer_start(c->p->loop, &c->timer, ms, on_call_timer);
}

/* A request that waited for room in the backlog connects at once. The timers of the others, which
 * stood still, begin anew. */
void call_resumed(struct proxy_target *t)
{
    LIST_EACH(c, &t->calls, struct call, link) {
        if (c->state == CALL_DIAL && !c->dial)
            up_connect(c);
        else if (c->state == CALL_HEAD)
            call_set_timer(c, c->p->config.answer_ms);
        else if (c->state != CALL_BODY)
            call_set_timer(c, c->p->config.connect_ms);
    }
}

static bool is_full(const struct proxy *p, const struct proxy_target *t)
{
    const struct proxy_config *c = &p->config;
    bool shared = t->parked_of && (!c->has_tenants || c->has_tenants(c->ctx));

    return p->parked + (shared ? *t->parked_of : 0) >= c->most_parked ||
           t->waiting >= PARKED_PER_TARGET;
}

static void call_park(struct call *c, uint32_t ms, const char *why)
{
    struct proxy *p = c->p;
    struct proxy_target *t = c->target;

    if (!c->parked && is_full(p, t)) {
        call_reply_later(p, call_end(c), why);
        return;
    }
    if (!c->parked) {
        c->parked = true;
        p->parked++;
        t->waiting++;
        if (t->parked_of)
            ++*t->parked_of;
        list_del(&c->link);
        list_add(&t->parked, &c->link);
        call_set_timer(c, ms);
    }
    if (t->state == PROXY_PAUSED && t->on_wake && !t->woken) {
        t->woken = true;
        t->on_wake(t);
    }
}

void call_go_on(struct call *c)
{
    const struct proxy_config *config = &c->p->config;
    struct proxy_target *t = c->target;

    switch (t->state) {
    case PROXY_OPEN:
        call_unpark(c);
        list_del(&c->link);
        list_add(&t->calls, &c->link);
        c->state = CALL_DIAL;
        up_connect(c);
        return;
    case PROXY_STARTING:
        call_park(c, config->start_ms, why_later(t));
        return;
    case PROXY_PAUSED:
        if (t->park)
            call_park(c, config->park_ms, why_later(t));
        else
            call_reply_later(c->p, call_end(c), why_later(t));
        return;
    case PROXY_FAILED:
        reply_failed(call_end(c), t->id);
        return;
    case PROXY_GONE:
        call_cut(c, err_new(ERR_NOT_FOUND, "this sandbox is gone"));
    }
}

bool call_is_put_off(const struct call *c)
{
    return c->target->state == PROXY_PAUSED || c->target->state == PROXY_STARTING;
}

void call_put_off(struct call *c, bool again)
{
    struct proxy *p = c->p;
    const char *why = why_later(c->target);

    if (!again || c->half_closed) { /* a client that has most likely gone does not wake it */
        call_reply_later(p, call_end(c), why);
        return;
    }
    dial_cancel(take(&c->dial));
    stream_close(take(&c->stream));
    loop_timer_stop(&c->timer);
    attempts_stop(&c->dials);
    c->state = CALL_WAIT;
    c->answered = false;
    call_go_on(c);
}
