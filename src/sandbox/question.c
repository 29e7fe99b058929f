// SPDX-License-Identifier: Apache-2.0
/* question.c — what is asked of a driver and is not about one sandbox: its snapshots, its images.
 *
 * Anybody who may look for an image may do so a thousand times at once: only a few are asked at a
 * time, the others wait. (A launcher's socket holds two dozen requests. One more, and we wait for
 * it while it waits for us.) */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sandbox/sandbox.h"

#define NAMES_BYTES (16u << 20)
#define ASKING_MOST 4

void sbx_question_drop(struct sbx_question *q)
{
    loop_later_cancel(&q->answer);
    sbx_wait_over(&q->waiter);
    list_del(&q->sibling);
    err_free(q->result);
    buf_done(&q->names);
    free(q->mine);
    free(q);
}

static void question_begin(struct sbx_question *q)
{
    q->driver->asking++;
    struct err *e = take(&q->call)(q);
    if (e)
        sbx_question_finish(q, e);
}

static void begin_next(struct sbx_driver *d)
{
    LIST_EACH(q, &d->questions, struct sbx_question, sibling) {
        if (d->asking >= ASKING_MOST)
            break;
        if (q->call)
            question_begin(q);
    }
}

static void on_answer(struct loop_later *l)
{
    struct sbx_question *q = container_of(l, struct sbx_question, answer);
    size_t count = q->result ? 0 : q->count;

    q->driver->asking--;
    begin_next(q->driver);
    sbx_wait_over(&q->waiter);
    if (q->listed) /* from malloc, so aligned for anything */
        q->listed(q->arg, count ? (const struct sbx_listed *)(const void *)q->names.p : NULL, count,
                  q->result);
    else
        q->done(q->arg, count ? q->names.p : "", count, q->result);
    sbx_question_drop(q);
}

void sbx_question_finish(struct sbx_question *q, struct err *e)
{
    q->result = e ? e : buf_check(&q->names);
    loop_later(q->driver->host->loop, &q->answer, on_answer);
}

static struct sbx_question *question_new(struct sbx_driver *d, void *arg)
{
    struct sbx_question *q = mem_new(sizeof *q);

    *q = (struct sbx_question){.driver = d, .arg = arg, .file = -1};
    buf_init(&q->names, NAMES_BYTES);
    list_init(&q->sibling);
    return q;
}

/* A file is lent for the call only: who gives one does not wait, and has his own bounds. */
static void question_pose(struct sbx_question *q, fallible (*call)(struct sbx_question *q))
{
    list_add(&q->driver->questions, &q->sibling);
    q->call = call;
    if (q->driver->asking < ASKING_MOST || q->file >= 0)
        question_begin(q);
}

static void on_nobody(void *arg, const char *names, size_t count, const struct err *e)
{
    (void)arg, (void)names, (void)count, (void)e;
}

/* What is not asked yet need not be; what is, is answered some day, to nobody. */
static void on_give_up(struct sbx_waiter *w)
{
    struct sbx_question *q = container_of(w, struct sbx_question, waiter);
    own(err) why = sbx_check_silent(q->driver, "try again");
    sbx_answered *done = q->done;
    void *arg = q->arg;

    q->done = on_nobody;
    if (q->call)
        sbx_question_drop(q);
    done(arg, "", 0, why);
}

fallible sbx_list(struct sbx_driver *d, sbx_list_done *done, void *arg)
{
    if (!(d->caps & SBX_CAN_LIST))
        return err_new(ERR_UNSUPPORTED, "backend '%s' cannot list its sandboxes here",
                       d->backend->name);
    struct sbx_question *q = question_new(d, arg);
    q->listed = done;
    question_pose(q, d->backend->survivors->list);
    return NULL;
}

static fallible question_ask(struct sbx_driver *d, fallible (*call)(struct sbx_question *q),
                             const char *what, struct str name, int file, bool waits,
                             sbx_answered *done, void *arg)
{
    if (!call)
        return err_new(ERR_UNSUPPORTED, "backend '%s' has no %ss here", d->backend->name, what);
    struct sbx_question *q = question_new(d, arg);
    q->done = done;
    q->file = file;
    if (name.len >= sizeof q->name || (name.len && memchr(name.p, '\0', name.len))) {
        sbx_question_drop(q);
        return err_new(ERR_NOT_FOUND, "no %s has such a name", what);
    }
    memcpy(q->name, name.len ? name.p : "", name.len);
    struct err *e = waits ? sbx_check_silent(d, "try again") : NULL;
    if (waits && !e)
        e = sbx_wait(d, &q->waiter, on_give_up);
    if (e) {
        sbx_question_drop(q);
        return e;
    }
    question_pose(q, call);
    return NULL;
}

fallible sbx_snapshot_list(struct sbx_driver *d, sbx_answered *done, void *arg)
{
    TRY(sbx_need(d, SBX_CAN_SNAPSHOT, "take snapshots"));
    return question_ask(d, d->backend->snapshots->list, "snapshot", STR(""), -1, false, done, arg);
}

fallible sbx_snapshot_remove(struct sbx_driver *d, struct str name, sbx_answered *done, void *arg)
{
    TRY(sbx_need(d, SBX_CAN_SNAPSHOT, "take snapshots"));
    return question_ask(d, d->backend->snapshots->remove, "snapshot", name, -1, false, done, arg);
}

fallible sbx_image_find(struct sbx_driver *d, struct str name, sbx_answered *done, void *arg)
{
    const struct sbx_image_calls *calls = d->backend->images;

    return question_ask(d, calls ? calls->find : NULL, "image", name, -1, false, done, arg);
}

fallible sbx_image_ask(struct sbx_driver *d, struct str name, sbx_answered *done, void *arg)
{
    const struct sbx_image_calls *calls = d->backend->images;

    return question_ask(d, calls ? calls->find : NULL, "image", name, -1, true, done, arg);
}

fallible sbx_image_import(struct sbx_driver *d, int file, struct str name, sbx_answered *done,
                          void *arg)
{
    const struct sbx_image_calls *calls = d->backend->images;

    return question_ask(d, calls ? calls->import : NULL, "image", name, file, false, done, arg);
}
