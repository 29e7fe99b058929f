// SPDX-License-Identifier: Apache-2.0
/* store.c — group commit: while one transaction is written and synced, the next one gathers.
 *
 * Who flies is a thread, which touches the writing connection, the statements, the flight and
 * nothing else. A flight that is expected begins without passengers: they come aboard until it is
 * told to leave, at the end of the turn at the latest. What was written ahead (see ahead.c) goes
 * with a later one, again if that fails. Moving the log into the file (a checkpoint) flies on its
 * own, when nobody writes. */
#include "host/store/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "host/store/inner.h"

#define WAL_SOON 500  /* pages: moved when nothing was written for */
#define QUIET_MS 100  /* so long: who writes next would wait for it */
#define WAL_MOST 1500 /* moved although others wait */
#define AHEAD_MS 20   /* until SQLite has what was written ahead: nobody waits for it */
#define AGAIN_MS 1000 /* and when that failed */

static void store_fly(struct store *s);

/* --- one write --- */

static char *put_bytes(char *at, const char *p, size_t n)
{
    memcpy(at, n ? p : "", n);
    return at + n;
}

static struct store_job *write_new(const char *sql, const struct store_value *values, size_t count)
{
    size_t sql_len = strlen(sql) + 1, bytes = sizeof(struct store_job) + count * sizeof *values;

    for (size_t i = 0; i < count; i++)
        bytes += values[i].type >= STORE_TEXT ? values[i].text.len : 0;
    struct store_job *w = mem_try(bytes + sql_len);
    if (!w)
        return NULL;
    *w = (struct store_job){.bytes = bytes + sql_len, .count = count};
    list_init(&w->link);
    list_init(&w->told);
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

static void store_tell(struct list *list)
{
    struct store_job *w;

    while ((w = LIST_FIRST(list, struct store_job, link))) {
        list_del(&w->link);
        list_del(&w->told);
        struct err *e = w->err;
        if (w->done)
            w->done(w->arg, e);
        else if (e)
            log_error("row not written", KV_ERR(e));
        if (!w->done)
            err_free(e);
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

    store_flight(s);
    pthread_mutex_lock(&s->lock);
    s->landed = true;
    pthread_cond_signal(&s->landing);
    pthread_mutex_unlock(&s->lock);
}

/* --- on the loop --- */

static void store_destroy(struct store *s)
{
    for (size_t i = 0; i < STORE_STATEMENTS; i++) {
        sqlite3_finalize(s->statements[i].stmt);
        free(s->statements[i].sql);
    }
    s->vfs.whole = true; /* the last to close moves the log into the file */
    sqlite3_close(s->reader);
    sqlite3_close(s->db);
    store_ahead_close(&s->ahead);
    store_vfs_close(&s->vfs);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->landing);
    pthread_cond_destroy(&s->leaving);
    free(s->path);
    free(s);
}

static void on_gone(struct loop_later *l)
{
    store_destroy(container_of(l, struct store, gone));
}

static void judge_disk(struct store *s, uint64_t sync_ns)
{
    if (sync_ns > STORE_QUICK_US * 1000ull)
        s->quick = 0;
    else if (sync_ns && s->quick < STORE_QUICK_RUN)
        s->quick++;
}

/* The loop would wait for the disk. */
static bool may_go_ahead(const struct store *s)
{
    return s->quick == STORE_QUICK_RUN && s->ahead.fd >= 0 && !s->ahead.stuck &&
           !s->ahead.writing && !s->undone && !s->closing;
}

/* Those that are on disk by their records alone stay, before all others. Of a store that is closing
 * the next one does them. */
static void keep_ahead(struct store *s, struct list *flight)
{
    struct list kept;

    list_init(&kept);
    LIST_EACH(w, flight, struct store_job, link) {
        if (!w->safe || w->written || s->closing)
            continue;
        list_del(&w->link);
        list_add(&kept, &w->link);
        err_free(take(&w->err));
        s->queued++;
        s->queued_bytes += w->bytes;
    }
    if (list_empty(&kept))
        return;
    list_move_all(&kept, &s->gather);
    list_move_all(&s->gather, &kept);
    store_gather(s, AGAIN_MS);
}

/* Takes the flight first: a callee may write, or close the store. */
static void store_land(struct store *s)
{
    struct list told;

    judge_disk(s, s->vfs.sync_ns);
    s->vfs.sync_ns = 0;
    list_init(&told);
    list_move_all(&told, &s->flight);
    if (!s->checkpoints)
        s->undone = s->failed;
    if (s->undone)
        keep_ahead(s, &told);
    else if (s->aboard && s->aboard_blocks > s->ahead.from)
        s->ahead.from = s->aboard_blocks;
    s->aboard = 0;
    s->flying = s->checkpoints = false;
    store_tell(&told);
}

static void tell_ahead(struct store *s)
{
    struct store_job *w;
    struct list told; /* those that come by it wait for the next turn */

    list_init(&told);
    list_move_all(&told, &s->told);
    while ((w = LIST_FIRST(&told, struct store_job, told))) {
        list_del(&w->told);
        store_done *done = w->done;
        w->done = NULL;
        if (done)
            done(w->arg, NULL);
    }
}

static void on_work_done(struct loop_work *w)
{
    struct store *s = container_of(w, struct store, work);

    if (s->closed) { /* store_close landed it */
        store_destroy(s);
        return;
    }
    store_land(s);
    if (!s->closed)
        store_fly(s);
}

static void on_quiet(struct loop_timer *t)
{
    struct store *s = container_of(t, struct store, quiet);

    if (s->flying || s->gathering.loop)
        return; /* its end looks again */
    s->checkpoints = true;
    store_fly(s);
}

static void store_board(struct store *s)
{
    LIST_EACH(w, &s->gather, struct store_job, link)
        s->aboard = w->seq > s->aboard ? w->seq : s->aboard;
    if (s->ahead.stuck) /* what could not be taken back is not to be done after all */
        s->aboard = s->ahead.seq;
    s->aboard_blocks = s->ahead.at;
    list_move_all(&s->flight, &s->gather);
    s->queued = 0, s->queued_bytes = 0;
}

/* Who waits aboard has everything. */
static void store_leave(struct store *s)
{
    if (!s->boarding)
        return;
    pthread_mutex_lock(&s->lock);
    store_board(s);
    s->boarding = false;
    pthread_mutex_unlock(&s->lock);
    pthread_cond_signal(&s->leaving);
}

static bool take_off(struct store *s)
{
    s->checkpoints |= s->wal_pages >= WAL_MOST;
    if (!s->checkpoints && !s->queued) {
        if (s->wal_pages >= WAL_SOON)
            loop_timer_start(s->loop, &s->quiet, QUIET_MS, on_quiet);
        return false;
    }
    loop_timer_stop(&s->quiet);
    if (!s->checkpoints)
        store_board(s);
    s->landed = false;
    s->flying = true;
    return true;
}

static bool hand_over(struct store *s)
{
    own(err) e = loop_work(s->loop, &s->work, on_work_run, on_work_done);

    return !e;
}

static void store_fly(struct store *s)
{
    while (!s->closed && !s->flying && !s->gathering.loop && take_off(s)) {
        if (hand_over(s))
            return;
        store_flight(s); /* no thread to be had: then the loop waits for the disk itself */
        store_land(s);
    }
}

static void on_start(struct loop_later *l)
{
    struct store *s = container_of(l, struct store, start);
    struct list told;

    list_init(&told);
    list_move_all(&told, &s->refused);
    store_leave(s);
    store_fly(s);
    store_tell(&told);
    tell_ahead(s);
}

static fallible store_admit(const struct store *s, const struct store_job *w)
{
    if (s->queued >= STORE_QUEUE || s->queued_bytes + w->bytes > STORE_QUEUE_BYTES)
        return err_new(ERR_BUSY, "database '%s': %u writes wait already: try again", s->path,
                       s->queued);
    return NULL;
}

/* NULL: refused, and told so. */
static struct store_job *store_add(struct store *s, const char *sql,
                                   const struct store_value *values, size_t count, store_done *done,
                                   void *arg)
{
    struct err *e = s->closed ? err_new(ERR_CLOSED, "database '%s' is closed", s->path) : NULL;
    struct store_job *w = e ? NULL : write_new(sql, values, count);

    if (!w) {
        e = e ? e : err_no_memory();
        if (done)
            done(arg, e);
        else
            err_free(e);
        return NULL;
    }
    w->done = done;
    w->arg = arg;
    w->err = store_admit(s, w);
    list_add(w->err ? &s->refused : &s->gather, &w->link);
    if (w->err || !s->flying)
        loop_later(s->loop, &s->start, on_start);
    if (w->err)
        return NULL;
    s->queued++;
    s->queued_bytes += w->bytes;
    return w;
}

void store_write(struct store *s, const char *sql, const struct store_value *values, size_t count,
                 store_done *done, void *arg)
{
    store_add(s, sql, values, count, done, arg);
}

static void on_gathered(struct loop_timer *t)
{
    store_fly(container_of(t, struct store, gathering));
}

void store_gather(struct store *s, uint64_t ms)
{
    if (!s->closing && !s->gathering.loop)
        loop_timer_start(s->loop, &s->gathering, ms, on_gathered);
}

void store_expect(struct store *s)
{
    if (s->closing || s->flying || s->queued || s->gathering.loop || s->wal_pages >= WAL_MOST)
        return; /* it goes out with those, or after what must come first */
    if (may_go_ahead(s))
        return; /* who comes alone needs no worker */
    loop_timer_stop(&s->quiet);
    s->landed = s->checkpoints = false;
    s->flying = s->boarding = true;
    if (!hand_over(s))
        s->flying = s->boarding = false; /* no thread to be had */
    else
        loop_later(s->loop, &s->start, on_start);
}

void store_hurry(struct store *s)
{
    unsigned queued = s->queued;
    size_t bytes = s->queued_bytes;

    loop_timer_stop(&s->gathering);
    store_leave(s);
    if (s->closing || s->flying || !queued || !take_off(s) || hand_over(s))
        return;
    if (!s->checkpoints) { /* no thread to be had: in its turn, and told from there */
        list_move_all(&s->gather, &s->flight);
        s->queued = queued;
        s->queued_bytes = bytes;
    }
    s->aboard = 0;
    s->flying = s->checkpoints = false;
}

static uint64_t now_ns(const struct store *s)
{
    return clock_mono_ns(s->vfs.clock);
}

void store_write_alone(struct store *s, const char *sql, const struct store_value *values,
                       size_t count, store_done *done, void *arg, void (*meanwhile)(void *arg))
{
    struct store_job *w = store_add(s, sql, values, count, done, arg);
    uint64_t begun = now_ns(s);

    if (!w || !may_go_ahead(s) ||
        !store_ahead_begin(&s->ahead, w->sql, w->values, w->count, w->bytes)) {
        store_hurry(s);
        meanwhile(arg);
        return;
    }
    w->seq = s->ahead.seq;
    uint64_t ns = now_ns(s) - begun;
    meanwhile(arg);
    begun = now_ns(s);
    w->safe = store_ahead_finish(&s->ahead);
    judge_disk(s, ns + now_ns(s) - begun);
    if (!w->safe) {
        store_hurry(s);
        return;
    }
    list_add(&s->told, &w->told);
    loop_later(s->loop, &s->start, on_start);
    store_gather(s, AHEAD_MS);
}

static void wait_for_landing(struct store *s)
{
    store_leave(s);
    pthread_mutex_lock(&s->lock);
    while (s->flying && !s->landed)
        pthread_cond_wait(&s->landing, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

fallible store_settle(struct store *s)
{
    if (s->ahead.from == s->ahead.at)
        return NULL;
    wait_for_landing(s); /* the connection is ours from then on, until the next takes off */
    sqlite3_busy_timeout(s->db, STORE_READ_BUSY_MS);
    struct err *e = store_flight_of_those_ahead(s);
    sqlite3_busy_timeout(s->db, STORE_BUSY_MS);
    return e;
}

/* --- its life --- */

fallible store_open(struct loop *loop, const char *path, struct store **ret_store)
{
    struct store *s = mem_try(sizeof *s);

    if (!s)
        return err_no_memory();
    s->loop = loop;
    s->vfs.clock = loop_clock(loop);
    s->path = strdup(path);
    list_init(&s->gather);
    list_init(&s->flight);
    list_init(&s->refused);
    list_init(&s->told);
    s->ahead.fd = s->ahead.top = -1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->landing, NULL);
    pthread_cond_init(&s->leaving, NULL);
    struct err *e = s->path ? store_open_files(s) : err_no_memory();
    if (e) {
        store_destroy(s);
        return e;
    }
    sqlite3_wal_hook(s->db, on_wal, s);
    s->vfs.sync_ns = 0;
    *ret_store = s;
    return NULL;
}

void store_close(struct store *s)
{
    if (!s || s->closed)
        return;
    s->closing = true;
    bool flying = s->flying;
    loop_later_cancel(&s->start);
    loop_timer_stop(&s->gathering);
    loop_timer_stop(&s->quiet);
    wait_for_landing(s);
    tell_ahead(s);
    store_land(s);
    while (s->queued) { /* those who are told may write once more */
        s->wal_pages = 0;
        take_off(s);
        store_flight(s);
        store_land(s);
    }
    loop_later_cancel(&s->start);
    loop_timer_stop(&s->gathering);
    loop_timer_stop(&s->quiet);
    s->closed = true;
    store_tell(&s->refused);
    if (!flying) /* else the loop still has its work, and on_work_done destroys it */
        loop_later(s->loop, &s->gone, on_gone);
}

struct loop *store_loop(const struct store *s)
{
    return s->loop;
}
