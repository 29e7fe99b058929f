// SPDX-License-Identifier: Apache-2.0
/* peers.c — see peers.h. */
#include "bench/kit/peers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/own.h"

#define ANSWER         "croft-guest "
#define GROUP_TRIES    50 /* what another process' death may hold up */
#define GROUP_PAUSE_MS 100

extern char **environ;
extern const char croft_guest_start[], croft_guest_end[];

static const struct peer known[PEERS] = {
    [PEER_BWRAP] = {.name = "bwrap", .what = "bwrap --unshare-all", .package = "bubblewrap"},
    [PEER_CRUN] = {.name = "crun", .what = "crun run", .package = "crun"},
    [PEER_RUNC] = {.name = "runc", .what = "runc run", .package = "runc"},
    [PEER_DOCKER] = {.name = "docker",
                     .what = "docker run --rm --network none",
                     .package = "docker.io"},
};

bool peers_find(const char *name, char out[PEERS_PATH])
{
    const char *path = getenv("PATH");
    char all[4096];
    struct str rest, dir;

    snprintf(all, sizeof all, "%s:/usr/local/sbin:/usr/sbin:/sbin", path ? path : "/usr/bin:/bin");
    rest = str_of(all);
    for (bool more = true; more;) {
        more = str_cut(&rest, ':', &dir);
        int n = snprintf(out, PEERS_PATH, STR_FMT "/%s", STR_ARG(dir), name);
        if (dir.len && dir.p[0] == '/' && n < PEERS_PATH && access(out, X_OK) == 0)
            return true;
    }
    return false;
}

/* --- running one --- */

static double now_ms(void)
{
    return (double)clock_mono_ns(&clock_system) / 1e6;
}

bool peers_last_line(const struct peers *p, const char *name, char out[PEERS_WHY_SIZE])
{
    char path[PEERS_PATH];
    own_done(buf) text;
    struct str rest, line, last = STR("");

    buf_init(&text, 1u << 20);
    snprintf(path, sizeof path, "%s/%s", p->scratch.dir, name);
    err_free(fd_read_file(path, &text)); /* then it says nothing */
    for (rest = buf_str(&text); rest.len;) {
        str_cut(&rest, '\n', &line);
        if (str_trim(line).len)
            last = str_trim(line);
    }
    snprintf(out, PEERS_WHY_SIZE, STR_FMT, STR_ARG(str_first(last, 160)));
    return last.len > 0;
}

/* What it said last is the reason. */
static fallible peers_failed(const struct peers *p, const char *program, int status)
{
    char last[PEERS_WHY_SIZE];
    bool told = peers_last_line(p, "err", last);

    return err_new(ERR_INTERNAL, "%s %s %d%s%s", strrchr(program, '/') + 1,
                   WIFEXITED(status) ? "ended with" : "was ended by signal",
                   WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), told ? ": " : "",
                   last);
}

/* The scratch directory waits for every process that holds its word: it must not go while a
 * container is half made. */
static fallible peers_spawn(const struct peers *p, const char *const *argv, int out, pid_t *ret_pid)
{
    posix_spawn_file_actions_t a;
    char path[SCRATCH_DIR + 8];

    snprintf(path, sizeof path, "%s/err", p->scratch.dir);
    posix_spawn_file_actions_init(&a);
    posix_spawn_file_actions_addopen(&a, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&a, out, 1);
    posix_spawn_file_actions_addopen(&a, 2, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&a, p->scratch.word, p->scratch.word);
    int e = posix_spawn(ret_pid, argv[0], &a, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&a);
    return e ? err_sysno(e, "run '%s'", argv[0]) : NULL;
}

static fallible peers_reap(const struct peers *p, const char *program, pid_t pid)
{
    own_fd pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    int status = 0;
    struct err *e =
        pidfd < 0 ? err_sys("watch '%s'", program) : fd_wait(pidfd, POLLIN, PEERS_WAIT_MS);

    if (e)
        kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    if (e)
        return err_wrap(e, "%s", program);
    return status ? peers_failed(p, program, status) : NULL;
}

static fallible read_answer(int fd)
{
    char answer[64];

    TRY(fd_wait(fd, POLLIN, PEERS_WAIT_MS));
    ssize_t n = read(fd, answer, sizeof answer);
    if (n < (ssize_t)strlen(ANSWER) || memcmp(answer, ANSWER, strlen(ANSWER)) != 0)
        return err_new(ERR_INTERNAL, "no answer from inside");
    return NULL;
}

fallible peers_ask(const struct peers *p, const char *const *argv, double *ret_ms)
{
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys("make a pipe");
    own_fd in = ends[0], out = ends[1];
    double begin = now_ms();
    TRY(peers_spawn(p, argv, out, &pid));
    close(take_fd(&out));
    struct err *e = read_answer(in);
    double ms = now_ms() - begin;
    struct err *end = peers_reap(p, argv[0], pid);
    if (end) {
        err_free(e);
        return end; /* it knows better why there was no answer */
    }
    if (!e)
        *ret_ms = ms;
    return e;
}

fallible peers_call(const struct peers *p, const char *const *argv, double *ret_ms)
{
    own_fd out = open("/dev/null", O_WRONLY | O_CLOEXEC);
    pid_t pid;
    double begin = now_ms();

    TRY(peers_spawn(p, argv, out, &pid));
    TRY(peers_reap(p, argv[0], pid));
    *ret_ms = now_ms() - begin;
    return NULL;
}

static fallible peers_enter(const struct peers *p, int mounts)
{
    if (setns(mounts, CLONE_NEWNS) < 0 || (mounts == p->own_mounts && fchdir(p->cwd) < 0))
        return err_sys("enter a mount namespace");
    return NULL;
}

fallible peers_answer(struct peers *p, size_t i, double *ret_ms)
{
    struct peer *peer = &p->at[i];
    char id[24], state[SCRATCH_DIR + 16], bundle[SCRATCH_DIR + 16];
    const char *const argv[] = {peer->program, "--root", state, "run", "-b", bundle, id, NULL};
    const char *const bwrap[] = {peer->program, "--unshare-all", "--bind",    p->root,
                                 "/",           "--proc",        "/proc",     "--dev",
                                 "/dev",        "/croft-guest",  "--version", NULL};

    if (i == PEER_BWRAP)
        return peers_ask(p, bwrap, ret_ms);
    if (i == PEER_DOCKER)
        return docker_answer(p, ret_ms);
    snprintf(id, sizeof id, "bench-%u", p->next++);
    snprintf(state, sizeof state, "%s/%s-state", p->scratch.dir, peer->name);
    snprintf(bundle, sizeof bundle, "%s/%s", p->scratch.dir, peer->name);
    if (peer->mounts < 0)
        return peers_ask(p, argv, ret_ms);
    TRY(peers_enter(p, peer->mounts)); /* not counted: it is this machine's fault, not the peer's */
    struct err *e = peers_ask(p, argv, ret_ms);
    struct err *back = peers_enter(p, p->own_mounts);
    if (back) {
        err_free(e);
        return back;
    }
    return e;
}

bool peers_turn(const struct peer *peer, unsigned turn, unsigned turns)
{
    double fit = PEERS_SPAN_MS / (peer->trial_ms > 1 ? peer->trial_ms : 1);
    unsigned want = fit < PEERS_LEAST ? PEERS_LEAST : (unsigned)fit;

    if (!peer->there)
        return false;
    return want >= turns || turn * want / turns != (turn + 1) * want / turns;
}

/* --- making ready --- */

static fallible make_root(struct peers *p)
{
    static const char *const dirs[] = {"proc", "dev", "sys", "tmp"};
    struct str program = str_n(croft_guest_start, (size_t)(croft_guest_end - croft_guest_start));

    snprintf(p->root, sizeof p->root, "%s/root", p->scratch.dir);
    if (mkdir(p->root, 0755) < 0)
        return err_sys("make directory '%s'", p->root);
    own_fd root = open(p->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        if (root < 0 || mkdirat(root, dirs[i], 0755) < 0)
            return err_sys("make directory '%s/%s'", p->root, dirs[i]);
    return fd_replace_file(root, "croft-guest", program, 0755);
}

/* As `runc spec` writes it, without a terminal, with groups of our name. */
static const char config_format[] =
    "{\"ociVersion\":\"1.0.2\",\"process\":{\"user\":{\"uid\":0,\"gid\":0},"
    "\"args\":[\"/croft-guest\",\"--version\"],\"env\":[\"PATH=/\"],\"cwd\":\"/\","
    "\"capabilities\":{\"bounding\":[\"CAP_KILL\"],\"effective\":[\"CAP_KILL\"],"
    "\"permitted\":[\"CAP_KILL\"]},\"noNewPrivileges\":true},"
    "\"root\":{\"path\":\"%s\"},\"hostname\":\"bench\",\"mounts\":["
    "{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"},"
    "{\"destination\":\"/dev\",\"type\":\"tmpfs\",\"source\":\"tmpfs\","
    "\"options\":[\"nosuid\",\"mode=755\",\"size=65536k\"]},"
    "{\"destination\":\"/dev/pts\",\"type\":\"devpts\",\"source\":\"devpts\","
    "\"options\":[\"nosuid\",\"noexec\",\"newinstance\",\"ptmxmode=0666\",\"mode=0620\"]}],"
    "\"linux\":{\"cgroupsPath\":\"/%s/%s\",\"resources\":{\"pids\":{\"limit\":1000}},"
    "\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"network\"},{\"type\":\"ipc\"},"
    "{\"type\":\"uts\"},{\"type\":\"mount\"}]}}\n";

static fallible make_bundle(const struct peers *p, const char *name)
{
    own_fd dir = open(p->scratch.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), bundle = -1;
    char text[2048];

    if (dir < 0)
        return err_sys("open '%s'", p->scratch.dir);
    TRY(fd_make_dirs(dir, str_of(name), 0700, &bundle));
    snprintf(text, sizeof text, config_format, p->root, p->group, name);
    return fd_replace_file(bundle, "config.json", str_of(text), 0600);
}

/* crun refuses to work where cgroup2 is mounted beside v1 and has a controller. */
static fallible without_unified(struct peers *p, int *ret_mounts)
{
    static const char unified[] = "/sys/fs/cgroup/unified";

    if (access("/sys/fs/cgroup/unified/cgroup.procs", F_OK) < 0)
        return NULL;
    if (unshare(CLONE_NEWNS) < 0)
        return err_sys("make a mount namespace");
    struct err *e = NULL;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || umount2(unified, MNT_DETACH) < 0)
        e = err_sys("leave out '%s'", unified);
    else
        *ret_mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    struct err *back = peers_enter(p, p->own_mounts);
    if (back) {
        err_free(e);
        return back;
    }
    return e;
}

static fallible peers_prepare(struct peers *p, size_t i)
{
    struct peer *peer = &p->at[i];

    if (!peers_find(peer->name, peer->program))
        return err_new(ERR_NOT_FOUND, "not installed; Debian's package '%s' brings it",
                       peer->package);
    if (i == PEER_BWRAP)
        return NULL;
    if (geteuid() != 0)
        return err_new(ERR_FORBIDDEN, "needs root");
    if (i == PEER_DOCKER)
        return docker_open(p);
    if (i == PEER_CRUN)
        TRY(without_unified(p, &peer->mounts));
    return make_bundle(p, peer->name);
}

static void try_peer(struct peers *p, size_t i)
{
    struct peer *peer = &p->at[i];
    struct err *e = peers_prepare(p, i);

    if (!e)
        e = peers_answer(p, i, &peer->trial_ms); /* the first fills caches: */
    if (!e)
        e = peers_answer(p, i, &peer->trial_ms); /* the second tells how long one takes */
    peer->there = !e;
    if (e)
        snprintf(peer->why, sizeof peer->why, "%s", err_text(e));
    err_free(e);
}

fallible peers_open(struct peers *p, const char *tmp)
{
    *p = (struct peers){.own_mounts = -1, .cwd = -1};
    memcpy(p->at, known, sizeof known);
    for (size_t i = 0; i < PEERS; i++)
        p->at[i].mounts = -1;
    TRY(scratch_open(&p->scratch, tmp));
    snprintf(p->group, sizeof p->group, "%s", strrchr(p->scratch.dir, '/') + 1);
    struct err *e = make_root(p);
    p->own_mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    p->cwd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (!e && (p->own_mounts < 0 || p->cwd < 0))
        e = err_sys("open our mount namespace");
    if (e) {
        err_free(peers_close(p)); /* the first error is the one to tell */
        return e;
    }
    for (size_t i = 0; i < PEERS; i++)
        try_peer(p, i);
    return NULL;
}

fallible peers_close(struct peers *p)
{
    for (size_t i = 0; i < PEERS; i++)
        own_close_p(&p->at[i].mounts);
    own_close_p(&p->own_mounts);
    own_close_p(&p->cwd);
    struct err *e = scratch_close(&p->scratch);
    for (unsigned i = 0; !e && !peers_remove_groups(p->group); i++) {
        if (i == GROUP_TRIES)
            e = err_new(ERR_INTERNAL, "control groups '%s' could not be removed", p->group);
        poll(NULL, 0, GROUP_PAUSE_MS);
    }
    return e;
}
