// SPDX-License-Identifier: Apache-2.0
/* asking.c — see asking.h. */
#include "host/runtime/asking.h"

#include <stdio.h>

#include "host/build/build.h"

static void on_done(struct runtime_ask *ask, struct runtime *r, struct err *e)
{
    struct asking *a = container_of(ask, struct asking, ask);

    if (e)
        http_reply_err(a->req, e);
    else if (a->put)
        http_reply_with(a->req, 200, a->put, r);
    else
        http_reply(a->req, 204, STR(""), STR(""));
}

fallible asking_new(struct http_req *req, http_put *put, struct asking **ret_asking)
{
    struct asking *a = arena_new(&req->arena, struct asking);

    if (!a)
        return arena_check(&req->arena);
    a->req = req;
    a->put = put;
    a->ask.done = on_done;
    a->ask.request = http_req_id(req);
    *ret_asking = a;
    return NULL;
}

static fallible asking_begin(struct asking *a)
{
    return manager_start(api_of(a->req)->manager, a->key, &a->start, &a->ask);
}

/* What it says of itself; of the text of a record. */
static fallible take_config(struct asking *a, struct str record)
{
    struct json *tree;

    TRY(json_parse(&a->req->arena, arena_copy(&a->req->arena, record), NULL, &tree));
    a->start.image_config = json_get(tree, STR("config"));
    a->start.image_id = json_get_str(tree, "id", (struct str){0});
    a->start.no_bash = json_get_bool(tree, "no_bash", false);
    return NULL;
}

/* It is told as starting, and starts when its image is there; whose build it is sees that in the
 * events. */
static fallible begin_when_built(struct asking *a)
{
    struct runtime_api *f = api_of(a->req);

    if (manager_build_wait_ms(f->manager))
        return manager_start_when_built(f->manager, a->key, &a->start, f->builds, &a->ask);
    return err_new(ERR_BUSY,
                   "image: '" STR_FMT "' is being built: start it when /build_status says SUCCESS",
                   STR_ARG(str_first(a->start.image, 200)));
}

static void on_image(void *arg, const char *record, size_t count, const struct err *why)
{
    struct asking *a = arg;
    struct str image = str_first(a->start.image, 200);
    struct err *e = NULL;
    bool missing = why && (err_code(why) == ERR_NOT_FOUND || err_code(why) == ERR_INVALID);

    bool building = missing && builds_under_way(api_of(a->req)->builds, a->start.image);
    if (building)
        e = begin_when_built(a);
    else if (missing)
        e = err_new(ERR_UNPROCESSABLE,
                    "image: '" STR_FMT "' is not here; 'host' is this machine's own system, "
                    "'croft image ls' lists the others, 'croft image import' adds one",
                    STR_ARG(image));
    else if (why)
        e = err_wrap(err_copy(why), "image '" STR_FMT "'", STR_ARG(image));
    else if (count)
        e = take_config(a, str_of(record));
    if (!e && !building)
        e = asking_begin(a);
    if (e)
        http_reply_err(a->req, e);
}

/* The session's own, whatever it is made of. */
static bool is_there(const struct asking *a)
{
    const struct runtime *r =
        manager_find_session(api_of(a->req)->manager, a->key, a->start.session_id);

    return r && r->status.now != RUNTIME_STOPPED && r->status.now != RUNTIME_ERROR;
}

/* An image that is not here is refused now, and not found out by a sandbox that does not start. */
fallible asking_start(struct asking *a)
{
    struct manager *m = api_of(a->req)->manager;

    if (is_there(a) || manager_has_image(m, a->start.image) ||
        !(manager_driver(m)->caps & SBX_IS_HERE))
        return asking_begin(a); /* what another machine has, it knows */
    return sbx_image_ask(manager_driver(m), a->start.image, on_image, a);
}
