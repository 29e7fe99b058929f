// SPDX-License-Identifier: Apache-2.0
/* fd_slot.c — see fd_slot.h. */
#include "host/launcher/fd_slot.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "host/kernel/sys.h"

#define LOOK_NS 1000000 /* it leaves first of all; after so long we look whether it is dead */

enum { TAKEN, TAKEN_AND_AWAITED, LEFT };

fallible fd_slot_open(struct fd_slot *s, int above)
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

void fd_slot_close(struct fd_slot *s)
{
    own_close_p(&s->fd);
    s->fd = -1;
    if (s->left)
        munmap(s->left, sizeof *s->left);
    s->left = NULL;
}

fallible fd_slot_put(struct fd_slot *s, int fd)
{
    fd_slot_clear(s);
    *s->left = TAKEN;
    return dup3(fd, s->fd, O_CLOEXEC) < 0 ? err_sys("copy a descriptor") : NULL;
}

int fd_slot_leave(const struct fd_slot *s)
{
    if (sys_close_range((unsigned)s->fd + 1, ~0u, CLOSE_RANGE_UNSHARE) < 0)
        return -1;
    if (__atomic_exchange_n(s->left, LEFT, __ATOMIC_ACQ_REL) == TAKEN_AND_AWAITED)
        syscall(SYS_futex, s->left, FUTEX_WAKE, 1, NULL, NULL, 0);
    return s->fd;
}

void fd_slot_given(struct fd_slot *s, int pidfd)
{
    s->waits = pidfd;
    if (pidfd < 0)
        dup3(s->filler, s->fd, O_CLOEXEC);
}

void fd_slot_clear(struct fd_slot *s)
{
    static const struct timespec look = {.tv_nsec = LOOK_NS};
    struct pollfd dead = {.fd = s->waits, .events = POLLIN};
    uint32_t taken = TAKEN;

    if (s->waits < 0)
        return;
    __atomic_compare_exchange_n(s->left, &taken, TAKEN_AND_AWAITED, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_ACQUIRE);
    while (__atomic_load_n(s->left, __ATOMIC_ACQUIRE) != LEFT) {
        syscall(SYS_futex, s->left, FUTEX_WAIT, TAKEN_AND_AWAITED, &look, NULL, 0);
        if (__atomic_load_n(s->left, __ATOMIC_ACQUIRE) != LEFT && poll(&dead, 1, 0) > 0)
            break;
    }
    fd_slot_given(s, -1);
}
