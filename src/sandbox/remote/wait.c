// SPDX-License-Identifier: Apache-2.0
/* wait.c — what the server says of a remote sandbox, and asking until it is what is wanted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/remote/inner.h"
#include "wire/remote.h"

#define START_MS    180000 /* for a runtime to be ready */
#define POLL_MIN_MS 50
#define POLL_MAX_MS 2000

static struct loop *loop_of(const struct remote *r)
{
    return r->base.driver->host->loop;
}

static bool keep_text(char *to, size_t size, struct str s)
{
    if (s.len >= size)
        return false;
    memcpy(to, s.p, s.len);
    to[s.len] = '\0';
    return true;
}

/* Takes the ports it publishes; an address that is too long is left out. */
static void take_ports(struct remote *r, const struct wire_remote *o)
{
    for (size_t i = 0; i < REMOTE_PORTS; i++) {
        struct str url = i < o->port_count ? o->ports[i].url : STR("");
        bool any = url.len && keep_text(r->ports[i].url, sizeof r->ports[i].url, url);
        r->ports[i].port = any ? o->ports[i].port : 0;
        if (any)
            r->base.driver->caps |= SBX_CAN_EXPOSE;
    }
}

/* Told of a failure, and true until the next start. */
static void take_words(struct remote *r, struct str words)
{
    if (!words.len)
        return;
    free(r->last_words);
    r->last_words = strndup(words.p, words.len);
}

fallible remote_take_object(struct remote *r, const struct json *body, struct wire_remote *ret)
{
    TRY(wire_decode_remote(body, ret));
    if (!keep_text(r->runtime_id, sizeof r->runtime_id, ret->runtime_id) ||
        !keep_text(r->url, sizeof r->url, ret->url) ||
        !keep_text(r->session_key, sizeof r->session_key, ret->session_api_key))
        return err_new(ERR_UPSTREAM,
                       "runtime_id, url or session_api_key of the server is too long");
    take_ports(r, ret);
    take_words(r, ret->pod_logs);
    return NULL;
}

/* --- until it can be used --- */

/* The server does not know it any more: whatever was asked of it, it is gone. (What is stopped has
 * ended already.) */
void remote_end_if_gone(struct remote *r, struct err *e)
{
    bool lives = r->base.state.now == SBX_RUNNING || r->base.state.now == SBX_PAUSED;
    bool gone = lives && err_code(e) == ERR_NOT_FOUND;

    sbx_finish(&r->base, e);
    if (!gone)
        return;
    r->there = false;
    r->ended = true;
    sbx_gone(&r->base, "the server does not know it any more");
}

void remote_begin_waiting(struct remote *r)
{
    r->give_up_ns = loop_now_ns(loop_of(r)) + START_MS * NS_PER_MS;
    r->poll_ms = POLL_MIN_MS;
    attempts_begin(&r->reaching, loop_of(r));
    r->resumed = r->looked = false;
}

void remote_look_then(struct remote *r, remote_then *then)
{
    snprintf(r->call.path, sizeof r->call.path, "/runtime/%s", r->runtime_id);
    buf_reset(&r->call.body);
    struct err *e = remote_call(r, "GET", r->call.path, then);
    if (e)
        sbx_finish(&r->base, e);
}

static void wait_look(struct remote *r)
{
    remote_look_then(r, remote_on_object);
}

static void on_poll(struct loop_timer *t)
{
    wait_look(container_of(t, struct remote, timer));
}

/* False: that was long enough. */
static bool look_later(struct remote *r)
{
    if (loop_now_ns(loop_of(r)) >= r->give_up_ns)
        return false;
    loop_timer_start(loop_of(r), &r->timer, r->poll_ms, on_poll);
    r->poll_ms = r->poll_ms * 3 / 2 < POLL_MAX_MS ? r->poll_ms * 3 / 2 : POLL_MAX_MS;
    return true;
}

static void on_reach_again(struct attempts *a)
{
    wait_look(container_of(a, struct remote, reaching));
}

/* It is ready when it can be reached from here: "127.0.0.1" of another machine cannot. */
static void on_alive(struct remote *r, const struct json *body, struct err *e)
{
    (void)body;
    if (!e) {
        sbx_finish(&r->base, NULL);
        return;
    }
    bool unreached = r->call.status == 0;
    if (unreached ? attempts_again(&r->reaching, loop_of(r), &remote_driver_of(r)->retry, 0,
                                   on_reach_again)
                  : look_later(r)) {
        err_free(e);
        return;
    }
    sbx_finish(&r->base, err_wrap(e, "Runtime (ID=%s) is not yet ready. It is told to be at '%s'%s",
                                  r->runtime_id, r->url,
                                  unreached ? ", which cannot be reached from here (a croft there "
                                              "needs public_url or domain)"
                                            : ""));
}

static void see_alive(struct remote *r)
{
    struct err *e = NULL;

    if (r->face == SBX_FACE_ACTION)
        e = remote_call_alive(r, on_alive);
    else
        sbx_finish(&r->base, NULL);
    if (e)
        sbx_finish(&r->base, e);
}

/* As OpenHands' own client words them. */
static fallible wait_unavailable(const struct wire_remote *o)
{
    const char *why = o->detail.len ? ": " : "";

    if (str_eq_nocase(o->pod, STR("crashloopbackoff")))
        return err_new(ERR_UPSTREAM,
                       "Runtime crashed and is being restarted, potentially due to memory usage. "
                       "Please try again%s" STR_FMT,
                       why, STR_ARG(o->detail));
    return err_new(ERR_UPSTREAM,
                   "Runtime is unavailable (status: " STR_FMT "). Please try again%s" STR_FMT,
                   STR_ARG(o->status), why, STR_ARG(o->detail));
}

static void wait_for_it(struct remote *r, const struct wire_remote *o)
{
    if (!look_later(r))
        sbx_finish(&r->base,
                   err_new(ERR_TIMEOUT,
                           "Runtime (ID=%s) is not yet ready. Status: " STR_FMT ", for %d seconds",
                           r->runtime_id, STR_ARG(o->pod.len ? o->pod : o->status),
                           START_MS / 1000));
}

/* A session that was there and is paused; otherwise it is a resume that takes its time. */
static void resume_or_wait(struct remote *r, const struct wire_remote *o)
{
    struct err *e = NULL;

    if (r->base.op == SBX_START && !r->resumed) {
        r->resumed = true;
        e = remote_call_id(r, "/resume", remote_on_object);
    } else
        wait_for_it(r, o);
    if (e)
        sbx_finish(&r->base, e);
}

static void wait_found(struct remote *r, enum sbx_state state)
{
    r->base.found = state;
    sbx_finish(&r->base, NULL);
}

/* It ended there, by itself or by another client. A start may still find its files. */
static void tell_end(struct remote *r, const struct wire_remote *o)
{
    if (o->state == WIRE_REMOTE_STOPPED)
        r->ended = true;
    wait_found(r, SBX_STOPPED);
    sbx_gone(&r->base, "at the other server: " STR_FMT,
             STR_ARG(o->detail.len ? o->detail : o->status));
}

void remote_on_look(struct remote *r, const struct json *body, struct err *e)
{
    struct wire_remote o;

    if (!e)
        e = remote_take_object(r, body, &o);
    if (e)
        remote_end_if_gone(r, e);
    else if (o.state == WIRE_REMOTE_STOPPED || o.state == WIRE_REMOTE_FAILED)
        tell_end(r, &o);
    else
        wait_found(r, o.state == WIRE_REMOTE_PAUSED ? SBX_PAUSED : SBX_RUNNING);
}

void remote_on_object(struct remote *r, const struct json *body, struct err *e)
{
    bool adopts = r->base.op == SBX_ADOPT;
    struct wire_remote o;

    /* Asked twice, or by another client too: its state now counts. */
    if (e && err_code(e) == ERR_CONFLICT && r->runtime_id[0] && !r->looked) {
        r->looked = true;
        err_free(e);
        wait_look(r);
        return;
    }
    if (!e)
        e = remote_take_object(r, body, &o);
    if (e) {
        remote_end_if_gone(r, e);
        return;
    }
    /* a command of its own need not listen */
    if (o.state == WIRE_REMOTE_WAIT && r->face == SBX_FACE_COMMAND &&
        str_eq(o.status, STR("running")))
        o.state = WIRE_REMOTE_READY;
    switch (o.state) {
    case WIRE_REMOTE_WAIT:
        if (adopts) /* a client that wants it resumes it, and waits */
            wait_found(r, SBX_PAUSED);
        else
            wait_for_it(r, &o);
        break;
    case WIRE_REMOTE_READY:
        if (adopts)
            wait_found(r, SBX_RUNNING);
        else
            see_alive(r);
        break;
    case WIRE_REMOTE_PAUSED:
        if (adopts)
            wait_found(r, SBX_PAUSED);
        else
            resume_or_wait(r, &o);
        break;
    case WIRE_REMOTE_STOPPED:
    case WIRE_REMOTE_FAILED:
        if (adopts)
            wait_found(r, SBX_STOPPED);
        else
            sbx_finish(&r->base, wait_unavailable(&o));
        break;
    }
}
