// SPDX-License-Identifier: Apache-2.0
/* init_test.c — pid 1 from the outside: what it keeps, restarts, forwards, reaps and refuses. */
#include <errno.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "test/init_kit.h"

#include <sched.h>
#include <sys/wait.h>

/* Between two commands: the same bash, where it was, with what it had. */
static void check_restart(struct kit *k)
{
    CHECK_HAS(kit_run(k, "echo one; cd /usr; here=1; sleep 1000 & me=$$; f() { echo $me; }"),
              "one\n[1] ");
    struct str me = kit_run(k, "f");
    kit_kill_server(k);
    CHECK_STR(kit_run(k, "echo $PWD $here; jobs %1 | grep -c Running"), "/usr 1\n1");
    CHECK_STR(kit_run(k, "f"), me);
    kit_kill_server(k);
    CHECK_HAS(kit_run(k, "kill %1; wait %1; echo $? $PWD"), "143 /usr");
    kit_close(k);
}

TEST(init_restarts_a_server_that_was_killed)
{
    struct kit k;

    kit_open(&k);
    check_restart(&k);
}

TEST(init_restarts_a_server_as_pid_one)
{
    struct kit k;

    kit_open_as_one(&k);
    CHECK_STR(kit_run(&k, "ps -o ppid= -p $$ | tr -d ' '"), "1");
    check_restart(&k);
}

TEST(init_gives_up_a_server_that_always_dies)
{
    struct kit k;

    kit_open(&k);
    for (int i = 0; i < 7; i++)
        kit_kill_server(&k);
    CHECK_INT(kill(kit_server(&k), SIGKILL), 0);
    CHECK_INT(program_wait(k.pid), 1);
    CHECK_HAS(kit_log(&k), "the server dies too often: giving up");
    CHECK_HAS(kit_log(&k), "\"last_status\":137");
    kit_done(&k);
}

TEST(init_tells_the_code_of_a_server_that_does_not_start)
{
    own_done(buf) said;

    buf_init(&said, 1u << 16);
    CHECK_INT(program_run(ARGS(test_program("croft-guest"), "init", "--", "action-server",
                               "unix:/no/such/place", "--working-dir", test_dir()),
                          &said),
              3);
    CHECK_HAS(buf_str(&said), "/no/such/place: No such file or directory");
    buf_reset(&said);
    CHECK_INT(
        program_run(ARGS(test_program("croft-guest"), "init", "--", "--nonsense", "x"), &said), 2);
    CHECK_HAS(buf_str(&said), "unknown option '--nonsense'");
}

TEST(init_starts_another_forker_when_one_dies)
{
    struct kit k;

    kit_open(&k);
    CHECK_STR(kit_run(&k, "echo one"), "one");
    pid_t forker = kit_await_child(k.pid, "forker", 0);
    CHECK_INT(kill(forker, SIGKILL), 0);
    CHECK_STR(kit_run(&k, "exit 3"), "exit"); /* bash is started again: by whom? */
    CHECK_STR(kit_run(&k, "echo two"), "two");
    CHECK(kit_await_child(k.pid, "forker", forker) != forker);
    kit_close(&k);
}

TEST(init_has_no_forker_before_the_first_command_and_the_work_dies_first)
{
    struct kit k;

    kit_open(&k);
    CHECK_INT(kit_find_child(k.pid, "forker"), 0);
    CHECK_STR(kit_run(&k, "cat /proc/self/oom_score_adj"), "1000");
    CHECK(kit_find_child(k.pid, "forker") > 0);
    kit_close(&k);
}

TEST(init_shows_the_key_to_nobody)
{
    struct kit k;
    own_done(buf) b;

    kit_open(&k);
    CHECK_STR(kit_run(&k, "env | grep -c SESSION_API_KEY"), "0");
    buf_init(&b, 1u << 20);
    const pid_t ours[] = {k.pid, kit_server(&k), kit_await_child(k.pid, "forker", 0),
                          kit_await_child(k.pid, "bash", 0)};
    for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
        kit_read_proc(ours[i], "environ", &b);
        CHECK(b.len > 20); /* there is one to look at */
        CHECK(!memmem(b.p, b.len, "hunter2", 7));
        buf_reset(&b);
        struct stat st;
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/environ", (int)ours[i]);
        CHECK_INT(stat(path, &st), 0);
        kit_read_proc(ours[i], "cmdline", &b);
        CHECK(!memmem(b.p, b.len, "hunter2", 7));
        buf_reset(&b);
    }
    if (geteuid() == 0) /* a process that is not dumpable: no stranger looks inside */
        CHECK_STR(kit_run(&k, "setpriv --reuid 65534 --clear-groups cat /proc/$PPID/environ 2>&1 | "
                              "grep -c 'Permission denied'"),
                  "1");
    kit_close(&k);
}

/* Pid 1 knows nothing yet that the server may not; later it may. */
TEST(init_is_its_first_server_itself_and_runs_a_program_for_the_next)
{
    struct kit k;
    own_done(buf) first, next;

    kit_open(&k);
    buf_init(&first, 1u << 16);
    buf_init(&next, 1u << 16);
    kit_read_proc(kit_server(&k), "cmdline", &first);
    CHECK(!memmem(first.p, first.len, KIT_SERVER, strlen(KIT_SERVER)));
    kit_kill_server(&k);
    CHECK_HAS(kit_get(&k, "/alive"), "{\"status\":\"ok\"}"); /* it is a program by now */
    kit_read_proc(kit_server(&k), "cmdline", &next);
    CHECK(memmem(next.p, next.len, KIT_SERVER, strlen(KIT_SERVER)));
    kit_close(&k);
}

TEST(init_answers_the_host)
{
    struct kit k;
    char byte;

    kit_open(&k);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(write(k.control, "p", 1), 1);
        CHECK_INT(read(k.control, &byte, 1), 1);
        CHECK_INT(byte, 'P');
    }
    CHECK_INT(write(k.control, "??", 2), 2); /* room for more */
    shutdown(k.control, SHUT_RDWR);          /* the host may go: nothing here ends */
    CHECK_STR(kit_run(&k, "echo alive"), "alive");
    kit_close(&k);
}

TEST(init_says_when_memory_ran_out)
{
    struct kit k;

    kit_open(&k);
    CHECK_OK(fd_write_all(k.oom, STR("low 0\noom 0\noom_kill 4\n")));
    struct json *o = kit_observe(&k, "\"command\":\"true\",\"blocking\":true");
    const struct json *meta = json_get(json_get(o, STR("extras")), STR("metadata"));
    CHECK_STR(json_get_str(meta, "suffix", STR("")), "\n[The command completed with exit code 0.]");
    char command[500];
    snprintf(command, sizeof command,
             "\"command\":\"printf 'oom_kill 5\\\\n' > %s/oom; (exit 137)\",\"blocking\":true",
             k.dir);
    o = kit_observe(&k, command);
    meta = json_get(json_get(o, STR("extras")), STR("metadata"));
    CHECK_HAS(json_get_str(meta, "suffix", STR("")), "memory");
    kit_close(&k);
}

TEST(init_gives_the_memory_monitor_what_the_control_group_counts)
{
    struct kit k = {0};
    bool said = false;
    char path[300];

    snprintf(path, sizeof path, "%s/now", test_dir());
    own_fd now = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK_OK(fd_write_all(now, STR("123904000\n")));
    k.memory = now;
    kit_open_with(&k, ARGS("env", "RUNTIME_MEMORY_MONITOR=1", "LOG_LEVEL=info"));
    while (!said) {
        CHECK_STR(kit_run(&k, "echo on"), "on");
        said = str_find(kit_log(&k), STR("\"kb\":121000")) >= 0;
    }
    kit_close(&k);
}

TEST(init_joins_the_cgroups_of_the_work_or_says_why_not)
{
    own_done(buf) said;
    own_done(buf) written;
    char path[300];

    buf_init(&said, 1u << 16);
    buf_init(&written, 100);
    snprintf(path, sizeof path, "%s/cgroup.procs", test_dir());
    int dir = open(test_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), out[2];
    const char *const argv[] = {test_program("croft-guest"),
                                "init",
                                "--work-cgroup-fd",
                                "3",
                                "--exec",
                                "--",
                                "/bin/echo",
                                "in",
                                NULL};
    for (int there = 0; there < 2; there++) {
        CHECK_INT(pipe2(out, O_CLOEXEC), 0);
        pid_t pid = program_start(&(struct program){
            .argv = argv, .fds = (int[]){-1, out[1], out[1], dir}, .fd_count = 4});
        close(out[1]);
        buf_reset(&said);
        CHECK_OK(fd_read_all(out[0], &said));
        close(out[0]);
        CHECK_INT(program_wait(pid), there ? 0 : 125);
        CHECK_STR(buf_str(&said), there ? "in\n"
                                        : "croft-guest: init: the forker joins the cgroup of the "
                                          "work: No such file or directory\n");
        close(open(path, O_CREAT | O_WRONLY, 0600));
    }
    CHECK_OK(fd_read_file(path, &written));
    CHECK_STR(buf_str(&written), "0");
    close(dir);
}

static void check_exec(const char *const *args, int code, const char *text)
{
    const char *argv[32] = {test_program("croft-guest"), "init", "--exec"};
    own_done(buf) said;

    buf_init(&said, 1u << 16);
    for (size_t i = 0; args[i]; i++)
        argv[3 + i] = args[i];
    CHECK_INT(program_run(argv, &said), code);
    CHECK_STR(buf_str(&said), text);
}

TEST(init_has_its_one_command_as_its_only_child)
{
    check_exec(ARGS("--", "sh", "-c", "set -- $(cat /proc/$PPID/task/$PPID/children); echo $#"), 0,
               "1\n");
}

TEST(init_runs_one_command_and_passes_its_end_through)
{
    check_exec(ARGS("--", "sh", "-c", "echo out; exit 7"), 7, "out\n");
    check_exec(ARGS("--cwd", "/usr", "--", "pwd"), 0, "/usr\n");
    check_exec(ARGS("--", "sh", "-c", "kill -9 $$"), 137, "");
    check_exec(ARGS("--", "sh", "-c", "(sleep 1000; echo late) & exit 0"), 0, "");
    check_exec(ARGS("--", "no-such-program-here"), 127,
               "croft-guest: init: there is no 'no-such-program-here' in PATH\n");
    check_exec(ARGS("--", "/etc/passwd"), 126,
               "croft-guest: init: run '/etc/passwd': Permission denied\n");
    check_exec(ARGS("--"), 125, "croft-guest: init: name what to run after --\n");
    check_exec(
        ARGS("--listen-fd", "77", "--", "x"), 125,
        "croft-guest: init: --listen-fd '77': not the number of an open descriptor over 2\n");
    if (geteuid() != 0)
        return;
    check_exec(ARGS("--user", "65534:7", "--", "sh", "-c", "id -u; id -g; id -G"), 0,
               "65534\n7\n7\n");
    check_exec(ARGS("--user", "nobody", "--", "sh", "-c", "id -un"), 0, "nobody\n");
    check_exec(ARGS("--user", "nobody-here", "--", "true"), 125,
               "croft-guest: init: --user: no user 'nobody-here'\n");
}

TEST(init_forwards_signals_to_its_command)
{
    int out[2];
    char line[16] = "";

    CHECK_INT(pipe2(out, O_CLOEXEC), 0);
    pid_t pid = program_start(&(struct program){
        .argv = ARGS(test_program("croft-guest"), "init", "--exec", "--", "sh", "-c",
                     "trap 'echo got; exit 9' USR1; echo set; while :; do sleep 0.01; done"),
        .fds = (int[]){-1, out[1]},
        .fd_count = 2});
    close(out[1]);
    CHECK_INT(read(out[0], line, 4), 4);
    CHECK_INT(kill(pid, SIGUSR1), 0);
    CHECK_INT(program_wait(pid), 9);
    CHECK_INT(read(out[0], line, sizeof line), 4);
    CHECK_STR(str_n(line, 4), "got\n");
    close(out[0]);
}

TEST_LIMIT(init_leaks_nothing_in_a_thousand_commands, 120)
{
    struct kit k;
    unsigned before[3] = {0}, after[3];

    kit_open(&k);
    kit_run(&k, "true");
    const pid_t ours[] = {k.pid, kit_server(&k), kit_await_child(k.pid, "forker", 0)};
    kit_await_fd(k.pid, "*/croft-shell-*/c*"); /* the last of what pid 1 keeps of the shell */
    for (int i = 0; i < 3; i++)
        before[i] = kit_count_fds(ours[i]);
    CHECK_STR(kit_run(&k, "(for i in {1..1000}; do (:) & done; wait; echo $i)"), "1000");
    for (int i = 0; i < 40; i++)
        CHECK_STR(json_get_str(kit_observe(&k, "\"command\":\"(sleep 9 & setsid true); echo x\","
                                               "\"is_static\":true,\"blocking\":true"),
                               "content", STR("")),
                  "x");
    kit_run(&k, "true");
    for (int i = 0; i < 3; i++) {
        uint64_t end = clock_mono_ns(&clock_system) + KIT_HANG_NS;
        do /* the last static shell may still be going */
            after[i] = kit_count_fds(ours[i]);
        while (after[i] > before[i] && clock_mono_ns(&clock_system) < end);
        if (after[i] > before[i])
            FAIL("process %d of 3: %u descriptors, %u before", i, after[i], before[i]);
    }
    CHECK_STR(kit_run(&k, "ps -eo ppid=,stat= | grep -c \\\"^ *$PPID Z\\\""), "0");
    kit_close(&k);
}

static int send_run(struct kit *k, const char *args)
{
    own_done(buf) b;
    char body[2000];
    int fd = wire_connect(&k->wire);

    snprintf(body, sizeof body, "{\"action\":{\"action\":\"run\",\"args\":{%s}}}", args);
    buf_init(&b, 1u << 16);
    buf_addf(&b,
             "POST /execute_action HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
             "X-Session-API-Key: hunter2\r\nContent-Length: %zu\r\n\r\n%s",
             strlen(body), body);
    wire_send(fd, buf_str(&b));
    return fd;
}

static void await_file(struct kit *k, const char *name)
{
    char path[300];
    uint64_t end = clock_mono_ns(&clock_system) + KIT_HANG_NS;

    snprintf(path, sizeof path, "%s/%s", k->dir, name);
    while (access(path, F_OK) < 0 && clock_mono_ns(&clock_system) < end)
        sched_yield();
}

static void make_file(struct kit *k, const char *name)
{
    char path[300];

    snprintf(path, sizeof path, "%s/%s", k->dir, name);
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

#define WAITS                                                                                      \
    "touch began; until [ -e go ]; do sleep 0.01; done; echo after; cd /usr; touch "               \
    "$OLDPWD/ended; "                                                                              \
    "(exit 5)"

/* In the middle of a command: it runs on, and whoever asks again gets its end. */
static void check_middle(bool ended_before)
{
    struct kit k;

    kit_open(&k);
    int fd = send_run(&k, "\"command\":\"" WAITS "\",\"blocking\":true");
    await_file(&k, "began");
    if (ended_before) { /* it ends while no server is there, as far as the kernel lets us */
        pid_t server = kit_server(&k);
        CHECK_INT(kill(server, SIGSTOP), 0);
        make_file(&k, "go");
        await_file(&k, "ended");
        CHECK_INT(kill(server, SIGKILL), 0);
        kit_await_child(k.pid, KIT_SERVER, server);
    } else {
        kit_kill_server(&k);
        const struct json *refused = kit_observe(&k, "\"command\":\"echo another\"");
        CHECK_HAS(json_get_str(json_get(json_get(refused, STR("extras")), STR("metadata")),
                               "suffix", STR("")),
                  "NOT executed"); /* and by that the old one is nobody's any more */
        make_file(&k, "go");
    }
    close(fd);
    struct json *o = kit_observe(&k, ended_before ? "\"command\":\"" WAITS "\",\"blocking\":true"
                                                  : "\"command\":\"\",\"blocking\":true");
    const struct json *meta = json_get(json_get(o, STR("extras")), STR("metadata"));
    CHECK_STR(json_get_str(o, "content", STR("")), "after");
    CHECK_INT(json_get_int(meta, "exit_code", -99), 5);
    CHECK_STR(json_get_str(meta, "working_dir", STR("")), "/usr");
    CHECK_STR(kit_run(&k, "echo $?$PWD"), "5/usr");
    kit_close(&k);
}

TEST(init_keeps_a_command_that_runs_while_the_server_dies)
{
    check_middle(false);
}

TEST(init_keeps_the_end_of_a_command_nobody_saw)
{
    check_middle(true);
}

TEST(init_attaches_whoever_asks_again_for_the_running_command)
{
    struct kit k;

    kit_open(&k);
    const char *args = "\"command\":\"" WAITS "\",\"blocking\":true";
    int fd = send_run(&k, args);
    await_file(&k, "began");
    kit_kill_server(&k);
    close(fd);
    fd = send_run(&k, args);
    make_file(&k, "go");
    own_done(buf) got;
    buf_init(&got, 1u << 20);
    wire_read_to_end(fd, &got);
    close(fd);
    CHECK_HAS(buf_str(&got), "\"content\":\"after\"");
    CHECK_HAS(buf_str(&got), "\"exit_code\":5,");
    kit_close(&k);
}

static struct str edit(struct kit *k, const char *command, const char *more)
{
    char text[1000];

    snprintf(text, sizeof text,
             "{\"action\":{\"action\":\"edit\",\"args\":{\"command\":\"%s\",\"path\":\"%s/f\"%s}}}",
             command, k->dir, more);
    return kit_post(k, "/execute_action", text);
}

TEST(init_keeps_shells_with_names_and_the_undo_of_edits)
{
    struct kit k;

    kit_open(&k);
    kit_post(&k, "/croft/v1/shells", "{\"name\":\"two\"}");
    kit_post(&k, "/croft/v1/shells/two/run", "{\"command\":\"cd /usr; x=1\"}");
    edit(&k, "create", ",\"file_text\":\"old\\n\"");
    edit(&k, "str_replace", ",\"old_str\":\"old\",\"new_str\":\"new\"");
    CHECK_STR(kit_run(&k, "cat f"), "new");
    kit_kill_server(&k);
    CHECK_HAS(kit_post(&k, "/croft/v1/shells/two/run", "{\"command\":\"echo $PWD$x\"}"), "/usr1");
    CHECK_HAS(edit(&k, "undo_edit", ""), "undone");
    CHECK_STR(kit_run(&k, "cat f"), "old");
    kit_close(&k);
}

/* It stands still while the server sends and dies, and finds both together. */
TEST(init_keeps_what_a_server_sent_before_it_died_however_late_it_looks)
{
    struct kit k;

    kit_open(&k);
    kit_run(&k, "true"); /* from now on the forker is there */
    pid_t server = kit_server(&k);
    own_fd end = (int)syscall(SYS_pidfd_open, server, 0);
    CHECK_INT(kill(k.pid, SIGSTOP), 0);
    edit(&k, "create", ",\"file_text\":\"old\\n\"");
    edit(&k, "str_replace", ",\"old_str\":\"old\",\"new_str\":\"new\"");
    kit_post(&k, "/croft/v1/shells", "{\"name\":\"two\"}");
    kit_post(&k, "/croft/v1/shells/two/run", "{\"command\":\"cd /usr; x=1\"}");
    CHECK_INT(kill(server, SIGKILL), 0);
    CHECK_INT(poll(&(struct pollfd){end, POLLIN, 0}, 1, -1), 1);
    CHECK_INT(kill(k.pid, SIGCONT), 0);
    kit_await_child(k.pid, KIT_SERVER, server);
    CHECK_HAS(kit_post(&k, "/croft/v1/shells/two/run", "{\"command\":\"echo $PWD$x\"}"), "/usr1");
    CHECK_HAS(edit(&k, "undo_edit", ""), "undone");
    kit_close(&k);
}

TEST(init_leaves_nothing_of_a_static_run_whose_server_died)
{
    struct kit k;

    kit_open(&k);
    kit_run(&k, "true");
    int fd = send_run(&k, "\"command\":\"grep -o '/[a-z/]*/croft-shell-[0-9a-f]*' <<< $CROFT_A > d;"
                          "echo $$ > p.tmp; mv p.tmp p; sleep 1000\","
                          "\"is_static\":true,\"blocking\":true");
    await_file(&k, "p");
    struct str pid = kit_run(&k, "cat p");
    kit_kill_server(&k);
    close(fd);
    CHECK_STR(
        kit_run(&k, arena_cstr(&k.arena, arena_printf(&k.arena,
                                                      "while kill -0 " STR_FMT
                                                      " 2>/dev/null; do sleep 0.01; done; "
                                                      "while [ -e $(cat d) ]; do sleep 0.01; done; "
                                                      "grep -c croft- d; echo gone",
                                                      STR_ARG(pid)))),
        "1\ngone");
    kit_close(&k);
}

TEST(init_gives_the_working_directory_away_once)
{
    struct kit k = {.user = "nobody"};
    char path[300];
    struct stat st;

    struct statfs root, fs;

    if (geteuid() != 0)
        SKIP("only root gives things away");
    if (statfs("/", &root) < 0 || statfs(test_dir(), &fs) < 0 || fs.f_type != root.f_type ||
        fs.f_flags != root.f_flags)
        SKIP("the test's files are on another file system than the root, whose owners stay");
    CHECK_INT(chmod(test_dir(), 0755), 0);
    kit_open_with(&k, ARGS());
    CHECK_STR(kit_run(&k, "id -un; touch theirs"), "nobody");
    snprintf(path, sizeof path, "%s/ours", k.dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    kit_kill_server(&k);
    CHECK_STR(kit_run(&k, "stat -c %U ours theirs"), "root\nnobody");
    CHECK(fstat(fd, &st) == 0 && st.st_uid == 0);
    close(fd);
    kit_close(&k);
}

/* A file or directory the process has open, whose path holds word; fifos are not held. */
static int open_same(pid_t pid, const char *word)
{
    char link[64], path[300];
    struct stat st;

    for (int i = 3; i < 64; i++) {
        snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)pid, i);
        ssize_t n = readlink(link, path, sizeof path - 1);
        path[n < 0 ? 0 : n] = '\0';
        if (strstr(path, word) && (stat(path, &st) < 0 || !S_ISFIFO(st.st_mode)))
            return open(path, O_RDONLY | O_CLOEXEC);
    }
    FAIL("%d has nothing like %s open", (int)pid, word);
}

TEST(init_holds_what_a_server_left_so_that_no_other_sweeps_it)
{
    static const char *const words[] = {"/croft-undo-", "/croft-shell-"};
    struct kit k;
    int fds[2];

    kit_open(&k);
    kit_run(&k, "true");
    edit(&k, "create", ",\"file_text\":\"old\\n\"");
    pid_t server = kit_server(&k), init = kit_init(&k);
    for (int i = 0; i < 2; i++)
        fds[i] = open_same(server, words[i]);
    CHECK_INT(kill(init, SIGSTOP), 0);
    CHECK_INT(kill(server, SIGKILL), 0);
    own_fd left = (int)syscall(SYS_pidfd_open, server, 0);
    CHECK(left >= 0);
    CHECK_OK(fd_wait(left, POLLIN, 30000));
    for (int i = 0; i < 2; i++) /* nobody but pid 1 is there now */
        CHECK(flock(fds[i], LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK);
    CHECK_INT(kill(init, SIGCONT), 0);
    CHECK_STR(kit_run(&k, "echo on"), "on");
    kit_close(&k);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(flock(fds[i], LOCK_EX | LOCK_NB), 0);
        close(fds[i]);
    }
}
