// SPDX-License-Identifier: Apache-2.0
/* backing.h — which backend a server's sandboxes are of, and what those that are not `native` need
 * instead of a launcher. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

struct layout;
struct sbx_host;
struct settings;

struct backing {
    int guest; /* croft-guest; -1: nobody needs it */
};

bool backing_is_native(const struct settings *s);
/* What only native sandboxes can have is refused, not missed later. */
fallible backing_check(const struct settings *s);
/* The state is this backend's from now on; ERR_CONFLICT: it is another's. */
fallible backing_claim(const struct layout *l, struct str backend);
/* What its driver is lent, beside what all get. */
fallible backing_lend(struct backing *b, struct str backend, struct str guest,
                      struct sbx_host *host);
void backing_close(struct backing *b);
