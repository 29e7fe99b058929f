// SPDX-License-Identifier: Apache-2.0
/* run_tty_test.c — croft run on a terminal: keys that signal, jobs, a size that changes. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "test/native/kit.h"
#include "test/program.h"
#include "test/pty.h"
#include "test/test.h"

/* Says when it can be interrupted: a shell that is about to fork may still forget a key. */
#define SLEEP "sh -c 'echo u\"\"p; exec sleep 1000'"
#define RUN   test_program("croft"), "run", "--root", "/", "--bare", "--"

static void own_state(void)
{
    char state[4200];

    kit_need_root();
    snprintf(state, sizeof state, "%s/state", test_dir());
    setenv("CROFT_SERVER_STATE_DIR", state, 1);
}

/* A shell with jobs, as one on a terminal is. The prompt is what only the shell prints. */
static void use_shell(struct pty *p)
{
    pty_type(p, "PS1='rea''dy> '\n");
    pty_await(p, "ready> ");
    pty_type(p, SLEEP "\n");
    pty_await(p, "up\r\n");
    pty_type(p, "\x03");
    pty_await(p, "^C");
    pty_await(p, "ready> ");
    pty_type(p, "echo $? $((40 + 2))\n");
    pty_await(p, "130 42\r\n");
    pty_type(p, "sed -u 's/^/</'\nheard\n");
    pty_await(p, "<heard\r\n");
    pty_type(p, "\x1a");
    pty_await(p, "Stopped");
    pty_await(p, "ready> ");
    pty_type(p, "fg\nagain\n");
    pty_await(p, "<again\r\n");
    pty_type(p, "\x04");
    pty_type(p, "trap 'stty size' WINCH; echo trap''ped\n");
    pty_await(p, "trapped\r\n");
    pty_resize(p, 44, 99);
    pty_type(p, "\n"); /* bash runs traps when it has read a line */
    pty_await(p, "44 99\r\n");
    pty_type(p, "echo on the te''rminal >/dev/tty; exit 5\n");
    pty_await(p, "on the terminal\r\n");
    CHECK_INT(pty_end(p), 5);
    CHECK(str_find(buf_str(&p->seen), STR("no job control")) < 0);
    buf_done(&p->seen);
}

TEST_LIMIT(croft_run_on_a_terminal_is_a_shell_with_jobs_and_keys_that_signal, 60)
{
    struct pty p;

    own_state();
    pty_start(&p, ARGS(RUN, "bash", "--norc", "-i"), 33, 77);
    use_shell(&p);
    kit_settle();
    kit_check_empty("state/box");
}

TEST_LIMIT(an_ordinary_user_has_jobs_and_keys_that_signal_too, 120)
{
    struct pty p;

    kit_be_nobody();
    pty_start(&p,
              ARGS("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--",
                   test_program("croft"), "run", "--discard", "--", "bash", "--norc", "-i"),
              33, 77);
    use_shell(&p);
    kit_settle();
    kit_check_empty("state/box");
}

/* Without a shell between: the key reaches the command and all it waits for. */
TEST_LIMIT(croft_run_is_ended_by_the_interrupt_key, 60)
{
    static const char script[] = SLEEP "; echo not killed";
    struct pty p;

    own_state();
    pty_start(&p, ARGS(RUN, "bash", "-c", script), 24, 80);
    pty_await(&p, "up\r\n");
    pty_type(&p, "\x03");
    CHECK_INT(pty_end(&p), 128 + SIGINT);
    CHECK(str_find(buf_str(&p.seen), STR("not killed")) < 0);
    buf_done(&p.seen);
}

TEST_LIMIT(croft_run_puts_the_terminal_back_as_it_was, 60)
{
    struct pty p;
    char line[8400];

    own_state();
    snprintf(line, sizeof line,
             "stty -g; %s run --root / --bare -- sh -c 'stty raw -echo; true'; stty -g; exit 3",
             test_program("croft"));
    pty_start(&p, ARGS("sh", "-c", line), 24, 80);
    CHECK_INT(pty_end(&p), 3);
    struct str all = buf_str(&p.seen), first, second;
    str_cut(&all, '\n', &first);
    str_cut(&all, '\n', &second);
    CHECK(first.len > 20 && str_eq(first, second));
    buf_done(&p.seen);
}

/* Nobody inside reads: what was typed must not keep the interrupt from coming through, nor output
 * from coming back. */
TEST_LIMIT(croft_run_hears_the_interrupt_behind_input_nobody_reads, 60)
{
    static const char script[] = "import signal as s, tty\ntty.setcbreak(0)\n"
                                 "s.pthread_sigmask(s.SIG_BLOCK, [s.SIGINT])\n"
                                 "print('up', flush=True)\ns.sigwait([s.SIGINT])\n"
                                 "print('interrupted')\nexit(6)";
    char much[4096];
    struct pty p;

    own_state();
    memset(much, 'x', sizeof much);
    pty_start(&p, ARGS(RUN, "python3", "-c", script), 24, 80);
    pty_await(&p, "up\r\n");
    CHECK_OK(fd_set_nonblocking(p.master));
    struct pollfd room = {.fd = p.master, .events = POLLOUT};
    while (poll(&room, 1, 300) > 0) /* until croft takes no more */
        CHECK(write(p.master, much, sizeof much) > 0 || errno == EAGAIN);
    CHECK_INT(fcntl(p.master, F_SETFL, O_RDWR), 0);
    CHECK_INT(kill(p.pid, SIGINT), 0);
    pty_await(&p, "interrupted\r\n");
    CHECK_INT(pty_end(&p), 6);
    buf_done(&p.seen);
}

static int wait_for(pid_t pid, int option)
{
    int status = 0;

    CHECK_INT(waitpid(pid, &status, option), pid);
    return status;
}

/* No terminal inside: croft gets the signals of the keys, and passes them on. */
static pid_t start_piped(const char *script, int *ret_in, int *ret_out)
{
    int in[2], out[2];
    char byte;

    own_state();
    CHECK_INT(pipe2(in, O_CLOEXEC), 0);
    CHECK_INT(pipe2(out, O_CLOEXEC), 0);
    pid_t pid = program_start(&(struct program){
        .argv = ARGS(RUN, "bash", "-c", script), .fds = (int[]){in[0], out[1], -1}, .fd_count = 3});
    close(in[0]);
    close(out[1]);
    CHECK_INT(read(out[0], &byte, 1), 1);
    CHECK_INT(byte, 'u');
    *ret_in = in[1];
    *ret_out = out[0];
    return pid;
}

TEST_LIMIT(croft_run_without_a_terminal_interrupts_all_the_command_waits_for, 60)
{
    own_fd in = -1, out = -1;
    char rest[2];
    pid_t pid = start_piped(SLEEP "; echo not killed", &in, &out);

    CHECK_INT(read(out, rest, 2), 2);
    CHECK_INT(kill(pid, SIGINT), 0);
    CHECK_INT(program_wait(pid), 128 + SIGINT);
    CHECK_INT(read(out, rest, 1), 0);
}

TEST_LIMIT(croft_run_stops_and_goes_on_with_what_it_runs, 60)
{
    /* who tells is in a group of its own, and not stopped */
    static const char script[] =
        "exec python3 -c 'import os, signal as s\ns.pthread_sigmask(s.SIG_BLOCK, [s.SIGCONT])\n"
        "if os.fork() == 0:\n"
        " os.setpgid(0, 0)\n"
        " os.write(1, b\"u\")\n"
        " while open(f\"/proc/{os.getppid()}/stat\").read().split()[2] != \"T\":\n"
        "  os.sched_yield()\n"
        " os.write(1, b\"t\")\n"
        " os._exit(0)\n"
        "s.sigwait([s.SIGCONT])\n"
        "os.write(1, b\"c\")\n"
        "os.read(0, 1)\n" /* who is seen to go on must not have ended */
        "exit(4)'";
    own_fd in = -1, out = -1;
    char byte;
    pid_t pid = start_piped(script, &in, &out);

    CHECK_INT(kill(pid, SIGTSTP), 0);
    CHECK(WIFSTOPPED(wait_for(pid, WUNTRACED)));
    CHECK_INT(read(out, &byte, 1), 1);
    CHECK_INT(byte, 't');
    CHECK_INT(kill(pid, SIGCONT), 0);
    CHECK(WIFCONTINUED(wait_for(pid, WCONTINUED)));
    CHECK_INT(read(out, &byte, 1), 1);
    CHECK_INT(byte, 'c');
    own_close_p(&in);
    in = -1;
    CHECK_INT(program_wait(pid), 4);
}

/* Whoever looks at nothing can still end it: the command fills the terminal, and is not read. */
TEST_LIMIT(croft_run_ends_at_a_signal_while_nobody_reads_its_terminal, 60)
{
    struct pty p;

    own_state();
    pty_start(&p, ARGS(RUN, "bash", "-c", "echo u''p; exec cat /dev/zero"), 24, 80);
    pty_await(&p, "up\r\n");
    CHECK_INT(kill(p.pid, SIGTERM), 0);
    CHECK_INT(program_wait(p.pid), 128 + SIGTERM);
    close(p.master);
    buf_done(&p.seen);
    kit_settle();
    kit_check_empty("state/box");
}

TEST_LIMIT(croft_run_puts_back_what_was_set_on_a_terminal_of_ours_it_gave_away, 60)
{
    struct pty p;
    char line[8400];

    own_state();
    snprintf(
        line, sizeof line,
        "stty -g; %s run --root / --bare --no-tty -- python3 -c 'import os, tty; tty.setraw(0);"
        "os.set_blocking(0, False)'; stty -g; grep flags /proc/self/fdinfo/0; exit 3",
        test_program("croft"));
    pty_start(&p, ARGS("sh", "-c", line), 24, 80);
    CHECK_INT(pty_end(&p), 3);
    struct str all = buf_str(&p.seen), first, second;
    str_cut(&all, '\n', &first);
    str_cut(&all, '\n', &second);
    CHECK(first.len > 20 && str_eq(first, second));
    CHECK_HAS(all, "02\r\n"); /* O_RDWR; a large file or not */
    CHECK(str_find(all, STR("4002\r\n")) < 0);
    buf_done(&p.seen);
}

static void in_a_line(const char *reader, struct pty *p, struct str *ret_first,
                      struct str *ret_second)
{
    char line[1500];

    own_state();
    snprintf(line, sizeof line,
             "stty -g; %s run --root / --bare -- python3 -c 'import tty; tty.setraw(0)' | %s; "
             "stty -g; stty sane; exit 3",
             test_program("croft"), reader);
    pty_start(p, ARGS("sh", "-c", line), 24, 80);
    CHECK_INT(pty_end(p), 3);
    struct str all = buf_str(&p->seen);
    str_cut(&all, '\n', ret_first);
    str_cut(&all, '\n', ret_second);
    CHECK(ret_first->len > 20 && ret_second->len > 20);
}

TEST_LIMIT(croft_run_in_a_line_of_commands_puts_terminals_back_unless_a_pager_has_them, 60)
{
    struct pty p;
    struct str first, second;

    in_a_line("cat", &p, &first, &second);
    CHECK(str_eq(first, second));
    buf_done(&p.seen);
    /* as less does: a terminal of its own, with modes of its own, until the last byte is read */
    in_a_line("sh -c 'exec 3</dev/tty; stty -icanon min 7 <&3; cat; stty -g <&3; stty icanon min "
              "1 <&3'",
              &p, &first, &second);
    CHECK(!str_eq(first, second));
    buf_done(&p.seen);
}

TEST_LIMIT(croft_run_goes_on_with_a_command_that_asked_to_be_traced, 60)
{
    static const char script[] = "import ctypes, os, signal as s\n"
                                 "s.signal(s.SIGUSR1, lambda *a: print('handled', flush=True))\n"
                                 "ctypes.CDLL(None).ptrace(0, 0, 0, 0)\n"
                                 "os.kill(os.getpid(), s.SIGUSR1)\nprint('alive')\nexit(7)";
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    CHECK_INT(kit_run(ARGS("--discard"), ARGS("python3", "-c", script), &out), 7);
    CHECK_STR(buf_str(&out), "handled\nalive\n");
}
