// SPDX-License-Identifier: Apache-2.0
/* lint.c — running the tools: a child with the text on its standard input, its output bounded, a
 * deadline on its life. It ends when the child has gone, whoever still holds the pipe. */
#include "guest/edit/lint.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "guest/edit/lint_inner.h"
#include "loop/loop.h"

#define ARENA_BYTES (64u << 20)
#define CPU_LIMIT_S 10

struct lint {
    struct loop *loop;
    struct lint_args args;
    const struct lint_checker *checker;
    struct arena a;
    struct lint_issues found, old_found;
    bool on_old; /* the second run: what was wrong before */
    char program[PATH_MAX], path_env[PATH_MAX];
    struct buf output;
    int pipe; /* read end */
    struct loop_io pipe_io;
    struct loop_child child;
    struct loop_timer deadline;
    struct loop_later later;
};

static void run_step(struct lint *l);

static void finish(struct lint *l)
{
    if (l->on_old) {
        struct err *e =
            lint_drop_old(&l->a, l->args.old_text, l->args.new_text, &l->old_found, &l->found);
        err_free(e); /* then all of them are told, which is no lie */
    }
    l->args.done(l, lint_format(&l->a, &l->found), l->args.of);
}

static void stop_child(struct lint *l)
{
    loop_timer_stop(&l->deadline);
    loop_io_stop(&l->pipe_io);
    own_close(take_fd(&l->pipe));
}

static void on_step_done(struct lint *l)
{
    if (l->on_old || l->found.count == 0) {
        finish(l);
        return;
    }
    l->on_old = true;
    run_step(l);
}

static void on_later(struct loop_later *later)
{
    on_step_done(container_of(later, struct lint, later));
}

/* A full buffer still takes what comes, so that the tool is not held up, but forgets it. */
static bool read_more(struct lint *l)
{
    char some[4096];
    ssize_t n = read(l->pipe, some, sizeof some);

    if (n > 0)
        buf_add_mem(&l->output, some, (size_t)n);
    return n > 0;
}

static void on_pipe_readable(struct loop_io *io)
{
    struct lint *l = container_of(io, struct lint, pipe_io);

    if (!read_more(l))
        loop_io_stop(io);
}

static void on_child_gone(struct loop_child *child)
{
    struct lint *l = container_of(child, struct lint, child);

    for (int i = 0; i < 64 && l->pipe >= 0 && read_more(l); i++)
        ;
    stop_child(l);
    lint_read_output(l->checker, &l->a, buf_str(&l->output), l->on_old ? &l->old_found : &l->found);
    on_step_done(l);
}

static void on_deadline(struct loop_timer *t)
{
    struct lint *l = container_of(t, struct lint, deadline);

    kill(-l->child.pid, SIGKILL); /* on_child_gone comes next */
    kill(l->child.pid, SIGKILL);  /* in case it had no time to lead its group */
}

static _Noreturn void be_tool(struct lint *l, int text, int out)
{
    char *env[] = {l->path_env, (char[]){"LC_ALL=C"}, (char[]){"HOME=/nonexistent"}, NULL};
    struct rlimit cpu = {CPU_LIMIT_S, CPU_LIMIT_S};
    sigset_t none;

    setpgid(0, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setrlimit(RLIMIT_CPU, &cpu);
    if (dup2(text, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 || chdir("/") < 0)
        _exit(127);
    if (geteuid() == 0 && l->args.uid != EDIT_NO_OWNER &&
        (setgroups(0, NULL) < 0 || setgid(l->args.gid) < 0 || setuid(l->args.uid) < 0))
        _exit(127);
    execve(l->program, (char *const *)l->checker->argv, env);
    _exit(127);
}

static fallible make_text(struct str text, int *ret_fd)
{
    own_fd fd = memfd_create("lint", MFD_CLOEXEC);

    if (fd < 0)
        return err_sys("memfd_create");
    TRY(fd_write_all(fd, text));
    if (lseek(fd, 0, SEEK_SET) < 0)
        return err_sys("lseek");
    *ret_fd = take_fd(&fd);
    return NULL;
}

static fallible watch(struct lint *l, pid_t pid)
{
    struct err *e = loop_child_start(l->loop, &l->child, pid, -1, on_child_gone);

    if (e) { /* nobody would hear of its end */
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
        return e;
    }
    loop_timer_start(l->loop, &l->deadline, l->args.timeout_ms, on_deadline);
    return loop_io_start(l->loop, &l->pipe_io, l->pipe, EPOLLIN, on_pipe_readable);
}

static fallible start_tool(struct lint *l)
{
    own_fd text = -1;
    own_fd out = -1;
    int ends[2];

    buf_reset(&l->output);
    TRY(make_text(l->on_old ? l->args.old_text : l->args.new_text, &text));
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_sys("pipe");
    l->pipe = ends[0];
    out = ends[1];
    if (fcntl(out, F_SETFL, 0) < 0) /* the tool writes the ordinary way */
        return err_sys("fcntl");
    pid_t pid = fork();
    if (pid < 0)
        return err_sys("fork");
    if (pid == 0)
        be_tool(l, text, out);
    return watch(l, pid);
}

static bool find_program(struct lint *l)
{
    struct str dirs = str_of(l->args.search_path), dir;

    while (dirs.len) {
        str_cut(&dirs, ':', &dir);
        int n = snprintf(l->program, sizeof l->program, STR_FMT "/%s", STR_ARG(dir),
                         l->checker->argv[0]);
        if (dir.len && n < (int)sizeof l->program && access(l->program, X_OK) == 0)
            return true;
    }
    return false;
}

/* Whatever goes wrong here means that nothing was found. */
static void run_step(struct lint *l)
{
    if (l->checker && l->checker->check) {
        l->checker->check(&l->a, l->on_old ? l->args.old_text : l->args.new_text,
                          l->on_old ? &l->old_found : &l->found);
    } else if (l->checker && find_program(l)) {
        struct err *e = start_tool(l);
        if (!e || l->child.io.loop) {
            err_free(e); /* without its output, its end is still heard */
            return;
        }
        err_free(e);
        stop_child(l);
    }
    loop_later(l->loop, &l->later, on_later);
}

fallible lint_start(struct loop *loop, const struct lint_args *args, struct lint **ret_lint)
{
    own(lint) l = mem_try(sizeof *l);

    if (!l)
        return err_no_memory();
    l->pipe = -1;
    l->loop = loop;
    l->args = *args;
    arena_init(&l->a, ARENA_BYTES);
    buf_init(&l->output, LINT_OUTPUT_BYTES);
    l->args.old_text = arena_copy(&l->a, args->old_text);
    l->args.new_text = arena_copy(&l->a, args->new_text);
    l->args.search_path = arena_cstr(&l->a, str_of(args->search_path));
    l->args.timeout_ms = args->timeout_ms ? args->timeout_ms : LINT_TIMEOUT_MS;
    TRY(arena_check(&l->a));
    snprintf(l->path_env, sizeof l->path_env, "PATH=%s", l->args.search_path);
    l->checker = lint_checker_of(args->path);
    run_step(l);
    *ret_lint = take(&l);
    return NULL;
}

/* The child is killed at once, so waiting for it takes no time worth speaking of. */
void lint_free(struct lint *l)
{
    if (!l)
        return;
    loop_later_cancel(&l->later);
    stop_child(l);
    if (l->child.io.loop) {
        loop_child_stop(&l->child);
        kill(-l->child.pid, SIGKILL);
        kill(l->child.pid, SIGKILL);
        while (waitpid(l->child.pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    buf_done(&l->output);
    arena_done(&l->a);
    free(l);
}
