// SPDX-License-Identifier: Apache-2.0
/* run_test.c — croft run, as a person uses it. */
#include <fcntl.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "test/native/kit.h"
#include "test/program.h"
#include "test/test.h"

TEST(croft_run_passes_output_and_exit_code_through)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    CHECK_INT(kit_run(ARGS("--discard"), ARGS("sh", "-c", "echo in; echo err >&2; exit 9"), &out),
              9);
    CHECK_STR(buf_str(&out), "in\nerr\n");
    kit_check_empty("state/box");
    kit_check_empty("state/ids");
}

TEST(croft_run_says_128_and_the_signal_127_and_125)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    CHECK_INT(kit_run(ARGS("--discard"), ARGS("sh", "-c", "kill -TERM $$"), &out), 128 + 15);
    CHECK_INT(kit_run(ARGS("--discard"), ARGS("no-such-program"), &out), 127);
    CHECK_INT(kit_run(ARGS("--rw", "/nowhere:/x"), ARGS("true"), &out), 125);
    CHECK_HAS(buf_str(&out), "/nowhere");
    kit_check_empty("state/box");
}

TEST(croft_run_works_on_a_copy_and_says_how_to_keep_it)
{
    own_done(buf) out;
    own_fd dir = test_dir_fd();

    buf_init(&out, 1u << 16);
    CHECK_INT(mkdirat(dir, "ws", 0755), 0);
    CHECK_INT(kit_run(ARGS("--name", "r1"), ARGS("sh", "-c", "pwd; echo x >made"), &out), 0);
    CHECK_HAS(buf_str(&out), "/workspace\n");
    CHECK_HAS(buf_str(&out), "croft apply r1");
    CHECK_INT(faccessat(dir, "made", F_OK, 0), -1);
    CHECK_INT(faccessat(dir, "state/box/r1/m0u/made", F_OK, 0), 0);
    kit_check_empty("state/ids");
}

TEST(croft_run_says_how_much_changed)
{
    own_done(buf) out;
    own_fd dir = test_dir_fd();

    buf_init(&out, 1u << 16);
    CHECK_INT(mkdirat(dir, "ws", 0755), 0);
    CHECK_INT(mkdirat(dir, "ws2", 0755), 0);
    CHECK_INT(
        kit_run(ARGS("--name", "c1"), ARGS("sh", "-c", "rmdir ws2; echo x >a; echo y >b"), &out),
        0);
    CHECK_HAS(buf_str(&out), "croft run: 2 added, 1 deleted in the copy; nothing changed here. See "
                             "them: croft diff c1   keep them: croft apply c1   drop them: croft "
                             "rollback c1\n");
    buf_reset(&out);
    CHECK_INT(kit_run(ARGS("--name", "c2", "--json"), ARGS("sh", "-c", "echo x >a"), &out), 0);
    CHECK_HAS(buf_str(&out), "\"kept\": true, \"changes\": {\"added\": 1, \"modified\": 0, ");
    buf_reset(&out);
    CHECK_INT(kit_run(ARGS("--json"), ARGS("true"), &out), 0);
    CHECK_HAS(buf_str(&out), "\"kept\": false, \"changes\": {\"added\": 0, ");
    buf_reset(&out);
    CHECK_INT(kit_run(ARGS("--json", "--discard"), ARGS("touch", "a"), &out), 0);
    CHECK_HAS(buf_str(&out), "\"kept\": false, \"changes\": null}");
    buf_reset(&out);
    CHECK_INT(kit_run(ARGS(), ARGS("true"), &out), 0);
    CHECK_STR(buf_str(&out), "");
}

static void check_refused(const char *flag, const char *value, const char *part)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    CHECK_INT(kit_run(ARGS(flag, value), ARGS("echo", "ran"), &out), 125);
    CHECK_HAS(buf_str(&out), part);
    CHECK(str_find(buf_str(&out), STR("ran\n")) < 0);
}

TEST(croft_run_names_the_flag_and_its_bounds_when_it_refuses_a_limit)
{
    check_refused("--memory", "1", "--memory: 1 bytes; wanted 1M to ");
    check_refused("--memory", "999T", "--memory: ");
    check_refused("--disk", "4K", "--disk: 4096 bytes; wanted 1M to ");
    check_refused("--disk", "999T", "--disk: ");
    check_refused("--pids", "1", "--pids: 1; wanted 2 to 4000000, or 0");
    check_refused("--pids", "99999999999", "--pids: 99999999999; wanted");
    check_refused("--nofile", "10", "--nofile: 10; wanted 128 to 1000000, or 0");
    check_refused("--cpus", "0.00001", "--cpus: 1e-05; wanted 0.01 to ");
    check_refused("--cpus", "-1", "--cpus: -1; wanted");
    check_refused("--cpus", "1000000", "--cpus: ");
}

TEST(croft_run_holds_the_smallest_limits_and_the_number_of_open_files)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    CHECK_INT(kit_run(ARGS("--discard", "--memory", "1M", "--pids", "2", "--nofile", "128",
                           "--cpus", "0.01"),
                      ARGS("true"), &out),
              0);
    CHECK_INT(kit_run(ARGS("--discard", "--nofile", "200"), ARGS("sh", "-c", "ulimit -n"), &out),
              0);
    CHECK_STR(buf_str(&out), "200\n");
}

TEST(croft_run_does_not_start_where_there_is_no_directory)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    CHECK_INT(kit_run(ARGS("--discard", "--workdir", "/usr"), ARGS("pwd"), &out), 0);
    CHECK_INT(kit_run(ARGS("--discard", "--workdir", "/usr"), ARGS("bin/echo", "by", "name"), &out),
              0);
    CHECK_HAS(buf_str(&out), "by name\n");
    CHECK_INT(kit_run(ARGS("--discard", "--workdir", "/nosuch"), ARGS("pwd"), &out), 125);
    CHECK_HAS(buf_str(&out), "/usr\n");
    CHECK_HAS(buf_str(&out), "working directory '/nosuch': No such file or directory");
    CHECK(str_find(buf_str(&out), STR("\n/\n")) < 0);
}

TEST(croft_run_changes_are_listed_applied_and_dropped)
{
    own_done(buf) out;
    own_fd dir = test_dir_fd();

    buf_init(&out, 1u << 16);
    CHECK_INT(mkdirat(dir, "ws", 0755), 0);
    CHECK_INT(kit_run(ARGS("--name", "r2"),
                      ARGS("sh", "-c", "mkdir d && echo x >d/made && chmod 4755 d/made"), &out),
              0);
    buf_reset(&out);
    CHECK_INT(program_run(ARGS(test_program("croft"), "diff", "r2"), &out), 0);
    CHECK_STR(buf_str(&out), "A  d/\nA  d/made\n");
    CHECK_INT(program_run(ARGS(test_program("croft"), "apply", "r2"), &out), 0);
    CHECK_INT(program_run(ARGS(test_program("croft"), "rollback", "r2"), &out), 0);
    kit_check_empty("state/box");
}

TEST(croft_run_that_leaves_nothing_is_the_last_run_of_its_directory)
{
    own_done(buf) out;
    own_fd dir = test_dir_fd();

    buf_init(&out, 1u << 16);
    CHECK_INT(mkdirat(dir, "ws", 0755), 0);
    CHECK_INT(kit_run(ARGS("--name", "r1"), ARGS("sh", "-c", "echo x >made"), &out), 0);
    CHECK_INT(kit_run(ARGS("--name", "r2"), ARGS("echo", "hello"), &out), 0);
    CHECK_INT(fchdir(dir), 0);
    CHECK_INT(chdir("ws"), 0);
    CHECK_INT(program_run(ARGS(test_program("croft"), "rollback"), &out), 0);
    CHECK_HAS(buf_str(&out), "the last run here, r2 of 20");
    CHECK_HAS(buf_str(&out), " (echo hello), changed nothing\n");
    CHECK_INT(kit_run(ARGS("--name", "r3", "--discard"), ARGS("touch", "made"), &out), 0);
    CHECK_INT(program_run(ARGS(test_program("croft"), "apply"), &out), 0);
    CHECK_HAS(buf_str(&out), " (touch made), threw its changes away\n");
    CHECK_INT(kit_run(ARGS("--name", "r4"), ARGS("sh", "-c", "echo y >made"), &out), 0);
    CHECK_INT(program_run(ARGS(test_program("croft"), "diff"), &out), 0);
    CHECK_HAS(buf_str(&out), "croft diff: r4 of 20");
    CHECK_INT(program_run(ARGS(test_program("croft"), "rollback", "r4"), &out), 0);
    CHECK_INT(program_run(ARGS(test_program("croft"), "rollback", "r1"), &out), 0);
    kit_check_empty("state/box");
}

TEST(croft_run_leaves_nothing_of_ours_inside)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    setenv("CROFT_TEST_SECRET", "hunter2", 1);
    setenv("CROFT_TEST_GIVEN", "yes", 1);
    CHECK_INT(kit_run(ARGS("--discard", "--env", "CROFT_TEST_GIVEN", "--env", "A=b=c"),
                      ARGS("sh", "-c", "env; ls /proc/self/fd"), &out),
              0);
    CHECK(str_find(buf_str(&out), STR("hunter2")) < 0);
    CHECK_HAS(buf_str(&out), "CROFT_TEST_GIVEN=yes\n");
    CHECK_HAS(buf_str(&out), "A=b=c\n");
    CHECK_HAS(buf_str(&out), "0\n1\n2\n3\n"); /* 3 is ls's own */
    CHECK(str_find(buf_str(&out), STR("\n4\n")) < 0);
}

TEST(croft_run_kills_what_takes_too_much_memory_and_says_so)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    CHECK_INT(kit_run(ARGS("--discard", "--memory", "32M"),
                      ARGS("sh", "-c", "head -c 200m /dev/zero | tail -c 199m >/dev/null"), &out),
              128 + 9);
    CHECK_HAS(buf_str(&out), "out of memory (limit 32 MiB)");
    kit_check_empty("state/ids");
}

TEST(croft_run_bounds_the_number_of_processes)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    kit_run(ARGS("--discard", "--pids", "8"),
            ARGS("sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do sleep 1 & done; wait"), &out);
    CHECK_HAS(buf_str(&out), "annot fork");
}

TEST(croft_run_finds_a_program_by_its_path_in_the_workspace)
{
    own_done(buf) out;
    own_fd dir = test_dir_fd();
    own_fd file = openat(dir, "mine", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);

    buf_init(&out, 1u << 16);
    CHECK_OK(fd_write_all(file, STR("#!/bin/sh\necho \"$0 in $PWD\"\n")));
    close(take_fd(&file));
    CHECK_INT(kit_run(ARGS("--discard"), ARGS("./mine"), &out), 0);
    CHECK_STR(buf_str(&out), "./mine in /workspace\n");
    CHECK_INT(kit_run(ARGS("--discard"), ARGS("./no-such"), &out), 127);
    CHECK_INT(kit_run(ARGS("--discard"), ARGS("./state"), &out), 126);
}

/* Or "croft diff" right behind it would find the one that is being removed. */
TEST(croft_run_that_changed_nothing_is_no_sandbox_to_diff)
{
    own_fd dir = test_dir_fd();
    char state[4200], to[8];

    kit_need_root();
    snprintf(state, sizeof state, "%s/state", test_dir());
    setenv("CROFT_SERVER_STATE_DIR", state, 1);
    pid_t pid = program_start(
        &(struct program){.argv = ARGS(test_program("croft"), "run", "--root", "/", "--workspace",
                                       test_dir(), "--name", "r5", "--", "true"),
                          .fds = (int[]){-1, -1, -1},
                          .fd_count = 3});
    CHECK_INT(program_wait(pid), 0);
    CHECK_INT(readlinkat(dir, "state/box/r5/m0s", to, sizeof to), -1);
    kit_settle();
}

/* Who writes to a directory for real is gone when croft run is; here they hold a lock in it. */
TEST(croft_run_returns_when_no_process_of_it_is_left)
{
    static const char script[] = "exec 8>/out/lock; flock 8; trap '' HUP INT TERM; "
                                 "for i in $(seq 100); do setsid sleep 1000 & done; exit 7";
    own_fd dir = test_dir_fd();
    char state[4200], rw[4200];

    kit_need_root();
    snprintf(state, sizeof state, "%s/state", test_dir());
    setenv("CROFT_SERVER_STATE_DIR", state, 1);
    snprintf(rw, sizeof rw, "%s/out:/out", test_dir());
    CHECK_INT(mkdirat(dir, "out", 0755), 0);
    CHECK_INT(fchmodat(dir, "out", 0777, 0), 0);
    pid_t pid = program_start(
        &(struct program){.argv = ARGS(test_program("croft"), "run", "--root", "/", "--bare",
                                       "--rw", rw, "--", "sh", "-c", script),
                          .fds = (int[]){-1, -1, -1},
                          .fd_count = 3});
    CHECK_INT(program_wait(pid), 7);
    own_fd lock = openat(dir, "out/lock", O_RDWR | O_CLOEXEC);
    CHECK(lock >= 0);
    CHECK_INT(flock(lock, LOCK_EX | LOCK_NB), 0);
    kit_settle();
}

TEST(croft_run_sweeps_up_after_one_that_was_killed)
{
    own_done(buf) out;
    char state[4200];
    int in[2], from[2];
    char byte;

    kit_need_root();
    buf_init(&out, 1u << 16);
    snprintf(state, sizeof state, "%s/state", test_dir());
    setenv("CROFT_SERVER_STATE_DIR", state, 1);
    CHECK_INT(pipe2(in, O_CLOEXEC), 0);
    CHECK_INT(pipe2(from, O_CLOEXEC), 0);
    pid_t pid =
        program_start(&(struct program){.argv = ARGS(test_program("croft"), "run", "--root", "/",
                                                     "--bare", "--", "sh", "-c", "echo up; read x"),
                                        .fds = (int[]){in[0], from[1], -1},
                                        .fd_count = 3});
    close(in[0]);
    close(from[1]);
    CHECK_INT(read(from[0], &byte, 1), 1);
    CHECK_INT(kill(pid, SIGKILL), 0);
    program_wait(pid);
    while (read(from[0], &byte, 1) > 0) /* the sandbox dies with it */
        ;
    kit_settle();
    CHECK_INT(kit_run(ARGS("--discard"), ARGS("true"), &out), 0);
    kit_check_empty("state/ids");
    kit_check_empty("state/box");
    close(in[1]);
    close(from[0]);
}

TEST(croft_run_refuses_to_copy_the_whole_machine_unasked)
{
    own_done(buf) out;

    kit_need_root();
    buf_init(&out, 1u << 16);
    CHECK_INT(chdir("/"), 0);
    CHECK_INT(program_run(ARGS(test_program("croft"), "run", "--", "true"), &out), 125);
    CHECK_HAS(buf_str(&out), "--workspace DIR");
}

TEST(croft_run_refuses_a_command_without_dashes_and_an_unknown_flag)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    CHECK_INT(program_run(ARGS(test_program("croft"), "run", "ls"), &out), 125);
    CHECK_HAS(buf_str(&out), "after '--'");
    CHECK_INT(program_run(ARGS(test_program("croft"), "run", "--memry", "1G"), &out), 125);
    CHECK_HAS(buf_str(&out), "--memory");
}

TEST(croft_run_on_a_terminal_gives_the_command_a_terminal_of_its_own)
{
    struct winsize size = {.ws_row = 33, .ws_col = 77};
    int master, slave;
    char state[4200];
    own_done(buf) out;

    kit_need_root();
    buf_init(&out, 1u << 16);
    snprintf(state, sizeof state, "%s/state", test_dir());
    setenv("CROFT_SERVER_STATE_DIR", state, 1);
    CHECK_INT(openpty(&master, &slave, NULL, NULL, &size), 0);
    pid_t pid = program_start(
        &(struct program){.argv = ARGS(test_program("croft"), "run", "--root", "/", "--bare", "--",
                                       "sh", "-c", "tty; stty size; read x; echo got $x; exit 4"),
                          .fds = (int[]){slave, slave, slave},
                          .fd_count = 3});
    close(slave);
    CHECK_OK(fd_write_all(master, STR("word\n")));
    char chunk[512];
    for (ssize_t n; (n = read(master, chunk, sizeof chunk)) > 0;)
        buf_add_mem(&out, chunk, (size_t)n);
    CHECK_INT(program_wait(pid), 4);
    CHECK_HAS(buf_str(&out), "/dev/pts/0\r\n");
    CHECK_HAS(buf_str(&out), "33 77\r\n");
    CHECK_HAS(buf_str(&out), "got word\r\n");
    close(master);
}

TEST(croft_run_leaves_changes_that_the_next_command_may_drop)
{
    own_done(buf) out;
    char dir[300], state[300];

    kit_need_root();
    buf_init(&out, 1u << 16);
    snprintf(dir, sizeof dir, "%s/project", test_dir());
    snprintf(state, sizeof state, "%s/state", test_dir());
    CHECK_INT(mkdir(dir, 0755), 0);
    setenv("CROFT_SERVER_STATE_DIR", state, 1);
    const char *croft = test_program("croft");
    for (int i = 0; i < 5; i++) {
        CHECK_INT(program_run(ARGS(croft, "run", "--root", "/", "--workspace", dir, "--", "sh",
                                   "-c", "echo x > /workspace/made; mkdir -p /var/a/b/c/d"),
                              &out),
                  0);
        CHECK_INT(chdir(dir), 0);
        CHECK_INT(program_run(ARGS(croft, "rollback"), &out), 0);
    }
}

static int croft(struct buf *into, const char *verb, const char *a, const char *b, const char *c,
                 const char *d)
{
    buf_reset(into);
    return program_run(ARGS(test_program("croft"), verb, a, b, c, d), into);
}

TEST(croft_run_forks_a_snapshot_and_diff_shows_both_layers)
{
    own_done(buf) out;
    own_fd dir = test_dir_fd();
    char workspace[300];

    buf_init(&out, 1u << 16);
    /* not the one above: layers may not lie in each other */
    CHECK_INT(mkdirat(dir, "ws", 0755), 0);
    snprintf(workspace, sizeof workspace, "%s/ws", test_dir());
    CHECK_INT(kit_run(ARGS("--name", "s1", "--workspace", workspace),
                      ARGS("sh", "-c", "echo x >one"), &out),
              0);
    CHECK_INT(croft(&out, "snapshot", "take", "s1", "--name", "snap"), 0);
    for (int i = 0; i < 2; i++) { /* two forks that do not see each other */
        const char *name = i ? "f1" : "f0";
        buf_reset(&out);
        CHECK_INT(program_run(ARGS(test_program("croft"), "run", "--root", "/", "--from", "snap",
                                   "--name", name, "--", "sh", "-c",
                                   "cat one; ls; echo more >>one; echo y >two"),
                              &out),
                  0);
        CHECK_HAS(buf_str(&out), "x\none\n");
        CHECK(str_find(buf_str(&out), STR("two")) < 0);
        CHECK_INT(croft(&out, "diff", name, NULL, NULL, NULL), 0);
        CHECK_STR(buf_str(&out), "A  one\nA  two\n");
    }
    CHECK_INT(faccessat(dir, "ws/one", F_OK, 0), -1);
    CHECK_INT(croft(&out, "rollback", "s1", NULL, NULL, NULL), 0);
    CHECK_INT(croft(&out, "snapshot", "rm", "snap", NULL, NULL), 0);
    CHECK_INT(croft(&out, "apply", "f0", NULL, NULL, NULL), 0);
    CHECK_INT(faccessat(dir, "ws/one", F_OK, 0), 0);
    CHECK_INT(croft(&out, "rollback", "f0", NULL, NULL, NULL), 0);
    CHECK_INT(croft(&out, "rollback", "f1", NULL, NULL, NULL), 0);
    kit_check_empty("state/snap/layers");
    kit_check_empty("state/box");
    CHECK_INT(croft(&out, "run", "--from", "snap", NULL, NULL), 125);
    CHECK_HAS(buf_str(&out), "no snapshot 'snap'");
}

TEST(croft_run_says_when_a_snapshot_is_of_another_directory)
{
    own_done(buf) out;
    own_fd dir = test_dir_fd();
    char workspace[300];

    kit_need_root();
    buf_init(&out, 1u << 16);
    CHECK_INT(mkdirat(dir, "ws", 0755), 0);
    snprintf(workspace, sizeof workspace, "%s/ws", test_dir());
    CHECK_INT(kit_run(ARGS("--name", "s1", "--workspace", workspace), ARGS("touch", "one"), &out),
              0);
    CHECK_INT(croft(&out, "snapshot", "take", "s1", "--name", "snap"), 0);
    buf_reset(&out);
    const char *const *again = ARGS(test_program("croft"), "run", "--root", "/", "--from", "snap",
                                    "--name", "f1", "--", "touch", "two");
    CHECK_INT(program_run(again, &out), 0);
    CHECK(str_find(buf_str(&out), STR("another directory")) < 0);
    CHECK_INT(croft(&out, "rollback", "f1", NULL, NULL, NULL), 0);
    CHECK_INT(renameat(dir, "ws", dir, "old"), 0);
    CHECK_INT(mkdirat(dir, "ws", 0755), 0);
    buf_reset(&out);
    CHECK_INT(program_run(again, &out), 0);
    CHECK_HAS(buf_str(&out), "is another directory than the one snapshot 'snap' was made of");
    CHECK_INT(croft(&out, "apply", "f1", NULL, NULL, NULL), 1);
    CHECK_HAS(buf_str(&out), "another directory has its name now");
    CHECK_INT(croft(&out, "apply", "f1", "--force", NULL, NULL), 0);
    CHECK_INT(faccessat(dir, "ws/one", F_OK, 0), 0);
    CHECK_INT(unlinkat(dir, "ws/one", 0), 0);
    CHECK_INT(unlinkat(dir, "ws/two", 0), 0);
    CHECK_INT(unlinkat(dir, "ws", AT_REMOVEDIR), 0);
    CHECK_INT(croft(&out, "run", "--from", "snap", NULL, NULL), 125);
    CHECK_HAS(buf_str(&out), "the snapshot's directory '");
}

TEST(croft_run_starts_an_imported_image)
{
    own_done(buf) out;
    char tar[300], script[900];

    buf_init(&out, 1u << 16);
    kit_need_root();
    if (access("/bin/busybox", X_OK) < 0)
        SKIP("needs busybox-static");
    snprintf(script, sizeof script,
             "cd %s && mkdir -p r/bin && cp /bin/busybox r/bin && ln -s busybox r/bin/sh && "
             "ln -s busybox r/bin/ls && echo of-the-image >r/mark && tar -C r -czf r.tgz .",
             test_dir());
    CHECK_INT(system(script), 0); /* NOLINT(cert-env33-c): our own words */
    CHECK_INT(kit_run(ARGS("--discard"), ARGS("true"), &out), 0); /* sets the state directory */
    snprintf(tar, sizeof tar, "%s/r.tgz", test_dir());
    CHECK_INT(croft(&out, "image", "import", tar, "--name", "bb"), 0);
    buf_reset(&out);
    CHECK_INT(program_run(ARGS(test_program("croft"), "run", "--image", "bb", "--bare", "--", "sh",
                               "-c", "read x </mark; echo $x; ls /usr 2>&1; echo y >/new"),
                          &out),
              0);
    CHECK_HAS(buf_str(&out), "of-the-image\n");
    CHECK_HAS(buf_str(&out), "/usr: No such file");
    buf_reset(&out);
    CHECK_INT(
        program_run(
            ARGS(test_program("croft"), "run", "--image", "bb", "--root", "/", "--", "true"), &out),
        125);
    CHECK_INT(croft(&out, "image", "rm", "bb", NULL, NULL), 0);
}

TEST(sudo_inside_works_and_gains_nothing_with_no_new_privs)
{
    own_done(buf) out;
    char state[300];

    kit_need_root();
    if (access("/usr/bin/sudo", X_OK) < 0)
        SKIP("this machine has no sudo");
    buf_init(&out, 1u << 16);
    snprintf(state, sizeof state, "%s/state", test_dir());
    setenv("CROFT_SERVER_STATE_DIR", state, 1);
    kit_share_layers(state);
    const char *croft = test_program("croft");
    CHECK_INT(program_run(ARGS(croft, "run", "--bare", "--user", "openhands", "--", "sh", "-c",
                               "id -u; sudo -n id -u; sudo -n touch /etc/made && ls /etc/made"),
                          &out),
              0);
    CHECK_HAS(buf_str(&out), "1000\n0\n/etc/made\n");
    buf_reset(&out);
    CHECK_INT(program_run(ARGS(croft, "run", "--bare", "--user", "10001", "--", "sh", "-c",
                               "id -u; whoami; sudo -n id -u; cd && pwd && touch here"),
                          &out),
              0);
    CHECK_STR(buf_str(&out), "10001\nu10001\n0\n/home/10001\n");
    buf_reset(&out);
    CHECK(program_run(ARGS(croft, "run", "--bare", "--no-new-privs", "--user", "openhands", "--",
                           "sudo", "-n", "id"),
                      &out) != 0);
    CHECK_HAS(buf_str(&out), "no new privileges");
}

TEST(croft_run_says_what_is_mounted_in_the_workspace_and_apply_leaves_it_alone)
{
    own_done(buf) out;
    own_fd dir = test_dir_fd();
    char from[4200], at[4200];

    kit_need_root();
    buf_init(&out, 1u << 16);
    CHECK_INT(mkdirat(dir, "data here", 0755), 0);
    CHECK_INT(mkdirat(dir, "precious", 0755), 0);
    CHECK_INT(mkdirat(dir, "precious/x", 0755), 0);
    snprintf(from, sizeof from, "%s/precious", test_dir());
    snprintf(at, sizeof at, "%s/data here", test_dir());
    CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    CHECK(mount(from, at, NULL, MS_BIND, NULL) == 0);
    CHECK_INT(kit_run(ARGS("--name", "m1"), ARGS("sh", "-c", "ls data*; rmdir data*"), &out), 0);
    CHECK_HAS(buf_str(&out), "croft run: mounted here: data here; the copy has empty");
    CHECK_HAS(buf_str(&out), "1 deleted");
    buf_reset(&out);
    CHECK_INT(program_run(ARGS(test_program("croft"), "apply", "m1"), &out), 1);
    CHECK_HAS(buf_str(&out), "mounted at or in 'data here'");
    CHECK_INT(program_run(ARGS(test_program("croft"), "apply", "m1", "--force"), &out), 0);
    CHECK_HAS(buf_str(&out), "applied 0 to '");
    CHECK_INT(faccessat(dir, "precious/x", F_OK, 0), 0);
    CHECK(umount2(at, MNT_DETACH) == 0);
}

TEST(croft_run_notes_which_directory_it_worked_on)
{
    own_done(buf) out;
    own_fd dir = test_dir_fd();
    char one[4200], state[4200];

    kit_need_root();
    buf_init(&out, 1u << 16);
    CHECK_INT(mkdirat(dir, "p1", 0755), 0);
    CHECK_INT(mkdirat(dir, "p2", 0755), 0);
    snprintf(one, sizeof one, "%s/p1", test_dir());
    snprintf(state, sizeof state, "%s/state", test_dir());
    setenv("CROFT_SERVER_STATE_DIR", state, 1);
    CHECK_INT(program_run(ARGS(test_program("croft"), "run", "--root", "/", "--workspace", one,
                               "--name", "w1", "--", "touch", "made"),
                          &out),
              0);
    CHECK_INT(renameat(dir, "p1", dir, "p1.bak"), 0);
    CHECK_INT(renameat(dir, "p2", dir, "p1"), 0);
    buf_reset(&out);
    CHECK_INT(program_run(ARGS(test_program("croft"), "apply", "w1"), &out), 1);
    CHECK_HAS(buf_str(&out), "another directory has its name now");
    CHECK_INT(faccessat(dir, "p1/made", F_OK, 0), -1);
}

TEST(croft_run_applies_in_parts_and_leaves_out_what_it_mounted_on)
{
    own_done(buf) out;
    own_fd dir = test_dir_fd();
    char ws[4200], other[4200], state[4200];

    kit_need_root();
    buf_init(&out, 1u << 16);
    CHECK_INT(mkdirat(dir, "ws", 0755), 0);
    CHECK_INT(mkdirat(dir, "ws/d", 0755), 0);
    CHECK_INT(mkdirat(dir, "ws/d/gone", 0755), 0);
    CHECK_INT(mkdirat(dir, "out", 0755), 0);
    snprintf(ws, sizeof ws, "%s/ws", test_dir());
    snprintf(other, sizeof other, "%s/out:/workspace/x/out", test_dir());
    snprintf(state, sizeof state, "%s/state", test_dir());
    setenv("CROFT_SERVER_STATE_DIR", state, 1);
    CHECK_INT(program_run(ARGS(test_program("croft"), "run", "--root", "/", "--workspace", ws,
                               "--rw", other, "--name", "p1", "--", "sh", "-c",
                               "echo 1 >x/out/f; echo 2 >a; rm -r d"),
                          &out),
              0);
    buf_reset(&out);
    CHECK_INT(program_run(ARGS(test_program("croft"), "diff", "p1"), &out), 0);
    CHECK_STR(buf_str(&out), "A  a\nD  d/\n");
    CHECK_INT(program_run(ARGS(test_program("croft"), "apply", "p1", "a"), &out), 0);
    CHECK_INT(program_run(ARGS(test_program("croft"), "apply", "p1"), &out), 0);
    CHECK_INT(faccessat(dir, "ws/a", F_OK, 0), 0);
    CHECK_INT(faccessat(dir, "ws/d", F_OK, 0), -1);
    CHECK_INT(faccessat(dir, "ws/x", F_OK, 0), -1);
}
