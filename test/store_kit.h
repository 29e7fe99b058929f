// SPDX-License-Identifier: Apache-2.0
/* store_kit.h — a store in the test's directory, driven turn by turn. */
#pragma once

#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "host/store/store.h"
#include "loop/loop.h"
#include "test/test.h"

struct rows_kit {
    struct loop *loop;
    struct store *store;
    char path[512];
};

struct rows_wait {
    unsigned calls;
    enum err_code code;
    bool failed;
    char text[512];
};

static inline void rows_on_done(void *arg, struct err *e)
{
    struct rows_wait *w = arg;

    w->calls++;
    w->failed = e != NULL;
    if (e) {
        w->code = err_code(e);
        snprintf(w->text, sizeof w->text, "%s", err_text(e));
    }
    err_free(e);
}

static inline void rows_init(struct rows_kit *k)
{
    *k = (struct rows_kit){0};
    snprintf(k->path, sizeof k->path, "%s/croft.db", test_dir());
    CHECK_OK(loop_new(&clock_system, &k->loop));
}

static inline void rows_open(struct rows_kit *k)
{
    CHECK_OK(store_open(k->loop, k->path, &k->store));
}

/* The files are closed before it returns. */
static inline void rows_close(struct rows_kit *k)
{
    unsigned fds = test_open_fds();

    store_close(k->store);
    k->store = NULL;
    while (test_open_fds() >= fds)
        CHECK_OK(loop_turn(k->loop, 10));
}

static inline void rows_done(struct rows_kit *k)
{
    store_close(k->store);
    loop_free(k->loop);
}

static inline void rows_put(struct rows_kit *k, struct rows_wait *w, const char *name,
                            const char *value)
{
    struct store_value v[] = {store_text(str_of(name)), store_text(str_of(value))};

    *w = (struct rows_wait){0};
    store_write(k->store, "INSERT INTO meta (name, value) VALUES (?1, ?2)", v, 2, rows_on_done, w);
}

static inline void rows_wait(struct rows_kit *k, const struct rows_wait *w)
{
    while (!w->calls)
        CHECK_OK(loop_turn(k->loop, 1000));
}

static inline fallible rows_collect(void *arg, const struct store_value *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (values[i].type == STORE_INT)
            buf_addf(arg, "%lld ", (long long)values[i].i);
        else if (values[i].type == STORE_NULL)
            buf_add_cstr(arg, "null ");
        else
            buf_addf(arg, STR_FMT " ", STR_ARG(values[i].text));
    }
    return NULL;
}

/* "name value name value " */
static inline struct str rows_read(struct rows_kit *k, const char *sql, struct buf *into)
{
    buf_reset(into);
    CHECK_OK(store_read(k->store, sql, NULL, 0, rows_collect, into));
    return buf_str(into);
}
