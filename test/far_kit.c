// SPDX-License-Identifier: Apache-2.0
/* far_kit.c — see far_kit.h. */
#include "test/far_kit.h"

#include <poll.h>
#include <stdio.h>

#include "base/fd.h"
#include "test/program.h"

void two_put_key(struct two *t, int i, const char *name, const char *key)
{
    own_fd dir = test_dir_fd();

    CHECK_OK(fd_replace_file(dir, name, str_of(key), 0644));
    snprintf(t->keys[i], sizeof t->keys[i], "%s/%s", test_dir(), name);
}

void two_run_far_as(struct two *t, unsigned port, const char *key_file)
{
    const char *listen = serve_text(&t->far, "127.0.0.1:%u", port);

    wire_start_log(&t->far.wire, "croft",
                   ARGS("serve", "--listen", listen, "--state", t->far.state, "--log-level",
                        "error", "--api-key-file", key_file, "--at-exit", "delete"),
                   -1);
}

void two_run_far(struct two *t, unsigned port)
{
    two_run_far_as(t, port, t->keys[0]);
}

void two_run_near(struct two *t, const char *config)
{
    own_fd dir = test_dir_fd();

    CHECK_OK(fd_replace_file(dir, "near.toml", str_of(config), 0644));
    serve_run(&t->near, ARGS("--backend", "remote", "--remote-url",
                             serve_text(&t->near, "http://127.0.0.1:%u", t->far.wire.port),
                             "--remote-key-file", t->keys[0], "--api-key-file", t->keys[1],
                             "--config", serve_text(&t->near, "%s/near.toml", test_dir())));
}

void two_open(struct two *t, const char *config)
{
    *t = (struct two){.far = {.key = FAR_KEY}};
    serve_prepare(&t->far);
    two_put_key(t, 0, "far.key", FAR_KEY "\n");
    two_put_key(t, 1, "near.key", NEAR_KEY);
    t->near = (struct serve){.key = NEAR_KEY};
    arena_init(&t->near.arena, 1u << 30);
    snprintf(t->near.state, sizeof t->near.state, "%s/near", test_dir());
    two_run_far(t, 0);
    two_run_near(t, config);
}

void two_close(struct two *t)
{
    CHECK_INT(wire_stop(&t->near.wire), 0);
    CHECK_INT(json_get_int(serve_want(&t->far, 200, "GET", "/list", NULL), "total", -1), 0);
    arena_done(&t->near.arena);
    serve_close(&t->far);
}

struct json *two_far_of(struct two *t, const struct json *r)
{
    return serve_want(&t->far, 200, "GET",
                      serve_text(&t->far, "/sessions/%s", serve_field(&t->near, r, "runtime_id")),
                      NULL);
}

void two_wait_answers(struct two *t, const struct json *r)
{
    while (serve_visit(&t->near, r, "/alive") == 503)
        poll(NULL, 0, 20);
}
