// SPDX-License-Identifier: Apache-2.0
/* files.c — snapshots and forks: the files of a sandbox, kept and gone on from. */
#include <stdio.h>

#include "base/rng.h"
#include "host/ops/body.h"
#include "host/runtime/snapshots.h"
#include "host/v1/inner.h"
#include "wire/known.h"

#define FORKS_MOST 100

static fallible no_snapshot(struct str name)
{
    return err_new(ERR_NOT_FOUND, "snapshot '" STR_FMT "' not found",
                   STR_ARG(str_first(name, 100)));
}

/* tenant .p NULL: any of those the key sees; with several of the name it must be said. */
struct search {
    struct str name, tenant, list;
    struct arena *a;
    const struct snapshot *found;
    unsigned count;
};

static void search_one(void *arg, const struct snapshot *s)
{
    struct search *x = arg;

    if (!str_eq(str_of(s->name), x->name) || (x->tenant.p && !str_eq(str_of(s->tenant), x->tenant)))
        return;
    x->found = s;
    x->list =
        arena_printf(x->a, STR_FMT "%s'%s'", STR_ARG(x->list), x->count++ ? ", " : "", s->tenant);
}

static fallible find_snapshot(struct http_req *req, const struct key *key, struct str tenant,
                              struct str name, struct snapshot **ret)
{
    struct search x = {.name = name, .tenant = tenant, .a = &req->arena};
    struct key owner = {.scopes = 0};

    manager_each_snapshot(v1_api(req)->manager, v1_whose(key), search_one, &x);
    TRY(arena_check(&req->arena));
    if (!x.found)
        return no_snapshot(name);
    if (x.count > 1)
        return err_new(ERR_CONFLICT,
                       "snapshots of several keys are called '" STR_FMT "': " STR_FMT
                       "; say whose, as KEY/NAME in 'from', by ?key= elsewhere",
                       STR_ARG(str_first(name, 100)), STR_ARG(x.list));
    snprintf(owner.name, sizeof owner.name, "%s", x.found->tenant);
    *ret = manager_find_snapshot(v1_api(req)->manager, &owner, name);
    return NULL;
}

fallible v1_take_from(struct http_req *req, const struct key *key, const struct json *body,
                      struct wire_start *start)
{
    struct str from = {0};

    TRY(json_take_str(body, "from", &from));
    if (!from.p)
        return NULL;
    struct str name = from, tenant = {0};
    struct snapshot *s;
    for (size_t i = 0; i < from.len; i++) /* KEY/NAME: no name has a slash */
        if (from.p[i] == '/') {
            tenant = str_first(from, i);
            name = str_from(from, i + 1);
        }
    TRY(find_snapshot(req, key, tenant, name, &s));
    if (!str_eq(start->image, str_of(s->image)))
        return err_new(ERR_UNPROCESSABLE, "image: snapshot '%s' is of image '%s'", s->name,
                       s->image);
    start->from =
        arena_copy(&req->arena, str_of(s->id)); /* it may go while its image is asked for */
    return arena_check(&req->arena);
}

/* --- a snapshot --- */

struct taking {
    struct runtime_ask ask;
    struct http_req *req;
    struct str name;
};

static void on_taken(struct runtime_ask *ask, struct runtime *r, struct err *e)
{
    struct taking *t = container_of(ask, struct taking, ask);

    (void)r;
    if (e) {
        http_reply_err(t->req, e);
        return;
    }
    struct jw *w = http_reply_writer(t->req);
    JW_OBJECT(w, NULL)
        jw_str(w, "name", t->name);
    http_reply_written(t->req, 200);
}

static struct str new_name(struct arena *a)
{
    char hex[RNG_HEX_LEN + 1];

    rng_hex(rng_system(), hex);
    return arena_printf(a, "snap-%.8s", hex);
}

fallible v1_handle_snapshot(struct http_req *req)
{
    struct runtime *r;
    struct json *body;
    struct taking *t = arena_new(&req->arena, struct taking);

    TRY(v1_find(req, KEY_RUNTIME, &r));
    TRY(v1_take_body(req, &body));
    TRY(wire_check_known(body, "", (const char *const[]){"name", NULL}));
    if (!t)
        return arena_check(&req->arena);
    t->req = req;
    t->ask.done = on_taken;
    t->ask.request = http_req_id(req);
    t->name = new_name(&req->arena);
    TRY(json_take_str(body, "name", &t->name));
    TRY(arena_check(&req->arena));
    return manager_snapshot(r, t->name, &t->ask);
}

struct listing {
    struct arena *a;
    struct jw *w;
};

static void put_snapshot(void *arg, const struct snapshot *s)
{
    const struct listing *l = arg;

    JW_OBJECT(l->w, NULL) {
        jw_cstr(l->w, "name", s->name);
        jw_cstr(l->w, "sandbox", s->sandbox);
        jw_cstr(l->w, "image", s->image);
        jw_cstr(l->w, "key", s->tenant);
        jw_str(l->w, "created_at", v1_time(l->a, s->created_ms));
    }
}

fallible v1_handle_snapshots(struct http_req *req)
{
    const struct key *key;

    TRY(v1_check(req, KEY_RUNTIME | KEY_READ, &key));
    struct listing l = {.a = &req->arena, .w = http_reply_writer(req)};
    JW_OBJECT(l.w, NULL)
        JW_ARRAY(l.w, "snapshots")
            manager_each_snapshot(v1_api(req)->manager, v1_whose(key), put_snapshot, &l);
    http_reply_written(req, 200);
    return NULL;
}

static void on_hidden(void *arg, struct err *e)
{
    if (e)
        http_reply_err(arg, e);
    else
        http_reply(arg, 204, STR(""), STR(""));
}

fallible v1_handle_snapshot_delete(struct http_req *req)
{
    const struct key *key;
    struct str name = http_req_param(req, "name");

    TRY(v1_check(req, KEY_RUNTIME, &key));
    struct snapshot *s;
    TRY(find_snapshot(req, key, http_req_query(req, "key"), name, &s));
    return manager_remove_snapshot(v1_api(req)->manager, s, on_hidden, req);
}

/* --- forks: a hidden snapshot, and starts from it --- */

struct fork {
    struct runtime_ask ask;
    struct forks *all;
    struct wire_start start;
    struct start_place place;
    struct runtime *runtime; /* NULL: it failed */
};

struct forks {
    struct runtime_ask ask; /* of the snapshot */
    struct http_req *req;
    struct key key; /* a copy; the tenant of the source */
    struct wire_start start;
    struct str name; /* of the snapshot */
    struct fork *each;
    size_t count, waiting;
    struct err *failed; /* the first */
};

static fallible put_forks(const struct forks *f)
{
    struct jw *w = http_reply_writer(f->req);
    struct err *e = NULL;

    JW_OBJECT(w, NULL)
        JW_ARRAY(w, "sandboxes")
            for (size_t i = 0; i < f->count && !e; i++)
                if (f->each[i].runtime)
                    e = v1_put(f->req, w, f->each[i].runtime);
    return e;
}

/* One that is still being taken goes when it is. */
static void drop_frozen(const struct forks *f)
{
    struct manager *m = v1_api(f->req)->manager;
    struct snapshot *s = manager_find_snapshot(m, v1_whose(&f->key), f->name);

    if (s)
        manager_drop_frozen(s);
}

/* Sandboxes that started stay, also when another could not start. */
static void files_finish(struct forks *f)
{
    drop_frozen(f); /* the request that took it was answered */
    struct err *e = f->failed ? take(&f->failed) : put_forks(f);
    if (e)
        http_reply_err(f->req, e);
    else
        http_reply_written(f->req, 200);
}

static void on_forked(struct runtime_ask *ask, struct runtime *r, struct err *e)
{
    struct fork *one = container_of(ask, struct fork, ask);
    struct forks *f = one->all;

    one->runtime = e ? NULL : r;
    if (f->failed)
        err_free(e);
    else
        f->failed = e;
    if (--f->waiting == 0)
        files_finish(f);
}

static void on_frozen(struct runtime_ask *ask, struct runtime *r, struct err *e)
{
    struct forks *f = container_of(ask, struct forks, ask);
    struct manager *m = v1_api(f->req)->manager;
    const struct snapshot *s = e ? NULL : manager_find_snapshot(m, v1_whose(&f->key), f->name);

    (void)r;
    if (!s) {
        drop_frozen(f);
        http_reply_err(f->req, e ? e : no_snapshot(f->name));
        return;
    }
    f->start.from = arena_copy(&f->req->arena, str_of(s->id));
    f->waiting = f->count + 1; /* ours: none may be the last before all were asked for */
    for (size_t i = 0; i < f->count; i++) {
        struct fork *one = &f->each[i];
        struct str session = one->start.session_id;
        one->start = f->start;
        one->start.session_id = session;
        one->ask.done = on_forked;
        one->ask.request = http_req_id(f->req);
        struct err *why = manager_start(m, &one->place);
        if (why)
            on_forked(&one->ask, NULL, why);
    }
    if (--f->waiting == 0)
        files_finish(f);
}

/* Those still in line lose their places. */
static void on_forks_gone(struct http_req *req)
{
    struct forks *f = req->user;

    if (!f->waiting) /* the snapshot is being taken */
        return;
    f->waiting++;
    for (size_t i = 0; i < f->count; i++)
        manager_start_give_up(v1_api(req)->manager, &f->each[i].place);
    if (--f->waiting == 0)
        files_finish(f);
}

static fallible name_forks(struct forks *f, struct str session)
{
    char token[9];

    rng_token(rng_system(), token, sizeof token);
    f->name = arena_printf(&f->req->arena, SNAPSHOT_HIDDEN "%s", token);
    for (size_t i = 0; i < f->count; i++) {
        struct fork *one = &f->each[i];
        one->all = f;
        one->start.session_id =
            arena_printf(&f->req->arena, STR_FMT "-%s-%zu",
                         STR_ARG(str_first(session, WIRE_SESSION_MAX - 20)), token, i + 1);
        one->place = (struct start_place){.ask = &one->ask, .key = &f->key, .start = &one->start};
        list_init(&one->place.link);
    }
    return arena_check(&f->req->arena);
}

/* The source may have gone meanwhile, and its wants may not be granted any more. */
static fallible freeze_for_fork(struct forks *f)
{
    struct runtime *r;

    TRY(v1_find(f->req, KEY_RUNTIME, &r));
    if (f->start.wants)
        TRY(manager_check_wants(v1_api(f->req)->manager, &f->key, f->start.wants));
    manager_freeze(r, f->name, &f->ask);
    return NULL;
}

static void on_fork_spec(void *arg, struct wire_start *start, struct err *e)
{
    struct forks *f = arg;

    f->start = *start;
    if (!e)
        e = freeze_for_fork(f);
    if (e)
        http_reply_err(f->req, e);
}

fallible v1_handle_fork(struct http_req *req)
{
    struct runtime *r;
    struct json *body;
    const struct key *key;
    int64_t count = 1;
    struct str session = {0};
    struct forks *f = arena_new(&req->arena, struct forks);

    TRY(v1_find(req, KEY_RUNTIME, &r));
    TRY(v1_check(req, KEY_RUNTIME, &key));
    TRY(v1_take_body(req, &body));
    TRY(wire_check_known(body, "", (const char *const[]){"count", "session_id", NULL}));
    TRY(json_take_int(body, "count", 1, FORKS_MOST, &count));
    session = str_of(r->session_id);
    TRY(json_take_str(body, "session_id", &session));
    if (!f)
        return arena_check(&req->arena);
    f->req = req;
    req->user = f;
    req->on_gone = req->on_hangup = on_forks_gone;
    f->key = *key;
    f->ask.done = on_frozen;
    f->ask.request = http_req_id(req);
    f->count = (size_t)count;
    f->each = arena_zalloc(&req->arena, f->count * sizeof *f->each);
    TRY(arena_check(&req->arena));
    TRY(name_forks(f, session));
    runtime_read_spec(r, &req->arena, on_fork_spec, f);
    return NULL;
}
