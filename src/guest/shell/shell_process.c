// SPDX-License-Identifier: Apache-2.0
/* shell_process.c — bash on a pty of its own, from start to the last member of its session. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "guest/shell/shell_inner.h"

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
    t.c_iflag &= ~(tcflag_t)(IXON | IXOFF); /* C-s must not stop the shell for good */
    tcsetattr(slave, TCSANOW, &t);
    *ret_master = take_fd(&master);
    *ret_slave = take_fd(&slave);
    return NULL;
}

/* After a death everything exported comes from the dump, so that what was unset stays unset. */
static bool process_passes(const struct shell *s, const char *entry)
{
    struct str rest = str_of(entry), name;

    str_cut(&rest, '=', &name);
    if (str_fits(name, "TERM PROMPT_COMMAND CROFT_A CROFT_C CROFT_L CROFT_N CROFT_Q PS1 PS2",
                 str_eq))
        return false;
    return !s->had_env || str_fits(name, "HOME PATH LANG USER LOGNAME SHELL", str_eq);
}

#define ENV_OURS 5

struct child_env {
    char *list[SHELL_ENV_MAX + ENV_OURS + 1];
    struct buf ours[ENV_OURS];
};

static void child_env_done(struct child_env *e)
{
    for (size_t i = 0; i < ENV_OURS; i++)
        buf_done(&e->ours[i]);
}

static fallible child_env_fill(struct child_env *e, struct shell *s)
{
    struct buf *b = e->ours;
    size_t n = 0;

    for (size_t i = 0; i < ENV_OURS; i++)
        buf_init(&b[i], 1 << 16);
    buf_addf(&b[0], "PROMPT_COMMAND=%s", shell_script_prompt_command);
    buf_add_cstr(&b[1], "CROFT_A=");
    shell_script_find_hook(&b[1], &s->files);
    buf_addf(&b[2], "TERM=%s", s->config.term);
    shell_number(s, s->first);
    buf_addf(&b[3], "CROFT_Q=%s", s->first);
    buf_add_cstr(&b[4], "CROFT_C=");
    shell_script_init(&b[4], &s->files, s->had_env);
    if (s->config.init)
        buf_addf(&b[4], ";%s", s->config.init);
    for (char **p = s->env; p && *p && n < SHELL_ENV_MAX; p++)
        if (process_passes(s, *p))
            e->list[n++] = *p;
    for (size_t i = 0; i < ENV_OURS; i++) {
        if (!buf_cstr(&b[i]) || buf_failed(&b[i]))
            return err_no_memory();
        e->list[n++] = b[i].p;
    }
    return NULL;
}

void shell_on_bash_end(struct spawn_child *c)
{
    struct shell *s = container_of(c, struct shell, child);
    int code = c->code == CLD_EXITED ? c->status : 128 + c->status;

    shell_read_reports(s);
    shell_drain(s);
    if (s->sids_len == SHELL_SIDS_MAX) {
        memmove(s->sids, s->sids + 1, sizeof s->sids - sizeof s->sids[0]);
        s->sids_len--;
    }
    s->sids[s->sids_len++] = s->pid;
    s->pid = 0;
    shell_on_death(s, code < 0 ? 1 : code);
}

static fallible make_files(struct shell *s)
{
    if (s->files.report_fd >= 0)
        return NULL;
    return shell_files_make(&s->files, s->config.user ? s->user.uid : geteuid());
}

/* A new bash looks for its files at its first prompt. If it does not find them, or they go
 * meanwhile, the line that is typed then makes sure of them. */
static void on_asked(void *arg)
{
    struct shell *s = arg;

    err_free(make_files(s)); /* what fails is tried again, and told */
}

static fallible start_bash(struct shell *s, const struct child_env *env)
{
    static const char *const argv[] = {"bash", "--noediting", "-i", "+H", NULL};
    const int fds[] = {s->slave, s->slave, s->slave};
    own_done(buf) cwd = {0};
    struct spawn_plan plan = {
        .program = s->config.bash,
        .argv = argv,
        .env = (const char *const *)env->list,
        .cwd_else = s->config.cwd,
        .user = s->config.user,
        .fds = fds,
        .fds_len = ARRAY_LEN(fds),
        .tty = true,
        .asked = on_asked,
        .arg = s,
    };

    buf_init(&cwd, 1 << 16);
    buf_add(&cwd, buf_str(&s->meta.working_dir));
    plan.cwd = cwd.len ? buf_cstr(&cwd) : NULL;
    return spawn_start(s->loop, s->config.spawner, &plan, &s->child, shell_on_bash_end);
}

fallible shell_spawn(struct shell *s)
{
    own_free struct child_env *env = mem_try(sizeof *env);

    if (!env)
        return err_no_memory();
    memset(env, 0, sizeof *env);
    shell_io_stop(s);
    struct err *e = child_env_fill(env, s);
    if (!e)
        e = open_pty(&s->config, &s->master, &s->slave);
    if (!e && s->files.report_fd >= 0)
        e = shell_watch_files(s, false); /* they may be gone */
    if (!e)
        e = start_bash(s, env);
    child_env_done(env);
    if (e)
        return err_wrap(e, "start bash, which an image must have");
    s->pid = s->report_pid = s->child.pid;
    e = make_files(s);
    if (!e)
        e = shell_watch_files(s, false);
    if (!e) {
        shell_held_put(s);
        e = shell_io_start(s);
    }
    if (e) {
        spawn_end(&s->child);
        s->pid = 0;
    }
    return e;
}

/* Kills bash and all that stayed in its sessions; what called setsid is the sandbox's to end, and
 * so is what a shell leaves. */
void shell_end_process(struct shell *s)
{
    if (s->config.leaves && !shell_is_running(s)) {
        if (s->pid > 0)
            kill(s->pid, SIGKILL);
        return;
    }
    if (s->pid > 0) {
        kill(s->pid, SIGSTOP); /* or it may start more while we look */
        spawn_kill_session(s->pid);
        kill(s->pid, SIGKILL);
    }
    for (size_t i = 0; i < s->sids_len; i++)
        if (kill(s->sids[i], 0) < 0 && errno == ESRCH) /* or the number belongs to another
                                                        * process */
            spawn_kill_session(s->sids[i]);
    s->sids_len = 0;
}
