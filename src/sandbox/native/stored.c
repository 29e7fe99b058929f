// SPDX-License-Identifier: Apache-2.0
/* stored.c — the launcher's snapshots: which there are, and away with one. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "sandbox/native/inner.h"
#include "sandbox/sandbox.h"

struct stored {
    struct native_call call;
    struct sbx_question *question;
};

static struct stored *stored_new(struct sbx_question *q)
{
    struct stored *s = mem_new(sizeof *s);

    s->question = q;
    list_init(&s->call.link);
    q->mine = s;
    return s;
}

static fallible ask(struct stored *s, enum native_op op, const char *name,
                    void (*fn)(struct native_call *c, const struct native_reply *r, int *fds,
                               struct err *e))
{
    struct native_driver *d = container_of(s->question->driver, struct native_driver, base);
    struct native_request req = {.op = op};

    snprintf(req.snapshot, sizeof req.snapshot, "%s", name);
    return native_call(d, &s->call, &req, NULL, 0, fn);
}

/* A full answer may not be the whole: it is asked for what comes after its last name. */
static void on_names(struct native_call *c, const struct native_reply *r, int *fds, struct err *e)
{
    struct stored *s = container_of(c, struct stored, call);
    struct sbx_question *q = s->question;
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
        e = ask(s, NATIVE_SNAPSHOT_LIST, last, on_names);
    if (e || n < NATIVE_LIST_MAX)
        sbx_question_finish(q, e);
}

fallible native_snapshot_list(struct sbx_question *q)
{
    return ask(stored_new(q), NATIVE_SNAPSHOT_LIST, "", on_names);
}

static void on_removed(struct native_call *c, const struct native_reply *r, int *fds, struct err *e)
{
    (void)r, (void)fds;
    sbx_question_finish(container_of(c, struct stored, call)->question, e);
}

fallible native_snapshot_remove(struct sbx_question *q)
{
    if (!native_id_ok(q->name, sizeof q->name))
        return err_new(ERR_NOT_FOUND, "no snapshot '%.80s'", q->name);
    return ask(stored_new(q), NATIVE_SNAPSHOT_REMOVE, q->name, on_removed);
}
