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
static enum probe_result try_every_process(const void *data, char *note, size_t size)
{
    const char *file = probe_word("FILE");
    DIR *proc = opendir("/proc");
    struct stat st;
    char path[1400];

    if (!file || !proc)
        return snprintf(note, size, "not told"), PROBE_ABSENT;
    for (struct dirent *e; (e = readdir(proc));) {
        if (e->d_name[0] < '1' || e->d_name[0] > '9')
            continue;
        snprintf(path, sizeof path, "/proc/%.20s/%s%s", e->d_name, (const char *)data, file);
        if (stat(path, &st) == 0)
            return snprintf(note, size, "process %.20s", e->d_name), PROBE_OPEN;
    }
    errno = ENOENT;
    return probe_refused(note, size);
}
PROBE(every_root) = {"1-paths", "root_of_every_process", try_every_process, "root"};
PROBE(every_cwd) = {"1-paths", "cwd_of_every_process", try_every_process,
                    "cwd/../../../../../../../../../.."};
PROBE(every_fd) = {"1-paths", "descriptor_3_of_every_process", try_every_process,
                   "task/../fd/3/../../../../../../../../../.."};

/* Descriptors of every other process, taken one by one: those who serve us hold what we may not. */
static enum probe_result try_steal_everywhere(const void *data, char *note, size_t size)
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
            (!probe_is_control() && strncmp(line, "croft", 5) != 0))
            continue; /* other commands' are ours to take */
        int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        for (int fd = 0; fd < 64; fd++)
            if (syscall(SYS_pidfd_getfd, pidfd, fd, 0) >= 0) {
                if (probe_is_control())
                    kill(child, 9);
                return snprintf(note, size, "%d of process %d", fd, (int)pid), PROBE_OPEN;
            }
    }
    errno = EPERM;
    return probe_refused(note, size);
}
PROBE(steal_everywhere) = {"11-control", "descriptors_of_our_servers", try_steal_everywhere, NULL};

/* --- every file that can be written, below a directory of the kernel's --- */

static struct {
    char name[100];
} found;

static int on_file(const char *path, const struct stat *st, int type, struct FTW *f)
{
    (void)f;
    if (type != FTW_F || !S_ISREG(st->st_mode))
        return 0;
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return 0;
    close(fd);
    snprintf(found.name, sizeof found.name, "%s", path);
    return 1;
}

static enum probe_result try_walk(const void *data, char *note, size_t size)
{
    if (nftw(data, on_file, 16, FTW_PHYS | FTW_MOUNT) == 1)
        return snprintf(note, size, "%s", found.name), PROBE_OPEN;
    errno = EROFS;
    return probe_refused(note, size);
}
/* clang-format off */
PROBE(walk_proc_sys) = {"3-proc-sys", "any_setting_of_the_kernel", try_walk, "/proc/sys/kernel"};
PROBE(walk_proc_vm) = {"3-proc-sys", "any_setting_of_memory", try_walk, "/proc/sys/vm"};
PROBE(walk_proc_fs) = {"3-proc-sys", "any_setting_of_files", try_walk, "/proc/sys/fs"};
PROBE(walk_proc_net) = {"3-proc-sys", "any_setting_of_the_network", try_walk, "/proc/sys/net"};
PROBE(walk_sys_kernel) = {"3-proc-sys", "any_file_of_sys_kernel", try_walk, "/sys/kernel/mm"};
PROBE(walk_sys_block) = {"3-proc-sys", "any_file_of_sys_devices", try_walk, "/sys/devices/system"};
PROBE(walk_sys_module) = {"3-proc-sys", "any_file_of_sys_module", try_walk, "/sys/module"};
PROBE(walk_cgroup) = {"3-proc-sys", "any_control_group", try_walk, "/sys/fs/cgroup/memory"};
/* clang-format on */

/* Addresses of the kernel in files that all may read. */
static enum probe_result try_addresses(const void *data, char *note, size_t size)
{
    FILE *f = fopen(data, "re");
    char line[256];

    if (!f)
        return probe_refused(note, size);
    while (fgets(line, sizeof line, f))
        if (strtoull(line, NULL, 16) > 0xffff)
            return PROBE_OPEN;
    return snprintf(note, size, "all zero"), PROBE_REFUSED;
}
PROBE(kallsyms) = {"3-proc-sys", "addresses_in_kallsyms", try_addresses, "/proc/kallsyms"};
PROBE(iomem) = {"3-proc-sys", "addresses_in_iomem", try_addresses, "/proc/iomem"};

/* --- namespaces by clone --- */

static enum probe_result try_clone(const void *data, char *note, size_t size)
{
    long pid = syscall(SYS_clone, *(const unsigned long *)data | SIGCHLD, 0, 0, 0, 0);

    if (pid == 0)
        _exit(0);
    return pid > 0 ? PROBE_OPEN : probe_refused(note, size);
}
#define CLONE(id, flag)                                                                            \
    PROBE(clone_##id) = {"4-calls", "clone_" #id, try_clone, &(const unsigned long){flag}};
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

static enum probe_result try_clone3(const void *data, char *note, size_t size)
{
    struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = 17};
    long pid = syscall(SYS_clone3, &args, sizeof args);

    (void)data;
    if (pid == 0)
        _exit(0);
    return pid > 0 ? PROBE_OPEN : probe_refused(note, size);
}
PROBE(clone3_newuser) = {"4-calls", "clone3_newuser", try_clone3, NULL};

/* --- limits and rank --- */

static enum probe_result try_realtime(const void *data, char *note, size_t size)
{
    struct sched_param p = {.sched_priority = 1};

    (void)data;
    if (syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &p) == 0)
        return PROBE_OPEN;
    return probe_refused(note, size);
}
PROBE(realtime) = {"7-resources", "real_time", try_realtime, NULL};

static enum probe_result try_io_realtime(const void *data, char *note, size_t size)
{
    (void)data;
    if (syscall(SYS_ioprio_set, 1, 0, 1 << 13) == 0)
        return PROBE_OPEN;
    return probe_refused(note, size);
}
PROBE(io_realtime) = {"7-resources", "io_real_time", try_io_realtime, NULL};

static enum probe_result try_rlimit(const void *data, char *note, size_t size)
{
    int which = *(const int *)data;
    struct rlimit l;

    if (getrlimit(which, &l) < 0)
        return probe_refused(note, size);
    if (l.rlim_max == RLIM_INFINITY && !probe_is_control() && which != RLIMIT_CORE)
        return snprintf(note, size, "had none"), PROBE_REFUSED; /* the control group bounds it */
    if (l.rlim_max == RLIM_INFINITY && probe_is_control())
        l.rlim_max = 4096; /* lower it first */
    l.rlim_cur = 0;
    setrlimit(which, &l);
    l.rlim_max = RLIM_INFINITY;
    if (which == RLIMIT_NOFILE)
        l.rlim_max = 1000000;
    return setrlimit(which, &l) == 0 ? PROBE_OPEN : probe_refused(note, size);
}
PROBE(raise_core) = {"8-processes", "core_files", try_rlimit, &(const int){RLIMIT_CORE}};
PROBE(raise_memlock) = {"7-resources", "raise_locked_memory", try_rlimit,
                        &(const int){RLIMIT_MEMLOCK}};
PROBE(raise_nice) = {"7-resources", "raise_nice", try_rlimit, &(const int){RLIMIT_NICE}};
PROBE(raise_rtprio) = {"7-resources", "raise_rtprio", try_rlimit, &(const int){RLIMIT_RTPRIO}};
PROBE(raise_msgqueue) = {"7-resources", "raise_msgqueue", try_rlimit,
                         &(const int){RLIMIT_MSGQUEUE}};

static enum probe_result try_oom_shield(const void *data, char *note, size_t size)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    (void)data;
    if (fd >= 0 && write(fd, "-1000", 5) == 5)
        return PROBE_OPEN;
    return probe_refused(note, size);
}
PROBE(oom_shield) = {"7-resources", "shield_from_out_of_memory", try_oom_shield, NULL};

static enum probe_result try_lock_memory(const void *data, char *note, size_t size)
{
    (void)data;
    void *p = mmap(NULL, 64 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED && mlock2(p, 64 << 20, MLOCK_ONFAULT) == 0)
        return PROBE_OPEN;
    return probe_refused(note, size);
}
PROBE(lock_memory) = {"7-resources", "lock_64_mebibytes", try_lock_memory, NULL};

static enum probe_result try_map(const void *data, char *note, size_t size)
{
    int fd = open(data, O_WRONLY | O_CLOEXEC);

    /* A map is written once: the second time, and one over ids that are not ours, must fail. */
    if (probe_is_control()) {
        close(fd);
        if (unshare(CLONE_NEWUSER) < 0)
            return probe_refused(note, size);
        fd = open(data, O_WRONLY | O_CLOEXEC);
    }
    const char *line = probe_is_control() ? "0 0 1\n" : "0 0 4294967295\n";
    if (fd >= 0 && write(fd, line, strlen(line)) > 0)
        return PROBE_OPEN;
    return probe_refused(note, size);
}
PROBE(uid_map) = {"3-proc-sys", "rewrite_uid_map", try_map, "/proc/self/uid_map"};

/* --- marks on files that a layer or the host would believe --- */

static enum probe_result try_xattr(const void *data, char *note, size_t size)
{
    char path[] = "/var/tmp/probe-XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);

    if (fd < 0)
        return snprintf(note, size, "no /var/tmp"), PROBE_ABSENT;
    bool got = fsetxattr(fd, data, "y", 1, 0) == 0;
    enum probe_result r = got ? PROBE_OPEN : probe_refused(note, size);
    unlink(path);
    return r;
}
/* clang-format off */
PROBE(xattr_opaque) = {"1-paths", "mark_opaque", try_xattr, "trusted.overlay.opaque"};
PROBE(xattr_redirect) = {"1-paths", "mark_redirect", try_xattr, "trusted.overlay.redirect"};
PROBE(xattr_metacopy) = {"1-paths", "mark_metacopy", try_xattr, "trusted.overlay.metacopy"};
PROBE(xattr_trusted) = {"1-paths", "mark_trusted", try_xattr, "trusted.probe"};
/* clang-format on */

static enum probe_result try_device_number(const void *data, char *note, size_t size)
{
    const unsigned *d = data;
    char path[] = "/var/tmp/probe-XXXXXX", node[64];

    if (!mkdtemp(path))
        return snprintf(note, size, "no /var/tmp"), PROBE_ABSENT;
    snprintf(node, sizeof node, "%s/d", path);
    bool got = mknod(node, d[0] | 0600, makedev(d[1], d[2])) == 0;
    enum probe_result r = got ? PROBE_OPEN : probe_refused(note, size);
    unlink(node);
    rmdir(path);
    return r;
}
#define DEVICE(id, ...)                                                                            \
    PROBE(device_##id) = {"8-processes", "make_" #id, try_device_number,                           \
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

static enum probe_result try_hard_link(const void *data, char *note, size_t size)
{
    const char *file = probe_word("FILE");
    char to[400];

    (void)data;
    if (!file)
        return snprintf(note, size, "not told"), PROBE_ABSENT;
    snprintf(to, sizeof to, "%s.%d", file, (int)getpid());
    if (link(file, to) < 0)
        return probe_refused(note, size);
    unlink(to);
    return PROBE_OPEN;
}
PROBE(hard_link) = {"1-paths", "hard_link", try_hard_link, NULL};

/* Addresses in memory of files whose names lead out. */
static enum probe_result try_map_files(const void *data, char *note, size_t size)
{
    char dir[64];
    pid_t pid = 1;

    (void)data;
    if (probe_is_control() && (pid = fork()) == 0) {
        pause();
        _exit(0);
    }
    snprintf(dir, sizeof dir, "/proc/%d/map_files", (int)pid);
    DIR *d = opendir(dir);
    bool got = false;
    for (struct dirent *e; d && !got && (e = readdir(d));)
        got = e->d_name[0] != '.';
    enum probe_result r = got ? PROBE_OPEN : probe_refused(note, size);
    if (probe_is_control())
        kill(pid, 9);
    return r;
}
PROBE(map_files) = {"1-paths", "map_files_of_init", try_map_files, NULL};
