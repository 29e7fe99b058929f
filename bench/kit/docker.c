// SPDX-License-Identifier: Apache-2.0
/* docker.c — a real dockerd for the time of a bench.
 *
 * It lives in mount, pid and network namespaces of its own: killing their pid 1, the keeper, ends
 * containerd, shims and containers with it. What it writes outside its directories (/run, a key in
 * /etc, plug-ins in /opt) lands in the scratch. It is given its socket: a client may
 * connect before it listens, and does not poll. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/own.h"
#include "bench/kit/peers.h"
#include "host/kernel/sys.h"

#define IMAGE     "croft-bench"
#define IDLE      "croft-bench-idle"
#define LISTEN_AT 3 /* the first socket that is passed in */

extern char **environ;

/* --- the keeper: pid 1 of the daemon's namespaces --- */

static _Noreturn void docker_quit(const char *what)
{
    fd_print(2, "%s: %s\n", what, strerror(errno));
    _exit(125);
}

static void docker_cover(const char *dir, const char *at)
{
    char upper[PEERS_PATH], work[PEERS_PATH], options[4 * PEERS_PATH];

    snprintf(upper, sizeof upper, "%s/over%s", dir, at);
    snprintf(work, sizeof work, "%s/work%s", dir, at);
    snprintf(options, sizeof options, "lowerdir=%s,upperdir=%s,workdir=%s", at, upper, work);
    if (mkdir(upper, 0755) < 0 || mkdir(work, 0755) < 0 ||
        mount("overlay", at, "overlay", 0, options) < 0)
        docker_quit(at);
}

static void make_view(const char *dir)
{
    char path[PEERS_PATH];

    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0 ||
        mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") < 0)
        docker_quit("mounts of its own");
    snprintf(path, sizeof path, "%s/over", dir);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/work", dir);
    mkdir(path, 0700);
    docker_cover(dir, "/etc");
    if (access("/opt", F_OK) == 0)
        docker_cover(dir, "/opt");
}

static _Noreturn void exec_daemon(const struct peers *p, const char *program)
{
    char data[PEERS_PATH], exec[PEERS_PATH], pidfile[PEERS_PATH], group[PEERS_PATH], pid[16];
    char path[4096];
    const char *const argv[] = {program,
                                "--host=fd://",
                                data,
                                exec,
                                pidfile,
                                group,
                                "--exec-opt=native.cgroupdriver=cgroupfs",
                                "--bridge=none",
                                "--iptables=false",
                                "--ip6tables=false",
                                "--ip-forward=false",
                                "--ip-masq=false",
                                "--userland-proxy=false",
                                "--log-level=warn",
                                NULL};

    snprintf(data, sizeof data, "--data-root=%s/data", p->scratch.dir);
    snprintf(exec, sizeof exec, "--exec-root=%s/exec", p->scratch.dir);
    snprintf(pidfile, sizeof pidfile, "--pidfile=%s/dockerd.pid", p->scratch.dir);
    snprintf(group, sizeof group, "--cgroup-parent=/%s", p->group);
    snprintf(path, sizeof path, "%s:/usr/sbin:/sbin:/usr/bin:/bin",
             getenv("PATH") ? getenv("PATH") : "");
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    setenv("PATH", path, 1);
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", "1", 1);
    execve(argv[0], (char *const *)argv, environ);
    docker_quit(argv[0]);
}

/* A pid 1 hears only what it waits for: no signal is lost to its default. */
static _Noreturn void docker_keep(const struct peers *p, const char *program, const sigset_t *heard)
{
    sigset_t none;
    pid_t daemon = fork();

    if (daemon == 0) {
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        exec_daemon(p, program);
    }
    close(LISTEN_AT); /* or a client of a dead daemon would wait for ever */
    if (daemon < 0)
        docker_quit("fork");
    for (;;) {
        int status, signo = sigwaitinfo(heard, NULL);
        if (signo == SIGTERM)
            kill(daemon, SIGTERM);
        for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
            if (pid == daemon)
                _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    }
}

static _Noreturn void be_keeper(const struct peers *p, const char *program, int listener)
{
    sigset_t heard;
    char log[PEERS_PATH];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setsid();
    sigemptyset(&heard);
    sigaddset(&heard, SIGTERM);
    sigaddset(&heard, SIGCHLD);
    sigprocmask(SIG_SETMASK, &heard, NULL);
    snprintf(log, sizeof log, "%s/dockerd.log", p->scratch.dir);
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600), in = open("/dev/null", O_RDONLY);
    int copy = fcntl(listener, F_DUPFD, 10); /* out of the way of its own new number */
    if (out < 0 || in < 0 || copy < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 ||
        dup2(copy, LISTEN_AT) < 0 || sys_close_range(LISTEN_AT + 1, ~0u, 0) < 0)
        _exit(125);
    make_view(p->scratch.dir);
    docker_keep(p, program, &heard);
}

static fallible start_keeper(const struct peers *p, const char *program, int listener)
{
    int pidfd = -1;
    struct clone_args args = {.flags = CLONE_PIDFD | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET,
                              .pidfd = (uintptr_t)&pidfd,
                              .exit_signal = SIGCHLD};
    pid_t pid = sys_clone3(&args);

    if (pid < 0)
        return err_sys("make namespaces for dockerd");
    if (pid == 0)
        be_keeper(p, program, listener);
    own_fd handed = pidfd;
    return scratch_hand(&p->scratch, handed);
}

/* --- its client --- */

static fallible listen_for(const struct peers *p, int *ret_fd)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    own_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(a.sun_path, sizeof a.sun_path, "%s/docker.sock", p->scratch.dir);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(fd, 16) < 0)
        return err_sys("make socket '%s'", a.sun_path);
    *ret_fd = take_fd(&fd);
    return NULL;
}

static fallible docker_call(const struct peers *p, const char *const *words, bool answers,
                            double *ret_ms)
{
    char host[PEERS_PATH], config[PEERS_PATH];
    const char *argv[PEERS_ARGS] = {p->at[PEER_DOCKER].program, "--config", config, "--host", host};
    size_t n = 5;

    snprintf(host, sizeof host, "unix://%s/docker.sock", p->scratch.dir);
    snprintf(config, sizeof config, "%s/client", p->scratch.dir);
    while (*words && n + 1 < ARRAY_LEN(argv))
        argv[n++] = *words++;
    return answers ? peers_ask(p, argv, ret_ms) : peers_call(p, argv, ret_ms);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* No registry: the image is the root file system that all peers have. */
static fallible docker_import(const struct peers *p)
{
    char tar[PEERS_PATH], file[PEERS_PATH];
    double ms;

    if (!peers_find("tar", tar))
        return err_new(ERR_NOT_FOUND, "'tar' is not installed");
    snprintf(file, sizeof file, "%s/root.tar", p->scratch.dir);
    TRY(peers_call(p, WORDS(tar, "-C", p->root, "-cf", file, "."), &ms));
    return docker_call(p, WORDS("import", file, IMAGE), false, &ms);
}

fallible docker_open(struct peers *p)
{
    char program[PEERS_PATH], why[PEERS_WHY_SIZE];
    own_fd listener = -1;

    if (!peers_find("dockerd", program))
        return err_new(ERR_NOT_FOUND,
                       "'dockerd' is not installed; Debian's package 'docker.io' brings it");
    TRY(listen_for(p, &listener));
    TRY(start_keeper(p, program, listener));
    close(take_fd(&listener)); /* or a client of a dead daemon would wait for ever */
    struct err *e = docker_import(p);
    if (e && peers_last_line(p, "dockerd.log", why))
        return err_wrap(e, "dockerd said '%s'", why);
    return e;
}

fallible docker_answer(const struct peers *p, double *ret_ms)
{
    return docker_call(
        p, WORDS("run", "--rm", "--network", "none", IMAGE, "/croft-guest", "--version"), true,
        ret_ms);
}

fallible docker_start_idle(const struct peers *p)
{
    double ms;

    return docker_call(p,
                       WORDS("run", "--detach", "--network", "none", "--name", IDLE, IMAGE,
                             "/croft-guest", "action-server", "4000"),
                       false, &ms);
}

fallible docker_pause(const struct peers *p, bool pause, double *ret_ms)
{
    return docker_call(p, WORDS(pause ? "pause" : "unpause", IDLE), false, ret_ms);
}
