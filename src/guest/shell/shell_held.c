// SPDX-License-Identifier: Apache-2.0
/* shell_held.c — a shell outlives the server: its descriptors and one page of memory are with
 * pid 1. The page is written in place, so it is right whenever the server is killed; what it does
 * not hold (output that was read and not reported) is lost with it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "guest/held/held.h"
#include "guest/shell/shell_inner.h"

#define ASKED_AGAIN_NS (120 * NS_PER_S) /* as long as an answer is kept */

enum { PAGE, MASTER, SLAVE, REPORT, COMMAND, HELD_FDS };

/* Fields of the same name in both. */
#define SAME(X)                                                                                    \
    X(pid)                                                                                         \
    X(report_pid)                                                                                  \
    X(sids_len)                                                                                    \
    X(number)                                                                                      \
    X(oom_before)                                                                                  \
    X(happened)                                                                                    \
    X(awaiting_mark)                                                                               \
    X(echo_known)                                                                                  \
    X(fresh)                                                                                       \
    X(owes_start)                                                                                  \
    X(had_env)                                                                                     \
    X(reported)                                                                                    \
    X(keys_typed)                                                                                  \
    X(retried)

struct shell_page {
    size_t size; /* of this: another program's is not read */
    int state, command, exit_code, background;
    pid_t pid, report_pid;
    pid_t sids[SHELL_SIDS_MAX];
    size_t sids_len;
    uint64_t number, oom_before;
    unsigned happened, columns, rows;
    bool awaiting_mark, echo_known, fresh, owes_start, had_env, reported, keys_typed, retried;
    char sequence[48], first[48], dir[256], token[17];
    char cwd[4096];
};

static fallible map_page(struct shell *s)
{
    void *p = mmap(NULL, sizeof *s->page, PROT_READ | PROT_WRITE, MAP_SHARED, s->page_fd, 0);

    if (p == MAP_FAILED)
        return err_sys("map the page of a shell");
    s->page = p;
    return NULL;
}

static fallible make_page(struct shell *s)
{
    s->page_fd = memfd_create("shell", MFD_CLOEXEC);
    if (s->page_fd < 0 || ftruncate(s->page_fd, sizeof *s->page) < 0)
        return err_sys("make the page of a shell");
    TRY(map_page(s));
    s->held_id = held_new_id(s->config.held);
    return NULL;
}

void shell_held_save(struct shell *s)
{
    struct shell_page *p = s->page;

    if (!p)
        return;
#define SAVE(field) p->field = s->field;
    SAME(SAVE)
    p->state = s->sm.now;
    p->command = s->command.now;
    p->exit_code = s->meta.exit_code;
    p->background = s->meta.pid;
    p->columns = s->config.columns;
    p->rows = s->config.rows;
    memcpy(p->sids, s->sids, s->sids_len * sizeof s->sids[0]);
    memcpy(p->sequence, s->sequence, sizeof p->sequence);
    memcpy(p->first, s->first, sizeof p->first);
    memcpy(p->dir, s->files.dir, sizeof p->dir);
    memcpy(p->token, s->files.token, sizeof p->token);
    snprintf(p->cwd, sizeof p->cwd, STR_FMT, STR_ARG(buf_str(&s->meta.working_dir)));
    p->size = sizeof *p;
}

void shell_held_put(struct shell *s)
{
    char name[256];
    struct err *e = NULL;

    if (!s->config.held)
        return;
    if (!s->page)
        e = make_page(s);
    if (!e) {
        const int fds[HELD_FDS] = {s->page_fd, s->master, s->slave, s->files.report_fd,
                                   s->files.command_fd};
        shell_held_save(s);
        snprintf(name, sizeof name, "shell %s", s->config.held_name);
        e = held_put(s->config.held, s->held_id, str_of(name), fds, HELD_FDS, s->pid);
    }
    if (e)
        log_warn("the shell will end with the server", KV("shell", s->id), KV_ERR(e));
    err_free(e);
}

void shell_held_drop(struct shell *s)
{
    if (s->held_id)
        held_drop(s->config.held, s->held_id);
    s->held_id = 0;
    if (s->page)
        munmap(s->page, sizeof *s->page);
    s->page = NULL;
    own_close(take_fd(&s->page_fd));
}

/* The text of the command that runs, from where bash had it. */
static void read_command(struct shell *s)
{
    own_done(buf) text;
    struct str command;

    buf_init(&text, SHELL_COMMAND_MAX + 1);
    if (lseek(s->files.command_fd, 0, SEEK_SET) == 0)
        err_free(fd_read_all(s->files.command_fd, &text));
    struct str rest = buf_str(&text);
    str_cut(&rest, '\0', &command);
    buf_add(&s->held, command);
}

static void restore_states(struct shell *s, const struct shell_page *p)
{
    int command = p->command;

    if (command == CMD_QUEUED && p->awaiting_mark)
        command = CMD_RUNNING; /* its line was being typed, to a bash that starts perhaps */
    s->sm.now = p->state == SH_READY ? SH_READY : SH_STARTING;
    if (command != CMD_RUNNING)
        return; /* it had not begun, or its words went with the server */
    s->command.now = CMD_RUNNING;
    s->adopted_until_ns = loop_now_ns(s->loop) + ASKED_AGAIN_NS;
    read_command(s);
}

fallible shell_held_restore(struct shell *s, struct held_item *t)
{
    int *const to[HELD_FDS] = {&s->page_fd, &s->master, &s->slave, &s->files.report_fd,
                               &s->files.command_fd};

    if (t->fds_len != HELD_FDS)
        return err_new(ERR_CORRUPT, "%zu descriptors were kept", t->fds_len);
    for (size_t i = 0; i < HELD_FDS; i++)
        *to[i] = take_fd(&t->fds[i]);
    s->held_id = t->id;
    TRY(map_page(s));
    const struct shell_page *p = s->page;
    if (p->size != sizeof *p || p->sids_len > SHELL_SIDS_MAX || p->pid != t->pid)
        return err_new(ERR_CORRUPT, "what was kept is not of this program");
#define LOAD(field) s->field = p->field;
    SAME(LOAD)
    memcpy(s->sids, p->sids, sizeof s->sids);
    memcpy(s->sequence, p->sequence, sizeof s->sequence);
    memcpy(s->first, p->first, sizeof s->first);
    shell_files_name(&s->files, p->dir, p->token);
    s->meta.exit_code = p->exit_code;
    s->meta.pid = p->background;
    buf_add_cstr(&s->meta.working_dir, p->cwd);
    s->config.columns = p->columns;
    s->config.rows = p->rows;
    s->last_newline = true;
    TRY(shell_open_term(s));
    spawn_adopt(s->config.spawner, &s->child, p->pid, shell_on_bash_end);
    restore_states(s, p);
    return NULL;
}
