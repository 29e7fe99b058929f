// SPDX-License-Identifier: Apache-2.0
/* rpc_test.c — what is a message, what is none, and that one comes out as it went in. */
#include "wire/rpc.h"

#include "test/wire/kit.h"

static struct str passed(const char *quoted)
{
    struct str text = kit_double(quoted);
    struct rpc m;
    struct buf b;

    CHECK_OK(rpc_parse(&kit_arena, text, &m));
    buf_init(&b, 1u << 20);
    rpc_put(&b, &m);
    return kit_keep(&b);
}

TEST(rpc_messages_come_out_as_they_went_in)
{
    static const char *const cases[] = {
        "{'jsonrpc':'2.0','id':1,'method':'ping'}",
        "{'jsonrpc':'2.0','id':'a\\u00e9','method':'m','params':{'name':'x','n':[1.0,null]}}",
        "{'jsonrpc':'2.0','method':'notifications/initialized'}",
        "{'jsonrpc':'2.0','id':-3,'result':{}}",
        "{'jsonrpc':'2.0','id':1,'error':{'code':-32601,'message':'no'}}",
        "{'jsonrpc':'2.0','error':{'code':1,'message':'of nothing'}}",
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        CHECK_STR(passed(cases[i]), i == 1
                                        ? STR("{\"jsonrpc\":\"2.0\",\"id\":\"aé\",\"method\":\"m\","
                                              "\"params\":{\"name\":\"x\",\"n\":[1.0,null]}}")
                                        : kit_double(cases[i]));
    arena_done(&kit_arena);
}

TEST(rpc_kinds_are_told_apart)
{
    static const struct {
        const char *text;
        enum rpc_kind kind;
    } cases[] = {
        {"{'jsonrpc':'2.0','id':0,'method':'m','params':null}", RPC_REQUEST},
        {"{'jsonrpc':'2.0','id':null,'method':'m'}", RPC_NOTE},
        {"{'jsonrpc':'2.0','id':0,'result':{'x':1},'error':null}", RPC_RESULT},
        {"{'jsonrpc':'2.0','id':0,'error':{}}", RPC_ERROR},
    };
    struct rpc m;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_OK(rpc_parse(&kit_arena, kit_double(cases[i].text), &m));
        CHECK_INT(m.kind, cases[i].kind);
    }
    arena_done(&kit_arena);
}

TEST(rpc_refuses_what_is_no_message)
{
    static const char *const cases[][2] = {
        {"[]", "'jsonrpc'"},
        {"{'id':1,'method':'m'}", "'jsonrpc'"},
        {"{'jsonrpc':2.0,'id':1,'method':'m'}", "'jsonrpc'"},
        {"{'jsonrpc':'2.0','id':1.5,'method':'m'}", "'id'"},
        {"{'jsonrpc':'2.0','id':{},'method':'m'}", "'id'"},
        {"{'jsonrpc':'2.0','id':1,'method':'m','params':[1]}", "'params'"},
        {"{'jsonrpc':'2.0','id':1,'result':7}", "'result'"},
        {"{'jsonrpc':'2.0','result':{}}", "'id'"},
        {"{'jsonrpc':'2.0','id':1}", "one of"},
        {"{'jsonrpc':'2.0','id':1,'method':'m','result':{}}", "one of"},
        {"{'jsonrpc':'2.0'", "line 1"},
    };
    struct rpc m;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        CHECK_ERR(rpc_parse(&kit_arena, kit_double(cases[i][0]), &m), ERR_INVALID, cases[i][1]);
    CHECK_ERR(rpc_parse(&kit_arena, kit_double("{'jsonrpc':'2.0','id':1,'method':7}"), &m),
              ERR_UNPROCESSABLE, "'method'");
    arena_done(&kit_arena);
}
