// SPDX-License-Identifier: Apache-2.0
/* serve_idle_test.c — what nobody uses is paused; what somebody uses is not. */
#include <poll.h>
#include <string.h>

#include "test/program.h"
#include "test/serve_kit.h"

static const char *status_of(struct serve *s, const char *session)
{
    return serve_field(s, serve_want(s, 200, "GET", serve_text(s, "/sessions/%s", session), NULL),
                       "status");
}

static void wait_for(struct serve *s, const char *session, const char *status)
{
    for (unsigned i = 0; i < 3000; i++) {
        if (strcmp(status_of(s, session), status) == 0)
            return;
        poll(NULL, 0, 20);
    }
    FAIL("session %s is %s, never %s", session, status_of(s, session), status);
}

TEST_LIMIT(serve_pauses_what_is_idle_and_not_what_runs_something, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, "[idle]\npause_after = '300ms'\n");
    struct json *busy = serve_start(&s, "busy", "'environment':{'NO_CHANGE_TIMEOUT_SECONDS':'1'}");
    CHECK_HAS(serve_exec_soft(&s, busy, "echo on; sleep 600"), "on");
    serve_start(&s, "idle", "");
    wait_for(&s, "idle", "paused");
    serve_start(&s, "later", "");
    wait_for(&s, "later", "paused");
    CHECK_STR(status_of(&s, "busy"), "running");
    serve_close(&s);
}

TEST_LIMIT(serve_takes_a_background_job_for_use_until_it_ends, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, "[idle]\npause_after = '300ms'\n");
    struct json *job = serve_start(&s, "job", "");
    struct json *daemon = serve_start(&s, "daemon", "");
    serve_exec(&s, job, "sleep 600 & echo begun");
    serve_exec(&s, daemon, "setsid sleep 600 >/dev/null 2>&1 & disown; exit");
    for (unsigned i = 0; i < 3; i++) {
        const char *session = serve_text(&s, "idle%u", i);
        serve_exec(&s, serve_start(&s, session, ""), "true");
        wait_for(&s, session, "paused"); /* its shell waits: that is no use */
    }
    CHECK_STR(status_of(&s, "job"), "running");
    CHECK_STR(status_of(&s, "daemon"), "running");
    CHECK_HAS(serve_exec(&s, job, "kill %1; wait; echo over"), "over");
    serve_exec(&s, daemon, "pkill sleep");
    wait_for(&s, "job", "paused");
    wait_for(&s, "daemon", "paused");
    serve_close(&s);
}
