// SPDX-License-Identifier: Apache-2.0
/* start_test.c — how the action server starts, as whom, and how it ends: the real programs.
 *
 * Users are made in an /etc and /home that only the test's mount namespace has. */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "test/aes.h"
#include "test/program.h"
#include "test/test.h"

#define FOREIGN                                                                                    \
    "/openhands/micromamba/bin/micromamba", "run", "-n", "openhands", "poetry", "run", "python",   \
        "-u", "-m", "openhands.runtime.action_execution_server"

static void put(const char *name, const char *text, mode_t mode)
{
    char path[400];

    snprintf(path, sizeof path, "%s/%s", test_dir(), name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    CHECK(fd >= 0);
    CHECK_OK(fd_write_all(fd, str_of(text)));
    close(fd);
}

static void bind_over(const char *name, const char *place)
{
    char path[400];

    snprintf(path, sizeof path, "%s/%s", test_dir(), name);
    CHECK_INT(mount(path, place, NULL, MS_BIND, NULL), 0);
}

static void private_users(void)
{
    char path[400];

    if (geteuid() != 0)
        SKIP("only root makes users");
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", test_dir(),
                 ((const char *[]){"etc", "homes", "ws"})[i]);
        CHECK(mkdir(path, 0755) == 0 && chmod(path, 0755) == 0);
    }
    CHECK_INT(chmod(test_dir(), 0755), 0);
    put("etc/passwd", "root:x:0:0:root:/root:/bin/bash\nnode:x:1000:1000::/home/node:/bin/sh\n",
        0644);
    put("etc/group", "root:x:0:\nsudo:x:27:\nnode:x:1000:\n", 0644);
    put("etc/shadow", "root:*:19000:0:99999:7:::\n", 0600);
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        SKIP("no mount namespace of our own here");
    bind_over("etc", "/etc");
    bind_over("homes", "/home");
}

/* Starts argv with more behind it, waits for its byte. */
static void open_as(struct aes *a, const char *const *argv, const char *const *env)
{
    int ready[2];
    char byte;

    *a = (struct aes){.program = argv[0]};
    arena_init(&a->arena, 16u << 20);
    snprintf(a->dir, sizeof a->dir, "%s/ws", test_dir());
    CHECK(pipe2(ready, O_CLOEXEC) == 0);
    wire_at(&a->wire, aes_text(a, "unix:%s/sock", test_dir()));
    a->wire.pid = program_start(&(struct program){
        .argv = argv, .env = env, .fds = (int[]){-1, -1, -1, -1, ready[1]}, .fd_count = 5});
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1)
        FAIL("%s ended before it listened", argv[0]);
    close(ready[0]);
}

static struct str run(struct aes *a, const char *command)
{
    return json_get_str(aes_act(a, "run", aes_text(a, "'command':'%s'", command)), "content",
                        STR("(none)"));
}

AES_TEST(start_by_the_foreign_line_makes_the_user_and_is_it_everywhere)
{
    struct aes a;
    char sock[300], url[300], dir[300];

    private_users();
    snprintf(sock, sizeof sock, "unix:%s/sock", test_dir());
    snprintf(url, sizeof url, "%s/url", test_dir());
    snprintf(dir, sizeof dir, "%s/ws", test_dir());
    open_as(&a,
            ARGS(test_program(program), FOREIGN, sock, "--working-dir", dir, "--plugins",
                 "agent_skills", "jupyter", "--username", "openhands", "--user-id", "1000",
                 "--no-enable-browser", "--ready-fd", "4", "--viewer-url", url),
            ARGS("PATH=/usr/bin:/bin", "HOME=/root", "SESSION_API_KEY=", "LOG_LEVEL=error"));
    CHECK_STR(
        run(&a, "id -un; id -u; id -Gn; echo $HOME $USER $LOGNAME $SHELL; pwd"),
        aes_text(&a,
                 "openhands\n1001\nroot sudo\n/home/openhands openhands openhands /bin/bash\n%s",
                 dir));
    CHECK_STR(run(&a, "touch ~/.bashrc made && stat -c %U made ."), "openhands\nopenhands");
    aes_act(&a, "write", "'path':'sub/w','content':'x'");
    CHECK_STR(run(&a, "stat -c %u:%g sub sub/w"), "1001:1001\n1001:1001");
    CHECK_STR(
        json_get_str(aes_act(&a, "run", "'command':'id -un','is_static':true"), "content", STR("")),
        "openhands");
    struct str cell =
        json_get_str(aes_act(&a, "run_ipython",
                             "'code':'import os; print(os.getuid(), os.environ[\\'USER\\'])'"),
                     "content", STR(""));
    if (!str_starts(cell, STR("1001 openhands\n")))
        FAIL(STR_FMT, STR_ARG(cell));
    CHECK_STR(run(&a, "cat /etc/shadow 2>&1 | tail -1"), "cat: /etc/shadow: Permission denied");
    CHECK_INT(wire_stop(&a.wire), 0);
    arena_done(&a.arena);
}

AES_TEST(start_variables_reach_shell_cells_and_later_shells)
{
    struct aes a;

    aes_open_plain(&a, program);
    /* what a client sends for add_env_vars */
    aes_act(&a, "run_ipython", "'code':'import os\\nos.environ[\\'MY_KEY\\'] = \\'a b\\'\\n'");
    run(&a, "export MY_KEY=\\\"a b\\\";");
    run(&a, "touch ~/.bashrc; grep -q \\\"^export MY_KEY=\\\" ~/.bashrc || echo \\\"export "
            "MY_KEY=\\\\\\\"a b\\\\\\\"\\\" >> ~/.bashrc;");
    CHECK_STR(run(&a, "echo $MY_KEY"), "a b");
    CHECK_STR(json_get_str(aes_act(&a, "run", "'command':'echo $MY_KEY','is_static':true"),
                           "content", STR("")),
              "a b");
    CHECK_HAS(json_get_str(aes_act(&a, "run_ipython", "'code':'print(os.environ[\\'MY_KEY\\'])'"),
                           "content", STR("")),
              "a b\n[Jupyter");
    aes_close(&a);
}

AES_TEST(start_makes_git_print_without_a_pager)
{
    struct aes a;

    aes_open_plain(&a, program);
    CHECK_STR(run(&a, "type git"), "git is aliased to `git --no-pager'");
    run(&a, "kill -9 $$");
    CHECK_STR(run(&a, "type git"), "git is aliased to `git --no-pager'"); /* in the next bash too */
    aes_close(&a);
}

AES_TEST(start_hides_the_key_from_commands)
{
    struct aes a;
    struct aes_config c = {.program = program, .key = "topsecret"};
    own_done(buf) environ;
    char path[64];

    aes_open(&a, &c);
    snprintf(path, sizeof path, "/proc/%d/environ", (int)a.wire.pid);
    buf_init(&environ, 1u << 20);
    CHECK_OK(fd_read_file(path, &environ));
    CHECK(str_find(buf_str(&environ), STR("topsecret")) < 0);
    struct aes_answer got =
        aes_ask(&a, "POST", "/execute_action", "X-Session-API-Key: topsecret\r\n",
                STR("{\"action\":{\"action\":\"run\",\"args\":{\"command\":\"env | grep -c -e "
                    "topsecre[t] -e SESSION_API_KEY\",\"blocking\":true}}}"));
    CHECK_INT(got.status, 200);
    CHECK_STR(json_get_str(aes_json(&a, got.body), "content", STR("")), "0");
    aes_close(&a);
}

static int fails(const char *const *argv, struct buf *said)
{
    buf_reset(said);
    return program_run(argv, said);
}

AES_TEST(start_refuses_bad_arguments_with_their_names)
{
    static const struct {
        const char *args[6];
        int code;
        const char *part;
    } rows[] = {
        {{NULL}, 2, "name the port or address"},
        {{"70000"}, 2, "port 70000 is over 65535"},
        {{"127.0.0.1:0", "x"}, 2, "'x' is not wanted here"},
        {{"127.0.0.1:0", "--user-id", "me"}, 2, "--user-id 'me': a user's number is wanted"},
        {{"127.0.0.1:0", "--username"}, 2, "--username needs a value"},
        {{"127.0.0.1:0", "--colour", "red"}, 2, "unknown option '--colour'; --help lists them"},
        {{"127.0.0.1:0", "--working-dir", "here"}, 2, "--working-dir 'here' must be an absolute"},
        {{"127.0.0.1:0", "--working-dir=here"}, 2, "--working-dir 'here' must be an absolute"},
        {{"127.0.0.1:0", "--working-dir", "/dev/null/x"}, 3, "--working-dir '/dev/null/x': Not a"},
        {{"127.0.0.1:0", "--ready-fd", "x"}, 2, "--ready-fd"},
        {{"127.0.0.1:0", "--no-enable-browser", "--browsergym-eval-env", "b"},
         2,
         "Browser environment is not enabled in config, but browsergym_eval_env is set"},
        {{"0.0.0.0:0", "--viewer-url", ""},
         2,
         "can be reached from elsewhere: set SESSION_API_KEY"},
        {{"[::]:0", "--viewer-url", ""}, 2, "can be reached from elsewhere"},
        {{"unix:/nowhere/at/all"}, 3, "/nowhere/at/all"},
        {{"fd:77"}, 3, "descriptor 77"},
    };
    own_done(buf) said;

    buf_init(&said, 1u << 20);
    unsetenv("SESSION_API_KEY");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *argv[10] = {test_program(program), "action-server"};
        for (size_t k = 0; k < 6 && rows[i].args[k]; k++)
            argv[2 + k] = rows[i].args[k];
        int code = fails(argv, &said);
        if (code != rows[i].code || str_find(buf_str(&said), str_of(rows[i].part)) < 0)
            FAIL("row %zu: code %d, " STR_FMT, i, code, STR_ARG(buf_str(&said)));
    }
}

AES_TEST(start_foreign_line_is_not_looked_for_behind_a_command_of_ours)
{
    own_done(buf) said;

    buf_init(&said, 1u << 20);
    CHECK_INT(fails(ARGS(test_program(program), FOREIGN, "70000"), &said), 2);
    CHECK_HAS(buf_str(&said), "port 70000 is over 65535");
    if (str_eq(str_of(program), STR("croft"))) {
        fails(ARGS(test_program(program), "version", "-m",
                   "openhands.runtime.action_execution_server", "70000"),
              &said);
        CHECK(str_find(buf_str(&said), STR("port 70000")) < 0);
    }
}

AES_TEST(start_ends_with_nothing_left_behind)
{
    struct aes a;
    char byte;

    aes_open_plain(&a, program);
    CHECK_INT(mkfifo(aes_path(&a, "held"), 0600), 0);
    int held = open(aes_path(&a, "held"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    aes_act(&a, "run_ipython",
            "'code':'import subprocess; f = open(\\'held\\', \\'w\\'); "
            "p = subprocess.Popen([\\'sleep\\', \\'600\\'], stdout=f)'");
    run(&a, "exec 9> held; sleep 600 & sleep 601 & disown; true");
    CHECK(fcntl(held, F_SETFL, 0) == 0);
    aes_close(&a);                      /* SIGTERM */
    CHECK_INT(read(held, &byte, 1), 0); /* the last process that could write is gone */
    close(held);
}

static struct str viewer_url(struct aes *a, const char *path)
{
    own_done(buf) url;

    buf_init(&url, 256);
    CHECK_OK(fd_read_file(path, &url));
    return arena_copy(&a->arena, buf_str(&url));
}

AES_TEST(start_opens_the_file_viewer_for_this_machine_only)
{
    struct aes a;
    struct wire viewer = {0};
    own_done(buf) got;
    char file[300];

    snprintf(file, sizeof file, "%s/url", test_dir());
    struct aes_config c = {.program = program, .args = ARGS("--viewer-url", file)};
    aes_open(&a, &c);
    struct str url = viewer_url(&a, file);
    CHECK(str_starts(url, STR("http://localhost:")));
    wire_at(&viewer, aes_text(&a, "http://127.0.0.1:" STR_FMT, STR_ARG(str_from(url, 17))));
    buf_init(&got, 1u << 20);
    wire_exchange(&viewer, STR("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
                  &got);
    CHECK_HAS(buf_str(&got), "{\"status\":\"File viewer server is running\"}");
    buf_reset(&got);
    wire_exchange(&viewer, STR("GET / HTTP/1.1\r\nHost: evil.com\r\nConnection: close\r\n\r\n"),
                  &got);
    CHECK_HAS(buf_str(&got), "HTTP/1.1 403 ");
    aes_put(&a, "a.png", STR("\x89PNG"));
    const char *page =
        aes_text(&a, "GET /view?path=%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                 aes_path(&a, "a.png"));
    buf_reset(&got);
    wire_exchange(&viewer, str_of(page), &got);
    CHECK_HAS(buf_str(&got), "<title>File Viewer - a.png</title>");
    aes_close(&a);
    CHECK(access(file, F_OK) < 0);
}

AES_TEST(start_without_a_key_answers_no_foreign_page)
{
    static const struct {
        const char *headers;
        int status;
    } rows[] = {
        {"", 200}, {"Origin: http://evil.com\r\n", 403}, {"Origin: http://[::1]:3\r\n", 200}};
    struct aes a;
    struct aes_config c = {.program = program, .tcp = true};

    aes_open(&a, &c);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK_INT(aes_ask(&a, "GET", "/alive", rows[i].headers, STR("")).status, rows[i].status);
    aes_close(&a);
}

AES_TEST(start_tells_the_memory_of_the_tree_when_asked)
{
    own_done(buf) said;
    char page[4096], sock[300];
    int log[2];

    CHECK(pipe2(log, O_CLOEXEC) == 0);
    snprintf(sock, sizeof sock, "unix:%s/sock", test_dir());
    pid_t pid = program_start(&(struct program){
        .argv = ARGS(test_program(program), "action-server", sock, "--viewer-url", ""),
        .env = ARGS("RUNTIME_MEMORY_MONITOR=yes", "RUNTIME_MAX_MEMORY_GB=4"),
        .fds = (int[]){-1, -1, log[1]},
        .fd_count = 3});
    close(log[1]);
    buf_init(&said, 1u << 20);
    for (int seen = 0; seen < 2;) {
        ssize_t n = read(log[0], page, sizeof page);
        CHECK(n > 0);
        buf_add_mem(&said, page, (size_t)n);
        seen += str_find(str_n(page, (size_t)n), STR("[Memory usage]")) >= 0;
    }
    CHECK_HAS(buf_str(&said), "\"gb\":4");
    CHECK_HAS(buf_str(&said), "\"processes\":1");
    CHECK(str_find(buf_str(&said), STR("\"kb\":0,")) < 0);
    CHECK_INT(program_stop(pid), 0);
    close(log[0]);
}
