// SPDX-License-Identifier: Apache-2.0
/* driver.c — native sandboxes as a backend: asks the launcher, which alone has privilege, and tells
 * of every end. A sandbox that runs holds no descriptor here. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "sandbox/native/inner.h"

#define START_MS 60000 /* a machine on its knees */
#define CAPS_MAX                                                                                   \
    (SBX_LIMITS_MEMORY | SBX_LIMITS_PIDS | SBX_LIMITS_CPU | SBX_LIMITS_DISK | SBX_LIMITS_FILES |   \
     SBX_HIDES_FILES | SBX_HIDES_PROCESSES | SBX_HIDES_NETWORK | SBX_CAN_MOUNT | SBX_IS_HERE |     \
     SBX_CAN_USER)
#define FLAGS (NATIVE_TELL | NATIVE_FILE_LOG)

struct native *native_of(struct sbx *s)
{
    return container_of(s, struct native, base);
}

struct native_driver *native_driver_of(const struct native *n)
{
    return container_of(n->base.driver, struct native_driver, base);
}

static void on_answered(struct native_call *c, const struct native_reply *r, int *fds,
                        struct err *e)
{
    struct native *n = container_of(c, struct native, call);

    n->answered(n, r, fds, e);
}

fallible native_ask(struct native *n, struct native_request *req, const int *fds, size_t count,
                    void (*answered)(struct native *n, const struct native_reply *r, int *fds,
                                     struct err *e))
{
    snprintf(req->id, sizeof req->id, "%s", n->base.id);
    n->answered = answered;
    return native_call(native_driver_of(n), &n->call, req, fds, count, on_answered);
}

static fallible ask_op(struct native *n, enum native_op op,
                       void (*answered)(struct native *n, const struct native_reply *r, int *fds,
                                        struct err *e))
{
    struct native_request req = {.op = op, .flags = op == NATIVE_ADOPT ? NATIVE_TELL : 0};

    return native_ask(n, &req, NULL, 0, answered);
}

/* --- the driver --- */

static fallible native_open(const struct sbx_host *host, struct sbx_driver **ret_driver)
{
    const struct sbx_launcher *launcher = host->launcher;

    if (!launcher)
        return err_new(ERR_UNSUPPORTED, "there is no launcher to ask");
    if (launcher->outputs && mkdir(launcher->outputs, 0700) < 0 && errno != EEXIST)
        return err_sys("make '%s'", launcher->outputs);
    struct native_driver *d = mem_new(sizeof *d);
    d->base.caps = launcher->caps & (CAPS_MAX | SBX_CAN_PAUSE);
    list_init(&d->watched);
    struct err *e = native_calls_start(d, host->loop, launcher->sock);
    if (e) {
        free(d);
        return e;
    }
    *ret_driver = &d->base;
    return NULL;
}

static void native_close(struct sbx_driver *driver)
{
    struct native_driver *d = container_of(driver, struct native_driver, base);

    loop_io_stop(&d->io);
    loop_timer_stop(&d->watch);
    native_calls_drop(d);
    native_log_close(d);
    free(d);
}

/* --- what a sandbox is made of --- */

static void stop_io(struct loop_io *io)
{
    if (!io->loop)
        return;
    loop_io_stop(io);
    own_close(io->fd);
}

/* It lives on: only what we know of it goes. */
static void native_let_go(struct sbx *s)
{
    struct native *n = native_of(s);

    stop_io(&n->ready);
    err_free(native_log_watch(&n->base, false)); /* it cannot fail */
    list_del(&n->call.link);
    list_del(&n->slow.link);
    loop_timer_stop(&n->deadline);
    if (n->output)
        sbx_output_done(n->output);
    free(n->output);
    n->output = NULL; /* its log may be asked for until it is freed itself */
    free(take(&n->workspace));
    free(take(&n->mounts));
    free(take(&n->block));
    free(take(&n->image_name));
    if (n->out_pipe > 0)
        own_close(n->out_pipe);
    n->out_pipe = 0;
}

static void driver_release(struct native *n)
{
    native_drop_output(n);
    native_let_go(&n->base);
}

static fallible native_create(struct sbx_driver *driver, const struct sbx_spec *spec, struct sbx *s)
{
    struct native *n = native_of(s);

    (void)driver;
    list_init(&n->call.link);
    list_init(&n->slow.link);
    struct err *e = native_id_ok(s->id, NATIVE_ID_MAX)
                        ? native_set_new(n, spec)
                        : err_new(ERR_INVALID, "id '%.80s': not a dot or a dash first", s->id);
    if (e)
        driver_release(n);
    return e;
}

/* The launcher knows it, and whether it fits, when the sandbox is started. */
static fallible native_fork(struct sbx_driver *driver, struct str snapshot,
                            const struct sbx_spec *spec, struct sbx *s)
{
    struct native *n = native_of(s);

    TRY(native_set_snapshot(n->snapshot, snapshot));
    return native_create(driver, spec, s);
}

static fallible native_bind(struct sbx *s, const struct sbx_spec *spec)
{
    return native_set_new(native_of(s), spec);
}

/* --- running --- */

static void end_life(struct native *n)
{
    loop_timer_stop(&n->deadline);
    list_del(&n->slow.link); /* the next life's end is not told by it */
    stop_io(&n->ready);
    if (n->output)
        sbx_output_stop(n->output);
    n->pid = 0;
    n->base.binding = false;
}

static void note_ready(struct native *n)
{
    loop_timer_stop(&n->deadline);
    n->phase_ns[SBX_PHASE_READY] = clock_mono_ns(&clock_system) - n->answered_ns;
}

static void driver_finish(struct native *n)
{
    note_ready(n);
    sbx_finish(&n->base, NULL);
}

/* 'w': it waits for its claim; anything else: the server listens. */
static void on_ready(struct loop_io *io)
{
    struct native *n = container_of(io, struct native, ready);
    char byte;

    if (read(io->fd, &byte, 1) != 1) {
        stop_io(io); /* it died: the launcher tells */
        return;
    }
    if (byte != 'w') {
        stop_io(io);
        n->listens = true;
    }
    if (n->base.binding) {
        note_ready(n);
        sbx_listens(&n->base);
    } else if (n->base.op == SBX_START || n->bound)
        driver_finish(n);
}

static void start_deadline(struct native *n);

static bool is_awaited(const struct native *n)
{
    return n->base.op == SBX_START || n->base.op == SBX_CLAIM || n->base.binding;
}

/* It did not listen in time, so we killed it: told as an accident, unless it is being stopped or
 * has ended anyway. */
static void on_killed_slow(struct native_call *c, const struct native_reply *r, int *fds,
                           struct err *e)
{
    struct native *n = container_of(c, struct native, slow);
    struct sbx *s = &n->base;

    (void)r, (void)fds;
    bool lives = e && !s->driver->lost && err_code(e) != ERR_NOT_FOUND;
    err_free(e);
    if (s->op == SBX_STOP || s->op == SBX_REMOVE || s->state.now == SBX_STOPPED)
        return;
    if (lives) {
        if (is_awaited(n))
            start_deadline(n);
        return;
    }
    list_del(&n->call.link); /* that answer is of no use now */
    end_life(n);
    sbx_gone(s, "the server did not listen in time");
}

static void on_too_slow(struct loop_timer *t)
{
    struct native *n = container_of(t, struct native, deadline);
    struct native_request req = {.op = NATIVE_KILL};

    if (n->base.state.now == SBX_PAUSED) { /* its time stands still */
        start_deadline(n);
        return;
    }
    snprintf(req.id, sizeof req.id, "%s", n->base.id);
    own(err) e = native_call(native_driver_of(n), &n->slow, &req, NULL, 0, on_killed_slow);
    if (e && !n->base.driver->lost) /* without a launcher it is the next server's */
        start_deadline(n);
}

static void start_deadline(struct native *n)
{
    loop_timer_start(n->base.driver->host->loop, &n->deadline, START_MS, on_too_slow);
}

/* A sandbox that is being stopped is told of by the answer to that. */
void native_died(struct native_driver *d, const struct native_reply *r)
{
    struct str id = str_n(r->ids[0], strnlen(r->ids[0], NATIVE_ID_MAX));
    struct sbx *s = map_get(&d->base.by_id, id);

    if (!s)
        return;
    struct native *n = native_of(s);
    if (n->ready.loop && (s->op == SBX_START || s->op == SBX_CLAIM))
        on_ready(&n->ready); /* what ended so soon may have been ready before */
    if (s->op == SBX_STOP || s->op == SBX_REMOVE || s->state.now == SBX_STOPPED)
        return;
    const char *what = n->command ? "command" : "server";
    const char *oom = r->oom_kills ? "; its memory was used up" : "";
    char words[300];
    list_del(&n->call.link); /* that answer is of no use now */
    n->known = true;         /* also of a sandbox that ended before it was adopted: it left files */
    end_life(n);
    native_last_words(s, words, sizeof words);
    s->usage.oom_kills = r->oom_kills;
    if (r->flags & NATIVE_CODE_UNKNOWN)
        sbx_gone(s, "it ended, nobody knows how: who started it was gone by then");
    else if (r->signal)
        sbx_gone(s, "pid 1 was ended by signal %u%s", r->signal, oom);
    else
        sbx_gone(s, "the %s left with exit status %u%s%s", what, r->exit_code, oom, words);
}

static void note_start(struct native *n, const struct native_reply *r)
{
    uint64_t sum = 0;

    n->answered_ns = clock_mono_ns(&clock_system);
    for (unsigned i = 0; i < NATIVE_PHASES; i++) {
        n->phase_ns[SBX_PHASE_NAMESPACES + i] = r->phase_ns[i];
        sum += i ? r->phase_ns[i] : 0; /* a spare's namespaces were made before */
    }
    uint64_t all = n->answered_ns - n->base.begun_ns;
    n->phase_ns[SBX_PHASE_QUEUE] = all > sum ? all - sum : 0;
}

static void on_started(struct native *n, const struct native_reply *r, int *fds, struct err *e)
{
    struct loop *loop = n->base.driver->host->loop;

    if (!e) {
        n->pid = r->pid;
        n->disk = r->disk;
        n->known = true;
        n->snapshot[0] = '\0'; /* from now on it has files of its own */
        note_start(n, r);
        e = fd_set_nonblocking(fds[0]);
    }
    if (!e)
        e = loop_io_start(loop, &n->ready, fds[0], EPOLLIN, on_ready);
    if (!e) {
        take_fd(&fds[0]);
        start_deadline(n);
        return;
    }
    end_life(n);
    sbx_finish(&n->base, e);
}

static void on_adopted(struct native *n, const struct native_reply *r, int *fds, struct err *e)
{
    static const enum sbx_state states[] = {[NATIVE_RUNNING] = SBX_RUNNING,
                                            [NATIVE_PAUSED] = SBX_PAUSED,
                                            [NATIVE_EXITED] = SBX_STOPPED,
                                            [NATIVE_WAITING] = SBX_WARM};

    (void)fds;
    if (!e) {
        n->base.found = r->state < ARRAY_LEN(states) ? states[r->state] : SBX_STOPPED;
        n->pid = n->base.found == SBX_STOPPED ? 0 : r->pid;
        n->disk = r->disk;
        n->known = true;
        n->snapshot[0] = '\0'; /* it has files of its own */
        if (n->command)
            native_join_output(n);
    }
    sbx_finish(&n->base, e);
}

static fallible native_adopt(struct sbx *s)
{
    native_of(s)->has_output = true; /* it may have one, of the program before us */
    return ask_op(native_of(s), NATIVE_ADOPT, on_adopted);
}

/* The request with its block, and with a pipe for a command. */
static fallible ask_made(struct native *n, struct native_request *req,
                         void (*answered)(struct native *n, const struct native_reply *r, int *fds,
                                          struct err *e))
{
    own_fd block = -1, out = -1;
    int fds[2];
    size_t count = 0;

    native_fill(n, req);
    if (!(req->flags & NATIVE_WARM)) {
        TRY(native_make_block(n, req, &block));
        fds[count++] = block;
        if (n->command) {
            out = n->out_pipe ? n->out_pipe : -1;
            n->out_pipe = 0;
            if (out < 0)
                TRY(native_open_output(n, &out));
            fds[count++] = out;
            req->flags = (req->flags & ~(uint32_t)NATIVE_FILE_LOG) | NATIVE_FD_LOG;
        }
    }
    struct err *e = native_ask(n, req, fds, count, answered);
    if (e && n->output)
        sbx_output_stop(n->output);
    return e;
}

static fallible native_start(struct sbx *s)
{
    struct native *n = native_of(s);
    struct native_request req = {.op = NATIVE_START, .flags = FLAGS};

    req.flags |= s->warm ? NATIVE_WARM : n->command ? NATIVE_OWN_ARGS : 0;
    n->bound = n->listens = false;
    return ask_made(n, &req, on_started);
}

/* --- a claim --- */

static void on_claimed(struct native *n, const struct native_reply *r, int *fds, struct err *e)
{
    (void)fds;
    if (e) {
        if (!r || r->state != NATIVE_WAITING) {
            n->base.found = SBX_STOPPED;
            end_life(n);
        }
        sbx_finish(&n->base, e);
        return;
    }
    n->answered_ns = clock_mono_ns(&clock_system);
    memset(n->phase_ns, 0, sizeof n->phase_ns);
    n->phase_ns[SBX_PHASE_EXEC] = n->answered_ns - n->base.begun_ns;
    n->bound = true;
    if (n->listens) {
        driver_finish(n);
        return;
    }
    start_deadline(n);
    n->base.binding = !n->command; /* a command may be one that cannot be run */
    if (n->base.binding)
        sbx_finish(&n->base, NULL);
}

static fallible native_claim(struct sbx *s, const struct sbx_spec *spec)
{
    struct native *n = native_of(s);
    struct native_request req = {.op = NATIVE_CLAIM};

    n->bound = n->listens = false;
    TRY(native_set_spec(n, spec));
    if (spec->image_id)
        snprintf(req.image_name, sizeof req.image_name, "%s", spec->image_id);
    return ask_made(n, &req, on_claimed);
}

static void on_stopped(struct native *n, const struct native_reply *r, int *fds, struct err *e)
{
    (void)r, (void)fds;
    end_life(n);
    sbx_finish(&n->base, e);
}

static fallible native_stop(struct sbx *s)
{
    return ask_op(native_of(s), NATIVE_KILL, on_stopped);
}

void native_on_done(struct native *n, const struct native_reply *r, int *fds, struct err *e)
{
    (void)r, (void)fds;
    sbx_finish(&n->base, e);
}

static void on_measured(struct native *n, const struct native_reply *r, int *fds, struct err *e)
{
    (void)fds;
    if (!e)
        n->base.usage = (struct sbx_usage){.memory_bytes = r->usage.memory_bytes,
                                           .cpu_ns = r->usage.cpu_ns,
                                           .pids = r->usage.pids,
                                           .oom_kills = r->oom_kills};
    sbx_finish(&n->base, e);
}

static fallible native_measure(struct sbx *s)
{
    return ask_op(native_of(s), NATIVE_INSPECT, on_measured);
}

static fallible native_pause(struct sbx *s)
{
    return ask_op(native_of(s), NATIVE_PAUSE, native_on_done);
}

static fallible native_resume(struct sbx *s)
{
    return ask_op(native_of(s), NATIVE_RESUME, native_on_done);
}

static void on_removed(struct native *n, const struct native_reply *r, int *fds, struct err *e)
{
    (void)r, (void)fds;
    driver_release(n);
    sbx_finish(&n->base, e);
}

static fallible native_remove(struct sbx *s)
{
    struct native *n = native_of(s);
    struct err *e = n->known ? ask_op(n, NATIVE_REMOVE, on_removed) : NULL;

    if (n->known && !e)
        return NULL;
    driver_release(n); /* it never ran, or there is no launcher any more */
    sbx_finish(s, e);
    return NULL;
}

/* --- what it is --- */

static void native_inspect(struct sbx *s, struct sbx_info *info)
{
    const struct native *n = native_of(s);

    info->pid = n->pid;
    info->workspace = n->workspace;
    info->disk = n->disk ? native_disk_word(n->disk) : NULL;
    native_set_address(n, "s", &info->address);
    if (n->command)
        native_set_address(n, "c", &info->address);
    memcpy(info->phase_ns, n->phase_ns, sizeof info->phase_ns);
}

static fallible native_expose(struct sbx *s, uint16_t port, struct sbx_address *ret_address)
{
    native_set_address(native_of(s), "c", ret_address);
    ret_address->tunnel_port = port;
    return NULL;
}

SBX_BACKEND(native) = {
    .name = "native",
    .summary = "namespaces, control groups, seccomp and Landlock of this kernel",
    .needs = SBX_NEEDS_LAUNCHER,
    .caps = CAPS_MAX,
    .depends = SBX_CAN_PAUSE,
    .size = sizeof(struct native),
    .open = native_open,
    .close = native_close,
    .create = native_create,
    .let_go = native_let_go,
    .start = native_start,
    .stop = native_stop,
    .remove = native_remove,
    .inspect = native_inspect,
    .measure = native_measure,
    .pauses = &(const struct sbx_pause_calls){.pause = native_pause, .resume = native_resume},
    .claims = &(const struct sbx_claim_calls){.bind = native_bind, .claim = native_claim},
    .survivors = &(const struct sbx_survivor_calls){.adopt = native_adopt,
                                                    .list = native_list,
                                                    .sweep = native_sweep},
    .logs = &(const struct sbx_log_calls){.newest = native_logs,
                                          .read = native_log_read,
                                          .end = native_log_end,
                                          .watch = native_log_watch},
    .snapshots = &(const struct sbx_snapshot_calls){.make = native_snapshot,
                                                    .fork = native_fork,
                                                    .list = native_snapshot_list,
                                                    .remove = native_snapshot_remove},
    .images = &(const struct sbx_image_calls){.find = native_image_find,
                                              .import = native_image_import},
    .files = &(const struct sbx_file_calls){.diff = native_diff,
                                            .apply = native_apply,
                                            .rollback = native_rollback},
    .ports = &(const struct sbx_port_calls){.expose = native_expose},
};
