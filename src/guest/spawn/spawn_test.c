// SPDX-License-Identifier: Apache-2.0
/* spawn_test.c — the same processes, forked here and in a forker; and what fails on the way. */
#include "guest/spawn/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/spawn/inner.h"
#include "test/test.h"

#define HANG_MS 20000

struct kit {
    struct loop *loop;
    struct spawner forker, *spawner;
    int requests[2], born[2];
    pid_t forker_pid;
    struct spawn_child child;
    bool ended;
    struct buf text;
};

static void start_nurse(struct kit *k)
{
    k->forker_pid = fork();
    CHECK(k->forker_pid >= 0);
    if (k->forker_pid == 0) {
        close(k->requests[0]);
        spawn_forker(k->requests[1], k->born[1]);
        _exit(0);
    }
}

static void kit_open(struct kit *k, bool forker)
{
    *k = (struct kit){0};
    CHECK_OK(loop_new(&clock_system, &k->loop));
    buf_init(&k->text, 1u << 20);
    if (!forker)
        return;
    CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, k->requests), 0);
    CHECK_INT(pipe2(k->born, O_CLOEXEC), 0);
    start_nurse(k);
    spawner_init(&k->forker, k->requests[0]);
    k->spawner = &k->forker;
}

static void kit_close(struct kit *k)
{
    loop_free(k->loop);
    buf_done(&k->text);
    if (!k->spawner)
        return;
    close(k->requests[0]);
    close(k->requests[1]);
    CHECK_INT(waitpid(k->forker_pid, NULL, 0), k->forker_pid); /* end of requests, end of forker */
    close(k->born[0]);
    close(k->born[1]);
    CHECK_INT(waitpid(-1, NULL, WNOHANG), -1);
}

static void on_end(struct spawn_child *c)
{
    container_of(c, struct kit, child)->ended = true;
}

static struct err *start(struct kit *k, struct spawn_plan plan, const char *script, int out)
{
    static const char *env[] = {"PATH=/usr/bin:/bin", "SESSION_API_KEY=secret", "A=b", NULL};
    const char *argv[] = {"sh", "-c", script, NULL};
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int fds[] = {nothing, out, out, out};

    if (nothing < 0)
        return err_sys("open /dev/null");
    if (!plan.program)
        plan.program = "/bin/sh";
    plan.argv = argv;
    plan.env = env;
    plan.fds = fds;
    plan.fds_len = 4;
    k->ended = false;
    struct err *e = spawn_start(k->loop, k->spawner, &plan, &k->child, on_end);
    close(nothing);
    return e;
}

/* What pid 1 would do. */
static void await_end(struct kit *k)
{
    if (!k->spawner) {
        while (!k->ended)
            CHECK_OK(loop_turn(k->loop, HANG_MS));
        return;
    }
    siginfo_t info = {0};
    int32_t pid;
    CHECK_INT(read(k->born[0], &pid, sizeof pid), sizeof pid);
    CHECK_INT(pid, k->child.pid);
    CHECK_INT(waitid(P_PID, (id_t)pid, &info, WEXITED), 0);
    spawner_exited(k->spawner, pid, info.si_code, info.si_status);
    spawner_exited(k->spawner, pid, info.si_code, info.si_status); /* unknown by now */
    CHECK(k->ended);
}

static struct str run(struct kit *k, struct spawn_plan plan, const char *script)
{
    int ends[2];

    CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
    CHECK_OK(start(k, plan, script, ends[1]));
    close(ends[1]);
    buf_reset(&k->text);
    CHECK_OK(fd_read_all(ends[0], &k->text));
    close(ends[0]);
    await_end(k);
    return buf_str(&k->text);
}

static void check_all(bool forker)
{
    struct kit k;
    char line[100];

    kit_open(&k, forker);
    CHECK_STR(run(&k, (struct spawn_plan){.cwd = "/usr"}, "pwd; echo $A$SESSION_API_KEY; exit 7"),
              "/usr\nb\n");
    CHECK_INT(k.child.code, CLD_EXITED);
    CHECK_INT(k.child.status, 7);
    CHECK_STR(
        run(&k, (struct spawn_plan){.cwd = "/gone", .cwd_else = "/usr/../tmp"}, "pwd; kill -9 $$"),
        "/tmp\n");
    CHECK_INT(k.child.code, CLD_KILLED);
    CHECK_INT(k.child.status, 9);
    CHECK_STR(
        run(&k, (struct spawn_plan){.cwd = "/gone"}, "echo $PWD; umask; echo /proc/self/fd/*"),
        "/\n0022\n/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3 "
        "/proc/self/fd/4\n"); /* 4: the directory itself */
    snprintf(line, sizeof line,
             "set -- $(cat /proc/$$/stat); [ $6 = $$ ] && [ $4 = %d ] && echo ok", (int)getpid());
    CHECK_STR(run(&k, (struct spawn_plan){0}, line), "ok\n"); /* its own session; we reap it */
    CHECK_STR(run(&k, (struct spawn_plan){0}, "grep -E '^Sig(Blk|Ign)' /proc/self/status"),
              "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    kit_close(&k);
}

TEST(spawn_gives_a_process_what_was_planned_and_nothing_else)
{
    const long ignore[4] = {(long)SIG_IGN};

    signal(SIGPIPE, SIG_IGN);
    for (int s = 32; s <= 33; s++) /* libc's own, which whoever started us may have left ignored */
        CHECK_INT(syscall(SYS_rt_sigaction, s, ignore, NULL, 8), 0);
    check_all(false);
    check_all(true);
}

static void check_refused(bool forker)
{
    struct kit k;

    kit_open(&k, forker);
    unsigned fds = test_open_fds();
    CHECK_ERR(start(&k, (struct spawn_plan){.program = "/no/such program"}, "", 2), ERR_UNSUPPORTED,
              "'/no/such program': No such file or directory");
    CHECK_ERR(start(&k, (struct spawn_plan){.program = "/etc/passwd"}, "", 2), ERR_UNSUPPORTED,
              "'/etc/passwd': Permission denied");
    CHECK_ERR(start(&k, (struct spawn_plan){.tty = true}, "", 2), ERR_IO,
              "'/bin/sh': take the terminal: ");
    CHECK_INT(k.child.pid, 0);
    CHECK_INT(test_open_fds(), fds);
    for (int i = 0; forker && i < 3; i++) /* pid 1 reaps what did not get to run */
        CHECK(waitpid(-1, NULL, 0) > 0);
    kit_close(&k);
}

TEST(spawn_names_the_program_that_cannot_be_run)
{
    check_refused(false);
    check_refused(true);
}

TEST(spawn_waits_for_a_forker_that_is_born_again)
{
    struct kit k;

    kit_open(&k, true);
    kill(k.forker_pid, SIGKILL);
    CHECK_INT(waitpid(k.forker_pid, NULL, 0), k.forker_pid);
    pid_t midwife = fork();
    CHECK(midwife >= 0);
    if (midwife == 0) { /* a request waits in the socket meanwhile; its parent is this one then */
        pid_t forker_pid = fork();
        if (forker_pid == 0) {
            close(k.requests[0]);
            spawn_forker(k.requests[1], k.born[1]);
            _exit(0);
        }
        close(k.requests[0]);
        close(k.requests[1]);
        while (wait(NULL) > 0)
            ;
        _exit(0);
    }
    int ends[2];
    CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
    CHECK_OK(start(&k, (struct spawn_plan){0}, "echo again", ends[1]));
    close(ends[1]);
    CHECK_OK(fd_read_all(ends[0], &k.text));
    close(ends[0]);
    CHECK_STR(buf_str(&k.text), "again\n");
    k.forker_pid = midwife;
    kit_close(&k);
}

TEST(spawn_as_another_user_has_that_users_groups)
{
    struct kit k;
    struct proc_user nobody = {"nobody", "/", 65534, 65534}, root = {"root", "/", 0, 0};

    if (geteuid() != 0)
        SKIP("needs root");
    for (int forker = 0; forker < 2; forker++) {
        kit_open(&k, forker);
        CHECK_STR(run(&k, (struct spawn_plan){.user = &nobody}, "id -u; id -G"), "65534\n65534\n");
        CHECK_STR(run(&k, (struct spawn_plan){.user = &root}, "id -u; id -g"), "0\n0\n");
        kit_close(&k);
    }
}

static void check_end(bool forker)
{
    struct kit k;
    int ends[2];

    kit_open(&k, forker);
    CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
    CHECK_OK(start(&k, (struct spawn_plan){0}, "set -m; sleep 1000 & (sleep 1000; :) & echo; wait",
                   ends[1]));
    close(ends[1]);
    char byte;
    CHECK_INT(read(ends[0], &byte, 1), 1);
    pid_t pid = k.child.pid;
    spawn_end(&k.child);
    spawn_end(&k.child);
    CHECK_OK(fd_read_all(ends[0], &k.text)); /* nobody holds the other end */
    close(ends[0]);
    CHECK(!k.ended);
    if (forker)
        CHECK_INT(waitpid(pid, NULL, 0), pid);
    kit_close(&k);
}

TEST(spawn_end_reaches_groups_of_their_own)
{
    check_end(false);
    check_end(true);
}

static void check_faults(bool forker)
{
    struct kit k;

    kit_open(&k, forker);
    unsigned fds = test_open_fds();
    for (unsigned n = 1;; n++) {
        fault_at(n);
        struct err *e = start(&k, (struct spawn_plan){0}, "exit 0", 2);
        bool fired = fault_fired();
        fault_at(0);
        CHECK_INT(e != NULL, fired);
        err_free(e);
        spawn_end(&k.child);
        CHECK_INT(test_open_fds(), fds);
        if (forker) /* what was started was ended, and is ours to reap */
            while (waitpid(-1, NULL, WNOHANG) > 0)
                ;
        if (!fired)
            break;
    }
    if (forker) {
        close(k.requests[0]);
        close(k.requests[1]);
        while (waitpid(-1, NULL, 0) > 0)
            ;
        loop_free(k.loop);
        return;
    }
    kit_close(&k);
}

TEST(spawn_that_fails_leaves_nothing)
{
    check_faults(false);
    check_faults(true);
}

TEST(spawn_refuses_what_is_too_much)
{
    struct kit k;
    int fds[SPAWN_FDS_MAX + 1] = {0};
    own_free const char **many = calloc(SPAWN_STRINGS_MAX + 2, sizeof *many);
    own_free char *big = malloc(SPAWN_BYTES_MAX + 1);
    const char *one[] = {"sh", NULL}, *huge[] = {"sh", big, NULL};

    kit_open(&k, false);
    for (size_t i = 0; i <= SPAWN_STRINGS_MAX; i++)
        many[i] = "x";
    memset(big, 'x', SPAWN_BYTES_MAX);
    big[SPAWN_BYTES_MAX] = '\0';
    struct spawn_plan plan = {.program = "/bin/sh", .argv = one, .fds = fds, .fds_len = 13};
    CHECK_ERR(spawn_start(k.loop, NULL, &plan, &k.child, on_end), ERR_LIMIT,
              "13 descriptors for a process, at most 12");
    plan.fds_len = 3;
    plan.argv = many;
    CHECK_ERR(spawn_start(k.loop, NULL, &plan, &k.child, on_end), ERR_TOO_LARGE,
              "'/bin/sh': more than 16384 arguments and variables");
    plan.argv = huge;
    CHECK_ERR(spawn_start(k.loop, NULL, &plan, &k.child, on_end), ERR_TOO_LARGE,
              "arguments and environment of '/bin/sh'");
    kit_close(&k);
}

TEST(spawn_plan_is_read_whole_or_refused)
{
    static const char *const argv[] = {"a", "b c", NULL}, *const env[] = {"E=", NULL};
    struct proc_user root = {"root", "/", 0, 0};
    struct spawn_plan plan = {
        .program = "/p", .argv = argv, .env = env, .user = &root, .tty = true};
    struct spawn_job job;
    own_done(buf) b;

    buf_init(&b, 4096);
    CHECK_OK(spawn_pack(&b, &plan));
    CHECK(spawn_parse(buf_str(&b), &job));
    CHECK_STR(job.program, "/p");
    CHECK_STR(job.argv[1], "b c");
    CHECK(!job.argv[2] && !job.env[1]);
    CHECK_STR(job.env[0], "E=");
    CHECK_INT(job.head.flags, SPAWN_USER | SPAWN_TTY);
    free(job.argv);
    for (size_t n = 0; n < b.len; n++)
        CHECK(!spawn_parse(str_first(buf_str(&b), n), &job));
    buf_add_char(&b, 'x');
    CHECK(!spawn_parse(buf_str(&b), &job));
}
