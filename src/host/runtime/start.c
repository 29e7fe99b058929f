// SPDX-License-Identifier: Apache-2.0
/* start.c — who gets a runtime, and which: the session's own, a warm one, a new one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "host/runtime/inner.h"

/* False: it needs a new one. */
static bool use_existing(struct runtime *r, struct runtime_ask *ask)
{
    bool ending = r->op == RUNTIME_REMOVE;

    LIST_EACH(next, &r->asks, struct runtime_ask, link)
        ending |= next->op == RUNTIME_REMOVE;
    if (ending)
        return false;
    switch ((enum runtime_status)r->status.now) {
    case RUNTIME_STARTING:
    case RUNTIME_RUNNING:
        if (r->status.now == RUNTIME_RUNNING && runtime_is_far(r))
            manager_ask(r, RUNTIME_RESUME, ask); /* should it have been paused or ended there */
        else
            runtime_watch(r, ask);
        return true;
    case RUNTIME_PAUSED:
        manager_ask(r, RUNTIME_RESUME, ask);
        return true;
    case RUNTIME_ERROR:
        if (!runtime_is_out_of_reach(r))
            break;
        manager_ask(r, RUNTIME_RESUME, ask); /* it is looked for by its session */
        return true;
    case RUNTIME_STOPPED:
        break;
    }
    return false;
}

fallible start_check_queue(const struct manager *m)
{
    if (m->ending)
        return err_new(ERR_BUSY, "the server is being stopped");
    if (m->starting >= m->config.queue)
        return err_new(ERR_BUSY, "%u starts are under way, which is the most (server.most_starts)",
                       m->starting);
    return NULL;
}

static fallible check_room(const struct manager *m, unsigned live)
{
    TRY(start_check_queue(m));
    if (live >= m->config.most)
        return err_new(ERR_LIMIT,
                       "%u runtimes are there, which is the most (server.most_sandboxes)", live);
    return NULL;
}

static void give_to(struct runtime *r, const struct wire_start *start)
{
    r->session_id = strndup(start->session_id.p, start->session_id.len);
    r->image = strndup(start->image.p, start->image.len);
    r->factor = (uint16_t)start->resource_factor;
    r->keep = r->manager->config.keep;
    r->wants = wants_text(start->wants);
    r->created_ms = r->changed_ms = manager_now_ms(r->manager);
}

/* Names of the policy, or with ":latest" behind. */
static const char *policy_image(const struct manager *m, struct str image)
{
    const char *const *names = m->config.driver->host->images;

    if (str_eq(image, STR("host")))
        return "host";
    for (; names && *names; names++) {
        struct str name = str_of(*names);
        if (str_eq(name, image) ||
            (str_starts(name, image) && str_eq(str_from(name, image.len), STR(":latest"))))
            return *names;
    }
    return NULL;
}

bool manager_has_image(const struct manager *m, struct str image)
{
    return policy_image(m, image) != NULL;
}

struct sbx_driver *manager_driver(const struct manager *m)
{
    return m->config.driver;
}

struct proxy *manager_proxy(const struct manager *m)
{
    return m->config.proxy;
}

/* Whether a store has it is known to the driver alone, when the sandbox starts. */
fallible start_known_image(const struct manager *m, struct str image, char ret_known[START_IMAGE])
{
    const char *known = policy_image(m, image);
    struct str name = known ? str_of(known) : image;

    if (!name.len || name.len >= START_IMAGE || memchr(name.p, '\0', name.len))
        return err_new(ERR_UNPROCESSABLE, "image: wanted 1 to %d characters", START_IMAGE - 1);
    snprintf(ret_known, START_IMAGE, STR_FMT, STR_ARG(name));
    return NULL;
}

/* Above the files of a snapshot, if there is one. */
fallible start_new_sandbox(struct runtime *r, const struct wire_start *start)
{
    struct sbx_driver *d = r->manager->config.driver;

    if (!start->from.p)
        return sbx_create(d, &r->spec->sbx, &r->sbx);
    TRY(sbx_fork(d, start->from, &r->spec->sbx, &r->sbx));
    runtime_hold(r, start->from);
    return NULL;
}

static void tell_where_from(struct runtime *r, const char *pool, enum pool_miss miss)
{
    const char *note = r->spec->note;

    r->miss = (uint8_t)miss;
    r->launch = r->warm ? RUNTIME_WARM : miss == POOL_FORK ? RUNTIME_FORK : RUNTIME_COLD;
    if (r->warm)
        runtime_set_detail(r, "warm: from pool '%s'%s%s", pool, note ? "; " : "", note ? note : "");
    else
        runtime_set_detail(r, "cold: %s%s%s", pool_miss_words[miss], note ? "; " : "",
                           note ? note : "");
    runtime_set_text(&r->pool, r->warm ? pool : NULL);
}

/* A warm one by preference; r gets its id. A pool gives it away only when nothing can fail. */
static fallible find_sandbox(struct manager *m, struct runtime *r, const struct wire_start *start)
{
    enum pool_miss miss;
    const char *pool = NULL;
    char image[START_IMAGE];

    TRY(start_known_image(m, start->image, image));
    struct sbx *warm = NULL;
    if (start->from.p)
        miss = POOL_FORK;
    else if (wants_need_a_new_one(m, start))
        miss = POOL_DISK;
    else
        warm = pool_look(m, image, &pool, &miss);
    if (warm)
        memcpy(r->id, warm->id, sizeof r->id);
    else
        runtime_make_id(r->id);
    r->warm = warm != NULL;
    TRY(proxy_add(m->config.proxy, &r->target, 0));
    r->port = r->target.port;
    r->spec = mem_new(sizeof *r->spec);
    TRY(spec_make(r, start, image, r->spec));
    r->published = r->spec->sbx.face == SBX_FACE_COMMAND ? r->spec->sbx.port : 0;
    tell_where_from(r, pool, miss);
    if (warm) {
        pool_give(m, warm);
        warm->on_gone = runtime_on_gone; /* it may end before it is claimed */
        warm->arg = r;
        r->sbx = warm;
        return NULL;
    }
    pool_missed(m, image, miss);
    return start_new_sandbox(r, start);
}

/* None yet: what can be said of the request without its image is said now. */
static fallible find_none(struct manager *m, struct runtime *r, const struct wire_start *start,
                          struct builds *builds)
{
    char image[START_IMAGE];

    TRY(start_known_image(m, start->image, image));
    runtime_make_id(r->id);
    TRY(proxy_add(m->config.proxy, &r->target, 0));
    r->port = r->target.port;
    r->spec = mem_new(sizeof *r->spec);
    TRY(spec_make(r, start, image, r->spec));
    runtime_drop_spec(r);
    await_new(r, builds);
    return NULL;
}

static fallible start_make(struct manager *m, struct tenant *t, const struct wire_start *start,
                           struct builds *builds, struct runtime **ret)
{
    struct runtime *r = runtime_new(m, t, "");

    rng_token(rng_system(), r->session_key, sizeof r->session_key);
    memcpy(r->inner_key, r->session_key, sizeof r->inner_key);
    give_to(r, start);
    runtime_set_hooks(r);
    struct err *e = builds ? find_none(m, r, start, builds) : find_sandbox(m, r, start);
    if (e) {
        runtime_free(r);
        return e;
    }
    *ret = r;
    return NULL;
}

/* builds NULL: its image is there. */
static fallible start_one(struct manager *m, const struct key *key, const struct wire_start *start,
                          struct builds *builds, struct runtime_ask *ask)
{
    struct tenant *t = tenant_get(m, key_tenant(key));
    struct runtime *old = map_get(&t->sessions, start->session_id), *r;

    list_init(&ask->link);
    if (old && use_existing(old, ask))
        return NULL;
    TRY(wants_check_factor(m, start));
    unsigned goes = old && old->status.now == RUNTIME_ERROR; /* its place is taken */
    TRY(check_room(m, m->live - goes));
    TRY(keys_admit(m->config.keys, key, t->live - goes));
    struct err *e = start_make(m, t, start, builds, &r);
    if (e) {
        keys_give_back(m->config.keys, key);
        m->counters.refused++;
        return e;
    }
    m->counters.starts++;
    manager_add(m, r);
    if (goes)
        runtime_ask_own(old, RUNTIME_REMOVE); /* what it left goes */
    runtime_begin(r, start, ask);
    return NULL;
}

fallible manager_start(struct manager *m, const struct key *key, const struct wire_start *start,
                       struct runtime_ask *ask)
{
    return start_one(m, key, start, NULL, ask);
}

fallible manager_start_when_built(struct manager *m, const struct key *key,
                                  const struct wire_start *start, struct builds *builds,
                                  struct runtime_ask *ask)
{
    if (m->awaiting >= m->config.queue)
        return err_new(ERR_BUSY,
                       "%u starts wait for images that are being built, which is the most "
                       "(server.most_starts)",
                       m->awaiting);
    return start_one(m, key, start, builds, ask);
}
