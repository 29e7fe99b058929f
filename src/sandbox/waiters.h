// SPDX-License-Identifier: Apache-2.0
/* waiters.h — callers that wait for a driver's answer: a bounded number, and not for a driver that
 * is silent.
 *
 * A driver is silent when it has answered nothing for host->silence_ms. Its waiters are then told
 * so, and new ones at once, until it answers again. It may still do what it was asked. A long
 * operation is no silence: the driver is asked something short meanwhile. */
#pragma once

#include "base/err.h"
#include "base/list.h"

struct sbx_driver;

struct sbx_waiter { /* the caller's; all zero at first */
    struct sbx_driver *driver;
    struct list link;
    void (*give_up)(struct sbx_waiter *w); /* it waits no more; never from inside a call */
};

/* ERR_BUSY: there are host->most_waiting already. See sbx_check_silent() too. */
fallible sbx_wait(struct sbx_driver *d, struct sbx_waiter *w,
                  void (*give_up)(struct sbx_waiter *w));
void sbx_wait_over(struct sbx_waiter *w); /* twice is fine, also without a wait */
/* Before the driver is closed: it is asked nothing any more, and all waiters are told so. */
void sbx_wait_end(struct sbx_driver *d);

/* ERR_BUSY when it is silent or about to be closed; the text ends in `then`. */
fallible sbx_check_silent(const struct sbx_driver *d, const char *then);

/* --- for drivers --- */
void sbx_set_silent(struct sbx_driver *d, bool silent);
