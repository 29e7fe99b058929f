// SPDX-License-Identifier: Apache-2.0
/* serve_build_test.c — images built by a server, as RemoteRuntimeBuilder asks for them. */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/b64.h"
#include "base/fd.h"
#include "test/program.h"
#include "test/serve_kit.h"
#include "test/tar_kit.h"

#define BOUNDARY "xYzZY"
#define KEY_MAX  128
#define HELD     900000000 /* seconds that a build sleeps, and the test's pid: by which it is found */
#define MINE     "localhost/croft/" /* the prefix that tenants may build below */

static void need_buildah(void)
{
    if (access("/usr/bin/buildah", X_OK) < 0)
        SKIP("buildah is not installed");
    if (access("/bin/busybox", X_OK) < 0)
        SKIP("busybox is not installed");
}

/* A tar.gz with a Dockerfile and busybox, as base64 text. */
static void put_context(struct buf *out, const char *dockerfile)
{
    own_done(buf) tar, busybox, packed;
    own_fd dir = test_dir_fd();
    char path[300];

    buf_init(&tar, 16u << 20);
    buf_init(&busybox, 16u << 20);
    buf_init(&packed, 16u << 20);
    CHECK_OK(fd_read_file("/bin/busybox", &busybox));
    TAR_PUT(&tar, .name = "Dockerfile", .data = str_of(dockerfile));
    TAR_PUT(&tar, .name = "busybox", .mode = 0755, .data = buf_str(&busybox));
    tar_end(&tar);
    CHECK_OK(fd_replace_file(dir, "context.tar", buf_str(&tar), 0600));
    snprintf(path, sizeof path, "%s/context.tar", test_dir());
    CHECK_INT(program_run(ARGS("gzip", "-1", "-f", path), &packed), 0);
    snprintf(path, sizeof path, "%s/context.tar.gz", test_dir());
    buf_reset(&packed);
    CHECK_OK(fd_read_file(path, &packed));
    b64_add(out, buf_str(&packed));
}

static void put_part(struct buf *out, const char *name, const char *more, struct str value)
{
    buf_addf(out, "--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"%s\"%s\r\n\r\n", name,
             more);
    buf_add(out, value);
    buf_add_cstr(out, "\r\n");
}

static struct serve_answer post(struct serve *s, struct str context, const char *target)
{
    own_done(buf) body, all, got;
    struct serve_answer a = {0};

    buf_init(&body, 64u << 20);
    buf_init(&all, 64u << 20);
    buf_init(&got, 1u << 20);
    if (context.p)
        put_part(&body, "context", "; filename=\"context.tar.gz\"", context);
    if (target)
        put_part(&body, "target_image", "", str_of(target));
    if (target)
        put_part(&body, "tags", "", str_of(serve_text(s, "%s-other", target)));
    buf_add_cstr(&body, "--" BOUNDARY "--\r\n");
    buf_addf(&all,
             "POST /build HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s%s%s"
             "Content-Type: multipart/form-data; boundary=" BOUNDARY "\r\nContent-Length: %zu\r\n"
             "\r\n",
             s->key ? "X-API-Key: " : "", s->key ? s->key : "", s->key ? "\r\n" : "", body.len);
    buf_add(&all, buf_str(&body));
    CHECK(!buf_failed(&all));
    wire_exchange(&s->wire, buf_str(&all), &got);
    a.status = atoi(got.p + 9);
    ptrdiff_t at = str_find(buf_str(&got), STR("\r\n\r\n"));
    a.head = arena_copy(&s->arena, str_first(buf_str(&got), (size_t)at));
    a.body = arena_copy(&s->arena, str_from(buf_str(&got), (size_t)at + 4));
    err_free(json_parse(&s->arena, a.body, NULL, &a.json));
    return a;
}

static const char *build(struct serve *s, const char *dockerfile, const char *target)
{
    own_done(buf) context;

    buf_init(&context, 32u << 20);
    put_context(&context, dockerfile);
    struct serve_answer a = post(s, buf_str(&context), target);
    if (a.status != 200)
        FAIL("%d " STR_FMT, a.status, STR_ARG(a.body));
    return serve_field(s, a.json, "build_id");
}

static struct json *wait_for(struct serve *s, const char *id)
{
    const char *target = serve_text(s, "/build_status?build_id=%s", id);

    for (;;) {
        struct json *now = serve_want(s, 200, "GET", target, NULL);
        const char *status = serve_field(s, now, "status");
        if (strcmp(status, "QUEUED") != 0 && strcmp(status, "WORKING") != 0)
            return now;
        poll(NULL, 0, 50); /* as its clients do: there is no event to wait for */
    }
}

/* Until the journal has a status with these words in its message; the line. */
static struct str wait_status(struct serve *s, const char *status, const char *words)
{
    own_done(buf) out;

    buf_init(&out, 1u << 20);
    program_run(
        ARGS("bash", "-c",
             serve_text(
                 s,
                 "grep -m 1 '\"%s\".*\"message\":\".*%s' < <(exec curl -sN 2>/dev/null %s%s%s "
                 "'http://127.0.0.1:%u/croft/v1/events?kind=status')",
                 status, words, s->key ? "-H 'X-API-Key: " : "", s->key ? s->key : "",
                 s->key ? "'" : "", s->wire.port)),
        &out);
    return arena_copy(&s->arena, buf_str(&out));
}

#define BASE                                                                                       \
    "FROM scratch\nCOPY busybox /bin/busybox\nCOPY busybox /bin/sh\nCOPY busybox /bin/cat\n"       \
    "RUN echo base >/etc/base || (mkdir /etc; echo base >/etc/base)\nENV KIND=base\n"

TEST_LIMIT(serve_builds_an_image_and_another_on_top_of_it, 180)
{
    struct serve s = {.key = NULL};

    need_buildah();
    serve_open(&s);
    struct json *none = serve_want(&s, 200, "GET", "/image_exists?image=example.com/base:1", NULL);
    CHECK(!json_get_bool(none, "exists", true));
    struct json *done = wait_for(&s, build(&s, BASE, "example.com/base:1"));
    CHECK_STR(serve_field(&s, done, "error"), "");
    CHECK_STR(serve_field(&s, done, "status"), "SUCCESS");
    CHECK_STR(serve_field(&s, done, "image"), "example.com/base:1");
    struct json *there = serve_want(&s, 200, "GET", "/image_exists?image=example.com/base:1", NULL);
    CHECK(json_get_bool(there, "exists", false));
    const struct json *image = json_get(there, STR("image"));
    CHECK(json_get_int(image, "image_size_bytes", 0) > 1000000);
    CHECK_HAS(serve_field(&s, image, "upload_time"), "20");
    there = serve_want(&s, 200, "GET", "/image_exists?image=example.com/base:1-other", NULL);
    CHECK(json_get_bool(there, "exists", false)); /* the other tag */
    done = wait_for(&s, build(&s,
                              "ARG WHAT=example.com/base:1\nFROM $WHAT AS first\n"
                              "RUN echo $KIND $(cat /etc/base) >/etc/top; mkdir /home; "
                              "busybox=/bin/busybox; $busybox chown 1000:1000 /home\n"
                              "FROM first\n"
                              "RUN [ \"$(cat /etc/top) $(/bin/busybox stat -c %u /home)\" = "
                              "'base base 1000' ]\n",
                              "example.com/top:1"));
    CHECK_STR(serve_field(&s, done, "error"), "");
    CHECK_STR(serve_field(&s, done, "status"), "SUCCESS");
    struct json *r = serve_want(&s, 200, "POST", "/start",
                                "{'image':'example.com/top:1','session_id':'t',"
                                "'command':['/bin/busybox','sleep','1000']}");
    while (strcmp(serve_field(&s, r, "status"), "starting") == 0)
        r = serve_want(&s, 200, "GET", "/sessions/t", NULL);
    CHECK_STR(serve_field(&s, r, "status"), "running");
    serve_tell(&s, "/stop", r);
    serve_close(&s);
}

TEST_LIMIT(serve_says_why_an_image_was_not_built, 180)
{
    static const struct {
        const char *dockerfile, *why;
    } bad[] = {
        {"FROM nowhere:1\n", "FROM nowhere:1: this image is not in the store"},
        {"FROM scratch\nCOPY busybox /bin/sh\nRUN echo some words; exit 7\n", "some words"},
        {"FROM scratch\nCOPY missing /x\n", "missing"},
        {"FROM 'a b;c'\n", "FROM: image"},
        {"NONSENSE\n", "the build failed"},
    };
    struct serve s = {.key = NULL};

    need_buildah();
    serve_open(&s);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct json *done = wait_for(&s, build(&s, bad[i].dockerfile, "x:1"));
        CHECK_STR(serve_field(&s, done, "status"), "FAILURE");
        CHECK_HAS(serve_field(&s, done, "error"), bad[i].why);
    }
    CHECK_HAS(wait_status(&s, "STATUS[$]BUILDING_RUNTIME", "building image .x:1."),
              "\"level\":\"info\"");
    CHECK_HAS(wait_status(&s, "STATUS[$]ERROR", "image .x:1. was not built"),
              "\"level\":\"error\"");
    struct json *none = serve_want(&s, 200, "GET", "/image_exists?image=x:1", NULL);
    CHECK(!json_get_bool(none, "exists", true));
    serve_close(&s);
}

TEST_LIMIT(serve_refuses_a_build_it_cannot_read, 120)
{
    struct serve s = {.key = NULL};
    own_done(buf) text;

    need_buildah();
    buf_init(&text, 1024);
    serve_open(&s);
    CHECK_HAS(post(&s, (struct str){0}, "x:1").body, "context: it is missing");
    CHECK_INT(post(&s, STR("AAAA"), NULL).status, 422);
    CHECK_HAS(post(&s, STR("AAAA"), NULL).body, "target_image: it is missing");
    CHECK_HAS(post(&s, STR("A!AA"), "x:1").body, "context: ");
    CHECK_HAS(post(&s, STR("AAA"), "x:1").body, "base64: it ends in the middle");
    CHECK_HAS(post(&s, STR("AA==AAAA"), "x:1").body, "more after its end");
    CHECK_HAS(post(&s, STR("AAAA"), "a b").body, "target_image: image 'a b' is not a name");
    struct serve_answer a = post(&s, STR("AAAA"), "x:1"); /* base64, but no archive */
    CHECK_INT(a.status, 200);
    struct json *done = wait_for(&s, serve_field(&s, a.json, "build_id"));
    CHECK_STR(serve_field(&s, done, "status"), "FAILURE");
    CHECK_HAS(serve_field(&s, done, "error"), "the context is not a tar.gz");
    serve_refused(&s, 400, "multipart", "POST", "/build", "{}");
    serve_refused(&s, 404, "there is no build 'none'", "GET", "/build_status?build_id=none", NULL);
    serve_refused(&s, 422, "build_id", "GET", "/build_status", NULL);
    serve_refused(&s, 422, "image", "GET", "/image_exists", NULL);
    serve_close(&s);
}

/* An administrator's, which is used from now on, and a tenant's. */
static void make_keys(struct serve *s, char boss[KEY_MAX], char other[KEY_MAX])
{
    struct json *made =
        serve_want(s, 201, "POST", "/croft/v1/tokens", "{'name':'boss','scopes':['admin']}");

    snprintf(boss, KEY_MAX, "%s", serve_field(s, made, "secret"));
    s->key = boss;
    made = serve_want(s, 201, "POST", "/croft/v1/tokens", "{'name':'other'}");
    snprintf(other, KEY_MAX, "%s", serve_field(s, made, "secret"));
}

/* It is taken, and then it is no archive. */
static void take_and_fail(struct serve *s, const char *target)
{
    struct serve_answer a = post(s, STR("AAAA"), target);

    CHECK_INT(a.status, 200);
    CHECK_STR(serve_field(s, wait_for(s, serve_field(s, a.json, "build_id")), "status"), "FAILURE");
}

TEST_LIMIT(serve_builds_for_a_tenant_only_below_the_registry_prefix, 120)
{
    static const char *const others[] = {"debian:12", "localhost/croftx/a:1", "localhost/croft",
                                         "xlocalhost/croft/a:1"};
    struct serve s = {.key = NULL};
    char boss[KEY_MAX], other[KEY_MAX];

    need_buildah();
    serve_open(&s);
    make_keys(&s, boss, other);
    take_and_fail(&s, "debian:12");
    CHECK_INT(post(&s, STR("AAAA"), "host").status, 422);
    s.key = other;
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        struct serve_answer a = post(&s, STR("AAAA"), others[i]);
        CHECK_INT(a.status, 403);
        CHECK_HAS(a.body, "target_image: key 'other' may build images called 'localhost/croft/");
    }
    take_and_fail(&s, MINE "a:1");
    serve_close(&s);
}

/* A build of which the server has read the head, and which goes on coming. */
static int begin_post(struct serve *s)
{
    int fd = wire_connect(&s->wire);
    char got[] = "HTTP/1.1 100 Continue\r\n\r\n";
    size_t have = 0, want = sizeof got - 1;

    wire_send(fd,
              str_of(serve_text(s,
                                "POST /build HTTP/1.1\r\nHost: localhost\r\nX-API-Key: %s\r\n"
                                "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n"
                                "Content-Type: multipart/form-data; boundary=" BOUNDARY "\r\n\r\n",
                                s->key)));
    for (ssize_t n; have < want && (n = read(fd, got + have, want - have)) > 0;)
        have += (size_t)n;
    CHECK_STR(got, "HTTP/1.1 100 Continue\r\n\r\n");
    CHECK_INT(have, want);
    return fd;
}

/* Its body ends too early, and with the answer it is gone. */
static void spoil_post(int fd)
{
    own_done(buf) got;

    buf_init(&got, 1u << 16);
    wire_send(fd, STR("0\r\n\r\n"));
    wire_read_answer(fd, &got);
    CHECK_HAS(buf_str(&got), "HTTP/1.1 4");
    close(fd);
}

TEST_LIMIT(serve_lets_a_key_send_two_builds_at_a_time, 120)
{
    struct serve s = {.key = NULL};
    char boss[KEY_MAX], other[KEY_MAX];

    need_buildah();
    serve_open(&s);
    make_keys(&s, boss, other);
    s.key = other;
    int one = begin_post(&s), two = begin_post(&s);
    struct serve_answer a = post(&s, STR("AAAA"), MINE "a:1");
    serve_come_back(&a, 429, "key 'other' is sending 2 builds already");
    serve_come_back(&a, 429, "tenant.most_contexts");
    s.key = boss;
    take_and_fail(&s, MINE "b:1"); /* another key has its own two */
    s.key = other;
    spoil_post(one);
    take_and_fail(&s, MINE "a:1");
    spoil_post(two);
    serve_close(&s);
}

/* Each of a server that runs: they are read anew. */
TEST_LIMIT(serve_names_the_limit_of_builds_that_is_reached, 120)
{
    static const struct {
        const char *config, *part;
    } all[] = {
        {"[server]\nmost_builds = 1\n", "1 builds wait or are being sent already"},
        {"[server]\nmost_builds = 1\n", "(server.most_builds)"},
        {"[tenant]\nmost_builds = 1\n", "of one key (tenant.most_builds)"},
        {"[tenant]\nmost_contexts = 1\n", "(tenant.most_contexts)"},
    };
    struct serve s = {.key = NULL};
    char boss[KEY_MAX], other[KEY_MAX];

    need_buildah();
    serve_prepare(&s);
    serve_run_with(&s, "");
    make_keys(&s, boss, other);
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        s.key = boss;
        serve_reload(&s, all[i].config);
        s.key = other;
        int fd = begin_post(&s);
        struct serve_answer a = post(&s, STR("AAAA"), MINE "a:1");
        serve_come_back(&a, 429, all[i].part);
        CHECK_HAS(a.head, "retry-after: 30");
        spoil_post(fd);
        take_and_fail(&s, MINE "a:1");
    }
    serve_close(&s);
}

static struct serve_answer post_bytes(struct serve *s, size_t count)
{
    own_done(buf) text;

    buf_init(&text, 1u << 16);
    for (size_t i = 0; i < count / 3; i++)
        buf_add_cstr(&text, "AAAA");
    return post(s, buf_str(&text), MINE "a:1");
}

TEST_LIMIT(serve_keeps_no_more_of_builds_than_it_was_told, 120)
{
    struct serve s = {.key = NULL};
    char boss[KEY_MAX], other[KEY_MAX];
    own_done(buf) part, said;

    need_buildah();
    buf_init(&said, 1u << 16);
    serve_prepare(&s);
    serve_run_with(&s, "");
    make_keys(&s, boss, other);
    serve_reload(&s, "[server]\nbuild_bytes = '6K'\n");
    s.key = other;
    int fd = begin_post(&s);
    buf_init(&part, 1u << 16);
    put_part(&part, "context", "", STR(""));
    for (int i = 0; i < 1500; i++)
        buf_add_cstr(&part, "AAAA");
    wire_send(fd,
              str_of(serve_text(&s, "%zx\r\n" STR_FMT "\r\n", part.len, STR_ARG(buf_str(&part)))));
    const char *there = serve_text(&s, "[ -n \"$(find %s/server/build -size +3k)\" ]", s.state);
    while (program_run(ARGS("bash", "-c", there), &said) != 0)
        poll(NULL, 0, 10); /* nobody tells how much of it has come */
    s.key = boss;
    struct serve_answer a = post_bytes(&s, 3000);
    serve_come_back(&a, 429, "server.build_bytes");
    CHECK_INT(post_bytes(&s, 7000).status, 413);        /* with or without the other */
    serve_reload(&s, "[server]\nbuild_bytes = '3K'\n"); /* less than there is */
    a = post_bytes(&s, 300);
    serve_come_back(&a, 429, "server.build_bytes");
    serve_reload(&s, "");
    spoil_post(fd);
    a = post_bytes(&s, 3000);
    CHECK_INT(a.status, 200);
    wait_for(&s, serve_field(&s, a.json, "build_id"));
    serve_close(&s);
}

/* What a session is once it is not that any more. */
static struct json *wait_past(struct serve *s, const char *session, const char *status)
{
    const char *target = serve_text(s, "/sessions/%s", session);

    for (;;) {
        struct json *r = serve_want(s, 200, "GET", target, NULL);
        if (strcmp(serve_field(s, r, "status"), status) != 0)
            return r;
        poll(NULL, 0, 10); /* nobody tells */
    }
}

/* A build that stands still until it is let go on. */
static const char *build_held(struct serve *s, const char *after, const char *target)
{
    return build(s,
                 serve_text(s, "FROM " MINE "base:1\nRUN /bin/busybox sleep %d; %s\n",
                            HELD + (int)getpid(), after),
                 target);
}

static void let_go_on(struct serve *s)
{
    own_done(buf) out;
    const char *find =
        "until kill $(pgrep -fx \"/bin/busybox sleep $1\") 2>/dev/null; do sleep .01; "
        "done";

    buf_init(&out, 1u << 16);
    CHECK_INT(
        program_run(ARGS("bash", "-c", find, "bash", serve_text(s, "%d", HELD + (int)getpid())),
                    &out),
        0);
}

/* Answered at once and seen everywhere, though there is nothing to run yet. */
static struct json *start_waiting(struct serve *s, const char *image, const char *session)
{
    const char *body = serve_text(s,
                                  "{'image':'%s','session_id':'%s',"
                                  "'command':['/bin/busybox','sleep','1000']}",
                                  image, session);
    struct json *r = serve_want(s, 200, "POST", "/start", body);
    const char *id = serve_field(s, r, "runtime_id");

    CHECK_STR(serve_field(s, r, "status"), "starting");
    CHECK_STR(serve_field(s, r, "pod_status"), "pending");
    CHECK_HAS(serve_field(s, r, "status_detail"), "is being built");
    const char *places[] = {serve_text(s, "/sessions/%s", session),
                            serve_text(s, "/runtime/%s", id),
                            serve_text(s, "/sessions/batch?ids=%s", session), "/list",
                            serve_text(s, "/croft/v1/sandboxes/%s", id)};
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        CHECK_HAS(serve_get(s, places[i]).body, id);
    r = serve_want(s, 200, "POST", "/start", body); /* the same one */
    CHECK_STR(serve_field(s, r, "runtime_id"), id);
    return r;
}

TEST_LIMIT(serve_shows_a_start_that_waits_for_its_image_and_starts_it_then, 240)
{
    struct serve s = {.key = NULL};

    need_buildah();
    serve_open(&s);
    CHECK_STR(serve_field(&s, wait_for(&s, build(&s, BASE, MINE "base:1")), "status"), "SUCCESS");
    build_held(&s, "true", MINE "soon:1");
    struct json *r = start_waiting(&s, MINE "soon:1", "soon");
    struct json *gone = start_waiting(&s, MINE "soon:1", "gone");
    serve_refused(&s, 409, "is starting", "POST", "/pause",
                  serve_text(&s, "{'runtime_id':'%s'}", serve_field(&s, r, "runtime_id")));
    CHECK_STR(serve_field(&s, serve_tell(&s, "/stop", gone), "status"), "stopped");
    let_go_on(&s);
    r = wait_past(&s, "soon", "starting");
    CHECK_HAS(serve_field(&s, r, "status_detail"), "cold: its image had to be built first");
    CHECK_STR(serve_field(&s, r, "status"), "running");
    serve_kill(&s); /* what the image says of itself is in its row by now */
    serve_run(&s, NULL);
    CHECK_STR(serve_field(&s, wait_past(&s, "soon", "starting"), "status"), "running");
    serve_tell(&s, "/stop", r);
    build_held(&s, "false", MINE "never:1");
    start_waiting(&s, MINE "never:1", "never");
    let_go_on(&s);
    r = wait_past(&s, "never", "starting");
    CHECK_STR(serve_field(&s, r, "status"), "error");
    CHECK_STR(serve_field(&s, r, "pod_status"), "failed");
    CHECK_HAS(serve_field(&s, r, "status_detail"), "(ErrImagePull): its build failed");
    build_held(&s, "true", MINE "cut:1");
    start_waiting(&s, MINE "cut:1", "cut");
    serve_kill(&s);
    serve_run(&s, NULL);
    r = wait_past(&s, "cut", "starting");
    CHECK_STR(serve_field(&s, r, "status"), "error");
    CHECK_HAS(serve_field(&s, r, "status_detail"), "build it again");
    serve_close(&s);
}

TEST(serve_says_that_nothing_builds_images_here)
{
    struct serve s = {.key = NULL};
    char empty[300];

    serve_prepare(&s);
    own_fd dir = test_dir_fd();
    CHECK_OK(fd_replace_file(dir, "empty", STR(""), 0644));
    snprintf(empty, sizeof empty, "%s/empty", test_dir());
    if (unshare(CLONE_NEWNS) < 0)
        SKIP("needs root");
    CHECK_INT(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    if (access("/usr/bin/buildah", F_OK) == 0)
        CHECK_INT(mount(empty, "/usr/bin/buildah", NULL, MS_BIND, NULL), 0);
    serve_run(&s, NULL);
    struct serve_answer a = post(&s, STR("AAAA"), MINE "a:1");
    CHECK_INT(a.status, 501);
    CHECK_HAS(a.body, "buildah is not installed (package 'buildah'); 'croft image import'");
    serve_close(&s);
}

TEST_LIMIT(serve_keeps_builds_of_tenants_apart_and_says_which_were_cut_short, 180)
{
    struct serve s = {.key = NULL};
    char boss[KEY_MAX], other[KEY_MAX];

    need_buildah();
    serve_open(&s);
    make_keys(&s, boss, other);
    const char *id = build(&s, BASE, MINE "base:1");
    CHECK_STR(serve_field(&s, wait_for(&s, id), "status"), "SUCCESS");
    s.key = other;
    serve_refused(&s, 404, "there is no build", "GET",
                  serve_text(&s, "/build_status?build_id=%s", id), NULL);
    CHECK_INT(post(&s, STR("AAAA"), MINE "base:1").status, 409); /* not his to replace */
    s.key = boss;
    CHECK_STR(serve_field(&s, wait_for(&s, build(&s, BASE, MINE "free:1")), "status"), "SUCCESS");
    wait_for(&s, build(&s, "FROM " MINE "free:1\nRUN echo new >/etc/base\n", MINE "free:1"));
    s.key = other;
    CHECK_HAS(post(&s, STR("AAAA"), MINE "free:1-other").body, "did not build"); /* by any tag */
    serve_kill(&s);
    serve_run_with(&s, "[server]\nbuild_wait = '100ms'\n");
    id = build(&s, "FROM " MINE "base:1\nRUN while :; do :; done\n", MINE "mine:1");
    const char *target = serve_text(&s, "/build_status?build_id=%s", id);
    while (strcmp(serve_field(&s, serve_want(&s, 200, "GET", target, NULL), "status"), "QUEUED") ==
           0)
        poll(NULL, 0, 10);
    serve_want(&s, 200, "POST", "/start", "{'image':'" MINE "mine:1','session_id':'early'}");
    CHECK_HAS(serve_field(&s, wait_past(&s, "early", "starting"), "status_detail"),
              "server.build_wait");
    serve_reload(&s, "[server]\nbuild_wait = '600s'\nmost_starts = 1\n");
    serve_want(&s, 200, "POST", "/start", "{'image':'" MINE "mine:1','session_id':'one'}");
    serve_want(&s, 200, "POST", "/start", "{'image':'" MINE "mine:1','session_id':'another'}");
    serve_reload(&s, "[server]\nbuild_wait = '0'\n");
    serve_refused(&s, 503, "image: '" MINE "mine:1' is being built", "POST", "/start",
                  "{'image':'" MINE "mine:1','session_id':'two'}");
    s.key = boss; /* the name is the other's from its queueing on, and an administrator's neither */
    struct serve_answer late = post(&s, STR("AAAA"), MINE "mine:1");
    CHECK_INT(late.status, 409);
    CHECK_HAS(late.body, "another key's build of image '" MINE "mine:1' is under way");
    s.key = other;
    wait_status(&s, "STATUS[$]BUILDING_RUNTIME", "mine:1"); /* whose it is sees it */
    serve_kill(&s);
    serve_run(&s, NULL);
    struct json *cut = serve_want(&s, 200, "GET", target, NULL);
    CHECK_STR(serve_field(&s, cut, "status"), "INTERNAL_ERROR");
    CHECK_HAS(serve_field(&s, cut, "error"), "build it again");
    serve_close(&s);
}
