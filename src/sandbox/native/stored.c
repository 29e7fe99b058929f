// SPDX-License-Identifier: Apache-2.0
/* stored.c — what the launcher has: sandboxes, snapshots, the store of images. */
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"
#include "sandbox/native/inner.h"
#include "sandbox/sandbox.h"

struct stored {
    struct native_call call;
    struct sbx_query *query;
};

static struct stored *stored_new(struct sbx_query *q)
{
    struct stored *s = mem_new(sizeof *s);

    s->query = q;
    list_init(&s->call.link);
    q->mine = s;
    return s;
}

static fallible stored_ask(struct stored *s, enum native_op op, const char *name,
                           void (*fn)(struct native_call *c, const struct native_reply *r, int *fds,
                                      struct err *e))
{
    struct native_driver *d = container_of(s->query->driver, struct native_driver, base);
    struct native_request req = {.op = op};

    snprintf(op == NATIVE_LIST ? req.id : req.snapshot, NATIVE_ID_MAX, "%s", name);
    return native_call(d, &s->call, &req, NULL, 0, fn);
}

/* A full answer may not be the whole: it is asked for what comes after its last name. */
static void on_names(struct native_call *c, const struct native_reply *r, int *fds, struct err *e)
{
    struct stored *s = container_of(c, struct stored, call);
    struct sbx_query *q = s->query;
    uint32_t n = e || r->count > NATIVE_LIST_MAX ? 0 : r->count;
    const char *last = "";

    (void)fds;
    for (uint32_t i = 0; i < n; i++) {
        last = r->ids[i];
        buf_add_mem(&q->names, last, strnlen(last, NATIVE_ID_MAX - 1));
        buf_add_char(&q->names, '\0');
    }
    q->count += n;
    if (n == NATIVE_LIST_MAX && !e)
        e = stored_ask(s, NATIVE_SNAPSHOT_LIST, last, on_names);
    if (e || n < NATIVE_LIST_MAX)
        sbx_query_finish(q, e);
}

fallible native_snapshot_list(struct sbx_query *q)
{
    return stored_ask(stored_new(q), NATIVE_SNAPSHOT_LIST, "", on_names);
}

static const enum sbx_state states[] = {[NATIVE_RUNNING] = SBX_RUNNING,
                                        [NATIVE_PAUSED] = SBX_PAUSED,
                                        [NATIVE_EXITED] = SBX_STOPPED,
                                        [NATIVE_WAITING] = SBX_WARM};

static void on_list(struct native_call *c, const struct native_reply *r, int *fds, struct err *e)
{
    struct stored *s = container_of(c, struct stored, call);
    struct sbx_query *q = s->query;
    uint32_t n = e || r->count > NATIVE_LIST_MAX ? 0 : r->count;
    struct sbx_listed one = {.id = ""};

    (void)fds;
    for (uint32_t i = 0; i < n; i++) {
        memcpy(one.id, r->ids[i], sizeof one.id);
        one.id[sizeof one.id - 1] = '\0';
        one.state = r->states[i] < ARRAY_LEN(states) ? states[r->states[i]] : SBX_STOPPED;
        buf_add_mem(&q->names, &one, sizeof one);
    }
    q->count += n;
    if (n == NATIVE_LIST_MAX && !e)
        e = stored_ask(s, NATIVE_LIST, one.id, on_list);
    if (e || n < NATIVE_LIST_MAX)
        sbx_query_finish(q, e);
}

fallible native_list(struct sbx_query *q)
{
    return stored_ask(stored_new(q), NATIVE_LIST, "", on_list);
}

static void on_removed(struct native_call *c, const struct native_reply *r, int *fds, struct err *e)
{
    (void)r, (void)fds;
    sbx_query_finish(container_of(c, struct stored, call)->query, e);
}

fallible native_snapshot_remove(struct sbx_query *q)
{
    if (strlen(q->name) >= NATIVE_ID_MAX || !native_id_ok(q->name, sizeof q->name))
        return err_new(ERR_NOT_FOUND, "no snapshot '%.80s'", q->name);
    return stored_ask(stored_new(q), NATIVE_SNAPSHOT_REMOVE, q->name, on_removed);
}

/* --- images --- */

static fallible ask_image(struct stored *s, enum native_op op,
                          void (*fn)(struct native_call *c, const struct native_reply *r, int *fds,
                                     struct err *e))
{
    const struct sbx_query *q = s->query;
    struct native_driver *d = container_of(q->driver, struct native_driver, base);
    struct native_request req = {.op = op};

    snprintf(req.image_name, sizeof req.image_name, "%s", q->name);
    TRY(native_image_check(q->name));
    return native_call(d, &s->call, &req, &q->file, q->file >= 0, fn);
}

static void on_record(struct native_call *c, const struct native_reply *r, int *fds, struct err *e)
{
    struct sbx_query *q = container_of(c, struct stored, call)->query;

    (void)r;
    if (!e && fds[0] < 0)
        e = err_new(ERR_INTERNAL, "the launcher sent no record");
    if (!e)
        e = fd_read_all(fds[0], &q->names);
    if (!e) {
        buf_add_char(&q->names, '\0');
        q->count = 1;
    }
    sbx_query_finish(q, e);
}

fallible native_image_find(struct sbx_query *q)
{
    return ask_image(stored_new(q), NATIVE_IMAGE_FIND, on_record);
}

static void on_imported(struct native_call *c, const struct native_reply *r, int *fds,
                        struct err *e)
{
    struct sbx_query *q = container_of(c, struct stored, call)->query;

    (void)fds;
    if (!e) {
        buf_add_mem(&q->names, r->text, strlen(r->text) + 1);
        q->count = 1;
    }
    sbx_query_finish(q, e);
}

fallible native_image_import(struct sbx_query *q)
{
    return ask_image(stored_new(q), NATIVE_IMAGE_IMPORT, on_imported);
}
