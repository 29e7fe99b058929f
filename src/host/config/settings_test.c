// SPDX-License-Identifier: Apache-2.0
/* settings_test.c — files, variables and flags together; OpenHands' own files load. */
#include "host/config/settings.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fd.h"
#include "test/test.h"

struct fixture {
    struct settings s;
    struct settings_loaded l;
};

static void fixture_done(struct fixture *f)
{
    settings_loaded_done(&f->l);
}

static fallible load(struct fixture *f, const char *file, const char *const *envp, const char *flag)
{
    const char *words[] = {flag, NULL};
    int argc = flag ? 1 : 0;

    TRY(settings_begin(&f->l, &f->s, NULL, &argc, (char **)words));
    return settings_load(&f->l, str_of(file), envp);
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

TEST(settings_defaults_are_those_of_the_originals)
{
    own_done(fixture) f;

    CHECK_OK(load(&f, NULL, no_env, NULL));
    CHECK_STR(f.s.listen, "127.0.0.1:3000");
    CHECK_STR(f.s.log_level, "info");
    CHECK_STR(f.s.core.runtime, "docker");
    CHECK_INT(f.s.core.max_iterations, 500);
    CHECK_STR(f.s.core.file_uploads_allowed_extensions->first->s, ".*");
    CHECK_INT(f.s.sandbox.timeout, 120);
    CHECK_INT(f.s.sandbox.close_delay, 3600);
    CHECK_INT(f.s.sandbox.user_id, -1);
    CHECK_INT(f.s.sandbox.vscode_port, 0);
    CHECK(f.s.sandbox.pause_closed_runtimes && !f.s.sandbox.keep_runtime_alive);
    CHECK_STR(f.s.sandbox.base_container_image, "nikolaik/python-nodejs:python3.12-nodejs22");
    CHECK(f.s.sandbox.volumes.p == NULL && f.s.sandbox.docker_runtime_kwargs == NULL);
    CHECK_STR(f.s.kubernetes.resource_memory_limit, "2Gi");
    CHECK(!f.s.security.confirmation_mode);
}

static bool has_note(const struct fixture *f, const char *key)
{
    for (const struct json *n = f->l.cfg.notes->first; n; n = n->next)
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
    CHECK_INT(f.s.sandbox.vscode_port, 41234);
    CHECK_INT(f.s.sandbox.close_delay, 300);
    CHECK_STR(f.s.security.security_analyzer, "llm");
    CHECK_INT(f.s.sandbox.runtime_extra_build_args->count, 2);
    CHECK(has_note(&f, "security.enable_security_analyzer"));
    CHECK(has_note(&f, "llm.gpt4o-mini.model"));
    CHECK(has_note(&f, "mcp.stdio_servers"));
    CHECK(!has_note(&f, "sandbox.timeout"));

    const char *real = getenv("CROFT_OPENHANDS_TEMPLATE"); /* where somebody has the original */
    if (real) {
        own_done(fixture) g;
        CHECK_OK(load(&g, real, no_env, NULL));
    }
}

TEST(settings_variables_have_openhands_names)
{
    static const char *const env[] = {"SANDBOX_TIMEOUT=7",
                                      "SANDBOX_VOLUMES=/a:/b",
                                      "RUNTIME=local",
                                      "KUBERNETES_NAMESPACE=agents",
                                      "SECURITY_CONFIRMATION_MODE=1",
                                      "SANDBOX_USER_ID=",
                                      "SANDBOX_CLOSE_DELAY=soon",
                                      "SANDBOX_RUNTIME_STARTUP_ENV_VARS={'A': 'b'}",
                                      "SANDBOX_ENV_TOKEN=a=b",
                                      "SANDBOX_ENV_EMPTY=",
                                      "SANDBOX_ENV_",
                                      NULL};
    own_done(fixture) f;

    CHECK_OK(load(&f, NULL, env, NULL));
    CHECK_INT(f.s.sandbox.timeout, 7);
    CHECK_STR(f.s.sandbox.volumes, "/a:/b");
    CHECK_STR(f.s.core.runtime, "local");
    CHECK_STR(f.s.kubernetes.namespace, "agents");
    CHECK(f.s.security.confirmation_mode);
    CHECK_INT(f.s.sandbox.user_id, -1);
    CHECK_INT(f.s.sandbox.close_delay, 3600);
    CHECK(has_note(&f, "sandbox.close_delay"));
    CHECK_STR(json_get_str(f.s.sandbox.runtime_startup_env_vars, "A", STR("")), "b");
    CHECK_INT(f.s.sandbox.env->count, 2);
    CHECK_STR(json_get_str(f.s.sandbox.env, "TOKEN", STR("")), "a=b");
    CHECK_STR(json_get_str(f.s.sandbox.env, "EMPTY", STR("?")), "");
}

TEST(settings_user_file_then_named_file_then_variable_then_flag)
{
    own_done(fixture) f;
    char xdg[300], named[400];

    snprintf(xdg, sizeof xdg, "XDG_CONFIG_HOME=%s", test_dir());
    write_file(
        "croft/croft.toml",
        "[sandbox]\ntimeout = 1\nclose_delay = 1\n[server]\nlisten = '1:1'\nstate_dir = '/1'\n");
    snprintf(
        named, sizeof named, "%s",
        write_file("b.toml",
                   "[sandbox]\nclose_delay = 2\n[server]\nlisten = '2:2'\nstate_dir = '/2'\n"));
    const char *env[] = {xdg, "CROFT_SERVER_LISTEN=3:3", "CROFT_SERVER_STATE_DIR=/3", NULL};
    CHECK_OK(load(&f, named, env, "--listen=4:4"));
    CHECK_INT(f.s.sandbox.timeout, 1);
    CHECK_INT(f.s.sandbox.close_delay, 2);
    CHECK_STR(f.s.state_dir, "/3");
    CHECK_STR(f.s.listen, "4:4");
    CHECK_INT(f.l.files->count, 2);
    CHECK_STR(cfg_source(&f.l.cfg, "server.listen"), "flag:--listen");
    CHECK_HAS(cfg_source(&f.l.cfg, "sandbox.timeout"), "croft/croft.toml");
}

TEST(settings_read_yaml_and_json_by_their_names)
{
    own_done(fixture) y, j;

    CHECK_OK(load(&y, write_file("c.yaml", "sandbox:\n  timeout: 1:30\n  enable_gpu: on\nllm:\n"),
                  no_env, NULL));
    CHECK_INT(y.s.sandbox.timeout, 90);
    CHECK(y.s.sandbox.enable_gpu);
    CHECK_OK(load(&j, write_file("c.json", "{\"sandbox\": {\"timeout\": 5, \"platform\": null}}"),
                  no_env, NULL));
    CHECK_INT(j.s.sandbox.timeout, 5);
    CHECK(j.s.sandbox.platform.p == NULL);
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
         "b.toml): no such key; did you mean 'sandbox.timeout'?"},
        {"b.yaml", "[]", "b.yaml): sections should be here, not a"},
        {"c.toml", "[kubernetes]\nprivileged = 'maybe'\n", "c.toml): 'maybe' is not true or false"},
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

TEST(settings_a_domain_is_a_name_and_a_public_url_an_address)
{
    static const struct {
        const char *text, *want; /* NULL: it is fine */
    } rows[] = {
        {"domain = 'run.example'", NULL},
        {"domain = '-run.example'", NULL},
        {"domain = 'localhost'", NULL},
        {"domain = ''", NULL},
        {"domain = 'run.example:3979'", "c.toml): 'run.example:3979': wanted a name like"},
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
    CHECK_OK(settings_state_dir(&f.s, &f.l.arena, home, false, &path));
    CHECK_STR(path, "/home/x/.local/state/croft");
    CHECK_OK(settings_state_dir(&f.s, &f.l.arena, top, false, &path));
    CHECK_STR(path, "/.local/state/croft");
    CHECK_OK(settings_state_dir(&f.s, &f.l.arena, xdg, true, &path));
    CHECK_STR(path, "/s/croft");
    CHECK_OK(settings_state_dir(&f.s, &f.l.arena, home, true, &path));
    CHECK_STR(path, "/var/lib/croft");
    CHECK_ERR(settings_state_dir(&f.s, &f.l.arena, no_env, false, &path), ERR_INVALID,
              "CROFT_SERVER_STATE_DIR");
    f.s.state_dir = STR("/d");
    CHECK_OK(settings_state_dir(&f.s, &f.l.arena, home, false, &path));
    CHECK_STR(path, "/d");
}

TEST(settings_pools_come_by_name)
{
    own_done(fixture) f;
    own_done(buf) out;

    CHECK_OK(load(&f,
                  write_file("p.toml", "[pool.web]\nimage = 'host'\ntarget = 8\nceiling = 20\n"
                                       "command = ['a', 'b']\n[pool.big]\nimage = 'debian:12'\n"
                                       "[limits]\nmemory = '1G'\n[idle]\npause_after = '20m'\n"),
                  no_env, NULL));
    CHECK_INT(f.s.pool_count, 2);
    CHECK_STR(f.s.pools[0].name, "web");
    CHECK_STR(f.s.pools[0].image, "host");
    CHECK(f.s.pools[0].target == 8 && f.s.pools[0].ceiling == 20);
    CHECK_STR(f.s.pools[0].command->first->s, "a");
    CHECK_STR(f.s.pools[1].name, "big");
    CHECK(f.s.pools[1].target == 2 && f.s.pools[1].ceiling == 2);
    CHECK_INT(f.s.pools[1].run_as_user, -1);
    CHECK(f.s.limits.memory == 1u << 30 && f.s.idle.pause_after == 20 * 60 * 1000);
    CHECK_HAS(cfg_source(&f.l.cfg, "pool.web.target"), "p.toml");
    CHECK_STR(cfg_source(&f.l.cfg, "pool.big.target"), "default");
    buf_init(&out, 1u << 20);
    cfg_put_values(&f.l.cfg, &out, false);
    CHECK_HAS(buf_str(&out), "ceiling = 20");
}

TEST(settings_a_later_file_changes_one_key_of_a_pool)
{
    own_done(fixture) f;
    int argc = 0;

    CHECK_OK(settings_begin(&f.l, &f.s, NULL, &argc, NULL));
    CHECK_OK(settings_load_file(
        &f.l, write_file("a.toml", "[pool.web]\nimage='one'\ntarget=3\n[pool.a]\n")));
    CHECK_OK(settings_load(&f.l, str_of(write_file("b.toml", "[pool.web]\ntarget=4\n")), no_env));
    CHECK_INT(f.s.pool_count, 2);
    CHECK_STR(f.s.pools[0].image, "one");
    CHECK_INT(f.s.pools[0].target, 4);
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
    for (int i = 0; i <= SETTINGS_POOLS; i++)
        buf_addf(&text, "[pool.p%d]\n", i);
    CHECK_ERR(load(&f, write_file("p.toml", buf_cstr(&text)), no_env, NULL), ERR_INVALID,
              "pool.p64 (file:");
}
