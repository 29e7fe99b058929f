// SPDX-License-Identifier: Apache-2.0
/* run.c — shell commands. The default session takes them one after the other, in the order they
 * came; a static one has a session of its own and waits for nobody. */
#include "guest/exec/act.h"
#include "guest/exec/inner.h"
#include "guest/shell/shell.h"
#include "guest/shell/shell_text.h"

#define CLOSE_MS 5000 /* for all processes of the shells to end */

struct run_act {
    struct act *act;
    struct list link;
    struct shell *own;          /* of a static run */
    struct loop_timer deadline; /* while it waits for its turn */
};

static void next_in_queue(struct exec *e);

static void on_shell_closed(void *arg)
{
    struct exec *e = arg;

    e->shells_open--;
}

static fallible open_shell(struct exec *e, const char *cwd, struct shell **ret)
{
    struct shell_config config = {
        .cwd = cwd,
        .env = e->env,
        .user = e->run_as,
        .spawner = e->spawner,
        .soft_timeout_ms = e->config->soft_timeout_ms,
        .on_closed = on_shell_closed,
        .arg = e,
    };

    TRY(shell_new(e->loop, &config, ret));
    e->shells_open++;
    return NULL;
}

static struct str text_of(struct buf *b)
{
    return b->len ? buf_str(b) : STR("");
}

static void observe(struct act *act, const struct shell_result *r)
{
    const struct shell_style *style = &shell_style_execute_bash;
    struct shell_style whole = *style;
    struct wire_observation o;
    own_done(buf) content;
    own_done(buf) prefix;
    own_done(buf) suffix;

    buf_init(&content, 64u << 20);
    buf_init(&prefix, 64u << 20);
    buf_init(&suffix, 20u << 20);
    whole.limit_chars = 0;
    shell_text_content(&content, act->action.run.hidden ? &whole : style, r);
    if (r->status == SHELL_SEVERAL || r->status == SHELL_FAILED) {
        act_error(act, text_of(&content));
        return;
    }
    shell_text_prefix(&prefix, r);
    shell_text_suffix(&suffix, style, r);
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
    struct exec *e = run->act->exec;
    struct shell *own_shell = run->own;

    if (own_shell)
        list_del(&run->link);
    observe(run->act, r); /* run is gone with its action */
    if (own_shell) {
        shell_close(own_shell);
        return;
    }
    e->shell_taken = false;
    next_in_queue(e);
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

static fallible start_default(struct exec *e, struct run_act *run)
{
    if (!e->shell)
        TRY(open_shell(e, e->working_dir, &e->shell));
    TRY(send_to(e->shell, run));
    e->shell_taken = true;
    return NULL;
}

static void next_in_queue(struct exec *e)
{
    while (!e->closing && !e->shell_taken && !list_empty(&e->shell_queue)) {
        struct run_act *run = container_of(e->shell_queue.next, struct run_act, link);
        list_del(&run->link);
        loop_timer_stop(&run->deadline);
        struct err *error = start_default(e, run);
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
    observe(run->act, &r);
}

static fallible start_static(struct exec *e, struct run_act *run)
{
    const struct wire_action *a = &run->act->action;
    const char *cwd = e->working_dir;

    if (a->run.cwd.len)
        cwd = arena_cstr(&run->act->arena, a->run.cwd);
    if (!cwd)
        return arena_check(&run->act->arena);
    TRY(open_shell(e, cwd, &run->own));
    struct err *error = send_to(run->own, run);
    if (error)
        shell_close(run->own);
    else
        list_add(&e->static_runs, &run->link);
    return error;
}

static fallible run_start(struct act *act)
{
    struct exec *e = act->exec;
    struct run_act *run = arena_new(&act->arena, struct run_act);

    if (!run)
        return arena_check(&act->arena);
    run->act = act;
    list_init(&run->link);
    if (act->action.run.is_static)
        return start_static(e, run);
    list_add(&e->shell_queue, &run->link);
    if (act->action.has_timeout && act->action.timeout_s > 0)
        loop_timer_start(e->loop, &run->deadline, (uint64_t)(act->action.timeout_s * 1000),
                         on_queue_deadline);
    next_in_queue(e);
    return NULL;
}

void exec_close_shells(struct exec *e)
{
    uint64_t deadline = loop_now_ns(e->loop) + CLOSE_MS * NS_PER_MS;

    e->closing = true;
    LIST_EACH(run, &e->shell_queue, struct run_act, link) {
        list_del(&run->link);
        loop_timer_stop(&run->deadline);
        act_fail(run->act, err_new(ERR_CLOSED, "the server is going down"));
    }
    while (!list_empty(&e->static_runs))
        shell_close(container_of(e->static_runs.next, struct run_act, link)->own);
    shell_close(take(&e->shell));
    while (e->shells_open && loop_now_ns(e->loop) < deadline)
        err_free(loop_turn(e->loop, CLOSE_MS)); /* until their processes are reaped */
}

ACT_HANDLER(run) = {.type = WIRE_ACT_RUN, .start = run_start};
