// SPDX-License-Identifier: Apache-2.0
/* launcher.c — the process: its socket, its children, its end. What it is asked is in serve_ops.c.
 */
#include "host/launcher/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/rng.h"
#include "host/launcher/serve.h"
#include "host/launcher/slice.h"

#define LAUNCHER_SOCKET "launcher"
#define LETTERS         8
#define LETTERS_TURN    32 /* then it is others' turn: ends of sandboxes, signals, the next server */
#define ANSWER_WAIT_MS  5000 /* for a server that reads; while one does not, we stand still */

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
    if (s->sock < 0) { /* who asked is gone */
        close_fds(fds);
        return;
    }
    struct err *lost = fd_wait(s->sock, POLLOUT, ANSWER_WAIT_MS);
    if (!lost)
        lost = fd_send(s->sock, str_n(reply, sizeof *reply), fds->fds, fds->count);
    if (lost) {
        log_warn("answer lost", KV_ERR(lost));
        shutdown(s->sock, SHUT_RDWR); /* it does not read, or is dead: we hear of it in a moment */
    }
    err_free(lost);
    close_fds(fds);
}

/* --- requests
 * ------------------------------------------------------------------------------------- */

static void on_server_gone(struct serve *s)
{
    loop_io_stop(&s->io);
    own_close_p(&s->sock);
    s->sock = -1;
    serve_settle_all(s);
    serve_jobs_unasked(s);
    LIST_EACH(b, &s->boxes, struct serve_box, link) {
        b->tell_when_dead = false;
        b->remove_unasked = true;
        b->killers = 0;
        if (b->state != NATIVE_WAITING)
            continue;
        struct err *e = box_kill(&s->host, &b->box); /* what nobody claimed is nobody's */
        if (e)
            log_warn("sandbox not killed", KV("id", b->box.id), KV_ERR(e));
        err_free(e);
        b->remove_when_dead = true;
    }
    s->ending = !s->policy->keep || !serve_any_alive(s);
}

struct letter {
    union { /* one byte more, to see that it is too long */
        struct native_request req;
        char bytes[sizeof(struct native_request) + 1];
    } m;
    struct serve_fds in;
    struct err *e; /* why it cannot be read, or done */
};

/* False: the server is gone. */
static bool launcher_receive(struct serve *s, struct letter *l)
{
    size_t n = 0;

    l->in.count = 0;
    l->e = fd_recv(s->sock, &l->m, sizeof l->m, &n, l->in.fds, ARRAY_LEN(l->in.fds), &l->in.count);
    if (!l->e && n == 0) {
        close_fds(&l->in);
        return false;
    }
    if (!l->e)
        l->e = native_check(&l->m, n);
    return true;
}

static void launcher_answer(struct serve *s, struct letter *l)
{
    struct serve_fds out = {.count = 0};
    struct native_reply reply = {.op = 0};
    struct err *e = l->e;
    bool later = false;

    if (!e) {
        reply.op = l->m.req.op;
        reply.tag = l->m.req.tag;
        e = serve_do(s, &l->m.req, &l->in, &reply, &out, &later);
    }
    if (!later || e)
        serve_answer(s, &reply, e, &out);
    close_fds(&l->in);
}

static bool more_waits(const struct serve *s)
{
    struct pollfd p = {.fd = s->sock, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

struct serve_post { /* what has come and was not done yet, in the order it came */
    struct letter letters[LETTERS];
    struct letter *at[LETTERS];
    unsigned count;
    bool gone; /* nothing comes any more */
};

/* A claim has a client that waits, an end makes room for others, a start takes a millisecond. */
static unsigned launcher_rank(const struct letter *l)
{
    enum native_op op = l->e ? 0 : (enum native_op)l->m.req.op;

    if (op == NATIVE_CLAIM)
        return 0;
    return op == NATIVE_KILL || op == NATIVE_REMOVE || op == NATIVE_PAUSE || op == NATIVE_RESUME ||
                   op == NATIVE_INSPECT
               ? 1
               : 2;
}

/* What concerns the same sandbox keeps its order. */
static bool may_overtake(const struct serve_post *p, unsigned i)
{
    for (unsigned k = 0; k < i; k++)
        if (p->at[k]->e || strcmp(p->at[k]->m.req.id, p->at[i]->m.req.id) == 0)
            return false;
    return true;
}

static struct letter *take_letter(struct serve_post *p)
{
    unsigned best = 0;

    for (unsigned i = 1; i < p->count; i++)
        if (launcher_rank(p->at[i]) < launcher_rank(p->at[best]) && may_overtake(p, i))
            best = i;
    struct letter *l = p->at[best];
    p->count--;
    memmove(&p->at[best], &p->at[best + 1], (p->count - best) * sizeof *p->at);
    p->at[p->count] = l; /* whose place is free now */
    return l;
}

static void on_request(struct loop_io *io)
{
    struct serve *s = container_of(io, struct serve, io);
    struct serve_post *p = s->post;
    unsigned left = LETTERS_TURN;

    p->count = 0;
    p->gone = false;
    for (unsigned i = 0; i < LETTERS; i++)
        p->at[i] = &p->letters[i];
    do {
        while (!p->gone && left && p->count < LETTERS && (left == LETTERS_TURN || more_waits(s))) {
            left--;
            p->gone = !launcher_receive(s, p->at[p->count]);
            p->count += !p->gone;
            if (p->count == 1 && launcher_rank(p->at[0]) < 2)
                break;
        }
        if (p->count)
            launcher_answer(s, take_letter(p));
    } while (p->count);
    if (p->gone)
        on_server_gone(s);
}

/* --- embryos
 * -------------------------------------------------------------------------------------- */

fallible serve_conceive(struct serve *s, struct box_embryo *ret_embryo)
{
    char claim[32];

    snprintf(claim, sizeof claim, "+%d", (int)getpid());
    return box_conceive(&s->host, claim, ret_embryo);
}

static void on_refill(struct loop_later *l)
{
    struct serve *s = container_of(l, struct serve, refill);
    unsigned want = s->policy->embryos;

    want = want < ARRAY_LEN(s->spare) ? want : ARRAY_LEN(s->spare);
    if (s->ending || s->barren || s->spare_count >= want) {
        box_tidy(&s->host);
        serve_net_linger(s);
        return;
    }
    struct err *e = serve_conceive(s, &s->spare[s->spare_count]);
    if (e) {
        s->barren = true; /* the next start makes its own, and tries again */
        log_warn("no embryo", KV_ERR(e));
        err_free(e);
        return;
    }
    s->spare_count++;
}

/* --- the next server
 * ------------------------------------------------------------------------------ */

/* A server that died is not in the way of the next, even if we have not come to its end: what it
 * asked last is done first. */
static void hear_out(struct serve *s)
{
    struct pollfd p = {.fd = s->sock, .events = POLLRDHUP};

    while (s->sock >= 0 && poll(&p, 1, 0) > 0)
        on_request(&s->io);
}

static fallible take_server(struct serve *s, int *conn)
{
    struct ucred who = {.uid = (uid_t)-1};
    socklen_t size = sizeof who;

    if (getsockopt(*conn, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0)
        return err_sys("see who it is");
    if (who.uid != s->policy->server && who.uid != geteuid())
        return err_new(ERR_FORBIDDEN, "user %u is not the server", who.uid);
    hear_out(s);
    if (s->sock >= 0)
        return err_new(ERR_BUSY, "the launcher has a server");
    TRY(loop_io_start(s->loop, &s->io, *conn, EPOLLIN, on_request));
    s->sock = take_fd(conn);
    s->ending = false;
    return NULL;
}

static void on_knock(struct loop_io *io)
{
    struct serve *s = container_of(io, struct serve, knock);
    own_fd conn = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC);

    if (conn < 0)
        return; /* it changed its mind */
    struct err *e = take_server(s, &conn);
    if (!e)
        return;
    struct native_reply reply = {
        .magic = NATIVE_MAGIC, .version = NATIVE_VERSION, .code = (uint32_t)err_code(e) + 1};
    snprintf(reply.text, sizeof reply.text, "%s", err_text(e));
    log_warn("server refused", KV_ERR(e));
    err_free(e);
    if (send(conn, &reply, sizeof reply, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        log_warn("refusal lost", KV("why", strerror(errno)));
}

/* Can files be renamed from one to the other? Not from mount to mount, be it of one disk. */
static fallible is_near(int a, int b, bool *ret_near)
{
    struct statx x, y;

    if (statx(a, "", AT_EMPTY_PATH, STATX_MNT_ID, &x) < 0 ||
        statx(b, "", AT_EMPTY_PATH, STATX_MNT_ID, &y) < 0)
        return err_sys("see where sockets lie");
    *ret_near = (x.stx_mask & y.stx_mask & STATX_MNT_ID) && x.stx_mnt_id == y.stx_mnt_id;
    return NULL;
}

static fallible open_sockets(struct serve *s)
{
    const char *given = s->policy->sockets;
    struct stat st;

    if (given && given[0] != '/')
        return err_new(ERR_INVALID, "directory of sockets '%s': wanted an absolute path", given);
    own_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return err_sys("open '/'");
    TRY(fd_make_dirs(given ? root : s->host.dir, given ? str_of(given + 1) : STR("run"),
                     given ? 0711 : 0700, &s->sockets));
    /* Nobody but us may put anything there: we connect by these names ourselves. */
    if (fstat(s->sockets, &st) < 0 || fchmod(s->sockets, given ? 0711 : 0700) < 0)
        return err_sys("close the directory of sockets to others");
    if (st.st_uid != geteuid())
        return err_new(ERR_FORBIDDEN, "the directory of sockets belongs to user %u, not to us",
                       st.st_uid);
    return is_near(s->sockets, s->host.boxes, &s->sockets_near);
}

/* --- life
 * ----------------------------------------------------------------------------------------- */

#define LOCK_WAIT_S 5 /* for one that is ending its sandboxes */

static void on_alarm(int signo)
{
    (void)signo; /* it interrupts, that is all */
}

/* A lock of the process, which embryos do not inherit: it ends with us, whoever lives on. (Of one
 * that was killed it may last for a moment longer, until a child it had just cloned left the table
 * of descriptors: seat.h.) */
static fallible wait_for_lock(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct sigaction interrupt = {.sa_handler = on_alarm};
    sigset_t alarm_only;

    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &alarm_only, NULL);
    sigaction(SIGALRM, &interrupt, NULL);
    alarm(LOCK_WAIT_S);
    int r = fcntl(fd, F_SETLKW, &lock), saved = errno;
    alarm(0);
    if (r == 0)
        return NULL;
    if (saved != EINTR)
        return err_sysno(saved, "lock the state");
    if (fcntl(fd, F_GETLK, &lock) < 0)
        return err_sys("lock the state");
    return err_new(ERR_BUSY, "process %d is the launcher of this state", (int)lock.l_pid);
}

static fallible lock_state(struct serve *s)
{
    s->lock = openat(s->host.dir, "launcher", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (s->lock < 0)
        return err_sys("open the lock of launchers");
    return wait_for_lock(s->lock);
}

static void on_term(struct loop_signal *sig)
{
    struct serve *s = container_of(sig, struct serve, term);

    s->ending = true;
}

/* A mount can be copied only from the namespace it is in, which is ours now. */
static fallible open_roots(struct launcher_policy *p)
{
    struct stat before, now;

    for (size_t i = 0; i < p->root_count; i++) {
        struct launcher_root *r = &p->roots[i];
        if (!r->modes)
            continue;
        int dir = open(r->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0 || fstat(dir, &now) < 0 || fstat(r->dir, &before) < 0)
            return err_sys("open root '%s'", r->path);
        if (before.st_dev != now.st_dev || before.st_ino != now.st_ino)
            return err_new(ERR_CONFLICT, "root '%s' is not the directory it was", r->path);
        r->dir = dir;
    }
    return NULL;
}

/* Every sandbox is born with a copy of our mounts and drops it. The groups we have by descriptor,
 * and of these there is a mount per controller. */
static void shed_mounts(const struct serve *s)
{
    if (!s->host.user)
        (void)umount2("/sys/fs/cgroup", MNT_DETACH); /* not there: the fewer */
}

static fallible serve_open(struct serve *s)
{
    TRY(loop_new(&clock_system, &s->loop));
    loop_forbid_threads(s->loop);
    TRY(box_host_open(&s->host, s->policy->state, rng_system()));
    if (s->policy->embryos) /* else nothing is kept ready */
        TRY(box_host_many(&s->host));
    shed_mounts(s);
    TRY(open_roots(&s->own)); /* an ordinary user is in a new namespace only now */
    TRY(lock_state(s));
    TRY(open_sockets(s));
    TRY(serve_adopt_all(s));
    TRY(loop_signal_start(s->loop, &s->term, SIGTERM, on_term));
    if (s->policy->keep) {
        TRY(serve_listen(s, SOCK_SEQPACKET, LAUNCHER_SOCKET, &s->listener));
        TRY(loop_io_start(s->loop, &s->knock, s->listener, EPOLLIN, on_knock));
    }
    serve_gone_open(s);
    serve_fresh_start(s);
    serve_log_start(s);
    return loop_io_start(s->loop, &s->io, s->sock, EPOLLIN, on_request);
}

static fallible serve_run(struct serve *s)
{
    TRY(serve_open(s));
    loop_later(s->loop, &s->refill, on_refill);
    while (!s->ending) {
        /* One embryo per idle turn, so that a request never waits for more than one. */
        bool short_of = !s->barren && s->spare_count < s->policy->embryos &&
                        s->spare_count < ARRAY_LEN(s->spare);
        bool again = short_of || box_is_untidy(&s->host);
        TRY(loop_turn(s->loop, again ? 0 : -1));
        if (again)
            loop_later(s->loop, &s->refill, on_refill);
    }
    return NULL;
}

static _Noreturn void launcher_main(const struct launcher_policy *policy, int sock)
{
    struct serve s = {.own = *policy,
                      .policy = &s.own,
                      .sock = sock,
                      .post = mem_new(sizeof *s.post),
                      .listener = -1,
                      .sockets = -1,
                      .lock = -1,
                      .gone = {.dir = -1, .tell = -1},
                      .hulls = {.dir = -1}};

    malloc_trim(0); /* the server's, freed before the fork: each sandbox begins as a copy of us */
    list_init(&s.boxes);
    map_init(&s.by_id);
    list_init(&s.jobs);
    rootfs_init(&s.fresh.layers);
    s.host.dir = s.host.boxes = s.host.ids = s.host.exe = s.host.look = s.host.cg.v2 = -1;
    s.host.names = s.host.bare = s.host.noted = -1;
    signal(SIGINT, SIG_IGN); /* a Ctrl-C is for the server, which tells us */
    signal(SIGPIPE, SIG_IGN);
    slice_short(false);
    struct err *e = NULL;
    if (setsid() < 0)
        e = err_sys("start a session");
    if (!e && geteuid() == 0 &&
        (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0))
        e = err_sys("keep mounts to ourselves");
    if (!e)
        e = serve_run(&s);
    if (e)
        log_error("launcher", KV_ERR(e));
    int code = e ? 1 : 0;
    err_free(e);
    if (!s.own.keep)
        serve_kill_all(&s);
    if (s.host.dir >= 0)
        serve_drop_all(&s);
    if (s.listener >= 0)
        unlinkat(s.sockets, LAUNCHER_SOCKET, 0);
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

fallible launcher_connect(const char *sockets, int *ret_sock)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    own_fd fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    int n = snprintf(a.sun_path, sizeof a.sun_path, "%s/" LAUNCHER_SOCKET, sockets);
    if (n >= (int)sizeof a.sun_path)
        return err_new(ERR_INVALID, "directory of sockets '%s': the path is too long", sockets);
    if (fd < 0)
        return err_sys("make a socket");
    if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0) {
        if (errno == ENOENT || errno == ECONNREFUSED)
            return err_new(ERR_NOT_FOUND, "no launcher at '%s'", a.sun_path);
        return err_sys("connect to '%s'", a.sun_path);
    }
    *ret_sock = take_fd(&fd);
    return NULL;
}
