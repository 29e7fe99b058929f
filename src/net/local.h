// SPDX-License-Identifier: Apache-2.0
/* local.h — is a request meant for this machine?
 *
 * A server without a key trusts every client that reaches it. On loopback that is every program
 * here, and every web page in a browser here.
 *
 * A page can send requests: Origin names the page. A page can also make its own name lead to
 * 127.0.0.1: Host names what was asked for. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

struct http_req;

/* "localhost", names below it, 127.0.0.0/8, [::1]; with or without a port. */
bool local_is_name(struct str host);
/* ERR_FORBIDDEN unless Host, and Origin where there is one, are such names. */
fallible local_check(const struct http_req *req);
