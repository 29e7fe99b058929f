// SPDX-License-Identifier: Apache-2.0
/* inner.h — shared by the files of loop/, included by no other. */
#pragma once

#include <pthread.h>

#include "loop/loop.h"

#define LOOP_BATCH   128
#define LOOP_WORKERS 4

struct loop_workers {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct list todo, finished;
    unsigned waiting; /* in todo */
    pthread_t threads[LOOP_WORKERS];
    unsigned count, idle;
    bool end;
};

struct loop {
    const struct clock *clock;
    uint64_t now_ns;
    int epoll, timer_fd, wake_fd, signal_fd;
    bool stopped, no_threads, on_heap;

    struct epoll_event events[LOOP_BATCH]; /* of the turn that runs */
    int event_at, event_count;

    struct loop_timer *timers; /* root of the heap */
    uint64_t armed_ns;         /* what timer_fd waits for; 0: nothing */
    bool in_timers;
    struct loop_io timer_io;

    struct list laters;
    struct loop_io wake_io;

    struct list signals;
    struct list *signal_next; /* where the walk over them goes on */
    sigset_t signal_set;
    struct loop_io signal_io;

    struct loop_workers *workers; /* NULL until first used */
};

/* Gives the timeout for epoll_wait. */
int loop_timers_arm(struct loop *l, int timeout_ms);
void loop_timers_run(struct loop *l);
void loop_on_timerfd(struct loop_io *io);
void loop_on_wake(struct loop_io *io);
void loop_workers_end(struct loop *l);
