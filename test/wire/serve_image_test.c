// SPDX-License-Identifier: Apache-2.0
/* serve_image_test.c — croft serve: what an image says of itself, and who may say otherwise. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "test/image_kit.h"
#include "test/native/kit.h"
#include "test/program.h"
#include "test/serve_kit.h"

#define CONFIG                                                                                     \
    "{\"Env\":[\"KIND=image\",\"COLOUR=red\",\"PATH=/bin\",\"RUNTIME_ID=x\",\"odd\"],"             \
    "\"WorkingDir\":\"/app\",\"User\":\"app\"}"

static void is_running(struct serve *s, const struct json *r)
{
    if (strcmp(serve_field(s, r, "status"), "running") != 0)
        FAIL("it is %s: %s", serve_field(s, r, "status"), serve_field(s, r, "status_detail"));
}

/* What a runtime of that image is inside. */
#define WHO "echo $KIND $COLOUR; pwd; id -u; id -g; id -G; echo $HOME $PATH; echo of $RUNTIME_ID"

static void check_who(struct serve *s, const struct json *r, const char *wanted)
{
    is_running(s, r);
    struct str got = serve_exec(s, r, WHO);
    const char *text = serve_text(s, "%s\nof %s", wanted, serve_field(s, r, "runtime_id"));

    CHECK_STR(got, text);
}

TEST(serve_honours_the_environment_place_and_user_of_an_image)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    image_kit_import(s.state, "mine:1", CONFIG);
    serve_run(&s, NULL);
    struct json *r = serve_start_image(&s, "mine:1", "a", "");
    check_who(&s, r, "image red\n/app\n1234\n55\n55 77\n/srv/app /bin");
    serve_tell(&s, "/stop", r);
    r = serve_start_image(&s, "mine:1", "b",
                          ",'environment':{'COLOUR':'blue','HOME':'/tmp'},'working_dir':'/srv',"
                          "'run_as_user':7,'run_as_group':8");
    check_who(&s, r, "image blue\n/srv\n7\n8\n8\n/tmp /bin");
    serve_tell(&s, "/stop", r);
    r = serve_start_image(&s, "mine:1", "c", ",'run_as_user':0,'environment':{'PATH':'/bin:/x'}");
    check_who(&s, r, "image red\n/app\n0\n0\n0\n/root /bin:/x");
    serve_tell(&s, "/stop", r);
    r = serve_start_image(&s, "mine:1", "d", ",'run_as_group':99");
    CHECK_STR(serve_exec(&s, r, "id -u; id -g"), "1234\n99");
    serve_tell(&s, "/stop", r);
    r = serve_start_image(&s, "mine:1", "own",
                          ",'run_as_user':1234"); /* it has that number: its own name */
    CHECK_STR(serve_exec(&s, r, "id -un; echo $HOME $USER"), "app\n/srv/app app");
    serve_tell(&s, "/stop", r);
    r = serve_start_image(&s, "mine:1", "none", ",'run_as_user':10001,'run_as_group':55");
    CHECK_STR(serve_exec(&s, r, "id -un; id -gn; echo $HOME $USER; cat /etc/passwd"),
              "openhands\nweb\n/home/10001 openhands\nroot:x:0:0::/root:/bin/sh\n"
              "app:x:1234:55::/srv/app:/bin/sh\n"
              "openhands:x:10001:55::/home/10001:/bin/bash");
    serve_tell(&s, "/stop", r);
    serve_want(&s, 200, "POST", "/croft/v1/sandboxes", "{'image':'mine:1','session_id':'e'}");
    r = serve_start_image(&s, "mine:1", "e", "");
    check_who(&s, r, "image red\n/app\n1234\n55\n55 77\n/srv/app /bin");
    serve_tell(&s, "/stop", r);
    serve_close(&s);
}

TEST(serve_takes_a_runtime_of_an_image_back_to_its_snapshot)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    image_kit_import(s.state, "mine:1", CONFIG);
    serve_run(&s, NULL);
    struct json *r = serve_start_image(&s, "mine:1", "a", ",'run_as_user':0");
    const char *path = serve_text(&s, "/croft/v1/sandboxes/%s", serve_field(&s, r, "runtime_id"));
    serve_exec(&s, r, "echo 1 > /note");
    serve_want(&s, 200, "POST", serve_text(&s, "%s/snapshot", path), "{'name':'one'}");
    serve_exec(&s, r, "echo 2 > /note");
    serve_want(&s, 200, "POST", serve_text(&s, "%s/stop", path), NULL);
    serve_want(&s, 200, "POST", serve_text(&s, "%s/rollback", path), "{'to':'one'}");
    r = serve_start_image(&s, "mine:1", "a", "");
    CHECK_STR(serve_exec(&s, r, "read line < /note; echo $line"), "1");
    CHECK_INT(serve_ask(&s, "DELETE", "/croft/v1/snapshots/one", NULL).status, 204);
    serve_close(&s);
}

/* V0 clients say who in the words of their command. */
TEST(serve_lets_a_command_line_say_who_before_the_image)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    image_kit_import(s.state, "mine:1", CONFIG);
    serve_run(&s, NULL);
    struct json *r = serve_start_image(
        &s, "mine:1", "a",
        ",'command':['python','-m','openhands.runtime.action_execution_server','60000',"
        "'--working-dir','/workspace','--username','root','--user-id','0']");
    is_running(&s, r);
    CHECK_STR(serve_exec(&s, r, "id -u; pwd; echo $KIND"), "0\n/workspace\nimage");
    serve_tell(&s, "/stop", r);
    serve_close(&s);
}

static void wait_for_pool(struct serve *s)
{
    for (;;) {
        struct json *pools = serve_want(s, 200, "GET", "/croft/v1/pool", NULL);
        if (json_get_int(json_at(json_get(pools, STR("pools")), 0), "ready", 0) == 1)
            break;
        poll(NULL, 0, 20);
    }
}

static struct str page_of(struct serve *s, const struct json *r)
{
    struct wire to = {.pid = 0};
    own_done(buf) got;

    buf_init(&got, 1u << 20);
    wire_at(&to, serve_field(s, r, "url"));
    wire_exchange(&to, STR("GET /who HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
                  &got);
    return arena_copy(&s->arena, buf_str(&got));
}

/* It writes down who it is, and serves that on the port the image names. */
TEST(serve_runs_a_command_as_the_user_of_the_image)
{
    static const char command[] =
        ",'command':['/bin/sh','-c','{ pwd; id -u; id -g; echo $KIND $HOME; } >/tmp/who && "
        "exec httpd -f -h /tmp -p 127.0.0.1:8099']";
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    image_kit_import(s.state, "mine:1",
                     "{\"Env\":[\"PORT=8099\",\"KIND=web\"],\"WorkingDir\":\"srv/app\","
                     "\"User\":\"1234:more\"}");
    serve_run_with(&s, "[pool.mine]\nimage = 'mine:1'\ntarget = 1\nceiling = 1\n");
    wait_for_pool(&s);
    for (int i = 0; i < 2; i++) { /* warm, then maybe cold */
        struct json *r = serve_start_image(&s, "mine:1", i ? "b" : "a", command);
        is_running(&s, r);
        if (!i)
            CHECK_HAS(serve_field(&s, r, "status_detail"), "warm: from pool 'mine'");
        struct str page = page_of(&s, r);
        while (str_find(page, STR(" 200 ")) < 0) { /* it listens when it listens */
            poll(NULL, 0, 20);
            page = page_of(&s, r);
        }
        CHECK_HAS(page, "/srv/app\n1234\n77\nweb /srv/app\n");
    }
    serve_close(&s);
}

TEST(serve_remembers_what_an_image_said_when_it_starts_a_runtime_again)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    image_kit_import(s.state, "mine:1", CONFIG);
    serve_run(&s, NULL);
    struct json *r = serve_start_image(&s, "mine:1", "a", "");
    const char *id = serve_field(&s, r, "runtime_id");
    serve_want(&s, 200, "POST", serve_text(&s, "/croft/v1/sandboxes/%s/stop", id), NULL);
    serve_kill(&s);
    serve_run(&s, NULL);
    serve_tell(&s, "/resume", r);
    r = serve_start_image(&s, "mine:1", "a", "");
    CHECK_STR(serve_field(&s, r, "runtime_id"), id);
    check_who(&s, r, "image red\n/app\n1234\n55\n55 77\n/srv/app /bin");
    struct json *forks =
        serve_want(&s, 200, "POST", serve_text(&s, "/croft/v1/sandboxes/%s/fork", id), "{}");
    const struct json *fork = json_at(json_get(forks, STR("sandboxes")), 0);
    fork = serve_start_image(&s, "mine:1", serve_field(&s, fork, "session_id"), "");
    check_who(&s, fork, "image red\n/app\n1234\n55\n55 77\n/srv/app /bin");
    serve_tell(&s, "/stop", fork);
    serve_tell(&s, "/stop", r);
    serve_close(&s);
}

TEST(serve_says_which_user_an_image_does_not_have)
{
    static const struct {
        const char *user, *more, *why;
    } bad[] = {{"nobody-here", "", "no user 'nobody-here'"},
               {"app:nogroup", "", "no group 'nogroup'"},
               {"nobody-here", ",'command':['sleep','9']", "no user 'nobody-here'"}};
    struct serve s = {.key = NULL};
    char name[16];

    serve_prepare(&s);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        snprintf(name, sizeof name, "bad:%zu", i);
        image_kit_import(s.state, name, serve_text(&s, "{\"User\":\"%s\"}", bad[i].user));
    }
    serve_run_with(&s, "[pool.bad]\nimage = 'bad:0'\ntarget = 1\nceiling = 1\n");
    wait_for_pool(&s); /* the first is warm, and told as running until it is bound */
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        snprintf(name, sizeof name, "bad:%zu", i);
        struct json *r = serve_start_image(&s, name, name, bad[i].more);
        while (strcmp(serve_field(&s, r, "status"), "running") == 0) {
            poll(NULL, 0, 20);
            r = serve_want(&s, 200, "GET", serve_text(&s, "/sessions/%s", name), NULL);
        }
        CHECK_STR(serve_field(&s, r, "status"), "error");
        CHECK_HAS(serve_field(&s, r, "status_detail"), bad[i].why);
        serve_tell(&s, "/stop", r);
    }
    serve_close(&s);
}

/* An agent's first command would say so too, but then it is late. */
TEST(serve_says_that_an_image_has_no_bash_and_so_runs_no_commands)
{
    static const char make_bare[] =
        "mkdir -p \"$1\"/bare/bin && cp /bin/busybox \"$1\"/bare/bin && tar -C \"$1\"/bare -cf "
        "\"$1\"/bare.tar . && rm -r \"$1\"/bare && \"$2\" image import --name bare \"$1\"/bare.tar";
    struct serve s = {.key = NULL};
    own_done(buf) out;

    if (access("/bin/busybox", X_OK) < 0)
        SKIP("needs busybox-static");
    serve_prepare(&s);
    buf_init(&out, 1u << 16);
    setenv("CROFT_SERVER_STATE_DIR", s.state, 1);
    CHECK_INT(
        program_run(ARGS("sh", "-c", make_bare, "sh", test_dir(), test_program("croft")), &out), 0);
    CHECK_HAS(buf_str(&out), "there is no /bin/bash in it");
    serve_run(&s, NULL);
    struct json *r = serve_start_image(&s, "bare", "a", "");
    is_running(&s, r);
    CHECK_HAS(serve_field(&s, r, "status_detail"), "the image has no /bin/bash");
    struct serve_answer a = serve_ask_inside(
        &s, r, "POST", "/execute_action", "{'action':{'action':'run','args':{'command':'echo'}}}");
    CHECK_INT(a.status, 501);
    CHECK_HAS(a.body, "start bash, which an image must have: '/bin/bash': No such file");
    a = serve_ask_inside(&s, r, "POST", "/execute_action",
                         "{'action':{'action':'write','args':{'path':'/x','content':'y'}}}");
    CHECK_INT(a.status, 200);
    serve_tell(&s, "/stop", r);
    r = serve_start_image(&s, "bare", "b", ",'command':['/bin/busybox','sleep','1000']");
    is_running(&s, r);
    CHECK_STR(serve_field(&s, r, "status_detail"), "cold: no pool has this image");
    serve_tell(&s, "/stop", r);
    serve_close(&s);
}

TEST(croft_run_is_who_the_image_says)
{
    own_done(buf) out;
    char state[300];
    const char *croft = test_program("croft");

    kit_need_root();
    buf_init(&out, 1u << 16);
    snprintf(state, sizeof state, "%s/state", test_dir());
    image_kit_import(state, "mine:1", CONFIG);
#define RUN(...)                                                                                   \
    (buf_reset(&out),                                                                              \
     program_run(ARGS(croft, "run", "--image", "mine:1", "--bare", __VA_ARGS__, "--", "sh", "-c",  \
                      "id -u; id -g; pwd; echo $HOME $KIND $USER"),                                \
                 &out))
    CHECK_INT(RUN("--discard"), 0);
    CHECK_STR(buf_str(&out), "1234\n55\n/app\n/srv/app image app\n");
    CHECK_INT(RUN("--discard", "--user", "root", "--workdir", "/srv"), 0);
    CHECK_STR(buf_str(&out), "0\n0\n/srv\n/root image root\n");
    CHECK_INT(RUN("--discard", "--user", "app:more"), 0);
    CHECK_STR(buf_str(&out), "1234\n77\n/app\n/srv/app image app\n");
    CHECK_INT(RUN("--discard", "--user", "4321"), 0); /* nobody: as images of that kind expect */
    CHECK_STR(buf_str(&out), "4321\n0\n/app\n/home/4321 image\n");
    CHECK_INT(RUN("--discard", "--user", "nosuch"), 125);
    CHECK_HAS(buf_str(&out), "no user 'nosuch'");
#undef RUN
}
