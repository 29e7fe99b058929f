// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "host/build/inner.h"
#include "test/store_kit.h"
#include "test/test.h"

static void put(struct list *to, struct build *b, const char *key)
{
    snprintf(b->key_name, sizeof b->key_name, "%s", key);
    list_add(to, &b->link);
}

TEST(a_build_of_another_key_does_not_wait_behind_all_of_one_that_works)
{
    struct builds all = {.dir = -1};
    struct build b[5] = {0};

    list_init(&all.waiting);
    list_init(&all.working);
    CHECK(!build_next(&all));
    put(&all.working, &b[0], "many");
    put(&all.waiting, &b[1], "many");
    CHECK(build_next(&all) == &b[1]); /* nobody else wants the place */
    put(&all.waiting, &b[2], "many");
    put(&all.waiting, &b[3], "few");
    put(&all.waiting, &b[4], "few");
    CHECK(build_next(&all) == &b[3]);
    list_del(&b[3].link);
    put(&all.working, &b[3], "few");
    CHECK(build_next(&all) == &b[1]); /* alike: the first that came */
    list_del(&b[0].link);
    CHECK(build_next(&all) == &b[1]);
}

/* --- whose an image's name is, and what a server before us left --- */

struct load_kit {
    struct rows_kit rows;
    struct builds builds;
};

static void load(struct load_kit *k)
{
    struct rows_wait w = {0};

    k->builds = (struct builds){.config = {.loop = k->rows.loop, .store = k->rows.store}};
    map_init(&k->builds.owners);
    builds_load(&k->builds, rows_on_done, &w);
    rows_wait(&k->rows, &w);
    CHECK_STR(w.text, "");
}

static void unload(struct load_kit *k)
{
    MAP_EACH(slot, &k->builds.owners)
        free(slot->value);
    map_done(&k->builds.owners);
}

static void put_row(struct load_kit *k, const char *id, const char *key, const char *status,
                    const char *tags, int64_t changed_ms)
{
    char text[600];
    sqlite3 *db;

    snprintf(text, sizeof text,
             "INSERT INTO builds VALUES ('%s', '%s', '%s', 'x', '%s', NULL, 1, %lld)", id, key,
             status, tags, (long long)changed_ms);
    CHECK_INT(sqlite3_open(k->rows.path, &db), SQLITE_OK);
    CHECK_INT(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    CHECK_INT(sqlite3_close(db), SQLITE_OK);
}

/* May a build of this key make that image, which is there? */
static bool may_make(struct load_kit *k, const char *key, const char *image)
{
    struct build b = {.builds = &k->builds, .tag_count = 1};

    snprintf(b.key_name, sizeof b.key_name, "%s", key);
    snprintf(b.tags[0], sizeof b.tags[0], "%s", image);
    own(err) e = build_check_owner(&b, 0, NULL);
    if (e)
        CHECK_INT(err_code(e), ERR_CONFLICT);
    return !e;
}

TEST(the_name_of_an_image_is_the_key_s_that_made_it_last)
{
    struct load_kit k;
    const int64_t now = (int64_t)(clock_wall_ns(&clock_system) / NS_PER_MS);

    log_setup(2, LOG_OFF, LOG_TEXT);
    rows_init(&k.rows);
    rows_open(&k.rows);
    put_row(&k, "1", "ann", "SUCCESS", "[\"a:1\",\"b\"]", now - 1);
    put_row(&k, "0", "bob", "SUCCESS", "[\"b:latest\"]", now);
    put_row(&k, "2", "eve", "FAILURE", "[\"a:1\"]", now);
    load(&k);
    CHECK(may_make(&k, "ann", "a:1") && !may_make(&k, "eve", "a:1"));
    CHECK(may_make(&k, "bob", "b") && !may_make(&k, "ann", "b:latest"));
    CHECK(!may_make(&k, "ann", "imported"));
    build_set_owner(&k.builds, STR("b"), STR("ann"), now + 1);
    CHECK(may_make(&k, "ann", "b:latest") && !may_make(&k, "bob", "b"));
    unload(&k);
    rows_done(&k.rows);
}

TEST(builds_that_were_cut_short_are_told_so_and_old_failures_go)
{
    struct load_kit k;
    own_done(buf) got;
    const int64_t now = (int64_t)(clock_wall_ns(&clock_system) / NS_PER_MS);

    log_setup(2, LOG_OFF, LOG_TEXT);
    buf_init(&got, 4096);
    rows_init(&k.rows);
    rows_open(&k.rows);
    put_row(&k, "1", "k", "QUEUED", "[]", now);
    put_row(&k, "2", "k", "WORKING", "[]", now);
    put_row(&k, "3", "k", "FAILURE", "[]", 5);
    put_row(&k, "4", "k", "SUCCESS", "[]", 5);
    load(&k);
    CHECK_STR(rows_read(&k.rows, "SELECT id, status, substr(error, 1, 22) FROM builds", &got),
              "1 INTERNAL_ERROR the server was stopped 2 INTERNAL_ERROR the server was stopped "
              "4 SUCCESS null ");
    unload(&k);
    rows_done(&k.rows);
}
