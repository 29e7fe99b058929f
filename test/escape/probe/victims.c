// SPDX-License-Identifier: Apache-2.0
/* victims.c — a process of the host by its number, and its messages, locks and sockets.
 *
 * Calls that only look, or that change nothing when they are allowed. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "test/escape/probe/probe.h"

enum victim_act {
    ACT_PIDFD,
    ACT_QUEUE,
    ACT_TGKILL,
    ACT_PTRACE,
    ACT_VM_READ,
    ACT_VM_WRITE,
    ACT_PRLIMIT,
    ACT_AFFINITY,
    ACT_PRIORITY,
    ACT_IOPRIO,
    ACT_SESSION,
    ACT_GROUP,
    ACT_SCHEDULER,
};

static long act(enum victim_act what, pid_t pid)
{
    siginfo_t info = {.si_code = SI_QUEUE};
    struct rlimit limit;
    cpu_set_t cpus;
    char byte;
    struct iovec here = {&byte, 1}, there = {(void *)0x1000, 1};

    switch (what) {
    case ACT_PIDFD:
        return syscall(SYS_pidfd_open, pid, 0);
    case ACT_QUEUE:
        return syscall(SYS_rt_sigqueueinfo, pid, 0, &info);
    case ACT_TGKILL:
        return syscall(SYS_tgkill, pid, pid, 0);
    case ACT_PTRACE:
        return ptrace(PTRACE_SEIZE, pid, 0, 0);
    case ACT_VM_READ: /* nothing lies there: whether it is looked at is the question */
        return process_vm_readv(pid, &here, 1, &there, 1, 0) < 0 && errno != EFAULT ? -1 : 0;
    case ACT_VM_WRITE:
        return process_vm_writev(pid, &here, 1, &there, 1, 0) < 0 && errno != EFAULT ? -1 : 0;
    case ACT_PRLIMIT:
        return prlimit(pid, RLIMIT_NOFILE, NULL, &limit);
    case ACT_AFFINITY:
        return sched_getaffinity(pid, sizeof cpus, &cpus);
    case ACT_PRIORITY:
        return setpriority(PRIO_PROCESS, (id_t)pid, 0);
    case ACT_IOPRIO:
        return syscall(SYS_ioprio_get, 1, pid);
    case ACT_SESSION:
        return getsid(pid);
    case ACT_GROUP:
        return getpgid(pid);
    case ACT_SCHEDULER:
        return syscall(SYS_sched_getscheduler, pid);
    }
    return -1;
}

static enum probe_result try_victim(const void *data, char *note, size_t size)
{
    const char *victim = probe_word("VICTIM");

    if (!victim)
        return snprintf(note, size, "not told"), PROBE_ABSENT;
    if (act(*(const enum victim_act *)data, (pid_t)atoi(victim)) >= 0)
        return PROBE_OPEN;
    return probe_refused(note, size);
}

#define VICTIM(id, what)                                                                           \
    PROBE(victim_##id) = {"10-neighbours", "victim_" #id, try_victim,                              \
                          &(const enum victim_act){what}};
/* clang-format off */
VICTIM(pidfd_open, ACT_PIDFD)
VICTIM(queue_signal, ACT_QUEUE)
VICTIM(signal_thread, ACT_TGKILL)
VICTIM(ptrace, ACT_PTRACE)
VICTIM(read_memory, ACT_VM_READ)
VICTIM(write_memory, ACT_VM_WRITE)
VICTIM(limits, ACT_PRLIMIT)
VICTIM(affinity, ACT_AFFINITY)
VICTIM(priority, ACT_PRIORITY)
VICTIM(io_priority, ACT_IOPRIO)
VICTIM(session, ACT_SESSION)
VICTIM(process_group, ACT_GROUP)
VICTIM(scheduler, ACT_SCHEDULER)
/* clang-format on */

static enum probe_result try_victim_file(const void *data, char *note, size_t size)
{
    const char *victim = probe_word("VICTIM");
    char path[64];

    if (!victim)
        return snprintf(note, size, "not told"), PROBE_ABSENT;
    snprintf(path, sizeof path, "/proc/%d/%s", atoi(victim), (const char *)data);
    return open(path, O_RDONLY | O_CLOEXEC) >= 0 ? PROBE_OPEN : probe_refused(note, size);
}
/* clang-format off */
PROBE(victim_environ) = {"10-neighbours", "victim_environ", try_victim_file, "environ"};
PROBE(victim_mem) = {"10-neighbours", "victim_mem", try_victim_file, "mem"};
PROBE(victim_root) = {"1-paths", "victim_root", try_victim_file, "root"};
PROBE(victim_cwd) = {"1-paths", "victim_cwd", try_victim_file, "cwd"};
PROBE(victim_exe) = {"1-paths", "victim_exe", try_victim_file, "exe"};
PROBE(victim_fds) = {"2-descriptors", "victim_fds", try_victim_file, "fd"};
PROBE(victim_mount_ns) = {"4-calls", "victim_mount_namespace", try_victim_file, "ns/mnt"};
PROBE(victim_net_ns) = {"4-calls", "victim_network_namespace", try_victim_file, "ns/net"};
PROBE(victim_user_ns) = {"4-calls", "victim_user_namespace", try_victim_file, "ns/user"};
/* clang-format on */

/* --- messages, semaphores, terminals --- */

static enum probe_result try_msg(const void *data, char *note, size_t size)
{
    const char *key = probe_word("SHM");

    (void)data;
    if (!key)
        return snprintf(note, size, "not told"), PROBE_ABSENT;
    return msgget((key_t)strtol(key, NULL, 0), 0) >= 0 ? PROBE_OPEN : probe_refused(note, size);
}
PROBE(sysv_msg) = {"10-neighbours", "sysv_messages_of_host", try_msg, NULL};

static enum probe_result try_sem(const void *data, char *note, size_t size)
{
    const char *key = probe_word("SHM");

    (void)data;
    if (!key)
        return snprintf(note, size, "not told"), PROBE_ABSENT;
    return semget((key_t)strtol(key, NULL, 0), 0, 0) >= 0 ? PROBE_OPEN : probe_refused(note, size);
}
PROBE(sysv_sem) = {"10-neighbours", "sysv_semaphores_of_host", try_sem, NULL};

static enum probe_result try_pts(const void *data, char *note, size_t size)
{
    const char *pts = probe_word("PTS"), *dev = probe_word("PTS_DEV");
    struct stat st;

    (void)data;
    if (!pts || !dev)
        return snprintf(note, size, "not told"), PROBE_ABSENT;
    int fd = open(pts, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return probe_refused(note, size);
    if ((unsigned long)st.st_dev == strtoul(dev, NULL, 10))
        return PROBE_OPEN;
    return snprintf(note, size, "one of its own, of the same name"), PROBE_REFUSED;
}
PROBE(pts_of_host) = {"8-processes", "terminal_of_host", try_pts, NULL};

static enum probe_result try_tioclinux(const void *data, char *note, size_t size)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    char code = 2; /* paste the selection: a console does, a pseudo terminal says ENOTTY */

    (void)data;
    if (master < 0 || unlockpt(master) < 0)
        return snprintf(note, size, "no pty"), PROBE_ABSENT;
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (ioctl(slave, TIOCLINUX, &code) == 0 || errno == ENOTTY || errno == EINVAL)
        return PROBE_OPEN;
    return probe_refused(note, size);
}
PROBE(tioclinux) = {"8-processes", "tioclinux", try_tioclinux, NULL};

/* --- the host's network --- */

struct reach {
    int domain, type;
    const char *address, *word;
};

static bool reach_addr(const struct reach *r, unsigned port, struct sockaddr_storage *ret,
                       socklen_t *ret_len)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;

    memset(ret, 0, sizeof *ret);
    ret->ss_family = (sa_family_t)r->domain;
    if (r->domain == AF_INET) {
        v4->sin_port = htons((uint16_t)port);
        *ret_len = sizeof *v4;
        return inet_pton(AF_INET, r->address, &v4->sin_addr) == 1;
    }
    v6->sin6_port = htons((uint16_t)port);
    *ret_len = sizeof *v6;
    return inet_pton(AF_INET6, r->address, &v6->sin6_addr) == 1;
}

static enum probe_result try_reach(const void *data, char *note, size_t size)
{
    const struct reach *r = data;
    const char *port = probe_word(r->word);
    struct sockaddr_storage to;
    socklen_t len;

    if (!port || !reach_addr(r, (unsigned)atoi(port), &to, &len))
        return snprintf(note, size, "not told"), PROBE_ABSENT;
    int fd = socket(r->domain, r->type | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, len) < 0)
        return probe_refused(note, size);
    if (r->type == SOCK_STREAM)
        return PROBE_OPEN;
    /* Nobody listens: the second packet hears of it, if the first one's answer had its time. */
    struct pollfd answer = {.fd = fd, .events = POLLIN};
    for (int i = 0; i < 2; i++)
        if (send(fd, "x", 1, 0) != 1 || poll(&answer, 1, i ? 0 : 1000) < 0)
            return probe_refused(note, size);
    return PROBE_OPEN;
}

#define REACH(id, ...)                                                                             \
    PROBE(reach_##id) = {"5-sockets", "reach_" #id, try_reach, &(const struct reach){__VA_ARGS__}};
/* clang-format off */
REACH(loopback, AF_INET, SOCK_STREAM, "127.0.0.1", "TCP")
REACH(loopback_net, AF_INET, SOCK_STREAM, "127.8.8.8", "TCP")
REACH(any_address, AF_INET, SOCK_STREAM, "0.0.0.0", "TCP")
REACH(mapped_address, AF_INET6, SOCK_STREAM, "::ffff:127.0.0.1", "TCP")
REACH(mapped_any, AF_INET6, SOCK_STREAM, "::ffff:0.0.0.0", "TCP")
REACH(udp, AF_INET, SOCK_DGRAM, "127.0.0.1", "UDP")
REACH(udp_mapped, AF_INET6, SOCK_DGRAM, "::ffff:127.0.0.1", "UDP")
/* clang-format on */

/* A route to anywhere at all: nothing is sent. */
static enum probe_result try_route(const void *data, char *note, size_t size)
{
    struct reach r = {AF_INET, SOCK_DGRAM, data, ""};
    struct sockaddr_storage to;
    socklen_t len;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (reach_addr(&r, 53, &to, &len) && connect(fd, (struct sockaddr *)&to, len) == 0)
        return PROBE_OPEN;
    return probe_refused(note, size);
}
PROBE(route_metadata) = {"6-network", "route_to_metadata", try_route, "169.254.169.254"};
PROBE(route_private) = {"6-network", "route_to_private_range", try_route, "10.0.0.1"};
PROBE(route_world) = {"6-network", "route_to_the_world", try_route, "192.0.2.1"};
PROBE(route_multicast) = {"6-network", "route_to_multicast", try_route, "224.0.0.251"};

/* A listening socket of the host that came in as a descriptor: shut down, it can be connected to
 * anything the host's loopback has. */
static enum probe_result try_passed_socket(const void *data, char *note, size_t size)
{
    const char *port = probe_word("TCP");
    struct reach r = {AF_INET, SOCK_STREAM, "127.0.0.1", ""};
    struct sockaddr_storage to;
    socklen_t len;

    (void)data;
    if (!port || !reach_addr(&r, (unsigned)atoi(port), &to, &len))
        return snprintf(note, size, "not told"), PROBE_ABSENT;
    if (probe_is_control()) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (listen(fd, 1) < 0 || unshare(CLONE_NEWNET) < 0)
            return probe_refused(note, size);
    }
    errno = ENOTSOCK;
    for (int fd = 0; fd < 1024; fd++) {
        int domain = 0;
        socklen_t n = sizeof domain;
        if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) < 0 || domain == AF_UNIX)
            continue;
        shutdown(fd, SHUT_RDWR);
        if (connect(fd, (struct sockaddr *)&to, len) == 0)
            return snprintf(note, size, "by descriptor %d", fd), PROBE_OPEN;
    }
    return probe_refused(note, size);
}
PROBE(passed_listener) = {"5-sockets", "passed_listener", try_passed_socket, NULL};
