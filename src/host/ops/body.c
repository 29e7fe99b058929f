// SPDX-License-Identifier: Apache-2.0
/* body.c — see body.h. */
#include "host/ops/body.h"

#include "net/server.h"
#include "wire/unique.h"

fallible body_json(struct http_req *req, struct json **ret_body)
{
    TRY(http_req_json(req, ret_body));
    return wire_check_unique(req->body, *ret_body);
}
