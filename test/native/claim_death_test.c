// SPDX-License-Identifier: Apache-2.0
/* claim_death_test.c — whoever dies before, under or after a claim: it is told once, and what
 * nobody claimed is gone. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "host/record/record.h"
#include "test/native/claim_kit.h"
#include "test/program.h"
#include "test/test.h"

static struct native_reply next_word(struct rig *r)
{
    struct native_reply reply;
    size_t n = 0, count = 0;
    int fds[2];

    CHECK_OK(fd_wait(r->sock, POLLIN, CLAIM_WAIT_MS));
    CHECK_OK(fd_recv(r->sock, &reply, sizeof reply, &n, fds, 2, &count));
    CHECK_INT(n, sizeof reply);
    return reply;
}

TEST(an_end_nobody_asked_for_is_told_once)
{
    struct rig r;

    rig_open(&r, 0);
    pid_t pid = claim_warm(&r, "w", NATIVE_TELL);
    claim_now(&r, "w");
    CHECK_INT(kill(pid, SIGKILL), 0);
    struct native_reply word = next_word(&r);
    CHECK_INT(word.op, NATIVE_DIED);
    CHECK_INT(word.tag, 0);
    CHECK_STR(str_of(word.ids[0]), "w");
    CHECK_INT(word.signal, SIGKILL);
    claim_warm(&r, "v", NATIVE_TELL);
    CHECK_INT(rig_tell(&r, NATIVE_KILL, "v").op, NATIVE_KILL); /* that answer, and no other word */
    CHECK_INT(rig_tell(&r, NATIVE_INSPECT, "v").op, NATIVE_INSPECT);
    rig_close(&r);
}

/* Bytes that are not a claim at all: pid 1 says so and ends, nothing of it runs. */
TEST(a_claim_that_makes_no_sense_ends_the_sandbox)
{
    struct rig r;
    struct native_reply reply;
    int fds[2];

    rig_open(&r, 0);
    claim_warm(&r, "w", NATIVE_TELL);
    own_fd block = rig_block(ARGS("not", "a", "claim"), ARGS(NULL));
    struct native_request req = claim_ask(NATIVE_CLAIM, "w", 0);
    rig_ask(&r, &req, &block, 1, &reply, fds);
    CHECK_INT(reply.code, 0);
    reply = next_word(&r);
    CHECK_INT(reply.op, NATIVE_DIED);
    CHECK_INT(reply.exit_code, 1);
    close(take_fd(&block));
    rig_close(&r);
}

/* Of one that answered: pid 1 has no other child before a command is asked for. */
static pid_t server_of(pid_t pid)
{
    char path[64], text[64] = "";

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    int first = 0, second = 0;
    CHECK_INT(sscanf(text, "%d %d", &first, &second), 1);
    return (pid_t)first;
}

/* How many descriptors of one process are of the same open socket as one of another. */
static unsigned shared_sockets(pid_t pid, int fd, pid_t other)
{
    char path[64], name[330], ours[128] = "", theirs[128];
    unsigned n = 0;

    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
    CHECK(readlink(path, ours, sizeof ours - 1) > 0);
    snprintf(path, sizeof path, "/proc/%d/fd", (int)other);
    DIR *d = opendir(path);
    CHECK(d != NULL);
    for (struct dirent *e; (e = readdir(d));) {
        snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        ssize_t len = readlink(name, theirs, sizeof theirs - 1);
        theirs[len > 0 ? len : 0] = '\0';
        n += strcmp(ours, theirs) == 0;
    }
    closedir(d);
    return n;
}

/* It is a copy of pid 1, which ran no program: what is pid 1's alone it must not have. */
TEST(a_first_server_has_its_own_descriptors_and_no_others)
{
    enum { LISTEN = 3, CONNECT, CONTROL }; /* of pid 1, as the launcher numbers them */
    struct rig r;

    rig_open(&r, 0);
    pid_t pid = claim_warm(&r, "w", 0);
    claim_now(&r, "w");
    pid_t server = server_of(pid);
    CHECK_INT(shared_sockets(pid, LISTEN, server), 1);
    CHECK_INT(shared_sockets(pid, CONNECT, server), 0);
    CHECK_INT(shared_sockets(pid, CONTROL, server), 0);
    CHECK_INT(getsid(server), server);
    rig_close(&r);
}

TEST(a_claimed_server_that_dies_is_started_again_as_what_it_was)
{
    struct rig r;

    rig_open(&r, 0);
    pid_t pid = claim_warm(&r, "w", NATIVE_TELL);
    claim_now(&r, "w");
    pid_t server = server_of(pid);
    own_fd gone = (int)syscall(SYS_pidfd_open, server, 0);
    CHECK_INT(kill(server, SIGKILL), 0);
    CHECK_OK(fd_wait(gone, POLLIN, CLAIM_WAIT_MS));
    rig_check_answers(&r, "w"); /* the socket waits for the next one */
    close(take_fd(&gone));
    rig_close(&r);
}

/* The next server is there before it is dead, and is told nothing that it did not ask. */
TEST(what_nobody_claimed_dies_with_its_server_and_leaves_nothing)
{
    char sockets[4300];
    struct rig r;
    int other;

    rig_prepare(&r, 0);
    r.policy.persist = true;
    rig_fork(&r);
    claim_warm(&r, "claimed", 0);
    claim_now(&r, "claimed");
    pid_t pid = claim_warm(&r, "warm", 0);
    own_fd gone = (int)syscall(SYS_pidfd_open, pid, 0);
    CHECK_INT(kill(r.pid, SIGSTOP), 0);
    close(r.sock);
    snprintf(sockets, sizeof sockets, "%s/run", r.state);
    CHECK_OK(launcher_connect(sockets, &other));
    r.sock = other;
    CHECK_INT(kill(r.pid, SIGCONT), 0);
    CHECK_OK(fd_wait(gone, POLLIN, CLAIM_WAIT_MS));
    struct native_reply list = rig_tell(&r, NATIVE_LIST, "");
    while (list.count > 1) /* dead, and on its way out */
        list = rig_tell(&r, NATIVE_LIST, "");
    CHECK_STR(str_of(list.ids[0]), "claimed");
    CHECK_INT(list.states[0], NATIVE_RUNNING);
    rig_check_answers(&r, "claimed");
    rig_tell(&r, NATIVE_REMOVE, "claimed");
    close(take_fd(&gone));
    rig_close(&r);
}

TEST(what_nobody_claimed_dies_with_its_launcher)
{
    struct rig r;

    rig_prepare(&r, 0);
    r.policy.persist = true;
    rig_fork(&r);
    pid_t pid = claim_warm(&r, "w", 0);
    own_fd gone = (int)syscall(SYS_pidfd_open, pid, 0);
    rig_kill(&r);
    CHECK_OK(fd_wait(gone, POLLIN, CLAIM_WAIT_MS));
    close(take_fd(&gone));
    rig_reap();
    rig_fork(&r);
    CHECK_INT(rig_tell(&r, NATIVE_INSPECT, "w").state, NATIVE_EXITED);
    rig_tell(&r, NATIVE_REMOVE, "w");
    rig_close(&r);
}

/* Its groups have other limits than were noted, or may have. */
TEST(of_a_sandbox_whose_claim_failed_half_way_no_other_is_made)
{
    struct rig r;
    struct record rec;
    struct native_reply reply;
    char path[4300];
    int fds[2];

    rig_open(&r, 1);
    claim_warm(&r, "w", 0);
    snprintf(path, sizeof path, "%s/box/w", r.state);
    own_fd dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), block = claim_block();
    CHECK_OK(record_read(dir, &rec));
    struct native_request req = claim_ask(NATIVE_CLAIM, "w", 0);
    req.limits.pids = 50;
    req.mounts[0] = (struct native_mount){NATIVE_RO, 1, ".", "/etc/passwd/below"};
    rig_ask(&r, &req, &block, 1, &reply, fds);
    CHECK(reply.code != 0);
    CHECK_INT(reply.state, NATIVE_EXITED);
    rig_tell(&r, NATIVE_KILL, "w");
    snprintf(path, sizeof path, "%s/ids/%u", r.state, rec.slot);
    CHECK(faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT);
    close(take_fd(&dir));
    close(take_fd(&block));
    rig_close(&r);
}
