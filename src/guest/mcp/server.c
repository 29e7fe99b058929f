// SPDX-License-Identifier: Apache-2.0
/* server.c — one server: its process, the handshake, its tools, and the calls it answers. One
 * message is one line. What it writes to standard error becomes the reason of its failure. */
#include <stdlib.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/mem.h"
#include "guest/mcp/inner.h"
#include "guest/proc/env.h"
#include "loop/loop.h"
#include "net/stream.h"
#include "wire/rpc.h"

#define CONFIG_ARENA (4u << 20)
#define TOOLS_ARENA  (64u << 20) /* of the tools of one server */
#define LINE_BYTES   (16u << 20)
#define START_MS     (120u * 1000) /* npx and uvx may have to fetch their program first */
#define STORY_MS     1000          /* between the end of the output and that of the process */

static const char hello[] =
    "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},"
    "\"clientInfo\":{\"name\":\"croft\",\"version\":\"" CROFT_VERSION "\"}}";

static struct loop *loop_of(const struct mcp_server *s)
{
    return net_loop(s->set->config.net);
}

void mcp_server_send(struct mcp_server *s, struct str message)
{
    if (!s->io)
        return;
    stream_write(s->io, message);
    stream_write(s->io, STR("\n"));
}

static void server_fail(struct mcp_server *s, struct err *why);

static void server_put(struct mcp_server *s, const struct rpc *m)
{
    own_done(buf) out;

    buf_init(&out, LINE_BYTES);
    rpc_put(&out, m);
    if (buf_failed(&out)) /* half a message would never be answered */
        server_fail(s, buf_check(&out));
    else
        mcp_server_send(s, buf_str(&out));
}

void mcp_server_note(struct mcp_server *s, const char *method, struct str params)
{
    server_put(s, &(struct rpc){.kind = RPC_NOTE, .method = str_of(method), .raw = params});
}

static void server_ask(struct mcp_server *s, const char *method, struct str params)
{
    struct json id = {.type = JSON_INT, .i = ++s->next_id};

    s->own_id = id.i;
    server_put(
        s, &(struct rpc){.kind = RPC_REQUEST, .id = &id, .method = str_of(method), .raw = params});
}

/* --- its end --- */

static void server_stop(struct mcp_server *s)
{
    loop_timer_stop(&s->deadline);
    stream_close(take(&s->io));
    if (s->proc.loop)
        proc_stop(&s->proc);
    s->proc.loop = NULL;
    buf_done(&s->line);
    buf_init(&s->line, LINE_BYTES);
    s->own_id = 0;
    s->ended = 0;
}

static void fail_calls(struct mcp_server *s)
{
    while (!list_empty(&s->calls)) {
        struct mcp_call *c = container_of(s->calls.next, struct mcp_call, link);
        list_del(&c->link);
        s->call_count--;
        buf_done(&c->text);
        c->done(c, NULL, s->why);
    }
}

static void server_fail(struct mcp_server *s, struct err *why)
{
    server_stop(s);
    s->status = MCP_FAILED;
    err_free(s->why);
    s->why = err_wrap(why, "server '" STR_FMT "'", STR_ARG(s->config.name));
    log_warn("tools failed", KV_ERR(s->why));
    fail_calls(s);
    mcp_changed(s->set);
}

static void tell_end(struct mcp_server *s)
{
    char how[80] = "its output closed";
    struct str words = str_trim(buf_str(&s->proc.words));

    if (!s->proc.pid)
        proc_describe(&s->proc, how, sizeof how);
    server_fail(s, err_new(ERR_CLOSED, "it ended: %s%s" STR_FMT, how, words.len ? ": " : "",
                           STR_ARG(words)));
}

static void on_story_deadline(struct loop_timer *t)
{
    tell_end(container_of(t, struct mcp_server, deadline));
}

static void half_ended(struct mcp_server *s)
{
    if (++s->ended == 2)
        tell_end(s);
    else
        loop_timer_start(loop_of(s), &s->deadline, STORY_MS, on_story_deadline);
}

static void on_process_end(struct proc *p)
{
    half_ended(container_of(p, struct mcp_server, proc));
}

static void on_eof(struct stream *io)
{
    stream_pause(io);
    half_ended(stream_owner(io));
}

static void on_error(struct stream *io, struct err *why)
{
    struct mcp_server *s = stream_owner(io);

    if (err_errno(why)) { /* a peer that died: its end tells more */
        err_free(why);
        stream_close(take(&s->io));
        half_ended(s);
    } else {
        server_fail(s, why);
    }
}

/* --- what it says --- */

static void list_tools(struct mcp_server *s, struct str cursor)
{
    own_done(buf) params;
    struct jw w;

    if (!cursor.p) {
        arena_done(&s->fresh.arena);
        arena_init(&s->fresh.arena, TOOLS_ARENA);
        s->fresh.list = json_new(&s->fresh.arena, JSON_ARRAY);
    }
    buf_init(&params, 64u << 10);
    jw_init(&w, &params, JW_WEB);
    JW_OBJECT(&w, NULL)
        if (cursor.p)
            jw_str(&w, "cursor", cursor);
    s->listing = true;
    s->stale = false;
    server_ask(s, "tools/list", buf_str(&params));
}

static void get_ready(struct mcp_server *s)
{
    loop_timer_stop(&s->deadline);
    arena_done(&s->tools.arena);
    s->tools = s->fresh;
    arena_init(&s->fresh.arena, TOOLS_ARENA);
    s->status = MCP_READY;
    s->came_up = true;
    LIST_EACH(c, &s->calls, struct mcp_call, link) {
        mcp_server_send(s, buf_str(&c->text));
        buf_done(&c->text);
    }
    mcp_changed(s->set);
}

/* A page of tools; names are all we look at. */
static struct str add_tools(struct mcp_server *s, struct str line)
{
    struct arena *a = &s->fresh.arena;
    struct str text = arena_copy(a, line);
    struct rpc m;

    err_free(text.p ? rpc_parse(a, text, &m) : arena_check(a));
    if (a->failed) {
        s->fresh.list = NULL;
        return STR("");
    }
    const struct json *list = json_get(m.result, STR("tools"));
    for (struct json *t = list && list->type == JSON_ARRAY ? list->first : NULL, *next; t;
         t = next) {
        next = t->next;
        t->next = NULL;
        if (json_get_str(t, "name", STR("")).len)
            json_push(s->fresh.list, t);
    }
    return json_get_str(m.result, "nextCursor", STR(""));
}

static void on_own_answer(struct mcp_server *s, const struct rpc *m, struct str line)
{
    struct str cursor = {NULL, 0};

    s->own_id = 0;
    if (!s->listing && m->kind == RPC_ERROR) {
        server_fail(s,
                    err_new(ERR_UPSTREAM, "it refused to start: " STR_FMT,
                            STR_ARG(str_first(json_get_str(m->error, "message", STR("")), 500))));
        return;
    }
    if (!s->listing) {
        mcp_server_note(s, "notifications/initialized", (struct str){NULL, 0});
        list_tools(s, cursor);
        return;
    }
    if (m->kind == RPC_RESULT) /* an error: it has no tools */
        cursor = add_tools(s, line);
    if (!s->fresh.list)
        server_fail(s, err_new(ERR_TOO_LARGE, "its tools are over %u MB", TOOLS_ARENA >> 20));
    else if (cursor.len || s->stale)
        list_tools(s, s->stale ? (struct str){NULL, 0} : cursor);
    else
        get_ready(s);
}

static void on_answer(struct mcp_server *s, const struct rpc *m, struct str line)
{
    if (!m->id || m->id->type != JSON_INT)
        return;
    if (m->id->i == s->own_id) {
        on_own_answer(s, m, line);
        return;
    }
    LIST_EACH(c, &s->calls, struct mcp_call, link)
        if (c->id == m->id->i) { /* one that was cancelled is not here any more */
            list_del(&c->link);
            s->call_count--;
            c->done(c, m, NULL);
            return;
        }
}

static void on_note(struct mcp_server *s, const struct rpc *m)
{
    if (str_eq(m->method, STR("notifications/tools/list_changed"))) {
        s->stale = true;
        if (s->status == MCP_READY && !s->own_id)
            list_tools(s, (struct str){NULL, 0});
    } else if (str_eq(m->method, STR("notifications/progress"))) {
        int64_t token = json_get_int(m->params, "progressToken", -1);
        LIST_EACH(c, &s->calls, struct mcp_call, link)
            if (c->id == token) {
                if (c->progress)
                    c->progress(c, m->params);
                return;
            }
    } else if (str_eq(m->method, STR("notifications/message"))) {
        s->set->config.on_note(s->set->config.owner, m);
    }
}

static void on_request(struct mcp_server *s, const struct rpc *m)
{
    bool ping = str_eq(m->method, STR("ping"));

    server_put(s, &(struct rpc){.kind = ping ? RPC_RESULT : RPC_ERROR,
                                .id = m->id,
                                .raw = ping ? STR("{}") : RPC_NO_METHOD});
}

static void on_line(struct mcp_server *s, struct str line)
{
    own_done(arena) a;
    struct rpc m;

    arena_init(&a, (size_t)16 * LINE_BYTES);
    own(err) e = rpc_parse(&a, line, &m);
    if (e && err_code(e) != ERR_INVALID && err_code(e) != ERR_UNPROCESSABLE)
        server_fail(
            s, err_wrap(take(&e), "read what it sent")); /* the call it answered is lost with it */
    else if (e)
        log_warn("not a message of a tool server", KV("line", str_first(line, 200)), KV_ERR(e));
    else if (m.kind == RPC_REQUEST)
        on_request(s, &m);
    else if (m.kind == RPC_NOTE)
        on_note(s, &m);
    else
        on_answer(s, &m, line);
}

static size_t on_data(struct stream *io, struct str data)
{
    struct mcp_server *s = stream_owner(io);
    struct str rest = data, piece;

    while (s->io == io && rest.len) {
        bool whole = str_cut(&rest, '\n', &piece);
        buf_add(&s->line, piece);
        if (buf_failed(&s->line)) {
            server_fail(
                s, err_new(ERR_TOO_LARGE, "it sent a message of over %u MB", LINE_BYTES >> 20));
        } else if (whole) {
            own_done(buf) line = s->line;
            buf_init(&s->line, LINE_BYTES);
            if (str_trim(buf_str(&line)).len)
                on_line(s, buf_str(&line));
        }
    }
    return data.len;
}

static const struct stream_events events = {
    .on_data = on_data, .on_eof = on_eof, .on_error = on_error};

/* --- its start --- */

static void on_start_deadline(struct loop_timer *t)
{
    struct mcp_server *s = container_of(t, struct mcp_server, deadline);

    server_fail(s, err_new(ERR_TIMEOUT, "not ready after %u s", START_MS / 1000));
}

static fallible run_program(struct mcp_server *s, int fd)
{
    const struct mcp_config *set = &s->set->config;
    const struct wire_mcp_server *c = &s->config;
    own_done(arena) a;
    size_t n = 0;

    arena_init(&a, CONFIG_ARENA);
    const char **argv = arena_zalloc(&a, (c->args->count + 2) * sizeof *argv);
    char **more = arena_zalloc(&a, (c->env->count + 1) * sizeof *more);
    const char *command = arena_cstr(&a, c->command);
    TRY(arena_check(&a));
    for (const struct json *v = c->env->first; v; v = v->next)
        more[n++] = (char *)arena_printf(&a, "%.*s=%.*s", STR_ARG(v->key), STR_ARG(v->s)).p;
    char **env = proc_env_with(&a, (char *const *)set->env, more);
    n = 1;
    for (const struct json *v = c->args->first; v; v = v->next)
        argv[n++] = arena_cstr(&a, v->s);
    TRY(arena_check(&a));
    TRY(proc_find_program(&a, command, env, &argv[0]));
    return proc_start(&s->proc, loop_of(s),
                      &(struct proc_config){.argv = (char *const *)argv,
                                            .env = env,
                                            .cwd = set->cwd,
                                            .user = set->user,
                                            .spawner = set->spawner,
                                            .in_fd = fd,
                                            .out_fd = fd,
                                            .extra_fd = -1});
}

static fallible try_start(struct mcp_server *s)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys("socketpair");
    own_fd theirs = ends[1];
    TRY(stream_new(s->set->config.net, ends[0], &events, s, &s->io));
    stream_set_idle(s->io, 0);
    s->proc = (struct proc){.on_exit = on_process_end};
    return run_program(s, theirs);
}

void mcp_server_start(struct mcp_server *s)
{
    err_free(take(&s->why));
    s->status = MCP_STARTING;
    s->listing = false;
    struct err *why = try_start(s);
    if (why) {
        server_fail(s, why);
        return;
    }
    loop_timer_start(loop_of(s), &s->deadline, START_MS, on_start_deadline);
    server_ask(s, "initialize", str_of(hello));
}

static fallible copy_config(struct mcp_server *s, struct str text)
{
    struct wire_mcp_servers copy;
    struct json *tree;

    s->text = arena_copy(&s->arena, text);
    TRY(arena_check(&s->arena));
    TRY(json_parse(&s->arena, s->text, NULL, &tree));
    TRY(wire_decode_mcp_servers(&s->arena, tree, &copy));
    s->config = copy.at[0];
    return NULL;
}

fallible mcp_server_new(struct mcp *set, struct str text, struct mcp_server **ret_server)
{
    struct mcp_server *s = mem_try(sizeof *s);

    if (!s)
        return err_no_memory();
    s->set = set;
    list_init(&s->link);
    list_init(&s->calls);
    buf_init(&s->line, LINE_BYTES);
    arena_init(&s->arena, CONFIG_ARENA);
    arena_init(&s->tools.arena, TOOLS_ARENA);
    arena_init(&s->fresh.arena, TOOLS_ARENA);
    struct err *e = copy_config(s, text);
    if (e)
        mcp_server_free(s);
    else
        *ret_server = s;
    return e;
}

void mcp_server_free(struct mcp_server *s)
{
    server_stop(s);
    buf_done(&s->line);
    list_del(&s->link);
    err_free(s->why);
    s->why = err_new(ERR_CLOSED, "the server of this tool was removed");
    fail_calls(s);
    err_free(s->why);
    arena_done(&s->arena);
    arena_done(&s->tools.arena);
    arena_done(&s->fresh.arena);
    free(s);
}
