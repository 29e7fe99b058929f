// SPDX-License-Identifier: Apache-2.0
/* serve_command_test.c — the command of a start picks who answers. */
#include <poll.h>
#include <string.h>

#include "test/serve_kit.h"

TEST_LIMIT(serve_runs_an_action_servers_line_as_our_action_server, 120)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
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
    CHECK_INT(json_get_int(hosts,
                           serve_text(&s, "%s/sandbox/%s/work-2", s.wire.url,
                                      serve_field(&s, r, "runtime_id")),
                           0),
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
