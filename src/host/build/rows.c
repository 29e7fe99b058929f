// SPDX-License-Identifier: Apache-2.0
/* rows.c — builds in the store: what clients are told, also after a restart. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "host/build/inner.h"
#include "host/store/store.h"

const char *build_status_word(enum build_status s)
{
    static const char *const words[] = {"QUEUED",  "WORKING",        "SUCCESS",
                                        "FAILURE", "INTERNAL_ERROR", "TIMEOUT"};

    return words[s];
}

void build_row_write(struct build *b, store_done *done, void *arg)
{
    struct builds *all = b->builds;
    uint64_t now = clock_wall_ns(loop_clock(all->config.loop)) / NS_PER_MS;
    own_done(buf) tags;
    struct jw w;

    buf_init(&tags, 16u << 10);
    jw_init(&w, &tags, JW_WEB);
    JW_ARRAY(&w, NULL) {
        for (unsigned i = 0; i < b->tag_count; i++)
            jw_cstr(&w, NULL, b->tags[i]);
    }
    struct store_value v[] = {
        store_text(str_of(b->id)),
        store_text(str_of(b->key_name)),
        store_text(str_of(build_status_word(b->status))),
        store_text(str_of(b->tags[0])),
        store_text(buf_str(&tags)),
        store_text(str_of(b->error)),
        store_int((int64_t)now),
    };
    store_write(all->config.store,
                "INSERT INTO builds (id, key_name, status, image, tags, error, created_ms,"
                " changed_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7) ON CONFLICT (id) DO UPDATE"
                " SET status=?3, error=?6, changed_ms=?7",
                v, ARRAY_LEN(v), done, arg);
}

static fallible on_row(void *arg, const struct store_value *v, size_t count)
{
    struct build_row *r = arg;

    (void)count;
    snprintf(r->status, sizeof r->status, STR_FMT, STR_ARG(v[0].text));
    snprintf(r->image, sizeof r->image, STR_FMT, STR_ARG(v[1].text));
    if (v[2].type == STORE_TEXT)
        r->error = strndup(v[2].text.p, v[2].text.len);
    r->changed_ms = v[3].i;
    return NULL;
}

#define CUT_SHORT "the server was stopped while it was built: build it again"

/* Of a server before us, and not written down as such yet. */
static void tell_if_cut_short(const struct builds *all, struct build_row *r)
{
    bool open = strcmp(r->status, "QUEUED") == 0 || strcmp(r->status, "WORKING") == 0;

    if (!open || r->changed_ms >= all->opened_ms)
        return;
    snprintf(r->status, sizeof r->status, "INTERNAL_ERROR");
    free(r->error);
    r->error = mem_dup_cstr(CUT_SHORT);
}

fallible build_row_read(struct builds *b, struct str id, const struct key *key,
                        struct build_row *ret)
{
    struct store_value v[] = {store_text(id), store_text(str_of(key_tenant(key))),
                              store_int(key->scopes & KEY_ADMIN)};

    *ret = (struct build_row){.error = NULL};
    TRY(store_read(
        b->config.store,
        "SELECT status, image, error, changed_ms FROM builds WHERE id=?1 AND (key_name=?2 OR ?3)",
        v, ARRAY_LEN(v), on_row, ret));
    if (!ret->status[0])
        return err_new(ERR_NOT_FOUND, "build_id: there is no build '" STR_FMT "'",
                       STR_ARG(str_first(id, 64)));
    tell_if_cut_short(b, ret);
    return NULL;
}

static fallible on_owner(void *arg, const struct store_value *v, size_t count)
{
    (void)count;
    *(bool *)arg = v[0].i != 0;
    return NULL;
}

fallible build_row_owns(struct builds *b, struct str image, const char *key_name, bool *ret_owns)
{
    struct store_value v[] = {store_text(image), store_text(str_of(key_name))};

    *ret_owns = false;
    return store_read(
        b->config.store,
        "SELECT key_name=?2 FROM builds WHERE status='SUCCESS' AND"
        " EXISTS (SELECT 1 FROM json_each(tags) WHERE value=?1) ORDER BY changed_ms DESC LIMIT 1",
        v, ARRAY_LEN(v), on_owner, ret_owns);
}

fallible build_rows_recover(struct builds *b)
{
    b->opened_ms = (int64_t)(clock_wall_ns(loop_clock(b->config.loop)) / NS_PER_MS);
    store_write(b->config.store,
                "UPDATE builds SET status='INTERNAL_ERROR', error='" CUT_SHORT
                "' WHERE status IN ('QUEUED', 'WORKING')",
                NULL, 0, NULL, NULL);
    /* Ninety days are enough to be asked about; the rows must not grow without end. */
    struct store_value before = store_int(b->opened_ms - 90ll * 24 * 3600 * 1000);
    store_write(b->config.store, "DELETE FROM builds WHERE changed_ms<?1 AND status<>'SUCCESS'",
                &before, 1, NULL, NULL);
    return NULL;
}
