// SPDX-License-Identifier: Apache-2.0
/* store.c — group commit: while one transaction is written and synced, the next one gathers.
 *
 * Who flies touches the writing connection, the statements, the flight and nothing else: a thread,
 * or the loop itself where that is quicker. A flight that is expected begins without passengers:
 * they come aboard until it is told to leave, at the end of the turn at the latest. Moving the log
 * into the file (a checkpoint) flies on its own, when nobody writes. */
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

struct write {
    struct list link;
    store_done *done;
    void *arg;
    struct err *err;
    size_t bytes;
    char *sql; /* behind the values, with what they hold */
    size_t count;
    struct store_value values[];
};

static void fly(struct store *s);

/* --- one write --- */

static char *put_bytes(char *at, const char *p, size_t n)
{
    memcpy(at, n ? p : "", n);
    return at + n;
}

static struct write *write_new(const char *sql, const struct store_value *values, size_t count)
{
    size_t sql_len = strlen(sql) + 1, bytes = sizeof(struct write) + count * sizeof *values;

    for (size_t i = 0; i < count; i++)
        bytes += values[i].type >= STORE_TEXT ? values[i].text.len : 0;
    struct write *w = mem_try(bytes + sql_len);
    if (!w)
        return NULL;
    *w = (struct write){.bytes = bytes + sql_len, .count = count};
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

static void tell(struct list *list)
{
    struct write *w;

    while ((w = LIST_FIRST(list, struct write, link))) {
        list_del(&w->link);
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

/* --- on the thread, or on the loop while none flies --- */

int store_bind(sqlite3_stmt *stmt, const struct store_value *values, size_t count)
{
    int rc = SQLITE_OK;

    for (size_t i = 0; i < count && rc == SQLITE_OK; i++) {
        const struct store_value *v = &values[i];
        int at = (int)i + 1;
        switch (v->type) {
        case STORE_NULL:
            rc = sqlite3_bind_null(stmt, at);
            break;
        case STORE_INT:
            rc = sqlite3_bind_int64(stmt, at, v->i);
            break;
        case STORE_TEXT:
            rc = sqlite3_bind_text64(stmt, at, v->text.len ? v->text.p : "", v->text.len,
                                     SQLITE_STATIC, SQLITE_UTF8);
            break;
        case STORE_BLOB:
            rc = sqlite3_bind_blob64(stmt, at, v->text.len ? v->text.p : "", v->text.len,
                                     SQLITE_STATIC);
            break;
        }
    }
    return rc;
}

static int prepare(struct store *s, const char *sql, sqlite3_stmt **ret_stmt)
{
    for (size_t i = 0; i < STORE_STATEMENTS; i++)
        if (s->statements[i].sql && strcmp(s->statements[i].sql, sql) == 0) {
            *ret_stmt = s->statements[i].stmt;
            return SQLITE_OK;
        }
    int rc = sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret_stmt, NULL);
    if (rc != SQLITE_OK)
        return rc;
    char *kept = strdup(sql);
    if (!kept) {
        sqlite3_finalize(*ret_stmt);
        return SQLITE_NOMEM;
    }
    struct store_stmt *slot = &s->statements[s->statement_next++ % STORE_STATEMENTS];
    sqlite3_finalize(slot->stmt);
    free(slot->sql);
    *slot = (struct store_stmt){kept, *ret_stmt};
    return SQLITE_OK;
}

static fallible run(struct store *s, const char *sql, const struct store_value *values,
                    size_t count)
{
    sqlite3_stmt *stmt;
    int rc = prepare(s, sql, &stmt);

    if (rc != SQLITE_OK)
        return store_err(s->db, s->path, rc);
    rc = store_bind(stmt, values, count);
    while (rc == SQLITE_OK || rc == SQLITE_ROW)
        rc = sqlite3_step(stmt);
    struct err *e = rc == SQLITE_DONE ? NULL : store_err(s->db, s->path, rc);
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
    return e;
}

/* Nobody of this flight is on disk. One that failed by itself keeps its own story. */
static void fail_all(struct store *s, struct err *why)
{
    LIST_EACH(w, &s->flight, struct write, link) {
        if (!w->err)
            w->err = err_copy(why);
    }
    err_free(why);
}

static void wait_for_all(struct store *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->boarding)
        pthread_cond_wait(&s->leaving, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static fallible begin(struct store *s)
{
    return run(s, "BEGIN IMMEDIATE", NULL, 0);
}

static fallible run_all(struct store *s)
{
    LIST_EACH(w, &s->flight, struct write, link) {
        w->err = run(s, w->sql, w->values, w->count);
        if (w->err && sqlite3_get_autocommit(s->db)) /* SQLite undid the whole transaction */
            return err_copy(w->err);
    }
    return run(s, "COMMIT", NULL, 0);
}

/* e: why it could not begin. */
static void flight_finish(struct store *s, struct err *e)
{
    if (!e)
        e = run_all(s);
    if (e && !sqlite3_get_autocommit(s->db))
        err_free(store_exec(s->db, s->path, "ROLLBACK")); /* e is the story */
    if (e)
        fail_all(s, e);
}

static void flight_run(struct store *s)
{
    int left = 0;

    if (s->checkpoints) { /* what cannot be moved now stays in the log, where it is as safe */
        s->vfs.whole = true;
        int rc = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &left, NULL);
        s->vfs.whole = false;
        s->wal_pages = 0;   /* counted anew by the next commit */
        s->vfs.sync_ns = 0; /* nobody waited for it */
        (void)rc;
        return;
    }
    struct err *e = begin(s);
    wait_for_all(s);
    flight_finish(s, e);
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

    flight_run(s);
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

static void judge_disk(struct store *s)
{
    if (s->vfs.sync_ns > STORE_QUICK_US * 1000ull)
        s->quick = 0;
    else if (s->vfs.sync_ns && s->quick < STORE_QUICK_RUN)
        s->quick++;
    s->vfs.sync_ns = 0;
}

static bool is_quick(const struct store *s)
{
    return s->quick == STORE_QUICK_RUN;
}

/* Takes the flight first: a callee may write, or close the store. */
static void land(struct store *s)
{
    struct list told;

    judge_disk(s);
    s->here = false;
    list_init(&told);
    list_move_all(&told, &s->flight);
    s->flying = s->checkpoints = false;
    tell(&told);
}

static void on_work_done(struct loop_work *w)
{
    struct store *s = container_of(w, struct store, work);

    if (s->closed) { /* store_close landed it */
        store_destroy(s);
        return;
    }
    land(s);
    if (!s->closed)
        fly(s);
}

static void on_quiet(struct loop_timer *t)
{
    struct store *s = container_of(t, struct store, quiet);

    if (s->flying || s->gathering.loop)
        return; /* its end looks again */
    s->checkpoints = true;
    fly(s);
}

static void board(struct store *s)
{
    list_move_all(&s->flight, &s->gather);
    s->queued = 0, s->queued_bytes = 0;
}

/* Who waits aboard has everything. */
static void leave(struct store *s)
{
    if (!s->boarding)
        return;
    pthread_mutex_lock(&s->lock);
    board(s);
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
        board(s);
    s->landed = false;
    s->flying = true;
    return true;
}

static bool hand_over(struct store *s)
{
    own(err) e = loop_work(s->loop, &s->work, on_work_run, on_work_done);

    return !e;
}

static void fly(struct store *s)
{
    while (!s->closed && !s->flying && !s->gathering.loop && take_off(s)) {
        if (hand_over(s))
            return;
        flight_run(s); /* no thread to be had: then the loop waits for the disk itself */
        land(s);
    }
}

static void on_start(struct loop_later *l)
{
    struct store *s = container_of(l, struct store, start);
    struct list told;

    list_init(&told);
    list_move_all(&told, &s->refused);
    leave(s);
    if (s->here)
        land(s);
    fly(s);
    tell(&told);
}

static fallible admit(const struct store *s, const struct write *w)
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
    struct write *w = e ? NULL : write_new(sql, values, count);

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
    w->err = admit(s, w);
    list_add(w->err ? &s->refused : &s->gather, &w->link);
    if (!w->err) {
        s->queued++;
        s->queued_bytes += w->bytes;
    }
    if (w->err || !s->flying)
        loop_later(s->loop, &s->start, on_start);
}

static void on_gathered(struct loop_timer *t)
{
    fly(container_of(t, struct store, gathering));
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
    if (is_quick(s))
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
    leave(s);
    if (s->closing || s->flying || !queued || !take_off(s) || hand_over(s))
        return;
    if (!s->checkpoints) { /* no thread to be had: in its turn, and told from there */
        list_move_all(&s->gather, &s->flight);
        s->queued = queued;
        s->queued_bytes = bytes;
    }
    s->flying = s->checkpoints = false;
}

/* Another process may hold the file: the loop does not wait for that one. */
static bool begin_here(struct store *s)
{
    sqlite3_busy_timeout(s->db, 0);
    own(err) e = begin(s);
    sqlite3_busy_timeout(s->db, STORE_BUSY_MS);
    return !e;
}

void store_hurry_alone(struct store *s, void (*meanwhile)(void *arg), void *arg)
{
    bool ours = is_quick(s) && !s->closing && !s->flying && !s->checkpoints && s->queued &&
                s->queued_bytes <= STORE_QUICK_BYTES && s->wal_pages < WAL_MOST && begin_here(s);

    if (!ours) {
        store_hurry(s);
        meanwhile(arg);
        return;
    }
    loop_timer_stop(&s->gathering);
    take_off(s);
    s->vfs.meanwhile = meanwhile;
    s->vfs.meanwhile_arg = arg;
    flight_finish(s, NULL);
    s->here = s->landed = true;
    loop_later(s->loop, &s->start, on_start);
    store_vfs_meanwhile(&s->vfs); /* should it have come to no sync */
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
    leave(s);
    bool flying = s->flying && !s->here;
    loop_later_cancel(&s->start);
    loop_timer_stop(&s->gathering);
    loop_timer_stop(&s->quiet);
    pthread_mutex_lock(&s->lock);
    while (flying && !s->landed)
        pthread_cond_wait(&s->landing, &s->lock);
    pthread_mutex_unlock(&s->lock);
    land(s);
    while (s->queued) { /* those who are told may write once more */
        s->wal_pages = 0;
        take_off(s);
        flight_run(s);
        land(s);
    }
    loop_later_cancel(&s->start);
    loop_timer_stop(&s->gathering);
    loop_timer_stop(&s->quiet);
    s->closed = true;
    tell(&s->refused);
    if (!flying) /* else the loop still has its work, and on_work_done destroys it */
        loop_later(s->loop, &s->gone, on_gone);
}

struct loop *store_loop(const struct store *s)
{
    return s->loop;
}
