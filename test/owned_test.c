// SPDX-License-Identifier: Apache-2.0
/* owned_test.c — the rule of tools/owned: what ends itself has begun before the first way out. */
#include <fcntl.h>
#include <stdio.h>

#include "base/fd.h"
#include "base/own.h"
#include "test/program.h"
#include "test/test.h"

/* Gives what the rule says of a function with this body, in a file of this name. */
static int say(const char *name, const char *body, struct buf *ret_said)
{
    char path[400], text[600], tool[600];

    snprintf(path, sizeof path, "%s/%s", test_dir(), name);
    snprintf(text, sizeof text, "fallible f(int x)\n{\n%s\n    return NULL;\n}\n", body);
    own_fd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    CHECK_OK(fd_write_all(fd, str_of(text)));
    buf_init(ret_said, 4096);
    snprintf(tool, sizeof tool, "%s", test_source("tools/owned"));
    return program_run(ARGS(tool, path), ret_said);
}

TEST(what_ends_itself_must_have_begun_before_any_way_out)
{
    static const struct {
        const char *body;
        int line; /* 0: fine */
    } cases[] = {
        {"    own_done(buf) b = {0};\n    TRY(g());\n    buf_init(&b, 1);", 0},
        {"    own_done(buf) b;\n    int n = 1;\n\n    buf_init(&b, 1);\n    TRY(g(&b));", 0},
        {"    own_done(buf) b; /* return; */\n    say(\"return\");\n    buf_init(&b, 1);", 0},
        {"    own_done(buf) b;\n    TRY(g());\n    buf_init(&b, 1);", 3},
        {"    own_done(buf) b;\n    if (x)\n        return NULL;\n    buf_init(&b, 1);", 3},
        {"\n    own_done(buf) b;\n    TRY_WRAP(g(&b), \"x\");", 4},
        {"    own_done(buf) b;\n    struct err *e = g(&b);", 3},
        {"    own_done(buf) a = {0}, b;\n    TRY(g(&a));\n    buf_init(&b, 1);", 3},
        {"    own_done(buf) b;", 3},
        {"    own_fd fd = -1, other = g(1, 2);", 0},
        {"    own_fd fd;\n    fd = -1;", 3},
        {"    own(thing) t = NULL;", 0},
        {"    own(thing) t;", 3},
        {"    own_free char *p = NULL;", 0},
        {"    own_free char *p;", 3},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        own_done(buf) said;
        char want[40];
        int code = say("part.c", cases[i].body, &said);
        snprintf(want, sizeof want, "part.c:%d: ", cases[i].line);
        if (code != (cases[i].line != 0))
            FAIL("%s\nends in %d: %s", cases[i].body, code, buf_cstr(&said));
        if (code)
            CHECK_HAS(buf_str(&said), want);
    }
}

TEST(in_tests_any_call_that_stays_may_begin_what_ends_itself)
{
    own_done(buf) said;

    CHECK_INT(say("part_test.c", "    own_done(buf) b;\n\n    setup(&b);", &said), 0);
    buf_done(&said);
    CHECK_INT(say("part_test.c", "    own_done(buf) b;\n\n    TRY(setup(&b));", &said), 1);
    CHECK_HAS(buf_str(&said), "'b' may be ended before it has begun");
}
