// SPDX-License-Identifier: Apache-2.0
/* toml_test.c — test/toml/valid/X.toml must read as X.json (as json.dumps prints it), and
 * test/toml/invalid/X.toml must be refused with the line in X.err. Verdicts and values were held
 * against Python's tomllib when the files were written. */
#include "base/toml.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fd.h"
#include "test/test.h"

#define LIMIT (256u << 20)

static void read_source(struct buf *into, const char *folder, const char *name, const char *suffix)
{
    char relative[512];

    snprintf(relative, sizeof relative, "test/toml/%s/%s%s", folder, name, suffix);
    buf_init(into, LIMIT);
    CHECK_OK(fd_read_file(test_source(relative), into));
}

static void check_valid(const char *name)
{
    own_done(buf) text, want, got;
    own_done(arena) a;
    struct json *v;

    read_source(&text, "valid", name, ".toml");
    read_source(&want, "valid", name, ".json");
    arena_init(&a, LIMIT);
    buf_init(&got, LIMIT);
    struct err *e = toml_parse(&a, buf_str(&text), &v);
    if (e)
        FAIL("%s: %s", name, err_text(e));
    json_write(&got, v, JW_PYTHON);
    buf_add_char(&got, '\n');
    if (!str_eq(buf_str(&got), buf_str(&want)))
        printf("in %s:\n", name);
    CHECK_STR(buf_str(&got), buf_str(&want));
}

static void check_invalid(const char *name)
{
    own_done(buf) text, want;
    own_done(arena) a;
    struct json *v;

    read_source(&text, "invalid", name, ".toml");
    read_source(&want, "invalid", name, ".err");
    arena_init(&a, LIMIT);
    own(err) e = toml_parse(&a, buf_str(&text), &v);
    if (!e)
        FAIL("%s was accepted", name);
    if (!str_eq(str_of(err_text(e)), str_trim(buf_str(&want))))
        printf("in %s:\n", name);
    CHECK_STR(err_text(e), str_trim(buf_str(&want)));
}

static unsigned each_case(const char *folder, void (*check)(const char *name))
{
    char relative[64], name[256];
    unsigned n = 0;

    snprintf(relative, sizeof relative, "test/toml/%s", folder);
    DIR *d = opendir(test_source(relative));
    CHECK(d != NULL);
    for (struct dirent *entry; (entry = readdir(d));) {
        struct str file = str_of(entry->d_name);
        if (!str_ends(file, STR(".toml")))
            continue;
        snprintf(name, sizeof name, "%.*s", (int)file.len - 5, file.p);
        check(name);
        n++;
    }
    closedir(d);
    return n;
}

TEST(toml_reads_every_valid_case)
{
    CHECK(each_case("valid", check_valid) >= 95);
}

TEST(toml_refuses_every_invalid_case_and_says_where)
{
    CHECK(each_case("invalid", check_invalid) >= 230);
}

static void parse_generated(struct buf *text, unsigned want_root_count)
{
    own_done(arena) a;
    struct json *v;

    arena_init(&a, LIMIT);
    CHECK_OK(buf_check(text));
    CHECK_OK(toml_parse(&a, buf_str(text), &v));
    CHECK_INT(v->count, want_root_count);
}

/* Each would take minutes if looking a key up walked its table. */
TEST_LIMIT(toml_time_grows_with_the_text_and_no_faster, 20)
{
    own_done(buf) keys, tables, repeated, dotted;

    buf_init(&keys, LIMIT);
    buf_init(&tables, LIMIT);
    buf_init(&repeated, LIMIT);
    buf_init(&dotted, LIMIT);
    for (unsigned i = 0; i < 300000; i++)
        buf_addf(&keys, "k%u=1\n", i);
    for (unsigned i = 0; i < 250000; i++)
        buf_addf(&tables, "[a.t%u]\n", i);
    for (unsigned i = 0; i < 250000; i++)
        buf_addf(&repeated, "[[a.b.c]]\n");
    for (unsigned i = 0; i < 250000; i++)
        buf_addf(&dotted, "a.b.k%u=1\n", i);
    parse_generated(&keys, 300000);
    parse_generated(&tables, 1);
    parse_generated(&repeated, 1);
    parse_generated(&dotted, 1);
}

TEST(toml_larger_than_the_limit_is_refused)
{
    own_done(buf) text;
    own_done(arena) a;
    struct json *v;

    buf_init(&text, LIMIT);
    arena_init(&a, LIMIT);
    for (unsigned i = 0; i <= TOML_MAX_SIZE / 16; i++)
        buf_add_cstr(&text, "# sixteen bytes\n");
    CHECK_ERR(toml_parse(&a, buf_str(&text), &v), ERR_TOO_LARGE, "the limit is 4194304");
}

TEST(toml_in_an_arena_too_small_fails_alone)
{
    own_done(arena) a;
    struct json *v;

    arena_init(&a, 4096);
    own_done(buf) text;
    buf_init(&text, LIMIT);
    for (unsigned i = 0; i < 1000; i++)
        buf_addf(&text, "k%u = \"\\t\"\n", i);
    CHECK_ERR(toml_parse(&a, buf_str(&text), &v), ERR_NO_MEMORY, "4096");
}

TEST(toml_survives_every_failing_allocation)
{
    static const char text[] =
        "a.b = \"\\t\"\nc = [1, 2.5, {d = 1979-05-27 07:32:00}]\n[[e]]\n[f.g]\n";

    for (unsigned n = 1;; n++) {
        struct arena a;
        struct json *v;
        arena_init(&a, LIMIT);
        fault_at(n);
        struct err *e = toml_parse(&a, str_n(text, sizeof text - 1), &v);
        bool fired = fault_fired();
        fault_at(0);
        CHECK((e != NULL) == fired);
        err_free(e);
        arena_done(&a);
        if (!fired)
            break;
    }
}
