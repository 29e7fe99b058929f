// SPDX-License-Identifier: Apache-2.0
/* cfg_test.c — rows from every source, and what is said when a value is wrong. */
#include "base/cfg.h"

#include <stdio.h>

#include "base/toml.h"
#include "test/test.h"

struct sample {
    bool check, tls;
    int64_t nice;
    uint64_t port, memory, wait_ms, timeout;
    double ratio;
    struct str host, level, key;
    struct json *origins, *vars, *nets;
    bool lint;
};

static const struct cfg_row sample_rows[] = {
    CFG_BOOL(sample, check, "check", false, "Only look."),
    CFG_UINT(sample, port, "server.port", 3000, "TCP port.", .min = 1, .max = 65535),
    CFG_STR(sample, host, "server.host", "127.0.0.1", "Address to listen on."),
    CFG_BOOL(sample, tls, "server.tls", true, "Speak TLS."),
    CFG_SECRET(sample, key, "server.api_key", "Key clients must show."),
    CFG_INT(sample, nice, "server.nice", 0, "Priority.", .min = -20, .max = 19),
    CFG_SIZE(sample, memory, "limits.memory", "512M", "Memory of a sandbox."),
    CFG_MS(sample, wait_ms, "limits.wait", "1.5s", "How long to wait.", .min = 10,
           .max = 100000000),
    CFG_DOUBLE(sample, ratio, "limits.ratio", 0.5, "A share.", .flag = ""),
    CFG_STR(sample, level, "log.level", "info", "How much to say.", .choices = "debug|info|warn"),
    CFG_LIST(sample, origins, "server.origins", "['a', 'b']", "Who may call."),
    CFG_UINT(sample, timeout, "sandbox.timeout", 120, "Seconds.", .foreign = true),
    CFG_BOOL(sample, lint, "sandbox.enable_auto_lint", false, "Lint.", .foreign = true),
    CFG_DICT(sample, vars, "sandbox.vars", "{}", "Variables.", .foreign = true),
    CFG_LIST(sample, nets, "sandbox.nets", NULL, "Networks.", .foreign = true),
};

static const char *const core_keys[] = {"runtime", "disable_color", NULL};
static const struct cfg_foreign foreign[] = {{"llm", NULL}, {"core", core_keys}};

struct fixture {
    struct arena arena;
    struct sample s;
    struct cfg_table table;
    struct cfg c;
};

static void setup(struct fixture *f)
{
    arena_init(&f->arena, 4u << 20);
    f->table = (struct cfg_table){sample_rows, ARRAY_LEN(sample_rows), &f->s};
    CHECK_OK(cfg_init(&f->c, &f->arena, &f->table, 1));
    f->c.foreign = foreign;
    f->c.foreign_count = ARRAY_LEN(foreign);
}

static void fixture_done(struct fixture *f)
{
    arena_done(&f->arena);
}

static fallible load_toml(struct fixture *f, const char *text)
{
    struct json *tree;

    TRY(toml_parse(&f->arena, str_of(text), &tree));
    return cfg_load_tree(&f->c, tree, "file:croft.toml");
}

static fallible load_env(struct fixture *f, const char *one)
{
    return cfg_load_env(&f->c, (const char *const[]){one, NULL});
}

static fallible load_flags(struct fixture *f, char *a, char *b)
{
    int argc = b ? 2 : 1;

    return cfg_load_flags(&f->c, &argc, (char *[]){a, b, NULL});
}

TEST(cfg_rows_start_with_their_defaults)
{
    own_done(fixture) f;
    setup(&f);
    CHECK_INT(f.s.port, 3000);
    CHECK_STR(f.s.host, "127.0.0.1");
    CHECK(f.s.tls && !f.s.lint);
    CHECK(f.s.key.p == NULL && f.s.nets == NULL);
    CHECK_INT(f.s.memory, 512u << 20);
    CHECK_INT(f.s.wait_ms, 1500);
    CHECK(f.s.ratio == 0.5);
    CHECK_INT(f.s.origins->count, 2);
    CHECK_INT(f.s.vars->type, JSON_OBJECT);
    CHECK_STR(cfg_source(&f.c, "server.port"), "default");
    CHECK(cfg_source(&f.c, "server.nothing") == NULL);
}

TEST(cfg_reads_every_type_from_a_file)
{
    own_done(fixture) f;
    setup(&f);
    CHECK_OK(load_toml(&f,
                       "[server]\nport = 80\nhost = '::1'\ntls = false\napi_key = 'k'\nnice = -5\n"
                       "origins = ['x']\n[limits]\nmemory = '2GiB'\nwait = 30\nratio = 2\n"
                       "[log]\nlevel = 'debug'\n[sandbox]\ntimeout = '60'\nvars = {A = 'b'}\n"));
    CHECK_INT(f.s.port, 80);
    CHECK_STR(f.s.host, "::1");
    CHECK(!f.s.tls);
    CHECK_STR(f.s.key, "k");
    CHECK_INT(f.s.nice, -5);
    CHECK_INT(f.s.memory, 2ull << 30);
    CHECK_INT(f.s.wait_ms, 30000);
    CHECK(f.s.ratio == 2.0);
    CHECK_STR(f.s.level, "debug");
    CHECK_INT(f.s.timeout, 60);
    CHECK_STR(json_get_str(f.s.vars, "A", STR("")), "b");
    CHECK_STR(cfg_source(&f.c, "server.port"), "file:croft.toml");
    CHECK_STR(cfg_source(&f.c, "server.origins"), "file:croft.toml");
}

TEST(cfg_later_sources_win_in_any_order_of_calls)
{
    own_done(fixture) f;
    setup(&f);
    CHECK_OK(load_flags(&f, (char[]){"--port=3"}, NULL));
    CHECK_OK(load_env(&f, "CROFT_SERVER_PORT=2"));
    CHECK_OK(load_env(&f, "CROFT_SERVER_HOST=env"));
    CHECK_OK(load_toml(&f, "[server]\nport = 1\nhost = 'file'\nnice = 4\n"));
    CHECK_OK(load_toml(&f, "[server]\nnice = 5\n"));
    CHECK_INT(f.s.port, 3);
    CHECK_STR(f.s.host, "env");
    CHECK_INT(f.s.nice, 5);
    CHECK_STR(cfg_source(&f.c, "server.port"), "flag:--port");
    CHECK_STR(cfg_source(&f.c, "server.host"), "env:CROFT_SERVER_HOST");
}

TEST(cfg_a_bad_value_in_a_file_names_key_file_value_and_remedy)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"[server]\nport = 70000", "server.port (file:croft.toml): 70000 is not a whole number "
                                   "from 1 to 65535"},
        {"[server]\nport = 'x'", "server.port (file:croft.toml): 'x' is not a whole number from"},
        {"[server]\nport = 1.5", "server.port (file:croft.toml): 1.5 is not a whole number"},
        {"[server]\nhost = 5", "server.host (file:croft.toml): 5 is not text in quotes"},
        {"[server]\ntls = 'maybe'", "server.tls (file:croft.toml): 'maybe' is not true or false"},
        {"[server]\ntls = 2", "2 is not true or false"},
        {"[server]\norigins = [1]",
         "a value of type array is not a list of strings such as ['a', 'b']"},
        {"[server]\napi_key = 5", "server.api_key (file:croft.toml): a value of type "},
        {"[limits]\nmemory = '5 apples'", "'5 apples' is not a size such as 512M or 2GiB"},
        {"[limits]\nmemory = -1", "-1 is not a size"},
        {"[limits]\nwait = 'soon'", "'soon' is not a duration such as 500ms, 30s or 5m"},
        {"[limits]\nwait = '1ms'", "'1ms' is not a duration in milliseconds from 10 to 100000000"},
        {"[log]\nlevel = 'loud'", "'loud' is not one of debug, info, warn"},
        {"[sandbox]\nvars = 'x'", "\"x\" is not a table such as {'KEY': 'value'}"},
        {"[sandbox]\ntimeout = -1", "-1 is not a whole number, 0 or more"},
        {"server = 1", "server (file:croft.toml): this is a section; write [server]"},
        {"[[server]]\nport = 1", "this is a section"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        own_done(fixture) f;
        setup(&f);
        CHECK_ERR(load_toml(&f, cases[i].text), ERR_INVALID, cases[i].want);
    }
}

TEST(cfg_a_misspelt_key_names_the_nearest)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"[server]\nprot = 1", "server.prot (file:croft.toml): no such key; did you mean "
                               "'server.port'?"},
        {"[servr]\nport = 1", "servr (file:croft.toml): no such section; did you mean 'server'?"},
        {"[limits]\nport = 1", "limits.port (file:croft.toml): no such key; did you mean "
                               "'server.port'?"},
        {"[core]\nruntim = 1", "did you mean 'core.runtime'?"},
        {"[lm]\nx = 1", "did you mean 'llm'?"},
        {"[server]\nxyzzyfoobarbaz = 1", "no such key; 'croft config' lists them all"},
        {"check = true", "check (file:croft.toml): no such section"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        own_done(fixture) f;
        setup(&f);
        CHECK_ERR(load_toml(&f, cases[i].text), ERR_INVALID, cases[i].want);
    }
}

TEST(cfg_foreign_keys_are_accepted_and_listed)
{
    own_done(fixture) f;
    own_done(buf) out;

    setup(&f);
    buf_init(&out, 4096);
    CHECK_OK(
        load_toml(&f, "[llm]\nmodel = 'x'\n[llm.mini]\nk.deep = 1\n[core]\nruntime = 'docker'\n"));
    for (const struct json *n = f.c.notes->first; n; n = n->next) {
        buf_add(&out, json_get_str(n, "key", STR("?")));
        buf_add_char(&out, ' ');
    }
    CHECK_STR(buf_str(&out), "llm.model llm.mini.k core.runtime ");
}

TEST(cfg_variables_of_ours_are_judged_strictly)
{
    own_done(fixture) f;
    setup(&f);
    CHECK_OK(load_env(&f, "CROFT_SERVER_TLS=off"));
    CHECK(!f.s.tls);
    CHECK_OK(load_env(&f, "CROFT_SERVER_ORIGINS=x, y,z"));
    CHECK_INT(f.s.origins->count, 3);
    CHECK_STR(f.s.origins->first->next->s, "y");
    CHECK_OK(load_env(&f, "CROFT_SERVER_PORT=")); /* empty is unset */
    CHECK_INT(f.s.port, 3000);
    CHECK_OK(load_env(&f, "CROFT_LIMITS_WAIT=1h30m"));
    CHECK_INT(f.s.wait_ms, 5400000);
    CHECK_ERR(load_env(&f, "CROFT_SERVER_PORT=abc"), ERR_INVALID,
              "server.port (env:CROFT_SERVER_PORT): 'abc' is not a whole number from 1 to 65535");
    CHECK_ERR(load_env(&f, "CROFT_SERVER_TLS=2"), ERR_INVALID, "'2' is not true or false");
}

TEST(cfg_foreign_variables_follow_the_rules_of_openhands)
{
    own_done(fixture) f;
    setup(&f);
    CHECK_OK(load_env(&f, "SANDBOX_TIMEOUT=77"));
    CHECK_INT(f.s.timeout, 77);
    CHECK_OK(load_env(&f, "SANDBOX_ENABLE_AUTO_LINT=TRUE"));
    CHECK(f.s.lint);
    CHECK_OK(load_env(&f, "SANDBOX_ENABLE_AUTO_LINT=yes")); /* not a word for true there */
    CHECK(!f.s.lint);
    CHECK_OK(load_env(&f, "SANDBOX_VARS={'A': 'b', \"N\": None, 'T': true}"));
    CHECK_INT(f.s.vars->count, 3);
    CHECK_OK(load_env(&f, "SANDBOX_NETS=['one', 'two']"));
    CHECK_INT(f.s.nets->count, 2);
    CHECK_INT(f.c.notes->count, 0);
    CHECK_OK(load_env(&f, "SANDBOX_TIMEOUT=soon"));
    CHECK_OK(load_env(&f, "SANDBOX_VARS={'A'"));
    CHECK_OK(load_env(&f, "SANDBOX_NETS=one"));
    CHECK_INT(f.s.timeout, 77);
    CHECK_INT(f.c.notes->count, 3);
    CHECK_HAS(json_get_str(f.c.notes->first, "note", STR("")),
              "skipped: sandbox.timeout (env:SANDBOX_"
              "TIMEOUT): 'soon' is not a whole number");
}

TEST(cfg_variables_of_settings_that_are_not_used_are_listed)
{
    static const char *const env[] = {"DISABLE_COLOR=1", "RUNTIME=", "LLM_MODEL=x", NULL};
    own_done(fixture) f;

    setup(&f);
    CHECK_OK(cfg_load_env(&f.c, env));
    CHECK_INT(f.c.notes->count, 1); /* what is empty is not set; [llm] has any name */
    CHECK_STR(json_get_str(f.c.notes->first, "key", STR("")), "core.disable_color");
    CHECK_STR(json_get_str(f.c.notes->first, "source", STR("")), "env:DISABLE_COLOR");
    CHECK_STR(json_get_str(f.c.notes->first, "note", STR("")), "accepted, not used by croft");
}

TEST(cfg_a_variable_close_to_one_of_ours_is_noted)
{
    own_done(fixture) f;
    setup(&f);
    CHECK_OK(load_env(&f, "CROFT_SERVER_PROT=1"));
    CHECK_INT(f.c.notes->count, 1);
    CHECK_HAS(json_get_str(f.c.notes->first, "note", STR("")), "did you mean 'CROFT_SERVER_PORT'?");
    CHECK_OK(load_env(&f, "CROFT_SOMETHING_ELSE=1"));
    CHECK_INT(f.c.notes->count, 1);
}

TEST(cfg_flags_are_taken_out_and_the_rest_moves_up)
{
    own_done(fixture) f;
    const char *words[] = {"one",       "--port",  "8",  "--no-tls", "two",
                           "--wait=2m", "--check", "--", "--port",   NULL};
    char **argv = (char **)words;
    int argc = 9;

    setup(&f);
    CHECK_OK(cfg_load_flags(&f.c, &argc, argv));
    CHECK_INT(argc, 4);
    CHECK_STR(argv[0], "one");
    CHECK_STR(argv[1], "two");
    CHECK_STR(argv[2], "--");
    CHECK_STR(argv[3], "--port");
    CHECK_INT(f.s.port, 8);
    CHECK_INT(f.s.wait_ms, 120000);
    CHECK(f.s.check && !f.s.tls);
}

TEST(cfg_wrong_flags_say_what_would_be_right)
{
    own_done(fixture) f;
    setup(&f);
    CHECK_ERR(load_flags(&f, (char[]){"--prot"}, NULL), ERR_INVALID,
              "--prot: no such option; did you mean '--port'?");
    CHECK_ERR(load_flags(&f, (char[]){"--ratio=1"}, NULL), ERR_INVALID, "no such option");
    CHECK_ERR(load_flags(&f, (char[]){"--timeout=1"}, NULL), ERR_INVALID, "no such option");
    CHECK_ERR(load_flags(&f, (char[]){"--port"}, NULL), ERR_INVALID, "--port needs a value");
    CHECK_ERR(load_flags(&f, (char[]){"--no-port"}, NULL), ERR_INVALID, "no such option");
    CHECK_ERR(load_flags(&f, (char[]){"--no-tls=1"}, NULL), ERR_INVALID, "takes no value");
    CHECK_ERR(load_flags(&f, (char[]){"--port=0"}, NULL), ERR_INVALID,
              "server.port (flag:--port): '0' is not a whole number from 1 to 65535");
}

TEST(cfg_secrets_are_never_printed)
{
    own_done(fixture) f;
    own_done(buf) out;

    setup(&f);
    buf_init(&out, 1u << 16);
    CHECK_OK(load_env(&f, "CROFT_SERVER_API_KEY=hunter2"));
    cfg_put_values(&f.c, &out, false);
    cfg_put_values(&f.c, &out, true);
    CHECK(str_find(buf_str(&out), STR("hunter2")) < 0);
    CHECK_HAS(buf_str(&out), "server.api_key = \"***\"  # env:CROFT_SERVER_API_KEY\n");
}

TEST(cfg_values_print_as_toml_that_reads_back)
{
    own_done(fixture) f, again;
    own_done(buf) out, twice;

    setup(&f);
    buf_init(&out, 1u << 16);
    buf_init(&twice, 1u << 16);
    CHECK_OK(load_toml(&f, "[server]\nhost = \"a\\\"b\"\n[limits]\nwait = '1500ms'\n[sandbox]\n"
                           "vars = {'a b' = 'c', d = [1, {}]}\n"));
    cfg_put_values(&f.c, &out, false);
    CHECK_HAS(buf_str(&out),
              "sandbox.vars = {\"a b\" = \"***\", d = \"***\"}  # file:croft.toml\n");
    CHECK_HAS(buf_str(&out), "# sandbox.nets is not set\n");
    CHECK(str_find(buf_str(&out), STR("check")) < 0);
    buf_cstr(&out);
    setup(&again);
    CHECK_OK(load_toml(&again, buf_cstr(&out)));
    CHECK_INT(again.s.wait_ms, 1500);
    CHECK_STR(again.s.host, "a\"b");
}

TEST(cfg_help_and_man_come_from_the_rows)
{
    own_done(buf) out;
    struct cfg_table t = {sample_rows, ARRAY_LEN(sample_rows), NULL};

    buf_init(&out, 1u << 16);
    cfg_put_help(&t, &out);
    CHECK_HAS(buf_str(&out), "  --port N                 TCP port. [3000]\n");
    CHECK_HAS(buf_str(&out), "  --no-tls                 Speak TLS.\n");
    CHECK_HAS(buf_str(&out), "  --level debug|info|warn  How much to say. [info]\n");
    CHECK(str_find(buf_str(&out), STR("ratio")) < 0);
    buf_reset(&out);
    cfg_put_man(&t, &out);
    CHECK_HAS(buf_str(&out),
              ".TP\n\\fBserver.port\\fR, \\fB\\-\\-port N\\fR, \\fICROFT_SERVER_PORT\\fR\n"
              "TCP port. Default: 3000\n");
}

TEST(cfg_sizes_and_durations)
{
    static const struct {
        const char *text;
        uint64_t want;
    } sizes[] = {{"0", 0},
                 {"17", 17},
                 {"1k", 1024},
                 {"512M", 512ull << 20},
                 {"2GiB", 2ull << 30},
                 {"1.5G", 3ull << 29},
                 {"3 TB", 3ull << 40},
                 {"10b", 10}},
      times[] = {{"30", 30000},      {"500ms", 500},    {"1.5s", 1500}, {"5m", 300000},
                 {"1h30m", 5400000}, {"2d", 172800000}, {"0", 0}};
    static const char *const bad_sizes[] = {"",   "x",  "5X", "1Q", "5 KiBs", "99999999999P",
                                            "1.", ".5", "-1"};
    static const char *const bad_times[] = {"",     "s",   "5 parsecs",
                                            "1h x", "-1s", "99999999999999999d"};
    uint64_t v;

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        CHECK_OK(cfg_parse_size(str_of(sizes[i].text), &v));
        CHECK_INT(v, sizes[i].want);
    }
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        CHECK_OK(cfg_parse_ms(str_of(times[i].text), &v));
        CHECK_INT(v, times[i].want);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad_sizes); i++)
        CHECK_ERR(cfg_parse_size(str_of(bad_sizes[i]), &v), ERR_INVALID, "size");
    for (size_t i = 0; i < ARRAY_LEN(bad_times); i++)
        CHECK_ERR(cfg_parse_ms(str_of(bad_times[i]), &v), ERR_INVALID, "duration");
}

TEST(cfg_literals_read_as_python_reads_them)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"None", "null"},
        {" True ", "true"},
        {"false", "false"},
        {"-5", "-5"},
        {"+ 5", "5"},
        {"0x_ff", "255"},
        {"1_000", "1000"},
        {"0o17", "15"},
        {"1e3", "1000.0"},
        {"-.5", "-0.5"},
        {"1.", "1.0"},
        {"'a'", "\"a\""},
        {"\"it's\"", "\"it's\""},
        {"'a' \"b\"\n'c'", "\"abc\""},
        {"r'\\n'", "\"\\\\n\""},
        {"u'x' b'y'", "\"xy\""},
        {"'\\x41\\101\\u00e9\\U0001F600\\q\\\\'", "\"AA\\u00e9\\ud83d\\ude00\\\\q\\\\\""},
        {"'''a'b\nc'''", "\"a'b\\nc\""},
        {"'a\\\nb'", "\"ab\""},
        {"[]", "[]"},
        {"'a', 'b'", "[\"a\", \"b\"]"},
        {"Rb'\\d'", "\"\\\\d\""},
        {"[1, [2, (3,)], (4), ()]", "[1, [2, [3]], 4, []]"},
        {"{'A': 'b', 'c': {1: None, True: 2,},}",
         "{\"A\": \"b\", \"c\": {\"1\": null, \"true\": 2}}"},
        {"{'a': 1, 'a': 2} # end", "{\"a\": 2}"},
        {"[1, # one\n 2]", "[1, 2]"},
    };
    static const char *const bad[] = {
        "",         "x",    "'a",    "[1",     "[1 2]",       "{'a'}", "{'a': }",
        "{1, 2}",   "1 2",  "[,]",   "'\\x4'", "'\\N{DASH}'", "010",   "1__0",
        "{[1]: 2}", "f'x'", "ur'x'", "bb'x'",  ",",           "1,,",   "__import__('os')",
        "'a\nb'",   "(1",   "0x",    "1+2"};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        own_done(arena) a;
        own_done(buf) out;
        struct json *v;
        arena_init(&a, 1u << 20);
        buf_init(&out, 1u << 16);
        CHECK_OK(cfg_parse_literal(&a, str_of(cases[i].text), &v));
        json_write(&out, v, JW_PYTHON);
        CHECK_STR(buf_str(&out), cases[i].want);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        own_done(arena) a;
        struct json *v;
        arena_init(&a, 1u << 20);
        struct err *e = cfg_parse_literal(&a, str_of(bad[i]), &v);
        if (!e)
            FAIL("%s was accepted", bad[i]);
        CHECK_ERR(e, ERR_INVALID, "character ");
    }
}

TEST(cfg_literal_nested_too_deep_is_refused)
{
    own_done(arena) a;
    char text[1000];
    struct json *v;

    arena_init(&a, 1u << 20);
    memset(text, '[', sizeof text);
    CHECK_ERR(cfg_parse_literal(&a, str_n(text, sizeof text), &v), ERR_INVALID, "nested too deep");
}

TEST(cfg_survives_every_failing_allocation)
{
    for (unsigned n = 1;; n++) {
        struct fixture f = {0};
        arena_init(&f.arena, 4u << 20);
        f.table = (struct cfg_table){sample_rows, ARRAY_LEN(sample_rows), &f.s};
        fault_at(n);
        struct err *e = cfg_init(&f.c, &f.arena, &f.table, 1);
        if (!e)
            e = load_toml(&f, "[llm]\nmodel = 'x'\n[server]\nport = 5\n");
        if (!e)
            e = load_env(&f, "SANDBOX_VARS={'A': 'b'}");
        bool fired = fault_fired();
        fault_at(0);
        err_free(e);
        arena_done(&f.arena);
        if (!fired)
            break;
    }
}
