// SPDX-License-Identifier: Apache-2.0
/* What start-up files may do to a shell whose first command is typed while they still run. */
#include "test/test.h"

#include "guest/shell/shell_kit.h"

static void open_with_rc(struct kit *k, const char *rc)
{
    char path[300];

    snprintf(path, sizeof path, "%s/.bashrc", test_dir());
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(rc, f) >= 0 && fclose(f) == 0);
    kit_open(k);
}

/* The first command is typed at once: bash has not even begun. */
TEST(shell_takes_its_first_command_whatever_its_start_up_files_do)
{
    static const char *const files[] = {
        "",
        "echo welcome; echo to you >&2; printf 'no newline'\n",
        "sleep 0.1; echo late\n",
        "PROMPT_COMMAND='echo mine'; PS1='mine> '\n",
        "PROMPT_COMMAND=(one two)\n",
        "unset PROMPT_COMMAND CROFT_A CROFT_C CROFT_Q\n",
        "stty -echo\n",
        "set -u -o pipefail; trap 'echo bye' EXIT\n",
        "set -a -x\n",
        "false\n",
        "exec 2>&1; return 3\n",
        "bash --norc -c :; env >/dev/null; (sleep 0.2; echo behind) &\n",
        "case ${AGAIN-} in '') export AGAIN=1; exec bash --noediting -i +H;; esac\n",
        "case ${AGAIN-} in '') AGAIN=1 bash --noediting -i +H; exit;; esac\n",
        "kill -WINCH $$; bind '\"x\":\"y\"' 2>/dev/null; shopt -s checkwinsize histappend\n",
    };

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        struct kit k;
        open_with_rc(&k, files[i]);
        kit_run(&k, "echo first \"$((6*7))\"; (exit 3)");
        if (strcmp(k.content, "first 42") != 0 && !strstr(files[i], "-x"))
            FAIL("after '%s': '%s'", files[i], k.content);
        CHECK_INT(k.exit_code, 3);
        CHECK_STR(k.working_dir, k.home);
        kit_run(&k, "set +x; echo 'second'");
        CHECK_HAS(k.content, "second");
        kit_close_one(&k);
    }
}

/* Who lost the number of the start says so without it, once: it must not end the first command. */
TEST(shell_without_the_number_of_its_start_runs_its_first_command_to_the_end)
{
    struct kit k;

    open_with_rc(&k, "unset CROFT_Q\n");
    for (int i = 0; i < 5; i++) {
        kit_run(&k, "sleep 0.03; (exit 3)"); /* longer than the terminal is left alone */
        CHECK_INT(k.exit_code, 3);
        kit_run(&k, "kill -9 $$");
    }
    kit_close(&k);
}

TEST(shell_typed_ahead_finds_the_status_of_the_start_up_files)
{
    struct kit k;

    open_with_rc(&k, "f() { return 7; }; f\n");
    kit_expect(&k, "echo $?", "7", 0);
    kit_close(&k);
}

TEST(shell_that_ends_with_its_first_command_comes_back_with_what_it_exported)
{
    struct kit k;

    open_with_rc(&k, "export BEFORE=1\n");
    kit_run(&k, "export AFTER=2; cd /; exit 5");
    CHECK_INT(k.exit_code, 5);
    kit_run(&k, "echo $BEFORE $AFTER $PWD $PAGER");
    CHECK_STR(k.content, "1 2 / cat");
    kit_close(&k);
}

/* Nothing was written down yet: the next one has what the first had. */
TEST(shell_that_is_killed_in_its_first_command_comes_back_with_its_environment)
{
    struct kit k;

    open_with_rc(&k, "");
    kit_run(&k, "kill -9 $$");
    CHECK_INT(k.exit_code, 137);
    kit_expect(&k, "echo $PAGER", "cat", 0);
    kit_close(&k);
}

/* The line went to a start-up file that reads the terminal: it is typed again, once, to a bash that
 * has said it is ready. */
TEST(shell_runs_its_first_command_once_though_a_start_up_file_took_the_line)
{
    struct kit k;

    open_with_rc(&k, "if [ ! -e $HOME/took ]; then read a; read b; echo \"$b\" >$HOME/took; "
                     "kill -9 $$; fi\n");
    kit_run(&k, "echo ran >>$HOME/ran; cat $HOME/ran; grep -c CROFT_B $HOME/took");
    CHECK_STR(k.content, "ran\n1");
    kit_close(&k);
}

TEST(shell_takes_a_long_first_command_and_input_for_it)
{
    struct kit k;
    own_done(buf) text;

    open_with_rc(&k, "sleep 0.1\n");
    buf_init(&text, 1 << 20);
    buf_add_cstr(&text, "read a; read b; echo \"got $a $b\" #");
    for (int i = 0; i < 20000; i++)
        buf_add_char(&text, 'x');
    k.answered = false;
    struct shell_request r = {
        .command = buf_str(&text), .blocking = true, .done = kit_on_done, .arg = &k};
    CHECK_OK(shell_run(k.shell, &r));
    CHECK_OK(shell_send(k.shell, STR("one\ntwo\n")));
    kit_wait(&k);
    CHECK_HAS(k.content, "got one two");
    kit_close(&k);
}
