// SPDX-License-Identifier: Apache-2.0
/* claim_test.c — warm sandboxes and a server that is not to be trusted with them: a claim gets what
 * a start may get, once. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "test/native/census.h"
#include "test/native/claim_kit.h"
#include "test/native/kit.h"
#include "test/test.h"

TEST(a_claim_gets_no_more_than_the_policy_allows)
{
    struct rig r;
    int pipe_ends[2], pair[2];
    own_fd block = -1, loose = -1;

    rig_open(&r, 1);
    claim_warm(&r, "w", 0);
    block = claim_block();
    loose = memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK(pipe(pipe_ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    struct native_request req = claim_ask(NATIVE_CLAIM, "w", 0);
    rig_refused(&r, &req, NULL, 0, ERR_INVALID, "descriptors");
    rig_refused(&r, &req, &loose, 1, ERR_INVALID, "sealed");
    rig_refused(&r, &req, (int[]){block, pipe_ends[1]}, 2, ERR_INVALID, "descriptors");
    req.flags = NATIVE_FD_LOG;
    rig_refused(&r, &req, (int[]){block, pair[0]}, 2, ERR_INVALID, "pipe");
    req.flags = 0;
    req.argc = 1;
    rig_refused(&r, &req, &block, 1, ERR_INVALID, "arguments");
    req.argc = 0;
    req.limits.pids = 501;
    rig_refused(&r, &req, &block, 1, ERR_FORBIDDEN, "ceiling");
    req.limits.pids = 0;
    req.network = NATIVE_NET_HOST;
    rig_refused(&r, &req, &block, 1, ERR_FORBIDDEN, "network");
    req.network = 0;
    req.mounts[0] = (struct native_mount){NATIVE_RW, 0, ".", "/workspace"};
    rig_refused(&r, &req, &block, 1, ERR_FORBIDDEN, "root 0");
    req.mounts[0].root = 2;
    rig_refused(&r, &req, &block, 1, ERR_FORBIDDEN, "root 2");
    req.mounts[0] = (struct native_mount){NATIVE_RW, 1, "../shared", "/workspace"};
    rig_refused(&r, &req, &block, 1, ERR_INVALID, "below its root");
    req.mounts[0] = (struct native_mount){NATIVE_RW, 1, "nothing", "/workspace"};
    rig_refused(&r, &req, &block, 1, ERR_NOT_FOUND, "mount '/workspace'");
    CHECK_INT(rig_tell(&r, NATIVE_INSPECT, "w").state, NATIVE_WAITING);
    claim_now(&r, "w");
    for (unsigned i = 0; i < 2; i++) {
        close(pipe_ends[i]);
        close(pair[i]);
    }
    close(take_fd(&loose));
    close(take_fd(&block));
    rig_close(&r);
}

TEST(only_what_waits_is_claimed_and_only_once)
{
    struct rig r;

    rig_open(&r, 0);
    rig_start(&r, "a");
    claim_warm(&r, "w", 0);
    own_fd block = claim_block();
    struct native_request req = claim_ask(NATIVE_CLAIM, "a", 0);
    rig_refused(&r, &req, &block, 1, ERR_CONFLICT, "does not wait");
    req = claim_ask(NATIVE_CLAIM, "nobody", 0);
    rig_refused(&r, &req, &block, 1, ERR_NOT_FOUND, "no sandbox");
    req = claim_ask(NATIVE_PAUSE, "w", 0);
    rig_refused(&r, &req, NULL, 0, ERR_CONFLICT, "not running");
    claim_now(&r, "w");
    req = claim_ask(NATIVE_CLAIM, "w", 0);
    rig_refused(&r, &req, &block, 1, ERR_CONFLICT, "does not wait");
    close(take_fd(&block));
    rig_close(&r);
}

TEST(a_claim_goes_before_what_takes_long)
{
    struct rig r;
    struct native_request start[3], last = claim_ask(NATIVE_CLAIM, "w", 0);
    struct native_reply reply;
    int fds[2];
    unsigned seen = 0;

    rig_open(&r, 0);
    claim_warm(&r, "w", 0);
    own_fd block = claim_block();
    CHECK_INT(kill(r.pid, SIGSTOP), 0);
    for (unsigned i = 0; i < 3; i++) {
        start[i] = claim_ask(NATIVE_START, (const char *[]){"a", "b", "c"}[i], NATIVE_WARM);
        start[i].tag = i + 1;
        CHECK_OK(fd_send(r.sock, str_n(&start[i], sizeof start[i]), NULL, 0));
    }
    last.tag = 9;
    CHECK_OK(fd_send(r.sock, str_n(&last, sizeof last), &block, 1));
    CHECK_INT(kill(r.pid, SIGCONT), 0);
    for (unsigned i = 0; i < 4; i++) {
        size_t n = 0, count = 0;
        fds[0] = fds[1] = -1;
        CHECK_OK(fd_wait(r.sock, POLLIN, CLAIM_WAIT_MS));
        CHECK_OK(fd_recv(r.sock, &reply, sizeof reply, &n, fds, 2, &count));
        CHECK_STR(str_of(reply.text), "");
        CHECK((reply.tag == 9) == (i == 0));
        seen |= 1u << reply.tag; /* the others are ready when they are */
        own_close_p(&fds[0]);
    }
    CHECK_INT(seen, 1u << 9 | 1u << 1 | 1u << 2 | 1u << 3);
    close(take_fd(&block));
    rig_close(&r);
}

/* Whoever claims can start another one then, and is not told that it has one. */
TEST(a_claim_of_one_that_ended_unnoticed_is_refused)
{
    struct rig r;
    struct native_request req = claim_ask(NATIVE_CLAIM, "w", 0);
    struct native_reply reply;
    size_t n = 0, count = 0;
    int fds[2] = {-1, -1};

    rig_open(&r, 0);
    pid_t pid = claim_warm(&r, "w", 0);
    own_fd block = claim_block(), gone = (int)syscall(SYS_pidfd_open, pid, 0);
    CHECK_INT(kill(r.pid, SIGSTOP), 0);
    CHECK_OK(fd_send(r.sock, str_n(&req, sizeof req), &block, 1));
    CHECK_INT(kill(pid, SIGKILL), 0);
    CHECK_OK(fd_wait(gone, POLLIN, CLAIM_WAIT_MS));
    CHECK_INT(kill(r.pid, SIGCONT), 0);
    CHECK_OK(fd_wait(r.sock, POLLIN, CLAIM_WAIT_MS));
    CHECK_OK(fd_recv(r.sock, &reply, sizeof reply, &n, fds, 2, &count));
    CHECK(reply.code != 0);
    close(take_fd(&gone));
    close(take_fd(&block));
    rig_close(&r);
}

/* --- again and again --- */

TEST_LIMIT(every_call_of_a_claim_may_fail_and_nothing_is_left, 300)
{
    struct rig r;
    unsigned refused = 0, in_a_row = 0;

    fault_share();
    fault_deep();
    rig_open(&r, 0);
    own_fd block = claim_block();
    struct native_request req = claim_ask(NATIVE_CLAIM, "w", 0);
    strcpy(req.hostname, "other");
    req.limits = (struct native_limits){.memory_bytes = 64u << 20, .pids = 50, .nofile = 100};
    req.mounts[0] = (struct native_mount){NATIVE_OVERLAY, 1, ".", "/some/where"};
    for (unsigned n = 2; in_a_row < 8; n++) { /* the first call receives the request */
        struct native_reply reply = {.code = 0};
        claim_warm(&r, "w", 0);
        bool told = rig_ask_with_fault(&r, n, &req, block, &reply);
        printf("call %u: %s\n", n, !told ? "lost" : reply.code ? reply.text : "claimed");
        in_a_row = told && !reply.code && !fault_fired() ? in_a_row + 1 : 0;
        refused += told && reply.code;
        if (told && reply.code && !fault_fired())
            FAIL("call %u: '%s', and no call of it failed", n, reply.text);
        if (told && reply.code && !strchr(reply.text, ':'))
            FAIL("call %u: '%s' does not name a step", n, reply.text);
        if (!told)
            rig_renew(&r);
        else
            rig_tell(&r, NATIVE_REMOVE, "w");
        kit_check_empty("state/box");
        kit_check_empty("state/ids");
        kit_check_empty("state/run");
        CHECK(n < 500);
    }
    CHECK(refused > 20);
    close(take_fd(&block));
    rig_close(&r);
    rig_reap();
}

TEST_LIMIT(many_claims_leave_nothing, 3600)
{
    const char *asked = getenv("CROFT_SOAK_CLAIMS");
    unsigned cycles = asked ? (unsigned)strtoul(asked, NULL, 10) : 40;
    struct rig r;
    struct census before, after;
    struct census_groups groups;

    kit_need_root();
    census_open_groups(&groups);
    rig_open(&r, 0); /* a spare tries slots, and others' groups would be noted as ours */
    for (unsigned i = 0; i <= cycles; i++) {
        claim_warm(&r, "w", NATIVE_TELL);
        census_note_groups(&groups, r.state);
        if (i % 4)
            claim_now(&r, "w"); /* every fourth goes unclaimed */
        rig_tell(&r, NATIVE_REMOVE, "w");
        if (i == 0)
            census_take(&before, r.pid, r.state);
    }
    census_take(&after, r.pid, r.state);
    census_compare(&before, &after);
    rig_close(&r);
    census_check_groups(&groups, r.state);
}
