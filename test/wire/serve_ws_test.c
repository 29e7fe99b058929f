// SPDX-License-Identifier: Apache-2.0
/* serve_ws_test.c — WebSockets from a real client to a real server that runs in a sandbox, by every
 * way that leads into one. */
#include <string.h>

#include "base/b64.h"
#include "base/fd.h"
#include "test/program.h"
#include "test/serve_kit.h"

/* The one whose packages the machine's package manager brings; sandboxes see those too. */
#define PYTHON "/usr/bin/python3"

/* By a connection to 127.0.0.1, whatever the url's name is. */
static void talk(struct serve *s, const char *url)
{
    own_done(buf) said;

    buf_init(&said, 1u << 20);
    const char *script = serve_text(s, "%s", test_source("test/wire/ws_peer.py"));
    int code = program_run(ARGS(PYTHON, script, url, "some"), &said);
    if (code == 77)
        SKIP("python3-websockets is not installed");
    if (code)
        FAIL("%s: exit %d: " STR_FMT, url, code, STR_ARG(buf_str(&said)));
}

static struct json *start_echo(struct serve *s)
{
    struct json *r = serve_start(s, "one", "");
    own_done(buf) script;

    buf_init(&script, 1u << 20);
    CHECK_OK(fd_read_file(test_source("test/wire/ws_peer.py"), &script));
    serve_put(s, r, "/tmp/ws_peer.py", buf_str(&script));
    serve_exec(s, r,
               "(" PYTHON
               " /tmp/ws_peer.py serve 12001 >/tmp/said 2>&1 &); until grep . /tmp/said; "
               "do :; done");
    return r;
}

TEST_LIMIT(serve_leads_real_websocket_clients_to_a_server_in_a_sandbox, 180)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, "");
    struct json *r = start_echo(&s);
    const char *id = serve_field(&s, r, "runtime_id"), *url = serve_field(&s, r, "url");
    talk(&s, serve_text(&s, "ws%s/work-2/echo", url + strlen("http"))); /* its own port */
    talk(&s, serve_text(&s, "ws://127.0.0.1:%u/sandbox/%s/work-2/", (unsigned)s.wire.port, id));
    serve_kill(&s);
    serve_run_with(&s, "[server]\ndomain = 'run.example'\n");
    talk(&s, serve_text(&s, "ws://work-2-%s.run.example:%u/", id, (unsigned)s.wire.port));
    serve_close(&s);
}

/* Its port is what the sandbox's url leads to. */
TEST_LIMIT(serve_leads_real_websocket_clients_to_a_command_as_given, 180)
{
    struct serve s = {.key = NULL};
    own_done(buf) script, coded;

    buf_init(&script, 1u << 20);
    buf_init(&coded, 1u << 20);
    serve_open(&s);
    CHECK_OK(fd_read_file(test_source("test/wire/ws_peer.py"), &script));
    b64_add(&coded, buf_str(&script));
    struct json *r = serve_start(
        &s, "given",
        serve_text(
            &s,
            "'environment':{'PORT':'8123','SCRIPT':'%s'},'command':['sh','-c','echo $SCRIPT | "
            "base64 -d >/tmp/peer.py; exec " PYTHON " /tmp/peer.py serve $PORT']",
            buf_cstr(&coded)));
    while (strcmp(serve_field(&s, r, "pod_status"), "ready") != 0)
        r = serve_want(&s, 200, "GET", "/sessions/given", NULL);
    talk(&s, serve_text(&s, "ws%s/", serve_field(&s, r, "url") + strlen("http")));
    serve_close(&s);
}
