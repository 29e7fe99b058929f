// SPDX-License-Identifier: Apache-2.0
/* plain_test.c — cells where Python has no ipykernel: what works, and what is said about the rest.
 */
#include <sys/stat.h>

#include "test/kernel_kit.h"

static struct kit *plain(void)
{
    if (access(KIT_PYTHON, X_OK) < 0)
        SKIP("no " KIT_PYTHON);
    return kit_with((struct kernel_config){.plain = true, .skills = true});
}

TEST(plain_says_once_what_it_lacks)
{
    struct kit *k = plain();

    CHECK_STR(kit_run(k, "1+1"),
              "[No ipykernel for " KIT_PYTHON ": cells run in plain Python, without magics (%), "
              "shell escapes (!), rich display and images.]\n2");
    CHECK_STR(kit_run(k, "x = 3"), "[Code executed successfully with no output]");
    CHECK_STR(kit_run(k, "print('a'); x"), "a\n3");
    CHECK_STR(kit_run(k, "x;"), "[Code executed successfully with no output]");
    CHECK_HAS(kit_run(k, "%pip list"), "need ipykernel, which this Python lacks.]");
    k->extra = true;
    CHECK_HAS(kit_run(k, "1"), "[Jupyter Python interpreter: " KIT_PYTHON "]");
    kit_free(k);
}

TEST(plain_keeps_children_and_streams_in_order)
{
    struct kit *k = plain();

    kit_run(k, "import os, sys");
    CHECK_STR(
        kit_run(k, "print('a'); print('b', file=sys.stderr); os.system('echo c'); print('d')"),
        "a\nb\nc\nd");
    CHECK_STR(kit_run(k, "print(os.getcwd())"), test_dir());
    CHECK_STR(kit_run(k, "print('\xf0\x9f\x98\x80')"), "\xf0\x9f\x98\x80");
    kit_free(k);
}

TEST(plain_shows_errors_and_refuses_input)
{
    struct kit *k = plain();

    kit_run(k, "def f():\n    1/0\n");
    CHECK_STR(kit_run(k, "f()"), "Traceback (most recent call last):\n"
                                 "  File \"<cell 4>\", line 1, in <module>\n"
                                 "    f()\n"
                                 "  File \"<cell 3>\", line 2, in f\n"
                                 "    1/0\n"
                                 "    ~^~\n"
                                 "ZeroDivisionError: division by zero");
    CHECK_HAS(kit_run(k, "def f(:"), "SyntaxError");
    CHECK_HAS(kit_run(k, "input()"), "does not support input requests");
    CHECK_HAS(kit_run(k, "raise SystemExit(3)"), "SystemExit: 3");
    CHECK_STR(kit_run(k, "7"), "7");
    kit_free(k);
}

TEST(plain_times_out_and_dies_as_the_other_does)
{
    struct kit *k = plain();

    kit_run(k, "x = 7");
    k->timeout_s = 0.5;
    CHECK_STR(kit_run(k, "while True: pass"), "[Execution timed out (0.5 seconds).]");
    k->timeout_s = 30;
    CHECK_STR(kit_run(k, "x"), "7");
    CHECK_STR(kit_run(k, "print('bye')\nimport os; os._exit(3)"),
              "bye\n[Python kernel died: exit status 3. The next cell starts a new one.]");
    CHECK_HAS(kit_run(k, "8"), "lost.]\n8");
    kit_free(k);
}

TEST(plain_takes_over_when_ipykernel_is_missing)
{
    char path[600], *dir = (char *)test_dir();
    struct stat st;

    if (stat(KIT_PYTHON, &st) < 0)
        SKIP("no " KIT_PYTHON);
    snprintf(path, sizeof path, "%s/python3", dir); /* the real one, without what is installed */
    FILE *f = fopen(path, "w");
    fprintf(f, "#!/bin/sh\nexec " KIT_PYTHON " -S \"$@\"\n");
    fclose(f);
    CHECK_INT(chmod(path, 0755), 0);
    struct kit *k = kit_with((struct kernel_config){.python = path});
    CHECK_HAS(kit_run(k, "1+1"), "[No ipykernel for ");
    CHECK_STR(kit_run(k, "1+1"), "2");
    kit_free(k);
}
