// SPDX-License-Identifier: Apache-2.0
/* log.c — the output of a sandbox's pid 1 and server, cut when there is too much of it.
 *
 * The log is outside every limit of the sandbox, and every request can make it grow. Its oldest
 * part becomes a hole: places in it stay the same for readers and writers, and the disk has its
 * blocks back.
 *
 * One watch of the directory reports all writes, and each cut too. Output left by a cut, even
 * beyond the end, does not cause the next cut. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/own.h"
#include "host/launcher/inner.h"
#include "host/launcher/names.h"

#define MOST_BYTES (4 << 20)  /* on the disk; then all but the newest go */
#define KEPT_BYTES (2 << 20)  /* more than one answer shows (v1/logs.c) */
#define STEP_BYTES (1 << 20)  /* that come before it is cut again */
#define ALIGNED    (64 << 10) /* a block half in the hole would be zeros, not a hole */

/* Not every file system has holes: then all goes, readers begin again, and writers are at 0. */
static bool make_hole(int fd, off_t end)
{
    if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, end) == 0)
        return true;
    return (errno == EOPNOTSUPP || errno == ENOSYS) && ftruncate(fd, 0) == 0;
}

static off_t bytes_of(const struct stat *st)
{
    return (off_t)st->st_blocks * 512;
}

/* Output appended while we cut counts for the next time. */
static off_t bytes_left(int fd, const struct stat *before)
{
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return bytes_of(before);
    return bytes_of(&st) - (st.st_size > before->st_size ? st.st_size - before->st_size : 0);
}

/* By bytes on the disk, not by size: a log that was made sparse and is written before its end is
 * cut too. */
static void log_cut(const struct launcher *l, struct launcher_box *b)
{
    char name[LAUNCHER_SOCKET_NAME];
    struct stat st;

    launcher_socket_name(b->box.id, LAUNCHER_NAME_LOG, name);
    if (fstatat(l->sockets, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
        return;
    if (bytes_of(&st) < b->log_left)
        b->log_left = bytes_of(&st);
    if (bytes_of(&st) <= MOST_BYTES || bytes_of(&st) - b->log_left < STEP_BYTES)
        return;
    off_t end = (st.st_size - KEPT_BYTES) / ALIGNED * ALIGNED;
    own_fd fd = end > 0 ? openat(l->sockets, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    if (end > 0 && (fd < 0 || !make_hole(fd, end)))
        log_warn("the log of a sandbox grows", KV("name", name), KV("why", strerror(errno)));
    else if (end > 0)
        log_info("the log of a sandbox was cut", KV("name", name));
    b->log_left = bytes_left(fd, &st);
}

static void cut_all(const struct launcher *l)
{
    LIST_EACH(b, &l->boxes, struct launcher_box, link)
        log_cut(l, b);
}

/* The sandbox of a socket's or log's name. */
static struct launcher_box *box_of(const struct launcher *l, const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot ? map_get(&l->by_id, str_n(name, (size_t)(dot - name))) : NULL;
}

static void on_written(struct loop_io *io)
{
    struct launcher *l = container_of(io, struct launcher, written);
    _Alignas(struct inotify_event) char page[4096];
    ssize_t got = read(io->fd, page, sizeof page);

    for (char *p = page; got > 0 && p < page + got;) {
        const struct inotify_event *event = (const struct inotify_event *)p;
        struct launcher_box *b = event->len ? box_of(l, event->name) : NULL;
        if (event->mask & IN_Q_OVERFLOW)
            cut_all(l);
        else if (b)
            log_cut(l, b);
        p += sizeof *event + event->len;
    }
}

static fallible launcher_log_watch(struct launcher *l)
{
    char path[64];
    own_fd fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

    snprintf(path, sizeof path, "/proc/self/fd/%d", l->sockets);
    if (fd < 0 || inotify_add_watch(fd, path, IN_MODIFY | IN_ONLYDIR) < 0)
        return err_sys("watch the logs of sandboxes");
    TRY(loop_io_start(l->loop, &l->written, fd, EPOLLIN, on_written));
    take_fd(&fd);
    return NULL;
}

void launcher_log_start(struct launcher *l)
{
    struct err *e = launcher_log_watch(l);

    if (e)
        log_warn("logs of sandboxes are cut at the next start only", KV_ERR(e));
    err_free(e);
    cut_all(l); /* what was written while it was not watched */
}

void launcher_log_end(struct launcher *l)
{
    if (!l->written.loop)
        return;
    loop_io_stop(&l->written);
    own_close(l->written.fd);
}
