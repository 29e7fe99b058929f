// SPDX-License-Identifier: Apache-2.0
/* init.c — the life of pid 1: one job (the server, or one command), everything else is reaped. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "guest/account/account.h"
#include "guest/exec/exec.h"
#include "guest/init/inner.h"
#include "guest/proc/env.h"

#define SERVER_STOP_MS  15000 /* it ends its shells first */
#define SERVER_START_MS 60000 /* a client that connected waits for it so long at most */
#define RESTART_MS      25    /* doubled with each death in a row */
#define FORKER_AGAIN_MS 200
#define SERVER_ARGS_MAX 256
#define EXIT_GAVE_UP    1
#define SLICE_NS        100000
#define SWEEPS_MAX      100 /* they may fork meanwhile */

static fallible start_server(struct init *in);
static void init_restart(struct init *in, int code);
static void on_kill_time(struct loop_timer *t);

/* --- the end of the job --- */

static void init_finish(struct init *in, int exit_code)
{
    in->exit_code = exit_code;
    loop_stop(in->loop);
}

static void on_restart(struct loop_timer *t)
{
    struct init *in = container_of(t, struct init, restart);
    struct err *e;

    loop_timer_stop(t);
    e = start_server(in);
    if (!e)
        return;
    log_error("the server cannot be started", KV_ERR(e));
    err_free(e);
    init_restart(in, EXIT_GAVE_UP);
}

/* The host believes that a server listens: only we end one that never does. */
static void server_wanted(struct init *in)
{
    loop_io_stop(&in->inbound);
    loop_io_stop(&in->viewer);
    loop_timer_start(in->loop, &in->kill, SERVER_START_MS, on_kill_time);
    on_restart(&in->restart);
}

static void on_inbound(struct loop_io *io)
{
    server_wanted(container_of(io, struct init, inbound));
}

static void on_viewer(struct loop_io *io)
{
    server_wanted(container_of(io, struct init, viewer));
}

/* The next connection makes a server: to its own socket, or to that of the file viewer. */
static void await_client(struct init *in)
{
    int viewer = init_find_socket(in, STR(HELD_VIEWER));
    struct err *e =
        loop_io_start(in->loop, &in->inbound, in->config->listen_fd, EPOLLIN, on_inbound);

    if (!e && viewer >= 0)
        e = loop_io_start(in->loop, &in->viewer, viewer, EPOLLIN, on_viewer);
    if (e)
        server_wanted(in);
    err_free(e);
}

fallible init_begin(struct init *in)
{
    const struct init_config *c = in->config;

    if (c->listen_fd < 0 || (!c->program && !exec_may_wait(c->argv, c->env)))
        return start_server(in);
    own_fd ready = take_fd(&in->config->ready_fd);
    if (ready >= 0 && write(ready, "1", 1) != 1 && errno != EPIPE)
        return err_sys("tell that the sandbox listens");
    await_client(in);
    init_settle(in);
    return NULL;
}

/* At once the first time; slower with each death that follows, and then not at all. */
static void init_restart(struct init *in, int code)
{
    uint64_t now = loop_now_ns(in->loop), window = INIT_DEATHS_MS * NS_PER_MS;

    while (in->deaths_len && now - in->deaths[0] > window)
        memmove(in->deaths, in->deaths + 1, --in->deaths_len * sizeof in->deaths[0]);
    in->deaths[in->deaths_len++] = now;
    if (in->deaths_len == INIT_DEATHS_MAX) {
        log_error("the server dies too often: giving up", KV("deaths", INIT_DEATHS_MAX),
                  KV("within_s", INIT_DEATHS_MS / 1000), KV("last_status", code));
        init_finish(in, EXIT_GAVE_UP);
        return;
    }
    log_warn("the server died and is started again", KV("status", code),
             KV("deaths", (unsigned)in->deaths_len));
    uint64_t wait_ms = in->deaths_len == 1 ? 0 : (uint64_t)RESTART_MS << in->deaths_len;
    loop_timer_start(in->loop, &in->restart, wait_ms, on_restart);
}

static void forker_stop(struct init *in)
{
    if (in->forker > 0) {
        kill(in->forker, SIGKILL);
        spawn_reap(in->forker);
    }
    in->forker = 0;
    loop_io_stop(&in->wanted);
    loop_timer_stop(&in->forker_again);
    for (size_t i = 0; i < 2; i++) {
        own_close(take_fd(&in->requests[i]));
        own_close(take_fd(&in->births[i]));
    }
}

static void on_job_end(struct init *in, const siginfo_t *info)
{
    bool exited = info->si_code == CLD_EXITED;
    int code = exited ? info->si_status : 128 + info->si_status;

    in->job = 0;
    if (!in->config->exec) {
        init_wire_close(in);
        init_kill_born(in, false);
    }
    if (in->config->exec || in->stopping) {
        init_finish(in, code == HELD_IDLE && exited && !in->config->exec ? 0 : code);
    } else if (exited && code == HELD_IDLE) {
        forker_stop(in);
        init_settle(in);
        await_client(in);
    } else if (exited && (code == 0 || !in->ready)) {
        init_finish(in, code);
    } else {
        init_restart(in, code);
    }
}

/* --- children --- */

static fallible await_request(struct init *in);

static void on_forker_again(struct loop_timer *t);

/* The request that waits is not lost: the next one reads it. */
static void forker_failed(struct init *in, struct err *e)
{
    if (!e)
        return;
    log_error("no forker", KV_ERR(e));
    err_free(e);
    if (in->forker <= 0) /* otherwise its end brings us here again */
        loop_timer_start(in->loop, &in->forker_again, FORKER_AGAIN_MS, on_forker_again);
}

static void on_forker_again(struct loop_timer *t)
{
    struct init *in = container_of(t, struct init, forker_again);

    forker_failed(in, await_request(in));
}

static void on_forker_wanted(struct loop_io *io)
{
    struct init *in = container_of(io, struct init, wanted);

    loop_io_stop(io);
    in->forker_ns = loop_now_ns(in->loop);
    forker_failed(in, init_start_forker(in));
}

static fallible await_request(struct init *in)
{
    return loop_io_start(in->loop, &in->wanted, in->requests[1], EPOLLIN, on_forker_wanted);
}

static void on_forker_end(struct init *in)
{
    bool young = loop_now_ns(in->loop) - in->forker_ns < NS_PER_S;

    in->forker = 0;
    log_warn("the forker died");
    loop_timer_start(in->loop, &in->forker_again, young ? FORKER_AGAIN_MS : 0, on_forker_again);
}

/* It asked to be traced, and has not ended: its signal is delivered as if it had not asked. */
static void let_go(const siginfo_t *info)
{
    int signo = info->si_status == SIGTRAP ? 0 : info->si_status; /* that one is the tracer's */

    syscall(SYS_ptrace, PTRACE_DETACH, info->si_pid, 0, signo);
}

static void on_child(struct loop_signal *s)
{
    struct init *in = container_of(s, struct init, child);

    for (;;) {
        siginfo_t info = {0};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
            break;
        if (info.si_code == CLD_TRAPPED)
            let_go(&info);
        else if (info.si_pid == in->job)
            on_job_end(in, &info);
        else if (info.si_pid == in->forker)
            on_forker_end(in);
        else
            init_note_end(in, info.si_pid, info.si_code, info.si_status);
    }
    init_wire_pump(in);
}

/* --- signals --- */

static void on_kill_time(struct loop_timer *t)
{
    struct init *in = container_of(t, struct init, kill);

    if (in->job > 0)
        kill(in->job, SIGKILL);
}

/* A command gets what we got, and with it those it waits for, if that is what a terminal does; the
 * server is asked to end. A group in a session without a shell is stopped by SIGSTOP: the kernel
 * ignores the other stop signals there. */
static void on_signal(struct loop_signal *s)
{
    struct init *in = container_of(s, struct init_signal, signal)->in;
    bool user = s->signo == SIGUSR1 || s->signo == SIGUSR2; /* means nothing to the server */

    if (in->config->exec) {
        if (in->job > 0)
            kill(user || s->signo == SIGTERM ? in->job : -in->job,
                 s->signo == SIGTSTP ? SIGSTOP : s->signo);
        return;
    }
    if (user)
        return;
    in->stopping = true;
    if (in->job <= 0) {
        init_finish(in, 0);
        return;
    }
    kill(in->job, SIGTERM);
    loop_timer_start(in->loop, &in->kill, SERVER_STOP_MS, on_kill_time);
}

static fallible watch_signals(struct init *in)
{
    static const int forwarded[INIT_SIGNALS] = {SIGTERM, SIGINT,  SIGHUP,  SIGQUIT,
                                                SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

    for (size_t i = 0; i < (in->config->exec ? INIT_SIGNALS : INIT_SERVER_SIGNALS); i++) {
        in->signals[i].in = in;
        TRY(loop_signal_start(in->loop, &in->signals[i].signal, forwarded[i], on_signal));
    }
    return loop_signal_start(in->loop, &in->child, SIGCHLD, on_child);
}

/* --- starting --- */

enum { WIRE = 3 }; /* the server's only descriptor beside the first three */

/* The first one knows nothing that we do not, nor we anything that it may not: it is our copy,
 * without a program to run. */
static _Noreturn void be_server(const struct init_config *c, int wire, int argc, const char **argv)
{
    int skip = exec_foreign_args(argc, (char **)argv);

    init_be("action-server");
    spawn_alone();
    umask(022); /* as the next one's */
    if (chdir("/") < 0)
        _exit(EXIT_FAILURE);
    dup2(wire, WIRE);
    syscall(SYS_close_range, WIRE + 1, ~0u, 0);
    if (!skip)
        skip = strcmp(argv[1], "action-server") == 0 ? 2 : 1;
    _exit(exec_main(argc - skip, (char **)argv + skip, c->env));
}

static fallible start_program(struct init *in, int wire, const char *const *argv)
{
    const struct init_config *c = in->config;
    const int fds[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, wire};
    const struct spawn_plan plan = {.program = c->program ? c->program : "/proc/self/exe",
                                    .argv = argv,
                                    .env = c->env,
                                    .cwd = c->cwd,
                                    .fds = fds,
                                    .fds_len = ARRAY_LEN(fds),
                                    .dies_with_maker = true};
    return spawn_fork(&plan, &in->job);
}

/* Once for all servers, until one ends because it is idle. */
static fallible open_requests(struct init *in)
{
    if (in->requests[0] >= 0)
        return NULL;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, in->requests) < 0)
        return err_sys("socketpair");
    return await_request(in);
}

static fallible start_server(struct init *in)
{
    const struct init_config *c = in->config;
    const char *argv[SERVER_ARGS_MAX + 4] = {"croft-guest"};
    struct err *e = NULL;
    int theirs, n = 1;

    for (const char *const *a = c->argv; *a; a++) {
        if (n > SERVER_ARGS_MAX)
            return err_new(ERR_LIMIT, "more than %d words for the server", SERVER_ARGS_MAX);
        argv[n++] = *a;
    }
    argv[n++] = "--init-fd";
    argv[n++] = "3";
    TRY(open_requests(in)); /* a process, and so memory: none before it is needed */
    TRY(init_wire_open(in, &theirs));
    own_fd wire = theirs;
    init_wire_pump(in); /* it finds what it needs, and need not wait for it */
    if (c->program || in->ready || in->deaths_len)
        e = start_program(in, wire, argv);
    else if ((in->job = fork()) == 0)
        be_server(c, wire, n, argv);
    else if (in->job < 0)
        e = err_sys("fork");
    if (e)
        init_wire_close(in);
    return e;
}

static void on_command_end(struct spawn_child *c)
{
    (void)c; /* the kernel tells us, not another pid 1 */
}

/* One command in the cgroup we are in anyway is our own child. */
static bool needs_forker(const struct init_config *c)
{
    return !c->exec || c->cgroup_len;
}

/* Made for a command of a host that cannot look whether it is there; a person's must be. We go
 * there ourselves: a program may be named from there. */
static fallible enter_cwd(const struct init_config *c)
{
    own_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), dir = -1;

    if (!c->cwd)
        return NULL;
    if (c->connect_fd >= 0 && access(c->cwd, F_OK) < 0) {
        TRY_WRAP(fd_make_dirs(root, str_of(c->cwd + 1), 0755, &dir), "working directory '%.200s'",
                 c->cwd);
        if (c->has_user && fchown(dir, c->user.uid, c->user.gid) < 0)
            return err_sys("chown '%.200s'", c->cwd);
    }
    return chdir(c->cwd) < 0 ? err_sys("working directory '%.200s'", c->cwd) : NULL;
}

static const char *user_home(const struct init_config *c)
{
    return !c->has_user ? "/root" : c->user.home[0] ? c->user.home : "/";
}

/* A command keeps its key in its environment. */
fallible init_start_command(struct init *in)
{
    const struct init_config *c = in->config;
    const int fds[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
    own_done(arena) a;
    struct spawn_plan plan = {.argv = c->argv,
                              .env = c->env,
                              .keeps_key = true,
                              .cwd = c->cwd,
                              .cwd_only = c->cwd,
                              .user = c->has_user ? &c->user : NULL,
                              .fds = fds,
                              .fds_len = ARRAY_LEN(fds),
                              .tty_if_free = isatty(STDIN_FILENO)};

    arena_init(&a, 64u << 10);
    bool inside = getpid() == 1, served = c->connect_fd >= 0;
    if (c->has_user && (inside || served))
        account_settle(&in->config->account, proc_env_get((char *const *)c->env, "HOME"), inside);
    if (c->has_user && served)
        account_settle_workspace(&in->config->account);
    TRY(enter_cwd(c));
    if (!proc_env_get((char *const *)c->env,
                      "HOME")) { /* the users of the image are known here only */
        char *const home[] = {(char *)arena_printf(&a, "HOME=%s", user_home(c)).p, NULL};
        plan.env = (const char *const *)proc_env_with(&a, (char *const *)c->env, home);
        TRY(arena_check(&a));
    }
    if (needs_forker(c)) {
        TRY(open_requests(in));
        loop_io_stop(&in->wanted);
        TRY(init_start_forker(in));
    }
    in->command_failed = true;
    plan.program = c->argv[0];
    if (!strchr(c->argv[0], '/') || c->argv[0][0] == '/') /* else from cwd, where we are not */
        TRY(proc_find_program(&a, c->argv[0], (char *const *)c->env, &plan.program));
    if (needs_forker(c)) {
        spawner_init(&in->spawner, in->requests[0]);
        TRY(spawn_start(in->loop, &in->spawner, &plan, &in->command, on_command_end));
        in->job = in->command.pid;
    } else
        TRY(spawn_fork(&plan, &in->job));
    in->command_failed = false;
    if (c->ready_fd >= 0 && write(c->ready_fd, "1", 1) != 1 && errno != EPIPE)
        return err_sys("tell that the command runs");
    own_close(take_fd(&in->config->ready_fd));
    return NULL;
}

/* There is no server yet: all it needs comes with the claim. */
static fallible await_claim(struct init *in)
{
    int fd = in->config->ready_fd;

    return fd < 0 || write(fd, "w", 1) == 1 ? NULL : err_sys("tell that we wait");
}

static fallible start_all(struct init *in)
{
    const struct init_config *c = in->config;

    if (!c->exec)
        init_set_slice(SLICE_NS); /* the server's too */
    TRY(loop_new_in(in->loop_room, &clock_system, &in->loop));
    TRY(watch_signals(in));
    if (c->control_fd >= 0)
        TRY(loop_io_start(in->loop, &in->control_io, c->control_fd, EPOLLIN, init_on_control));
    if (c->connect_fd >= 0)
        TRY(tunnels_start(&in->tunnels, in->loop, c->connect_fd));
    return c->exec ? init_start_command(in) : c->await ? await_claim(in) : init_begin(in);
}

fallible init_start(struct init *in, struct init_config *config)
{
    *in = (struct init){.config = config, .wire = -1, .requests = {-1, -1}, .births = {-1, -1}};
    list_init(&in->items);
    tunnels_init(&in->tunnels);
    if (getpid() != 1 && prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return err_sys("become a subreaper");
    struct err *e = start_all(in);
    if (e)
        init_done(in);
    return e;
}

fallible init_serve(struct init *in, int *ret_code)
{
    TRY(loop_run(in->loop));
    *ret_code = in->exit_code;
    return NULL;
}

/* Ends processes that left their session and came to us as orphans. If we are pid 1, they end with
 * us; elsewhere not. */
static void end_orphans(void)
{
    char path[64];
    own_done(buf) list;
    uint64_t pid;

    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    buf_init(&list, 1u << 20);
    for (unsigned i = 0; i < SWEEPS_MAX && getpid() != 1; i++) {
        buf_reset(&list);
        err_free(fd_read_file(path, &list)); /* without it nothing can be found */
        struct str rest = buf_str(&list), word;
        if (rest.len == 0)
            return;
        while (rest.len > 0) {
            str_cut(&rest, ' ', &word);
            if (!str_to_u64(word, &pid))
                continue;
            kill((pid_t)pid, SIGKILL);
            spawn_reap((pid_t)pid);
        }
    }
}

void init_done(struct init *in)
{
    if (in->job > 0) {
        kill(in->job, SIGKILL);
        spawn_reap(in->job);
    }
    init_wire_close(in);
    if (in->births[0] >= 0)
        init_kill_born(in, true);
    forker_stop(in);
    end_orphans();
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    init_drop_items(in);
    free(in->born);
    init_drop_key(in->config);
    wire_bind_done(&in->bound);
    tunnels_stop(&in->tunnels);
    loop_io_stop(&in->control_io);
    loop_later_cancel(&in->settled);
    loop_io_stop(&in->inbound);
    loop_io_stop(&in->viewer);
    loop_free(in->loop);
}
