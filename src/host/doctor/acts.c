// SPDX-License-Identifier: Apache-2.0
/* acts.c — what a sandboxed program must not be able to do, tried. None of it does any harm where
 * it succeeds. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "host/doctor/doctor.h"

/* arg is a path */
static bool can_read(const struct doctor_act *a, const char *arg)
{
    own_fd fd = open(arg, O_RDONLY | O_CLOEXEC);

    (void)a;
    return fd >= 0;
}

/* arg is a process */
static bool can_signal(const struct doctor_act *a, const char *arg)
{
    (void)a;
    return kill((pid_t)atoi(arg), 0) == 0;
}

/* arg is a port on the loopback interface */
static bool can_connect(const struct doctor_act *a, const char *arg)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atoi(arg)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    own_fd fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)a;
    return fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0;
}

static bool can_mount(const struct doctor_act *a, const char *arg)
{
    (void)a, (void)arg;
    return mount("none", "/mnt", "tmpfs", 0, "size=4k") == 0;
}

/* In a child, which is thrown away with what it made. */
static bool in_child(bool (*act)(void))
{
    int status = 1;
    pid_t pid = fork();

    if (pid == 0)
        _exit(act() ? 0 : 1);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static bool make_namespace(void)
{
    return unshare(CLONE_NEWUSER) == 0;
}

static bool can_make_namespace(const struct doctor_act *a, const char *arg)
{
    (void)a, (void)arg;
    return in_child(make_namespace);
}

static bool can_rename_host(const struct doctor_act *a, const char *arg)
{
    (void)a, (void)arg;
    return sethostname("elsewhere", 9) == 0;
}

static bool can_tune_kernel(const struct doctor_act *a, const char *arg)
{
    own_fd fd = open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC);

    (void)a, (void)arg;
    return fd >= 0;
}

static bool can_make_device(const struct doctor_act *a, const char *arg)
{
    (void)a, (void)arg;
    bool made = mknod("/tmp/doctor-mem", S_IFCHR | 0600, makedev(1, 1)) == 0;
    own_fd fd = made ? open("/tmp/doctor-mem", O_RDONLY | O_CLOEXEC) : -1;
    unlink("/tmp/doctor-mem");
    return fd >= 0;
}

static bool can_load_bpf(const struct doctor_act *a, const char *arg)
{
    union bpf_attr attr = {
        .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
    own_fd fd = (int)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr);

    (void)a, (void)arg;
    return fd >= 0;
}

static bool can_use_raw_sockets(const struct doctor_act *a, const char *arg)
{
    own_fd raw = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
    own_fd vsock = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)a, (void)arg;
    return raw >= 0 || vsock >= 0;
}

static bool can_raise_limits(const struct doctor_act *a, const char *arg)
{
    (void)a, (void)arg;
    return access("/sys/fs/cgroup/memory", W_OK) == 0 ||
           access("/sys/fs/cgroup/cgroup.procs", W_OK) == 0;
}

const struct doctor_act doctor_acts[] = {
    {"read-file", "read a file of this machine", can_read, can_read},
    {"signal", "signal a process of this machine", can_signal, can_signal},
    {"connect", "connect to a server on this machine", can_connect, can_connect},
    {"mount", "mount a file system", NULL, can_mount},
    {"namespace", "make a namespace of its own", can_make_namespace, can_make_namespace},
    {"hostname", "rename the host", NULL, can_rename_host},
    {"sysctl", "change the kernel's settings", NULL, can_tune_kernel},
    {"device", "make and open a device", NULL, can_make_device},
    {"bpf", "load programs into the kernel", NULL, can_load_bpf},
    {"raw-socket", "open raw or hypervisor sockets", NULL, can_use_raw_sockets},
    {"cgroup", "change its own limits", NULL, can_raise_limits},
};
const size_t doctor_acts_len = ARRAY_LEN(doctor_acts);
