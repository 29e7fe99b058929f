// SPDX-License-Identifier: Apache-2.0
/* answers.h — actions over HTTP: the request decoded, the observation answered.
 *
 * An action goes on when its connection is lost. Its answer is then kept for two minutes, and a
 * request of the same bytes gets it instead of starting the action again: clients send a request
 * that was cut up to five times. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"

struct answers; /* of actions that run, and those that are kept */
struct exec;
struct http_req;

struct answers *answers_new(struct exec *exec);
void answers_free(struct answers *all); /* after act_close_all; NULL is fine */
OWNABLE(answers)
/* No action runs, of any caller, and no answer is held. */
bool answers_are_idle(const struct answers *all);

fallible answers_handle(struct http_req *req); /* POST /execute_action */
/* A run action for one shell; the body is its arguments and timeout. */
fallible answers_handle_run(struct http_req *req, struct str shell);
