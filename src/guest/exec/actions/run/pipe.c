// SPDX-License-Identifier: Apache-2.0
/* pipe.c — input of a shell's command through a fifo, as from a pipe: it ends, nothing echoes it,
 * and what the command leaves unread is lost. We hold both ends, so that opening never waits and
 * writing never fails. A client sends the end only when the command has the fifo open. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "guest/exec/actions/run/exec_shell.h"
#include "guest/exec/inner.h"
#include "guest/spawn/spawn.h"
#include "loop/loop.h"
#include "net/server.h"

struct exec_shell_pipe {
    struct exec_shell *shell;
    struct loop_io io; /* while req waits */
    int fd;
    bool end;
    struct str left; /* of req's */
    struct http_req *req;
    char path[];
};

fallible exec_shell_pipe_new(struct exec_shell *s, struct str path)
{
    const struct proc_user *user = s->exec->run_as;
    struct exec_shell_pipe *p = mem_try(sizeof *p + path.len + 1);
    struct stat st;

    if (!p)
        return err_no_memory();
    *p = (struct exec_shell_pipe){.shell = s, .fd = -1};
    memcpy(p->path, path.p, path.len);
    s->pipe = p;
    if (mkfifo(p->path, 0600) < 0) {
        p->path[0] = '\0'; /* not ours */
        return err_recode(err_sys("'pipe'"), ERR_UNPROCESSABLE);
    }
    p->fd = open(p->path, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (p->fd >= 0 && fstat(p->fd, &st) == 0 && !S_ISFIFO(st.st_mode))
        return err_sysno(EEXIST, "'pipe'"); /* put there by another program, since then */
    if (p->fd < 0 || (user && fchown(p->fd, user->uid, user->gid) < 0))
        return err_sys("'pipe'");
    return NULL;
}

static void pipe_stop(struct exec_shell_pipe *p)
{
    loop_io_stop(&p->io);
    if (p->req)
        p->req->on_gone = NULL;
    p->req = NULL;
}

void exec_shell_pipe_close(struct exec_shell *s)
{
    struct exec_shell_pipe *p = take(&s->pipe);

    if (!p)
        return;
    if (p->req)
        http_reply_err(p->req, err_new(ERR_CLOSED, "the shell was closed"));
    pipe_stop(p);
    unlink(p->path);
    own_close(p->fd);
    free(p);
}

static void on_pipe_gone(struct http_req *req)
{
    pipe_stop(req->user);
    http_reply_abort(req);
}

static void on_pipe_ready(struct loop_io *io)
{
    struct exec_shell_pipe *p = container_of(io, struct exec_shell_pipe, io);
    struct http_req *req = p->req;
    ssize_t n = 0;

    while (p->left.len && (n = write(p->fd, p->left.p, p->left.len)) > 0)
        p->left = str_from(p->left, (size_t)n);
    if (n < 0)
        return; /* it is full */
    pipe_stop(p);
    if (p->end)
        own_close(take_fd(&p->fd));
    shells_answer(req, 200, p->shell);
}

fallible exec_shell_pipe_send(struct exec_shell *s, struct http_req *req, struct str bytes,
                              bool end)
{
    struct exec_shell_pipe *p = s->pipe;

    if (p->req || p->fd < 0)
        return err_new(ERR_CONFLICT, "input is on its way, or has ended");
    unlink(p->path); /* those that may open it have */
    p->path[0] = '\0';
    TRY(loop_io_start(s->exec->loop, &p->io, p->fd, EPOLLOUT, on_pipe_ready));
    p->req = req;
    p->left = bytes;
    p->end = end;
    req->user = p;
    req->on_gone = on_pipe_gone;
    return NULL;
}
