// SPDX-License-Identifier: Apache-2.0
/* exec.c — the server: routes, key, start and end. See exec.h. */
#include "guest/exec/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/passwd.h"
#include "guest/exec/answers.h"
#include "guest/exec/inner.h"
#include "guest/held/held.h"
#include "guest/stale/stale.h"
#include "net/router.h"
#include "net/server.h"

#define HELD_UNDO  "undo " /* and where it is */
#define UNDO_LEN   (sizeof HELD_UNDO - 1)
#define UNDO_PATH  "/tmp/" STALE_UNDO "XXXXXX"
#define BODY_BYTES (128u << 20)
#define HELD_CLOCK "clock " /* and struct exec_clock: what /server_info counts from */
#define CLOCK_LEN  (sizeof HELD_CLOCK - 1)
#define IDLE_MS    2000

static fallible handle_alive(struct http_req *req)
{
    http_reply_json(req, 200, STR("{\"status\":\"ok\"}"));
    return NULL;
}

static const struct route routes[] = {
    {"GET", "/alive", handle_alive, .flags = ROUTE_OPEN},
    {"GET", "/health", handle_alive, .flags = ROUTE_OPEN}, /* as clients of later servers ask */
    {"POST", "/execute_action", answers_handle, .body_bytes = BODY_BYTES},
};

static void on_term(struct loop_signal *s)
{
    loop_stop(s->loop);
}

/* The undo stacks of the server before us. */
static void take_history(struct exec *e, struct held *held)
{
    own(held_item) old = held_take(held, STR(HELD_UNDO));

    if (!old || !old->fds_len)
        return;
    snprintf(e->undo_path, sizeof e->undo_path, STR_FMT, (int)(old->len - UNDO_LEN),
             old->data + UNDO_LEN);
    e->undo.fd = take_fd(&old->fds[0]);
}

/* A private directory that goes with the process; there is none before the first edit. */
static void open_history(struct editor_undo *u)
{
    struct exec *e = container_of(u, struct exec, undo);
    struct held *held = e->config->held;
    char text[UNDO_LEN + sizeof e->undo_path];

    memcpy(e->undo_path, UNDO_PATH, sizeof UNDO_PATH);
    if (mkdtemp(e->undo_path))
        u->fd = open(e->undo_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (u->fd < 0)
        return;
    stale_hold(u->fd);
    snprintf(text, sizeof text, HELD_UNDO "%s", e->undo_path);
    if (held)
        err_free(held_put(held, held_new_id(held), str_of(text), &u->fd, 1, 0));
}

static void close_history(struct exec *e)
{
    if (e->undo.fd >= 0)
        fd_remove_tree(AT_FDCWD, e->undo_path);
    own_close(e->undo.fd);
}

/* Removes what killed servers left. */
static void sweep_stale(struct exec *e)
{
    const char *const places[] = {"/tmp", "/dev/shm", e->working_dir};

    e->swept = true;
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        stale_sweep(places[i], clock_wall_ns(&clock_system) / NS_PER_S);
}

static void on_settled(struct loop_later *l)
{
    struct exec *e = container_of(l, struct exec, settled);
    char name[160] = "?";

    err_free(listen_name(e->listen_fd, false, name, sizeof name)); /* then it stays without */
    log_info("action server listens", KV("address", name), KV("dir", e->config->working_dir),
             KV("user", e->start.known ? e->start.account.name : "?"));
    if (!e->config->held || e->config->held->again)
        sweep_stale(e); /* the first in a sandbox has time for that */
}

ROWS_OF(exec_parts, struct exec_part)

void *exec_part_state(const struct exec *e, const struct exec_part *part)
{
    size_t i = 0;

    while (ROWS_AT(exec_parts, i) != part)
        i++;
    return e->part_states[i];
}

static void add_parts(struct exec *e)
{
    e->part_states = mem_new(ROWS_LEN(exec_parts) * sizeof *e->part_states);
    for (size_t i = 0; i < ROWS_LEN(exec_parts); i++) {
        const struct exec_part *p = ROWS_AT(exec_parts, i);
        if (p->state_bytes)
            e->part_states[i] = mem_new(p->state_bytes);
        if (p->add_routes)
            p->add_routes(e, e->part_states[i]);
    }
}

/* Ends when all that was asked for is ready or has failed, or by a signal: starting is not 0 then.
 */
static fallible start_parts(struct exec *e)
{
    for (size_t i = 0; i < ROWS_LEN(exec_parts); i++)
        if (ROWS_AT(exec_parts, i)->start)
            TRY(ROWS_AT(exec_parts, i)->start(e, e->part_states[i]));
    return e->starting ? loop_run(e->loop) : NULL;
}

static void close_parts(struct exec *e)
{
    for (size_t i = 0; i < ROWS_LEN(exec_parts); i++)
        if (ROWS_AT(exec_parts, i)->close)
            ROWS_AT(exec_parts, i)->close(e, e->part_states[i]);
}

static bool parts_are_busy(const struct exec *e)
{
    for (size_t i = 0; i < ROWS_LEN(exec_parts); i++)
        if (ROWS_AT(exec_parts, i)->is_busy && ROWS_AT(exec_parts, i)->is_busy(e->part_states[i]))
            return true;
    return false;
}

static void free_parts(struct exec *e)
{
    for (size_t i = 0; i < ROWS_LEN(exec_parts); i++)
        free(e->part_states[i]);
    free(e->part_states);
}

static fallible check_key(void *exec, struct http_req *req)
{
    const struct exec *e = exec;
    struct str key = http_req_header(req, STR("x-session-api-key"));

    if (e->config->session_key.len && !(key.p && hash_equal(key, e->config->session_key)))
        return err_new(ERR_FORBIDDEN, "Invalid API Key");
    return NULL;
}

static bool is_unix(int fd)
{
    int domain = 0;
    socklen_t len = sizeof domain;

    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_UNIX;
}

static void on_init_gone(struct held *k)
{
    loop_stop(k->loop); /* without pid 1 there is no restart, and no reaping */
}

/* Without a key only clients of this machine are answered. */
static fallible open_listener(const struct exec *e, int *ret_fd)
{
    int fd;

    TRY(listen_open(e->config->listen, &fd));
    if (!e->config->session_key.len && !listen_is_loopback(fd)) {
        listen_close(fd);
        return err_new(ERR_INVALID,
                       "'" STR_FMT "' can be reached from elsewhere: set SESSION_API_KEY, or "
                       "listen on 127.0.0.1",
                       STR_ARG(e->config->listen));
    }
    *ret_fd = fd;
    return NULL;
}

/* Takes the socket over, on failure too. A page that a browser here shows counts as elsewhere. */
static fallible take_requests(struct exec *e, int fd)
{
    struct http_server_config config = {.router = e->router};

    config.local_names = !e->config->session_key.len && !is_unix(fd);
    struct err *error = http_server_new(e->net, &config, &e->server);
    if (error) {
        listen_close(fd);
        return error;
    }
    return http_server_listen(e->server, fd);
}

/* EPIPE: the reader is gone. */
static fallible tell_ready(struct exec *e)
{
    own_fd ready = take_fd(&e->ready_fd);

    if (ready >= 0 && write(ready, "1", 1) != 1 && errno != EPIPE)
        return err_sys("tell that the server listens");
    return e->config->held ? held_ready(e->config->held) : NULL;
}

/* --- the end of an idle server --- */

static bool is_busy(const struct exec *e)
{
    return http_server_connections(e->server) || !answers_are_idle(e->answers) ||
           parts_are_busy(e) || exec_shells_are_used(e) || spawn_count_work(e->spawner);
}

/* Takes the clock of the server inside before us. */
static void take_clock(struct exec *e, struct held *held)
{
    own(held_item) old = held_take(held, STR(HELD_CLOCK));

    if (!old)
        return;
    if (old->len == CLOCK_LEN + sizeof e->clock)
        memcpy(&e->clock, old->data + CLOCK_LEN, sizeof e->clock);
    held_drop(held, old->id);
}

static fallible put_clock(struct exec *e, struct held *held)
{
    char text[CLOCK_LEN + sizeof e->clock] = HELD_CLOCK;

    memcpy(text + CLOCK_LEN, &e->clock, sizeof e->clock);
    return held_put(held, held_new_id(held), str_n(text, sizeof text), NULL, 0, 0);
}

/* Idle twice in a row: once may be between two requests. A client that connects from now on waits
 * in the queue of the socket, and pid 1 has that socket too. */
static void on_tick(struct loop_timer *t)
{
    struct exec *e = container_of(t, struct exec, tick);
    struct held *held = e->config->held;

    if (!e->swept)
        sweep_stale(e); /* the first request has been answered */
    if (!held || !held->listens)
        return;
    bool idle = !is_busy(e);
    if (idle && e->was_idle) {
        struct err *error = put_clock(e, held);
        if (!error)
            _exit(HELD_IDLE);
        err_free(error); /* pid 1 is gone: that is told soon */
    }
    e->was_idle = idle;
    loop_timer_start(e->loop, t, IDLE_MS, on_tick);
}

/* No request is answered before all is ready. */
static fallible exec_serve(struct exec *e, bool *ret_served)
{
    struct held *held = e->config->held;
    int fd;

    TRY(loop_signal_start(e->loop, &e->term, SIGTERM, on_term));
    TRY(loop_signal_start(e->loop, &e->interrupt, SIGINT, on_term));
    if (held)
        TRY(held_watch(held, e->loop, on_init_gone));
    TRY(open_listener(e, &fd));
    struct err *error = start_parts(e);
    if (error || e->starting) {
        listen_close(fd);
        return error;
    }
    TRY(take_requests(e, fd));
    TRY(tell_ready(e));
    *ret_served = true;
    e->listen_fd = fd;
    loop_later(e->loop, &e->settled, on_settled);
    loop_timer_start(e->loop, &e->tick, IDLE_MS, on_tick);
    return loop_run(e->loop);
}

void exec_close(struct exec *e)
{
    loop_signal_stop(&e->term);
    loop_signal_stop(&e->interrupt);
    loop_timer_stop(&e->tick);
    exec_close_shells(e);
    close_parts(e);
    http_server_free(e->server);
    loop_later_cancel(&e->settled);
    if (e->config->held)
        loop_io_stop(&e->config->held->io);
}

/* As the user's: what actions make. Only root can give things away. */
static void set_owner(struct exec *e)
{
    const struct start *s = &e->start;
    uid_t uid = s->give ? s->account.uid : e->config->uid;

    e->editor.space.uid = geteuid() == 0 ? uid : EDIT_NO_OWNER;
    e->editor.space.gid = (gid_t)e->editor.space.uid;
}

fallible exec_open(struct exec *e, const struct exec_config *config)
{
    uint64_t now = loop_now_ns(e->loop);

    e->config = config;
    e->ready_fd = config->ready_fd;
    e->spawner = config->held ? &config->held->spawner : NULL;
    e->clock = (struct exec_clock){now, now};
    if (config->held) {
        take_history(e, config->held);
        take_clock(e, config->held);
    }
    e->editor.workdir = config->working_dir;
    TRY(start_all(&e->start, config));
    e->working_dir = e->start.dir;
    e->run_as = e->start.other ? &e->start.user : NULL;
    e->env = e->start.env;
    set_owner(e);
    e->transfer = (struct transfer){.work_dir = e->working_dir,
                                    .root_fd = -1,
                                    .uid = e->editor.space.uid,
                                    .gid = e->editor.space.gid};
    return exec_open_shells(e);
}

fallible exec_run(struct exec *e, const struct exec_config *config, bool *ret_served)
{
    *ret_served = false;
    struct err *error = exec_open(e, config);
    if (!error)
        error = exec_serve(e, ret_served);
    exec_close(e);
    return error;
}

fallible exec_new(struct loop *loop, struct exec **ret_exec)
{
    struct exec *e = mem_new(sizeof *e);

    *e = (struct exec){.loop = loop, .ready_fd = -1, .undo = {-1, open_history}};
    e->editor.undo = &e->undo;
    e->start.place = (struct account_place){PASSWD_ETC, "/home"};
    list_init(&e->acts);
    list_init(&e->shells);
    e->router = router_new(&(struct router_config){.auth = check_key, .ctx = e});
    router_add(e->router, routes, ARRAY_LEN(routes), e);
    add_parts(e);
    e->answers = answers_new(e);
    struct err *error = net_new(loop, &e->net);
    if (error)
        exec_free(e);
    else
        *ret_exec = e;
    return error;
}

void exec_free(struct exec *e)
{
    if (!e)
        return;
    net_free(e->net);
    answers_free(e->answers);
    close_history(e);
    router_free(e->router);
    free_parts(e);
    start_done(&e->start);
    own_close(e->ready_fd);
    free(e);
}
