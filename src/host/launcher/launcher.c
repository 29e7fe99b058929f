// SPDX-License-Identifier: Apache-2.0
/* launcher.c — the process: its socket, its children, its end. Requests are in ops.c. */
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
#include "host/launcher/inner.h"
#include "host/launcher/job.h"
#include "host/launcher/names.h"
#include "host/launcher/reuse/reuse.h"
#include "host/launcher/slice.h"
#include "host/launcher/start.h"

#define LAUNCHER_SOCKET "launcher"
#define REQUESTS        8
#define REQUESTS_TURN                                                                              \
    32 /* then it is others' turn: ends of sandboxes, signals, the next server                     \
        */
#define ANSWER_WAIT_MS 5000 /* the bound of this wait; until then the launcher stands still */

/* --- answers --- */

static void close_fds(struct launcher_fds *f)
{
    for (size_t i = 0; i < f->count; i++)
        own_close_p(&f->fds[i]);
    f->count = 0;
}

void launcher_answer(struct launcher *l, struct native_reply *reply, struct err *e,
                     struct launcher_fds *fds)
{
    reply->magic = NATIVE_MAGIC;
    reply->version = NATIVE_VERSION;
    if (e) {
        reply->code = (uint32_t)err_code(e) + 1;
        snprintf(reply->text, sizeof reply->text, "%s", err_text(e));
        err_free(e);
    }
    if (l->sock < 0) { /* the server that asked is gone */
        close_fds(fds);
        return;
    }
    struct err *lost = fd_wait(l->sock, POLLOUT, ANSWER_WAIT_MS);
    if (!lost)
        lost = fd_send(l->sock, str_n(reply, sizeof *reply), fds->fds, fds->count);
    if (lost) {
        log_warn("answer lost", KV_ERR(lost));
        shutdown(l->sock, SHUT_RDWR); /* it does not read, or is dead: on_request() hears of it */
    }
    err_free(lost);
    close_fds(fds);
}

/* --- requests --- */

static void on_server_gone(struct launcher *l)
{
    loop_io_stop(&l->io);
    own_close_p(&l->sock);
    l->sock = -1;
    launcher_settle_all(l);
    launcher_jobs_unasked(l);
    LIST_EACH(b, &l->boxes, struct launcher_box, link) {
        b->killers = 0;
        b->removal = b->removal ? REMOVAL_UNASKED : REMOVAL_NONE;
        if (b->state != NATIVE_WAITING)
            continue;
        struct err *e = box_kill(&l->host, &b->box); /* no later server can claim it */
        if (e)
            log_warn("sandbox not killed", KV("id", b->box.id), KV_ERR(e));
        err_free(e);
        b->removal = REMOVAL_UNASKED;
    }
    l->ending = !l->policy->persist || !launcher_any_alive(l);
}

struct request {
    union { /* one byte more, to see that it is too long */
        struct native_request req;
        char bytes[sizeof(struct native_request) + 1];
    } m;
    struct launcher_fds in;
    struct err *e; /* why it cannot be read, or done */
};

/* False: the server is gone. */
static bool request_receive(struct launcher *l, struct request *r)
{
    size_t n = 0;

    r->in.count = 0;
    r->e = fd_recv(l->sock, &r->m, sizeof r->m, &n, r->in.fds, ARRAY_LEN(r->in.fds), &r->in.count);
    if (!r->e && n == 0) {
        close_fds(&r->in);
        return false;
    }
    if (!r->e)
        r->e = native_check(&r->m, n);
    return true;
}

static void request_answer(struct launcher *l, struct request *r)
{
    struct launcher_fds out = {.count = 0};
    struct native_reply reply = {.op = 0};
    struct err *e = r->e;
    bool later = false;

    if (!e) {
        reply.op = r->m.req.op;
        reply.tag = r->m.req.tag;
        e = launcher_do(l, &r->m.req, &r->in, &reply, &out, &later);
    }
    if (!later || e)
        launcher_answer(l, &reply, e, &out);
    close_fds(&r->in);
}

static bool more_waits(const struct launcher *l)
{
    struct pollfd p = {.fd = l->sock, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

struct launcher_inbox { /* what has come and was not done yet, in the order it came */
    struct request requests[REQUESTS];
    struct request *at[REQUESTS];
    unsigned count;
    bool gone; /* nothing comes any more */
};

/* A claim has a client that waits, an end makes room for other sandboxes, a start takes a
 * millisecond. */
static unsigned request_rank(const struct request *r)
{
    enum native_op op = r->e ? 0 : (enum native_op)r->m.req.op;

    if (op == NATIVE_CLAIM)
        return 0;
    return op == NATIVE_KILL || op == NATIVE_REMOVE || op == NATIVE_PAUSE || op == NATIVE_RESUME ||
                   op == NATIVE_INSPECT
               ? 1
               : 2;
}

/* Requests for the same sandbox keep their order. */
static bool may_overtake(const struct launcher_inbox *p, unsigned i)
{
    for (unsigned k = 0; k < i; k++)
        if (p->at[k]->e || strcmp(p->at[k]->m.req.id, p->at[i]->m.req.id) == 0)
            return false;
    return true;
}

static struct request *request_take(struct launcher_inbox *p)
{
    unsigned best = 0;

    for (unsigned i = 1; i < p->count; i++)
        if (request_rank(p->at[i]) < request_rank(p->at[best]) && may_overtake(p, i))
            best = i;
    struct request *r = p->at[best];
    p->count--;
    memmove(&p->at[best], &p->at[best + 1], (p->count - best) * sizeof *p->at);
    p->at[p->count] = r; /* its place is free now */
    return r;
}

static void on_request(struct loop_io *io)
{
    struct launcher *l = container_of(io, struct launcher, io);
    struct launcher_inbox *p = l->inbox;
    unsigned left = REQUESTS_TURN;

    p->count = 0;
    p->gone = false;
    for (unsigned i = 0; i < REQUESTS; i++)
        p->at[i] = &p->requests[i];
    do {
        while (!p->gone && left && p->count < REQUESTS &&
               (left == REQUESTS_TURN || more_waits(l))) {
            left--;
            p->gone = !request_receive(l, p->at[p->count]);
            p->count += !p->gone;
            if (p->count == 1 && request_rank(p->at[0]) < 2)
                break;
        }
        if (p->count)
            request_answer(l, request_take(p));
    } while (p->count);
    if (p->gone)
        on_server_gone(l);
}

/* --- the next server --- */

/* A dead server does not keep the next one out, even before its end was reported. Its last requests
 * are done first. */
static void finish_dead_server(struct launcher *l)
{
    struct pollfd p = {.fd = l->sock, .events = POLLRDHUP};

    while (l->sock >= 0 && poll(&p, 1, 0) > 0)
        on_request(&l->io);
}

static fallible take_server(struct launcher *l, int *conn)
{
    struct ucred who = {.uid = (uid_t)-1};
    socklen_t size = sizeof who;

    if (getsockopt(*conn, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0)
        return err_sys("see who it is");
    if (who.uid != l->policy->server && who.uid != geteuid())
        return err_new(ERR_FORBIDDEN, "user %u is not the server", who.uid);
    finish_dead_server(l);
    if (l->sock >= 0)
        return err_new(ERR_BUSY, "the launcher has a server");
    TRY(loop_io_start(l->loop, &l->io, *conn, EPOLLIN, on_request));
    l->sock = take_fd(conn);
    l->ending = false;
    return NULL;
}

static void on_next_server(struct loop_io *io)
{
    struct launcher *l = container_of(io, struct launcher, next_server);
    own_fd conn = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC);

    if (conn < 0)
        return; /* it changed its mind */
    struct err *e = take_server(l, &conn);
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

static fallible open_sockets(struct launcher *l)
{
    const char *given = l->policy->sockets;
    struct stat st;

    if (given && given[0] != '/')
        return err_new(ERR_INVALID, "directory of sockets '%s': wanted an absolute path", given);
    own_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return err_sys("open '/'");
    TRY(fd_make_dirs(given ? root : l->host.dir, given ? str_of(given + 1) : STR("run"),
                     given ? 0711 : 0700, &l->sockets));
    /* No other user may put anything there: the launcher connects by these names itself. */
    if (fstat(l->sockets, &st) < 0 || fchmod(l->sockets, given ? 0711 : 0700) < 0)
        return err_sys("close the directory of sockets to others");
    if (st.st_uid != geteuid())
        return err_new(ERR_FORBIDDEN, "the directory of sockets belongs to user %u, not to us",
                       st.st_uid);
    return is_near(l->sockets, l->host.boxes, &l->sockets_near);
}

/* --- life --- */

#define LOCK_WAIT_S 5 /* for one that is ending its sandboxes */

static void on_alarm(int signo)
{
    (void)signo; /* it interrupts, that is all */
}

/* A lock of the process, which spares do not inherit: it ends with the launcher. After a kill it
 * may last for a moment longer, until a child that was just cloned has left the table of
 * descriptors (fd_slot.h). */
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

static fallible lock_state(struct launcher *l)
{
    l->lock = openat(l->host.dir, "launcher", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (l->lock < 0)
        return err_sys("open the lock of launchers");
    return wait_for_lock(l->lock);
}

static void on_term(struct loop_signal *sig)
{
    struct launcher *l = container_of(sig, struct launcher, term);

    l->ending = true;
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
static void shed_mounts(const struct launcher *l)
{
    if (!l->host.user)
        (void)umount2("/sys/fs/cgroup", MNT_DETACH); /* not there: the fewer */
}

static fallible launcher_open(struct launcher *l)
{
    TRY(loop_new(&clock_system, &l->loop));
    loop_forbid_threads(l->loop);
    TRY(box_host_open(&l->host, l->policy->state, rng_system()));
    if (l->policy->spares) /* else nothing is kept ready */
        TRY(box_host_many(&l->host));
    if (l->host.many && reuse_by_default())
        l->host.reuse = reuse_new(&l->host, l->loop);
    shed_mounts(l);
    TRY(open_roots(&l->own)); /* an ordinary user is in a new namespace only now */
    TRY(lock_state(l));
    TRY(open_sockets(l));
    TRY(launcher_adopt_all(l));
    TRY(loop_signal_start(l->loop, &l->term, SIGTERM, on_term));
    if (l->policy->persist) {
        TRY(launcher_listen(l, SOCK_SEQPACKET, LAUNCHER_SOCKET, &l->listener));
        TRY(loop_io_start(l->loop, &l->next_server, l->listener, EPOLLIN, on_next_server));
    }
    deleter_open(l);
    host_layers_start(l);
    launcher_log_start(l);
    return loop_io_start(l->loop, &l->io, l->sock, EPOLLIN, on_request);
}

static fallible launcher_run(struct launcher *l)
{
    TRY(launcher_open(l));
    while (!l->ending) {
        bool more = spares_refill(l);
        TRY(loop_turn(l->loop, more ? 0 : -1));
    }
    return NULL;
}

static _Noreturn void launcher_main(const struct launcher_policy *policy, int sock)
{
    struct launcher l = {.own = *policy,
                         .policy = &l.own,
                         .sock = sock,
                         .inbox = mem_new(sizeof *l.inbox),
                         .listener = -1,
                         .sockets = -1,
                         .lock = -1,
                         .deleter = {.dir = -1, .tell = -1}};

    malloc_trim(0); /* the server's, freed before the fork: each sandbox begins as a copy of us */
    list_init(&l.boxes);
    map_init(&l.by_id);
    list_init(&l.jobs);
    rootfs_init(&l.host_layers.layers);
    l.host.dir = l.host.boxes = l.host.ids = l.host.exe = l.host.look = l.host.cg.v2 = -1;
    l.host.names = l.host.bare = l.host.noted = -1;
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
        e = launcher_run(&l);
    if (e)
        log_error("launcher", KV_ERR(e));
    int code = e ? 1 : 0;
    err_free(e);
    if (!l.own.persist)
        launcher_kill_all(&l);
    if (l.host.dir >= 0)
        launcher_drop_all(&l);
    if (l.listener >= 0)
        unlinkat(l.sockets, LAUNCHER_SOCKET, 0);
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
