// SPDX-License-Identifier: Apache-2.0
/* host_layers.c — the layers of the host's own system, made again when the machine has changed.
 *
 * A start looks whether its layers fit the machine (by inotify, and once a second by looking) and
 * would make them itself, which takes a second or more. So a child looks at the first quiet moment
 * after a change, and at times deep into /usr, for permissions that changed there.
 *
 * Sandboxes that run keep the layers they stand on; old layers go with the last of them. */
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

static void host_layers_look(struct launcher *l);

static void listen_again(struct host_layers *h)
{
    if (h->changed.loop)
        err_free(rootfs_host_watch(h->changed.fd)); /* what was there at first is watched still */
    h->unwatched = false;
}

static void on_made(struct launcher_job *j, struct err *e)
{
    struct launcher *l = j->launcher;
    struct host_layers *h = &l->host_layers;

    rootfs_done(&h->layers);
    if (e)
        log_warn("layers of the host's system not made", KV_ERR(e));
    err_free(e);
    h->under_way = false;
    h->old = rootfs_host_has_old(l->host.dir);
    if ((h->again || (h->old && h->swept)) && !l->ending)
        host_layers_look(l);
}

static void host_layers_look(struct launcher *l)
{
    struct host_layers *h = &l->host_layers;

    h->again = h->under_way;
    if (h->under_way)
        return;
    h->under_way = true;
    h->swept = false;
    listen_again(h);
    rootfs_done(&h->layers); /* held by us they could not be removed */
    struct launcher_job *j = launcher_job_new(l, make_layers, on_made);
    struct err *e = launcher_job_start(j);
    if (!e)
        return;
    log_warn("layers of the host's system not made", KV_ERR(e)); /* the next start makes them */
    err_free(e);
    launcher_job_free(j);
    h->under_way = false;
}

static void on_quiet(struct loop_timer *t)
{
    host_layers_look(container_of(t, struct launcher, host_layers.quiet));
}

static void on_deep(struct loop_timer *t)
{
    struct launcher *l = container_of(t, struct launcher, host_layers.deep);

    l->host_layers.used = false;
    host_layers_look(l);
}

static void on_changed(struct loop_io *io)
{
    struct launcher *l = container_of(io, struct launcher, host_layers.changed);
    char events[4096];
    bool any = false;

    while (read(io->fd, events, sizeof events) > 0)
        any = true;
    if (!any)
        return;
    rootfs_done(&l->host_layers.layers);
    l->host_layers.unwatched = true;
    loop_timer_start(l->loop, &l->host_layers.quiet, QUIET_MS, on_quiet);
}

static void host_layers_used(struct launcher *l)
{
    if (!l->host_layers.used)
        loop_timer_start(l->loop, &l->host_layers.deep, (uint64_t)ROOTFS_FRESH_S * 1000, on_deep);
    l->host_layers.used = true;
}

/* Listens first and looks then, so that a change between the two is heard by the next. */
fallible host_layers_open(struct launcher *l, struct rootfs *ret)
{
    struct host_layers *h = &l->host_layers;
    uint64_t now = clock_mono_ns(&clock_system);

    host_layers_used(l);
    if (!h->changed.loop)
        return rootfs_host_open(l->host.dir, ret);
    on_changed(&h->changed);
    if (h->unwatched)
        listen_again(h);
    if (now - h->looked_ns > LOOK_MS * NS_PER_MS)
        rootfs_done(&h->layers);
    if (!h->layers.mount_count) {
        TRY(rootfs_host_open(l->host.dir, &h->layers));
        h->looked_ns = now;
    }
    return rootfs_copy(&h->layers, ret);
}

void host_layers_box_gone(struct launcher *l)
{
    l->host_layers.swept =
        l->host_layers.under_way; /* the look that is under way may have seen the sandbox still */
    if (l->host_layers.old && !l->ending)
        host_layers_look(l);
}

static fallible host_layers_watch(struct launcher *l)
{
    own_fd fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

    if (fd < 0)
        return err_sys("watch the host's system");
    TRY(rootfs_host_watch(fd));
    TRY(loop_io_start(l->loop, &l->host_layers.changed, fd, EPOLLIN, on_changed));
    take_fd(&fd);
    return NULL;
}

/* Without it every start looks for itself, as it does anyway. */
void host_layers_start(struct launcher *l)
{
    if (!has_host_image(l->policy))
        return;
    struct err *e = host_layers_watch(l);
    if (e)
        log_warn("changes of the host are seen at the next start only", KV_ERR(e));
    err_free(e);
    l->host_layers.old = rootfs_host_has_old(l->host.dir);
    host_layers_look(l);
}

void host_layers_end(struct launcher *l)
{
    loop_timer_stop(&l->host_layers.quiet);
    loop_timer_stop(&l->host_layers.deep);
    rootfs_done(&l->host_layers.layers);
    if (!l->host_layers.changed.loop)
        return;
    loop_io_stop(&l->host_layers.changed);
    own_close(l->host_layers.changed.fd);
}
