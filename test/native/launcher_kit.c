// SPDX-License-Identifier: Apache-2.0
/* launcher_kit.c — see launcher_kit.h. */
#include "test/native/launcher_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/own.h"
#include "test/native/kit.h"
#include "test/program.h"
#include "test/test.h"

#define WAIT_MS 60000

void rig_prepare(struct rig *r, unsigned spares)
{
    static const char *const images[] = {"/"};

    kit_need_root();
    *r = (struct rig){.ready = -1, .control = -1};
    own_fd dir = test_dir_fd();
    CHECK_INT(mkdirat(dir, "shared", 0755), 0);
    CHECK_INT(mkdirat(dir, "mine", 0755), 0);
    snprintf(r->state, sizeof r->state, "%s/state", test_dir());
    snprintf(r->shared, sizeof r->shared, "%s/shared", test_dir());
    snprintf(r->mine, sizeof r->mine, "%s/mine", test_dir());
    r->policy = (struct launcher_policy){
        .state = r->state,
        .roots = {{r->shared, openat(dir, "shared", O_PATH | O_CLOEXEC),
                   1u << NATIVE_RO | 1u << NATIVE_OVERLAY},
                  {r->mine, openat(dir, "mine", O_PATH | O_CLOEXEC),
                   1u << NATIVE_RO | 1u << NATIVE_RW | 1u << NATIVE_OVERLAY}},
        .root_count = 2,
        .images = images,
        .image_count = 1,
        .ceiling = {.memory_bytes = 1u << 30, .pids = 500, .cpu_milli = 2000, .nofile = 4096},
        .most = 8,
        .spares = spares};
    close(take_fd(&dir));
    r->fds = test_open_fds();
    CHECK_INT(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
}

void rig_fork(struct rig *r)
{
    CHECK_OK(launcher_fork(&r->policy, &r->sock, &r->pid));
}

void rig_open(struct rig *r, unsigned spares)
{
    rig_prepare(r, spares);
    rig_fork(r);
}

void rig_kill(struct rig *r)
{
    CHECK_INT(kill(r->pid, SIGKILL), 0);
    CHECK_INT(program_wait(r->pid), 128 + SIGKILL);
    own_close_p(&r->ready);
    own_close_p(&r->control);
    r->ready = r->control = -1;
    close(r->sock);
}

void rig_reap(void)
{
    while (waitpid(-1, NULL, __WALL) > 0)
        ;
    CHECK_INT(errno, ECHILD);
}

void rig_close(struct rig *r)
{
    own_close_p(&r->ready);
    own_close_p(&r->control);
    close(r->sock);
    CHECK_INT(program_wait(r->pid), 0);
    CHECK_INT(test_open_fds(), r->fds);
    kit_check_empty("state/box");
    kit_check_empty("state/ids");
    kit_check_empty("state/gone");
    kit_check_empty(r->policy.sockets ? "sockets" : "state/run");
}

struct native_request rig_request(enum native_op op, const char *id)
{
    struct native_request r = {
        .magic = NATIVE_MAGIC, .version = NATIVE_VERSION, .op = op, .argc = 1, .hostname = "box"};

    snprintf(r.id, sizeof r.id, "%s", id);
    return r;
}

int rig_block(const char *const *argv, const char *const *env)
{
    int fd = memfd_create("block", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    CHECK(fd >= 0);
    for (; *argv; argv++)
        CHECK_OK(fd_write_all(fd, str_n(*argv, strlen(*argv) + 1)));
    for (; *env; env++)
        CHECK_OK(fd_write_all(fd, str_n(*env, strlen(*env) + 1)));
    CHECK_INT(fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
    return fd;
}

static void receive(struct rig *r, struct native_reply *reply, int fds[2])
{
    size_t n = 0, count = 0;

    fds[0] = fds[1] = -1;
    CHECK_OK(fd_wait(r->sock, POLLIN, WAIT_MS));
    CHECK_OK(fd_recv(r->sock, reply, sizeof *reply, &n, fds, 2, &count));
    CHECK_INT(n, sizeof *reply);
    CHECK_INT(reply->magic, NATIVE_MAGIC);
}

void rig_ask(struct rig *r, const struct native_request *req, const int *send, size_t count,
             struct native_reply *ret_reply, int ret_fds[2])
{
    CHECK_OK(fd_send(r->sock, str_n(req, sizeof *req), send, count));
    receive(r, ret_reply, ret_fds);
}

void rig_ok(struct rig *r, const struct native_request *req)
{
    struct native_reply reply;
    int fds[2];

    rig_ask(r, req, NULL, 0, &reply, fds);
    if (reply.code)
        FAIL("code %d: %s", (int)reply.code, reply.text);
    own_close_p(&fds[0]);
    own_close_p(&fds[1]);
}

struct native_reply rig_tell(struct rig *r, enum native_op op, const char *id)
{
    struct native_request req = rig_request(op, id);
    struct native_reply reply;
    int fds[2];

    rig_ask(r, &req, NULL, 0, &reply, fds);
    CHECK_STR(str_of(reply.text), "");
    own_close_p(&fds[0]);
    own_close_p(&fds[1]);
    return reply;
}

void rig_refused(struct rig *r, const struct native_request *req, const int *send, size_t count,
                 enum err_code code, const char *part)
{
    struct native_reply reply;
    int fds[2];

    rig_ask(r, req, send, count, &reply, fds);
    CHECK_HAS(str_of(reply.text), str_of(part));
    CHECK_INT(reply.code, (unsigned)code + 1);
    CHECK_INT(fds[0], -1);
    CHECK_INT(fds[1], -1);
}

void rig_start(struct rig *r, const char *id)
{
    struct native_request req = rig_request(NATIVE_START, id);
    struct native_reply reply;
    int fds[2];
    char byte;

    own_close_p(&r->ready);
    own_close_p(&r->control);
    own_fd block = rig_block(ARGS("action-server", "--no-auth"), ARGS("PATH=/usr/bin:/bin"));
    req.argc = 1;
    req.envc = 1;
    rig_ask(r, &req, &block, 1, &reply, fds);
    CHECK_STR(str_of(reply.text), "");
    r->ready = fds[0];
    r->control = fds[1];
    CHECK_OK(fd_wait(r->ready, POLLIN, WAIT_MS));
    CHECK_INT(read(r->ready, &byte, 1), 1);
}

void rig_check_answer(const struct rig *r, const char *id, const char *request, const char *part,
                      char *text, size_t size)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    snprintf(a.sun_path, sizeof a.sun_path, "%.70s%s/%s.s",
             r->policy.sockets ? r->policy.sockets : r->state, r->policy.sockets ? "" : "/run", id);
    own_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    CHECK_OK(fd_write_all(fd, str_of(request)));
    size_t len = 0;
    text[0] = '\0';
    /* In pieces, maybe. */
    for (ssize_t n = 1; n > 0 && !(strstr(text, "\r\n\r\n") && strstr(text, part));
         text[len] = '\0') {
        CHECK_OK(fd_wait(fd, POLLIN, WAIT_MS));
        n = read(fd, text + len, size - 1 - len);
        len += n > 0 ? (size_t)n : 0;
    }
    CHECK_HAS(str_of(text), "HTTP/1.1 200");
    CHECK_HAS(str_of(text), part);
}

void rig_check_answers(const struct rig *r, const char *id)
{
    char text[512];

    rig_check_answer(r, id, "GET /alive HTTP/1.1\r\nHost: x\r\n\r\n", "", text, sizeof text);
}

/* The server's own calls must not be the ones that fail: the kernel is asked past the counter. */
static long raw_send(int sock, const struct native_request *req, int fd)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof fd)];
    } c = {.head = {
               .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct iovec v = {(void *)req, sizeof *req};
    struct msghdr m = {.msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = fd < 0 ? NULL : &c,
                       .msg_controllen = fd < 0 ? 0 : sizeof c};

    memcpy(CMSG_DATA(&c.head), &fd, sizeof fd);
    return __real_syscall(SYS_sendmsg, sock, &m, MSG_NOSIGNAL);
}

bool rig_ask_with_fault(struct rig *r, unsigned n, const struct native_request *req, int fd,
                        struct native_reply *ret_reply)
{
    struct iovec v = {ret_reply, sizeof *ret_reply};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1}; /* no room for descriptors: dropped */
    struct pollfd p = {.fd = r->sock, .events = POLLIN};

    fault_at(n);
    CHECK_INT(raw_send(r->sock, req, fd), sizeof *req);
    CHECK_INT(__real_poll(&p, 1, WAIT_MS), 1);
    long got = __real_syscall(SYS_recvmsg, r->sock, &m, 0);
    fault_at(0);
    return got == sizeof *ret_reply;
}

void rig_renew(struct rig *r)
{
    close(r->sock);
    program_wait(r->pid);
    rig_fork(r);
    struct native_reply list = rig_tell(r, NATIVE_LIST, "");
    for (unsigned i = 0; i < list.count; i++)
        rig_tell(r, NATIVE_REMOVE, list.ids[i]);
}

void rig_wait_call(pid_t pid, long call)
{
    own_done(buf) text;
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/syscall", (int)pid);
    buf_init(&text, 4096);
    do {
        sched_yield();
        text.len = 0;
        CHECK_OK(fd_read_file(path, &text));
    } while (text.p[0] < '0' || text.p[0] > '9' || atol(text.p) != call);
}
