// SPDX-License-Identifier: Apache-2.0
/* fresh.c — the layers of the host's own system, made again when the machine has changed,
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
#include "host/launcher/job.h"

#define QUIET_MS 1000 /* an upgrade changes many things in a row */
#define LOOK_MS  1000 /* what inotify does not tell is seen after so long */

static bool has_host_image(const struct launcher_policy *p)
{
    for (size_t i = 0; i < p->image_count; i++)
        if (!p->images[i])
            return true;
    return false;
}

static fallible make_layers(struct launcher_job *j)
{
    int state = j->launcher->host.dir;
    struct rootfs r;

    rootfs_init(&r);
    TRY(rootfs_host_open(state, &r));
    rootfs_done(&r);
    if (rootfs_host_is_stale(state))
        TRY(rootfs_host_refresh(state));
    return rootfs_host_has_old(state) ? rootfs_host_prune(state) : NULL;
}

static void fresh_look(struct launcher *l);

static void listen_again(struct launcher_fresh *f)
{
    if (f->changed.loop)
        err_free(rootfs_host_watch(f->changed.fd)); /* what was there at first is watched still */
    f->deaf = false;
}

static void on_made(struct launcher_job *j, struct err *e)
{
    struct launcher *l = j->launcher;
    struct launcher_fresh *f = &l->fresh;

    rootfs_done(&f->layers);
    if (e)
        log_warn("layers of the host's system not made", KV_ERR(e));
    err_free(e);
    f->under_way = false;
    f->old = rootfs_host_has_old(l->host.dir);
    if ((f->again || (f->old && f->swept)) && !l->ending)
        fresh_look(l);
}

static void fresh_look(struct launcher *l)
{
    struct launcher_fresh *f = &l->fresh;

    f->again = f->under_way;
    if (f->under_way)
        return;
    f->under_way = true;
    f->swept = false;
    listen_again(f);
    rootfs_done(&f->layers); /* held by us they could not be removed */
    struct launcher_job *j = launcher_job_new(l, make_layers, on_made);
    struct err *e = launcher_job_start(j);
    if (!e)
        return;
    log_warn("layers of the host's system not made", KV_ERR(e)); /* the next start makes them */
    err_free(e);
    launcher_job_free(j);
    f->under_way = false;
}

static void on_quiet(struct loop_timer *t)
{
    fresh_look(container_of(t, struct launcher, fresh.quiet));
}

static void on_deep(struct loop_timer *t)
{
    struct launcher *l = container_of(t, struct launcher, fresh.deep);

    l->fresh.used = false;
    fresh_look(l);
}

static void on_changed(struct loop_io *io)
{
    struct launcher *l = container_of(io, struct launcher, fresh.changed);
    char events[4096];
    bool any = false;

    while (read(io->fd, events, sizeof events) > 0)
        any = true;
    if (!any)
        return;
    rootfs_done(&l->fresh.layers);
    l->fresh.deaf = true;
    loop_timer_start(l->loop, &l->fresh.quiet, QUIET_MS, on_quiet);
}

static void fresh_used(struct launcher *l)
{
    if (!l->fresh.used)
        loop_timer_start(l->loop, &l->fresh.deep, (uint64_t)ROOTFS_FRESH_S * 1000, on_deep);
    l->fresh.used = true;
}

/* Listens first and looks then, so that a change between the two is heard by the next. */
fallible launcher_fresh_open(struct launcher *l, struct rootfs *ret)
{
    struct launcher_fresh *f = &l->fresh;
    uint64_t now = clock_mono_ns(&clock_system);

    fresh_used(l);
    if (!f->changed.loop)
        return rootfs_host_open(l->host.dir, ret);
    on_changed(&f->changed);
    if (f->deaf)
        listen_again(f);
    if (now - f->looked_ns > LOOK_MS * NS_PER_MS)
        rootfs_done(&f->layers);
    if (!f->layers.mount_count) {
        TRY(rootfs_host_open(l->host.dir, &f->layers));
        f->looked_ns = now;
    }
    return rootfs_copy(&f->layers, ret);
}

void launcher_fresh_swept(struct launcher *l)
{
    l->fresh.swept = l->fresh.under_way; /* who looks now may have seen the sandbox still */
    if (l->fresh.old && !l->ending)
        fresh_look(l);
}

static fallible fresh_watch(struct launcher *l)
{
    own_fd fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

    if (fd < 0)
        return err_sys("watch the host's system");
    TRY(rootfs_host_watch(fd));
    TRY(loop_io_start(l->loop, &l->fresh.changed, fd, EPOLLIN, on_changed));
    take_fd(&fd);
    return NULL;
}

/* Without it every start looks for itself, as it does anyway. */
void launcher_fresh_start(struct launcher *l)
{
    if (!has_host_image(l->policy))
        return;
    struct err *e = fresh_watch(l);
    if (e)
        log_warn("changes of the host are seen at the next start only", KV_ERR(e));
    err_free(e);
    l->fresh.old = rootfs_host_has_old(l->host.dir);
    fresh_look(l);
}

void launcher_fresh_end(struct launcher *l)
{
    loop_timer_stop(&l->fresh.quiet);
    loop_timer_stop(&l->fresh.deep);
    rootfs_done(&l->fresh.layers);
    if (!l->fresh.changed.loop)
        return;
    loop_io_stop(&l->fresh.changed);
    own_close(l->fresh.changed.fd);
}
