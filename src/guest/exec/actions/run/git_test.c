// SPDX-License-Identifier: Apache-2.0
#include "guest/exec/actions/run/git.h"

#include <stdlib.h>

#include "test/test.h"

#define SCRIPTS "python3 /openhands/code/openhands/runtime/utils/"

TEST(git_knows_the_commands_of_the_panel_and_no_others)
{
    static const struct {
        const char *command, *cwd, *file;
    } good[] = {
        {SCRIPTS "git_changes.py", "", NULL},
        {"  " SCRIPTS "git_changes.py\n", "", NULL},
        {SCRIPTS "git_diff.py \"a b/c$d.txt\"", "", "a b/c$d.txt"},
        {SCRIPTS "git_diff.py plain.txt", "", "plain.txt"},
        {"cd \"/w s\" && " SCRIPTS "git_changes.py", "/w s", NULL},
        {"cd /w && " SCRIPTS "git_diff.py 'x'", "/w", "x"},
    };
    static const char *const bad[] = {
        "",
        "git status",
        SCRIPTS "git_changes.py; ls",
        SCRIPTS "git_changes.py x",
        SCRIPTS "git_diff.py",
        SCRIPTS "git_diff.py a b",
        SCRIPTS "git_diff.py \"a\" && rm \"b\"",
        SCRIPTS "git_diff.py $x",
        "cd $x && " SCRIPTS "git_changes.py",
        "cd /w; " SCRIPTS "git_changes.py",
        "echo " SCRIPTS "git_changes.py",
    };
    struct git_ask ask;

    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        CHECK(git_parse(str_of(good[i].command), &ask));
        CHECK_STR(ask.cwd, good[i].cwd);
        CHECK(!ask.file.p == !good[i].file);
        if (ask.file.p)
            CHECK_STR(ask.file, good[i].file);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (git_parse(str_of(bad[i]), &ask))
            FAIL("taken for the panel's: %s", bad[i]);
}

TEST(git_changes_are_sorted_and_printed_as_python_does)
{
    struct arena a;
    struct str printed;

    arena_init(&a, 1u << 20);
    CHECK_OK(git_print_changes(&a, STR(""), &printed));
    CHECK_STR(printed, "[]");
    CHECK_OK(git_print_changes(
        &a, STR("Rsub/\0M\0x\0?\0.\0R\0D\0z\0T\0link\0A\0?\0?\0new \"q\"\0\xc3\xa4\0sub.c\0.\0"),
        &printed));
    CHECK_STR(printed, "[{\"status\": \"A\", \"path\": \"?\"}, {\"status\": \"M\", \"path\": "
                       "\"link\"}, {\"status\": \"A\", \"path\": \"new \\\"q\\\"\"}, {\"status\": "
                       "\"A\", \"path\": \"sub.c\"}, {\"status\": \"M\", \"path\": \"sub/x\"}, "
                       "{\"status\": \"D\", \"path\": \"z\"}, {\"status\": \"A\", \"path\": "
                       "\"\\u00e4\"}]");
    CHECK_OK(git_print_changes(&a, STR("R\0M\0x\0"), &printed)); /* git died */
    CHECK(str_starts(printed, STR("{\"error\": \"")));
    arena_done(&a);
}

TEST(git_diff_is_printed_as_python_does)
{
    struct arena a;
    struct str printed;

    arena_init(&a, 16u << 20);
    CHECK(git_print_diff(&a, STR("6\n old\n\nnew\r\nline\n\xc3\xa4\n"), &printed));
    CHECK_STR(printed, "{\"modified\": \"new\\nline\\n\\u00e4\", \"original\": \"old\"}");
    CHECK(git_print_diff(&a, STR("0\n"), &printed));
    CHECK_STR(printed, "{\"modified\": \"\", \"original\": \"\"}");
    CHECK(git_print_diff(&a, STR("0\n\n\nx\fy"), &printed));
    CHECK_STR(printed, "{\"modified\": \"\\n\\nx\\ny\", \"original\": \"\"}");
    CHECK(!git_print_diff(&a, STR("0\n\xff\xfe"), &printed));
    CHECK_STR(printed, "git_diff: the file is not text");
    CHECK(!git_print_diff(&a, STR(""), &printed));
    CHECK(!git_print_diff(&a, STR("9\nshort"), &printed));
    own_free char *large = calloc(1, GIT_FILE_BYTES + 3);
    memcpy(large, "0\n", 2);
    CHECK(!git_print_diff(&a, str_n(large, GIT_FILE_BYTES + 3), &printed));
    CHECK_STR(printed, "git_diff: the file is larger than 1 MiB");
    CHECK(git_print_diff(&a, str_n(large, GIT_FILE_BYTES + 2), &printed));
    arena_done(&a);
}
