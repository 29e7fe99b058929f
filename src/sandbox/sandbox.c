// SPDX-License-Identifier: Apache-2.0
/* sandbox.c — states, operations and refusals that are the same for every backend. */
#include "sandbox/sandbox.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "sandbox/follow.h"

ROWS_OF(sbx_backends, struct sbx_backend)

static const struct sm_state states[] = {
    [SBX_CREATED] = {"created", TO(SBX_STARTING) | TO(SBX_RUNNING) | TO(SBX_PAUSED) |
                                    TO(SBX_STOPPED) | TO(SBX_WARM)},
    [SBX_STARTING] = {"starting", TO(SBX_RUNNING) | TO(SBX_STOPPED) | TO(SBX_WARM)},
    [SBX_RUNNING] = {"running", TO(SBX_PAUSED) | TO(SBX_STOPPED)},
    [SBX_PAUSED] = {"paused", TO(SBX_RUNNING) | TO(SBX_STOPPED)},
    [SBX_STOPPED] = {"stopped", TO(SBX_STARTING)},
    [SBX_WARM] = {"warm", TO(SBX_RUNNING) | TO(SBX_STOPPED)},
};

/* Where an operation may begin, and where it leads. */
static const struct op {
    const char *name;
    unsigned from;
    enum sbx_state to;
    unsigned cap;
} ops[] = {
    [SBX_START] = {"start", TO(SBX_CREATED) | TO(SBX_STOPPED), SBX_RUNNING, 0},
    [SBX_STOP] = {"stop", TO(SBX_RUNNING) | TO(SBX_PAUSED) | TO(SBX_WARM), SBX_STOPPED, 0},
    [SBX_PAUSE] = {"pause", TO(SBX_RUNNING), SBX_PAUSED, SBX_CAN_PAUSE},
    [SBX_RESUME] = {"resume", TO(SBX_PAUSED), SBX_RUNNING, SBX_CAN_PAUSE},
    [SBX_SNAPSHOT] = {"snapshot",
                      TO(SBX_CREATED) | TO(SBX_RUNNING) | TO(SBX_PAUSED) | TO(SBX_STOPPED),
                      SBX_RUNNING, SBX_CAN_SNAPSHOT},
    [SBX_REMOVE] = {"be removed", TO(SBX_CREATED) | TO(SBX_STOPPED), SBX_STOPPED, 0},
    [SBX_ADOPT] = {"adopt", TO(SBX_CREATED), SBX_RUNNING, SBX_CAN_ADOPT},
    [SBX_CLAIM] = {"claim", TO(SBX_WARM), SBX_RUNNING, SBX_CAN_CLAIM},
    [SBX_FILES] = {"look at the changes of", TO(SBX_RUNNING) | TO(SBX_PAUSED) | TO(SBX_STOPPED),
                   SBX_RUNNING, 0},
    [SBX_LOOK] = {"be looked at", TO(SBX_RUNNING) | TO(SBX_PAUSED), SBX_RUNNING, 0},
    [SBX_MEASURE] = {"be measured", TO(SBX_RUNNING) | TO(SBX_PAUSED) | TO(SBX_WARM), SBX_RUNNING,
                     0},
};

static const char *const cap_names[] = {
    "pause",          "snapshot",     "expose",    "bind",        "log",
    "limit-memory",   "limit-pids",   "limit-cpu", "limit-disk",  "hide-files",
    "hide-processes", "hide-network", "adopt",     "claim",       "list",
    "mount",          "here",         "user",      "limit-files",
};

const char *sbx_cap_name(unsigned bit)
{
    return bit < ARRAY_LEN(cap_names) ? cap_names[bit] : NULL;
}

const struct sbx_backend *sbx_backend_at(size_t index)
{
    return index < ROWS_LEN(sbx_backends) ? ROWS_AT(sbx_backends, index) : NULL;
}

const struct sbx_backend *sbx_backend_find(struct str name)
{
    for (size_t i = 0; i < ROWS_LEN(sbx_backends); i++)
        if (str_eq(name, str_of(ROWS_AT(sbx_backends, i)->name)))
            return ROWS_AT(sbx_backends, i);
    return NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void sbx_backend_put_names(struct buf *out)
{
    size_t count = ROWS_LEN(sbx_backends);
    own_free const char **names = mem_new((count + 1) * sizeof *names);

    for (size_t i = 0; i < count; i++)
        names[i] = ROWS_AT(sbx_backends, i)->name;
    qsort(names, count, sizeof *names, by_name);
    for (size_t i = 0; i < count; i++)
        buf_addf(out, "%s%s", i ? "|" : "", names[i]);
}

/* A group of calls is a capability. */
static unsigned caps_of_calls(const struct sbx_backend *b)
{
    return (b->pauses ? SBX_CAN_PAUSE : 0) | (b->claims ? SBX_CAN_BIND : 0) |
           (b->claims && b->claims->claim ? SBX_CAN_CLAIM : 0) |
           (b->survivors ? SBX_CAN_ADOPT : 0) |
           (b->survivors && b->survivors->list ? SBX_CAN_LIST : 0) | (b->logs ? SBX_CAN_LOG : 0) |
           (b->snapshots ? SBX_CAN_SNAPSHOT : 0) | (b->ports ? SBX_CAN_EXPOSE : 0);
}

unsigned sbx_backend_caps(const struct sbx_backend *b)
{
    return b->caps | caps_of_calls(b);
}

fallible sbx_driver_open(const struct sbx_backend *backend, const struct sbx_host *host,
                         struct sbx_driver **ret_driver)
{
    struct sbx_driver *d;

    TRY_WRAP(backend->open(host, &d), "backend '%s'", backend->name);
    d->backend = backend;
    d->host = host;
    d->caps |= caps_of_calls(backend) & ~backend->depends;
    list_init(&d->all);
    map_init(&d->by_id);
    list_init(&d->queries);
    list_init(&d->waiters);
    if (backend->warning)
        log_warn(backend->warning, KV("backend", backend->name));
    *ret_driver = d;
    return NULL;
}

/* Without a callback: callers and readers may be gone by now. */
static void sandbox_forget(struct sbx *s)
{
    loop_later_cancel(&s->answer);
    err_free(s->result);
    free(s->failure);
    free(s->report);
    list_del(&s->sibling);
    map_del(&s->driver->by_id, str_of(s->id));
    s->driver->sandboxes--;
    free(s);
}

void sbx_driver_close(struct sbx_driver *d)
{
    if (!d)
        return;
    LIST_EACH(s, &d->all, struct sbx, sibling) {
        if (d->backend->let_go)
            d->backend->let_go(s);
        sandbox_forget(s);
    }
    /* Last: a query may be in a list of the driver that let_go takes a sandbox off. */
    LIST_EACH(q, &d->queries, struct sbx_query, sibling)
        sbx_query_drop(q);
    map_done(&d->by_id);
    d->backend->close(d);
}

/* --- birth and end --- */

static bool is_plain(struct str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!isalnum((unsigned char)name.p[i]) && !memchr("-_.", name.p[i], 3))
            return false;
    return true;
}

bool sbx_is_snapshot_name(struct str name)
{
    return name.len && name.len <= SBX_ID_MAX && name.p[0] != '.' && name.p[0] != '-' &&
           is_plain(name);
}

static fallible check_id(const struct sbx_driver *d, const char *id)
{
    size_t n = strlen(id);

    if (map_get(&d->by_id, str_of(id)))
        return err_new(ERR_CONFLICT, "there is a sandbox '%s' already", id);
    if (!is_plain(str_of(id)))
        return err_new(ERR_INVALID, "id '%.80s': letters, digits, '-', '_' and '.' only", id);
    if (n == 0 || n > SBX_ID_MAX || id[0] == '.')
        return err_new(ERR_INVALID, "id '%.80s': 1 to %d characters, not a dot first", id,
                       SBX_ID_MAX);
    return NULL;
}

static void sbx_free(struct sbx *s)
{
    sbx_followers_end(s);
    sandbox_forget(s);
}

fallible sbx_need(const struct sbx_driver *d, unsigned cap, const char *what)
{
    if ((d->caps & cap) == cap)
        return NULL;
    bool could = (sbx_backend_caps(d->backend) & cap) == cap;
    if (d->unsure && could)
        return err_new(ERR_BUSY,
                       "whether backend '%s' can %s here is not known yet: the other "
                       "server has not answered so far",
                       d->backend->name, what);
    could = could && d->backend->remedy;
    return err_new(ERR_UNSUPPORTED, "backend '%s' cannot %s here%s%s", d->backend->name, what,
                   could ? ": that needs " : "", could ? d->backend->remedy : "");
}

static fallible check_limits(const struct sbx_driver *d, const struct sbx_limits *l)
{
    if (l->memory_bytes)
        TRY(sbx_need(d, SBX_LIMITS_MEMORY, "limit memory"));
    if (l->pids)
        TRY(sbx_need(d, SBX_LIMITS_PIDS, "limit processes"));
    if (l->cpu_permille)
        TRY(sbx_need(d, SBX_LIMITS_CPU, "limit processor time"));
    if (l->disk_bytes)
        TRY(sbx_need(d, SBX_LIMITS_DISK, "limit disk space"));
    if (l->open_files)
        TRY(sbx_need(d, SBX_LIMITS_FILES, "limit open files"));
    return NULL;
}

static fallible check_user(const struct sbx_driver *d, const struct sbx_spec *spec)
{
    if (spec->user && !spec->has_user)
        return err_wrap(sbx_need(d, SBX_CAN_USER, "run a sandbox as another user"),
                        "the image's user '%.80s'", spec->user);
    return spec->has_user ? sbx_need(d, SBX_CAN_USER, "run a sandbox as another user") : NULL;
}

static fallible sandbox_make(struct sbx_driver *d, const struct sbx_spec *spec, struct sbx **ret)
{
    if (spec->id)
        TRY(check_id(d, spec->id));
    TRY(check_limits(d, &spec->limits));
    if (spec->warm)
        TRY(sbx_need(d, SBX_CAN_CLAIM, "keep a sandbox warm"));
    TRY(check_user(d, spec));
    struct sbx *s = mem_new(d->backend->size);
    if (spec->id)
        snprintf(s->id, sizeof s->id, "%s", spec->id);
    else
        rng_hex(rng_system(), s->id);
    s->driver = d;
    s->on_gone = spec->on_gone;
    s->arg = spec->arg;
    s->warm = spec->warm;
    sm_init(&s->state, states, "sandbox", SBX_CREATED);
    list_init(&s->followers);
    list_add(&d->all, &s->sibling);
    map_put(&d->by_id, str_of(s->id), s);
    d->sandboxes++;
    *ret = s;
    return NULL;
}

fallible sbx_create(struct sbx_driver *d, const struct sbx_spec *spec, struct sbx **ret_sbx)
{
    struct sbx *s;

    TRY(sandbox_make(d, spec, &s));
    struct err *e = d->backend->create(d, spec, s);
    if (e) {
        sbx_free(s);
        return err_wrap(e, "create a sandbox");
    }
    *ret_sbx = s;
    return NULL;
}

fallible sbx_fork(struct sbx_driver *d, struct str snapshot, const struct sbx_spec *spec,
                  struct sbx **ret_sbx)
{
    struct sbx *s;

    TRY(sbx_need(d, SBX_CAN_SNAPSHOT, "fork"));
    TRY(sandbox_make(d, spec, &s));
    struct err *e = d->backend->snapshots->fork(d, snapshot, spec, s);
    if (e) {
        sbx_free(s);
        return err_wrap(e, "fork '%.*s'", STR_ARG(snapshot));
    }
    *ret_sbx = s;
    return NULL;
}

/* --- operations --- */

static void move_on(struct sbx *s, enum sbx_op op, bool failed)
{
    enum sbx_state to = ops[op].to;

    if (failed && op != SBX_START && (op != SBX_CLAIM || s->found == SBX_WARM))
        return; /* it is what it was */
    if (failed)
        to = SBX_STOPPED;
    else if (op == SBX_ADOPT || op == SBX_LOOK)
        to = s->found;
    else if (op == SBX_START && s->warm)
        to = SBX_WARM;
    if (op == SBX_LOOK && to == (enum sbx_state)s->state.now)
        return;
    sm_move(&s->state, to, s->id);
    sbx_followers_moved(s);
}

static void on_answer(struct loop_later *l)
{
    struct sbx *s = container_of(l, struct sbx, answer);
    enum sbx_op op = s->op;
    struct err *e = s->result;
    sbx_done *done = s->done;
    void *arg = s->done_arg;

    s->op = SBX_NO_OP;
    s->result = NULL;
    if (op == SBX_REMOVE)
        sbx_free(s);
    else if (op != SBX_SNAPSHOT && op != SBX_MEASURE && op != SBX_FILES &&
             s->state.now != SBX_STOPPED)
        move_on(s, op, e != NULL);
    if (op == SBX_CLAIM && s->state.now != SBX_WARM)
        s->warm =
            false; /* started again, it is what it was claimed for, also if it ended so soon */
    done(arg, s, e);
    err_free(e);
}

void sbx_finish(struct sbx *s, struct err *e)
{
    if (s->answer.waiting) { /* it ended and failed in one turn: the first word counts */
        err_free(e);
        return;
    }
    s->result = e ? err_wrap(e, "%s sandbox '%s'", ops[s->op].name, s->id) : NULL;
    loop_later(s->driver->host->loop, &s->answer, on_answer);
}

static fallible sandbox_begin(struct sbx *s, enum sbx_op op, sbx_done *done, void *arg)
{
    TRY(sbx_need(s->driver, ops[op].cap, ops[op].name));
    if (s->op)
        return err_new(ERR_BUSY, "sandbox '%s' is busy: %s", s->id, ops[s->op].name);
    if (!(ops[op].from & TO(s->state.now)))
        return err_new(ERR_CONFLICT, "sandbox '%s' is %s: it cannot %s now", s->id,
                       sm_name(&s->state), ops[op].name);
    s->op = op;
    s->done = done;
    s->done_arg = arg;
    s->begun_ns = clock_mono_ns(&clock_system);
    return NULL;
}

fallible sbx_start(struct sbx *s, sbx_done *done, void *arg)
{
    TRY(sandbox_begin(s, SBX_START, done, arg));
    free(s->failure);
    s->failure = NULL;
    s->usage = (struct sbx_usage){0}; /* of the life before */
    sm_move(&s->state, SBX_STARTING, s->id);
    struct err *e = s->driver->backend->start(s);
    if (e)
        sbx_finish(s, e);
    return NULL;
}

/* call is NULL only of a backend that cannot, which is refused. */
static fallible sandbox_ask(struct sbx *s, enum sbx_op op, fallible (*call)(struct sbx *s),
                            sbx_done *done, void *arg)
{
    TRY(sandbox_begin(s, op, done, arg));
    struct err *e = call(s);
    if (e)
        sbx_finish(s, e);
    return NULL;
}

fallible sbx_adopt(struct sbx *s, sbx_done *done, void *arg)
{
    const struct sbx_survivor_calls *calls = s->driver->backend->survivors;

    return sandbox_ask(s, SBX_ADOPT, calls ? calls->adopt : NULL, done, arg);
}

fallible sbx_claim(struct sbx *s, const struct sbx_spec *spec, sbx_done *done, void *arg)
{
    TRY(sandbox_begin(s, SBX_CLAIM, done, arg));
    s->found = SBX_WARM;
    struct err *e = check_limits(s->driver, &spec->limits);
    if (!e)
        e = check_user(s->driver, spec);
    if (!e)
        e = s->driver->backend->claims->claim(s, spec);
    if (e) {
        sbx_finish(s, e);
        return NULL;
    }
    s->on_gone = spec->on_gone;
    s->on_listens = spec->on_listens;
    s->arg = spec->arg;
    return NULL;
}

void sbx_listens(struct sbx *s)
{
    s->binding = false;
    if (s->op != SBX_CLAIM && s->on_listens) /* else the claim's callback sees it */
        s->on_listens(s->arg, s);
}

fallible sbx_stop(struct sbx *s, sbx_done *done, void *arg)
{
    return sandbox_ask(s, SBX_STOP, s->driver->backend->stop, done, arg);
}

fallible sbx_pause(struct sbx *s, sbx_done *done, void *arg)
{
    const struct sbx_pause_calls *calls = s->driver->backend->pauses;

    return sandbox_ask(s, SBX_PAUSE, calls ? calls->pause : NULL, done, arg);
}

fallible sbx_resume(struct sbx *s, sbx_done *done, void *arg)
{
    const struct sbx_pause_calls *calls = s->driver->backend->pauses;

    return sandbox_ask(s, SBX_RESUME, calls ? calls->resume : NULL, done, arg);
}

fallible sbx_look(struct sbx *s, sbx_done *done, void *arg)
{
    const struct sbx_survivor_calls *calls = s->driver->backend->survivors;

    if (!calls || !calls->look)
        return err_new(ERR_UNSUPPORTED, "backend '%s' tells by itself what a sandbox is",
                       s->driver->backend->name);
    return sandbox_ask(s, SBX_LOOK, calls->look, done, arg);
}

void sbx_found_paused(struct sbx *s)
{
    const unsigned caps = s->driver->caps;

    if (s->op || s->state.now != SBX_RUNNING || !(caps & SBX_CAN_PAUSE) || (caps & SBX_IS_HERE))
        return;
    sm_move(&s->state, SBX_PAUSED, s->id);
    sbx_followers_moved(s);
}

fallible sbx_remove(struct sbx *s, sbx_done *done, void *arg)
{
    if (TO(s->state.now) & (TO(SBX_RUNNING) | TO(SBX_PAUSED) | TO(SBX_WARM)))
        return err_new(ERR_CONFLICT, "sandbox '%s' is %s: stop it first", s->id,
                       sm_name(&s->state));
    sbx_followers_end(s);
    return sandbox_ask(s, SBX_REMOVE, s->driver->backend->remove, done, arg);
}

fallible sbx_measure(struct sbx *s, sbx_done *done, void *arg)
{
    if (!s->driver->backend->measure)
        return err_new(ERR_UNSUPPORTED, "backend '%s' does not count what a sandbox uses",
                       s->driver->backend->name);
    return sandbox_ask(s, SBX_MEASURE, s->driver->backend->measure, done, arg);
}

fallible sbx_snapshot(struct sbx *s, struct str name, sbx_done *done, void *arg)
{
    TRY(sandbox_begin(s, SBX_SNAPSHOT, done, arg));
    struct err *e = s->driver->backend->snapshots->make(s, name);
    if (e)
        sbx_finish(s, e);
    return NULL;
}

fallible sbx_files(struct sbx *s, enum sbx_files what, struct str text, sbx_done *done, void *arg)
{
    const struct sbx_file_calls *calls = s->driver->backend->files;

    if (!calls)
        return err_new(ERR_UNSUPPORTED, "backend '%s' does not know what a sandbox changed",
                       s->driver->backend->name);
    TRY(sandbox_begin(s, SBX_FILES, done, arg));
    free(take(&s->report));
    struct err *e = what == SBX_FILES_DIFF    ? calls->diff(s, text)
                    : what == SBX_FILES_APPLY ? calls->apply(s, text)
                                              : calls->rollback(s, text);
    if (e)
        sbx_finish(s, e);
    return NULL;
}

void sbx_gone(struct sbx *s, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&s->failure, fmt, ap) < 0)
        s->failure = NULL;
    va_end(ap);
    log_warn("sandbox ended", KV("id", s->id), KV("why", s->failure ? s->failure : "?"));
    sm_move(&s->state, SBX_STOPPED, s->id);
    sbx_followers_moved(s);
    if (s->op && s->op != SBX_STOP)
        sbx_finish(s, err_new(ERR_CLOSED, "it ended: %s", s->failure ? s->failure : "?"));
    else if (s->op)
        sbx_finish(s, NULL);
    if (s->on_gone)
        s->on_gone(s->arg, s);
}

/* --- without an operation --- */

fallible sbx_bind(struct sbx *s, const struct sbx_spec *spec)
{
    TRY(sbx_need(s->driver, SBX_CAN_BIND, "bind"));
    if (s->op || s->state.now != SBX_CREATED)
        return err_new(ERR_CONFLICT, "sandbox '%s' is %s: only a new one can be bound", s->id,
                       sm_name(&s->state));
    TRY(check_limits(s->driver, &spec->limits));
    return err_wrap(s->driver->backend->claims->bind(s, spec), "bind sandbox '%s'", s->id);
}

static fallible need_running(const struct sbx *s)
{
    if (s->state.now == SBX_RUNNING)
        return NULL;
    return err_new(ERR_CONFLICT, "sandbox '%s' is %s, not running", s->id, sm_name(&s->state));
}

fallible sbx_expose(struct sbx *s, uint16_t port, struct sbx_address *ret_address)
{
    TRY(sbx_need(s->driver, SBX_CAN_EXPOSE, "expose a port"));
    TRY(need_running(s));
    if (port == 0)
        return err_new(ERR_INVALID, "port 0 cannot be reached: name one from 1 to 65535");
    return s->driver->backend->ports->expose(s, port, ret_address);
}

fallible sbx_logs(struct sbx *s, struct buf *out)
{
    TRY(sbx_need(s->driver, SBX_CAN_LOG, "keep a log"));
    s->driver->backend->logs->newest(s, out);
    return buf_check(out);
}

void sbx_inspect(struct sbx *s, struct sbx_info *ret_info)
{
    *ret_info = (struct sbx_info){.state = s->state.now, .failure = s->failure};
    s->driver->backend->inspect(s, ret_info);
}
