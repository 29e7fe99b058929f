// SPDX-License-Identifier: Apache-2.0
/* act.h — one action on its way from the request to the observation.
 *
 * An action runs to its end whatever becomes of its connection. If nobody was there to take the
 * answer it is kept for two minutes, and a request of the same bytes gets it instead of running the
 * action again: clients send a cut request up to five times. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/rows.h"
#include "base/str.h"
#include "wire/action.h"
#include "wire/observation.h"

struct exec;
struct http_req;

struct act {
    struct exec *exec;
    struct arena arena; /* whatever lives as long as the action */
    struct wire_action action;
    struct str shell; /* the shell it is for; empty: the default one */
    struct list link; /* among all actions and kept answers */
    void *user;       /* the handler's own */
};

/* A kind of action: a folder below actions/, ending in its row. */
struct act_handler {
    enum wire_action_type type;
    /* Ends in act_done or act_fail, now or later. An error returned is act_fail. */
    fallible (*start)(struct act *act);
};
#define ACT_HANDLER(id) ROW(act_handlers, struct act_handler, id)

void act_done(struct act *act, const struct wire_observation *observation);
/* {"detail": text} with the code's status; takes e over. */
void act_fail(struct act *act, struct err *e);
/* An `error` observation with this content. */
void act_error(struct act *act, struct str content);

fallible act_handle(struct http_req *req); /* POST /execute_action */
/* A run action for one shell; the body is its arguments and timeout. */
fallible act_handle_run(struct http_req *req, struct str shell);

/* exec.c uses these. */
struct act_book; /* actions that run, answers that are kept */
struct act_book *act_book_new(struct exec *exec);
void act_book_free(struct act_book *book);
