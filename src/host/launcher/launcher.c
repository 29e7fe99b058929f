// SPDX-License-Identifier: Apache-2.0
/* launcher.c — the process: its socket, its children, its end. What it is asked is in serve_ops.c.
 */
#include "host/launcher/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/own.h"
#include "base/rng.h"
#include "host/launcher/serve.h"

/* --- answers
 * -------------------------------------------------------------------------------------- */

static void close_fds(struct serve_fds *f)
{
    for (size_t i = 0; i < f->count; i++)
        own_close_p(&f->fds[i]);
    f->count = 0;
}

void serve_answer(struct serve *s, struct native_reply *reply, struct err *e, struct serve_fds *fds)
{
    reply->magic = NATIVE_MAGIC;
    reply->version = NATIVE_VERSION;
    if (e) {
        reply->code = (uint32_t)err_code(e) + 1;
        snprintf(reply->text, sizeof reply->text, "%s", err_text(e));
        err_free(e);
    }
    struct err *lost = fd_send(s->sock, str_n(reply, sizeof *reply), fds->fds, fds->count);
    if (lost)
        log_warn("answer lost", KV_ERR(lost));
    err_free(lost);
    close_fds(fds);
}

/* --- requests
 * ------------------------------------------------------------------------------------- */

static void on_server_gone(struct serve *s)
{
    loop_io_stop(&s->io);
    s->ending = true;
    LIST_EACH(b, &s->boxes, struct serve_box, link)
        if (b->state != NATIVE_EXITED)
            err_free(box_kill(&s->host, &b->box)); /* the dead are counted in on_box_dead */
    loop_stop(s->loop);
}

static void on_request(struct loop_io *io)
{
    struct serve *s = container_of(io, struct serve, io);
    union { /* one byte more, to see that it is too long */
        struct native_request req;
        char bytes[sizeof(struct native_request) + 1];
    } m;
    struct serve_fds in = {.count = 0}, out = {.count = 0};
    struct native_reply reply = {.op = 0};
    size_t n = 0;
    bool later = false;

    struct err *e = fd_recv(s->sock, &m, sizeof m, &n, in.fds, ARRAY_LEN(in.fds), &in.count);
    if (!e && n == 0) {
        close_fds(&in);
        on_server_gone(s);
        return;
    }
    if (!e)
        e = native_check(&m, n);
    if (!e) {
        reply.op = m.req.op;
        reply.tag = m.req.tag;
        e = serve_do(s, &m.req, &in, &reply, &out, &later);
    }
    close_fds(&in);
    if (later && !e)
        return;
    serve_answer(s, &reply, e, &out);
}

/* --- embryos
 * -------------------------------------------------------------------------------------- */

static void on_refill(struct loop_later *l)
{
    struct serve *s = container_of(l, struct serve, refill);
    unsigned want = s->policy->embryos;

    want = want < ARRAY_LEN(s->spare) ? want : ARRAY_LEN(s->spare);
    if (s->ending || s->spare_count >= want)
        return;
    char claim[32];
    snprintf(claim, sizeof claim, "+%d", (int)getpid());
    struct err *e = box_conceive(&s->host, claim, true, &s->spare[s->spare_count]);
    if (e) {
        log_warn("no embryo", KV_ERR(e)); /* the next start makes its own, and tries again */
        err_free(e);
        return;
    }
    s->spare_count++;
}

/* --- life
 * ----------------------------------------------------------------------------------------- */

static void drop_all(struct serve *s)
{
    while (s->spare_count)
        box_drop(&s->host, &s->spare[--s->spare_count]);
    LIST_EACH(b, &s->boxes, struct serve_box, link) {
        siginfo_t info;
        loop_child_stop(&b->child);
        if (b->state != NATIVE_EXITED)
            while (waitid(P_PID, (id_t)b->box.pid, &info, WEXITED) < 0 && errno == EINTR)
                ;
        struct err *e = box_remove(&s->host, &b->box, false);
        if (e)
            log_warn("sandbox not removed", KV("id", b->box.id), KV_ERR(e));
        err_free(e);
        list_del(&b->link);
        free(b);
    }
}

static fallible serve_run(struct serve *s)
{
    TRY(loop_new(&clock_system, &s->loop));
    loop_forbid_threads(s->loop);
    TRY(box_host_open(&s->host, s->policy->state, rng_system()));
    TRY(loop_io_start(s->loop, &s->io, s->sock, EPOLLIN, on_request));
    loop_later(s->loop, &s->refill, on_refill);
    while (!s->ending) {
        /* One embryo per idle turn, so that a request never waits for more than one. */
        bool short_of = s->spare_count < s->policy->embryos && s->spare_count < ARRAY_LEN(s->spare);
        TRY(loop_turn(s->loop, short_of ? 0 : -1));
        if (short_of)
            loop_later(s->loop, &s->refill, on_refill);
    }
    return NULL;
}

/* A mount can be copied only from the namespace it is in, which is ours now. */
static fallible open_roots(struct launcher_policy *p)
{
    struct stat before, now;

    for (size_t i = 0; i < p->root_count; i++) {
        struct launcher_root *r = &p->roots[i];
        int dir = open(r->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0 || fstat(dir, &now) < 0 || fstat(r->dir, &before) < 0)
            return err_sys("open root '%s'", r->path);
        if (before.st_dev != now.st_dev || before.st_ino != now.st_ino)
            return err_new(ERR_CONFLICT, "root '%s' is not the directory it was", r->path);
        r->dir = dir;
    }
    return NULL;
}

static _Noreturn void launcher_main(const struct launcher_policy *policy, int sock)
{
    struct launcher_policy own = *policy;
    struct serve s = {.policy = &own, .sock = sock};

    list_init(&s.boxes);
    s.host.dir = s.host.boxes = s.host.ids = s.host.exe = s.host.cg.v2 = -1;
    signal(SIGINT, SIG_IGN); /* a Ctrl-C is for the server, which tells us */
    signal(SIGPIPE, SIG_IGN);
    struct err *e = NULL;
    if (setsid() < 0)
        e = err_sys("start a session");
    if (!e && geteuid() == 0 &&
        (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0))
        e = err_sys("keep mounts to ourselves");
    if (!e)
        e = open_roots(&own);
    if (!e)
        e = serve_run(&s);
    if (e)
        log_error("launcher", KV_ERR(e));
    int code = e ? 1 : 0;
    err_free(e);
    if (s.host.dir >= 0)
        drop_all(&s);
    _exit(code);
}

fallible launcher_fork(const struct launcher_policy *policy, int *ret_sock, pid_t *ret_pid)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys("make a socket pair");
    pid_t pid = fork();
    if (pid == 0) {
        close(pair[0]);
        launcher_main(policy, pair[1]);
    }
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return err_sys("fork the launcher");
    }
    *ret_sock = pair[0];
    *ret_pid = pid;
    return NULL;
}
