// SPDX-License-Identifier: Apache-2.0
#include "guest/shell/shell_text.h"

#include "guest/shell/shell_keys.h"
#include "test/test.h"

#define HINT                                                                                       \
    "You may wait longer to see additional output by sending empty command '', send other "        \
    "commands to interact with the current process, send keys (\"C-c\", \"C-z\", \"C-d\") to "     \
    "interrupt/kill the previous command before sending your new command, or use the timeout "     \
    "parameter in execute_bash for future commands.]"

static void check_suffix(struct shell_result r, const char *want)
{
    struct buf b;

    buf_init(&b, 65536);
    shell_text_suffix(&b, &r);
    CHECK_STR(buf_str(&b), want);
    buf_done(&b);
}

TEST(suffixes_are_upstreams_to_the_byte)
{
    check_suffix((struct shell_result){.meta.exit_code = 0},
                 "\n[The command completed with exit code 0.]");
    check_suffix((struct shell_result){.meta.exit_code = 130, .key = 'c'},
                 "\n[The command completed with exit code 130. CTRL+C was sent.]");
    check_suffix((struct shell_result){.status = SHELL_NO_CHANGE, .timeout_s = 10},
                 "\n[The command has no new output after 10 seconds. " HINT);
    check_suffix((struct shell_result){.status = SHELL_HARD_TIMEOUT, .timeout_s = 1},
                 "\n[The command timed out after 1.0 seconds. " HINT);
    check_suffix((struct shell_result){.status = SHELL_HARD_TIMEOUT, .timeout_s = 2.5},
                 "\n[The command timed out after 2.5 seconds. " HINT);
    check_suffix((struct shell_result){.status = SHELL_HARD_TIMEOUT, .timeout_s = 120},
                 "\n[The command timed out after 120.0 seconds. " HINT);
    check_suffix(
        (struct shell_result){.status = SHELL_NOT_EXECUTED, .command = STR("ls \"x\"")},
        "\n[Your command \"ls \"x\"\" is NOT executed. The previous command is still "
        "running - You CANNOT send new commands until the previous command is completed. "
        "By setting `is_input` to `true`, you can interact with the current process: " HINT);
    check_suffix((struct shell_result){.status = SHELL_NOTHING_RUNS}, "");
    check_suffix((struct shell_result){.status = SHELL_SEVERAL}, "");
}

static void check_content(struct shell_result r, const char *prefix, const char *content)
{
    struct buf b;

    buf_init(&b, 1 << 20);
    shell_text_content(&b, &r, SHELL_TEXT_LIMIT);
    CHECK_STR(buf_str(&b), content);
    buf_reset(&b);
    shell_text_prefix(&b, &r);
    CHECK_STR(buf_str(&b), prefix);
    buf_done(&b);
}

TEST(content_is_trimmed_as_upstream_does)
{
    check_content((struct shell_result){.text = STR("\n \t x \n y \n\n")}, "", "x \n y");
    check_content((struct shell_result){.text = STR("\xc2\xa0\xe3\x80\x80x\xe2\x80\xa8")}, "", "x");
    check_content((struct shell_result){.text = STR("ls\nls\n"), .command = STR("ls")}, "",
                  "ls\nls");
    check_content(
        (struct shell_result){.text = STR(" hi\nhi"), .command = STR("hi"), .is_input = true}, "",
        "hi");
    check_content((struct shell_result){.text = STR("  "), .command = STR("x"), .is_input = true},
                  "", "");
    check_content((struct shell_result){.previous = STR("old \n"), .text = STR("\nnew\n")},
                  "[Below is the output of the previous command.]\n", "old\nnew");
    check_content((struct shell_result){.status = SHELL_NO_CHANGE, .continued = true},
                  "[Below is the output of the previous command.]\n", "");
    check_content((struct shell_result){.continued = true, .text = STR("x")}, "", "x");
    check_content((struct shell_result){.text = STR("a\nb\nc\n"), .dropped_lines = 7},
                  "[Previous command outputs are truncated. Showing the last 3 lines of the output "
                  "below.]\n",
                  "a\nb\nc");
    own(err) e = err_new(ERR_IO, "disk full");
    check_content((struct shell_result){.status = SHELL_FAILED, .error = e}, "", "disk full");
}

TEST(truncation_counts_code_points)
{
    struct buf b;

    buf_init(&b, 4096);
    shell_text_truncate(&b, STR("0123456789"), 10);
    CHECK_STR(buf_str(&b), "0123456789");
    buf_reset(&b);
    shell_text_truncate(&b, STR("0123456789a"), 10);
    CHECK_STR(buf_str(&b), "01234\n[... Observation truncated due to length ...]\n6789a");
    buf_reset(&b);
    shell_text_truncate(&b, STR("ééééééé"), 4);
    CHECK_STR(buf_str(&b), "éé\n[... Observation truncated due to length ...]\néé");
    buf_reset(&b);
    shell_text_truncate(&b, STR("ééééééé"), 7);
    CHECK_STR(buf_str(&b), "ééééééé");
    buf_reset(&b);
    shell_text_truncate(&b, STR("no limit"), 0);
    CHECK_STR(buf_str(&b), "no limit");
    buf_done(&b);
}

TEST(what_was_reported_is_not_reported_again)
{
    CHECK_STR(shell_text_since(STR(""), STR("abc"), 0), "abc");
    CHECK_STR(shell_text_since(STR("a\nb"), STR("a\nb\nc"), 0), "\nc");
    CHECK_STR(shell_text_since(STR(">>>"), STR(">>> 1+1\n2\n>>>"), 0), " 1+1\n2\n>>>");
    CHECK_STR(shell_text_since(STR("log\n 50%"), STR("log\n100%"), 0), "100%");
    CHECK_STR(shell_text_since(STR("1\n2\n3\n4"), STR("3\n4\n5"), 2), "\n5");
    CHECK_STR(shell_text_since(STR("1\n2"), STR("8\n9"), 9), "8\n9");
    CHECK_STR(shell_text_since(STR("abc"), STR(""), 0), "");
}

static void check_keys(const char *text, bool named, const char *want)
{
    struct buf b;

    buf_init(&b, 256);
    shell_keys_bytes(&b, str_of(text), named, -1);
    CHECK_STR(buf_str(&b), want);
    buf_done(&b);
}

TEST(keys_are_what_a_terminal_sends)
{
    CHECK_INT(shell_keys_control(STR("C-c")), 'c');
    CHECK_INT(shell_keys_control(STR("C-Z")), 'z');
    CHECK_INT(shell_keys_control(STR("C-")), 0);
    CHECK_INT(shell_keys_control(STR("C-cc")), 0);
    CHECK_INT(shell_keys_control(STR("M-x")), 0);
    check_keys("C-c", false, "\003");
    check_keys("C-[", false, "\033");
    check_keys("C-\\", false, "\034");
    check_keys("C-?", false, "\177");
    check_keys("UP", false, "UP\r");
    check_keys("UP", true, "\033[A");
    check_keys("y", true, "y\r");
}
