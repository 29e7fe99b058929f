// SPDX-License-Identifier: Apache-2.0
/* remote_test.c — what the driver of remote sandboxes asks, how often, and what it makes of
 * answers. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/client/client.h"
#include "sandbox/remote/inner.h"
#include "test/remote_kit.h"
#include "test/test.h"

TEST(remote_asks_again_after_waits_that_grow)
{
    struct world w = {0};
    const struct answer script[] = {{"POST /start", 503, "busy"},
                                    {"POST /start", 502, "bad"},
                                    {"POST /start", 504, "slow"},
                                    {"POST /start", 429, "limit"},
                                    {"POST /start", 200, "running"},
                                    STOPPED_AND_GONE,
                                    END};

    world_open(&w, script);
    uint64_t ms = world_must(&w, sbx_start); /* each from half of 100, 200, 400, 800 to all of it */
    CHECK(ms >= 750 && ms <= 1500 + 100);
    world_must(&w, sbx_stop);
    world_must(&w, sbx_remove);
    world_close(&w);
}

TEST(remote_waits_as_long_as_retry_after_says)
{
    struct world w = {0};
    const struct answer script[] = {{"POST /start", 429, "limit", "7"},
                                    {"POST /start", 503, "busy", "5"},
                                    {"POST /start", 503, "busy", "Fri, 31 Dec 1999 23:59:59 GMT"},
                                    {"POST /start", 200, "running"},
                                    STOPPED_AND_GONE,
                                    END};

    world_open(&w, script);
    uint64_t ms = world_must(&w, sbx_start);
    CHECK(ms >= 12000 && ms < 13000);
    world_must(&w, sbx_stop);
    world_must(&w, sbx_remove);
    world_close(&w);
}

TEST(remote_does_not_wait_for_a_retry_after_that_is_too_long)
{
    struct world w = {0};
    const struct answer script[] = {
        {"POST /start", 429, "your quota", "3600"}, {"GET /sessions/one", 404, "none"}, END};

    world_open(&w, script);
    world_must_fail(&w, sbx_start, ERR_LIMIT, "again in 3600 seconds: the server: your quota");
    world_must(&w, sbx_remove);
    world_close(&w);
}

TEST(remote_gives_up_after_six_attempts_and_says_so)
{
    struct world w = {0};
    const struct answer script[] = {
        {"POST /start", 503, "busy"},       {"POST /start", 503, "busy"},
        {"POST /start", 503, "busy"},       {"POST /start", 503, "busy"},
        {"POST /start", 503, "busy"},       {"POST /start", 503, "full"},
        {"GET /sessions/one", 404, "none"}, END};

    world_open(&w, script);
    world_must_fail(&w, sbx_start, ERR_BUSY, "6 attempts: the server: full");
    world_must(&w, sbx_remove);
    world_close(&w);
}

TEST(remote_does_not_repeat_what_was_refused_for_good)
{
    static const struct {
        int status;
        enum err_code code;
    } rows[] = {{400, ERR_INVALID},     {401, ERR_UNAUTHORIZED},  {403, ERR_FORBIDDEN},
                {409, ERR_CONFLICT},    {422, ERR_UNPROCESSABLE}, {500, ERR_UPSTREAM},
                {501, ERR_UNSUPPORTED}, {507, ERR_NO_SPACE}};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct world w = {0};
        const struct answer script[] = {
            {"POST /start", rows[i].status, "because"}, {"GET /sessions/one", 404, "none"}, END};
        world_open(&w, script);
        world_must_fail(&w, sbx_start, rows[i].code, "the server: because");
        if (rows[i].status == 401)
            CHECK_HAS(w.error, "api_key");
        world_must(&w, sbx_remove);
        world_close(&w);
    }
}

TEST(remote_sends_a_start_again_when_its_answer_was_cut)
{
    struct world w = {0};
    const struct answer script[] = {{"POST /start", 200, "running", NULL, CUT},
                                    {"POST /start", 200, "running", NULL, CUT_LATER},
                                    {"POST /start", 200, "running"},
                                    STOPPED_AND_GONE,
                                    END};

    world_open(&w, script);
    world_must(&w, sbx_start);
    CHECK_HAS(w.sent, "\"session_id\":\"one\""); /* by which it is found again */
    world_must(&w, sbx_stop);
    world_must(&w, sbx_remove);
    world_close(&w);
}

TEST(remote_tells_that_a_server_cannot_be_reached)
{
    struct world w = {0};
    const struct answer script[] = {END};

    world_open(&w, script);
    char nobody[100];
    snprintf(nobody, sizeof nobody, "http://127.0.0.1:%u", test_free_port());
    w.settings.url = str_of(nobody);
    world_must_fail(&w, sbx_start, ERR_UPSTREAM, "6 attempts: the server cannot be reached");
    CHECK_HAS(w.error, "Connection refused");
    world_operate(&w, sbx_remove); /* whether it is there cannot be known: said, and gone here */
    CHECK_HAS(w.error, "cannot be reached");
    CHECK_INT(w.asked, 0);
    world_close(&w);
}

TEST(remote_removes_a_start_that_was_never_answered)
{
    struct world w = {.croft = true};
    const struct answer script[] = {
        {"POST /start", 500, "late"},
        {"GET /sessions/one", 200, "running"},
        {"DELETE /croft/v1/sandboxes/abc", 200, "stopped"},
        END,
    };

    world_open(&w, script);
    world_must_fail(&w, sbx_start, ERR_UPSTREAM, "late");
    world_must(&w, sbx_remove);
    world_close(&w);
}

TEST(remote_leaves_nothing_at_a_server_that_is_no_croft)
{
    struct world w = {0};
    const struct answer script[] = {
        {"POST /start", 200, "error"}, {"POST /stop", 200, "stopped"}, END};

    world_open(&w, script);
    world_must_fail(&w, sbx_start, ERR_UPSTREAM, "Runtime is unavailable (status: error)");
    world_must(&w, sbx_remove);
    CHECK_STR(w.sent, "{\"runtime_id\":\"abc\"}");
    world_close(&w);
}

TEST(remote_asks_after_a_start_until_it_is_ready_and_alive)
{
    struct world w = {.plain_alive = true};
    const struct answer script[] = {{"POST /start", 200, "starting"},
                                    {"GET /runtime/abc", 200, "starting"},
                                    {"GET /runtime/abc", 503, "busy"},
                                    {"GET /runtime/abc", 200, "running"},
                                    {"GET /runtime/abc", 200, "running"}, /* /alive was 502 */
                                    STOPPED_AND_GONE,
                                    END};

    world_open(&w, script);
    world_must(&w, sbx_start);
    CHECK_INT(w.alive, 2);
    struct sbx_info info;
    sbx_inspect(w.s, &info);
    CHECK_STR(info.address.url, w.url);
    CHECK_STR(info.session_key, "inner");
    world_must(&w, sbx_stop);
    CHECK_OK(sbx_start(w.s, world_on_done, &w));
    world_until_answered(&w, 1000);
    CHECK_HAS(w.error, "keeps no files");
    world_must(&w, sbx_remove);
    world_close(&w);
}

TEST(remote_tells_a_crash_and_a_start_that_takes_too_long_apart)
{
    struct world w = {0};
    const struct answer script[] = {{"POST /start", 200, "crashed"},
                                    {"POST /start", 200, "unknown"},
                                    {"POST /start", 200, "starting"},
                                    END};
    static struct answer forever[300];

    world_open(&w, script);
    world_must_fail(&w, sbx_start, ERR_UPSTREAM, "crashed and is being restarted");
    world_must_fail(&w, sbx_start, ERR_UPSTREAM, "Runtime is unavailable (status: unknown)");
    CHECK_OK(sbx_start(w.s, world_on_done, &w));
    web_turns(&w.web, 30);
    for (size_t i = 0; i + 1 < ARRAY_LEN(forever); i++)
        forever[i] = (struct answer){"GET /runtime/abc", 200, "starting"};
    w.script = forever;
    uint64_t ms = world_until_answered(&w, 400000);
    CHECK(ms >= 179000 && ms < 190000);
    CHECK_INT(w.code, ERR_TIMEOUT);
    CHECK_HAS(w.error, "Runtime (ID=abc) is not yet ready. Status: pending");
    CHECK(w.asked < 120); /* ever less often */
    const struct answer end[] = {STOPPED_AND_GONE, END};
    w.script = end;
    world_must(&w, sbx_remove);
    world_close(&w);
}

TEST(remote_resumes_a_session_that_a_start_finds_paused)
{
    struct world w = {0};
    const struct answer script[] = {{"POST /start", 200, "paused"},
                                    {"POST /resume", 200, "paused"},
                                    {"GET /runtime/abc", 200, "starting"},
                                    {"GET /runtime/abc", 200, "running"},
                                    STOPPED_AND_GONE,
                                    END};

    world_open(&w, script);
    world_must(&w, sbx_start);
    world_must(&w, sbx_stop);
    world_must(&w, sbx_remove);
    world_close(&w);
}

TEST(remote_looks_when_a_resume_is_a_conflict)
{
    struct world w = {0};
    const struct answer script[] = {{"POST /start", 200, "running"},
                                    {"POST /pause", 200, "paused"},
                                    {"POST /resume", 409, "is running"},
                                    {"GET /runtime/abc", 200, "running"},
                                    {"POST /pause", 200, "paused"},
                                    {"POST /resume", 409, "is stopped"},
                                    {"GET /runtime/abc", 200, "stopped"},
                                    STOPPED_AND_GONE,
                                    END};

    world_open(&w, script);
    world_must(&w, sbx_start);
    world_must(&w, sbx_pause);
    world_must(&w, sbx_resume);
    world_must(&w, sbx_pause);
    world_must_fail(&w, sbx_resume, ERR_UPSTREAM, "Runtime is unavailable (status: stopped)");
    world_must(&w, sbx_stop);
    world_must(&w, sbx_remove);
    world_close(&w);
}

TEST(remote_is_gone_when_the_server_does_not_know_it)
{
    struct world w = {0};
    const struct answer script[] = {
        {"POST /start", 200, "running"}, {"POST /pause", 404, "no such"}, END};

    world_open(&w, script);
    world_must(&w, sbx_start);
    world_must_fail(&w, sbx_pause, ERR_NOT_FOUND, "no such");
    CHECK_INT(w.gone, 1);
    struct sbx_info info;
    sbx_inspect(w.s, &info);
    CHECK_INT(info.state, SBX_STOPPED);
    CHECK_STR(info.failure, "the server does not know it any more");
    world_must(&w, sbx_remove); /* there is nobody to ask about */
    world_close(&w);
}

TEST(remote_adopts_what_is_there_and_says_whose_session_is_not)
{
    static const struct {
        const char *state;
        enum sbx_state found;
    } rows[] = {{"running", SBX_RUNNING},
                {"starting", SBX_PAUSED}, /* who wants it waits, and not who adopts */
                {"paused", SBX_PAUSED},
                {"stopped", SBX_STOPPED},
                {"error", SBX_STOPPED}};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct world w = {0};
        const struct answer script[] = {{"GET /sessions/one", 404, "none"},
                                        {"GET /sessions/one", 200, rows[i].state},
                                        STOPPED_AND_GONE,
                                        END};
        world_open(&w, script);
        world_must_fail(&w, sbx_adopt, ERR_NOT_FOUND,
                        "Could not find existing runtime for SID: one");
        world_must(&w, sbx_adopt);
        CHECK_INT(w.s->state.now, rows[i].found);
        if (rows[i].found != SBX_STOPPED)
            world_must(&w, sbx_stop);
        world_must(&w, sbx_remove);
        world_close(&w);
    }
}

TEST(remote_adopts_in_one_attempt_and_removes_what_could_not_be_asked_for)
{
    struct world w = {0};
    const struct answer script[] = {{"GET /sessions/one", 503, "busy"},
                                    {"GET /sessions/one", 200, "running"},
                                    STOPPED_AND_GONE,
                                    END};

    world_open(&w, script);
    world_must_fail(&w, sbx_adopt, ERR_BUSY, "busy");
    world_must(&w, sbx_remove);
    world_close(&w);
}

TEST(remote_stops_what_has_failed_and_tells_who_pauses_it)
{
    for (int stops = 0; stops < 2; stops++) {
        struct world w = {0};
        const struct answer script[] = {{"POST /start", 200, "running"},
                                        {stops ? "POST /stop" : "POST /pause", 409, "no"},
                                        {"GET /runtime/abc", 200, "error"},
                                        STOPPED_AND_GONE,
                                        END};

        world_open(&w, script);
        world_must(&w, sbx_start);
        if (stops)
            world_must(&w, sbx_stop);
        else
            world_must_fail(&w, sbx_pause, ERR_CONFLICT, "has failed");
        CHECK_INT(w.s->state.now, SBX_STOPPED);
        CHECK_INT(w.gone, !stops);
        world_must(&w, sbx_remove);
        world_close(&w);
    }
}

TEST(remote_sends_a_group_without_making_anybody_root)
{
    struct world w = {0};
    const struct answer script[] = {{"POST /start", 200, "running"}, STOPPED_AND_GONE, END};
    const struct sbx_spec spec = {
        .id = "grouped", .has_group = true, .gid = 7, .has_fs_group = true, .fs_group = 8};

    world_open(&w, script);
    world_must(&w, sbx_remove);
    CHECK_OK(sbx_create(w.driver, &spec, &w.s));
    CHECK(w.driver->forgets);
    CHECK_OK(sbx_start(w.s, world_on_done, &w));
    world_until_answered(&w, 100);
    CHECK_HAS(w.sent, "\"run_as_group\":7");
    CHECK_HAS(w.sent, "\"fs_group\":8");
    CHECK(!strstr(w.sent, "run_as_user"));
    world_must(&w, sbx_stop);
    world_must(&w, sbx_remove);
    world_close(&w);
}

TEST(remote_asks_a_croft_for_limits_and_tells_others_cannot)
{
    const struct answer script[] = {{"POST /croft/v1/sandboxes", 404, "Not Found"},
                                    {"GET /sessions/limited", 404, "none"},
                                    END};

    for (int croft = 0; croft < 2; croft++) {
        struct world w = {.croft = croft};
        const struct answer first[] = {END};
        world_open(&w, first);
        world_must(&w, sbx_remove);
        struct sbx_spec spec = {.id = "limited",
                                .hostname = "box",
                                .factor = 4,
                                .limits = {.memory_bytes = 64u << 20, .cpu_permille = 1500}};
        CHECK_OK(sbx_create(w.driver, &spec, &w.s));
        w.script = script;
        CHECK_OK(sbx_start(w.s, world_on_done, &w));
        world_until_answered(&w, 100);
        CHECK_INT(w.code, croft ? ERR_NOT_FOUND : ERR_UNSUPPORTED);
        CHECK_HAS(w.sent, "\"memory\":67108864");
        CHECK_HAS(w.sent, "\"cpus\":1.5");
        CHECK_HAS(w.sent, "\"hostname\":\"box\"");
        CHECK_HAS(w.sent, "\"resource_factor\":4");
        world_must(&w, sbx_remove);
        world_close(&w);
    }
}

TEST(remote_is_what_a_look_finds)
{
    struct world w = {0};
    const struct answer script[] = {{"POST /start", 200, "running"},
                                    {"GET /runtime/abc", 200, "running"},
                                    {"GET /runtime/abc", 200, "paused"},
                                    {"GET /runtime/abc", 500, "ill"},
                                    {"GET /runtime/abc", 200, "starting"},
                                    {"GET /runtime/abc", 200, "error"},
                                    STOPPED_AND_GONE,
                                    END};
    struct sbx_info info;

    world_open(&w, script);
    world_must(&w, sbx_start);
    world_must(&w, sbx_look);
    CHECK_INT(w.s->state.now, SBX_RUNNING);
    world_must(&w, sbx_look);
    CHECK_INT(w.s->state.now, SBX_PAUSED);
    world_must_fail(&w, sbx_look, ERR_UPSTREAM, "ill"); /* then nothing is known anew */
    CHECK_INT(w.s->state.now, SBX_PAUSED);
    world_must(&w, sbx_look);
    CHECK_INT(w.s->state.now, SBX_RUNNING);
    CHECK_INT(w.gone, 0);
    world_operate(&w, sbx_look);
    CHECK_INT(w.gone, 1);
    sbx_inspect(w.s, &info);
    CHECK_INT(info.state, SBX_STOPPED);
    CHECK_STR(info.failure, "at the other server: error");
    world_must(&w, sbx_remove);
    world_close(&w);
}
