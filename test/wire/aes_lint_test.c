// SPDX-License-Identifier: Apache-2.0
/* aes_lint_test.c — edits that say what they broke, when ENABLE_AUTO_LINT asks for it. */
#include <unistd.h>

#include "test/aes.h"
#include "test/program.h"

static struct str edit(struct aes *a, const char *file, const char *quoted)
{
    struct json *o =
        aes_act(a, "edit",
                aes_text(a, "'path':'%s','command':'str_replace',%s", aes_path(a, file), quoted));

    CHECK_STR(json_get_str(o, "observation", STR("")), "edit");
    return json_get_str(o, "content", STR(""));
}

AES_TEST(lint_tells_what_an_edit_broke_in_the_words_of_the_contract)
{
    struct aes a;

    aes_open(&a, &(struct aes_config){.program = program, .env = ARGS("ENABLE_AUTO_LINT=true")});
    aes_put(&a, "a.json", STR("[1]\n"));
    aes_put(&a, "a.py", STR("x = 1\n"));
    aes_put(&a, "a.sh", STR("echo\n"));
    aes_put(&a, "a.txt", STR("one\n"));
    CHECK_STR(edit(&a, "a.py", "'old_str':'1','new_str':'2'"),
              aes_text(&a,
                       "The file %s/a.py has been edited. Here's the result of running `cat -n` on "
                       "a snippet of %s/a.py:\n     1\tx = 2\n     2\t\n\nNo linting issues found "
                       "in the changes.\nReview the changes and make sure they are as expected. "
                       "Edit the file again if necessary.",
                       a.dir, a.dir));
    CHECK_HAS(edit(&a, "a.py", "'old_str':'2','new_str':'('"),
              "\nLinting issues found in the changes:\n- Line 1, Column 5: E999 SyntaxError: ");
    CHECK_HAS(edit(&a, "a.json", "'old_str':'1','new_str':'1,,2'"),
              "\nLinting issues found in the changes:\n- Line 1, Column 4: ");
    CHECK_HAS(edit(&a, "a.sh", "'old_str':'echo','new_str':'fi'"),
              "- Line 1, Column 1: syntax error near unexpected token `fi'\n\nReview");
    CHECK_HAS(edit(&a, "a.txt", "'old_str':'one','new_str':'two'"),
              "No linting issues found in the changes.");
    CHECK_STR(aes_get(&a, "a.sh"), "fi\n"); /* the edit is made all the same */
    aes_close(&a);
}

AES_TEST(lint_is_off_unless_asked_for)
{
    struct aes a;

    aes_open_plain(&a, program);
    aes_put(&a, "a.json", STR("[1]\n"));
    CHECK(str_find(edit(&a, "a.json", "'old_str':'1','new_str':'1,,2'"), STR("inting")) < 0);
    aes_close(&a);
}

/* A tool that never ends is left behind by nobody. */
AES_TEST(lint_under_way_ends_with_the_server)
{
    struct aes a;

    aes_open(&a, &(struct aes_config){.program = program, .env = ARGS("ENABLE_AUTO_LINT=1")});
    aes_put(&a, "a.sh", STR("echo\n"));
    const char *tool = aes_text(&a, "%s/bin/bash", test_dir());
    aes_act(&a, "write",
            aes_text(&a, "'path':'%s','content':'#!/bin/sh\\n: > %s/runs\\nexec sleep 1000'", tool,
                     a.dir));
    aes_act(&a, "run", aes_text(&a, "'command':'mkfifo %s/runs; chmod 755 %s'", a.dir, tool));
    int fd = aes_send(&a, "POST", "/execute_action", "",
                      aes_quoted(&a, aes_text(&a,
                                              "{'action':{'action':'edit','args':{'path':'%s',"
                                              "'command':'str_replace','old_str':'echo',"
                                              "'new_str':'fi'}}}",
                                              aes_path(&a, "a.sh"))));
    CHECK_STR(aes_get(&a, "runs"), ""); /* waits until the tool has it open */
    CHECK_INT(aes_ask_get(&a, "/alive").status, 200);
    aes_close(&a);
    close(fd);
}
