// SPDX-License-Identifier: Apache-2.0
/* kernel_test.c — cells in the real ipykernel: what they print and how it is put together. */
#include "test/kernel_kit.h"

#include <sys/stat.h>

static const char *expect_extra(struct kit *k, const char *text)
{
    static char want[4096];

    snprintf(want, sizeof want,
             "%s\n[Jupyter current working directory: %s]\n[Jupyter Python interpreter: %s]", text,
             k->cwd, KIT_PYTHON);
    return want;
}

TEST(kernel_prints_and_says_where_it_is)
{
    struct kit *k = kit_new();

    k->extra = true;
    CHECK_STR(kit_run(k, "print('Hello, `World`!\\n')"), expect_extra(k, "Hello, `World`!"));
    CHECK_STR(kit_run(k, "print(1)"), expect_extra(k, "1"));
    CHECK_STR(kit_run(k, "with open('test.txt','w') as f: f.write('x')"),
              expect_extra(k, "[Code executed successfully with no output]"));
    kit_free(k);
}

TEST(kernel_shows_values_magics_and_missing_modules)
{
    struct kit *k = kit_new();

    CHECK_STR(kit_run(k, "1+1"), "2");
    CHECK_STR(kit_run(k, "print('a')\n40 + 2"), "a\n42");
    CHECK_STR(kit_run(k, "!echo from the shell"), "from the shell");
    CHECK_STR(kit_run(k, "%%bash\necho magic"), "magic");
    CHECK_HAS(kit_run(k, "import pymsgbox"), "ModuleNotFoundError: No module named 'pymsgbox'");
    CHECK_STR(kit_run(k, "a = 5;"), "[Code executed successfully with no output]");
    CHECK_STR(kit_run(k, "print(a, sys is not None, os is not None)"), "5 True True");
    kit_free(k);
}

/* As `%pip install pymsgbox==1.0.9`, from a wheel made here instead of the network. */
TEST(kernel_installs_a_package_by_magic)
{
    struct kit *k = kit_new();

    if (!strstr(kit_run(k, "%pip --version"), "pip 2"))
        SKIP(KIT_PYTHON " has no pip");
    kit_run(k, "import zipfile, sys\n"
               "info = 'pymsgbox-1.0.9.dist-info/'\n"
               "with zipfile.ZipFile('pymsgbox-1.0.9-py3-none-any.whl', 'w') as z:\n"
               "    z.writestr('pymsgbox.py', 'answer = 42')\n"
               "    z.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: pymsgbox\\n"
               "Version: 1.0.9\\n')\n"
               "    z.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\n"
               "Root-Is-Purelib: true\\nTag: py3-none-any\\n')\n"
               "    z.writestr(info + 'RECORD', '')\n"
               "sys.path.append('lib')");
    CHECK_HAS(kit_run(k, "%pip install --no-index --target lib ./pymsgbox-1.0.9-py3-none-any.whl"),
              "Successfully installed pymsgbox-1.0.9");
    CHECK_STR(kit_run(k, "import pymsgbox; pymsgbox.answer"), "42");
    kit_free(k);
}

TEST(kernel_keeps_stdout_and_stderr_in_order)
{
    struct kit *k = kit_new();

    CHECK_STR(kit_run(k, "import sys\n"
                         "for i in range(5):\n"
                         "    print('out', i)\n"
                         "    print('err', i, file=sys.stderr)\n"
                         "'value'"),
              "out 0\nerr 0\nout 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\nout 4\nerr 4\n'value'");
    kit_free(k);
}

TEST(kernel_error_is_a_traceback_without_colours)
{
    struct kit *k = kit_new();

    const char *got = kit_run(k, "print('before')\n1/0");
    CHECK(strncmp(got, "before\n-----", 12) == 0);
    CHECK_HAS(got, "ZeroDivisionError: division by zero");
    CHECK(!strchr(got, '\033'));
    CHECK_HAS(kit_run(k, "def f(:"), "SyntaxError");
    CHECK_HAS(kit_run(k, "raise SystemExit(3)"), "SystemExit: 3");
    CHECK_STR(kit_run(k, "print('\\033[31mred\\033[0m \\033[1;2;3mx\\033[m')"), "red x\033[m");
    CHECK_STR(kit_run(k, "2"), "2"); /* it lives */
    kit_free(k);
}

TEST(kernel_images_are_data_urls)
{
    struct kit *k = kit_new();

    CHECK_STR(kit_run(k, "from IPython.display import Image, display\n"
                         "import base64\n"
                         "display(Image(data=base64.b64decode('iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB"
                         "CAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==')))"),
              "<IPython.core.display.Image object>");
    CHECK_INT(k->last->image_count, 1);
    CHECK_HAS(k->last->image, "data:image/png;base64,iVBORw0KGgo");
    CHECK(!strchr(k->last->image, '\n'));
    /* DEF-23: data without text/plain is no failure */
    CHECK_STR(kit_run(k, "display({'text/html': '<b>x</b>'}, raw=True)"),
              "[Code executed successfully with no output]");
    CHECK_INT(k->last->image_count, 0);
    kit_free(k);
}

TEST(kernel_refuses_input_at_once)
{
    struct kit *k = kit_new();

    CHECK_HAS(kit_run(k, "input('name? ')"), "does not support input requests");
    CHECK_STR(kit_run(k, "1"), "1");
    kit_free(k);
}

/* DEF-18. ipykernel itself binds one port of 127.0.0.1, for the output of forked children. */
TEST(kernel_is_out_of_reach_of_other_machines)
{
    struct kit *k = kit_new();

    CHECK_STR(kit_run(k, "import os\n"
                         "mine = set()\n"
                         "for f in os.listdir('/proc/self/fd'):\n"
                         "    try: mine.add(os.readlink('/proc/self/fd/' + f))\n"
                         "    except OSError: pass\n"
                         "lines = open('/proc/net/tcp').readlines() + "
                         "open('/proc/net/tcp6').readlines()\n"
                         "print([l for l in lines "
                         "if 'socket:[%s]' % l.split()[9] in mine and '0100007F' not in l])"),
              "[]");
    kit_free(k);
}

TEST(kernel_takes_any_text)
{
    struct kit *k = kit_new();

    CHECK_STR(kit_run(k, "print('h\xc3\xa9llo \xe2\x82\xac \xf0\x9f\x98\x80')"),
              "h\xc3\xa9llo \xe2\x82\xac \xf0\x9f\x98\x80");
    CHECK_STR(kit_run(k, ""), "[Code executed successfully with no output]");
    CHECK_STR(kit_run(k, "print('x\\u2003\\u3000\\n')"), "x");
    CHECK_STR(kit_run(k, "print('\\udc80')"), "\xef\xbf\xbd"); /* it sends the bare byte */
    kit_free(k);
}

TEST_LIMIT(kernel_output_is_bounded, 120)
{
    struct kit *k = kit_new();

    const char *got = kit_run(k, "for i in range(10): print(chr(97 + i) * 1_000_000)");
    size_t len = strlen(got);
    CHECK(len > 4000000 && len <= (4u << 20) + 100);
    CHECK(got[0] == 'a' && got[len - 1] == 'j');
    CHECK_HAS(got, "\n[... Observation truncated due to length ...]\n");
    const char *big = kit_run(k, "print('y' * 50_000_000)");
    CHECK(strlen(big) < 5000000);
    CHECK_STR(kit_run(k, "1"), "1");
    kit_free(k);
}

TEST(kernel_follows_the_shell_and_only_when_it_moved)
{
    struct kit *k = kit_new();
    char sub[600];

    snprintf(sub, sizeof sub, "%s/a \"b\\ \xe2\x82\xac\xf0\x9f\x98\x80", test_dir());
    CHECK_INT(mkdir(sub, 0700), 0);
    CHECK_STR(kit_run(k, "import os; print(os.getcwd())"), test_dir());
    kit_run(k, "os.chdir('/')");
    CHECK_STR(kit_run(k, "print(os.getcwd())"), "/");
    snprintf(k->cwd, sizeof k->cwd, "%s", sub);
    CHECK_STR(kit_run(k, "print(os.getcwd())"), sub);
    snprintf(k->cwd, sizeof k->cwd, "/nonexistent");
    CHECK_STR(kit_run(k, "print(os.getcwd())"), sub);
    kit_free(k);
}

TEST(kernel_does_not_import_from_the_workspace_while_it_starts)
{
    struct kit *k = kit_new();
    char path[600];

    snprintf(path, sizeof path, "%s/json.py", test_dir());
    FILE *f = fopen(path, "w");
    fputs("raise RuntimeError('mine')\n", f);
    fclose(f);
    CHECK_STR(kit_run(k, "1"), "1");
    kit_free(k);
}

TEST(kernel_environment_is_the_one_given)
{
    kit_need_ipykernel();
    static char *env[] = {(char *)"PATH=/usr/bin:/bin", (char *)"USER=somebody", NULL};
    struct kit *k = kit_with((struct kernel_config){.env = env});

    CHECK_STR(kit_run(k, "import os; print(os.environ['USER'])"), "somebody");
    CHECK_STR(kit_run(k, "print('HOME' in os.environ)"), "False");
    kit_free(k);
}

TEST(kernel_queue_runs_one_cell_at_a_time_in_order)
{
    struct kit *k = kit_new();
    struct kit_answer *a[5];
    char code[64];

    kit_run(k, "seen = []");
    for (unsigned i = 0; i < 5; i++) {
        snprintf(code, sizeof code, "seen.append(%u); print(seen)", i);
        a[i] = kit_ask(k, code);
    }
    kit_wait(k);
    for (unsigned i = 0; i < 5; i++)
        CHECK_INT(a[i]->order, i + 2);
    CHECK_STR(a[0]->content, "[0]");
    CHECK_STR(a[4]->content, "[0, 1, 2, 3, 4]");
    kit_free(k);
}

static void count_text(void *owner, struct str text)
{
    *(size_t *)owner += text.len;
}

static void on_live_done(void *owner, const struct kernel_result *r)
{
    CHECK_STR(r->content, "abc");
    *(size_t *)owner |= 1u << 20;
}

TEST(kernel_tells_text_as_it_comes)
{
    struct kit *k = kit_new();
    size_t seen = 0;
    struct kernel_cell cell = {.code = STR("print('abc')"),
                               .cwd = STR("/"),
                               .on_text = count_text,
                               .done = on_live_done,
                               .owner = &seen};

    CHECK_OK(kernel_run(k->kernel, &cell, NULL));
    while (!(seen >> 20))
        CHECK_OK(loop_turn(k->loop, -1));
    CHECK_INT(seen & 0xffff, 4);
    kit_free(k);
}
