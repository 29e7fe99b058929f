// SPDX-License-Identifier: Apache-2.0
/* waiters.c — see waiters.h. */
#include "sandbox/waiters.h"

#include "base/log.h"
#include "sandbox/backend.h"

fallible sbx_wait(struct sbx_driver *d, struct sbx_waiter *w, void (*give_up)(struct sbx_waiter *w))
{
    if (d->host->most_waiting && d->waiting >= d->host->most_waiting)
        return err_new(ERR_BUSY,
                       "%u requests wait for backend '%s', which is the most "
                       "(server.most_waiting): try again",
                       d->waiting, d->backend->name);
    *w = (struct sbx_waiter){.driver = d, .give_up = give_up};
    list_add(&d->waiters, &w->link);
    d->waiting++;
    return NULL;
}

void sbx_wait_over(struct sbx_waiter *w)
{
    if (!w->driver)
        return;
    list_del(&w->link);
    w->driver->waiting--;
    w->driver = NULL;
}

fallible sbx_check_silent(const struct sbx_driver *d, const char *then)
{
    if (d->ending)
        return err_new(ERR_BUSY, "the server is being stopped: %s", then);
    if (!d->silent)
        return NULL;
    return err_new(
        ERR_BUSY,
        "the launcher has not answered for %u ms (server.launcher_wait): %s; if it lasts, "
        "see whether its process is stopped or waits for a disk",
        d->host->silence_ms, then);
}

/* give_up may end the wait of others. */
static void give_up_all(struct sbx_driver *d)
{
    for (struct sbx_waiter *w; (w = LIST_FIRST(&d->waiters, struct sbx_waiter, link));) {
        sbx_wait_over(w);
        w->give_up(w);
    }
}

void sbx_wait_end(struct sbx_driver *d)
{
    d->ending = true;
    give_up_all(d);
}

void sbx_set_silent(struct sbx_driver *d, bool silent)
{
    if (d->silent == silent)
        return;
    d->silent = silent;
    if (silent)
        log_error("the launcher does not answer", KV("for_ms", d->host->silence_ms),
                  KV("waiting", d->waiting));
    else
        log_info("the launcher answers again");
    if (silent)
        give_up_all(d);
}
