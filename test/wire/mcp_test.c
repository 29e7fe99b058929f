// SPDX-License-Identifier: Apache-2.0
/* mcp_test.c — tools from the outside: a server of a few lines (mcp_server.py) behind the real
 * program, clients that speak raw HTTP, and the official client and server where they are
 * installed. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/aes.h"
#include "test/program.h"

#define PROGRAM "croft-guest"

/* The server has a directory of its own. */
static const char *source(struct aes *a, const char *relative)
{
    own_free char *path = realpath(test_source(relative), NULL);

    return aes_text(a, "%s", path ? path : "");
}

/* One server: {"name":NAME,"command":"python3","args":[script, mode],"env":{"K":"v"}} */
static const char *server(struct aes *a, const char *name, const char *mode)
{
    return aes_text(a, "{'name':'%s','command':'python3','args':['%s'%s%s%s],'env':{'K':'v'}}",
                    name, source(a, "test/wire/mcp_server.py"), *mode ? ",'" : "", mode,
                    *mode ? "'" : "");
}

static struct str update(struct aes *a, const char *quoted)
{
    struct aes_answer got = aes_ask_post(a, "/update_mcp_server", quoted);

    CHECK_INT(got.status, 200);
    struct json *o = aes_json(a, got.body);
    CHECK_STR(json_get_str(o, "detail", STR("")), "MCP server updated successfully");
    return json_get_str(o, "router_error_log", STR("(none)"));
}

static void open_with(struct aes *a, const char *mode)
{
    aes_open_plain(a, PROGRAM);
    CHECK_STR(update(a, aes_text(a, "[%s]", server(a, "a", mode))), "");
}

/* --- a client --- */

struct client {
    struct aes *aes;
    int fd;
    struct buf got;
    size_t at;
    const char *path;
};

/* The data of the next event; each comes whole in a chunk. */
static struct str next_event(struct client *c)
{
    char page[65536];

    for (;;) {
        struct str rest = str_from(buf_str(&c->got), c->at), line;
        ptrdiff_t from = str_find(rest, STR("\ndata: "));
        if (from >= 0) {
            rest = str_from(rest, (size_t)from + 7);
            if (str_find_char(rest, '\n') >= 0) {
                str_cut(&rest, '\n', &line);
                c->at = (size_t)(rest.p - c->got.p) - 1;
                return arena_copy(&c->aes->arena, line);
            }
        }
        ssize_t n = recv(c->fd, page, sizeof page, 0);
        if (n <= 0)
            FAIL("the session ended: " STR_FMT, STR_ARG(buf_str(&c->got)));
        buf_add_mem(&c->got, page, (size_t)n);
    }
}

static void client_open(struct client *c, struct aes *a, const char *path)
{
    *c = (struct client){.aes = a, .fd = aes_send(a, "GET", path, "", STR(""))};
    buf_init(&c->got, 64u << 20);
    struct str place = next_event(c);
    CHECK_HAS(buf_str(&c->got), "text/event-stream");
    CHECK_HAS(buf_str(&c->got), "event: endpoint\n");
    c->path = arena_cstr(&a->arena, place);
}

static void client_close(struct client *c)
{
    close(c->fd);
    buf_done(&c->got);
}

static void say(struct client *c, const char *quoted)
{
    struct aes_answer got = aes_ask_post(c->aes, c->path, quoted);

    CHECK_INT(got.status, 202);
    CHECK_STR(got.body, "Accepted");
}

/* The next event that is an answer to what is asked. */
static const char *ask(struct client *c, const char *quoted)
{
    say(c, quoted);
    return arena_cstr(&c->aes->arena, next_event(c));
}

static const char *call(struct client *c, const char *id, const char *name, const char *more)
{
    return ask(c,
               aes_text(c->aes,
                        "{'jsonrpc':'2.0','id':%s,'method':'tools/call','params':{'name':'%s'%s}}",
                        id, name, more));
}

#define LIST "{'jsonrpc':'2.0','id':'l','method':'tools/list'}"

TEST(mcp_client_finds_the_tools_and_calls_them)
{
    struct aes a;
    struct client c;

    open_with(&a, "noise");
    client_open(&c, &a, "/mcp/sse");
    CHECK(str_starts(str_of(c.path), STR("/mcp/messages/?session_id=")));
    CHECK_HAS(ask(&c, "{'jsonrpc':'2.0','id':0,'method':'initialize','params':{"
                      "'protocolVersion':'2024-11-05','capabilities':{},'clientInfo':{}}}"),
              "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"protocolVersion\":\"2024-11-05\","
              "\"capabilities\":{\"tools\":{\"listChanged\":true}");
    say(&c, "{'jsonrpc':'2.0','method':'notifications/initialized'}");
    const char *tools = ask(&c, LIST); /* comes in pages */
    CHECK_HAS(tools, "{\"jsonrpc\":\"2.0\",\"id\":\"l\",\"result\":{\"tools\":[{\"name\":\"echo\","
                     "\"description\":\"does it\",\"inputSchema\":{\"type\":\"object\"}},");
    CHECK_HAS(tools, "{\"name\":\"ask\",");
    CHECK_STR(call(&c, "7", "echo", ",'arguments':{'x':[1,null]}"),
              "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"content\":[{\"type\":\"text\",\"text\":"
              "\"{\\\"x\\\": [1, null]}\"}],\"structuredContent\":{\"x\":[1,null]}}}");
    CHECK_HAS(call(&c, "'w'", "where", ""), aes_text(&a, "\"%s v ", a.dir));
    CHECK_STR(call(&c, "8", "fail", ""), "{\"jsonrpc\":\"2.0\",\"id\":8,\"error\":{\"code\":-32000,"
                                         "\"message\":\"it went wrong\"}}");
    CHECK_HAS(call(&c, "9", "ask", ""), "Method not found"); /* what it asked us */
    CHECK_STR(call(&c, "10", "nothing", ""),
              "{\"jsonrpc\":\"2.0\",\"id\":10,\"result\":{\"content\":[{\"type\":\"text\",\"text\":"
              "\"Unknown tool: nothing\"}],\"isError\":true}}");
    CHECK_HAS(ask(&c, "{'jsonrpc':'2.0','id':11,'method':'tools/call','params':{}}"),
              "field 'name' is missing, it must be a string\"}],\"isError\":true");
    CHECK_HAS(ask(&c, "{'jsonrpc':'2.0','id':14,'method':'tools/call'}"), "\"isError\":true");
    CHECK_STR(ask(&c, "{'jsonrpc':'2.0','id':12,'method':'ping'}"),
              "{\"jsonrpc\":\"2.0\",\"id\":12,\"result\":{}}");
    CHECK_STR(ask(&c, "{'jsonrpc':'2.0','id':13,'method':'prompts/list'}"),
              "{\"jsonrpc\":\"2.0\",\"id\":13,\"error\":{\"code\":-32601,\"message\":\"Method not "
              "found\"}}");
    client_close(&c);
    aes_close(&a);
}

TEST(mcp_notes_reach_whom_they_concern)
{
    struct aes a;
    struct client c, d;

    open_with(&a, "");
    client_open(&c, &a, "/sse");
    CHECK(str_starts(str_of(c.path), STR("/messages/?session_id=")));
    client_open(&d, &a, "/mcp/sse");
    CHECK_STR(call(&c, "1", "steps", ",'_meta':{'progressToken':'mine','other':2}"),
              "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
              "\"progressToken\":\"mine\",\"progress\":1,\"total\":2}}");
    CHECK_HAS(next_event(&c), "stepped");
    CHECK_HAS(call(&c, "2", "log", ""), "\"method\":\"notifications/message\"");
    CHECK_HAS(next_event(&c), "logged");
    CHECK_HAS(next_event(&d), "\"data\":\"hello\""); /* and no progress before it */
    ask(&d, LIST);
    CHECK_HAS(call(&c, "3", "grow", ""), "taller");
    CHECK_STR(next_event(&d),
              "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}");
    CHECK_HAS(ask(&d, LIST), "\"grown\"");
    client_close(&c);
    client_close(&d);
    aes_close(&a);
}

static void wait_for_cancelled(struct aes *a)
{
    char word[8] = "";
    int fd =
        open(aes_path(a, "cancelled"), O_RDONLY | O_CLOEXEC); /* a FIFO: waits for the server */

    CHECK(fd >= 0 && read(fd, word, sizeof word - 1) == 3);
    CHECK_STR(word, "yes");
    CHECK_INT(read(fd, word, 1), 0); /* and it has closed it */
    close(fd);
}

TEST(mcp_call_is_cancelled_by_a_note_and_by_going_away)
{
    struct aes a;
    struct client c;

    open_with(&a, "");
    CHECK_INT(mkfifo(aes_path(&a, "cancelled"), 0600), 0);
    client_open(&c, &a, "/mcp/sse");
    say(&c, "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'slow'}}");
    say(&c, "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':'1'}}");
    CHECK_HAS(call(&c, "2", "echo", ""), "\"id\":2"); /* another id: nothing was cancelled */
    say(&c, "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':1}}");
    wait_for_cancelled(&a);
    say(&c, "{'jsonrpc':'2.0','id':3,'method':'tools/call','params':{'name':'slow'}}");
    client_close(&c);
    wait_for_cancelled(&a);
    aes_close(&a);
}

TEST(mcp_tools_of_several_servers_carry_their_names)
{
    struct aes a;
    struct client c;

    open_with(&a, "");
    client_open(&c, &a, "/mcp/sse");
    const char *before = call(&c, "1", "where", "");
    CHECK_STR(update(&a, aes_text(&a, "[%s,%s]", server(&a, "b-2", ""), server(&a, "a", ""))), "");
    const char *tools = ask(&c, LIST);
    CHECK_HAS(tools, "\"name\":\"a_echo\"");
    CHECK_HAS(tools, "\"name\":\"b-2_echo\"");
    CHECK_STR(call(&c, "1", "a_where", ""), before); /* the one that is the same runs on */
    CHECK_HAS(call(&c, "2", "b-2_echo", ""), "structuredContent");
    CHECK_HAS(call(&c, "3", "echo", ""), "Unknown tool: echo");
    client_close(&c);
    aes_close(&a);
}

TEST(mcp_server_that_died_is_told_and_started_again)
{
    struct aes a;
    struct client c;

    open_with(&a, "");
    client_open(&c, &a, "/mcp/sse");
    CHECK_HAS(call(&c, "1", "die", ""),
              "\"text\":\"server 'a': it ended: exit status 3: out of luck\"}],\"isError\":true");
    CHECK_STR(
        aes_ask_get(&a, "/croft/v1/mcp").body,
        "[{\"name\":\"a\",\"status\":\"failed\",\"error\":\"server 'a': it ended: exit status "
        "3: out of luck\"}]");
    CHECK_HAS(call(&c, "2", "echo", ",'arguments':{'back':1}"), "{\"back\":1}");
    CHECK_STR(aes_ask_get(&a, "/croft/v1/mcp").body,
              "[{\"name\":\"a\",\"status\":\"ready\",\"error\":null}]");
    CHECK_HAS(call(&c, "3", "huge", ""), "it sent a message of over 16 MB");
    client_close(&c);
    aes_close(&a);
}

TEST(mcp_servers_that_do_not_come_up_are_told_with_their_last_words)
{
    struct aes a;

    aes_open_plain(&a, PROGRAM);
    CHECK_STR(update(&a, aes_text(&a, "[%s,{'name':'x','command':'no-such'},%s,%s]",
                                  server(&a, "d", "dies"), server(&a, "r", "refuse"),
                                  server(&a, "ok", ""))),
              "server 'd': it ended: exit status 4: no such model\n"
              "server 'x': there is no 'no-such' in PATH\n"
              "server 'r': it refused to start: not for you\n");
    CHECK_HAS(aes_ask_get(&a, "/croft/v1/mcp").body,
              "{\"name\":\"ok\",\"status\":\"ready\",\"error\":null}");
    aes_close(&a);
}

TEST(mcp_server_that_is_removed_ends_its_calls_and_starts)
{
    struct aes a;
    struct client c;

    aes_open_plain(&a, PROGRAM);
    /* never answers: the update waits, the next one ends that */
    own_done(buf) body;
    buf_init(&body, 1u << 16);
    buf_add(&body, aes_quoted(&a, aes_text(&a, "[%s]", server(&a, "m", "mute"))));
    int waiting = aes_send(&a, "POST", "/update_mcp_server", "", buf_str(&body));
    while (!str_starts(aes_ask_get(&a, "/croft/v1/mcp").body, STR("[{")))
        ; /* the request has been read when this sees its server */
    client_open(&c, &a, "/mcp/sse");
    say(&c, "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'any'}}");
    say(&c, LIST);
    CHECK_STR(update(&a, "[]"), "");
    CHECK_HAS(next_event(&c), "the server of this tool was removed");
    CHECK_HAS(next_event(&c), "{\"tools\":[]}");
    CHECK_HAS(aes_take(&a, waiting).body, "\"router_error_log\":\"\"");
    CHECK_INT(aes_ask_get(&a, "/mcp/sse").status, 404);
    client_close(&c);
    aes_close(&a);
}

TEST(mcp_refuses_what_it_cannot_read)
{
    struct aes a;
    own_done(buf) many;
    struct client c;

    aes_open_plain(&a, PROGRAM);
    struct aes_answer got = aes_ask_get(&a, "/mcp/sse"); /* nothing is there yet */
    CHECK_INT(got.status, 404);
    CHECK_STR(got.body, "{\"detail\":\"Not Found\"}");
    buf_init(&many, 1u << 16);
    buf_add_cstr(&many, "[");
    for (int i = 0; i < 33; i++)
        buf_addf(&many, "%s{'name':'s%d','command':'c'}", i ? "," : "", i);
    buf_add_cstr(&many, "]");
    const struct {
        int status;
        const char *body, *part;
    } bodies[] = {
        {400, "{}", "{\"detail\":\"Request must be a list of MCP tools to sync\"}"},
        {422, "[{'name':'a b','command':'c'}]", "server 0: field 'name'"},
        {422, "[{'name':'a','command':'c'},{'name':'a','command':'d'}]", "is taken by server 0"},
        {422, buf_cstr(&many), "33 servers: more than 32"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        got = aes_ask_post(&a, "/update_mcp_server", bodies[i].body);
        CHECK_INT(got.status, bodies[i].status);
        CHECK_HAS(got.body, bodies[i].part);
    }
    CHECK_STR(aes_ask_get(&a, "/croft/v1/mcp").body, "[]");
    CHECK_STR(update(&a, aes_text(&a, "[%s]", server(&a, "a", ""))), "");
    client_open(&c, &a, "/mcp/sse");
    const struct {
        int status;
        const char *path, *body, *said;
    } posts[] = {
        {400, "/mcp/messages/", "{}", "session_id is required"},
        {400, "/mcp/messages/?session_id=xyz", "{}", "Invalid session ID"},
        {404, "/mcp/messages/?session_id=00000000000000000000000000000000", "{}",
         "Could not find session"},
        {400, c.path, "{'jsonrpc':'1.0'}", "Could not parse message"},
        {400, c.path, "nonsense", "Could not parse message"},
    };
    for (size_t i = 0; i < ARRAY_LEN(posts); i++) {
        got = aes_ask_post(&a, posts[i].path, posts[i].body);
        CHECK_INT(got.status, posts[i].status);
        CHECK_STR(got.body, posts[i].said);
    }
    client_close(&c);
    aes_close(&a);
}

TEST(mcp_events_asked_for_by_head_have_only_a_head)
{
    struct aes a;

    open_with(&a, "");
    struct aes_answer got = aes_ask(&a, "HEAD", "/mcp/sse", "Connection: close\r\n", STR(""));
    CHECK_INT(got.status, 200);
    CHECK_HAS(got.head, "content-type: text/event-stream");
    CHECK_STR(got.body, "");
    aes_close(&a);
}

TEST(mcp_sessions_have_a_limit_and_leave_room_when_they_go)
{
    struct aes a;
    struct client c[64], extra;

    open_with(&a, "");
    for (size_t i = 0; i < ARRAY_LEN(c); i++)
        client_open(&c[i], &a, "/mcp/sse");
    struct aes_answer got = aes_ask_get(&a, "/mcp/sse");
    CHECK_INT(got.status, 429);
    CHECK_HAS(got.body, "64 sessions are open already");
    CHECK_INT(mkfifo(aes_path(&a, "cancelled"), 0600), 0);
    say(&c[0], "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'slow'}}");
    client_close(&c[0]);
    wait_for_cancelled(&a); /* so it is gone */
    client_open(&extra, &a, "/mcp/sse");
    client_close(&extra);
    for (size_t i = 1; i < ARRAY_LEN(c); i++)
        client_close(&c[i]);
    aes_close(&a);
}

TEST(mcp_is_behind_the_key)
{
    struct aes a;

    aes_open(&a, &(struct aes_config){.program = PROGRAM, .key = "k"});
    CHECK_INT(aes_ask_get(&a, "/mcp/sse").status, 403);
    CHECK_INT(aes_ask(&a, "POST", "/update_mcp_server", "", STR("[]")).status, 403);
    CHECK_INT(
        aes_ask(&a, "POST", "/update_mcp_server", "X-Session-API-Key: k\r\n", STR("[]")).status,
        200);
    aes_close(&a);
}

/* --- the action --- */

static struct str observed(struct aes *a, const char *name)
{
    struct json *o =
        aes_act(a, "call_tool_mcp", aes_text(a, "'name':'%s','arguments':{'k':'\\u00e9'}", name));

    CHECK_STR(json_get_str(o, "observation", STR("")), "mcp");
    CHECK_STR(aes_print(a, json_get(o, STR("extras"))),
              aes_text(a, "{\"name\":\"%s\",\"arguments\":{\"k\":\"é\"}}", name));
    return json_get_str(o, "content", STR(""));
}

TEST(mcp_action_prints_the_result_as_the_original_client_does)
{
    struct aes a;

    open_with(&a, "");
    CHECK_STR(observed(&a, "echo"),
              "{\"meta\": null, \"content\": [{\"type\": \"text\", \"text\": \"{\\\"k\\\": "
              "\\\"\\\\u00e9\\\"}\", \"annotations\": null, \"meta\": null}], "
              "\"structuredContent\": {\"k\": \"\\u00e9\"}, \"isError\": false}");
    CHECK_STR(observed(&a, "odd"),
              "{\"meta\": {\"m\": 1}, \"content\": [{\"type\": \"image\", \"data\": \"AA==\", "
              "\"mimeType\": \"image/png\", \"annotations\": null, \"meta\": null}, {\"type\": "
              "\"x\", \"k\": 1}], \"structuredContent\": null, \"isError\": true}");
    CHECK_STR(observed(&a, "fail"),
              "{\"isError\": true, \"error\": \"it went wrong\", \"content\": []}");
    CHECK_STR(observed(&a, "nothing"),
              "{\"isError\": true, \"error\": \"Unknown tool: nothing\", \"content\": []}");
    CHECK_STR(observed(&a, "die"), "{\"isError\": true, \"error\": \"server 'a': it ended: exit "
                                   "status 3: out of luck\", \"content\": []}");
    struct aes_answer got =
        aes_ask_post(&a, "/execute_action",
                     "{'action':{'action':'call_tool_mcp','timeout':0.25,'args':{'name':'slow'}}}");
    CHECK_HAS(got.body, "Tool \\\\\\\"slow\\\\\\\" timed out after 0.25 seconds");
    aes_close(&a);
}

/* --- the official client and server --- */

TEST_LIMIT(mcp_satisfies_the_official_client, 120)
{
    struct aes a;
    own_done(buf) said;
    char node[300] = "";

    buf_init(&said, 1u << 20);
    if (access(test_source("build/npm/node_modules/@modelcontextprotocol/sdk"), R_OK) != 0)
        SKIP("npm package @modelcontextprotocol/sdk is not there (tools/deps test)");
    if (program_run(ARGS("sh", "-c", "command -v node"), &said) != 0)
        SKIP("node is not there");
    snprintf(node, sizeof node, STR_FMT, STR_ARG(str_trim(buf_str(&said))));
    buf_reset(&said);
    aes_open(&a, &(struct aes_config){.program = PROGRAM, .key = "k", .tcp = true});
    const char *modules = source(&a, "build/npm/node_modules/@modelcontextprotocol/sdk");
    const char *client = source(&a, "test/wire/mcp_client.mjs");
    const char *body =
        aes_text(&a, "[%s,{'name':'node','command':'%s','args':['%s','%s','serve']}]",
                 server(&a, "few", ""), node, client, modules);
    struct aes_answer got =
        aes_ask(&a, "POST", "/update_mcp_server", "X-Session-API-Key: k\r\n", aes_quoted(&a, body));
    CHECK_STR(got.body,
              "{\"detail\":\"MCP server updated successfully\",\"router_error_log\":\"\"}");
    int code = program_run(ARGS(node, client, modules, a.wire.url, "k"), &said);
    if (code)
        FAIL("the client ended with %d: " STR_FMT, code, STR_ARG(buf_str(&said)));
    CHECK_STR(buf_str(&said), "all well\n");
    aes_close(&a);
}
