// SPDX-License-Identifier: Apache-2.0
/* loop.c — the turn: wait, timers, descriptors, then what was put off. See loop.h. */
#include "loop/loop.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "loop/inner.h"

static_assert(sizeof(struct loop) <= LOOP_ROOM, "LOOP_ROOM");

fallible loop_new(const struct clock *clock, struct loop **ret_loop)
{
    void *room = mem_try(sizeof(struct loop));

    if (!room)
        return err_no_memory();
    struct err *e = loop_new_in(room, clock, ret_loop);
    if (e)
        free(room);
    else
        (*ret_loop)->on_heap = true;
    return e;
}

fallible loop_new_in(void *room, const struct clock *clock, struct loop **ret_loop)
{
    own(loop) l = memset(room, 0, sizeof *l);

    l->clock = clock;
    l->epoll = l->timer_fd = l->wake_fd = -1;
    list_init(&l->laters);
    list_init(&l->signals);
    l->signal_fd = -1;
    l->now_ns = clock_mono_ns(clock);
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (l->epoll < 0)
        return err_sys("epoll_create1");
    l->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (l->timer_fd < 0)
        return err_sys("timerfd_create");
    l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->wake_fd < 0)
        return err_sys("eventfd");
    TRY(loop_io_start(l, &l->timer_io, l->timer_fd, EPOLLIN, loop_on_timerfd));
    TRY(loop_io_start(l, &l->wake_io, l->wake_fd, EPOLLIN, loop_on_wake));
    *ret_loop = take(&l);
    return NULL;
}

static void run_laters(struct loop *l)
{
    struct list todo;

    if (list_empty(&l->laters))
        return;
    todo = l->laters; /* those added meanwhile wait for the next turn, so that I/O is not starved */
    todo.next->prev = todo.prev->next = &todo;
    list_init(&l->laters);
    while (!list_empty(&todo)) {
        struct loop_later *later = container_of(todo.next, struct loop_later, link);
        list_del(&later->link);
        later->waiting = false;
        later->fn(later);
    }
}

void loop_free(struct loop *l)
{
    if (!l)
        return;
    loop_workers_end(l);
    while (!list_empty(&l->laters))
        run_laters(l); /* objects that wait to be freed */
    own_close(l->signal_fd);
    own_close(l->wake_fd);
    own_close(l->timer_fd);
    own_close(l->epoll);
    if (l->on_heap)
        free(l);
}

uint64_t loop_now_ns(const struct loop *l)
{
    return l->now_ns;
}

void loop_look_at_clock(struct loop *l)
{
    l->now_ns = clock_mono_ns(l->clock);
}

const struct clock *loop_clock(const struct loop *l)
{
    return l->clock;
}

void loop_stop(struct loop *l)
{
    l->stopped = true;
}

fallible loop_run(struct loop *l)
{
    l->stopped = false;
    mem_trim_stack(); /* what led here was deeper than most of what comes */
    while (!l->stopped)
        TRY(loop_turn(l, -1));
    return NULL;
}

/* Setting a timer takes longer than a look whether there is anything to wait for. */
static int wait_for_events(struct loop *l, int timeout_ms)
{
    bool late = timeout_ms && l->timers && (!l->armed_ns || l->timers->key_ns < l->armed_ns);
    int n = late ? epoll_wait(l->epoll, l->events, LOOP_BATCH, 0) : 0;

    if (n)
        return n;
    timeout_ms = loop_timers_arm(l, timeout_ms);
    return epoll_wait(l->epoll, l->events, LOOP_BATCH, timeout_ms);
}

fallible loop_turn(struct loop *l, int timeout_ms)
{
    if (!list_empty(&l->laters))
        timeout_ms = 0;
    int n = wait_for_events(l, timeout_ms);
    if (n < 0 && errno != EINTR)
        return err_sys("epoll_wait");
    loop_look_at_clock(l);
    l->event_count = n < 0 ? 0 : n; /* before the timers, which may stop what the event came for */
    loop_timers_run(l);
    for (; l->event_at < l->event_count; l->event_at++) {
        struct loop_io *io = l->events[l->event_at].data.ptr;
        if (!io)
            continue; /* stopped earlier in this turn */
        io->ready = l->events[l->event_at].events;
        io->fn(io);
    }
    l->event_count = l->event_at = 0;
    run_laters(l);
    return NULL;
}

static fallible io_ctl(struct loop_io *io, int op)
{
    struct epoll_event ev = {.events = io->want, .data.ptr = io};

    if (epoll_ctl(io->loop->epoll, op, io->fd, &ev) < 0)
        return err_sys("epoll_ctl fd %d", io->fd);
    return NULL;
}

fallible loop_io_start(struct loop *l, struct loop_io *io, int fd, uint32_t want,
                       void (*fn)(struct loop_io *io))
{
    *io = (struct loop_io){.fn = fn, .loop = l, .fd = fd, .want = want};
    struct err *e = io_ctl(io, EPOLL_CTL_ADD);
    if (e)
        io->loop = NULL;
    return e;
}

fallible loop_io_want(struct loop_io *io, uint32_t want)
{
    uint32_t before = io->want;

    if (before == want)
        return NULL;
    io->want = want;
    struct err *e = io_ctl(io, EPOLL_CTL_MOD);
    if (e)
        io->want = before;
    return e;
}

void loop_io_stop(struct loop_io *io)
{
    struct loop *l = io->loop;

    if (!l)
        return;
    io->loop = NULL;
    epoll_ctl(l->epoll, EPOLL_CTL_DEL, io->fd, NULL); /* fails only if the fd is closed already */
    for (int i = l->event_at; i < l->event_count; i++)
        if (l->events[i].data.ptr == io)
            l->events[i].data.ptr = NULL; /* its owner may be freed before we get there */
}

void loop_later(struct loop *l, struct loop_later *later, void (*fn)(struct loop_later *l))
{
    if (later->waiting)
        return;
    later->fn = fn;
    later->waiting = true;
    list_add(&l->laters, &later->link);
}

void loop_later_cancel(struct loop_later *later)
{
    if (!later->waiting)
        return;
    later->waiting = false;
    list_del(&later->link);
}

void loop_wake(struct loop *l)
{
    uint64_t one = 1;
    int saved = errno; /* a signal handler must leave it alone */
    ssize_t ignored = write(l->wake_fd, &one, sizeof one);
    (void)ignored; /* EAGAIN: it is awake already */
    errno = saved;
}
