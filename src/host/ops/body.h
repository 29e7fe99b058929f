// SPDX-License-Identifier: Apache-2.0
/* body.h — a body of the host's APIs: JSON in which nothing is said twice. */
#pragma once

#include "base/err.h"

struct http_req;
struct json;

/* ERR_UNPROCESSABLE when it is not JSON, or names the member that is there twice. */
fallible body_json(struct http_req *req, struct json **ret_body);
