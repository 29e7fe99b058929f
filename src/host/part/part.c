// SPDX-License-Identifier: Apache-2.0
/* part.c — see part.h. */
#include "host/part/part.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net/router.h"

ROWS_OF(host_parts, struct host_part)

struct host_slot {
    const struct host_part *part;
    void *state;
};

/* --- the order --- */

static bool is_among(const struct host_part *const *rows, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i] && strcmp(rows[i]->name, name) == 0)
            return true;
    return false;
}

/* A need that none of the sorted has; NULL: it can come next. */
static const char *open_need(const struct host_part *p, const struct host_part *const *sorted,
                             size_t count)
{
    for (const char *const *need = p->needs; need && *need; need++)
        if (!is_among(sorted, count, *need))
            return *need;
    return NULL;
}

/* The linker has no order: of those that can come next the first by name does. */
static fallible sort_next(const struct host_part *const *rows, size_t count,
                          const struct host_part **sorted, size_t done)
{
    const struct host_part *next = NULL;
    const char *need = NULL, *whose = NULL;

    for (size_t i = 0; i < count; i++) {
        if (is_among(sorted, done, rows[i]->name))
            continue;
        const char *lacks = open_need(rows[i], sorted, done);
        if (lacks) {
            need = lacks;
            whose = rows[i]->name;
        } else if (!next || strcmp(rows[i]->name, next->name) < 0) {
            next = rows[i];
        }
    }
    if (!next && !need)
        return err_new(ERR_INTERNAL, "two parts of the server have the same name");
    if (!next)
        return err_new(ERR_INTERNAL, "part '%s' needs '%s', which %s", whose, need,
                       is_among(rows, count, need) ? "needs it too" : "is not there");
    sorted[done] = next;
    return NULL;
}

fallible parts_sort(const struct host_part *const *rows, size_t count,
                    const struct host_part ***ret_sorted)
{
    own_free const struct host_part **sorted = mem_new((count + 1) * sizeof(*sorted));

    for (size_t i = 0; i < count; i++)
        TRY(sort_next(rows, count, sorted, i));
    *ret_sorted = take(&sorted);
    return NULL;
}

/* --- life --- */

void *host_part(const struct host *h, const char *name)
{
    size_t i = 0;

    while (i < h->open_count && strcmp(h->slots[i].part->name, name) != 0)
        i++;
    assert(i < h->open_count);
    return h->slots[i].state;
}

fallible parts_open(struct host *h)
{
    own_free const struct host_part **sorted = NULL;
    size_t count = ROWS_LEN(host_parts);

    TRY(parts_sort(&ROWS_AT(host_parts, 0), count, &sorted));
    h->slots = mem_new((count + 1) * sizeof *h->slots);
    h->slot_count = count;
    for (size_t i = 0; i < count; i++) {
        h->slots[i] = (struct host_slot){.part = sorted[i]};
        if (sorted[i]->open)
            TRY(sorted[i]->open(h, &h->slots[i].state));
        h->open_count++;
    }
    return NULL;
}

static void on_begun(void *host, struct err *e)
{
    struct host *h = host;

    while (!e && h->begin.left) {
        const struct host_slot *s = &h->slots[h->slot_count - h->begin.left--];
        if (s->part->begin) {
            s->part->begin(s->state, on_begun, h);
            return;
        }
    }
    h->begin.answer.done(h->begin.answer.arg, e);
}

void parts_begin(struct host *h, part_done *done, void *arg)
{
    h->begin = (struct part_walk){h->slot_count, {done, arg}};
    on_begun(h, NULL);
}

static void on_ended(void *host, struct err *e)
{
    struct host *h = host;

    while (!e && h->end.left) {
        const struct host_slot *s = &h->slots[--h->end.left];
        if (s->part->end) {
            s->part->end(s->state, on_ended, h);
            return;
        }
    }
    h->end.answer.done(h->end.answer.arg, e);
}

void parts_end(struct host *h, part_done *done, void *arg)
{
    h->begin.left = 0; /* what has not begun does not any more */
    h->end = (struct part_walk){h->open_count, {done, arg}};
    on_ended(h, NULL);
}

fallible parts_reload(const struct host *h)
{
    struct err *refused = NULL;

    for (size_t i = 0; i < h->open_count; i++)
        if (h->slots[i].part->may_reload)
            refused = err_join(refused, h->slots[i].part->may_reload(h->slots[i].state, h));
    for (size_t i = 0; i < h->open_count && !refused; i++)
        if (h->slots[i].part->reload)
            h->slots[i].part->reload(h->slots[i].state, h);
    return refused;
}

void parts_settle(struct host *h)
{
    for (size_t i = 0; i < h->open_count; i++)
        if (h->slots[i].part->settle)
            h->slots[i].part->settle(h->slots[i].state);
}

void parts_close(struct host *h)
{
    while (h->open_count) {
        const struct host_slot *s = &h->slots[--h->open_count];
        if (s->part->close)
            s->part->close(s->state);
    }
    free(take(&h->slots));
}

/* --- requests --- */

void parts_add_routes(const struct host *h, struct router *r)
{
    for (size_t i = 0; i < h->open_count; i++)
        router_add(r, h->slots[i].part->routes, h->slots[i].part->route_count, h->slots[i].state);
}

fallible parts_auth(void *host, struct http_req *req)
{
    const struct host *h = host;

    for (size_t i = 0; i < h->open_count; i++)
        if (h->slots[i].part->auth)
            TRY(h->slots[i].part->auth(h->slots[i].state, req));
    return NULL;
}

fallible parts_intercept(const struct host *h, struct http_req *req, const struct route **ret_route)
{
    for (size_t i = 0; i < h->open_count && !*ret_route; i++)
        if (h->slots[i].part->intercept)
            TRY(h->slots[i].part->intercept(h->slots[i].state, req, ret_route));
    return NULL;
}

void parts_on_answer(void *host, const struct http_req *req, int status, uint64_t ns)
{
    const struct host *h = host;

    for (size_t i = 0; i < h->open_count; i++)
        if (h->slots[i].part->on_answer)
            h->slots[i].part->on_answer(h->slots[i].state, req, status, ns);
}
