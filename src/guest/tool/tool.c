// SPDX-License-Identifier: Apache-2.0
/* tool.c — see tool.h. */
#include "guest/tool/tool.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "base/mem.h"
#include "guest/proc/env.h"
#include "guest/proc/proc.h"
#include "loop/loop.h"

struct tool {
    struct proc proc;
    struct buf output;
    struct tool_result result;
    struct loop_timer deadline;
    void (*done)(void *arg, const struct tool_result *r);
    void *arg;
    struct loop_later later;
};

static void on_later(struct loop_later *l)
{
    struct tool *t = container_of(l, struct tool, later);

    buf_done(&t->output);
    free(t);
}

void tool_stop(struct tool *t)
{
    if (!t)
        return;
    loop_timer_stop(&t->deadline);
    proc_stop(&t->proc);
    loop_later(t->proc.loop, &t->later, on_later); /* we may be inside its callback */
}

static void on_text(struct proc *p, struct str text)
{
    struct tool *t = container_of(p, struct tool, proc);
    size_t room = t->output.limit_bytes - t->output.len;

    buf_add(&t->output, str_first(text, room));
    t->result.cut |= text.len > room || buf_failed(&t->output);
}

static void on_exit_of(struct proc *p)
{
    struct tool *t = container_of(p, struct tool, proc);

    t->result.exit_code = p->code == CLD_EXITED ? p->status : 128 + p->status;
    t->result.output = t->output.len ? buf_str(&t->output) : STR("");
    loop_timer_stop(&t->deadline);
    t->done(t->arg, &t->result);
    tool_stop(t);
}

static void on_deadline(struct loop_timer *timer)
{
    struct tool *t = container_of(timer, struct tool, deadline);

    t->result.timed_out = true;
    proc_signal(&t->proc, SIGKILL); /* on_exit_of comes next */
}

static fallible make_input(struct str input, int *ret_fd)
{
    own_fd fd = memfd_create("input", MFD_CLOEXEC);

    if (fd < 0)
        return err_sys("memfd_create");
    TRY(fd_write_all(fd, input));
    if (lseek(fd, 0, SEEK_SET) < 0)
        return err_sys("lseek");
    *ret_fd = take_fd(&fd);
    return NULL;
}

static fallible tool_start(struct tool *t, struct loop *loop, const struct tool_config *c)
{
    char *const *env = (char *const *)c->env;
    struct arena a __attribute__((cleanup(arena_done)));
    own_fd input = -1;
    const char *program;
    size_t n = 0;

    arena_init(&a, 64u << 10);
    while (c->argv[n])
        n++;
    char **argv = arena_alloc(&a, (n + 1) * sizeof *argv);
    if (!argv)
        return arena_check(&a);
    memcpy(argv, c->argv, (n + 1) * sizeof *argv);
    TRY(proc_find_program(&a, argv[0], env, &program));
    argv[0] = (char *)program;
    if (c->input.len)
        TRY(make_input(c->input, &input));
    struct proc_config config = {
        .argv = argv,
        .env = env,
        .cwd = c->cwd,
        .user = c->user,
        .spawner = c->spawner,
        .in_fd = input,
        .extra_fd = -1,
        .quiet = !c->with_errors,
    };
    return proc_start(&t->proc, loop, &config);
}

fallible tool_run(struct loop *loop, const struct tool_config *c, struct tool **ret_tool)
{
    struct tool *t = mem_try(sizeof *t);

    if (!t)
        return err_no_memory();
    *t = (struct tool){.proc = {.on_text = on_text, .on_exit = on_exit_of, .out = -1},
                       .done = c->done,
                       .arg = c->arg};
    buf_init(&t->output, c->output_bytes ? c->output_bytes : TOOL_OUTPUT_BYTES);
    struct err *e = tool_start(t, loop, c);
    if (e) {
        buf_done(&t->proc.words);
        free(t);
        return e;
    }
    loop_timer_start(loop, &t->deadline, c->limit_ms ? c->limit_ms : TOOL_LIMIT_MS, on_deadline);
    *ret_tool = t;
    return NULL;
}
