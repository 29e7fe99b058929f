// SPDX-License-Identifier: Apache-2.0
/* asking.c — see asking.h. */
#include "host/runtime/asking.h"

static void on_done(struct runtime_ask *ask, struct runtime *r, struct err *e)
{
    struct asking *a = container_of(ask, struct asking, ask);

    if (!e && a->put)
        e = a->put(a->req, http_reply_writer(a->req), r);
    if (e)
        http_reply_err(a->req, e);
    else if (a->put)
        http_reply_written(a->req, 200);
    else
        http_reply(a->req, 204, STR(""), STR(""));
}

fallible asking_new(const struct runtime_api *api, struct http_req *req, runtime_put *put,
                    struct asking **ret_asking)
{
    struct asking *a = arena_new(&req->arena, struct asking);

    if (!a)
        return arena_check(&req->arena);
    a->api = api;
    a->req = req;
    a->put = put;
    a->ask.done = on_done;
    a->ask.request = http_req_id(req);
    *ret_asking = a;
    return NULL;
}
