// SPDX-License-Identifier: Apache-2.0
/* await.c — a runtime whose image is being built. Its start is answered at once, and it has its
 * row, port and key; its sandbox is made when the image is there.
 *
 * No operation of it runs meanwhile, so it can be stopped. Its row is like any acknowledged row
 * that never began: the next server looks for the image once. */
#include <stdlib.h>

#include "base/mem.h"
#include "host/build/build.h"
#include "host/runtime/inner.h"
#include "host/runtime/row.h"
#include "host/runtime/start.h"

#define SPEC_BYTES (16u << 20)

struct await {
    struct manager *manager;
    struct list link;      /* among the manager's */
    struct runtime *r;     /* NULL: it waits no more, but a question is still out */
    struct builds *builds; /* NULL: it was a server's before us */
    struct builds_waiter waiter;
    struct loop_timer bound;
    uint64_t until_ns; /* 0: it did not have to wait yet */
    bool asking;
};

static void await_free(struct await *a)
{
    list_del(&a->link);
    free(a);
}

void await_free_all(struct manager *m)
{
    LIST_EACH(a, &m->awaits, struct await, link)
        await_free(a);
}

void await_drop(struct runtime *r)
{
    struct await *a = take(&r->start.await);

    if (!a)
        return;
    loop_timer_stop(&a->bound);
    builds_wait_drop(&a->waiter);
    a->r = NULL;
    if (!a->asking)
        await_free(a);
}

void await_new(struct runtime *r, struct builds *builds)
{
    struct await *a = mem_new(sizeof *a);

    *a = (struct await){.manager = r->manager, .r = r, .builds = builds};
    list_init(&a->waiter.link);
    list_add(&r->manager->awaits, &a->link);
    r->start.await = a;
    if (builds)
        runtime_set_detail(r, "image '%.200s' is being built: it starts when that is done",
                           r->image);
}

static void await_fail(struct runtime *r, struct err *e)
{
    own(err) why = e;

    await_drop(r);
    runtime_fail(r, why);
}

/* --- it is here --- */

/* The image is here; what it is for is being read. */
struct beginning {
    struct await *await;
    struct arena arena;
    struct json *record; /* of the image */
};

static fallible make_sandbox(struct runtime *r, struct wire_start *start, const struct json *record)
{
    TRY(adopt_make_spec(r, start, record));
    TRY(start_new_sandbox(r, start));
    if (start->image_config)
        row_set_config(r, start->image_config);
    return NULL;
}

/* Killed before the row has what the image says of itself, the next server looks for it again. */
static void await_begin_start(struct runtime *r, struct wire_start *start,
                              const struct json *record)
{
    struct manager *m = r->manager;
    struct err *e = make_sandbox(r, start, record);

    if (e) {
        runtime_drop_spec(r);
        await_fail(r, e);
        return;
    }
    const char *why =
        r->start.await->builds ? "its image had to be built first" : "begun again by a new server";
    await_drop(r);
    pool_missed(m, r->image, POOL_NO_POOL);
    r->timeline.miss = POOL_NO_POOL;
    runtime_set_detail(r, "cold: %s%s%s", why, r->op.spec->note ? "; " : "",
                       r->op.spec->note ? r->op.spec->note : "");
    start_from_row(r);
}

static void on_spec(void *arg, struct wire_start *start, struct err *e)
{
    struct beginning *b = arg;
    struct await *a = b->await;

    a->asking = false;
    if (!a->r || a->manager->ending) { /* its row stays as it is, for the next server */
        if (!a->r)
            await_free(a);
        err_free(e);
    } else if (e)
        await_fail(a->r, e);
    else
        await_begin_start(a->r, start, b->record);
    arena_done(&b->arena);
    free(b);
}

static void await_read_row(struct await *a, struct str record)
{
    struct beginning *b = mem_new(sizeof *b);

    b->await = a;
    arena_init(&b->arena, SPEC_BYTES);
    struct err *e = json_parse(&b->arena, arena_copy(&b->arena, record), NULL, &b->record);
    if (!e) {
        a->asking = true;
        runtime_read_spec(a->r, &b->arena, on_spec, b);
        return;
    }
    arena_done(&b->arena);
    free(b);
    await_fail(a->r, e);
}

/* --- it is not here yet --- */

/* ErrImagePull is the word OpenHands looks for. */
static void on_bound(struct loop_timer *t)
{
    struct await *a = container_of(t, struct await, bound);

    await_fail(a->r,
               err_new(ERR_BUSY,
                       "image '%.200s' is being built for longer than a start waits "
                       "(server.build_wait; ErrImagePull): start it again when /build_status says "
                       "SUCCESS",
                       a->r->image));
}

static void on_build_ended(struct builds_waiter *w)
{
    await_begin(container_of(w, struct await, waiter)->r);
}

static void wait_for_build(struct await *a)
{
    struct loop *loop = a->manager->config.loop;
    uint64_t now = loop_now_ns(loop);

    if (!a->until_ns)
        a->until_ns = now + a->manager->config.build_wait_ms * NS_PER_MS;
    uint64_t left = a->until_ns > now ? (a->until_ns - now) / NS_PER_MS : 0;
    a->waiter.done = on_build_ended;
    loop_timer_start(loop, &a->bound, left + 1, on_bound);
    builds_wait(a->builds, &a->waiter);
}

static void on_image(void *arg, const char *record, size_t count, const struct err *why)
{
    struct await *a = arg;
    struct runtime *r = a->r;

    a->asking = false;
    if (!r)
        await_free(a);
    else if (a->manager->ending)
        return; /* its row stays as it is, for the next server */
    else if (!why && count)
        await_read_row(a, str_of(record));
    else if (!why || (err_code(why) != ERR_NOT_FOUND && err_code(why) != ERR_INVALID))
        await_fail(r, why ? err_wrap(err_copy(why), "image '%.200s'", r->image)
                          : err_new(ERR_NOT_FOUND, "image '%.200s' has no record", r->image));
    else if (builds_under_way(a->builds, str_of(r->image)))
        wait_for_build(a);
    else
        await_fail(
            r,
            err_new(
                ERR_NOT_FOUND, "image '%.200s' is not here (ErrImagePull): %s", r->image,
                a->builds
                    ? "its build failed, and /build_status says why"
                    : "nor any build of it since the server ended; build it again, or import it"));
}

void await_begin(struct runtime *r)
{
    struct await *a = r->start.await;
    struct err *e;

    loop_timer_stop(&a->bound);
    a->asking = true;
    e = sbx_image_find(a->manager->config.driver, str_of(r->image), on_image, a);
    if (!e)
        return;
    a->asking = false;
    await_fail(r, e);
}
