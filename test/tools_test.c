// SPDX-License-Identifier: Apache-2.0
/* tools_test.c — what people type to build and test croft, where it may be typed wrongly. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "test/program.h"
#include "test/test.h"

static int listed(const char *word, struct buf *out)
{
    return program_run(ARGS(test_program("test-croft"), "--list", word), out);
}

TEST(a_word_with_an_equals_sign_runs_one_test_exactly)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    CHECK_INT(listed("=removing_may_be_done_twice", &out), 0);
    CHECK_STR(buf_str(&out), "host/launcher/cg_test.c.removing_may_be_done_twice\n");
}

TEST(a_word_that_fits_no_test_is_named_and_fails)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    CHECK_INT(listed("=removing_may_be_done", &out), 2);
    CHECK_INT(program_run(ARGS(test_program("test-croft"), "removing_may_be", "no such"), &out), 2);
}

/* A program of that name which is found first. */
static void stand_in(const char *name, const char *script)
{
    char path[300];

    snprintf(path, sizeof path, "%s/%s", test_dir(), name);
    own_fd fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    CHECK_OK(fd_write_all(fd, STR("#!/bin/sh\n")));
    CHECK_OK(fd_write_all(fd, str_of(script)));
}

TEST(installing_waits_for_a_busy_package_database)
{
    char path[600], log[300];
    own_done(buf) out;
    own_done(buf) calls;

    if (geteuid() != 0)
        SKIP("installing needs root");
    buf_init(&out, 1u << 16);
    buf_init(&calls, 1u << 16);
    snprintf(log, sizeof log, "%s/calls", test_dir());
    stand_in("dpkg-query", "exit 1\n");
    stand_in("sleep", "exit 0\n");
    stand_in("apt-get", "echo \"$*\" >>\"$CALLS\"\n"
                        "case $(wc -l <\"$CALLS\") in\n"
                        "1) exit 100 ;; # the lists are old\n"
                        "2) echo 'E: Could not get lock /var/lib/apt/lists/lock'; exit 100 ;;\n"
                        "esac\n");
    snprintf(path, sizeof path, "%s:/usr/bin:/bin", test_dir());
    setenv("PATH", path, 1);
    setenv("CALLS", log, 1);
    CHECK_INT(program_run(ARGS(test_source("tools/deps"), "run"), &out), 0);
    CHECK_OK(fd_read_file(log, &calls));
    CHECK_STR(buf_str(&calls),
              "-o DPkg::Lock::Timeout=600 install -y --no-install-recommends curl iproute2\n"
              "-o DPkg::Lock::Timeout=600 update\n"
              "-o DPkg::Lock::Timeout=600 update\n"
              "-o DPkg::Lock::Timeout=600 install -y --no-install-recommends curl iproute2\n");
}
