// SPDX-License-Identifier: Apache-2.0
/* neighbours.c — families 2, 8 and 10: processes, descriptors and devices that are not ours.
 *
 * VICTIM is a process of the host, PIDFD_OF pid 1 inside. The control attacks a child of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/escape/probe/probe.h"

/* Outside: a child that waits, and that is not traced yet. Inside: pid 1, which holds the
 * sandbox's way in. */
static pid_t prey(void)
{
    if (!probe_is_control())
        return 1;
    pid_t pid = (pid_t)syscall(SYS_clone, CLONE_UNTRACED | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        pause();
        _exit(0);
    }
    return pid;
}

static void end(pid_t pid)
{
    if (probe_is_control())
        kill(pid, SIGKILL);
}

static void try_ptrace(const void *data)
{
    pid_t pid = prey();

    (void)data;
    probe_deed();
    ptrace(PTRACE_SEIZE, pid, 0, 0);
    end(pid);
}
PROBE(ptrace_init) = {"2-descriptors", "ptrace_init", TRACE_DONE, try_ptrace, NULL};

static void try_steal_fd(const void *data)
{
    pid_t pid = prey();
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

    (void)data;
    for (int fd = 0; fd < 64; fd++) {
        probe_deed();
        syscall(SYS_pidfd_getfd, pidfd, fd, 0);
    }
    end(pid);
}
PROBE(pidfd_getfd_init) = {"2-descriptors", "pidfd_getfd_init", TRACE_DONE, try_steal_fd, NULL};

static void try_vm_read(const void *data)
{
    pid_t pid = prey();
    char byte;
    struct iovec here = {&byte, 1}, there = {(void *)&probe_row, 1};

    (void)data;
    probe_deed();
    process_vm_readv(pid, &here, 1, &there, 1,
                     0); /* nothing there to be read: looked at is enough */
    end(pid);
}
PROBE(vm_read_init) = {"2-descriptors", "vm_read_init", TRACE_CALL, try_vm_read, NULL};

static void try_proc_file(const void *data)
{
    pid_t pid = prey();
    char path[64], text[64];

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, (const char *)data);
    probe_step();
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        probe_deed();
        read(fd, text, sizeof text);
    }
    end(pid);
}
PROBE(environ_of_init) = {"2-descriptors", "environ_of_init", TRACE_DONE, try_proc_file, "environ"};
PROBE(maps_of_init) = {"2-descriptors", "maps_of_init", TRACE_DONE, try_proc_file, "maps"};
PROBE(auxv_of_init) = {"2-descriptors", "auxv_of_init", TRACE_DONE, try_proc_file, "auxv"};
PROBE(stack_of_init) = {"2-descriptors", "syscall_of_init", TRACE_DONE, try_proc_file, "syscall"};

static void try_fd_dir(const void *data)
{
    pid_t pid = prey();
    char path[64], target[64];

    (void)data;
    for (int fd = 0; fd < 64; fd++) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
        probe_deed();
        (void)readlink(path, target, sizeof target);
    }
    end(pid);
}
PROBE(fds_of_init) = {"2-descriptors", "fds_of_init", TRACE_DONE, try_fd_dir, NULL};

static void try_init_file(const void *data)
{
    pid_t pid = prey();
    char path[64];
    bool mem = strcmp(data, "mem") == 0;

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, (const char *)data);
    probe_deed();
    open(path, (mem ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    end(pid);
}
PROBE(memory_of_init) = {"2-descriptors", "memory_of_init", TRACE_OPEN, try_init_file, "mem"};
PROBE(exe_of_init) = {"2-descriptors", "exe_of_init", TRACE_OPEN, try_init_file, "exe"};

static void try_signal_victim(const void *data)
{
    const char *victim = probe_word("VICTIM");

    (void)data;
    if (victim)
        kill((pid_t)atoi(victim), VICTIM_KILL);
}
PROBE(signal_host_process) = {"10-neighbours", "signal_host_process", TRACE_LEFT, try_signal_victim,
                              NULL};

static void try_victim_proc(const void *data)
{
    const char *victim = probe_word("VICTIM");
    char path[64];

    (void)data;
    snprintf(path, sizeof path, "/proc/%d/comm", victim ? atoi(victim) : 0);
    probe_say_file(path); /* the host gave it a name that nobody was told */
}
PROBE(see_host_process) = {"10-neighbours", "see_host_process", TRACE_TOLD, try_victim_proc, NULL};

/* --- ways to talk that the host left open --- */

static void try_unix(const char *path, bool abstract)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(to.sun_path + abstract, sizeof to.sun_path - 1, "%s", path);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + abstract + strlen(path));
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, len) == 0)
        send(fd, probe_row(), strlen(probe_row()), 0);
}

static void try_abstract(const void *data)
{
    const char *name = probe_word("ABSTRACT");

    (void)data;
    if (name)
        try_unix(name, true);
}
PROBE(abstract_socket) = {"5-sockets", "cve_2020_15257_abstract_socket", TRACE_LEFT, try_abstract,
                          NULL};

static void try_path_socket(const void *data)
{
    const char *path = probe_word("SOCKET");

    (void)data;
    if (path)
        try_unix(path, false);
}
PROBE(path_socket) = {"5-sockets", "path_socket_of_host", TRACE_LEFT, try_path_socket, NULL};

static void try_shm(const void *data)
{
    const char *key = probe_word("SHM");

    (void)data;
    if (!key)
        return;
    int id = shmget((key_t)strtol(key, NULL, 0), 0, 0);
    char *at = id < 0 ? (char *)-1 : shmat(id, NULL, 0);
    if (at != (char *)-1)
        strcpy(at, probe_row());
}
PROBE(sysv_shm) = {"10-neighbours", "sysv_shared_memory_of_host", TRACE_LEFT, try_shm, NULL};

static void try_dev_shm(const void *data)
{
    const char *name = probe_word("DEVSHM");
    char path[300];

    (void)data;
    snprintf(path, sizeof path, "/dev/shm/%s", name ? name : "");
    probe_say_file(path);
}
PROBE(dev_shm) = {"10-neighbours", "dev_shm_of_host", TRACE_TOLD, try_dev_shm, NULL};

/* --- things made inside that the host would trust --- */

static void try_device(const void *data)
{
    char name[] = "/tmp/probe-XXXXXX", path[64];

    (void)data;
    if (!mkdtemp(name))
        return;
    snprintf(path, sizeof path, "%s/d", name);
    probe_step();
    if (mknod(path, S_IFCHR | 0666, makedev(1, 11)) == 0) { /* kmsg: only looked at */
        probe_deed();
        open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    }
    int why = errno;
    unlink(path);
    rmdir(name);
    errno = why;
}
PROBE(make_a_device) = {"8-processes", "make_a_device", TRACE_OPEN, try_device, NULL};

static void try_block_device(const void *data)
{
    char name[] = "/tmp/probe-XXXXXX", path[64];

    (void)data;
    if (!mkdtemp(name))
        return;
    snprintf(path, sizeof path, "%s/d", name);
    probe_deed();
    mknod(path, S_IFBLK | 0600, makedev(254, 0));
    int why = errno;
    unlink(path);
    rmdir(name);
    errno = why;
}
PROBE(make_a_disk) = {"8-processes", "make_a_disk", TRACE_DONE, try_block_device, NULL};

/* A terminal of our own; -1: there are none. */
static int own_terminal(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
        return -1;
    return open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
}

static void try_tiocsti(const void *data)
{
    int slave = own_terminal();

    (void)data;
    if (slave < 0)
        return;
    probe_deed();
    syscall(SYS_ioctl, slave, 0x5412 /* TIOCSTI */, "x");
}
PROBE(tiocsti) = {"8-processes", "tiocsti", TRACE_DONE, try_tiocsti, NULL};

/* The kernel loads the module of a line discipline for whoever asks for it. */
static void try_tiocsetd(const void *data)
{
    int slave = own_terminal();

    if (slave < 0)
        return;
    probe_deed();
    syscall(SYS_ioctl, slave, 0x5423 /* TIOCSETD */, data);
}
/* clang-format off */
PROBE(ldisc_null) = {"4-calls", "line_discipline_null", TRACE_DONE, try_tiocsetd, &(const int){27}};
PROBE(ldisc_ppp) = {"4-calls", "line_discipline_ppp", TRACE_CALL, try_tiocsetd, &(const int){3}};
PROBE(ldisc_hdlc) = {"4-calls", "line_discipline_hdlc", TRACE_CALL, try_tiocsetd, &(const int){13}};
/* clang-format on */

static void try_raise_limit(const void *data)
{
    (void)data;
    probe_deed();
    setpriority(PRIO_PROCESS, 0, -5);
}
PROBE(negative_nice) = {"7-resources", "negative_nice", TRACE_DONE, try_raise_limit, NULL};

static void try_i386(const void *data)
{
    long n;

    (void)data;
    probe_deed();
    /* getpid of the other table */
    __asm__ volatile("int $0x80" : "=a"(n) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
    probe_say("%ld", n);
}
PROBE(i386_entry) = {"4-calls", "i386_entry", TRACE_DONE, try_i386, NULL};
