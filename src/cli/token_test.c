// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "host/keys/keys.h"
#include "loop/loop.h"
#include "net/listen.h"
#include "net/server.h"
#include "test/program.h"
#include "test/test.h"

static int token(struct buf *into, const char *a, const char *b, const char *c, const char *d)
{
    buf_reset(into);
    return program_run(ARGS(test_program("croft"), "token", a, b, c, d), into);
}

static void use_state(char state[300])
{
    snprintf(state, 300, "%s/s", test_dir());
    CHECK(chmod(test_dir(), 0711) == 0); /* the server's user passes through */
    CHECK(setenv("CROFT_SERVER_STATE_DIR", state, 1) == 0);
    unsetenv("CROFT_HOST");
    unsetenv("CROFT_API_KEY");
}

static void checks(struct buf *got)
{
    char secret[64];

    CHECK_INT(token(got, "create", "a", NULL, NULL), 1);
    CHECK_HAS(buf_str(got), "the first key must have 'admin'");
    CHECK_INT(token(got, "create", "boss", "--scope", "admin"), 0);
    CHECK_HAS(buf_str(got), "its secret is shown this once\n");
    struct str line = buf_str(got);
    line = str_from(line, (size_t)str_find(line, STR("\ncroft_")) + 1);
    CHECK_INT(line.len, 50);
    snprintf(secret, sizeof secret, "%.49s", line.p);
    CHECK(setenv("CROFT_API_KEY", secret, 1) == 0);
    CHECK_INT(token(got, "create", "boss", "--scope=admin", NULL), 1);
    CHECK_HAS(buf_str(got), "there is or was a key 'boss'");
    CHECK_INT(token(got, "rm", "boss", NULL, NULL), 1);
    CHECK_HAS(buf_str(got), "or force it ('croft token rm --force', ?force=true)");
    CHECK_INT(token(got, "create", "t1", "--most-runtimes=5", "--json"), 0);
    CHECK_HAS(buf_str(got), "{\"name\": \"t1\", \"scopes\": [\"runtime\", \"read\"], "
                            "\"most_runtimes\": 5, \"starts_per_minute\": 0, \"created_at\": \"");
    CHECK_HAS(buf_str(got), "\"secret\": \"croft_");
    CHECK_INT(token(got, "ls", NULL, NULL, NULL), 0);
    CHECK_HAS(buf_str(got), "\nt1\truntime,read\t5\t-\t20");
    CHECK(str_find(buf_str(got), str_of(secret)) < 0);
    CHECK_INT(token(got, "create", "t2", "--of=t1", "--json"), 0);
    CHECK_HAS(buf_str(got), "\"scopes\": [\"read\"]");
    CHECK_INT(token(got, "create", "t3", "--of=t1", "--scope=runtime"), 0);
    CHECK_INT(token(got, "rm", "t1", NULL, NULL), 0);
    CHECK_INT(token(got, "rm", "nobody", NULL, NULL), 1);
    CHECK_HAS(buf_str(got), "there is no key 'nobody'");
    CHECK_INT(token(got, "rm", "a/b?c", NULL, NULL), 1);
    CHECK_HAS(buf_str(got), "there is no key 'a/b?c'");
    CHECK_INT(token(got, "ls", "--json", NULL, NULL), 0);
    CHECK_HAS(buf_str(got), "\"revoked_at\": \"20");
}

TEST(token_command_changes_the_database_when_no_server_runs)
{
    own_done(buf) got = {.limit_bytes = 65536};
    char state[300];

    use_state(state);
    checks(&got);
}

struct site {
    struct keys *keys;
    struct store *store;
    struct loop *loop;
};

static void on_loaded(void *arg, struct err *e)
{
    CHECK_OK(e);
    *(bool *)arg = true;
}

static _Noreturn void serve(const char *state, int ready)
{
    struct site s = {0};
    struct net *net;
    struct router *router = router_new(NULL);
    struct http_server *server;
    bool loaded = false;
    char path[400];
    int fd;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    log_setup(2, LOG_OFF, LOG_TEXT);
    CHECK_OK(loop_new(&clock_system, &s.loop));
    CHECK_OK(net_new(s.loop, &net));
    snprintf(path, sizeof path, "%s/croft.db", state);
    CHECK_OK(store_open(s.loop, path, &s.store));
    s.keys = keys_new(s.store);
    keys_load(s.keys, on_loaded, &loaded);
    while (!loaded)
        CHECK_OK(loop_turn(s.loop, 1000));
    router_add(router, keys_routes, KEYS_ROUTES, s.keys);
    struct http_server_config c = {.router = router};
    CHECK_OK(http_server_new(net, &c, &server));
    snprintf(path, sizeof path, "unix:%s/server/api.sock", state);
    CHECK_OK(listen_open(str_of(path), &fd));
    CHECK_OK(http_server_listen(server, fd));
    CHECK_INT(write(ready, "r", 1), 1);
    err_free(loop_run(s.loop));
    _exit(1);
}

TEST(token_command_asks_a_server_that_runs)
{
    own_done(buf) got = {.limit_bytes = 65536};
    char state[300], path[400], c;
    int ready[2];

    use_state(state);
    snprintf(path, sizeof path, "%s/server", state);
    CHECK(mkdir(state, 0700) == 0 && mkdir(path, 0700) == 0);
    CHECK(pipe(ready) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        serve(state, ready[1]);
    CHECK_INT(read(ready[0], &c, 1), 1);
    checks(&got);
    unsetenv("CROFT_API_KEY");
    CHECK_INT(token(&got, "ls", NULL, NULL, NULL), 1);
    CHECK_HAS(buf_str(&got), "the server wants a key: set CROFT_API_KEY");
    CHECK(setenv("CROFT_API_KEY", "one-that-nobody-made", 1) == 0);
    CHECK_INT(token(&got, "ls", NULL, NULL, NULL), 1);
    CHECK_HAS(buf_str(&got), "does not know the key in CROFT_API_KEY");
    CHECK(setenv("CROFT_HOST", "ftp://x", 1) == 0);
    CHECK_INT(token(&got, "ls", NULL, NULL, NULL), 1);
    CHECK_HAS(buf_str(&got), "CROFT_HOST 'ftp://x': wanted http://");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

TEST(token_command_used_wrongly_says_how)
{
    own_done(buf) got = {.limit_bytes = 65536};
    char state[300];

    use_state(state);
    CHECK_INT(token(&got, "create", NULL, NULL, NULL), 2);
    CHECK_HAS(buf_str(&got), "wanted: create NAME, ls, or rm NAME");
    CHECK_INT(token(&got, "create", "a", "--scope", "root"), 1);
    CHECK_HAS(buf_str(&got), "'root' is none of admin, runtime, read");
    CHECK_INT(token(&got, "create", "a b", NULL, NULL), 1);
    CHECK_HAS(buf_str(&got), "name: wanted 1 to 63");
}
