// SPDX-License-Identifier: Apache-2.0
/* marks.c — see escape.h: what the bait shows of somebody who was there. */
#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "test/escape/escape.h"
#include "test/escape/walls.h"
#include "test/test.h"

static void add(struct buf *out, bool there, const char *what)
{
    if (there)
        buf_addf(out, "%s\n", what);
}

/* --- what listens --- */

/* Who came says the name of his row; who came and says nothing came all the same. */
static void hear(int from, struct buf *out)
{
    char text[100];
    ssize_t n = recv(from, text, sizeof text - 1, MSG_DONTWAIT);

    text[n > 0 ? n : 0] = '\0';
    add(out, true, n > 0 ? text : "somebody connected");
}

static void hear_sockets(const struct escape_bait *b, struct buf *out)
{
    const int listeners[] = {b->abstract, b->path, b->tcp};
    struct pollfd udp = {.fd = b->udp, .events = POLLIN};

    for (size_t i = 0; i < sizeof listeners / sizeof *listeners; i++)
        for (int fd; (fd = accept4(listeners[i], NULL, NULL, SOCK_CLOEXEC)) >= 0; close(fd))
            hear(fd, out);
    while (poll(&udp, 1, 0) > 0)
        hear(b->udp, out);
}

static void hear_terminal(const struct escape_bait *b, struct buf *out)
{
    char text[100];
    ssize_t n = read(b->pty, text, sizeof text - 1);

    text[n > 0 ? n : 0] = '\0';
    add(out, n > 0, text);
}

static void hear_sysv(const struct escape_bait *b, struct buf *out)
{
    struct {
        long type;
        char text[101];
    } msg = {0};
    char *at = shmat(b->sysv_shm, NULL, 0);

    CHECK(at != (char *)-1);
    add(out, at[0], at);
    shmdt(at);
    while (msgrcv(b->sysv_msg, &msg, sizeof msg.text - 1, 0, IPC_NOWAIT | MSG_NOERROR) > 0)
        add(out, true, msg.text);
    add(out, semctl(b->sysv_sem, 0, GETVAL) != 0, "10-neighbours/sysv_semaphores_of_host");
}

/* --- files --- */

static void look_at_names(const struct escape_bait *b, struct buf *out)
{
    DIR *d = opendir(b->dir);

    CHECK(d != NULL);
    for (struct dirent *e; (e = readdir(d));)
        if (strncmp(e->d_name, "secret.", 7) == 0)
            add(out, true, "1-paths/hard_link");
        else if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
                 strcmp(e->d_name, "secret") != 0 && strcmp(e->d_name, "sock") != 0)
            buf_addf(out, "a file beside the secret: %s\n", e->d_name);
    closedir(d);
}

static void look_at_files(const struct escape_bait *b, struct buf *out)
{
    const char *const files[] = {b->file, b->dev_shm};
    const struct stat *was = &b->as_laid;
    char text[64];
    struct stat st;

    for (size_t i = 0; i < 2; i++)
        add(out, walls_read(files[i], text, sizeof text) < 0 || strcmp(text, b->secrets[0]) != 0,
            "another text in a file");
    CHECK_INT(stat(b->file, &st), 0);
    add(out,
        st.st_mode != was->st_mode || st.st_uid != was->st_uid || st.st_gid != was->st_gid ||
            st.st_ino != was->st_ino || st.st_mtim.tv_sec != was->st_mtim.tv_sec ||
            st.st_mtim.tv_nsec != was->st_mtim.tv_nsec,
        "another owner, mode or time of a file");
    look_at_names(b, out);
}

/* --- the victim --- */

static void ask_victim(const struct escape_bait *b, struct buf *out)
{
    static const struct {
        int sig;
        const char *row;
    } rows[] = {{VICTIM_KILL, "10-neighbours/signal_host_process"},
                {VICTIM_QUEUE, "10-neighbours/victim_queue_signal"},
                {VICTIM_THREAD, "10-neighbours/victim_signal_thread"},
                {VICTIM_PIDFD, "10-neighbours/victim_pidfd_open"}};
    unsigned known = 0, all = 0;
    char byte;

    CHECK_INT(kill(b->victim, VICTIM_ASKED), 0);
    CHECK_OK(fd_wait(b->asked, POLLIN, 10000 * (int)test_slow()));
    CHECK_INT(read(b->asked, &byte, 1), 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        known += b->page->came[rows[i].sig];
        add(out, b->page->came[rows[i].sig], rows[i].row);
    }
    for (size_t i = 0; i < sizeof b->page->came; i++)
        all += b->page->came[i];
    add(out, all > known, "another signal to the victim");
}

/* Of open files; from /proc, which lets root look even without the capability to change it. */
static unsigned limit_of(pid_t pid)
{
    static const char key[] = "\nMax open files";
    char path[64], limits[4096];
    unsigned n;

    snprintf(path, sizeof path, "/proc/%d/limits", (int)pid);
    CHECK(walls_read(path, limits, sizeof limits) > 0);
    const char *at = strstr(limits, key);
    CHECK(at && sscanf(at + strlen(key), "%u", &n) == 1);
    return n;
}

static void look_at_victim(const struct escape_bait *b, struct buf *out)
{
    char path[64], status[8192];
    cpu_set_t cpus;
    int how;

    if (waitpid(b->victim, &how, WNOHANG | WUNTRACED) != 0) {
        add(out, true, "the victim has ended or stands still");
        return;
    }
    ask_victim(b, out);
    snprintf(path, sizeof path, "/proc/%d/status", (int)b->victim);
    CHECK(walls_read(path, status, sizeof status) > 0);
    add(out, !strstr(status, "\nTracerPid:\t0\n"), "the victim is traced");
    add(out, strcmp(b->page->secret, b->secrets[0]) != 0, "another text in the victim's memory");
    add(out, b->page->traced, "10-neighbours/victim_ptrace");
    add(out, b->page->written, "10-neighbours/victim_write_memory");
    add(out, limit_of(b->victim) == VICTIM_OPEN, "10-neighbours/victim_limits");
    CHECK_INT(sched_getaffinity(b->victim, sizeof cpus, &cpus), 0);
    add(out, !CPU_EQUAL(&cpus, &b->cpus), "10-neighbours/victim_affinity");
    add(out, getpriority(PRIO_PROCESS, (id_t)b->victim) == VICTIM_NICE,
        "10-neighbours/victim_priority");
    add(out, syscall(SYS_ioprio_get, 1, b->victim) == VICTIM_IO,
        "10-neighbours/victim_io_priority");
    add(out, sched_getscheduler(b->victim) == SCHED_BATCH, "10-neighbours/victim_scheduler");
}

/* --- the host itself --- */

static const char *const settings[] = {
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/modules_disabled",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/domainname",
    "/proc/sys/kernel/yama/ptrace_scope",
    "/proc/sys/kernel/randomize_va_space",
    "/proc/sys/kernel/panic",
    "/proc/sys/kernel/sysrq",
    "/proc/sys/kernel/keys/maxkeys",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/vm/mmap_min_addr",
    "/proc/sys/fs/binfmt_misc/status",
    "/proc/sys/fs/file-max",
    "/proc/sys/fs/suid_dumpable",
    "/proc/sys/fs/protected_symlinks",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/irq/default_smp_affinity",
    "/proc/swaps",
    "/sys/kernel/uevent_helper",
    "/sys/power/disk",
    "/sys/kernel/mm/ksm/run",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/kexec_crash_size",
    "/sys/module/kernel/parameters/crash_kexec_post_notifiers",
    "/sys/devices/system/cpu/online",
    "/sys/fs/cgroup/memory/release_agent",
    "/sys/fs/cgroup/devices/devices.list",
    "/proc/self/cgroup",
    "/proc/self/mountinfo",
};

void escape_own_mounts(void)
{
    CHECK_INT(unshare(CLONE_NEWNS), 0);
    CHECK_INT(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
}

void escape_settings(struct buf *out)
{
    static char text[1u << 18];

    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        ssize_t n = walls_read(settings[i], text, sizeof text);
        buf_addf(out, "%s:\n", settings[i]);
        buf_add(out, str_n(text, n > 0 ? (size_t)n : 0));
    }
    CHECK(!buf_failed(out));
}

/* The first line that differs, and of what. */
static void look_at_settings(const struct escape_bait *b, struct buf *out)
{
    own_done(buf) now;
    struct str of = STR(""), was, is;

    buf_init(&now, 1u << 20);
    escape_settings(&now);
    struct str before = buf_str(&b->settings), after = buf_str(&now);
    while (before.len || after.len) {
        was = is = STR("");
        str_cut(&before, '\n', &was);
        str_cut(&after, '\n', &is);
        if (!str_eq(was, is)) {
            buf_addf(out, "%.*s now has: %.*s\n", STR_ARG(of), STR_ARG(is));
            return;
        }
        if (was.len && was.p[0] == '/' && was.p[was.len - 1] == ':')
            of = was;
    }
}

void escape_bait_marks(struct escape_bait *b, struct buf *out)
{
    hear_sockets(b, out);
    hear_terminal(b, out);
    hear_sysv(b, out);
    look_at_files(b, out);
    look_at_victim(b, out);
    look_at_settings(b, out);
}
