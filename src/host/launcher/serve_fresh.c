// SPDX-License-Identifier: Apache-2.0
/* serve_fresh.c — the layers of the host's own system, made again when the machine has changed,
 * before a sandbox needs them.
 *
 * A start looks whether its layers fit the machine, by inotify and once a second by looking, and
 * would make them itself, which takes a second or more. So somebody looks at the first quiet moment
 * after a change (a child: nobody waits for it), and deep into /usr at times, for permissions that
 * changed there. Sandboxes that run keep the layers they stand on; the last one that goes takes
 * them along. */
#include <errno.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/log.h"
#include "base/own.h"
#include "host/launcher/serve_job.h"

#define QUIET_MS 1000 /* an upgrade changes many things in a row */
#define LOOK_MS  1000 /* what inotify does not tell is seen after so long */

static bool has_host_image(const struct launcher_policy *p)
{
    for (size_t i = 0; i < p->image_count; i++)
        if (!p->images[i])
            return true;
    return false;
}

static fallible make_layers(struct serve_job *j)
{
    int state = j->serve->host.dir;
    struct rootfs r;

    rootfs_init(&r);
    TRY(rootfs_host_open(state, &r));
    rootfs_done(&r);
    if (rootfs_host_is_stale(state))
        TRY(rootfs_host_refresh(state));
    return rootfs_host_has_old(state) ? rootfs_host_prune(state) : NULL;
}

static void fresh_look(struct serve *s);

static void listen_again(struct serve_fresh *f)
{
    if (f->changed.loop)
        err_free(rootfs_host_watch(f->changed.fd)); /* what was there at first is watched still */
    f->deaf = false;
}

static void on_made(struct serve_job *j, struct err *e)
{
    struct serve *s = j->serve;
    struct serve_fresh *f = &s->fresh;

    rootfs_done(&f->layers);
    if (e)
        log_warn("layers of the host's system not made", KV_ERR(e));
    err_free(e);
    f->under_way = false;
    f->old = rootfs_host_has_old(s->host.dir);
    if ((f->again || (f->old && f->swept)) && !s->ending)
        fresh_look(s);
}

static void fresh_look(struct serve *s)
{
    struct serve_fresh *f = &s->fresh;

    f->again = f->under_way;
    if (f->under_way)
        return;
    f->under_way = true;
    f->swept = false;
    listen_again(f);
    rootfs_done(&f->layers); /* held by us they could not be removed */
    struct serve_job *j = serve_job_new(s, make_layers, on_made);
    struct err *e = serve_job_start(j);
    if (!e)
        return;
    log_warn("layers of the host's system not made", KV_ERR(e)); /* the next start makes them */
    err_free(e);
    serve_job_free(j);
    f->under_way = false;
}

static void on_quiet(struct loop_timer *t)
{
    fresh_look(container_of(t, struct serve, fresh.quiet));
}

static void on_deep(struct loop_timer *t)
{
    struct serve *s = container_of(t, struct serve, fresh.deep);

    s->fresh.used = false;
    fresh_look(s);
}

static void on_changed(struct loop_io *io)
{
    struct serve *s = container_of(io, struct serve, fresh.changed);
    char events[4096];
    bool any = false;

    while (read(io->fd, events, sizeof events) > 0)
        any = true;
    if (!any)
        return;
    rootfs_done(&s->fresh.layers);
    s->fresh.deaf = true;
    loop_timer_start(s->loop, &s->fresh.quiet, QUIET_MS, on_quiet);
}

static void fresh_used(struct serve *s)
{
    if (!s->fresh.used)
        loop_timer_start(s->loop, &s->fresh.deep, (uint64_t)ROOTFS_FRESH_S * 1000, on_deep);
    s->fresh.used = true;
}

/* Listens first and looks then, so that a change between the two is heard by the next. */
fallible serve_fresh_open(struct serve *s, struct rootfs *ret)
{
    struct serve_fresh *f = &s->fresh;
    uint64_t now = clock_mono_ns(&clock_system);

    fresh_used(s);
    if (!f->changed.loop)
        return rootfs_host_open(s->host.dir, ret);
    on_changed(&f->changed);
    if (f->deaf)
        listen_again(f);
    if (now - f->looked_ns > LOOK_MS * NS_PER_MS)
        rootfs_done(&f->layers);
    if (!f->layers.mount_count) {
        TRY(rootfs_host_open(s->host.dir, &f->layers));
        f->looked_ns = now;
    }
    return rootfs_copy(&f->layers, ret);
}

void serve_fresh_swept(struct serve *s)
{
    s->fresh.swept = s->fresh.under_way; /* who looks now may have seen the sandbox still */
    if (s->fresh.old && !s->ending)
        fresh_look(s);
}

static fallible fresh_watch(struct serve *s)
{
    own_fd fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

    if (fd < 0)
        return err_sys("watch the host's system");
    TRY(rootfs_host_watch(fd));
    TRY(loop_io_start(s->loop, &s->fresh.changed, fd, EPOLLIN, on_changed));
    take_fd(&fd);
    return NULL;
}

/* Without it every start looks for itself, as it does anyway. */
void serve_fresh_start(struct serve *s)
{
    if (!has_host_image(s->policy))
        return;
    struct err *e = fresh_watch(s);
    if (e)
        log_warn("changes of the host are seen at the next start only", KV_ERR(e));
    err_free(e);
    s->fresh.old = rootfs_host_has_old(s->host.dir);
    fresh_look(s);
}

void serve_fresh_end(struct serve *s)
{
    loop_timer_stop(&s->fresh.quiet);
    loop_timer_stop(&s->fresh.deep);
    rootfs_done(&s->fresh.layers);
    if (!s->fresh.changed.loop)
        return;
    loop_io_stop(&s->fresh.changed);
    own_close(s->fresh.changed.fd);
}
