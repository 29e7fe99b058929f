// SPDX-License-Identifier: Apache-2.0
/* answers.c — see answers.h. */
#include "guest/exec/answers.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "guest/exec/act.h"
#include "guest/exec/inner.h"
#include "net/server.h"
#include "wire/api.h"
#include "wire/problem.h"
#include "wire/shells.h"

#define KEEP_MS      (2 * 60 * 1000)
#define KEEP_BYTES   (64u << 20) /* of all kept answers; the oldest go first */
#define ANSWER_BYTES (256u << 20)

/* From the request of an action until its answer was taken or forgotten. */
struct answer {
    struct answers *all;
    struct list link;
    const char *name;           /* the action's */
    uint8_t digest[SHA256_LEN]; /* of the request's body and shell */
    struct act *act;            /* NULL: it has ended, and text is the answer */
    struct http_req *req;       /* that waits; NULL: none */
    bool doubtful;              /* the peer may have given up */
    int status;
    struct buf text;
    struct loop_timer forget;
};

struct answers {
    struct exec *exec;
    struct list list;
    size_t kept_bytes;
};

struct answers *answers_new(struct exec *exec)
{
    struct answers *all = mem_new(sizeof *all);

    all->exec = exec;
    list_init(&all->list);
    return all;
}

static void answer_free(struct answer *a)
{
    assert(!a->act);
    a->all->kept_bytes -= a->text.len;
    list_del(&a->link);
    loop_timer_stop(&a->forget);
    buf_done(&a->text);
    free(a);
}

void answers_free(struct answers *all)
{
    if (!all)
        return;
    LIST_EACH(a, &all->list, struct answer, link)
        answer_free(a);
    free(all);
}

bool answers_are_idle(const struct answers *all)
{
    return list_empty(&all->list) && list_empty(&all->exec->acts);
}

/* --- the answer --- */

static void on_forget(struct loop_timer *t)
{
    answer_free(container_of(t, struct answer, forget));
}

static void make_room(struct answers *all)
{
    LIST_EACH(a, &all->list, struct answer, link) {
        if (all->kept_bytes <= KEEP_BYTES)
            return;
        if (!a->act)
            answer_free(a);
    }
}

static struct http_req *detach_request(struct answer *a)
{
    struct http_req *req = take(&a->req);

    req->on_gone = NULL;
    req->on_hangup = NULL;
    return req;
}

/* The answer is ready: to the request that waits, and kept if that one may be lost. */
static void answer_finish(struct answer *a)
{
    bool taken = a->req && !a->doubtful && !http_req_is_cut(a->req);

    a->act = NULL;
    a->all->kept_bytes += a->text.len;
    if (a->req)
        http_reply_json(detach_request(a), a->status, buf_str(&a->text));
    if (taken) {
        answer_free(a);
        return;
    }
    loop_timer_start(a->all->exec->loop, &a->forget, KEEP_MS, on_forget);
    make_room(a->all);
}

static void put_error(struct answer *a, const struct err *error)
{
    struct jw w;

    a->status = err_http_status(err_code(error));
    if (a->status >= 500)
        log_error("action failed", KV("action", a->name), KV_ERR(error));
    buf_reset(&a->text);
    jw_init(&w, &a->text, JW_WEB);
    wire_put_detail(&w, str_of(err_text(error)));
}

static void on_act_done(void *ctx, const struct wire_observation *observation,
                        const struct err *error)
{
    struct answer *a = ctx;
    own(err) too_large = NULL;
    struct jw w;

    if (observation) {
        a->status = 200;
        jw_init(&w, &a->text, JW_WEB);
        wire_put_observation(&w, NULL, observation);
        error = too_large = buf_check(&a->text);
    }
    if (error)
        put_error(a, error);
    answer_finish(a);
}

/* --- the request --- */

static void on_waiter_gone(struct http_req *req)
{
    struct answer *a = req->user;

    a->req = NULL;
    http_reply_abort(req);
}

static void on_waiter_hangup(struct http_req *req)
{
    struct answer *a = req->user;

    a->doubtful = true;
}

static void attach_request(struct answer *a, struct http_req *req)
{
    a->req = req;
    a->doubtful = false;
    req->user = a;
    req->on_gone = on_waiter_gone;
    req->on_hangup = on_waiter_hangup;
}

/* An action of the same bytes whose first request is cut, or may be. */
static struct answer *find_orphan(const struct answers *all, const uint8_t digest[SHA256_LEN])
{
    LIST_EACH(a, &all->list, struct answer, link) {
        if (memcmp(a->digest, digest, SHA256_LEN) != 0)
            continue;
        if (!a->req || a->doubtful || http_req_is_cut(a->req)) /* we may hear of that later only */
            return a;
    }
    return NULL;
}

static void attach_retry(struct answer *a, struct http_req *req)
{
    log_info("a cut request is back", KV("action", a->name));
    if (a->req) /* the first connection lingers; it gets an answer of its own, unread */
        http_reply_abort(detach_request(a));
    attach_request(a, req);
    if (a->act)
        return;
    http_reply_json(detach_request(a), a->status, buf_str(&a->text));
    answer_free(a);
}

/* Into the action's own memory: the request may be gone long before it ends. */
static fallible decode_body(struct act *act, struct str body, struct wire_problem *problem)
{
    struct arena *a = &act->arena;
    struct str copy = arena_copy(a, body);
    struct json *doc;
    const struct json *event;

    if (!copy.p)
        return arena_check(a);
    struct err *error = json_parse(a, copy, NULL, &doc);
    if (error && err_code(error) == ERR_INVALID) {
        *problem = wire_problem_not_json(0, err_text(error));
        struct str reason = arena_copy(a, str_of(err_text(error)));
        problem->reason = reason.p ? reason.p : "";
        err_free(error);
        return NULL;
    }
    TRY(error);
    if (act->shell.len)
        TRY(wire_run_of(a, doc, &event));
    else if (!wire_find_action(doc, &event, problem))
        return NULL;
    problem->type = NULL;
    if (wire_event_kind(event) == WIRE_OBSERVATION)
        return err_new(ERR_INVALID, "Invalid action type");
    return wire_decode_action(a, event, &act->action);
}

static fallible answer_new(struct answers *all, struct act *act, const uint8_t digest[SHA256_LEN],
                           struct answer **ret_answer)
{
    struct answer *a = mem_try(sizeof *a);

    if (!a)
        return err_no_memory();
    a->all = all;
    a->act = act;
    a->name = wire_action_name(act->action.type);
    memcpy(a->digest, digest, SHA256_LEN);
    buf_init(&a->text, ANSWER_BYTES);
    list_add(&all->list, &a->link);
    *ret_answer = a;
    return NULL;
}

/* Takes act over. */
static fallible start_request(struct answers *all, struct act *act, struct http_req *req,
                              const uint8_t digest[SHA256_LEN])
{
    struct wire_problem problem = {0};
    struct answer *a = NULL;
    struct err *error = decode_body(act, req->body, &problem);

    if (problem.type) {
        wire_put_problems(http_reply_writer(req), &problem, 1);
        http_reply_written(req, 422);
    } else if (!error) {
        error = answer_new(all, act, digest, &a);
    }
    if (!a) {
        act_cancel(act);
        return error;
    }
    attach_request(a, req);
    act_start(act, on_act_done, a);
    return NULL;
}

fallible answers_handle_run(struct http_req *req, struct str shell)
{
    struct exec *exec = req->owner;
    uint8_t digest[SHA256_LEN];
    struct sha256 h;
    struct act *act;

    sha256_init(&h);
    sha256_add(&h, shell.p, shell.len);
    sha256_add(&h, "", 1);
    sha256_add(&h, req->body.p, req->body.len);
    sha256_done(&h, digest);
    struct answer *orphan = find_orphan(exec->answers, digest);
    if (orphan) {
        attach_retry(orphan, req);
        return NULL;
    }
    TRY(act_new(exec, &act));
    act->shell = arena_copy(&act->arena, shell);
    return start_request(exec->answers, act, req, digest);
}

fallible answers_handle(struct http_req *req)
{
    return answers_handle_run(req, STR(""));
}
