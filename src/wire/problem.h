// SPDX-License-Identifier: Apache-2.0
/* problem.h — the body of a 422: what pydantic says when a request does not fit its schema.
 *
 *   {"detail":"Invalid request parameters","errors":"[{'type': 'missing', 'loc': ('body',
 *    'action'), 'msg': 'Field required', 'input': {}}]"}
 *
 * `errors` is one string: Python's repr of a list of dicts. */
#pragma once

#include "base/json.h"
#include "base/str.h"

struct wire_place {
    const char *name; /* NULL: an index */
    int64_t index;
};

struct wire_problem {
    const char *type, *message;
    struct wire_place place[3]; /* ("body", "action") */
    unsigned depth;             /* of place */
    const struct json *input;   /* NULL prints None */
    const char *reason;         /* NULL: none; printed as 'ctx': {'error': …} */
};

void wire_put_problems(struct jw *w, const struct wire_problem *problems, size_t count);

/* --- the ones our requests can have; where is "body" or "query" --- */
struct wire_problem wire_problem_missing(const char *where, const char *name,
                                         const struct json *input);
struct wire_problem wire_problem_not_object(const char *name, const struct json *input);
struct wire_problem wire_problem_not_bool(const char *where, const char *name,
                                          const struct json *input);
/* The whole body: not JSON from this character on, or JSON of the wrong kind. */
struct wire_problem wire_problem_not_json(int64_t at, const char *reason);
struct wire_problem wire_problem_wrong_body(const struct json *input);
