// SPDX-License-Identifier: Apache-2.0
/* aes_shell_test.c — the contract's table of shell commands (section 3.9), row by row, through HTTP
 * and the real programs. Rows that wait do so on a fifo, not on the clock. */
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"
#include "test/aes_run.h"

/* Rows in a server of their own. */
static void all(const char *program, const struct run_step *rows, size_t count)
{
    struct aes a;

    aes_open_plain(&a, program);
    aes_run_rows(&a, rows, count);
    aes_close(&a);
}

static const struct run_step simple[] = {
    {1, "echo 'hello world'", .want = {"=hello world"}},
    {2, "nonexistent_command", .rc = 127, .want = {"~nonexistent_command: command not found"}},
    {3, "echo \"first\" && echo \"second\" && echo \"third\"", .want = {"=first\nsecond\nthird"}},
    {4, "ls -l", .want = {"=total 0"}},
    {6, "mkdir test", .want = {"="}},
    {6, "touch test/foo.txt", .want = {"="}},
    {6, "ls -l test", .want = {"~foo.txt"}},
    {7, "mkdir test && cd test", .dir = "{D}/test"},
    {7, "pwd", .want = {"={D}/test"}, .dir = "{D}/test"},
    {8, "mkdir random", .dir = "{D}"},
    {8, "cd random", .want = {"="}, .dir = "{D}/random"},
    {10, "touch here && pwd && ls -l", .want = {"^{D}\ntotal 0\n", "$ here"}},
    {11, "export FOO='a b'", .want = {"="}},
    {11, "echo $FOO", .want = {"=a b"}},
    {12, "f() { echo f:$1; }", .want = {"="}},
    {12, "f x", .want = {"=f:x"}},
    {13, "alias ll='ls -la'", .want = {"="}},
    {13, "type ll", .want = {"=ll is aliased to `ls -la'"}},
    {58, "true", .want = {"="}},
    {59, "(exit 7)", .rc = 7, .want = {"="}},
    {59, "bash -c 'exit 42'", .rc = 42, .want = {"="}},
    {59, "sh -c 'kill -TERM $$'", .rc = 143, .want = {"=Terminated"}},
    {59, "ulimit -c 0", .want = {"="}},
    {59, "sh -c 'kill -SEGV $$'", .rc = 139, .want = {"=Segmentation fault"}},
    {60, "cd /tmp && false", .rc = 1, .want = {"="}, .dir = "/tmp"},
    {61, "ls nofile", .rc = 2, .want = {"=ls: cannot access 'nofile': No such file or directory"}},
    {62, "! true", .rc = 1, .want = {"="}},
    {72, "   echo   spaced   ", .want = {"=spaced"}},
    {73, "echo hi # comment", .want = {"=hi"}},
    {74, "touch f.txt", .want = {"="}},
    {74, "[[ -f f.txt ]] && echo yes", .want = {"=yes"}},
    {74, "case x in x) echo m;; esac", .want = {"=m"}},
    {74, "a=(1 2 3); echo ${a[1]}", .want = {"=2"}},
    {74, "echo $((1+2))", .want = {"=3"}},
    {75, "(cd /tmp; pwd)", .want = {"=/tmp"}, .dir = "{D}"},
    {75, "pwd", .want = {"={D}"}},
    {79, "wc -l <<< abc", .want = {"=1"}},
    {80, "read -t 1 x; echo rc=$?", .want = {"=rc=142"}},
};

AES_TEST(aes_shell_rows_of_simple_commands)
{
    all(program, simple, ARRAY_LEN(simple));
}

static const struct run_step texts[] = {
    {14, "echo \\\n -e \"foo\"", .want = {"=foo"}},
    {15, "echo -e \"hello\nworld\"", .want = {"=hello\nworld", "!>"}},
    {16, "echo -e \"a\\n\\n\\nz\"", .want = {"=a\n\n\nz"}},
    {17,
     "count=0; flips=0; while [ $count -lt 3 ]; do result=0; flips=$((flips + 1)); if [ $result "
     "-eq 0 ]; then count=$((count + 1)); else count=0; fi; done; echo \"Got 3 heads in a row "
     "after $flips flips!\"",
     .want = {"=Got 3 heads in a row after 3 flips!"}},
    {18,
     "for year in 2023 2024; do\n  for month in {01..04}; do\n    touch \"$year-$month.txt\"\n  "
     "done\ndone && echo \"created files\"",
     .want = {"=created files"}},
    {18, "ls | wc -l", .want = {"=8"}},
    {19,
     "ls -l\necho -e \"hello\nworld\"\necho -e \"hello it's me\"\necho \\\n-e 'hello' \\\n-v\n"
     "echo -e 'hello\\nworld\\nare\\nyou\\nthere?'\necho -e 'hello\\nworld'\necho -e 'end'",
     ERROR,
     .want = {"^ERROR: Cannot execute multiple commands at once.\nPlease run each command "
              "separately OR chain them into a single command via && or ;\nProvided commands:\n"
              "(1) ls -l\n(2) echo -e \"hello\nworld\"\n(3) ",
              "$\n(7) echo -e 'end'"}},
    {19, "ls -l", .want = {"=total 0"}},
    {19, "echo -e \"hello it's me\"", .want = {"=hello it's me"}},
    {19, "echo \\\n-e 'hello' \\\n-v", .want = {"=hello -v"}},
    {19, "echo -e 'hello\\nworld\\nare\\nyou\\nthere?'",
     .want = {"=hello\nworld\nare\nyou\nthere?"}},
    {20, "echo hi\necho there", ERROR,
     .want = {"=ERROR: Cannot execute multiple commands at once.\nPlease run each command "
              "separately OR chain them into a single command via && or ;\nProvided commands:\n"
              "(1) echo hi\n(2) echo there"}},
    {21, "if true; then\necho \"inside if\"\nfi", .want = {"=inside if"}},
    {22, "cat << EOF\nline 1\nline 2\nEOF", .want = {"=line 1\nline 2"}},
    {23, "cat <<EOF\nline1\n  line2\nEOF", .want = {"=line1\n  line2"}},
    {24, "mkdir d && echo x > d/found && echo y > d/other", .want = {"="}},
    {24, "find {D}/d -type f -exec grep -l \"x\" {} \\;", .want = {"={D}/d/found"}},
    {63, "printf \"no newline\"", .want = {"=no newline"}},
    {64, "printf \"trail  \\n\\n\\n\"", .want = {"=trail"}},
    {65, "printf \"\\n\\nlead\"", .want = {"=lead"}},
    {65, "echo \"  indented\"", .want = {"=indented"}},
    {66, "printf \"\\033[31mred\\033[0m plain\\n\"", .want = {"=red plain"}},
    {67, "printf 'x\\rY\\n'", .want = {"=Y"}},
    {68, "printf 'a\\tb\\n'", .want = {"=a       b"}},
    {69, "echo 日本語 é 😀", .want = {"=日本語 é 😀"}},
};

AES_TEST(aes_shell_rows_of_texts_and_rendering)
{
    all(program, texts, ARRAY_LEN(texts));
}

AES_TEST(aes_shell_rows_70_and_71_of_long_lines)
{
    struct aes a;
    char x[1502] = "=", command[1201] = "echo ";

    aes_open_plain(&a, program);
    memset(x + 1, 'x', 1500);
    aes_run(&a, &(struct run_step){70, "python3 -c \"print('x'*1500)\"", .want = {x}});
    memset(command + 5, 'y', 1195);
    const char *want = aes_text(&a, "=%s", command + 5);
    aes_run(&a, &(struct run_step){71, command, .want = {want}});
    aes_close(&a);
}

AES_TEST(aes_shell_rows_5_9_57_and_81_of_the_user)
{
    struct aes a;

    aes_open_plain(&a, program);
    const char *owner = aes_text(&a, "~ %s ", a.user);
    aes_run(&a, &(struct run_step){5, "mkdir test", .want = {"="}});
    aes_run(&a, &(struct run_step){5, "ls -l", .want = {owner, "$ test"}});
    aes_want_own_home(&a);
    const char *home = aes_text(&a, "=%s/home", test_dir());
    aes_run(&a, &(struct run_step){9, "cd ~ && pwd", .want = {home}, .dir = home + 1});
    struct run_answer r =
        aes_run(&a, &(struct run_step){57, "python --version", .want = {"^Python 3"}});
    CHECK_STR(r.username, a.user);
    CHECK_STR(r.python, aes_text(&a, "%s/bin/python", test_dir()));
    aes_run(&a, &(struct run_step){81, "export QUUX=\"abc\\\"def\";", .want = {"="}});
    aes_run(&a, &(struct run_step){
                    81,
                    "touch ~/.bashrc; grep -q \"^export QUUX=\" ~/.bashrc || echo \"export "
                    "QUUX=\\\"abc\\\\\\\"def\\\"\" >> ~/.bashrc;",
                    .want = {"="}});
    aes_run(&a, &(struct run_step){81, "echo $QUUX", .want = {"=abc\"def"}});
    aes_run(&a,
            &(struct run_step){81, "grep QUUX ~/.bashrc", .want = {"=export QUUX=\"abc\\\"def\""}});
    aes_close(&a);
}

static const struct run_step servers[] = {
    {25, "python -u -m http.server --bind 127.0.0.1 0", HARD, .timeout = 1,
     .want = {"~Serving HTTP on"}},
    {26, "C-c", .in = true, .then = true, .timeout = 30,
     .want = {"~Keyboard interrupt received, exiting."}},
    {27, "ls", .then = true, .timeout = 30, .want = {"!Keyboard interrupt received"}},
    {28, "mkfifo log", .want = {"="}},
    {28, "python3 -u -m http.server --bind 127.0.0.1 0 > log 2>&1 &",
     .want = {"^[1] ", "!Serving"}},
    {28, "exec 7< log; read -r line <&7; port=${line#*port }; port=${port%% *}", .want = {"="}},
    {28, "curl -s http://127.0.0.1:$port/", .want = {"~Directory listing for /", "~log"}},
    {28, "pkill -P $$ -f \"http.server\"", .want = {}},
    {28, "wait; exec 7<&-"},
    {29, "(echo served) > server.log 2>&1 &", .want = {"^[1] "}},
    {29, "wait"},
    {29, "cat server.log", .want = {"=served"}},
};

AES_TEST(aes_shell_rows_25_to_29_of_servers)
{
    all(program, servers, ARRAY_LEN(servers));
}

/* Of a process that is not ours. */
static void wait_for_end(pid_t pid)
{
    own_fd fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};

    if (fd >= 0)
        CHECK_INT(poll(&p, 1, 30000), 1);
}

AES_TEST(aes_shell_row_30_tells_the_job_and_when_it_is_done)
{
    struct aes a;

    aes_open_plain(&a, program);
    struct run_answer r = aes_run(&a, &(struct run_step){30, "sleep 0.1 &", .want = {"^[1] "}});
    CHECK(r.pid > 0);
    CHECK_STR(r.content, aes_text(&a, "[1] %lld", (long long)r.pid));
    wait_for_end((pid_t)r.pid);
    aes_run(&a, &(struct run_step){30, "echo next",
                                   .want = {"=next\n[1]+  Done                    sleep 0.1"}});
    aes_close(&a);
}

#define ASK_TWICE                                                                                  \
    "python3 -c \"name=input('Enter your name: '); age=input('Enter your age: '); print('Hello "   \
    "%s, you are %s years old' % (name, age))\""

static const struct run_step inputs[] = {
    {31, "read -p \"Enter name: \" name && echo \"Hello $name\"", SOFT, .want = {"=Enter name:"}},
    {32, "John", .in = true, .then = true, .want = {"=Hello John"}},
    {33, ASK_TWICE, SOFT, .want = {"=Enter your name:"}},
    {33, "Alice", SOFT, .in = true, .more = true, .want = {"=Enter your age:"}},
    {33, "25", .in = true, .want = {"=Hello Alice, you are 25 years old"}},
    {34, ASK_TWICE, SOFT, .want = {"=Enter your name:"}},
    {34, "Alice", REFUSED, .more = true, .want = {"=", "!Enter your age:"}},
    {34, "C-c", .in = true, .rc = 130, .want = {"~KeyboardInterrupt"}},
    {35, "cat << EOF", SOFT, .want = {"="}},
    {35, "line 1", SOFT, .in = true, .more = true},
    {35, "line 2", SOFT, .in = true, .more = true},
    {35, "EOF", .in = true, .want = {"=line 1\nline 2"}},
    {37, "", NOTHING, .want = {"=ERROR: No previous running command to retrieve logs from."}},
    {38, "x", NOTHING, .in = true,
     .want = {"=ERROR: No previous running command to interact with."}},
    {49, "cat", SOFT, .want = {"="}},
    {49, "hello input", SOFT, .in = true, .more = true, .want = {"=hello input"}},
    {49, "C-d", .in = true},
    {50, "echo \"unclosed", SOFT, .want = {"="}},
    {50, "more\"", .in = true, .want = {"=unclosed\nmore"}},
    {76, "bash", .want = {"="}},
    {76, "echo inner", .want = {"=inner"}},
    {76, "exit", .want = {"=exit"}},
    {77, "python3 -q", HARD, .timeout = 2, .want = {"=>>>"}},
    {77, "1+1", SOFT, .in = true, .more = true, .want = {"=2\n>>>"}},
    {77, "C-d", .in = true},
};

AES_TEST(aes_shell_rows_of_input)
{
    all(program, inputs, ARRAY_LEN(inputs));
}

static const struct run_step timeouts[] = {
    {36, "mkfifo gate; while true; do echo 'looping'; until read < gate; do :; done; done", SOFT,
     .want = {"=looping"}},
    {36, "C-c", .in = true, .rc = 130, .want = {"~^C"}},
    {39, "mkfifo gate", .want = {"="}},
    {39, "for i in {1..5}; do echo $i; until read < gate; do :; done; done", HARD, .timeout = 0.5,
     .want = {"=1"}},
    {40, "", HARD, .then = true, .first = "g", .more = true, .timeout = 0.5, .want = {"=2"}},
    {40, "", HARD, .first = "g", .more = true, .timeout = 0.5, .want = {"=3"}},
    {40, "", HARD, .first = "g", .more = true, .timeout = 0.5, .want = {"=4"}},
    {40, "", HARD, .first = "g", .more = true, .timeout = 2.5, .want = {"=5"}},
    {41, "", .then = true, .first = "g", .want = {"="}},
    {42, "mkfifo seen gate", .want = {"="}},
    {42, "for i in {1..3}; do echo $i; : > seen; until read < gate; do :; done; done", SOFT,
     .want = {"=1"}},
    {42, "", SOFT, .first = "sg", .more = true, .want = {"=2"}},
    {42, "sleep 15", REFUSED, .more = true, .want = {"="}},
    {42, "sleep 15", REFUSED, .first = "sgs", .more = true, .want = {"=3"}},
    {42, "C-c", .in = true, .rc = 130},
    {43, "sleep 30", HARD, .timeout = 1, .want = {"="}},
    {43, "echo new", REFUSED, .more = true, .want = {"="}},
    {43, "C-c", .in = true, .rc = 130, .want = {"=^C"}},
    {43, "echo ok", .want = {"=ok"}},
    {44, "sleep 30", HARD, .timeout = 1.5, .blocking = true, .want = {"="}},
    {45, "C-c", REFUSED, .then = true, .more = true, .want = {"="}},
    {46, "C-z", .then = true, .in = true, .rc = 148,
     .want = {"=^Z\n[1]+  Stopped                 sleep 30"}},
    {47, "jobs", .then = true, .want = {"^[1]+  Stopped", "$sleep 30"}},
    {47, "kill %1"},
    {48, "C-c", .rc = 130, .want = {"=^C"}},
    {78, "less /etc/passwd", SOFT, .want = {"~root:"}},
    {78, "q", .in = true},
};

AES_TEST(aes_shell_rows_of_timeouts_and_keys)
{
    all(program, timeouts, ARRAY_LEN(timeouts));
}

static const struct run_step long_output[] = {
    {51, "for i in $(seq 1 5000); do echo \"Line $i\"; done",
     .want = {"^Line 1\nLine 2\n", "$\nLine 4999\nLine 5000",
              "~\n[... Observation truncated due to length ...]\n"}},
    {52, "for i in $(seq 1 50000); do echo \"Line $i\"; done",
     .prefix = "[Previous command outputs are truncated. Showing the last 1",
     .want = {"~Line 40000\n", "$\nLine 50000"}},
    {53, "mkdir folder_{1..100} && touch folder_{1..100}/file_{1..100}.txt", .want = {"="}},
    {53, "ls -R", .want = {"~folder_1", "~file_1.txt", "~folder_100", "~file_100.txt"}},
};

AES_TEST(aes_shell_rows_51_to_53_of_long_output)
{
    all(program, long_output, ARRAY_LEN(long_output));
}

static const struct run_step repository[] = {
    {55, "git init -q && git remote add origin https://github.com/a/b", .want = {"="}},
    {55, "git remote -v",
     .want = {"^origin  https", "~https://github.com/a/b (push)", "!git remote -v"}},
    {56, "git init", .want = {"~Initialized empty Git repository in {D}/.git/"}},
    {56, "git config --global user.name \"a b\" && git config --global user.email \"a@b\"",
     .want = {"="}},
    {56, "echo hello > test_file.txt && git add test_file.txt", .want = {"="}},
    {56, "git diff --no-color --cached", .want = {"~+hello"}},
    {56, "git commit -m 'test commit'", .want = {"~test commit"}},
};

AES_TEST(aes_shell_rows_55_and_56_of_git)
{
    struct aes a;

    aes_open_plain(&a, program);
    aes_want_own_home(&a);
    aes_run_rows(&a, repository, ARRAY_LEN(repository));
    aes_close(&a);
}

static int64_t rss(struct aes *a)
{
    const struct json *info = aes_json(a, aes_ask_get(a, "/server_info").body);
    const struct json *resources = json_get(info, STR("resources"));

    return json_get_int(json_get(resources, STR("memory")), "rss", -1);
}

/* A soft timeout lasts a second: ten rounds in one program are enough. */
AES_TEST(aes_shell_row_54_ten_rounds_of_everything)
{
    static const struct run_step round[] = {
        {54, "read -p 'go? ' x; while :; do printf 'y%.0s' {1..1000}; echo; sleep 0.02; done", SOFT,
         .want = {"=go?"}},
        {54, "yes", HARD, .in = true, .more = true, .timeout = 0.2, .want = {"~yyyyyyyy"}},
        {54, "ls", REFUSED, .more = true},
        {54, "C-c", .in = true, .rc = 130, .want = {"~^C"}},
        {54, "ls", .want = {"="}},
    };
    int rounds = strcmp(program, "croft-guest") == 0 ? 10 : 2;
    bool lean = !strstr(test_program(program), "asan"); /* which keeps what is freed */
    int64_t before = 0;
    struct aes a;

    aes_open_plain(&a, program);
    for (int i = 0; i < rounds; i++) {
        aes_run_here(&a, round, ARRAY_LEN(round));
        if (i == 1)
            before = rss(&a);
    }
    int64_t grown = rss(&a) - before;
    if (before <= 0 || (lean && grown > (2 << 20)))
        FAIL("%d rounds made the server %lld bytes larger", rounds, (long long)grown);
    aes_close(&a);
}

AES_TEST(aes_shell_row_83_static_commands_leave_the_session_alone)
{
    struct aes a;

    aes_open_plain(&a, program);
    aes_run_plain(&a, "mkdir other && cd / && export MINE=yes && local_one=1");
    const char *other = aes_path(&a, "other"), *want = aes_text(&a, "=[]\n%s", other);
    aes_run(&a, &(struct run_step){83, "echo \"[$MINE$local_one]\"; pwd; export MINE=no",
                                   .is_static = true, .cwd = other, .dir = other, .want = {want}});
    want = aes_text(&a, "=%s", a.dir);
    aes_run(&a, &(struct run_step){83, "pwd", .is_static = true, .hidden = true, .want = {want}});
    aes_run(&a, &(struct run_step){83, "echo $MINE; pwd", .want = {"=yes\n/"}, .dir = "/"});
    aes_run(&a, &(struct run_step){83, "read x", SOFT, .want = {"="}});
    aes_run(&a, &(struct run_step){83, "echo beside", .is_static = true, .want = {"=beside"}});
    aes_run(&a, &(struct run_step){83, "C-c", .in = true, .rc = 130});
    aes_close(&a);
}

static void upload(struct aes *a, const char *target, const char *name, struct str content)
{
    struct aes_answer r = aes_upload(a, aes_text(a, "destination=%s", target), name, content);

    if (r.status != 200)
        FAIL("upload %s: %d " STR_FMT, name, r.status, STR_ARG(r.body));
}

AES_TEST(aes_shell_row_82_sees_uploaded_files)
{
    struct aes a;

    aes_open_plain(&a, program);
    upload(&a, a.dir, "a.txt", STR("one"));
    aes_run(&a, &(struct run_step){82, "cat a.txt", .want = {"=one"}});
    upload(&a, a.dir, "a.txt", STR("two"));
    aes_run(&a, &(struct run_step){82, "cat a.txt", .want = {"=two"}});
    upload(&a, aes_path(&a, "new/deep"), "b.txt", STR("three"));
    aes_run(&a, &(struct run_step){82, "cat new/deep/b.txt", .want = {"=three"}});
    aes_run_plain(&a, "mkdir -p src/dir/sub && echo x > src/dir/sub/f && cd src "
                      "&& zip -q -r -D ../up.zip dir && cd ..");
    upload(&a, aes_text(&a, "%s&recursive=true", aes_path(&a, "un")), "up.zip",
           aes_get(&a, "up.zip"));
    aes_run(&a, &(struct run_step){82, "cat un/dir/sub/f; ls un", .want = {"=x\ndir"}});
    aes_close(&a);
}

/* 3.5: which texts are several commands, and how they are told apart */
static const struct run_step parts[] = {
    {35, "ls; pwd;", .want = {"={D}"}},
    {35, "true & wait", .want = {}},
    {35, "ls |\n wc -l", .want = {"=0"}},
    {35, "true &&\necho b", .want = {"=b"}},
    {35, "cat <<EOF\ntext\nEOF\necho Done", ERROR,
     .want = {"$commands:\n(1) cat <<EOF\ntext\nEOF\n(2) echo Done"}},
    {35, "ls\n\npwd", ERROR, .want = {"$commands:\n(1) ls\n(2) pwd"}},
    {35, "ls &\npwd", ERROR, .want = {"$commands:\n(1) ls &\n(2) pwd"}},
    {35, "echo \"Hello\" # c\n# d\nls -l", ERROR,
     .want = {"$commands:\n(1) echo \"Hello\" # c\n# d\n(2) ls -l"}},
    {35, "f() {\n echo x\n}\nf", ERROR, .want = {"$commands:\n(1) f() {\n echo x\n}\n(2) f"}},
    {35, "f() {\n echo x\n}; f", .want = {"=x"}},
    {35, "export A=1\nexport B=2", ERROR, .want = {"$commands:\n(1) export A=1\n(2) export B=2"}},
    {35, "[[ -d . ]] && echo y\nls", .want = {"=y"}},
    {35, "echo $((1+2))\nls", .want = {"=3"}},
    {35, "a=(1 2)\necho ${a[1]}", .want = {"=2"}},
    {35, "for m in {01..04}; do\n touch \"$m\"\ndone && echo ok", .want = {"=ok"}},
};

AES_TEST(aes_shell_texts_that_are_several_commands)
{
    all(program, parts, ARRAY_LEN(parts));
}
