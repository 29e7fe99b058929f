// SPDX-License-Identifier: Apache-2.0
/* deleter.c — a child deletes the directories of removed sandboxes, so that no request waits for
 * it.
 *
 * box/<ID> is renamed into state/gone: from then on the sandbox is removed, for the next launcher
 * too. The child can reach that directory and nothing else, and lives as long as the launcher. The
 * next launcher's child deletes the rest. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/own.h"
#include "host/launcher/disk.h"
#include "host/launcher/job.h"
#include "host/tree/inner.h"
#include "host/worker/worker.h"

#define MOST_WAITING 256  /* beyond that the launcher deletes itself, or the disk would fill up */
#define DRAIN_MS     4000 /* at the end; a tree that takes longer is left to the next launcher */
#define AGAIN_MS     1000 /* until the next attempt to start a deleter */

enum { WAKE = 'w', QUIT = 'q' };

#define NAMES_MAX (16u << 20)
#define NICENESS  10
#define MANY      64 /* that wait end its niceness: on a busy machine it would never run */

/* --- in the child --- */

/* One that cannot be deleted does not stop the others. There may be more than was counted, from a
 * launcher before this one. */
static fallible delete_all(int dir, struct deleter_count *count, uint64_t put, uint64_t *ret_left)
{
    own_done(buf) names = {0};
    size_t name_count = 0;
    uint64_t left = 0;

    TRY(tree_read_names(dir, NAMES_MAX, &names, &name_count));
    for (const char *name = names.p; name_count--; name += strlen(name) + 1) {
        struct err *e = box_delete(dir, name);
        if (e)
            log_warn("a removed sandbox is left on the disk", KV("name", name), KV_ERR(e));
        left += e != NULL;
        if (!e && count->done < put)
            __atomic_store_n(&count->done, count->done + 1, __ATOMIC_RELAXED);
        err_free(e);
    }
    *ret_left = left;
    return NULL;
}

/* A directory put there meanwhile is announced by another byte. */
static fallible delete_until_told(struct launcher_job *j)
{
    struct deleter_count *count = j->launcher->deleter.count;
    int dir = j->launcher->deleter.dir;
    char words[64];

    TRY(worker_fence(&(struct worker_fence){.root = dir,
                                            .work = {dir, -1, -1},
                                            .look = -1,
                                            .fds = (int[]){j->out, j->dir},
                                            .fd_count = 2}));
    for (bool quit = false; !quit;) {
        ssize_t n = read(j->dir, words, sizeof words);
        if (n < 0 && errno != EINTR)
            return err_sys("wait for work");
        for (ssize_t i = 0; i < n; i++)
            quit |= words[i] == QUIT;
        quit |= n == 0;
        uint64_t put = __atomic_load_n(&count->put, __ATOMIC_ACQUIRE), left = 0;
        TRY(delete_all(dir, count, put, &left));
        __atomic_store_n(&count->done, put - (left < put ? left : put), __ATOMIC_RELAXED);
    }
    return NULL;
}

/* --- here --- */

static uint64_t deleter_waiting(const struct deleter *d)
{
    return d->count->put - __atomic_load_n(&d->count->done, __ATOMIC_RELAXED);
}

static void deleter_tell(struct launcher *l, char word);

static void on_again(struct loop_timer *t)
{
    deleter_tell(container_of(t, struct launcher, deleter.again), WAKE);
}

/* Logged once, and tried until it works. */
static void deleter_failed(struct launcher *l, struct err *e)
{
    struct deleter *d = &l->deleter;

    if (!d->logged)
        log_warn("nobody deletes the files of removed sandboxes; tried again every second",
                 KV("waiting", deleter_waiting(d)), KV_ERR(e));
    d->logged = d->logged ? d->logged : 1;
    err_free(e);
    if (deleter_waiting(d) && !l->ending)
        loop_timer_start(l->loop, &d->again, AGAIN_MS, on_again);
}

/* The bound holds without a deleter too; then reaching it is logged. */
static bool has_room(struct deleter *d)
{
    uint64_t waiting = deleter_waiting(d);

    if (!waiting)
        d->logged = 0;
    if (waiting >= MOST_WAITING && d->logged == 1) {
        log_warn("too many removed sandboxes wait to be deleted: each removal takes as long as its "
                 "files do",
                 KV("waiting", waiting));
        d->logged = 2;
    }
    return waiting < MOST_WAITING;
}

static void on_deleter_dead(struct launcher_job *j, struct err *e)
{
    struct deleter *d = &j->launcher->deleter;

    own_close_p(&d->tell);
    d->tell = -1;
    d->job = NULL;
    deleter_failed(j->launcher, e ? e : err_new(ERR_INTERNAL, "the deleter has ended"));
}

static fallible deleter_start(struct launcher *l)
{
    struct deleter *d = &l->deleter;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys("make a pipe");
    own_fd tell = ends[1];
    struct launcher_job *j = launcher_job_new(l, delete_until_told, on_deleter_dead);
    j->dir = ends[0];
    struct err *e = fcntl(tell, F_SETFL, O_NONBLOCK) < 0 ? err_sys("set up a pipe") : NULL;
    if (!e)
        e = launcher_job_start(j);
    if (e) {
        launcher_job_free(j);
        return e;
    }
    own_close_p(&j->dir); /* the child has it */
    j->dir = -1;
    d->job = j;
    d->hurries = false;
    (void)setpriority(PRIO_PROCESS, (id_t)j->child.pid, NICENESS); /* no request waits for it */
    d->tell = take_fd(&tell);
    return NULL;
}

/* A pipe that is full holds enough to wake it. */
static void deleter_tell(struct launcher *l, char word)
{
    struct deleter *d = &l->deleter;
    struct err *e = d->job ? NULL : deleter_start(l);

    if (e) {
        deleter_failed(l, e);
        return;
    }
    loop_timer_stop(&d->again);
    if (write(d->tell, &word, 1) < 0 && errno != EAGAIN)
        log_warn("the deleter was not told", KV("why", strerror(errno)));
}

/* Only root may take niceness back: otherwise it stays nice. */
static void deleter_hurry(struct launcher *l)
{
    struct deleter *d = &l->deleter;
    uint64_t waiting = deleter_waiting(d);
    bool hurry = waiting >= (d->hurries ? MANY / 4 : MANY);
    int ours = getpriority(PRIO_PROCESS, 0);

    if (!d->job || hurry == d->hurries)
        return;
    d->hurries = hurry;
    (void)setpriority(PRIO_PROCESS, (id_t)d->job->child.pid,
                      hurry || ours > NICENESS ? ours : NICENESS);
}

static bool put_aside(struct launcher *l, const char *id)
{
    struct deleter *d = &l->deleter;
    char name[24];

    if (d->dir < 0 || !has_room(d))
        return false;
    for (unsigned tries = 0; tries < 8; tries++) {
        snprintf(name, sizeof name, "%" PRIx64, d->next++);
        if (renameat(l->host.boxes, id, d->dir, name) == 0) {
            __atomic_add_fetch(&d->count->put, 1, __ATOMIC_RELEASE);
            return true;
        }
        if (errno != ENOTEMPTY && errno != EEXIST)
            return false;
    }
    return false;
}

fallible deleter_discard(struct launcher *l, const char *id)
{
    own_fd dir = openat(l->host.boxes, id, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    if (dir >= 0)
        disk_forget(dir);
    if (!put_aside(l, id))
        return box_remove_dir(&l->host, id);
    deleter_tell(l, WAKE);
    deleter_hurry(l);
    return NULL;
}

static bool has_any(int dir)
{
    own_done(buf) names = {0};
    size_t count = 1;

    err_free(tree_read_names(dir, NAMES_MAX, &names, &count)); /* then there is something */
    return count > 0;
}

static fallible deleter_prepare(struct launcher *l)
{
    struct deleter *d = &l->deleter;

    d->count =
        mmap(NULL, sizeof *d->count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (d->count == MAP_FAILED) {
        d->count = NULL;
        return err_sys("map a page to share");
    }
    return fd_make_dirs(l->host.dir, STR(BOX_GONE), 0700, &d->dir);
}

/* Without it everything is deleted at once, as slow as that is. */
void deleter_open(struct launcher *l)
{
    own(err) e = deleter_prepare(l);

    if (e)
        log_warn("sandboxes are deleted when they are removed", KV_ERR(e));
    else if (has_any(l->deleter.dir)) {
        l->deleter.count->put++;
        deleter_tell(l, WAKE);
    }
}

void deleter_drain(struct launcher *l)
{
    struct deleter *d = &l->deleter;
    struct launcher_job *j = d->job;
    siginfo_t info;

    if (!j)
        return;
    (void)fcntl(d->tell, F_SETFL, 0);
    deleter_tell(l, QUIT);
    struct err *e = fd_wait(j->child.io.fd, POLLIN, DRAIN_MS);
    if (e) {
        log_warn("removed files are left for later", KV_ERR(e));
        kill(j->child.pid, SIGKILL); /* our child, not reaped */
    }
    err_free(e);
    while (waitid(P_PID, (id_t)j->child.pid, &info, WEXITED) < 0 && errno == EINTR)
        ;
    loop_child_stop(&j->child);
    launcher_job_free(j);
    own_close_p(&d->tell);
    d->tell = -1;
    d->job = NULL;
}
