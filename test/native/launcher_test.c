// SPDX-License-Identifier: Apache-2.0
/* launcher_test.c — the privileged process, asked by an honest server and by a taken-over one. */
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/rng.h"
#include "test/native/launcher_kit.h"
#include "test/program.h"
#include "test/test.h"

/* One request on a connection the launcher made; gives the answer's first line. */
static void http(struct rig *r, const char *id, unsigned flags, const char *text, char *line,
                 size_t size)
{
    struct native_request req = rig_request(NATIVE_CONNECT, id);
    struct native_reply reply;
    int fds[2];

    req.flags = flags;
    rig_ask(r, &req, NULL, 0, &reply, fds);
    CHECK_STR(str_of(reply.text), "");
    CHECK(fds[0] >= 0);
    CHECK_OK(fd_write_all(fds[0], str_of(text)));
    CHECK_OK(fd_wait(fds[0], POLLIN, 60000));
    ssize_t n = read(fds[0], line, size - 1);
    CHECK(n > 0);
    line[n] = '\0';
    close(fds[0]);
}

TEST(the_launcher_starts_a_server_that_answers_on_its_socket)
{
    struct rig r;
    char line[512];

    rig_open(&r, 0);
    rig_start(&r, "a");
    http(&r, "a", 0, "GET /alive HTTP/1.1\r\nHost: x\r\n\r\n", line, sizeof line);
    CHECK_HAS(str_of(line), "HTTP/1.1 200");
    rig_close(&r);
}

TEST(a_control_connection_answers_and_ends_with_its_sandbox)
{
    struct rig r;
    struct native_request kill_a = rig_request(NATIVE_KILL, "a");
    char byte = 'p';

    rig_open(&r, 0);
    rig_start(&r, "a");
    CHECK_INT(write(r.control, &byte, 1), 1);
    CHECK_OK(fd_wait(r.control, POLLIN, 60000));
    CHECK_INT(read(r.control, &byte, 1), 1);
    CHECK_INT(byte, 'P');
    rig_ok(&r, &kill_a);
    CHECK_OK(fd_wait(r.control, POLLIN, 60000));
    CHECK_INT(read(r.control, &byte, 1), 0);
    rig_close(&r);
}

TEST(the_launcher_lists_inspects_and_removes)
{
    struct rig r;
    struct native_reply reply;
    struct native_request req = rig_request(NATIVE_LIST, "");
    int fds[2];

    rig_open(&r, 2);
    rig_start(&r, "b");
    rig_start(&r, "a");
    rig_ask(&r, &req, NULL, 0, &reply, fds);
    CHECK_INT(reply.count, 2);
    CHECK_STR(str_of(reply.ids[0]), "a");
    CHECK_STR(str_of(reply.ids[1]), "b");
    req = rig_request(NATIVE_INSPECT, "a");
    rig_ask(&r, &req, NULL, 0, &reply, fds);
    CHECK_INT(reply.state, NATIVE_RUNNING);
    CHECK(reply.pid > 1);
    req = rig_request(NATIVE_REMOVE, "a");
    rig_ok(&r, &req);
    req = rig_request(NATIVE_INSPECT, "a");
    rig_refused(&r, &req, NULL, 0, ERR_NOT_FOUND, "no sandbox 'a'");
    req = rig_request(NATIVE_LIST, "a");
    rig_ask(&r, &req, NULL, 0, &reply, fds);
    CHECK_INT(reply.count, 1);
    rig_close(&r);
}

TEST(the_launcher_pauses_and_resumes_in_that_order_only)
{
    struct rig r;
    struct native_request pause_a = rig_request(NATIVE_PAUSE, "a"),
                          resume_a = rig_request(NATIVE_RESUME, "a");
    char byte = 'p';

    rig_open(&r, 0);
    rig_start(&r, "a");
    rig_refused(&r, &resume_a, NULL, 0, ERR_CONFLICT, "not paused");
    rig_ok(&r, &pause_a);
    rig_refused(&r, &pause_a, NULL, 0, ERR_CONFLICT, "not running");
    CHECK_INT(write(r.control, &byte, 1), 1);
    CHECK_ERR(fd_wait(r.control, POLLIN, 0), ERR_TIMEOUT, "");
    rig_ok(&r, &resume_a);
    CHECK_OK(fd_wait(r.control, POLLIN, 60000));
    rig_close(&r);
}

TEST(a_command_inside_dies_before_pid_1_and_the_server_and_is_in_their_group)
{
    struct rig r;
    char line[4096];
    static const char body[] =
        "{\"action\":{\"action\":\"run\",\"args\":{\"command\":\"cat /proc/self/cgroup; "
        "echo adj $(cat /proc/self/oom_score_adj /proc/$PPID/oom_score_adj)\",\"blocking\":true}}}";
    char text[512];

    rig_open(&r, 1);
    rig_start(&r, "a");
    snprintf(text, sizeof text,
             "POST /execute_action HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             sizeof body - 1, body);
    http(&r, "a", 0, text, line, sizeof line);
    CHECK_HAS(str_of(line), "0::/\\n");
    CHECK(!strstr(line, ".."));
    CHECK_HAS(str_of(line), "adj 1000 0");
    rig_close(&r);
}

/* With spares the root covers an empty one, without it has taken the machine's place. */
static void check_walk(unsigned spares)
{
    static const char body[] =
        "{\"action\":{\"action\":\"run\",\"args\":{\"command\":\"a=$(stat -c %d,%i /); b=$(perl -e "
        "'mkdir q(/x); chroot q(/x) or die; chdir q(..) for 1..99; chroot q(.) or die; "
        "print join q(,), (stat q(/))[0,1]'); [ $a = $b ] && echo root again; "
        "cut -d' ' -f5 /proc/self/mountinfo | grep -cvE "
        "'^/$|^/(dev|proc|usr|bin|sbin|lib)'\",\"blocking\":true}}}";
    struct rig r;
    char text[1024], line[2048];

    rig_open(&r, spares);
    rig_start(&r, "a");
    snprintf(text, sizeof text,
             "POST /execute_action HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s",
             sizeof body - 1, body);
    http(&r, "a", 0, text, line, sizeof line);
    CHECK_HAS(str_of(line), "\"content\":\"root again\\n0\"");
    rig_close(&r);
}

TEST(a_process_that_walks_out_of_a_root_that_was_pivoted_to_is_in_it_again)
{
    check_walk(0);
}

TEST(a_process_that_walks_out_of_a_root_that_covers_an_empty_one_is_in_it_again)
{
    check_walk(1);
}

/* --- a taken-over server --- */

TEST(a_taken_over_server_gets_no_root_mode_or_image_that_policy_does_not_name)
{
    struct rig r;
    struct native_request req;

    rig_open(&r, 0);
    own_fd block = rig_block(ARGS("action-server"), ARGS(NULL));
    req = rig_request(NATIVE_START, "a");
    req.image = 1;
    rig_refused(&r, &req, &block, 1, ERR_FORBIDDEN, "image 1");
    req = rig_request(NATIVE_START, "a");
    req.network = NATIVE_NET_HOST;
    rig_refused(&r, &req, &block, 1, ERR_FORBIDDEN, "network");
    req = rig_request(NATIVE_START, "a");
    req.mounts[0] = (struct native_mount){.mode = NATIVE_RW, .path = ".", .target = "/w"};
    rig_refused(&r, &req, &block, 1, ERR_FORBIDDEN, "root 0");
    req.mounts[0].mode = NATIVE_RO;
    req.mounts[0].root = 2;
    rig_refused(&r, &req, &block, 1, ERR_FORBIDDEN, "root 2");
    close(take_fd(&block));
    rig_close(&r);
}

TEST(a_taken_over_server_gets_no_more_than_the_ceilings)
{
    struct rig r;
    struct native_request req = rig_request(NATIVE_START, "a");

    rig_open(&r, 0);
    own_fd block = rig_block(ARGS("action-server"), ARGS(NULL));
    req.limits.memory_bytes = 2ull << 30;
    rig_refused(&r, &req, &block, 1, ERR_FORBIDDEN, "memory_bytes");
    req = rig_request(NATIVE_START, "a");
    req.limits.pids = 501;
    rig_refused(&r, &req, &block, 1, ERR_FORBIDDEN, "pids");
    close(take_fd(&block));
    rig_close(&r);
}

TEST(a_taken_over_server_cannot_climb_out_of_a_root_by_a_link)
{
    struct rig r;
    struct native_request req = rig_request(NATIVE_START, "a");
    own_fd dir = test_dir_fd();

    rig_open(&r, 0);
    CHECK_INT(symlinkat("/etc", dir, "mine/out"), 0);
    CHECK_INT(symlinkat("../shared", dir, "mine/up"), 0);
    own_fd block = rig_block(ARGS("action-server"), ARGS(NULL));
    req.mounts[0] =
        (struct native_mount){.mode = NATIVE_RW, .root = 1, .path = "out", .target = "/w"};
    struct native_reply reply;
    int fds[2];
    rig_ask(&r, &req, &block, 1, &reply, fds);
    CHECK(reply.code != 0);
    strcpy(req.mounts[0].path, "up");
    rig_ask(&r, &req, &block, 1, &reply, fds);
    CHECK(reply.code != 0);
    close(take_fd(&block));
    rig_close(&r);
}

TEST(a_taken_over_server_cannot_send_descriptors_that_bite)
{
    struct rig r;
    struct native_request req = rig_request(NATIVE_START, "a");
    int pair[2];

    rig_open(&r, 0);
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    rig_refused(&r, &req, pair, 1, ERR_INVALID, "sealed memfd");
    own_fd loose = memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    rig_refused(&r, &req, &loose, 1, ERR_INVALID, "sealed memfd");
    rig_refused(&r, &req, NULL, 0, ERR_INVALID, "0 descriptors");
    own_fd block = rig_block(ARGS("action-server"), ARGS(NULL));
    req.flags = NATIVE_FD_LOG;
    rig_refused(&r, &req, (int[]){block, pair[0]}, 2, ERR_INVALID, "pipe only");
    req = rig_request(NATIVE_LIST, "");
    rig_refused(&r, &req, pair, 2, ERR_INVALID, "nobody asked for");
    close(pair[0]);
    close(pair[1]);
    close(take_fd(&block));
    close(take_fd(&loose));
    rig_close(&r);
}

TEST(a_block_that_lies_about_its_strings_hurts_nobody)
{
    struct rig r;
    struct native_request req = rig_request(NATIVE_START, "a");

    rig_open(&r, 0);
    own_fd block = rig_block(ARGS("action-server"), ARGS(NULL));
    req.argc = 9;
    rig_refused(&r, &req, &block, 1, ERR_INVALID, "fewer arguments");
    close(take_fd(&block));
    rig_close(&r);
}

TEST(a_server_that_talks_rubbish_is_answered_and_the_launcher_lives)
{
    struct rig r;
    struct rng_fixed rng;
    struct native_request req;
    struct native_reply reply;

    rig_open(&r, 0);
    rng_fixed_init(&rng, 7);
    for (unsigned i = 0; i < 300; i++) {
        size_t n = 0, count = 0;
        req = rig_request(NATIVE_INSPECT, "a");
        size_t at = rng_below(&rng.rng, sizeof req - 8);
        rng.rng.fill(&rng.rng, (char *)&req + at, 8);
        req.op = req.op == NATIVE_START ? NATIVE_KILL : req.op;
        size_t len = i % 7 ? sizeof req : 1 + rng_below(&rng.rng, sizeof req);
        CHECK_OK(fd_send(r.sock, str_n(&req, len), NULL, 0));
        CHECK_OK(fd_wait(r.sock, POLLIN, 60000));
        CHECK_OK(fd_recv(r.sock, &reply, sizeof reply, &n, NULL, 0, &count));
        CHECK_INT(n, sizeof reply);
    }
    req = rig_request(NATIVE_LIST, "");
    rig_ok(&r, &req);
    rig_close(&r);
}

TEST(no_more_sandboxes_run_than_policy_allows)
{
    struct rig r;
    struct native_request req = rig_request(NATIVE_START, "z");
    char name[16];

    rig_open(&r, 0);
    for (unsigned i = 0; i < r.policy.most; i++) {
        snprintf(name, sizeof name, "a%u", i);
        rig_start(&r, name);
    }
    own_fd block = rig_block(ARGS("action-server"), ARGS(NULL));
    rig_refused(&r, &req, &block, 1, ERR_LIMIT, "the most");
    close(take_fd(&block));
    rig_close(&r);
}

/* How often it gave its processor away; NULL: it does not sleep. */
static const char *asleep_since(pid_t pid, struct buf *status)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    buf_reset(status);
    CHECK_OK(fd_read_file(path, status));
    const char *text = buf_cstr(status);
    return strstr(text, "\nState:\tS") ? strstr(text, "\nvoluntary_ctxt_switches") : NULL;
}

/* Seen asleep, and not to have woken up between the looks. */
static void wait_until_it_rests(pid_t pid)
{
    own_done(buf) now, last;

    buf_init(&now, 1u << 16);
    buf_init(&last, 1u << 16);
    for (unsigned i = 0, same = 0; same < 20; i++) {
        const char *since = asleep_since(pid, &now);
        CHECK(i < 6000);
        same = since && str_eq(str_of(since), buf_str(&last)) ? same + 1 : 0;
        buf_reset(&last);
        buf_add_cstr(&last, since ? since : "");
        poll(NULL, 0, 10);
    }
}

/* It fails in the middle of making them, while something of the last one is left to be tidied. */
TEST(a_launcher_that_can_make_no_more_spare_processes_rests)
{
    struct rig r;

    fault_share();
    rig_open(&r, 64);
    rig_tell(&r, NATIVE_LIST, "");
    fault_always("symlinkat");
    rig_tell(&r, NATIVE_LIST, "");
    wait_until_it_rests(r.pid);
    fault_always(NULL);
    rig_close(&r);
}

TEST(a_server_that_is_nobody_can_ask)
{
    struct rig r;

    rig_open(&r, 0);
    CHECK_INT(setgroups(0, NULL), 0);
    CHECK_INT(setresgid(65534, 65534, 0), 0);
    CHECK_INT(setresuid(65534, 65534, 0), 0);
    rig_start(&r, "a");
    CHECK_INT(setresuid(0, 0, 0), 0);
    CHECK_INT(setresgid(0, 0, 0), 0);
    rig_close(&r);
}

/* It would keep the launcher waiting for ever, and with it the next server. */
TEST(a_server_that_never_reads_is_hung_up)
{
    struct rig r;
    struct native_request req = rig_request(NATIVE_LIST, "");
    struct native_request bad = rig_request(NATIVE_KILL, "none");
    char path[4300];

    rig_prepare(&r, 0);
    r.policy.persist = true;
    rig_fork(&r);
    rig_start(&r, "a");
    while (send(r.sock, &bad, sizeof bad, MSG_NOSIGNAL) == sizeof bad)
        ; /* ends when it is cut off */
    close(r.sock);
    snprintf(path, sizeof path, "%s/run", r.state);
    CHECK_OK(launcher_connect(path, &r.sock));
    rig_ok(&r, &req);
    rig_tell(&r, NATIVE_REMOVE, "a");
    rig_close(&r);
}

/* Each of its requests is as good as any; what else there is has its turn between them. */
TEST(a_server_that_never_stops_asking_does_not_keep_the_launcher_from_all_else)
{
    struct native_request req = rig_request(NATIVE_LIST, "");
    int room = 64 << 20, asked = 200, answers = 0;
    struct native_reply reply;
    struct rig r;

    rig_open(&r, 0);
    rig_start(&r, "a");
    CHECK_INT(setsockopt(r.sock, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room), 0);
    CHECK_INT(kill(r.pid, SIGSTOP), 0);
    for (int i = 0; i < asked; i++)
        CHECK_INT(send(r.sock, &req, sizeof req, MSG_NOSIGNAL | MSG_DONTWAIT), sizeof req);
    CHECK_INT(kill(r.pid, SIGTERM), 0);
    CHECK_INT(kill(r.pid, SIGCONT), 0);
    while (recv(r.sock, &reply, sizeof reply, 0) > 0)
        answers++;
    if (answers > asked / 2)
        FAIL("it ended after %d answers, of %d that were asked for", answers, asked);
    rig_close(&r);
}

static void hostile(struct rig *r, const struct native_request *req)
{
    struct native_reply reply;
    int fds[2];

    rig_ask(r, req, NULL, 0, &reply, fds);
    CHECK(reply.code != 0);
    CHECK(reply.text[0] != '\0');
    CHECK_INT(fds[0], -1);
}

/* Every operation, on names that are not sandboxes: the state's own, others', and none. */
TEST(a_taken_over_server_reaches_nothing_by_a_name)
{
    static const char *const ids[] = {"..",     ".",      "../ids", "/etc",     "a/b", "launcher",
                                      "record", "guest",  "a\nb",   "-a",       "a b", "a.s",
                                      "+1",     "%s%s%n", "\xff",   "\x7f\x01", "ids", "box"};
    struct rig r;

    rig_open(&r, 0);
    rig_start(&r, "a");
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        for (unsigned op = NATIVE_KILL; op < NATIVE_OP_END; op++) {
            struct native_request req = rig_request(op, ids[i]);
            if (op == NATIVE_SNAPSHOT_REMOVE)
                snprintf(req.snapshot, sizeof req.snapshot, "%s", ids[i]);
            bool asks = op == NATIVE_LIST || op == NATIVE_ROOT; /* and names nothing */
            if (!asks && (op != NATIVE_SNAPSHOT_LIST || !native_id_ok(ids[i], 64)))
                hostile(&r, &req);
        }
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        struct native_request req = rig_request(NATIVE_SNAPSHOT, "a");
        snprintf(req.snapshot, sizeof req.snapshot, "%s", ids[i]);
        if (!native_id_ok(ids[i], 64))
            hostile(&r, &req);
    }
    CHECK_INT(rig_tell(&r, NATIVE_INSPECT, "a").state, NATIVE_RUNNING);
    rig_close(&r);
}

TEST(a_taken_over_server_cannot_mount_over_what_holds_the_walls)
{
    static const char *const targets[] = {"/",  "/../x", "/proc/../x", "w",
                                          "",   "/w/",   "//w",        "/w/./x",
                                          "/.", "/..",   "/w\n/x",     "/a//b/c"};
    struct rig r;

    rig_open(&r, 0);
    own_fd block = rig_block(ARGS("action-server"), ARGS(NULL));
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        struct native_request req = rig_request(NATIVE_START, "a");
        req.mounts[0] = (struct native_mount){.mode = NATIVE_RW, .root = 1, .path = "."};
        snprintf(req.mounts[0].target, sizeof req.mounts[0].target, "%s", targets[i]);
        rig_refused(&r, &req, &block, 1, ERR_INVALID, "target");
    }
    for (size_t i = 0; i < 3; i++) {
        static const char *const paths[] = {"..", "/etc", "a/../../b"};
        struct native_request req = rig_request(NATIVE_START, "a");
        req.mounts[0] = (struct native_mount){.mode = NATIVE_RW, .root = 1, .target = "/w"};
        snprintf(req.mounts[0].path, sizeof req.mounts[0].path, "%s", paths[i]);
        rig_refused(&r, &req, &block, 1, ERR_INVALID, "source");
    }
    close(take_fd(&block));
    rig_close(&r);
}

/* A server's deadline and somebody's stop: both wait for the same end, and both are told. */
TEST(launcher_answers_every_request_to_end_a_sandbox)
{
    struct rig r;
    int none[FD_PASS_MAX];

    rig_open(&r, 0);
    rig_start(&r, "a");
    for (uint64_t tag = 7; tag < 10; tag++) {
        struct native_request req = rig_request(NATIVE_KILL, "a");
        req.tag = tag;
        CHECK_OK(fd_send(r.sock, str_n(&req, sizeof req), NULL, 0));
    }
    for (uint64_t tag = 7; tag < 10; tag++) {
        struct native_reply reply;
        size_t n, count;
        CHECK_OK(fd_recv(r.sock, &reply, sizeof reply, &n, none, FD_PASS_MAX, &count));
        CHECK_INT(n, sizeof reply);
        CHECK_INT(reply.op, NATIVE_KILL);
        CHECK_INT(reply.tag, tag);
        CHECK_INT(reply.code, 0);
        CHECK_INT(reply.state, NATIVE_EXITED);
    }
    rig_tell(&r, NATIVE_REMOVE, "a");
    rig_close(&r);
}
