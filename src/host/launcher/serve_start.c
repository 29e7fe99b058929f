// SPDX-License-Identifier: Apache-2.0
/* serve_start.c — a sandbox between the order to its embryo and the exec of its pid 1.
 *
 * The embryo works on its own for a millisecond, on a busy machine for many: whoever else asks
 * something is answered meanwhile. Who asks something of this very sandbox waits for it. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "host/launcher/serve.h"

struct serve_start {
    struct serve_begun begun;
    struct serve_box *box;
    struct loop_io io;
    struct loop_timer late;
};

/* Nothing of a new one is left. */
static void start_discard(struct serve *s, const char *id)
{
    err_free(serve_discard(s, id)); /* the first error is the one to tell */
    serve_drop_sockets(s, id);
    serve_drop_log(s, id);
}

static void start_describe(struct serve_box *b, struct serve_begun *g, struct native_reply *reply,
                           struct serve_fds *out)
{
    reply->pid = b->box.pid;
    reply->disk = b->disk;
    memcpy(reply->phase_ns, b->box.phase_ns, sizeof reply->phase_ns);
    out->fds[out->count++] = take_fd(&g->ready);
    if (b->waits)
        b->control = take_fd(&g->control);
    else if (!b->told)
        out->fds[out->count++] = take_fd(&g->control);
}

static void start_finish(struct serve_start *st, int wait_ms)
{
    struct serve_box *b = st->box;
    struct serve *s = b->serve;
    struct serve_begun *g = &st->begun;
    struct native_reply reply = {.op = NATIVE_START, .tag = g->tag};
    struct serve_fds out = {.count = 0};

    loop_io_stop(&st->io);
    loop_timer_stop(&st->late);
    b->start = NULL;
    struct err *e = box_end(&s->host, &g->embryo, g->flags, wait_ms, &b->box);
    serve_net_linger(s);
    serve_kept_linger(s);
    own_close_p(&b->box.disk); /* it has them mounted */
    own_close_p(&b->box.home);
    b->box.disk = b->box.home = -1;
    if (e && g->made)
        start_discard(s, b->box.id);
    if (!e)
        e = serve_watch(s, b, g->old != NULL);
    if (!e && g->old) {
        serve_replace(s, g->old);
        serve_insert(s, b);
    }
    if (!e)
        start_describe(b, g, &reply, &out);
    else if (g->old) {
        free(b->waits);
        free(b);
    } else
        serve_forget(s, b);
    own_close_p(&g->ready);
    own_close_p(&g->control);
    free(st);
    serve_answer(s, &reply, e, &out);
}

static void on_told(struct loop_io *io)
{
    start_finish(container_of(io, struct serve_start, io), BOX_WAIT_MS);
}

static void on_late(struct loop_timer *t)
{
    start_finish(container_of(t, struct serve_start, late), 0);
}

void serve_start_watch(struct serve *s, struct serve_box *b, const struct serve_begun *begun)
{
    struct serve_start *st = mem_new(sizeof *st);

    *st = (struct serve_start){.begun = *begun, .box = b};
    b->start = st;
    if (!begun->old)
        serve_insert(s, b);
    struct err *e =
        begun->old ? NULL : loop_io_start(s->loop, &st->io, begun->embryo.sock, EPOLLIN, on_told);
    if (begun->old || e) {
        err_free(e); /* then we wait for it */
        start_finish(st, BOX_WAIT_MS);
        return;
    }
    /* What this turn took so far is not the child's: it may have been the machine's layers. */
    uint64_t spent_ns = clock_mono_ns(&clock_system) - loop_now_ns(s->loop);
    loop_timer_start(s->loop, &st->late, BOX_WAIT_MS + spent_ns / NS_PER_MS, on_late);
}

void serve_start_settle(struct serve_box *b)
{
    if (b->start)
        start_finish(b->start, BOX_WAIT_MS);
}

void serve_settle_all(struct serve *s)
{
    LIST_EACH(b, &s->boxes, struct serve_box, link)
        serve_start_settle(b);
}
