// SPDX-License-Identifier: Apache-2.0
/* pool_recent.c — pools of images that are started again and again, though no setting names them.
 *
 * The second start of an image within server.warm_recent_for makes a pool; a pool unused for that
 * long goes. There are few: a new one takes the place of the one unused for longest, if its image
 * comes more often.
 *
 * So five images in turn do not cost each other their warm sandboxes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "host/runtime/inner.h"

#define RECENT_POOLS 4

static uint64_t window_ns(const struct manager *m)
{
    return m->config.recent_ms * NS_PER_MS;
}

static bool is_open(const struct pool *p)
{
    return pool_is_recent(p) && !p->closed;
}

/* --- when they go --- */

static void on_timer(struct loop_timer *t);

static void recent_watch(struct manager *m)
{
    uint64_t first = UINT64_MAX, now = manager_mono_ns(m);

    LIST_EACH(p, &m->pools.all, const struct pool, link)
        if (is_open(p) && p->used_ns < first)
            first = p->used_ns;
    loop_timer_stop(&m->pools.recent.timer);
    if (first == UINT64_MAX || m->ending)
        return;
    uint64_t end = first + window_ns(m);
    loop_timer_start(m->config.loop, &m->pools.recent.timer,
                     end > now ? (end - now) / NS_PER_MS + 1 : 0, on_timer);
}

static void on_timer(struct loop_timer *t)
{
    struct manager *m = container_of(t, struct manager, pools.recent.timer);
    uint64_t now = manager_mono_ns(m);

    LIST_EACH(p, &m->pools.all, struct pool, link)
        if (is_open(p) && now - p->used_ns >= window_ns(m))
            pool_close(p);
    recent_watch(m);
}

void recent_close(struct manager *m, const char *image)
{
    LIST_EACH(p, &m->pools.all, struct pool, link)
        if (is_open(p) && (!image || strcmp(p->image, image) == 0))
            pool_close(p);
}

void recent_stop(struct manager *m)
{
    loop_timer_stop(&m->pools.recent.timer);
    for (unsigned i = 0; i < RECENT_SEEN; i++)
        free(take(&m->pools.recent.seen[i].image));
}

void recent_reconfigure(struct manager *m)
{
    LIST_EACH(p, &m->pools.all, struct pool, link)
        if (is_open(p) && m->config.recent)
            pool_set_size(p, m->config.recent, m->config.recent);
    if (!m->config.recent)
        recent_close(m, NULL);
    recent_watch(m);
}

/* --- when they come --- */

static bool make_room(struct manager *m, uint64_t between_ns, uint64_t now)
{
    struct pool *oldest = NULL;
    unsigned count = 0;

    LIST_EACH(p, &m->pools.all, struct pool, link) {
        if (!is_open(p))
            continue;
        count++;
        if (!oldest || p->used_ns < oldest->used_ns)
            oldest = p;
    }
    if (count < RECENT_POOLS)
        return true;
    if (now - oldest->used_ns <= between_ns)
        return false;
    pool_close(oldest);
    return true;
}

static bool is_taken(const struct manager *m, const char *name)
{
    LIST_EACH(p, &m->pools.all, const struct pool, link)
        if (!p->closed && strcmp(p->name, name) == 0)
            return true;
    return false;
}

/* No setting can name one like this. */
static void recent_add(struct manager *m, const char *image, uint64_t now)
{
    char name[32];
    unsigned n = 1;

    do
        snprintf(name, sizeof name, "recent:%u", n++);
    while (is_taken(m, name));
    struct pool *p = pool_new(m, str_of(name), image);
    p->used_ns = now;
    pool_set_size(p, m->config.recent, m->config.recent);
    recent_watch(m);
}

void recent_saw(struct manager *m, const char *image)
{
    uint64_t now = manager_mono_ns(m);
    unsigned at = 0; /* its own place, or the oldest */

    if (!m->config.recent || m->ending || !pool_can_be(m))
        return;
    for (unsigned i = 0; i < RECENT_SEEN; i++) {
        const char *other = m->pools.recent.seen[i].image;
        if (other && strcmp(other, image) == 0) {
            at = i;
            break;
        }
        if (m->pools.recent.seen[i].seen_ns < m->pools.recent.seen[at].seen_ns)
            at = i;
    }
    char *was = take(&m->pools.recent.seen[at].image);
    uint64_t between_ns = now - m->pools.recent.seen[at].seen_ns;
    bool again = was && strcmp(was, image) == 0 && between_ns < window_ns(m);
    free(was);
    if (again && make_room(m, between_ns, now)) {
        m->pools.recent.seen[at].seen_ns = 0;
        recent_add(m, image, now);
        return;
    }
    m->pools.recent.seen[at].image = mem_dup_cstr(image);
    m->pools.recent.seen[at].seen_ns = now;
}

void pool_sum_recent(struct manager *m, struct pool_info *ret)
{
    *ret = (struct pool_info){.name = STR("recent:all"), .hits = m->pools.recent.hits};
    memcpy(ret->misses, m->pools.recent.misses, sizeof ret->misses);
    LIST_EACH(p, &m->pools.all, const struct pool, link) {
        if (!is_open(p))
            continue;
        ret->target += p->target;
        ret->ready += p->ready;
        ret->making += p->making;
    }
}
