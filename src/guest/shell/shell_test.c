// SPDX-License-Identifier: Apache-2.0
/* Rows of the contract's table (section 3.9), by number. */
#include "test/test.h"

#include "guest/shell/shell_kit.h"

#include <fcntl.h>
#include <pwd.h>

TEST(shell_completes_simple_commands) /* 1 2 3 4 10 58 59 60 61 62 72 73 */
{
    struct kit k;

    kit_open_with(&k, (struct shell_config){.state_dir = "/dev/shm"});
    kit_expect(&k, "echo 'hello world'", "hello world", 0);
    CHECK_STR(k.suffix, "\n[The command completed with exit code 0.]");
    CHECK_INT(k.pid, -1);
    CHECK_STR(k.working_dir, k.home);
    CHECK_STR(k.username, getpwuid(geteuid())->pw_name);
    kit_run(&k, "nonexistent_command");
    CHECK_INT(k.exit_code, 127);
    CHECK_HAS(k.content, "nonexistent_command: command not found");
    kit_expect(&k, "echo $?", "127", 0);
    kit_expect(&k, "echo \"first\" && echo \"second\" && echo \"third\"", "first\nsecond\nthird",
               0);
    kit_run(&k, "mkdir empty && cd empty");
    kit_expect(&k, "ls -l", "total 0", 0);
    kit_expect(&k, "true", "", 0);
    kit_expect(&k, "(exit 7)", "", 7);
    kit_expect(&k, "bash -c 'exit 42'", "", 42);
    kit_expect(&k, "sh -c 'kill -TERM $$'", "Terminated", 143);
    kit_run(&k, "ulimit -c 0; sh -c 'kill -SEGV $$'");
    CHECK_HAS(k.content, "Segmentation fault");
    CHECK_INT(k.exit_code, 139);
    kit_expect(&k, "cd /tmp && false", "", 1);
    CHECK_STR(k.working_dir, "/tmp");
    kit_expect(&k, "ls nofile", "ls: cannot access 'nofile': No such file or directory", 2);
    kit_expect(&k, "! true", "", 1);
    kit_expect(&k, "   echo   spaced   ", "spaced", 0);
    CHECK_STR(k.command, "echo   spaced");
    kit_expect(&k, "echo hi # comment", "hi", 0);
    kit_close(&k);
}

TEST(shell_keeps_its_state_between_commands) /* 5 6 7 8 9 11 12 13 75 81 83 */
{
    struct kit k;
    char want[400];

    kit_open(&k);
    kit_expect(&k, "mkdir test", "", 0);
    kit_run(&k, "ls -l");
    CHECK_HAS(k.content, getpwuid(geteuid())->pw_name);
    kit_expect(&k, "touch test/foo.txt", "", 0);
    kit_run(&k, "ls -l test");
    CHECK_HAS(k.content, "foo.txt");
    kit_run(&k, "cd test");
    snprintf(want, sizeof want, "%s/test", k.home);
    CHECK_STR(k.working_dir, want);
    CHECK_STR(shell_cwd(k.shell), want);
    kit_expect(&k, "pwd", want, 0);
    kit_expect(&k, "cd ~ && pwd", k.home, 0);
    kit_expect(&k, "export FOO='a b'", "", 0);
    kit_expect(&k, "echo $FOO", "a b", 0);
    kit_expect(&k, "f() { echo f:$1; }", "", 0);
    kit_expect(&k, "f x", "f:x", 0);
    kit_expect(&k, "alias ll='ls -la'", "", 0);
    kit_expect(&k, "type ll", "ll is aliased to `ls -la'", 0);
    kit_expect(&k, "(cd /tmp; pwd)", "/tmp", 0);
    kit_expect(&k, "pwd", k.home, 0);
    kit_expect(&k, "export QUUX=\"abc\\\"def\";", "", 0);
    kit_expect(&k, "echo $QUUX", "abc\"def", 0);
    kit_close(&k);
}

TEST(shell_runs_text_of_many_lines_as_one) /* 14 15 16 17 18 21 22 23 24 71 74 79 */
{
    struct kit k;
    char longer[2000] = "echo ";

    kit_open(&k);
    kit_expect(&k, "echo \\\n -e \"foo\"", "foo", 0);
    kit_expect(&k, "echo -e \"hello\nworld\"", "hello\nworld", 0);
    kit_expect(&k, "echo -e \"a\\n\\n\\nz\"", "a\n\n\nz", 0);
    kit_expect(&k,
               "n=0; while [ $n -lt 3 ]; do n=$((n+1)); done; echo \"Got $n heads in a row after 3 "
               "flips!\"",
               "Got 3 heads in a row after 3 flips!", 0);
    kit_expect(&k,
               "for i in 1 2; do\n  for j in a b; do\n    touch \"$i$j\"\n  done\ndone && echo "
               "\"created files\"",
               "created files", 0);
    kit_expect(&k, "if true; then\necho \"inside if\"\nfi", "inside if", 0);
    kit_expect(&k, "cat << EOF\nline 1\nline 2\nEOF", "line 1\nline 2", 0);
    kit_expect(&k, "cat <<EOF\nline1\n  line2\nEOF", "line1\n  line2", 0);
    kit_run(&k, "mkdir d && echo x > d/found");
    kit_expect(&k, "find d -type f -exec grep -l \"x\" {} \\;", "d/found", 0);
    CHECK_STR(k.command, "find d -type f -exec grep -l \"x\" {} \\;"); /* DEF-6 */
    memset(longer + 5, 'y', 1195);
    kit_expect(&k, longer, longer + 5, 0);
    kit_expect(&k, "touch f.txt; [[ -f f.txt ]] && echo yes", "yes", 0);
    kit_expect(&k, "case x in x) echo m;; esac", "m", 0);
    kit_expect(&k, "a=(1 2 3); echo ${a[1]}", "2", 0);
    kit_expect(&k, "echo $((1+2))", "3", 0);
    kit_expect(&k, "wc -l <<< abc", "1", 0);
    kit_expect(&k, "read -t 0.01 x; echo rc=$?", "rc=142", 0); /* 80 */
    kit_expect(&k, "echo hi # c\n# d", "hi", 0);               /* DEF-41 */
    kit_expect(&k, "echo $((1+2))\necho second\n(exit 4)", "3\nsecond", 4);
    kit_close(&k);
}

TEST(shell_refuses_several_commands_at_once) /* 19 20 */
{
    struct kit k;

    kit_open(&k);
    kit_run(&k, "echo hi\necho there");
    CHECK_INT(k.status, SHELL_SEVERAL);
    CHECK_STR(
        k.content,
        "ERROR: Cannot execute multiple commands at once.\nPlease run each command separately "
        "OR chain them into a single command via && or ;\nProvided commands:\n(1) echo hi\n(2) "
        "echo there");
    CHECK_STR(k.suffix, "");
    kit_expect(&k, "echo hi", "hi", 0);
    kit_close(&k);
}

TEST(shell_renders_what_a_terminal_would_show) /* 63 to 70, DEF-7 */
{
    struct kit k;
    char x[1501];

    kit_open(&k);
    kit_expect(&k, "printf \"no newline\"", "no newline", 0);
    kit_expect(&k, "printf \"trail  \\n\\n\\n\"", "trail", 0);
    kit_expect(&k, "printf \"\\n\\nlead\"", "lead", 0);
    kit_expect(&k, "echo \"  indented\"", "indented", 0);
    kit_expect(&k, "printf \"\\033[31mred\\033[0m plain\\n\"", "red plain", 0);
    kit_expect(&k, "printf 'x\\rY\\n'", "Y", 0);
    kit_expect(&k, "printf 'a\\tb\\n'", "a       b", 0);
    kit_expect(&k, "echo 日本語 é 😀", "日本語 é 😀", 0);
    memset(x, 'x', 1500);
    x[1500] = '\0';
    kit_expect(&k, "printf 'x%.0s' {1..1500}", x, 0);
    kit_expect(&k, "stty size; tput cols", "1000 1000\n1000", 0);
    kit_expect(&k, "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo tty", "tty", 0);
    kit_close(&k);
}

TEST(shell_says_when_nothing_runs) /* 37 38 */
{
    struct kit k;

    kit_open(&k);
    kit_soft(&k, "");
    CHECK_INT(k.status, SHELL_NOTHING_RUNS);
    CHECK_STR(k.content, "ERROR: No previous running command to retrieve logs from.");
    CHECK_INT(k.exit_code, -1);
    CHECK_STR(k.prefix, "");
    CHECK_STR(k.suffix, "");
    kit_input(&k, "x");
    CHECK_STR(k.content, "ERROR: No previous running command to interact with.");
    kit_close(&k);
}

TEST(shell_hands_input_to_the_running_program) /* 31 32 33 34 49 77 */
{
    struct kit k;

    kit_open(&k);
    kit_ask(&k, (struct shell_request){
                    .command = STR("read -p \"Enter name: \" name && echo \"Hello $name\""),
                    .soft_timeout_ms = 1000});
    CHECK_STR(k.content, "Enter name:");
    CHECK_INT(k.exit_code, -1);
    CHECK_STR(k.prefix, "");
    CHECK_HAS(k.suffix, "\n[The command has no new output after 1 seconds. You may wait longer");
    kit_finish(&k, "John");
    CHECK_STR(k.content, "Hello John");
    CHECK_INT(k.exit_code, 0);
    CHECK_STR(k.prefix, "");

    kit_soft(&k, "read -p 'Enter your name: ' n; read -p 'Enter your age: ' a; echo \"Hello $n, "
                 "you are $a years old\"");
    CHECK_STR(k.content, "Enter your name:");
    kit_soft(&k, "Alice"); /* 34: not as input */
    CHECK_INT(k.status, SHELL_NOT_EXECUTED);
    CHECK_HAS(k.suffix,
              "Your command \"Alice\" is NOT executed. The previous command is still running");
    CHECK_STR(k.content, "");
    kit_input(&k, "Alice");
    CHECK_STR(k.content, "Enter your age:");
    CHECK_INT(k.exit_code, -1);
    kit_finish(&k, "25");
    CHECK_STR(k.content, "Hello Alice, you are 25 years old");

    kit_soft(&k, "cat");
    CHECK_INT(k.status, SHELL_NO_CHANGE);
    kit_input(&k, "hello input");
    CHECK_STR(k.content, "hello input");
    CHECK_STR(k.prefix, "[Below is the output of the previous command.]\n");
    kit_finish(&k, "C-d");
    CHECK_INT(k.exit_code, 0);
    CHECK_HAS(k.suffix, "CTRL+D was sent");
    kit_close(&k);
}

TEST(shell_holds_incomplete_text_back) /* 35 50 */
{
    struct kit k;

    kit_open(&k);
    kit_soft(&k, "cat << EOF");
    CHECK_INT(k.status, SHELL_NO_CHANGE);
    CHECK_STR(k.prefix, "");
    kit_input(&k, "line 1");
    CHECK_INT(k.status, SHELL_NO_CHANGE);
    CHECK_STR(k.prefix, "[Below is the output of the previous command.]\n");
    kit_input(&k, "line 2");
    CHECK_INT(k.exit_code, -1);
    CHECK_STR(k.prefix, "[Below is the output of the previous command.]\n");
    kit_finish(&k, "EOF");
    CHECK_STR(k.content, "line 1\nline 2");
    CHECK_INT(k.exit_code, 0);
    CHECK_STR(k.prefix, "");
    kit_soft(&k, "echo \"unclosed");
    CHECK_STR(k.content, "");
    kit_soft(&k, "ls");
    CHECK_INT(k.status, SHELL_NOT_EXECUTED);
    kit_finish(&k, "more\"");
    CHECK_STR(k.content, "unclosed\nmore");
    CHECK_INT(k.exit_code, 0);
    kit_soft(&k, "for i in 1 2; do");
    CHECK_INT(k.status, SHELL_NO_CHANGE);
    kit_finish(&k, "C-c");
    CHECK_STR(k.content, "^C");
    CHECK_INT(k.exit_code, 130);
    kit_soft(&k, "cat <<EOF\nlast");
    kit_finish(&k, "C-d");
    CHECK_HAS(k.content, "last");
    kit_expect(&k, "echo ok", "ok", 0);
    kit_close(&k);
}

TEST(shell_waits_no_longer_than_asked) /* 25 26 27 39 40 41 44 45 46 47 */
{
    struct kit k;

    kit_open(&k);
    kit_run(&k, "true");
    kit_hard(&k, "for i in 1 2 3; do echo $i; " KIT_UNTIL("go$i") "done", KIT_HARD_S);
    CHECK_INT(k.status, SHELL_HARD_TIMEOUT);
    CHECK_STR(k.content, "1");
    CHECK_STR(k.prefix, "");
    CHECK_HAS(k.suffix, "\n[The command timed out after 1.5 seconds. You may wait longer");
    kit_let(&k, "go1");
    kit_hard(&k, "", KIT_HARD_S);
    CHECK_STR(k.content, "2");
    CHECK_STR(k.prefix, "[Below is the output of the previous command.]\n");
    kit_let(&k, "go2");
    kit_let(&k, "go3");
    kit_run(&k, "");
    CHECK_STR(k.content, "3");
    CHECK_INT(k.status, SHELL_COMPLETED);
    CHECK_INT(k.exit_code, 0);
    CHECK_STR(k.prefix, "");

    kit_hard(&k, "sleep 30", 1.5 / 10);
    CHECK_INT(k.status, SHELL_HARD_TIMEOUT);
    kit_soft(&k, "C-c"); /* not as input */
    CHECK_INT(k.status, SHELL_NOT_EXECUTED);
    kit_finish(&k, "C-z");
    CHECK_HAS(k.content, "^Z"); /* the terminal echoes it behind the signal: any order */
    CHECK_HAS(k.content, "[1]+  Stopped                 sleep 30");
    CHECK_INT(k.exit_code, 148);
    CHECK_HAS(k.suffix, "CTRL+Z was sent");
    kit_run(&k, "jobs");
    CHECK_HAS(k.content, "sleep 30");
    kit_run(&k, "kill %1");
    CHECK_INT(k.exit_code, 0);
    kit_close(&k);
}

TEST(shell_interrupts) /* 36 43 48 42 */
{
    struct kit k;

    kit_open(&k);
    kit_soft(&k, "while true; do echo 'looping'; sleep 30; done");
    CHECK_INT(k.status, SHELL_NO_CHANGE);
    kit_finish(&k, "C-c");
    CHECK_INT(k.exit_code, 130);
    CHECK_HAS(k.suffix, "CTRL+C was sent");
    CHECK_STR(k.prefix, "");
    kit_hard(&k, "sleep 30", 0.1);
    kit_soft(&k, "echo new");
    CHECK_INT(k.status, SHELL_NOT_EXECUTED);
    CHECK_STR(k.prefix, "[Below is the output of the previous command.]\n");
    kit_finish(&k, "C-c");
    CHECK_STR(k.content, "^C");
    CHECK_INT(k.exit_code, 130);
    kit_expect(&k, "echo ok", "ok", 0);
    kit_run(&k, "C-c"); /* at an idle prompt */
    CHECK_STR(k.content, "^C");
    CHECK_INT(k.exit_code, 130);
    CHECK_STR(k.suffix, "\n[The command completed with exit code 130. CTRL+C was sent.]");
    kit_run(&k, "C-l");
    CHECK_STR(k.content, "");
    CHECK_INT(k.status, SHELL_COMPLETED);
    kit_expect(&k, "echo ok", "ok", 0);
    kit_close(&k);
}

TEST(shell_answers_with_all_that_was_written_before_the_question) /* 42 */
{
    struct kit k;
    char path[400];
    int fd;

    kit_open(&k);
    kit_run(&k, "mkfifo gate seen");
    kit_hard(&k, "read < gate; echo late; : > seen; sleep 30", 0.05);
    CHECK_STR(k.content, "");
    snprintf(path, sizeof path, "%s/gate", k.home);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    CHECK(fd >= 0 && write(fd, "\n", 1) == 1 && close(fd) == 0);
    snprintf(path, sizeof path, "%s/seen", k.home);
    fd = open(path, O_RDONLY | O_CLOEXEC); /* it was written by now; our loop did not turn */
    CHECK(fd >= 0 && close(fd) == 0);
    kit_soft(&k, "ls");
    CHECK_INT(k.status, SHELL_NOT_EXECUTED);
    CHECK_STR(k.content, "late");
    kit_finish(&k, "C-c");
    kit_close(&k);
}

TEST(shell_has_background_jobs) /* 28 29 30 */
{
    struct kit k;
    char want[64];

    kit_open(&k);
    kit_run(&k, "sleep 0.05 &");
    CHECK_INT(k.exit_code, 0);
    snprintf(want, sizeof want, "[1] %d", k.pid);
    CHECK_STR(k.content, want);
    CHECK(k.pid > 0);
    kit_run(&k, "wait; echo waited");
    CHECK_HAS(k.content, "waited");
    CHECK_HAS(k.content, "[1]+  Done                    sleep 0.05");
    kit_run(&k, "(sleep 0.1; echo late > late.txt) > server.log 2>&1 &");
    CHECK_HAS(k.content, "[1]");
    kit_run(&k, "wait; cat late.txt");
    CHECK_HAS(k.content, "late");
    kit_close(&k);
}

TEST(shell_truncates_long_output_in_the_middle) /* 51 52 53 */
{
    struct kit k;

    kit_open(&k);
    kit_run(&k, "for i in $(seq 1 5000); do echo \"Line $i\"; done");
    CHECK_INT(strlen(k.content), 30047);
    CHECK_HAS(k.content, "Line 1\n");
    CHECK_HAS(k.content, "Line 5000");
    CHECK_HAS(k.content, "\n[... Observation truncated due to length ...]\n");
    CHECK_STR(k.prefix, "");
    kit_run(&k, "for i in $(seq 1 50000); do echo \"Line $i\"; done");
    CHECK_HAS(k.prefix, "[Previous command outputs are truncated. Showing the last 1");
    CHECK_HAS(k.content, "Line 40000");
    CHECK_HAS(k.content, "Line 50000");
    kit_run(&k, "mkdir r && cd r && for i in {1..100}; do mkdir folder_$i; done; touch "
                "folder_{1..100}/file_{1..100}.txt; ls -R | grep -c .");
    CHECK_STR(k.content, "10201");
    kit_close(&k);
}

TEST(shell_reports_from_a_shell_inside_it) /* 76 */
{
    struct kit k;

    kit_open(&k);
    kit_expect(&k, "bash", "", 0);
    kit_expect(&k, "echo inner $SHLVL", "inner 2", 0);
    kit_expect(&k, "exit", "exit", 0);
    kit_expect(&k, "echo outer $SHLVL", "outer 1", 0);
    CHECK_INT(k.happened, 0);
    kit_close(&k);
}

/* As in a loop of short jobs, when it finds none of them: bash has the terminal, and goes on. */
TEST(shell_interrupts_again_what_did_not_hear_it)
{
    struct kit k;

    kit_open(&k);
    kit_ask(&k, (struct shell_request){
                    .command = STR("mkfifo quiet; trap '' INT; read -t 0.3 x <>quiet; trap - INT; "
                                   "while :; do sleep 0.2; done"),
                    .soft_timeout_ms = 60});
    CHECK_INT(k.status, SHELL_NO_CHANGE);
    kit_finish(&k, "C-c");
    CHECK_INT(k.exit_code, 130);
    kit_expect(&k, "echo on", "on", 0);
    kit_close(&k);
}

TEST(shell_stands_ten_rounds_of_everything) /* 54 */
{
    struct kit k;

    kit_open(&k);
    for (int i = 0; i < 10; i++) {
        kit_ask(&k,
                (struct shell_request){.command = STR("read -p 'go? ' x; while :; do printf "
                                                      "'y%.0s' {1..1000}; echo; sleep 0.01; done"),
                                       .soft_timeout_ms = 60});
        CHECK_INT(k.status, SHELL_NO_CHANGE);
        kit_ask(&k, (struct shell_request){
                        .command = STR("yes"), .is_input = true, .hard_timeout_s = 0.05});
        CHECK_INT(k.status, SHELL_HARD_TIMEOUT);
        kit_soft(&k, "ls");
        CHECK_INT(k.exit_code, -1);
        kit_finish(&k, "C-c");
        CHECK_INT(k.exit_code, 130);
        kit_run(&k, "ls");
        CHECK_INT(k.exit_code, 0);
    }
    kit_close(&k);
}
