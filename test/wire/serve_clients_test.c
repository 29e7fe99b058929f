// SPDX-License-Identifier: Apache-2.0
/* serve_clients_test.c — three clients nobody here wrote the rules for, against the real server. */
#include <stdlib.h>

#include "test/program.h"
#include "test/serve_kit.h"
#include "test/test.h"

/* The one whose packages the machine's package manager brings. */
#define PYTHON "/usr/bin/python3"

static void client(const char *kind)
{
    struct serve s = {.key = "sesame-for-three-clients"};
    own_done(buf) said;

    buf_init(&said, 1u << 20);
    if (program_run((const char *const[]){PYTHON, "-c", "import httpx", NULL}, &said) != 0)
        SKIP("no httpx here (package python3-httpx)");
    buf_reset(&said);
    setenv("CROFT_API_KEY", s.key, 1);
    serve_prepare(&s);
    serve_run_with(&s, "[tenant]\nmost_runtimes = 3\n");
    const char *url = serve_text(&s, "http://127.0.0.1:%u", s.wire.port);
    int code = program_run(
        (const char *const[]){PYTHON, "test/wire/serve_clients.py", kind, url, s.key, NULL}, &said);
    if (code != 0)
        FAIL("%s: %.*s", kind, (int)said.len, said.p);
    CHECK_HAS(buf_str(&said), "all of it");
    serve_close(&s);
}

TEST_LIMIT(serve_keeps_what_the_oldest_client_relies_on, 120)
{
    client("v0");
}

TEST_LIMIT(serve_keeps_what_the_sandbox_service_relies_on, 120)
{
    client("v1");
}

TEST_LIMIT(serve_keeps_what_the_sdk_relies_on, 120)
{
    client("sdk");
}
