// SPDX-License-Identifier: Apache-2.0
/* aes_bad_test.c — what clients get wrong, and what goes wrong below: a status, words, and nothing
 * half-written. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "test/aes_file.h"
#include "test/aes_run.h"
#include "test/program.h"

/* An answer 400 whose detail holds a part. */
static const struct {
    const char *action, *detail;
} refused[] = {
    {"{\"action\":\"fly\",\"args\":{}}",
     "'fly' is not defined. Available actions: null, run, run_ipython, browse, browse_interactive, "
     "read, write, edit, think"},
    {"{\"action\":\"start\",\"args\":{}}", "'start' is not defined. Available actions: "},
    {"{\"action\":\"think\",\"args\":{}}", "'ActionExecutor' object has no attribute 'think'"},
    {"{\"action\":\"null\",\"args\":{}}", "'ActionExecutor' object has no attribute 'null'"},
    {"{\"action\":\"message\",\"args\":{\"content\":\"x\"}}",
     "'ActionExecutor' object has no attribute 'message'"},
    {"{\"observation\":\"run\",\"content\":\"\"}", "Invalid action type"},
    {"{\"args\":{}}", "field 'action' is missing"},
    {"{\"action\":7}", "field 'action' must be a string, not integer"},
    {"{\"action\":\"run\",\"args\":{}}",
     "has the wrong arguments: CmdRunAction.__init__() missing 1 required positional argument: "
     "'command'"},
    {"{\"action\":\"run\"}", "missing 1 required positional argument: 'command'"},
    {"{\"action\":\"write\",\"args\":{}}",
     "FileWriteAction.__init__() missing 2 required positional arguments: 'path' and 'content'"},
    {"{\"action\":\"run_ipython\",\"args\":{}}", "missing 1 required positional argument: 'code'"},
    {"{\"action\":\"run\",\"args\":[]}", "field 'args' must be an object, not array"},
    {"{\"action\":\"run\",\"args\":{\"command\":3}}",
     "field 'args.command' must be a string, not integer"},
    {"{\"action\":\"run\",\"args\":{\"command\":null}}",
     "field 'args.command' must be a string, not null"},
    {"{\"action\":\"run\",\"args\":{\"command\":\"true\",\"blocking\":\"yes\"}}",
     "field 'args.blocking' must be true or false, not string"},
    {"{\"action\":\"run\",\"args\":{\"command\":\"true\"},\"timeout\":\"soon\"}",
     "field 'timeout' must be a number, not string"},
    {"{\"action\":\"run\",\"args\":{\"command\":\"true\"},\"source\":\"robot\"}",
     "'robot' is not a valid EventSource"},
    {"{\"action\":\"run\",\"args\":{\"command\":\"a\\u0000b\"}}", "embedded null byte"},
    {"{\"action\":\"read\",\"args\":{\"path\":\"a\\u0000b\"}}", "embedded null byte"},
    {"{\"action\":\"read\",\"args\":{\"path\":\"x\",\"start\":\"1\"}}",
     "field 'args.start' must be an integer, not string"},
    {"{\"action\":\"read\",\"args\":{\"path\":\"/etc/passwd/x\"}}",
     "[Errno 20] Not a directory: '/etc/passwd/x'"},
};

AES_TEST(aes_bad_actions_are_400_and_say_what_is_wrong)
{
    struct aes a;

    aes_open_plain(&a, program);
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct str body = str_of(aes_text(&a, "{\"action\":%s}", refused[i].action));
        struct aes_answer r = aes_ask(&a, "POST", "/execute_action", "", body);
        struct str detail = json_get_str(aes_json(&a, r.body), "detail", STR(""));
        if (r.status != 400 || str_find(detail, str_of(refused[i].detail)) < 0)
            FAIL("%s: %d " STR_FMT, refused[i].action, r.status, STR_ARG(r.body));
    }
    aes_run(&a, &(struct run_step){0, "echo alive", .want = {"=alive"}});
    /* unknown arguments and what others put around an action are no mistake */
    struct aes_answer r = aes_ask_post(
        &a, "/execute_action",
        "{'action':{'id':5,'timestamp':'now','source':'agent','message':'m','cause':4,'action':"
        "'run','args':{'command':'echo in','new_in_2030':1,'timestamp':'t'},'timeout':30}}");
    CHECK_INT(r.status, 200);
    CHECK_HAS(r.body, "\"content\":\"in\"");
    aes_close(&a);
}

AES_TEST(aes_bad_utf8_is_422_and_bad_output_is_shown)
{
    struct aes a;

    aes_open_plain(&a, program);
    struct aes_answer r =
        aes_ask(&a, "POST", "/execute_action", "",
                STR("{\"action\":{\"action\":\"run\",\"args\":{\"command\":\"echo \xff\"}}}"));
    CHECK_INT(r.status, 422);
    CHECK_HAS(r.body, "the text is not UTF-8 here (byte 0xff)");
    aes_run(&a, &(struct run_step){0, "printf 'a\\377b\\300\\n'", .want = {"^a", "~b"}});
    r = aes_ask(&a, "POST", "/list_files", "", STR("{\"path\":\"\xff\"}"));
    CHECK_INT(r.status, 500);
    aes_close(&a);
}

AES_TEST(aes_bad_static_directory_is_an_error_one_can_read)
{
    struct aes a;

    aes_open_plain(&a, program);
    static const char *const rows[] = {"/nowhere", "relative", "/etc/passwd"};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        aes_run(&a,
                &(struct run_step){0, "pwd", ERROR, .is_static = true, .cwd = rows[i],
                                   .want = {"='cwd' must be the absolute path of a directory"}});
    aes_close(&a);
}

AES_TEST(aes_bad_body_of_100_mb_is_413_and_leaves_nothing)
{
    size_t size = 100u << 20;
    own_free char *big = malloc(size);
    struct aes a;

    aes_open_plain(&a, program);
    memset(big, 'x', size);
    int n = snprintf(big, size,
                     "{\"action\":{\"action\":\"write\",\"args\":{\"path\":\"big\",\"content\":\"");
    big[n] = 'x';
    memcpy(big + size - 4, "\"}}}", 4);
    struct aes_answer r = aes_ask(&a, "POST", "/execute_action", "", str_n(big, size));
    CHECK_INT(r.status, 413);
    CHECK_HAS(r.body, "{\"detail\":\"");
    CHECK(!aes_exists(&a, "big"));
    int fd = wire_connect(&a.wire); /* and what is said to be larger is refused unread */
    wire_send(fd, STR("POST /execute_action HTTP/1.1\r\nHost: x\r\nContent-Length: "
                      "4000000000\r\n\r\n{"));
    CHECK_INT(aes_take(&a, fd).status, 413);
    aes_run(&a, &(struct run_step){0, "echo alive", .want = {"=alive"}});
    aes_close(&a);
}

AES_TEST(aes_bad_permissions_are_told_in_the_words_of_the_contract)
{
    struct aes a;

    if (geteuid() != 0)
        SKIP("needs root, to start the server as nobody");
    CHECK_INT(chmod(test_dir(), 0777), 0); /* its socket is there */
    aes_open(&a, &(struct aes_config){
                     .program = program,
                     .wrap = ARGS("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")});
    aes_put(&a, "secret", STR("x"));
    aes_put(&a, "mine", STR("x"));
    CHECK_INT(chmod(aes_path(&a, "secret"), 0600), 0);
    const char *path = aes_path(&a, "secret");
    struct aes_answer r = aes_try_act(&a, "read", aes_text(&a, "'path':'%s'", path));
    CHECK_INT(r.status, 400);
    CHECK_STR(r.body, aes_text(&a, "{\"detail\":\"[Errno 13] Permission denied: '%s'\"}", path));
    aes_file_rows(
        &a,
        (const struct file_step[]){
            {"view", "view", "secret", /* DEF-39 */
             .want = "ERROR:\nRan into [Errno 13] Permission denied: '{}' while trying to read {}"},
            {"replace", "str_replace", "secret", .old_str = "x", .new_str = "y",
             .want = "ERROR:\nRan into [Errno 13] Permission denied: '{}' while trying to read {}",
             .after = "x"},
            {"create", "create", "new", .text = "x",
             .want = "ERROR:\nRan into [Errno 13] Permission denied: '{}' while trying to write to "
                     "{}"},
        },
        3);
    CHECK(!aes_exists(&a, "new"));
    aes_close(&a);
}

/* --- a full disk --- */

AES_TEST(aes_bad_disk_that_is_full_leaves_the_old_file_or_none)
{
    size_t size = 2u << 20;
    own_free char *big = malloc(size + 1);
    char path[300];
    struct aes a;

    snprintf(path, sizeof path, "%s/ws", test_dir());
    CHECK_INT(mkdir(path, 0755), 0);
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", path, "tmpfs", 0, "size=1m") < 0)
        SKIP("no private mount namespace here");
    aes_open_plain(&a, program);
    memset(big, 'x', size);
    big[size] = '\0';
    const char *here = aes_text(&a, "destination=%s", a.dir);
    aes_put(&a, "old", STR("old\n"));
    struct str text = str_n(big, size);
    struct str body =
        str_of(aes_text(&a,
                        "{\"action\":{\"action\":\"write\",\"args\":{\"path\":\"old\","
                        "\"content\":\"" STR_FMT "\"}}}",
                        STR_ARG(text)));
    struct aes_answer r = aes_ask(&a, "POST", "/execute_action", "", body);
    CHECK_HAS(r.body, "[Errno 28] No space left on device");
    CHECK_STR(aes_get(&a, "old"), "old\n");
    aes_file(&a, &(struct file_step){
                     "create", "create", "new", .text = big,
                     .want = "ERROR:\nRan into [Errno 28] No space left on device: '{}' while "
                             "trying to write to {}"});
    aes_file(&a,
             &(struct file_step){"insert", "insert", "old", .line = "0", .new_str = big,
                                 .want = "~[Errno 28] No space left on device", .after = "old\n"});
    r = aes_upload(&a, here, "up", str_n(big, size));
    CHECK_INT(r.status, 500);
    CHECK_HAS(r.body, "No space left on device");
    aes_run(&a, &(struct run_step){0, "ls -A", .want = {"=old"}}); /* nothing half-written */
    CHECK_INT(aes_upload(&a, here, "small", STR("fits")).status, 200);
    aes_close(&a);
}

/* What lay there before is there again. */
static void put_back(int fd, const char *dir)
{
    char path[300], from[40];

    snprintf(path, sizeof path, "%s", dir);
    snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
    for (char *at = path + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = '\0';
        mkdir(path, 0755); /* some are there */
    }
    CHECK(mkdir(path, 0755) == 0 || errno == EEXIST);
    CHECK_INT(mount(from, path, NULL, MS_BIND, NULL), 0);
}

/* A file system of its own for /tmp and /dev/shm, which hold what is the server's; the test's own
 * directory and the programs stay where they were. */
static void small_places(const char *program, const char *options)
{
    char programs[300];

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        SKIP("no private mount namespace here");
    snprintf(programs, sizeof programs, "%s", test_program(program));
    *strrchr(programs, '/') = '\0';
    own_fd own = open(test_dir(), O_PATH | O_CLOEXEC);
    own_fd built = open(programs, O_PATH | O_CLOEXEC);
    CHECK(own >= 0 && built >= 0);
    if (mount("tmpfs", "/tmp", "tmpfs", 0, options) < 0 ||
        mount("tmpfs", "/dev/shm", "tmpfs", 0, options) < 0)
        SKIP("no private mount namespace here");
    put_back(own, test_dir());
    put_back(built, programs);
}

AES_TEST(aes_bad_disk_of_the_server_that_is_full_changes_nothing_and_is_told)
{
    size_t size = 300u << 10;
    own_free char *big = malloc(size + 1);
    struct aes a;

    small_places(program, "size=64k");
    memset(big, 'x', size);
    big[size] = '\0';
    aes_open_plain(&a, program);
    aes_run(&a, &(struct run_step){0, "echo first", .want = {"=first"}});
    /* undo cannot keep the text: then it is not changed */
    aes_put(&a, "old", str_n(big, size));
    aes_file(&a, &(struct file_step){"insert", "insert", "old", .line = "0", .new_str = "y",
                                     .want = "~[Errno 28] No space left on device", .after = big});
    aes_file(&a,
             &(struct file_step){"undo", "undo_edit", "old", .want = "~No edit history found for"});
    aes_put(&a, "old", STR("old\n"));
    aes_act(
        &a, "edit",
        aes_text(&a, "'command':'insert','path':'%s/old','insert_line':0,'new_str':'y'", a.dir));
    CHECK_STR(aes_get(&a, "old"), "y\nold\n");
    /* a command that does not fit is not run in part */
    struct str body =
        str_of(aes_text(&a,
                        "{\"action\":{\"action\":\"run\",\"args\":{\"command\":\"touch ran; : %s"
                        "\"}}}",
                        big));
    struct aes_answer r = aes_ask(&a, "POST", "/execute_action", "", body);
    CHECK_HAS(r.body, "No space left on device");
    CHECK(!aes_exists(&a, "ran"));
    aes_run(&a, &(struct run_step){0, "echo after", .want = {"=after"}});
    aes_close(&a);
}

AES_TEST(aes_bad_disk_that_is_full_places_nothing_of_an_archive)
{
    char path[300];
    struct aes a;

    snprintf(path, sizeof path, "%s/ws", test_dir());
    CHECK_INT(mkdir(path, 0755), 0);
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", path, "tmpfs", 0, "size=1m") < 0)
        SKIP("no private mount namespace here");
    aes_open_plain(&a, program);
    aes_run_plain(&a, "cd .. && python3 -c \"import os, zipfile; z = zipfile.ZipFile('t.zip', 'w', "
                      "zipfile.ZIP_DEFLATED); z.writestr('old', 'new'); [z.writestr('f%d' % i, "
                      "os.urandom(3000) * 100) for i in range(5)]; z.close()\"; cd ws; echo old > "
                      "old");
    own_done(buf) zip;
    buf_init(&zip, 4u << 20);
    CHECK_OK(fd_read_file(aes_text(&a, "%s/t.zip", test_dir()), &zip));
    struct aes_answer r =
        aes_upload(&a, aes_text(&a, "destination=%s", a.dir), "t.zip", buf_str(&zip));
    CHECK(r.status == 413 || r.status == 500);
    CHECK_HAS(r.body, "the disk has ");
    aes_run(&a, &(struct run_step){0, "ls -A; cat old", .want = {"=old\nold"}});
    aes_close(&a);
}
