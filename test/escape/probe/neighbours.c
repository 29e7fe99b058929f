// SPDX-License-Identifier: Apache-2.0
/* neighbours.c — families 2, 8 and 10: processes, descriptors and devices that are not ours.
 *
 * VICTIM is a process of the host, PIDFD_OF pid 1 inside. The control attacks a child of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/ptrace.h>
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

/* Outside: a child that waits. Inside: pid 1, which holds the sandbox's way in. */
static pid_t prey(void)
{
    if (!probe_is_control())
        return 1;
    pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    return pid;
}

static enum probe_result end(pid_t pid, bool got, char *note, size_t size)
{
    enum probe_result r = got ? PROBE_OPEN : probe_refused(note, size);

    if (probe_is_control())
        kill(pid, SIGKILL);
    return r;
}

static enum probe_result try_ptrace(const void *data, char *note, size_t size)
{
    pid_t pid = prey();

    (void)data;
    return end(pid, ptrace(PTRACE_SEIZE, pid, 0, 0) == 0, note, size);
}
PROBE(ptrace_init) = {"2-descriptors", "ptrace_init", try_ptrace, NULL};

static enum probe_result try_steal_fd(const void *data, char *note, size_t size)
{
    pid_t pid = prey();
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

    (void)data;
    for (int fd = 0; fd < 64; fd++)
        if (syscall(SYS_pidfd_getfd, pidfd, fd, 0) >= 0)
            return end(pid, true, note, size);
    return end(pid, false, note, size);
}
PROBE(pidfd_getfd_init) = {"2-descriptors", "pidfd_getfd_init", try_steal_fd, NULL};

static enum probe_result try_read_memory(const void *data, char *note, size_t size)
{
    pid_t pid = prey();
    char path[64], byte;

    (void)data;
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return end(pid, false, note, size);
    return end(pid, pread(fd, &byte, 1, (off_t)(size_t)&errno) >= 0 || errno == EIO, note, size);
}
PROBE(memory_of_init) = {"2-descriptors", "memory_of_init", try_read_memory, NULL};

static enum probe_result try_vm_read(const void *data, char *note, size_t size)
{
    pid_t pid = prey();
    char byte;
    struct iovec here = {&byte, 1}, there = {(void *)&probe_refused, 1};

    (void)data;
    ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);
    return end(pid, n == 1 || errno == EFAULT, note, size);
}
PROBE(vm_read_init) = {"2-descriptors", "vm_read_init", try_vm_read, NULL};

static enum probe_result try_proc_file(const void *data, char *note, size_t size)
{
    pid_t pid = prey();
    char path[64], text[64];

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, (const char *)data);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return end(pid, fd >= 0 && read(fd, text, sizeof text) >= 0, note, size);
}
PROBE(environ_of_init) = {"2-descriptors", "environ_of_init", try_proc_file, "environ"};
PROBE(maps_of_init) = {"2-descriptors", "maps_of_init", try_proc_file, "maps"};
PROBE(auxv_of_init) = {"2-descriptors", "auxv_of_init", try_proc_file, "auxv"};
PROBE(stack_of_init) = {"2-descriptors", "syscall_of_init", try_proc_file, "syscall"};

static enum probe_result try_fd_dir(const void *data, char *note, size_t size)
{
    pid_t pid = prey();
    char path[64], target[64];
    bool got = false;

    (void)data;
    for (int fd = 0; fd < 64 && !got; fd++) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
        got = readlink(path, target, sizeof target) > 0;
    }
    return end(pid, got, note, size);
}
PROBE(fds_of_init) = {"2-descriptors", "fds_of_init", try_fd_dir, NULL};

static enum probe_result try_exe(const void *data, char *note, size_t size)
{
    pid_t pid = prey();
    char path[64];

    (void)data;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    return end(pid, open(path, O_RDONLY | O_CLOEXEC) >= 0, note, size);
}
PROBE(exe_of_init) = {"2-descriptors", "exe_of_init", try_exe, NULL};

static enum probe_result try_signal_victim(const void *data, char *note, size_t size)
{
    const char *victim = probe_word("VICTIM");

    (void)data;
    if (!victim)
        return snprintf(note, size, "not told"), PROBE_ABSENT;
    return kill((pid_t)atoi(victim), 0) == 0 ? PROBE_OPEN : probe_refused(note, size);
}
PROBE(signal_host_process) = {"10-neighbours", "signal_host_process", try_signal_victim, NULL};

static enum probe_result try_victim_proc(const void *data, char *note, size_t size)
{
    const char *victim = probe_word("VICTIM"), *name = probe_word("VICTIM_NAME");
    char path[64], text[64] = "";

    (void)data;
    if (!victim || !name)
        return snprintf(note, size, "not told"), PROBE_ABSENT;
    snprintf(path, sizeof path, "/proc/%d/comm", atoi(victim));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return probe_refused(note, size);
    ssize_t n = read(fd, text, sizeof text - 1);
    return n > 0 && strncmp(text, name, strlen(name)) == 0 ? PROBE_OPEN : PROBE_REFUSED;
}
PROBE(see_host_process) = {"10-neighbours", "see_host_process", try_victim_proc, NULL};

/* --- ways to talk that the host left open --- */

static enum probe_result try_unix(const char *path, bool abstract, char *note, size_t size)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(to.sun_path + abstract, sizeof to.sun_path - 1, "%s", path);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + abstract + strlen(path));
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, len) == 0)
        return PROBE_OPEN;
    return probe_refused(note, size);
}

static enum probe_result try_abstract(const void *data, char *note, size_t size)
{
    const char *name = probe_word("ABSTRACT");

    (void)data;
    if (!name)
        return snprintf(note, size, "not told"), PROBE_ABSENT;
    return try_unix(name, true, note, size);
}
PROBE(abstract_socket) = {"5-sockets", "cve_2020_15257_abstract_socket", try_abstract, NULL};

static enum probe_result try_path_socket(const void *data, char *note, size_t size)
{
    const char *path = probe_word("SOCKET");

    (void)data;
    if (!path)
        return snprintf(note, size, "not told"), PROBE_ABSENT;
    return try_unix(path, false, note, size);
}
PROBE(path_socket) = {"5-sockets", "path_socket_of_host", try_path_socket, NULL};

static enum probe_result try_shm(const void *data, char *note, size_t size)
{
    const char *key = probe_word("SHM");

    (void)data;
    if (!key)
        return snprintf(note, size, "not told"), PROBE_ABSENT;
    return shmget((key_t)strtol(key, NULL, 0), 0, 0) >= 0 ? PROBE_OPEN : probe_refused(note, size);
}
PROBE(sysv_shm) = {"10-neighbours", "sysv_shared_memory_of_host", try_shm, NULL};

static enum probe_result try_dev_shm(const void *data, char *note, size_t size)
{
    const char *name = probe_word("DEVSHM");
    char path[300];

    (void)data;
    if (!name)
        return snprintf(note, size, "not told"), PROBE_ABSENT;
    snprintf(path, sizeof path, "/dev/shm/%s", name);
    return open(path, O_RDONLY | O_CLOEXEC) >= 0 ? PROBE_OPEN : probe_refused(note, size);
}
PROBE(dev_shm) = {"10-neighbours", "dev_shm_of_host", try_dev_shm, NULL};

/* --- things made inside that the host would trust --- */

static enum probe_result try_device(const void *data, char *note, size_t size)
{
    char name[] = "/tmp/probe-XXXXXX", path[64];

    (void)data;
    if (!mkdtemp(name))
        return snprintf(note, size, "no /tmp"), PROBE_ABSENT;
    snprintf(path, sizeof path, "%s/d", name);
    bool got = mknod(path, S_IFCHR | 0666, makedev(1, 11)) == 0; /* kmsg: only looked at */
    got = got && open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) >= 0;
    enum probe_result r = got ? PROBE_OPEN : probe_refused(note, size);
    unlink(path);
    rmdir(name);
    return r;
}
PROBE(make_a_device) = {"8-processes", "make_a_device", try_device, NULL};

static enum probe_result try_block_device(const void *data, char *note, size_t size)
{
    char name[] = "/tmp/probe-XXXXXX", path[64];

    (void)data;
    if (!mkdtemp(name))
        return snprintf(note, size, "no /tmp"), PROBE_ABSENT;
    snprintf(path, sizeof path, "%s/d", name);
    enum probe_result r =
        mknod(path, S_IFBLK | 0600, makedev(254, 0)) == 0 ? PROBE_OPEN : probe_refused(note, size);
    unlink(path);
    rmdir(name);
    return r;
}
PROBE(make_a_disk) = {"8-processes", "make_a_disk", try_block_device, NULL};

static enum probe_result try_tiocsti(const void *data, char *note, size_t size)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

    (void)data;
    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
        return snprintf(note, size, "no pty"), PROBE_ABSENT;
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (syscall(SYS_ioctl, slave, 0x5412 /* TIOCSTI */, "x") == 0)
        return PROBE_OPEN;
    if (probe_is_control() && errno == EIO) /* a setting of newer kernels */
        return snprintf(note, size, "switched off on this machine"), PROBE_ABSENT;
    return probe_refused(note, size);
}
PROBE(tiocsti) = {"8-processes", "tiocsti", try_tiocsti, NULL};

static enum probe_result try_raise_limit(const void *data, char *note, size_t size)
{
    (void)data;
    return nice(-5) != -1 ? PROBE_OPEN : probe_refused(note, size);
}
PROBE(negative_nice) = {"7-resources", "negative_nice", try_raise_limit, NULL};

static enum probe_result try_i386(const void *data, char *note, size_t size)
{
    long n;

    (void)data;
    __asm__ volatile("int $0x80" : "=a"(n) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
    if (n > 0) /* getpid of the other table */
        return PROBE_OPEN;
    snprintf(note, size, "errno %ld", -n);
    return PROBE_REFUSED;
}
PROBE(i386_entry) = {"4-calls", "i386_entry", try_i386, NULL};
