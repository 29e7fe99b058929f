// SPDX-License-Identifier: Apache-2.0
/* local.c — the guest as a plain process: no isolation at all, and it says so; see README.md. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "net/listen.h"
#include "sandbox/environment.h"
#include "sandbox/follow.h"
#include "sandbox/output.h"
#include "sandbox/sandbox.h"

#define STOP_MS      5000
#define START_MS     30000
#define EXIT_NO_EXEC 127
#define URL          "http://localhost"

static const char *const start_args[] = {"croft-guest", "init",        "--ready-fd",
                                         "3",           "--listen-fd", "4"};

struct local_driver {
    struct sbx_driver base;
    int dir; /* state_dir/local */
    char *path;
};

struct local {
    struct sbx base;
    int dir;         /* state_dir/local/ID: the socket, and the workspace if it is ours */
    char *workspace; /* absolute */
    struct buf env;  /* "A=b\0C=d\0" */
    struct buf args; /* of pid 1, from its own options on */
    bool command;    /* instead of our server */
    char socket[sizeof((struct sbx_address *)0)->unix_path];
    pid_t pid; /* 0: none */
    struct loop_child child;
    struct loop_io ready;
    struct sbx_output output;
    struct loop_timer deadline;
};

static struct local *local_of(struct sbx *s)
{
    return container_of(s, struct local, base);
}

static struct local_driver *driver_of(struct sbx_driver *d)
{
    return container_of(d, struct local_driver, base);
}

/* --- the driver --- */

static void local_close(struct sbx_driver *driver)
{
    struct local_driver *d = driver_of(driver);

    own_close(d->dir);
    free(d->path);
    free(d);
}

static fallible local_open(const struct sbx_host *host, struct sbx_driver **ret_driver)
{
    own_fd state = open(host->state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (state < 0)
        return err_sys("open '%s'", host->state_dir);
    own_fd dir = -1;
    TRY(fd_make_dirs(state, STR("local"), 0700, &dir));
    struct local_driver *d = mem_new(sizeof *d);
    d->base.caps = SBX_CAN_MOUNT | SBX_IS_HERE;
    d->dir = take_fd(&dir);
    if (asprintf(&d->path, "%s/local", host->state_dir) < 0)
        abort();
    *ret_driver = &d->base;
    return NULL;
}

/* --- what a sandbox is made of --- */

static fallible set_environment(struct local *l, const struct sbx_spec *spec)
{
    static const char *const kept[] = {"PATH", "HOME",   "USER", "LOGNAME", "LANG",
                                       "TERM", "LC_ALL", "TZ",   "TMPDIR",  NULL};

    return environment_make(&l->env, l->base.driver->host, kept, spec);
}

static fallible set_workspace(struct local *l, const char *given)
{
    struct local_driver *d = driver_of(l->base.driver);
    struct stat st;
    char *path;

    if (given && (given[0] != '/' || stat(given, &st) < 0 || !S_ISDIR(st.st_mode)))
        return err_new(ERR_INVALID, "workspace '%.200s': an absolute path of a directory is wanted",
                       given);
    if (!given && mkdirat(l->dir, "workspace", 0700) < 0 && errno != EEXIST)
        return err_sys("make a workspace");
    if (given)
        path = mem_dup_cstr(given);
    else if (asprintf(&path, "%s/%s/workspace", d->path, l->base.id) < 0)
        return err_no_memory();
    free(l->workspace);
    l->workspace = path;
    return NULL;
}

static fallible set_address(struct local *l)
{
    struct local_driver *d = driver_of(l->base.driver);
    int n = snprintf(l->socket, sizeof l->socket, "%s/%s/sock", d->path, l->base.id);

    if (n < 0 || (size_t)n >= sizeof l->socket)
        return err_new(ERR_INVALID, "the state directory's path is too long for a socket below it");
    return NULL;
}

static void local_put(struct buf *b, const char *text)
{
    buf_add_mem(b, text, strlen(text) + 1);
}

static bool has_option(const char *const *argv, const char *name)
{
    for (; *argv; argv++)
        if (strcmp(*argv, name) == 0)
            return true;
    return false;
}

/* Our server, with the line of a client or without; or a command as it is. */
static fallible set_arguments(struct local *l, const struct sbx_spec *spec)
{
    static const char *const ours[] = {"action-server", NULL};
    const char *const *argv = spec->command ? spec->command : ours;
    const char *dir = spec->working_dir ? spec->working_dir : l->workspace;
    bool command = spec->face == SBX_FACE_COMMAND;

    if (!argv[0] || (command && !spec->command))
        return err_new(ERR_INVALID, "command: it is empty; name a program to run");
    if (dir[0] != '/')
        return err_new(ERR_INVALID, "working_dir '%.200s' must be an absolute path", dir);
    buf_reset(&l->args);
    l->command = command;
    if (command) {
        local_put(&l->args, "--exec");
        local_put(&l->args, "--cwd");
        local_put(&l->args, dir);
    }
    local_put(&l->args, "--");
    for (const char *const *a = argv; *a; a++)
        local_put(&l->args, *a);
    if (!command && !has_option(argv, "--working-dir")) {
        local_put(&l->args, "--working-dir");
        local_put(&l->args, dir);
    }
    TRY_WRAP(buf_check(&l->args), "command");
    if (environment_count(&l->args) + ARRAY_LEN(start_args) > ENVIRONMENT_MAX)
        return err_new(ERR_LIMIT, "command: too many arguments");
    return NULL;
}

static void stop_io(struct loop_io *io)
{
    if (!io->loop)
        return;
    loop_io_stop(io);
    own_close(io->fd);
}

static void end_all(struct local *l)
{
    if (l->pid <= 0)
        return;
    kill(-l->pid, SIGKILL);
    kill(l->pid, SIGKILL); /* its group may not be there yet */
}

/* It is a process of ours and ends with us; its files stay. */
static void local_let_go(struct sbx *s)
{
    struct local *l = local_of(s);

    end_all(l);
    if (l->pid) {
        loop_child_stop(&l->child);
        waitpid(l->pid, NULL, 0);
    }
    l->pid = 0;
    loop_timer_stop(&l->deadline);
    stop_io(&l->ready);
    if (l->dir >= 0)
        own_close(take_fd(&l->dir));
    free(take(&l->workspace));
    buf_done(&l->env);
    buf_done(&l->args);
    sbx_output_done(&l->output);
}

static void local_release(struct sbx *s)
{
    bool made = local_of(s)->dir >= 0;

    local_let_go(s);
    if (made) /* a guest's own mess may resist */
        err_free(s->driver->host->remove_tree(driver_of(s->driver)->dir, s->id));
}

static fallible set_up(struct local *l, const struct sbx_spec *spec)
{
    struct local_driver *d = driver_of(l->base.driver);

    if (mkdirat(d->dir, l->base.id, 0700) < 0)
        return errno == EEXIST
                   ? err_new(ERR_CONFLICT, "there is a sandbox '%s' already", l->base.id)
                   : err_sys("make a directory for '%s'", l->base.id);
    l->dir = openat(d->dir, l->base.id, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (l->dir < 0)
        return err_sys("open the directory of '%s'", l->base.id);
    TRY(set_address(l));
    TRY(set_environment(l, spec));
    TRY(set_workspace(l, spec->workspace));
    return set_arguments(l, spec);
}

static fallible check_spec(const struct sbx_spec *spec)
{
    const char *lacks = spec->hostname      ? "hostname: a name of its own"
                        : spec->mount_count ? "mounts: mounts of its own"
                                            : NULL;

    if (lacks)
        return err_new(ERR_UNSUPPORTED, "%s is not to be had from backend 'local'; choose 'native'",
                       lacks);
    if (spec->image && strcmp(spec->image, "host") != 0)
        return err_new(ERR_UNSUPPORTED,
                       "image '%.200s': backend 'local' has no root file system of "
                       "its own; leave it out or choose 'native'",
                       spec->image);
    return NULL;
}

static fallible local_create(struct sbx_driver *driver, const struct sbx_spec *spec, struct sbx *s)
{
    struct local *l = local_of(s);

    (void)driver;
    TRY(check_spec(spec));
    l->dir = -1;
    buf_init(&l->env, ENVIRONMENT_BYTES);
    buf_init(&l->args, ENVIRONMENT_BYTES);
    sbx_output_init(&l->output);
    struct err *e = set_up(l, spec);
    if (e)
        local_release(s);
    return e;
}

static fallible local_remove(struct sbx *s)
{
    local_release(s);
    sbx_finish(s, NULL);
    return NULL;
}

static fallible local_bind(struct sbx *s, const struct sbx_spec *spec)
{
    struct local *l = local_of(s);

    TRY(check_spec(spec));
    TRY(set_environment(l, spec));
    TRY(set_workspace(l, spec->workspace));
    return set_arguments(l, spec);
}

/* --- running --- */

static void on_ready(struct loop_io *io)
{
    struct local *l = container_of(io, struct local, ready);
    char byte;
    ssize_t n = read(io->fd, &byte, 1);

    if (n < 0 && errno == EAGAIN)
        return;
    stop_io(io);
    if (n != 1)
        return; /* it died: on_child tells the story */
    loop_timer_stop(&l->deadline);
    sbx_finish(&l->base, NULL);
}

static void on_too_slow(struct loop_timer *t)
{
    end_all(container_of(t, struct local, deadline));
}

static void on_child(struct loop_child *c)
{
    struct local *l = container_of(c, struct local, child);
    const char *what = l->command ? "command" : "server";

    kill(-l->pid, SIGKILL); /* what is left of its group */
    l->pid = 0;
    loop_timer_stop(&l->deadline);
    stop_io(&l->ready);
    sbx_output_stop(&l->output);
    unlinkat(l->dir, "sock", 0);
    if (l->base.op == SBX_STOP)
        sbx_finish(&l->base, NULL);
    else if (c->code == CLD_EXITED)
        sbx_gone(&l->base, "the %s left with exit status %d", what, c->status);
    else
        sbx_gone(&l->base, "the %s was ended by signal %d", what, c->status);
}

/* fds become 1, 2, 3 and 4. */
static _Noreturn void local_become(const struct local *l, const char *const *argv, char *const *env,
                                   int guest, const int fds[4])
{
    sigset_t none;
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (nothing < 0 || dup2(nothing, 0) < 0 || chdir(l->workspace) < 0)
        _exit(EXIT_NO_EXEC);
    for (int i = 0; i < 4; i++)
        if (dup2(fds[i], i + 1) < 0)
            _exit(EXIT_NO_EXEC);
    syscall(SYS_execveat, guest, "", argv, env, AT_EMPTY_PATH);
    _exit(EXIT_NO_EXEC);
}

static void list_strings(const struct buf *b, char **list)
{
    for (size_t at = 0; at < b->len; at += strlen(b->p + at) + 1)
        *list++ = b->p + at;
    *list = NULL;
}

static fallible local_watch(struct local *l, int *ready, int *out)
{
    struct loop *loop = l->base.driver->host->loop;

    TRY(loop_io_start(loop, &l->ready, *ready, EPOLLIN, on_ready));
    take_fd(ready);
    TRY(sbx_output_start(&l->output, loop, take_fd(out)));
    return loop_child_start(loop, &l->child, l->pid, -1, on_child);
}

/* Kills a process whose end could not be reported. */
static void give_up(struct local *l)
{
    kill(l->pid, SIGKILL);
    waitpid(l->pid, NULL, 0);
    l->pid = 0;
    stop_io(&l->ready);
    sbx_output_stop(&l->output);
}

static fallible listen_at(struct local *l, int *ret_fd)
{
    char address[sizeof l->socket + 8];

    unlinkat(l->dir, "sock", 0); /* of a life that ended badly */
    snprintf(address, sizeof address, "unix:%s", l->socket);
    return listen_open(str_of(address), ret_fd);
}

static fallible local_start(struct sbx *s)
{
    struct local *l = local_of(s);
    int ready[2], out[2];
    own_fd inbound = -1;
    TRY(listen_at(l, &inbound));
    own_free char **env = mem_new((ENVIRONMENT_MAX + 1) * sizeof *env);
    list_strings(&l->env, env);
    own_free char **argv = mem_new((ENVIRONMENT_MAX + 1) * sizeof *argv);
    memcpy(argv, start_args, sizeof start_args);
    list_strings(&l->args, argv + ARRAY_LEN(start_args));
    if (pipe2(ready, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_sys("pipe");
    own_fd ready_in = ready[0], ready_out = ready[1];
    if (pipe2(out, O_CLOEXEC) < 0)
        return err_sys("pipe");
    own_fd out_in = out[0], out_out = out[1];
    /* away from the numbers it will have in the child, where dup2 onto itself keeps O_CLOEXEC */
    own_fd ready_high = fcntl(ready_out, F_DUPFD_CLOEXEC, 10);
    own_fd out_high = fcntl(out_out, F_DUPFD_CLOEXEC, 10);
    own_fd inbound_high = fcntl(inbound, F_DUPFD_CLOEXEC, 10);
    own_fd guest = fcntl(s->driver->host->guest_fd, F_DUPFD_CLOEXEC, 10);
    if (ready_high < 0 || out_high < 0 || inbound_high < 0 || guest < 0)
        return err_sys("duplicate a descriptor");
    pid_t pid = fork();
    if (pid < 0)
        return err_sys("fork");
    if (pid == 0)
        local_become(l, (const char *const *)argv, env, guest,
                     (const int[]){out_high, out_high, ready_high, inbound_high});
    l->pid = pid;
    struct err *e = local_watch(l, &ready_in, &out_in);
    if (e) {
        give_up(l);
        return e;
    }
    loop_timer_start(s->driver->host->loop, &l->deadline, START_MS, on_too_slow);
    return NULL;
}

static fallible local_stop(struct sbx *s)
{
    struct local *l = local_of(s);

    if (l->pid == 0) {
        sbx_finish(s, NULL);
        return NULL;
    }
    kill(l->pid, SIGTERM);
    loop_timer_start(s->driver->host->loop, &l->deadline, STOP_MS, on_too_slow);
    return NULL;
}

/* --- what it is --- */

static void local_inspect(struct sbx *s, struct sbx_info *info)
{
    const struct local *l = local_of(s);

    info->pid = l->pid;
    info->workspace = l->workspace;
    snprintf(info->address.unix_path, sizeof info->address.unix_path, "%s", l->socket);
    snprintf(info->address.url, sizeof info->address.url, "%s", URL);
}

static void local_logs(struct sbx *s, struct buf *out)
{
    sbx_output_copy(&local_of(s)->output, out);
}

static size_t local_log_read(struct sbx *s, struct sbx_place *at, struct buf *out)
{
    at->file = 0;
    sbx_output_read(&local_of(s)->output, &at->output, out);
    return 0;
}

static void local_log_end(struct sbx *s, struct sbx_place *ret_end)
{
    *ret_end = (struct sbx_place){.output = local_of(s)->output.total};
}

static void on_output(struct sbx_output *o)
{
    sbx_log_grew(&container_of(o, struct local, output)->base);
}

static fallible local_log_watch(struct sbx *s, bool on)
{
    local_of(s)->output.on_more = on ? on_output : NULL;
    return NULL;
}

static fallible local_expose(struct sbx *s, uint16_t port, struct sbx_address *ret_address)
{
    (void)s;
    *ret_address = (struct sbx_address){0};
    snprintf(ret_address->url, sizeof ret_address->url, "http://127.0.0.1:%u", (unsigned)port);
    return NULL;
}

SBX_BACKEND(local) = {
    .name = "local",
    .summary = "a plain process of this machine, in a directory of its own",
    .warning = "no isolation: commands run as you, on your files, with your network",
    .needs = SBX_NEEDS_GUEST,
    .caps = SBX_CAN_MOUNT | SBX_IS_HERE,
    .size = sizeof(struct local),
    .open = local_open,
    .close = local_close,
    .create = local_create,
    .let_go = local_let_go,
    .start = local_start,
    .stop = local_stop,
    .remove = local_remove,
    .inspect = local_inspect,
    .claims = &(const struct sbx_claim_calls){.bind = local_bind},
    .logs = &(const struct sbx_log_calls){.newest = local_logs,
                                          .read = local_log_read,
                                          .end = local_log_end,
                                          .watch = local_log_watch},
    .ports = &(const struct sbx_port_calls){.expose = local_expose},
};
