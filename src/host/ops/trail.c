// SPDX-License-Identifier: Apache-2.0
/* trail.c — see trail.h. The last record of a log is its seal. When the seal is on disk, or lost,
 * nothing more comes in that log, and subscribers go on in the next. */
#include "host/ops/trail.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "host/ops/trail_verify.h"

#define LOGS       8 /* that keep_bytes are divided into */
#define LOG_LEAST  4096
#define NAME_BYTES 64
#define OVERHEAD   128 /* of a record, in log and index */

struct trail_log {
    struct trail *trail;
    struct list link; /* oldest first; the last is the one written to */
    uint64_t base;    /* number of the record before its first */
    char name[NAME_BYTES];
    struct event_log *log; /* NULL: not opened yet */
    uint64_t bytes;
    bool settled; /* nothing more comes: of one that is not the last */
    bool sealing; /* its last record is on the way, or was to be */
    struct event_append seal;
    struct list subs;
};

struct trail {
    struct loop *loop;
    int dir;
    const char *name;
    uint64_t keep_bytes, again_bytes; /* again: when a new log is tried again after a failure */
    struct event_options options;
    struct list logs;
};

static struct trail_log *trail_find_newest(const struct trail *t)
{
    return container_of(t->logs.prev, struct trail_log, link);
}

static struct trail_log *trail_after(const struct trail_log *l)
{
    return container_of(l->link.next, struct trail_log, link);
}

static uint64_t last_of(const struct trail_log *l)
{
    struct event_info info;

    event_log_info(l->log, &info);
    return info.last_seq;
}

static fallible open_log(struct trail_log *l)
{
    const struct trail *t = l->trail;

    return l->log ? NULL : event_log_open(t->loop, t->dir, str_of(l->name), &t->options, &l->log);
}

/* --- followers --- */

static void trail_leave(struct trail_sub *s)
{
    list_del(&s->link);
    s->log = NULL;
}

static void end_sub(struct trail_sub *s, const struct err *why)
{
    trail_sub_stop(s);
    if (s->on_end)
        s->on_end(s, why);
}

static void on_sub_end(struct event_sub *e, const struct err *why)
{
    end_sub(container_of(e, struct trail_sub, sub), why);
}

static void on_sub_record(struct event_sub *e, const struct event_record *r);

static fallible trail_enter(struct trail_sub *s, struct trail_log *l, uint64_t seq)
{
    TRY(open_log(l));
    s->sub.on_record = on_sub_record;
    s->sub.on_end = on_sub_end;
    s->sub.after = seq;
    TRY(event_sub_start(l->log, &s->sub));
    s->log = l;
    list_add(&l->subs, &s->link);
    return NULL;
}

/* Past the end of what is settled: on in the next one that has something, or will have. */
static fallible go_on(struct trail_sub *s)
{
    struct trail_log *l = s->log;
    bool paused = s->sub.paused;

    while (l->settled && s->sub.after >= last_of(l)) {
        event_sub_stop(&s->sub);
        trail_leave(s);
        l = trail_after(l);
        TRY(trail_enter(s, l, 0));
    }
    if (paused)
        event_sub_pause(&s->sub);
    return NULL;
}

static void go_on_or_end(struct trail_sub *s)
{
    struct err *e = go_on(s);

    if (e)
        end_sub(s, e);
    err_free(e);
}

static void on_sub_record(struct event_sub *e, const struct event_record *r)
{
    struct trail_sub *s = container_of(e, struct trail_sub, sub);

    s->after = s->log->base + r->seq;
    if (!str_eq(r->kind, STR(TRAIL_SEAL)) && event_filter_match(s->filter, r))
        s->on_record(s, s->after, r);
    if (s->log && s->log->settled)
        go_on_or_end(s);
}

fallible trail_sub_start(struct trail *t, struct trail_sub *s)
{
    struct trail_log *l = LIST_FIRST(&t->logs, struct trail_log, link);

    if (s->after && s->after < l->base)
        return err_new(ERR_GONE,
                       "events up to %" PRIu64 " are not kept any more (journal.keep): ask after "
                       "%" PRIu64 " for what is there",
                       l->base, l->base);
    if (s->after < l->base)
        s->after = l->base;
    while (l != trail_find_newest(t) && trail_after(l)->base <= s->after)
        l = trail_after(l);
    TRY(open_log(l));
    uint64_t seq = s->after - l->base, last = last_of(l);
    if (seq > last && l != trail_find_newest(t))
        seq = last; /* in a gap */
    if (seq > last)
        return err_new(ERR_INVALID, "no event %" PRIu64 " yet: the last is %" PRIu64, s->after,
                       l->base + last);
    s->sub = (struct event_sub){0};
    TRY(trail_enter(s, l, seq));
    struct err *e = go_on(s);
    if (e)
        trail_sub_stop(s);
    return e;
}

void trail_sub_pause(struct trail_sub *s)
{
    event_sub_pause(&s->sub);
}

void trail_sub_resume(struct trail_sub *s)
{
    event_sub_resume(&s->sub);
}

void trail_sub_stop(struct trail_sub *s)
{
    event_sub_stop(&s->sub);
    if (s->log)
        trail_leave(s);
}

/* --- logs --- */

static struct trail_log *new_log(struct trail *t, uint64_t base)
{
    struct trail_log *l = mem_new(sizeof *l);

    l->trail = t;
    l->base = base;
    list_init(&l->subs);
    list_init(&l->link);
    if (base)
        snprintf(l->name, sizeof l->name, "%s.%0*" PRIu64, t->name, TRAIL_DIGITS, base);
    else
        snprintf(l->name, sizeof l->name, "%s", t->name);
    return l;
}

static void free_log(struct trail_log *l)
{
    if (l->sealing)
        event_append_cancel(&l->seal);
    list_del(&l->link);
    event_log_free(l->log);
    free(l);
}

static uint64_t size_of(const struct trail_log *l, const char *suffix)
{
    char name[NAME_BYTES + 8];
    struct stat st;

    snprintf(name, sizeof name, "%s%s", l->name, suffix);
    return fstatat(l->trail->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? (uint64_t)st.st_size : 0;
}

/* The index first: without it a log is whole, and without a log it would stay for ever. */
static void remove_log(struct trail_log *l)
{
    char index[NAME_BYTES + 8];
    struct err *gone =
        err_new(ERR_GONE, "events up to %" PRIu64 " are not kept any more", trail_after(l)->base);

    while (!list_empty(&l->subs))
        end_sub(container_of(l->subs.next, struct trail_sub, link), gone);
    err_free(gone);
    snprintf(index, sizeof index, "%s.idx", l->name);
    unlinkat(l->trail->dir, index, 0);
    if (unlinkat(l->trail->dir, l->name, 0) < 0)
        log_warn("an old log stays", KV("name", l->name));
    free_log(l);
}

static void remove_old(struct trail *t)
{
    uint64_t all = 0;

    LIST_EACH(l, &t->logs, struct trail_log, link)
        all += l->bytes;
    while (t->keep_bytes && all > t->keep_bytes) {
        struct trail_log *l = LIST_FIRST(&t->logs, struct trail_log, link);
        if (l == trail_find_newest(t) || trail_after(l) == trail_find_newest(t) || !l->settled)
            return; /* what came just now is still being read */
        all -= l->bytes;
        remove_log(l);
    }
}

static void put_seal(struct trail_log *l)
{
    struct event_info info;
    char payload[200], hex[2 * sizeof info.head + 1];

    event_log_info(l->log, &info);
    for (size_t i = 0; i < sizeof info.head; i++)
        snprintf(hex + 2 * i, 3, "%02x", info.head[i]);
    snprintf(payload, sizeof payload, "{\"log\":\"%s\",\"last\":%" PRIu64 ",\"sha256\":\"%s\"}",
             l->name, l->base + info.last_seq, hex);
    const struct event_record r = {.kind = STR(TRAIL_SEAL), .payload = str_of(payload)};
    struct err *e = event_log_append(trail_find_newest(l->trail)->log, &r, NULL);
    if (e)
        log_warn("a log was not sealed", KV("name", l->name), KV_ERR(e));
    err_free(e);
}

static void trail_settle(struct trail_log *l)
{
    l->settled = true;
    l->bytes = size_of(l, "") + size_of(l, ".idx");
    put_seal(l);
    LIST_EACH(s, &l->subs, struct trail_sub, link)
        go_on_or_end(s);
    remove_old(l->trail);
}

/* The last record of a log is on disk, or lost. A log after which no other could be made is used
 * on. */
static void on_sealed(struct event_append *a, const struct err *why)
{
    struct trail_log *l = container_of(a, struct trail_log, seal);

    (void)why; /* the log says so; what was lost was never acknowledged */
    l->sealing = false;
    if (l != trail_find_newest(l->trail))
        trail_settle(l);
}

static bool is_full(const struct trail *t, const struct trail_log *l)
{
    uint64_t most = t->keep_bytes / LOGS > LOG_LEAST ? t->keep_bytes / LOGS : LOG_LEAST;

    return t->keep_bytes && l->bytes >= most && l->bytes >= t->again_bytes && !l->sealing;
}

static void begin_next(struct trail *t, uint64_t base)
{
    struct trail_log *l = new_log(t, base);
    struct err *e = open_log(l);

    if (e) {
        log_warn("the log goes on in one that is full", KV("name", trail_find_newest(t)->name),
                 KV_ERR(e));
        t->again_bytes = trail_find_newest(t)->bytes + t->keep_bytes / LOGS;
        err_free(e);
        free_log(l);
        return;
    }
    t->again_bytes = 0;
    list_add(&t->logs, &l->link);
}

fallible trail_append(struct trail *t, const struct event_record *r)
{
    struct trail_log *l = trail_find_newest(t);

    l->bytes += r->payload.len + r->kind.len + r->id.len + OVERHEAD;
    if (!is_full(t, l))
        return event_log_append(l->log, r, NULL);
    l->seal = (struct event_append){.done = on_sealed};
    TRY(event_log_append(l->log, r, &l->seal));
    l->sealing = true;
    begin_next(t, l->base + l->seal.seq);
    return NULL;
}

uint64_t trail_last(const struct trail *t)
{
    return trail_find_newest(t)->base + last_of(trail_find_newest(t));
}

uint64_t trail_newest(const struct trail *t)
{
    struct event_info info;

    event_log_info(trail_find_newest(t)->log, &info);
    return trail_find_newest(t)->base + info.next_seq - 1;
}

uint64_t trail_first(const struct trail *t)
{
    return LIST_FIRST(&t->logs, struct trail_log, link)->base + 1;
}

void trail_keep(struct trail *t, uint64_t keep_bytes)
{
    t->keep_bytes = keep_bytes;
    remove_old(t);
}

/* --- life --- */

/* In the order of their numbers. */
static void trail_insert(struct trail *t, struct trail_log *l)
{
    struct list *at = &t->logs;

    LIST_EACH(one, &t->logs, struct trail_log, link)
        if (one->base > l->base && at == &t->logs)
            at = &one->link;
    list_add(at, &l->link); /* before it */
}

static fallible find_logs(struct trail *t)
{
    own_fd fd = openat(t->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    uint64_t base;

    if (!d)
        return err_sys("list its directory");
    (void)take_fd(&fd);
    for (struct dirent *e; (e = readdir(d));)
        if (trail_base_of(t->name, e->d_name, &base))
            trail_insert(t, new_log(t, base));
    closedir(d);
    if (list_empty(&t->logs))
        trail_insert(t, new_log(t, 0));
    return NULL;
}

/* --- seals that a kill kept from the disk --- */

/* Most have it among the first records of the next log. */
static bool is_sealed_in(const struct trail_log *l, const struct trail_log *later)
{
    own_fd fd = openat(l->trail->dir, later->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    return fd >= 0 && trail_has_seal(fd, l->name);
}

static bool is_sealed(const struct trail_log *l)
{
    const struct trail_log *last = trail_find_newest(l->trail);

    for (const struct trail_log *later = trail_after(l); !is_sealed_in(l, later);
         later = trail_after(later))
        if (later == last)
            return false;
    return true;
}

/* Only the last but one can lack it by one kill; others may by several. */
static void seal_again(struct trail *t)
{
    LIST_EACH(l, &t->logs, struct trail_log, link) {
        if (l == trail_find_newest(t) || is_sealed(l))
            continue;
        struct err *e = open_log(l);
        if (e)
            log_error("a log is damaged, and not sealed", KV("name", l->name), KV_ERR(e));
        else
            put_seal(l);
        err_free(e);
    }
}

static fallible trail_begin(struct trail *t, int dir)
{
    t->dir = openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (t->dir < 0)
        return err_sys("open its directory");
    TRY(find_logs(t));
    TRY(open_log(trail_find_newest(t)));
    LIST_EACH(l, &t->logs, struct trail_log, link) {
        l->bytes = size_of(l, "") + size_of(l, ".idx");
        l->settled = l != trail_find_newest(t);
    }
    remove_old(t);
    seal_again(t);
    return NULL;
}

fallible trail_open(const struct trail_config *config, struct trail **ret_trail)
{
    own(trail) t = mem_new(sizeof *t);

    t->loop = config->loop;
    t->name = config->name;
    t->keep_bytes = config->keep_bytes;
    t->options = config->options;
    list_init(&t->logs);
    TRY(trail_begin(t, config->dir));
    *ret_trail = take(&t);
    return NULL;
}

void trail_free(struct trail *t)
{
    if (!t)
        return;
    LIST_EACH(l, &t->logs, struct trail_log, link)
        free_log(l);
    if (t->dir >= 0)
        own_close(t->dir);
    free(t);
}
