// SPDX-License-Identifier: Apache-2.0
/* wire.c — pid 1's end of guest/held: items held for the server, processes it must hear of. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "guest/init/inner.h"

#define BORN_STEP 16

/* --- items --- */

static void drop_item(struct init *in, uint32_t id)
{
    LIST_EACH(t, &in->items, struct held_item, link) {
        if (t->id != id)
            continue;
        list_del(&t->link);
        held_item_free(t);
        in->items_len--;
    }
}

static void put_item(struct init *in, const struct held_message *m, size_t len, const int *fds,
                     size_t count)
{
    drop_item(in, m->id);
    struct held_item *t = held_item_new(m, len, fds, count);
    if (!t || in->items_len == HELD_ITEMS_MAX) {
        held_item_free(t);
        log_warn("one item more than can be held", KV("id", m->id));
        return;
    }
    t->sent = true; /* it is the server's own */
    list_add(&in->items, &t->link);
    in->items_len++;
}

static bool is_held(const struct init *in, pid_t pid)
{
    LIST_EACH(t, &in->items, struct held_item, link) {
        if (t->pid == pid)
            return true;
    }
    return false;
}

/* --- processes --- */

static void add_born(struct init *in, pid_t pid)
{
    if (in->born_len == in->born_cap) {
        size_t cap = in->born_cap + BORN_STEP;
        struct init_born *more = realloc(in->born, cap * sizeof *more);
        if (!more) {
            spawn_kill_session(pid); /* its end could never be told */
            return;
        }
        in->born = more;
        in->born_cap = cap;
    }
    in->born[in->born_len++] = (struct init_born){.pid = pid};
}

static void forget_born(struct init *in, size_t i)
{
    in->born_len--; /* in order: a number may come twice, the older one first */
    memmove(in->born + i, in->born + i + 1, (in->born_len - i) * sizeof *in->born);
}

void init_read_births(struct init *in)
{
    int32_t pids[64];
    ssize_t n;

    while ((n = read(in->births[0], pids, sizeof pids)) > 0)
        for (size_t i = 0; i < (size_t)n / sizeof *pids; i++)
            add_born(in, pids[i]);
}

static bool mark_ended(struct init *in, pid_t pid, int code, int status)
{
    for (size_t i = 0; i < in->born_len; i++)
        if (in->born[i].pid == pid && !in->born[i].ended) {
            in->born[i].ended = true;
            in->born[i].code = code;
            in->born[i].status = status;
            return true;
        }
    return false;
}

void init_note_end(struct init *in, pid_t pid, int code, int status)
{
    if (mark_ended(in, pid, code, status))
        return;
    init_read_births(in); /* it may have been born and died since we looked */
    mark_ended(in, pid, code, status);
}

/* Those of a server that is gone, but for what is kept; all of them at the end. */
void init_kill_born(struct init *in, bool all)
{
    init_read_births(in);
    for (size_t i = in->born_len; i-- > 0;) {
        if (!all && is_held(in, in->born[i].pid))
            continue;
        if (!in->born[i].ended)
            spawn_kill_session(in->born[i].pid);
        forget_born(in, i);
    }
}

/* --- messages --- */

static bool wire_say(struct init *in, const struct held_message *m, size_t len, const int *fds,
                     size_t count)
{
    struct err *e = held_send(in->wire, m, len, fds, count);
    bool ok = !e;

    err_free(e); /* full: it goes on when there is room; dead: its end is told by the kernel */
    return ok;
}

static bool say_hello(struct init *in)
{
    const struct init_config *c = in->config;
    struct held_message m = {.kind = HELD_HELLO,
                             .id = (uint32_t)c->oom_len << HELD_OOM_SHIFT |
                                   (getpid() == 1 ? HELD_INSIDE : 0) |
                                   (in->ready ? HELD_AGAIN : 0)};
    int fds[4 + HELD_OOM_MAX] = {in->requests[0]};
    size_t n = 1;

    if (c->listen_fd >= 0) {
        m.id |= HELD_HAS_LISTEN;
        fds[n++] = c->listen_fd;
    }
    if (c->ready_fd >= 0 && !in->ready) {
        m.id |= HELD_HAS_READY;
        fds[n++] = c->ready_fd;
    }
    if (c->memory_fd >= 0) {
        m.id |= HELD_HAS_MEMORY;
        fds[n++] = c->memory_fd;
    }
    memcpy(fds + n, c->oom_fds, c->oom_len * sizeof *fds);
    memcpy(m.data, c->key.len ? c->key.p : "", c->key.len);
    return wire_say(in, &m, c->key.len, fds, n + c->oom_len);
}

static bool say_item(struct init *in, const struct held_item *t)
{
    struct held_message m = {.kind = HELD_ITEM, .id = t->id, .pid = (int32_t)t->pid};

    memcpy(m.data, t->data, t->len);
    return wire_say(in, &m, t->len, t->fds, t->fds_len);
}

static bool say_ends(struct init *in)
{
    for (size_t i = 0; i < in->born_len;) {
        const struct init_born *b = &in->born[i];
        struct held_message m = {
            .kind = HELD_EXIT, .pid = b->pid, .code = b->code, .status = b->status};
        if (!b->ended) {
            i++;
            continue;
        }
        if (!wire_say(in, &m, 0, NULL, 0))
            return false;
        forget_born(in, i);
    }
    return true;
}

static bool say_all(struct init *in)
{
    if (!in->hello_sent && !(in->hello_sent = say_hello(in)))
        return false;
    LIST_EACH(t, &in->items, struct held_item, link) {
        if (!t->sent && !(t->sent = say_item(in, t)))
            return false;
    }
    if (!in->end_sent &&
        !(in->end_sent = wire_say(in, &(struct held_message){.kind = HELD_END}, 0, NULL, 0)))
        return false;
    return say_ends(in);
}

void init_wire_pump(struct init *in)
{
    if (in->wire < 0)
        return;
    uint32_t want = EPOLLIN | (say_all(in) ? 0u : EPOLLOUT);
    if (in->wire_io.loop)
        err_free(loop_io_want(&in->wire_io, want)); /* modifying takes no memory */
}

static void on_settled(struct loop_later *l)
{
    (void)l;
    mem_trim_stack(); /* messages were on it */
}

void init_settle(struct init *in)
{
    loop_later(in->loop, &in->settled, on_settled);
}

/* One message: 0, or why there is none. */
static int wire_hear(struct init *in)
{
    struct held_message m;
    int fds[FD_PASS_MAX];
    size_t len, count;
    struct err *e = held_recv(in->wire, &m, &len, fds, &count);

    if (e || len == SIZE_MAX) {
        int errnum = e ? err_errno(e) : 0;
        err_free(e);
        return errnum ? errnum : EPIPE;
    }
    if (m.kind == HELD_ITEM) {
        put_item(in, &m, len, fds, count);
        return 0;
    }
    for (size_t i = 0; i < count; i++)
        own_close(fds[i]);
    if (m.kind == HELD_DROP)
        drop_item(in, m.id);
    else if (m.kind == HELD_READY) {
        in->ready = true;
        if (!in->stopping)
            loop_timer_stop(&in->kill);
        own_close(take_fd(&in->config->ready_fd)); /* the byte is written */
        init_settle(in);
    }
    return 0;
}

static void on_wire(struct loop_io *io)
{
    struct init *in = container_of(io, struct init, wire_io);

    if (io->ready & EPOLLOUT)
        init_wire_pump(in);
    if (!(io->ready & ~(uint32_t)EPOLLOUT))
        return;
    int errnum = wire_hear(in);
    if (errnum && errnum != EAGAIN)
        loop_io_stop(io); /* the server dies: SIGCHLD says the rest */
}

fallible init_wire_open(struct init *in, int *ret_theirs)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        return err_sys("socketpair");
    own_fd ours = ends[0], theirs = ends[1];
    TRY(loop_io_start(in->loop, &in->wire_io, ours, EPOLLIN, on_wire));
    in->wire = take_fd(&ours);
    in->hello_sent = in->end_sent = false;
    LIST_EACH(t, &in->items, struct held_item, link)
        t->sent = false;
    *ret_theirs = take_fd(&theirs);
    return NULL;
}

/* Takes what a server inside sent before it died: the items it gave us to hold are its shells'
 * lives. The first read reports, once, that the server left something unread. */
void init_wire_close(struct init *in)
{
    int errnum;

    do
        errnum = wire_hear(in);
    while (errnum == 0 || errnum == ECONNRESET);
    loop_io_stop(&in->wire_io);
    own_close(take_fd(&in->wire));
}

int init_find_socket(const struct init *in, struct str name)
{
    LIST_EACH(t, &in->items, struct held_item, link) {
        if (str_eq(str_n(t->data, t->len), name) && t->fds_len)
            return t->fds[0];
    }
    return -1;
}

void init_drop_items(struct init *in)
{
    while (!list_empty(&in->items))
        drop_item(in, container_of(in->items.next, struct held_item, link)->id);
}
