// SPDX-License-Identifier: Apache-2.0
/* line.c — starts that wait their turn: of one tenant first in, first out; between tenants in turn.
 *
 * A start in line has made nothing: no runtime, no port, no row. It leaves the line when the
 * backend is ready for one more, and is refused only then if the machine is full. */
#include "host/runtime/inner.h"
#include "host/runtime/start.h"

#define TURN_MOST 64 /* begun, or refused, in one turn of the loop */

/* Starts that the backend has not answered: twice what it is asked at once, so that it never waits
 * for us. */
static bool has_room(const struct manager *m)
{
    return m->starting < 2 * queue_most(m);
}

static struct tenant *tenant_of(struct manager *m, const struct start_place *p)
{
    return tenant_get(m, key_tenant(p->key));
}

static void line_leave(struct manager *m, struct start_place *p)
{
    struct tenant *t = tenant_of(m, p);

    list_del(&p->link);
    if (list_empty(&t->line))
        list_del(&t->in_turn);
    if (!--m->line.count)
        sbx_wait_over(&m->line.waiter);
}

static void line_answer(struct manager *m, struct start_place *p, struct err *e)
{
    line_leave(m, p);
    runtime_answer(p->ask, NULL, e);
}

void line_refuse_all(struct manager *m, const struct err *why)
{
    while (!list_empty(&m->line.tenants)) {
        struct tenant *t = LIST_FIRST(&m->line.tenants, struct tenant, in_turn);
        line_answer(m, LIST_FIRST(&t->line, struct start_place, link), err_copy(why));
    }
}

/* The backend is silent, or about to be closed. */
static void on_line_give_up(struct sbx_waiter *w)
{
    struct manager *m = container_of(w, struct manager, line.waiter);
    own(err) why = sbx_check_silent(m->config.driver, NOTHING_BEGUN);

    line_refuse_all(m, why);
}

/* It may have been revoked since. */
static fallible line_check_key(const struct manager *m, const struct start_place *p)
{
    const struct key *key = keys_find_name(m->config.keys, str_of(p->key->name));

    return key && key->revoked_ms
               ? err_new(ERR_UNAUTHORIZED, "the key in X-API-Key is not accepted")
               : NULL;
}

static void on_turn(struct loop_later *l)
{
    struct manager *m = container_of(l, struct manager, line.turn);

    for (unsigned i = 0; i < TURN_MOST && m->line.count && has_room(m); i++) {
        struct tenant *t = LIST_FIRST(&m->line.tenants, struct tenant, in_turn);
        struct start_place *p = LIST_FIRST(&t->line, struct start_place, link);
        list_del(&t->in_turn);
        list_add(&m->line.tenants, &t->in_turn); /* behind the others */
        line_leave(m, p);
        struct err *e = line_check_key(m, p);
        if (!e)
            e = start_now(m, p);
        if (e)
            runtime_answer(p->ask, NULL, e);
    }
    line_go_on(m);
}

void line_go_on(struct manager *m)
{
    if (m->line.count && has_room(m))
        loop_later(m->config.loop, &m->line.turn, on_turn);
}

static fallible line_join(struct manager *m, struct start_place *p)
{
    struct tenant *t = tenant_of(m, p);

    if (m->line.count >= m->config.most_starts)
        return err_new(ERR_BUSY, "%u starts wait, which is the most (server.most_starts)",
                       m->line.count);
    TRY(sbx_check_silent(m->config.driver, NOTHING_BEGUN));
    if (!m->line.count) /* one waits for all */
        TRY(sbx_wait(m->config.driver, &m->line.waiter, on_line_give_up));
    m->line.count++;
    if (list_empty(&t->line))
        list_add(&m->line.tenants, &t->in_turn);
    list_add(&t->line, &p->link);
    return NULL;
}

fallible manager_start(struct manager *m, struct start_place *p)
{
    list_init(&p->link);
    list_init(&p->ask->link);
    if (m->ending)
        return err_new(ERR_BUSY, "the server is being stopped");
    if (start_is_there(m, p) || (has_room(m) && !m->line.count))
        return start_now(m, p);
    return line_join(m, p);
}

void manager_start_give_up(struct manager *m, struct start_place *p)
{
    if (!list_empty(&p->link))
        line_answer(m, p, err_new(ERR_CLOSED, "the client has gone"));
}
