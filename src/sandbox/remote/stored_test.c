// SPDX-License-Identifier: Apache-2.0
/* stored_test.c — snapshots and ports of remote sandboxes: what is claimed, and what becomes of
 * answers that were lost. */
#include <stdio.h>
#include <string.h>

#include "sandbox/remote/inner.h"
#include "test/remote_kit.h"
#include "test/test.h"

#define WITH_PORTS                                                                                 \
    "{\"runtime_id\":\"abc\",\"url\":\"http://127.0.0.1:1/abc\",\"status\":\"running\","           \
    "\"pod_status\":\"running\",\"session_api_key\":null,\"vscode_url\":\"http://h/abc/vscode\","  \
    "\"work_hosts\":{\"http://h/abc/work-1\":12000,\"x\":\"y\",\"http://w\":99999}}"

static fallible snap(struct sbx *s, sbx_done *done, void *arg)
{
    return sbx_snapshot(s, STR("point"), done, arg);
}

static void learn(struct world *w)
{
    for (int i = 0; w->driver->unsure && i < 1000; i++)
        web_turns(&w->web, 12);
    CHECK(!w->driver->unsure);
}

TEST(remote_claims_snapshots_of_a_croft_only_and_not_before_it_knows)
{
    for (int croft = 0; croft < 2; croft++) {
        struct world w = {.croft = croft};
        const struct answer script[] = {{"POST /start", 200, "running"}, STOPPED_AND_GONE, END};
        const struct answer croft_script[] = {
            {"POST /start", 200, "running"},
            {"POST /croft/v1/sandboxes/abc/snapshot", 200, "{\"name\":\"point\"}"},
            {"POST /croft/v1/sandboxes/abc/stop", 200, "paused"},
            {"DELETE /croft/v1/sandboxes/abc", 200, "stopped"},
            END};

        world_open(&w, croft ? croft_script : script);
        CHECK_ERR(sbx_snapshot(w.s, STR("point"), NULL, NULL), ERR_BUSY, "not known yet");
        CHECK_ERR(sbx_snapshot_remove(w.driver, STR("point"), NULL, NULL), ERR_BUSY, "known yet");
        learn(&w);
        world_must(&w, sbx_start);
        if (croft) {
            world_must(&w, snap);
            CHECK_STR(w.sent, "{\"name\":\"point\"}");
        } else
            CHECK_ERR(sbx_snapshot(w.s, STR("point"), NULL, NULL), ERR_UNSUPPORTED, "snapshot");
        world_must(&w, sbx_stop);
        world_must(&w, sbx_remove);
        world_close(&w);
    }
}

TEST(remote_asks_who_is_there_until_it_is_told_whatever_goes_wrong)
{
    struct world w = {.croft = true};
    const struct answer script[] = {END};
    struct sbx_driver *other;
    char nobody[100], bad[600] = "http://";

    world_open(&w, script);
    learn(&w);
    snprintf(nobody, sizeof nobody, "http://127.0.0.1:%u", test_free_port());
    memset(bad + 7, 'a', sizeof bad - 8); /* too long to be asked at all */
    w.settings.url = str_of(nobody);
    CHECK_OK(sbx_driver_open(sbx_backend_find(STR("remote")), &w.host, &other));
    web_turns(&w.web, 30);
    w.settings.url = str_of(bad);
    for (int i = 0; i < 5; i++) {
        web_pass(&w.web, 30000);
        web_turns(&w.web, 12);
        CHECK(other->unsure);
    }
    w.settings.url = str_of(w.url);
    for (int i = 0; other->unsure && i < 1000; i++) {
        web_pass(&w.web, 100);
        web_turns(&w.web, 12);
    }
    CHECK(!other->unsure && (other->caps & SBX_CAN_SNAPSHOT));
    sbx_driver_close(other);
    world_must(&w, sbx_remove);
    world_close(&w);
}

TEST(remote_looks_whose_a_snapshot_is_when_its_answer_was_lost)
{
    static const char *const lists[] = {
        "{\"snapshots\":[{\"name\":\"other\",\"sandbox\":\"abc\"},"
        "{\"name\":\"point\",\"sandbox\":\"abc\"}]}",
        "{\"snapshots\":[{\"name\":\"point\",\"sandbox\":\"xyz\"},3]}",
    };

    for (int i = 0; i < 2; i++) {
        struct world w = {.croft = true};
        const struct answer script[] = {
            {"POST /start", 200, "running"},
            {"POST /croft/v1/sandboxes/abc/snapshot", 200, "{}", NULL, CUT},
            {"POST /croft/v1/sandboxes/abc/snapshot", 409, "there is one"},
            {"GET /croft/v1/snapshots", 200, lists[i]},
            {"POST /croft/v1/sandboxes/abc/snapshot", 409,
             "there is one"}, /* and no attempt before */
            {"POST /croft/v1/sandboxes/abc/stop", 200, "paused"},
            {"DELETE /croft/v1/sandboxes/abc", 200, "stopped"},
            END};

        world_open(&w, script);
        learn(&w);
        world_must(&w, sbx_start);
        if (i == 0)
            world_must(&w, snap);
        else
            world_must_fail(&w, snap, ERR_CONFLICT, "already");
        world_must_fail(&w, snap, ERR_CONFLICT, "there is one");
        world_must(&w, sbx_stop);
        world_must(&w, sbx_remove);
        world_close(&w);
    }
}

TEST(remote_does_not_end_twice_what_is_stopped_and_gone_there)
{
    struct world w = {.croft = true};
    const struct answer script[] = {{"POST /start", 200, "running"},
                                    {"POST /croft/v1/sandboxes/abc/stop", 200, "paused"},
                                    {"POST /croft/v1/sandboxes/abc/snapshot", 404, "not found"},
                                    {"DELETE /croft/v1/sandboxes/abc", 404, "not found"},
                                    END};

    world_open(&w, script);
    learn(&w);
    world_must(&w, sbx_start);
    world_must(&w, sbx_stop);
    world_must_fail(&w, snap, ERR_NOT_FOUND, "not found");
    CHECK_INT(w.gone, 0);
    world_must(&w, sbx_remove);
    world_close(&w);
}

TEST(remote_reaches_the_ports_that_a_server_publishes)
{
    struct world w = {0};
    const struct answer script[] = {{"POST /start", 200, WITH_PORTS}, STOPPED_AND_GONE, END};
    struct sbx_spec spec = {.id = "two", .face = SBX_FACE_COMMAND};
    struct sbx_address a;

    world_open(&w, script);
    world_must(&w, sbx_remove);
    CHECK_OK(sbx_create(w.driver, &spec, &w.s));
    CHECK_OK(sbx_start(w.s, world_on_done, &w));
    world_until_answered(&w, 100);
    CHECK_STR(w.error, "");
    CHECK_OK(sbx_expose(w.s, 12000, &a));
    CHECK_STR(a.url, "http://h/abc/work-1");
    CHECK_OK(sbx_expose(w.s, 60001, &a));
    CHECK_STR(a.url, "http://h/abc/vscode");
    CHECK_ERR(sbx_expose(w.s, 12001, &a), ERR_UNSUPPORTED, "port 12001");
    world_must(&w, sbx_stop);
    world_must(&w, sbx_remove);
    world_close(&w);
}
