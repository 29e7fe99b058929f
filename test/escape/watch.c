// SPDX-License-Identifier: Apache-2.0
/* watch.c — see watch.h. Who traces must be one process from the attachment to the end, and the
 * test has a sandbox to drive meanwhile: so it is a child, and the rows are in shared memory. */
#include "test/escape/watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/escape/walls.h"
#include "test/test.h"

#define TASKS   256
#define LOOK_MS 20 /* a look through all of /proc has its price, and a sandbox may take long */

struct task {
    pid_t tid; /* 0: free */
    int row;   /* -1: none yet */
    bool is_row, is_known, is_parked, is_calm, in_mark;
    enum mark mark, next; /* the call that is under way; what the next one is */
    int resource;
    unsigned long limit; /* before the deed */
};

struct watcher {
    struct watch *w;
    struct walls walls;
    struct task tasks[TASKS];
};

/* --- finding it --- */

static bool is_it(const char *pid, const char *word)
{
    char path[64], text[8192];

    snprintf(path, sizeof path, "/proc/%.20s/comm", pid);
    if (walls_read(path, text, sizeof text) <= 0 || strcmp(text, "escape-probe\n") != 0)
        return false;
    snprintf(path, sizeof path, "/proc/%.20s/cmdline", pid);
    ssize_t n = walls_read(path, text, sizeof text);
    return n > 0 && memmem(text, (size_t)n, word, strlen(word));
}

pid_t watch_find(const char *word)
{
    DIR *proc = opendir("/proc");
    pid_t found = 0;

    CHECK(proc != NULL);
    for (struct dirent *e; !found && (e = readdir(proc));)
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && is_it(e->d_name, word))
            found = (pid_t)atoi(e->d_name);
    closedir(proc);
    return found;
}

/* --- what it does --- */

static struct task *find(struct watcher *v, pid_t tid)
{
    for (unsigned i = 0; i < TASKS; i++)
        if (v->tasks[i].tid == tid)
            return &v->tasks[i];
    return NULL;
}

static struct task *add(struct watcher *v, pid_t tid)
{
    struct task *t = find(v, 0);

    if (!t)
        _exit(3);
    *t = (struct task){.tid = tid, .row = -1};
    return t;
}

static void go_on(const struct task *t, int sig)
{
    ptrace(t->is_calm ? PTRACE_CONT : PTRACE_SYSCALL, t->tid, NULL, (void *)(long)sig);
}

static void peek(pid_t tid, unsigned long at, char *out, size_t size)
{
    struct iovec here = {out, size - 1}, there = {(void *)at, size - 1};

    memset(out, 0, size);
    process_vm_readv(tid, &here, 1, &there, 1, 0); /* less, at the end of what is mapped */
}

static void on_row(struct watcher *v, struct task *t, const uint64_t *args)
{
    char family[32], name[48];

    if (v->w->count == WATCH_ROWS)
        _exit(4);
    peek(t->tid, args[2], family, sizeof family);
    peek(t->tid, args[3], name, sizeof name);
    t->is_row = true;
    t->row = (int)v->w->count;
    struct watch_row *r = &v->w->rows[v->w->count++];
    snprintf(r->name, sizeof r->name, "%s/%s", family, name);
    r->trace = (enum trace)args[4];
}

static void on_mark(struct watcher *v, struct task *t, const uint64_t *args)
{
    enum mark mark = (enum mark)args[1];

    t->in_mark = true;
    if (mark == MARK_WAIT)
        t->mark = MARK_WAIT;
    if (mark == MARK_WAIT)
        walls_begin(&v->walls, t->tid, v->w->walls, sizeof v->w->walls);
    else if (mark == MARK_ROW)
        on_row(v, t, args);
    else if (mark == MARK_CALM)
        t->is_calm = true;
    else
        t->next = mark;
}

static unsigned long limit_of(const struct task *t)
{
    struct rlimit l = {0};

    prlimit(t->tid, (__rlimit_resource_t)t->resource, NULL, &l);
    return l.rlim_max;
}

static bool is_null(pid_t tid, long fd)
{
    char path[64];
    struct stat st;

    snprintf(path, sizeof path, "/proc/%d/fd/%ld", (int)tid, fd);
    return stat(path, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

static bool is_open(const struct watch_row *r, const struct task *t, long answer)
{
    switch (r->trace) {
    case TRACE_CALL:
        return answer != -EPERM && answer != -ENOSYS;
    case TRACE_DONE:
        return answer >= 0;
    case TRACE_MADE:
        return answer != -EPERM && answer != -ENOSYS && answer != -EAFNOSUPPORT &&
               answer != -EPROTONOSUPPORT && answer != -ESOCKTNOSUPPORT && answer != -ENODEV;
    case TRACE_OPEN:
        return answer == -ETXTBSY || (answer >= 0 && !is_null(t->tid, answer));
    case TRACE_LIMIT:
        return answer >= 0 && limit_of(t) > t->limit;
    case TRACE_TOLD:
    case TRACE_LEFT:
        return false;
    }
    return false;
}

static void on_answer(struct watcher *v, struct task *t, long answer)
{
    struct watch_row *r = t->row >= 0 ? &v->w->rows[t->row] : NULL;

    if (r && t->mark == MARK_STEP) {
        r->failed_steps += answer < 0;
    } else if (r && t->mark == MARK_DEED) {
        r->deeds++;
        if (!r->open)
            r->answer = answer;
        r->open = r->open || is_open(r, t, answer);
    }
    t->mark = MARK_NONE;
}

static void on_call(struct watcher *v, struct task *t)
{
    struct __ptrace_syscall_info i;

    if (ptrace(PTRACE_GET_SYSCALL_INFO, t->tid, (void *)sizeof i, &i) < 0)
        return;
    if (i.op == PTRACE_SYSCALL_INFO_ENTRY) {
        if (i.arch == AUDIT_ARCH_X86_64 && i.entry.nr == SYS_getpid &&
            i.entry.args[0] == MARK_MAGIC) {
            on_mark(v, t, i.entry.args);
            return;
        }
        t->mark = t->next;
        t->next = MARK_NONE;
        t->resource = (int)i.entry.args[1];
        if (t->mark == MARK_DEED && t->row >= 0 && v->w->rows[t->row].trace == TRACE_LIMIT)
            t->limit = limit_of(t);
    } else if (i.op == PTRACE_SYSCALL_INFO_EXIT && t->in_mark) {
        t->in_mark = false;
        if (t->mark == MARK_WAIT)
            ptrace(PTRACE_POKEUSER, t->tid, offsetof(struct user_regs_struct, rax), MARK_MAGIC);
        t->mark = MARK_NONE;
    } else if (i.op == PTRACE_SYSCALL_INFO_EXIT && t->mark) {
        on_answer(v, t, i.exit.rval);
    }
}

/* --- how it lives --- */

/* Its first stop may come before the news of its birth, or after it. */
static void on_birth(struct watcher *v, const struct task *parent)
{
    unsigned long pid = 0;

    ptrace(PTRACE_GETEVENTMSG, parent->tid, NULL, &pid);
    struct task *t = find(v, (pid_t)pid);
    if (!t)
        t = add(v, (pid_t)pid);
    t->row = parent->row;
    t->is_calm = parent->is_calm;
    t->is_known = true;
    if (t->is_parked)
        go_on(t, 0);
    t->is_parked = false;
}

static void on_end(struct watcher *v, struct task *t, int status)
{
    struct watch_row *r = t->is_row ? &v->w->rows[t->row] : NULL;

    if (r && WIFSIGNALED(status)) {
        r->killed = WTERMSIG(status) == SIGSYS;
        r->lost = !r->killed;
    }
    t->tid = 0;
}

static void on_event(struct watcher *v, struct task *t, int event, int sig)
{
    if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK || event == PTRACE_EVENT_CLONE)
        on_birth(v, t);
    if (event == PTRACE_EVENT_EXIT && t->is_row)
        walls_check(&v->walls, t->tid, v->w->rows[t->row].name, v->w->walls, sizeof v->w->walls);
    if (event == PTRACE_EVENT_STOP && !t->is_known)
        t->is_parked = true;
    else if (event == PTRACE_EVENT_STOP && sig != SIGTRAP)
        ptrace(PTRACE_LISTEN, t->tid, NULL, NULL);
    else
        go_on(t, 0);
}

static void on_stop(struct watcher *v, pid_t tid, int status)
{
    struct task *t = find(v, tid);

    if (!t)
        t = add(v, tid);
    if (!WIFSTOPPED(status)) {
        on_end(v, t, status);
    } else if (status >> 16) {
        on_event(v, t, status >> 16, WSTOPSIG(status));
    } else if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
        on_call(v, t);
        go_on(t, 0);
    } else {
        go_on(t, WSTOPSIG(status));
    }
}

static void watch(struct watch *w, const char *word)
{
    static struct watcher v;
    const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                         PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL;
    pid_t pid, tid;
    int status;

    v.w = w;
    while (!(pid = watch_find(word))) /* nobody tells us of a process that is not ours */
        poll(NULL, 0, LOOK_MS);
    if (ptrace(PTRACE_SEIZE, pid, NULL, (void *)options) < 0)
        _exit(1);
    add(&v, pid)->is_known = true;
    if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0)
        _exit(2);
    while ((tid = waitpid(-1, &status, __WALL)) > 0)
        on_stop(&v, tid, status);
    w->ended = v.walls.begun;
    _exit(0);
}

struct watch *watch_begin(const char *word)
{
    struct watch *w =
        mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(w != MAP_FAILED);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        watch(w, word);
    }
    w->pid = pid;
    return w;
}

void watch_end(struct watch *w)
{
    int status;

    CHECK_INT(waitpid(w->pid, &status, 0), w->pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) || !w->ended)
        FAIL("the probe was not watched to its end: %d", status);
}

void watch_free(struct watch *w)
{
    munmap(w, sizeof *w);
}
