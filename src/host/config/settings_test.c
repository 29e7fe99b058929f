// SPDX-License-Identifier: Apache-2.0
/* settings_test.c — files, variables and flags together; OpenHands' own files load. */
#include "host/config/settings.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fd.h"
#include "test/test.h"

struct fixture {
    struct settings s;
    struct buf values;
};

static void fixture_done(struct fixture *f)
{
    settings_done(&f->s);
    buf_done(&f->values);
}

static fallible load(struct fixture *f, const char *file, const char *const *envp, const char *flag)
{
    const char *words[] = {flag, NULL};
    int argc = flag ? 1 : 0;

    f->values = (struct buf){0};
    TRY(settings_begin(&f->s, NULL, &argc, (char **)words));
    return settings_load(&f->s, str_of(file), envp);
}

/* One line of what 'croft config' prints; the modules' structs are their own. */
static void check_line(struct fixture *f, const char *line)
{
    if (!f->values.len) {
        buf_init(&f->values, 1u << 20);
        cfg_put_values(&f->s.cfg, &f->values, false);
    }
    CHECK_HAS(buf_str(&f->values), str_of(line));
}

static const char *const no_env[] = {NULL};

static const char *write_file(const char *name, const char *text)
{
    static char path[512];
    own_fd top = test_dir_fd(), dir = -1;
    const char *slash = strchr(name, '/');

    snprintf(path, sizeof path, "%s/%s", test_dir(), name);
    struct str folder = slash ? str_n(name, (size_t)(slash - name)) : STR(".");
    CHECK_OK(fd_make_dirs(top, folder, 0700, &dir));
    CHECK_OK(fd_replace_file(dir, slash ? slash + 1 : name, str_of(text), 0600));
    return path;
}

TEST(settings_defaults_are_those_of_their_rows)
{
    own_done(fixture) f;

    CHECK_OK(load(&f, NULL, no_env, NULL));
    check_line(&f, "server.listen = \"127.0.0.1:3000\"  # default\n");
    check_line(&f, "log.level = \"info\"  # default\n");
    check_line(&f, "sandbox.remote_runtime_api_url = \"http://localhost:8000\"  # default\n");
    check_line(&f, "sandbox.keep_runtime_alive = false  # default\n");
    check_line(&f, "# server.domain is not set\n");
}

/* The linker gives them in no order. */
TEST(settings_are_printed_by_section_with_those_of_openhands_last)
{
    static const char *const keys[] = {"log.level",      "server.listen",      "server.state_dir",
                                       "server.backend", "limits.memory",      "idle.pause_after",
                                       "journal.keep",   "tenant.most_builds", "sandbox.api_key"};
    own_done(arena) a;
    size_t at = 0;

    arena_init(&a, 1u << 20);
    struct cfg_table all = settings_rows(&a);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        while (at < all.count && strcmp(all.rows[at].key, keys[i]) != 0)
            at++;
        if (at == all.count)
            FAIL("%s is not where it should be", keys[i]);
    }
}

static bool has_note(const struct fixture *f, const char *key)
{
    for (const struct json *n = f->s.cfg.notes->first; n; n = n->next)
        if (str_eq(json_get_str(n, "key", STR("")), str_of(key)))
            return true;
    return false;
}

TEST(settings_accept_every_key_of_the_openhands_template)
{
    own_done(fixture) f;
    char path[512];

    snprintf(path, sizeof path, "%s", test_source("test/config/openhands-template.toml"));
    CHECK_OK(load(&f, path, no_env, NULL));
    check_line(&f, "sandbox.remote_runtime_api_url = ");
    CHECK(has_note(&f, "sandbox.close_delay"));
    CHECK(has_note(&f, "sandbox.runtime_extra_build_args"));
    CHECK(has_note(&f, "core.jwt_secret"));
    CHECK(has_note(&f, "kubernetes.namespace"));
    CHECK(has_note(&f, "security.enable_security_analyzer"));
    CHECK(has_note(&f, "llm.gpt4o-mini.model"));
    CHECK(has_note(&f, "mcp.stdio_servers"));
    CHECK(!has_note(&f, "sandbox.keep_runtime_alive"));

    const char *real = getenv("CROFT_OPENHANDS_TEMPLATE"); /* where somebody has the original */
    if (real) {
        own_done(fixture) g;
        CHECK_OK(load(&g, real, no_env, NULL));
    }
}

TEST(settings_variables_have_openhands_names)
{
    static const char *const env[] = {"SANDBOX_REMOTE_RUNTIME_API_URL=http://far:1",
                                      "SANDBOX_KEEP_RUNTIME_ALIVE=1",
                                      "SANDBOX_TIMEOUT=7",
                                      "RUNTIME=local",
                                      "KUBERNETES_NAMESPACE=agents",
                                      "SANDBOX_USER_ID=",
                                      NULL};
    own_done(fixture) f;

    CHECK_OK(load(&f, NULL, env, NULL));
    check_line(&f, "\"http://far:1\"  # env:SANDBOX_REMOTE_RUNTIME_API_URL\n");
    check_line(&f, "sandbox.keep_runtime_alive = true  # env:");
    CHECK(has_note(&f, "sandbox.timeout") && has_note(&f, "core.runtime"));
    CHECK(has_note(&f, "kubernetes.namespace"));
    CHECK_INT(f.s.cfg.notes->count, 3); /* what is empty is not set */
    CHECK_STR(json_get_str(f.s.cfg.notes->first, "source", STR("")), "env:RUNTIME");
}

TEST(settings_user_file_then_named_file_then_variable_then_flag)
{
    own_done(fixture) f;
    char xdg[300], named[400];

    snprintf(xdg, sizeof xdg, "XDG_CONFIG_HOME=%s", test_dir());
    write_file("croft/croft.toml",
               "[limits]\npids = 1\nopen_files = 1\n[server]\nlisten = '1:1'\nstate_dir = '/1'\n");
    snprintf(named, sizeof named, "%s",
             write_file("b.toml",
                        "[limits]\nopen_files = 2\n[server]\nlisten = '2:2'\nstate_dir = '/2'\n"));
    const char *env[] = {xdg, "CROFT_SERVER_LISTEN=3:3", "CROFT_SERVER_STATE_DIR=/3", NULL};
    CHECK_OK(load(&f, named, env, "--listen=4:4"));
    check_line(&f, "limits.pids = 1  # file:");
    check_line(&f, "limits.open_files = 2  # file:");
    check_line(&f, "server.state_dir = \"/3\"  # env:");
    check_line(&f, "server.listen = \"4:4\"  # flag:");
    CHECK_INT(f.s.files->count, 2);
    CHECK_STR(cfg_source(&f.s.cfg, "server.listen"), "flag:--listen");
    CHECK_HAS(cfg_source(&f.s.cfg, "limits.pids"), "croft/croft.toml");
}

TEST(settings_read_yaml_and_json_by_their_names)
{
    own_done(fixture) y, j;

    CHECK_OK(load(
        &y, write_file("c.yaml", "limits:\n  pids: 1:30\ntelemetry:\n  per_sandbox: on\nllm:\n"),
        no_env, NULL));
    check_line(&y, "limits.pids = 90  # file:");
    check_line(&y, "telemetry.per_sandbox = true  # file:");
    CHECK_OK(load(
        &j, write_file("c.json", "{\"limits\": {\"pids\": 5}, \"server\": {\"domain\": null}}"),
        no_env, NULL));
    check_line(&j, "limits.pids = 5  # file:");
    check_line(&j, "# server.domain is not set\n");
}

TEST(settings_errors_name_the_file)
{
    static const struct {
        const char *name, *text, *want;
    } cases[] = {
        {"a.toml", "[sandbox\n", "a.toml: line 1 column 9: the line ends where ']' should be"},
        {"a.yaml", "sandbox: [\n", "a.yaml: line 2 column 1: "},
        {"a.json", "{\"sandbox\": }", "a.json: line 1 column "},
        {"b.toml", "[sandbox]\ntimeot = 5\n",
         "b.toml line 2): no such key; did you mean 'sandbox.timeout'?"},
        {"b.yaml", "[]", "b.yaml): sections should be here, not a"},
        {"c.toml", "[telemetry]\nper_sandbox = 'maybe'\n",
         "c.toml line 2): 'maybe' is not true or false"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        own_done(fixture) f;
        CHECK_ERR(load(&f, write_file(cases[i].name, cases[i].text), no_env, NULL), ERR_INVALID,
                  cases[i].want);
    }
    own_done(fixture) f;
    CHECK_ERR(load(&f, "/nowhere/at/all.toml", no_env, NULL), ERR_NOT_FOUND,
              "/nowhere/at/all.toml");
}

TEST(settings_tell_all_mistakes_of_a_file_at_once_with_their_lines)
{
    own_done(fixture) f;
    static const char *const env[] = {"CROFT_LIMITS_PIDS=many", NULL};
    static const char text[] = "[server]\nlisten = 5\n# a word\nlisen = ''\npublic_url = 'x'\n"
                               "[idle]\npause_after = 'soon'\n[pool.a]\ntarget = 3\nceiling = 2\n";
    own(err) e = load(&f, write_file("m.toml", text), env, NULL);

    CHECK(e != NULL);
    struct str said = str_of(err_text(e));
    CHECK_HAS(said, "m.toml line 2): 5 is not text");
    CHECK_HAS(said, "m.toml line 4): no such key; did you mean 'server.listen'?");
    CHECK_HAS(said, "server.public_url (file:");
    CHECK_HAS(said, "m.toml line 5): wanted an address");
    CHECK_HAS(said, "m.toml line 7): ");
    CHECK_HAS(said, "m.toml line 10): it is 2, and the target is 3");
    CHECK_HAS(said, "limits.pids (env:CROFT_LIMITS_PIDS)");
}

TEST(settings_a_domain_is_a_name_and_a_public_url_an_address)
{
    static const struct {
        const char *text, *want; /* NULL: it is fine */
    } rows[] = {
        {"domain = 'run.example'", NULL},
        {"domain = '-run.example'", NULL},
        {"domain = 'localhost'", NULL},
        {"domain = ''", NULL},
        {"domain = 'run.example:3979'", "c.toml line 2): 'run.example:3979': wanted a name like"},
        {"domain = 'http://run.example'", "without scheme and port"},
        {"domain = '.run.example'", "server.domain"},
        {"domain = 'run..example'", "server.domain"},
        {"domain = 'run.example/'", "server.domain"},
        {"public_url = 'https://croft.example:8443/box'", NULL},
        {"public_url = 'croft.example'", "server.public_url"},
        {"public_url = 'unix:/run/x.sock'", "wanted an address like"},
        {"public_url = ''", NULL},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        own_done(fixture) f;
        char text[200];
        snprintf(text, sizeof text, "[server]\n%s\n", rows[i].text);
        struct err *e = load(&f, write_file("c.toml", text), no_env, NULL);
        if (rows[i].want)
            CHECK_ERR(e, ERR_INVALID, rows[i].want);
        else
            CHECK_OK(e);
    }
}

TEST(settings_state_dir_follows_xdg)
{
    own_done(fixture) f;
    struct str path;
    static const char *const home[] = {"HOME=/home/x", NULL};
    static const char *const xdg[] = {"HOME=/home/x", "XDG_STATE_HOME=/s", NULL};
    static const char *const top[] = {"HOME=/", NULL}; /* as many a service account has it */

    CHECK_OK(load(&f, NULL, no_env, NULL));
    CHECK_OK(settings_state_dir(&f.s, &f.s.arena, home, false, &path));
    CHECK_STR(path, "/home/x/.local/state/croft");
    CHECK_OK(settings_state_dir(&f.s, &f.s.arena, top, false, &path));
    CHECK_STR(path, "/.local/state/croft");
    CHECK_OK(settings_state_dir(&f.s, &f.s.arena, xdg, true, &path));
    CHECK_STR(path, "/s/croft");
    CHECK_OK(settings_state_dir(&f.s, &f.s.arena, home, true, &path));
    CHECK_STR(path, "/var/lib/croft");
    CHECK_ERR(settings_state_dir(&f.s, &f.s.arena, no_env, false, &path), ERR_INVALID,
              "CROFT_SERVER_STATE_DIR");
    own_done(fixture) named;
    CHECK_OK(load(&named, NULL, (const char *const[]){"CROFT_SERVER_STATE_DIR=/d", NULL}, NULL));
    CHECK_OK(settings_state_dir(&named.s, &named.s.arena, home, false, &path));
    CHECK_STR(path, "/d");
}

TEST(settings_pools_come_by_name)
{
    own_done(fixture) f;

    CHECK_OK(load(&f,
                  write_file("p.toml", "[pool.web]\nimage = 'host'\ntarget = 8\nceiling = 20\n"
                                       "command = ['a', 'b']\n[pool.big]\nimage = 'debian:12'\n"
                                       "[limits]\nmemory = '1G'\n[idle]\npause_after = '20m'\n"),
                  no_env, NULL));
    check_line(&f, "pool.web.image = \"host\"  # file:");
    check_line(&f, "pool.web.target = 8  # file:");
    check_line(&f, "pool.web.ceiling = 20  # file:");
    check_line(&f, "pool.web.command = [\"a\", \"b\"]  # file:");
    check_line(&f, "pool.big.image = \"debian:12\"  # file:");
    check_line(&f, "pool.big.target = 2  # default\n");
    check_line(&f, "pool.big.ceiling = 2  # default\n"); /* as target */
    check_line(&f, "pool.big.run_as_user = -1  # default\n");
    check_line(&f, "limits.memory = 1073741824  # file:");
    check_line(&f, "idle.pause_after = 1200  # file:");
    CHECK_HAS(cfg_source(&f.s.cfg, "pool.web.target"), "p.toml");
}

TEST(settings_a_later_file_changes_one_key_of_a_pool)
{
    own_done(fixture) f;
    int argc = 0;

    f.values = (struct buf){0};
    CHECK_OK(settings_begin(&f.s, NULL, &argc, NULL));
    CHECK_OK(settings_load_file(
        &f.s, write_file("a.toml", "[pool.web]\nimage='one'\ntarget=3\n[pool.a]\n")));
    CHECK_OK(settings_load(&f.s, str_of(write_file("b.toml", "[pool.web]\ntarget=4\n")), no_env));
    check_line(&f, "pool.web.image = \"one\"  # file:");
    check_line(&f, "pool.web.target = 4  # file:");
    check_line(&f, "pool.a.target = 2  # default\n");
}

TEST(settings_a_pool_that_cannot_be_is_refused_by_key)
{
    static const struct {
        const char *toml, *why;
    } bad[] = {
        {"[pool.web]\nimgae = 'x'", "no such key; did you mean 'pool.web.image'?"},
        {"[pool.web]\ntarget = -1", "pool.web.target"},
        {"[pool.web]\ntarget = 'x'", "pool.web.target"},
        {"[pool.web]\ntarget = 5\nceiling = 4", "pool.web.ceiling (file:"},
        {"[pool]\ntarget = 5", "pool.target (file:"},
        {"[pool.'a b']\n", "names are 1 to 63 letters"},
        {"[poll.web]\ntarget = 1", "no such section; did you mean 'pool'?"},
        {"[limits]\nmemroy = '1G'", "did you mean 'limits.memory'?"},
        {"[idle]\npause_after = 'soon'", "idle.pause_after"},
        {"[server]\nmost_starts = 0", "server.most_starts"},
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        own_done(fixture) f;
        CHECK_ERR(load(&f, write_file("p.toml", bad[i].toml), no_env, NULL), ERR_INVALID,
                  bad[i].why);
    }
}

TEST(settings_there_is_a_bound_on_pools)
{
    own_done(fixture) f;
    own_done(buf) text;

    buf_init(&text, 1u << 16);
    for (int i = 0; i <= 64; i++)
        buf_addf(&text, "[pool.p%d]\n", i);
    CHECK_ERR(load(&f, write_file("p.toml", buf_cstr(&text)), no_env, NULL), ERR_INVALID,
              "pool.p64 (file:");
}
