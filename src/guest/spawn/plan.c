// SPDX-License-Identifier: Apache-2.0
/* plan.c — a plan to bytes and back, and the steps between fork and exec. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/passwd.h"
#include "guest/spawn/inner.h"

#define OUT_OF_THE_WAY 64
#define EXIT_FAILED    126

static const char secret[] = "SESSION_API_KEY=";

/* --- making --- */

static void add_string(struct buf *b, const char *s)
{
    buf_add_mem(b, s ? s : "", s ? strlen(s) + 1 : 1);
}

static uint32_t add_strings(struct buf *b, const char *const *list, bool all)
{
    uint32_t n = 0;

    for (; list && *list; list++)
        if (all || strncmp(*list, secret, sizeof secret - 1) != 0) {
            add_string(b, *list);
            n++;
        }
    return n;
}

fallible spawn_pack(struct buf *b, const struct spawn_plan *plan)
{
    const struct proc_user *user = plan->user;
    gid_t groups[PASSWD_GROUPS_MAX];
    size_t groups_len;
    struct spawn_head h = {.flags = (user ? SPAWN_USER : 0u) | (plan->tty ? SPAWN_TTY : 0u) |
                                    (plan->dies_with_maker ? SPAWN_DIES : 0u) |
                                    (plan->tty_if_free ? SPAWN_TTY_TRY : 0u) |
                                    (plan->cwd_only ? SPAWN_CWD : 0u)};

    buf_add_mem(b, &h, sizeof h);
    if (user) {
        h.uid = user->uid;
        h.gid = user->gid;
        TRY(passwd_groups(PASSWD_ETC, str_of(user->name), user->gid, user->also, groups,
                          &groups_len));
        buf_add_mem(b, groups, groups_len * sizeof *groups);
        h.groups = (uint32_t)groups_len;
    }
    add_string(b, plan->program);
    add_string(b, plan->cwd);
    add_string(b, plan->cwd_else);
    h.argc = add_strings(b, plan->argv, true);
    h.envc = add_strings(b, plan->env, plan->keeps_key);
    TRY_WRAP(buf_check(b), "arguments and environment of '%.200s'", plan->program);
    if (h.argc + h.envc > SPAWN_STRINGS_MAX)
        return err_new(ERR_TOO_LARGE, "'%.200s': more than %u arguments and variables",
                       plan->program, SPAWN_STRINGS_MAX);
    memcpy(b->p, &h, sizeof h);
    return NULL;
}

/* --- reading --- */

static const char *next_string(struct str *rest)
{
    const char *s = rest->p;
    ptrdiff_t end = str_find_char(*rest, '\0');

    if (end < 0)
        return NULL;
    *rest = str_from(*rest, (size_t)end + 1);
    return s;
}

static bool cut_strings(struct str *rest, char **to, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!(to[i] = (char *)next_string(rest)))
            return false;
    to[n] = NULL;
    return true;
}

bool spawn_parse(struct str bytes, struct spawn_job *ret)
{
    struct spawn_job j = {0};
    struct spawn_head *h = &j.head;

    if (bytes.len < sizeof *h)
        return false;
    memcpy(h, bytes.p, sizeof *h);
    bytes = str_from(bytes, sizeof *h);
    size_t groups_len = (size_t)h->groups * sizeof(gid_t);
    if (h->groups > PASSWD_GROUPS_MAX || bytes.len < groups_len || h->argc == 0 ||
        h->argc > SPAWN_STRINGS_MAX || h->envc > SPAWN_STRINGS_MAX)
        return false;
    memcpy(j.groups, bytes.p, groups_len);
    bytes = str_from(bytes, groups_len);
    j.program = next_string(&bytes);
    j.cwd[0] = next_string(&bytes);
    j.cwd[1] = next_string(&bytes);
    if (!j.cwd[1] || !j.program[0])
        return false;
    j.argv = mem_try(((size_t)h->argc + h->envc + 2) * sizeof *j.argv);
    if (!j.argv)
        return false;
    j.env = j.argv + h->argc + 1;
    if (!cut_strings(&bytes, j.argv, h->argc) || !cut_strings(&bytes, j.env, h->envc) ||
        bytes.len) {
        free(j.argv);
        return false;
    }
    *ret = j;
    return true;
}

/* --- becoming --- */

/* System calls only, and none that a test may make fail, for it would fail twice. */

void spawn_tell(int status, int errnum, enum spawn_step step)
{
    struct spawn_status s = {.pid = (int32_t)getpid(), .errnum = errnum, .step = (int32_t)step};

    syscall(SYS_write, status, &s, sizeof s);
}

static _Noreturn void fail_at(int status, enum spawn_step step)
{
    spawn_tell(status, errno, step);
    _exit(EXIT_FAILED);
}

void spawn_default_signals(int from, int to)
{
    static const char by_default[32]; /* as the kernel has it: handler, flags, restorer, mask */

    for (int s = from; s <= to; s++) /* not by libc, which keeps two; KILL and STOP refuse */
        syscall(SYS_rt_sigaction, s, by_default, NULL, 8);
}

void spawn_alone(void)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
}

/* fds become 0, 1 …, status the one behind them, and nothing else is left. */
static bool plan_arrange(const int *fds, size_t n, int *status)
{
    int far[SPAWN_FDS_MAX];
    int end = fcntl(*status, F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);

    if (end < 0)
        return false;
    *status = end;
    for (size_t i = 0; i < n; i++)
        if ((far[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, OUT_OF_THE_WAY)) < 0)
            return false;
    for (size_t i = 0; i < n; i++)
        if (dup2(far[i], (int)i) < 0)
            return false;
    if (dup3(end, (int)n, O_CLOEXEC) < 0)
        return false;
    *status = (int)n;
    return syscall(SYS_close_range, (unsigned)n + 1, ~0u, 0) == 0;
}

_Noreturn void spawn_become(const struct spawn_job *job, const int *fds, size_t fds_len, int status)
{
    const struct spawn_head *h = &job->head;

    spawn_alone();
    spawn_default_signals(SIGPIPE, SIGPIPE);
    if (!plan_arrange(fds, fds_len, &status))
        fail_at(status, SPAWN_AT_FDS);
    if ((h->flags & (SPAWN_TTY | SPAWN_TTY_TRY)) && ioctl(0, TIOCSCTTY, 0) < 0 &&
        (h->flags & SPAWN_TTY))
        fail_at(status, SPAWN_AT_TTY);
    if ((h->flags & SPAWN_USER) &&
        (setgroups(h->groups, job->groups) < 0 || setgid(h->gid) < 0 || setuid(h->uid) < 0))
        fail_at(status, SPAWN_AT_USER);
    if (h->flags & SPAWN_DIES)
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of user clears it */
    umask(022);
    if ((!job->cwd[0][0] || chdir(job->cwd[0]) < 0) &&
        ((h->flags & SPAWN_CWD) || ((!job->cwd[1][0] || chdir(job->cwd[1]) < 0) && chdir("/") < 0)))
        fail_at(status, SPAWN_AT_CWD);
    execve(job->program, job->argv, job->env);
    fail_at(status, SPAWN_AT_EXEC);
}
