// SPDX-License-Identifier: Apache-2.0
#include "guest/stale/stale.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "test/test.h"

#define NOW 2000000000u

static int make(const char *path, bool is_dir)
{
    int fd;

    if (is_dir)
        CHECK_INT(mkdirat(test_dir_fd(), path, 0700), 0);
    fd = openat(test_dir_fd(), path, is_dir ? O_RDONLY | O_DIRECTORY : O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0);
    return fd;
}

static void age(const char *path, unsigned seconds)
{
    const struct timespec t[2] = {{NOW - seconds, 0}, {NOW - seconds, 0}};

    CHECK_INT(utimensat(test_dir_fd(), path, t, AT_SYMLINK_NOFOLLOW), 0);
}

static bool there(const char *path)
{
    return faccessat(test_dir_fd(), path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

TEST(stale_of_the_dead_is_swept_and_nothing_else)
{
    static const char *const dirs[] = {
        "croft-undo-dead",   "croft-undo-dead/ab",  "croft-undo-held", "croft-shell-dead",
        "croft-shell-held",  "croft-kernel-new",    "croft-test-1",    "croft-undo-deep",
        "croft-undo-deep/a", "croft-undo-deep/a/b", "elsewhere"};
    static const char *const files[] = {"croft-undo-dead/ab/1", "croft-shell-dead/c",
                                        "croft-shell-held/c", "elsewhere/kept", "croft-undo-file"};
    int held_dir = -1, held_file = -1;

    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        int fd = make(dirs[i], true);
        if (i == 2)
            stale_hold(held_dir = fd);
        else
            close(fd);
    }
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        int fd = make(files[i], false);
        if (i == 2)
            stale_hold(held_file = fd);
        else
            close(fd);
    }
    CHECK_INT(mkfifoat(test_dir_fd(), "croft-shell-dead/r", 0600), 0);
    CHECK_INT(symlinkat("../elsewhere", test_dir_fd(), "croft-shell-dead/l"), 0);
    CHECK_INT(symlinkat("elsewhere", test_dir_fd(), "croft-undo-link"), 0);
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        age(dirs[i], 7200);
    age("croft-kernel-new", 60);
    stale_sweep(test_dir(), NOW);
    CHECK(!there("croft-undo-dead") && !there("croft-shell-dead"));
    CHECK(there("croft-undo-held") && there("croft-shell-held/c") && there("croft-kernel-new"));
    CHECK(there("croft-test-1") && there("elsewhere/kept") && there("croft-undo-link"));
    CHECK(there("croft-undo-file") && there("croft-undo-deep/a/b")); /* not of our making */
    close(held_dir);
    close(held_file);
    age("croft-undo-held", 7200);
    age("croft-shell-held", 7200);
    stale_sweep(test_dir(), NOW);
    CHECK(!there("croft-undo-held") && !there("croft-shell-held"));
    stale_sweep("/nonexistent", NOW);
}
