// SPDX-License-Identifier: Apache-2.0
/* Rows by key, by index and in pages; changes that depend on what is there. */
#include <stdlib.h>

#include "base/log.h"
#include "host/store/inner.h"
#include "test/store_kit.h"

#define ALL       "SELECT name, value FROM things ORDER BY name"
#define BY_NUMBER (&rows_table->indexes[0])
#define BY_VALUE  (&rows_table->indexes[1])
#define KEY(text) .table = rows_table, .key = store_text(STR(text))
#define FIELDS(f) .fields = (f), .count = ARRAY_LEN(f)
#define VALUE(text)                                                                                \
    {                                                                                              \
        "value", store_text(STR(text))                                                             \
    }

struct seen {
    struct rows_wait w; /* first: what is told of it */
    struct buf names;
    unsigned rows, most;       /* most: then an error; 0: none */
    struct store_value number; /* of the last row */
    char last[16];
    struct rows_kit *closes; /* the store, at the first row; NULL: not */
};

static void start(struct rows_kit *k, struct buf *got)
{
    log_setup(2, LOG_OFF, LOG_TEXT);
    buf_init(got, 1u << 20);
    rows_init(k);
    rows_open(k);
}

static fallible on_row(void *arg, const struct store_value *v)
{
    struct seen *s = arg;

    buf_addf(&s->names, STR_FMT " ", STR_ARG(v[0].text));
    snprintf(s->last, sizeof s->last, STR_FMT, STR_ARG(v[0].text));
    s->number = v[2];
    if (s->closes)
        store_close(s->closes->store);
    return ++s->rows == s->most ? err_new(ERR_CORRUPT, "enough") : NULL;
}

static void find(struct rows_kit *k, struct seen *s, const struct store_query *q)
{
    buf_init(&s->names, 8u << 20);
    store_find(k->store, q, on_row, rows_on_done, s);
    CHECK_INT(s->w.calls, 0); /* never before the loop turns */
    rows_wait(k, &s->w);
}

/* The names of one page, in its order. */
static void page_is(struct rows_kit *k, const struct store_query *q, const char *names)
{
    struct seen s = {.rows = 0};

    find(k, &s, q);
    CHECK_STR(s.w.text, "");
    CHECK_STR(buf_str(&s.names), str_of(names));
    buf_done(&s.names);
}

static void change(struct rows_kit *k, struct rows_wait *w, const struct store_change *c, size_t n)
{
    *w = (struct rows_wait){0};
    store_change(k->store, c, n, rows_on_done, w);
    rows_wait(k, w);
}

static void put_numbered(struct rows_kit *k, const char *name, const char *value, int64_t number)
{
    const struct store_field fields[] = {{"value", store_text(str_of(value))},
                                         {"number", store_int(number)}};
    struct rows_wait w = {0};

    store_put(k->store, rows_table, store_text(str_of(name)), fields, 2, rows_on_done, &w);
    rows_wait(k, &w);
    CHECK_STR(w.text, "");
}

/* --- one row --- */

static fallible on_every_type(void *arg, const struct store_value *v)
{
    (void)arg;
    CHECK(v[1].type == STORE_NULL && v[2].type == STORE_INT && v[3].type == STORE_BLOB);
    CHECK_INT(v[2].i, INT64_MIN);
    CHECK_STR(v[3].text, str_n("\0\1\2", 3));
    return NULL;
}

TEST(values_of_every_type_come_back_as_they_were)
{
    const struct store_field fields[] = {{"value", store_null()},
                                         {"number", store_int(INT64_MIN)},
                                         {"mark", store_blob(str_n("\0\1\2", 3))}};
    struct rows_kit k;
    struct rows_wait w;
    own_done(buf) got;

    start(&k, &got);
    change(&k, &w, &(struct store_change){KEY("k"), FIELDS(fields)}, 1);
    CHECK_STR(w.text, "");
    w = (struct rows_wait){0};
    store_get(k.store, rows_table, store_text(STR("k")), on_every_type, rows_on_done, &w);
    rows_wait(&k, &w);
    CHECK_STR(w.text, "");
    rows_done(&k);
}

TEST(a_row_that_is_not_there_is_not_found)
{
    struct rows_kit k;
    struct seen s = {.rows = 0};
    own_done(buf) got;

    start(&k, &got);
    store_get(k.store, rows_table, store_text(STR("k")), on_row, rows_on_done, &s);
    rows_wait(&k, &s.w);
    CHECK_INT(s.rows, 0);
    CHECK_INT(s.w.code, ERR_NOT_FOUND);
    CHECK_STR(s.w.text, "table things: there is no such row");
    rows_done(&k);
}

TEST(a_put_changes_the_fields_it_names_and_a_delete_needs_no_row)
{
    const struct store_field number = {"number", store_int(7)};
    struct rows_kit k;
    struct rows_wait w;
    own_done(buf) got;

    start(&k, &got);
    put_numbered(&k, "a", "1", 5);
    w = (struct rows_wait){0};
    store_put(k.store, rows_table, store_text(STR("a")), &number, 1, rows_on_done, &w);
    rows_wait(&k, &w);
    CHECK_STR(rows_read(&k, "SELECT value, number FROM things", &got), "1 7 ");
    for (unsigned i = 0; i < 2; i++) {
        w = (struct rows_wait){0};
        store_delete(k.store, rows_table, store_text(STR("a")), rows_on_done, &w);
        rows_wait(&k, &w);
        CHECK_STR(w.text, "");
        CHECK_STR(rows_read(&k, ALL, &got), "");
    }
    rows_done(&k);
}

TEST(an_update_makes_no_row)
{
    const struct store_field number = {"number", store_int(7)};
    struct rows_kit k;
    struct rows_wait w = {0};
    own_done(buf) got;

    start(&k, &got);
    store_update(k.store, rows_table, store_text(STR("a")), &number, 1, rows_on_done, &w);
    rows_wait(&k, &w);
    CHECK_INT(w.code, ERR_NOT_FOUND);
    CHECK_STR(rows_read(&k, ALL, &got), "");
    rows_done(&k);
}

TEST(a_second_row_with_the_same_unique_value_is_refused)
{
    const struct store_field mark = {"mark", store_blob(STR("m"))};
    struct rows_kit k;
    struct rows_wait w;
    own_done(buf) got;

    start(&k, &got);
    change(&k, &w, &(struct store_change){KEY("a"), .fields = &mark, .count = 1}, 1);
    CHECK_STR(w.text, "");
    change(&k, &w, &(struct store_change){KEY("b"), .fields = &mark, .count = 1}, 1);
    CHECK_INT(w.code, ERR_CONFLICT);
    CHECK_HAS(w.text, "UNIQUE constraint failed: things.mark");
    CHECK_STR(rows_read(&k, "SELECT name FROM things", &got), "a ");
    rows_done(&k);
}

/* --- changes that depend --- */

TEST(compare_and_set_changes_a_row_that_is_as_expected_and_no_other)
{
    const struct store_field one[] = {VALUE("1")}, two[] = {VALUE("2")};
    const struct store_field none = {"value", store_null()}, is_one = VALUE("1");
    struct rows_kit k;
    struct rows_wait w;
    own_done(buf) got;

    start(&k, &got);
    const struct store_change to_two = {KEY("a"), FIELDS(two), .expect = is_one};
    change(&k, &w, &to_two, 1);
    CHECK_INT(w.code, ERR_CONFLICT); /* there is none */
    CHECK_HAS(w.text, "column 'value' of the row is another, or it is gone");
    put_numbered(&k, "a", "0", 0);
    change(&k, &w, &to_two, 1);
    CHECK_INT(w.code, ERR_CONFLICT);
    change(&k, &w, &(struct store_change){KEY("a"), FIELDS(one)}, 1);
    change(&k, &w, &to_two, 1);
    CHECK_STR(w.text, "");
    CHECK_STR(rows_read(&k, ALL, &got), "a 2 ");
    change(&k, &w, &(struct store_change){KEY("a"), .expect = is_one}, 1); /* nor is it deleted */
    CHECK_INT(w.code, ERR_CONFLICT);
    change(&k, &w, &(struct store_change){KEY("a"), .fields = &none, .count = 1}, 1);
    change(&k, &w, &(struct store_change){KEY("a"), FIELDS(one), .expect = none}, 1);
    CHECK_STR(w.text, ""); /* NULL can be expected too */
    CHECK_STR(rows_read(&k, ALL, &got), "a 1 ");
    rows_done(&k);
}

TEST(changes_of_one_call_happen_together_or_not_at_all)
{
    const struct store_field one[] = {VALUE("1")}, is_two = VALUE("2");
    struct rows_kit k;
    struct rows_wait w, also;
    own_done(buf) got;
    struct store_change all[] = {
        {KEY("a"), FIELDS(one)}, {KEY("old")}, {KEY("b"), FIELDS(one), .when = STORE_IF_NEW}};

    start(&k, &got);
    put_numbered(&k, "old", "1", 0);
    put_numbered(&k, "b", "0", 0);
    store_change(k.store, all, ARRAY_LEN(all), rows_on_done, memset(&w, 0, sizeof w));
    rows_put(&k, &also, "beside", "1"); /* in the same batch */
    rows_wait(&k, &also);
    CHECK_INT(w.code, ERR_CONFLICT);
    CHECK(!also.failed);
    CHECK_STR(rows_read(&k, ALL, &got), "b 0 beside 1 old 1 ");
    all[2] = (struct store_change){KEY("b"), FIELDS(one), .expect = is_two};
    change(&k, &w, all, ARRAY_LEN(all));
    CHECK_INT(w.code, ERR_CONFLICT);
    all[2].expect.column = NULL;
    change(&k, &w, all, ARRAY_LEN(all));
    CHECK_STR(w.text, "");
    CHECK_STR(rows_read(&k, ALL, &got), "a 1 b 1 beside 1 ");
    rows_done(&k);
}

/* --- many rows --- */

TEST(rows_come_by_key_and_by_index_forwards_and_backwards)
{
    struct rows_kit k;
    own_done(buf) got;

    start(&k, &got);
    put_numbered(&k, "c", "x", 1);
    put_numbered(&k, "a", "y", 2);
    put_numbered(&k, "b", "x", 2);
    put_numbered(&k, "d", "x", 3);
    const struct store_value x = store_text(STR("x")), two = store_int(2), a = store_text(STR("a"));
    page_is(&k, &(struct store_query){rows_table}, "a b c d ");
    page_is(&k, &(struct store_query){rows_table, .key = &a, .limit = 2}, "b c ");
    page_is(&k, &(struct store_query){rows_table, .backwards = true, .limit = 3}, "d c b ");
    page_is(&k, &(struct store_query){rows_table, BY_NUMBER}, "c a b d ");
    page_is(&k, &(struct store_query){rows_table, BY_NUMBER, .equal = &two}, "a b ");
    page_is(&k, &(struct store_query){rows_table, BY_NUMBER, .equal = &two, .key = &a}, "b ");
    page_is(&k, &(struct store_query){rows_table, BY_NUMBER, .from = &two, .key = &a}, "b d ");
    page_is(&k, &(struct store_query){rows_table, BY_VALUE, .equal = &x}, "c b d ");
    page_is(&k, &(struct store_query){rows_table, BY_VALUE, &x, &two, &a, .limit = 9}, "b d ");
    page_is(&k, &(struct store_query){rows_table, BY_VALUE, &x, .backwards = true}, "d b c ");
    page_is(&k, &(struct store_query){rows_table, BY_VALUE, &x, &two, &a, .backwards = true}, "c ");
    rows_done(&k);
}

/* Steps of SQLite's machine since it was asked last, in all statements of the reader. */
static int steps_of(struct rows_kit *k)
{
    int steps = 0;

    for (size_t i = 0; i < STORE_STATEMENTS; i++)
        if (k->store->read.statements[i].stmt)
            steps += sqlite3_stmt_status(k->store->read.statements[i].stmt,
                                         SQLITE_STMTSTATUS_VM_STEP, true);
    return steps;
}

static void fill(const struct rows_kit *k, unsigned rows)
{
    char text[300];
    sqlite3 *db;

    snprintf(text, sizeof text,
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<%u)"
             " INSERT INTO things (name, value, number)"
             " SELECT printf('%%06d', i), 'v', i/10 FROM n",
             rows);
    CHECK_INT(sqlite3_open(k->path, &db), SQLITE_OK);
    CHECK_INT(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    CHECK_INT(sqlite3_close(db), SQLITE_OK);
}

TEST(a_page_out_of_100000_rows_costs_its_own_length)
{
    struct rows_kit k;
    own_done(buf) got;
    const struct store_value v = store_text(STR("v"));
    const struct store_query queries[] = {
        {rows_table, .limit = 50},
        {rows_table, BY_NUMBER, .limit = 50},
        {rows_table, BY_VALUE, &v, .limit = 50},
        {rows_table, BY_VALUE, &v, .limit = 50, .backwards = true}};

    start(&k, &got);
    fill(&k, 100000);
    for (size_t i = 0; i < ARRAY_LEN(queries); i++) {
        struct store_value number = store_int(queries[i].backwards ? 501 : 9000);
        const struct store_value key = store_text(STR("090000"));
        struct store_query deep = queries[i];
        struct seen first = {.rows = 0}, page = {.rows = 0};
        steps_of(&k);
        find(&k, &first, &queries[i]);
        int cost = steps_of(&k);
        deep.key = &key;
        deep.from = deep.index ? &number : NULL;
        find(&k, &page, &deep);
        CHECK_INT(first.rows, 50);
        CHECK_INT(page.rows, 50);
        int again = steps_of(&k);
        if (again > 2 * cost || cost > 50 * 40)
            FAIL("query %zu: %d steps for the first page, %d for a later one", i, cost, again);
        buf_done(&first.names);
        buf_done(&page.names);
    }
    rows_done(&k);
}

TEST(all_rows_are_read_in_pages_each_once)
{
    struct rows_kit k;
    struct seen s = {.rows = 0}, some = {.rows = 0};
    own_done(buf) got;

    start(&k, &got);
    fill(&k, 3 * STORE_PAGE);
    find(&k, &s, &(struct store_query){rows_table, BY_NUMBER});
    CHECK_STR(s.w.text, "");
    CHECK_INT(s.rows, 3 * STORE_PAGE);
    CHECK_STR(rows_read(&k,
                        "SELECT group_concat(name, ' ') FROM (SELECT name FROM things ORDER BY"
                        " number, name)",
                        &got),
              buf_str(&s.names));
    find(&k, &some, &(struct store_query){rows_table, .limit = STORE_PAGE + 5});
    CHECK_INT(some.rows, STORE_PAGE + 5);
    buf_done(&s.names);
    buf_done(&some.names);
    rows_done(&k);
}

TEST(an_error_of_the_caller_ends_the_reading)
{
    struct rows_kit k;
    struct seen s = {.most = 2};
    own_done(buf) got;

    start(&k, &got);
    fill(&k, 10);
    find(&k, &s, &(struct store_query){rows_table});
    CHECK_INT(s.rows, 2);
    CHECK_INT(s.w.code, ERR_CORRUPT);
    buf_done(&s.names);
    rows_done(&k);
}

TEST(reads_of_a_store_that_is_closed_end_with_that)
{
    struct rows_kit k;
    struct seen s[3] = {{.rows = 0}};
    own_done(buf) got;

    start(&k, &got);
    fill(&k, 1000);
    for (size_t i = 0; i < 3; i++) {
        buf_init(&s[i].names, 1u << 20);
        store_each(k.store, rows_table, on_row, rows_on_done, &s[i]);
        if (i == 0)
            CHECK_OK(loop_turn(k.loop, 0)); /* the thread has it now, or had it */
    }
    s[0].closes = s[1].closes = &k; /* if one of them comes so far */
    rows_close(&k);
    for (size_t i = 0; i < 3; i++) {
        CHECK_INT(s[i].w.calls, 1);
        CHECK_INT(s[i].w.code, ERR_CLOSED);
        buf_done(&s[i].names);
    }
    rows_done(&k);
}

TEST(who_is_given_a_row_may_close_the_store)
{
    struct rows_kit k;
    struct seen s = {.closes = &k};
    own_done(buf) got;

    start(&k, &got);
    fill(&k, 10);
    find(&k, &s, &(struct store_query){rows_table});
    CHECK_INT(s.rows, 1);
    CHECK_INT(s.w.code, ERR_CLOSED);
    k.store = NULL;
    buf_done(&s.names);
    rows_done(&k);
}

TEST(a_loop_without_threads_reads_by_itself)
{
    struct rows_kit k;
    own_done(buf) got;

    start(&k, &got);
    loop_forbid_threads(k.loop);
    put_numbered(&k, "a", "1", 1);
    page_is(&k, &(struct store_query){rows_table}, "a ");
    rows_done(&k);
}

/* --- tables --- */

TEST(columns_tables_and_indexes_that_an_older_file_lacks_are_made)
{
    struct rows_kit k;
    own_done(buf) got;
    sqlite3 *db;

    start(&k, &got);
    put_numbered(&k, "a", "1", 1);
    rows_close(&k);
    CHECK_INT(sqlite3_open(k.path, &db), SQLITE_OK);
    CHECK_INT(sqlite3_exec(db,
                           "DROP INDEX things_by_number; DROP INDEX things_by_value_number;"
                           "ALTER TABLE things DROP COLUMN number; DROP TABLE api_keys",
                           NULL, NULL, NULL),
              SQLITE_OK);
    CHECK_INT(sqlite3_close(db), SQLITE_OK);
    rows_open(&k);
    CHECK_STR(rows_read(&k, "SELECT name, value, number FROM things", &got), "a 1 0 ");
    CHECK_STR(rows_read(&k,
                        "SELECT name FROM sqlite_master WHERE name LIKE 'things_by%' OR name="
                        "'api_keys' ORDER BY name",
                        &got),
              "api_keys things_by_mark things_by_number things_by_value_number ");
    rows_done(&k);
}

/* Told: all rows came. Refused: it may be asked for again. */
TEST_LIMIT(a_read_survives_the_failure_of_any_call, 120)
{
    struct rows_kit k;
    own_done(buf) got;
    unsigned failed = 0;

    start(&k, &got);
    fill(&k, STORE_PAGE + 10);
    loop_forbid_threads(k.loop);
    for (unsigned n = 1;; n++) {
        const struct store_value key = store_text(STR("000001"));
        struct seen s = {.rows = 0};
        buf_init(&s.names, 8u << 20);
        fault_at(n);
        store_find(k.store, &(struct store_query){rows_table, .key = &key}, on_row, rows_on_done,
                   &s);
        for (int i = 0; i < 10 && !s.w.calls; i++)
            err_free(loop_turn(k.loop, 0));
        bool fired = fault_fired();
        fault_at(0);
        rows_wait(&k, &s.w);
        CHECK_INT(s.w.calls, 1);
        failed += s.w.failed;
        if (!s.w.failed)
            CHECK_INT(s.rows, STORE_PAGE + 9);
        buf_done(&s.names);
        if (!fired)
            break;
    }
    CHECK(failed > 3);
    rows_done(&k);
}
