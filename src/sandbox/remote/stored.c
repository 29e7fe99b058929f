// SPDX-License-Identifier: Apache-2.0
/* stored.c — snapshots at the other server, which is a croft: their names are that server's rows,
 * of the key we show. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sandbox/remote/inner.h"
#include "wire/remote.h"

#define SNAPSHOTS "/croft/v1/snapshots"

/* --- taking one --- */

static bool is_ours(const struct remote *r, const struct json *body, struct str name)
{
    struct str one, sandbox;

    for (const struct json *s = wire_remote_snapshots(body); s; s = s->next) {
        wire_decode_remote_snapshot(s, &one, &sandbox);
        if (str_eq(one, name) && str_eq(sandbox, str_of(r->runtime_id)))
            return true;
    }
    return false;
}

static void on_listed(struct remote *r, const struct json *body, struct err *e)
{
    struct str name = str_of(r->wanted);

    if (!e && !is_ours(r, body, name))
        e = err_new(ERR_CONFLICT, "there is a snapshot '" STR_FMT "' already", STR_ARG(name));
    sbx_finish(&r->base, e);
}

/* Asked twice, because the first answer was lost: is it there by now, and of this sandbox? */
static void on_taken(struct remote *r, const struct json *body, struct err *e)
{
    (void)body;
    if (!e || err_code(e) != ERR_CONFLICT || r->call.tries.count < 2) {
        if (e && err_code(e) == ERR_NOT_FOUND)
            remote_end_if_gone(r, e);
        else
            sbx_finish(&r->base, e);
        return;
    }
    err_free(e);
    buf_reset(&r->call.body);
    e = remote_call(r, "GET", SNAPSHOTS, on_listed);
    if (e)
        sbx_finish(&r->base, e);
}

fallible remote_snapshot(struct sbx *s, struct str name)
{
    struct remote *r = container_of(s, struct remote, base);

    if (!sbx_is_snapshot_name(name))
        return err_new(ERR_INVALID,
                       "the name of a snapshot: letters, digits, '-', '_' and '.', "
                       "not a dot or a dash first, at most %d of them",
                       SBX_ID_MAX);
    if (!r->runtime_id[0])
        return err_new(ERR_CONFLICT, "sandbox '%s' was never started: it has no files", s->id);
    snprintf(r->wanted, sizeof r->wanted, STR_FMT, STR_ARG(name));
    return remote_call_name(r, "/snapshot", name, on_taken);
}

/* --- queries --- */

struct ask {
    struct remote_call call;
    struct sbx_query *query;
    struct list link;
};

static void ask_free(struct ask *a)
{
    remote_call_done(&a->call);
    list_del(&a->link);
    free(a);
}

void remote_drop_asks(struct remote_driver *d)
{
    LIST_EACH(a, &d->asks, struct ask, link)
        ask_free(a);
}

static fallible stored_ask(struct sbx_query *q, const char *method, const char *path,
                           remote_answered *answered)
{
    struct remote_driver *d = container_of(q->driver, struct remote_driver, base);
    struct ask *a = mem_new(sizeof *a);

    a->query = q;
    list_add(&d->asks, &a->link);
    remote_call_init(&a->call, d, "");
    struct err *e = remote_call_send(&a->call, method, path, answered);
    if (e)
        ask_free(a);
    return e;
}

static void stored_finish(struct remote_call *c, struct err *e)
{
    struct ask *a = container_of(c, struct ask, call);

    sbx_query_finish(a->query, e);
    ask_free(a);
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static void on_names(struct remote_call *c, const struct json *body, struct err *e)
{
    struct sbx_query *q = container_of(c, struct ask, call)->query;
    const struct json *first = wire_remote_snapshots(body);
    struct str sandbox;
    size_t count = 0, n = 0;

    for (const struct json *s = first; s; s = s->next)
        count++;
    own_free struct str *names = mem_new((count + 1) * sizeof *names);
    for (const struct json *s = first; s; s = s->next)
        wire_decode_remote_snapshot(s, &names[n++], &sandbox);
    qsort(names, count, sizeof *names, by_name);
    for (size_t i = 0; i < count; i++) {
        buf_add(&q->names, names[i]);
        buf_add_char(&q->names, '\0');
    }
    q->count = count;
    stored_finish(c, e);
}

fallible remote_snapshot_list(struct sbx_query *q)
{
    return stored_ask(q, "GET", SNAPSHOTS, on_names);
}

static void on_removed(struct remote_call *c, const struct json *body, struct err *e)
{
    (void)body;
    if (e && err_code(e) == ERR_NOT_FOUND && c->tries.count > 1) { /* by the attempt before */
        err_free(e);
        e = NULL;
    }
    stored_finish(c, e);
}

fallible remote_snapshot_remove(struct sbx_query *q)
{
    char path[sizeof SNAPSHOTS + sizeof q->name];

    if (!sbx_is_snapshot_name(str_of(q->name)))
        return err_new(ERR_NOT_FOUND, "no snapshot has such a name");
    snprintf(path, sizeof path, SNAPSHOTS "/%s", q->name);
    return stored_ask(q, "DELETE", path, on_removed);
}
