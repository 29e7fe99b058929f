// SPDX-License-Identifier: Apache-2.0
/* follow.c — see follow.h. */
#include "sandbox/follow.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "sandbox/said.h"
#include "sandbox/sandbox.h"

size_t sbx_place_format(const struct sbx_place *at, char out[SBX_PLACE_MAX])
{
    return (size_t)snprintf(out, SBX_PLACE_MAX, "%" PRIu64 ".%" PRIu64, at->file, at->said);
}

bool sbx_place_parse(struct str text, struct sbx_place *ret_at)
{
    struct sbx_place at = {0};
    struct str file;

    if (str_cut(&text, '.', &file) && !str_to_u64(text, &at.said))
        return false;
    if (!str_to_u64(file, &at.file))
        return false;
    *ret_at = at;
    return true;
}

static fallible need_log(const struct sbx *s)
{
    if ((s->driver->caps & SBX_CAN_LOG) && s->driver->backend->log_read)
        return NULL;
    return err_new(ERR_UNSUPPORTED, "backend '%s' keeps no log that can be followed",
                   s->driver->backend->name);
}

fallible sbx_follow(struct sbx *s, struct sbx_follower *f)
{
    TRY(need_log(s));
    if (s->state.now == SBX_STOPPED)
        return err_new(ERR_CONFLICT, "sandbox '%s' has ended: it says nothing more", s->id);
    TRY(s->driver->backend->log_watch(s, true));
    f->sbx = s;
    list_add(&s->followers, &f->link);
    return NULL;
}

static void leave(struct sbx_follower *f)
{
    list_del(&f->link);
    f->sbx = NULL;
}

void sbx_unfollow(struct sbx_follower *f)
{
    struct sbx *s = f->sbx;

    if (!s)
        return;
    leave(f);
    if (list_empty(&s->followers))
        err_free(s->driver->backend->log_watch(s, false)); /* it is only that nobody listens */
}

fallible sbx_log_read(struct sbx *s, struct sbx_place *at, struct buf *out)
{
    TRY(need_log(s));
    s->driver->backend->log_read(s, at, out);
    return NULL;
}

/* The place that many bytes before to, where so many were read as were said, behind the file's. */
static struct sbx_place place_before(const struct sbx_place *to, size_t said, size_t back)
{
    if (back <= said)
        return (struct sbx_place){to->file, to->said - back};
    return (struct sbx_place){to->file - (back - said), to->said - said};
}

fallible sbx_log_tail(struct sbx *s, uint64_t lines, size_t window, struct sbx_place *ret_at)
{
    own_done(buf) text;
    struct sbx_place from = {0}, to;

    buf_init(&text, window);
    TRY(need_log(s));
    s->driver->backend->log_end(s, &from);
    size_t said = from.said > SAID_BYTES ? SAID_BYTES : (size_t)from.said;
    size_t file = window > said ? window - said : 0;
    from.said -= said;
    from.file -= from.file > file ? file : from.file;
    to = from;
    size_t of_file = s->driver->backend->log_read(s, &to, &text);
    size_t n = text.len;
    if (lines && n && text.p[n - 1] == '\n')
        n--;
    while (lines && n && !(text.p[n - 1] == '\n' && --lines == 0))
        n--;
    *ret_at = place_before(&to, text.len - of_file, text.len - n);
    return NULL;
}

/* --- for drivers --- */

void sbx_said(struct sbx *s)
{
    LIST_EACH(f, &s->followers, struct sbx_follower, link)
        f->on_more(f);
}

void sbx_followers_end(struct sbx *s)
{
    bool any = !list_empty(&s->followers);

    while (!list_empty(&s->followers)) {
        struct sbx_follower *f = LIST_FIRST(&s->followers, struct sbx_follower, link);
        leave(f);
        f->on_end(f, s);
    }
    if (any)
        err_free(s->driver->backend->log_watch(s, false)); /* nobody listens */
}

void sbx_followers_moved(struct sbx *s)
{
    if (list_empty(&s->followers))
        return;
    if (s->state.now == SBX_STOPPED) {
        sbx_followers_end(s);
        return;
    }
    struct err *e = s->driver->backend->log_watch(s, true); /* it may have a log only now */
    if (e)
        log_warn("a log is not followed", KV("id", s->id), KV_ERR(e));
    err_free(e);
    sbx_said(s);
}
