// SPDX-License-Identifier: Apache-2.0
/* held.c — the wire between pid 1 and the server, and the server's end of it. */
#include "guest/held/held.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

/* Inlined, its message of 4 KB would be on the stack of a caller that waits: for life. */
#define ON_ITS_OWN __attribute__((noinline))

#define WAIT_MS    10000

fallible held_send(int sock, const struct held_message *m, size_t len, const int *fds, size_t count)
{
    return fd_send(sock, str_n(m, HELD_HEAD + len), fds, count);
}

fallible held_recv(int sock, struct held_message *m, size_t *ret_len, int fds[FD_PASS_MAX],
                   size_t *ret_count)
{
    size_t n;

    TRY(fd_recv(sock, m, sizeof *m, &n, fds, FD_PASS_MAX, ret_count));
    if (n && n < HELD_HEAD) {
        for (size_t i = 0; i < *ret_count; i++)
            own_close(fds[i]);
        return err_new(ERR_CORRUPT, "a message of %zu bytes", n);
    }
    *ret_len = n ? n - HELD_HEAD : SIZE_MAX;
    return NULL;
}

void held_item_free(struct held_item *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->fds_len; i++)
        own_close(t->fds[i]);
    free(t);
}

struct held_item *held_item_new(const struct held_message *m, size_t len, const int *fds,
                                size_t count)
{
    struct held_item *t = mem_try(sizeof *t + len);

    for (size_t i = t ? HELD_FDS_MAX : 0; i < count; i++)
        own_close(fds[i]);
    if (!t)
        return NULL;
    t->id = m->id;
    t->pid = m->pid;
    t->len = len;
    memcpy(t->data, m->data, len);
    t->fds_len = count < HELD_FDS_MAX ? count : HELD_FDS_MAX;
    memcpy(t->fds, fds, t->fds_len * sizeof *fds);
    return t;
}

static fallible take_item(struct held *k, const struct held_message *m, size_t len, const int *fds,
                          size_t count)
{
    struct held_item *t = held_item_new(m, len, fds, count);

    if (!t)
        return err_no_memory();
    list_add(&k->items, &t->link);
    if (t->id > k->last_id)
        k->last_id = t->id;
    return NULL;
}

static void take_hello(struct held *k, const struct held_message *m, size_t len, const int *fds,
                       size_t count)
{
    size_t at = 0, oom = m->id >> HELD_OOM_SHIFT;

    k->inside = m->id & HELD_INSIDE;
    k->again = m->id & HELD_AGAIN;
    k->listens = m->id & HELD_HAS_LISTEN;
    spawner_init(&k->spawner, at < count ? fds[at++] : -1);
    if ((m->id & HELD_HAS_LISTEN) && at < count)
        k->listen_fd = fds[at++];
    if ((m->id & HELD_HAS_READY) && at < count)
        k->ready_fd = fds[at++];
    if ((m->id & HELD_HAS_MEMORY) && at < count)
        k->memory_fd = fds[at++];
    while (k->oom_len < oom && k->oom_len < HELD_OOM_MAX && at < count)
        k->oom_fds[k->oom_len++] = fds[at++];
    if (len)
        k->session_key = str_n(memcpy(mem_new(len), m->data, len), len);
}

ON_ITS_OWN fallible held_open(struct held *k, int sock)
{
    *k = (struct held){.sock = sock, .listen_fd = -1, .ready_fd = -1, .memory_fd = -1};
    spawner_init(&k->spawner, -1);
    list_init(&k->items);
    for (;;) {
        struct held_message m;
        int fds[FD_PASS_MAX];
        size_t len, count;
        TRY(fd_wait(sock, POLLIN, WAIT_MS));
        TRY(held_recv(sock, &m, &len, fds, &count));
        if (len == SIZE_MAX)
            return err_new(ERR_CLOSED, "pid 1 is gone");
        if (m.kind == HELD_HELLO && k->spawner.forker < 0)
            take_hello(k, &m, len, fds, count);
        else if (m.kind == HELD_ITEM)
            TRY(take_item(k, &m, len, fds, count));
        else if (m.kind == HELD_END)
            return fd_set_nonblocking(sock);
    }
}

void held_done(struct held *k)
{
    loop_io_stop(&k->io);
    LIST_EACH(t, &k->items, struct held_item, link) {
        list_del(&t->link);
        held_item_free(t);
    }
    free((char *)k->session_key.p);
    own_close(k->sock);
    own_close(k->spawner.forker);
    own_close(k->listen_fd);
    own_close(k->ready_fd);
    own_close(k->memory_fd);
    for (size_t i = 0; i < k->oom_len; i++)
        own_close(k->oom_fds[i]);
}

static void on_readable(struct loop_io *io)
{
    struct held *k = container_of(io, struct held, io);
    struct held_message m;
    int fds[FD_PASS_MAX];
    size_t len, count;

    struct err *e = held_recv(k->sock, &m, &len, fds, &count);
    if (e || len == SIZE_MAX) {
        err_free(e);
        loop_io_stop(&k->io);
        k->on_gone(k);
        return;
    }
    for (size_t i = 0; i < count; i++)
        own_close(fds[i]);
    if (m.kind == HELD_EXIT)
        spawner_exited(&k->spawner, m.pid, m.code, m.status);
}

fallible held_watch(struct held *k, struct loop *loop, void (*on_gone)(struct held *k))
{
    k->on_gone = on_gone;
    k->loop = loop;
    return loop_io_start(loop, &k->io, k->sock, EPOLLIN, on_readable);
}

static fallible held_tell(struct held *k, struct held_message *m, struct str data, const int *fds,
                          size_t count)
{
    if (data.len > sizeof m->data || count > HELD_FDS_MAX)
        return err_new(ERR_TOO_LARGE, "too much to keep");
    memcpy(m->data, data.len ? data.p : "", data.len);
    TRY_WRAP(fd_wait(k->sock, POLLOUT, WAIT_MS), "pid 1");
    TRY_WRAP(held_send(k->sock, m, data.len, fds, count), "pid 1");
    return NULL;
}

uint32_t held_new_id(struct held *k)
{
    return ++k->last_id;
}

fallible held_put(struct held *k, uint32_t id, struct str data, const int *fds, size_t count,
                  pid_t pid)
{
    struct held_message m = {.kind = HELD_ITEM, .id = id, .pid = (int32_t)pid};

    return held_tell(k, &m, data, fds, count);
}

void held_drop(struct held *k, uint32_t id)
{
    struct held_message m = {.kind = HELD_DROP, .id = id};

    err_free(held_tell(k, &m, STR(""), NULL, 0)); /* it is gone, or pid 1 is */
}

ON_ITS_OWN fallible held_ready(struct held *k)
{
    struct held_message m = {.kind = HELD_READY};

    return held_tell(k, &m, STR(""), NULL, 0);
}

struct held_item *held_take(struct held *k, struct str prefix)
{
    LIST_EACH(t, &k->items, struct held_item, link) {
        if (!str_starts(str_n(t->data, t->len), prefix))
            continue;
        list_del(&t->link);
        return t;
    }
    return NULL;
}

uint64_t held_parse_oom(struct str text)
{
    struct str line;
    uint64_t n = 0;

    for (bool more = text.len > 0; more;) {
        more = str_cut(&text, '\n', &line);
        if (str_starts(line, STR("oom_kill ")))
            return str_to_u64(str_from(line, 9), &n) ? n : 0;
    }
    return 0;
}

uint64_t held_oom_kills(const struct held *k)
{
    char text[512];
    uint64_t sum = 0;

    for (size_t i = 0; i < k->oom_len; i++) {
        ssize_t n = pread(k->oom_fds[i], text, sizeof text, 0);
        sum += n > 0 ? held_parse_oom(str_n(text, (size_t)n)) : 0;
    }
    return sum;
}

bool held_memory(const struct held *k, uint64_t *ret_bytes)
{
    char text[32];
    ssize_t n = k->memory_fd >= 0 ? pread(k->memory_fd, text, sizeof text, 0) : -1;

    return n > 0 && str_to_u64(str_trim(str_n(text, (size_t)n)), ret_bytes);
}
