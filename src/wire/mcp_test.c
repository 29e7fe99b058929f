// SPDX-License-Identifier: Apache-2.0
/* mcp_test.c — stdio servers as /update_mcp_server delivers them. */
#include "wire/mcp.h"

#include "base/rng.h"
#include "test/json/python.h"
#include "test/wire/kit.h"

static struct str written(const struct json *v)
{
    struct buf b;

    buf_init(&b, 1 << 20);
    json_write(&b, v, JW_PYTHON);
    return kit_keep(&b);
}

static struct str passed(const char *text)
{
    struct wire_mcp_servers s;
    struct buf b;
    struct jw w;

    CHECK_OK(wire_decode_mcp_servers(&kit_arena, kit_quoted(text), &s));
    buf_init(&b, 1 << 20);
    jw_init(&w, &b, JW_WEB);
    wire_put_mcp_servers(&w, &s);
    return kit_keep(&b);
}

TEST(mcp_servers_come_back_in_their_full_form)
{
    CHECK_STR(passed("[]"), "[]");
    CHECK_STR(passed("[{'name':' a ','command':'uvx'}]"),
              "[{\"name\":\"a\",\"command\":\"uvx\",\"args\":[],\"env\":{}}]");
    CHECK_STR(passed("[{'env':{'K':'v'},'args':['x'],'command':'c','name':'a-B_9','zzz':1},"
                     "{'name':'b','command':'c','args':null,'env':null}]"),
              "[{\"name\":\"a-B_9\",\"command\":\"c\",\"args\":[\"x\"],\"env\":{\"K\":\"v\"}},"
              "{\"name\":\"b\",\"command\":\"c\",\"args\":[],\"env\":{}}]");
    CHECK_STR(passed("[{'name':'a','command':'c','args':'-y  mcp \\\\\\\\a','env':"
                     "' K=V, ,K2 =a=b,K=W'}]"),
              "[{\"name\":\"a\",\"command\":\"c\",\"args\":[\"-y\",\"mcp\",\"\\\\a\"],"
              "\"env\":{\"K\":\"W\",\"K2\":\"a=b\"}}]");
    CHECK_STR(passed("[{'name':'a','command':'c','args':'  ','env':''}]"),
              "[{\"name\":\"a\",\"command\":\"c\",\"args\":[],\"env\":{}}]");
    arena_done(&kit_arena);
}

TEST(mcp_update_is_answered)
{
    struct buf b;
    struct jw w;

    buf_init(&b, 1 << 20);
    jw_init(&w, &b, JW_WEB);
    wire_put_mcp_updated(&w, STR(""));
    CHECK_STR(kit_keep(&b),
              "{\"detail\":\"MCP server updated successfully\",\"router_error_log\":\"\"}");
    arena_done(&kit_arena);
}

TEST(mcp_servers_that_do_not_fit_are_refused)
{
    static const char *const cases[][2] = {
        {"[1]", "server 0: "},
        {"[{'name':'a','command':'c'},{'command':'c'}]", "server 1: field 'name' is missing"},
        {"[{'name':'  ','command':'c'}]", "Server name cannot be empty"},
        {"[{'name':'a b','command':'c'}]", "Server name can only contain letters"},
        {"[{'name':'a'}]", "field 'command'"},
        {"[{'name':'a','command':''}]", "Command cannot be empty"},
        {"[{'name':'a','command':'x y'}]", "Command should be a single executable"},
        {"[{'name':'a','command':'c','args':7}]", "field 'args' must be an array or a string"},
        {"[{'name':'a','command':'c','args':['x',7]}]", "field 'args' must hold strings only"},
        {"[{'name':'a','command':'c','args':'\\\\\\\\\\\\'}]", "No escaped character"},
        {"[{'name':'a','command':'c','env':[]}]", "field 'env' must be an object or a string"},
        {"[{'name':'a','command':'c','env':{'K':1}}]", "field 'env' must hold strings only"},
        {"[{'name':'a','command':'c','env':'K'}]", "must be in KEY=VALUE format"},
        {"[{'name':'a','command':'c','env':'=v'}]", "key cannot be empty"},
        {"[{'name':'a','command':'c','env':'1K=v'}]", "Invalid environment variable name"},
        {"[{'name':'a','command':'c','env':'a-b=v'}]", "Invalid environment variable name"},
    };
    struct wire_mcp_servers s;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        CHECK_ERR(wire_decode_mcp_servers(&kit_arena, kit_quoted(cases[i][0]), &s),
                  ERR_UNPROCESSABLE, cases[i][1]);
    CHECK_ERR(wire_decode_mcp_servers(&kit_arena, kit_quoted("{}"), &s), ERR_INVALID,
              "Request must be a list of MCP tools to sync");
    CHECK_ERR(wire_decode_mcp_servers(&kit_arena, NULL, &s), ERR_INVALID, "must be a list");
    arena_done(&kit_arena);
}

TEST(mcp_servers_are_equal_whatever_the_order_of_their_variables)
{
    struct wire_mcp_servers s;

    CHECK_OK(wire_decode_mcp_servers(
        &kit_arena,
        kit_quoted("[{'name':'a','command':'c','args':['x'],'env':{'K':'1','L':'2'}},"
                   "{'name':'a','command':'c','args':'x','env':'L=2,K=1'},"
                   "{'name':'a','command':'c','args':['x','y'],'env':'L=2,K=1'}]"),
        &s));
    CHECK_INT(s.count, 3);
    CHECK(wire_mcp_server_equal(&s.at[0], &s.at[1]));
    CHECK(!wire_mcp_server_equal(&s.at[0], &s.at[2]));
    arena_done(&kit_arena);
}

TEST_LIMIT(mcp_splits_words_as_shlex, 60)
{
    static const char script[] = "import sys, json, shlex\n"
                                 "for l in sys.stdin:\n"
                                 "    try: print(json.dumps(shlex.split(json.loads(l))))\n"
                                 "    except ValueError as e: print(e)\n";
    struct rng_fixed fixed;
    struct rng *rng = rng_fixed_init(&fixed, 5);
    own_done(buf) text;
    own_done(buf) answers;

    buf_init(&text, 16 << 20);
    buf_init(&answers, 16 << 20);
    for (unsigned i = 0; i < 5000; i++) {
        char word[16];
        size_t n = rng_below(rng, sizeof word);
        for (size_t j = 0; j < n; j++)
            word[j] = "ab  \t\n''\"\"\\\\#;$é"[rng_below(rng, 15)];
        json_write(&text, json_new_str(&kit_arena, arena_copy(&kit_arena, str_n(word, n))),
                   JW_ASCII);
        buf_add_char(&text, '\n');
    }
    python_script(script, buf_str(&text), &answers);
    struct str rest = buf_str(&text), line, wants = buf_str(&answers), want;
    while (str_cut(&rest, '\n', &line)) {
        struct json *words;
        CHECK(str_cut(&wants, '\n', &want));
        own(err) e = wire_split_words(&kit_arena, kit_tree(line)->s, &words);
        CHECK_STR(e ? str_of(err_text(e)) : written(words), want);
    }
    arena_done(&kit_arena);
}
