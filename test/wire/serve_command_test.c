// SPDX-License-Identifier: Apache-2.0
/* serve_command_test.c — the command of a start picks who answers. */
#include <poll.h>
#include <string.h>

#include "test/serve_kit.h"

TEST_LIMIT(serve_runs_an_action_servers_line_as_our_action_server, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, "limits.memory = '1G'\n"); /* twice that is on a small machine, too */
    struct json *r = serve_start(
        &s, "v0",
        "'command':['/openhands/micromamba/bin/micromamba','run','-n','openhands','poetry','run',"
        "'python','-u','-m','openhands.runtime.action_execution_server','60000','--working-dir',"
        "'/workspace','--plugins','agent_skills','--username','openhands','--user-id','1000',"
        "'--no-enable-browser'],'working_dir':'/openhands/code/','resource_factor':2");
    CHECK_INT(serve_visit(&s, r, "/alive"), 200);
    CHECK_STR(serve_exec(&s, r, "pwd; id -un"), "/workspace\nopenhands");
    CHECK(!strstr(serve_field(&s, r, "status_detail"), "agent server"));
    serve_close(&s);
}

TEST_LIMIT(serve_says_that_the_action_server_stands_in_for_the_agent_server, 120)
{
    static const char *const lines[] = {
        "'command':'/usr/local/bin/openhands-agent-server --port 60000'",
        "'command':'/agent-server/.venv/bin/python -m openhands.agent_server --port 60000'",
        "'command':['/usr/local/bin/openhands-agent-server','--port','60000']",
        "'command':null",
        "'command':[]",
    };
    struct serve s = {.key = NULL};

    serve_open(&s);
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct json *r = serve_start(&s, serve_text(&s, "s%zu", i), lines[i]);
        CHECK_HAS(str_of(serve_field(&s, r, "status_detail")), "the action server answers");
        CHECK_INT(serve_visit(&s, r, "/alive"), 200);
    }
    serve_close(&s);
}

/* It says itself when it listens: until then the proxy has nobody to ask. */
static void wait_for(struct serve *s, const struct json *r, const char *target, int status)
{
    for (unsigned i = 0; i < 1000; i++) {
        if (serve_visit(s, r, target) == status)
            return;
        poll(NULL, 0, 20);
    }
    FAIL("%s is never answered with %d", target, status);
}

TEST_LIMIT(serve_runs_any_other_command_as_given_and_publishes_its_port, 120)
{
    static const char *const lines[] = {
        "'command':['/usr/bin/python3','-m','http.server','--bind','127.0.0.1','8123'],"
        "'environment':{'PORT':'8123'},'working_dir':'/etc'",
        "'command':'python3 -m http.server --bind 127.0.0.1 --directory /etc 60000'",
    };
    struct serve s = {.key = NULL};

    serve_open(&s);
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct json *r = serve_start(&s, serve_text(&s, "s%zu", i), lines[i]);
        wait_for(&s, r, "/hostname", 200);
        CHECK_INT(serve_visit(&s, r, "/no-such-file"), 404);
        serve_tell(&s, "/stop", r);
    }
    serve_close(&s);
}

TEST_LIMIT(serve_reaches_worker_ports_by_the_urls_of_work_hosts, 120)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    struct json *r = serve_start(&s, "w", "");
    serve_exec(&s, r,
               "cd /etc && (python3 -m http.server --bind 127.0.0.1 12001 >/dev/null 2>&1 &)");
    const struct json *hosts = json_get(r, STR("work_hosts"));
    CHECK_INT(json_get_int(hosts, serve_text(&s, "%s/work-2", serve_field(&s, r, "url")), 0),
              12001);
    const char *target =
        serve_text(&s, "/sandbox/%s/work-2/hostname", serve_field(&s, r, "runtime_id"));
    int status = 0;
    for (unsigned i = 0; i < 1000 && status != 200; i++) {
        status = serve_get(&s, target).status;
        poll(NULL, 0, 20);
    }
    CHECK_INT(status, 200);
    CHECK_INT(serve_get(&s, "/sandbox/nobodynobodynobo/alive").status, 404);
    serve_close(&s);
}

static struct str wait_for_words(struct serve *s, const char *log)
{
    for (unsigned i = 0; i < 1000; i++) {
        struct str text = serve_get(s, log).body;
        if (str_find(text, STR("that was all\n")) >= 0)
            return text;
        poll(NULL, 0, 20);
    }
    FAIL("%s is empty", log);
}

/* What a command wrote about itself. */
static struct str said_by(struct serve *s, const char *session, const char *more)
{
    struct json *r = serve_start(s, session, more);

    return wait_for_words(
        s, serve_text(s, "/croft/v1/sandboxes/%s/logs", serve_field(s, r, "runtime_id")));
}

TEST_LIMIT(serve_tells_a_command_run_as_given_its_key_and_its_places, 120)
{
    static const char *const lines[] = {
        "'command':['sh','-c','env; echo that was all; sleep 600'],'environment':{'FOO':'bar'}",
        "'command':['sh','-c','env; echo that was all; sleep 600'],'run_as_user':1000,"
        "'environment':{'FOO':'bar','SESSION_API_KEY':'x','OH_SESSION_API_KEYS_0':'x',"
        "'RUNTIME_ID':'x','OH_RUNTIME_ID':'x','PATH':'/bin:/usr/bin'}",
        "'command':['sh','-c','env; echo that was all; sleep 600'],'run_as_user':4711,"
        "'environment':{'FOO':'bar','HOME':'/tmp'}",
    };
    static const char *const has[][2] = {{"HOME=/root\n", "PATH=/usr/local/sbin:"},
                                         {"HOME=/home/openhands\n", "PATH=/bin:/usr/bin\n"},
                                         {"HOME=/tmp\n", "PATH=/usr/local/sbin:"}};
    struct serve s = {.key = NULL};

    serve_open(&s);
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        const char *session = serve_text(&s, "s%zu", i);
        struct str said = said_by(&s, session, lines[i]);
        struct json *r = serve_get(&s, serve_text(&s, "/sessions/%s", session)).json;
        const char *key = serve_field(&s, r, "session_api_key");
        const char *id = serve_field(&s, r, "runtime_id");
        CHECK_HAS(said, str_of(serve_text(&s, "\nSESSION_API_KEY=%s\n", key)));
        CHECK_HAS(said, str_of(serve_text(&s, "\nOH_SESSION_API_KEYS_0=%s\n", key)));
        CHECK_HAS(said, str_of(serve_text(&s, "\nRUNTIME_ID=%s\n", id)));
        CHECK_HAS(said, str_of(serve_text(&s, "\nOH_RUNTIME_ID=%s\n", id)));
        CHECK_HAS(said, str_of(has[i][0]));
        CHECK_HAS(said, str_of(has[i][1]));
        CHECK_HAS(said, "FOO=bar\n");
    }
    serve_close(&s);
}

/* The first time it fails, the second time it stays. */
#define ONCE                                                                                       \
    "'command':['sh','-c','test -e /workspace/was && exec sleep 600; "                             \
    "echo these are its words; touch /workspace/was; exit 3']"

static const char *detail_of(struct serve *s, const char *session)
{
    return serve_field(s, serve_get(s, serve_text(s, "/sessions/%s", session)).json,
                       "status_detail");
}

TEST_LIMIT(serve_says_in_status_detail_what_is_so_now, 120)
{
    static const char cause[] = "the command left with exit status 3";
    struct serve s = {.key = NULL};

    serve_open(&s);
    struct json *r =
        serve_want(&s, 200, "POST", "/start", "{'image':'host','session_id':'once'," ONCE "}");
    for (unsigned i = 0; strcmp(detail_of(&s, "once"), cause) != 0; i++) {
        CHECK(i < 3000);
        poll(NULL, 0, 20);
    }
    const char *which = serve_text(&s, "{'runtime_id':'%s'}", serve_field(&s, r, "runtime_id"));
    serve_refused(&s, 409, "is error: it cannot be paused", "POST", "/pause", which);
    CHECK_STR(detail_of(&s, "once"), cause);
    struct str failed = serve_get(&s, "/sessions/once").body;
    CHECK_HAS(failed, "\"pod_logs\":\"these are its words");
    CHECK_HAS(failed, "\"reason\":\"the command left with exit status 3\"}]");
    CHECK_HAS(failed, "\"events\":[{\"type\":\"Warning\",\"reason\":\"error\"");
    serve_tell(&s, "/resume", r);
    CHECK_HAS(str_of(detail_of(&s, "once")), "started again");

    serve_wait_warm(&s);
    struct json *other = serve_start(&s, "other", "");
    const char *path =
        serve_text(&s, "/croft/v1/sandboxes/%s", serve_field(&s, other, "runtime_id"));
    CHECK_HAS(str_of(detail_of(&s, "other")), "warm: from pool");
    serve_want(&s, 200, "POST", serve_text(&s, "%s/stop", path), NULL);
    CHECK_HAS(str_of(detail_of(&s, "other")), "its files are kept");
    serve_tell(&s, "/resume", other);
    CHECK_HAS(str_of(detail_of(&s, "other")), "started again");
    serve_tell(&s, "/stop", other);
    CHECK_HAS(str_of(detail_of(&s, "other")), "its files are gone");
    serve_close(&s);
}

static struct str wait_for_pod(struct serve *s, const char *session, const char *word)
{
    const char *path = serve_text(s, "/sessions/%s", session);

    for (unsigned i = 0; i < 3000; i++) {
        const struct json *r = serve_get(s, path).json;
        if (strcmp(serve_field(s, r, "pod_status"), word) == 0)
            return str_of(serve_field(s, r, "status"));
        poll(NULL, 0, 20);
    }
    FAIL("%s is never %s", session, word);
}

TEST_LIMIT(serve_calls_a_command_ready_when_somebody_listens, 120)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    serve_start(&s, "late",
                "'command':['sh','-c','while ! test -e /workspace/go; do sleep 0.05; done; "
                "exec python3 -m http.server --bind 127.0.0.1 60000'],'working_dir':'/workspace'");
    CHECK_STR(wait_for_pod(&s, "late", "running"), "running");
    struct json *r = serve_start(
        &s, "soon", "'command':'python3 -m http.server --bind 127.0.0.1 --directory /etc 60000'");
    CHECK_STR(wait_for_pod(&s, "soon", "ready"), "running");
    CHECK_INT(serve_visit(&s, r, "/hostname"), 200);
    CHECK_STR(wait_for_pod(&s, "late", "running"), "running");
    serve_kill(&s);
    serve_run(&s, NULL);
    CHECK_STR(wait_for_pod(&s, "soon", "ready"), "running");
    serve_close(&s);
}

TEST_LIMIT(serve_keeps_what_a_command_said_when_it_is_killed, 120)
{
    static const char *const then[] = {"exec sleep 600", "exit 1"};
    const char *logs[ARRAY_LEN(then)];
    struct str before[ARRAY_LEN(then)];
    struct serve s = {.key = NULL};

    serve_open(&s);
    for (size_t i = 0; i < ARRAY_LEN(then); i++) {
        const char *session = serve_text(&s, "s%zu", i);
        serve_want(&s, 200, "POST", "/start",
                   serve_text(&s,
                              "{'image':'host','session_id':'%s','command':"
                              "['sh','-c','seq 20000; echo that was all; %s']}",
                              session, then[i]));
        const struct json *r = serve_get(&s, serve_text(&s, "/sessions/%s", session)).json;
        logs[i] = serve_text(&s, "/croft/v1/sandboxes/%s/logs", serve_field(&s, r, "runtime_id"));
        before[i] = wait_for_words(&s, logs[i]);
    }
    wait_for_pod(&s, "s1", "failed");
    serve_kill(&s);
    serve_run(&s, NULL);
    for (size_t i = 0; i < ARRAY_LEN(then); i++) {
        struct str after = serve_get(&s, logs[i]).body;
        CHECK_HAS(after, "\n19999\n20000\nthat was all\n");
        CHECK_STR(after, before[i]);
    }
    serve_close(&s);
}
