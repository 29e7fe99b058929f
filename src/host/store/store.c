// SPDX-License-Identifier: Apache-2.0
/* store.c — group commit: while one batch is written and synced, the next one gathers.
 *
 * The worker is a thread, which touches the writing connection, the statements, the batch and
 * nothing else. It moves the log into the file (a checkpoint) on its own, when nobody writes. */
#include "host/store/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "host/store/inner.h"

#define WAL_SOON 500  /* pages: moved when nothing was written for */
#define QUIET_MS 100  /* so long: who writes next would wait for it */
#define WAL_MOST 1500 /* moved although others wait */

/* Behind a batch of so many the next one gathers for so long: in a crowd a sync for each row costs
 * processor time that all of them wait for. */
#define CROWD     8
#define GATHER_MS 3

/* --- one write --- */

static char *put_bytes(char *at, const char *p, size_t n)
{
    memcpy(at, n ? p : "", n);
    return at + n;
}

static struct store_job *job_new(const char *sql, const struct store_value *values, size_t count)
{
    size_t sql_len = strlen(sql) + 1, bytes = sizeof(struct store_job) + count * sizeof *values;

    for (size_t i = 0; i < count; i++)
        bytes += values[i].type >= STORE_TEXT ? values[i].text.len : 0;
    struct store_job *w = mem_try(bytes + sql_len);
    if (!w)
        return NULL;
    *w = (struct store_job){.bytes = bytes + sql_len, .count = count};
    list_init(&w->link);
    char *at = (char *)&w->values[count];
    w->sql = at;
    at = put_bytes(at, sql, sql_len);
    for (size_t i = 0; i < count; i++) {
        w->values[i] = values[i];
        if (values[i].type < STORE_TEXT)
            continue;
        w->values[i].text.p = at;
        at = put_bytes(at, values[i].text.p, values[i].text.len);
    }
    return w;
}

static void jobs_tell(struct list *jobs)
{
    struct store_job *w;

    while ((w = LIST_FIRST(jobs, struct store_job, link))) {
        list_del(&w->link);
        if (w->done) {
            w->done(w->arg, w->err);
        } else if (w->err) {
            log_error("row not written", KV_ERR(w->err));
            err_free(w->err);
        }
        free(w);
    }
}

static void list_move_all(struct list *to, struct list *from)
{
    while (!list_empty(from)) {
        struct list *first = from->next;
        list_del(first);
        list_add(to, first);
    }
}

/* --- the worker --- */

static int on_wal(void *arg, sqlite3 *db, const char *name, int pages)
{
    struct store *s = arg;

    (void)db, (void)name;
    s->wal_pages = pages;
    return SQLITE_OK;
}

static void on_work_run(struct loop_work *w)
{
    struct store *s = container_of(w, struct store, work);

    store_batch_run(s);
    pthread_mutex_lock(&s->lock);
    s->finished = true;
    pthread_cond_signal(&s->finish);
    pthread_mutex_unlock(&s->lock);
}

/* --- on the loop --- */

static void store_destroy(struct store *s)
{
    for (size_t i = 0; i < STORE_STATEMENTS; i++) {
        sqlite3_finalize(s->statements[i].stmt);
        free(s->statements[i].sql);
    }
    sqlite3_close(s->reader);
    sqlite3_close(s->db); /* the last to close moves the log into the file */
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->finish);
    free(s->path);
    free(s);
}

static void on_gone(struct loop_later *l)
{
    store_destroy(container_of(l, struct store, gone));
}

static void store_next(struct store *s);

static void on_gathered(struct loop_timer *t)
{
    store_next(container_of(t, struct store, gathering));
}

/* Takes the batch first: a callee may write, or close the store. */
static void batch_tell(struct store *s)
{
    struct list told;
    unsigned count = 0;

    list_init(&told);
    for (; !list_empty(&s->batch); count++) {
        struct list *first = s->batch.next;
        list_del(first);
        list_add(&told, first);
    }
    s->working = s->checkpoints = false;
    if (count >= CROWD && !s->closing)
        loop_timer_start(s->loop, &s->gathering, GATHER_MS, on_gathered);
    jobs_tell(&told);
}

static void on_work_done(struct loop_work *w)
{
    struct store *s = container_of(w, struct store, work);

    if (s->closed) { /* store_close told the batch */
        store_destroy(s);
        return;
    }
    batch_tell(s);
    if (!s->closed)
        store_next(s);
}

static void on_quiet(struct loop_timer *t)
{
    struct store *s = container_of(t, struct store, quiet);

    if (s->working || s->gathering.loop)
        return; /* its end looks again */
    s->checkpoints = true;
    store_next(s);
}

/* False: there is nothing to do. */
static bool batch_take(struct store *s)
{
    s->checkpoints |= s->wal_pages >= WAL_MOST;
    if (!s->checkpoints && !s->queued) {
        if (s->wal_pages >= WAL_SOON)
            loop_timer_start(s->loop, &s->quiet, QUIET_MS, on_quiet);
        return false;
    }
    loop_timer_stop(&s->quiet);
    if (!s->checkpoints) {
        list_move_all(&s->batch, &s->queue);
        s->queued = 0, s->queued_bytes = 0;
    }
    s->finished = false;
    s->working = true;
    return true;
}

static void store_next(struct store *s)
{
    while (!s->closed && !s->working && !s->gathering.loop && batch_take(s)) {
        own(err) no_thread = loop_work(s->loop, &s->work, on_work_run, on_work_done);
        if (!no_thread)
            return;
        store_batch_run(s); /* the loop waits for the disk itself */
        batch_tell(s);
    }
}

static void on_start(struct loop_later *l)
{
    struct store *s = container_of(l, struct store, start);
    struct list told;

    list_init(&told);
    list_move_all(&told, &s->refused);
    store_next(s);
    jobs_tell(&told);
}

static fallible store_admit(const struct store *s, const struct store_job *w)
{
    if (s->queued >= STORE_QUEUE || s->queued_bytes + w->bytes > STORE_QUEUE_BYTES)
        return err_new(ERR_BUSY, "database '%s': %u writes wait already: try again", s->path,
                       s->queued);
    return NULL;
}

void store_write(struct store *s, const char *sql, const struct store_value *values, size_t count,
                 store_done *done, void *arg)
{
    struct err *e = s->closed ? err_new(ERR_CLOSED, "database '%s' is closed", s->path) : NULL;
    struct store_job *w = e ? NULL : job_new(sql, values, count);

    if (!w) {
        e = e ? e : err_no_memory();
        if (done)
            done(arg, e);
        else
            err_free(e);
        return;
    }
    w->done = done;
    w->arg = arg;
    w->err = store_admit(s, w);
    list_add(w->err ? &s->refused : &s->queue, &w->link);
    if (w->err || !s->working)
        loop_later(s->loop, &s->start, on_start);
    if (w->err)
        return;
    s->queued++;
    s->queued_bytes += w->bytes;
}

/* --- its life --- */

fallible store_open(struct loop *loop, const char *path, struct store **ret_store)
{
    struct store *s = mem_try(sizeof *s);

    if (!s)
        return err_no_memory();
    s->loop = loop;
    s->path = strdup(path);
    list_init(&s->queue);
    list_init(&s->batch);
    list_init(&s->refused);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->finish, NULL);
    struct err *e = s->path ? store_open_files(s) : err_no_memory();
    if (e) {
        store_destroy(s);
        return e;
    }
    sqlite3_wal_hook(s->db, on_wal, s);
    *ret_store = s;
    return NULL;
}

static void wait_for_worker(struct store *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->working && !s->finished)
        pthread_cond_wait(&s->finish, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static void stop_waits(struct store *s)
{
    loop_later_cancel(&s->start);
    loop_timer_stop(&s->gathering);
    loop_timer_stop(&s->quiet);
}

void store_close(struct store *s)
{
    if (!s || s->closed)
        return;
    s->closing = true;
    bool working = s->working;
    stop_waits(s);
    wait_for_worker(s);
    batch_tell(s);
    while (s->queued) { /* those who are told may write once more */
        s->wal_pages = 0;
        batch_take(s);
        store_batch_run(s);
        batch_tell(s);
    }
    stop_waits(s);
    s->closed = true;
    jobs_tell(&s->refused);
    if (!working) /* else the loop still has its work, and on_work_done destroys it */
        loop_later(s->loop, &s->gone, on_gone);
}

struct loop *store_loop(const struct store *s)
{
    return s->loop;
}
