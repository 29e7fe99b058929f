// SPDX-License-Identifier: Apache-2.0
/* cg.c — see cg.h. */
#include "host/launcher/cg.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "host/launcher/cg_inner.h"

#define CPU_PERIOD_US 100000
#define FILE_MAX      4096

static const char *const words[CG_COUNT] = {"memory", "pids", "cpu", "freezer"};

const char *cg_word(enum cg_controller c)
{
    return words[c];
}

bool cg_put(const struct cg *cg, int dir, const char *file, const char *text)
{
    int make = cg->plain ? O_CREAT | O_TRUNC : 0;
    own_fd fd = openat(dir, file, O_WRONLY | O_CLOEXEC | make, 0644);

    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

void cg_close(struct cg *cg)
{
    own_close_p(&cg->v2);
    for (unsigned c = 0; c < CG_COUNT; c++)
        own_close_p(&cg->v1[c]);
    *cg = (struct cg){.v2 = -1, .v1 = {-1, -1, -1, -1}};
}

bool cg_has(const struct cg *cg, enum cg_controller c)
{
    return cg->on_v2[c] || cg->v1[c] >= 0;
}

const char *cg_mechanism(const struct cg *cg, enum cg_controller c)
{
    if (!cg_has(cg, c))
        return "none";
    return cg->delegated  ? cg->on_v2[c] ? "v2, delegated to you" : "v1, delegated to you"
           : cg->on_v2[c] ? "v2"
                          : "v1";
}

/* --- making --- */

static fallible make_dir(int parent, const char *name)
{
    if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST)
        return err_sys("make control group '%s'", name);
    return NULL;
}

/* The hierarchy that lists every process: v2, else any. */
static int any_parent(const struct cg *cg)
{
    int parent = cg->v2;

    for (unsigned c = 0; c < CG_COUNT && parent < 0; c++)
        parent = cg->v1[c];
    return parent;
}

/* An ordinary user has no such attributes, and its groups for itself. */
#define OWNER "trusted.croft"

fallible cg_claim(const struct cg *cg, const char *name, bool *ret_taken)
{
    int parent = any_parent(cg);
    char path[NATIVE_ID_MAX + 48];

    bool made = parent < 0 || mkdirat(parent, name, 0755) == 0;
    *ret_taken = !made && errno == EEXIST;
    if (made && parent >= 0 && !cg->delegated) {
        snprintf(path, sizeof path, "/proc/self/fd/%d/%s", parent, name);
        (void)setxattr(path, OWNER, &cg->owner, sizeof cg->owner, 0); /* if it can be noted */
    }
    return made || *ret_taken ? NULL : err_sys("make control group '%s'", name);
}

bool cg_is_anothers(const struct cg *cg, const char *name)
{
    struct cg_owner owner;
    char path[NATIVE_ID_MAX + 48];

    snprintf(path, sizeof path, "/proc/self/fd/%d/%s", any_parent(cg), name);
    return getxattr(path, OWNER, &owner, sizeof owner) == sizeof owner &&
           memcmp(&owner, &cg->owner, sizeof owner) != 0;
}

/* A croft in another delegated group cannot be seen from here. */
static bool is_here(int parent, const char *name)
{
    return faccessat(parent, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static fallible open_group(int parent, const char *name, int *ret_dir)
{
    *ret_dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *ret_dir < 0 ? err_sys("open control group '%s'", name) : NULL;
}

static fallible cg_set(const struct cg *cg, const char *name, int dir, const char *file,
                       const char *text)
{
    if (!cg_put(cg, dir, file, text))
        return err_sys("write '%s' to %s of control group '%s'", text, file, name);
    return NULL;
}

fallible cg_make_v2(const struct cg *cg, const char *name, int *ret_dir)
{
    *ret_dir = -1;
    if (cg->v2 < 0)
        return NULL;
    *ret_dir = openat(cg->v2, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*ret_dir >= 0) /* its claim */
        return NULL;
    TRY(make_dir(cg->v2, name));
    return open_group(cg->v2, name, ret_dir);
}

fallible cg_make(const struct cg *cg, const char *name)
{
    for (unsigned c = 0; c < CG_COUNT; c++)
        if (cg->v1[c] >= 0)
            TRY(make_dir(cg->v1[c], name));
    return NULL;
}

/* --- limits --- */

static fallible set_limit(const struct cg *cg, const char *name, enum cg_controller c,
                          const char *v1_file, const char *v2_file, const char *text)
{
    own_fd dir = -1;

    if (!cg_has(cg, c))
        return err_new(ERR_UNSUPPORTED,
                       "a %s limit needs the '%s' control group, which is not to be had here; "
                       "'croft doctor' says why",
                       words[c], words[c]);
    TRY(open_group(cg->on_v2[c] ? cg->v2 : cg->v1[c], name, &dir));
    return cg_set(cg, name, dir, cg->on_v2[c] ? v2_file : v1_file, text);
}

/* 0 is no limit: "max" on v2 and of pids, -1 elsewhere on v1. */
static const char *cg_number(char out[64], uint64_t value, bool v2)
{
    snprintf(out, 64, "%" PRIu64, value);
    return value ? out : v2 ? "max" : "-1";
}

fallible cg_limit(const struct cg *cg, const char *name, const struct native_limits *was,
                  const struct native_limits *limits)
{
    char text[64], quota[128];
    bool v2 = cg->on_v2[CG_CPU];

    if (limits->memory_bytes != was->memory_bytes)
        TRY(set_limit(cg, name, CG_MEMORY, "memory.limit_in_bytes", "memory.max",
                      cg_number(text, limits->memory_bytes, cg->on_v2[CG_MEMORY])));
    if (limits->pids != was->pids)
        TRY(set_limit(cg, name, CG_PIDS, "pids.max", "pids.max",
                      cg_number(text, limits->pids, true)));
    if (limits->cpu_milli == was->cpu_milli)
        return NULL;
    const char *most = cg_number(text, (uint64_t)limits->cpu_milli * (CPU_PERIOD_US / 1000), v2);
    int n = snprintf(quota, sizeof quota, "%s", most);
    if (v2)
        snprintf(quota + n, sizeof quota - (size_t)n, " %d", CPU_PERIOD_US);
    return set_limit(cg, name, CG_CPU, "cpu.cfs_quota_us", "cpu.max", quota);
}

struct native_limits cg_part(const struct cg *cg, const struct native_limits *limits, bool v2)
{
    struct native_limits part = *limits;

    if (cg->on_v2[CG_MEMORY] != v2)
        part.memory_bytes = 0;
    if (cg->on_v2[CG_PIDS] != v2)
        part.pids = 0;
    if (cg->on_v2[CG_CPU] != v2)
        part.cpu_milli = 0;
    return part;
}

/* --- joining --- */

/* By "tasks", not "cgroup.procs"; both move all of a process with one thread. To move a whole
 * process the kernel stops every fork and exec of the machine for an RCU grace period: ten
 * milliseconds on a busy one. */
fallible cg_join_v1(const struct cg *cg, const char *name)
{
    for (unsigned c = 0; c < CG_COUNT; c++) {
        char path[NATIVE_ID_MAX + 32];
        if (cg->v1[c] < 0)
            continue;
        snprintf(path, sizeof path, "%s/tasks", name);
        TRY_WRAP(cg_set(cg, name, cg->v1[c], path, "0"), "join %s", words[c]);
    }
    return NULL;
}

/* --- freezing, killing --- */

static fallible read_at(int dir, const char *file, struct buf *into)
{
    own_fd fd = openat(dir, file, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return err_sys("open '%s'", file);
    return fd_read_all(fd, into);
}

#define LOOK_AGAIN_US 100

/* Waits for a change of cgroup.events, which raises POLLPRI. The second of two changes within 10 ms
 * is reported only after these, so until then the file is read too, at growing intervals. */
static fallible wait_event(int events, const char *name, uint64_t left_ns, unsigned looks)
{
    struct pollfd p = {.fd = events, .events = POLLPRI};
    uint64_t soon = (uint64_t)LOOK_AGAIN_US * 1000 << (looks < 16 ? looks : 16);
    uint64_t wait = soon < left_ns ? soon : left_ns;
    struct timespec t = {(time_t)(wait / NS_PER_S), (long)(wait % NS_PER_S)};

    if (ppoll(&p, 1, &t, NULL) < 0 && errno != EINTR)
        return err_sys("wait for cgroup.events of '%s'", name);
    return NULL;
}

static fallible wait_frozen(int dir, const char *name, const char *want, int timeout_ms)
{
    own_fd events = openat(dir, "cgroup.events", O_RDONLY | O_CLOEXEC);
    uint64_t end = clock_mono_ns(&clock_system) + (uint64_t)timeout_ms * NS_PER_MS;

    if (events < 0)
        return err_sys("open cgroup.events of '%s'", name);
    for (unsigned looks = 0;; looks++) {
        char text[256];
        ssize_t n = pread(events, text, sizeof text, 0);
        if (n < 0)
            return err_sys("read cgroup.events of '%s'", name);
        if (str_find(str_n(text, (size_t)n), str_of(want)) >= 0)
            return NULL;
        uint64_t now = clock_mono_ns(&clock_system);
        if (now >= end)
            return err_new(ERR_TIMEOUT, "'%s' did not freeze within %d ms", name, timeout_ms);
        TRY(wait_event(events, name, end - now, looks));
    }
}

static fallible freeze_v1(const struct cg *cg, const char *name, int dir, bool frozen)
{
    /* FREEZING becomes FROZEN when it is written or read again: a few tries, each a system call. */
    for (unsigned tries = 0; tries < 1000; tries++) {
        own_done(buf) state;
        buf_init(&state, FILE_MAX);
        TRY(cg_set(cg, name, dir, "freezer.state", frozen ? "FROZEN" : "THAWED"));
        TRY(read_at(dir, "freezer.state", &state));
        if (str_eq(str_trim(buf_str(&state)), frozen ? STR("FROZEN") : STR("THAWED")))
            return NULL;
    }
    return err_new(ERR_TIMEOUT, "'%s' did not freeze", name);
}

fallible cg_freeze(const struct cg *cg, const char *name, bool frozen, int timeout_ms)
{
    own_fd dir = -1;

    if (!cg_has(cg, CG_FREEZER))
        return err_new(ERR_UNSUPPORTED, "pause needs a control group that freezes; 'croft doctor' "
                                        "says what is missing");
    TRY(open_group(cg->on_v2[CG_FREEZER] ? cg->v2 : cg->v1[CG_FREEZER], name, &dir));
    if (!cg->on_v2[CG_FREEZER])
        return freeze_v1(cg, name, dir, frozen);
    TRY(cg_set(cg, name, dir, "cgroup.freeze", frozen ? "1" : "0"));
    return frozen ? wait_frozen(dir, name, "frozen 1", timeout_ms) : NULL;
}

fallible cg_kill(const struct cg *cg, const char *name)
{
    own_fd dir = -1;

    if (cg->v2 < 0)
        return cg->v1[CG_FREEZER] >= 0 ? cg_freeze(cg, name, false, 0) : NULL;
    if (cg->delegated && !is_here(cg->v2, name))
        return NULL;
    TRY(open_group(cg->v2, name, &dir));
    return cg_set(cg, name, dir, "cgroup.kill", "1");
}

/* --- the end --- */

static fallible has_process(int parent, const char *path, bool *ret_any)
{
    char byte;
    own_fd fd = parent >= 0 ? openat(parent, path, O_RDONLY | O_CLOEXEC) : -1;

    if (fd < 0 && parent >= 0 && errno != ENOENT)
        return err_sys("open '%s'", path);
    ssize_t n = fd >= 0 ? read(fd, &byte, 1) : 0;
    if (n < 0)
        return err_sys("read '%s'", path);
    *ret_any |= n > 0;
    return NULL;
}

fallible cg_populated(const struct cg *cg, const char *name, bool *ret_populated)
{
    char path[NATIVE_ID_MAX + 32];
    bool any = false;

    snprintf(path, sizeof path, "%s/cgroup.procs", name);
    TRY(has_process(cg->v2, path, &any));
    for (unsigned c = 0; c < CG_COUNT; c++)
        TRY(has_process(cg->v1[c], path, &any));
    *ret_populated = any;
    return NULL;
}

/* --- those who live in it --- */

#define PROCS_MAX (1u << 20)

static fallible read_procs(const struct cg *cg, const char *name, struct buf *into)
{
    char path[NATIVE_ID_MAX + 32];

    if (any_parent(cg) < 0)
        return NULL; /* an ordinary user's: no process is listed anywhere */
    snprintf(path, sizeof path, "%s/cgroup.procs", name);
    own_fd fd = openat(any_parent(cg), path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) /* to take it for empty would end the processes in it */
        return errno == ENOENT ? NULL : err_sys("open '%s'", path);
    return err_wrap(fd_read_all(fd, into), "read '%s'", path);
}

static bool next_pid(struct str *rest, pid_t *ret_pid)
{
    struct str line;
    uint64_t pid;

    while (rest->len) {
        str_cut(rest, '\n', &line);
        if (str_to_u64(line, &pid) && pid > 1 && pid < INT32_MAX) {
            *ret_pid = (pid_t)pid;
            return true;
        }
    }
    return false;
}

fallible cg_holds(const struct cg *cg, const char *name, pid_t pid, bool *ret_inside)
{
    own_done(buf) text;
    pid_t at;

    buf_init(&text, PROCS_MAX);
    *ret_inside = any_parent(cg) < 0 || (cg->delegated && !is_here(any_parent(cg), name));
    if (*ret_inside)
        return NULL;
    TRY(read_procs(cg, name, &text));
    for (struct str rest = buf_str(&text); !*ret_inside && next_pid(&rest, &at);)
        *ret_inside = at == pid;
    return NULL;
}

fallible cg_list(const struct cg *cg, const char *name, pid_t *pids, size_t max, size_t *ret_count)
{
    own_done(buf) text;

    buf_init(&text, PROCS_MAX);
    TRY(read_procs(cg, name, &text));
    struct str rest = buf_str(&text);
    for (*ret_count = 0; *ret_count < max && next_pid(&rest, &pids[*ret_count]);)
        ++*ret_count;
    return NULL;
}

fallible cg_is_frozen(const struct cg *cg, const char *name, bool *ret_frozen)
{
    own_done(buf) text;
    own_fd dir = -1;
    bool v2 = cg->on_v2[CG_FREEZER];

    buf_init(&text, FILE_MAX);
    *ret_frozen = false;
    if (!cg_has(cg, CG_FREEZER) || (cg->delegated && !is_here(any_parent(cg), name)))
        return NULL;
    TRY(open_group(v2 ? cg->v2 : cg->v1[CG_FREEZER], name, &dir));
    TRY(read_at(dir, v2 ? "cgroup.freeze" : "freezer.state", &text));
    *ret_frozen = str_eq(str_trim(buf_str(&text)), v2 ? STR("1") : STR("FROZEN"));
    return NULL;
}

/* A process that is gone already is fine; one that will not go is not. */
static fallible end_process(pid_t pid, int timeout_ms)
{
    own_fd pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

    if (pidfd < 0)
        return errno == ESRCH ? NULL : err_sys("open process %d", (int)pid);
    if (kill(pid, SIGKILL) < 0 && errno != ESRCH)
        return err_sys("kill process %d", (int)pid);
    return fd_wait(pidfd, POLLIN, timeout_ms);
}

fallible cg_end(const struct cg *cg, const char *name, int timeout_ms)
{
    /* Killed as a whole where the kernel can; else again, for processes that were cloned meanwhile.
     */
    for (unsigned round = 0; round < 100; round++) {
        own_done(buf) text;
        pid_t pid;
        buf_init(&text, PROCS_MAX);
        TRY(read_procs(cg, name, &text));
        struct str rest = buf_str(&text);
        if (!next_pid(&rest, &pid))
            return NULL;
        TRY(cg_kill(cg, name));
        for (rest = buf_str(&text); next_pid(&rest, &pid);)
            TRY(end_process(pid, timeout_ms));
    }
    return err_new(ERR_BUSY, "control group '%s' does not end", name);
}

static fallible remove_group(const struct cg *cg, int parent, const char *name)
{
    if (parent >= 0 && unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT && !cg->plain)
        return err_sys("remove control group '%s'", name);
    return NULL;
}

/* The claim goes last, and stays if anything else does: the next sandbox that takes it makes the
 * others. */
fallible cg_remove(const struct cg *cg, const char *name)
{
    int claim = any_parent(cg);
    struct err *first = NULL;

    for (unsigned c = 0; c < CG_COUNT; c++) {
        struct err *e = cg->v1[c] == claim ? NULL : remove_group(cg, cg->v1[c], name);
        if (first)
            err_free(e); /* one story is enough */
        else
            first = e;
    }
    return first ? first : remove_group(cg, claim, name);
}

/* --- out of memory --- */

#define CG_MEMORY_NOW(v2) ((v2) ? "memory.current" : "memory.usage_in_bytes")

static fallible open_of_memory(const struct cg *cg, const char *name, const char *file, int *ret_fd)
{
    char path[NATIVE_ID_MAX + 48];

    *ret_fd = -1;
    if (!cg_has(cg, CG_MEMORY))
        return NULL;
    snprintf(path, sizeof path, "%s/%s", name, file);
    *ret_fd = openat(cg->on_v2[CG_MEMORY] ? cg->v2 : cg->v1[CG_MEMORY], path, O_RDONLY | O_CLOEXEC);
    return *ret_fd < 0 ? err_sys("open '%s'", path) : NULL;
}

fallible cg_open_oom(const struct cg *cg, const char *name, int *ret_fd)
{
    return open_of_memory(cg, name, cg->on_v2[CG_MEMORY] ? "memory.events" : "memory.oom_control",
                          ret_fd);
}

fallible cg_open_memory(const struct cg *cg, const char *name, int *ret_fd)
{
    return open_of_memory(cg, name, CG_MEMORY_NOW(cg->on_v2[CG_MEMORY]), ret_fd);
}

/* Both files have a line "oom_kill N". */
fallible cg_read_oom(int fd, uint64_t *ret_kills)
{
    char text[FILE_MAX];
    ssize_t n = pread(fd, text, sizeof text, 0);
    struct str rest = str_n(text, n > 0 ? (size_t)n : 0), line, word;

    if (n < 0)
        return err_sys("read the out-of-memory counter");
    for (bool more = true; more;) {
        more = str_cut(&rest, '\n', &line);
        if (str_cut(&line, ' ', &word) && str_eq(word, STR("oom_kill")) &&
            str_to_u64(str_trim(line), ret_kills))
            return NULL;
    }
    return err_new(ERR_CORRUPT, "the out-of-memory counter has no line 'oom_kill'");
}

/* --- usage --- */

/* A number, or the one behind key in a file of lines "key N". */
static bool find_number(int parent, const char *name, const char *file, struct str key,
                        uint64_t *ret_n)
{
    char path[NATIVE_ID_MAX + 48], text[FILE_MAX];
    struct str line, word;

    snprintf(path, sizeof path, "%s/%s", name, file);
    own_fd fd = parent >= 0 ? openat(parent, path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t got = fd >= 0 ? pread(fd, text, sizeof text, 0) : 0;
    struct str rest = str_n(text, got > 0 ? (size_t)got : 0);
    if (!key.len)
        return str_to_u64(str_trim(rest), ret_n);
    for (bool more = true; more;) {
        more = str_cut(&rest, '\n', &line);
        if (str_cut(&line, ' ', &word) && str_eq(word, key) && str_to_u64(str_trim(line), ret_n))
            return true;
    }
    return false;
}

static bool read_memory(const struct cg *cg, const char *name, uint64_t *ret_bytes)
{
    bool v2 = cg->on_v2[CG_MEMORY];

    return find_number(v2 ? cg->v2 : cg->v1[CG_MEMORY], name, CG_MEMORY_NOW(v2), STR(""),
                       ret_bytes);
}

static bool read_pids(const struct cg *cg, const char *name, uint64_t *ret_pids)
{
    return find_number(cg->on_v2[CG_PIDS] ? cg->v2 : cg->v1[CG_PIDS], name, "pids.current", STR(""),
                       ret_pids);
}

uint64_t cg_pids_denied(const struct cg *cg, const char *name)
{
    uint64_t n = 0;

    find_number(cg->on_v2[CG_PIDS] ? cg->v2 : cg->v1[CG_PIDS], name, "pids.events", STR("max"), &n);
    return n;
}

static bool read_cpu(const struct cg *cg, const char *name, uint64_t *ret_ns)
{
    uint64_t us = 0;

    if (!find_number(cg->v2, name, "cpu.stat", STR("usage_usec"), &us))
        return find_number(cg->v1[CG_CPU], name, "cpuacct.usage", STR(""), ret_ns);
    *ret_ns = us * 1000;
    return true;
}

void cg_usage(const struct cg *cg, const char *name, struct native_usage *ret_usage)
{
    *ret_usage = (struct native_usage){0};
    read_memory(cg, name, &ret_usage->memory_bytes);
    read_pids(cg, name, &ret_usage->pids);
    read_cpu(cg, name, &ret_usage->cpu_ns);
}

bool cg_is_bare(const struct cg *cg, const char *name, uint64_t most_bytes, uint64_t *ret_cpu_ns)
{
    uint64_t bytes, pids, oom = 1;
    own_fd counter = -1;
    struct err *e = cg_open_oom(cg, name, &counter);

    if (!e && counter >= 0)
        e = cg_read_oom(counter, &oom);
    bool known = !e && read_pids(cg, name, &pids) && read_memory(cg, name, &bytes) &&
                 read_cpu(cg, name, ret_cpu_ns);
    err_free(e); /* what is not known is not bare */
    return known && !oom && !pids && bytes <= most_bytes;
}
