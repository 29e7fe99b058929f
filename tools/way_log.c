// SPDX-License-Identifier: Apache-2.0
/* way_log.c — notes each function that a process enters, for tools/way; linked into build/shape.
 *
 * The notes are a ring in a file: WAY_LOG of the environment, or /way-log of a sandbox. The file is
 * mapped shared, so children without an exec note there too. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NOTES (1u << 18)
#define FLAGS (O_RDWR | O_CREAT | O_CLOEXEC)
#define RAW   __attribute__((no_instrument_function))

struct note {
    uint64_t ns;               /* of CLOCK_MONOTONIC */
    uint64_t function, caller; /* addresses in the program's file */
    int64_t thread;
};

static struct ring {
    uint64_t next;
    struct note notes[NOTES];
} * ring;

extern char __executable_start[];

RAW void __cyg_profile_func_enter(void *function, void *caller);
RAW void __cyg_profile_func_exit(void *function, void *caller);

RAW static void way_open(void)
{
    const char *path = getenv("WAY_LOG");
    int fd = path || getpid() == 1 ? open(path ? path : "/way-log", FLAGS, 0666) : -1;

    if (fd >= 0 && ftruncate(fd, sizeof *ring) == 0) {
        void *p = mmap(NULL, sizeof *ring, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        ring = p == MAP_FAILED ? NULL : p;
    }
    if (fd >= 0)
        close(fd);
}

RAW void __cyg_profile_func_enter(void *function, void *caller)
{
    static char opened;
    struct timespec t;

    if (!opened) {
        opened = 1;
        way_open();
    }
    if (!ring)
        return;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t); /* the guest's own would note itself */
    ring->notes[__atomic_fetch_add(&ring->next, 1, __ATOMIC_RELAXED) % NOTES] = (struct note){
        (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec,
        (uint64_t)function - (uint64_t)__executable_start,
        (uint64_t)caller - (uint64_t)__executable_start,
        syscall(SYS_gettid),
    };
}

RAW void __cyg_profile_func_exit(void *function, void *caller)
{
    (void)function;
    (void)caller;
}
