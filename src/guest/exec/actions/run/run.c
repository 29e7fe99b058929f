// SPDX-License-Identifier: Apache-2.0
/* run.c — shell commands. A shell takes them one after the other, in the order they came; a
 * static one has a shell of its own and waits for no other. */
#include <unistd.h>

#include "guest/exec/act.h"
#include "guest/exec/actions/run/exec_shell.h"
#include "guest/exec/actions/run/git.h"
#include "guest/exec/inner.h"
#include "guest/proc/env.h"
#include "guest/shell/shell.h"
#include "guest/shell/shell_text.h"
#include "guest/spawn/spawn.h"
#include "guest/tool/tool.h"

struct run_act {
    struct act *act;
    struct exec_shell *shell;
    struct list link;
    struct loop_timer deadline; /* while it waits for its turn */
    struct git_job git;         /* instead of the shell */
};

static void next_in_queue(struct exec_shell *s);

static void run_stop(struct act *act);

static struct str text_of(struct buf *b)
{
    return b->len ? buf_str(b) : STR("");
}

static void run_observe(struct act *act, const struct shell_result *r)
{
    struct wire_observation o;
    own_done(buf) content;
    own_done(buf) prefix;
    own_done(buf) suffix;

    buf_init(&content, 64u << 20);
    buf_init(&prefix, 64u << 20);
    buf_init(&suffix, 20u << 20);
    shell_text_content(&content, r, act->action.run.hidden ? 0 : SHELL_TEXT_LIMIT);
    if (r->status == SHELL_SEVERAL || r->status == SHELL_FAILED) {
        act_error(act, text_of(&content));
        return;
    }
    shell_text_prefix(&prefix, r);
    shell_text_suffix(&suffix, r);
    wire_observation_init(&o, WIRE_OBS_RUN);
    o.content = text_of(&content);
    o.run.command = r->status == SHELL_NOTHING_RUNS ? STR("") : r->command;
    o.run.hidden = act->action.run.hidden;
    o.run.metadata.prefix = text_of(&prefix);
    o.run.metadata.suffix = text_of(&suffix);
    if (r->status == SHELL_COMPLETED) {
        o.run.metadata.exit_code = r->meta.exit_code;
        o.run.metadata.pid = r->meta.pid;
        o.run.metadata.username = r->meta.username;
        o.run.metadata.hostname = r->meta.hostname;
        o.run.metadata.working_dir = r->meta.working_dir;
        o.run.metadata.py_interpreter_path = r->meta.python;
    }
    act_done(act, &o);
}

static void on_result(void *arg, const struct shell_result *r)
{
    struct run_act *run = arg;
    struct exec_shell *s = run->shell;

    s->taken = false;
    run_observe(run->act, r); /* run is gone with its action */
    if (!s->name[0])
        exec_shell_close(s);
    else
        next_in_queue(s);
}

static fallible send_to(struct shell *shell, struct run_act *run)
{
    const struct wire_action *a = &run->act->action;
    struct shell_request request = {
        .command = a->run.command,
        .is_input = a->run.is_input,
        .blocking = a->run.blocking,
        .hard_timeout_s = a->has_timeout && a->timeout_s > 0 ? a->timeout_s : 0,
        .done = on_result,
        .arg = run,
    };

    return shell_run(shell, &request);
}

/* --- what the git panel asks needs no shell --- */

static void on_git_done(struct git_job *git, int exit_code, struct str printed)
{
    struct run_act *run = container_of(git, struct run_act, git);
    struct exec_shell *s = run->shell;
    const struct exec *e = s->exec;
    const char *path = proc_env_get((char *const *)e->env, "PATH");
    struct shell_result r = {
        .status = SHELL_COMPLETED,
        .command = shell_text_strip(run->act->action.run.command),
        .text = printed,
        .meta = {.exit_code = exit_code, .pid = -1, .working_dir = exec_shell_cwd(s)},
    };

    err_free(shell_meta_fill(&run->act->arena, e->run_as ? e->run_as->uid : geteuid(),
                             str_of(path ? path : ""), &r.meta)); /* then they are empty */
    on_result(run, &r);
    exec_shell_release(s);
}

/* ret_done: the command is one of those. A cd that a later command would notice goes to bash. */
static fallible run_git(struct run_act *run, bool *ret_done)
{
    struct exec_shell *s = run->shell;
    struct git_ask ask;

    *ret_done = git_parse(run->act->action.run.command, &ask) && !run->act->action.run.is_input &&
                !(s->name[0] && ask.cwd.len) && !(s->shell && shell_command(s->shell).len);
    if (!*ret_done)
        return NULL;
    run->git = (struct git_job){.arena = &run->act->arena, .done = on_git_done};
    TRY(git_start(&run->git, s->exec, &ask, exec_shell_cwd(s)));
    exec_shell_hold(s);
    s->taken = true;
    return NULL;
}

static fallible run_start_action(struct run_act *run)
{
    struct exec_shell *s = run->shell;
    bool done;

    TRY(run_git(run, &done));
    if (done)
        return NULL;
    TRY(exec_shell_start(s));
    TRY(send_to(s->shell, run));
    s->taken = true;
    return NULL;
}

static void next_in_queue(struct exec_shell *s)
{
    while (!s->gone && !s->taken && !list_empty(&s->queue)) {
        struct run_act *run = container_of(s->queue.next, struct run_act, link);
        list_del(&run->link);
        loop_timer_stop(&run->deadline);
        struct err *error = run_start_action(run);
        if (error)
            act_fail(run->act, error);
    }
}

/* Its time was up before its turn came: the client must hear within that time. */
static void on_queue_deadline(struct loop_timer *t)
{
    struct run_act *run = container_of(t, struct run_act, deadline);
    struct shell_result r = {
        .status = SHELL_NOT_EXECUTED,
        .command = run->act->action.run.command,
        .meta = {.exit_code = -1, .pid = -1},
    };

    list_del(&run->link);
    run_observe(run->act, &r);
}

static fallible start_static(struct exec *e, struct run_act *run)
{
    struct str cwd = run->act->action.run.cwd;
    struct exec_shell_config config = {.cwd = cwd.len ? cwd : str_of(e->working_dir)};
    struct err *wrong = cwd.len ? exec_shell_check_cwd(&run->act->arena, cwd) : NULL;

    if (wrong) { /* as an observation: an agent can read it, and no client stops for it */
        act_error(run->act, str_of(err_text(wrong)));
        err_free(wrong);
        return NULL;
    }
    TRY(exec_shell_new(e, &config, &run->shell));
    struct err *error = run_start_action(run);
    if (error)
        exec_shell_close(run->shell);
    return error;
}

static fallible run_start(struct act *act)
{
    struct exec *e = act->exec;
    struct run_act *run = arena_new(&act->arena, struct run_act);

    if (!run)
        return arena_check(&act->arena);
    run->act = act;
    run->shell = e->main;
    list_init(&run->link);
    act->user = run;
    act->stop = run_stop;
    if (act->shell.len)
        TRY(exec_shell_find(e, act->shell, &run->shell));
    else if (act->action.run.is_static)
        return start_static(e, run);
    list_add(&run->shell->queue, &run->link);
    if (act->action.has_timeout && act->action.timeout_s > 0)
        loop_timer_start(e->loop, &run->deadline, (uint64_t)(act->action.timeout_s * 1000),
                         on_queue_deadline);
    next_in_queue(run->shell);
    return NULL;
}

void run_fail_queue(struct exec_shell *s)
{
    while (!list_empty(&s->queue)) {
        struct run_act *run = LIST_FIRST(&s->queue, struct run_act, link);
        list_del(&run->link);
        loop_timer_stop(&run->deadline);
        act_fail(run->act, err_new(ERR_CLOSED, "the shell was closed"));
    }
}

/* --- cancelled --- */

static void on_interrupted(void *arg, const struct shell_result *r)
{
    struct exec_shell *s = arg;

    (void)r;
    s->taken = false;
    next_in_queue(s);
}

/* The next command waits until this one has ended, or was silent for a while. */
static bool run_interrupt(struct exec_shell *s)
{
    struct err *error;

    shell_interrupt(s->shell);
    error = shell_run(s->shell, &(struct shell_request){.done = on_interrupted, .arg = s});
    err_free(error); /* then the next one is told what runs */
    return !error;
}

static void run_stop(struct act *act)
{
    struct run_act *run = act->user;
    struct exec_shell *s = run->shell;

    if (!list_empty(&run->link)) {
        list_del(&run->link);
        loop_timer_stop(&run->deadline);
        return;
    }
    exec_shell_hold(s);
    s->taken = false;
    if (run->git.tool) {
        tool_stop(run->git.tool);
        exec_shell_release(s);
    } else {
        shell_forget(s->shell);
        if (s->name[0] && act->action.run.command.len && !act->action.run.is_input)
            s->taken = run_interrupt(s);
    }
    if (!s->name[0])
        exec_shell_close(s);
    else
        next_in_queue(s);
    exec_shell_release(s);
}

ACT_HANDLER(run) = {.type = WIRE_ACT_RUN, .start = run_start};
