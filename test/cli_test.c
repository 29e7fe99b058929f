// SPDX-License-Identifier: Apache-2.0
/* cli_test.c — the real program, as a shell would call it. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "test/program.h"
#include "test/test.h"

#define LIMIT (4u << 20)

struct ran {
    int code;
    struct buf out, err;
};

static void ran_done(struct ran *r)
{
    buf_done(&r->out);
    buf_done(&r->err);
}

static void read_back(int fd, struct buf *into)
{
    buf_init(into, LIMIT);
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    CHECK_OK(fd_read_all(fd, into));
}

/* env holds what there is beside a HOME with nothing in it. */
static void run_croft(struct ran *r, const char *const *argv, const char *const *env)
{
    char home[300];
    const char *all_args[16] = {test_program("croft")}, *all_env[16] = {home};

    snprintf(home, sizeof home, "HOME=%s", test_dir());
    for (size_t i = 0; argv[i]; i++)
        all_args[i + 1] = argv[i];
    for (size_t i = 0; env && env[i]; i++)
        all_env[i + 1] = env[i];
    own_fd out = memfd_create("out", MFD_CLOEXEC), err = memfd_create("err", MFD_CLOEXEC);
    CHECK(out >= 0 && err >= 0);
    struct program p = {
        .argv = all_args, .env = all_env, .fds = (int[]){-1, out, err}, .fd_count = 3};
    r->code = program_wait(program_start(&p));
    read_back(out, &r->out);
    read_back(err, &r->err);
}

static const char *write_file(const char *name, const char *text)
{
    static char path[400];
    own_fd dir = test_dir_fd();

    snprintf(path, sizeof path, "%s/%s", test_dir(), name);
    CHECK_OK(fd_replace_file(dir, name, str_of(text), 0600));
    return path;
}

TEST(cli_help_lists_the_commands)
{
    static const char *const ways[] = {"help", "--help", "-h"};

    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        own_done(ran) r;
        run_croft(&r, ARGS(ways[i]), NULL);
        CHECK_INT(r.code, 0);
        CHECK_HAS(buf_str(&r.out), "\n  config ");
        CHECK_HAS(buf_str(&r.out), "\n  version ");
        CHECK(str_find(buf_str(&r.out), STR("\n  man ")) < 0);
        CHECK_STR(buf_str(&r.err), "");
    }
    own_done(ran) none;
    run_croft(&none, ARGS(), NULL);
    CHECK_INT(none.code, 0);
    CHECK_HAS(buf_str(&none.out), "usage: croft COMMAND");
}

TEST(cli_help_of_a_command_comes_both_ways)
{
    own_done(ran) a, b;

    run_croft(&a, ARGS("help", "config"), NULL);
    run_croft(&b, ARGS("config", "--json", "--help"), NULL);
    CHECK_INT(a.code, 0);
    CHECK_STR(buf_str(&a.out), buf_str(&b.out));
    CHECK_HAS(buf_str(&a.out), "usage: croft config ");
    CHECK_HAS(buf_str(&a.out), "  --check");
    CHECK_HAS(buf_str(&a.out), "  --listen TEXT");
}

TEST(cli_version_prints_text_or_json)
{
    own_done(ran) a, b, c;

    run_croft(&a, ARGS("--version"), NULL);
    CHECK_STR(buf_str(&a.out), "croft " CROFT_VERSION "\n");
    run_croft(&b, ARGS("version", "--json"), NULL);
    CHECK_STR(buf_str(&b.out), "{\"name\": \"croft\", \"version\": \"" CROFT_VERSION "\"}\n");
    run_croft(&c, ARGS("version", "--jsn"), NULL);
    CHECK_INT(c.code, 2);
    CHECK_STR(buf_str(&c.err), "croft version: --jsn: no such option; did you mean '--json'?\n"
                               "try: croft version --help\n");
    CHECK_STR(buf_str(&c.out), "");
}

TEST(cli_unknown_commands_name_the_nearest)
{
    own_done(ran) a, b, c;

    run_croft(&a, ARGS("confg"), NULL);
    CHECK_INT(a.code, 2);
    CHECK_STR(buf_str(&a.err),
              "croft: unknown command 'confg'; did you mean 'config'?\ntry: croft help\n");
    run_croft(&b, ARGS("frobnicate"), NULL);
    CHECK_INT(b.code, 2);
    CHECK_HAS(buf_str(&b.err), "'croft help' lists them");
    run_croft(&c, ARGS("--listen", "config"), NULL);
    CHECK_INT(c.code, 2);
    CHECK_HAS(buf_str(&c.err), "'--listen' should follow a command");
}

TEST(cli_config_reads_the_openhands_template)
{
    own_done(ran) r;
    char path[512];

    snprintf(path, sizeof path, "%s", test_source("test/config/openhands-template.toml"));
    run_croft(&r, ARGS("config", "--config", path), NULL);
    CHECK_STR(buf_str(&r.err), "");
    CHECK_INT(r.code, 0);
    CHECK_HAS(buf_str(&r.out), "# sandbox.close_delay (file:");
    CHECK_HAS(buf_str(&r.out), "server.listen = \"127.0.0.1:3000\"  # default\n");
    CHECK_HAS(buf_str(&r.out), "# core.jwt_secret (file:");
    CHECK_HAS(buf_str(&r.out), "# security.enable_security_analyzer (file:");
}

TEST(cli_config_prints_what_it_reads)
{
    own_done(ran) a, b;

    run_croft(&a, ARGS("config"), ARGS("SANDBOX_REMOTE_RUNTIME_API_URL=http://x:1"));
    CHECK_INT(a.code, 0);
    run_croft(&b, ARGS("config", "--config", write_file("again.toml", buf_cstr(&a.out))), NULL);
    CHECK_STR(buf_str(&b.err), "");
    CHECK_INT(b.code, 0);
    CHECK_HAS(buf_str(&b.out), "sandbox.remote_runtime_api_url = \"http://x:1\"  # file:");
}

static struct str json_field(const struct json *all, const char *key, const char *name)
{
    return json_get_str(json_get(json_get(all, STR("settings")), str_of(key)), name, STR("?"));
}

TEST(cli_config_file_then_variable_then_flag)
{
    own_done(ran) r;
    own_done(arena) a;
    struct json *v;
    const char *file = write_file("c.toml", "[server]\nlisten = '1:1'\nstate_dir = "
                                            "'/file'\n[log]\nlevel = 'warn'\n[llm]\nmodel = 'm'\n");

    run_croft(&r, ARGS("config", "--json", "--config", file, "--log-level=error"),
              ARGS("CROFT_LOG_LEVEL=debug", "CROFT_SERVER_LISTEN=2:2"));
    CHECK_INT(r.code, 0);
    arena_init(&a, LIMIT);
    CHECK_OK(json_parse(&a, buf_str(&r.out), NULL, &v));
    CHECK_STR(json_field(v, "server.state_dir", "value"), "/file");
    CHECK_HAS(json_field(v, "server.state_dir", "source"), "file:");
    CHECK_STR(json_field(v, "server.listen", "value"), "2:2");
    CHECK_STR(json_field(v, "server.listen", "source"), "env:CROFT_SERVER_LISTEN");
    CHECK_STR(json_field(v, "log.level", "value"), "error");
    CHECK_STR(json_field(v, "log.level", "source"), "flag:--log-level");
    CHECK_INT(json_get(v, STR("files"))->count, 1);
    CHECK_STR(json_get_str(json_get(v, STR("notes"))->first, "key", STR("")), "llm.model");
}

TEST(cli_config_check_says_what_is_wrong_and_fails)
{
    own_done(ran) good, misspelt, wrong, absent, flag;

    run_croft(&good, ARGS("config", "--check"), NULL);
    CHECK_INT(good.code, 0);
    CHECK_STR(buf_str(&good.out), "");
    run_croft(
        &misspelt,
        ARGS("config", "--check", "--config", write_file("m.toml", "[server]\nlisen = 'x'\n")),
        NULL);
    CHECK_INT(misspelt.code, 1);
    CHECK_HAS(buf_str(&misspelt.err), "croft config: server.lisen (file:");
    CHECK_HAS(buf_str(&misspelt.err),
              "m.toml line 2): no such key; did you mean 'server.listen'?\n");
    run_croft(&wrong, ARGS("config", "--check"), ARGS("CROFT_LOG_LEVEL=loud"));
    CHECK_INT(wrong.code, 1);
    CHECK_STR(buf_str(&wrong.err),
              "croft config: log.level (env:CROFT_LOG_LEVEL): 'loud' is not one of "
              "debug, info, warn, error, off\n");
    run_croft(&absent, ARGS("config", "--config", "/nowhere.toml"), NULL);
    CHECK_INT(absent.code, 1);
    CHECK_HAS(buf_str(&absent.err), "/nowhere.toml");
    run_croft(&flag, ARGS("config", "--lissten=x"), NULL);
    CHECK_INT(flag.code, 2);
    CHECK_HAS(buf_str(&flag.err), "did you mean '--listen'?");
}

TEST(cli_the_manual_page_is_current)
{
    own_done(ran) r;
    own_done(buf) page;

    buf_init(&page, LIMIT);
    CHECK_OK(fd_read_file(test_source("doc/croft.1"), &page));
    run_croft(&r, ARGS("man"), NULL);
    if (!str_eq(buf_str(&r.out), buf_str(&page)))
        FAIL("doc/croft.1 is old; run: build/croft man > doc/croft.1");
}

TEST(cli_guest_writes_out_a_program_that_runs)
{
    own_done(ran) r, none;
    own_done(buf) version;
    char path[400];

    buf_init(&version, LIMIT);
    snprintf(path, sizeof path, "%s/guest", test_dir());
    run_croft(&r, ARGS("guest", path), NULL);
    CHECK_INT(r.code, 0);
    CHECK_INT(program_run(ARGS(path, "--version"), &version), 0);
    CHECK(str_starts(buf_str(&version), STR("croft-guest ")));
    run_croft(&none, ARGS("guest"), NULL);
    CHECK_INT(none.code, 2);
    CHECK_HAS(buf_str(&none.err), "name the file to write");
}

TEST(a_command_for_a_server_says_how_to_get_one)
{
    struct ran r;
    char state[400];

    snprintf(state, sizeof state, "CROFT_SERVER_STATE_DIR=%s/nobody", test_dir());
    run_croft(&r, (const char *const[]){"ps", NULL}, (const char *const[]){state, NULL});
    CHECK_INT(r.code, 1);
    CHECK_HAS(buf_str(&r.err), "start one with 'croft serve'");
    CHECK_INT(r.out.len, 0);
    ran_done(&r);
    run_croft(&r, (const char *const[]){"ps", NULL},
              (const char *const[]){"CROFT_HOST=example.org", NULL});
    CHECK_HAS(buf_str(&r.err), "wanted http://HOST:PORT, https://HOST:PORT or unix:/PATH");
    ran_done(&r);
    run_croft(&r, (const char *const[]){"ps", NULL},
              (const char *const[]){"CROFT_HOST=http://", NULL});
    CHECK_HAS(buf_str(&r.err), "CROFT_HOST 'http://': wanted");
    ran_done(&r);
    run_croft(&r, (const char *const[]){"stop", NULL}, NULL);
    CHECK_INT(r.code, 2);
    CHECK_HAS(buf_str(&r.err), "which sandbox?");
    ran_done(&r);
}
