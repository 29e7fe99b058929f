// SPDX-License-Identifier: Apache-2.0
/* Images that come to the store while a launcher runs, and sandboxes on them. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/json.h"
#include "host/images/images.h"
#include "test/native/launcher_kit.h"
#include "test/program.h"
#include "test/tar_kit.h"

#define WAIT_MS 60000

static void open_rig(struct rig *r, bool stored, bool import)
{
    rig_prepare(r, 0);
    r->policy.stored_images = stored;
    r->policy.import_images = import;
    rig_fork(r);
}

static int make_archive(const char *hello)
{
    own_done(buf) tar;
    static const char *const dirs[] = {"bin/", "dev/", "proc/",      "sys/",
                                       "tmp/", "etc/", "workspace/", "run/"};

    buf_init(&tar, 8u << 20);
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        TAR_PUT(&tar, .name = dirs[i], .type = '5', .mode = 0755);
    TAR_PUT(&tar, .name = "etc/hello", .data = str_of(hello));
    tar_end(&tar);
    return tar_file(&tar);
}

static void ask_image(struct rig *r, enum native_op op, const char *name, int file,
                      struct native_reply *reply, int fds[2])
{
    struct native_request req = rig_request(op, "");

    snprintf(req.image_name, sizeof req.image_name, "%s", name);
    rig_ask(r, &req, &file, file >= 0, reply, fds);
}

/* Gives its id. */
static void import(struct rig *r, const char *name, const char *hello, char id[65])
{
    struct native_reply reply;
    int fds[2];
    own_fd file = make_archive(hello);

    ask_image(r, NATIVE_IMAGE_IMPORT, name, file, &reply, fds);
    CHECK_INT(reply.code, 0);
    CHECK_INT(strlen(reply.text), 64);
    memcpy(id, reply.text, 65);
}

static void start_on(struct rig *r, const char *sandbox, const char *image, const char *snapshot)
{
    struct native_request req = rig_request(NATIVE_START, sandbox);
    struct native_reply reply;
    int fds[2];
    own_fd block = rig_block(ARGS("action-server", "--no-auth"), ARGS("PATH=/bin"));

    own_close_p(&r->ready);
    own_close_p(&r->control);
    req.argc = req.envc = 1;
    req.image = NATIVE_IMAGE_STORED;
    snprintf(req.image_name, sizeof req.image_name, "%s", image);
    snprintf(req.snapshot, sizeof req.snapshot, "%s", snapshot);
    rig_ask(r, &req, &block, 1, &reply, fds);
    CHECK_STR(str_of(reply.text), "");
    r->ready = fds[0];
    r->control = fds[1];
    CHECK_OK(fd_wait(r->ready, POLLIN, WAIT_MS));
}

/* A file inside, by the action server. */
static void check_hello(struct rig *r, const char *sandbox, const char *want)
{
    static const char text[] =
        "POST /execute_action HTTP/1.1\r\nHost: x\r\nContent-Length: 66\r\nConnection: close\r\n"
        "\r\n{\"action\": {\"action\": \"read\", \"args\": {\"path\": \"/etc/hello\"}}}    ";
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    own_done(buf) got;

    buf_init(&got, 65536);
    snprintf(a.sun_path, sizeof a.sun_path, "%.80s/run/%s.s", r->state, sandbox);
    own_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    CHECK_OK(fd_write_all(fd, str_of(text)));
    CHECK_OK(fd_read_all(fd, &got));
    CHECK_HAS(buf_str(&got), want);
}

TEST(an_image_imported_while_the_launcher_runs_can_be_started)
{
    struct rig r;
    char one[65], two[65];

    open_rig(&r, true, true);
    import(&r, "example.com/team/one:1.0", "this is one", one);
    import(&r, "two", "this is two", two);
    start_on(&r, "a", one, "");
    check_hello(&r, "a", "this is one");
    start_on(&r, "b", "two", ""); /* by name */
    check_hello(&r, "b", "this is two");
    import(&r, "two", "another two", two);
    start_on(&r, "c", "two", "");
    check_hello(&r, "c", "another two");
    rig_tell(&r, NATIVE_KILL, "b");
    start_on(&r, "b", "two", ""); /* its next life, on what it had */
    check_hello(&r, "b", "this is two");
    rig_tell(&r, NATIVE_REMOVE, "c");
    rig_tell(&r, NATIVE_REMOVE, "a");
    rig_tell(&r, NATIVE_REMOVE, "b");
    rig_close(&r);
}

TEST(a_stored_image_is_found_by_its_name_and_described)
{
    struct rig r;
    char id[65];
    struct native_reply reply;
    int fds[2];
    own_done(buf) text;
    own_done(arena) a;
    struct json *record;

    buf_init(&text, 65536);
    arena_init(&a, 1u << 20);
    open_rig(&r, true, true);
    import(&r, "one:latest", "x", id);
    ask_image(&r, NATIVE_IMAGE_FIND, "one", -1, &reply, fds);
    CHECK_INT(reply.code, 0);
    CHECK(write(fds[0], "x", 1) < 0); /* to be read, and nothing else */
    CHECK_OK(fd_read_all(fds[0], &text));
    CHECK_OK(json_parse(&a, buf_str(&text), NULL, &record));
    CHECK_STR(json_get_str(record, "id", STR("")), str_of(id));
    CHECK_STR(json_get_str(record, "name", STR("")), "one:latest");
    CHECK(json_get_int(record, "bytes", 0) > 0);
    own_close_p(&fds[0]);
    ask_image(&r, NATIVE_IMAGE_FIND, "other", -1, &reply, fds);
    CHECK_INT(reply.code, ERR_NOT_FOUND + 1);
    CHECK_HAS(str_of(reply.text), "no image 'other'");
    rig_close(&r);
}

TEST(an_image_in_use_is_not_removed)
{
    struct rig r;
    char id[65];
    own_done(buf) got = {.limit_bytes = 65536};

    open_rig(&r, true, true);
    import(&r, "one", "x", id);
    start_on(&r, "a", id, "");
    CHECK(setenv("CROFT_SERVER_STATE_DIR", r.state, 1) == 0);
    CHECK_INT(program_run(ARGS(test_program("croft"), "image", "rm", "one"), &got), 1);
    CHECK_HAS(buf_str(&got), "a sandbox runs on image");
    rig_tell(&r, NATIVE_REMOVE, "a");
    CHECK_INT(program_run(ARGS(test_program("croft"), "image", "rm", "one"), &got), 0);
    rig_close(&r);
}

TEST(a_snapshot_goes_on_above_its_own_image_only)
{
    struct rig r;
    char one[65], two[65];
    struct native_request req;

    open_rig(&r, true, true);
    import(&r, "one", "this is one", one);
    import(&r, "two", "this is two", two);
    start_on(&r, "a", one, "");
    rig_tell(&r, NATIVE_KILL, "a");
    req = rig_request(NATIVE_SNAPSHOT, "a");
    snprintf(req.snapshot, sizeof req.snapshot, "s");
    rig_ok(&r, &req);
    start_on(&r, "b", one, "s");
    check_hello(&r, "b", "this is one");
    own_fd block = rig_block(ARGS("action-server"), ARGS(NULL));
    req = rig_request(NATIVE_START, "c");
    req.argc = 1;
    req.image = NATIVE_IMAGE_STORED;
    snprintf(req.snapshot, sizeof req.snapshot, "s");
    memcpy(req.image_name, two, 65);
    rig_refused(&r, &req, &block, 1, ERR_INVALID, "the snapshot is of image");
    rig_tell(&r, NATIVE_REMOVE, "a");
    rig_tell(&r, NATIVE_REMOVE, "b");
    close(take_fd(&block));
    rig_close(&r);
}

TEST(images_are_had_by_policy_alone)
{
    struct rig r;
    struct native_request req = rig_request(NATIVE_START, "a");
    own_fd file = -1, block = -1;

    open_rig(&r, false, false);
    file = make_archive("x");
    block = rig_block(ARGS("action-server"), ARGS(NULL));
    req.argc = 1;
    req.image = NATIVE_IMAGE_STORED;
    memset(req.image_name, 'a', 64);
    rig_refused(&r, &req, &block, 1, ERR_FORBIDDEN, "is not on the list");
    req = rig_request(NATIVE_START, "a");
    req.argc = 1;
    req.mounts[0] = (struct native_mount){
        .mode = NATIVE_OVERLAY, .root = NATIVE_ROOT_IMAGE, .path = "one", .target = "/base"};
    rig_refused(&r, &req, &block, 1, ERR_FORBIDDEN, "no image is to be had");
    req.mounts[0].mode = 0;
    req.flags |= NATIVE_NESTED;
    rig_refused(&r, &req, &block, 1, ERR_FORBIDDEN, "may not make namespaces");
    req = rig_request(NATIVE_IMAGE_IMPORT, "");
    snprintf(req.image_name, sizeof req.image_name, "one");
    rig_refused(&r, &req, &file, 1, ERR_FORBIDDEN, "may not add images");
    req.op = NATIVE_IMAGE_FIND;
    rig_refused(&r, &req, NULL, 0, ERR_FORBIDDEN, "not open to servers");
    close(take_fd(&block));
    close(take_fd(&file));
    rig_close(&r);
}

TEST(images_that_are_none_are_refused)
{
    struct rig r;
    struct native_request req;
    own_fd block = -1, junk = -1;
    int pipes[2];
    own_done(buf) tar;

    buf_init(&tar, 1u << 20);
    open_rig(&r, true, true);
    block = rig_block(ARGS("action-server"), ARGS(NULL));
    req = rig_request(NATIVE_START, "a");
    req.argc = 1;
    req.image = NATIVE_IMAGE_STORED;
    memset(req.image_name, 'a', 64);
    rig_refused(&r, &req, &block, 1, ERR_NOT_FOUND, "no image 'aaaa");
    memcpy(req.image_name, "../../etc", 10);
    rig_refused(&r, &req, &block, 1, ERR_NOT_FOUND, "no image '../../etc'");
    memcpy(req.image_name, "/etc", 5);
    rig_refused(&r, &req, &block, 1, ERR_INVALID, "the image is not a name");
    memset(req.image_name, 'a', sizeof req.image_name);
    rig_refused(&r, &req, &block, 1, ERR_INVALID, "has no end");
    req = rig_request(NATIVE_IMAGE_IMPORT, "");
    rig_refused(&r, &req, NULL, 0, ERR_INVALID, "the image is not a name");
    snprintf(req.image_name, sizeof req.image_name, "a b");
    rig_refused(&r, &req, NULL, 0, ERR_INVALID, "the image is not a name");
    snprintf(req.image_name, sizeof req.image_name, "one");
    rig_refused(&r, &req, NULL, 0, ERR_INVALID, "one regular file");
    CHECK_INT(pipe2(pipes, O_CLOEXEC), 0);
    rig_refused(&r, &req, pipes, 1, ERR_INVALID, "one regular file");
    TAR_PUT(&tar, .name = "../../etc/cron.d/x", .data = STR("x"));
    tar_end(&tar);
    junk = tar_file(&tar);
    rig_refused(&r, &req, &junk, 1, ERR_INVALID, "import 'one': ");
    close(take_fd(&pipes[0]));
    close(take_fd(&pipes[1]));
    close(take_fd(&junk));
    close(take_fd(&block));
    rig_close(&r);
}
