// SPDX-License-Identifier: Apache-2.0
/* shell_life.c — making and closing a shell. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"
#include "guest/shell/shell_inner.h"

static const struct sm_state shell_states[] = {
    [SH_STARTING] = {"starting", TO(SH_READY) | TO(SH_DEAD) | TO(SH_CLOSED)},
    [SH_READY] = {"ready", TO(SH_STARTING) | TO(SH_CLOSED)},
    [SH_DEAD] = {"dead", TO(SH_STARTING) | TO(SH_CLOSED)},
    [SH_CLOSED] = {"closed", 0},
};

static const struct sm_state command_states[] = {
    [CMD_NONE] = {"none", TO(CMD_QUEUED) | TO(CMD_HELD)},
    [CMD_QUEUED] = {"queued", TO(CMD_RUNNING) | TO(CMD_NONE)},
    [CMD_RUNNING] = {"running", TO(CMD_ENDED) | TO(CMD_QUEUED)},
    [CMD_ENDED] = {"ended", TO(CMD_NONE)},
    [CMD_HELD] = {"held", TO(CMD_QUEUED)},
};

static void init_buffers(struct shell *s)
{
    buf_init(&s->report, SHELL_REPORT_MAX);
    buf_init(&s->out, SHELL_INPUT_MAX + 4096);
    buf_init(&s->pre, 2u << 20);
    buf_init(&s->typed, 4096);
    buf_init(&s->early, SHELL_INPUT_MAX);
    buf_init(&s->held, SHELL_COMMAND_MAX);
    buf_init(&s->text, 64u << 20);
    buf_init(&s->due_text, 64u << 20);
    buf_init(&s->since, 64u << 20);
    buf_init(&s->previous, 64u << 20);
    buf_init(&s->request_command, SHELL_COMMAND_MAX);
    arena_init(&s->arena, 64u << 20);
    shell_meta_init(&s->meta);
}

static void done_buffers(struct shell *s)
{
    struct buf *const all[] = {
        &s->early, &s->report,   &s->out,   &s->pre,      &s->typed,          &s->held,
        &s->text,  &s->due_text, &s->since, &s->previous, &s->request_command};

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        buf_done(all[i]);
    arena_done(&s->arena);
    shell_meta_done(&s->meta);
}

static char *shell_copy(const char *v)
{
    size_t n = strlen(v) + 1;
    char *p = mem_try(n); /* a peer can ask for any number of shells */

    return p ? memcpy(p, v, n) : NULL;
}

static fallible copy_strings(struct shell *s, const struct shell_config *c)
{
    const struct {
        const char *from, *otherwise, **to;
    } strings[] = {
        {c->cwd, "/", &s->config.cwd},
        {c->bash, "/bin/bash", &s->config.bash},
        {c->term, "xterm-256color", &s->config.term},
        {c->state_dir, NULL, &s->config.state_dir},
        {c->held_name, "", &s->config.held_name},
        {c->user ? c->user->name : NULL, NULL, &s->user.name},
    };
    _Static_assert(ARRAY_LEN(strings) <= ARRAY_LEN(s->owned_strings), "room for each");

    for (size_t i = 0; i < ARRAY_LEN(strings); i++) {
        const char *v = strings[i].from ? strings[i].from : strings[i].otherwise;
        s->owned_strings[i] = v ? shell_copy(v) : NULL;
        *strings[i].to = s->owned_strings[i];
        if (v && !s->owned_strings[i])
            return err_no_memory();
    }
    return NULL;
}

static fallible copy_env(struct shell *s, const char *const *env)
{
    size_t n = 0;

    while (env && env[n] && n < SHELL_ENV_MAX)
        n++;
    s->env = mem_try((n + 1) * sizeof *s->env);
    if (!s->env)
        return err_no_memory();
    memset(s->env, 0, (n + 1) * sizeof *s->env);
    for (size_t i = 0; i < n; i++)
        if (!(s->env[i] = shell_copy(env[i])))
            return err_no_memory();
    return NULL;
}

static fallible copy_config(struct shell *s, const struct shell_config *c)
{
    s->config = *c;
    s->config.rng = c->rng ? c->rng : rng_system();
    s->config.columns = c->columns ? c->columns : 1000;
    s->config.rows = c->rows ? c->rows : 1000;
    s->config.soft_timeout_ms = c->soft_timeout_ms ? c->soft_timeout_ms : 10000;
    s->config.start_timeout_ms = c->start_timeout_ms ? c->start_timeout_ms : 10000;
    if (c->user) {
        s->user = *c->user;
        s->config.user = &s->user;
    }
    TRY(copy_strings(s, c));
    return copy_env(s, c->env);
}

static void free_shell(struct shell *s)
{
    shell_io_stop(s);
    loop_io_stop(&s->report_io);
    spawn_end(&s->child);
    shell_held_drop(s);
    shell_files_close(&s->files);
    term_free(s->term);
    done_buffers(s);
    for (size_t i = 0; i < ARRAY_LEN(s->owned_strings); i++)
        free(s->owned_strings[i]);
    for (char **p = s->env; p && *p; p++)
        free(*p);
    free(s->env);
    err_free(s->error);
    free(s);
}

fallible shell_open_term(struct shell *s)
{
    struct term_config tc = {.columns = s->config.columns,
                             .rows = s->config.rows,
                             .history_lines = s->config.history_lines};

    snprintf(s->id, sizeof s->id, "%08x", (unsigned)rng_u64(s->config.rng));
    s->term = term_new(&tc);
    return s->term ? NULL : err_no_memory();
}

static fallible shell_open(struct shell *s)
{
    TRY(shell_open_term(s));
    TRY(shell_files_pick(&s->files, s->config.state_dir, s->config.rng));
    return shell_spawn(s);
}

static fallible shell_resume(struct shell *s, struct held_item *item)
{
    TRY(shell_held_restore(s, item));
    return shell_io_resume(s);
}

/* item NULL: a new one. */
static fallible shell_make(struct loop *loop, const struct shell_config *config,
                           struct held_item *item, struct shell **ret_shell)
{
    struct shell *s = mem_try(sizeof *s);

    if (!s)
        return err_no_memory();
    s->loop = loop;
    s->master = s->slave = s->files.report_fd = s->files.command_fd = s->page_fd = -1;
    init_buffers(s);
    sm_init(&s->sm, shell_states, "shell", SH_STARTING);
    sm_init(&s->command, command_states, "command", CMD_NONE);
    struct err *e = copy_config(s, config);
    if (!e)
        e = item ? shell_resume(s, item) : shell_open(s);
    if (e) {
        free_shell(s);
        return err_wrap(e, "shell");
    }
    *ret_shell = s;
    return NULL;
}

fallible shell_new(struct loop *loop, const struct shell_config *config, struct shell **ret_shell)
{
    return shell_make(loop, config, NULL, ret_shell);
}

fallible shell_adopt(struct loop *loop, const struct shell_config *config, struct held_item *item,
                     struct shell **ret_shell)
{
    return shell_make(loop, config, item, ret_shell);
}

static void on_gone(struct loop_later *l)
{
    struct shell *s = container_of(l, struct shell, gone);
    void (*on_closed)(void *arg) = s->config.on_closed;
    void *arg = s->config.arg;

    free_shell(s);
    if (on_closed)
        on_closed(arg);
}

static void on_bash_reaped(struct spawn_child *c)
{
    struct shell *s = container_of(c, struct shell, child);

    s->pid = 0;
    loop_later(s->loop, &s->gone, on_gone);
}

void shell_close(struct shell *s)
{
    if (!s || s->sm.now == SH_CLOSED)
        return;
    bool waiting = s->waiting;
    sm_move(&s->sm, SH_CLOSED, s->id);
    shell_forget(s);
    shell_end_process(s);
    shell_held_drop(s);
    shell_io_stop(s);
    loop_io_stop(&s->report_io);
    shell_files_close(&s->files);
    s->child.fn = on_bash_reaped;
    if (s->pid <= 0)
        loop_later(s->loop, &s->gone, on_gone);
    if (waiting && s->request.done) {
        own(err) e = err_new(ERR_CLOSED, "the shell was closed");
        struct shell_result r = {.status = SHELL_FAILED, .error = e};
        s->request.done(s->request.arg, &r);
    }
}
