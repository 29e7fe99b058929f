// SPDX-License-Identifier: Apache-2.0
/* act.c — see act.h. */
#include "guest/exec/act.h"

#include <stdlib.h>

#include "base/mem.h"
#include "guest/exec/inner.h"

#define ACT_BYTES  (256u << 20)
#define GOING_DOWN "the server is going down"

ROWS_OF(act_handlers, struct act_handler)

fallible act_new(struct exec *exec, struct act **ret_act)
{
    if (exec->closing)
        return err_new(ERR_CLOSED, GOING_DOWN);
    struct act *act = mem_try(sizeof *act);
    if (!act)
        return err_no_memory();
    act->exec = exec;
    arena_init(&act->arena, ACT_BYTES);
    list_init(&act->link);
    *ret_act = act;
    return NULL;
}

static void act_free(struct act *act)
{
    list_del(&act->link);
    arena_done(&act->arena);
    free(act);
}

static void act_end(struct act *act, const struct wire_observation *observation,
                    const struct err *error)
{
    list_del(&act->link);
    act->done(act->ctx, observation, error);
    act_free(act);
}

void act_done(struct act *act, const struct wire_observation *observation)
{
    act_end(act, observation, NULL);
}

void act_fail(struct act *act, struct err *error)
{
    act_end(act, NULL, error);
    err_free(error);
}

void act_error(struct act *act, struct str content)
{
    struct wire_observation o;

    wire_observation_init(&o, WIRE_OBS_ERROR);
    o.content = content;
    act_done(act, &o);
}

static const struct act_handler *find_handler(enum wire_action_type type)
{
    for (size_t i = 0; i < ROWS_LEN(act_handlers); i++)
        if (ROWS_AT(act_handlers, i)->type == type)
            return ROWS_AT(act_handlers, i);
    return NULL;
}

void act_start(struct act *act,
               void (*done)(void *ctx, const struct wire_observation *observation,
                            const struct err *error),
               void *ctx)
{
    struct exec *exec = act->exec;
    const struct act_handler *h = find_handler(act->action.type);
    struct err *error;

    act->done = done;
    act->ctx = ctx;
    list_add(&exec->acts, &act->link);
    exec->clock.last_action_ns = loop_now_ns(exec->loop);
    if (exec->policy.allow && !exec->policy.allow(exec->policy.ctx, act))
        return;
    if (h)
        error = h->start(act);
    else
        error = err_new(ERR_INVALID, "'ActionExecutor' object has no attribute '%s': not run here",
                        wire_action_name(act->action.type));
    if (error)
        act_fail(act, error);
}

void act_cancel(struct act *act)
{
    if (act->stop)
        act->stop(act);
    act_free(act);
}

void act_set_policy(struct exec *exec, const struct act_policy *policy)
{
    exec->policy = *policy;
}

void act_close_all(struct exec *exec)
{
    while (!list_empty(&exec->acts)) { /* the end of one may end another */
        struct act *act = LIST_FIRST(&exec->acts, struct act, link);
        act->stop(act);
        act_fail(act, err_new(ERR_CLOSED, GOING_DOWN));
    }
}
