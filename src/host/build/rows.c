// SPDX-License-Identifier: Apache-2.0
/* rows.c — builds in the store: what clients are told, also after a restart. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "host/build/inner.h"
#include "host/store/store.h"

const char *build_status_word(enum build_status s)
{
    static const char *const words[] = {"QUEUED",  "WORKING",        "SUCCESS",
                                        "FAILURE", "INTERNAL_ERROR", "TIMEOUT"};

    return words[s];
}

STORE_TABLE(builds) = {.name = "builds",
                       .columns = {{"id", STORE_TEXT, true},
                                   {"key_name", STORE_TEXT, true},
                                   {"status", STORE_TEXT, true},
                                   {"image", STORE_TEXT, true},
                                   {"tags", STORE_TEXT, false}, /* JSON array */
                                   {"error", STORE_TEXT, false},
                                   {"created_ms", STORE_INT, true},
                                   {"changed_ms", STORE_INT, true}}};
#define TABLE (&store_tables_builds)
enum { KEY_OF = 1, STATUS, IMAGE, TAGS, ERROR, CREATED, CHANGED };

static uint64_t now_ms(const struct builds *b)
{
    return clock_wall_ns(loop_clock(b->config.loop)) / NS_PER_MS;
}

static void put_tags(const struct build *b, struct buf *into)
{
    struct jw w;

    jw_init(&w, into, JW_WEB);
    JW_ARRAY(&w, NULL) {
        for (unsigned i = 0; i < b->tag_count; i++)
            jw_cstr(&w, NULL, b->tags[i]);
    }
}

void build_row_insert(struct build *b, store_done *done, void *arg)
{
    const struct store_value now = store_int((int64_t)now_ms(b->builds));
    own_done(buf) tags;

    buf_init(&tags, 16u << 10);
    put_tags(b, &tags);
    const struct store_field fields[] = {
        {"key_name", store_text(str_of(b->key_name))},
        {"status", store_text(str_of(build_status_word(b->status)))},
        {"image", store_text(str_of(b->tags[0]))},
        {"tags", store_text(buf_str(&tags))},
        {"created_ms", now},
        {"changed_ms", now},
    };
    store_put(b->builds->config.store, TABLE, store_text(str_of(b->id)), fields, ARRAY_LEN(fields),
              done, arg);
}

static void row_update(struct builds *b, struct str id, const char *status, const char *error,
                       store_done *done, void *arg)
{
    const struct store_field fields[] = {
        {"status", store_text(str_of(status))},
        {"error", store_text(str_of(error))},
        {"changed_ms", store_int((int64_t)now_ms(b))},
    };

    store_update(b->config.store, TABLE, store_text(id), fields, ARRAY_LEN(fields), done, arg);
}

void build_row_update(struct build *b)
{
    row_update(b->builds, str_of(b->id), build_status_word(b->status), b->error, NULL, NULL);
}

/* --- reading --- */

struct row_reading {
    char id[BUILD_ID_LEN + 1], tenant[KEY_NAME_SIZE];
    bool admin;
    struct build_row row;
    void (*done)(void *arg, const struct build_row *row, struct err *e);
    void *arg;
};

static fallible on_row(void *arg, const struct store_value *v)
{
    struct row_reading *reading = arg;
    struct build_row *r = &reading->row;

    if (!reading->admin && !str_eq(v[KEY_OF].text, str_of(reading->tenant)))
        return err_new(ERR_NOT_FOUND, "it is another key's");
    snprintf(r->status, sizeof r->status, STR_FMT, STR_ARG(v[STATUS].text));
    snprintf(r->image, sizeof r->image, STR_FMT, STR_ARG(v[IMAGE].text));
    if (v[ERROR].type == STORE_TEXT)
        r->error = strndup(v[ERROR].text.p, v[ERROR].text.len);
    return NULL;
}

static void on_row_read(void *arg, struct err *e)
{
    struct row_reading *reading = arg;

    if (e && err_code(e) == ERR_NOT_FOUND) {
        err_free(e);
        e = err_new(ERR_NOT_FOUND, "build_id: there is no build '%s'", reading->id);
    }
    reading->done(reading->arg, &reading->row, e);
    free(reading->row.error);
    free(reading);
}

void build_row_read(struct builds *b, struct str id, const struct key *key,
                    void (*done)(void *arg, const struct build_row *row, struct err *e), void *arg)
{
    struct row_reading *reading = mem_new(sizeof *reading);

    *reading = (struct row_reading){.admin = key->scopes & KEY_ADMIN, .done = done, .arg = arg};
    snprintf(reading->id, sizeof reading->id, STR_FMT, STR_ARG(id));
    snprintf(reading->tenant, sizeof reading->tenant, "%s", key_tenant(key));
    store_get(b->config.store, TABLE, store_text(id), on_row, on_row_read, reading);
}

/* --- of a server before us --- */

struct loading {
    struct builds *builds;
    char cut[BUILD_ID_LEN + 1]; /* the last one that was cut short; empty: none was */
    store_done *done;
    void *arg;
};

/* An image's name belongs to the key that built it last. */
static fallible load_owners(struct builds *b, const struct store_value *v)
{
    own_done(arena) a;
    struct json *tags;

    arena_init(&a, 1u << 20);
    TRY(json_parse(&a, arena_copy(&a, v[TAGS].text), NULL, &tags));
    for (const struct json *tag = tags->first; tag; tag = tag->next)
        if (tag->type == JSON_STR)
            build_set_owner(b, tag->s, v[KEY_OF].text, v[CHANGED].i);
    return NULL;
}

static void cut_short(struct builds *b, struct str id, store_done *done, void *arg)
{
    row_update(b, id, "INTERNAL_ERROR", "the server was stopped while it was built: build it again",
               done, arg);
}

/* Ninety days are enough to be asked about; the rows must not grow without end. */
#define OLD_MS (90ll * 24 * 3600 * 1000)

static fallible on_old_row(void *arg, const struct store_value *v)
{
    struct loading *l = arg;
    struct str status = v[STATUS].text;

    if (str_eq(status, STR("SUCCESS"))) {
        own(err) e = v[TAGS].type == STORE_TEXT ? load_owners(l->builds, v) : NULL;
        if (e)
            log_error("a build's row is damaged", KV_ERR(e));
    } else if (v[CHANGED].i < (int64_t)now_ms(l->builds) - OLD_MS) {
        store_delete(l->builds->config.store, TABLE, v[0], NULL, NULL);
    } else if (str_eq(status, STR("QUEUED")) || str_eq(status, STR("WORKING"))) {
        cut_short(l->builds, v[0].text, NULL, NULL);
        snprintf(l->cut, sizeof l->cut, STR_FMT, STR_ARG(v[0].text));
    }
    return NULL;
}

static void loading_end(struct loading *l, struct err *e)
{
    l->done(l->arg, e);
    free(l);
}

static void on_cut_written(void *arg, struct err *e)
{
    if (e)
        log_error("a build that was cut short is not written down", KV_ERR(e));
    err_free(e);
    loading_end(arg, NULL);
}

static void on_old_rows(void *arg, struct err *e)
{
    struct loading *l = arg;

    if (e || !l->cut[0])
        loading_end(l, e ? err_wrap(e, "the rows of builds") : NULL);
    else /* once more, and behind all others: clients are told what is on disk */
        cut_short(l->builds, str_of(l->cut), on_cut_written, l);
}

void builds_load(struct builds *b, store_done *done, void *arg)
{
    struct loading *l = mem_new(sizeof *l);

    *l = (struct loading){.builds = b, .done = done, .arg = arg};
    store_each(b->config.store, TABLE, on_old_row, on_old_rows, l);
}
