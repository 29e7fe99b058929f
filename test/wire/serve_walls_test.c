// SPDX-License-Identifier: Apache-2.0
/* serve_walls_test.c — what a server says of the walls around its sandboxes, and has itself. */
#include <pwd.h>
#include <stdlib.h>

#include "base/fd.h"
#include "test/program.h"
#include "test/v1_kit.h"

static bool has_cap(const struct json *sandbox, const char *name)
{
    const struct json *list = json_get(sandbox, STR("capabilities"));

    CHECK(list && list->type == JSON_ARRAY);
    for (const struct json *c = list->first; c; c = c->next)
        if (str_eq(c->s, str_of(name)))
            return true;
    return false;
}

static const struct json *lack_of(const struct json *sandbox, struct str name)
{
    const struct json *list = json_get(sandbox, STR("lacks"));

    CHECK(list && list->type == JSON_ARRAY);
    for (const struct json *c = list->first; c; c = c->next)
        if (str_eq(json_get_str(c, "name", STR("")), name))
            return c;
    return NULL;
}

static const struct json *doctor(struct serve *s)
{
    own_done(buf) out;
    struct json *report;

    buf_init(&out, 1u << 16);
    setenv("CROFT_SERVER_STATE_DIR", s->state, 1);
    CHECK_INT(program_run(ARGS(test_program("croft"), "doctor", "--json"), &out), 0);
    CHECK_OK(json_parse(&s->arena, arena_copy(&s->arena, buf_str(&out)), NULL, &report));
    return json_get(report, STR("layers"));
}

/* Each layer is there or named, in the doctor's words. */
static void check_lacks(struct serve *s, const struct json *sandbox)
{
    const struct json *layers = doctor(s);

    CHECK(layers && layers->count > 10);
    for (const struct json *l = layers->first; l; l = l->next) {
        const struct json *lack = lack_of(sandbox, l->key);
        if (json_get_bool(l, "there", false)) {
            if (lack)
                FAIL("it has " STR_FMT " and lacks it", STR_ARG(l->key));
            continue;
        }
        if (!lack)
            FAIL("it lacks " STR_FMT " and does not say so", STR_ARG(l->key));
        CHECK_HAS(json_get_str(lack, "why", STR("")), json_get_str(l, "how", STR("?")));
        CHECK_STR(json_get_str(lack, "remedy", STR("")), json_get_str(l, "remedy", STR("?")));
    }
}

TEST_LIMIT(serve_of_root_says_what_its_sandboxes_have_and_lack, 120)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    struct json *r = serve_start(&s, "a", ""), *sandbox = look(&s, r);
    CHECK(has_cap(sandbox, "hide-files") && has_cap(sandbox, "hide-network"));
    CHECK(has_cap(sandbox, "user") && !lack_of(sandbox, STR("ids")));
    CHECK(has_cap(sandbox, "limit-memory") == !lack_of(sandbox, STR("memory")));
    CHECK_INT(json_get(sandbox, STR("warning"))->type, JSON_NULL);
    CHECK(!json_get(r, STR("capabilities"))); /* of OpenHands' object nothing changes */
    check_lacks(&s, sandbox);
    serve_close(&s);
}

TEST_LIMIT(serve_of_an_ordinary_user_names_the_limits_that_nobody_enforces, 120)
{
    static const struct {
        const char *cap, *layer;
    } limits[] = {{"limit-memory", "memory"},
                  {"limit-pids", "pids"},
                  {"limit-cpu", "cpu"},
                  {"limit-disk", "disk"},
                  {"pause", "pause"}};
    struct serve s = {.key = NULL};
    own_done(buf) out;

    serve_prepare_user(&s);
    serve_run(&s, NULL);
    struct json *r = serve_start(&s, "a", ""), *sandbox = look(&s, r);
    CHECK(lack_of(sandbox, STR("ids")) && has_cap(sandbox, "hide-files"));
    for (size_t i = 0; i < ARRAY_LEN(limits); i++)
        if (has_cap(sandbox, limits[i].cap) == (lack_of(sandbox, str_of(limits[i].layer)) != NULL))
            FAIL("%s: is it there or not?", limits[i].cap);
    check_lacks(&s, sandbox);
    buf_init(&out, 1u << 16);
    CHECK_INT(program_run(ARGS(test_program("croft"), "inspect", "a"), &out), 0);
    CHECK_HAS(buf_str(&out), "lacks");
    CHECK_HAS(buf_str(&out), "none: root inside is you");
    serve_close(&s);
}

static uint64_t status_of(struct serve *s, const char *name, int base)
{
    own_done(buf) text;

    buf_init(&text, 1u << 16);
    CHECK_OK(fd_read_file(serve_text(s, "/proc/%d/status", (int)s->wire.pid), &text));
    ptrdiff_t at = str_find(buf_str(&text), str_of(serve_text(s, "\n%s:\t", name)));
    CHECK(at >= 0);
    return strtoull(text.p + at + 3 + strlen(name), NULL, base);
}

/* A bug in a parser is not root on the host. */
TEST_LIMIT(serve_started_by_root_is_an_ordinary_user_without_capabilities, 120)
{
    static const char *const sets[] = {"CapInh", "CapPrm", "CapEff", "CapAmb"};
    struct serve s = {.key = NULL};

    serve_open(&s);
    const struct passwd *own = getpwnam("croft");
    CHECK_INT(status_of(&s, "Uid", 10), own ? own->pw_uid : 65534);
    CHECK(status_of(&s, "Gid", 10) != 0);
    for (size_t i = 0; i < ARRAY_LEN(sets); i++)
        CHECK_INT(status_of(&s, sets[i], 16), 0);
    serve_close(&s);
}
