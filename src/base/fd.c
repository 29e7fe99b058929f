// SPDX-License-Identifier: Apache-2.0
/* fd.c — reading, writing, waiting and passing descriptors; opening beneath is in fd_beneath.c. */
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"

#define READ_AT_LEAST   4096u
#define SEND_TIMEOUT_MS 10000

fallible fd_write_all(int fd, struct str data)
{
    while (data.len) {
        ssize_t n = write(fd, data.p, data.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys("write");
        if (n == 0)
            return err_new(ERR_IO, "write took nothing of %zu bytes", data.len);
        data = str_from(data, (size_t)n);
    }
    return NULL;
}

void fd_print(int fd, const char *fmt, ...)
{
    own_done(buf) text;
    va_list ap;

    buf_init(&text, 1u << 20);
    va_start(ap, fmt);
    buf_vaddf(&text, fmt, ap);
    va_end(ap);
    err_free(fd_write_all(fd, buf_str(&text)));
}

fallible fd_read_all(int fd, struct buf *into)
{
    for (;;) {
        char probe; /* when the buffer is full: is there one byte more? */
        size_t left = into->limit_bytes - into->len, spare = into->cap - into->len;
        size_t want = spare ? spare : READ_AT_LEAST;
        want = want < left ? want : left;
        char *to = want ? buf_reserve(into, want) : &probe;
        if (!to)
            return buf_check(into);
        ssize_t n = read(fd, to, want ? want : 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys("read");
        if (n == 0)
            return NULL;
        if (!want) {
            into->over_limit = true;
            return buf_check(into);
        }
        buf_commit(into, (size_t)n);
    }
}

fallible fd_read_file(const char *path, struct buf *into)
{
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC, 0);

    if (fd < 0)
        return err_sys("open '%s'", path);
    TRY_WRAP(fd_read_all(fd, into), "'%s'", path);
    return NULL;
}

static fallible write_and_sync(int fd, struct str data)
{
    TRY(fd_write_all(fd, data));
    if (fsync(fd) < 0)
        return err_sys("fsync");
    return NULL;
}

/* dir may be O_PATH, which fsync refuses: open it again. */
static fallible sync_dir(int dir)
{
    own_fd fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

    if (fd < 0)
        return err_sys("open the directory");
    if (fsync(fd) < 0)
        return err_sys("fsync the directory");
    return NULL;
}

static bool is_file_name(const char *name)
{
    return name[0] && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

fallible fd_replace_file(int dir, const char *name, struct str data, mode_t mode)
{
    char temp[sizeof ".croft-" + RNG_HEX_LEN] = ".croft-";

    if (!is_file_name(name))
        return err_new(ERR_INVALID, "'%s' is not the name of a file", name);
    rng_hex(rng_system(), temp + strlen(temp)); /* a process that may write here too cannot guess
                                                 * it */
    own_fd fd = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return err_sys("create a file beside '%s'", name);
    struct err *e = write_and_sync(fd, data);
    if (!e && renameat(dir, temp, dir, name) < 0)
        e = err_sys("rename");
    if (e) {
        unlinkat(dir, temp, 0);
        return err_wrap(e, "write '%s'", name);
    }
    TRY_WRAP(sync_dir(dir), "write '%s'", name);
    return NULL;
}

void fd_remove_tree(int dir, const char *name)
{
    const struct dirent *e;

    if (unlinkat(dir, name, 0) == 0 || (errno != EISDIR && errno != EPERM))
        return;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d)
        own_close(fd);
    while (d && (e = readdir(d)))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            fd_remove_tree(fd, e->d_name);
    if (d)
        closedir(d);
    unlinkat(dir, name, AT_REMOVEDIR); /* what could not be removed keeps it */
}

fallible fd_set_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || (!(flags & O_NONBLOCK) && fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0))
        return err_sys("make a descriptor non-blocking");
    return NULL;
}

fallible fd_parse(const char *option, const char *text, int *ret_fd)
{
    uint64_t n;

    if (!str_to_u64(str_of(text), &n) || n <= STDERR_FILENO || n > INT_MAX ||
        fcntl((int)n, F_SETFD, FD_CLOEXEC) < 0)
        return err_new(ERR_INVALID, "%s '%.80s': not the number of an open descriptor over 2",
                       option, text);
    *ret_fd = (int)n;
    return NULL;
}

/* A negative time waits for ever. An error or hang-up ends the wait too: the next call names it. */
fallible fd_wait(int fd, short events, int timeout_ms)
{
    uint64_t start = clock_mono_ns(&clock_system);
    int left_ms = timeout_ms;

    for (;;) {
        struct pollfd p = {fd, events, 0};
        int n = poll(&p, 1, left_ms);
        if (n > 0 && (p.revents & POLLNVAL))
            return err_sysno(EBADF, "wait for a descriptor");
        if (n > 0)
            return NULL;
        if (n == 0)
            return err_new(ERR_TIMEOUT, "no answer within %d ms", timeout_ms);
        if (errno != EINTR)
            return err_sys("wait for a descriptor");
        uint64_t spent_ms = (clock_mono_ns(&clock_system) - start) / NS_PER_MS;
        if (timeout_ms >= 0)
            left_ms = spent_ms < (uint64_t)timeout_ms ? timeout_ms - (int)spent_ms : 0;
    }
}

/* Room for every descriptor we take and for the credentials a socket may be set to add. */
union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(FD_PASS_MAX * sizeof(int)) + CMSG_SPACE(64)];
};

/* A stream socket may take a part, descriptors included; what is left follows without them. */
static fallible send_rest(int sock, struct str rest)
{
    while (rest.len) {
        ssize_t n = send(sock, rest.p, rest.len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            TRY(fd_wait(sock, POLLOUT, SEND_TIMEOUT_MS));
            continue;
        }
        if (n < 0)
            return err_sys("send");
        rest = str_from(rest, (size_t)n);
    }
    return NULL;
}

fallible fd_send(int sock, struct str data, const int *fds, size_t count)
{
    union control control = {.bytes = {0}};
    struct iovec iov = {(void *)data.p, data.len};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

    if (data.len == 0)
        return err_new(ERR_INVALID, "descriptors need a byte to travel with");
    if (count > FD_PASS_MAX)
        return err_new(ERR_LIMIT, "%zu descriptors at once, at most %d", count, FD_PASS_MAX);
    if (count) {
        m.msg_control = control.bytes;
        m.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(c), fds, count * sizeof(int));
    }
    ssize_t n;
    do
        n = sendmsg(sock, &m, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_sys("send descriptors");
    return send_rest(sock, str_from(data, (size_t)n));
}

struct received {
    int fds[sizeof(union control) / sizeof(int)];
    size_t count;
};

static void fd_collect(struct msghdr *m, struct received *r)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(r->fds + r->count, CMSG_DATA(c), n * sizeof(int));
        r->count += n;
    }
}

static fallible fd_refuse(struct received *r, enum err_code code, const char *why)
{
    for (size_t i = 0; i < r->count; i++)
        own_close(r->fds[i]);
    return err_new(code, "receive descriptors: %s", why);
}

fallible fd_recv(int sock, void *data, size_t size, size_t *ret_len, int *fds, size_t max,
                 size_t *ret_count)
{
    union control control;
    struct iovec iov = {data, size};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    struct received r = {.count = 0};
    ssize_t n;

    m.msg_control = control.bytes;
    m.msg_controllen = sizeof control.bytes;
    do
        n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_sys("receive descriptors");
    fd_collect(&m, &r);
    if (r.count > max || (m.msg_flags & MSG_CTRUNC))
        return fd_refuse(&r, ERR_LIMIT, "more than were asked for");
    if (m.msg_flags & MSG_TRUNC)
        return fd_refuse(&r, ERR_TOO_LARGE, "the message is longer than the room for it");
    if (r.count)
        memcpy(fds, r.fds, r.count * sizeof(int));
    *ret_len = (size_t)n;
    *ret_count = r.count;
    return NULL;
}
