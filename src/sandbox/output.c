// SPDX-License-Identifier: Apache-2.0
/* output.c — see output.h. */
#include "sandbox/output.h"

#include <errno.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

#define READ_SIZE (16u << 10)

void sbx_output_init(struct sbx_output *o)
{
    buf_init(&o->text, OUTPUT_BYTES);
}

static void close_pipe(struct sbx_output *o)
{
    if (!o->io.loop)
        return;
    loop_io_stop(&o->io);
    own_close(o->io.fd);
}

static void drop_file(struct sbx_output *o)
{
    if (o->file > 0)
        own_close(o->file);
    o->file = 0;
}

void sbx_output_done(struct sbx_output *o)
{
    close_pipe(o);
    drop_file(o);
    buf_done(&o->text);
}

/* --- the file: how many bytes there were, then the newest of them --- */

void sbx_output_keep_in(struct sbx_output *o, int fd)
{
    own_free char *ring = mem_new(OUTPUT_BYTES);
    uint64_t total = 0;

    drop_file(o);
    o->file = fd;
    if (pread(fd, &total, sizeof total, 0) != sizeof total)
        return;
    size_t n = total < OUTPUT_BYTES ? (size_t)total : OUTPUT_BYTES, at = total % OUTPUT_BYTES;
    if (pread(fd, ring, n, sizeof total) != (ssize_t)n)
        return;
    if (n == OUTPUT_BYTES)
        buf_add_mem(&o->text, ring + at, n - at);
    buf_add_mem(&o->text, ring, at);
    o->total = total;
}

static bool write_at(const struct sbx_output *o, struct str text, size_t at)
{
    return pwrite(o->file, text.p, text.len, (off_t)(sizeof o->total + at)) == (ssize_t)text.len;
}

/* Without room on the disk it is in memory only, as it would be without a file. */
static void write_file(struct sbx_output *o, struct str text)
{
    size_t at = o->total % OUTPUT_BYTES, room = OUTPUT_BYTES - at;
    uint64_t total = o->total + text.len;

    if (o->file <= 0)
        return;
    if (!write_at(o, str_first(text, room), at) ||
        (text.len > room && !write_at(o, str_from(text, room), 0)) ||
        pwrite(o->file, &total, sizeof total, 0) != sizeof total)
        drop_file(o);
}

static void output_keep(struct sbx_output *o, struct str text)
{
    if (o->text.len + text.len > OUTPUT_BYTES)
        buf_consume(&o->text, o->text.len + text.len - OUTPUT_BYTES);
    buf_add(&o->text, text);
    write_file(o, text);
    o->total += text.len;
    if (o->on_more)
        o->on_more(o);
}

/* False when nothing more is there. */
static bool read_once(struct sbx_output *o)
{
    char page[READ_SIZE];
    ssize_t n = read(o->io.fd, page, sizeof page);

    if (n > 0)
        output_keep(o, str_n(page, (size_t)n));
    else if (n == 0 || errno != EAGAIN)
        close_pipe(o);
    return n > 0;
}

static void on_readable(struct loop_io *io)
{
    read_once(container_of(io, struct sbx_output, io));
}

fallible sbx_output_start(struct sbx_output *o, struct loop *loop, int fd)
{
    own_fd mine = fd;

    close_pipe(o);
    TRY(fd_set_nonblocking(mine));
    TRY(loop_io_start(loop, &o->io, mine, EPOLLIN, on_readable));
    take_fd(&mine);
    return NULL;
}

void sbx_output_stop(struct sbx_output *o)
{
    for (size_t got = 0; o->io.loop && got < OUTPUT_BYTES && read_once(o); got += READ_SIZE)
        ;
    close_pipe(o);
}

void sbx_output_copy(const struct sbx_output *o, struct buf *out)
{
    struct str text = buf_str(&o->text);
    size_t room = out->limit_bytes - out->len;

    if (text.len > room)
        text = str_from(text, text.len - room);
    buf_add(out, text);
}

void sbx_output_read(const struct sbx_output *o, uint64_t *at, struct buf *out)
{
    uint64_t first = o->total - o->text.len;

    if (*at < first || *at > o->total) /* dropped; or a place in another life */
        *at = first;
    struct str text = str_from(buf_str(&o->text), (size_t)(*at - first));
    text = str_first(text, out->limit_bytes - out->len);
    buf_add(out, text);
    *at += text.len;
}
