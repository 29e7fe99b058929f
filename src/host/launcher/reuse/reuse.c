// SPDX-License-Identifier: Apache-2.0
/* reuse.c — see reuse.h. */
#include "host/launcher/reuse/reuse.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/own.h"
#include "host/launcher/box_inner.h"
#include "loop/loop.h"

#define FILES   (4 * REUSE_MOST * REUSE_FDS) /* of fewer that may be open none are spent here */
#define NEXT_MS 1 /* parts go one at a time: each takes a while, and requests wait meanwhile */

struct entry {
    uint64_t put_ns;
    uint32_t slot;
    uint16_t kind, at; /* at: in parts */
};

struct reuse {
    struct box_host *host;
    struct loop *loop;
    struct loop_timer age;
    struct entry entries[REUSE_MOST]; /* the oldest first; beyond count: of parts that are free */
    unsigned count;
    struct reuse_part parts[REUSE_MOST];
};

extern void __asan_init(void) __attribute__((weak));

bool reuse_by_default(void)
{
    return !__asan_init;
}

void reuse_part_init(struct reuse_part *p, uint32_t slot)
{
    *p = (struct reuse_part){.slot = slot};
    memset(p->fds, -1, sizeof p->fds);
}

void reuse_part_done(struct reuse_part *p)
{
    for (size_t i = 0; i < ARRAY_LEN(p->fds); i++)
        own_close_p(&p->fds[i]);
}

struct reuse *reuse_new(struct box_host *h, struct loop *loop)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur < FILES)
        return NULL;
    struct reuse *r = mem_new(sizeof *r);
    *r = (struct reuse){.host = h, .loop = loop};
    for (unsigned i = 0; i < REUSE_MOST; i++)
        r->entries[i].at = (uint16_t)i;
    return r;
}

void reuse_free(struct reuse *r)
{
    free(r);
}

/* Its part is free from now on, and holds what it held until the next one is put. */
static struct reuse_part *entry_remove(struct reuse *r, unsigned i)
{
    struct entry e = r->entries[i];

    r->count--;
    memmove(&r->entries[i], &r->entries[i + 1], (r->count - i) * sizeof e);
    r->entries[r->count] = e;
    return &r->parts[e.at];
}

static void entry_drop(struct reuse *r, unsigned i)
{
    enum reuse_kind kind = r->entries[i].kind;
    struct reuse_part part = *entry_remove(r, i);

    reuse_part_done(&part);
    if (kind == REUSE_SLOT)
        box_forget_slot(r->host, part.slot);
}

uint64_t reuse_tidy(struct reuse *r, uint64_t now_ns)
{
    bool dropped = r->count && now_ns - r->entries[0].put_ns >= REUSE_AGE_MS * NS_PER_MS;

    if (dropped)
        entry_drop(r, 0);
    if (!r->count || dropped)
        return r->count ? NEXT_MS : 0;
    return REUSE_AGE_MS - (now_ns - r->entries[0].put_ns) / NS_PER_MS;
}

static void on_age(struct loop_timer *t)
{
    struct reuse *r = container_of(t, struct reuse, age);
    uint64_t wait_ms = reuse_tidy(r, clock_mono_ns(&clock_system));

    if (wait_ms)
        loop_timer_start(r->loop, t, wait_ms, on_age);
}

void reuse_put(struct reuse *r, enum reuse_kind kind, struct reuse_part *part)
{
    if (r->count == REUSE_MOST)
        entry_drop(r, 0);
    struct entry *e = &r->entries[r->count++];
    *e = (struct entry){clock_mono_ns(&clock_system), part->slot, (uint16_t)kind, e->at};
    r->parts[e->at] = *part;
    memset(part->fds, -1, sizeof part->fds);
    if (r->loop && !r->age.loop)
        loop_timer_start(r->loop, &r->age, REUSE_AGE_MS, on_age);
}

bool reuse_take(struct reuse *r, enum reuse_kind kind, uint32_t slot, struct reuse_part *ret_part)
{
    for (unsigned i = r ? r->count : 0; i-- > 0;) {
        if (r->entries[i].kind != kind || (slot != REUSE_ANY && r->entries[i].slot != slot))
            continue;
        *ret_part = *entry_remove(r, i);
        return true;
    }
    return false;
}

void reuse_clear(struct reuse *r)
{
    while (r && r->count)
        entry_drop(r, 0);
}

unsigned reuse_count(const struct reuse *r, enum reuse_kind kind)
{
    unsigned n = 0;

    for (unsigned i = 0; r && i < r->count; i++)
        n += r->entries[i].kind == kind;
    return n;
}
