// SPDX-License-Identifier: Apache-2.0
/* files.h — requests about the changes of a sandbox: one page of them, or which to take over and
 * how. It is the body of a request, and what a server hands on to the process that does the
 * work. */
#pragma once

#include "base/json.h"

#define WIRE_PAGE_MOST  10000 /* changes in one answer */
#define WIRE_PAGE       1000
#define WIRE_PATHS_MOST 1000

struct wire_files {
    uint64_t offset, limit;   /* of the list of changes */
    bool force;               /* also where the directory changed meanwhile */
    const struct json *paths; /* an array of absolute paths in the sandbox; NULL: all */
};

/* Members that are missing have their defaults. ERR_UNPROCESSABLE names the field. */
fallible wire_decode_files(const struct json *body, struct wire_files *ret_files);
void wire_put_files(struct jw *w, const struct wire_files *files); /* an object */
