// SPDX-License-Identifier: Apache-2.0
/* demo_test.c — what `make run` shows, and the lines of doc/guide.md as they stand there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/program.h"
#include "test/serve_kit.h"

TEST_LIMIT(the_demo_shows_a_sandbox_and_a_start_and_leaves_nothing, 120)
{
    struct serve s = {.key = NULL};
    own_done(buf) said;

    buf_init(&said, 1u << 20);
    serve_prepare(&s);
    setenv("CROFT_DEMO_ONCE", "1", 1);
    setenv("CROFT_DEMO_LISTEN", "127.0.0.1:0", 1);
    setenv("CROFT_SERVER_STATE_DIR", s.state, 1);
    setenv("TMPDIR", test_dir(), 1);
    const char *demo = serve_text(&s, "%s", test_source("tools/demo"));
    int code = program_run(ARGS(demo, test_program("croft")), &said);
    if (code != 0)
        FAIL("exit %d: " STR_FMT, code, STR_ARG(buf_str(&said)));
    struct str text = buf_str(&said);
    CHECK_HAS(text, "app.py: print(\"your work\")\n"); /* after all was wrecked */
    CHECK_HAS(text, "D  app.py\n");
    CHECK_HAS(text, "ms each, from exec of croft to its exit\n");
    CHECK_HAS(text, "\"status\":\"running\"");
    CHECK_HAS(text, "42, computed by root on ");
    CHECK_HAS(text, "\n  ready          ");
    CHECK_HAS(text, "\n  first_command  ");
    CHECK(str_ends(text, STR("croft serve: ended: 1 sandbox deleted with all files\n")));
    serve_reap();
    arena_done(&s.arena);
}

/* The blocks marked sh of one section, one after the other in one shell, in a network of their own:
 * the guide names ports. What the section leaves running ends with it. */
static struct str guide_run(const char *section, struct buf *said)
{
    static const char run[] =
        "awk -v want=\"## $1\" '/^## / {on = $0 == want} on && /^```sh$/ {code = 1; next}"
        "     /^```/ {code = 0} code' \"$0\" >lines;"
        " test $(wc -l <lines) -gt 5; trap 'kill $(jobs -p) 2>/dev/null || :; wait' EXIT;"
        " . ./lines </dev/null";
    char bin[300], path[600], guide[300];

    CHECK(realpath(test_source("doc/guide.md"), guide) != NULL);
    serve_prepare(&(struct serve){.key = NULL});
    CHECK(test_own_network());
    CHECK(realpath(test_program("croft"), bin) != NULL);
    *strrchr(bin, '/') = 0;
    snprintf(path, sizeof path, "%s:%s", bin, getenv("PATH"));
    setenv("PATH", path, 1);
    snprintf(path, sizeof path, "%s/state", test_dir());
    setenv("CROFT_SERVER_STATE_DIR", path, 1);
    setenv("HOME", test_dir(), 1);
    snprintf(path, sizeof path, "%s/guide", test_dir());
    CHECK(mkdir(path, 0711) == 0 && chmod(test_dir(), 0711) == 0 && chdir(path) == 0);
    buf_init(said, 4u << 20);
    int code = program_run(ARGS("bash", "-eu", "-o", "pipefail", "-c", run, guide, section), said);
    if (code != 0)
        FAIL("exit %d: " STR_FMT, code, STR_ARG(buf_str(said)));
    serve_reap();
    return buf_str(said);
}

TEST_LIMIT(the_guide_runs_a_command_in_a_sandbox_as_it_says, 120)
{
    own_done(buf) said;
    struct str text = guide_run("Run a command in a sandbox", &said);

    CHECK_HAS(text, "A  note\n");
    CHECK_HAS(text, "\nhi\n");
    CHECK_HAS(text, "\nx\n");
}

TEST_LIMIT(the_guide_serves_sandboxes_as_it_says, 120)
{
    own_done(buf) said;
    struct str text = guide_run("Serve sandboxes over HTTP", &said);

    CHECK_HAS(text, "\"content\":\"root\"");
    CHECK_HAS(text, "42\nroot\n");
}

TEST_LIMIT(the_guide_serves_actions_as_it_says, 120)
{
    own_done(buf) said;
    struct str text = guide_run("Serve actions without a sandbox", &said);

    CHECK_HAS(text, "\"content\":\"42\"");
    CHECK_HAS(text, "2\\n[Jupyter current working directory"); /* with ipykernel or without */
}
