// SPDX-License-Identifier: Apache-2.0
/* fence.c — see fence.h. */
#include "host/snaps/fence.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/own.h"
#include "host/worker/worker.h"

#define OPEN (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

fallible snaps_fence(int state, int box, int uppers, int out)
{
    own_fd store = openat(state, "snap", OPEN), boxes = openat(state, "box", OPEN);

    if (store < 0 || boxes < 0)
        return err_sys("open the store of layers");
    return err_wrap(worker_fence(&(struct worker_fence){.root = state,
                                                        .work = {store, box, uppers},
                                                        .look = boxes,
                                                        .fds = &out,
                                                        .fd_count = 1}),
                    "confine who works on layers");
}
