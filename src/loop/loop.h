// SPDX-License-Identifier: Apache-2.0
/* loop.h — one loop per process: descriptors, timers, signals, children, work off the loop.
 *
 * Every object here is embedded in its owner and costs no allocation to start. A callback may stop
 * or free anything, its own object included; what other callbacks of the same turn may still hold
 * is freed with loop_later. Idle objects cost nothing per turn. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"

struct loop;

fallible loop_new(const struct clock *clock, struct loop **ret_loop);
/* In room of the caller's, aligned for any type: for a caller with nothing else on the heap. */
#define LOOP_ROOM 2048
fallible loop_new_in(void *room, const struct clock *clock, struct loop **ret_loop);
void loop_free(struct loop *loop); /* waits for work that is running */
OWNABLE(loop)

fallible loop_run(struct loop *loop); /* until loop_stop */
void loop_stop(struct loop *loop);
/* One turn: waits up to timeout_ms (-1: as long as it takes) and calls what is due. */
fallible loop_turn(struct loop *loop, int timeout_ms);
uint64_t loop_now_ns(const struct loop *loop); /* monotonic, as of this turn */
void loop_look_at_clock(struct loop *loop);    /* for a caller that waited elsewhere, between two
                                                * turns */
const struct clock *loop_clock(const struct loop *loop);

/* --- descriptors; level-triggered --- */
struct loop_io {
    void (*fn)(struct loop_io *io);
    struct loop *loop; /* NULL: stopped */
    int fd;            /* borrowed */
    uint32_t want;     /* EPOLLIN | EPOLLOUT … */
    uint32_t ready;    /* valid inside fn */
};
fallible loop_io_start(struct loop *loop, struct loop_io *io, int fd, uint32_t want,
                       void (*fn)(struct loop_io *io));
fallible loop_io_want(struct loop_io *io, uint32_t want); /* no system call if nothing changes */
void loop_io_stop(struct loop_io *io);                    /* before close(fd); twice is fine */

/* --- timers; one timerfd behind all of them --- */
struct loop_timer {
    void (*fn)(struct loop_timer *t);
    struct loop *loop; /* NULL: stopped */
    uint64_t when_ns;  /* when it is due; the heap may know an earlier time */
    uint64_t key_ns;
    struct loop_timer *child, *next, *prev; /* pairing heap */
};
/* Starting a running timer moves it. Moving it later is O(1) and touches no other timer. */
void loop_timer_start(struct loop *loop, struct loop_timer *t, uint64_t after_ms,
                      void (*fn)(struct loop_timer *t));
void loop_timer_stop(struct loop_timer *t);

/* --- after the turn --- */
struct loop_later {
    void (*fn)(struct loop_later *l);
    struct list link; /* linked while waiting */
    bool waiting;
};
/* Calls fn once all callbacks of this turn are done; asking again while waiting changes nothing. */
void loop_later(struct loop *loop, struct loop_later *l, void (*fn)(struct loop_later *l));
void loop_later_cancel(struct loop_later *l);

/* --- signals, blocked for the process and read from one signalfd --- */
struct loop_signal {
    void (*fn)(struct loop_signal *s);
    struct loop *loop;
    int signo;
    struct list link;
};
fallible loop_signal_start(struct loop *loop, struct loop_signal *s, int signo,
                           void (*fn)(struct loop_signal *s));
void loop_signal_stop(struct loop_signal *s);

/* --- children, by pidfd --- */
struct loop_child {
    void (*fn)(struct loop_child *c); /* reaped; status as in waitid */
    struct loop_io io;
    pid_t pid;
    int code;   /* CLD_EXITED, CLD_KILLED, CLD_DUMPED */
    int status; /* exit code or signal */
};
/* pidfd may be -1; otherwise it is taken over, also on failure. */
fallible loop_child_start(struct loop *loop, struct loop_child *c, pid_t pid, int pidfd,
                          void (*fn)(struct loop_child *c));
void loop_child_stop(struct loop_child *c); /* forgets it without reaping */

/* --- blocking calls, on a few threads started at first use --- */
struct loop_work {
    void (*run)(struct loop_work *w);  /* on a thread: touch nothing of the loop */
    void (*done)(struct loop_work *w); /* on the loop */
    struct loop *loop;
    struct list link;
};
/* ERR_UNSUPPORTED in a process that clones (loop_forbid_threads). */
fallible loop_work(struct loop *loop, struct loop_work *w, void (*run)(struct loop_work *w),
                   void (*done)(struct loop_work *w));
/* A process that clones namespaces has no threads: a child would inherit a locked malloc. */
void loop_forbid_threads(struct loop *loop);
/* Ends a loop_turn that waits; safe from any thread and from a signal handler. */
void loop_wake(struct loop *loop);
