// SPDX-License-Identifier: Apache-2.0
/* request_id.c — see request_id.h. */
#include "host/ops/request_id.h"

#include "base/rng.h"
#include "net/server.h"

bool request_id_ok(struct str id)
{
    static const struct str others = STR_INIT("-_.:+/=@");

    for (size_t i = 0; i < id.len; i++) {
        char low = (char)(id.p[i] | 0x20);
        if (!str_is_digit(id.p[i]) && (low < 'a' || low > 'z') &&
            str_find_char(others, id.p[i]) < 0)
            return false;
    }
    return id.len && id.len <= REQUEST_ID_MAX;
}

void request_id_set(struct http_req *req)
{
    struct str theirs = http_req_header(req, STR("x-request-id"));
    char made[RNG_HEX_LEN + 1];

    if (req->id.p)
        return;
    if (request_id_ok(theirs)) {
        req->id = theirs;
    } else {
        rng_hex(rng_system(), made);
        req->id = arena_copy(&req->arena, str_n(made, RNG_HEX_LEN));
    }
    http_reply_header(req, STR("x-request-id"), req->id);
}
