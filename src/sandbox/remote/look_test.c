// SPDX-License-Identifier: Apache-2.0
/* look_test.c — what is asked of the other server to look at a sandbox, and what is made of it. */
#include <string.h>

#include "test/remote_kit.h"
#include "test/test.h"

#define AT "/croft/v1/sandboxes/abc"
#define STARTED                                                                                    \
    {                                                                                              \
        "POST /start", 200, "running"                                                              \
    }
#define STOPPED_THERE                                                                              \
    {                                                                                              \
        "POST " AT "/stop", 200, "paused"                                                          \
    }
#define GONE_THERE                                                                                 \
    {                                                                                              \
        "DELETE " AT, 200, "stopped"                                                               \
    }

TEST(remote_measures_at_the_other_server)
{
    struct world w = {.croft = true};
    const struct answer script[] = {
        STARTED,
        {"GET " AT "/stats", 200, "{\"memory_bytes\":5,\"cpu_ns\":7,\"pids\":2,\"oom_kills\":1}"},
        {"GET " AT "/stats", 200, "{\"memory_bytes\":null,\"cpu_ns\":9}"},
        {"GET " AT "/stats", 200, "{\"memory_bytes\":\"5\"}"},
        {"GET " AT "/stats", 503, "busy"}, /* and not again: it is who asks that does */
        {"GET " AT "/stats", 404, "who?"},
        END};

    world_open(&w, script);
    world_must(&w, sbx_start);
    world_must(&w, sbx_measure);
    CHECK_INT(w.s->usage.memory_bytes, 5);
    CHECK_INT(w.s->usage.cpu_ns, 7);
    CHECK_INT(w.s->usage.pids, 2);
    CHECK_INT(w.s->usage.oom_kills, 1);
    world_must(&w, sbx_measure);
    CHECK_INT(w.s->usage.memory_bytes, 0);
    CHECK_INT(w.s->usage.cpu_ns, 9);
    world_must_fail(&w, sbx_measure, ERR_UPSTREAM, "memory_bytes");
    world_must_fail(&w, sbx_measure, ERR_BUSY, "the server: busy");
    CHECK_INT(w.gone, 0);
    world_must_fail(&w, sbx_measure, ERR_NOT_FOUND, "who?");
    CHECK_INT(w.gone, 1);
    world_must(&w, sbx_remove);
    world_close(&w);
}

TEST(remote_measures_at_no_other_server_than_a_croft)
{
    struct world w = {0};
    const struct answer script[] = {STARTED, STOPPED_AND_GONE, END};

    world_open(&w, script);
    world_must(&w, sbx_start);
    world_must_fail(&w, sbx_measure, ERR_UNSUPPORTED,
                    "cannot count what a sandbox uses here: that needs a croft at the other side");
    world_must(&w, sbx_stop);
    world_must(&w, sbx_remove);
    world_close(&w);
}

static fallible diff(struct sbx *s, sbx_done *done, void *arg)
{
    return sbx_files(s, SBX_FILES_DIFF, STR("{\"offset\":7,\"limit\":3}"), done, arg);
}

static fallible apply(struct sbx *s, sbx_done *done, void *arg)
{
    return sbx_files(s, SBX_FILES_APPLY, STR("{}"), done, arg);
}

static fallible go_back(struct sbx *s, sbx_done *done, void *arg)
{
    return sbx_files(s, SBX_FILES_ROLLBACK, STR("point"), done, arg);
}

#define DIFF "GET " AT "/diff?offset=7&limit=3"

TEST(remote_hands_on_what_the_other_server_says_of_changes)
{
    struct world w = {.croft = true};
    const struct answer script[] = {STARTED,
                                    {DIFF, 200, "{\"sandbox\":\"abc\",\"total\" : 0}"},
                                    {DIFF, 200, "{\"sandbox\":\"abcd\",\"total\":0}"},
                                    {DIFF, 503, "as many as may be at once"}, /* and not again */
                                    {DIFF, 200, "event: nonsense\n\n"},
                                    {"POST " AT "/stop", 200, "paused"},
                                    {DIFF, 404, "who?"},
                                    {"POST " AT "/rollback", 200, "stopped"},
                                    {"POST " AT "/rollback", 404, "no such snapshot"},
                                    {"DELETE " AT, 200, "stopped"},
                                    END};

    world_open(&w, script);
    world_must(&w, sbx_start);
    world_must(&w, diff);
    CHECK_STR(str_of(w.s->report), "{\"sandbox\":\"one\",\"total\" : 0}"); /* to the byte */
    world_must_fail(&w, diff, ERR_UPSTREAM, "not about its sandbox");
    world_must_fail(&w, diff, ERR_BUSY, "the server: as many as may be at once");
    world_must_fail(&w, diff, ERR_UPSTREAM, "not about its sandbox");
    world_must_fail(&w, apply, ERR_UNSUPPORTED, "no directory of this machine");
    world_must(&w, sbx_stop);
    world_must_fail(&w, diff, ERR_NOT_FOUND, "who?");
    world_must(&w, go_back);
    CHECK_STR(w.sent, "{\"to\":\"point\"}");
    world_must_fail(&w, go_back, ERR_NOT_FOUND, "no such snapshot");
    world_must(&w, sbx_remove);
    world_close(&w);
}

TEST(remote_asks_no_other_server_than_a_croft_what_changed)
{
    struct world w = {0};
    const struct answer script[] = {STARTED, STOPPED_AND_GONE, END};

    world_open(&w, script);
    world_must(&w, sbx_start);
    world_must_fail(&w, diff, ERR_UNSUPPORTED, "that needs a croft at the other side");
    world_must(&w, sbx_stop);
    world_must(&w, sbx_remove);
    world_close(&w);
}
