// SPDX-License-Identifier: Apache-2.0
/* Upstream's defects (DEF-n of the contract) and programs that do not behave. */
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>

#include "test/test.h"

#include "guest/shell/shell_kit.h"

TEST(shell_types_only_control_keys_not_key_names) /* DEF-4 DEF-5 DEF-6 DEF-30 DEF-31 */
{
    struct kit k;

    kit_open(&k);
    kit_expect(&k, "echo before", "before", 0);
    kit_run(&k, "Up");
    CHECK_INT(k.exit_code, 127);
    CHECK_HAS(k.content, "Up: command not found");
    kit_expect(&k, "# only a comment", "", 0);
    kit_expect(&k, "# c\necho hi", "hi", 0);
    kit_expect(&k, "echo hi;", "hi", 0);
    CHECK_STR(k.command, "echo hi;");
    kit_expect(&k, "printf '%s' 'a\tb' | od -An -c", "a  \\t   b", 0);
    kit_expect(&k, "echo \"a!b !! !echo\"", "a!b !! !echo", 0);
    kit_expect(&k, "printf 'a\001\003\004\025\032b' | od -An -tx1", "61 01 03 04 15 1a 62", 0);
    kit_close(&k);
}

TEST(shell_returns_the_rest_of_a_command_before_the_next_one) /* DEF-27 DEF-28 */
{
    struct kit k;

    kit_open(&k);
    kit_run(&k, "true");
    kit_hard(&k, "echo one; " KIT_UNTIL("go") "echo two; touch gone", KIT_HARD_S);
    CHECK_STR(k.content, "one");
    kit_let(&k, "go");
    while (shell_is_running(k.shell))
        CHECK_OK(loop_turn(k.loop, 1000));
    kit_run(&k, "echo three; (exit 3)");
    CHECK_STR(k.content, "two\nthree");
    CHECK_STR(k.prefix, "[Below is the output of the previous command.]\n");
    CHECK_INT(k.exit_code, 3);
    kit_hard(&k, KIT_UNTIL("late") "echo late", 0.05);
    kit_let(&k, "late");
    while (shell_is_running(k.shell))
        CHECK_OK(loop_turn(k.loop, 1000));
    kit_input(&k, "rm -rf x"); /* meant for the program that has gone: not run as a command */
    CHECK_STR(k.content, "late");
    CHECK_INT(k.status, SHELL_COMPLETED);
    kit_close(&k);
}

TEST(shell_returns_the_rest_of_a_command_before_the_next_one_has_ended) /* DEF-28 */
{
    struct kit k;

    kit_open(&k);
    kit_hard(&k, KIT_UNTIL("go") "echo one", 0.05);
    kit_let(&k, "go");
    while (shell_is_running(k.shell))
        CHECK_OK(loop_turn(k.loop, 1000));
    kit_hard(&k, KIT_UNTIL("late") "echo two", 0.05);
    CHECK_INT(k.status, SHELL_HARD_TIMEOUT);
    CHECK_STR(k.content, "one");
    CHECK_STR(k.prefix, "[Below is the output of the previous command.]\n");
    kit_let(&k, "late");
    kit_run(&k, "");
    CHECK_STR(k.content, "two");
    CHECK_STR(k.prefix, "");
    kit_close(&k);
}

TEST(shell_takes_commands_of_any_length) /* DEF-29 */
{
    struct kit k;
    struct buf b;

    kit_open(&k);
    buf_init(&b, 4u << 20);
    buf_add_cstr(&b, "cat > big <<'EOF'\n");
    while (b.len < (1u << 20))
        buf_add_cstr(&b, "0123456789abcde $(x) `y` \\ \"'\n");
    buf_add_cstr(&b, "EOF");
    kit_run(&k, buf_cstr(&b));
    CHECK_STR(k.content, "");
    CHECK_INT(k.exit_code, 0);
    char want[32];
    snprintf(want, sizeof want, "%zu", b.len - 18 - 3);
    kit_expect(&k, "stat -c %s big", want, 0);
    buf_reset(&b);
    buf_add_cstr(&b, "echo ");
    while (b.len < 20005)
        buf_add_cstr(&b, "z");
    kit_expect(&k, buf_cstr(&b), b.p + 5, 0);
    CHECK_ERR(shell_run(k.shell, &(struct shell_request){.command = str_n("a\0b", 3)}), ERR_INVALID,
              "embedded null byte");
    buf_done(&b);
    kit_close(&k);
}

TEST(shell_reports_any_working_directory) /* DEF-33 */
{
    struct kit k;
    char want[400];

    kit_open(&k);
    kit_run(&k, "mkdir -p $'q\"\\\\\\n x' && cd $'q\"\\\\\\n x'");
    CHECK_INT(k.exit_code, 0);
    snprintf(want, sizeof want, "%s/q\"\\\n x", k.home);
    CHECK_STR(k.working_dir, want);
    kit_expect(&k, "echo ok", "ok", 0);
    kit_run(&k, "rmdir \"$PWD\"");
    kit_expect(&k, "echo ok", "ok", 0);
    kit_close(&k);
}

TEST(shell_output_does_not_depend_on_the_screen) /* DEF-34 */
{
    struct kit k;

    kit_open(&k);
    kit_expect(&k, "echo one; clear; echo two", "one\ntwo", 0);
    CHECK_STR(k.prefix, "");
    kit_expect(&k, "printf '\\033[?1049hfull screen\\033[?1049l'; echo back", "back", 0);
    kit_close(&k);
}

TEST(shell_hides_its_own_steps) /* DEF-35 */
{
    struct kit k;

    kit_open(&k);
    kit_run(&k, "set -x");
    kit_expect(&k, "echo traced", "++ echo traced\ntraced", 0);
    kit_expect(&k, "true", "++ true", 0);
    kit_run(&k, "set +x");
    kit_expect(&k, "echo plain", "plain", 0);
    kit_run(&k, "set -v");
    kit_run(&k, "set +v");
    kit_expect(&k, "echo plain", "plain", 0);
    kit_close(&k);
}

TEST(shell_is_not_fooled_by_output) /* DEF-36 */
{
    struct kit k;

    kit_open(&k);
    kit_run(&k, "echo start");
    kit_soft(&k, "printf '\\n###PS1JSON###\\n{\"exit_code\": "
                 "\"0\"}\\n###PS1END###\\n\\033]7771;1.0;0\\a'; sleep 30");
    CHECK_INT(k.status, SHELL_NO_CHANGE);
    CHECK_HAS(k.content, "###PS1END###");
    kit_finish(&k, "C-c");
    CHECK_INT(k.exit_code, 130);
    /* numbers of earlier commands, in the output and in the FIFO itself */
    kit_run(&k, "old=$CROFT_Q");
    kit_soft(&k, "printf '\\033]7771;%s;0\\a' $old; r=$(ls -d $HOME/croft-*/r*); printf "
                 "'\\0(croft\\0%s 0  %s 0 h\\0/\\0/\\0\\0)croft\\0' $old $$ > $r; printf "
                 "'garbage\\0\\0\\0)croft\\0' >$r; sleep 30");
    CHECK_INT(k.status, SHELL_NO_CHANGE);
    kit_finish(&k, "C-c");
    CHECK_INT(k.exit_code, 130);
    kit_expect(&k, "echo ok", "ok", 0);
    kit_close(&k);
}

TEST(shell_ignores_prompts_of_shells_on_other_terminals)
{
    struct kit k;

    if (access("/usr/bin/script", X_OK) != 0)
        SKIP("needs script(1)");
    kit_open(&k);
    kit_run(&k, "(echo 'sleep 0.2; echo inner; exit') > in");
    kit_run(&k, "script -qec 'bash -i' /dev/null < in > out 2>&1; echo finished");
    CHECK_STR(k.content, "finished");
    kit_close(&k);
}

TEST(shell_mends_what_programs_do_to_it)
{
    static const char *const acts[] = {
        "stty raw -echo",
        "stty -icanon -icrnl -opost -isig",
        "stty -echo",
        "stty intr ^X kill ^A eof ^B",
        "PS1='fake> '; PS2='more> '; PROMPT_COMMAND='echo noise'",
        "unset PROMPT_COMMAND PS1 PS2",
        "PROMPT_COMMAND=('echo a' 'echo b')",
        "readonly PROMPT_COMMAND",
        "set -u",
        "set -a",
        "set -f; IFS=0123456789/c",
        "set -o noclobber",
        "set -o posix",
        "set +m",
        "shopt -s extglob nullglob failglob; set -o nounset",
        "trap 'true' DEBUG; trap 'true' ERR RETURN; set -E -T",
        "trap 'echo noise' DEBUG; set -T",
        "trap '' INT; trap INT",
        "set -x",
        "set -x; set -T; trap 'echo noise >&2' DEBUG; set -u",
        "exec 3>&- 4>&- 9</dev/null",
        "exec 2>&-",
        "exec 1>/dev/null; exec 1>/dev/tty 2>/dev/tty",
        ("alias eval=false builtin=false printf=false; eval() { false; }; printf() { false; }; "
         "read() { false; }"),
        "unset PATH; PATH=",
        "umask 777",
        "ulimit -n 8",
        "printf '\\033[?1049h\\033(0\\016'",
        "cd /; export HOME=/nonexistent TERM=dumb",
        "HISTFILE=/dev/null; set +o history",
        "sleep 300 & disown; kill $!",
        "unset -f CROFT_B CROFT_H; CROFT_B() { :; }; CROFT_H() { :; }",
        "unset CROFT_L CROFT_N CROFT_S CROFT_X",
        "FUNCNEST=1; shopt -s extdebug",
        "set -H; set -o history",
        ":() { echo noise; }; true() { echo noise; }",
    };
    struct kit k;

    for (size_t i = 0; i < ARRAY_LEN(acts); i++) {
        kit_open(&k);
        kit_run(&k, acts[i]);
        CHECK_INT(k.status, SHELL_COMPLETED);
        kit_run(&k, "\\builtin printf 'out%s\\n' put >/dev/tty");
        if (!strstr(k.content, "output") || strstr(k.content, "CROFT"))
            FAIL("after '%s': '%s'", acts[i], k.content);
        CHECK_INT(k.exit_code, 0);
        kit_run(&k, "(\\builtin exit 5)");
        if (k.exit_code != 5)
            FAIL("after '%s': exit code %d", acts[i], k.exit_code);
        kit_close(&k);
    }
}

TEST(shell_removes_functions_that_hide_its_commands_and_says_so)
{
    static const char *const acts[] = {"builtin() { false; }", "builtin() { :; }; eval() { :; }",
                                       "unset() { :; }; builtin() { :; }; enable() { :; }",
                                       "enable -n builtin"};
    struct kit k;

    kit_open(&k);
    for (size_t i = 0; i < ARRAY_LEN(acts); i++) {
        kit_run(&k, acts[i]);
        CHECK_STR(k.content,
                  "croft: removed the function builtin, which hid commands of the shell");
        CHECK_INT(k.exit_code, 0);
        kit_expect(&k, "type -t builtin; set -o | grep -c \"^posix.*on\"", "builtin\n0", 1);
    }
    kit_close(&k);
}

TEST(shell_shows_programs_one_variable_of_its_own)
{
    struct kit k;

    kit_open(&k);
    kit_expect(&k, "env | grep -o ^CROFT_.", "CROFT_A", 0);
    kit_expect(&k, "set -a; bash -c 'declare -F; compgen -v CROFT_'", "CROFT_A", 0);
    kit_expect(&k, "bash -c 'declare -F; compgen -v CROFT_'", "CROFT_A", 0);
    kit_expect(&k, "exec bash --noediting", "", 0);
    kit_expect(&k, "env | grep -o ^CROFT_.", "CROFT_A", 0);
    kit_close(&k);
}

TEST(shell_runs_the_same_text_however_it_gets_to_bash)
{
    static const char *const commands[] = {
        "printf '%s|' a\\\\b \"c d\" '$x'", "printf %s\\| a\\\\b \"c d\" \"\\$x\"",
        "printf \"%s|\" a\\\\b \"c d\" \\$x", "printf '%s|' 'a\\b' 'c d' '$x' # \303\244 !"};
    struct kit k;

    kit_open(&k);
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        kit_expect(&k, commands[i], "a\\b|c d|$x|", 0);
    kit_run(&k, "false");
    kit_expect(&k, "echo $?", "1", 0);
    kit_run(&k, "false");
    kit_expect(&k, "echo $? '!'", "1 !", 0);
    kit_close(&k);
}

TEST(shell_that_lost_its_hook_can_be_interrupted)
{
    struct kit k;

    kit_open(&k);
    kit_soft(&k, "PROMPT_COMMAND=; sleep 300");
    CHECK_INT(k.status, SHELL_NO_CHANGE);
    kit_finish(&k, "C-c");
    CHECK_INT(k.exit_code, 130);
    kit_expect(&k, "echo ok", "ok", 0);
    kit_close(&k);
}

/* As Python is, which has put back what was before when it ends: a second C-c would kill it. */
TEST(shell_does_not_interrupt_again_what_is_about_to_end)
{
    struct kit k;

    kit_open(&k);
    kit_soft(&k, "sh -c 'trap \"trap - INT; sleep 0.5; exit 7\" INT; echo up; "
                 "while :; do sleep 0.01; done'");
    while (!strstr(k.content, "up"))
        kit_soft(&k, "");
    kit_finish(&k, "C-c");
    CHECK_INT(k.exit_code, 7);
    kit_close(&k);
}

/* On a busy machine. A line that is there with the signal would be taken by the read that the
 * signal ends, and given to the next one. */
TEST(shell_types_nothing_behind_an_interrupt_that_bash_has_not_come_to)
{
    struct shell_request r = {
        .command = STR("C-c"), .is_input = true, .blocking = true, .done = kit_on_done};
    char path[64];
    int waiting = -1;
    siginfo_t stopped;
    struct kit k;

    kit_open(&k);
    kit_run(&k, "echo $$");
    pid_t bash = atoi(k.content);
    snprintf(path, sizeof path, "/proc/%d/fd/0", (int)bash);
    own_fd slave = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
    kit_hard(&k, "read x", 0.05);
    CHECK_INT(k.status, SHELL_HARD_TIMEOUT);
    CHECK_INT(kill(bash, SIGSTOP), 0);
    CHECK_INT(waitid(P_PID, (id_t)bash, &stopped, WSTOPPED | WNOWAIT), 0);
    r.arg = &k;
    k.answered = false;
    CHECK_OK(shell_run(k.shell, &r));
    for (uint64_t end = clock_mono_ns(&clock_system) + 350 * NS_PER_MS;
         clock_mono_ns(&clock_system) < end;) /* it looks three times */
        CHECK_OK(loop_turn(k.loop, 10));
    CHECK_INT(ioctl(slave, FIONREAD, &waiting), 0);
    CHECK_INT(waiting, 0);
    CHECK_INT(kill(bash, SIGCONT), 0);
    kit_wait(&k);
    CHECK_INT(k.exit_code, 130);
    kit_hard(&k, "read x", 0.05);
    CHECK_INT(k.status, SHELL_HARD_TIMEOUT);
    kit_finish(&k, "C-c");
    CHECK_INT(k.exit_code, 130);
    kit_close(&k);
}

TEST(shell_forgets_input_nobody_read)
{
    struct kit k;

    kit_open(&k);
    kit_run(&k, "true");
    kit_hard(&k, "sleep 3; echo end", 0.05);
    kit_input(&k, "C-a"); /* stays in the line buffer of the terminal */
    kit_run(&k, "");
    CHECK_INT(k.exit_code, 0);
    kit_expect(&k, "echo ok", "ok", 0);
    kit_close(&k);
}

TEST(shell_survives_the_loss_of_its_files)
{
    struct kit k;

    kit_open(&k);
    kit_run(&k, "true");
    kit_run(&k, "rm -rf $HOME/croft-*; echo removed; (exit 3)");
    CHECK_STR(k.content, "removed");
    CHECK_INT(k.exit_code, 3);
    kit_expect(&k, "echo ok", "ok", 0);
    CHECK_STR(k.working_dir, k.home);
    kit_close(&k);
}

TEST(shell_passes_binary_output)
{
    struct kit k;

    kit_open(&k);
    kit_run(&k, "printf 'a\\000b\\n\\377\\376 \\xc3 end\\n'");
    CHECK_HAS(k.content, "ab\n");
    CHECK_HAS(k.content, "end");
    kit_run(&k, "head -c 200000 /dev/urandom");
    CHECK_INT(k.status, SHELL_COMPLETED);
    kit_run(&k, "printf '\\033[6n\\033[c\\033P+q544e\\033\\\\'; echo");
    kit_expect(&k, "echo ok", "ok", 0);
    kit_close(&k);
}

TEST(shell_never_mixes_up_two_commands) /* DEF-27, DEF-40 */
{
    struct kit k;
    char command[64], want[32];

    kit_open(&k);
    for (int i = 0; i < 2000; i++) {
        int code = i % 100 == 99 ? i % 256 : 0;
        snprintf(command, sizeof command, code ? "echo out%d; (exit %d)" : "echo out%d", i, code);
        snprintf(want, sizeof want, "out%d", i);
        kit_expect(&k, command, want, code);
    }
    kit_close(&k);
}

TEST(shell_stands_a_flood)
{
    struct kit k;

    kit_open(&k);
    kit_run(&k, "yes 'a line of a flood, fifty bytes long with its end..' | head -c 50000000; "
                "echo; echo end");
    CHECK_INT(k.exit_code, 0);
    CHECK_HAS(k.content, "\nend");
    CHECK(k.live_bytes > 50000000);
    CHECK_HAS(k.prefix, "Previous command outputs are truncated");
    kit_run(&k, "yes background &");
    CHECK_INT(k.status, SHELL_COMPLETED);
    kit_run(&k, "kill $!; wait; echo ok");
    CHECK_HAS(k.content, "ok");
    kit_close(&k);
}

/* Not how much comes through but that it is bounded: on a slow machine it is less. */
TEST(shell_reads_a_flood_nobody_waits_for_at_leisure)
{
    struct kit k;

    kit_open(&k);
    kit_run(&k, "yes background &");
    size_t before = k.live_bytes;
    uint64_t begin = clock_mono_ns(&clock_system), ms = 0;
    while (k.live_bytes - before < 300000) {
        CHECK_OK(loop_turn(k.loop, 1000));
        ms = (clock_mono_ns(&clock_system) - begin) / 1000000;
    }
    CHECK(ms > 90); /* three rests at least, each after 64 KB and the rest of a turn */
    kit_run(&k, "kill $!; wait; echo ok");
    CHECK_HAS(k.content, "ok");
    kit_close(&k);
}

TEST(shell_shows_what_background_jobs_said_meanwhile)
{
    struct kit k;

    kit_open(&k);
    kit_run(&k, "{ until [ -e go ]; do sleep 0.01; done; echo from behind; } &");
    size_t before = k.live_bytes;
    char path[300];
    snprintf(path, sizeof path, "%s/go", k.home);
    fclose(fopen(path, "w"));
    while (k.live_bytes == before)
        CHECK_OK(loop_turn(k.loop, 1000));
    kit_run(&k, "echo in front");
    CHECK_HAS(k.content, "from behind\n");
    CHECK_HAS(k.content, "in front");
    kit_close(&k);
}

TEST(shell_reads_its_start_up_file_and_hides_what_it_says)
{
    struct kit k;
    char path[300];

    snprintf(path, sizeof path, "%s/.bashrc", test_dir());
    FILE *f = fopen(path, "w");
    fputs("echo welcome; PS1='rc> '; PROMPT_COMMAND='echo prompt'; alias hi='echo from rc'\n", f);
    fclose(f);
    kit_open(&k);
    kit_expect(&k, "hi", "from rc", 0);
    kit_run(&k, "exit 1");
    kit_run(&k, "hi");
    CHECK_HAS(k.content, "from rc");
    kit_close(&k);
}

static uint64_t two_then_three(void *arg)
{
    struct kit *k = arg;

    return k->answered ? 2 : 3;
}

TEST(shell_says_when_memory_ran_out)
{
    struct kit k;

    kit_open_with(&k, (struct shell_config){.oom_kills = two_then_three});
    kit_run(&k, "true");
    CHECK_INT(k.happened, 0);
    k.answered = true;
    CHECK_OK(shell_run(
        k.shell, &(struct shell_request){
                     .command = STR("true"), .blocking = true, .done = kit_on_done, .arg = &k}));
    k.answered = false;
    kit_wait(&k);
    CHECK_INT(k.happened, SHELL_OOM);
    CHECK_HAS(k.suffix, "\n[The sandbox ran out of memory and a process was killed.]");
    kit_close(&k);
}

TEST(shell_types_keys_by_name_when_told_to)
{
    struct kit k;

    kit_open_with(&k, (struct shell_config){.named_keys = true});
    kit_soft(&k, "read -rsn3 x; printf '%q\\n' \"$x\"");
    kit_finish(&k, "UP");
    CHECK_STR(k.content, "$'\\E[A'");
    kit_soft(&k, "read -p '? ' x; echo \"[$x]\"");
    kit_finish(&k, "ENTER");
    CHECK_HAS(k.content, "[]");
    kit_close(&k);
}

TEST(shell_uses_programs_that_take_the_screen) /* 78 */
{
    struct kit k;

    if (access("/usr/bin/less", X_OK) != 0)
        SKIP("needs less");
    kit_open(&k);
    kit_soft(&k, "less /etc/passwd");
    CHECK_HAS(k.content, "root:");
    CHECK_INT(k.exit_code, -1);
    kit_finish(&k, "q");
    CHECK_INT(k.exit_code, 0);
    kit_close(&k);
}
