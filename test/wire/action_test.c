// SPDX-License-Identifier: Apache-2.0
/* action_test.c — the action server from the outside: croft-guest, raw HTTP, recorded shapes. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "test/program.h"
#include "test/test.h"
#include "test/wire.h"

struct guest {
    struct wire wire;
    char dir[300];
    struct arena arena;
};

static void server_open(struct guest *g, const char *program, const char *key)
{
    char address[300], variable[100];
    int ready[2];
    char byte;

    arena_init(&g->arena, 64u << 20);
    snprintf(g->dir, sizeof g->dir, "%s/ws", test_dir());
    CHECK_INT(mkdir(g->dir, 0755), 0);
    snprintf(address, sizeof address, "unix:%s/sock", test_dir());
    snprintf(variable, sizeof variable, "SESSION_API_KEY=%s", key);
    CHECK(pipe2(ready, O_CLOEXEC) == 0);
    wire_at(&g->wire, address);
    g->wire.pid = program_start(
        &(struct program){.argv = ARGS(test_program(program), "action-server", address,
                                       "--working-dir", g->dir, "--ready-fd", "4"),
                          .env = ARGS(variable, "NO_CHANGE_TIMEOUT_SECONDS=600",
                                      "PATH=/usr/bin:/bin", "HOME=/tmp", "LOG_LEVEL=warn"),
                          .fds = (int[]){-1, -1, -1, -1, ready[1]},
                          .fd_count = 5});
    close(ready[1]);
    CHECK_INT(read(ready[0], &byte, 1), 1);
    close(ready[0]);
}

static void guest_open(struct guest *g, const char *key)
{
    server_open(g, "croft-guest", key);
}

static void guest_close(struct guest *g)
{
    CHECK_INT(wire_stop(&g->wire), 0);
    arena_done(&g->arena);
}

/* The body of the answer; its status must be the one expected. */
static struct str post(struct guest *g, const char *path, const char *headers, struct str body,
                       int want_status)
{
    own_done(buf) request;
    own_done(buf) got;
    char status[32];

    buf_init(&request, 64u << 20);
    buf_init(&got, 64u << 20);
    buf_addf(&request,
             "POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%sContent-Length: %zu\r\n\r\n",
             path, headers, body.len);
    buf_add(&request, body);
    wire_exchange(&g->wire, buf_str(&request), &got);
    snprintf(status, sizeof status, "HTTP/1.1 %d ", want_status);
    ptrdiff_t end = str_find(buf_str(&got), STR("\r\n\r\n"));
    if (!str_starts(buf_str(&got), str_of(status)) || end < 0)
        FAIL("want %d, got " STR_FMT, want_status, STR_ARG(buf_str(&got)));
    return arena_copy(&g->arena, str_from(buf_str(&got), (size_t)end + 4));
}

static struct str execute(struct guest *g, const char *body)
{
    return post(g, "/execute_action", "", str_of(body), 200);
}

#define RUN(args) "{\"action\":{\"action\":\"run\",\"args\":{" args "}}}"

/* content of a run, and its exit code */
static struct str run(struct guest *g, const char *body, int64_t *ret_code)
{
    struct str text = execute(g, body);
    struct json *o;

    CHECK_OK(json_parse(&g->arena, text, NULL, &o));
    CHECK_STR(json_get_str(o, "observation", STR("")), "run");
    const struct json *meta = json_get(json_get(o, STR("extras")), STR("metadata"));
    *ret_code = json_get_int(meta, "exit_code", -99);
    return json_get_str(o, "content", STR("(none)"));
}

TEST(action_run_has_the_recorded_shape)
{
    struct guest g;
    char host[256] = "";
    own_done(buf) want;

    guest_open(&g, "");
    gethostname(host, sizeof host - 1);
    char *dot = strchr(host, '.');
    if (dot)
        *dot = '\0';
    struct str got = execute(
        &g,
        "{\"action\":{\"id\":5,\"source\":\"agent\",\"message\":\"Running command: echo hi\","
        "\"action\":\"run\",\"args\":{\"command\":\"echo hi\",\"is_input\":false,\"thought\":\"\","
        "\"blocking\":false,\"is_static\":false,\"cwd\":null,\"hidden\":false,"
        "\"confirmation_state\":\"confirmed\",\"security_risk\":-1},\"timeout\":120.0}}");
    buf_init(&want, 1u << 16);
    buf_addf(
        &want,
        "{\"message\":\"Command `echo hi` executed with exit code 0.\",\"observation\":\"run\","
        "\"content\":\"hi\",\"extras\":{\"command\":\"echo hi\",\"metadata\":{\"exit_code\":0,"
        "\"pid\":-1,\"username\":\"root\",\"hostname\":\"%s\",\"working_dir\":\"%s\","
        "\"py_interpreter_path\":",
        host, g.dir);
    if (geteuid() == 0)
        CHECK(str_starts(got, buf_str(&want)));
    CHECK(str_ends(got, STR("\"prefix\":\"\",\"suffix\":\"\\n[The command completed with exit code "
                            "0.]\"},\"hidden\":false},\"success\":true}")));
    guest_close(&g);
}

TEST(action_run_keeps_one_shell_and_its_directory)
{
    struct guest g;
    int64_t code;

    guest_open(&g, "");
    run(&g, RUN("\"command\":\"mkdir sub && cd sub && export X=42\""), &code);
    CHECK_INT(code, 0);
    CHECK_STR(run(&g, RUN("\"command\":\"echo $X ${PWD##*/}; false\""), &code), "42 sub");
    CHECK_INT(code, 1);
    execute(&g,
            "{\"action\":{\"action\":\"write\",\"args\":{\"path\":\"f\",\"content\":\"here\"}}}");
    CHECK_STR(run(&g, RUN("\"command\":\"cat f\""), &code), "here"); /* relative to the shell */
    CHECK_STR(run(&g,
                  RUN("\"command\":\"echo \\\"[$X]\\\"; pwd\",\"is_static\":true,\"cwd\":\"/\""),
                  &code),
              "[]\n/");
    guest_close(&g);
}

TEST(action_run_waits_its_turn_while_files_do_not)
{
    struct guest g;

    guest_open(&g, "");
    int first = wire_connect(&g.wire), second = wire_connect(&g.wire);
    static const char slow[] =
        RUN("\"command\":\"read -t 20 x < gate; echo first\",\"blocking\":true");
    static const char quick[] = RUN("\"command\":\"echo second\"");
    own_done(buf) a;
    own_done(buf) b;
    int64_t code;
    char head[200];

    buf_init(&a, 1u << 20);
    buf_init(&b, 1u << 20);
    run(&g, RUN("\"command\":\"mkfifo gate\""), &code);
    snprintf(head, sizeof head,
             "POST /execute_action HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n",
             sizeof slow - 1);
    wire_send(first, str_of(head));
    wire_send(first, str_of(slow));
    struct str listed =
        post(&g, "/execute_action", "",
             STR("{\"action\":{\"action\":\"read\",\"args\":{\"path\":\"/etc/hostname\"}}}"), 200);
    CHECK_HAS(listed, "\"observation\":\"read\""); /* beside the busy shell */
    snprintf(head, sizeof head,
             "POST /execute_action HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n",
             sizeof quick - 1);
    wire_send(second, str_of(head));
    wire_send(second, str_of(quick));
    char gate[400];
    snprintf(gate, sizeof gate, "%s/gate", g.dir);
    int fd = open(gate, O_WRONLY | O_CLOEXEC); /* waits for the reader: the slow one runs */
    CHECK(fd >= 0 && write(fd, "\n", 1) == 1);
    close(fd);
    wire_read_answer(first, &a);
    wire_read_answer(second, &b);
    CHECK_HAS(buf_str(&a), "\"content\":\"first\"");
    CHECK_HAS(buf_str(&b), "\"content\":\"second\"");
    close(first);
    close(second);
    guest_close(&g);
}

TEST(action_a_cut_request_that_is_sent_again_runs_once)
{
    struct guest g;
    static const char body[] = RUN(
        "\"command\":\"echo x >> count; read -t 20 y < gate; wc -l < count\",\"blocking\":true");
    char head[200], gate[400];
    int64_t code;
    own_done(buf) got;

    buf_init(&got, 1u << 20);
    guest_open(&g, "");
    run(&g, RUN("\"command\":\"mkfifo gate\""), &code);
    snprintf(head, sizeof head,
             "POST /execute_action HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n",
             sizeof body - 1);
    int first = wire_connect(&g.wire);
    wire_send(first, str_of(head));
    wire_send(first, str_of(body));
    snprintf(gate, sizeof gate, "%s/gate", g.dir);
    int fd = open(gate, O_WRONLY | O_CLOEXEC); /* it runs by now */
    close(first);
    int again = wire_connect(&g.wire);
    wire_send(again, str_of(head));
    wire_send(again, str_of(body));
    CHECK_HAS(post(&g, "/execute_action", "",
                   STR("{\"action\":{\"action\":\"read\",\"args\":{\"path\":\"/etc/hostname\"}}}"),
                   200),
              "observation"); /* and the second request is in */
    CHECK(fd >= 0 && write(fd, "\n", 1) == 1);
    close(fd);
    wire_read_answer(again, &got);
    CHECK_HAS(buf_str(&got), "\"content\":\"1\"");
    close(again);
    guest_close(&g);
}

TEST(action_write_read_and_edit_have_the_recorded_shapes)
{
    struct guest g;
    char body[600], want[900];

    guest_open(&g, "");
    snprintf(body, sizeof body,
             "{\"action\":{\"action\":\"write\",\"args\":{\"path\":\"%s/"
             "a.txt\",\"content\":\"one\\ntwo\\nthree\"}}}",
             g.dir);
    snprintf(want, sizeof want,
             "{\"message\":\"I wrote to the file "
             "%s/a.txt.\",\"observation\":\"write\",\"content\":\"\",\"extras\":{\"path\":\"%s/"
             "a.txt\"}}",
             g.dir, g.dir);
    CHECK_STR(execute(&g, body), want);
    snprintf(
        body, sizeof body,
        "{\"action\":{\"action\":\"read\",\"args\":{\"path\":\"%s/a.txt\",\"start\":1,\"end\":2}}}",
        g.dir);
    snprintf(
        want, sizeof want,
        "{\"message\":\"I read the file "
        "%s/a.txt.\",\"observation\":\"read\",\"content\":\"two\\n\",\"extras\":{\"path\":\"%s/"
        "a.txt\",\"impl_source\":\"default\"}}",
        g.dir, g.dir);
    CHECK_STR(execute(&g, body), want);
    snprintf(body, sizeof body,
             "{\"action\":{\"action\":\"edit\",\"args\":{\"path\":\"%s/"
             "a.txt\",\"command\":\"str_replace\",\"old_str\":\"two\",\"new_str\":\"TWO\"}}}",
             g.dir);
    snprintf(want, sizeof want, "--- %s/a.txt\\n+++ %s/a.txt\\n@@ -2 +2 @@\\n-two\\n+TWO", g.dir,
             g.dir);
    struct str edited = execute(&g, body);
    CHECK_HAS(edited, want);
    CHECK_HAS(edited, "\"prev_exist\":false,\"old_content\":\"two\",\"new_content\":\"TWO\",\"impl_"
                      "source\":\"oh_aci\"");
    CHECK_HAS(execute(&g, "{\"action\":{\"action\":\"read\",\"args\":{\"path\":\"/nowhere/x\"}}}"),
              "{\"message\":\"File not found: /nowhere/x. Your current working directory is ");
    guest_close(&g);
}

TEST(action_bad_requests_get_their_status_and_words)
{
    static const struct {
        const char *body;
        int status;
        const char *part;
    } rows[] = {
        {"{}", 422,
         "{\"detail\":\"Invalid request parameters\",\"errors\":\"[{'type': 'missing', 'loc': "
         "('body', 'action'), 'msg': 'Field required', 'input': {}}]\"}"},
        {"{\"action\":3}", 422, "'loc': ('body', 'action')"},
        {"{", 422, "Invalid request parameters"},
        {"{\"action\":{\"action\":\"fly\",\"args\":{}}}", 400, "fly"},
        {"{\"action\":{\"action\":\"run\",\"args\":{}}}", 400, "command"},
        {"{\"action\":{\"action\":\"run\",\"args\":{\"command\":3}}}", 400, "command"},
        {"{\"action\":{\"action\":\"think\",\"args\":{}}}", 400, "think"},
        {"{\"action\":{\"observation\":\"run\",\"content\":\"\"}}", 400, "\"detail\""},
    };
    struct guest g;

    guest_open(&g, "");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK_HAS(post(&g, "/execute_action", "", str_of(rows[i].body), rows[i].status),
                  rows[i].part);
    CHECK_HAS(
        execute(&g, RUN("\"command\":\"echo a\\necho b\"")),
        "ERROR: Cannot execute multiple commands at once.\\nPlease run each command separately OR "
        "chain them into a single command via && or ;\\nProvided commands:\\n(1) echo a\\n(2) echo "
        "b");
    guest_close(&g);
}

TEST(action_the_key_guards_all_but_alive_and_info)
{
    struct guest g;
    own_done(buf) got;

    buf_init(&got, 1u << 20);
    guest_open(&g, "s3cret");
    static const char body[] = RUN("\"command\":\"echo in\"");
    CHECK_STR(post(&g, "/execute_action", "", str_of(body), 403),
              "{\"detail\":\"Invalid API Key\"}");
    CHECK_STR(post(&g, "/nowhere", "", str_of(body), 403), "{\"detail\":\"Invalid API Key\"}");
    CHECK_HAS(post(&g, "/execute_action", "X-Session-API-Key: s3cret\r\n", str_of(body), 200),
              "\"in\"");
    wire_exchange(&g.wire, STR("GET /server_info HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
                  &got);
    CHECK_HAS(buf_str(&got), "{\"uptime\":");
    CHECK_HAS(buf_str(&got), "\"disk\":{\"total\":");
    guest_close(&g);
}

TEST(action_server_of_the_host_runs_cells_and_moves_files)
{
    struct guest g;
    own_done(buf) got;
    char request[700];
    static const char form[] = "--b\r\nContent-Disposition: form-data; name=\"file\"; "
                               "filename=\"up.txt\"\r\n\r\nbytes\r\n--b--\r\n";

    buf_init(&got, 1u << 20);
    server_open(&g, "croft", "");
    CHECK_HAS(
        execute(&g, "{\"action\":{\"action\":\"run_ipython\",\"args\":{\"code\":\"print(6*7)\"}}}"),
        "42\\n[Jupyter current working directory: ");
    snprintf(request, sizeof request, "/upload_file?destination=%s", g.dir);
    CHECK_HAS(
        post(&g, request, "Content-Type: multipart/form-data; boundary=b\r\n", str_of(form), 200),
        "up.txt");
    CHECK_STR(post(&g, "/list_files", "", STR("{}"), 200), "[\"up.txt\"]");
    snprintf(request, sizeof request,
             "GET /download_files?path=%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", g.dir);
    wire_exchange(&g.wire, str_of(request), &got);
    CHECK_HAS(buf_str(&got), "PK\x03\x04");
    CHECK_HAS(buf_str(&got), "bytes");
    guest_close(&g);
}
