// SPDX-License-Identifier: Apache-2.0
/* gone.c — what is removed goes in two steps, so that nobody waits for the files of others.
 *
 * box/<ID> is renamed into state/gone: from then on the sandbox is gone for everybody, for the next
 * launcher too. A child that can reach that directory and nothing else deletes what is there, for
 * as long as we live; what it did not come to is the next launcher's. */
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

#define MOST_GONE 256  /* beyond that we delete ourselves: the disk must not fill up with it */
#define DRAIN_MS  4000 /* at our end; a tree that takes longer is left to the next launcher */
#define AGAIN_MS  1000 /* until the next attempt to have somebody who deletes */

enum { WAKE = 'w', QUIT = 'q' };

#define NAMES_MAX (16u << 20)
#define BEHIND    10 /* how nice who deletes is */
#define MANY_GONE 64 /* wait: then it is not, or it would never run where no processor is idle */

/* --- in the child --- */

/* One that cannot be deleted is not in the way of the others. What is there may be more than was
 * counted: a launcher before us left it. */
static fallible delete_all(int dir, bool hulls, struct launcher_swept *swept, uint64_t put,
                           uint64_t *ret_left)
{
    own_done(buf) names = {0};
    size_t count = 0;
    uint64_t left = 0;

    TRY(tree_read_names(dir, NAMES_MAX, &names, &count));
    for (const char *name = names.p; count--; name += strlen(name) + 1) {
        if (!hulls && strcmp(name, BOX_HULL) == 0)
            continue;
        struct err *e = box_delete(dir, name);
        if (e)
            log_warn("a removed sandbox is left on the disk", KV("name", name), KV_ERR(e));
        left += e != NULL;
        if (!e && swept->done < put)
            __atomic_store_n(&swept->done, swept->done + 1, __ATOMIC_RELAXED);
        err_free(e);
    }
    *ret_left = left;
    return NULL;
}

/* What is put there meanwhile is announced by another byte. */
static fallible delete_until_told(struct launcher_job *j)
{
    struct launcher_swept *swept = j->launcher->gone.swept;
    int dir = j->launcher->gone.dir;
    char words[64];

    TRY(worker_fence(&(struct worker_fence){.root = dir,
                                            .work = {dir, -1, -1},
                                            .look = -1,
                                            .fds = (int[]){j->out, j->dir},
                                            .fd_count = 2}));
    own_fd hulls = openat(dir, BOX_HULL, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool has_hulls = j->launcher->hulls.ring;
    if (has_hulls && hulls < 0)
        return err_sys("open what is used again"); /* the next of us may do better */
    for (bool quit = false; !quit;) {
        ssize_t n = read(j->dir, words, sizeof words);
        if (n < 0 && errno != EINTR)
            return err_sys("wait for work");
        for (ssize_t i = 0; i < n; i++)
            quit |= words[i] == QUIT;
        quit |= n == 0;
        uint64_t put = __atomic_load_n(&swept->put, __ATOMIC_ACQUIRE); /* what we see, and more */
        uint64_t left = 0;
        if (has_hulls)
            launcher_hull_hollow(hulls, &swept->hulls);
        TRY(delete_all(dir, quit || !has_hulls, swept, put, &left));
        __atomic_store_n(&swept->done, put - (left < put ? left : put), __ATOMIC_RELAXED);
    }
    return NULL;
}

/* --- here --- */

static uint64_t gone_undone(const struct launcher_gone *g)
{
    return g->swept->put - __atomic_load_n(&g->swept->done, __ATOMIC_RELAXED);
}

static uint64_t all_undone(const struct launcher *l)
{
    return gone_undone(&l->gone) + launcher_hulls_undone(l);
}

static void tell_deleter(struct launcher *l, char word);

static void on_again(struct loop_timer *t)
{
    tell_deleter(container_of(t, struct launcher, gone.again), WAKE);
}

/* Told once, and tried until it works. */
static void have_no_deleter(struct launcher *l, struct err *e)
{
    struct launcher_gone *g = &l->gone;

    if (!g->told)
        log_warn("nobody deletes the files of removed sandboxes; tried again every second",
                 KV("waiting", all_undone(l)), KV_ERR(e));
    g->told = g->told ? g->told : 1;
    err_free(e);
    if (all_undone(l) && !l->ending)
        loop_timer_start(l->loop, &g->again, AGAIN_MS, on_again);
}

/* Without anybody who deletes there is a bound too, and that is worth a word. */
static bool has_room(struct launcher_gone *g)
{
    uint64_t waiting = gone_undone(g);

    if (!waiting)
        g->told = 0;
    if (waiting >= MOST_GONE && g->told == 1) {
        log_warn("too many removed sandboxes wait to be deleted: each removal takes as long as its "
                 "files do",
                 KV("waiting", waiting));
        g->told = 2;
    }
    return waiting < MOST_GONE;
}

static void on_deleter_dead(struct launcher_job *j, struct err *e)
{
    struct launcher_gone *g = &j->launcher->gone;

    own_close_p(&g->tell);
    g->tell = -1;
    g->deleter = NULL;
    have_no_deleter(j->launcher, e ? e : err_new(ERR_INTERNAL, "who deletes has ended"));
}

static fallible start_deleter(struct launcher *l)
{
    struct launcher_gone *g = &l->gone;
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
    g->deleter = j;
    g->hurries = false;
    (void)setpriority(PRIO_PROCESS, (id_t)j->child.pid, BEHIND); /* nobody waits for it */
    g->tell = take_fd(&tell);
    return NULL;
}

/* A pipe that is full holds enough to wake it. */
static void tell_deleter(struct launcher *l, char word)
{
    struct launcher_gone *g = &l->gone;
    struct err *e = g->deleter ? NULL : start_deleter(l);

    if (e) {
        have_no_deleter(l, e);
        return;
    }
    loop_timer_stop(&g->again);
    if (write(g->tell, &word, 1) < 0 && errno != EAGAIN)
        log_warn("who deletes is not told", KV("why", strerror(errno)));
}

/* Not allowed to everybody: then it stays behind. */
static void hurry_deleter(struct launcher *l)
{
    struct launcher_gone *g = &l->gone;
    uint64_t waiting = all_undone(l);
    bool hurry = waiting >= (g->hurries ? MANY_GONE / 4 : MANY_GONE);
    int ours = getpriority(PRIO_PROCESS, 0);

    if (!g->deleter || hurry == g->hurries)
        return;
    g->hurries = hurry;
    (void)setpriority(PRIO_PROCESS, (id_t)g->deleter->child.pid,
                      hurry || ours > BEHIND ? ours : BEHIND);
}

static bool put_aside(struct launcher *l, int dir, const char *id)
{
    struct launcher_gone *g = &l->gone;
    char name[24];

    if (g->dir < 0 || !has_room(g))
        return false;
    for (unsigned tries = 0; tries < 8; tries++) {
        snprintf(name, sizeof name, "%" PRIx64, g->next++);
        if (renameat(dir, id, g->dir, name) == 0) {
            __atomic_add_fetch(&g->swept->put, 1, __ATOMIC_RELEASE);
            return true;
        }
        if (errno != ENOTEMPTY && errno != EEXIST)
            return false;
    }
    return false;
}

/* One that cannot be is the next launcher's. */
void launcher_gone_put(struct launcher *l, int dir, const char *name)
{
    if (put_aside(l, dir, name))
        tell_deleter(l, WAKE);
}

/* Only with somebody there who empties it. */
bool launcher_reuse(struct launcher *l, const char *id, unsigned lives)
{
    if (!l->gone.deleter || !launcher_hull_put(l, id, lives))
        return false;
    tell_deleter(l, WAKE);
    hurry_deleter(l);
    launcher_rest_later(l);
    return true;
}

fallible launcher_discard(struct launcher *l, const char *id)
{
    own_fd dir = openat(l->host.boxes, id, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    if (dir >= 0)
        disk_forget(dir);
    if (!put_aside(l, l->host.boxes, id))
        return box_remove_dir(&l->host, id);
    tell_deleter(l, WAKE);
    hurry_deleter(l);
    return NULL;
}

/* Whatever is there that is to be deleted; the directory of hulls is not. */
static bool has_any(int dir, bool hulls)
{
    own_done(buf) names = {0};
    size_t count = 2;

    err_free(tree_read_names(dir, NAMES_MAX, &names, &count)); /* then there is something */
    return count > hulls;
}

/* Without it everything is deleted at once, as slow as that is. */
void launcher_gone_open(struct launcher *l)
{
    struct launcher_gone *g = &l->gone;
    struct err *e = NULL;

    g->swept =
        mmap(NULL, sizeof *g->swept, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (g->swept == MAP_FAILED) {
        g->swept = NULL;
        e = err_sys("map a page to share");
    } else
        e = fd_make_dirs(l->host.dir, STR(BOX_GONE), 0700, &g->dir);
    if (e)
        log_warn("sandboxes are deleted when they are removed", KV_ERR(e));
    else {
        put_aside(l, g->dir, BOX_HULL); /* a launcher's before us */
        launcher_hulls_open(l, &g->swept->hulls);
        if (has_any(g->dir, l->hulls.ring)) {
            g->swept->put++;
            tell_deleter(l, WAKE);
        }
    }
    err_free(e);
}

void launcher_gone_drain(struct launcher *l)
{
    struct launcher_job *j = l->gone.deleter;
    siginfo_t info;

    launcher_hulls_close(l);
    if (!j) {
        unlinkat(l->gone.dir, BOX_HULL, AT_REMOVEDIR); /* what is in it is the next launcher's */
        return;
    }
    (void)fcntl(l->gone.tell, F_SETFL, 0);
    tell_deleter(l, QUIT);
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
    own_close_p(&l->gone.tell);
    l->gone.tell = -1;
    l->gone.deleter = NULL;
}
