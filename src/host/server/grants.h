// SPDX-License-Identifier: Apache-2.0
/* grants.h — [mount.NAME]: directories of this machine that sandboxes may mount. */
#pragma once

#include <stddef.h>

#include "base/str.h"

struct json;
struct settings;

#define GRANTS_MOST     15
#define GRANTS_PATH_MAX 255

enum { /* what sandboxes may do with a directory; bits */
       GRANT_RO = 1 << 0,
       GRANT_OVERLAY = 1 << 1,
       GRANT_APPLY = 1 << 2, /* changes of an overlay may be taken over */
       GRANT_RW = 1 << 3,
};

struct grant {
    struct str name;
    struct str path;           /* absolute, terminated */
    struct json *modes, *keys; /* arrays of strings; keys empty: all that have the scope */
    unsigned may;              /* modes as bits */
};

const struct grant *grants_of(const struct settings *s, size_t *ret_count);
