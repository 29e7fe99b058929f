// SPDX-License-Identifier: Apache-2.0
/* follow.c — see follow.h. */
#include "sandbox/follow.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "sandbox/output.h"
#include "sandbox/sandbox.h"

#define NEWEST_BYTES (1u << 20)

size_t sbx_place_format(const struct sbx_place *at, char out[SBX_PLACE_MAX])
{
    return (size_t)snprintf(out, SBX_PLACE_MAX, "%" PRIu64 ".%" PRIu64, at->file, at->output);
}

bool sbx_place_parse(struct str text, struct sbx_place *ret_at)
{
    struct sbx_place at = {0};
    struct str file;

    if (str_cut(&text, '.', &file) && !str_to_u64(text, &at.output))
        return false;
    if (!str_to_u64(file, &at.file))
        return false;
    *ret_at = at;
    return true;
}

/* The place so many bytes before to. The last `output` bytes read were a command's. */
static struct sbx_place place_before(const struct sbx_place *to, size_t output, size_t back)
{
    if (back <= output)
        return (struct sbx_place){to->file, to->output - back};
    return (struct sbx_place){to->file - (back - output), to->output - output};
}

/* The place where its last lines begin. */
static void find_tail(struct sbx *s, uint64_t lines, struct sbx_place *ret_at)
{
    own_done(buf) text;
    struct sbx_place from = {0}, to;

    buf_init(&text, NEWEST_BYTES);
    s->driver->backend->logs->end(s, &from);
    size_t output = from.output > OUTPUT_BYTES ? OUTPUT_BYTES : (size_t)from.output;
    size_t file = NEWEST_BYTES > output ? NEWEST_BYTES - output : 0;
    from.output -= output;
    from.file -= from.file > file ? file : from.file;
    to = from;
    size_t of_file = s->driver->backend->logs->read(s, &to, &text);
    size_t n = text.len;
    if (lines && n && text.p[n - 1] == '\n')
        n--;
    while (lines && n && !(text.p[n - 1] == '\n' && --lines == 0))
        n--;
    *ret_at = place_before(&to, text.len - of_file, text.len - n);
}

static fallible follow_here(struct sbx *s, const struct sbx_log_from *from, struct sbx_follower *f)
{
    f->at = from->place;
    if (!from->has_place)
        find_tail(s, from->lines, &f->at);
    if (from->follow)
        TRY(f->calls->watch(s, true));
    f->open = true;
    if (from->follow)
        list_add(&s->followers, &f->link);
    f->on_begin(f);
    if (!from->follow)
        sbx_follower_end(f, NULL);
    return NULL;
}

fallible sbx_follow(struct sbx *s, const struct sbx_log_from *from, struct sbx_follower *f)
{
    TRY(sbx_need(s->driver, SBX_CAN_LOG, "keep a log"));
    if (from->follow && s->state.now == SBX_STOPPED)
        return err_new(ERR_CONFLICT, "sandbox '%s' has ended: it says nothing more", s->id);
    list_init(&f->link);
    f->sbx = s;
    f->calls = s->driver->backend->logs;
    return f->calls->open ? f->calls->open(f, from) : follow_here(s, from, f);
}

void sbx_unfollow(struct sbx_follower *f)
{
    if (!f->open)
        return;
    f->open = false;
    list_del(&f->link);
    if (f->calls->close)
        f->calls->close(f);
    else if (list_empty(&f->sbx->followers))
        err_free(f->calls->watch(f->sbx, false)); /* no reader is left to tell */
}

void sbx_log_next(struct sbx_follower *f, struct buf *out)
{
    if (f->calls->next)
        f->calls->next(f, out);
    else
        f->calls->read(f->sbx, &f->at, out);
}

/* --- for drivers --- */

void sbx_log_grew(struct sbx *s)
{
    LIST_EACH(f, &s->followers, struct sbx_follower, link)
        f->on_more(f);
}

void sbx_follower_end(struct sbx_follower *f, const struct err *e)
{
    list_del(&f->link);
    f->open = false;
    f->on_end(f, e);
}

void sbx_followers_end(struct sbx *s)
{
    bool any = !list_empty(&s->followers);

    while (!list_empty(&s->followers))
        sbx_follower_end(LIST_FIRST(&s->followers, struct sbx_follower, link), NULL);
    if (any)
        err_free(s->driver->backend->logs->watch(s, false)); /* no reader is left to tell */
}

void sbx_followers_moved(struct sbx *s)
{
    const struct sbx_log_calls *calls = s->driver->backend->logs;

    if (calls && calls->moved)
        calls->moved(s);
    if (list_empty(&s->followers))
        return;
    if (s->state.now == SBX_STOPPED) {
        sbx_followers_end(s);
        return;
    }
    struct err *e = calls->watch(s, true); /* it may have a log only now */
    if (e)
        log_warn("a log is not followed", KV("id", s->id), KV_ERR(e));
    err_free(e);
    sbx_log_grew(s);
}
