// SPDX-License-Identifier: Apache-2.0
/* fault_test.c — the tool the other tests trust: exactly the n-th call fails, once. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/test.h"

static bool call(int which)
{
    int fd = -1;
    void *p = NULL;

    errno = 0;
    if (which % 3 == 0)
        return (fd = open("/dev/null", O_RDWR | O_CLOEXEC)) >= 0 && close(fd) == 0;
    if (which % 3 == 1)
        return write(STDOUT_FILENO, "", 0) == 0;
    p = malloc(1);
    __asm__ volatile("" : : "r"(p) : "memory"); /* or the compiler drops malloc and free */
    free(p);
    return p != NULL;
}

TEST(fault_at_fails_exactly_the_nth_call_once)
{
    static const int want_errno[] = {EMFILE, ENOSPC, ENOMEM};

    for (unsigned n = 1; n <= 9; n++) {
        fault_at(n);
        for (unsigned i = 1; i <= 12; i++) {
            bool ok = call((int)i);
            CHECK_INT(ok, i != n);
            if (!ok)
                CHECK_INT(errno, want_errno[i % 3]);
            CHECK_INT(fault_fired(), i >= n);
        }
    }
}

TEST(fault_at_zero_disarms)
{
    fault_at(1);
    fault_at(0);
    for (int i = 0; i < 6; i++)
        CHECK(call(i));
    CHECK(!fault_fired());
}

TEST(fault_counts_calls_without_failing_any_when_armed_far_away)
{
    fault_at(UINT_MAX);
    for (int i = 0; i < 6; i++)
        CHECK(call(i));
    CHECK_INT(fault_calls(), 6);
    CHECK(!fault_fired());
    fault_at(3);
    CHECK_INT(fault_calls(), 0);
}

TEST(fault_reaches_sockets_and_mode_passes_through_open)
{
    int pair[2];
    struct stat st;
    own_fd dir = test_dir_fd();

    fault_at(1);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 && errno == EMFILE);
    own_fd fd = openat(dir, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0640);
    CHECK(fd >= 0);
    CHECK(fstat(fd, &st) == 0);
    CHECK_INT(st.st_mode & 0777, 0640);
}
