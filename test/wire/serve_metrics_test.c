// SPDX-License-Identifier: Apache-2.0
/* serve_metrics_test.c — numbers of a real server, after things whose number is known. */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/image_kit.h"
#include "test/serve_kit.h"

static struct str page(struct serve *s)
{
    return serve_get(s, "/metrics").body;
}

/* The value of a line that begins with this; -1: there is none. */
static double value_of(struct serve *s, const char *series)
{
    struct str rest = page(s), line;

    for (bool more = true; more;) {
        more = str_cut(&rest, '\n', &line);
        if (str_starts(line, str_of(series)) && line.p[strlen(series)] == ' ')
            return atof(line.p + strlen(series));
    }
    return -1;
}

static void wait_value(struct serve *s, const char *series, double want)
{
    for (unsigned i = 0; value_of(s, series) != want; i++) {
        if (i > 3000)
            FAIL("%s is %g, never %g", series, value_of(s, series), want);
        poll(NULL, 0, 20);
    }
}

static const struct json *timeline_of(struct serve *s, const struct json *r)
{
    const char *at = serve_text(s, "/croft/v1/sandboxes/%s", serve_field(s, r, "runtime_id"));

    return json_get(serve_want(s, 200, "GET", at, NULL), STR("timeline"));
}

static void set_pool(struct serve *s, const char *change)
{
    serve_want(s, 200, "PATCH", "/croft/v1/pool/p", change);
}

TEST_LIMIT(serve_changes_a_pool_that_is_there_and_counts_who_it_served, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, "[pool.p]\nimage = 'host'\ntarget = 1\nceiling = 3\n");
    wait_value(&s, "croft_pool_ready{pool=\"p\"}", 1);
    set_pool(&s, "{'target':3}");
    wait_value(&s, "croft_pool_ready{pool=\"p\"}", 3);
    CHECK_INT((int)value_of(&s, "croft_pool_target{pool=\"p\"}"), 3);
    serve_refused(&s, 422, "target 4, ceiling 3", "PATCH", "/croft/v1/pool/p",
                  "{'target':4,'ceiling':3}");
    serve_refused(&s, 422, "target 3, ceiling 2", "PATCH", "/croft/v1/pool/p", "{'ceiling':2}");
    serve_refused(&s, 404, "pool 'q' not found", "PATCH", "/croft/v1/pool/q", "{'target':1}");
    struct json *warm = serve_start(&s, "warm", "");
    CHECK_HAS(str_of(serve_field(&s, warm, "status_detail")), "warm: from pool 'p'");
    CHECK_STR(json_get_str(timeline_of(&s, warm), "launch_type", STR("")), "warm");
    CHECK_INT(json_get(timeline_of(&s, warm), STR("pool_miss"))->type, JSON_NULL);
    static const char *const made[] = {"namespaces_ns", "mounts_ns"}, *const each[] = {"exec_ns",
                                                                                       "ready_ns",
                                                                                       "row_ns"};
    CHECK(json_get_int(timeline_of(&s, warm), "claim_ns", 0) > 0);
    CHECK(json_get_int(timeline_of(&s, warm), "queue_ns", -1) >= 0);
    CHECK(json_get_int(timeline_of(&s, warm), "exec_ns", 0) > 0);
    for (size_t i = 0; i < ARRAY_LEN(made); i++) /* before anybody wanted it */
        CHECK_INT(json_get_int(timeline_of(&s, warm), made[i], -1), 0);

    set_pool(&s, "{'target':0,'ceiling':0}");
    wait_value(&s, "croft_pool_ready{pool=\"p\"}", 0);
    wait_value(&s, "croft_pool_starting{pool=\"p\"}", 0); /* those that were too many are gone */
    struct json *cold = serve_start(&s, "cold", "");
    CHECK_HAS(str_of(serve_field(&s, cold, "status_detail")), "cold: the pool is empty");
    CHECK_STR(json_get_str(timeline_of(&s, cold), "launch_type", STR("")), "cold");
    CHECK_STR(json_get_str(timeline_of(&s, cold), "pool_miss", STR("")), "the pool is empty");
    CHECK_INT(json_get_int(timeline_of(&s, cold), "claim_ns", -1), 0);
    CHECK(json_get_int(timeline_of(&s, cold), "queue_ns", -1) >= 0);
    for (size_t i = 0; i < ARRAY_LEN(made); i++)
        CHECK(json_get_int(timeline_of(&s, cold), made[i], 0) > 0);
    for (size_t i = 0; i < ARRAY_LEN(each); i++)
        CHECK(json_get_int(timeline_of(&s, cold), each[i], 0) > 0);

    CHECK_INT((int)value_of(&s, "croft_claims_total{pool=\"p\",result=\"hit\"}"), 1);
    CHECK_INT((int)value_of(&s, "croft_claims_total{pool=\"p\",result=\"miss\"}"), 1);
    CHECK_INT((int)value_of(&s, "croft_pool_misses_total{pool=\"p\",reason=\"empty\"}"), 1);
    serve_close(&s);
}

TEST_LIMIT(serve_counts_a_start_no_pool_has_the_image_of, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    image_kit_import(s.state, "mine:1", "{}");
    serve_run(&s, NULL);
    serve_wait_warm(&s);
    struct json *r =
        serve_want(&s, 200, "POST", "/start", "{'image':'mine:1','session_id':'other'}");
    CHECK_HAS(str_of(serve_field(&s, r, "status_detail")), "cold: no pool has this image");
    CHECK_STR(json_get_str(timeline_of(&s, r), "pool_miss", STR("")), "no pool has this image");
    CHECK_INT((int)value_of(&s, "croft_pool_misses_total{pool=\"\",reason=\"image\"}"), 1);
    CHECK_INT((int)value_of(&s, "croft_claims_total{pool=\"\",result=\"miss\"}"), 1);
    CHECK_INT((int)value_of(&s, "croft_claims_total{pool=\"default\",result=\"miss\"}"), 0);
    serve_close(&s);
}

TEST_LIMIT(serve_counts_a_start_whose_disk_no_warm_sandbox_has, 120)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    serve_wait_warm(&s);
    struct serve_answer a = serve_ask(&s, "POST", "/croft/v1/sandboxes",
                                      "{'image':'host','session_id':'small','disk':'64M'}");
    if (a.status == 422) {
        serve_close(&s);
        SKIP("nothing here limits the disk of a sandbox");
    }
    CHECK_STR(json_get_str(timeline_of(&s, a.json), "pool_miss", STR("")),
              "it has a disk limit of its own");
    CHECK_INT((int)value_of(&s, "croft_pool_misses_total{pool=\"default\",reason=\"disk\"}"), 1);
    serve_start(&s, "small", "");
    serve_close(&s);
}

static void act(struct serve *s, const struct json *r, const char *body)
{
    CHECK(serve_ask_inside(s, r, "POST", "/execute_action", body).status > 0);
}

TEST_LIMIT(serve_counts_what_its_sandboxes_were_asked_to_do, 120)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    struct json *r = serve_start(&s, "one", "");
    CHECK_STR(serve_exec(&s, r, "echo ok"), "ok");
    CHECK_STR(serve_exec(&s, r, "false; echo bad"), "bad");
    CHECK_INT((int)value_of(&s, "croft_exec_truncated_total{stream=\"answer\"}"), 0);
    serve_exec(&s, r, "seq 20000");
    act(&s, r, "{'action':{'args':{'path':'/none'},'action':'read'}}");
    act(&s, r, "{'action':{'message':'x','action':'read','args':{'path':'/etc/hosts'}}}");
    act(&s, r, "{'action':{'action':'no_such_action','args':{}}}");
    act(&s, r, "{");
    CHECK_INT((int)value_of(&s, "croft_actions_total{action=\"run\",result=\"ok\"}"), 3);
    CHECK_INT((int)value_of(&s, "croft_actions_total{action=\"read\",result=\"error\"}"), 1);
    CHECK_INT((int)value_of(&s, "croft_actions_total{action=\"read\",result=\"ok\"}"), 1);
    CHECK_INT((int)value_of(&s, "croft_actions_total{action=\"other\",result=\"refused\"}"), 2);
    CHECK_INT((int)value_of(&s, "croft_action_seconds_count{action=\"run\"}"), 3);
    CHECK(value_of(&s, "croft_action_seconds_sum{action=\"run\"}") > 0);
    CHECK_INT((int)value_of(&s, "croft_exec_truncated_total{stream=\"answer\"}"), 1);
    CHECK(value_of(&s, "croft_exec_output_bytes_total{stream=\"answer\"}") > 30000);
    CHECK(value_of(&s, "croft_http_request_seconds_sum{face=\"runtime\",method=\"POST\"}") > 0);
    serve_close(&s);
}

TEST_LIMIT(serve_counts_every_way_into_life_and_what_was_written_of_it, 120)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    CHECK_INT(str_find(page(&s), STR("commit=\"\"")), -1);
    CHECK_HAS(page(&s), "croft_build_info{version=\"");
    CHECK_HAS(page(&s), "\",commit=\"");
    struct json *r = serve_start(&s, "one", "");
    serve_tell(&s, "/pause", r);
    serve_tell(&s, "/resume", r);
    serve_exec(&s, r, "head -c 3000000 /dev/zero > /workspace/large");
    const char *at = serve_text(&s, "/croft/v1/sandboxes/%s", serve_field(&s, r, "runtime_id"));
    serve_want(&s, 200, "POST", serve_text(&s, "%s/snapshot", at), "{'name':'kept'}");
    serve_want(&s, 200, "POST", serve_text(&s, "%s/fork", at), "{}");
    wait_value(&s, "croft_sandbox_start_seconds_count{runtime=\"native\",launch_type=\"fork\"}", 1);
    wait_value(&s, "croft_sandbox_start_seconds_count{runtime=\"native\",launch_type=\"resume\"}",
               1);
    CHECK_INT((int)value_of(&s, "croft_pool_misses_total{pool=\"default\",reason=\"snapshot\"}"),
              1);
    CHECK(value_of(&s, "croft_snapshot_seconds_count{kind=\"running\",op=\"create\"}") >= 1);
    CHECK(value_of(&s, "croft_snapshot_bytes_sum{kind=\"running\",op=\"create\"}") >= 3000000);
    serve_want(&s, 200, "POST", serve_text(&s, "%s/stop", at), NULL);
    serve_want(&s, 200, "POST", serve_text(&s, "%s/snapshot", at), "{'name':'still'}");
    CHECK_INT((int)value_of(&s, "croft_snapshot_bytes_bucket{kind=\"stopped\",op=\"create\",le="
                                "\"0\"}"),
              1); /* frozen where they were */
    for (unsigned i = 0; value_of(&s, "croft_events_appended_total") < 4; i++) {
        CHECK(i < 3000);
        poll(NULL, 0, 10); /* they are gathered for a moment */
    }
    CHECK(value_of(&s, "croft_event_fsync_seconds_count") >= 1);
    CHECK(value_of(&s, "croft_event_fsync_seconds_sum") > 0);
    serve_close(&s);
}

TEST_LIMIT(serve_counts_each_sandbox_in_one_state_and_no_bad_command_against_the_pool, 120)
{
    struct serve s = {.key = NULL};
    double sum = 0;
    struct str rest, line, value;

    serve_prepare(&s);
    serve_run_with(&s, "[pool.p]\nimage = 'host'\ntarget = 1\n");
    serve_start(&s, "runs", "");
    serve_tell(&s, "/pause", serve_start(&s, "paused", ""));
    wait_value(&s, "croft_pool_ready{pool=\"p\"}", 1);
    serve_ask(&s, "POST", "/start",
              "{'image':'host','session_id':'bad','command':['/nonexistent/x']}");
    wait_value(&s, "croft_sandboxes{runtime=\"native\",state=\"error\"}", 1);
    CHECK_INT((int)value_of(&s, "croft_pool_misses_total{pool=\"p\",reason=\"unwell\"}"), 0);
    wait_value(&s, "croft_pool_ready{pool=\"p\"}", 1);
    rest = page(&s);
    for (bool more = true; more;) {
        more = str_cut(&rest, '\n', &line);
        value = line;
        if (str_starts(line, STR("croft_sandboxes{")) && str_cut(&value, '}', &line))
            sum += atof(value.p);
    }
    CHECK_INT((int)sum, 4); /* runs, paused, bad; one is warm */
    serve_close(&s);
}

TEST_LIMIT(serve_measures_a_first_command_that_came_before_its_sandbox_ran, 120)
{
    static const char run[] =
        "{\"action\":{\"action\":\"run\",\"args\":{\"command\":\"echo hi\",\"blocking\":true}}}";
    struct serve s = {.key = NULL};
    own_done(buf) got;

    buf_init(&got, 1u << 20);
    serve_open(&s);
    serve_start(&s, "before", ""); /* whatever is made once is there */
    pid_t launcher = serve_launcher(&s);
    CHECK_INT(kill(launcher, SIGSTOP), 0);
    struct json *r = serve_want(&s, 200, "POST", "/start", "{'image':'host','session_id':'t'}");
    CHECK_STR(serve_field(&s, r, "status"), "starting");
    int fd = wire_connect(&s.wire);
    wire_send(fd,
              str_of(serve_text(&s,
                                "POST /sandbox/%s/execute_action HTTP/1.1\r\nHost: localhost\r\n"
                                "X-Session-API-Key: %s\r\nContent-Length: %zu\r\n\r\n%s",
                                serve_field(&s, r, "runtime_id"),
                                serve_field(&s, r, "session_api_key"), sizeof run - 1, run)));
    serve_get(&s, "/list"); /* behind the command: that one waits by now */
    CHECK_INT(kill(launcher, SIGCONT), 0);
    wire_read_answer(fd, &got);
    close(fd);
    CHECK_HAS(buf_str(&got), "\"content\":\"hi\"");
    CHECK(json_get_int(timeline_of(&s, r), "first_command_ns", 0) > 0);
    serve_close(&s);
}

static const char *launch_of(struct serve *s, const struct json *r)
{
    const struct json *o = timeline_of(s, r);

    return serve_text(s, "%s, %s", serve_field(s, o, "launch_type"),
                      serve_field(s, o, "pool_miss"));
}

TEST_LIMIT(serve_knows_how_a_runtime_it_took_over_was_started, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, "[pool.default]\ntarget = 0\n");
    struct json *cold = serve_start(&s, "cold", ""), *again = serve_start(&s, "again", "");
    const char *path =
        serve_text(&s, "/croft/v1/sandboxes/%s", serve_field(&s, again, "runtime_id"));
    serve_want(&s, 200, "POST", serve_text(&s, "%s/stop", path), NULL);
    const struct json *forks = json_get(
        serve_want(&s, 200, "POST", serve_text(&s, "%s/fork", path), "{}"), STR("sandboxes"));
    const char *name = serve_field(&s, json_at(forks, 0), "session_id");
    struct json *fork = serve_start(&s, name, "");
    serve_tell(&s, "/resume", again);
    serve_exec(&s, again, "true");
    struct json *const all[] = {cold, again, fork};
    const char *was[ARRAY_LEN(all)];
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        serve_tell(&s, "/pause", all[i]); /* told when it is on disk */
        was[i] = launch_of(&s, all[i]);
    }
    CHECK_STR(was[0], "cold, the pool is empty");
    CHECK_STR(was[1], "resume, ");
    CHECK_STR(was[2], "fork, it goes on from a snapshot");
    serve_kill(&s);
    serve_run(&s, NULL);
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        CHECK_STR(launch_of(&s, all[i]), was[i]);
    serve_close(&s);
}

TEST_LIMIT(serve_measures_each_claim_until_it_is_answered, 120)
{
    static const char sum[] =
        "croft_sandbox_claim_seconds_sum{pool=\"default\",launch_type=\"warm\"}";
    static const char count[] =
        "croft_sandbox_claim_seconds_count{pool=\"default\",launch_type=\"warm\"}";
    struct serve s = {.key = NULL};
    double least = 0;

    serve_open(&s);
    for (unsigned i = 1; i <= 5; i++) {
        serve_wait_warm(&s);
        struct json *r = serve_start(&s, serve_text(&s, "s-%u", i), "");
        CHECK_INT((int)value_of(&s, count), (int)i);
        least += (double)json_get_int(timeline_of(&s, r), "claim_ns", 0) / 1e9;
        CHECK(least > 0 && value_of(&s, sum) >= least - 1e-6);
    }
    serve_close(&s);
}

TEST_LIMIT(serve_knows_the_timeline_of_a_runtime_it_took_over, 120)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    struct json *r = serve_start(&s, "t", "");
    serve_exec(&s, r, "true");
    serve_tell(&s, "/pause", r); /* told when it is on disk */
    int64_t row = json_get_int(timeline_of(&s, r), "row_ns", 0),
            first = json_get_int(timeline_of(&s, r), "first_command_ns", 0);
    CHECK(row > 0 && first > 0);
    serve_kill(&s);
    serve_run(&s, NULL);
    CHECK_INT(json_get_int(timeline_of(&s, r), "row_ns", 0), row);
    CHECK_INT(json_get_int(timeline_of(&s, r), "first_command_ns", 0), first);
    serve_close(&s);
}

static const char *new_key(struct serve *s, const char *name, const char *scope)
{
    return serve_field(s,
                       serve_want(s, 201, "POST", "/croft/v1/tokens",
                                  serve_text(s, "{'name':'%s','scopes':['%s']}", name, scope)),
                       "secret");
}

/* Each page has what was measured for the one before. */
static void wait_shown(struct serve *s, const char *series)
{
    for (unsigned i = 0; value_of(s, series) <= 0; i++) {
        CHECK(i < 3000);
        poll(NULL, 0, 10);
    }
}

TEST_LIMIT(serve_tells_what_each_sandbox_uses_to_who_may_see_it, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, "[telemetry]\nper_sandbox = true\n[pool.p]\ntarget = 0\n");
    const char *boss = new_key(&s, "boss", "admin");
    s.key = boss;
    const char *other = new_key(&s, "other", "runtime"), *third = new_key(&s, "third", "runtime");
    s.key = other;
    struct json *r = serve_start(&s, "one", "");
    const char *memory = serve_text(&s, "croft_sandbox_memory_bytes{sandbox=\"%s\"}",
                                    serve_field(&s, r, "runtime_id"));
    const char *cpu = serve_text(&s, "croft_sandbox_cpu_seconds_total{sandbox=\"%s\"}",
                                 serve_field(&s, r, "runtime_id"));
    wait_shown(&s, memory);
    wait_shown(&s, cpu);
    s.key = boss;
    CHECK(value_of(&s, memory) > 0);
    s.key = third;
    CHECK(value_of(&s, memory) < 0);
    s.key = NULL;
    CHECK(value_of(&s, memory) < 0);
    CHECK(value_of(&s, "croft_sandboxes{runtime=\"native\",state=\"running\"}") == 1);
    s.key = boss;
    serve_reload(&s, "[telemetry]\nper_sandbox = false\n");
    CHECK(value_of(&s, memory) < 0);
    serve_close(&s);
}
