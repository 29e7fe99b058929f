// SPDX-License-Identifier: Apache-2.0
/* live.c — see live.h. */
#include "guest/live/live.h"

void live_init(struct live *l)
{
    *l = (struct live){0};
    buf_init(&l->kept, (size_t)2 * LIVE_KEEP_BYTES);
    list_init(&l->readers);
}

void live_detach(struct live_reader *r)
{
    if (!r->live)
        return;
    r->live->readers_count--;
    r->live = NULL;
    list_del(&r->link);
}

static void live_end_one(struct live_reader *r, uint64_t lost_bytes)
{
    live_detach(r);
    r->on_end(r, lost_bytes);
}

void live_done(struct live *l)
{
    LIST_EACH(r, &l->readers, struct live_reader, link)
        live_end_one(r, 0);
    buf_done(&l->kept);
}

void live_read(struct live_reader *r)
{
    const struct live *l = r->live;

    if (r->at < l->start) {
        live_end_one(r, l->start - r->at);
        return;
    }
    while (r->live && r->at < live_end(l)) {
        size_t n = r->on_bytes(r, str_from(buf_str(&l->kept), (size_t)(r->at - l->start)));
        if (n == 0)
            return;
        r->at += n;
    }
}

/* Room for n bytes more: what goes first is what is older than the amount promised. */
static void make_room(struct live *l, size_t n)
{
    if (l->kept.len + n <= (size_t)2 * LIVE_KEEP_BYTES)
        return;
    size_t drop = l->kept.len + n - LIVE_KEEP_BYTES;
    if (drop > l->kept.len)
        drop = l->kept.len;
    buf_consume(&l->kept, drop);
    l->start += drop;
}

void live_add(struct live *l, struct str bytes)
{
    while (bytes.len) { /* in pieces a reader can take before the next one comes */
        struct str piece = str_first(bytes, LIVE_KEEP_BYTES);
        bytes = str_from(bytes, piece.len);
        make_room(l, piece.len);
        buf_add(&l->kept, piece);
        if (buf_failed(&l->kept)) { /* no memory: it is lost, and readers hear of it */
            l->start += l->kept.len + piece.len;
            buf_reset(&l->kept);
        }
        LIST_EACH(r, &l->readers, struct live_reader, link)
            live_read(r);
    }
}

fallible live_attach(struct live *l, struct live_reader *r)
{
    if (l->readers_count == LIVE_READERS_MAX)
        return err_new(ERR_LIMIT, "%d readers watch already: close one", LIVE_READERS_MAX);
    if (r->at < l->start || r->at > live_end(l))
        r->at = l->start;
    l->readers_count++;
    r->live = l;
    list_add(&l->readers, &r->link);
    return NULL;
}
