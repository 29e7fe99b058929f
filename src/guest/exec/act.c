// SPDX-License-Identifier: Apache-2.0
/* act.c — from request to observation, and what happens when the connection does not last. */
#include "guest/exec/act.h"

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "guest/exec/inner.h"
#include "net/server.h"
#include "wire/api.h"
#include "wire/problem.h"
#include "wire/shells.h"

#define KEEP_MS      (2 * 60 * 1000)
#define KEEP_BYTES   (64u << 20) /* of all kept answers; the oldest go first */
#define ACT_BYTES    (256u << 20)
#define ANSWER_BYTES (256u << 20)

ROWS_OF(act_handlers, struct act_handler)

/* An action, from its request until its answer was taken or forgotten. */
struct entry {
    struct act act;
    struct act_book *book;
    uint8_t digest[SHA256_LEN]; /* of the request's body */
    struct http_req *req;       /* who waits; NULL: nobody */
    bool doubtful;              /* the peer may have given up */
    bool finished;
    int status;
    struct buf answer;
    struct loop_timer forget;
};

struct act_book {
    struct exec *exec;
    struct list entries;
    size_t kept_bytes;
};

struct act_book *act_book_new(struct exec *exec)
{
    struct act_book *b = mem_new(sizeof *b);

    b->exec = exec;
    list_init(&b->entries);
    return b;
}

static void entry_free(struct entry *e)
{
    if (e->finished)
        e->book->kept_bytes -= e->answer.len;
    list_del(&e->act.link);
    loop_timer_stop(&e->forget);
    arena_done(&e->act.arena);
    buf_done(&e->answer);
    free(e);
}

void act_book_free(struct act_book *b)
{
    if (!b)
        return;
    LIST_EACH(a, &b->entries, struct act, link)
        entry_free(container_of(a, struct entry, act));
    free(b);
}

static void on_forget(struct loop_timer *t)
{
    entry_free(container_of(t, struct entry, forget));
}

static void make_room(struct act_book *b)
{
    LIST_EACH(a, &b->entries, struct act, link) {
        struct entry *e = container_of(a, struct entry, act);
        if (b->kept_bytes <= KEEP_BYTES)
            return;
        if (e->finished)
            entry_free(e);
    }
}

static void act_answer(struct entry *e)
{
    struct http_req *req = take(&e->req);

    req->on_gone = NULL;
    req->on_hangup = NULL;
    http_reply_json(req, e->status, buf_str(&e->answer));
}

/* The answer is ready: to whoever waits, and into the book if that may be nobody. */
static void act_finish(struct entry *e, int status)
{
    e->finished = true;
    e->status = status;
    e->book->kept_bytes += e->answer.len;
    bool taken = e->req && !e->doubtful && !http_req_is_cut(e->req);
    if (e->req)
        act_answer(e);
    if (taken) {
        entry_free(e);
        return;
    }
    loop_timer_start(e->book->exec->loop, &e->forget, KEEP_MS, on_forget);
    make_room(e->book);
}

void act_done(struct act *act, const struct wire_observation *observation)
{
    struct entry *e = container_of(act, struct entry, act);
    struct jw w;

    jw_init(&w, &e->answer, JW_WEB);
    wire_put_observation(&w, NULL, observation);
    struct err *error = buf_check(&e->answer);
    if (error)
        act_fail(act, error);
    else
        act_finish(e, 200);
}

void act_fail(struct act *act, struct err *error)
{
    struct entry *e = container_of(act, struct entry, act);
    int status = err_http_status(err_code(error));
    struct jw w;

    if (status >= 500)
        log_error("action failed", KV("action", wire_action_name(act->action.type)), KV_ERR(error));
    buf_reset(&e->answer);
    jw_init(&w, &e->answer, JW_WEB);
    wire_put_detail(&w, str_of(err_text(error)));
    err_free(error);
    act_finish(e, status);
}

void act_error(struct act *act, struct str content)
{
    struct wire_observation o;

    wire_observation_init(&o, WIRE_OBS_ERROR);
    o.content = content;
    act_done(act, &o);
}

/* --- the request --- */

static void on_waiter_gone(struct http_req *req)
{
    struct entry *e = req->user;

    e->req = NULL;
    http_reply_abort(req);
}

static void on_waiter_hangup(struct http_req *req)
{
    struct entry *e = req->user;

    e->doubtful = true;
}

static void act_attach(struct entry *e, struct http_req *req)
{
    e->req = req;
    e->doubtful = false;
    req->user = e;
    req->on_gone = on_waiter_gone;
    req->on_hangup = on_waiter_hangup;
}

/* An action of the same bytes whose first asker is, or may be, gone. */
static struct entry *find_orphan(struct act_book *b, const uint8_t digest[SHA256_LEN],
                                 struct str shell)
{
    LIST_EACH(a, &b->entries, struct act, link) {
        struct entry *e = container_of(a, struct entry, act);
        if (memcmp(e->digest, digest, SHA256_LEN) != 0 || !str_eq(e->act.shell, shell))
            continue;
        if (!e->req || e->doubtful || http_req_is_cut(e->req)) /* we may hear of that later only */
            return e;
    }
    return NULL;
}

static void attach_retry(struct entry *e, struct http_req *req)
{
    log_info("a cut request is back", KV("action", wire_action_name(e->act.action.type)));
    if (e->req) { /* the first connection lingers; it gets an answer of its own, unread */
        struct http_req *old = take(&e->req);
        old->on_gone = NULL;
        old->on_hangup = NULL;
        http_reply_abort(old);
    }
    act_attach(e, req);
    if (!e->finished)
        return;
    act_answer(e);
    entry_free(e);
}

static fallible put_problem(struct http_req *req, struct jw *w, const void *problem)
{
    (void)req;
    wire_put_problems(w, problem, 1);
    return NULL;
}

static const struct act_handler *find_handler(enum wire_action_type type)
{
    for (size_t i = 0; i < ROWS_LEN(act_handlers); i++)
        if (ROWS_AT(act_handlers, i)->type == type)
            return ROWS_AT(act_handlers, i);
    return NULL;
}

/* Decodes into the action's own memory: the request may be gone long before it ends. */
static fallible act_decode(struct entry *e, struct str body, struct wire_problem *problem)
{
    struct arena *a = &e->act.arena;
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
    if (e->act.shell.len)
        TRY(wire_run_of(a, doc, &event));
    else if (!wire_find_action(doc, &event, problem))
        return NULL;
    problem->type = NULL;
    if (wire_event_kind(event) == WIRE_OBSERVATION)
        return err_new(ERR_INVALID, "Invalid action type");
    return wire_decode_action(a, event, &e->act.action);
}

static fallible entry_new(struct act_book *b, const uint8_t digest[SHA256_LEN], struct str shell,
                          struct entry **ret_entry)
{
    struct entry *e = mem_try(sizeof *e);

    if (!e)
        return err_no_memory();
    e->book = b;
    e->act.exec = b->exec;
    memcpy(e->digest, digest, SHA256_LEN);
    arena_init(&e->act.arena, ACT_BYTES);
    buf_init(&e->answer, ANSWER_BYTES);
    e->act.shell = arena_copy(&e->act.arena, shell);
    list_add(&b->entries, &e->act.link);
    *ret_entry = e;
    return NULL;
}

static void act_start(struct entry *e)
{
    const struct act_handler *h = find_handler(e->act.action.type);
    struct err *error;

    if (h)
        error = h->start(&e->act);
    else if (e->act.action.type == WIRE_ACT_BROWSE ||
             e->act.action.type == WIRE_ACT_BROWSE_INTERACTIVE)
        return act_error(&e->act, STR("Browser functionality is not supported or disabled."));
    else
        error = err_new(ERR_INVALID, "'ActionExecutor' object has no attribute '%s': not run here",
                        wire_action_name(e->act.action.type));
    if (error)
        act_fail(&e->act, error);
}

fallible act_handle(struct http_req *req)
{
    return act_handle_run(req, STR(""));
}

fallible act_handle_run(struct http_req *req, struct str shell)
{
    struct exec *exec = req->owner;
    struct entry *e;
    struct wire_problem problem = {0};
    uint8_t digest[SHA256_LEN];

    sha256(req->body, digest);
    exec->last_action_ns = loop_now_ns(exec->loop);
    struct entry *orphan = find_orphan(exec->acts, digest, shell);
    if (orphan) {
        attach_retry(orphan, req);
        return NULL;
    }
    TRY(entry_new(exec->acts, digest, shell, &e));
    struct err *error = act_decode(e, req->body, &problem);
    if (error) {
        entry_free(e);
        return error;
    }
    if (problem.type) {
        http_reply_with(req, 422, put_problem, &problem);
        entry_free(e);
        return NULL;
    }
    act_attach(e, req);
    act_start(e);
    return NULL;
}
