// SPDX-License-Identifier: Apache-2.0
/* exec_shell.c — see exec_shell.h. */
#include "guest/exec/actions/run/exec_shell.h"

#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/mem.h"
#include "guest/exec/inner.h"
#include "guest/held/held.h"
#include "guest/shell/shell.h"

#define HELD_AS  "shell " /* and the name, see shell.h */
#define CLOSE_MS 5000     /* for all processes of the shells to end */

void exec_shell_free_env(char **env)
{
    for (char **v = env; v && *v; v++)
        free(*v);
    free(env);
}

static void free_if_over(struct exec_shell *s)
{
    if (!s->gone || s->open)
        return;
    list_del(&s->link);
    live_done(&s->live);
    exec_shell_free_env(s->env);
    free(s->cwd);
    free(s);
}

static bool is_name(struct str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!isalnum((unsigned char)name.p[i]) && !memchr("._-", name.p[i], 3))
            return false;
    return name.len <= EXEC_SHELL_NAME_BYTES;
}

static fallible check_name(const struct exec *e, struct str name)
{
    unsigned named = 0, unnamed = 0;

    if (e->closing)
        return err_new(ERR_CLOSED, "the server is going down");
    if (!is_name(name))
        return err_new(ERR_UNPROCESSABLE, "'name' must be up to %d of A-Z a-z 0-9 . _ -",
                       EXEC_SHELL_NAME_BYTES);
    LIST_EACH(s, &e->shells, struct exec_shell, link) {
        if (!s->gone && name.len && str_eq(str_of(s->name), name))
            return err_new(ERR_CONFLICT, "shell '%s' is there already", s->name);
        *(s->name[0] ? &named : &unnamed) += 1;
    }
    if (name.len && named > EXEC_SHELLS_MAX) /* the default one does not count */
        return err_new(ERR_LIMIT,
                       "%d shells are open, each 'croft exec' has one: wait for one to end, or "
                       "DELETE it",
                       EXEC_SHELLS_MAX);
    if (!name.len && unnamed >= STATIC_MAX)
        return err_new(ERR_LIMIT, "%d static commands run already: wait for one", STATIC_MAX);
    return NULL;
}

fallible exec_shell_new(struct exec *e, const struct exec_shell_config *config,
                        struct exec_shell **ret_shell)
{
    struct err *error = check_name(e, config->name);
    struct exec_shell *s = error ? NULL : mem_try(sizeof *s);
    char *cwd = s ? strndup(config->cwd.p, config->cwd.len) : NULL;

    if (!cwd) {
        free(s);
        exec_shell_free_env(config->env);
        return error ? error : err_no_memory();
    }
    *s = (struct exec_shell){.exec = e,
                             .cwd = cwd,
                             .env = config->env,
                             .columns = config->columns,
                             .rows = config->rows,
                             .watched = config->watched};
    memcpy(s->name, config->name.len ? config->name.p : "", config->name.len);
    list_init(&s->queue);
    live_init(&s->live);
    list_add(&e->shells, &s->link);
    *ret_shell = s;
    return NULL;
}

fallible exec_shell_find(const struct exec *e, struct str name, struct exec_shell **ret_shell)
{
    LIST_EACH(s, &e->shells, struct exec_shell, link) {
        if (!s->gone && s->name[0] && str_eq(str_of(s->name), name)) {
            *ret_shell = s;
            return NULL;
        }
    }
    return err_new(ERR_NOT_FOUND, "no shell '" STR_FMT "': GET /croft/v1/shells lists them",
                   STR_ARG(str_first(name, EXEC_SHELL_NAME_BYTES)));
}

void exec_shell_release(struct exec_shell *s)
{
    s->open--;
    free_if_over(s);
}

static void on_shell_closed(void *arg)
{
    exec_shell_release(arg);
}

/* A shell that ends with its reader waits for it: such a reader is never dropped as too slow. */
static bool on_shell_output(void *arg, struct str bytes)
{
    struct exec_shell *s = arg;

    live_add(&s->live, bytes);
    LIST_EACH(r, &s->live.readers, struct live_reader, link)
        if (s->watched && live_end(&s->live) - r->at > LIVE_KEEP_BYTES / 2)
            return true;
    return false;
}

static uint64_t count_oom_kills(void *arg)
{
    return held_oom_kills(((const struct exec_shell *)arg)->exec->config->held);
}

fallible exec_shell_check_cwd(struct arena *a, struct str cwd)
{
    const char *path = arena_cstr(a, cwd);
    struct stat st;

    if (!path)
        return arena_check(a);
    if (path[0] != '/' || stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return err_new(ERR_UNPROCESSABLE, "'cwd' must be the absolute path of a directory");
    return NULL;
}

static struct shell_config config_of(struct exec_shell *s)
{
    const struct exec *e = s->exec;

    return (struct shell_config){
        .cwd = s->cwd,
        .env = s->env ? (const char *const *)s->env : e->env,
        .user = e->run_as,
        .spawner = e->spawner,
        .init = s == e->main || s->name[0] ? "alias git='git --no-pager'" : NULL,
        .held = e->config->held,
        .held_name = s->name,
        .soft_timeout_ms = e->config->soft_timeout_ms,
        .columns = s->columns,
        .rows = s->rows,
        .leaves = s->watched,
        .on_output = s->name[0] ? on_shell_output : NULL,
        .on_closed = on_shell_closed,
        .oom_kills = e->config->held ? count_oom_kills : NULL,
        .arg = s,
    };
}

fallible exec_shell_start(struct exec_shell *s)
{
    const struct shell_config config = config_of(s);

    if (s->shell)
        return NULL;
    TRY(shell_new(s->exec->loop, &config, &s->shell));
    s->open++;
    return NULL;
}

struct str exec_shell_cwd(const struct exec_shell *s)
{
    return s->shell ? shell_cwd(s->shell) : str_of(s->cwd);
}

struct str exec_cwd(const struct exec *e)
{
    return e->main ? exec_shell_cwd(e->main) : e->config->working_dir;
}

void exec_shell_reset(struct exec_shell *s)
{
    shell_close(take(&s->shell));
}

void exec_shell_close(struct exec_shell *s)
{
    if (s->gone)
        return;
    s->gone = true;
    exec_shell_hold(s); /* until we are done with it here */
    run_fail_queue(s);
    exec_shell_pipe_close(s);
    exec_shell_reset(s);
    exec_shell_release(s);
}

bool exec_shells_are_used(const struct exec *e)
{
    LIST_EACH(s, &e->shells, struct exec_shell, link)
        if (s != e->main || s->open || live_end(&s->live) || !list_empty(&s->queue))
            return true;
    return false;
}

void exec_close_shells(struct exec *e)
{
    uint64_t deadline = loop_now_ns(e->loop) + CLOSE_MS * NS_PER_MS;

    e->closing = true;
    e->main = NULL;
    LIST_EACH(s, &e->shells, struct exec_shell, link)
        exec_shell_close(s);
    act_close_all(e);
    while (!list_empty(&e->shells) && loop_now_ns(e->loop) < deadline)
        err_free(loop_turn(e->loop, CLOSE_MS)); /* until their processes are reaped */
}

static fallible exec_shell_adopt(struct exec *e, struct held_item *t)
{
    struct str name = str_from(str_n(t->data, t->len), sizeof HELD_AS - 1);
    struct exec_shell *s = e->main;

    if (!str_eq(name, STR(EXEC_SHELL_DEFAULT)))
        TRY(exec_shell_new(
            e, &(struct exec_shell_config){.name = name, .cwd = str_of(e->working_dir)}, &s));
    const struct shell_config config = config_of(s);
    struct err *error = shell_adopt(e->loop, &config, t, &s->shell);
    if (!error)
        s->open++;
    if (!name.len) /* a static run: its request died with the server */
        exec_shell_close(s);
    return error;
}

/* The shells of the server before us. One that cannot be taken over starts anew with its next
 * command. */
static void adopt_all(struct exec *e)
{
    for (struct held_item *t; (t = held_take(e->config->held, STR(HELD_AS)));) {
        struct err *error = exec_shell_adopt(e, t);
        if (error) {
            log_warn("a shell is lost", KV("pid", (int)t->pid), KV_ERR(error));
            err_free(error);
            spawn_kill_session(t->pid);
            held_drop(e->config->held, t->id);
        } else if (kill(t->pid, 0) < 0) { /* its end may have been told to the server before us */
            spawner_exited(e->spawner, t->pid, CLD_KILLED, SIGKILL);
        }
        held_item_free(t);
    }
}

fallible exec_open_shells(struct exec *e)
{
    TRY(exec_shell_new(
        e,
        &(struct exec_shell_config){.name = STR(EXEC_SHELL_DEFAULT), .cwd = str_of(e->working_dir)},
        &e->main));
    if (e->config->held)
        adopt_all(e);
    return NULL;
}
