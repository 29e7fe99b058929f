// SPDX-License-Identifier: Apache-2.0
#include "guest/mcp/mcp.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "loop/loop.h"
#include "net/stream.h"
#include "test/test.h"
#include "wire/mcp.h"
#include "wire/rpc.h"

#define MORE    10 /* exit code: the call failed as it should, try the next one */
#define HANG_MS 30000

/* A server of one tool that answers one call. */
static const char body[] =
    "[{\"name\":\"s\",\"command\":\"sh\",\"env\":{\"K\":\"v\"},\"args\":[\"-c\",\""
    "r() { while read a || exit; do case $a in *}) return;; esac; done; };" /* no half a line */
    "r; echo "
    "'{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":1,\\\"result\\\":{\\\"capabilities\\\":{}}}';"
    "r; r; echo "
    "'{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":2,\\\"result\\\":{\\\"tools\\\":[{"
    "\\\"name\\\":\\\"t\\\"}]}}';"
    "r; echo '{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":3,\\\"result\\\":{\\\"content\\\":[]}}';"
    "cat >/dev/null\"]}]";

struct fix {
    struct loop *loop;
    struct net *net;
    struct mcp_call call;
    bool changed, answered;
    struct arena arena;
};

static void on_change(void *owner)
{
    ((struct fix *)owner)->changed = true;
}

static void on_note(void *owner, const struct rpc *note)
{
    (void)owner;
    (void)note;
}

static void on_done(struct mcp_call *c, const struct rpc *answer, const struct err *why)
{
    CHECK(!answer != !why);
    container_of(c, struct fix, call)->answered = true;
}

static void turn_until(struct fix *f, const bool *what)
{
    uint64_t end = clock_mono_ns(&clock_system) + HANG_MS * NS_PER_MS;

    while (!*what) {
        err_free(loop_turn(f->loop, 1000));
        if (clock_mono_ns(&clock_system) > end)
            FAIL("nobody was told");
    }
}

static void call_tool(struct fix *f, struct mcp *m)
{
    struct json *params;
    struct err *e = json_parse(&f->arena, STR("{\"name\":\"t\",\"arguments\":{}}"), NULL, &params);

    f->call.done = on_done;
    if (!e)
        e = mcp_call_start(m, &f->call, params);
    if (!e)
        turn_until(f, &f->answered);
    err_free(e);
}

/* Started, asked, ended; whatever fails is told, once, and nothing waits for ever. */
static void use(struct fix *f)
{
    static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
    const struct mcp_config config = {.net = f->net,
                                      .env = env,
                                      .cwd = "/",
                                      .on_change = on_change,
                                      .on_note = on_note,
                                      .owner = f};
    struct wire_mcp_servers servers;
    struct json *tree;
    struct mcp *m = mcp_new(&config);
    struct err *e = json_parse(&f->arena, str_of(body), NULL, &tree);

    if (!e)
        e = wire_decode_mcp_servers(&f->arena, tree, &servers);
    if (!e)
        e = mcp_update(m, &servers);
    while (!e && !mcp_is_settled(m)) {
        f->changed = false;
        turn_until(f, &f->changed);
    }
    if (!e)
        call_tool(f, m);
    err_free(e);
    mcp_free(m);
}

/* In a process of its own: a size we chose that cannot be had ends it. */
static _Noreturn void fail_call(unsigned n)
{
    unsigned fds = test_open_fds();
    struct fix f = {0};

    CHECK_OK(loop_new(&clock_system, &f.loop));
    CHECK_OK(net_new(f.loop, &f.net));
    arena_init(&f.arena, 1u << 20);
    fault_at(n);
    use(&f);
    bool fired = fault_fired();
    fault_at(0);
    err_free(loop_turn(f.loop, 0));
    net_free(f.net);
    loop_free(f.loop);
    arena_done(&f.arena);
    if (!fired && !f.answered)
        FAIL("the tool was not called");
    if (test_open_fds() != fds)
        FAIL("call %u leaves a descriptor open", n);
    _exit(fired ? MORE : 0);
}

TEST_LIMIT(mcp_tells_of_whatever_call_fails_and_leaks_nothing, 240)
{
    int status = 0;

    test_alone();
    log_setup(STDERR_FILENO, LOG_OFF, LOG_TEXT);
    for (unsigned n = 1;; n++) {
        pid_t pid = fork();
        if (pid == 0)
            fail_call(n);
        CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)
            continue;
        if (!WIFEXITED(status) || (WEXITSTATUS(status) != MORE && WEXITSTATUS(status) != 0))
            FAIL("call %u: status %x", n, (unsigned)status);
        if (WEXITSTATUS(status) == 0)
            return;
    }
}
