// SPDX-License-Identifier: Apache-2.0
/* layers.h — the layers of isolation by name: which of them this machine gives, by what means, and
 * how to get the others. `croft doctor` prints them, `--require` demands them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "host/launcher/box.h"

struct layer {
    const char *name, *means; /* means: what it is for, in a few words */
    bool (*there)(const struct box_host *h);
    const char *(*how)(const struct box_host *h); /* the mechanism, "none" included */
    const char *remedy;                           /* what to do when it is not there */
};

extern const struct layer layers[];
extern const size_t layers_len;

/* Each name in a list "a,b" must be there: ERR_UNSUPPORTED names the first that is not. */
fallible layers_require(const struct box_host *h, struct str names);
/* The same as sbx_host.native_caps: all a native sandbox can but for what this machine lacks. */
unsigned layers_caps(const struct box_host *h);
/* The others, in the words of doctor, and one without a name at the end. */
struct sbx_lack;
void layers_lacks(const struct box_host *h, struct sbx_lack *ret_lacks); /* SBX_LACKS_MAX */
