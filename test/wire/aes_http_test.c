// SPDX-License-Identifier: Apache-2.0
/* aes_http_test.c — endpoints, statuses, keys and error bodies (section 1) of the real programs. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "test/aes.h"
#include "test/aes_run.h"
#include "test/program.h"

static void check(struct aes_answer r, int status, const char *body)
{
    if (r.status != status || !str_eq(r.body, str_of(body)))
        FAIL("want %d %s\n  got  %d " STR_FMT, status, body, r.status, STR_ARG(r.body));
    CHECK_HAS(r.head, "content-type: application/json");
}

AES_TEST(aes_http_answers_in_compact_json)
{
    struct aes a;

    aes_open(&a, &(struct aes_config){.program = program, .tcp = true});
    check(aes_ask_get(&a, "/alive"), 200, "{\"status\":\"ok\"}");
    check(aes_ask_get(&a, "/nowhere"), 404, "{\"detail\":\"Not Found\"}");
    check(aes_ask_get(&a, "/execute_action"), 405, "{\"detail\":\"Method Not Allowed\"}");
    check(aes_ask_post(&a, "/alive", "{}"), 405, "{\"detail\":\"Method Not Allowed\"}");
    check(aes_ask_get(&a, "/vscode/connection_token"), 200, "{\"token\":null}");
    struct aes_answer r = aes_try_act(&a, "run", "'command':'echo é日😀'");
    CHECK_HAS(r.body, "\"content\":\"é日😀\",\"extras\":{"); /* raw, not \u */
    aes_close(&a);
}

/* Keys in their order, with a type for each: n number, i integer, o object. */
static void check_keys(const struct json *o, const char *const *keys)
{
    const struct json *v = o->first;

    for (; *keys; keys++, v = v ? v->next : NULL) {
        char kind = (*keys)[0];
        if (!v || !str_eq(v->key, str_of(*keys + 1)))
            FAIL("want %s, got " STR_FMT, *keys + 1, STR_ARG(v ? v->key : STR("nothing")));
        CHECK(kind == 'o'   ? v->type == JSON_OBJECT
              : kind == 'i' ? v->type == JSON_INT && v->i >= 0
                            : (v->type == JSON_DOUBLE && v->d >= 0) || v->type == JSON_INT);
    }
    CHECK(v == NULL);
}

AES_TEST(aes_http_server_info_has_its_keys_in_order)
{
    struct aes a;

    aes_open_plain(&a, program);
    const struct json *info = aes_json(&a, aes_ask_get(&a, "/server_info").body);
    const struct json *r = json_get(info, STR("resources"));
    check_keys(info, ARGS("nuptime", "nidle_time", "oresources"));
    check_keys(r, ARGS("ncpu_percent", "omemory", "odisk", "oio"));
    check_keys(json_get(r, STR("memory")), ARGS("irss", "ivms", "npercent"));
    check_keys(json_get(r, STR("disk")), ARGS("itotal", "iused", "ifree", "npercent"));
    check_keys(json_get(r, STR("io")), ARGS("iread_bytes", "iwrite_bytes"));
    CHECK(json_get_double(info, "idle_time", -1) == json_get_double(info, "uptime", -2));
    aes_run_plain(&a, "true");
    info = aes_json(&a, aes_ask_get(&a, "/server_info").body);
    double idle = json_get_double(info, "idle_time", -1);
    CHECK(idle >= 0 && idle < json_get_double(info, "uptime", -1)); /* since the last action */
    aes_ask_get(&a, "/alive");
    info = aes_json(&a, aes_ask_get(&a, "/server_info").body);
    CHECK(json_get_double(info, "idle_time", -1) > idle); /* other requests do not count */
    aes_close(&a);
}

AES_TEST(aes_http_key_guards_all_but_alive_and_server_info)
{
    static const char *const guarded[] = {"/execute_action", "/list_files",
                                          "/nowhere",        "/docs",
                                          "/openapi.json",   "/mcp/sse",
                                          "/upload_file",    "/download_files",
                                          "/alive/",         "/vscode/connection_token"};
    struct aes a;

    aes_open(&a, &(struct aes_config){.program = program, .key = "s3cret"});
    for (size_t i = 0; i < ARRAY_LEN(guarded); i++) {
        check(aes_ask_get(&a, guarded[i]), 403, "{\"detail\":\"Invalid API Key\"}");
        check(aes_ask(&a, "GET", guarded[i], "X-Session-API-Key: s3cre\r\n", STR("")), 403,
              "{\"detail\":\"Invalid API Key\"}");
    }
    check(aes_ask_get(&a, "/alive"), 200, "{\"status\":\"ok\"}");
    CHECK_INT(aes_ask_get(&a, "/server_info").status, 200);
    static const char key[] = "X-Session-API-Key: s3cret\r\n";
    check(aes_ask(&a, "GET", "/nowhere", key, STR("")), 404, "{\"detail\":\"Not Found\"}");
    struct aes_answer r =
        aes_ask(&a, "POST", "/execute_action", key,
                aes_quoted(&a, "{'action':{'action':'run','args':{'command':"
                               "'echo in; env | grep -c s3cret','blocking':true}}}"));
    CHECK_INT(r.status, 200);
    CHECK_HAS(r.body, "\"content\":\"in\\n0\""); /* and commands do not see it */
    aes_close(&a);
}

static const struct {
    const char *body;
    const char *says;
} schema[] = {
    {"{}", "[{'type': 'missing', 'loc': ('body', 'action'), 'msg': 'Field required', 'input': "
           "{}}]"},
    {"{\"x\":[1,\"a\"]}", "[{'type': 'missing', 'loc': ('body', 'action'), 'msg': 'Field "
                          "required', 'input': {'x': [1, 'a']}}]"},
    {"{\"action\":3}", "[{'type': 'dict_type', 'loc': ('body', 'action'), 'msg': 'Input should be "
                       "a valid dictionary', 'input': 3}]"},
};

AES_TEST(aes_http_body_that_fails_the_schema_is_422_with_python_in_it)
{
    struct aes a;

    aes_open_plain(&a, program);
    for (size_t i = 0; i < ARRAY_LEN(schema); i++)
        check(aes_ask(&a, "POST", "/execute_action", "Content-Type: application/json\r\n",
                      str_of(schema[i].body)),
              422,
              aes_text(&a, "{\"detail\":\"Invalid request parameters\",\"errors\":\"%s\"}",
                       schema[i].says));
    struct aes_answer r = aes_ask(&a, "POST", "/execute_action", "", STR("{"));
    CHECK_INT(r.status, 422);
    CHECK_HAS(r.body, "'type': 'json_invalid'");
    aes_close(&a);
}

AES_TEST(aes_http_connection_serves_one_action_after_the_other)
{
    static const char body[] = "{\"action\":{\"action\":\"run\",\"args\":{\"command\":\"echo "
                               "$((n+=1))\",\"blocking\":true}}}";
    struct aes a;

    aes_open_plain(&a, program);
    own_fd fd = wire_connect(&a.wire);
    for (int i = 1; i <= 3; i++) {
        own_done(buf) got;
        buf_init(&got, 1u << 20);
        wire_send(fd, str_of(aes_text(&a,
                                      "POST /execute_action HTTP/1.1\r\nHost: x\r\n"
                                      "Content-Length: %zu\r\n\r\n%s",
                                      sizeof body - 1, body)));
        wire_read_answer(fd, &got);
        CHECK_HAS(buf_str(&got), aes_text(&a, "\"content\":\"%d\"", i));
    }
    aes_close(&a);
}

AES_TEST(aes_http_file_viewer_is_where_the_file_says)
{
    struct aes a;

    aes_open_plain(&a, program);
    aes_put(&a, "x.png", STR("\x89PNG"));
    own_done(buf) url;
    buf_init(&url, 4096);
    CHECK_OK(fd_read_file(aes_text(&a, "%s/viewer-url", test_dir()), &url));
    CHECK(str_starts(buf_str(&url), STR("http://localhost:")));
    wire_at(&a.wire, aes_text(&a, STR_FMT, STR_ARG(buf_str(&url))));
    check(aes_ask_get(&a, "/"), 200, "{\"status\":\"File viewer server is running\"}");
    static const struct {
        const char *path, *body;
        int status;
    } rows[] = {
        {"x.txt", "<h1>Error: Path must be absolute</h1><p>x.txt</p>", 400},
        {"/no/x.png", "<h1>Error: File not found</h1><p>/no/x.png</p>", 404},
        {"/tmp", "<h1>Error: Path is a directory</h1><p>/tmp</p>", 400},
        {"/etc/passwd",
         "<h1>Error viewing file</h1><p>/etc/passwd</p><p>Unsupported file extension: . Supported "
         "extensions are: .pdf, .png, .jpg, .jpeg, .gif</p>",
         500},
        {"/%3Cb%3E.png", "<h1>Error: File not found</h1><p>/&lt;b&gt;.png</p>", 404}, /* DEF-22 */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct aes_answer r = aes_ask_get(&a, aes_text(&a, "/view?path=%s", rows[i].path));
        CHECK_INT(r.status, rows[i].status);
        CHECK_STR(r.body, rows[i].body);
        CHECK_HAS(r.head, "content-type: text/html");
    }
    struct aes_answer r = aes_ask_get(&a, aes_text(&a, "/view?path=%s", aes_path(&a, "x.png")));
    CHECK_INT(r.status, 200);
    CHECK_HAS(r.body, "<title>File Viewer - x.png</title>");
    CHECK_HAS(r.body, "data:image/png;base64,iVBORw==");
    aes_close(&a);
}

AES_TEST(aes_http_start_says_what_is_wrong_and_exits)
{
    static const struct {
        const char *args[6], *says;
        int code;
    } rows[] = {
        {{"action-server"}, "name the port or address to listen on", 2},
        {{"action-server", "70000"}, "port 70000 is over 65535", 2},
        {{"action-server", "0.0.0.0:0"}, "set SESSION_API_KEY", 2},
        {{"action-server", "127.0.0.1:0", "--working-dir", "relative"}, "absolute", 2},
        {{"action-server", "127.0.0.1:0", "--plugins", "nope"}, "Plugin nope not found", 2},
        {{"action-server", "127.0.0.1:0", "--user-id", "x"}, "--user-id", 2},
        {{"action-server", "127.0.0.1:0", "--fly"}, "--fly", 2},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *argv[10] = {test_program(program)};
        own_done(buf) said;
        buf_init(&said, 1u << 20);
        for (size_t j = 0; j < ARRAY_LEN(rows[i].args) && rows[i].args[j]; j++)
            argv[j + 1] = rows[i].args[j];
        CHECK_INT(program_run(argv, &said), rows[i].code);
        CHECK_HAS(buf_str(&said), rows[i].says);
    }
}
