// SPDX-License-Identifier: Apache-2.0
/* plugin.h — what --plugins names: started before the server takes requests, each on its own.
 *
 * One that fails says why in GET /croft/v1/plugins and stops nothing but what needs it. Without
 * --plugins the ones that cost nothing until they are used are there. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/rows.h"

struct exec;

enum plugin_status { PLUGIN_PENDING, PLUGIN_STARTING, PLUGIN_READY, PLUGIN_FAILED };

struct plugin { /* one that is wanted */
    const struct plugin_kind *kind;
    struct exec *exec;
    enum plugin_status status;
    struct err *why; /* it failed */
    void *user;      /* its own */
};

/* A kind of plugin: a folder below plugins/, ending in its row. */
struct plugin_kind {
    const char *name;
    const char *needs; /* must be ready first; NULL: nothing */
    bool lazy;         /* wanted also when --plugins is not given */
    /* Ends in plugin_ready or plugin_fail, now or later. An error returned is plugin_fail. */
    fallible (*start)(struct plugin *p);
    void (*close)(struct plugin *p); /* after start, also of one that failed; may be NULL */
};
#define PLG_PLUGIN(id) ROW(plg_plugins, struct plugin_kind, id)

void plugin_ready(struct plugin *p);
void plugin_fail(struct plugin *p, struct err *why); /* takes why over; also one that was ready */

/* Is there a kind of that name, and is it lazy? */
bool plugin_is_lazy(const char *name);
/* NULL: not wanted. */
struct plugin *plugin_find(const struct exec *e, const char *name);
