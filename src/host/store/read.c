// SPDX-License-Identifier: Apache-2.0
/* read.c — rows by key and by index, a page at a time.
 *
 * The reader thread fills a page; the loop gives its rows away and asks for the next one. A page
 * begins behind the last row of the one before (by index and key), so it costs its own length. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "host/store/inner.h"

#define PAGE_BYTES (64u << 20)

/* --- on the reader --- */

static struct store_value read_column(sqlite3_stmt *stmt, int at)
{
    struct store_value v = {.type = STORE_NULL};

    switch (sqlite3_column_type(stmt, at)) {
    case SQLITE_INTEGER:
        return store_int(sqlite3_column_int64(stmt, at));
    case SQLITE_TEXT:
        v.type = STORE_TEXT;
        break;
    case SQLITE_BLOB:
        v.type = STORE_BLOB;
        break;
    default:
        return v;
    }
    const char *p = v.type == STORE_TEXT ? (const char *)sqlite3_column_text(stmt, at)
                                         : sqlite3_column_blob(stmt, at);
    v.text = str_n(p ? p : "", (size_t)sqlite3_column_bytes(stmt, at));
    return v;
}

static struct store_page_row *page_add(struct store_read *r, sqlite3_stmt *stmt)
{
    size_t columns = (size_t)sqlite3_column_count(stmt);
    struct store_page_row *row = arena_alloc(&r->page, sizeof *row + columns * sizeof *row->values);

    if (!row)
        return NULL;
    row->next = NULL;
    for (size_t i = 0; i < columns; i++) {
        row->values[i] = read_column(stmt, (int)i);
        if (row->values[i].type >= STORE_TEXT)
            row->values[i].text = arena_copy(&r->page, row->values[i].text);
    }
    r->count++;
    return row;
}

struct where { /* the conditions of a query, and their values */
    struct buf *sql;
    struct store_value values[4];
    size_t count;
};

static void where_add(struct where *w, const char *text, struct store_value v)
{
    buf_addf(w->sql, "%s %s?%zu", w->count ? " AND" : " WHERE", text, w->count + 1);
    w->values[w->count++] = v;
}

/* The column by which rows are in order, before the key; NULL: the key alone. */
static const char *order_of(const struct store_query *q)
{
    const struct store_index *x = q->index;
    const char *last = x ? x->columns[x->columns[1] != NULL] : NULL;

    return x && (x->columns[1] || !q->equal) ? last : NULL;
}

static void put_query(struct where *w, const struct store_read *r)
{
    const struct store_query *q = &r->q;
    const char *key = q->table->columns[0].name, *order = order_of(q);
    const char *way = q->backwards ? " DESC" : "", *than = q->backwards ? "<" : ">";
    char text[300];

    for (size_t i = 0; i < store_column_count(q->table); i++)
        buf_addf(w->sql, "%s%s", i ? "," : "SELECT ", q->table->columns[i].name);
    buf_addf(w->sql, " FROM %s", q->table->name);
    if (q->equal) {
        snprintf(text, sizeof text, "%s=", q->index->columns[0]);
        where_add(w, text, *q->equal);
    }
    if (q->key && r->one) {
        snprintf(text, sizeof text, "%s=", key);
        where_add(w, text, *q->key);
    } else if (q->key && order) {
        snprintf(text, sizeof text, "(%s,%s)%s(?%zu,", order, key, than, w->count + 1);
        w->values[w->count++] = *q->from;
        buf_addf(w->sql, "%s %s?%zu)", w->count > 1 ? " AND" : " WHERE", text, w->count + 1);
        w->values[w->count++] = *q->key;
    } else if (q->key) {
        snprintf(text, sizeof text, "%s%s", key, than);
        where_add(w, text, *q->key);
    }
    if (order)
        buf_addf(w->sql, " ORDER BY %s%s,%s%s", order, way, key, way);
    else
        buf_addf(w->sql, " ORDER BY %s%s", key, way);
    buf_addf(w->sql, " LIMIT ?%zu", w->count + 1);
    w->values[w->count++] =
        store_int((int64_t)(q->limit && q->limit < STORE_PAGE ? q->limit : STORE_PAGE));
}

static fallible page_fill(struct store_conn *c, struct store_read *r, sqlite3_stmt *stmt)
{
    struct store_page_row **end = &r->rows;
    int rc;

    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        *end = page_add(r, stmt);
        TRY(arena_check(&r->page));
        end = &(*end)->next;
    }
    return rc == SQLITE_DONE ? NULL : store_err(c->db, c->path, rc);
}

static fallible page_read(struct store_conn *c, struct store_read *r)
{
    struct where w = {.sql = &c->sql};
    sqlite3_stmt *stmt;

    buf_reset(&c->sql);
    put_query(&w, r);
    TRY(store_conn_prepare(c, &stmt));
    struct err *e = store_conn_bind(c, stmt, w.values, w.count);
    if (!e)
        e = page_fill(c, r, stmt);
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
    return e;
}

void store_reads_run(struct store *s)
{
    LIST_EACH(r, &s->reading, struct store_read, link)
        r->err = page_read(&s->read, r);
}

/* --- on the loop --- */

static void read_end(struct store_read *r, struct err *e)
{
    store_done *done = r->done;
    void *arg = r->arg;

    list_del(&r->link);
    arena_done(&r->holds);
    arena_done(&r->page);
    free(r);
    done(arg, e);
}

static bool value_hold(struct store_read *r, struct store_value *to, const struct store_value *v)
{
    *to = *v;
    if (v->type >= STORE_TEXT)
        to->text = arena_copy(&r->holds, v->text);
    return !r->holds.failed;
}

/* The next page begins behind this row. */
static bool read_go_on(struct store_read *r, const struct store_page_row *last)
{
    const struct store_table *t = r->q.table;
    const char *order = order_of(&r->q);
    struct arena before = r->holds;
    struct store_value equal = r->equal;
    size_t at = 0;

    arena_init(&r->holds, PAGE_BYTES);
    for (size_t i = 1; order && i < store_column_count(t); i++)
        at = strcmp(t->columns[i].name, order) == 0 ? i : at;
    bool held = value_hold(r, &r->equal, &equal) && value_hold(r, &r->from, &last->values[at]) &&
                value_hold(r, &r->key, &last->values[0]);
    arena_done(&before);
    r->q.from = &r->from;
    r->q.key = &r->key;
    r->rows = NULL;
    r->count = 0;
    return held;
}

static fallible page_give(struct store *s, struct store_read *r, const struct store_page_row **last)
{
    for (const struct store_page_row *row = r->rows; row; row = row->next) {
        TRY(r->row(r->arg, row->values));
        if (s->closing)
            return err_new(ERR_CLOSED, "database '%s' is closed", s->path);
        *last = row;
    }
    return NULL;
}

/* Its rows are given; either it is over, or the next page is asked for. */
static void read_tell(struct store *s, struct store_read *r)
{
    const struct store_page_row *last = NULL;
    size_t count = r->count;
    struct err *e = r->err ? take(&r->err) : page_give(s, r, &last);

    if (!e && r->one && !count)
        e = err_new(ERR_NOT_FOUND, "table %s: there is no such row", r->q.table->name);
    if (r->q.limit)
        r->q.limit -= count;
    bool more = !e && !r->one && count == STORE_PAGE && (r->q.limit || !r->limited);
    if (!more) {
        read_end(r, e);
        return;
    }
    e = read_go_on(r, last) ? NULL : err_no_memory();
    arena_reset(&r->page);
    if (e)
        read_end(r, e);
    else
        list_add(&s->reads, &r->link);
}

void store_reads_tell(struct store *s)
{
    struct store_read *r;

    while ((r = LIST_FIRST(&s->reading, struct store_read, link))) {
        list_del(&r->link);
        read_tell(s, r);
    }
}

void store_reads_end(struct store *s)
{
    struct list *of[] = {&s->reading, &s->reads};
    struct store_read *r;

    for (size_t i = 0; i < ARRAY_LEN(of); i++)
        while ((r = LIST_FIRST(of[i], struct store_read, link))) {
            err_free(take(&r->err));
            read_end(r, err_new(ERR_CLOSED, "the server is being stopped: try again"));
        }
}

static struct store_read *read_new(const struct store_query *q, store_row *row, store_done *done,
                                   void *arg)
{
    struct store_read *r = mem_try(sizeof *r);

    if (!r)
        return NULL;
    r->q = *q;
    r->limited = q->limit > 0;
    r->row = row;
    r->done = done;
    r->arg = arg;
    list_init(&r->link);
    arena_init(&r->holds, PAGE_BYTES);
    arena_init(&r->page, PAGE_BYTES);
    const struct {
        const struct store_value **at;
        struct store_value *to;
    } lent[] = {{&r->q.equal, &r->equal}, {&r->q.from, &r->from}, {&r->q.key, &r->key}};
    for (size_t i = 0; i < ARRAY_LEN(lent); i++) {
        if (*lent[i].at)
            value_hold(r, lent[i].to, *lent[i].at);
        *lent[i].at = *lent[i].at ? lent[i].to : NULL;
    }
    return r;
}

static void read_begin(struct store *s, const struct store_query *q, bool one, store_row *row,
                       store_done *done, void *arg)
{
    struct err *e = s->closing ? err_new(ERR_CLOSED, "database '%s' is closed", s->path) : NULL;
    struct store_read *r = e ? NULL : read_new(q, row, done, arg);

    if (!r) {
        done(arg, e ? e : err_no_memory());
        return;
    }
    r->one = one;
    if (r->holds.failed) {
        read_end(r, err_no_memory());
        return;
    }
    list_add(&s->reads, &r->link);
    store_reads_soon(s);
}

void store_find(struct store *s, const struct store_query *q, store_row *row, store_done *done,
                void *arg)
{
    read_begin(s, q, false, row, done, arg);
}

void store_get(struct store *s, const struct store_table *table, struct store_value key,
               store_row *row, store_done *done, void *arg)
{
    const struct store_query q = {.table = table, .key = &key, .limit = 1};

    read_begin(s, &q, true, row, done, arg);
}
