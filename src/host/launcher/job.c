// SPDX-License-Identifier: Apache-2.0
/* job.c — see job.h. */
#include "host/launcher/job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/own.h"

struct verdict { /* what a child says at its end; one that did well need not */
    uint32_t code;
    char text[NATIVE_TEXT_MAX];
};

struct launcher_job *launcher_job_new(struct launcher *l, fallible (*run)(struct launcher_job *j),
                                      void (*ended)(struct launcher_job *j, struct err *e))
{
    struct launcher_job *j = mem_new(sizeof *j);

    *j = (struct launcher_job){.launcher = l,
                               .run = run,
                               .ended = ended,
                               .dir = -1,
                               .heard = -1,
                               .asked = -1,
                               .result = -1};
    list_add(&l->jobs, &j->link);
    return j;
}

void launcher_job_free(struct launcher_job *j)
{
    own_close_p(&j->dir);
    own_close_p(&j->heard);
    own_close_p(&j->asked);
    own_close_p(&j->result);
    list_del(&j->link);
    free(j);
}

void launcher_job_answer(struct launcher_job *j, struct err *e, struct launcher_fds *fds)
{
    if (j->reply.op && !j->unasked) {
        launcher_answer(j->launcher, &j->reply, e, fds);
        return;
    }
    if (e)
        log_warn("what nobody waits for failed", KV("name", j->name), KV_ERR(e));
    err_free(e);
    for (size_t i = 0; i < fds->count; i++)
        own_close_p(&fds->fds[i]);
}

void launcher_jobs_unasked(struct launcher *l)
{
    LIST_EACH(j, &l->jobs, struct launcher_job, link)
        j->unasked = true;
}

unsigned launcher_job_count(const struct launcher *l, fallible (*run)(struct launcher_job *j))
{
    unsigned n = 0;

    LIST_EACH(j, &l->jobs, struct launcher_job, link)
        n += j->run == run;
    return n;
}

static _Noreturn void job_child(struct launcher_job *j, pid_t launcher, int out)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher)
        _exit(1);
    own_close_p(&j->launcher->sock); /* its end is ours to tell, not this child's */
    signal(SIGALRM, SIG_DFL);        /* ends a job that takes too long */
    j->out = out;
    struct err *e = j->run(j);
    struct verdict v = {.code = e ? (uint32_t)err_code(e) : 0};
    snprintf(v.text, sizeof v.text, "%s", e ? err_text(e) : j->reply.text);
    err_free(fd_write_all(out, str_n(&v, sizeof v))); /* the exit code tells too */
    _exit(e != NULL);
}

static fallible job_result(struct launcher_job *j)
{
    struct verdict v;
    bool heard = read(j->heard, &v, sizeof v) == sizeof v;

    if (!heard)
        return err_new(ERR_INTERNAL, "who worked on the files was ended");
    v.text[sizeof v.text - 1] = '\0';
    if (j->child.code != CLD_EXITED || j->child.status != 0)
        return err_recode(err_new(ERR_INTERNAL, "%s", v.text), (enum err_code)v.code);
    memcpy(j->reply.text, v.text, sizeof v.text);
    return NULL;
}

static void on_job_dead(struct loop_child *c)
{
    struct launcher_job *j = container_of(c, struct launcher_job, child);

    j->ended(j, job_result(j));
    launcher_job_free(j);
}

fallible launcher_job_start(struct launcher_job *j)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys("make a pipe");
    j->heard = ends[0];
    own_fd out = ends[1];
    box_clear_fd_slot(
        &j->launcher->host); /* else the child holds an end that must close at an exec */
    pid_t launcher = getpid(), pid = fork();
    if (pid == 0)
        job_child(j, launcher, out);
    if (pid < 0)
        return err_sys("fork");
    struct err *e = loop_child_start(j->launcher->loop, &j->child, pid, -1, on_job_dead);
    if (e) {
        kill(pid, SIGKILL); /* our child, not reaped */
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    return e;
}

void launcher_end_jobs(struct launcher *l)
{
    siginfo_t info;

    LIST_EACH(j, &l->jobs, struct launcher_job, link) {
        if (j == l->deleter.job)
            continue;                /* there is work for it still */
        kill(j->child.pid, SIGKILL); /* our child, not reaped */
        while (waitid(P_PID, (id_t)j->child.pid, &info, WEXITED) < 0 && errno == EINTR)
            ;
        loop_child_stop(&j->child);
        launcher_snap_cut(j);
        launcher_job_free(j);
    }
}
