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

#include "sandbox/remote/inner.h"
#include "test/contract/contract.h"
#include "test/serve_kit.h"

#define KEY "a-key-of-the-other-machine"

static struct serve other;
static struct remote_settings settings;

static void start_server(struct contract *c)
{
    other = (struct serve){.key = KEY};
    setenv("CROFT_API_KEY", KEY, 1);
    serve_prepare(&other);
    serve_run(&other, (const char *const[]){"--log-level", "error", NULL});
    settings.url = str_of(serve_text(&other, "http://127.0.0.1:%u", other.wire.port));
    settings.key = STR(KEY);
    c->host.settings = &settings;
    c->port = 12000; /* which its server publishes */
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

/* --- what only another machine can do to a sandbox --- */

static void tell(const char *target, struct sbx *s)
{
    struct json *r =
        serve_want(&other, 200, "GET", serve_text(&other, "/sessions/%s", s->id), NULL);

    serve_tell(&other, target, r);
}

static void is_paused_there(struct contract *c)
{
    struct sbx *s = contract_started(c, NULL);

    contract_command(c, s, NULL, "cd /tmp; X=kept");
    tell("/pause", s);
    CHECK_STR(contract_command(c, s, NULL, "echo $X $PWD").text, "kept /tmp");
    CHECK_INT(s->state.now, SBX_RUNNING);
    contract_end(c, s);
}

TEST(contract_remote_is_resumed_when_it_was_paused_there)
{
    contract_run(&remote, 0, is_paused_there);
}

static void is_stopped_there(struct contract *c)
{
    struct sbx *s = contract_started(c, NULL);

    tell("/stop", s);
    struct answer a = contract_command(c, s, NULL, "echo hi");
    CHECK_INT(a.failure, ACTION_DISCONNECTED);
    CHECK_ERR(contract_pause(c, s), ERR_CONFLICT, "is stopped");
    CHECK_INT(s->state.now, SBX_STOPPED);
    CHECK_INT(c->gone, 1);
    contract_end(c, s);
    s = contract_started(c, NULL);
    tell("/stop", s);
    CHECK_OK(contract_stop(c, s)); /* as it should be */
    contract_end(c, s);
}

TEST(contract_remote_tells_that_it_was_stopped_there)
{
    contract_run(&remote, 0, is_stopped_there);
}
