// SPDX-License-Identifier: Apache-2.0
/* seat.c — see seat.h. */
#include "host/launcher/seat.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "host/launcher/sys.h"

#define LOOK_NS 1000000 /* it leaves first of all; after so long we look whether it is dead */

enum { SITS, SITS_AND_WE_WAIT, LEFT };

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
    *s->left = SITS;
    return dup3(fd, s->fd, O_CLOEXEC) < 0 ? err_sys("copy a descriptor") : NULL;
}

int seat_leave(const struct seat *s)
{
    if (sys_close_range((unsigned)s->fd + 1, ~0u, CLOSE_RANGE_UNSHARE) < 0)
        return -1;
    if (__atomic_exchange_n(s->left, LEFT, __ATOMIC_ACQ_REL) == SITS_AND_WE_WAIT)
        syscall(SYS_futex, s->left, FUTEX_WAKE, 1, NULL, NULL, 0);
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
    static const struct timespec look = {.tv_nsec = LOOK_NS};
    struct pollfd dead = {.fd = s->waits, .events = POLLIN};
    uint32_t sits = SITS;

    if (s->waits < 0)
        return;
    __atomic_compare_exchange_n(s->left, &sits, SITS_AND_WE_WAIT, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_ACQUIRE);
    while (__atomic_load_n(s->left, __ATOMIC_ACQUIRE) != LEFT) {
        syscall(SYS_futex, s->left, FUTEX_WAIT, SITS_AND_WE_WAIT, &look, NULL, 0);
        if (__atomic_load_n(s->left, __ATOMIC_ACQUIRE) != LEFT && poll(&dead, 1, 0) > 0)
            break;
    }
    seat_given(s, -1);
}
