// SPDX-License-Identifier: Apache-2.0
/* known.h — unknown members of a body: in our own API a misspelt one is refused. */
#pragma once

#include "base/json.h"

/* names are ended by NULL. ERR_UNPROCESSABLE names the member, with what is before it ("mounts[1]."
 * or ""), and the nearest of names. */
fallible wire_check_known(const struct json *body, const char *before, const char *const *names);
