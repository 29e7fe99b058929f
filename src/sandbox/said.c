// SPDX-License-Identifier: Apache-2.0
/* said.c — see said.h. */
#include "sandbox/said.h"

#include <errno.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

#define READ_SIZE (16u << 10)

void said_init(struct said *o)
{
    buf_init(&o->text, SAID_BYTES);
}

static void close_pipe(struct said *o)
{
    if (!o->io.loop)
        return;
    loop_io_stop(&o->io);
    own_close(o->io.fd);
}

static void drop_file(struct said *o)
{
    if (o->file > 0)
        own_close(o->file);
    o->file = 0;
}

void said_done(struct said *o)
{
    close_pipe(o);
    drop_file(o);
    buf_done(&o->text);
}

/* --- the file: how many bytes there were, then the newest of them --- */

void said_keep_in(struct said *o, int fd)
{
    own_free char *ring = mem_new(SAID_BYTES);
    uint64_t total = 0;

    drop_file(o);
    o->file = fd;
    if (pread(fd, &total, sizeof total, 0) != sizeof total)
        return;
    size_t n = total < SAID_BYTES ? (size_t)total : SAID_BYTES, at = total % SAID_BYTES;
    if (pread(fd, ring, n, sizeof total) != (ssize_t)n)
        return;
    if (n == SAID_BYTES)
        buf_add_mem(&o->text, ring + at, n - at);
    buf_add_mem(&o->text, ring, at);
    o->total = total;
}

static bool write_at(const struct said *o, struct str text, size_t at)
{
    return pwrite(o->file, text.p, text.len, (off_t)(sizeof o->total + at)) == (ssize_t)text.len;
}

/* Without room on the disk it is in memory only, as it would be without a file. */
static void write_file(struct said *o, struct str text)
{
    size_t at = o->total % SAID_BYTES, room = SAID_BYTES - at;
    uint64_t total = o->total + text.len;

    if (o->file <= 0)
        return;
    if (!write_at(o, str_first(text, room), at) ||
        (text.len > room && !write_at(o, str_from(text, room), 0)) ||
        pwrite(o->file, &total, sizeof total, 0) != sizeof total)
        drop_file(o);
}

static void said_keep(struct said *o, struct str text)
{
    if (o->text.len + text.len > SAID_BYTES)
        buf_consume(&o->text, o->text.len + text.len - SAID_BYTES);
    buf_add(&o->text, text);
    write_file(o, text);
    o->total += text.len;
    if (o->on_more)
        o->on_more(o);
}

/* False when nothing more is there. */
static bool read_once(struct said *o)
{
    char page[READ_SIZE];
    ssize_t n = read(o->io.fd, page, sizeof page);

    if (n > 0)
        said_keep(o, str_n(page, (size_t)n));
    else if (n == 0 || errno != EAGAIN)
        close_pipe(o);
    return n > 0;
}

static void on_readable(struct loop_io *io)
{
    read_once(container_of(io, struct said, io));
}

fallible said_start(struct said *o, struct loop *loop, int fd)
{
    own_fd mine = fd;

    close_pipe(o);
    TRY(fd_set_nonblocking(mine));
    TRY(loop_io_start(loop, &o->io, mine, EPOLLIN, on_readable));
    take_fd(&mine);
    return NULL;
}

void said_stop(struct said *o)
{
    for (size_t got = 0; o->io.loop && got < SAID_BYTES && read_once(o); got += READ_SIZE)
        ;
    close_pipe(o);
}

void said_copy(const struct said *o, struct buf *out)
{
    struct str text = buf_str(&o->text);
    size_t room = out->limit_bytes - out->len;

    if (text.len > room)
        text = str_from(text, text.len - room);
    buf_add(out, text);
}

void said_read(const struct said *o, uint64_t *at, struct buf *out)
{
    uint64_t first = o->total - o->text.len;

    if (*at < first || *at > o->total) /* dropped; or a place in another life */
        *at = first;
    struct str text = str_from(buf_str(&o->text), (size_t)(*at - first));
    text = str_first(text, out->limit_bytes - out->len);
    buf_add(out, text);
    *at += text.len;
}
