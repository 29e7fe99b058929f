// SPDX-License-Identifier: Apache-2.0
/* seat.c — see seat.h. */
#include "host/launcher/seat.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/own.h"
#include "host/launcher/sys.h"

#define YIELDS 100 /* it leaves first of all; then we look whether it is dead */

fallible seat_open(struct seat *s, int above)
{
    void *page =
        mmap(NULL, sizeof *s->left, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        return err_sys("map a page to share");
    s->left = page;
    s->filler = above;
    s->waits = -1;
    s->fd = fcntl(above, F_DUPFD_CLOEXEC, above + 1);
    return s->fd < 0 ? err_sys("copy a descriptor") : NULL;
}

void seat_close(struct seat *s)
{
    own_close_p(&s->fd);
    s->fd = -1;
    if (s->left)
        munmap(s->left, sizeof *s->left);
    s->left = NULL;
}

fallible seat_put(struct seat *s, int fd)
{
    seat_clear(s);
    *s->left = 0;
    return dup3(fd, s->fd, O_CLOEXEC) < 0 ? err_sys("copy a descriptor") : NULL;
}

int seat_leave(const struct seat *s)
{
    if (sys_close_range((unsigned)s->fd + 1, ~0u, CLOSE_RANGE_UNSHARE) < 0)
        return -1;
    __atomic_store_n(s->left, 1, __ATOMIC_RELEASE);
    return s->fd;
}

void seat_given(struct seat *s, int pidfd)
{
    s->waits = pidfd;
    if (pidfd < 0)
        dup3(s->filler, s->fd, O_CLOEXEC);
}

void seat_clear(struct seat *s)
{
    struct pollfd dead = {.fd = s->waits, .events = POLLIN};

    if (s->waits < 0)
        return;
    for (unsigned i = 0; !__atomic_load_n(s->left, __ATOMIC_ACQUIRE); i++) {
        if (i < YIELDS)
            sched_yield();
        else if (poll(&dead, 1, 1) > 0)
            break;
    }
    seat_given(s, -1);
}
