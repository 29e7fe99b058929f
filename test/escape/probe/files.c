// SPDX-License-Identifier: Apache-2.0
/* files.c — families 1 and 3: what the host has in its file systems, above all in /proc and /sys.
 *
 * Opened, never written. What the control finds missing is not a door on this machine. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/escape/probe/probe.h"

struct path {
    const char *path;
    int flags;
};

static void try_open(const void *data)
{
    const struct path *p = data;

    probe_deed();
    open(p->path, p->flags | O_CLOEXEC);
}

#define OPEN(id, ...)                                                                              \
    PROBE(open_##id) = {"3-proc-sys", #id, TRACE_OPEN, try_open, &(const struct path){__VA_ARGS__}};

/* clang-format off */
OPEN(core_pattern, "/proc/sys/kernel/core_pattern", O_WRONLY)
OPEN(modprobe, "/proc/sys/kernel/modprobe", O_WRONLY)
OPEN(modules_disabled, "/proc/sys/kernel/modules_disabled", O_WRONLY)
OPEN(hostname_sysctl, "/proc/sys/kernel/hostname", O_WRONLY)
OPEN(ns_last_pid, "/proc/sys/kernel/ns_last_pid", O_WRONLY)
OPEN(yama, "/proc/sys/kernel/yama/ptrace_scope", O_WRONLY)
OPEN(randomize, "/proc/sys/kernel/randomize_va_space", O_WRONLY)
OPEN(panic, "/proc/sys/kernel/panic", O_WRONLY)
OPEN(sysrq_setting, "/proc/sys/kernel/sysrq", O_WRONLY)
OPEN(keys_max, "/proc/sys/kernel/keys/maxkeys", O_WRONLY)
OPEN(overcommit, "/proc/sys/vm/overcommit_memory", O_WRONLY)
OPEN(drop_caches, "/proc/sys/vm/drop_caches", O_WRONLY)
OPEN(mmap_min_addr, "/proc/sys/vm/mmap_min_addr", O_WRONLY)
OPEN(binfmt_register, "/proc/sys/fs/binfmt_misc/register", O_WRONLY)
OPEN(file_max, "/proc/sys/fs/file-max", O_WRONLY)
OPEN(suid_dumpable, "/proc/sys/fs/suid_dumpable", O_WRONLY)
OPEN(protected_symlinks, "/proc/sys/fs/protected_symlinks", O_WRONLY)
OPEN(ip_forward, "/proc/sys/net/ipv4/ip_forward", O_WRONLY)
OPEN(sysrq_trigger, "/proc/sysrq-trigger", O_WRONLY)
OPEN(kcore, "/proc/kcore", O_RDONLY)
OPEN(kmsg, "/proc/kmsg", O_RDONLY | O_NONBLOCK)
OPEN(kpagecount, "/proc/kpagecount", O_RDONLY)
OPEN(kpageflags, "/proc/kpageflags", O_RDONLY)
OPEN(timer_list, "/proc/timer_list", O_RDONLY)
OPEN(proc_keys, "/proc/keys", O_RDONLY)
OPEN(proc_locks, "/proc/locks", O_RDONLY)
OPEN(proc_scsi, "/proc/scsi/scsi", O_RDONLY)
OPEN(proc_acpi, "/proc/acpi/wakeup", O_RDONLY)
OPEN(irq_affinity, "/proc/irq/default_smp_affinity", O_WRONLY)
OPEN(proc_bus, "/proc/bus/pci/devices", O_RDONLY)
OPEN(proc_vmallocinfo, "/proc/vmallocinfo", O_RDONLY)
OPEN(proc_slabinfo, "/proc/slabinfo", O_RDONLY)
OPEN(mtrr, "/proc/mtrr", O_WRONLY)
OPEN(uevent_helper, "/sys/kernel/uevent_helper", O_WRONLY)
OPEN(sys_power_state, "/sys/power/state", O_WRONLY)
OPEN(sys_power_disk, "/sys/power/disk", O_WRONLY)
OPEN(sys_mm_ksm, "/sys/kernel/mm/ksm/run", O_WRONLY)
OPEN(sys_thp, "/sys/kernel/mm/transparent_hugepage/enabled", O_WRONLY)
OPEN(sys_kexec, "/sys/kernel/kexec_crash_size", O_WRONLY)
OPEN(sys_debug, "/sys/kernel/debug/sched", O_RDONLY | O_DIRECTORY)
OPEN(sys_tracing, "/sys/kernel/tracing/trace", O_RDONLY)
OPEN(sys_security, "/sys/kernel/security/lsm", O_RDONLY)
OPEN(sys_efivars, "/sys/firmware/efi/efivars", O_RDONLY | O_DIRECTORY)
OPEN(sys_dmi_serial, "/sys/class/dmi/id/product_serial", O_RDONLY)
OPEN(sys_pci_rescan, "/sys/bus/pci/rescan", O_WRONLY)
OPEN(sys_module_param, "/sys/module/kernel/parameters/crash_kexec_post_notifiers", O_WRONLY)
OPEN(sys_cpu_offline, "/sys/devices/system/cpu/cpu1/online", O_WRONLY)
OPEN(cgroup_v2_procs, "/sys/fs/cgroup/cgroup.procs", O_WRONLY)
OPEN(cgroup_unified_procs, "/sys/fs/cgroup/unified/cgroup.procs", O_WRONLY)
OPEN(cgroup_v1_release_agent, "/sys/fs/cgroup/memory/release_agent", O_WRONLY)
OPEN(cgroup_v1_devices_allow, "/sys/fs/cgroup/devices/devices.allow", O_WRONLY)
OPEN(cgroup_v1_memory_procs, "/sys/fs/cgroup/memory/cgroup.procs", O_WRONLY)
OPEN(cgroup_v1_pids_procs, "/sys/fs/cgroup/pids/cgroup.procs", O_WRONLY)
OPEN(dev_mem, "/dev/mem", O_RDONLY)
OPEN(dev_kmsg, "/dev/kmsg", O_WRONLY)
OPEN(dev_port, "/dev/port", O_RDONLY)
OPEN(dev_root_disk, "/dev/vda", O_RDONLY)
OPEN(dev_loop_control, "/dev/loop-control", O_RDWR)
OPEN(dev_loop0, "/dev/loop0", O_RDONLY)
OPEN(dev_fuse, "/dev/fuse", O_RDWR)
OPEN(dev_kvm, "/dev/kvm", O_RDWR)
OPEN(dev_net_tun, "/dev/net/tun", O_RDWR)
OPEN(dev_vhost_net, "/dev/vhost-net", O_RDWR)
OPEN(dev_vsock, "/dev/vsock", O_RDONLY)
OPEN(dev_rtc, "/dev/rtc0", O_RDONLY)
OPEN(dev_console, "/dev/console", O_WRONLY)
OPEN(dev_tty1, "/dev/tty1", O_WRONLY)
OPEN(dev_hwrng, "/dev/hwrng", O_RDONLY)
OPEN(dev_cpu_msr, "/dev/cpu/0/msr", O_RDONLY)
OPEN(dev_snapshot, "/dev/snapshot", O_RDONLY)
OPEN(dev_mapper, "/dev/mapper/control", O_RDWR)
OPEN(dev_userfaultfd, "/dev/userfaultfd", O_RDWR)
OPEN(etc_shadow_backup, "/etc/shadow-", O_RDONLY)
OPEN(var_log_dpkg, "/var/log/dpkg.log", O_RDONLY)
OPEN(run_dir, "/run/lock", O_RDONLY | O_DIRECTORY)
OPEN(dpkg_lock, "/var/lib/dpkg/lock-frontend", O_WRONLY)
/* clang-format on */

/* --- the host's secret: a file of which only the host knows name and content --- */

/* data goes in front of the secret's path. */
static void try_secret(const void *data)
{
    const char *file = probe_word("FILE");
    char path[1024];

    snprintf(path, sizeof path, "%s%s", (const char *)data, file ? file : "");
    probe_say_file(path);
}

#define SECRET(id, prefix) PROBE(secret_##id) = {"1-paths", #id, TRACE_TOLD, try_secret, prefix};
/* clang-format off */
SECRET(by_its_name, "")
SECRET(dot_dot_chain, "/../../../../../../../../../../../../../../../..")
SECRET(dot_dot_from_proc, "/proc/self/cwd/../../../../../../../../../../../..")
SECRET(root_of_self, "/proc/self/root")
SECRET(root_of_thread, "/proc/thread-self/root")
SECRET(root_of_pid_1, "/proc/1/root")
SECRET(cwd_of_pid_1, "/proc/1/cwd/../../../../../../..")
SECRET(root_of_parent_dots, "/proc/self/root/../../../../../../..")
SECRET(descriptor_of_root, "/proc/self/fd/3/../../../../../../../../../..")
SECRET(descriptor_4, "/proc/self/fd/4/../../../../../../../../../..")
SECRET(usr_dots, "/usr/../../../../../../../../..")
SECRET(tmp_dots, "/tmp/../../../../../../../../..")
/* clang-format on */

static void try_symlink(const void *data)
{
    const char *file = probe_word("FILE");
    char name[] = "/tmp/probe-XXXXXX", link[64], target[1024];

    if (!file || !mkdtemp(name))
        return;
    snprintf(link, sizeof link, "%s/l", name);
    snprintf(target, sizeof target, "%s%s", (const char *)data, file);
    if (symlink(target, link) == 0)
        probe_say_file(link);
    unlink(link);
    rmdir(name);
}

PROBE(symlink_absolute) = {"1-paths", "symlink_absolute", TRACE_TOLD, try_symlink, ""};
PROBE(symlink_relative) = {"1-paths", "symlink_relative", TRACE_TOLD, try_symlink,
                           "../../../../../../../../../../../.."};

/* A classic: enter a directory, chroot deeper, walk up out of it. */
static void try_chroot_walk(const void *data)
{
    const char *file = probe_word("FILE");
    char name[] = "/tmp/probe-XXXXXX";

    (void)data;
    if (!file || !mkdtemp(name))
        return;
    int up = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool went = chroot(name) == 0 && fchdir(up) == 0;
    for (int i = 0; went && i < 64; i++)
        went = chdir("..") == 0;
    if (went && chroot(".") == 0 && (rmdir(name) == 0 || !probe_is_control()))
        probe_say_file(file);
}
PROBE(chroot_walk) = {"1-paths", "chroot_walk", TRACE_TOLD, try_chroot_walk, NULL};

/* Every descriptor that was left open, and every way up from it. */
static void try_descriptors(const void *data)
{
    const char *file = probe_word("FILE");
    char path[1200];

    (void)data;
    if (!file)
        return;
    if (probe_is_control()) /* outside one is opened, to see that the search finds it */
        open("/", O_PATH | O_DIRECTORY);
    for (int fd = 0; fd < 1024; fd++) {
        struct stat st;
        if (fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode))
            continue;
        snprintf(path, sizeof path, "/proc/self/fd/%d/../../../../../../../../../../..%s", fd,
                 file);
        probe_say_file(path);
    }
}
PROBE(inherited_descriptors) = {"2-descriptors", "inherited_descriptors", TRACE_TOLD,
                                try_descriptors, NULL};
