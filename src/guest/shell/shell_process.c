// SPDX-License-Identifier: Apache-2.0
/* shell_process.c — bash on a pty of its own, from fork to the last member of its session. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/passwd.h"
#include "guest/shell/shell_inner.h"

struct child_plan { /* all that the child needs, made before the fork */
    const char *bash;
    char *const *env;
    const char *cwd, *cwd_else;
    bool other_user;
    struct passwd_user user;
    gid_t groups[PASSWD_GROUPS_MAX];
    size_t groups_len;
    int slave;
};

static fallible open_pty(const struct shell_config *c, int *ret_master, int *ret_slave)
{
    char name[64];
    own_fd master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);

    if (master < 0)
        return err_sys("open a pseudo-terminal");
    if (grantpt(master) < 0 || unlockpt(master) < 0 || ptsname_r(master, name, sizeof name) != 0)
        return err_sys("unlock the pseudo-terminal");
    own_fd slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0)
        return err_sys("open '%s'", name);
    struct winsize size = {.ws_row = (unsigned short)c->rows, .ws_col = (unsigned short)c->columns};
    struct termios t;
    ioctl(master, TIOCSWINSZ, &size);
    if (tcgetattr(slave, &t) < 0)
        return err_sys("read terminal settings");
    t.c_iflag |= IUTF8;
    t.c_iflag &= ~(tcflag_t)(IXON | IXOFF); /* C-s must not stop the session for good */
    tcsetattr(slave, TCSANOW, &t);
    *ret_master = take_fd(&master);
    *ret_slave = take_fd(&slave);
    return NULL;
}

/* Between fork and exec: system calls only. */
static _Noreturn void run_child(const struct child_plan *p)
{
    char name[] = "bash", plain[] = "--noediting", interactive[] = "-i", literal[] = "+H";
    char *const argv[] = {name, plain, interactive, literal, NULL};
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int i = 1; i < NSIG; i++)
        signal(i, SIG_DFL);
    setsid();
    ioctl(p->slave, TIOCSCTTY, 0);
    for (int fd = 0; fd < 3; fd++)
        dup2(p->slave, fd);
    syscall(SYS_close_range, 3u, ~0u, 0u);
    if (p->other_user && (setgroups(p->groups_len, p->groups) < 0 || setgid(p->user.gid) < 0 ||
                          setuid(p->user.uid) < 0))
        _exit(126);
    umask(022);
    if (chdir(p->cwd) < 0 && chdir(p->cwd_else) < 0 && chdir("/") < 0)
        _exit(126);
    execve(p->bash, argv, p->env);
    _exit(127);
}

static bool has_name(const char *entry, const char *name)
{
    size_t n = strlen(name);

    return strncmp(entry, name, n) == 0 && entry[n] == '=';
}

/* After a death everything exported comes from the dump, so that what was unset stays unset. */
static bool passes(const struct shell *s, const char *entry)
{
    static const char *const ours[] = {"TERM", "PROMPT_COMMAND", "CROFT_B", "CROFT_H", "PS1",
                                       "PS2"};
    static const char *const needed[] = {"HOME", "PATH", "LANG", "USER", "LOGNAME", "SHELL"};

    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (has_name(entry, ours[i]))
            return false;
    for (size_t i = 0; i < ARRAY_LEN(needed); i++)
        if (has_name(entry, needed[i]))
            return true;
    return !s->had_env;
}

struct child_env {
    char *list[SHELL_ENV_MAX + 8];
    struct buf begin, hook, prompt, term;
};

static void child_env_done(struct child_env *e)
{
    buf_done(&e->begin);
    buf_done(&e->hook);
    buf_done(&e->prompt);
    buf_done(&e->term);
}

static fallible child_env_fill(struct child_env *e, const struct shell *s)
{
    struct buf *const ours[] = {&e->begin, &e->hook, &e->prompt, &e->term};
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        buf_init(ours[i], 1 << 16);
    buf_add_cstr(&e->begin, "CROFT_B=");
    shell_script_begin(&e->begin, &s->files);
    buf_add_cstr(&e->hook, "CROFT_H=");
    shell_script_hook(&e->hook, &s->files);
    buf_addf(&e->prompt, "PROMPT_COMMAND=%s", shell_script_prompt_command);
    buf_addf(&e->term, "TERM=%s", s->config.term);
    for (char **p = s->env; p && *p && n < SHELL_ENV_MAX; p++)
        if (passes(s, *p))
            e->list[n++] = *p;
    for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
        if (!buf_cstr(ours[i]) || buf_failed(ours[i]))
            return err_no_memory();
        e->list[n++] = ours[i]->p;
    }
    return NULL;
}

static fallible fork_bash(struct shell *s, struct child_env *env, int slave, pid_t *ret_pid)
{
    struct buf cwd;
    struct child_plan plan = {.bash = s->config.bash, .env = env->list, .slave = slave};

    if (s->config.user) {
        plan.other_user = true;
        TRY(passwd_by_name(PASSWD_ETC, str_of(s->config.user), &plan.user));
        TRY(passwd_groups(PASSWD_ETC, str_of(s->config.user), plan.user.gid, plan.groups,
                          &plan.groups_len));
    }
    buf_init(&cwd, 1 << 16);
    buf_add(&cwd, buf_str(&s->meta.working_dir));
    plan.cwd = cwd.len && buf_cstr(&cwd) ? cwd.p : s->config.cwd;
    plan.cwd_else = s->config.cwd;
    pid_t pid = fork();
    if (pid == 0)
        run_child(&plan);
    int saved = errno;
    buf_done(&cwd);
    if (pid < 0)
        return err_sysno(saved, "fork");
    *ret_pid = pid;
    return NULL;
}

static void on_bash_end(struct loop_child *c)
{
    struct shell *s = container_of(c, struct shell, child);
    int code = c->code == CLD_EXITED ? c->status : 128 + c->status;

    shell_drain(s);
    if (s->sids_len == SHELL_SIDS_MAX) {
        memmove(s->sids, s->sids + 1, sizeof s->sids - sizeof s->sids[0]);
        s->sids_len--;
    }
    s->sids[s->sids_len++] = s->pid;
    s->pid = 0;
    shell_on_death(s, code < 0 ? 1 : code);
}

fallible shell_spawn(struct shell *s)
{
    own_free struct child_env *env = mem_try(sizeof *env);
    pid_t pid = -1;

    if (!env)
        return err_no_memory();
    memset(env, 0, sizeof *env);
    shell_io_stop(s);
    struct err *e = child_env_fill(env, s);
    if (!e)
        e = open_pty(&s->config, &s->master, &s->slave);
    if (!e)
        e = fork_bash(s, env, s->slave, &pid);
    child_env_done(env);
    if (e)
        return err_wrap(e, "start a shell");
    s->pid = s->report_pid = pid;
    e = loop_child_start(s->loop, &s->child, pid, -1, on_bash_end);
    if (!e)
        return shell_io_start(s);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    s->pid = 0;
    return err_wrap(e, "watch the shell");
}

/* The session id of a process, 0 if it is gone. Its name may hold anything, ')' included. */
static pid_t session_of(const char *pid)
{
    char path[300], line[512];

    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
    if (n <= 0)
        return 0;
    line[n] = '\0';
    const char *p = strrchr(line, ')');
    int state_len = 0, ppid, pgrp, sid = 0;
    if (!p || sscanf(p + 1, " %*c%n %d %d %d", &state_len, &ppid, &pgrp, &sid) < 3)
        return 0;
    return p[2] == 'Z' ? 0 : sid;
}

void shell_kill_session(pid_t sid)
{
    bool found = true;

    for (int round = 0; found && round < 16; round++) { /* a member may fork while we look */
        DIR *proc = opendir("/proc");
        if (!proc)
            break;
        found = false;
        for (struct dirent *d; (d = readdir(proc));) {
            if (d->d_name[0] < '1' || d->d_name[0] > '9' || session_of(d->d_name) != sid)
                continue;
            found = kill((pid_t)atoi(d->d_name), SIGKILL) == 0 || found;
        }
        closedir(proc);
    }
}

/* Kills bash and all that stayed in its sessions; what called setsid is the sandbox's to end. */
void shell_end_process(struct shell *s)
{
    if (s->pid > 0) {
        kill(s->pid, SIGSTOP); /* or it may start more while we look */
        shell_kill_session(s->pid);
        kill(s->pid, SIGKILL);
    }
    for (size_t i = 0; i < s->sids_len; i++)
        if (kill(s->sids[i], 0) < 0 && errno == ESRCH) /* or the number belongs to somebody else */
            shell_kill_session(s->sids[i]);
    s->sids_len = 0;
}
