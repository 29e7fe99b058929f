// SPDX-License-Identifier: Apache-2.0
/* snapshots.c — see snapshots.h. */
#include "host/runtime/snapshots.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "host/runtime/inner.h"

STORE_TABLE(snapshots) = {
    .name = "snapshots",
    .columns = {{"id", STORE_TEXT, true}, /* by which the backend knows it */
                {"key_name", STORE_TEXT, true},
                {"name", STORE_TEXT, true},
                {"sandbox", STORE_TEXT, true},
                {"image", STORE_TEXT, true},
                {"created_ms", STORE_INT, true}},
    .indexes = {{{"key_name", "name"}, true}, {{"created_ms"}, false}},
};
#define TABLE (&store_tables_snapshots)

static bool is_of(const struct snapshot *s, const struct key *key)
{
    return !key || strcmp(s->tenant, key_tenant(key)) == 0;
}

/* Its removal was asked for; until that is on disk it may yet fail. */
static bool is_going(const struct snapshot *s)
{
    return s->unwanted || s->done;
}

static bool is_hidden(const struct snapshot *s)
{
    return is_going(s) || str_starts(str_of(s->name), STR(SNAPSHOT_HIDDEN));
}

struct snapshot *manager_find_snapshot(const struct manager *m, const struct key *key,
                                       struct str name)
{
    LIST_EACH(s, &m->snapshots, struct snapshot, link)
        if (!is_going(s) && is_of(s, key) && str_eq(str_of(s->name), name))
            return s;
    return NULL;
}

bool manager_has_snapshot(const struct manager *m, struct str id)
{
    LIST_EACH(s, &m->snapshots, struct snapshot, link)
        if (!is_going(s) && str_eq(str_of(s->id), id))
            return true;
    return false;
}

void manager_each_snapshot(const struct manager *m, const struct key *key,
                           void (*fn)(void *arg, const struct snapshot *s), void *arg)
{
    LIST_EACH(s, &m->snapshots, struct snapshot, link)
        if (!is_hidden(s) && is_of(s, key))
            fn(arg, s);
}

static void snapshots_forget(struct snapshot *s)
{
    list_del(&s->link);
    free(s->image);
    free(s);
}

static void on_files_gone(void *arg, const char *names, size_t count, const struct err *e)
{
    struct snapshot *s = arg;

    (void)names, (void)count;
    s->removing = false;
    if (e && err_code(e) != ERR_NOT_FOUND && err_code(e) != ERR_UNSUPPORTED) {
        log_warn("files of a snapshot stay until the next server", KV("id", s->id), KV_ERR(e));
        return;
    }
    store_delete(s->manager->config.store, TABLE, store_text(str_of(s->id)), NULL, NULL);
    snapshots_forget(s);
}

/* While a write has it in hand it is not freed, and keeps its files until its name is off the row.
 */
static void let_go(struct snapshot *s)
{
    if (!s->unwanted || s->taken_now || s->starting || s->removing || s->done ||
        s->manager->config.driver->unsure)
        return;
    s->removing = true;
    struct err *e = sbx_snapshot_remove(s->manager->config.driver, str_of(s->id), on_files_gone, s);
    if (e)
        on_files_gone(s, "", 0, e);
    err_free(e);
}

void manager_drop_frozen(struct snapshot *s)
{
    s->unwanted = true;
    let_go(s);
}

static void on_hidden(void *arg, struct err *e)
{
    struct snapshot *s = arg;
    store_done *done = take(&s->done);
    void *done_arg = s->arg;

    if (e && err_code(e) == ERR_NOT_FOUND) /* it was not begun: its row will be hidden anyway */
        err_free(take(&e));
    s->unwanted |= !e;
    let_go(s);
    done(done_arg, e);
}

static void snapshot_rename(const struct snapshot *s, const char *name, store_done *done, void *arg)
{
    const struct store_field field = {"name", store_text(str_of(name))};

    store_update(s->manager->config.store, TABLE, store_text(str_of(s->id)), &field, 1, done, arg);
}

static void hidden_name(const struct snapshot *s, char name[SNAPSHOT_NAME_MAX + 1])
{
    snprintf(name, SNAPSHOT_NAME_MAX + 1, SNAPSHOT_HIDDEN "%s", s->id);
}

fallible manager_remove_snapshot(struct manager *m, struct snapshot *s, store_done *done, void *arg)
{
    char name[SNAPSHOT_NAME_MAX + 1];

    if (m->config.driver->unsure) /* without its row its files would not be found again */
        return err_new(ERR_BUSY, "who has the files of snapshot '%s' has not answered so far",
                       s->name);
    s->done = done;
    s->arg = arg;
    hidden_name(s, name);
    snapshot_rename(s, name, on_hidden, s);
    return NULL;
}

static struct snapshot *snapshots_hold(struct manager *m, struct str id)
{
    LIST_EACH(s, &m->snapshots, struct snapshot, link)
        if (!s->removing && str_eq(str_of(s->id), id)) {
            s->starting++;
            return s;
        }
    return NULL;
}

void snapshot_let_go(struct snapshot *s)
{
    if (!s)
        return;
    s->starting--;
    let_go(s);
}

void runtime_hold(struct runtime *r, struct str id)
{
    struct snapshot *was = r->op.from;

    r->op.from = snapshots_hold(r->manager, id);
    snapshot_let_go(was);
}

void snapshots_sweep(struct manager *m)
{
    if (m->swept || m->config.driver->unsure)
        return;
    m->swept = true;
    LIST_EACH(s, &m->snapshots, struct snapshot, link)
        let_go(s);
}

void snapshots_free(struct manager *m)
{
    LIST_EACH(s, &m->snapshots, struct snapshot, link)
        snapshots_forget(s);
}

/* --- rows --- */

static void snapshots_copy(char *to, size_t size, struct str s)
{
    snprintf(to, size, STR_FMT, STR_ARG(s));
}

static fallible on_row(void *arg, const struct store_value *v)
{
    struct manager *m = arg;
    struct snapshot *s = mem_new(sizeof *s);

    snapshots_copy(s->id, sizeof s->id, v[0].text);
    snapshots_copy(s->tenant, sizeof s->tenant, v[1].text);
    snapshots_copy(s->name, sizeof s->name, v[2].text);
    snapshots_copy(s->sandbox, sizeof s->sandbox, v[3].text);
    s->image = strndup(v[4].text.p, v[4].text.len);
    s->created_ms = (uint64_t)v[5].i;
    s->manager = m;
    s->unwanted = is_hidden(s);
    list_add(&m->snapshots, &s->link);
    return NULL;
}

void snapshots_load(struct manager *m, store_done *done)
{
    const struct store_query oldest_first = {.table = TABLE, .index = &TABLE->indexes[1]};

    store_find(m->config.store, &oldest_first, on_row, done, m);
}

/* --- taking one --- */

static void observe_taken(const struct runtime *r)
{
    const char *kind = r->sbx->state.now == SBX_STOPPED ? "stopped" : "running";
    uint64_t ns = manager_mono_ns(r->manager) - r->start.begun_ns;

    runtime_observe_snapshot(r, kind, ns);
}

void snapshot_end(struct runtime *r)
{
    struct snapshot *s = take(&r->op.snapshot);

    s->taken_now = false;
    if (!r->op.failed && is_going(s))
        operation_fail(
            r, err_new(ERR_CONFLICT, "snapshot '%s' was removed while it was taken", s->name));
    if (r->op.failed)
        manager_drop_frozen(s); /* what the answer was lost of may be there */
    else
        observe_taken(r);
    operation_finish(r);
}

static void on_named(void *arg, struct err *e)
{
    operation_wrote(arg, e);
}

bool snapshot_answered(struct runtime *r, const struct err *e)
{
    const struct snapshot *s = r->op.snapshot;

    operation_fail(r, e ? err_copy(e) : NULL);
    if (e || is_hidden(s))
        return true;
    r->op.writes++;
    snapshot_rename(s, s->name, on_named, r);
    return true;
}

fallible snapshot_call(struct sbx *s, sbx_done *done, void *arg)
{
    const struct runtime *r = arg;

    return sbx_snapshot(s, str_of(r->op.snapshot->id), done, arg);
}

static void on_noted(void *arg, struct err *e)
{
    struct runtime *r = arg;

    if (!e) {
        operation_enqueue(r);
        return;
    }
    operation_fail(r, e);
    operation_settle(r);
}

void snapshot_begin(struct runtime *r)
{
    struct snapshot *s = take(&r->op.asked->snapshot);
    char name[SNAPSHOT_NAME_MAX + 1];

    r->op.snapshot = s;
    r->start.begun_ns = manager_mono_ns(r->manager);
    operation_note(r);
    hidden_name(s, name);
    const struct store_field fields[] = {{"key_name", store_text(str_of(s->tenant))},
                                         {"name", store_text(str_of(name))},
                                         {"sandbox", store_text(str_of(s->sandbox))},
                                         {"image", store_text(str_of(s->image))},
                                         {"created_ms", store_int((int64_t)s->created_ms)}};
    store_put(r->manager->config.store, TABLE, store_text(str_of(s->id)), fields, ARRAY_LEN(fields),
              on_noted, r);
}

static fallible check_name(struct str name)
{
    if (!name.len || name.len > SNAPSHOT_NAME_MAX)
        return err_new(ERR_UNPROCESSABLE, "name: wanted 1 to %d characters", SNAPSHOT_NAME_MAX);
    static const char set[] = "-_.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    for (size_t i = 0; i < name.len; i++) /* the first is a letter or a digit */
        if (!memchr(i ? set : set + 3, name.p[i], i ? sizeof set - 1 : sizeof set - 4))
            return err_new(ERR_UNPROCESSABLE, "name: letters, digits, and then '-', '_' and '.'");
    return NULL;
}

void manager_freeze(struct runtime *r, struct str name, struct runtime_ask *ask)
{
    struct manager *m = r->manager;
    struct snapshot *s = mem_new(sizeof *s);

    runtime_make_id(s->id);
    snapshots_copy(s->name, sizeof s->name, name);
    snapshots_copy(s->tenant, sizeof s->tenant, str_of(r->tenant->name));
    snapshots_copy(s->sandbox, sizeof s->sandbox, str_of(r->id));
    s->image = mem_dup_cstr(r->image);
    s->created_ms = manager_now_ms(m);
    s->manager = m;
    s->taken_now = true;
    list_add(&m->snapshots, &s->link); /* the name is taken from now on */
    ask->snapshot = s;
    manager_ask(r, RUNTIME_SNAPSHOT, ask);
}

fallible manager_snapshot(struct runtime *r, struct str name, struct runtime_ask *ask)
{
    struct manager *m = r->manager;
    unsigned count = 0;

    TRY(check_name(name));
    LIST_EACH(old, &m->snapshots, struct snapshot, link) {
        if (is_hidden(old) || strcmp(old->tenant, r->tenant->name) != 0)
            continue;
        if (str_eq(str_of(old->name), name))
            return err_new(ERR_CONFLICT, "there is a snapshot '" STR_FMT "' already",
                           STR_ARG(name));
        count++;
    }
    if (m->config.snapshots && count >= m->config.snapshots)
        return err_new(ERR_LIMIT,
                       "key '%s' has %u snapshots, and the limit tenant.most_snapshots is %u: "
                       "remove one first",
                       r->tenant->name, count, m->config.snapshots);
    manager_freeze(r, name, ask);
    return NULL;
}

/* For a request that does not begin after all. */
void runtime_drop_snapshot(struct runtime_ask *ask)
{
    struct snapshot *s = take(&ask->snapshot);

    if (!s)
        return;
    s->taken_now = false;
    manager_drop_frozen(s);
}
