// SPDX-License-Identifier: Apache-2.0
#include "guest/tool/tool.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "guest/spawn/spawn.h"
#include "loop/loop.h"
#include "test/test.h"

static const char *const env[] = {"PATH=/usr/bin:/bin", "X=y", NULL};

struct outcome {
    bool called;
    struct tool_result r;
    char output[4096];
};

static void on_done(void *arg, const struct tool_result *r)
{
    struct outcome *o = arg;

    CHECK(!o->called);
    o->called = true;
    o->r = *r;
    snprintf(o->output, sizeof o->output, STR_FMT, STR_ARG(r->output));
}

static struct outcome run(struct tool_config c)
{
    own(loop) loop = NULL;
    struct outcome o = {0};
    struct tool *t;

    c.done = on_done;
    c.arg = &o;
    if (!c.env)
        c.env = env;
    CHECK_OK(loop_new(&clock_system, &loop));
    CHECK_OK(tool_run(loop, &c, &t));
    CHECK(!o.called);
    while (!o.called)
        CHECK_OK(loop_turn(loop, 10000));
    CHECK_OK(loop_turn(loop, 0));
    CHECK(waitpid(-1, NULL, WNOHANG) < 0); /* no child is left */
    return o;
}

#define SH(script)                                                                                 \
    (const char *const[])                                                                          \
    {                                                                                              \
        "sh", "-c", script, NULL                                                                   \
    }

TEST(tool_gives_output_and_status_and_takes_input)
{
    struct outcome o = run((struct tool_config){
        .argv = SH("cat; echo $X; pwd; echo no >&2; exit 3"), .input = STR("in\n"), .cwd = "/usr"});
    CHECK_STR(o.output, "in\ny\n/usr\n");
    CHECK_INT(o.r.exit_code, 3);
    o = run((struct tool_config){.argv = SH("cat; echo two >&2; kill -9 $$"), .with_errors = true});
    CHECK_STR(o.output, "two\n");
    CHECK_INT(o.r.exit_code, 137);
    CHECK(!o.r.cut && !o.r.timed_out);
}

TEST(tool_output_has_a_limit_and_the_tool_is_not_held_up)
{
    unsigned fds = test_open_fds();
    struct outcome o = run((struct tool_config){
        .argv = SH("head -c 3000000 /dev/zero | tr '\\0' x; exit 4"), .output_bytes = 1000});

    CHECK_INT(strlen(o.output), 1000);
    CHECK(o.r.cut);
    CHECK_INT(o.r.exit_code, 4);
    CHECK_INT(test_open_fds(), fds);
}

TEST(tool_has_a_deadline_and_takes_its_children_along)
{
    /* the pipe in its hands would keep this waiting for the child it left */
    struct outcome o =
        run((struct tool_config){.argv = SH("sleep 1000 & exec sleep 1000"), .limit_ms = 100});

    CHECK(o.r.timed_out);
    CHECK_INT(o.r.exit_code, 137);
}

TEST(tool_that_leaves_a_child_behind_ends_all_the_same)
{
    struct outcome o = run((struct tool_config){.argv = SH("sleep 1000 & echo said")});

    CHECK_STR(o.output, "said\n");
    CHECK_INT(o.r.exit_code, 0);
}

TEST(tool_that_is_stopped_never_answers)
{
    own(loop) loop = NULL;
    struct outcome o = {0};
    struct tool *t;

    CHECK_OK(loop_new(&clock_system, &loop));
    unsigned fds = test_open_fds();
    struct tool_config c = {.argv = SH("exec sleep 1000"), .env = env, .done = on_done, .arg = &o};
    CHECK_OK(tool_run(loop, &c, &t));
    tool_stop(t);
    tool_stop(NULL);
    CHECK_OK(loop_turn(loop, 0));
    CHECK(!o.called);
    CHECK_INT(test_open_fds(), fds);
    CHECK(waitpid(-1, NULL, WNOHANG) < 0);
}

TEST(tool_that_is_not_there_is_named)
{
    own(loop) loop = NULL;
    struct tool *t;
    struct tool_config c = {
        .argv = (const char *const[]){"no-such-tool", NULL}, .env = env, .done = on_done};

    CHECK_OK(loop_new(&clock_system, &loop));
    CHECK_ERR(tool_run(loop, &c, &t), ERR_NOT_FOUND, "there is no 'no-such-tool' in PATH");
}

TEST(tool_runs_as_the_user_asked_for)
{
    struct proc_user nobody = {"nobody", "/", 65534, 65534};

    if (geteuid() != 0)
        SKIP("needs root to become somebody else");
    struct outcome o = run((struct tool_config){.argv = SH("id -u"), .user = &nobody});
    CHECK_STR(o.output, "65534\n");
}

/* Nothing leaks and an answer or an error comes, whatever fails. */
TEST_LIMIT(tool_survives_every_single_failure, 60)
{
    own(loop) loop = NULL;
    bool fired = true;

    test_alone();
    CHECK_OK(loop_new(&clock_system, &loop));
    unsigned fds = test_open_fds();
    for (unsigned n = 1; fired; n++) {
        struct outcome o = {0};
        struct tool *t = NULL;
        struct tool_config c = {
            .argv = SH("cat"), .env = env, .input = STR("text"), .done = on_done, .arg = &o};
        fault_at(n);
        struct err *e = tool_run(loop, &c, &t);
        while (!e && !o.called)
            err_free(loop_turn(loop, 1000));
        fired = fault_fired();
        fault_at(0);
        err_free(e);
        CHECK_OK(loop_turn(loop, 0));
        CHECK_INT(test_open_fds(), fds);
    }
}
