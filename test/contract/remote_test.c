// SPDX-License-Identifier: Apache-2.0
/* The contract, kept by `remote`: against a `croft serve` of its own, as another machine's would
 * be. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/contract/contract.h"
#include "test/serve_kit.h"

#define KEY "a-key-of-the-other-machine"

static struct serve other;

static void start_server(struct contract *c)
{
    other = (struct serve){.key = KEY};
    setenv("CROFT_API_KEY", KEY, 1);
    serve_prepare(&other);
    serve_run(&other, (const char *const[]){"--log-level", "error", NULL});
    c->host.remote_url = serve_text(&other, "http://127.0.0.1:%u", other.wire.port);
    c->host.remote_key = KEY;
}

static void stop_server(struct contract *c)
{
    (void)c;
    serve_close(&other);
}

static const struct contract_backend remote = {
    .name = "remote", .prepare = start_server, .finish = stop_server};

#define CONTRACT_TEST_remote(row, caps) CONTRACT_TEST(remote, row, caps)
CONTRACT_TESTS(remote, &remote)
