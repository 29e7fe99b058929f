// SPDX-License-Identifier: Apache-2.0
/* log.c — the log of a native sandbox. Pid 1 and our server write to a file that the launcher made;
 * a command writes to a pipe whose newest bytes are stored. The file is watched by inotify. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "sandbox/native/inner.h"

#define LAST_BYTES 4096
#define RING       ".said" /* behind the name of its pipe */
#define URL        "http://localhost"

struct native_watch {
    struct native *native;
    struct list link;
    int number; /* of inotify's */
};

void native_set_address(const struct native *n, const char *name, struct sbx_address *ret)
{
    *ret = (struct sbx_address){.url = URL};
    const struct sbx_host *host = n->base.driver->host;
    const char *sockets = host->launcher->sockets;
    snprintf(ret->unix_path, sizeof ret->unix_path, "%s%s/%s.%s",
             sockets ? sockets : host->state_dir, sockets ? "" : "/run", n->base.id, name);
}

static int open_file(const struct native *n, uint64_t *ret_size)
{
    struct sbx_address a;

    native_set_address(n, "l", &a);
    own_fd fd = open(a.unix_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
    *ret_size = size > 0 ? (uint64_t)size : 0;
    return take_fd(&fd);
}

/* The launcher makes a hole of what is too old (launcher/serve_log.c): the first whole line behind
 * it. Looked for after reading, for the hole may have come meanwhile. */
static bool skip_hole(int fd, uint64_t size, uint64_t *at)
{
    char text[4096];
    off_t data = lseek(fd, (off_t)*at, SEEK_DATA);

    if (data < 0 && errno == ENXIO)
        data = (off_t)size;
    if (data <= (off_t)*at)
        return false;
    ssize_t got = pread(fd, text, sizeof text, data);
    const char *end = got > 0 ? memchr(text, '\n', (size_t)got) : NULL;
    *at = (uint64_t)data + (end ? (uint64_t)(end + 1 - text) : 0);
    return true;
}

static void read_file(const struct native *n, uint64_t *at, struct buf *out)
{
    uint64_t size;
    own_fd fd = open_file(n, &size);

    if (*at > size) /* a place in another life */
        *at = 0;
    for (ssize_t got = 1; *at < size && got > 0;) {
        char text[4096];
        size_t room = out->limit_bytes - out->len;
        got = pread(fd, text, room < sizeof text ? room : sizeof text, (off_t)*at);
        if (got > 0 && !skip_hole(fd, size, at)) {
            buf_add_mem(out, text, (size_t)got);
            *at += (uint64_t)got;
        }
    }
}

size_t native_log_read(struct sbx *s, struct sbx_place *at, struct buf *out)
{
    const struct native *n = native_of(s);
    size_t before = out->len;

    read_file(n, &at->file, out);
    size_t of_file = out->len - before;
    if (n->output)
        sbx_output_read(n->output, &at->output, out);
    return of_file;
}

void native_log_end(struct sbx *s, struct sbx_place *ret_end)
{
    const struct native *n = native_of(s);
    struct sbx_place end = {.output = n->output ? n->output->total : 0};

    int fd = open_file(n, &end.file);
    own_close_p(&fd);
    *ret_end = end;
}

void native_logs(struct sbx *s, struct buf *out)
{
    const struct native *n = native_of(s);
    struct sbx_place end;
    size_t room = out->limit_bytes - out->len;

    native_log_end(s, &end);
    uint64_t at = end.file > room ? end.file - room : 0;
    read_file(n, &at, out);
    if (n->output)
        sbx_output_copy(n->output, out);
}

/* The last line of pid 1 or our server tells why they could not do what they were told. */
void native_last_words(struct sbx *s, char *text, size_t size)
{
    static const char *const ours[] = {"action-server: ", "croft-guest: "};
    own_done(buf) log;
    struct str rest, line, last = {0};

    buf_init(&log, LAST_BYTES);
    native_logs(s, &log);
    for (rest = buf_str(&log); rest.len;) {
        str_cut(&rest, '\n', &line);
        last = line.len ? line : last;
    }
    text[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (str_starts(last, str_of(ours[i])))
            snprintf(text, size, ": " STR_FMT, STR_ARG(str_from(last, strlen(ours[i]))));
}

/* --- notices --- */

static void on_notices(struct loop_io *io)
{
    struct native_driver *d = container_of(io, struct native_driver, notices);
    _Alignas(struct inotify_event) char page[4096];
    ssize_t got = read(io->fd, page, sizeof page);

    for (char *p = page; got > 0 && p < page + got;) {
        const struct inotify_event *event = (const struct inotify_event *)p;
        LIST_EACH(w, &d->watched, struct native_watch, link)
            if (w->number == event->wd || event->wd < 0) /* some were lost: all are told */
                sbx_log_grew(&w->native->base);
        p += sizeof *event + event->len;
    }
}

static fallible open_notices(struct native_driver *d)
{
    if (d->notices.loop)
        return NULL;
    own_fd fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (fd < 0)
        return err_sys("watch logs");
    TRY(loop_io_start(d->base.host->loop, &d->notices, fd, EPOLLIN, on_notices));
    take_fd(&fd);
    return NULL;
}

void native_log_close(struct native_driver *d)
{
    if (!d->notices.loop)
        return;
    loop_io_stop(&d->notices);
    own_close(d->notices.fd);
}

/* --- what a command writes --- */

static void on_output(struct sbx_output *o)
{
    sbx_log_grew(&((struct native *)o->owner)->base);
}

static void output_path(const struct native *n, const char *end, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/%s%s", n->base.driver->host->launcher->outputs, n->base.id, end);
}

/* For the next server, should this one be killed. */
static void keep_output(struct native *n, bool make)
{
    char path[PATH_MAX];

    output_path(n, RING, path);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (make ? O_CREAT : 0), 0600);
    if (fd >= 0)
        sbx_output_keep_in(n->output, fd);
    else if (make)
        log_warn("what a command says is not kept", KV("id", n->base.id),
                 KV("why", strerror(errno)));
}

static void need_output(struct native *n, bool make)
{
    if (!n->output) {
        n->output = mem_new(sizeof *n->output);
        sbx_output_init(n->output);
        n->output->owner = n;
        n->output->on_more = n->watch ? on_output : NULL;
        if (n->base.driver->host->launcher->outputs)
            keep_output(n, make);
    }
}

static fallible read_from(struct native *n, int fd)
{
    need_output(n, true);
    return sbx_output_start(n->output, n->base.driver->host->loop, fd);
}

static int open_output(const struct native *n, bool make, int flags)
{
    char path[PATH_MAX];

    output_path(n, "", path);
    if (make && mkfifo(path, 0600) < 0 && errno != EEXIST)
        return -1;
    return open(path, flags | O_CLOEXEC | O_NOFOLLOW);
}

/* The sandbox holds both ends of its own, so that writing never fails for want of a reader. */
static fallible open_fifo(struct native *n, int ends[2])
{
    const char *dir = n->base.driver->host->launcher->outputs;

    n->has_output = true;
    own_fd reader = open_output(n, true, O_RDONLY | O_NONBLOCK);
    own_fd writer = reader < 0 ? -1 : open_output(n, false, O_RDWR);
    if (writer < 0)
        return err_sys("make a pipe in '%s'", dir);
    ends[0] = take_fd(&reader);
    ends[1] = take_fd(&writer);
    return NULL;
}

fallible native_open_output(struct native *n, int *ret_write)
{
    int ends[2];

    if (n->base.driver->host->launcher->outputs)
        TRY(open_fifo(n, ends));
    else if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys("pipe");
    own_fd writer = ends[1];
    TRY(read_from(n, ends[0]));
    *ret_write = take_fd(&writer);
    return NULL;
}

void native_join_output(struct native *n)
{
    bool kept = n->base.driver->host->launcher->outputs != NULL;

    if (kept)
        need_output(n, false);
    int fd = kept && n->pid ? open_output(n, false, O_RDONLY | O_NONBLOCK) : -1;
    own(err) e = fd < 0 ? NULL : read_from(n, fd);

    if (e)
        log_warn("what a command writes is not read", KV("id", n->base.id), KV_ERR(e));
}

void native_drop_output(struct native *n)
{
    char path[PATH_MAX];

    if (!n->has_output || !n->base.driver->host->launcher->outputs)
        return;
    output_path(n, "", path);
    unlink(path); /* not there: nothing to do */
    output_path(n, RING, path);
    unlink(path);
}

/* A server killed between the end of a sandbox and of its output, or before it was made. */
void native_sweep(struct sbx_driver *d, bool (*known)(const void *arg, const char *id),
                  const void *arg)
{
    const char *outputs = d->host->launcher->outputs;
    DIR *dir = outputs ? opendir(outputs) : NULL;

    for (const struct dirent *e; dir && (e = readdir(dir));) {
        struct str rest = str_of(e->d_name), id;
        char name[64];
        str_cut(&rest, '.', &id);
        if (!id.len || id.len >= sizeof name)
            continue;
        snprintf(name, sizeof name, STR_FMT, STR_ARG(id));
        if (!known(arg, name) && unlinkat(dirfd(dir), e->d_name, 0) < 0)
            log_warn("the output of a command stays", KV("file", e->d_name),
                     KV("why", strerror(errno)));
    }
    if (dir)
        closedir(dir);
}

/* --- following --- */

static void stop_watching(struct native *n)
{
    struct native_watch *w = take(&n->watch);

    if (n->output)
        n->output->on_more = NULL;
    if (!w)
        return;
    list_del(&w->link);
    if (w->number >= 0)
        inotify_rm_watch(native_driver_of(n)->notices.fd, w->number);
    free(w);
}

fallible native_log_watch(struct sbx *s, bool on)
{
    struct native *n = native_of(s);
    struct native_driver *d = native_driver_of(n);
    struct sbx_address a;

    if (!on) {
        stop_watching(n);
        return NULL;
    }
    TRY(open_notices(d));
    if (!n->watch) {
        n->watch = mem_new(sizeof *n->watch);
        *n->watch = (struct native_watch){.native = n, .number = -1};
        list_add(&d->watched, &n->watch->link);
    }
    if (n->output)
        n->output->on_more = on_output;
    native_set_address(n, "l", &a);
    int number = inotify_add_watch(d->notices.fd, a.unix_path, IN_MODIFY | IN_DONT_FOLLOW);
    if (number < 0 && errno != ENOENT) /* none: before its start, or it is a command's */
        return err_sys("watch the log of sandbox '%s'", s->id);
    n->watch->number = number;
    return NULL;
}
