// SPDX-License-Identifier: Apache-2.0
/* aes_python_test.c — cells (section 4) through HTTP, in the real ipykernel. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/aes_run.h"
#include "test/program.h"

#define PYTHON "/usr/bin/python3"

static void need_ipykernel(void)
{
    own_done(buf) said;

    buf_init(&said, 1u << 20);
    if (program_run(ARGS(PYTHON, "-c", "import ipykernel"), &said) != 0)
        SKIP(PYTHON " has no ipykernel");
}

/* {"action":{"action":"run_ipython",…}} */
static struct str cell(struct aes *a, const char *code, double timeout, bool extra)
{
    own_done(buf) body;
    struct jw w;

    buf_init(&body, 1u << 20);
    jw_init(&w, &body, JW_WEB);
    JW_OBJECT(&w, NULL) {
        JW_OBJECT(&w, "action") {
            jw_cstr(&w, "action", "run_ipython");
            JW_OBJECT(&w, "args") {
                jw_cstr(&w, "code", code);
                jw_bool(&w, "include_extra", extra);
            }
            if (timeout > 0)
                jw_double(&w, "timeout", timeout);
        }
    }
    struct aes_answer r = aes_ask(a, "POST", "/execute_action", "", buf_str(&body));
    if (r.status != 200)
        FAIL("%s: %d " STR_FMT, code, r.status, STR_ARG(r.body));
    return r.body;
}

/* The whole observation of a cell that shows text and no image. */
static void check_cell(struct aes *a, const char *code, const char *content)
{
    own_done(buf) want;
    struct jw w;

    buf_init(&want, 1u << 20);
    jw_init(&w, &want, JW_WEB);
    JW_OBJECT(&w, NULL) {
        jw_cstr(&w, "message", "Code executed in IPython cell.");
        jw_cstr(&w, "observation", "run_ipython");
        jw_cstr(&w, "content", content);
        JW_OBJECT(&w, "extras") {
            jw_cstr(&w, "code", code);
            jw_null(&w, "image_urls");
        }
        jw_bool(&w, "success", true);
    }
    CHECK_STR(cell(a, code, 0, true), buf_str(&want));
}

static struct str text_of(struct aes *a, const char *code, double timeout)
{
    return json_get_str(aes_json(a, cell(a, code, timeout, false)), "content", STR("(none)"));
}

#define TRAILER "\n[Jupyter current working directory: %s]\n[Jupyter Python interpreter: %s]"

static void check_rows(struct aes *a)
{
    const char *python = aes_text(a, STR_FMT, STR_ARG(text_of(a, "print(sys.executable)", 0)));
    const char *tail = aes_text(a, TRAILER, a->dir, python);

    check_cell(a, "print('Hello, `World`!\\n')", aes_text(a, "Hello, `World`!%s", tail));
    check_cell(a, "print(1)", aes_text(a, "1%s", tail));
    check_cell(a, "with open('test.txt','w') as f: f.write('x')",
               aes_text(a, "[Code executed successfully with no output]%s", tail));
    CHECK_STR(aes_get(a, "test.txt"), "x");
    check_cell(a, "import os; print(os.environ['USER'])", aes_text(a, "%s%s", a->user, tail));
    CHECK_HAS(text_of(a, "import pymsgbox", 0), "ModuleNotFoundError: No module named 'pymsgbox'");
    CHECK_STR(text_of(a, "!echo from the shell", 0), "from the shell");
    CHECK_STR(text_of(a, "%%bash\necho magic", 0), "magic");
    CHECK_HAS(text_of(a, "1/0", 0), "ZeroDivisionError: division by zero");
    CHECK(str_find(text_of(a, "1/0", 0), STR("\033")) < 0); /* no colours */
    CHECK_HAS(text_of(a, "print(file_editor(command='view', path='/no/such'))", 0),
              "does not exist");
    aes_run_plain(a, "mkdir -p sub && cd sub"); /* the kernel follows the shell */
    check_cell(a, "print(os.getcwd())",
               aes_text(a, "%s/sub" TRAILER, a->dir, aes_path(a, "sub"), python));
    check_cell(a, "os.chdir('/'); print(os.getcwd())", /* the trailer is the shell's */
               aes_text(a, "/" TRAILER, aes_path(a, "sub"), python));
    CHECK_STR(text_of(a, "print(os.getcwd())", 0), "/"); /* until the shell moves again */
}

AES_TEST(aes_python_rows_of_the_contract)
{
    struct aes a;

    need_ipykernel();
    aes_open_plain(&a, program);
    check_rows(&a);
    aes_close(&a);
}

AES_TEST(aes_python_images_timeouts_and_odd_displays)
{
    struct aes a;

    need_ipykernel();
    aes_open_plain(&a, program);
    const struct json *o =
        aes_json(&a, cell(&a,
                          "from IPython.display import display\n"
                          "display({'image/png': 'iVBORw0KGgo=', 'text/plain': 'pic'}, raw=True)",
                          0, false));
    CHECK_STR(aes_print(&a, json_get(json_get(o, STR("extras")), STR("image_urls"))),
              "[\"data:image/png;base64,iVBORw0KGgo=\"]");
    CHECK_HAS(json_get_str(o, "content", STR("")), "pic");
    o = aes_json(&a, cell(&a, "display({'image/png': 'iVBORw0KGgo='}, raw=True)", 0, false));
    CHECK_INT(json_get(json_get(o, STR("extras")), STR("image_urls"))->count, 1); /* DEF-23 */
    CHECK_STR(text_of(&a, "import time\nprint('partial', flush=True)\ntime.sleep(60)", 1.5),
              "[Execution timed out (1.5 seconds).]");
    CHECK_STR(text_of(&a, "print('goes on')", 0), "goes on");
    CHECK_HAS(text_of(&a, "input('name? ')", 0), "StdinNotImplementedError");
    aes_close(&a);
}

AES_TEST(aes_python_without_python_says_so)
{
    struct aes a;

    aes_open(&a, &(struct aes_config){.program = program, .env = ARGS("PATH=/nowhere")});
    const struct json *o = aes_act(&a, "run_ipython", "'code':'1'");
    CHECK_STR(json_get_str(o, "observation", STR("")), "error");
    CHECK_HAS(json_get_str(o, "content", STR("")), "python3");
    aes_close(&a);
}
