// SPDX-License-Identifier: Apache-2.0
/* known.c — known ways out, each by its number: how it begins, never the harm it did.
 *
 * Those that need a namespace of one's own first try to get one, as the exploits did. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/escape/probe/probe.h"

/* CVE-2019-5736: the runtime's own program, by the process that runs it, opened to be written.
 * "Text file busy" means: as soon as it ends. */
static void try_5736(const void *data)
{
    char path[64];
    pid_t pid = 1;

    (void)data;
    if (probe_is_control() && (pid = fork()) == 0) {
        pause();
        _exit(0);
    }
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    probe_step();
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd >= 0) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        probe_deed();
        open(path, O_WRONLY | O_CLOEXEC);
    }
    if (probe_is_control())
        kill(pid, SIGKILL);
}
PROBE(cve_2019_5736) = {"2-descriptors", "cve_2019_5736_write_runtime", TRACE_OPEN, try_5736, NULL};

/* CVE-2024-21626: a descriptor that the runtime forgot, as working directory. */
static void try_21626(const void *data)
{
    const char *file = probe_word("FILE");
    char path[64], up[1200];

    (void)data;
    if (!file)
        return;
    if (probe_is_control())
        open("/", O_PATH | O_DIRECTORY);
    snprintf(up, sizeof up, "../../../../../../../../..%s", file);
    for (int n = 0; n < 256; n++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", n);
        if (chdir(path) == 0)
            probe_say_file(up);
    }
}
PROBE(cve_2024_21626) = {"2-descriptors", "cve_2024_21626_descriptor_as_cwd", TRACE_TOLD, try_21626,
                         NULL};

/* CVE-2025-31133, CVE-2025-52565: /dev/null or /dev/console put aside for a link into /proc. */
static void try_dev_link(const void *data)
{
    char path[64];

    (void)data;
    snprintf(path, sizeof path, "/dev/probe-%d", (int)getpid());
    probe_deed();
    if (symlink("/proc/sys/kernel/core_pattern", path) == 0)
        unlink(path);
}
PROBE(cve_2025_31133) = {"12-images", "cve_2025_31133_link_in_dev", TRACE_DONE, try_dev_link, NULL};

static void try_dev_dir(const void *data)
{
    char path[64];

    (void)data;
    snprintf(path, sizeof path, "/dev/probe-%d", (int)getpid());
    probe_deed();
    if (mkdir(path, 0700) == 0)
        rmdir(path);
}
PROBE(cve_2025_52565) = {"12-images", "cve_2025_52565_directory_in_dev", TRACE_DONE, try_dev_dir,
                         NULL};

/* CVE-2025-52881: what the runtime would write to, redirected: may /proc be covered? */
static void try_cover_proc(const void *data)
{
    const char *what = data;

    if (probe_is_control() &&
        (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0))
        return;
    if (!probe_is_control())
        unshare(CLONE_NEWUSER | CLONE_NEWNS); /* if it may */
    probe_deed();
    mount("/tmp", what, NULL, MS_BIND, NULL);
}
PROBE(cve_2025_52881) = {"3-proc-sys", "cve_2025_52881_cover_proc", TRACE_DONE, try_cover_proc,
                         "/proc"};
PROBE(cover_usr) = {"12-images", "cover_usr", TRACE_DONE, try_cover_proc, "/usr"};
PROBE(cover_etc) = {"12-images", "cover_etc", TRACE_DONE, try_cover_proc, "/etc"};

/* A file system of one's own, mounted in a namespace of one's own. */
struct own_mount {
    const char *type, *options;
};

static void try_own_mount(const void *data)
{
    const struct own_mount *m = data;
    char dir[] = "/tmp/probe-XXXXXX";

    if (!mkdtemp(dir))
        return;
    bool apart = unshare(CLONE_NEWNS | (probe_is_control() ? 0 : CLONE_NEWUSER)) == 0 &&
                 mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
    if (apart || !probe_is_control()) {
        probe_deed();
        if (mount("none", dir, m->type, MS_RDONLY, m->options) == 0)
            umount2(dir, MNT_DETACH);
    }
    int why = errno;
    rmdir(dir);
    errno = why;
}

#define OWN_MOUNT(id, number, ...)                                                                 \
    PROBE(own_mount_##id) = {number, "mount_" #id, TRACE_DONE, try_own_mount,                      \
                             &(const struct own_mount){__VA_ARGS__}};
/* clang-format off */
OWN_MOUNT(cgroup_v1_cve_2022_0492, "3-proc-sys", "cgroup", "memory")
OWN_MOUNT(cgroup_v1_pids, "3-proc-sys", "cgroup", "pids")
OWN_MOUNT(cgroup_v2, "3-proc-sys", "cgroup2", NULL)
OWN_MOUNT(proc, "3-proc-sys", "proc", NULL)
OWN_MOUNT(sysfs, "3-proc-sys", "sysfs", NULL)
OWN_MOUNT(debugfs, "3-proc-sys", "debugfs", NULL)
OWN_MOUNT(tracefs, "3-proc-sys", "tracefs", NULL)
OWN_MOUNT(securityfs, "3-proc-sys", "securityfs", NULL)
OWN_MOUNT(bpf, "3-proc-sys", "bpf", NULL)
OWN_MOUNT(devtmpfs, "3-proc-sys", "devtmpfs", NULL)
OWN_MOUNT(devpts_of_host, "8-processes", "devpts", NULL)
OWN_MOUNT(mqueue, "10-neighbours", "mqueue", NULL)
OWN_MOUNT(binfmt_misc, "3-proc-sys", "binfmt_misc", NULL)
OWN_MOUNT(tmpfs, "12-images", "tmpfs", NULL)
OWN_MOUNT(overlay_cve_2023_0386, "12-images", "overlay", "lowerdir=/usr:/tmp")
/* clang-format on */

/* CVE-2022-0185: a file system context that takes parameters. */
static void try_0185(const void *data)
{
    (void)data;
    if (!probe_is_control())
        unshare(CLONE_NEWUSER | CLONE_NEWNS);
    probe_step();
    int fs = (int)syscall(SYS_fsopen, "tmpfs", 0);
    if (fs < 0)
        return;
    probe_deed();
    syscall(SYS_fsconfig, fs, 1 /* SET_STRING */, "source", "x", 0);
}
PROBE(cve_2022_0185) = {"4-calls", "cve_2022_0185_fsconfig", TRACE_DONE, try_0185, NULL};

/* CVE-2024-1086, CVE-2016-8655, CVE-2017-7308: root of one's own network, and its odd sockets. */
struct own_net {
    int domain, type, protocol;
};

static void try_own_net(const void *data)
{
    const struct own_net *s = data;

    if (unshare((probe_is_control() ? 0 : CLONE_NEWUSER) | CLONE_NEWNET) < 0 && probe_is_control())
        return;
    probe_deed();
    socket(s->domain, s->type | SOCK_CLOEXEC, s->protocol);
}
PROBE(cve_2024_1086) = {"5-sockets", "cve_2024_1086_nf_tables", TRACE_DONE, try_own_net,
                        &(const struct own_net){AF_NETLINK, SOCK_RAW, 12}};
PROBE(cve_2017_7308) = {"5-sockets", "cve_2017_7308_packet_ring", TRACE_DONE, try_own_net,
                        &(const struct own_net){AF_PACKET, SOCK_RAW, 0x0300}};
PROBE(cve_2016_8655) = {"5-sockets", "cve_2016_8655_packet_dgram", TRACE_DONE, try_own_net,
                        &(const struct own_net){AF_PACKET, SOCK_DGRAM, 0x0300}};
PROBE(own_net_raw) = {"5-sockets", "raw_socket_of_own_network", TRACE_DONE, try_own_net,
                      &(const struct own_net){AF_INET, SOCK_RAW, 255}};

/* CVE-2016-5195 and CVE-2022-0847: a file that is open for reading only, changed all the same. A
 * file of ours: on a kernel that is mended there is no such door, in or out. What it holds after is
 * for the host to read. */
static int read_only_file(char *path)
{
    char as_it_was[sizeof TRACE_WRITTEN];
    int fd = mkostemp(path, O_CLOEXEC);

    memset(as_it_was, '=', sizeof as_it_was);
    if (fd < 0 || write(fd, as_it_was, sizeof as_it_was) < 0)
        return -1;
    close(fd);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static void try_5195(const void *data)
{
    char path[] = "/tmp/probe-XXXXXX";
    int fd = read_only_file(path), mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

    (void)data;
    probe_calm();
    char *map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map != MAP_FAILED && fork() == 0) {
        for (int i = 0; i < 20000; i++)
            madvise(map, 4096, MADV_DONTNEED);
        _exit(0);
    }
    for (int i = 0; i < 20000 && map != MAP_FAILED; i++)
        if (pwrite(mem, TRACE_WRITTEN, strlen(TRACE_WRITTEN), (off_t)(uintptr_t)map) < 0)
            break;
    wait(NULL);
    probe_say_file(path);
    unlink(path);
}
PROBE(cve_2016_5195) = {"4-calls", "cve_2016_5195_copy_on_write", TRACE_TOLD, try_5195, NULL};

static void try_0847(const void *data)
{
    char path[] = "/tmp/probe-XXXXXX", page[4096] = "";
    int fd = read_only_file(path), p[2];
    loff_t at = 0;

    (void)data;
    if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
        return;
    while (write(p[1], page, sizeof page) > 0)
        ;
    while (read(p[0], page, sizeof page) > 0)
        ;
    if (splice(fd, &at, p[1], NULL, 1, 0) == 1)
        write(p[1], TRACE_WRITTEN, strlen(TRACE_WRITTEN));
    probe_say_file(path);
    unlink(path);
}
PROBE(cve_2022_0847) = {"4-calls", "cve_2022_0847_pipe", TRACE_TOLD, try_0847, NULL};

/* "Shocker": a file of the host by its number on the disk, whatever the root directory is. */
static void try_handle(const void *data)
{
    const char *file = probe_word("FILE");
    union {
        struct file_handle h;
        char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
    } u = {.h = {.handle_bytes = MAX_HANDLE_SZ}};
    int mount_id;

    (void)data;
    if (!file)
        return;
    probe_step();
    if (name_to_handle_at(AT_FDCWD, probe_is_control() ? file : "/", &u.h, &mount_id, 0) < 0)
        return;
    int root = open(probe_is_control() ? file : "/", O_RDONLY | O_CLOEXEC);
    probe_deed();
    open_by_handle_at(root, &u.h, O_RDONLY | O_CLOEXEC);
}
PROBE(shocker) = {"1-paths", "shocker_open_by_handle", TRACE_OPEN, try_handle, NULL};
