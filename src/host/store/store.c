// SPDX-License-Identifier: Apache-2.0
/* store.c — group commit: while one batch is written and synced, the next one gathers.
 *
 * The writer is a thread, which touches the writing connection, the batch and nothing else. It
 * moves the log into the file (a checkpoint) in a quiet moment. The reader likewise
 * has the reading connection, and the reads that were handed to it. */
#include "host/store/store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "host/store/inner.h"

#define WAL_SOON  500  /* pages: moved when nothing was written for */
#define QUIET_MS  100  /* so long: the next write would wait for it */
#define WAL_MOST  1500 /* moved although others wait */

#define SQL_BYTES (16u << 10)

/* Behind a batch of so many the next one gathers for so long: in a crowd a sync for each row costs
 * processor time that all of them wait for. */
#define CROWD     8
#define GATHER_MS 3

/* --- one job --- */

size_t store_column_count(const struct store_table *t)
{
    size_t n = 0;

    while (n < STORE_COLUMNS && t->columns[n].name)
        n++;
    return n;
}

static bool has_column(const struct store_table *t, const char *name)
{
    for (size_t i = 0; i < STORE_COLUMNS && t->columns[i].name; i++)
        if (strcmp(t->columns[i].name, name) == 0)
            return true;
    return false;
}

static size_t bytes_of(const struct store_value *v)
{
    return v->type >= STORE_TEXT ? v->text.len : 0;
}

static size_t change_bytes(const struct store_change *ch)
{
    size_t bytes = sizeof *ch + bytes_of(&ch->key) + bytes_of(&ch->expect.value);

    assert(!ch->expect.column || has_column(ch->table, ch->expect.column));
    assert((!ch->fields || ch->count) && ch->count < STORE_COLUMNS);
    for (size_t i = 0; i < ch->count; i++) {
        assert(has_column(ch->table, ch->fields[i].column));
        bytes += sizeof *ch->fields + bytes_of(&ch->fields[i].value);
    }
    return bytes;
}

static char *value_copy(struct store_value *v, char *at)
{
    size_t n = bytes_of(v);

    if (n)
        v->text.p = memcpy(at, v->text.p, n);
    return at + n;
}

static struct store_job *job_new(const struct store_change *changes, size_t count)
{
    size_t bytes = sizeof(struct store_job), fields = 0;

    for (size_t i = 0; i < count; i++) {
        bytes += change_bytes(&changes[i]);
        fields += changes[i].count;
    }
    struct store_job *w = mem_try(bytes);
    if (!w)
        return NULL;
    *w = (struct store_job){.bytes = bytes, .count = count};
    list_init(&w->link);
    memcpy(w->changes, changes, count * sizeof *changes);
    struct store_field *field = (struct store_field *)&w->changes[count];
    char *at = (char *)&field[fields];
    for (size_t i = 0; i < count; i++) {
        struct store_change *ch = &w->changes[i];
        at = value_copy(&ch->key, at);
        at = value_copy(&ch->expect.value, at);
        for (size_t k = 0; k < ch->count; k++) {
            field[k] = ch->fields[k];
            at = value_copy(&field[k].value, at);
        }
        ch->fields = ch->fields ? field : NULL;
        field += ch->count;
    }
    return w;
}

/* A change of a row that is gone, for which no one waits, is no error. */
static bool is_nothing(const struct store_job *w)
{
    return !w->err || err_code(w->err) == ERR_NOT_FOUND;
}

static void jobs_tell(struct list *jobs)
{
    struct store_job *w;

    while ((w = LIST_FIRST(jobs, struct store_job, link))) {
        list_del(&w->link);
        if (!w->done && !is_nothing(w))
            log_error("row not written", KV_ERR(w->err));
        if (w->done)
            w->done(w->arg, w->err);
        else
            err_free(w->err);
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

/* --- the workers --- */

static int on_wal(void *arg, sqlite3 *db, const char *name, int pages)
{
    struct store *s = arg;

    (void)db, (void)name;
    s->wal_pages = pages;
    return SQLITE_OK;
}

static void store_destroy(struct store *s)
{
    store_conn_close(&s->read);
    store_conn_close(&s->write);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->finish);
    free(s->path);
    free(s);
}

static void on_gone(struct loop_later *l)
{
    store_destroy(container_of(l, struct store, gone));
}

static void on_thread_run(struct loop_work *w)
{
    struct store_thread *t = container_of(w, struct store_thread, work);
    struct store *s = t->store;

    t->run(s);
    pthread_mutex_lock(&s->lock);
    t->finished = true;
    pthread_cond_signal(&s->finish);
    pthread_mutex_unlock(&s->lock);
}

static void on_thread_done(struct loop_work *w)
{
    struct store_thread *t = container_of(w, struct store_thread, work);
    struct store *s = t->store;

    t->working = false;
    if (!s->closed)
        t->ended(s);
    else if (!s->writer.working && !s->reader.working)
        store_destroy(s); /* store_close() told all */
}

/* False: there is no thread, and the loop waited for it. */
static bool thread_begin(struct store_thread *t)
{
    struct store *s = t->store;

    t->working = true;
    t->finished = false;
    own(err) no_thread = loop_work(s->loop, &t->work, on_thread_run, on_thread_done);
    if (!no_thread)
        return true;
    t->run(s);
    t->working = false;
    return false;
}

static void thread_wait(struct store_thread *t)
{
    pthread_mutex_lock(&t->store->lock);
    while (t->working && !t->finished)
        pthread_cond_wait(&t->store->finish, &t->store->lock);
    pthread_mutex_unlock(&t->store->lock);
}

/* --- writing --- */

static void store_next(struct store *s);
static void store_reads_begin(struct store *s);

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
    s->checkpoints = false;
    if (count >= CROWD && !s->closing)
        loop_timer_start(s->loop, &s->gathering, GATHER_MS, on_gathered);
    jobs_tell(&told);
}

static void on_batch_done(struct store *s)
{
    batch_tell(s);
    if (!s->closed)
        store_next(s);
}

static void on_quiet(struct loop_timer *t)
{
    struct store *s = container_of(t, struct store, quiet);

    if (s->writer.working || s->gathering.loop)
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
    return true;
}

static void store_next(struct store *s)
{
    while (!s->closed && !s->writer.working && !s->gathering.loop && batch_take(s)) {
        if (thread_begin(&s->writer))
            return;
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
    store_reads_begin(s);
    jobs_tell(&told);
}

static fallible store_admit(const struct store *s, const struct store_job *w)
{
    if (s->queued >= STORE_QUEUE || s->queued_bytes + w->bytes > STORE_QUEUE_BYTES)
        return err_new(ERR_BUSY, "database '%s': %u writes wait already: try again", s->path,
                       s->queued);
    return NULL;
}

void store_change(struct store *s, const struct store_change *changes, size_t count,
                  store_done *done, void *arg)
{
    struct err *e = s->closed ? err_new(ERR_CLOSED, "database '%s' is closed", s->path) : NULL;
    struct store_job *w = e ? NULL : job_new(changes, count);

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
    if (w->err || !s->writer.working)
        loop_later(s->loop, &s->start, on_start);
    if (w->err)
        return;
    s->queued++;
    s->queued_bytes += w->bytes;
}

/* --- reading --- */

static void store_reads_begin(struct store *s)
{
    while (!s->closed && !s->reader.working && !list_empty(&s->reads)) {
        list_move_all(&s->reading, &s->reads);
        if (thread_begin(&s->reader))
            return;
        store_reads_tell(s);
    }
}

static void on_reads_done(struct store *s)
{
    store_reads_tell(s);
    store_reads_begin(s);
}

void store_reads_soon(struct store *s)
{
    if (!s->reader.working)
        loop_later(s->loop, &s->start, on_start);
}

/* --- its life --- */

fallible store_open(struct loop *loop, const char *path, struct store **ret_store)
{
    struct store *s = mem_try(sizeof *s);

    if (!s)
        return err_no_memory();
    s->loop = loop;
    s->path = strdup(path);
    s->write.path = s->read.path = s->path;
    buf_init(&s->write.sql, SQL_BYTES);
    buf_init(&s->read.sql, SQL_BYTES);
    s->writer = (struct store_thread){.store = s, .run = store_batch_run, .ended = on_batch_done};
    s->reader = (struct store_thread){.store = s, .run = store_reads_run, .ended = on_reads_done};
    list_init(&s->queue);
    list_init(&s->batch);
    list_init(&s->refused);
    list_init(&s->reads);
    list_init(&s->reading);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->finish, NULL);
    struct err *e = s->path ? store_open_files(s) : err_no_memory();
    if (e) {
        store_destroy(s);
        return e;
    }
    sqlite3_wal_hook(s->write.db, on_wal, s);
    *ret_store = s;
    return NULL;
}

static void stop_waits(struct store *s)
{
    loop_later_cancel(&s->start);
    loop_timer_stop(&s->gathering);
    loop_timer_stop(&s->quiet);
}

void store_close(struct store *s)
{
    if (!s || s->closed || s->closing)
        return;
    s->closing = true;
    stop_waits(s);
    thread_wait(&s->reader);
    store_reads_end(s);
    thread_wait(&s->writer);
    batch_tell(s);
    while (s->queued) { /* a callee may change one more */
        s->wal_pages = 0;
        batch_take(s);
        store_batch_run(s);
        batch_tell(s);
    }
    stop_waits(s);
    s->closed = true;
    jobs_tell(&s->refused);
    if (!s->writer.working && !s->reader.working) /* else on_thread_done() destroys it */
        loop_later(s->loop, &s->gone, on_gone);
}

struct loop *store_loop(const struct store *s)
{
    return s->loop;
}
