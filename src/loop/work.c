// SPDX-License-Identifier: Apache-2.0
/* work.c — blocking calls on a few threads; results come back through the eventfd. */
#include <errno.h>
#include <unistd.h>

#include "base/mem.h"
#include "loop/inner.h"

static void *work_worker(void *arg)
{
    struct loop *l = arg;
    struct loop_workers *ws = l->workers;

    pthread_mutex_lock(&ws->lock);
    for (;;) {
        while (list_empty(&ws->todo) && !ws->end) {
            ws->idle++;
            pthread_cond_wait(&ws->more, &ws->lock);
            ws->idle--;
        }
        if (list_empty(&ws->todo))
            break;
        struct loop_work *w = container_of(ws->todo.next, struct loop_work, link);
        list_del(&w->link);
        ws->waiting--;
        pthread_mutex_unlock(&ws->lock);
        w->run(w);
        pthread_mutex_lock(&ws->lock);
        list_add(&ws->finished, &w->link);
        pthread_mutex_unlock(&ws->lock); /* or the loop wakes up only to wait for it */
        loop_wake(l);
        pthread_mutex_lock(&ws->lock);
    }
    pthread_mutex_unlock(&ws->lock);
    return NULL;
}

static void finish_work(struct loop *l)
{
    struct loop_workers *ws = l->workers;

    if (!ws)
        return;
    for (;;) {
        pthread_mutex_lock(&ws->lock);
        struct loop_work *w = LIST_FIRST(&ws->finished, struct loop_work, link);
        if (w)
            list_del(&w->link);
        pthread_mutex_unlock(&ws->lock);
        if (!w)
            return;
        w->loop = NULL;
        w->done(w);
    }
}

void loop_on_wake(struct loop_io *io)
{
    uint64_t count;
    ssize_t ignored = read(io->fd, &count, sizeof count);
    (void)ignored;
    finish_work(io->loop);
}

void loop_forbid_threads(struct loop *l)
{
    l->no_threads = true;
}

static fallible workers_ready(struct loop *l)
{
    if (l->workers)
        return NULL;
    struct loop_workers *ws = mem_try(sizeof *ws);
    if (!ws)
        return err_no_memory();
    pthread_mutex_init(&ws->lock, NULL);
    pthread_cond_init(&ws->more, NULL);
    list_init(&ws->todo);
    list_init(&ws->finished);
    l->workers = ws;
    return NULL;
}

/* Signals belong to the loop's signalfd, so threads are born with all of them blocked. */
static int start_thread(struct loop *l)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&l->workers->threads[l->workers->count], NULL, work_worker, l);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

fallible loop_work(struct loop *l, struct loop_work *w, void (*run)(struct loop_work *w),
                   void (*done)(struct loop_work *w))
{
    if (l->no_threads)
        return err_new(ERR_UNSUPPORTED, "this process clones and may not have threads");
    TRY(workers_ready(l));
    struct loop_workers *ws = l->workers;
    struct err *e = NULL;
    pthread_mutex_lock(&ws->lock);
    if (ws->end) {
        e = err_new(ERR_CLOSED, "the loop is ending");
    } else if (ws->idle <= ws->waiting && ws->count < LOOP_WORKERS) { /* idle ones are spoken for */
        int error = start_thread(l);
        if (error == 0)
            ws->count++;
        else if (ws->count == 0)
            e = err_sysno(error, "start a worker thread");
    }
    if (!e) {
        *w = (struct loop_work){.run = run, .done = done, .loop = l};
        list_add(&ws->todo, &w->link);
        ws->waiting++;
    }
    pthread_mutex_unlock(&ws->lock);
    if (!e)
        pthread_cond_signal(&ws->more);
    return e;
}

void loop_workers_end(struct loop *l)
{
    struct loop_workers *ws = l->workers;

    if (!ws)
        return;
    pthread_mutex_lock(&ws->lock);
    ws->end = true;
    pthread_cond_broadcast(&ws->more);
    pthread_mutex_unlock(&ws->lock);
    for (unsigned i = 0; i < ws->count; i++)
        pthread_join(ws->threads[i], NULL);
    finish_work(l); /* what ran is told, so that its owner can free it */
    pthread_mutex_destroy(&ws->lock);
    pthread_cond_destroy(&ws->more);
    free(ws);
    l->workers = NULL;
}
