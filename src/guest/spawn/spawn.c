// SPDX-License-Identifier: Apache-2.0
/* spawn.c — starting, watching and ending a process; see spawn.h. */
#include "guest/spawn/spawn.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/spawn/inner.h"

#define START_MS      10000 /* for a program to be found and run */
#define STOP_MS       2000
#define KILL_ROUNDS   16
#define PARENT_WORDS  3
#define SESSION_WORDS 5

void spawner_init(struct spawner *s, int forker)
{
    s->forker = forker;
    list_init(&s->children);
}

void spawner_exited(struct spawner *s, pid_t pid, int code, int status)
{
    LIST_EACH(c, &s->children, struct spawn_child, link) {
        if (c->pid != pid)
            continue;
        list_del(&c->link);
        c->pid = 0;
        c->code = code;
        c->status = status;
        c->fn(c);
        return; /* a number that is used again belongs to a younger one */
    }
}

static void on_child(struct loop_child *child)
{
    struct spawn_child *c = container_of(child, struct spawn_child, direct);

    c->pid = 0;
    c->code = child->code;
    c->status = child->status;
    c->fn(c);
}

/* Until the pipe is closed by exec, or by a death. *last stays empty if nothing was said. */
static fallible read_status(int pipe, struct spawn_status *last)
{
    struct spawn_status s;

    for (;;) {
        TRY(fd_wait(pipe, POLLIN, START_MS));
        ssize_t n = read(pipe, &s, sizeof s);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys("read how it starts");
        if (n < (ssize_t)sizeof s)
            return NULL;
        *last = s;
    }
}

static fallible start_error(const struct spawn_plan *plan, const struct spawn_status *s)
{
    static const char *const steps[] = {
        [SPAWN_AT_FORK] = "fork",
        [SPAWN_AT_MESSAGE] = "read the plan",
        [SPAWN_AT_FDS] = "pass descriptors",
        [SPAWN_AT_TTY] = "take the terminal",
        [SPAWN_AT_USER] = "change to the user",
    };

    if (s->step == SPAWN_AT_CWD)
        return err_sysno(s->errnum, "working directory '%.200s'", plan->cwd);
    if (s->step == SPAWN_AT_EXEC)
        return err_recode(err_sysno(s->errnum, "'%.300s'", plan->program), ERR_UNSUPPORTED);
    return err_sysno(s->errnum, "'%.300s': %s", plan->program,
                     (unsigned)s->step < ARRAY_LEN(steps) ? steps[s->step] : "?");
}

void spawn_reap(pid_t pid)
{
    own_fd pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

    if (pidfd >= 0)
        err_free(fd_wait(pidfd, POLLIN, STOP_MS));
    waitpid(pid, NULL, pidfd >= 0 ? WNOHANG : 0);
}

static fallible fork_here(const struct spawn_plan *plan, struct str bytes, pid_t *ret_pid)
{
    struct spawn_job job;
    struct spawn_status s = {0};
    int ends[2];

    if (!spawn_parse(bytes, &job))
        return err_no_memory();
    own_free char **block __attribute__((unused)) = job.argv;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys("pipe");
    own_fd status = ends[0], write_end = ends[1];
    pid_t pid = fork();
    if (pid < 0)
        return err_sys("fork");
    if (pid == 0) {
        spawn_default_signals(1, 64);
        spawn_become(&job, plan->fds, plan->fds_len, write_end);
    }
    own_close(take_fd(&write_end));
    struct err *e = read_status(status, &s);
    if (!e && s.errnum)
        e = start_error(plan, &s);
    if (e) {
        kill(pid, SIGKILL);
        spawn_reap(pid);
        return e;
    }
    *ret_pid = pid;
    return NULL;
}

static fallible spawn_pack_request(struct buf *bytes, const struct spawn_plan *plan)
{
    buf_init(bytes, SPAWN_BYTES_MAX);
    if (plan->fds_len > SPAWN_FDS_MAX)
        return err_new(ERR_LIMIT, "%zu descriptors for a process, at most %d", plan->fds_len,
                       SPAWN_FDS_MAX);
    return spawn_pack(bytes, plan);
}

fallible spawn_fork(const struct spawn_plan *plan, pid_t *ret_pid)
{
    own_done(buf) bytes = {0};

    TRY(spawn_pack_request(&bytes, plan));
    return fork_here(plan, buf_str(&bytes), ret_pid);
}

static fallible start_here(struct loop *loop, const struct spawn_plan *plan, struct spawn_child *c)
{
    pid_t pid;

    TRY(spawn_fork(plan, &pid));
    struct err *e = loop_child_start(loop, &c->direct, pid, -1, on_child);
    if (e) {
        kill(pid, SIGKILL);
        spawn_reap(pid);
        return e;
    }
    c->pid = pid;
    return NULL;
}

/* One request; s stays empty when the forker died with it, and then nothing was started. */
static fallible ask_forker(const struct spawner *sp, const struct spawn_plan *plan,
                           struct str bytes, struct spawn_status *s)
{
    int fds[2 + SPAWN_FDS_MAX], ends[2];
    own_fd text = memfd_create("plan", MFD_CLOEXEC);

    if (text < 0)
        return err_sys("memfd_create");
    TRY(fd_write_all(text, bytes));
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys("pipe");
    own_fd status = ends[0], write_end = ends[1];
    fds[0] = text;
    fds[1] = write_end;
    memcpy(fds + 2, plan->fds, plan->fds_len * sizeof *fds);
    TRY_WRAP(fd_wait(sp->forker, POLLOUT, START_MS), "forker");
    TRY_WRAP(fd_send(sp->forker, STR("s"), fds, 2 + plan->fds_len), "forker");
    own_close(take_fd(&write_end));
    if (plan->asked)
        plan->asked(plan->arg);
    struct err *e = read_status(status, s);
    if (e && s->pid > 0)
        kill(s->pid, SIGKILL); /* it never got to run its program */
    return e;
}

fallible spawn_start(struct loop *loop, struct spawner *sp, const struct spawn_plan *plan,
                     struct spawn_child *c, void (*fn)(struct spawn_child *c))
{
    struct spawn_status s = {0};
    own_done(buf) bytes;

    buf_init(&bytes, SPAWN_BYTES_MAX);
    *c = (struct spawn_child){.fn = fn};
    list_init(&c->link);
    if (!sp)
        return start_here(loop, plan, c);
    TRY(spawn_pack_request(&bytes, plan));
    for (int tries = 0; tries < 2 && !s.pid && !s.errnum; tries++)
        TRY_WRAP(ask_forker(sp, plan, buf_str(&bytes), &s), "'%.300s'", plan->program);
    if (s.errnum)
        return start_error(plan, &s);
    if (!s.pid)
        return err_new(ERR_INTERNAL, "'%.300s': the forker dies of it", plan->program);
    spawn_adopt(sp, c, s.pid, fn);
    c->own = plan->own;
    return NULL;
}

void spawn_adopt(struct spawner *sp, struct spawn_child *c, pid_t pid,
                 void (*fn)(struct spawn_child *c))
{
    *c = (struct spawn_child){.fn = fn, .pid = pid};
    list_add(&sp->children, &c->link);
}

/* A number of /proc/PID/stat, 0 if it is gone. Its name may hold anything, ')' included. */
static pid_t number_of(pid_t pid, int words)
{
    char path[32], line[512];
    uint64_t number = 0;
    struct str word, rest;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof line);
    const char *p = n > 0 ? memrchr(line, ')', (size_t)n) : NULL;
    if (!p)
        return 0;
    rest = str_n(p, (size_t)(line + n - p)); /* ") S ppid pgrp session …" */
    for (int i = 0; i < words; i++) {
        str_cut(&rest, ' ', &word);
        if (i == 1 && str_eq(word, STR("Z")))
            return 0;
    }
    return str_to_u64(word, &number) ? (pid_t)number : 0;
}

static pid_t session_of(pid_t pid)
{
    return number_of(pid, SESSION_WORDS);
}

static bool is_number(const char *name)
{
    return name[0] >= '1' && name[0] <= '9';
}

void spawn_kill_session(pid_t sid)
{
    bool found = true;

    for (int round = 0; found && round < KILL_ROUNDS; round++) { /* one may fork while we look */
        DIR *proc = opendir("/proc");
        if (!proc)
            break;
        found = false;
        for (struct dirent *d; (d = readdir(proc));) {
            pid_t pid = is_number(d->d_name) ? (pid_t)atoi(d->d_name) : 0;
            if (!pid || session_of(pid) != sid)
                continue;
            found = kill(pid, SIGKILL) == 0 || found;
        }
        closedir(proc);
    }
}

/* Where our init is not pid 1, only its descendants are ours. It is a subreaper: they stay below.
 */
static bool is_below(pid_t pid, pid_t init)
{
    if (init <= 1)
        return true;
    while (pid > 1 && pid != init)
        pid = number_of(pid, PARENT_WORDS);
    return pid == init;
}

static bool is_work(const struct spawner *s, pid_t pid, pid_t init)
{
    pid_t sid = session_of(pid);

    if (sid <= 1 || sid == getsid(0) || sid == getsid(init) || !is_below(pid, init))
        return false;
    LIST_EACH(c, &s->children, struct spawn_child, link)
        if (c->pid == sid)
            return !c->own && pid != sid;
    return true;
}

unsigned spawn_count_work(const struct spawner *s)
{
    DIR *proc = opendir("/proc");
    pid_t init = getppid();
    unsigned n = 0;

    for (struct dirent *d; proc && (d = readdir(proc));)
        if (is_number(d->d_name))
            n += is_work(s, (pid_t)atoi(d->d_name), init);
    if (proc)
        closedir(proc);
    return n;
}

void spawn_end(struct spawn_child *c)
{
    if (c->pid <= 0)
        return;
    kill(c->pid, SIGSTOP); /* or it may start more while we look */
    spawn_kill_session(c->pid);
    kill(c->pid, SIGKILL);
    if (c->direct.io.loop) {
        loop_child_stop(&c->direct);
        spawn_reap(c->pid);
    } else {
        list_del(&c->link);
    }
    c->pid = 0;
}
