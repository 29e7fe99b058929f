// SPDX-License-Identifier: Apache-2.0
/* slice.c — see slice.h. */
#include "host/launcher/slice.h"

#include <errno.h>
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"

#define SLICE_NS 100000

void slice_short(bool children_too)
{
    struct sched_attr a = {.size = sizeof a,
                           .sched_flags = children_too ? 0 : SCHED_FLAG_RESET_ON_FORK,
                           .sched_nice = getpriority(PRIO_PROCESS, 0), /* as it is */
                           .sched_runtime = SLICE_NS};

    if (syscall(SYS_sched_setattr, 0, &a, 0) < 0)
        log_debug("no short slices", KV("errno", errno));
}
