// SPDX-License-Identifier: Apache-2.0
/* starve_test.c — a launcher whose disk is full, whose every call may fail: it says at which step,
 * leaves nothing, harms nobody, and works again when there is room. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "host/launcher/mounts.h"
#include "test/native/census.h"
#include "test/native/kit.h"
#include "test/native/launcher_kit.h"
#include "test/program.h"
#include "test/test.h"

/* --- a full disk --- */

/* The state is a small file system of its own, which goes with the test's mounts. */
static void small_state(struct rig *r, const char *options)
{
    rig_prepare(r, 0);
    CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    CHECK_INT(mkdir(r->state, 0700), 0);
    CHECK_INT(mount("none", r->state, "tmpfs", 0, options), 0);
}

/* Before Linux 6.3 a file system in memory lends no ids, and no sandbox has its layers there. */
static void need_ids_in_memory(const char *text)
{
    if (strstr(text, "shift the ids of a mount"))
        test_skip("this kernel shifts no ids in memory, where the small disk of this test is");
}

/* Takes all there is but so many inodes and blocks; gives back everything with 0, 0 files. */
static void leave_free(const struct rig *r, unsigned inodes, unsigned pages)
{
    char path[4300];
    struct statvfs v;
    static unsigned taken;

    for (; taken > 0; taken--) {
        snprintf(path, sizeof path, "%s/take%u", r->state, taken);
        CHECK_INT(unlink(path), 0);
    }
    CHECK_INT(statvfs(r->state, &v), 0);
    if (inodes == 0 && pages == 0)
        return;
    for (unsigned n = (unsigned)v.f_ffree; n > inodes; n--) {
        snprintf(path, sizeof path, "%s/take%u", r->state, ++taken);
        own_fd fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        CHECK(fd >= 0);
        unsigned long take = taken == 1 && v.f_bfree > pages ? v.f_bfree - pages : 0;
        if (take)
            CHECK_INT(fallocate(fd, 0, 0, (off_t)(take * v.f_bsize)), 0);
    }
}

static void check_nothing_left(void)
{
    kit_check_empty("state/box");
    kit_check_empty("state/ids");
    kit_check_empty("state/run");
}

/* Starts `a` if it can be; true if so, and it is removed again. */
static bool starts(struct rig *r, char text[NATIVE_TEXT_MAX])
{
    struct native_request req = rig_request(NATIVE_START, "a");
    struct native_reply reply;
    int fds[2];

    own_fd block = rig_block(ARGS("action-server"), ARGS(NULL));
    rig_ask(r, &req, &block, 1, &reply, fds);
    close(take_fd(&block));
    own_close_p(&fds[0]);
    own_close_p(&fds[1]);
    memcpy(text, reply.text, NATIVE_TEXT_MAX);
    if (reply.code == 0)
        rig_tell(r, NATIVE_REMOVE, "a");
    check_nothing_left();
    census_wait_deleted(r->state);
    return reply.code == 0;
}

TEST(on_a_full_disk_a_start_names_its_step_and_leaves_nothing)
{
    struct rig r;
    char text[NATIVE_TEXT_MAX], last[NATIVE_TEXT_MAX] = "";
    unsigned free_inodes = 1, steps = 0;

    small_state(&r, "size=8m,nr_inodes=200");
    rig_fork(&r);
    bool well = starts(&r, text);
    need_ids_in_memory(text);
    CHECK(well);
    for (leave_free(&r, 1, 1); !starts(&r, text); leave_free(&r, ++free_inodes, 100)) {
        CHECK_HAS(str_of(text), "No space left");
        CHECK(strchr(text, ':') != NULL);
        steps += strcmp(text, last) != 0;
        memcpy(last, text, sizeof last);
        CHECK(free_inodes < 100);
    }
    CHECK(steps >= 4); /* claim, directory, sockets, record, layers */
    leave_free(&r, 0, 0);
    rig_start(&r, "a");
    rig_check_answers(&r, "a");
    rig_close(&r);
}

/* Room for names, none for bytes: records and the files that name a sandbox. */
TEST(without_a_free_block_a_start_names_its_step_and_leaves_nothing)
{
    struct rig r;
    char text[NATIVE_TEXT_MAX];
    unsigned free_pages = 0;

    small_state(&r, "size=8m,nr_inodes=200");
    rig_fork(&r);
    bool well = starts(&r, text);
    need_ids_in_memory(text);
    CHECK(well);
    for (leave_free(&r, 100, 0); !starts(&r, text); leave_free(&r, 100, ++free_pages)) {
        CHECK_HAS(str_of(text), "No space left");
        CHECK(strchr(text, ':') != NULL);
        CHECK(free_pages < 50);
    }
    CHECK(free_pages > 0);
    leave_free(&r, 0, 0);
    rig_start(&r, "a");
    rig_check_answers(&r, "a");
    rig_close(&r);
}

TEST(a_launcher_that_finds_a_full_disk_ends_with_an_error)
{
    struct rig r;

    small_state(&r, "size=64k");
    rig_fork(&r);
    CHECK_INT(program_wait(r.pid), 1);
    close(r.sock);
}

/* --- every call --- */

enum outcome { STARTED, REFUSED, LOST };

static enum outcome start_with_fault(struct rig *r, unsigned n, int block, char *text)
{
    struct native_request req = rig_request(NATIVE_START, "a");
    struct native_reply reply;

    if (!rig_ask_with_fault(r, n, &req, block, &reply))
        return LOST;
    snprintf(text, NATIVE_TEXT_MAX, "%s", reply.text);
    return reply.code ? REFUSED : STARTED;
}

/* Who deletes behind the launcher's back would make its calls among those that are counted. */
static void delete_at_once(const struct rig *r, bool at_once)
{
    char path[4300];

    snprintf(path, sizeof path, "%s/gone", r->state);
    if (at_once) {
        CHECK_INT(mkdir(r->state, 0700), 0);
        own_fd fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        CHECK(fd >= 0);
        return;
    }
    CHECK(unlink(path) == 0 && mkdir(path, 0700) == 0);
}

/* Without these a sandbox must not run: ids, capabilities, filters, namespaces, mounts, limits. */
static bool makes_a_wall(const char *call)
{
    static const char *const walls[] = {"prctl",   "syscall", "sys_",      "set",      "prlimit",
                                        "unshare", "mount",   "umount2",   "chdir",    "mknodat",
                                        "dup2",    "ioctl",   "symlinkat", "sendmsg",  "recvmsg",
                                        "mkdirat", "write",   "clone",     "fchmodat", "fchownat"};

    /* Whose child dies with whom is no wall, nor who may look at the launcher while it is another,
     * nor who wakes it; who it is, and may do, is tried twice, and so is what older kernels want
     * taken back of the launcher's own mounts. */
    static const char *const none[] = {"prctl 1",     "prctl 3",     "prctl 4",    "syscall 117",
                                       "syscall 125", "syscall 126", "syscall 202"};
    static int by_path = -1;

    if (by_path < 0) {
        own_fd dir = test_dir_fd();
        by_path = mounts_by_path(dir);
    }
    if (by_path && strcmp(call, "umount2") == 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(none); i++)
        if (strcmp(call, none[i]) == 0)
            return false;
    for (size_t i = 0; i < ARRAY_LEN(walls); i++)
        if (strncmp(call, walls[i], strlen(walls[i])) == 0)
            return true;
    return false;
}

TEST_LIMIT(every_call_of_a_launchers_start_may_fail_and_nothing_is_left, 900)
{
    struct rig r;
    char text[NATIVE_TEXT_MAX];
    unsigned refused = 0, in_a_row = 0;

    fault_share();
    fault_deep();
    rig_prepare(&r, 0);
    delete_at_once(&r, true);
    rig_fork(&r);
    rig_tell(&r, NATIVE_LIST, ""); /* it has begun */
    own_fd block = rig_block(ARGS("action-server"), ARGS(NULL));
    /* The first call receives the request, which would be there still. */
    for (unsigned n = 2; in_a_row < 12; n++) {
        enum outcome o = start_with_fault(&r, n, block, text);
        printf("call %u (%s): outcome %d %s\n", n, fault_fired() ? fault_name() : "-", (int)o,
               o == REFUSED ? text : "");
        in_a_row = o == STARTED && !fault_fired() ? in_a_row + 1 : 0;
        refused += o == REFUSED;
        if (o == REFUSED && !fault_fired())
            FAIL("call %u: '%s', and no call of it failed", n, text);
        if (o == REFUSED && !strchr(text, ':'))
            FAIL("call %u: '%s' does not name a step", n, text);
        if (o == STARTED && fault_fired() && makes_a_wall(fault_name()))
            FAIL("call %u: %s failed, and the sandbox runs without that wall", n, fault_name());
        if (o == STARTED)
            rig_tell(&r, NATIVE_REMOVE, "a");
        if (o == LOST)
            rig_renew(&r);
        check_nothing_left();
        CHECK(n < 1000);
    }
    CHECK(refused > 200);
    close(take_fd(&block));
    delete_at_once(&r, false);
    rig_close(&r);
    rig_reap();
}

static void mark_files(const struct rig *r, bool check_only)
{
    char path[4300];

    snprintf(path, sizeof path, "%s/box/a/u/mark", r->state);
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC | (check_only ? 0 : O_CREAT), 0600);
    CHECK(fd >= 0);
}

/* What it had before is not the start's to remove. */
TEST_LIMIT(every_call_of_a_restart_may_fail_and_its_files_stay, 300)
{
    struct rig r;
    struct native_request req = rig_request(NATIVE_START, "a");
    unsigned refused = 0, in_a_row = 0;

    fault_share();
    rig_open(&r, 0);
    rig_start(&r, "a");
    mark_files(&r, false);
    own_fd block = rig_block(ARGS("action-server"), ARGS(NULL));
    for (unsigned n = 2; in_a_row < 6; n++) {
        struct native_reply reply = {.code = 0};
        rig_tell(&r, NATIVE_KILL, "a");
        bool heard = rig_ask_with_fault(&r, n, &req, block, &reply);
        in_a_row = heard && !fault_fired() ? in_a_row + 1 : 0;
        refused += reply.code != 0;
        if (!heard) {
            rig_renew(&r);
            rig_start(&r, "a");
            mark_files(&r, false);
        }
        printf("call %u (%s): %s\n", n, fault_fired() ? fault_name() : "-",
               heard ? reply.text : "lost");
        CHECK(!reply.code || fault_fired());
        mark_files(&r, true);
        CHECK_INT(rig_tell(&r, NATIVE_INSPECT, "a").state,
                  reply.code ? NATIVE_EXITED : NATIVE_RUNNING);
        CHECK(n < 1000);
    }
    CHECK(refused > 20);
    close(take_fd(&block));
    rig_close(&r);
    rig_reap();
}

/* One that could not be removed can be asked for again; what was not deleted, or a socket, goes
 * with the next. */
TEST_LIMIT(every_call_of_a_removal_may_fail_and_nothing_is_left, 300)
{
    struct rig r;
    unsigned in_a_row = 0;

    fault_share();
    rig_open(&r, 0);
    for (unsigned n = 2; in_a_row < 12; n++) {
        struct native_request req = rig_request(NATIVE_REMOVE, "a");
        struct native_reply reply = {.code = 0};
        rig_start(&r, "a");
        bool heard = rig_ask_with_fault(&r, n, &req, -1, &reply);
        printf("call %u (%s): %s\n", n, fault_fired() ? fault_name() : "-",
               heard ? reply.text : "lost");
        in_a_row = fault_fired() ? 0 : in_a_row + 1;
        if (!heard)
            rig_renew(&r);
        if (rig_tell(&r, NATIVE_LIST, "").count)
            rig_tell(&r, NATIVE_REMOVE, "a");
        kit_check_empty("state/box");
        kit_check_empty("state/ids");
        CHECK(n < 1000);
    }
    census_wait_deleted(r.state);
    rig_close(&r);
    rig_reap();
}

/* What a launcher cannot read it must not take for dead. */
TEST_LIMIT(every_call_of_an_adoption_may_fail_and_the_sandbox_lives, 300)
{
    struct rig r;
    unsigned failed = 0, in_a_row = 0;

    fault_share();
    rig_prepare(&r, 0);
    r.policy.persist = true;
    rig_fork(&r);
    rig_start(&r, "a");
    pid_t inside = rig_tell(&r, NATIVE_INSPECT, "a").pid;
    rig_kill(&r);
    for (unsigned n = 1; in_a_row < 60; n++) {
        struct native_request req = rig_request(NATIVE_LIST, "");
        char byte;
        fault_at(UINT32_MAX);
        rig_fork(&r);
        fault_at(n);
        syscall(SYS_sendto, r.sock, &req, sizeof req, MSG_NOSIGNAL, NULL, 0);
        struct pollfd p = {.fd = r.sock, .events = POLLIN};
        CHECK_INT(poll(&p, 1, 60000), 1);
        bool ok = syscall(SYS_recvfrom, r.sock, &byte, 1, 0, NULL, NULL) == 1;
        fault_at(0);
        printf("call %u: %s\n", n, ok ? "adopted" : "failed");
        failed += !ok;
        in_a_row = ok ? in_a_row + 1 : 0;
        close(r.sock);
        kill(r.pid, SIGKILL); /* it may wait for a server, or have ended */
        CHECK(program_wait(r.pid) >= 0);
        CHECK_INT(kill(inside, 0), 0);
        rig_check_answers(&r, "a");
        CHECK(n < 1000);
    }
    CHECK(failed > 3); /* who is forked may be past the call before its failure is ordered */
    rig_fork(&r);
    CHECK_INT(rig_tell(&r, NATIVE_ADOPT, "a").state, NATIVE_RUNNING);
    rig_tell(&r, NATIVE_REMOVE, "a");
    rig_close(&r);
    rig_reap();
}
