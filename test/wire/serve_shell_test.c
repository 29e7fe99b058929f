// SPDX-License-Identifier: Apache-2.0
/* serve_shell_test.c — croft shell and croft exec on a terminal, by way of the server. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/program.h"
#include "test/pty.h"
#include "test/serve_kit.h"
#include "test/test.h"

static void open_demo(struct serve *s)
{
    serve_open(s);
    CHECK_INT(chdir(test_dir()), 0); /* what the lines write is written there */
    setenv("CROFT_HOST", serve_text(s, "unix:%s/server/api.sock", s->state), 1);
    CHECK(serve_start(s, "demo", ""));
}

static void check(const char *line, int code, const char *want)
{
    own_done(buf) out;

    buf_init(&out, 1u << 20);
    setenv("CROFT", test_program("croft"), 1);
    CHECK_INT(program_run(ARGS("bash", "-c", line), &out), code);
    CHECK_STR(buf_str(&out), want);
}

/* The prompt is what only the shell prints. */
TEST_LIMIT(croft_shell_is_a_shell_with_jobs_and_keys_that_signal, 90)
{
    struct serve s = {0};
    struct pty p;

    open_demo(&s);
    setenv("TERM", "xterm-256color", 1);
    pty_start(&p, ARGS(test_program("croft"), "shell", "demo"), 33, 77);
    pty_type(&p, "PS1='rea''dy> '\n");
    pty_await(&p, "ready> ");
    pty_type(&p, "echo $((40 + 2)) $TERM $(stty size)\n");
    pty_await(&p, "42 xterm-256color 33 77\r\n");
    pty_type(&p, "sh -c 'echo u\"\"p; exec sleep 1000'\n");
    pty_await(&p, "up\r\n");
    pty_type(&p, "\x03");
    pty_await(&p, "ready> ");
    pty_type(&p, "echo was $?\n");
    pty_await(&p, "was 130\r\n");
    pty_type(&p, "sed -u 's/^/</'\nheard\n");
    pty_await(&p, "<heard\r\n");
    pty_type(&p, "\x1a");
    pty_await(&p, "Stopped");
    pty_type(&p, "kill %1\n");
    pty_type(&p, "python3 -c 'import signal as s, os; "
                 "s.pthread_sigmask(s.SIG_BLOCK, [s.SIGWINCH]); print(\"u\" \"p\", flush=True); "
                 "s.sigwait([s.SIGWINCH]); print(*os.get_terminal_size())'\n");
    pty_await(&p, "up\r\n");
    pty_resize(&p, 44, 99);
    pty_await(&p, "99 44\r\n");
    pty_type(&p, "exit 5\n");
    CHECK_INT(pty_end(&p), 5);
    CHECK(str_find(buf_str(&p.seen), STR("no job control")) < 0);
    buf_done(&p.seen);
    serve_close(&s);
}

TEST_LIMIT(croft_exec_passes_on_pipes_and_files_to_their_end, 90)
{
    struct serve s = {0};

    open_demo(&s);
    check("printf 'exit $((3 + 4))' | \"$CROFT\" shell demo >/dev/null", 7, "");
    check("printf 'one\ntwo\n' | \"$CROFT\" exec --interactive demo -- wc -l | tail -1", 0, "2\n");
    check("printf 'one\ntwo' > f; \"$CROFT\" exec --interactive demo -- wc -c < f | grep -o 7", 0,
          "7\n");
    check("\"$CROFT\" exec --interactive demo -- cat </dev/null", 0, "");
    check("\"$CROFT\" exec demo -- bash -ic 'echo $((1 + 1)); exit 3' 2>&1", 3, "2\nexit\n");
    serve_close(&s);
}

/* Who ends the command here ends what it runs there. */
TEST_LIMIT(croft_exec_that_is_ended_ends_what_it_runs, 90)
{
    struct serve s = {0};
    struct pty p;

    open_demo(&s);
    pty_start(
        &p,
        ARGS(test_program("croft"), "exec", "demo", "--", "sh", "-c", "echo up; exec sleep 12345"),
        24, 80);
    pty_await(&p, "up\r\n");
    CHECK_INT(kill(p.pid, SIGTERM), 0);
    CHECK_INT(pty_end(&p), 128 + SIGTERM);
    buf_done(&p.seen);
    check("\"$CROFT\" exec demo -- sh -c 'cat /proc/[0-9]*/cmdline | tr \"\\0\" \" \" | grep -c "
          "\"sleep 1234[5]\"'",
          1, "0\n");
    serve_close(&s);
}

TEST_LIMIT(croft_exec_that_has_ended_leaves_what_is_in_the_background, 90)
{
    struct serve s = {0};

    open_demo(&s);
    check("\"$CROFT\" exec demo -- sh -c 'nohup sleep 4321 >/dev/null 2>&1 & echo $! > /tmp/p; "
          "(trap \"\" HUP; exec sleep 4321) & echo $! >> /tmp/p; sleep 4321 & echo $! >> /tmp/p; "
          "echo ok'",
          0, "ok\n");
    check("\"$CROFT\" exec demo -- sh -c 'kill -0 $(cat /tmp/p) && wc -l < /tmp/p'", 0, "3\n");
    serve_close(&s);
}
