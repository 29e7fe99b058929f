// SPDX-License-Identifier: Apache-2.0
/* victims.c — a process of the host by its number, and its messages, locks and sockets.
 *
 * What they change when they are allowed is there to be changed: the host looks at it after. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
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
#include <sys/wait.h>
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

/* The page of the victim's that is there to be read and written. */
static unsigned long page_of(size_t field)
{
    const char *page = probe_word("PAGE");

    return page ? strtoul(page, NULL, 16) + field : 0;
}

static void act_ptrace(pid_t pid)
{
    int status;

    if (ptrace(PTRACE_SEIZE, pid, 0, 0) < 0 || ptrace(PTRACE_INTERRUPT, pid, 0, 0) < 0 ||
        waitpid(pid, &status, __WALL) != pid)
        return;
    ptrace(PTRACE_POKEDATA, pid, page_of(offsetof(struct victim_page, traced)), 1);
    ptrace(PTRACE_DETACH, pid, 0, 0);
}

static void act_memory(pid_t pid, bool write)
{
    unsigned long word = 1;
    char secret[64] = "";
    struct iovec one = {&word, sizeof word}, text = {secret, sizeof secret - 1};
    struct iovec to = {(void *)page_of(offsetof(struct victim_page, written)), sizeof word};
    struct iovec from = {(void *)page_of(offsetof(struct victim_page, secret)), text.iov_len};

    if (write)
        process_vm_writev(pid, &one, 1, &to, 1, 0);
    else if (process_vm_readv(pid, &text, 1, &from, 1, 0) > 0)
        probe_say("%s", secret);
}

/* On the first processor alone that it may use now. */
static void act_affinity(pid_t pid)
{
    unsigned long cpus[16] = {0}, one[16] = {0};

    if (syscall(SYS_sched_getaffinity, pid, sizeof cpus, cpus) < 0)
        return;
    for (unsigned i = 0; i < 16; i++)
        if (cpus[i]) {
            one[i] = cpus[i] & -cpus[i];
            break;
        }
    syscall(SYS_sched_setaffinity, pid, sizeof one, one);
}

static void act(enum victim_act what, pid_t pid)
{
    siginfo_t info = {.si_code = SI_QUEUE};
    struct rlimit limit;
    struct sched_param no_rank = {0};

    switch (what) {
    case ACT_PIDFD:
        syscall(SYS_pidfd_send_signal, syscall(SYS_pidfd_open, pid, 0), VICTIM_PIDFD, NULL, 0);
        return;
    case ACT_QUEUE:
        syscall(SYS_rt_sigqueueinfo, pid, VICTIM_QUEUE, &info);
        return;
    case ACT_TGKILL:
        syscall(SYS_tgkill, pid, pid, VICTIM_THREAD);
        return;
    case ACT_PTRACE:
        act_ptrace(pid);
        return;
    case ACT_VM_READ:
    case ACT_VM_WRITE:
        act_memory(pid, what == ACT_VM_WRITE);
        return;
    case ACT_PRLIMIT:
        if (prlimit(pid, RLIMIT_NOFILE, NULL, &limit) == 0) {
            limit.rlim_cur = VICTIM_OPEN;
            prlimit(pid, RLIMIT_NOFILE, &limit, NULL);
        }
        return;
    case ACT_AFFINITY:
        act_affinity(pid);
        return;
    case ACT_PRIORITY:
        setpriority(PRIO_PROCESS, (id_t)pid, VICTIM_NICE);
        return;
    case ACT_IOPRIO:
        syscall(SYS_ioprio_set, 1, pid, VICTIM_IO);
        return;
    case ACT_SCHEDULER:
        syscall(SYS_sched_setscheduler, pid, SCHED_BATCH, &no_rank);
        return;
    case ACT_SESSION:
        probe_deed();
        getsid(pid);
        return;
    case ACT_GROUP:
        probe_deed();
        getpgid(pid);
        return;
    }
}

static void try_victim(const void *data)
{
    const char *victim = probe_word("VICTIM");

    if (victim)
        act(*(const enum victim_act *)data, (pid_t)atoi(victim));
}

#define VICTIM(id, what, trace)                                                                    \
    PROBE(victim_##id) = {"10-neighbours", "victim_" #id, trace, try_victim,                       \
                          &(const enum victim_act){what}};
/* clang-format off */
VICTIM(pidfd_open, ACT_PIDFD, TRACE_LEFT)
VICTIM(queue_signal, ACT_QUEUE, TRACE_LEFT)
VICTIM(signal_thread, ACT_TGKILL, TRACE_LEFT)
VICTIM(ptrace, ACT_PTRACE, TRACE_LEFT)
VICTIM(read_memory, ACT_VM_READ, TRACE_TOLD)
VICTIM(write_memory, ACT_VM_WRITE, TRACE_LEFT)
VICTIM(limits, ACT_PRLIMIT, TRACE_LEFT)
VICTIM(affinity, ACT_AFFINITY, TRACE_LEFT)
VICTIM(priority, ACT_PRIORITY, TRACE_LEFT)
VICTIM(io_priority, ACT_IOPRIO, TRACE_LEFT)
VICTIM(session, ACT_SESSION, TRACE_DONE)
VICTIM(process_group, ACT_GROUP, TRACE_DONE)
VICTIM(scheduler, ACT_SCHEDULER, TRACE_LEFT)
/* clang-format on */

static void try_victim_file(const void *data)
{
    const char *victim = probe_word("VICTIM");
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/%s", victim ? atoi(victim) : 0, (const char *)data);
    probe_deed();
    open(path, O_RDONLY | O_CLOEXEC);
}
/* clang-format off */
PROBE(victim_environ) = {"10-neighbours", "victim_environ", TRACE_OPEN, try_victim_file, "environ"};
PROBE(victim_mem) = {"10-neighbours", "victim_mem", TRACE_OPEN, try_victim_file, "mem"};
PROBE(victim_root) = {"1-paths", "victim_root", TRACE_OPEN, try_victim_file, "root"};
PROBE(victim_cwd) = {"1-paths", "victim_cwd", TRACE_OPEN, try_victim_file, "cwd"};
PROBE(victim_exe) = {"1-paths", "victim_exe", TRACE_OPEN, try_victim_file, "exe"};
PROBE(victim_fds) = {"2-descriptors", "victim_fds", TRACE_OPEN, try_victim_file, "fd"};
PROBE(victim_mount_ns) = {"4-calls", "victim_mount_namespace", TRACE_OPEN, try_victim_file, "ns/mnt"};
PROBE(victim_net_ns) = {"4-calls", "victim_network_namespace", TRACE_OPEN, try_victim_file, "ns/net"};
PROBE(victim_user_ns) = {"4-calls", "victim_user_namespace", TRACE_OPEN, try_victim_file, "ns/user"};
/* clang-format on */

/* --- messages, semaphores, terminals --- */

static void try_msg(const void *data)
{
    const char *key = probe_word("SHM");
    struct {
        long type;
        char text[100];
    } msg = {.type = 1};

    (void)data;
    if (!key)
        return;
    int id = msgget((key_t)strtol(key, NULL, 0), 0);
    strcpy(msg.text, probe_row());
    if (id >= 0)
        msgsnd(id, &msg, sizeof msg.text, IPC_NOWAIT);
}
PROBE(sysv_msg) = {"10-neighbours", "sysv_messages_of_host", TRACE_LEFT, try_msg, NULL};

static void try_sem(const void *data)
{
    const char *key = probe_word("SHM");
    struct sembuf up = {.sem_op = 1};

    (void)data;
    int id = key ? semget((key_t)strtol(key, NULL, 0), 0, 0) : -1;
    if (id >= 0)
        semop(id, &up, 1);
}
PROBE(sysv_sem) = {"10-neighbours", "sysv_semaphores_of_host", TRACE_LEFT, try_sem, NULL};

/* Inside it may be a terminal of the sandbox's own that has this name. */
static void try_pts(const void *data)
{
    const char *pts = probe_word("PTS");

    (void)data;
    int fd = pts ? open(pts, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC) : -1;
    if (fd >= 0)
        write(fd, probe_row(), strlen(probe_row()));
}
PROBE(pts_of_host) = {"8-processes", "terminal_of_host", TRACE_LEFT, try_pts, NULL};

static void try_tioclinux(const void *data)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    char code = 2; /* paste the selection: a console does, a pseudo terminal says ENOTTY */

    (void)data;
    if (master < 0 || unlockpt(master) < 0)
        return;
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    probe_deed();
    ioctl(slave, TIOCLINUX, &code);
}
PROBE(tioclinux) = {"8-processes", "tioclinux", TRACE_CALL, try_tioclinux, NULL};

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

static void try_reach(const void *data)
{
    const struct reach *r = data;
    const char *port = probe_word(r->word);
    struct sockaddr_storage to;
    socklen_t len;

    if (!port || !reach_addr(r, (unsigned)atoi(port), &to, &len))
        return;
    int fd = socket(r->domain, r->type | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, len) == 0)
        send(fd, probe_row(), strlen(probe_row()), 0);
}

#define REACH(id, ...)                                                                             \
    PROBE(reach_##id) = {"5-sockets", "reach_" #id, TRACE_LEFT, try_reach,                         \
                         &(const struct reach){__VA_ARGS__}};
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
static void try_route(const void *data)
{
    struct reach r = {AF_INET, SOCK_DGRAM, data, ""};
    struct sockaddr_storage to;
    socklen_t len;

    probe_step();
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (fd < 0 || !reach_addr(&r, 53, &to, &len))
        return;
    probe_deed();
    (void)connect(fd, (struct sockaddr *)&to, len);
}
PROBE(route_metadata) = {"6-network", "route_to_metadata", TRACE_DONE, try_route,
                         "169.254.169.254"};
PROBE(route_private) = {"6-network", "route_to_private_range", TRACE_DONE, try_route, "10.0.0.1"};
PROBE(route_world) = {"6-network", "route_to_the_world", TRACE_DONE, try_route, "192.0.2.1"};
PROBE(route_multicast) = {"6-network", "route_to_multicast", TRACE_DONE, try_route, "224.0.0.251"};

/* A listening socket of the host that came in as a descriptor: shut down, it can be connected to
 * anything the host's loopback has. */
static void try_passed_socket(const void *data)
{
    const char *port = probe_word("TCP");
    struct reach r = {AF_INET, SOCK_STREAM, "127.0.0.1", ""};
    struct sockaddr_storage to;
    socklen_t len;

    (void)data;
    if (!port || !reach_addr(&r, (unsigned)atoi(port), &to, &len))
        return;
    if (probe_is_control()) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (listen(fd, 1) < 0 || unshare(CLONE_NEWNET) < 0)
            return;
    }
    for (int fd = 0; fd < 1024; fd++) {
        int domain = 0;
        socklen_t n = sizeof domain;
        if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) < 0 || domain == AF_UNIX)
            continue;
        shutdown(fd, SHUT_RDWR);
        if (connect(fd, (struct sockaddr *)&to, len) == 0)
            send(fd, probe_row(), strlen(probe_row()), 0);
    }
}
PROBE(passed_listener) = {"5-sockets", "passed_listener", TRACE_LEFT, try_passed_socket, NULL};
