// SPDX-License-Identifier: Apache-2.0
/* demo_test.c — what `make run` shows, and the README's lines as they stand there. */
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
    serve_reap();
    arena_done(&s.arena);
}

/* All but those that start a server of their own. */
TEST_LIMIT(the_lines_of_the_readme_work_as_they_stand_there, 120)
{
    static const char run[] =
        "awk '/^## The runtime API, with curl/ {on = 1} on && /^```sh/ {code = 1; next}"
        "     code && /^```/ {exit} code' \"$0\" |"
        " grep -v -e ^export -e '^croft serve' |"
        " sed \"s/localhost:3000/$AT/\" >\"$1/lines\"; cp \"$0\" \"$1\"; cd \"$1\";"
        " test $(grep -c croft lines) -gt 6; bash -eu -o pipefail ./lines </dev/null";
    struct serve s = {.key = "one-key-that-is-long-enough"};
    own_done(buf) said;
    char bin[300];

    buf_init(&said, 1u << 20);
    setenv("CROFT_API_KEY", s.key, 1);
    serve_open(&s);
    setenv("CROFT_HOST", serve_text(&s, "unix:%s/server/api.sock", s.state), 1);
    setenv("AT", serve_text(&s, "127.0.0.1:%u", (unsigned)s.wire.port), 1);
    snprintf(bin, sizeof bin, "%s", test_program("croft"));
    *strrchr(bin, '/') = 0;
    setenv("PATH", serve_text(&s, "%s:%s", bin, getenv("PATH")), 1);
    const char *readme = serve_text(&s, "%s", test_source("README.md"));
    const char *dir = serve_text(&s, "%s/project", test_dir());
    CHECK_INT(mkdir(dir, 0700), 0);
    int code = program_run(ARGS("bash", "-e", "-c", run, readme, dir), &said);
    if (code != 0)
        FAIL("exit %d: " STR_FMT, code, STR_ARG(buf_str(&said)));
    CHECK_HAS(buf_str(&said), "\"content\":\"root\"");
    CHECK_HAS(buf_str(&said), "42\nroot\n");
    serve_close(&s);
}
