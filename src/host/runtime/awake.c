// SPDX-License-Identifier: Apache-2.0
/* awake.c — see awake.h. */
#include "host/runtime/awake.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"

#define MOST_CPUS 4

enum { AWAKE_US = 0, ASLEEP_US = -1 }; /* how long waking up may take; -1: as long as it does */

static bool awake_say(int fd, int32_t us)
{
    return write(fd, &us, sizeof us) == (ssize_t)sizeof us;
}

static void let_go(struct awake *a)
{
    own_close_p(&a->fd);
    a->fd = -1;
    a->held = false;
}

void awake_open(struct awake *a, uint64_t ms)
{
    *a = (struct awake){.fd = -1, .ms = ms};
    if (sysconf(_SC_NPROCESSORS_ONLN) > MOST_CPUS)
        return;
    a->fd = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);
    if (a->fd >= 0 && awake_say(a->fd, ASLEEP_US))
        return;
    log_debug("processors sleep during starts", KV("errno", errno));
    let_go(a);
}

void awake_close(struct awake *a)
{
    loop_timer_stop(&a->over);
    let_go(a);
}

static void on_over(struct loop_timer *t)
{
    struct awake *a = container_of(t, struct awake, over);

    a->held = false;
    if (!awake_say(a->fd, ASLEEP_US))
        let_go(a); /* which ends it too */
}

void awake_hold(struct awake *a)
{
    if (!a || a->fd < 0 || !a->ms || (!a->held && !awake_say(a->fd, AWAKE_US)))
        return;
    a->held = true;
    loop_timer_start(a->loop, &a->over, a->ms, on_over);
}
