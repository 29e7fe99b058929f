// SPDX-License-Identifier: Apache-2.0
/* event.c — what every sink refuses, and what a filter lets through. */
#include "event/event.h"

#include "event/format.h"

fallible event_record_check(const struct event_record *r, size_t limit_bytes)
{
    if (!r->kind.len || r->kind.len > EVENT_KIND_MAX)
        return err_new(ERR_INVALID, "event kind has %zu bytes, not 1 to %d", r->kind.len,
                       EVENT_KIND_MAX);
    if (r->id.len > EVENT_ID_MAX)
        return err_new(ERR_INVALID, "event id has %zu bytes, the limit is %d", r->id.len,
                       EVENT_ID_MAX);
    size_t room = limit_bytes - EVENT_RECORD_EXTRA - r->kind.len - r->id.len;
    if (r->payload.len > room)
        return err_new(ERR_TOO_LARGE, "event of %zu bytes, the limit is %zu", r->payload.len, room);
    return NULL;
}

static bool kind_wanted(const struct event_filter *f, struct str kind)
{
    for (size_t i = 0; i < f->kind_count; i++)
        if (str_eq(f->kinds[i], kind))
            return true;
    return f->kind_count == 0;
}

bool event_filter_match(const struct event_filter *f, const struct event_record *r)
{
    if (!f)
        return true;
    return kind_wanted(f, r->kind) && r->wall_ns >= f->from_ns &&
           (!f->until_ns || r->wall_ns < f->until_ns) && (!f->id.len || str_eq(f->id, r->id)) &&
           (!f->match || f->match(r, f->arg));
}
