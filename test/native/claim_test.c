// SPDX-License-Identifier: Apache-2.0
/* claim_test.c — warm sandboxes and a server that is not to be trusted with them: a claim gets what
 * a start may get, once; whoever dies, what nobody claimed is gone. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/own.h"
#include "host/launcher/record.h"
#include "test/native/census.h"
#include "test/native/kit.h"
#include "test/native/launcher_kit.h"
#include "test/program.h"
#include "test/test.h"
#include "wire/bind.h"

#define WAIT_MS 60000
#define SEALS   (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static struct native_request ask_for(enum native_op op, const char *id, unsigned flags)
{
    struct native_request req = rig_request(op, id);

    req.argc = 0;
    req.flags = flags;
    return req;
}

/* Gives its pid; the rig has its ready pipe. */
static pid_t start_warm(struct rig *r, const char *id, unsigned flags)
{
    struct native_request req = ask_for(NATIVE_START, id, NATIVE_WARM | flags);
    struct native_reply reply;
    int fds[2];
    char byte = 0;

    own_close_p(&r->ready);
    rig_ask(r, &req, NULL, 0, &reply, fds);
    CHECK_STR(str_of(reply.text), "");
    CHECK_INT(fds[1], -1);
    r->ready = fds[0];
    CHECK_OK(fd_wait(r->ready, POLLIN, WAIT_MS));
    CHECK_INT(read(r->ready, &byte, 1), 1);
    CHECK_INT(byte, 'w');
    return reply.pid;
}

static int bind_block_later(uint32_t later_ms)
{
    static const char strings[] =
        "\0\0action-server\0--working-dir\0/workspace\0PATH=/usr/bin:/bin";
    const struct bind_head head = {BIND_MAGIC, 0, 3, 1, later_ms};
    int fd = memfd_create("bind", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    CHECK_OK(fd_write_all(fd, str_n(&head, sizeof head)));
    CHECK_OK(fd_write_all(fd, str_n(strings, sizeof strings)));
    CHECK_INT(fcntl(fd, F_ADD_SEALS, SEALS), 0);
    return fd;
}

static int bind_block(void)
{
    return bind_block_later(0);
}

static void wait_listening(struct rig *r)
{
    char byte = 0;

    CHECK_OK(fd_wait(r->ready, POLLIN, WAIT_MS));
    CHECK_INT(read(r->ready, &byte, 1), 1);
    CHECK_INT(byte, '1');
}

static void claim_later(struct rig *r, const char *id, uint32_t later_ms)
{
    struct native_request req = ask_for(NATIVE_CLAIM, id, 0);
    struct native_reply reply;
    own_fd block = bind_block_later(later_ms);
    int fds[2];

    rig_ask(r, &req, &block, 1, &reply, fds);
    CHECK_STR(str_of(reply.text), "");
    CHECK_INT(reply.state, NATIVE_RUNNING);
    wait_listening(r);
    rig_check_answers(r, id);
}

static void claim(struct rig *r, const char *id)
{
    claim_later(r, id, 0);
}

TEST(a_claim_gets_no_more_than_the_policy_allows)
{
    struct rig r;
    int pipe_ends[2], pair[2];
    own_fd block = -1, loose = -1;

    rig_open(&r, 1);
    start_warm(&r, "w", 0);
    block = bind_block();
    loose = memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK(pipe(pipe_ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    struct native_request req = ask_for(NATIVE_CLAIM, "w", 0);
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
    claim(&r, "w");
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
    start_warm(&r, "w", 0);
    own_fd block = bind_block();
    struct native_request req = ask_for(NATIVE_CLAIM, "a", 0);
    rig_refused(&r, &req, &block, 1, ERR_CONFLICT, "does not wait");
    req = ask_for(NATIVE_CLAIM, "nobody", 0);
    rig_refused(&r, &req, &block, 1, ERR_NOT_FOUND, "no sandbox");
    req = ask_for(NATIVE_PAUSE, "w", 0);
    rig_refused(&r, &req, NULL, 0, ERR_CONFLICT, "not running");
    claim(&r, "w");
    req = ask_for(NATIVE_CLAIM, "w", 0);
    rig_refused(&r, &req, &block, 1, ERR_CONFLICT, "does not wait");
    close(take_fd(&block));
    rig_close(&r);
}

TEST(a_claim_goes_before_what_takes_long)
{
    struct rig r;
    struct native_request start[3], last = ask_for(NATIVE_CLAIM, "w", 0);
    struct native_reply reply;
    int fds[2];
    unsigned seen = 0;

    rig_open(&r, 0);
    start_warm(&r, "w", 0);
    own_fd block = bind_block();
    CHECK_INT(kill(r.pid, SIGSTOP), 0);
    for (unsigned i = 0; i < 3; i++) {
        start[i] = ask_for(NATIVE_START, (const char *[]){"a", "b", "c"}[i], NATIVE_WARM);
        start[i].tag = i + 1;
        CHECK_OK(fd_send(r.sock, str_n(&start[i], sizeof start[i]), NULL, 0));
    }
    last.tag = 9;
    CHECK_OK(fd_send(r.sock, str_n(&last, sizeof last), &block, 1));
    CHECK_INT(kill(r.pid, SIGCONT), 0);
    for (unsigned i = 0; i < 4; i++) {
        size_t n = 0, count = 0;
        fds[0] = fds[1] = -1;
        CHECK_OK(fd_wait(r.sock, POLLIN, WAIT_MS));
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
    struct native_request req = ask_for(NATIVE_CLAIM, "w", 0);
    struct native_reply reply;
    size_t n = 0, count = 0;
    int fds[2] = {-1, -1};

    rig_open(&r, 0);
    pid_t pid = start_warm(&r, "w", 0);
    own_fd block = bind_block(), gone = (int)syscall(SYS_pidfd_open, pid, 0);
    CHECK_INT(kill(r.pid, SIGSTOP), 0);
    CHECK_OK(fd_send(r.sock, str_n(&req, sizeof req), &block, 1));
    CHECK_INT(kill(pid, SIGKILL), 0);
    CHECK_OK(fd_wait(gone, POLLIN, WAIT_MS));
    CHECK_INT(kill(r.pid, SIGCONT), 0);
    CHECK_OK(fd_wait(r.sock, POLLIN, WAIT_MS));
    CHECK_OK(fd_recv(r.sock, &reply, sizeof reply, &n, fds, 2, &count));
    CHECK(reply.code != 0);
    close(take_fd(&gone));
    close(take_fd(&block));
    rig_close(&r);
}

/* Plugins nobody named come with the first request, and the server goes on behind it. */
TEST(a_claimed_server_has_its_plugins_for_whoever_asks)
{
    static const char ask[] = "GET /croft/v1/plugins HTTP/1.1\r\nHost: x\r\n\r\n";
    struct rig r;
    char text[2000];

    rig_open(&r, 0);
    start_warm(&r, "w", 0);
    claim(&r, "w");
    rig_check_answer(&r, "w", ask, "jupyter", text, sizeof text);
    CHECK(!strstr(text, "pending") && !strstr(text, "starting"));
    rig_check_answer(&r, "w", ask, "agent_skills", text, sizeof text);
    rig_check_answers(&r, "w");
    rig_close(&r);
}

/* --- when the shell starts --- */

/* Pid 1 has the server, and from the first shell on the nursery and the shells. */
static unsigned shells_of(pid_t pid)
{
    char path[64], text[256];
    unsigned n = 0;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof text);
    CHECK(len > 0);
    for (ssize_t i = 0; i < len; i++)
        n += text[i] == ' ';
    CHECK(n >= 1);
    return n > 2 ? n - 2 : 0;
}

/* Its time begins with its claim, however long it was warm: shells that may wait do from then on.
 */
TEST(the_clock_of_a_claimed_server_begins_with_its_claim)
{
    static const char ask[] = "GET /server_info HTTP/1.1\r\nHost: x\r\n\r\n";
    static const char *const names[] = {"\"uptime\":", "\"idle_time\":"};
    struct rig r;
    char text[2000];

    rig_open(&r, 0);
    start_warm(&r, "w", 0);
    uint64_t begun = clock_mono_ns(&clock_system);
    claim(&r, "w");
    rig_check_answer(&r, "w", ask, names[0], text, sizeof text);
    double most = (double)(clock_mono_ns(&clock_system) - begun) / 1e9;
    for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
        const char *at = strstr(text, names[i]);
        CHECK(at && strtod(at + strlen(names[i]), NULL) <= most);
    }
    rig_close(&r);
}

TEST(a_shell_starts_with_its_claim)
{
    struct rig r;

    rig_open(&r, 0);
    pid_t pid = start_warm(&r, "w", 0);
    CHECK_INT(shells_of(pid), 0);
    claim(&r, "w");
    CHECK_INT(shells_of(pid), 1); /* whoever was answered came behind it */
    rig_close(&r);
}

TEST(the_shell_of_one_claimed_alone_is_there_when_who_has_the_key_was_answered)
{
    static const char ask[] = "GET /croft/v1/plugins HTTP/1.1\r\nHost: x\r\n\r\n";
    struct rig r;
    char text[2000];

    rig_open(&r, 0);
    pid_t pid = start_warm(&r, "w", 0);
    claim_later(&r, "w", BIND_ALONE_MS);
    rig_check_answer(&r, "w", ask, "jupyter", text, sizeof text);
    CHECK(shells_of(pid) >= 1);
    rig_close(&r);
}

TEST(a_shell_that_may_wait_comes_with_the_first_command)
{
    static const char body[] = "{\"action\":{\"action\":\"run\",\"args\":{\"command\":\"echo "
                               "$((6*7))\",\"blocking\":true}}}";
    struct rig r;
    char request[300], text[2000];

    rig_open(&r, 0);
    pid_t pid = start_warm(&r, "w", 0);
    claim_later(&r, "w", BIND_LATER_MAX);
    CHECK_INT(shells_of(pid), 0);
    snprintf(request, sizeof request,
             "POST /execute_action HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s",
             sizeof body - 1, body);
    rig_check_answer(&r, "w", request, "\"content\":\"42\"", text, sizeof text);
    CHECK_INT(shells_of(pid), 1);
    rig_close(&r);
}

TEST(a_shell_that_may_wait_comes_without_a_command_too)
{
    struct rig r;

    rig_open(&r, 0);
    pid_t pid = start_warm(&r, "w", 0);
    claim_later(&r, "w", 1);
    for (unsigned i = 0; shells_of(pid) == 0; i++) {
        CHECK(i < WAIT_MS / 5);
        poll(NULL, 0, 5);
    }
    rig_close(&r);
}

/* --- deaths --- */

static struct native_reply next_word(struct rig *r)
{
    struct native_reply reply;
    size_t n = 0, count = 0;
    int fds[2];

    CHECK_OK(fd_wait(r->sock, POLLIN, WAIT_MS));
    CHECK_OK(fd_recv(r->sock, &reply, sizeof reply, &n, fds, 2, &count));
    CHECK_INT(n, sizeof reply);
    return reply;
}

TEST(an_end_nobody_asked_for_is_told_once)
{
    struct rig r;

    rig_open(&r, 0);
    pid_t pid = start_warm(&r, "w", NATIVE_TELL);
    claim(&r, "w");
    CHECK_INT(kill(pid, SIGKILL), 0);
    struct native_reply word = next_word(&r);
    CHECK_INT(word.op, NATIVE_DIED);
    CHECK_INT(word.tag, 0);
    CHECK_STR(str_of(word.ids[0]), "w");
    CHECK_INT(word.signal, SIGKILL);
    start_warm(&r, "v", NATIVE_TELL);
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
    start_warm(&r, "w", NATIVE_TELL);
    own_fd block = rig_block(ARGS("not", "a", "claim"), ARGS(NULL));
    struct native_request req = ask_for(NATIVE_CLAIM, "w", 0);
    rig_ask(&r, &req, &block, 1, &reply, fds);
    CHECK_INT(reply.code, 0);
    reply = next_word(&r);
    CHECK_INT(reply.op, NATIVE_DIED);
    CHECK_INT(reply.exit_code, 1);
    close(take_fd(&block));
    rig_close(&r);
}

/* Of a warm one: pid 1 has no other child before a command is asked for. */
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
TEST(a_dormant_server_has_its_own_descriptors_and_no_others)
{
    enum { LISTEN = 3, CONNECT, CONTROL }; /* of pid 1, as the launcher numbers them */
    struct rig r;

    rig_open(&r, 0);
    pid_t pid = start_warm(&r, "w", 0), server = server_of(pid);
    CHECK_INT(shared_sockets(pid, LISTEN, server), 1);
    CHECK_INT(shared_sockets(pid, CONNECT, server), 0);
    CHECK_INT(shared_sockets(pid, CONTROL, server), 0);
    CHECK_INT(getsid(server), server);
    rig_close(&r);
}

TEST(a_warm_sandbox_ends_with_its_dormant_server)
{
    struct rig r;

    rig_open(&r, 0);
    pid_t pid = start_warm(&r, "w", NATIVE_TELL);
    CHECK_INT(kill(server_of(pid), SIGKILL), 0);
    CHECK_INT(next_word(&r).op, NATIVE_DIED);
    rig_close(&r);
}

TEST(a_claimed_server_that_dies_is_started_again_as_what_it_was)
{
    struct rig r;

    rig_open(&r, 0);
    pid_t pid = start_warm(&r, "w", NATIVE_TELL);
    pid_t server = server_of(pid);
    claim(&r, "w");
    own_fd gone = (int)syscall(SYS_pidfd_open, server, 0);
    CHECK_INT(kill(server, SIGKILL), 0);
    CHECK_OK(fd_wait(gone, POLLIN, WAIT_MS));
    rig_check_answers(&r, "w"); /* the socket waits for the next one */
    close(take_fd(&gone));
    rig_close(&r);
}

TEST(what_nobody_claimed_dies_with_its_server_and_leaves_nothing)
{
    struct rig r;
    int other;

    rig_prepare(&r, 0);
    r.policy.keep = true;
    rig_fork(&r);
    start_warm(&r, "claimed", 0);
    claim(&r, "claimed");
    pid_t pid = start_warm(&r, "warm", 0);
    own_fd gone = (int)syscall(SYS_pidfd_open, pid, 0);
    close(r.sock);
    CHECK_OK(fd_wait(gone, POLLIN, WAIT_MS));
    char sockets[4300];
    snprintf(sockets, sizeof sockets, "%s/run", r.state);
    CHECK_OK(launcher_connect(sockets, &other));
    r.sock = other;
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
    r.policy.keep = true;
    rig_fork(&r);
    pid_t pid = start_warm(&r, "w", 0);
    own_fd gone = (int)syscall(SYS_pidfd_open, pid, 0);
    rig_kill(&r);
    CHECK_OK(fd_wait(gone, POLLIN, WAIT_MS));
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
    start_warm(&r, "w", 0);
    snprintf(path, sizeof path, "%s/box/w", r.state);
    own_fd dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), block = bind_block();
    CHECK_OK(record_read(dir, &rec));
    struct native_request req = ask_for(NATIVE_CLAIM, "w", 0);
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

/* --- again and again --- */

TEST_LIMIT(every_call_of_a_claim_may_fail_and_nothing_is_left, 300)
{
    struct rig r;
    unsigned refused = 0, in_a_row = 0;

    fault_share();
    fault_deep();
    rig_open(&r, 0);
    own_fd block = bind_block();
    struct native_request req = ask_for(NATIVE_CLAIM, "w", 0);
    strcpy(req.hostname, "other");
    req.limits = (struct native_limits){.memory_bytes = 64u << 20, .pids = 50, .nofile = 100};
    req.mounts[0] = (struct native_mount){NATIVE_OVERLAY, 1, ".", "/some/where"};
    for (unsigned n = 2; in_a_row < 8; n++) { /* the first call receives the request */
        struct native_reply reply = {.code = 0};
        start_warm(&r, "w", 0);
        bool told = rig_ask_with_fault(&r, n, &req, block, &reply);
        printf("call %u: %s\n", n, !told ? "lost" : reply.code ? reply.text : "claimed");
        in_a_row = told && !reply.code && !fault_fired() ? in_a_row + 1 : 0;
        refused += told && reply.code;
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
    rig_open(&r, 0); /* an embryo tries slots, and others' groups would be noted as ours */
    for (unsigned i = 0; i <= cycles; i++) {
        start_warm(&r, "w", NATIVE_TELL);
        census_note_groups(&groups, r.state);
        if (i % 4)
            claim(&r, "w"); /* every fourth goes unclaimed */
        rig_tell(&r, NATIVE_REMOVE, "w");
        if (i == 0)
            census_take(&before, r.pid, r.state);
    }
    census_take(&after, r.pid, r.state);
    census_compare(&before, &after);
    rig_close(&r);
    census_check_groups(&groups, r.state);
}
