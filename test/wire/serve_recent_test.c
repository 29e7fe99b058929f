// SPDX-License-Identifier: Apache-2.0
/* serve_recent_test.c — warm sandboxes of images: of those that are started again and again, and
 * of one whose name means another image by now. */
#include <poll.h>
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

static void open_with(struct serve *s, const char *config)
{
    serve_prepare(s);
    image_kit_import(s->state, "mine:1", RED);
    serve_run_with(s, config);
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
