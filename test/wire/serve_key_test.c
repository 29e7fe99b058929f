// SPDX-License-Identifier: Apache-2.0
/* serve_key_test.c — the session key of a runtime that is resumed. */
#include <string.h>

#include "test/program.h"
#include "test/serve_kit.h"

#define ASK "/croft/v1/shells"

/* The key of now is another and opens; the one before does not. */
static void check_new_key(struct serve *s, const struct json *now, const struct json *before)
{
    CHECK(
        strcmp(serve_field(s, now, "session_api_key"), serve_field(s, before, "session_api_key")));
    CHECK_STR(serve_field(s, now, "url"), serve_field(s, before, "url"));
    CHECK_INT(serve_visit(s, now, ASK), 200);
    CHECK_INT(serve_visit(s, before, ASK), 403);
}

TEST_LIMIT(serve_gives_a_new_session_key_at_resume_if_it_is_told_to, 120)
{
    static const char on[] = "[server]\nrotate_session_key = true\n";
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, on);
    struct json *first = serve_start(&s, "one", "");
    CHECK_INT(serve_visit(&s, first, ASK), 200);
    serve_tell(&s, "/pause", first);
    struct json *second = serve_tell(&s, "/resume", first);
    check_new_key(&s, second, first);
    CHECK_STR(serve_field(&s, serve_tell(&s, "/resume", first), "session_api_key"),
              serve_field(&s, second, "session_api_key")); /* it runs: nothing was resumed */
    CHECK_HAS(serve_exec(&s, second, "echo in; cat /proc/1/environ"), "in");

    serve_kill(&s);
    serve_run_with(&s, on);
    check_new_key(&s, second, first);
    CHECK_INT(serve_visit(&s, second, ASK), 200);

    const char *path =
        serve_text(&s, "/croft/v1/sandboxes/%s", serve_field(&s, first, "runtime_id"));
    serve_want(&s, 200, "POST", serve_text(&s, "%s/stop", path), NULL);
    serve_want(&s, 200, "POST", serve_text(&s, "%s/resume", path), NULL);
    struct json *third = serve_start(&s, "one", "");
    check_new_key(&s, third, second);
    CHECK_INT(serve_visit(&s, first, ASK), 403);
    serve_close(&s);
}

/* Neither over a pause nor over a stop: what is told is what the next server knows too. */
TEST_LIMIT(serve_tells_no_session_key_that_is_not_written_down, 120)
{
    static const char on[] = "[server]\nrotate_session_key = true\n";
    static const char *const ends[] = {"pause", "stop"};
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, on);
    struct json *first = serve_start(&s, "one", "");
    const char *path =
        serve_text(&s, "/croft/v1/sandboxes/%s", serve_field(&s, first, "runtime_id"));
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        serve_want(&s, 200, "POST", serve_text(&s, "%s/%s", path, ends[i]), NULL);
        pid_t locker = serve_lock_rows(&s);
        struct serve_answer a = serve_ask(&s, "POST", serve_text(&s, "%s/resume", path), NULL);
        CHECK_INT(a.status, 503);
        serve_unlock_rows(locker);
        struct json *now = serve_start(&s, "one", "");
        CHECK_STR(serve_field(&s, now, "session_api_key"),
                  serve_field(&s, first, "session_api_key"));
        CHECK_INT(serve_visit(&s, first, ASK), 200);
    }
    serve_kill(&s);
    serve_run_with(&s, on);
    CHECK_INT(serve_visit(&s, first, ASK), 200);
    serve_close(&s);
}

TEST_LIMIT(serve_keeps_a_session_key_over_a_resume_as_clients_rely_on, 120)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    struct json *first = serve_start(&s, "one", "");
    serve_tell(&s, "/pause", first);
    CHECK_STR(serve_field(&s, serve_tell(&s, "/resume", first), "session_api_key"),
              serve_field(&s, first, "session_api_key"));
    CHECK_INT(serve_visit(&s, first, ASK), 200);
    serve_close(&s);
}
