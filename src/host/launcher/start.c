// SPDX-License-Identifier: Apache-2.0
/* start.c — a sandbox between the order to its spare process and the exec of its pid 1.
 *
 * That takes the spare process a millisecond, on a busy machine many, and the launcher does other
 * requests meanwhile. A request for this very sandbox waits for it. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "host/launcher/inner.h"
#include "host/launcher/names.h"
#include "host/launcher/start.h"

struct launcher_start {
    struct launcher_begun begun;
    struct launcher_box *box;
    struct loop_io io;
    struct loop_timer deadline;
};

/* Nothing of a new one is left. */
static void start_discard(struct launcher *l, const char *id)
{
    err_free(deleter_discard(l, id)); /* the first error is the one to tell */
    launcher_drop_sockets(l, id);
    launcher_drop_log(l, id);
}

static void start_describe(struct launcher_box *b, struct launcher_begun *g,
                           struct native_reply *reply, struct launcher_fds *out)
{
    reply->pid = b->box.pid;
    reply->disk = b->disk;
    memcpy(reply->phase_ns, b->box.phase_ns, sizeof reply->phase_ns);
    out->fds[out->count++] = take_fd(&g->ready);
    if (b->waits)
        b->control = take_fd(&g->control);
    else if (!b->tells_end)
        out->fds[out->count++] = take_fd(&g->control);
}

static void start_finish(struct launcher_start *st, int wait_ms)
{
    struct launcher_box *b = st->box;
    struct launcher *l = b->launcher;
    struct launcher_begun *g = &st->begun;
    struct native_reply reply = {.op = NATIVE_START, .tag = g->tag};
    struct launcher_fds out = {.count = 0};

    loop_io_stop(&st->io);
    loop_timer_stop(&st->deadline);
    b->start = NULL;
    struct err *e = box_end(&l->host, &g->spare, g->flags, wait_ms, &b->box);
    own_close_p(&b->box.disk); /* it has them mounted */
    own_close_p(&b->box.home);
    b->box.disk = b->box.home = -1;
    if (e && g->made)
        start_discard(l, b->box.id);
    if (!e)
        e = launcher_watch(l, b, g->old != NULL);
    if (!e && g->old) {
        launcher_replace(l, g->old);
        launcher_insert(l, b);
    }
    if (!e)
        start_describe(b, g, &reply, &out);
    else if (g->old) {
        free(b->waits);
        free(b);
    } else
        launcher_forget(l, b);
    own_close_p(&g->ready);
    own_close_p(&g->control);
    free(st);
    launcher_answer(l, &reply, e, &out);
}

static void on_told(struct loop_io *io)
{
    start_finish(container_of(io, struct launcher_start, io), BOX_WAIT_MS);
}

static void on_deadline(struct loop_timer *t)
{
    start_finish(container_of(t, struct launcher_start, deadline), 0);
}

void launcher_start_watch(struct launcher *l, struct launcher_box *b,
                          const struct launcher_begun *begun)
{
    struct launcher_start *st = mem_new(sizeof *st);

    *st = (struct launcher_start){.begun = *begun, .box = b};
    b->start = st;
    if (!begun->old)
        launcher_insert(l, b);
    struct err *e =
        begun->old ? NULL : loop_io_start(l->loop, &st->io, begun->spare.sock, EPOLLIN, on_told);
    if (begun->old || e) {
        err_free(e); /* then we wait for it */
        start_finish(st, BOX_WAIT_MS);
        return;
    }
    /* The time this turn took so far is not the child's: it may have gone into the machine's
     * layers. */
    uint64_t spent_ns = clock_mono_ns(&clock_system) - loop_now_ns(l->loop);
    loop_timer_start(l->loop, &st->deadline, BOX_WAIT_MS + spent_ns / NS_PER_MS, on_deadline);
}

void launcher_start_settle(struct launcher_box *b)
{
    if (b->start)
        start_finish(b->start, BOX_WAIT_MS);
}

void launcher_settle_all(struct launcher *l)
{
    LIST_EACH(b, &l->boxes, struct launcher_box, link)
        launcher_start_settle(b);
}
