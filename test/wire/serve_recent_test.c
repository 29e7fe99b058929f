// SPDX-License-Identifier: Apache-2.0
/* serve_recent_test.c — warm sandboxes of images: of those that are started again and again, and
 * of one whose name means another image by now. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "test/image_kit.h"
#include "test/program.h"
#include "test/serve_kit.h"

#define RED  "{\"Env\":[\"COLOUR=red\",\"PATH=/bin\"],\"WorkingDir\":\"/app\",\"User\":\"app\"}"
#define BLUE "{\"Env\":[\"COLOUR=blue\",\"PATH=/bin\"]}"

static unsigned sessions;

static struct json *start(struct serve *s, const char *image)
{
    struct json *r = serve_start_image(s, image, serve_text(s, "s-%u", sessions++), "");

    CHECK_STR(serve_field(s, r, "status"), "running");
    return r;
}

/* Starts and stops one; was it like this? */
static bool is(struct serve *s, const char *image, const char *detail)
{
    struct json *r = start(s, image);
    bool so = strstr(serve_field(s, r, "status_detail"), detail) != NULL;

    serve_tell(s, "/stop", r);
    return so;
}

static struct json *start_warm(struct serve *s, const char *image)
{
    for (unsigned i = 0; i < 1000; i++) {
        struct json *r = start(s, image);
        if (strncmp(serve_field(s, r, "status_detail"), "warm", 4) == 0)
            return r;
        serve_tell(s, "/stop", r);
        poll(NULL, 0, 20);
    }
    FAIL("nothing of image %s becomes warm", image);
}

/* Of this image, as the key sees it; NULL: none. */
static const struct json *pool_of(struct serve *s, const char *image)
{
    struct json *o = serve_want(s, 200, "GET", "/croft/v1/pool", NULL);

    for (const struct json *p = json_get(o, STR("pools"))->first; p; p = p->next)
        if (strcmp(serve_field(s, p, "image"), image) == 0)
            return p;
    return NULL;
}

static void wait_ready(struct serve *s, const char *image, int64_t ready)
{
    for (unsigned i = 0; i < 3000; i++, poll(NULL, 0, 20)) {
        const struct json *p = pool_of(s, image);
        if (p && json_get_int(p, "ready", 0) == ready)
            return;
    }
    FAIL("%s does not get %d", image, (int)ready);
}

static void wait_gone(struct serve *s, const char *image)
{
    for (unsigned i = 0; i < 3000 && pool_of(s, image); i++)
        poll(NULL, 0, 20);
    CHECK(!pool_of(s, image));
}

static void open_with(struct serve *s, const char *config)
{
    serve_prepare(s);
    image_kit_import(s->state, "mine:1", RED);
    serve_run_with(s, config);
}

TEST_LIMIT(serve_keeps_an_image_warm_that_is_started_again, 120)
{
    struct serve s = {.key = NULL};

    open_with(&s, "");
    CHECK(is(&s, "mine:1", "cold: no pool has this image"));
    CHECK(!pool_of(&s, "mine:1"));
    CHECK(is(&s, "mine:1", "cold: no pool has this image"));
    wait_ready(&s, "mine:1", 2);
    struct json *r = start(&s, "mine:1");
    CHECK_HAS(str_of(serve_field(&s, r, "status_detail")), "warm: from pool 'recent:1'");
    CHECK_STR(serve_exec(&s, r, "echo $COLOUR; pwd; id -u"), "red\n/app\n1234");
    serve_tell(&s, "/stop", r);
    wait_ready(&s, "mine:1", 2);
    CHECK(is(&s, "host", "warm: from pool 'default'"));
    serve_close(&s);
}

TEST_LIMIT(serve_keeps_no_image_warm_that_is_not_wanted_so, 120)
{
    struct serve s = {.key = NULL};

    open_with(&s, "[server]\nwarm_recent = 0\n");
    for (unsigned i = 0; i < 4; i++)
        CHECK(is(&s, "mine:1", "cold: no pool has this image"));
    CHECK(!pool_of(&s, "mine:1"));
    serve_close(&s);
}

TEST_LIMIT(serve_shows_no_tenant_which_images_others_start, 120)
{
    struct serve s = {.key = "first"};

    serve_prepare(&s);
    image_kit_import(s.state, "mine:1", RED);
    setenv("CROFT_API_KEY", "first", 1);
    serve_run(&s, NULL);
    CHECK(is(&s, "mine:1", "cold") && is(&s, "mine:1", "cold"));
    CHECK(pool_of(&s, "mine:1"));
    struct serve_answer a = serve_get(&s, "/api/warm-runtime-configs");
    CHECK_HAS(a.body, "\"default\"");
    CHECK(str_find(a.body, STR("mine:1")) < 0);
    a = serve_get(&s, "/metrics");
    CHECK_HAS(a.body, "croft_pool_target{pool=\"recent:all\"} 2");
    CHECK(str_find(a.body, STR("recent:1")) < 0 && str_find(a.body, STR("mine:1")) < 0);
    s.key = serve_make_key(&s, "{'name':'other','scopes':['runtime']}");
    CHECK(!pool_of(&s, "mine:1"));
    CHECK(pool_of(&s, "host"));
    serve_close(&s);
}

TEST_LIMIT(serve_lets_an_image_go_that_is_not_started_any_more, 120)
{
    struct serve s = {.key = NULL};
    own_done(buf) said;

    buf_init(&said, 1u << 16);
    open_with(&s, "");
    serve_tell(&s, "/stop", start_warm(&s, "mine:1"));
    wait_ready(&s, "mine:1", 2);
    CHECK(program_run(ARGS(test_program("croft"), "image", "rm", "mine:1"), &said) != 0);
    CHECK_HAS(buf_str(&said), "croft pool set NAME --target 0");
    serve_reload(&s, "[server]\nwarm_recent_for = '50ms'\n[pool.default]\n");
    wait_gone(&s, "mine:1");
    int code;
    do /* they are gone a moment after their pool */
        code = program_run(ARGS(test_program("croft"), "image", "rm", "mine:1"), &said);
    while (code != 0 && str_find(buf_str(&said), STR("a sandbox runs on")) >= 0 &&
           !poll(NULL, 0, 20));
    CHECK_INT(code, 0);
    serve_refused(&s, 422, "is not here", "POST", "/start", "{'image':'mine:1','session_id':'x'}");
    serve_close(&s);
}

TEST_LIMIT(serve_goes_on_with_what_is_warm_by_itself_when_settings_are_read, 120)
{
    struct serve s = {.key = NULL};

    open_with(&s, "");
    serve_tell(&s, "/stop", start_warm(&s, "mine:1"));
    serve_reload(&s, "[server]\nwarm_recent = 3\n[pool.default]\n");
    wait_ready(&s, "mine:1", 3);
    serve_reload(&s, "[pool.default]\n[pool.own]\nimage = 'mine:1'\ntarget = 1\n");
    wait_ready(&s, "mine:1", 1);
    CHECK_STR(serve_field(&s, pool_of(&s, "mine:1"), "name"), "own");
    CHECK(is(&s, "mine:1", "warm: from pool 'own'"));
    serve_reload(&s, "[pool.default]\n");
    wait_gone(&s, "mine:1");
    serve_close(&s);
}

/* Those that come more often stay; who comes more often than one of them takes its place. */
TEST_LIMIT(serve_keeps_the_four_images_warm_that_are_started_most, 120)
{
    static const char *const images[] = {"mine:1", "mine:2", "mine:3", "mine:4", "mine:5"};
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    for (unsigned i = 0; i < ARRAY_LEN(images); i++)
        image_kit_import(s.state, images[i], RED);
    serve_run_with(&s, "[server]\nwarm_recent = 1\n");
    for (unsigned round = 0; round < 3; round++)
        for (unsigned i = 0; i < ARRAY_LEN(images); i++)
            is(&s, images[i], "");
    for (unsigned i = 0; i < 4; i++)
        wait_ready(&s, images[i], 1);
    CHECK(!pool_of(&s, "mine:5"));
    CHECK(is(&s, "mine:5", "no pool") && is(&s, "mine:5", ""));
    wait_ready(&s, "mine:5", 1);
    CHECK(!pool_of(&s, "mine:1"));
    CHECK(is(&s, "mine:5", "warm: from pool 'recent:1'"));
    serve_close(&s);
}

TEST_LIMIT(serve_has_no_room_for_what_nobody_asked_for, 120)
{
    struct serve s = {.key = NULL};

    open_with(&s, "[server]\nmost_sandboxes = 4\n[pool.p]\ntarget = 0\n");
    serve_tell(&s, "/stop", start_warm(&s, "mine:1"));
    wait_ready(&s, "mine:1", 2);
    for (unsigned i = 0; i < 4; i++)
        start(&s, "host");
    wait_gone(&s, "mine:1");
    serve_close(&s);
}

TEST_LIMIT(serve_that_lost_its_launcher_forgets_what_it_kept_warm_by_itself, 120)
{
    struct serve s = {.key = NULL};

    open_with(&s, "");
    serve_tell(&s, "/stop", start_warm(&s, "mine:1"));
    wait_ready(&s, "mine:1", 2);
    start(&s, "host"); /* with none the launcher would not be waited for */
    CHECK_INT(kill(serve_launcher(&s), SIGKILL), 0);
    CHECK_INT(program_wait(s.wire.pid), 1); /* by itself, and not for a timer of nobody's */
    serve_run(&s, NULL);
    CHECK(!pool_of(&s, "mine:1"));
    serve_close(&s);
}

static const char *image_of(struct serve *s, const struct json *r)
{
    char path[500], id[80];

    snprintf(path, sizeof path, "%s/box/%s/image", s->state, serve_field(s, r, "runtime_id"));
    ssize_t n = readlink(path, id, sizeof id);
    CHECK(n == 64);
    return serve_text(s, "%.*s", (int)n, id);
}

/* A name that was given to another image means that from then on, for what is warm too. */
TEST_LIMIT(serve_gives_nobody_a_warm_sandbox_of_an_older_image, 120)
{
    struct serve s = {.key = NULL};

    open_with(&s, "[pool.own]\nimage = 'mine:1'\ntarget = 2\n");
    wait_ready(&s, "mine:1", 2);
    struct json *red = start(&s, "mine:1");
    CHECK_HAS(str_of(serve_field(&s, red, "status_detail")), "warm");
    wait_ready(&s, "mine:1", 2);
    image_kit_import(s.state, "mine:1", BLUE);
    struct json *blue = start(&s, "mine:1");
    CHECK_HAS(str_of(serve_field(&s, blue, "status_detail")),
              "cold: the image of this name is another now");
    CHECK(strcmp(image_of(&s, red), image_of(&s, blue)) != 0);
    CHECK_STR(serve_exec(&s, blue, "echo $COLOUR; pwd"), "blue\n/workspace");
    CHECK_HAS(serve_get(&s, "/metrics").body,
              "croft_pool_misses_total{pool=\"own\",reason=\"stale\"} 1");
    wait_ready(&s, "mine:1", 2);
    struct json *next = start(&s, "mine:1");
    CHECK_HAS(str_of(serve_field(&s, next, "status_detail")), "warm: from pool 'own'");
    CHECK_STR(image_of(&s, next), image_of(&s, blue));
    CHECK_STR(serve_exec(&s, red, "echo $COLOUR"), "red");
    serve_close(&s);
}
