// SPDX-License-Identifier: Apache-2.0
/* file.c — opening a log: the header, the tail, and what a crash left of it.
 *
 * A broken record is a torn tail if nothing acknowledged can lie behind it; otherwise it is damage
 * and nothing is touched. */
#include "event/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "event/tail.h"

#define ULL(x)       ((unsigned long long)(x))
#define WORTH_SAYING 1000 /* index entries; a few are missing after every crash */

fallible event_file_fault(const struct event_file *f, uint64_t seq, uint64_t at, const char *why)
{
    return err_new(ERR_CORRUPT, "record %llu at offset %llu of '%s' %s", ULL(seq), ULL(at), f->name,
                   why);
}

void event_file_close(struct event_file *f)
{
    own_close(f->fd);
    own_close(f->index_fd);
    free(f->name);
    *f = (struct event_file){.fd = -1, .index_fd = -1};
}

static fallible open_pair(struct event_file *f, int dir, bool must_exist)
{
    struct stat st;
    char index[NAME_MAX + 1];
    int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY; /* a FIFO must not hold us up */
    int n = snprintf(index, sizeof index, "%s.idx", f->name);

    if (n >= (int)sizeof index || strchr(f->name, '/') || f->name[0] == '\0')
        return err_new(ERR_INVALID, "'%s' is no name for an event log", f->name);
    TRY(fd_open_beneath(dir, str_of(f->name), flags | (must_exist ? 0 : O_CREAT), 0600, &f->fd));
    if (fstat(f->fd, &st) < 0)
        return err_sys("stat '%s'", f->name);
    if (!S_ISREG(st.st_mode))
        return err_new(ERR_INVALID, "'%s' is not a regular file", f->name);
    if (flock(f->fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK
                   ? err_new(ERR_CONFLICT, "event log '%s' is open elsewhere", f->name)
                   : err_sys("lock '%s'", f->name);
    TRY(fd_open_beneath(dir, str_of(index), flags | O_CREAT, 0600, &f->index_fd));
    if (fstat(f->index_fd, &st) < 0)
        return err_sys("stat '%s'", index);
    if (!S_ISREG(st.st_mode))
        return err_new(ERR_INVALID, "'%s' is not a regular file", index);
    return NULL;
}

/* The names must be on disk too before anything in the log is acknowledged. */
static fallible sync_dir(int dir)
{
    own_fd fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return err_sys("open the directory");
    if (fsync(fd) < 0)
        return err_sys("sync the directory");
    return NULL;
}

static fallible make_header(struct event_file *f, int dir, const struct event_options *o,
                            uint64_t wall_ns)
{
    uint8_t bytes[EVENT_HEADER_LEN];

    f->header.created_ns = wall_ns;
    f->header.marker = rng_u64(o->rng ? o->rng : rng_system());
    event_header_put(bytes, &f->header);
    TRY_WRAP(event_pwrite(f->fd, bytes, sizeof bytes, 0), "new log '%s'", f->name);
    if (fdatasync(f->fd) < 0)
        return err_sys("sync '%s'", f->name);
    return sync_dir(dir);
}

/* A crash while making the log leaves part of a header, or a block that was never written. */
static bool is_unborn(const uint8_t *bytes, size_t n, uint64_t size)
{
    static const uint8_t zeros[EVENT_HEADER_LEN];
    const char magic[] = "croftlog";
    size_t same = n < sizeof magic - 1 ? n : sizeof magic - 1;

    if (size <= EVENT_HEADER_LEN && memcmp(bytes, zeros, n) == 0)
        return true;
    return size < EVENT_HEADER_LEN && memcmp(bytes, magic, same) == 0;
}

static void note_unborn(const struct event_file *f, size_t n)
{
    struct stat st;

    if (n)
        log_warn("event log was never finished, making it anew", KV("log", f->name));
    if (fstat(f->index_fd, &st) == 0 && st.st_size > EVENT_HEADER_LEN)
        log_error("event log is new, yet an index of an older one lies beside it",
                  KV("log", f->name));
}

static fallible read_header(struct event_file *f, int dir, const struct event_options *o,
                            uint64_t wall_ns, uint64_t *ret_size)
{
    uint8_t bytes[EVENT_HEADER_LEN] = {0};
    struct stat st;
    size_t n;

    if (fstat(f->fd, &st) < 0)
        return err_sys("stat '%s'", f->name);
    TRY_WRAP(event_pread(f->fd, bytes, sizeof bytes, 0, &n), "'%s'", f->name);
    *ret_size = (uint64_t)st.st_size;
    if (is_unborn(bytes, n, *ret_size)) {
        note_unborn(f, n);
        *ret_size = EVENT_HEADER_LEN;
        return make_header(f, dir, o, wall_ns);
    }
    const char *why = event_header_get(bytes, &f->header);
    if (why)
        return err_new(ERR_CORRUPT, "'%s' %s (offset 0)", f->name, why);
    return NULL;
}

/* Walks from the last indexed record to the end; stops at what is broken. */
static fallible file_scan(struct event_file *f, uint64_t size, const char **ret_why)
{
    struct event_reader rd;
    struct event_view v;
    const char *why = NULL;
    struct err *e = NULL;

    event_reader_init(&rd, f->fd, f->header.marker, f->indexed_end, size);
    f->end = f->indexed_end;
    while (!e && !why) {
        e = event_reader_next(&rd, &v, &why);
        if (!e && !why)
            why = event_chain_step(&f->chain, &v, true);
        if (!e && !why)
            f->end = rd.at;
    }
    event_reader_done(&rd);
    *ret_why = why == EVENT_READER_END ? NULL : why;
    return err_wrap(e, "'%s'", f->name);
}

/* After a failed fdatasync the page cache may hold records the disk does not, in clean pages that
 * no later sync would write. So what the index does not vouch for is dirtied again first. */
static fallible file_harden(struct event_file *f, uint64_t at)
{
    own_done(buf) piece;

    buf_init(&piece, 1u << 20);
    if (f->end - at > EVENT_CUT_MAX)
        at = f->end - EVENT_CUT_MAX;
    while (at < f->end) {
        size_t n = f->end - at < piece.limit_bytes ? (size_t)(f->end - at) : piece.limit_bytes;
        char *p = buf_reserve(&piece, n);
        if (!p)
            return err_no_memory();
        TRY_WRAP(event_pread(f->fd, p, n, at, &n), "'%s'", f->name);
        if (n == 0)
            return err_new(ERR_IO, "'%s' shrank while it was opened", f->name);
        TRY_WRAP(event_pwrite(f->fd, p, n, at), "'%s'", f->name);
        at += n;
    }
    if (fdatasync(f->fd) < 0)
        return err_sys("sync '%s'", f->name);
    return NULL;
}

static fallible cut_tail(struct event_file *f, uint64_t size, uint64_t acked, const char *why)
{
    struct event_tail t;

    TRY(event_tail_judge(f->fd, f->header.marker, f->chain.seq + 1, f->end, size, acked, &t));
    if (t.damaged) {
        struct err *e = event_file_fault(f, f->chain.seq + 1, f->end, why);
        return t.later_seq ? err_wrap(e, "valid record %llu at offset %llu follows damage",
                                      ULL(t.later_seq), ULL(t.later_at))
                           : err_wrap(e, "%s", t.reason);
    }
    if (ftruncate(f->fd, (off_t)f->end) < 0)
        return err_sys("cut the torn tail of '%s' at offset %llu", f->name, ULL(f->end));
    f->repair.cut_bytes = size - f->end;
    f->repair.cut_offset = f->end;
    f->repair.cut_seq = f->chain.seq + 1;
    return NULL;
}

static void file_report(const struct event_file *f, const char *why)
{
    const struct event_repair *r = &f->repair;

    if (r->cut_bytes)
        log_warn("event log had a torn tail, cut", KV("log", f->name), KV("offset", r->cut_offset),
                 KV("bytes", r->cut_bytes), KV("seq", r->cut_seq), KV("why", why));
    if (r->lost_records)
        log_error("event log ends before records that were acknowledged", KV("log", f->name),
                  KV("last", f->chain.seq), KV("lost", r->lost_records));
    if (r->indexed_again >= WORTH_SAYING)
        log_info("event index rebuilt", KV("log", f->name), KV("records", r->indexed_again));
}

static fallible file_settle(struct event_file *f, uint64_t size, uint64_t acked, uint64_t vouched,
                            const char *why)
{
    if (why)
        TRY(cut_tail(f, size, acked, why));
    if (why || f->end > vouched)
        TRY(file_harden(f, vouched));
    if (acked != EVENT_COUNT_UNKNOWN && acked > f->chain.seq)
        f->repair.lost_records = acked - f->chain.seq;
    uint64_t before = f->indexed;
    if (acked == EVENT_COUNT_UNKNOWN)
        TRY(event_index_reset(f));
    TRY(event_index_extend(f));
    f->repair.indexed_again = f->indexed - before;
    file_report(f, why);
    return NULL;
}

fallible event_file_open(struct event_file *f, int dir, struct str name,
                         const struct event_options *o, uint64_t wall_ns)
{
    uint64_t size = 0, count = 0;
    const char *why = NULL;

    *f = (struct event_file){.fd = -1, .index_fd = -1};
    if (name.len > NAME_MAX || memchr(name.p, 0, name.len))
        return err_new(ERR_INVALID, "an event log's name has %zu bytes or holds NUL", name.len);
    f->name = mem_try(name.len + 1);
    if (!f->name)
        return err_no_memory();
    memcpy(f->name, name.p, name.len);
    TRY(open_pair(f, dir, o->must_exist));
    TRY(read_header(f, dir, o, wall_ns, &size));
    TRY_WRAP(event_index_count(f->index_fd, &f->header, &count), "'%s'", f->name);
    uint64_t look = count == EVENT_COUNT_UNKNOWN ? 0 : count;
    TRY_WRAP(event_index_find_last(f, look, size, &f->chain), "'%s'", f->name);
    uint64_t vouched = f->indexed_end;
    if (o->check_all)
        TRY(event_index_find_last(f, 0, size, &f->chain));
    TRY(file_scan(f, size, &why));
    return file_settle(f, size, count, vouched, why);
}
