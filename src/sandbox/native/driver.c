// SPDX-License-Identifier: Apache-2.0
/* driver.c — native sandboxes as a backend: asks the launcher, which alone has privilege. A
 * sandbox's control connection ends when the sandbox does. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/list.h"
#include "base/mem.h"
#include "sandbox/environment.h"
#include "sandbox/native/inner.h"
#include "sandbox/said.h"
#include "sandbox/sandbox.h"

#define WORKSPACE "/workspace"
#define URL       "http://localhost"
#define START_MS  60000 /* a machine on its knees */
#define CAPS_MAX                                                                                   \
    (SBX_CAN_PAUSE | SBX_CAN_SNAPSHOT | SBX_CAN_EXPOSE | SBX_CAN_BIND | SBX_CAN_LOG |              \
     SBX_LIMITS_MEMORY | SBX_LIMITS_PIDS | SBX_LIMITS_CPU | SBX_LIMITS_DISK | SBX_HIDES_FILES |    \
     SBX_HIDES_PROCESSES | SBX_HIDES_NETWORK | SBX_CAN_ADOPT | SBX_CAN_MOUNT)
#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static const char *const server_args[] = {"action-server", "--working-dir", WORKSPACE};

struct native {
    struct sbx base;
    struct native_request req; /* of the start */
    struct buf env;
    char *workspace; /* on the host; NULL: none */
    struct said said;
    struct loop_io ready, control;
    struct loop_timer deadline;
    pid_t pid;
    uint32_t disk; /* enum native_disk, as the launcher says */
    bool known;    /* to the launcher */

    struct native_call call; /* one at a time */
    void (*answered)(struct native *n, const struct native_reply *r, int *fds, struct err *e);
};

static struct native *native_of(struct sbx *s)
{
    return container_of(s, struct native, base);
}

static struct native_driver *driver_of(const struct native *n)
{
    return container_of(n->base.driver, struct native_driver, base);
}

static void on_answered(struct native_call *c, const struct native_reply *r, int *fds,
                        struct err *e)
{
    struct native *n = container_of(c, struct native, call);

    n->answered(n, r, fds, e);
}

static fallible ask(struct native *n, struct native_request *req, const int *fds, size_t count,
                    void (*answered)(struct native *n, const struct native_reply *r, int *fds,
                                     struct err *e))
{
    snprintf(req->id, sizeof req->id, "%s", n->base.id);
    n->answered = answered;
    return native_call(driver_of(n), &n->call, req, fds, count, on_answered);
}

static fallible ask_op(struct native *n, enum native_op op,
                       void (*answered)(struct native *n, const struct native_reply *r, int *fds,
                                        struct err *e))
{
    struct native_request req = {.op = op};

    return ask(n, &req, NULL, 0, answered);
}

/* --- the driver --- */

static fallible native_open(const struct sbx_host *host, struct sbx_driver **ret_driver)
{
    if (host->launcher < 0)
        return err_new(ERR_UNSUPPORTED, "there is no launcher to ask");
    struct native_driver *d = mem_new(sizeof *d);
    d->base.caps = host->native_caps & CAPS_MAX;
    struct err *e = native_calls_start(d, host->loop, host->launcher);
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
    free(d);
}

/* --- what a sandbox is made of --- */

static bool is_below(const char *path, const char *root, const char **ret_rest)
{
    size_t n = strlen(root);

    while (n > 1 && root[n - 1] == '/')
        n--;
    if (strncmp(path, root, n) != 0 || (path[n] && path[n] != '/' && n > 1))
        return false;
    path += n;
    while (*path == '/')
        path++;
    *ret_rest = *path ? path : ".";
    return true;
}

/* The launcher holds the roots; a path outside them has no name it would understand. */
static fallible set_workspace(struct native *n, const char *path)
{
    const char *const *roots = n->base.driver->host->roots;
    struct native_mount *m = &n->req.mounts[0];
    const char *rest;

    *m = (struct native_mount){.mode = 0};
    free(n->workspace);
    n->workspace = path ? mem_dup_cstr(path) : NULL;
    if (!path)
        return NULL;
    for (uint32_t i = 0; roots && roots[i]; i++) {
        if (!is_below(path, roots[i], &rest))
            continue;
        if (strlen(rest) >= sizeof m->path)
            return err_new(ERR_INVALID, "workspace '%.300s': the path is too long", path);
        *m = (struct native_mount){.mode = NATIVE_RW, .root = i};
        snprintf(m->path, sizeof m->path, "%s", rest);
        snprintf(m->target, sizeof m->target, WORKSPACE);
        return NULL;
    }
    return err_new(ERR_FORBIDDEN,
                   "workspace '%.300s' is below none of the directories sandboxes may use", path);
}

static fallible set_spec(struct native *n, const struct sbx_spec *spec)
{
    static const char *const kept[] = {"LANG", "LC_ALL", "TERM", "TZ", NULL};
    const struct sbx_limits *l = &spec->limits;

    if (spec->image)
        return err_new(ERR_NOT_FOUND, "image '%.200s' is not known; 'croft image ls' lists them",
                       spec->image);
    n->req.limits = (struct native_limits){.memory_bytes = l->memory_bytes,
                                           .disk_bytes = l->disk_bytes,
                                           .pids = l->pids,
                                           .cpu_milli = l->cpu_permille,
                                           .nofile = l->open_files};
    TRY(environment_make(&n->env, n->base.driver->host, kept, spec));
    return set_workspace(n, spec->workspace);
}

static void release(struct native *n)
{
    list_del(&n->call.link);
    loop_timer_stop(&n->deadline);
    free(n->workspace);
    buf_done(&n->env);
    said_done(&n->said);
}

static fallible set_snapshot(struct native_request *req, struct str name)
{
    if (name.len >= sizeof req->snapshot)
        return err_new(ERR_INVALID, "a snapshot's name has at most %zu characters",
                       sizeof req->snapshot - 1);
    memcpy(req->snapshot, name.p, name.len);
    req->snapshot[name.len] = '\0';
    if (strlen(req->snapshot) != name.len || !native_id_ok(req->snapshot, sizeof req->snapshot))
        return err_new(ERR_INVALID,
                       "'%.80s' is no name for a snapshot: letters, digits, '-', '_', "
                       "'.', the first a letter or digit",
                       req->snapshot);
    return NULL;
}

static fallible native_create(struct sbx_driver *driver, const struct sbx_spec *spec, struct sbx *s)
{
    struct native *n = native_of(s);

    (void)driver;
    list_init(&n->call.link);
    buf_init(&n->env, ENVIRONMENT_BYTES);
    said_init(&n->said);
    n->req.op = NATIVE_START;
    n->req.flags = NATIVE_FD_LOG;
    n->req.argc = ARRAY_LEN(server_args);
    snprintf(n->req.hostname, sizeof n->req.hostname, "%s", s->id);
    struct err *e = native_id_ok(s->id, NATIVE_ID_MAX)
                        ? set_spec(n, spec)
                        : err_new(ERR_INVALID, "id '%.80s': not a dot or a dash first", s->id);
    if (e)
        release(n);
    return e;
}

/* The launcher knows it, and whether it fits, when the sandbox is started. */
static fallible native_fork(struct sbx_driver *driver, struct str snapshot,
                            const struct sbx_spec *spec, struct sbx *s)
{
    struct native *n = native_of(s);

    TRY(set_snapshot(&n->req, snapshot));
    return native_create(driver, spec, s);
}

static fallible native_bind(struct sbx *s, const struct sbx_spec *spec)
{
    return set_spec(native_of(s), spec);
}

/* --- running --- */

static void stop_io(struct loop_io *io)
{
    if (!io->loop)
        return;
    loop_io_stop(io);
    own_close(io->fd);
}

static void end_life(struct native *n)
{
    loop_timer_stop(&n->deadline);
    stop_io(&n->ready);
    stop_io(&n->control);
    said_stop(&n->said);
    n->pid = 0;
}

static void on_ready(struct loop_io *io)
{
    struct native *n = container_of(io, struct native, ready);
    char byte;

    if (read(io->fd, &byte, 1) != 1) {
        stop_io(io); /* it died: its control connection tells */
        return;
    }
    stop_io(io);
    loop_timer_stop(&n->deadline);
    sbx_finish(&n->base, NULL);
}

/* It said nothing for so long; a stop by us that looks like an accident, and is told as one. */
static void on_killed_slow(struct native *n, const struct native_reply *r, int *fds, struct err *e)
{
    (void)r, (void)fds;
    err_free(e);
    end_life(n);
    sbx_gone(&n->base, "the server did not listen in time");
}

static void on_too_slow(struct loop_timer *t)
{
    struct native *n = container_of(t, struct native, deadline);

    stop_io(&n->control);
    err_free(ask_op(n, NATIVE_KILL, on_killed_slow)); /* without a launcher nothing runs */
}

static void on_inspected(struct native *n, const struct native_reply *r, int *fds, struct err *e)
{
    (void)fds;
    end_life(n);
    if (e)
        sbx_gone(&n->base, "%s", err_text(e));
    else if (r->flags & NATIVE_CODE_UNKNOWN)
        sbx_gone(&n->base, "it ended, nobody knows how: who started it was gone by then");
    else if (r->signal)
        sbx_gone(&n->base, "pid 1 was ended by signal %u", r->signal);
    else
        sbx_gone(&n->base, "the server left with exit status %u", r->exit_code);
    err_free(e);
}

/* EOF, or of an adopted one a pidfd that is readable: dead. A sandbox that is being stopped is told
 * of by the answer to that. */
static void on_control(struct loop_io *io)
{
    struct native *n = container_of(io, struct native, control);
    char bytes[64];
    ssize_t got = read(io->fd, bytes, sizeof bytes);

    if (got > 0 || (got < 0 && errno == EAGAIN))
        return;
    stop_io(io);
    if (n->base.op == SBX_STOP || !list_empty(&n->call.link))
        return;
    struct err *e = ask_op(n, NATIVE_KILL, on_inspected); /* and wait until it is reaped */
    if (e)
        on_inspected(n, NULL, NULL, e);
}

static void on_started(struct native *n, const struct native_reply *r, int *fds, struct err *e)
{
    struct loop *loop = n->base.driver->host->loop;

    if (!e) {
        n->pid = r->pid;
        n->disk = r->disk;
        n->known = true;
        n->req.snapshot[0] = '\0'; /* from now on it has files of its own */
        e = fd_set_nonblocking(fds[0]);
    }
    if (!e)
        e = loop_io_start(loop, &n->ready, fds[0], EPOLLIN, on_ready);
    if (!e)
        take_fd(&fds[0]);
    if (!e)
        e = loop_io_start(loop, &n->control, fds[1], EPOLLIN, on_control);
    if (!e) {
        take_fd(&fds[1]);
        loop_timer_start(loop, &n->deadline, START_MS, on_too_slow);
        return;
    }
    end_life(n);
    sbx_finish(&n->base, e);
}

static void on_adopted(struct native *n, const struct native_reply *r, int *fds, struct err *e)
{
    if (!e && r->state != NATIVE_EXITED)
        e = loop_io_start(n->base.driver->host->loop, &n->control, fds[0], EPOLLIN, on_control);
    if (!e) {
        bool alive = r->state != NATIVE_EXITED;
        if (alive)
            take_fd(&fds[0]);
        n->pid = alive ? r->pid : 0;
        n->disk = r->disk;
        n->known = true;
        n->base.found = !alive ? SBX_STOPPED : r->state == NATIVE_PAUSED ? SBX_PAUSED : SBX_RUNNING;
    }
    sbx_finish(&n->base, e);
}

static fallible native_adopt(struct sbx *s)
{
    return ask_op(native_of(s), NATIVE_ADOPT, on_adopted);
}

/* Arguments and environment, sealed: the launcher passes them on unread. */
static fallible make_block(const struct native *n, int *ret_fd)
{
    own_fd fd = memfd_create("block", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return err_sys("make a memory file");
    for (size_t i = 0; i < ARRAY_LEN(server_args); i++)
        TRY(fd_write_all(fd, str_n(server_args[i], strlen(server_args[i]) + 1)));
    TRY(fd_write_all(fd, buf_str(&n->env)));
    if (fcntl(fd, F_ADD_SEALS, SEALS) < 0)
        return err_sys("seal a memory file");
    *ret_fd = take_fd(&fd);
    return NULL;
}

static fallible native_start(struct sbx *s)
{
    struct native *n = native_of(s);
    own_fd block = -1;
    int ends[2];

    TRY(make_block(n, &block));
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys("pipe");
    own_fd write_end = ends[1];
    TRY(said_start(&n->said, s->driver->host->loop, ends[0]));
    n->req.envc = environment_count(&n->env);
    return ask(n, &n->req, (const int[]){block, write_end}, 2, on_started);
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

static void on_done(struct native *n, const struct native_reply *r, int *fds, struct err *e)
{
    (void)r, (void)fds;
    sbx_finish(&n->base, e);
}

static fallible native_pause(struct sbx *s)
{
    return ask_op(native_of(s), NATIVE_PAUSE, on_done);
}

static fallible native_resume(struct sbx *s)
{
    return ask_op(native_of(s), NATIVE_RESUME, on_done);
}

static fallible native_snapshot(struct sbx *s, struct str name)
{
    struct native *n = native_of(s);
    struct native_request req = {.op = NATIVE_SNAPSHOT};

    if (!n->known)
        return err_new(ERR_CONFLICT, "sandbox '%s' has no files before its first start", s->id);
    TRY(set_snapshot(&req, name));
    return ask(n, &req, NULL, 0, on_done);
}

static void on_removed(struct native *n, const struct native_reply *r, int *fds, struct err *e)
{
    (void)r, (void)fds;
    release(n);
    sbx_finish(&n->base, e);
}

static fallible native_remove(struct sbx *s)
{
    struct native *n = native_of(s);
    struct err *e = n->known ? ask_op(n, NATIVE_REMOVE, on_removed) : NULL;

    if (n->known && !e)
        return NULL;
    release(n); /* it never ran, or there is nobody left who could help */
    sbx_finish(s, e);
    return NULL;
}

/* --- questions --- */

static void set_address(const struct native *n, const char *name, struct sbx_address *ret)
{
    *ret = (struct sbx_address){.url = URL};
    const struct sbx_host *host = n->base.driver->host;
    snprintf(ret->unix_path, sizeof ret->unix_path, "%s%s/%s.%s",
             host->sockets ? host->sockets : host->state_dir, host->sockets ? "" : "/run",
             n->base.id, name);
}

static void native_inspect(struct sbx *s, struct sbx_info *info)
{
    const struct native *n = native_of(s);

    info->pid = n->pid;
    info->workspace = n->workspace;
    info->disk = n->disk ? native_disk_word(n->disk) : NULL;
    set_address(n, "s", &info->address);
}

static void native_logs(struct sbx *s, struct buf *out)
{
    said_copy(&native_of(s)->said, out);
}

static fallible native_expose(struct sbx *s, uint16_t port, struct sbx_address *ret_address)
{
    set_address(native_of(s), "c", ret_address);
    ret_address->tunnel_port = port;
    return NULL;
}

SBX_BACKEND(native) = {
    .name = "native",
    .summary = "namespaces, control groups, seccomp and Landlock of this kernel",
    .caps = CAPS_MAX,
    .size = sizeof(struct native),
    .open = native_open,
    .close = native_close,
    .create = native_create,
    .start = native_start,
    .stop = native_stop,
    .pause = native_pause,
    .resume = native_resume,
    .adopt = native_adopt,
    .snapshot = native_snapshot,
    .snapshot_list = native_snapshot_list,
    .snapshot_remove = native_snapshot_remove,
    .fork = native_fork,
    .remove = native_remove,
    .inspect = native_inspect,
    .logs = native_logs,
    .expose = native_expose,
    .bind = native_bind,
};
