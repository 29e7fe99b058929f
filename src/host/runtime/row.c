// SPDX-License-Identifier: Apache-2.0
/* row.c — a runtime's row. A client's request is stored as it came. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "host/runtime/hooks.h"
#include "host/runtime/inner.h"
#include "host/runtime/row.h"
#include "host/runtime/start.h"

#define JSON_BYTES (4u << 20)

STORE_TABLE(runtimes) = {
    .name = "runtimes",
    .columns = {{"seq", STORE_INT, true}, /* the manager's number of it: in the order of starts */
                {"id", STORE_TEXT, true},
                {"session_id", STORE_TEXT, true},
                {"key_name", STORE_TEXT, true},
                {"status", STORE_TEXT, true},
                {"status_detail", STORE_TEXT, false},
                {"image", STORE_TEXT, true},
                {"command", STORE_TEXT, false}, /* JSON: array, string or null, as asked */
                {"working_dir", STORE_TEXT, false},
                {"environment", STORE_TEXT, false}, /* JSON object */
                {"session_key", STORE_TEXT, true},  /* clients read it back: it is not hashed */
                {"resource_factor", STORE_INT, true},
                {"run_as_user", STORE_INT, false},
                {"run_as_group", STORE_INT, false},
                {"fs_group", STORE_INT, false},
                {"pool", STORE_TEXT, false}, /* it was claimed from; NULL: cold */
                {"port", STORE_INT, false},  /* of its loopback listener */
                {"created_ms", STORE_INT, true},
                {"changed_ms", STORE_INT, true},
                {"snapshot", STORE_TEXT, false},     /* it was started from; NULL: none */
                {"wants", STORE_TEXT, false},        /* JSON object: limits, hostname, mounts */
                {"image_config", STORE_TEXT, false}, /* JSON object: Env, WorkingDir, User */
                {"inner_key", STORE_TEXT, false},    /* NULL: session_key is */
                {"restart_count", STORE_INT, true},
                {"restart_reasons", STORE_TEXT, false}, /* JSON array */
                {"stopped_ms", STORE_INT, false},
                {"timeline", STORE_TEXT, false},  /* JSON: phases of its start */
                {"old_keys", STORE_TEXT, false}}, /* before session_key, until that is used */
};
#define TABLE (&store_tables_runtimes)
enum {
    SEQ,
    ID,
    SESSION,
    KEY_OF,
    STATUS,
    DETAIL,
    IMAGE,
    COMMAND,
    WORKING_DIR,
    ENVIRONMENT,
    SESSION_KEY,
    FACTOR,
    USER,
    GROUP,
    FS_GROUP,
    POOL,
    PORT,
    CREATED,
    CHANGED,
    SNAPSHOT,
    WANTS,
    IMAGE_CONFIG,
    INNER_KEY,
    RESTARTS,
    RESTART_REASONS,
    STOPPED,
    TIMELINE,
    OLD_KEYS,
};

static struct store *row_store(const struct runtime *r)
{
    return r->manager->config.store;
}

static struct store_value row_text(const char *s)
{
    return store_text(str_of(s));
}

static struct store_value number_or_null(int64_t n)
{
    return n < 0 ? store_null() : store_int(n);
}

static struct store_value json_text(struct buf *b, const struct json *v)
{
    if (!v)
        return store_null();
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
    const struct store_field fields[] = {
        {"id", row_text(r->id)},
        {"session_id", row_text(r->session_id)},
        {"key_name", row_text(r->tenant->name)},
        {"status", row_text(sm_name(&r->status))},
        {"status_detail", row_text(r->detail)},
        {"image", row_text(r->image)},
        {"command", json_text(&command, start->command)},
        {"working_dir", store_text(start->working_dir)},
        {"environment", json_text(&environment, start->environment)},
        {"session_key", row_text(r->keys.session)},
        {"resource_factor", store_int(r->factor)},
        {"run_as_user", number_or_null(start->run_as_user)},
        {"run_as_group", number_or_null(start->run_as_group)},
        {"fs_group", number_or_null(start->fs_group)},
        {"pool", row_text(r->pool)},
        {"port", store_int(r->port)},
        {"created_ms", store_int((int64_t)r->created_ms)},
        {"changed_ms", store_int((int64_t)r->changed_ms)},
        {"snapshot", store_text(start->from)},
        {"wants", row_text(r->wants)},
        {"image_config", json_text(&config, start->image_config)},
    };
    const struct store_change row = {.table = TABLE,
                                     .key = store_int(r->row),
                                     .fields = fields,
                                     .count = ARRAY_LEN(fields),
                                     .when = STORE_IF_NEW};
    store_change(row_store(r), &row, 1, done, r);
}

static void row_set(const struct runtime *r, const struct store_field *fields, size_t count,
                    store_done *done, void *arg)
{
    store_update(row_store(r), TABLE, store_int(r->row), fields, count, done, arg);
}

/* Microseconds, in the order of enum runtime_phase, then how it was started and why not warm;
 * nothing of one that did not start yet. */
static struct store_value row_timeline(const struct runtime *r, struct buf *b)
{
    bool any = false;

    for (size_t i = 0; i < RUNTIME_PHASES; i++) {
        any |= r->timeline.phase_us[i] > 0;
        buf_addf(b, "%c%u", i ? ',' : '[', r->timeline.phase_us[i]);
    }
    buf_addf(b, ",\"%s\",\"%s\"]", runtime_launch_names[r->timeline.launch],
             pool_miss_names[r->timeline.miss]);
    return any ? store_text(buf_str(b)) : store_null();
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
    r->timeline.launch = launch < 0 ? r->timeline.launch : (uint8_t)launch;
    r->timeline.miss = miss < 0 ? r->timeline.miss : (uint8_t)miss;
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
            r->timeline.phase_us[i] = (uint32_t)us;
    }
    read_launch(r, rest);
}

void row_update(struct runtime *r, store_done *done)
{
    own_done(buf) phases;

    buf_init(&phases, 256);
    bool stopped = r->status.now == RUNTIME_STOPPED;
    struct store_value timeline = row_timeline(r, &phases);
    const struct store_field fields[] = {
        {"status", row_text(sm_name(&r->status))},
        {"status_detail", row_text(r->detail)},
        {"changed_ms", store_int((int64_t)r->changed_ms)},
        {"restart_count", store_int(r->restarts.count)},
        {"stopped_ms", stopped ? store_int((int64_t)r->changed_ms) : store_null()},
        {"restart_reasons", row_text(r->restarts.server_died ? "[\"died\"]" : NULL)},
        {"timeline", timeline}, /* last: of one that did not start the old one stays */
    };
    row_set(r, fields, ARRAY_LEN(fields) - (timeline.type == STORE_NULL), done, r);
}

void row_set_port(struct runtime *r)
{
    row_set(r, &(struct store_field){"port", store_int(r->port)}, 1, NULL, NULL);
}

void row_set_config(const struct runtime *r, const struct json *config)
{
    own_done(buf) text;

    buf_init(&text, JSON_BYTES);
    row_set(r, &(struct store_field){"image_config", json_text(&text, config)}, 1, NULL, NULL);
}

void row_set_key(struct runtime *r, const char *key, const char old[2][RUNTIME_KEY_LEN + 1],
                 store_done *done)
{
    char both[2 * (RUNTIME_KEY_LEN + 1)];

    snprintf(both, sizeof both, "%s%s%s", old[0], old[1][0] ? " " : "", old[1]);
    const struct store_field fields[] = {{"session_key", row_text(key)},
                                         {"inner_key", row_text(r->keys.inner)},
                                         {"old_keys", row_text(both)}};
    row_set(r, fields, ARRAY_LEN(fields), done, r);
}

void row_forget_old_keys(struct runtime *r)
{
    row_set(r, &(struct store_field){"old_keys", store_null()}, 1, NULL, NULL);
}

void row_delete(const struct runtime *r)
{
    store_delete(row_store(r), TABLE, store_int(r->row), NULL, NULL);
}

/* --- reading --- */

struct reading {
    struct manager *m;
    row_fn *fn;
    store_done *done;
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

    for (size_t i = 0; i < ARRAY_LEN(r->keys.old) && rest.len; i++) {
        str_cut(&rest, ' ', &one);
        copy_text(r->keys.old[i], sizeof r->keys.old[i],
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

static fallible on_row(void *arg, const struct store_value *v)
{
    struct reading *reading = arg;
    char id[RUNTIME_ID_LEN + 1], tenant[KEY_NAME_SIZE];

    copy_text(id, sizeof id, &v[ID]);
    copy_text(tenant, sizeof tenant, &v[KEY_OF]);
    struct runtime *r =
        runtime_new(reading->m, tenant_get(reading->m, tenant), id, status_of(v[STATUS].text));
    r->session_id = dup_text(&v[SESSION]);
    r->detail = dup_text(&v[DETAIL]);
    r->image = dup_text(&v[IMAGE]);
    copy_text(r->keys.session, sizeof r->keys.session, &v[SESSION_KEY]);
    copy_text(r->keys.inner, sizeof r->keys.inner,
              &v[v[INNER_KEY].type == STORE_TEXT ? INNER_KEY : SESSION_KEY]);
    read_old_keys(r, &v[OLD_KEYS]);
    runtime_set_keys(r);
    r->factor = (uint16_t)v[FACTOR].i;
    r->port = (uint16_t)v[PORT].i;
    r->restarts.count = (uint8_t)v[RESTARTS].i;
    r->restarts.server_died = v[RESTART_REASONS].type == STORE_TEXT;
    r->created_ms = (uint64_t)v[CREATED].i;
    r->changed_ms = (uint64_t)v[CHANGED].i;
    r->pool = dup_text(&v[POOL]);
    r->timeline.launch = r->pool ? RUNTIME_WARM : RUNTIME_COLD;
    r->wants = dup_text(&v[WANTS]);
    read_timeline(r, &v[TIMELINE]);
    r->row = reading->m->last_row = v[SEQ].i;
    r->durable = true;
    reading->fn(reading->m, r, v);
    return NULL;
}

static void on_rows(void *arg, struct err *e)
{
    struct reading *reading = arg;

    reading->done(reading->m, e ? err_wrap(e, "the rows of runtimes") : NULL);
    free(reading);
}

void row_load(struct manager *m, row_fn *fn, store_done *done)
{
    struct reading *reading = mem_new(sizeof *reading);

    *reading = (struct reading){m, fn, done};
    store_each(m->config.store, TABLE, on_row, on_rows, reading);
}

static fallible read_json(struct arena *a, const struct store_value *v, const struct json **ret)
{
    struct json *tree = NULL;

    if (v->type == STORE_TEXT)
        TRY(json_parse(a, arena_copy(a, v->text), NULL, &tree));
    *ret = tree;
    return arena_check(a);
}

static int64_t number_of(const struct store_value *v)
{
    return v->type == STORE_INT ? v->i : -1;
}

static struct str text_of(struct arena *a, const struct store_value *v)
{
    return v->type == STORE_TEXT ? arena_copy(a, v->text) : (struct str){0};
}

fallible row_spec(const struct store_value *v, struct arena *a, struct wire_start *ret)
{
    struct wire_start start = {.image = text_of(a, &v[IMAGE]),
                               .session_id = text_of(a, &v[SESSION]),
                               .working_dir = text_of(a, &v[WORKING_DIR]),
                               .resource_factor = v[FACTOR].i,
                               .run_as_user = number_of(&v[USER]),
                               .run_as_group = number_of(&v[GROUP]),
                               .fs_group = number_of(&v[FS_GROUP]),
                               .from = text_of(a, &v[SNAPSHOT])};

    TRY(read_json(a, &v[COMMAND], &start.command));
    TRY(read_json(a, &v[ENVIRONMENT], &start.environment));
    TRY(read_json(a, &v[IMAGE_CONFIG], &start.image_config));
    if (v[WANTS].type == STORE_TEXT)
        TRY(wants_read(a, v[WANTS].text, &start.wants));
    TRY(arena_check(a));
    *ret = start;
    return NULL;
}

struct spec_reading {
    struct arena *a;
    struct wire_start start;
    char id[RUNTIME_ID_LEN + 1];
    runtime_spec_done *done;
    void *arg;
};

static fallible on_spec(void *arg, const struct store_value *v)
{
    struct spec_reading *s = arg;

    return row_spec(v, s->a, &s->start);
}

static void on_spec_read(void *arg, struct err *e)
{
    struct spec_reading *s = arg;

    if (e && err_code(e) == ERR_NOT_FOUND) {
        err_free(e);
        e = err_new(ERR_NOT_FOUND, "runtime '%s' has no row", s->id);
    }
    s->done(s->arg, &s->start, e);
    free(s);
}

void runtime_read_spec(const struct runtime *r, struct arena *a, runtime_spec_done *done, void *arg)
{
    struct spec_reading *s = mem_new(sizeof *s);

    *s = (struct spec_reading){.a = a, .done = done, .arg = arg};
    memcpy(s->id, r->id, sizeof s->id);
    store_get(row_store(r), TABLE, store_int(r->row), on_spec, on_spec_read, s);
}
