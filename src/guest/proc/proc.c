// SPDX-License-Identifier: Apache-2.0
/* proc.c — see proc.h. */
#include "guest/proc/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

#define READ_SIZE    (64u << 10)
#define READS_IN_ROW 16
static void keep_words(struct proc *p, struct str text)
{
    if (text.len > PROC_LAST_WORDS)
        text = str_from(text, text.len - PROC_LAST_WORDS);
    if (p->words.len + text.len > PROC_LAST_WORDS)
        buf_consume(&p->words, p->words.len + text.len - PROC_LAST_WORDS);
    buf_add(&p->words, text);
}

/* One read; false when nothing is there or all is over. */
static bool read_once(struct proc *p)
{
    char page[READ_SIZE];
    ssize_t n = read(p->out, page, sizeof page);

    if (n <= 0) {
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            loop_io_stop(&p->io);
        return false;
    }
    keep_words(p, str_n(page, (size_t)n));
    if (p->on_text)
        p->on_text(p, str_n(page, (size_t)n));
    return p->out >= 0;
}

void proc_drain(struct proc *p)
{
    for (unsigned i = 0; i < READS_IN_ROW && p->out >= 0 && read_once(p); i++)
        ;
}

static void on_readable(struct loop_io *io)
{
    proc_drain(container_of(io, struct proc, io));
}

static void on_child(struct spawn_child *c)
{
    struct proc *p = container_of(c, struct proc, child);

    p->code = c->code;
    p->status = c->status;
    spawn_kill_session(p->pid); /* what it left running has lost its master */
    p->pid = 0;
    proc_drain(p);
    p->on_exit(p);
}

fallible proc_start(struct proc *p, struct loop *loop, const struct proc_config *config)
{
    int ends[2];

    p->loop = loop;
    p->out = -1;
    buf_init(&p->words, (size_t)2 * PROC_LAST_WORDS);
    own_fd nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing < 0)
        return err_sys("open /dev/null");
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys("pipe");
    own_fd read_end = ends[0], write_end = ends[1];
    const int fds[] = {config->in_fd > 0 ? config->in_fd : nothing,
                       config->out_fd > 0 ? config->out_fd : write_end,
                       config->quiet ? nothing : write_end, config->extra_fd};
    const struct spawn_plan plan = {
        .program = config->argv[0],
        .argv = (const char *const *)config->argv,
        .env = (const char *const *)config->env,
        .cwd = config->cwd,
        .user = config->user,
        .fds = fds,
        .fds_len = ARRAY_LEN(fds) - (config->extra_fd < 0),
        .dies_with_maker = true,
        .own = !config->works,
    };
    TRY(fd_set_nonblocking(read_end));
    TRY(spawn_start(loop, config->spawner, &plan, &p->child, on_child));
    p->pid = p->child.pid;
    p->out = take_fd(&read_end);
    struct err *e = loop_io_start(loop, &p->io, p->out, EPOLLIN, on_readable);
    if (e)
        proc_stop(p);
    return e;
}

void proc_stop(struct proc *p)
{
    if (p->pid > 0) {
        spawn_end(&p->child);
        p->pid = 0;
    }
    if (p->loop && p->out >= 0) {
        loop_io_stop(&p->io);
        own_close(take_fd(&p->out));
    }
    buf_done(&p->words);
}

void proc_signal(struct proc *p, int signo)
{
    if (p->pid > 0)
        killpg(p->pid, signo);
}

void proc_describe(const struct proc *p, char *out, size_t size)
{
    if (p->code == CLD_EXITED)
        snprintf(out, size, "exit status %d", p->status);
    else
        snprintf(out, size, "signal %d (%s)", p->status, strsignal(p->status));
}
