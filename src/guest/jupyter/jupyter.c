// SPDX-License-Identifier: Apache-2.0
/* jupyter.c — the engine that speaks to a Jupyter kernel over its sockets.
 *
 * A cell is finished when both its execute_reply and the idle status with its id have come: the
 * reply alone overtakes output that is still in the other socket. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/utf8.h"
#include "guest/jupyter/connection.h"
#include "guest/jupyter/engine.h"
#include "guest/jupyter/message.h"
#include "guest/proc/env.h"
#include "guest/proc/proc.h"
#include "guest/jupyter/spec.h"
#include "guest/jupyter/zmtp_peer.h"
#include "loop/loop.h"
#include "net/stream.h"

#define SPEC_ARENA    (1u << 20)
#define MESSAGE_ARENA (128u << 20)
#define REPLACED_SIZE ((size_t)3 * ZMTP_DEFAULT_SIZE) /* each broken byte becomes three */
#define CODE_SIZE     (64u << 20)
#define PROBE_MS      100 /* until the subscription has surely arrived */
#define DRAIN_MS      500 /* for output that a dead kernel left in its socket */
#define ID_MAX        64

struct jupyter {
    struct engine engine;
    struct net *net;
    const struct engine_events *events;
    void *owner;
    struct connection conn;
    struct proc proc;
    struct zmtp_peer *shell, *iopub, *control;
    bool heard_shell, heard_iopub, ready, dead, freed;
    bool by_message; /* interrupts */
    struct loop_timer probe, start_deadline, drain;
    struct loop_later freeing;
    uint32_t start_ms;
    char session[RNG_HEX_LEN + 1];
    char cell[ID_MAX]; /* id of the request that runs; "": none */
    bool replied, idle;
    uint64_t next_id;
};

static void jupyter_gone(struct jupyter *j, struct err *why)
{
    if (j->dead) {
        err_free(why);
        return;
    }
    j->dead = true;
    loop_timer_stop(&j->probe);
    loop_timer_stop(&j->start_deadline);
    loop_timer_stop(&j->drain);
    j->events->on_gone(j->owner, why);
}

static fallible send_request(struct jupyter *j, struct zmtp_peer *to, struct str type,
                             struct str content, char id[ID_MAX])
{
    own_done(buf) store;
    struct str parts[MESSAGE_PARTS];

    buf_init(&store, 4096);
    snprintf(id, ID_MAX, "%s_%llu", j->session, (unsigned long long)j->next_id++);
    struct message_out m = {.id = str_of(id),
                            .session = str_of(j->session),
                            .type = type,
                            .content = content,
                            .wall_ns = clock_wall_ns(loop_clock(net_loop(j->net)))};
    TRY(message_put(&m, str_of(j->conn.key), &store, parts));
    return zmtp_peer_send(to, parts, MESSAGE_PARTS);
}

/* --- a message of the cell that runs --- */

static void on_display(struct jupyter *j, const struct json *content)
{
    const struct json *data = json_get(content, STR("data"));
    const struct json *text = json_get(data, STR("text/plain"));
    const struct json *png = json_get(data, STR("image/png"));

    if (text && text->type == JSON_STR)
        j->events->on_text(j->owner, text->s);
    if (png && png->type == JSON_STR)
        j->events->on_png(j->owner, png->s);
}

static void on_cell_error(struct jupyter *j, const struct json *content)
{
    const struct json *lines = json_get(content, STR("traceback"));
    own_done(buf) text;

    buf_init(&text, ZMTP_DEFAULT_SIZE);
    for (const struct json *l = lines && lines->type == JSON_ARRAY ? lines->first : NULL; l;
         l = l->next) {
        if (l != lines->first)
            buf_add_char(&text, '\n');
        if (l->type == JSON_STR)
            buf_add(&text, l->s);
    }
    j->events->on_text(j->owner, buf_str(&text));
}

static void on_content(struct jupyter *j, const struct message *m, const struct json *content)
{
    if (str_eq(m->type, STR("stream")))
        j->events->on_text(j->owner, json_get_str(content, "text", STR("")));
    else if (str_eq(m->type, STR("execute_result")) || str_eq(m->type, STR("display_data")))
        on_display(j, content);
    else if (str_eq(m->type, STR("error")))
        on_cell_error(j, content);
    else if (str_eq(m->type, STR("status")))
        j->idle |= str_eq(json_get_str(content, "execution_state", STR("")), STR("idle"));
    else if (str_eq(m->type, STR("execute_reply")))
        j->replied = true;
}

static void finish_if_done(struct jupyter *j)
{
    if (!j->cell[0] || !j->replied || !j->idle || j->freed)
        return;
    j->cell[0] = '\0';
    j->events->on_cell_done(j->owner);
}

static void check_ready(struct jupyter *j)
{
    if (j->ready || !j->heard_shell || !j->heard_iopub || !zmtp_peer_ready(j->control))
        return;
    j->ready = true;
    loop_timer_stop(&j->probe);
    loop_timer_stop(&j->start_deadline);
    j->events->on_ready(j->owner);
}

static void on_oversize(struct jupyter *j, const struct zmtp_message *z, struct arena *a)
{
    struct message m;
    char note[96];
    struct err *e = message_parse_head(z, a, &m);

    if (!e && j->cell[0] && str_eq(m.parent_id, str_of(j->cell))) {
        snprintf(note, sizeof note, "[%llu bytes of output in one piece were dropped]\n",
                 (unsigned long long)z->dropped_bytes);
        j->events->on_text(j->owner, str_of(note));
    }
    err_free(e); /* a message without a reader */
}

static fallible jupyter_handle(struct jupyter *j, const struct zmtp_message *z, struct arena *a)
{
    own_done(buf) valid;
    struct json_limits limits = {.size_bytes = REPLACED_SIZE, .allow_nan = true};
    struct message m;
    struct json *content;

    buf_init(&valid, REPLACED_SIZE);
    TRY(message_parse(z, str_of(j->conn.key), a, &m));
    if (!j->cell[0] || !str_eq(m.parent_id, str_of(j->cell)))
        return NULL;
    j->engine.begun = true;
    if (!utf8_valid(m.content_text)) { /* a lone surrogate is sent as the byte it stands for */
        utf8_add_replaced(&valid, m.content_text);
        TRY(buf_check(&valid));
        m.content_text = buf_str(&valid);
    }
    TRY_WRAP(json_parse(a, m.content_text, &limits, &content), "content of '" STR_FMT "'",
             STR_ARG(str_first(m.type, 40)));
    on_content(j, &m, content);
    return NULL;
}

static void on_message(struct zmtp_peer *p, const struct zmtp_message *z)
{
    struct jupyter *j = zmtp_peer_owner(p);
    own_done(arena) a;

    arena_init(&a, MESSAGE_ARENA);
    j->heard_shell |= p == j->shell;
    j->heard_iopub |= p == j->iopub;
    if (z->dropped_bytes) {
        on_oversize(j, z, &a);
        return;
    }
    struct err *e = jupyter_handle(j, z, &a);
    if (e)
        log_warn("kernel message dropped", KV_ERR(e));
    err_free(e);
    if (j->freed)
        return;
    check_ready(j);
    finish_if_done(j);
}

/* --- coming up --- */

static void ask_info(struct jupyter *j);

static void on_probe(struct loop_timer *t)
{
    ask_info(container_of(t, struct jupyter, probe));
}

/* A kernel's status goes out on the other socket only once our subscription has arrived there, so
 * the question is repeated until both have answered. */
static void ask_info(struct jupyter *j)
{
    char id[ID_MAX];
    struct err *e = send_request(j, j->shell, STR("kernel_info_request"), STR("{}"), id);

    if (e) {
        jupyter_gone(j, e);
        return;
    }
    loop_timer_start(net_loop(j->net), &j->probe, PROBE_MS, on_probe);
}

static void on_peer_ready(struct zmtp_peer *p)
{
    struct jupyter *j = zmtp_peer_owner(p);

    if (zmtp_peer_ready(j->shell) && zmtp_peer_ready(j->iopub) && !j->probe.loop && !j->ready)
        ask_info(j);
    check_ready(j);
}

static void tell_death(struct jupyter *j)
{
    char how[64];
    struct str words = str_trim(buf_str(&j->proc.words));

    proc_describe(&j->proc, how, sizeof how);
    if (j->ready)
        jupyter_gone(j, err_new(ERR_CLOSED, "%s", how));
    else if (str_find(words, STR("No module named ipykernel")) >= 0 ||
             str_find(words, STR("No module named 'ipykernel")) >= 0)
        jupyter_gone(j, err_new(ERR_UNSUPPORTED, "python has no ipykernel"));
    else
        jupyter_gone(
            j, err_new(ERR_UPSTREAM, "%s%s" STR_FMT, how, words.len ? ": " : "", STR_ARG(words)));
}

static void on_drain_deadline(struct loop_timer *t)
{
    struct jupyter *j = container_of(t, struct jupyter, drain);

    if (j->proc.pid)
        jupyter_gone(j, err_new(ERR_CLOSED, "it closed its sockets"));
    else
        tell_death(j);
}

static void on_peer_error(struct zmtp_peer *p, struct err *why)
{
    struct jupyter *j = zmtp_peer_owner(p);

    if (j->proc.pid == 0) { /* it died; what its sockets held has been read */
        err_free(why);
        if (p == j->iopub)
            tell_death(j);
        return;
    }
    bool closed = err_code(why) == ERR_CLOSED || err_errno(why);
    if (!closed) {
        jupyter_gone(j, why);
        return;
    }
    err_free(why); /* its exit is about to be told; if not, it closed its socket and lives on */
    loop_timer_start(net_loop(j->net), &j->drain, DRAIN_MS, on_drain_deadline);
}

static const struct zmtp_peer_events peer_events = {
    .on_ready = on_peer_ready, .on_message = on_message, .on_error = on_peer_error};

static void on_exit_(struct proc *p)
{
    struct jupyter *j = container_of(p, struct jupyter, proc);

    if (zmtp_peer_ready(j->iopub))
        loop_timer_start(net_loop(j->net), &j->drain, DRAIN_MS, on_drain_deadline);
    else
        tell_death(j);
}

static void on_start_deadline(struct loop_timer *t)
{
    struct jupyter *j = container_of(t, struct jupyter, start_deadline);

    jupyter_gone(j, err_new(ERR_TIMEOUT, "not ready after %u ms", j->start_ms));
}

/* --- the engine --- */

static fallible jupyter_execute(struct engine *e, struct str code)
{
    struct jupyter *j = container_of(e, struct jupyter, engine);
    own_done(buf) content;
    struct jw w;

    buf_init(&content, CODE_SIZE);
    jw_init(&w, &content, 0);
    JW_OBJECT(&w, NULL) {
        jw_str(&w, "code", code);
        jw_bool(&w, "silent", false);
        jw_bool(&w, "store_history", false);
        JW_OBJECT(&w, "user_expressions") {
        }
        jw_bool(&w, "allow_stdin", false);
        jw_bool(&w, "stop_on_error", false);
    }
    TRY(buf_check(&content));
    j->replied = j->idle = j->engine.begun = false;
    struct err *failed =
        send_request(j, j->shell, STR("execute_request"), buf_str(&content), j->cell);
    if (failed)
        j->cell[0] = '\0';
    return failed;
}

static void jupyter_interrupt(struct engine *e)
{
    struct jupyter *j = container_of(e, struct jupyter, engine);
    char id[ID_MAX];

    if (!j->by_message) {
        proc_signal(&j->proc, SIGINT);
        return;
    }
    struct err *failed = send_request(j, j->control, STR("interrupt_request"), STR("{}"), id);
    if (failed)
        log_warn("kernel not interrupted", KV_ERR(failed));
    err_free(failed);
}

static void on_freeing(struct loop_later *l)
{
    free(container_of(l, struct jupyter, freeing));
}

static void jupyter_free(struct engine *e)
{
    struct jupyter *j = container_of(e, struct jupyter, engine);

    if (j->freed)
        return;
    j->freed = j->dead = true;
    zmtp_peer_free(j->shell);
    zmtp_peer_free(j->iopub);
    zmtp_peer_free(j->control);
    loop_timer_stop(&j->probe);
    loop_timer_stop(&j->start_deadline);
    loop_timer_stop(&j->drain);
    proc_stop(&j->proc);
    connection_done(&j->conn);
    loop_later(net_loop(j->net), &j->freeing, on_freeing);
}

static const struct engine_ops jupyter_ops = {
    .execute = jupyter_execute, .interrupt = jupyter_interrupt, .free = jupyter_free};

static fallible start_process(struct jupyter *j, const struct engine_config *c)
{
    own_done(arena) a;
    struct spec spec;

    arena_init(&a, SPEC_ARENA);
    TRY(spec_find(&a, c->kernel, c->python, c->env, j->conn.file, &spec));
    j->by_message = spec.interrupt_message;
    j->engine.python = j->engine.magics = spec.python;
    char parent[32]; /* ipykernel ends when this process does, unless pid 1 sees to it */
    snprintf(parent, sizeof parent, "JPY_PARENT_PID=%d", c->spawner ? 0 : (int)getpid());
    char **env = proc_env_with(&a, spec.env, (char *[]){parent, NULL});
    TRY(arena_check(&a));
    struct proc_config config = {.argv = spec.argv,
                                 .env = env,
                                 .cwd = c->cwd,
                                 .user = c->user,
                                 .spawner = c->spawner,
                                 .works = true,
                                 .extra_fd = -1};
    return proc_start(&j->proc, net_loop(j->net), &config);
}

static fallible start_peer(struct jupyter *j, int socket, enum zmtp_role role,
                           struct zmtp_peer **ret_peer)
{
    char path[CONN_PATH_MAX];

    connection_path(&j->conn, socket, path);
    return zmtp_peer_new(j->net, path, role, j->start_ms + 1000, &peer_events, j, ret_peer);
}

static fallible jupyter_start_kernel(struct jupyter *j, const struct engine_config *c)
{
    TRY(connection_init(&j->conn, c->run_dir, c->rng, c->user));
    TRY(start_process(j, c));
    TRY(start_peer(j, CONN_SHELL, ZMTP_DEALER, &j->shell));
    TRY(start_peer(j, CONN_IOPUB, ZMTP_SUB, &j->iopub));
    return start_peer(j, CONN_CONTROL, ZMTP_DEALER, &j->control);
}

fallible engine_start_jupyter(const struct engine_config *c, struct engine **ret_engine)
{
    struct jupyter *j = mem_new(sizeof *j);

    *j = (struct jupyter){.engine = {.ops = &jupyter_ops},
                          .net = c->net,
                          .events = c->events,
                          .owner = c->owner,
                          .start_ms = c->start_ms,
                          .proc = {.out = -1, .on_exit = on_exit_}};
    rng_hex(c->rng, j->session);
    struct err *e = jupyter_start_kernel(j, c);
    if (e) {
        jupyter_free(&j->engine);
        return e;
    }
    loop_timer_start(net_loop(j->net), &j->start_deadline, j->start_ms, on_start_deadline);
    *ret_engine = &j->engine;
    return NULL;
}
