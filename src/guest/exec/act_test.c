// SPDX-License-Identifier: Apache-2.0
#include "guest/exec/act.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "guest/exec/answers.h"
#include "guest/exec/inner.h"
#include "test/test.h"

#define GIT_CHANGES "python3 /openhands/code/openhands/runtime/utils/git_changes.py"

struct kit {
    struct loop *loop;
    struct exec *exec;
    struct exec_config config;
};

/* What came of an action. */
struct outcome {
    struct act *act; /* while it runs */
    unsigned calls;
    enum wire_observation_type type;
    int exit_code;
    enum err_code code;
    char text[500];
};

static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};

static void kit_open(struct kit *k)
{
    *k = (struct kit){.config = {.listen = STR("unix:nobody"),
                                 .working_dir = str_of(test_dir()),
                                 .uid = EXEC_NO_UID,
                                 .soft_timeout_ms = 10000,
                                 .envp = env,
                                 .ready_fd = -1}};
    CHECK_OK(loop_new(&clock_system, &k->loop));
    CHECK_OK(exec_new(k->loop, &k->exec));
    CHECK_OK(exec_open(k->exec, &k->config));
}

static void kit_close(struct kit *k)
{
    exec_close(k->exec);
    exec_free(k->exec);
    loop_free(k->loop);
}

static void on_outcome(void *ctx, const struct wire_observation *observation,
                       const struct err *error)
{
    struct outcome *o = ctx;

    CHECK(!observation != !error);
    o->act = NULL;
    o->calls++;
    o->type = observation ? observation->type : WIRE_OBS_NULL;
    o->code = error ? err_code(error) : 0;
    if (observation && observation->type == WIRE_OBS_RUN)
        o->exit_code = (int)observation->run.metadata.exit_code;
    struct str text = observation ? observation->content : str_of(err_text(error));
    snprintf(o->text, sizeof o->text, STR_FMT, STR_ARG(text));
}

static struct act *new_act(struct kit *k, enum wire_action_type type)
{
    struct act *act;

    CHECK_OK(act_new(k->exec, &act));
    wire_action_init(&act->action, type);
    return act;
}

static struct act *new_run(struct kit *k, const char *command)
{
    struct act *act = new_act(k, WIRE_ACT_RUN);

    act->action.run.command = str_of(command);
    act->action.run.blocking = true;
    return act;
}

static void act_begin(struct act *act, struct outcome *o)
{
    *o = (struct outcome){.act = act};
    act_start(act, on_outcome, o);
}

static void kit_wait(struct kit *k, const struct outcome *o)
{
    while (!o->calls)
        CHECK_OK(loop_turn(k->loop, -1));
}

static void do_act(struct kit *k, struct act *act, struct outcome *o)
{
    act_begin(act, o);
    kit_wait(k, o);
}

static bool is_there(const char *name)
{
    char path[300];

    snprintf(path, sizeof path, "%s/%s", test_dir(), name);
    return access(path, F_OK) == 0;
}

static void write_file(struct kit *k, const char *path, const char *content)
{
    struct act *act = new_act(k, WIRE_ACT_WRITE);
    struct outcome o;

    act->action.write.path = str_of(path);
    act->action.write.content = str_of(content);
    do_act(k, act, &o);
    CHECK_INT(o.type, WIRE_OBS_WRITE);
}

static void check_file(struct kit *k, const char *path, const char *content)
{
    struct act *act = new_act(k, WIRE_ACT_READ);
    struct outcome o;

    act->action.read.path = str_of(path);
    do_act(k, act, &o);
    CHECK_INT(o.type, WIRE_OBS_READ);
    CHECK_HAS(o.text, content);
}

TEST(actions_are_started_by_call_and_give_their_observations)
{
    struct kit k;
    struct outcome o;

    kit_open(&k);
    do_act(&k, new_run(&k, "echo hello; (exit 3)"), &o);
    CHECK_INT(o.type, WIRE_OBS_RUN);
    CHECK_HAS(o.text, "hello");
    CHECK_INT(o.exit_code, 3);
    write_file(&k, "a.txt", "one\ntwo\n");
    check_file(&k, "a.txt", "one\ntwo\n");
    struct act *act = new_act(&k, WIRE_ACT_EDIT);
    act->action.edit.command = STR("str_replace");
    act->action.edit.path = arena_printf(&act->arena, "%s/a.txt", test_dir());
    act->action.edit.old_str = STR("two");
    act->action.edit.new_str = STR("three");
    do_act(&k, act, &o);
    CHECK_INT(o.type, WIRE_OBS_EDIT);
    check_file(&k, "a.txt", "one\nthree\n");
    do_act(&k, new_act(&k, WIRE_ACT_BROWSE), &o);
    CHECK_INT(o.type, WIRE_OBS_ERROR);
    do_act(&k, new_act(&k, WIRE_ACT_THINK), &o);
    CHECK_INT(o.code, ERR_INVALID);
    CHECK_HAS(o.text, "has no attribute 'think'");
    kit_close(&k);
}

TEST(a_cancelled_command_is_interrupted_and_nobody_is_told)
{
    struct kit k;
    struct outcome sleeps, waits, never, next;

    kit_open(&k);
    act_begin(new_run(&k, "touch begun; sleep 1000; touch never"), &sleeps);
    act_begin(new_run(&k, "touch never"), &never);
    act_begin(new_run(&k, "echo next"), &next);
    CHECK(!answers_are_idle(k.exec->answers));
    while (!is_there("begun"))
        CHECK_OK(loop_turn(k.loop, 10));
    act_cancel(never.act);
    act_cancel(sleeps.act);
    kit_wait(&k, &next);
    CHECK_HAS(next.text, "next");
    CHECK(!is_there("never"));
    CHECK_INT(sleeps.calls + never.calls, 0);
    struct act *act = new_run(&k, "sleep 1000");
    act->action.run.is_static = true;
    act_begin(act, &waits);
    act_cancel(waits.act);
    act_cancel(new_run(&k, "touch never")); /* was not even started */
    do_act(&k, new_run(&k, "echo still there"), &next);
    CHECK_HAS(next.text, "still there");
    CHECK_INT(waits.calls, 0);
    CHECK(answers_are_idle(k.exec->answers));
    kit_close(&k);
}

TEST(a_program_beside_the_shell_is_killed_with_its_action)
{
    struct kit k;
    struct outcome git, edit, next;

    kit_open(&k);
    act_begin(new_run(&k, GIT_CHANGES), &git);
    act_cancel(git.act);
    struct act *act = new_act(&k, WIRE_ACT_READ);
    write_file(&k, "a.pdf", "%PDF-1.4");
    act->action.read.path = arena_printf(&act->arena, "%s/a.pdf", test_dir());
    act->action.read.impl_source = STR("oh_aci");
    act_begin(act, &edit);
    if (edit.act)
        act_cancel(edit.act);
    do_act(&k, new_run(&k, "echo next"), &next);
    CHECK_HAS(next.text, "next");
    CHECK_INT(git.calls, 0);
    kit_close(&k);
}

TEST(what_runs_when_the_server_closes_fails_and_nothing_is_started_any_more)
{
    struct kit k;
    struct outcome runs, waits, git;
    struct act *late;

    kit_open(&k);
    act_begin(new_run(&k, "sleep 1000"), &runs);
    act_begin(new_run(&k, "echo next"), &waits);
    struct act *act = new_run(&k, GIT_CHANGES);
    act->action.run.is_static = true;
    act_begin(act, &git);
    exec_close(k.exec);
    CHECK_INT(runs.calls + waits.calls + git.calls, 3);
    CHECK_INT(runs.type, WIRE_OBS_ERROR);
    CHECK_INT(waits.code, ERR_CLOSED);
    CHECK_INT(git.code, ERR_CLOSED);
    CHECK_ERR(act_new(k.exec, &late), ERR_CLOSED, "going down");
    exec_free(k.exec);
    loop_free(k.loop);
}

/* Counts what it sees; refuses to write with an observation and to read with an error. */
static bool allow_some(void *ctx, struct act *act)
{
    ++*(unsigned *)ctx;
    if (act->action.type == WIRE_ACT_WRITE) {
        act_error(act, STR("the policy says no"));
        return false;
    }
    if (act->action.type == WIRE_ACT_READ) {
        act_fail(act, err_new(ERR_FORBIDDEN, "not read"));
        return false;
    }
    return true;
}

TEST(a_policy_sees_every_action_before_it_starts_and_may_refuse)
{
    unsigned seen = 0;
    struct kit k;
    struct outcome o;

    kit_open(&k);
    act_set_policy(k.exec, &(struct act_policy){allow_some, &seen});
    struct act *act = new_act(&k, WIRE_ACT_WRITE);
    act->action.write.path = STR("a.txt");
    do_act(&k, act, &o);
    CHECK_INT(o.type, WIRE_OBS_ERROR);
    CHECK_STR(o.text, "the policy says no");
    CHECK(!is_there("a.txt"));
    act = new_act(&k, WIRE_ACT_READ);
    act->action.read.path = STR("/etc/passwd");
    do_act(&k, act, &o);
    CHECK_INT(o.code, ERR_FORBIDDEN);
    do_act(&k, new_run(&k, "echo allowed"), &o);
    CHECK_HAS(o.text, "allowed");
    CHECK_INT(seen, 3);
    kit_close(&k);
}
