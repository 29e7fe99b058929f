// SPDX-License-Identifier: Apache-2.0
/* more.c — families 1 to 4 and 7: searches over everything there is, limits and namespaces. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "test/escape/probe/probe.h"

/* --- every process there is --- */

/* data is a path below /proc/PID that leads to the secret; own processes are part of the search. */
static void try_every_process(const void *data)
{
    const char *file = probe_word("FILE");
    DIR *proc = opendir("/proc");
    char path[1400];

    for (struct dirent *e; file && proc && (e = readdir(proc));) {
        if (e->d_name[0] < '1' || e->d_name[0] > '9')
            continue;
        snprintf(path, sizeof path, "/proc/%.20s/%s%s", e->d_name, (const char *)data, file);
        if (probe_say_file(path))
            return;
    }
}
PROBE(every_root) = {"1-paths", "root_of_every_process", TRACE_TOLD, try_every_process, "root"};
PROBE(every_cwd) = {"1-paths", "cwd_of_every_process", TRACE_TOLD, try_every_process,
                    "cwd/../../../../../../../../../.."};
PROBE(every_fd) = {"1-paths", "descriptor_3_of_every_process", TRACE_TOLD, try_every_process,
                   "task/../fd/3/../../../../../../../../../.."};

/* Descriptors of every other process, taken one by one: those who serve us hold what we may not. */
static void try_steal_everywhere(const void *data)
{
    DIR *proc = opendir("/proc");
    pid_t child = probe_is_control() ? fork() : 0;

    (void)data;
    if (probe_is_control() && child == 0) {
        pause();
        _exit(0);
    }
    for (struct dirent *e; proc && (e = readdir(proc));) {
        pid_t pid = (pid_t)atoi(e->d_name);
        char path[64], line[64] = "";
        if (pid <= 0 || pid == getpid() || (probe_is_control() && pid != child))
            continue;
        snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
        int comm = open(path, O_RDONLY | O_CLOEXEC);
        if (comm < 0 || read(comm, line, sizeof line - 1) < 0 ||
            (!probe_is_control() && pid != 1 && strncmp(line, "croft", 5) != 0))
            continue; /* other commands' are ours to take */
        int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        for (int fd = 0; fd < 64; fd++) {
            probe_deed();
            syscall(SYS_pidfd_getfd, pidfd, fd, 0);
        }
    }
    if (probe_is_control())
        kill(child, SIGKILL);
}
PROBE(steal_everywhere) = {"11-control", "descriptors_of_our_servers", TRACE_DONE,
                           try_steal_everywhere, NULL};

/* --- every file that can be written, below a directory of the kernel's --- */

static int on_file(const char *path, const struct stat *st, int type, struct FTW *f)
{
    (void)f;
    if (type != FTW_F || !S_ISREG(st->st_mode))
        return 0;
    probe_deed();
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return 0;
    close(fd);
    probe_say("%s", path);
    return 1;
}

/* The directory itself first: nobody opens one to write, but where it is not there or empty the row
 * has been tried too. */
static void try_walk(const void *data)
{
    probe_deed();
    open(data, O_WRONLY | O_CLOEXEC);
    nftw(data, on_file, 16, FTW_PHYS | FTW_MOUNT);
}
/* clang-format off */
PROBE(walk_proc_sys) = {"3-proc-sys", "any_setting_of_the_kernel", TRACE_OPEN, try_walk, "/proc/sys/kernel"};
PROBE(walk_proc_vm) = {"3-proc-sys", "any_setting_of_memory", TRACE_OPEN, try_walk, "/proc/sys/vm"};
PROBE(walk_proc_fs) = {"3-proc-sys", "any_setting_of_files", TRACE_OPEN, try_walk, "/proc/sys/fs"};
PROBE(walk_proc_net) = {"3-proc-sys", "any_setting_of_the_network", TRACE_OPEN, try_walk, "/proc/sys/net"};
PROBE(walk_sys_kernel) = {"3-proc-sys", "any_file_of_sys_kernel", TRACE_OPEN, try_walk, "/sys/kernel/mm"};
PROBE(walk_sys_block) = {"3-proc-sys", "any_file_of_sys_devices", TRACE_OPEN, try_walk, "/sys/devices/system"};
PROBE(walk_sys_module) = {"3-proc-sys", "any_file_of_sys_module", TRACE_OPEN, try_walk, "/sys/module"};
PROBE(walk_cgroup) = {"3-proc-sys", "any_control_group", TRACE_OPEN, try_walk, "/sys/fs/cgroup/memory"};
/* clang-format on */

/* Addresses of the kernel in files that all may read; the host knows the first one. */
static void try_addresses(const void *data)
{
    FILE *f = fopen(data, "re");
    char line[256];

    while (f && fgets(line, sizeof line, f))
        if (strtoull(line, NULL, 16) > 0xffff) {
            probe_say("%016llx", strtoull(line, NULL, 16));
            return;
        }
}
PROBE(kallsyms) = {"3-proc-sys", "addresses_in_kallsyms", TRACE_TOLD, try_addresses,
                   "/proc/kallsyms"};
PROBE(iomem) = {"3-proc-sys", "addresses_in_iomem", TRACE_TOLD, try_addresses, "/proc/iomem"};

/* --- namespaces by clone --- */

static void try_clone(const void *data)
{
    unsigned long flags = *(const unsigned long *)data | SIGCHLD;

    probe_deed();
    if (syscall(SYS_clone, flags, 0, 0, 0, 0) == 0)
        _exit(0);
}
#define CLONE(id, flag)                                                                            \
    PROBE(clone_##id) = {"4-calls", "clone_" #id, TRACE_DONE, try_clone,                           \
                         &(const unsigned long){flag}};
/* clang-format off */
CLONE(newuser, CLONE_NEWUSER)
CLONE(newns, CLONE_NEWNS)
CLONE(newpid, CLONE_NEWPID)
CLONE(newnet, CLONE_NEWNET)
CLONE(newipc, CLONE_NEWIPC)
CLONE(newuts, CLONE_NEWUTS)
CLONE(newcgroup, CLONE_NEWCGROUP)
CLONE(newuser_newns, CLONE_NEWUSER | CLONE_NEWNS)
/* clang-format on */

static void try_clone3(const void *data)
{
    struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = 17};

    (void)data;
    probe_deed();
    if (syscall(SYS_clone3, &args, sizeof args) == 0)
        _exit(0);
}
PROBE(clone3_newuser) = {"4-calls", "clone3_newuser", TRACE_DONE, try_clone3, NULL};

/* --- limits and rank --- */

static void try_realtime(const void *data)
{
    struct sched_param p = {.sched_priority = 1};

    (void)data;
    probe_deed();
    syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &p);
}
PROBE(realtime) = {"7-resources", "real_time", TRACE_DONE, try_realtime, NULL};

static void try_io_realtime(const void *data)
{
    (void)data;
    probe_deed();
    syscall(SYS_ioprio_set, 1, 0, 1 << 13);
}
PROBE(io_realtime) = {"7-resources", "io_real_time", TRACE_DONE, try_io_realtime, NULL};

static void try_rlimit(const void *data)
{
    int which = *(const int *)data;
    struct rlimit l;

    if (getrlimit(which, &l) < 0)
        return;
    if (l.rlim_max == RLIM_INFINITY && probe_is_control())
        l.rlim_max = 4096; /* lower it first */
    l.rlim_cur = 0;
    setrlimit(which, &l);
    l.rlim_max =
        RLIM_INFINITY; /* who had none before gains nothing: the control group bounds him */
    probe_deed();
    setrlimit(which, &l);
}
PROBE(raise_core) = {"8-processes", "core_files", TRACE_DONE, try_rlimit,
                     &(const int){RLIMIT_CORE}};
PROBE(raise_memlock) = {"7-resources", "raise_locked_memory", TRACE_LIMIT, try_rlimit,
                        &(const int){RLIMIT_MEMLOCK}};
PROBE(raise_nice) = {"7-resources", "raise_nice", TRACE_LIMIT, try_rlimit,
                     &(const int){RLIMIT_NICE}};
PROBE(raise_rtprio) = {"7-resources", "raise_rtprio", TRACE_LIMIT, try_rlimit,
                       &(const int){RLIMIT_RTPRIO}};
PROBE(raise_msgqueue) = {"7-resources", "raise_msgqueue", TRACE_LIMIT, try_rlimit,
                         &(const int){RLIMIT_MSGQUEUE}};

static void try_oom_shield(const void *data)
{
    (void)data;
    probe_step();
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    probe_deed();
    write(fd, "-1000", 5);
}
PROBE(oom_shield) = {"7-resources", "shield_from_out_of_memory", TRACE_DONE, try_oom_shield, NULL};

static void try_lock_memory(const void *data)
{
    (void)data;
    void *p = mmap(NULL, 64 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    probe_deed();
    mlock2(p, 64 << 20, MLOCK_ONFAULT);
}
PROBE(lock_memory) = {"7-resources", "lock_64_mebibytes", TRACE_DONE, try_lock_memory, NULL};

/* A map is written once: the second time, and one over ids that are not ours, must fail. */
static void try_map(const void *data)
{
    if (probe_is_control() && unshare(CLONE_NEWUSER) < 0)
        return;
    probe_step();
    int fd = open(data, O_WRONLY | O_CLOEXEC);
    const char *line = probe_is_control() ? "0 0 1\n" : "0 0 4294967295\n";
    if (fd < 0)
        return;
    probe_deed();
    write(fd, line, strlen(line));
}
PROBE(uid_map) = {"3-proc-sys", "rewrite_uid_map", TRACE_DONE, try_map, "/proc/self/uid_map"};

/* --- marks on files that a layer or the host would believe --- */

static void try_xattr(const void *data)
{
    char path[] = "/var/tmp/probe-XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);

    if (fd < 0)
        return;
    probe_deed();
    fsetxattr(fd, data, "y", 1, 0);
    int why = errno;
    unlink(path);
    errno = why;
}
/* clang-format off */
PROBE(xattr_opaque) = {"1-paths", "mark_opaque", TRACE_DONE, try_xattr, "trusted.overlay.opaque"};
PROBE(xattr_redirect) = {"1-paths", "mark_redirect", TRACE_DONE, try_xattr, "trusted.overlay.redirect"};
PROBE(xattr_metacopy) = {"1-paths", "mark_metacopy", TRACE_DONE, try_xattr, "trusted.overlay.metacopy"};
PROBE(xattr_trusted) = {"1-paths", "mark_trusted", TRACE_DONE, try_xattr, "trusted.probe"};
/* clang-format on */

static void try_device_number(const void *data)
{
    const unsigned *d = data;
    char path[] = "/var/tmp/probe-XXXXXX", node[64];

    if (!mkdtemp(path))
        return;
    snprintf(node, sizeof node, "%s/d", path);
    probe_deed();
    mknod(node, d[0] | 0600, makedev(d[1], d[2]));
    int why = errno;
    unlink(node);
    rmdir(path);
    errno = why;
}
#define DEVICE(id, ...)                                                                            \
    PROBE(device_##id) = {"8-processes", "make_" #id, TRACE_DONE, try_device_number,               \
                          &(const unsigned[]){__VA_ARGS__}};
/* clang-format off */
DEVICE(mem, S_IFCHR, 1, 1)
DEVICE(port, S_IFCHR, 1, 4)
DEVICE(kmsg, S_IFCHR, 1, 11)
DEVICE(console, S_IFCHR, 5, 1)
DEVICE(loop_control, S_IFCHR, 10, 237)
DEVICE(fuse, S_IFCHR, 10, 229)
DEVICE(kvm, S_IFCHR, 10, 232)
DEVICE(tun, S_IFCHR, 10, 200)
DEVICE(loop0, S_IFBLK, 7, 0)
DEVICE(virtio_disk, S_IFBLK, 254, 0)
/* clang-format on */

/* It stays: the host counts the file's names. */
static void try_hard_link(const void *data)
{
    const char *file = probe_word("FILE");
    char to[400];

    (void)data;
    if (!file)
        return;
    snprintf(to, sizeof to, "%s.%d", file, (int)getpid());
    link(file, to);
}
PROBE(hard_link) = {"1-paths", "hard_link", TRACE_LEFT, try_hard_link, NULL};

/* Addresses in memory of files whose names lead out. */
static void try_map_files(const void *data)
{
    char dir[64], names[64]; /* room for the two that every directory has: those are no secret */
    pid_t pid = 1;

    (void)data;
    if (probe_is_control() && (pid = fork()) == 0) {
        pause();
        _exit(0);
    }
    snprintf(dir, sizeof dir, "/proc/%d/map_files", (int)pid);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    probe_step();
    if (syscall(SYS_getdents64, fd, names, sizeof names) > 0) {
        probe_deed();
        syscall(SYS_getdents64, fd, names, sizeof names);
    }
    if (probe_is_control())
        kill(pid, SIGKILL);
}
PROBE(map_files) = {"1-paths", "map_files_of_init", TRACE_DONE, try_map_files, NULL};
