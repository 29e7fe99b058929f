// SPDX-License-Identifier: Apache-2.0
/* worker.c — see worker.h.
 *
 * As root the worker's ids are the host's own first 64 Ki, in a namespace where they carry no power
 * beyond the files it can reach. As an ordinary user it is root of one id, or of that user's range.
 */
#include "host/worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "host/kernel/confine.h"
#include "host/subids/subids.h"
#include "host/worker/filter.h"

/* chown, override and own files, keep set-id bits, set file capabilities */
#define KEEP_CAPS (1ull << 0 | 1ull << 1 | 1ull << 3 | 1ull << 4 | 1ull << 31)

#define ERROR_MAX 4096 /* fits in a pipe: saying it does not block */

struct pipes { /* [0] is ours, [1] the worker's, but for go */
    int ready[2], go[2], out[2], fail[2];
};

/* --- inside --- */

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static fallible close_all_but(int *keep, size_t n)
{
    unsigned from = 0;

    qsort(keep, n, sizeof *keep, by_number);
    for (size_t i = 0; i < n; i++) {
        unsigned fd = (unsigned)keep[i];
        if (keep[i] < 0 || fd < from)
            continue; /* named twice, or none */
        if (fd > from && syscall(SYS_close_range, from, fd - 1, 0) < 0)
            return err_sys("close descriptors");
        from = fd + 1;
    }
    if (syscall(SYS_close_range, from, ~0u, 0) < 0)
        return err_sys("close descriptors");
    return NULL;
}

/* Closes everything but standard error, out, and what the job needs. */
static fallible close_others(const struct worker_job *job, const struct pipes *p)
{
    int keep[WORKER_FDS + 4] = {2, p->out[1], p->fail[1], job->root};
    size_t n = 4;

    for (size_t i = 0; i < job->fd_count; i++)
        keep[n++] = job->fds[i];
    return close_all_but(keep, n);
}

static fallible worker_confine(const struct worker_job *job, const struct pipes *p)
{
    struct rlimit files = {64, 64}, none = {0, 0};

    if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
        return err_sys("take the worker's ids");
    if (fchdir(job->root) < 0 || chroot(".") < 0)
        return err_sys("change the root");
    TRY(close_others(job, p));
    umask(0);
    if (setrlimit(RLIMIT_NOFILE, &files) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
        return err_sys("set limits");
    TRY(confine_caps(KEEP_CAPS));
    TRY(confine_no_new_privs());
    return filter_install();
}

static void say_error(int fail, const struct err *e)
{
    unsigned char code = (unsigned char)err_code(e);

    /* if this fails too the pipe just ends, and the exit code says the rest */
    err_free(fd_write_all(fail, str_n(&code, 1)));
    err_free(fd_write_all(fail, str_first(str_of(err_text(e)), ERROR_MAX - 1)));
}

_Noreturn static void inside(const struct worker_job *job, const struct pipes *p)
{
    char byte;
    struct err *e = NULL;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) < 0)
        e = err_sys("make the worker's namespaces");
    if (!e && (write(p->ready[1], "r", 1) != 1 || read(p->go[0], &byte, 1) != 1))
        _exit(1); /* the process that asked is gone */
    if (!e)
        e = err_wrap(worker_confine(job, p), "confine the worker");
    if (!e)
        e = job->run(job->arg, p->out[1]);
    if (e)
        say_error(p->fail[1], e);
    _exit(e ? 1 : 0);
}

/* --- outside --- */

static fallible write_proc(pid_t pid, const char *file, const char *text)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    own_fd fd = open(path, O_WRONLY | O_CLOEXEC, 0);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        return err_sys("write '%s'", path);
    return NULL;
}

static fallible map_ids(pid_t pid)
{
    char uids[SUBIDS_LINES] = "0 0 65536", gids[SUBIDS_LINES] = "0 0 65536";
    struct subids ids;

    if (geteuid() != 0) {
        subids_find(&ids);
        if (!subids_entered(&ids)) {
            ids.count = 0;
            TRY(write_proc(pid, "setgroups", "deny"));
        }
        subids_lines(&ids, false, uids);
        subids_lines(&ids, true, gids);
    }
    TRY(write_proc(pid, "uid_map", uids));
    return write_proc(pid, "gid_map", gids);
}

static void close_pair(int pair[2])
{
    own_close(pair[0]);
    own_close(pair[1]);
    pair[0] = pair[1] = -1;
}

static void pipes_done(struct pipes *p)
{
    close_pair(p->ready);
    close_pair(p->go);
    close_pair(p->out);
    close_pair(p->fail);
}

static fallible pipes_init(struct pipes *p)
{
    *p = (struct pipes){{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
    if (pipe2(p->ready, O_CLOEXEC) < 0 || pipe2(p->go, O_CLOEXEC) < 0 ||
        pipe2(p->out, O_CLOEXEC) < 0 || pipe2(p->fail, O_CLOEXEC) < 0) {
        struct err *e = err_sys("make pipes");
        pipes_done(p);
        return e;
    }
    return NULL;
}

#define ONE(code, status, word) +1
enum { CODES = 0 ERR_CODES(ONE) };

/* The worker's own error, or how it ended. */
static fallible worker_outcome(const struct pipes *p, int status)
{
    own_done(buf) text;

    buf_init(&text, ERROR_MAX);
    TRY(fd_read_all(p->fail[0], &text));
    if (text.len > 1) {
        unsigned code = (unsigned char)text.p[0];
        return err_new(code < CODES ? (enum err_code)code : ERR_INTERNAL, STR_FMT,
                       STR_ARG(str_from(buf_str(&text), 1)));
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return NULL;
    if (WIFSIGNALED(status))
        return err_new(ERR_INTERNAL, "the worker was ended by signal %d", WTERMSIG(status));
    return err_new(ERR_INTERNAL, "the worker ended with %d and said nothing", WEXITSTATUS(status));
}

static fallible worker_serve(pid_t pid, struct pipes *p, struct buf *answer)
{
    char byte;

    if (read(p->ready[0], &byte, 1) == 1) { /* else it could not begin and has said why */
        TRY_WRAP(map_ids(pid), "map the worker's ids");
        if (write(p->go[1], "g", 1) != 1)
            return err_sys("start the worker");
    }
    return fd_read_all(p->out[0], answer);
}

fallible worker_run(const struct worker_job *job, struct buf *answer)
{
    struct pipes p;
    int status = 0;

    if (job->fd_count > WORKER_FDS)
        return err_new(ERR_INTERNAL, "%zu descriptors for a worker", job->fd_count);
    TRY(pipes_init(&p));
    pid_t pid = fork();
    if (pid == 0)
        inside(job, &p);
    struct err *e = pid < 0 ? err_sys("fork a worker") : NULL;
    int *theirs[] = {&p.ready[1], &p.go[0], &p.out[1], &p.fail[1]};
    for (size_t i = 0; i < ARRAY_LEN(theirs); i++)
        own_close(take_fd(theirs[i]));
    if (!e)
        e = worker_serve(pid, &p, answer);
    if (pid > 0 && e)
        kill(pid, SIGKILL);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!e)
        e = worker_outcome(&p, status);
    pipes_done(&p);
    return e;
}

/* --- a fence --- */

/* As KEEP_CAPS, and: to read any file, to make whiteouts, and overlay's attributes. What else the
 * last of these is good for, the filter of system calls forbids. */
#define FENCE_CAPS     (KEEP_CAPS | 1ull << 2 | 1ull << 27 | 1ull << 21)
#define LANDLOCK_MOVES 2 /* since this version files may move */

/* Lists of the fence as one: its own, and more. */
static int *worker_join(const int *own, size_t count, const int *more, size_t more_count)
{
    int *all = mem_new((count + more_count + 1) * sizeof *all);

    memcpy(all, own, count * sizeof *all);
    if (more)
        memcpy(all + count, more, more_count * sizeof *all);
    return all;
}

static fallible keep_only(const struct worker_fence *f, const int *works, const int *looks)
{
    size_t n = 0, work_count = ARRAY_LEN(f->work) + f->work_count, look_count = 1 + f->look_count;

    if (f->fd_count > WORKER_FDS)
        return err_new(ERR_INTERNAL, "%zu descriptors are too many", f->fd_count);
    own_free int *keep =
        worker_join((const int[]){2, f->root}, 2, NULL, f->fd_count + work_count + look_count);
    for (n = 2; n < 2 + f->fd_count; n++)
        keep[n] = f->fds[n - 2];
    memcpy(keep + n, works, work_count * sizeof *keep);
    memcpy(keep + n + work_count, looks, look_count * sizeof *keep);
    return close_all_but(keep, n + work_count + look_count);
}

fallible worker_fence(const struct worker_fence *f)
{
    struct rlimit none = {0, 0};
    int abi = confine_landlock_abi();
    own_free int *works = worker_join(f->work, ARRAY_LEN(f->work), f->works, f->work_count);
    own_free int *looks = worker_join(&f->look, 1, f->looks, f->look_count);

    if (fchdir(f->root) < 0)
        return err_sys("enter the root");
    bool powers = chroot(".") == 0; /* an ordinary user has none to give up */
    if (!powers && (errno != EPERM || geteuid() == 0))
        return err_sys("change the root");
    TRY(keep_only(f, works, looks));
    if (setrlimit(RLIMIT_CORE, &none) < 0)
        return err_sys("set limits");
    TRY(confine_no_new_privs());
    if (abi >= LANDLOCK_MOVES)
        TRY(confine_landlock_beneath(abi, works, ARRAY_LEN(f->work) + f->work_count, looks,
                                     1 + f->look_count));
    if (powers)
        TRY(confine_caps(FENCE_CAPS));
    return filter_install();
}
