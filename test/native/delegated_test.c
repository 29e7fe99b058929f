// SPDX-License-Identifier: Apache-2.0
/* delegated_test.c — an ordinary user whom somebody gave control groups: limits and pause hold. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "test/native/kit.h"
#include "test/program.h"
#include "test/test.h"

#define BASE "/sys/fs/cgroup"

static const char *const hierarchies[] = {"memory", "pids", "cpu", "freezer", "unified", "."};

static char group[40];

/* As systemd does it: the directory and the files one moves processes with are the user's. */
static bool give(const char *hierarchy)
{
    static const char *const files[] = {"", "/tasks", "/cgroup.procs", "/cgroup.subtree_control"};
    char path[200];

    snprintf(path, sizeof path, BASE "/%s/cgroup.procs", hierarchy);
    if (access(path, W_OK) < 0)
        return false;
    snprintf(path, sizeof path, BASE "/%s/%s", hierarchy, group);
    CHECK_INT(mkdir(path, 0755), 0);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        snprintf(path, sizeof path, BASE "/%s/%s%s", hierarchy, group, files[i]);
        CHECK(chown(path, KIT_NOBODY, KIT_NOBODY) == 0 || i > 0);
    }
    snprintf(path, sizeof path, BASE "/%s/%s/cgroup.procs", hierarchy, group);
    own_fd fd = open(path, O_WRONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_OK(fd_write_all(fd, STR("0")));
    return true;
}

/* Out of it again, and it must be bare. */
static void take_back(const char *hierarchy)
{
    static const char *const below[] = {"/croft", "/croft-self/croft", "/croft-self", ""};
    char path[200];

    snprintf(path, sizeof path, BASE "/%s/%s", hierarchy, group);
    if (access(path, F_OK) < 0)
        return;
    snprintf(path, sizeof path, BASE "/%s/cgroup.procs", hierarchy);
    own_fd fd = open(path, O_WRONLY | O_CLOEXEC);
    CHECK_OK(fd_write_all(fd, STR("0")));
    for (size_t i = 0; i < ARRAY_LEN(below); i++) {
        snprintf(path, sizeof path, BASE "/%s/%s%s", hierarchy, group, below[i]);
        /* who ends gives up his locks first, by which he was waited for, and his group last */
        while (rmdir(path) < 0 && errno == EBUSY)
            sched_yield();
        CHECK(access(path, F_OK) < 0);
    }
}

TEST_LIMIT(delegated_groups_limit_an_ordinary_users_sandbox, 120)
{
    own_done(buf) out;
    char state[4200];
    bool any = false;

    buf_init(&out, 1u << 16);
    kit_be_nobody();
    snprintf(state, sizeof state, "%s/state", test_dir());
    kit_share_layers_as(state, "test-state-user", KIT_NOBODY);
    snprintf(group, sizeof group, "croft-test-%d", (int)getpid());
    for (size_t i = 0; i < ARRAY_LEN(hierarchies); i++)
        any |= give(hierarchies[i]);
    if (!any)
        SKIP("no control groups here");
    CHECK_INT(kit_as_nobody(ARGS("doctor"), &out), 0);
    bool memory = str_find(buf_str(&out), STR("NO   memory")) < 0;
    CHECK_HAS(buf_str(&out), "delegated to you");
    if (memory) {
        buf_reset(&out);
        CHECK_INT(kit_as_nobody(ARGS("run", "--bare", "--memory", "32M", "--", "sh", "-c",
                                     "head -c 200m /dev/zero | tail -c 199m >/dev/null"),
                                &out),
                  128 + 9);
        CHECK_HAS(buf_str(&out), "out of memory (limit 32 MiB)");
        buf_reset(&out);
        kit_as_nobody(ARGS("run", "--bare", "--require", "memory,pids,cpu,pause", "--pids", "8",
                           "--cpus", "0.5", "--", "sh", "-c",
                           "for i in 1 2 3 4 5 6 7 8 9; do sleep 1 & done; wait"),
                      &out);
        CHECK_HAS(buf_str(&out), "annot fork");
    }
    kit_settle(); /* who tidies up is in the group, too */
    kit_check_empty("state/box");
    kit_check_empty("state/ids");
    for (size_t i = 0; i < ARRAY_LEN(hierarchies); i++)
        take_back(hierarchies[i]);
    if (!memory)
        SKIP("the memory of a delegated group is not counted here");
}
