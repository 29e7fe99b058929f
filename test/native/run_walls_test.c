// SPDX-License-Identifier: Apache-2.0
/* run_walls_test.c — croft run: what must not go in by the way it is called, nor stay behind when
 * it is killed. */
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "test/native/kit.h"
#include "test/program.h"
#include "test/test.h"

static void use_own_state(void)
{
    char state[4200];

    kit_need_root();
    snprintf(state, sizeof state, "%s/state", test_dir());
    setenv("CROFT_SERVER_STATE_DIR", state, 1);
}

/* sh -c: `$0 run --root / --bare ARGS` */
static int run_by_shell(const char *redirected, struct buf *out)
{
    char script[512];

    use_own_state();
    snprintf(script, sizeof script, "\"$0\" run --root / --bare -- sh -c '%s", redirected);
    int code = program_run(ARGS("sh", "-c", script, test_program("croft")), out);
    kit_settle();
    return code;
}

TEST(croft_run_gives_nothing_of_its_own_for_a_closed_descriptor)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    CHECK_INT(run_by_shell("readlink /proc/self/fd/0' <&-", &out), 0);
    CHECK_STR(buf_str(&out), "/dev/null\n");
    buf_reset(&out);
    CHECK_INT(run_by_shell("x=$(readlink /proc/$$/fd/1); echo $x >&2' >&-", &out), 0);
    CHECK_STR(buf_str(&out), "/dev/null\n");
    buf_reset(&out);
    CHECK_INT(run_by_shell("x=$(readlink /proc/$$/fd/2); echo $x' 2>&-", &out), 0);
    CHECK_STR(buf_str(&out), "/dev/null\n");
}

TEST(croft_run_refuses_a_directory_as_input)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    CHECK_INT(run_by_shell("true' </", &out), 125);
    CHECK_HAS(buf_str(&out), "standard input is a directory");
    kit_check_empty("state/box");
    kit_check_empty("state/ids");
}

/* It could be connected anew, to whom only this machine can reach. */
TEST(croft_run_refuses_a_socket_of_the_network_as_output)
{
    use_own_state();
    own_fd sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pid_t pid = program_start(&(struct program){
        .argv = ARGS(test_program("croft"), "run", "--root", "/", "--bare", "--", "true"),
        .fds = (int[]){-1, sock, -1},
        .fd_count = 3});

    CHECK_INT(program_wait(pid), 125);
    kit_settle();
    kit_check_empty("state/ids");
}

TEST(croft_run_writes_no_control_characters_of_a_name)
{
    own_done(buf) out;

    use_own_state();
    buf_init(&out, 1u << 16);
    CHECK_INT(program_run(ARGS(test_program("croft"), "run", "--root", "/", "--bare", "--name",
                               "a\033[31m\u202eb", "--", "true"),
                          &out),
              125);
    CHECK_HAS(buf_str(&out), "'a\\x1b[31m\\xe2\\x80\\xaeb' is no name");
    CHECK(!memchr(out.p, '\033', out.len));
}

TEST(croft_run_refuses_to_copy_a_home_unasked)
{
    own_done(buf) out;

    use_own_state();
    buf_init(&out, 1u << 16);
    setenv("HOME", test_dir(), 1);
    CHECK_INT(chdir(test_dir()), 0);
    CHECK_INT(program_run(ARGS(test_program("croft"), "run", "--root", "/", "--", "true"), &out),
              125);
    CHECK_HAS(buf_str(&out), "too much to show to a sandbox unasked");
}

TEST(croft_run_hides_its_own_state_in_a_workspace)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    CHECK_INT(kit_run(ARGS("--name", "h"),
                      ARGS("sh", "-c", "ls -A state; rm -rf state; touch state/x; echo y >made"),
                      &out),
              0);
    CHECK(str_starts(buf_str(&out), STR("rm: ")));
    CHECK_HAS(buf_str(&out), "1 added in the copy");
}

/* The first byte is the command's; the end of the pipe is the end of all who hold it. */
static void start_and_kill(unsigned after_us)
{
    int from[2];
    char byte;

    CHECK_INT(pipe2(from, O_CLOEXEC), 0);
    pid_t pid = program_start(&(struct program){
        .argv = ARGS(test_program("croft"), "run", "--root", "/", "--bare", "--", "sleep", "1000"),
        .fds = (int[]){-1, from[1], -1},
        .fd_count = 3});
    close(from[1]);
    usleep(after_us);
    CHECK_INT(kill(pid, SIGKILL), 0);
    program_wait(pid);
    CHECK_INT(read(from[0], &byte, 1), 0); /* or it hangs here */
    close(from[0]);
    kit_settle(); /* a child of croft's may not have run yet */
}

TEST(croft_run_killed_at_any_moment_leaves_nobody_running)
{
    own_done(buf) out;

    use_own_state();
    buf_init(&out, 1u << 16);
    for (unsigned i = 0; i < 40; i++)
        start_and_kill(i * 400);
    CHECK_INT(kit_run(ARGS("--discard"), ARGS("true"), &out), 0);
    kit_check_empty("state/ids");
    kit_check_empty("state/box");
}

static unsigned mode_of(int dir, const char *path)
{
    struct stat st;

    CHECK_INT(fstatat(dir, path, &st, 0), 0);
    return st.st_mode & 07777;
}

/* In up/out/: t is a set-id file, and nobody has taken that off. */
static void leave_set_id(int dir)
{
    char rw[4200], byte;
    int from[2];

    use_own_state();
    CHECK_INT(mkdirat(dir, "up", 0755), 0);
    CHECK_INT(mkdirat(dir, "up/out", 0755), 0);
    snprintf(rw, sizeof rw, "%s/up/out:/out", test_dir());
    CHECK_INT(pipe2(from, O_CLOEXEC), 0);
    pid_t pid = program_start(&(struct program){
        .argv = ARGS(test_program("croft"), "run", "--root", "/", "--bare", "--rw", rw, "--", "sh",
                     "-c", "cp /bin/true /out/t; chmod 6755 /out/t; echo; sleep 1000"),
        .fds = (int[]){-1, from[1], -1},
        .fd_count = 3});
    close(from[1]);
    CHECK_INT(read(from[0], &byte, 1), 1);
    CHECK_INT(kill(pid, SIGKILL), 0);
    program_wait(pid);
    CHECK_INT(read(from[0], &byte, 1), 0);
    close(from[0]);
    kit_settle();
    CHECK_INT(mode_of(dir, "up/out/t"), 06755);
}

TEST(croft_run_that_was_killed_leaves_no_set_id_file_in_a_directory_it_could_write)
{
    own_done(buf) out;
    own_fd dir = test_dir_fd();

    leave_set_id(dir);
    buf_init(&out, 1u << 16);
    CHECK_INT(kit_run(ARGS("--discard"), ARGS("true"), &out), 0);
    CHECK_INT(mode_of(dir, "up/out/t"), 0755);
    kit_check_empty("state/box");
}

TEST(croft_run_takes_no_set_id_bit_off_behind_a_link_on_the_way_to_a_directory)
{
    own_done(buf) out;
    own_fd dir = test_dir_fd();

    leave_set_id(dir);
    CHECK_INT(renameat(dir, "up", dir, "else"), 0);
    CHECK_INT(symlinkat("else", dir, "up"), 0);
    buf_init(&out, 1u << 16);
    CHECK_INT(kit_run(ARGS("--discard"), ARGS("true"), &out), 0);
    CHECK_INT(mode_of(dir, "else/out/t"), 06755);
    kit_check_empty("state/box");
}

/* The link on the way, again. */
TEST(croft_run_says_once_what_the_one_before_could_not_tidy_up)
{
    own_done(buf) out;
    own_fd dir = test_dir_fd();
    static const char said[] = "croft run: set-id files may be left in a directory: ";

    leave_set_id(dir);
    CHECK_INT(renameat(dir, "up", dir, "else"), 0);
    CHECK_INT(symlinkat("else", dir, "up"), 0);
    buf_init(&out, 1u << 16);
    CHECK_INT(kit_run(ARGS("--discard"), ARGS("echo", "hello"), &out), 0);
    CHECK_STR(buf_str(&out), "hello\n");
    buf_reset(&out);
    CHECK_INT(kit_run(ARGS("--discard", "--json"), ARGS("true"), &out), 0);
    CHECK(str_find(buf_str(&out), str_of(said)) < 0);
    buf_reset(&out);
    CHECK_INT(kit_run(ARGS("--discard"), ARGS("true"), &out), 0);
    CHECK(str_starts(buf_str(&out), str_of(said)));
    CHECK_HAS(buf_str(&out), "/up/out: ");
    CHECK(str_ends(buf_str(&out), STR("\n")));
    CHECK_INT(faccessat(dir, "state/left", F_OK, 0), -1);
    /* the same again within a day */
    char path[200];
    snprintf(path, sizeof path,
             "{\"time\":\"x\",\"level\":\"warn\",\"msg\":\"new\",\"id\":\"a\\u001bb\"}\n{\"cut");
    for (unsigned i = 0; i < 2; i++) {
        own_fd left = openat(dir, "state/left", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        CHECK_OK(fd_write_all(left, str_of(path)));
        buf_reset(&out);
        CHECK_INT(kit_run(ARGS("--discard"), ARGS("true"), &out), 0);
        CHECK_STR(buf_str(&out), i ? "" : "croft run: new: \"a\\033b\"\n");
    }
}

static int croft(struct buf *into, const char *verb, const char *a, const char *b)
{
    buf_reset(into);
    return program_run(ARGS(test_program("croft"), verb, a, b), into);
}

/* Made new files in its workspace and elsewhere, and runs until it is killed. */
static pid_t start_writer(int *ret_from, const char *name)
{
    char ws[4200], byte;
    int from[2];

    snprintf(ws, sizeof ws, "%s/ws", test_dir());
    CHECK_INT(pipe2(from, O_CLOEXEC), 0);
    pid_t pid = program_start(&(struct program){
        .argv = ARGS(test_program("croft"), "run", "--root", "/", "--workspace", ws, "--name", name,
                     "--", "sh", "-c", "echo x >made; echo y >/elsewhere; echo; sleep 1000"),
        .fds = (int[]){-1, from[1], -1},
        .fd_count = 3});
    close(from[1]);
    CHECK_INT(read(from[0], &byte, 1), 1);
    *ret_from = from[0];
    return pid;
}

TEST(croft_run_that_was_killed_is_listed_and_keeps_what_can_be_applied_alone)
{
    own_done(buf) out;
    own_fd dir = test_dir_fd();
    int from;
    char byte;

    use_own_state();
    buf_init(&out, 1u << 16);
    CHECK_INT(mkdirat(dir, "ws", 0755), 0);
    for (unsigned i = 0; i < 2; i++) {
        const char *name = i ? "k1" : "k0";
        pid_t pid = start_writer(&from, name);
        CHECK_INT(croft(&out, "diff", "--list", NULL), 0);
        CHECK_HAS(buf_str(&out), "/ws: 1 added; it runs; sh -c echo x >made;");
        CHECK_INT(croft(&out, "rollback", name, NULL), 1);
        CHECK_HAS(buf_str(&out), "still runs");
        CHECK_INT(kill(pid, SIGKILL), 0);
        program_wait(pid);
        CHECK_INT(read(from, &byte, 1), 0);
        close(from);
        kit_settle();
        do { /* its pid 1 may be about to end */
            CHECK_INT(croft(&out, "diff", "--list", NULL), 0);
            poll(NULL, 0, 5);
        } while (str_find(buf_str(&out), STR("it runs")) >= 0);
        CHECK_HAS(buf_str(&out), "/ws: 1 added");
        if (!i) /* before any sweep */
            CHECK_INT(croft(&out, "rollback", name, NULL), 0);
    }
    CHECK_INT(faccessat(dir, "state/box/k1/u/elsewhere", F_OK, 0), 0);
    CHECK_INT(kit_run(ARGS("--discard"), ARGS("true"), &out), 0);
    kit_check_empty("state/ids");
    CHECK_INT(faccessat(dir, "state/box/k0", F_OK, 0), -1);
    CHECK_INT(faccessat(dir, "state/box/k1/u", F_OK, 0), -1);
    CHECK_INT(faccessat(dir, "state/box/k1/w", F_OK, 0), -1);
    CHECK_INT(croft(&out, "diff", "--list", NULL), 0);
    CHECK_HAS(buf_str(&out), "/ws: 1 added");
    CHECK_INT(croft(&out, "apply", "k1", NULL), 0);
    CHECK_INT(faccessat(dir, "ws/made", F_OK, 0), 0);
    CHECK_INT(croft(&out, "rollback", "k1", NULL), 0);
    kit_check_empty("state/box");
}

TEST(croft_run_says_what_to_do_about_a_name_that_is_taken_and_a_directory_that_is_gone)
{
    own_done(buf) out;
    own_fd dir = test_dir_fd();
    char ws[4200];

    use_own_state();
    buf_init(&out, 1u << 16);
    CHECK_INT(mkdirat(dir, "ws", 0755), 0);
    snprintf(ws, sizeof ws, "%s/ws", test_dir());
    for (unsigned i = 0; i < 2; i++) {
        buf_reset(&out);
        CHECK_INT(kit_run(ARGS("--name", "one", "--workspace", ws), ARGS("touch", "a"), &out),
                  i ? 125 : 0);
    }
    CHECK_HAS(buf_str(&out), "there is a sandbox 'one' already, running or kept: 'croft rollback");
    CHECK_INT(croft(&out, "diff", "one", NULL), 0); /* it is as it was */
    CHECK_STR(buf_str(&out), "A  a\n");
    CHECK(chdir(ws) == 0 && rmdir(ws) == 0);
    CHECK_INT(croft(&out, "run", NULL, NULL), 125);
    CHECK_HAS(buf_str(&out), "--workspace DIR or --bare");
}
