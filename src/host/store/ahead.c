// SPDX-License-Identifier: Apache-2.0
/* ahead.c — what one who waits alone asked for is on disk before SQLite has it.
 *
 * A transaction is pages found, locked, changed, copied into a log, and from a processor that slept
 * all of that is slow. What a crash needs is what was asked for: a record of it goes, as one direct
 * write, into a file that was laid out beforehand, and SQLite has it with the next transaction,
 * which nobody waits for and which notes how far it came. Who opens the file next does what is
 * newer than that once more.
 *
 * The file is a ring of blocks; a record begins with a block and goes through none of them twice.
 * One process has it, by a lock that ends with it: others do without. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/own.h"
#include "host/store/inner.h"

#define BLOCK      RECORD_BLOCK
#define BLOCKS     64
#define RING_BYTES ((size_t)BLOCK * BLOCKS)

/* --- on the disk --- */

/* The next record's place, or none while SQLite has not caught up. */
static bool find_room(struct store_ahead *a, uint64_t blocks)
{
    uint64_t left = BLOCKS - a->at % BLOCKS;
    uint64_t at = blocks <= left ? a->at : a->at + left;

    if (at + blocks - a->from > BLOCKS)
        return false;
    a->at = at;
    return true;
}

bool store_ahead_begin(struct store_ahead *a, const char *sql, const struct store_value *values,
                       size_t count, size_t bytes)
{
    if (a->fd < 0 || a->stuck || !store_record_fits(count, bytes))
        return false;
    size_t whole = store_record_put(a->block, a->id, a->seq + 1, sql, values, count);
    if (!find_room(a, whole / BLOCK))
        return false;
    struct iocb write = {.aio_fildes = (uint32_t)a->fd,
                         .aio_lio_opcode = IOCB_CMD_PWRITE,
                         .aio_buf = (uintptr_t)a->block,
                         .aio_nbytes = whole,
                         .aio_offset = (int64_t)(a->at % BLOCKS * BLOCK)};
    struct iocb *one = &write;
    if (syscall(SYS_io_submit, a->aio, 1, &one) != 1)
        return false;
    a->at += whole / BLOCK;
    a->writing = whole;
    a->seq++;
    return true;
}

static bool wait_for_write(struct store_ahead *a)
{
    struct io_event event;
    long n;

    do
        n = syscall(SYS_io_getevents, a->aio, 1, 1, &event, NULL);
    while (n < 0 && errno == EINTR);
    return n == 1 && event.res == (int64_t)a->writing;
}

/* What may be there or not is not to be found later: who asked is told something else. */
static void take_back(struct store_ahead *a)
{
    memset(a->block, 0, a->writing);
    off_t at = (off_t)((a->at - a->writing / BLOCK) % BLOCKS * BLOCK);
    if (pwrite(a->fd, a->block, a->writing, at) < 0 || fdatasync(a->fd) < 0)
        log_warn("a record that failed may stay", KV("errno", errno));
}

bool store_ahead_finish(struct store_ahead *a)
{
    bool done = wait_for_write(a) && fdatasync(a->top >= 0 ? a->top : a->fd) == 0;

    if (!done) {
        log_warn("rows are not written ahead any more", KV("errno", errno));
        a->stuck = true;
        take_back(a);
    }
    a->writing = 0;
    return done;
}

/* --- its file --- */

void store_ahead_close(struct store_ahead *a)
{
    if (a->aio)
        syscall(SYS_io_destroy, a->aio);
    own_close_p(&a->fd);
    own_close_p(&a->top);
    free(a->block);
    *a = (struct store_ahead){.fd = -1, .top = -1};
}

static int by_seq(const void *x, const void *y)
{
    const struct store_record_asked *a = *(struct store_record_asked *const *)x,
                                    *b = *(struct store_record_asked *const *)y;

    return a->seq < b->seq ? -1 : a->seq > b->seq;
}

/* What SQLite does not have, in the order it was asked for. */
static fallible do_again(struct store *s, const char *ring)
{
    own_free struct store_record_asked *asked = mem_try(BLOCKS * sizeof *asked);
    struct store_record_asked *order[BLOCKS];
    size_t count = 0;

    if (!asked)
        return err_no_memory();
    for (size_t i = 0; i < BLOCKS; i++) {
        struct str from = str_n(ring + i * BLOCK, RING_BYTES - i * BLOCK);
        if (store_record_read(from, s->ahead.id, &asked[count]) && asked[count].seq > s->ahead.seq)
            order[count] = &asked[count], count++;
    }
    if (!count)
        return NULL;
    qsort(order, count, sizeof *order, by_seq);
    TRY(store_exec(s->db, s->path, "BEGIN IMMEDIATE"));
    for (size_t i = 0; i < count; i++) {
        struct err *e = store_run(s, order[i]->sql, order[i]->values, order[i]->count);
        if (e && err_code(e) != ERR_CONFLICT) /* the rest stays for the next one, too */
            return e;
        if (e)
            log_error("a row that was acknowledged cannot be", KV_ERR(e));
        err_free(e);
    }
    s->ahead.seq = order[count - 1]->seq;
    TRY(store_ahead_note(s, s->ahead.seq));
    return store_exec(s->db, s->path, "COMMIT");
}

static fallible read_ring(struct store *s, char *ring)
{
    ssize_t n = pread(s->ahead.fd, ring, RING_BYTES, 0);

    if (n < 0)
        return err_sys("read what was written ahead of database '%s'", s->path);
    memset(ring + n, 0, RING_BYTES - (size_t)n);
    struct err *e = do_again(s, ring);
    if (e && !sqlite3_get_autocommit(s->db))
        err_free(store_exec(s->db, s->path, "ROLLBACK")); /* e is the story */
    return e;
}

/* False: then there is none. */
static bool lay_out(struct store_ahead *a, char *ring)
{
    void *block = NULL;
    int flags = fcntl(a->fd, F_GETFL);

    memset(ring, 0, RING_BYTES); /* each time: nobody knows that all of it has its place on disk */
    if (pwrite(a->fd, ring, RING_BYTES, 0) != (ssize_t)RING_BYTES || fsync(a->fd) < 0)
        return false;
    if (flags < 0 || fcntl(a->fd, F_SETFL, flags | O_DIRECT) < 0 ||
        syscall(SYS_io_setup, 1, &a->aio) < 0 || posix_memalign(&block, BLOCK, RECORD_BYTES))
        return false;
    a->block = block;
    return true;
}

static fallible read_note(struct store *s)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(s->db, "SELECT id, seq FROM ahead", -1, &stmt, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    const char *id = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(stmt, 0) : NULL;
    struct err *e = id ? NULL : store_err(s->db, s->path, rc == SQLITE_ROW ? SQLITE_NOMEM : rc);
    if (id) {
        snprintf(s->ahead.id, sizeof s->ahead.id, "%s", id);
        s->ahead.seq = (uint64_t)sqlite3_column_int64(stmt, 1);
    }
    sqlite3_finalize(stmt);
    return e;
}

fallible store_ahead_open(struct store *s)
{
    struct store_ahead *a = &s->ahead;
    struct flock whole = {.l_type = F_WRLCK};
    own_free char *ring = mem_try(RING_BYTES), *path = NULL;
    own_fd file = -1;

    if (!ring || asprintf(&path, "%s-ahead", s->path) < 0)
        return err_no_memory();
    a->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (a->fd < 0)
        return err_sys("open what is written ahead of database '%s'", s->path);
    store_log_place(path, &file, &a->top);
    own_close(take_fd(&file)); /* before we lock it: closing any of ours would unlock it */
    bool ours = fcntl(a->fd, F_SETLK, &whole) == 0;
    if (ours) {
        TRY(read_note(s));
        TRY(read_ring(s, ring));
    }
    if (!ours || !lay_out(a, ring))
        store_ahead_close(a);
    return NULL;
}
