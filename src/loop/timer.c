// SPDX-License-Identifier: Apache-2.0
/* timer.c — an intrusive pairing heap behind one timerfd.
 *
 * A timer pushed back keeps its old place and is moved only when that time comes, so the deadline
 * that every request renews costs two stores. */
#include <limits.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "loop/inner.h"

static struct loop_timer *timer_meld(struct loop_timer *a, struct loop_timer *b)
{
    if (!a || !b)
        return a ? a : b;
    if (b->key_ns < a->key_ns) {
        struct loop_timer *swap = a;
        a = b;
        b = swap;
    }
    b->prev = a; /* first child: prev is the parent */
    b->next = a->child;
    if (a->child)
        a->child->prev = b;
    a->child = b;
    return a;
}

/* Two passes, without recursion: pair from the left, then fold from the right. */
static struct loop_timer *meld_children(struct loop_timer *first)
{
    struct loop_timer *pairs = NULL, *root = NULL;

    while (first) {
        struct loop_timer *a = first, *b = a->next;
        first = b ? b->next : NULL;
        a->next = a->prev = NULL;
        if (b)
            b->next = b->prev = NULL;
        struct loop_timer *both = timer_meld(a, b);
        both->next = pairs;
        pairs = both;
    }
    while (pairs) {
        struct loop_timer *next = pairs->next;
        pairs->next = NULL;
        root = timer_meld(root, pairs);
        pairs = next;
    }
    if (root)
        root->prev = NULL;
    return root;
}

static void heap_insert(struct loop *l, struct loop_timer *t)
{
    t->child = t->next = t->prev = NULL;
    l->timers = timer_meld(l->timers, t);
}

static void heap_remove(struct loop *l, struct loop_timer *t)
{
    struct loop_timer *below = meld_children(t->child);

    t->child = NULL;
    if (l->timers == t) {
        l->timers = below;
        return;
    }
    if (t->prev->child == t)
        t->prev->child = t->next;
    else
        t->prev->next = t->next;
    if (t->next)
        t->next->prev = t->prev;
    l->timers = timer_meld(l->timers, below);
}

/* A callback that starts a timer of 0 ms has it in the next turn: descriptors come in between. */
static uint64_t timer_due(const struct loop *l, uint64_t after_ms)
{
    if (after_ms > (UINT64_MAX - l->now_ns) / NS_PER_MS)
        return UINT64_MAX; /* never */
    return l->now_ns + after_ms * NS_PER_MS + (after_ms == 0 && l->in_timers);
}

void loop_timer_start(struct loop *l, struct loop_timer *t, uint64_t after_ms,
                      void (*fn)(struct loop_timer *t))
{
    uint64_t when = timer_due(l, after_ms);

    t->fn = fn;
    t->when_ns = when;
    if (t->loop && when >= t->key_ns)
        return;
    if (t->loop)
        heap_remove(l, t);
    t->loop = l;
    t->key_ns = when;
    heap_insert(l, t);
}

void loop_timer_stop(struct loop_timer *t)
{
    if (!t->loop)
        return;
    heap_remove(t->loop, t);
    t->loop = NULL;
}

/* An armed time that is too early only costs one empty turn, so it is left; 0 means "by hand". */
int loop_timers_arm(struct loop *l, int timeout_ms)
{
    if (timeout_ms == 0 || !l->timers)
        return timeout_ms;
    uint64_t next = l->timers->key_ns;
    if (l->armed_ns && l->armed_ns <= next)
        return timeout_ms;
    if (next < 1)
        next = 1; /* zero would disarm */
    struct itimerspec spec = {
        .it_value = {(time_t)(next / NS_PER_S), (long)(next % NS_PER_S)},
    };
    if (timerfd_settime(l->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL) == 0) {
        l->armed_ns = next;
        return timeout_ms;
    }
    l->armed_ns = 0; /* wait in epoll instead, this once */
    uint64_t wait_ms = next > l->now_ns ? (next - l->now_ns) / NS_PER_MS + 1 : 0;
    if (wait_ms > INT_MAX)
        wait_ms = INT_MAX;
    return timeout_ms >= 0 && (uint64_t)timeout_ms < wait_ms ? timeout_ms : (int)wait_ms;
}

void loop_timers_run(struct loop *l)
{
    uint64_t now = l->now_ns;

    l->in_timers = true;
    while (l->timers && l->timers->key_ns <= now) {
        struct loop_timer *t = l->timers;
        heap_remove(l, t);
        if (t->when_ns > t->key_ns) { /* pushed back since: its turn comes, perhaps now */
            t->key_ns = t->when_ns;
            heap_insert(l, t);
            continue;
        }
        t->loop = NULL;
        t->fn(t);
    }
    l->in_timers = false;
}

void loop_on_timerfd(struct loop_io *io)
{
    uint64_t count;
    ssize_t ignored = read(io->fd, &count, sizeof count);
    (void)ignored; /* the timers themselves ran at the head of the turn */
    io->loop->armed_ns = 0;
}
