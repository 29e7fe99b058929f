// SPDX-License-Identifier: Apache-2.0
/* query.c — queries of a driver that are not about one sandbox: its snapshots, its images.
 *
 * A client may look for an image a thousand times at once. A launcher's socket holds two dozen
 * requests, so only a few queries are sent at a time and the others wait here. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sandbox/sandbox.h"

#define NAMES_BYTES  (16u << 20)
#define QUERIES_MOST 4

void sbx_query_drop(struct sbx_query *q)
{
    loop_later_cancel(&q->answer);
    sbx_wait_over(&q->waiter);
    list_del(&q->sibling);
    err_free(q->result);
    buf_done(&q->names);
    free(q->mine);
    free(q);
}

static void query_begin(struct sbx_query *q)
{
    q->driver->queries_sent++;
    struct err *e = take(&q->call)(q);
    if (e)
        sbx_query_finish(q, e);
}

static void begin_next(struct sbx_driver *d)
{
    LIST_EACH(q, &d->queries, struct sbx_query, sibling) {
        if (d->queries_sent >= QUERIES_MOST)
            break;
        if (q->call)
            query_begin(q);
    }
}

static void on_answer(struct loop_later *l)
{
    struct sbx_query *q = container_of(l, struct sbx_query, answer);
    size_t count = q->result ? 0 : q->count;

    q->driver->queries_sent--;
    begin_next(q->driver);
    sbx_wait_over(&q->waiter);
    if (q->listed) /* from malloc, so aligned for anything */
        q->listed(q->arg, count ? (const struct sbx_listed *)(const void *)q->names.p : NULL, count,
                  q->result);
    else
        q->done(q->arg, count ? q->names.p : "", count, q->result);
    sbx_query_drop(q);
}

void sbx_query_finish(struct sbx_query *q, struct err *e)
{
    q->result = e ? e : buf_check(&q->names);
    loop_later(q->driver->host->loop, &q->answer, on_answer);
}

static struct sbx_query *query_new(struct sbx_driver *d, void *arg)
{
    struct sbx_query *q = mem_new(sizeof *q);

    *q = (struct sbx_query){.driver = d, .arg = arg, .file = -1};
    buf_init(&q->names, NAMES_BYTES);
    list_init(&q->sibling);
    return q;
}

/* A file is lent for the call only, so a query with one is sent at once; its caller has bounds. */
static void query_pose(struct sbx_query *q, fallible (*call)(struct sbx_query *q))
{
    list_add(&q->driver->queries, &q->sibling);
    q->call = call;
    if (q->driver->queries_sent < QUERIES_MOST || q->file >= 0)
        query_begin(q);
}

static void on_nobody(void *arg, const char *names, size_t count, const struct err *e)
{
    (void)arg, (void)names, (void)count, (void)e;
}

/* A query that is not sent yet is dropped. The answer of one that was goes nowhere. */
static void on_give_up(struct sbx_waiter *w)
{
    struct sbx_query *q = container_of(w, struct sbx_query, waiter);
    own(err) why = sbx_check_silent(q->driver, "try again");
    sbx_query_done *done = q->done;
    void *arg = q->arg;

    q->done = on_nobody;
    if (q->call)
        sbx_query_drop(q);
    done(arg, "", 0, why);
}

fallible sbx_list(struct sbx_driver *d, sbx_list_done *done, void *arg)
{
    if (!(d->caps & SBX_CAN_LIST))
        return err_new(ERR_UNSUPPORTED, "backend '%s' cannot list its sandboxes here",
                       d->backend->name);
    struct sbx_query *q = query_new(d, arg);
    q->listed = done;
    query_pose(q, d->backend->survivors->list);
    return NULL;
}

static fallible query_ask(struct sbx_driver *d, fallible (*call)(struct sbx_query *q),
                          const char *what, struct str name, int file, bool waits,
                          sbx_query_done *done, void *arg)
{
    if (!call)
        return err_new(ERR_UNSUPPORTED, "backend '%s' has no %ss here", d->backend->name, what);
    struct sbx_query *q = query_new(d, arg);
    q->done = done;
    q->file = file;
    if (name.len >= sizeof q->name || (name.len && memchr(name.p, '\0', name.len))) {
        sbx_query_drop(q);
        return err_new(ERR_NOT_FOUND, "no %s has such a name", what);
    }
    memcpy(q->name, name.len ? name.p : "", name.len);
    struct err *e = waits ? sbx_check_silent(d, "try again") : NULL;
    if (waits && !e)
        e = sbx_wait(d, &q->waiter, on_give_up);
    if (e) {
        sbx_query_drop(q);
        return e;
    }
    query_pose(q, call);
    return NULL;
}

fallible sbx_snapshot_list(struct sbx_driver *d, sbx_query_done *done, void *arg)
{
    TRY(sbx_need(d, SBX_CAN_SNAPSHOT, "take snapshots"));
    return query_ask(d, d->backend->snapshots->list, "snapshot", STR(""), -1, false, done, arg);
}

fallible sbx_snapshot_remove(struct sbx_driver *d, struct str name, sbx_query_done *done, void *arg)
{
    TRY(sbx_need(d, SBX_CAN_SNAPSHOT, "take snapshots"));
    return query_ask(d, d->backend->snapshots->remove, "snapshot", name, -1, false, done, arg);
}

fallible sbx_image_find(struct sbx_driver *d, struct str name, sbx_query_done *done, void *arg)
{
    const struct sbx_image_calls *calls = d->backend->images;

    return query_ask(d, calls ? calls->find : NULL, "image", name, -1, false, done, arg);
}

fallible sbx_image_ask(struct sbx_driver *d, struct str name, sbx_query_done *done, void *arg)
{
    const struct sbx_image_calls *calls = d->backend->images;

    return query_ask(d, calls ? calls->find : NULL, "image", name, -1, true, done, arg);
}

fallible sbx_image_import(struct sbx_driver *d, int file, struct str name, sbx_query_done *done,
                          void *arg)
{
    const struct sbx_image_calls *calls = d->backend->images;

    return query_ask(d, calls ? calls->import : NULL, "image", name, file, false, done, arg);
}
