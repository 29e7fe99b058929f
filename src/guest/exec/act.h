// SPDX-License-Identifier: Apache-2.0
/* act.h — actions: each is started by a call and ends in one observation.
 *
 * A caller makes an act, decodes the action into it and starts it. It runs to its end or until it
 * is cancelled. HTTP is one of the callers, see answers.h. */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/rows.h"
#include "base/str.h"
#include "wire/action.h"
#include "wire/observation.h"

struct exec;

struct act {
    struct exec *exec;
    struct arena arena; /* of the action, and of all that lives as long */
    struct wire_action action;
    struct str shell; /* the name of the shell it is for; empty: the default one */

    /* the handler's own */
    void *user;
    void (*stop)(struct act *act); /* set by one that waits: ends what it waits for */

    struct list link; /* among all that run */
    void (*done)(void *ctx, const struct wire_observation *observation, const struct err *error);
    void *ctx;
};

/* --- asking --- */

/* Fill in action and shell, their memory in the arena, then start it or cancel it. ERR_CLOSED: the
 * server goes down. */
fallible act_new(struct exec *exec, struct act **ret_act);
/* done is called once, perhaps before this returns: an observation, or the error in its place, both
 * borrowed. The act is gone after it. */
void act_start(struct act *act,
               void (*done)(void *ctx, const struct wire_observation *observation,
                            const struct err *error),
               void *ctx);
/* From anywhere but done: done is not called any more. A command that runs is interrupted, what
 * waits in a queue leaves it, a program beside the loop is killed. */
void act_cancel(struct act *act);

/* Asked before every action of every caller. */
struct act_policy {
    /* False: the action does not start, and this function has ended it with act_done, act_error or
     * act_fail. */
    bool (*allow)(void *ctx, struct act *act);
    void *ctx;
};
void act_set_policy(struct exec *exec, const struct act_policy *policy); /* copied */

/* --- for handlers --- */

/* A kind of action: a folder below actions/, ending in its row. */
struct act_handler {
    enum wire_action_type type;
    /* Ends in act_done or act_fail, now or later. An error returned is act_fail. */
    fallible (*start)(struct act *act);
};
#define ACT_HANDLER(id) ROW(act_handlers, struct act_handler, id)

/* Each ends the act, which is gone after it. */
void act_done(struct act *act, const struct wire_observation *observation);
void act_fail(struct act *act, struct err *error);   /* takes error over */
void act_error(struct act *act, struct str content); /* an `error` observation */

/* The server goes down: what still runs is stopped and fails. */
void act_close_all(struct exec *exec);
