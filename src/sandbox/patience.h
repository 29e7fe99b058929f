// SPDX-License-Identifier: Apache-2.0
/* patience.h — callers that wait for an answer of a driver: not more than so many, and not for one
 * that answers nobody.
 *
 * Work is waited for as long as it takes: a driver that does it still answers other things, and is
 * asked one if need be. One that answers nothing at all for host->silence_ms is silent: those who
 * wait are told so, and others at once, until it is heard again. What it was asked it may still do;
 * only the answer does not wait. */
#pragma once

#include "base/err.h"
#include "base/list.h"

struct sbx_driver;

struct sbx_waiter { /* the caller's; all zero at first */
    struct sbx_driver *driver;
    struct list link;
    void (*give_up)(struct sbx_waiter *w); /* it waits no more; never from inside a call */
};

/* ERR_BUSY: as many wait as may (host->most_waiting). A driver that is silent is asked for
 * separately: not all that one may wait for needs it. */
fallible sbx_wait(struct sbx_driver *d, struct sbx_waiter *w,
                  void (*give_up)(struct sbx_waiter *w));
void sbx_wait_over(struct sbx_waiter *w); /* twice is fine, and of one that never waited */
/* Before the driver is closed: nobody is asked any more, and all who wait are told so. */
void sbx_wait_end(struct sbx_driver *d);

/* ERR_BUSY, that it is silent, or about to be closed, and then what that means here; NULL: it is
 * not. */
fallible sbx_check_silent(const struct sbx_driver *d, const char *then);

/* --- for drivers --- */
void sbx_set_silent(struct sbx_driver *d, bool silent);
