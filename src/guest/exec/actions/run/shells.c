// SPDX-License-Identifier: Apache-2.0
/* shells.c — /croft/v1/shells: shells by name, from the outside. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "guest/exec/answers.h"
#include "guest/exec/actions/run/exec_shell.h"
#include "guest/exec/inner.h"
#include "guest/live/live_sse.h"
#include "guest/shell/shell.h"
#include "guest/spawn/spawn.h"
#include "net/router.h"
#include "net/server.h"
#include "wire/shells.h"

#define SIDE       1000 /* as shell.h has it */
#define BODY_BYTES (32u << 20)

static fallible shells_find(struct http_req *req, struct exec_shell **ret_shell)
{
    return exec_shell_find(req->owner, http_req_param(req, "name"), ret_shell);
}

static void shells_put(struct jw *w, const struct exec_shell *s)
{
    const struct shell *shell = s->shell;
    struct wire_shell v = {
        .name = str_of(s->name),
        .cwd = exec_shell_cwd(s),
        .command = shell ? shell_command(shell) : STR(""),
        .pid = shell ? shell_pid(shell) : 0,
        .columns = s->columns ? s->columns : SIDE,
        .rows = s->rows ? s->rows : SIDE,
        .output_bytes = live_end(&s->live),
        .running = shell && shell_is_running(shell),
    };

    wire_put_shell(w, NULL, &v);
}

void shells_answer(struct http_req *req, int status, const struct exec_shell *s)
{
    shells_put(http_reply_writer(req), s);
    http_reply_written(req, status);
}

static fallible handle_list(struct http_req *req)
{
    const struct exec *e = req->owner;
    struct jw *w = http_reply_writer(req);

    wire_begin_shells(w);
    LIST_EACH(one, &e->shells, struct exec_shell, link)
        if (one->name[0] && !one->gone)
            shells_put(w, one);
    wire_end_shells(w, e->spawner ? spawn_count_work(e->spawner) : 0);
    http_reply_written(req, 200);
    return NULL;
}

static fallible handle_get(struct http_req *req)
{
    struct exec_shell *s;

    TRY(shells_find(req, &s));
    shells_answer(req, 200, s);
    return NULL;
}

/* The server's variables, then those asked for: bash takes the last of a name. */
static fallible make_env(const struct exec *e, const struct json *more, char ***ret_env)
{
    size_t n = 0, at = 0;

    while (e->env[n])
        n++;
    char **env = mem_try((n + more->count + 1) * sizeof *env);
    if (!env)
        return err_no_memory();
    for (; at < n && (env[at] = strdup(e->env[at])); at++)
        ;
    for (const struct json *v = more->first; at >= n && v; v = v->next) {
        size_t size = v->key.len + v->s.len + 2;
        if (!(env[at] = mem_try(size)))
            break;
        snprintf(env[at++], size, STR_FMT "=" STR_FMT, STR_ARG(v->key), STR_ARG(v->s));
    }
    if (at < n + more->count) {
        exec_shell_free_env(env);
        return err_no_memory();
    }
    *ret_env = env;
    return NULL;
}

static fallible handle_new(struct http_req *req)
{
    struct exec *e = req->owner;
    struct exec_shell_config config = {.cwd = str_of(e->working_dir)};
    struct wire_new_shell n;
    struct json *body;
    struct exec_shell *s;
    char name[32];

    TRY(http_req_json(req, &body));
    TRY(wire_decode_new_shell(body, &n));
    if (!n.name.len) {
        snprintf(name, sizeof name, "shell-%u", ++e->shell_number);
        n.name = str_of(name);
    }
    if (n.cwd.p) {
        TRY(exec_shell_check_cwd(&req->arena, n.cwd));
        config.cwd = n.cwd;
    }
    if (n.env)
        TRY(make_env(e, n.env, &config.env));
    config.name = n.name;
    config.columns = (unsigned)n.columns;
    config.rows = (unsigned)n.rows;
    config.watched = n.watched;
    TRY(exec_shell_new(e, &config, &s));
    struct err *error = n.pipe.len ? exec_shell_pipe_new(s, n.pipe) : NULL;
    if (!error)
        error = exec_shell_start(s);
    if (error) {
        exec_shell_close(s);
        return error;
    }
    shells_answer(req, 201, s);
    return NULL;
}

static fallible handle_delete(struct http_req *req)
{
    const struct exec *e = req->owner;
    struct exec_shell *s;

    TRY(shells_find(req, &s));
    if (s == e->main)
        exec_shell_reset(s); /* the next command starts another */
    else
        exec_shell_close(s);
    http_reply(req, 204, STR(""), STR(""));
    return NULL;
}

static fallible handle_run(struct http_req *req)
{
    struct exec_shell *s;

    TRY(shells_find(req, &s));
    return answers_handle_run(req, str_of(s->name));
}

static fallible find_open(struct http_req *req, struct exec_shell **ret_shell,
                          struct json **ret_body)
{
    TRY(shells_find(req, ret_shell));
    TRY(http_req_json(req, ret_body));
    return exec_shell_start(*ret_shell);
}

static fallible handle_input(struct http_req *req)
{
    struct exec_shell *s;
    struct json *body;
    struct str bytes;
    bool end = false;

    TRY(find_open(req, &s, &body));
    TRY(wire_decode_input(&req->arena, body, &bytes, &end));
    if (s->pipe)
        return exec_shell_pipe_send(s, req, bytes, end);
    TRY(shell_send(s->shell, bytes));
    shells_answer(req, 200, s);
    return NULL;
}

static fallible handle_keys(struct http_req *req)
{
    struct exec_shell *s;
    struct json *body;
    const struct json *keys;

    TRY(find_open(req, &s, &body));
    TRY(wire_decode_keys(body, &keys));
    for (const struct json *k = keys->first; k; k = k->next)
        TRY(shell_send_key(s->shell, k->s));
    shells_answer(req, 200, s);
    return NULL;
}

static fallible handle_resize(struct http_req *req)
{
    struct exec_shell *s;
    struct json *body;
    int64_t columns, rows;

    TRY(find_open(req, &s, &body));
    TRY(wire_decode_size(body, &columns, &rows));
    TRY(shell_resize(s->shell, (unsigned)columns, (unsigned)rows));
    s->columns = (unsigned)columns;
    s->rows = (unsigned)rows;
    shells_answer(req, 200, s);
    return NULL;
}

static void on_watcher_gone(struct http_req *req)
{
    struct exec_shell *s = NULL;

    err_free(shells_find(req, &s)); /* then it is closed already */
    live_sse_gone(req);
    if (s)
        exec_shell_close(s);
}

static fallible handle_output(struct http_req *req)
{
    const struct exec *e = req->owner;
    struct exec_shell *s;

    TRY(shells_find(req, &s));
    TRY(live_sse(&s->live, e->loop, req));
    if (s->watched && req->on_gone)
        req->on_gone = req->on_hangup = on_watcher_gone;
    return NULL;
}

#define SHELLS "/croft/v1/shells"
static const struct route routes[] = {
    {"GET", SHELLS, handle_list},
    {"POST", SHELLS, handle_new},
    {"GET", SHELLS "/{name}", handle_get},
    {"DELETE", SHELLS "/{name}", handle_delete},
    {"POST", SHELLS "/{name}/run", handle_run, .body_bytes = BODY_BYTES},
    {"POST", SHELLS "/{name}/input", handle_input, .body_bytes = BODY_BYTES},
    {"POST", SHELLS "/{name}/keys", handle_keys},
    {"POST", SHELLS "/{name}/resize", handle_resize},
    {"GET", SHELLS "/{name}/output", handle_output},
};

static void shells_add_routes(struct exec *e, void *state)
{
    (void)state;
    router_add(e->router, routes, ARRAY_LEN(routes), e);
}

EXEC_PART(shells) = {.add_routes = shells_add_routes};
