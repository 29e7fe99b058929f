// SPDX-License-Identifier: Apache-2.0
/* v1.c — /croft/v1: what croft adds to the Runtime API. The same runtimes, by the same rules. A
 * sandbox of another tenant is answered exactly like one that never was. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "host/ops/body.h"
#include "host/ops/journal.h"
#include "host/runtime/api.h"
#include "host/runtime/pool.h"
#include "host/runtime/runtime.h"
#include "host/v1/inner.h"
#include "host/watch/watch.h"
#include "net/server.h"
#include "wire/known.h"

#define BODY_BYTES (4u << 20)
#define NS_PER_US  1000u

fallible v1_check(struct http_req *req, unsigned scope, const struct key **ret_key)
{
    return keys_check(v1_api(req)->keys, req, scope, ret_key);
}

/* The key whose runtimes it sees; NULL: an administrator, which sees all. */
const struct key *v1_whose(const struct key *key)
{
    return key && (key->scopes & KEY_ADMIN) ? NULL : key;
}

fallible v1_find(struct http_req *req, unsigned scope, struct runtime **ret)
{
    struct str id = http_req_param(req, "id");
    const struct key *key;

    TRY(v1_check(req, scope, &key));
    struct runtime *r = manager_find(v1_api(req)->manager, v1_whose(key), id);
    if (!r)
        return err_new(ERR_NOT_FOUND, "sandbox '" STR_FMT "' not found",
                       STR_ARG(str_first(id, 100)));
    *ret = r;
    return NULL;
}

/* --- a sandbox --- */

struct str v1_time(struct arena *a, uint64_t wall_ms)
{
    char text[CLOCK_ISO_MAX];
    size_t n = clock_format_iso(wall_ms * NS_PER_MS, true, text);

    return arena_copy(a, str_n(text, n));
}

/* Walls that a sandbox may lack; the other flags are about what it can do. */
#define WALLS                                                                                      \
    (SBX_LIMITS_MEMORY | SBX_LIMITS_PIDS | SBX_LIMITS_CPU | SBX_LIMITS_DISK | SBX_HIDES_FILES |    \
     SBX_HIDES_PROCESSES | SBX_HIDES_NETWORK | SBX_CAN_PAUSE | SBX_CAN_USER | SBX_LIMITS_FILES)

static void add_lack(struct wire_sandbox *s, const char *name, const char *why, const char *remedy)
{
    if (s->lack_count < WIRE_CAPS)
        s->lacks[s->lack_count++] =
            (struct wire_lack){.name = str_of(name),
                               .why = str_of(why),
                               .remedy = remedy ? str_of(remedy) : (struct str){0}};
}

/* For native, the layers as `croft doctor` names them; for other backends, what they do not
 * claim. */
static void describe_walls(const struct sbx_driver *d, struct wire_sandbox *s)
{
    const struct sbx_lack *lack = d->host->launcher ? d->host->launcher->lacks : NULL;
    const char *name, *why = d->backend->warning;

    s->with_caps = true;
    for (unsigned bit = 0; bit < WIRE_CAPS && (name = sbx_cap_name(bit)); bit++)
        if (d->caps & (1u << bit))
            s->caps[s->cap_count++] = str_of(name);
        else if (!lack && (WALLS & (1u << bit)))
            add_lack(s, name, why ? why : "this backend does not claim it", NULL);
    for (; lack && lack->name; lack++)
        add_lack(s, lack->name, lack->why, lack->remedy);
}

static fallible v1_describe(const struct runtime *r, struct arena *a, struct wire_sandbox *ret)
{
    struct wire_wants *has = arena_new(a, struct wire_wants);
    const struct sbx_backend *b = manager_driver(r->manager)->backend;

    TRY(arena_check(a));
    TRY(runtime_wants(r, a, has));
    *ret = (struct wire_sandbox){
        .image = str_of(r->image),
        .backend = str_of(b->name),
        .warning = b->warning ? str_of(b->warning) : (struct str){0},
        .face = r->published ? STR("command") : STR("action"),
        .pool = r->pool ? str_of(r->pool) : (struct str){0},
        .launch = str_of(runtime_launch_names[r->timeline.launch]),
        .miss = r->timeline.miss == POOL_HIT ? (struct str){0}
                                             : str_of(pool_miss_words[r->timeline.miss]),
        .key = str_of(runtime_key_name(r)),
        .created_at = v1_time(a, r->created_ms),
        .changed_at = v1_time(a, r->changed_ms),
        .keep = manager_keeps(r->manager),
        .halted = runtime_is_halted(r),
        .resource_factor = r->factor,
        .has = has,
        .phase_count = RUNTIME_PHASES,
    };
    for (size_t i = 0; i < RUNTIME_PHASES; i++) {
        ret->phases[i].name = arena_printf(a, "%s_ns", runtime_phase_names[i]);
        ret->phases[i].ns = (uint64_t)r->timeline.phase_us[i] * NS_PER_US;
    }
    return runtime_describe(r, a, &ret->runtime);
}
_Static_assert(RUNTIME_PHASES <= WIRE_PHASES, "every phase has a place on the wire");

static fallible put_as(struct http_req *req, struct jw *w, const struct runtime *r, bool listed)
{
    struct wire_sandbox s;

    TRY(v1_describe(r, &req->arena, &s));
    if (!keys_may_act(v1_api(req)->keys, req))
        s.runtime.session_api_key = (struct str){0};
    if (!listed) {
        s.runtime.pod_logs = runtime_last_words(r, &req->arena);
        describe_walls(manager_driver(r->manager), &s);
    }
    wire_put_sandbox(w, &s);
    return NULL;
}

fallible v1_put(struct http_req *req, struct jw *w, const struct runtime *r)
{
    return put_as(req, w, r, false);
}

static fallible handle_get(struct http_req *req)
{
    struct runtime *r;

    TRY(v1_find(req, KEY_RUNTIME | KEY_READ, &r));
    TRY(v1_put(req, http_reply_writer(req), r));
    http_reply_written(req, 200);
    return NULL;
}

struct listing {
    struct http_req *req;
    struct str status; /* .p NULL: all */
    struct jw *w;
    struct err *e;
};

static void list_one(void *arg, struct runtime *r)
{
    struct listing *l = arg;

    if (!l->e && (!l->status.p || str_eq(l->status, str_of(sm_name(&r->status)))))
        l->e = put_as(l->req, l->w, r, true);
}

/* ?status=all, or one of its words; without: those that are not stopped. */
static fallible handle_list(struct http_req *req)
{
    struct str status = http_req_query(req, "status");
    bool all = str_eq(status, STR("all"));
    struct listing l = {.req = req, .status = all ? (struct str){0} : status};
    const struct key *key;

    TRY(v1_check(req, KEY_RUNTIME | KEY_READ, &key));
    l.w = http_reply_writer(req);
    JW_OBJECT(l.w, NULL)
        JW_ARRAY(l.w, "sandboxes")
            manager_each(v1_api(req)->manager, v1_whose(key), status.p != NULL, list_one, &l);
    if (!l.e)
        http_reply_written(req, 200);
    return l.e;
}

/* --- what is asked of it --- */

static fallible v1_ask(struct http_req *req, enum runtime_op op, bool quiet)
{
    struct runtime *r;
    struct asking *a = NULL;

    TRY(v1_find(req, KEY_RUNTIME, &r));
    TRY(asking_new(v1_api(req), req, quiet ? NULL : v1_put, &a));
    manager_ask(r, op, &a->ask);
    return NULL;
}

static fallible handle_pause(struct http_req *req)
{
    return v1_ask(req, RUNTIME_PAUSE, false);
}

static fallible handle_resume(struct http_req *req)
{
    return v1_ask(req, RUNTIME_RESUME, false);
}

static fallible handle_stop(struct http_req *req)
{
    return v1_ask(req, RUNTIME_HALT, false);
}

static fallible handle_delete(struct http_req *req)
{
    return v1_ask(req, RUNTIME_REMOVE, true);
}

static fallible take_wants(struct http_req *req, const struct key *key, const struct json *body,
                           struct wire_start *start)
{
    struct wire_wants *wants = arena_new(&req->arena, struct wire_wants);
    bool any = false;

    TRY(arena_check(&req->arena));
    TRY(wire_decode_wants(body, wants, &any));
    if (!any)
        return NULL;
    TRY(manager_check_wants(v1_api(req)->manager, key, wants));
    start->wants = wants;
    return NULL;
}

static fallible handle_create(struct http_req *req)
{
    static const char *const known[] = {"image",
                                        "session_id",
                                        "command",
                                        "environment",
                                        "working_dir",
                                        "memory",
                                        "disk",
                                        "cpus",
                                        "pids",
                                        "hostname",
                                        "mounts",
                                        "from",
                                        "resource_factor",
                                        "run_as_user",
                                        "run_as_group",
                                        "fs_group",
                                        "runtime_class",
                                        "image_pull_policy",
                                        NULL};
    struct asking *a = NULL;
    struct json *body;

    TRY(asking_new(v1_api(req), req, v1_put, &a));
    TRY(v1_check(req, KEY_RUNTIME, &a->key));
    TRY(body_json(req, &body));
    TRY(wire_check_known(body, "", known));
    TRY(wire_decode_start(body, &a->start));
    TRY(v1_take_from(req, a->key, body, &a->start));
    TRY(take_wants(req, a->key, body, &a->start));
    return asking_start(a);
}

/* Null: not counted, as for an ordinary user without control groups. */
static void put_counted(struct jw *w, const char *key, bool counted, uint64_t n)
{
    if (counted)
        jw_uint(w, key, n);
    else
        jw_null(w, key);
}

static void on_measured(struct runtime_ask *ask, struct runtime *r, struct err *e)
{
    struct http_req *req = container_of(ask, struct asking, ask)->req;

    if (e) {
        http_reply_err(req, e);
        return;
    }
    const struct sbx_usage *u = &r->sbx->usage;
    struct jw *w = http_reply_writer(req);
    JW_OBJECT(w, NULL) {
        put_counted(w, "memory_bytes", u->memory_bytes, u->memory_bytes);
        put_counted(w, "cpu_ns", u->cpu_ns, u->cpu_ns);
        put_counted(w, "pids", u->pids, u->pids);
        put_counted(w, "oom_kills", u->memory_bytes, u->oom_kills);
    }
    http_reply_written(req, 200);
}

static fallible handle_stats(struct http_req *req)
{
    struct runtime *r;
    struct asking *a = NULL;

    TRY(v1_find(req, KEY_RUNTIME | KEY_READ, &r));
    TRY(asking_new(v1_api(req), req, v1_put, &a));
    a->ask.done = on_measured;
    manager_ask(r, RUNTIME_MEASURE, &a->ask);
    return NULL;
}

/* --- pools --- */

static void describe_pool(const struct pool_info *info, struct wire_pool *ret)
{
    *ret = (struct wire_pool){
        .name = info->name,
        .image = info->image,
        .target = info->target,
        .ceiling = info->ceiling,
        .ready = info->ready,
        .starting = info->making,
        .hits = info->hits,
    };
    for (size_t i = 0; i < POOL_MISSES; i++)
        if (i != POOL_HIT) {
            ret->misses[ret->miss_count].reason = str_of(pool_miss_words[i]);
            ret->misses[ret->miss_count++].count = info->misses[i];
        }
}
_Static_assert(POOL_MISSES - 1 <= WIRE_MISSES, "every reason has a place on the wire");

static void put_pool(void *arg, const struct pool_info *info)
{
    struct wire_pool p;

    describe_pool(info, &p);
    wire_put_pool(arg, &p);
}

static void put_common_pool(void *arg, const struct pool_info *info)
{
    if (info->wire.p)
        put_pool(arg, info);
}

/* Which images others start again and again is for administrators to know. */
static fallible handle_pools(struct http_req *req)
{
    const struct key *key;

    TRY(v1_check(req, KEY_RUNTIME | KEY_READ, &key));
    struct jw *w = http_reply_writer(req);
    JW_OBJECT(w, NULL)
        JW_ARRAY(w, "pools")
            pool_each(v1_api(req)->manager, v1_whose(key) ? put_common_pool : put_pool, w);
    http_reply_written(req, 200);
    return NULL;
}

struct pool_wanted {
    struct str name;
    struct jw *w;
};

static void put_wanted(void *arg, const struct pool_info *info)
{
    const struct pool_wanted *p = arg;

    if (str_eq(info->name, p->name))
        put_pool(p->w, info);
}

static fallible handle_set_pool(struct http_req *req)
{
    static const char *const known[] = {"target", "ceiling", NULL};
    struct pool_wanted wanted = {.name = http_req_param(req, "name")};
    const struct key *key;
    struct json *body;

    TRY(v1_check(req, KEY_ADMIN, &key));
    TRY(body_json(req, &body));
    TRY(wire_check_known(body, "", known));
    TRY(pool_change(v1_api(req)->manager, wanted.name, body));
    wanted.w = http_reply_writer(req);
    pool_each(v1_api(req)->manager, put_wanted, &wanted);
    http_reply_written(req, 200);
    return NULL;
}

/* --- for whoever runs it --- */

bool v1_is_welcome(const struct http_req *req)
{
    return keys_shown(v1_api(req)->keys, req) != NULL;
}

static fallible handle_events(struct http_req *req)
{
    const struct v1 *v = req->owner;
    const struct key *key;

    TRY(v1_check(req, KEY_RUNTIME | KEY_READ, &key));
    const struct key *only = v1_whose(key);
    return journal_follow(v->watch->journal, req, only ? str_of(key_tenant(only)) : (struct str){0},
                          v1_is_welcome);
}

#define SANDBOXES "/croft/v1/sandboxes"
static const struct route routes[] = {
    {"GET", SANDBOXES, handle_list},
    {"POST", SANDBOXES, handle_create, .body_bytes = BODY_BYTES},
    {"GET", SANDBOXES "/{id}", handle_get},
    {"DELETE", SANDBOXES "/{id}", handle_delete},
    {"POST", SANDBOXES "/{id}/pause", handle_pause},
    {"POST", SANDBOXES "/{id}/resume", handle_resume},
    {"POST", SANDBOXES "/{id}/stop", handle_stop},
    {"GET", SANDBOXES "/{id}/logs", v1_handle_logs},
    {"GET", SANDBOXES "/{id}/stats", handle_stats},
    {"POST", SANDBOXES "/{id}/snapshot", v1_handle_snapshot},
    {"POST", SANDBOXES "/{id}/fork", v1_handle_fork},
    {"GET", SANDBOXES "/{id}/diff", v1_handle_diff},
    {"POST", SANDBOXES "/{id}/apply", v1_handle_apply, .body_bytes = BODY_BYTES},
    {"POST", SANDBOXES "/{id}/rollback", v1_handle_rollback},
    {"GET", "/croft/v1/snapshots", v1_handle_snapshots},
    {"DELETE", "/croft/v1/snapshots/{name}", v1_handle_snapshot_delete},
    {"GET", "/croft/v1/pool", handle_pools},
    {"PATCH", "/croft/v1/pool/{name}", handle_set_pool},
    {"GET", "/croft/v1/events", handle_events},
    {"GET", "/metrics", v1_handle_metrics, .flags = ROUTE_OPEN},
    {"GET", "/internal/metrics", v1_handle_metrics, .flags = ROUTE_OPEN},
};

static fallible v1_open(struct host *h, void **ret_state)
{
    struct v1 *v = mem_new(sizeof *v);

    *v = (struct v1){.api = host_part(h, "runtime"), .watch = watch_of(h)};
    *ret_state = v;
    return NULL;
}

static void v1_close(void *v1)
{
    free(v1);
}

HOST_PART(v1) = {
    .name = "v1",
    .needs = PART_NEEDS("runtime", "watch"),
    .routes = routes,
    .route_count = ARRAY_LEN(routes),
    .open = v1_open,
    .close = v1_close,
};
