// SPDX-License-Identifier: Apache-2.0
/* row.c — a runtime's row. What a client asked for is kept as it was asked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/runtime/hooks.h"
#include "host/runtime/inner.h"
#include "host/runtime/row.h"
#include "host/runtime/start.h"

#define JSON_BYTES (4u << 20)

static struct store_value row_text(const char *s)
{
    return store_text(str_of(s));
}

static struct store_value number_or_null(int64_t n)
{
    return n < 0 ? (struct store_value){.type = STORE_NULL} : store_int(n);
}

static struct store_value json_text(struct buf *b, const struct json *v)
{
    if (!v)
        return (struct store_value){.type = STORE_NULL};
    json_write(b, v, JW_WEB);
    return store_text(buf_str(b));
}

void row_insert(struct runtime *r, const struct wire_start *start, store_done *done)
{
    own_done(buf) command;
    own_done(buf) environment;
    own_done(buf) config;

    buf_init(&command, JSON_BYTES);
    buf_init(&environment, JSON_BYTES);
    buf_init(&config, JSON_BYTES);
    r->row = ++r->manager->last_row;
    const struct store_value v[] = {
        store_int(r->row),
        row_text(r->id),
        row_text(r->session_id),
        row_text(r->tenant->name),
        row_text(sm_name(&r->status)),
        row_text(r->detail),
        row_text(r->image),
        json_text(&command, start->command),
        store_text(start->working_dir),
        json_text(&environment, start->environment),
        row_text(r->session_key),
        store_int(r->factor),
        number_or_null(start->run_as_user),
        number_or_null(start->run_as_group),
        number_or_null(start->fs_group),
        row_text(r->pool),
        store_int(r->keep),
        store_int(r->port),
        store_int((int64_t)r->created_ms),
        store_int((int64_t)r->changed_ms),
        store_text(start->from),
        row_text(r->wants),
        json_text(&config, start->image_config),
    };
    static const char sql[] =
        "INSERT INTO runtimes (seq, id, session_id, key_name, status, status_detail, image,"
        " command, working_dir, environment, session_key, resource_factor, run_as_user,"
        " run_as_group, fs_group, pool, keep, port, created_ms, changed_ms, snapshot, wants,"
        " image_config)"
        " VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,"
        "?22,?23)";
    store_write(r->manager->config.store, sql, v, ARRAY_LEN(v), done, r);
}

/* Microseconds, in the order of enum runtime_phase, then how it was started and why not warm;
 * nothing of one that did not start yet. */
static struct store_value row_timeline(const struct runtime *r, struct buf *b)
{
    bool any = false;

    for (size_t i = 0; i < RUNTIME_PHASES; i++) {
        any |= r->phase_us[i] > 0;
        buf_addf(b, "%c%u", i ? ',' : '[', r->phase_us[i]);
    }
    buf_addf(b, ",\"%s\",\"%s\"]", runtime_launch_names[r->launch], pool_miss_names[r->miss]);
    return any ? store_text(buf_str(b)) : (struct store_value){.type = STORE_NULL};
}

/* -1: none of them, or not in quotes. */
static int find_word(struct str quoted, const char *const *words, int count)
{
    if (quoted.len < 2 || !str_starts(quoted, STR("\"")) || !str_ends(quoted, STR("\"")))
        return -1;
    for (int i = 0; i < count; i++)
        if (str_eq(str_first(str_from(quoted, 1), quoted.len - 2), str_of(words[i])))
            return i;
    return -1;
}

/* Rows of servers before us do not have it. */
static void read_launch(struct runtime *r, struct str rest)
{
    struct str word;

    str_cut(&rest, ',', &word);
    int launch = find_word(word, runtime_launch_names, RUNTIME_LAUNCHES);
    int miss = find_word(rest, pool_miss_names, POOL_MISSES);
    r->launch = launch < 0 ? r->launch : (uint8_t)launch;
    r->miss = miss < 0 ? r->miss : (uint8_t)miss;
}

static void read_timeline(struct runtime *r, const struct store_value *v)
{
    struct str rest = v->type == STORE_TEXT ? v->text : STR(""), word;
    uint64_t us;

    if (!str_starts(rest, STR("[")) || !str_ends(rest, STR("]")))
        return;
    rest = str_first(str_from(rest, 1), rest.len - 2);
    for (size_t i = 0; i < RUNTIME_PHASES && rest.len; i++) {
        str_cut(&rest, ',', &word);
        if (str_to_u64(word, &us) && us <= UINT32_MAX)
            r->phase_us[i] = (uint32_t)us;
    }
    read_launch(r, rest);
}

void row_update(struct runtime *r, store_done *done)
{
    own_done(buf) phases;

    buf_init(&phases, 256);
    bool stopped = r->status.now == RUNTIME_STOPPED;
    const struct store_value v[] = {
        store_int(r->row),
        row_text(sm_name(&r->status)),
        row_text(r->detail),
        store_int((int64_t)r->changed_ms),
        store_int(r->restarts),
        stopped ? store_int((int64_t)r->changed_ms) : (struct store_value){.type = STORE_NULL},
        row_timeline(r, &phases),
        row_text(r->server_died ? "[\"died\"]" : NULL),
    };
    store_write(r->manager->config.store,
                "UPDATE runtimes SET status=?2, status_detail=?3, changed_ms=?4, restart_count=?5,"
                " stopped_ms=?6, timeline=coalesce(?7, timeline), restart_reasons=?8 WHERE seq=?1",
                v, ARRAY_LEN(v), done, r);
}

void row_set_port(struct runtime *r)
{
    const struct store_value v[] = {store_int(r->row), store_int(r->port)};

    store_write(r->manager->config.store, "UPDATE runtimes SET port=?2 WHERE seq=?1", v,
                ARRAY_LEN(v), NULL, NULL);
}

void row_set_key(struct runtime *r, const char *key, const char old[2][RUNTIME_KEY_LEN + 1],
                 store_done *done)
{
    char both[2 * (RUNTIME_KEY_LEN + 1)];

    snprintf(both, sizeof both, "%s%s%s", old[0], old[1][0] ? " " : "", old[1]);
    const struct store_value v[] = {store_int(r->row), row_text(key), row_text(r->inner_key),
                                    row_text(both)};
    store_write(r->manager->config.store,
                "UPDATE runtimes SET session_key=?2, inner_key=?3, old_keys=?4 WHERE seq=?1", v,
                ARRAY_LEN(v), done, r);
}

void row_forget_old_keys(struct runtime *r)
{
    const struct store_value v[] = {store_int(r->row)};

    store_write(r->manager->config.store, "UPDATE runtimes SET old_keys=NULL WHERE seq=?1", v, 1,
                NULL, NULL);
}

void row_delete(const struct runtime *r)
{
    const struct store_value v[] = {store_int(r->row)};

    store_write(r->manager->config.store, "DELETE FROM runtimes WHERE seq=?1", v, 1, NULL, NULL);
}

/* --- reading --- */

struct reading {
    struct manager *m;
    fallible (*fn)(struct manager *m, struct runtime *r);
};

static char *dup_text(const struct store_value *v)
{
    return v->type == STORE_TEXT ? strndup(v->text.p, v->text.len) : NULL;
}

static void copy_text(char *to, size_t size, const struct store_value *v)
{
    size_t n = v->type == STORE_TEXT ? v->text.len : 0;

    n = n < size ? n : size - 1;
    memcpy(to, n ? v->text.p : "", n);
    to[n] = '\0';
}

static void read_old_keys(struct runtime *r, const struct store_value *v)
{
    struct str rest = v->type == STORE_TEXT ? v->text : STR(""), one;

    for (size_t i = 0; i < ARRAY_LEN(r->old_keys) && rest.len; i++) {
        str_cut(&rest, ' ', &one);
        copy_text(r->old_keys[i], sizeof r->old_keys[i],
                  &(struct store_value){.type = STORE_TEXT, .text = one});
    }
}

static enum runtime_status status_of(struct str word)
{
    static const struct {
        const char *word;
        enum runtime_status status;
    } words[] = {{"starting", RUNTIME_STARTING},
                 {"running", RUNTIME_RUNNING},
                 {"paused", RUNTIME_PAUSED},
                 {"stopped", RUNTIME_STOPPED}};

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (str_eq(word, str_of(words[i].word)))
            return words[i].status;
    return RUNTIME_ERROR;
}

static fallible on_row(void *arg, const struct store_value *v, size_t count)
{
    struct reading *reading = arg;
    char id[RUNTIME_ID_LEN + 1], tenant[KEY_NAME_SIZE];

    (void)count;
    copy_text(id, sizeof id, &v[0]);
    copy_text(tenant, sizeof tenant, &v[2]);
    struct runtime *r =
        runtime_new(reading->m, tenant_get(reading->m, tenant), id, status_of(v[3].text));
    r->session_id = dup_text(&v[1]);
    r->detail = dup_text(&v[4]);
    r->image = dup_text(&v[5]);
    copy_text(r->session_key, sizeof r->session_key, &v[6]);
    copy_text(r->inner_key, sizeof r->inner_key, &v[v[15].type == STORE_TEXT ? 15 : 6]);
    read_old_keys(r, &v[19]);
    runtime_set_keys(r);
    r->factor = (uint16_t)v[7].i;
    r->keep = v[8].i != 0;
    r->port = (uint16_t)v[9].i;
    r->restarts = (uint8_t)v[10].i;
    r->server_died = v[17].type == STORE_TEXT;
    r->created_ms = (uint64_t)v[11].i;
    r->changed_ms = (uint64_t)v[12].i;
    r->pool = dup_text(&v[13]);
    r->launch = r->pool ? RUNTIME_WARM : RUNTIME_COLD;
    r->wants = dup_text(&v[14]);
    read_timeline(r, &v[16]);
    r->row = reading->m->last_row = v[18].i;
    r->durable = true;
    return reading->fn(reading->m, r);
}

fallible row_load(struct manager *m, fallible (*fn)(struct manager *m, struct runtime *r))
{
    struct reading reading = {m, fn};

    return store_read(
        m->config.store,
        "SELECT id, session_id, key_name, status, status_detail, image, session_key,"
        " resource_factor, keep, port, restart_count, created_ms, changed_ms, pool,"
        " wants, inner_key, timeline, restart_reasons, seq, old_keys FROM runtimes ORDER BY"
        " seq",
        NULL, 0, on_row, &reading);
}

struct spec_reading {
    struct arena *a;
    struct wire_start *start;
    bool found;
};

static fallible read_json(struct arena *a, const struct store_value *v, const struct json **ret)
{
    struct json *tree = NULL;

    if (v->type == STORE_TEXT)
        TRY(json_parse(a, arena_copy(a, v->text), NULL, &tree));
    *ret = tree;
    return arena_check(a);
}

static fallible on_spec(void *arg, const struct store_value *v, size_t count)
{
    struct spec_reading *s = arg;

    (void)count;
    s->found = true;
    s->start->image = arena_copy(s->a, v[0].text);
    s->start->session_id = arena_copy(s->a, v[1].text);
    TRY(read_json(s->a, &v[2], &s->start->command));
    if (v[3].type == STORE_TEXT)
        s->start->working_dir = arena_copy(s->a, v[3].text);
    TRY(read_json(s->a, &v[4], &s->start->environment));
    s->start->resource_factor = v[5].i;
    s->start->run_as_user = v[6].type == STORE_INT ? v[6].i : -1;
    s->start->run_as_group = v[7].type == STORE_INT ? v[7].i : -1;
    s->start->fs_group = v[8].type == STORE_INT ? v[8].i : -1;
    if (v[9].type == STORE_TEXT)
        s->start->from = arena_copy(s->a, v[9].text);
    if (v[10].type == STORE_TEXT)
        TRY(wants_read(s->a, v[10].text, &s->start->wants));
    TRY(read_json(s->a, &v[11], &s->start->image_config));
    return arena_check(s->a);
}

fallible runtime_read_spec(const struct runtime *r, struct arena *a, struct wire_start *ret)
{
    struct wire_start start = {0};
    struct spec_reading s = {.a = a, .start = &start};
    const struct store_value row = store_int(r->row);

    TRY(store_read(r->manager->config.store,
                   "SELECT image, session_id, command, working_dir, environment, resource_factor,"
                   " run_as_user, run_as_group, fs_group, snapshot, wants, image_config"
                   " FROM runtimes WHERE seq=?1",
                   &row, 1, on_spec, &s));
    if (!s.found)
        return err_new(ERR_NOT_FOUND, "runtime '%s' has no row", r->id);
    *ret = start;
    return NULL;
}
