// SPDX-License-Identifier: Apache-2.0
/* aes_files_test.c — read and write (sections 5.1 to 5.4), listing, upload and download (1.6)
 * through HTTP. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/aes_file.h"
#include "test/aes_run.h"

#define FIVE "1\n2\n3\n4\n5\n"

static const struct file_step reads[] = {
    {"(0,-1)", "read", "five", .put = FIVE, .window = "0,-1", .want = FIVE},
    {"(2,-1)", "read", "five", .window = "2,-1", .want = "3\n4\n5\n"},
    {"(0,2)", "read", "five", .window = "0,2", .want = "1\n2\n"},
    {"(3,3)", "read", "five", .window = "3,3", .want = "4\n"},
    {"(4,5)", "read", "five", .window = "4,5", .want = "4\n5\n"},
    {"(9,-1)", "read", "five", .window = "9,-1", .want = ""},
    {"(9,12)", "read", "five", .window = "9,12", .want = "4\n5\n"},
    {"(2,0)", "read", "five", .window = "2,0", .want = "3\n"},
    {"(0,0)", "read", "five", .window = "0,0", .want = "1\n"},
    {"newlines", "read", "crlf", .put = "a\r\nb\rc\n", .want = "a\nb\nc\n"},
    {"empty", "read", "none", .put = "", .want = ""},
    {"a directory", "read", .path = "/tmp", .error = true,
     .want = "Path is a directory: /tmp. You can only read files"},
    {"not UTF-8", "read", "latin", .put = "caf\xe9 au lait\n", .error = true,
     .want = "File could not be decoded as utf-8: {}."},
};

AES_TEST(aes_files_rows_of_read)
{
    struct aes a;

    aes_open_plain(&a, program);
    aes_file_rows(&a, reads, ARRAY_LEN(reads));
    const char *want =
        aes_text(&a, "File not found: {}. Your current working directory is %s.", a.dir);
    aes_file(&a, &(struct file_step){"missing", "read", "gone", .error = true, .want = want});
    aes_run_plain(&a, "mkdir sub && cd sub && echo here > f"); /* relative to the shell */
    const char *seen = aes_path(&a, "sub/f");
    aes_file(&a,
             &(struct file_step){"relative", "read", .path = "f", .seen = seen, .want = "here\n"});
    seen = aes_path(&a, "sub/../five");
    aes_file(&a, &(struct file_step){"normalised", "read", .path = ".//../five", .seen = seen,
                                     .want = FIVE});
    aes_close(&a);
}

AES_TEST(aes_files_reads_media_as_data_urls)
{
    static const struct {
        const char *name, *url;
    } rows[] = {
        {"a.png", "data:image/png;base64,AP//"},   {"a.jpg", "data:image/jpeg;base64,AP//"},
        {"a.JPEG", "data:image/jpeg;base64,AP//"}, {"a.bmp", "data:image/bmp;base64,AP//"},
        {"a.gif", "data:image/gif;base64,AP//"},   {"a.pdf", "data:application/pdf;base64,AP//"},
        {"a.mp4", "data:video/mp4;base64,AP//"},   {"a.webm", "data:video/webm;base64,AP//"},
        {"a.mp3", "data:audio/mpeg;base64,AP//"},  {"a.flac", "data:audio/flac;base64,AP//"},
    };
    struct aes a;

    aes_open_plain(&a, program);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) { /* DEF-8: by absolute path too */
        aes_put(&a, rows[i].name, STR("\0\xff\xff"));
        aes_file(&a, &(struct file_step){"media", "read", rows[i].name, .want = rows[i].url});
    }
    aes_put(&a, "a.bin", STR("\0\xff\xff"));
    aes_file(&a, &(struct file_step){"other binary", "read", "a.bin", .error = true,
                                     .want = "ERROR_BINARY_FILE"});
    aes_put(&a, "a.pyc", STR("text"));
    aes_file(&a, &(struct file_step){"by name", "read", "a.pyc", .error = true,
                                     .want = "ERROR_BINARY_FILE"});
    aes_close(&a);
}

static const struct file_step writes[] = {
    {"a newline is added", "write", "w", .text = "a", .after = "a\n"},
    {"always", "write", "w", .text = "a\n", .after = "a\n\n"},
    {"read back", "write", "w", .text = "echo \"Hello, World!\"", .want = ""},
    {"read back", "read", "w", .want = "echo \"Hello, World!\"\n"},
    {"empty", "write", "w", .text = "", .after = "\n"},
    {"all of it", "write", "w", .put = FIVE, .text = "x", .after = "x\n"},
    {"(2,-1)", "write", "w", .put = FIVE, .text = "x", .window = "2,-1", .after = "1\n2\nx\n"},
    {"(1,2)", "write", "w", .put = FIVE, .text = "x", .window = "1,2", .after = "1\nx\n3\n4\n5\n"},
    {"(2,2)", "write", "w", .put = FIVE, .text = "x", .window = "2,2",
     .after = "1\n2\nx\n3\n4\n5\n"},
    {"old is not UTF-8", "write", "latin", .put = "caf\xe9\n", .text = "x", .error = true,
     .want = "File could not be decoded as utf-8: {}", .after = "caf\xe9\n"},
    {"a directory", "write", .path = "/tmp", .text = "x", .error = true,
     .want = "Path is a directory: /tmp. You can only write to files"},
    {"parents are made", "write", "new/deep/f", .text = "x", .after = "x\n"},
};

AES_TEST(aes_files_rows_of_write)
{
    struct aes a;
    struct stat st;

    aes_open_plain(&a, program);
    aes_file_rows(&a, writes, ARRAY_LEN(writes));
    CHECK(stat(aes_path(&a, "new/deep/f"), &st) == 0);
    CHECK_INT(st.st_mode & 07777, 0664);
    CHECK_INT(st.st_uid, geteuid());
    CHECK(chmod(aes_path(&a, "w"), 0751) == 0);
    aes_file(&a, &(struct file_step){"keeps its mode", "write", "w", .text = "y"});
    CHECK(stat(aes_path(&a, "w"), &st) == 0);
    CHECK_INT(st.st_mode & 07777, 0751);
    aes_run_plain(&a, "cd new");
    const char *seen = aes_path(&a, "new/rel");
    aes_file(&a,
             &(struct file_step){"relative", "write", .path = "rel", .seen = seen, .text = "r"});
    CHECK_STR(aes_get(&a, "new/rel"), "r\n");
    aes_close(&a);
}

/* --- transfers --- */

static struct aes_answer list(struct aes *a, const char *quoted)
{
    return aes_ask_post(a, "/list_files", quoted);
}

AES_TEST(aes_files_are_listed)
{
    struct aes a;

    aes_open_plain(&a, program);
    aes_run_plain(&a, "mkdir Beta alpha .hid && touch b.txt A.txt .env && ln -s nowhere gone && ln "
                      "-s alpha zlink && cd alpha && touch inner");
    static const char all[] = "[\".hid/\",\"alpha/\",\"Beta/\",\"zlink/\",\".env\",\"A.txt\","
                              "\"b.txt\"]";
    CHECK_STR(list(&a, "{}").body, all); /* the working directory, not the shell's */
    CHECK_STR(list(&a, "{'path':null}").body, all);
    CHECK_STR(list(&a, aes_text(&a, "{'path':'%s'}", a.dir)).body, all);
    CHECK_STR(list(&a, "{'path':'alpha'}").body, "[\"inner\"]");
    static const char *const nothing[] = {"{'path':'gone'}", "{'path':'b.txt'}", "{'path':'no'}"};
    for (size_t i = 0; i < ARRAY_LEN(nothing); i++) {
        CHECK_INT(list(&a, nothing[i]).status, 200);
        CHECK_STR(list(&a, nothing[i]).body, "[]");
    }
    struct aes_answer r = list(&a, "no json");
    CHECK_INT(r.status, 500);
    CHECK_STR(r.body, "{\"detail\":\"An unexpected error occurred. Please try again later.\"}");
    aes_close(&a);
}

AES_TEST(aes_files_are_uploaded)
{
    struct aes a;

    aes_open_plain(&a, program);
    const char *here = aes_text(&a, "destination=%s", a.dir);
    struct aes_answer r = aes_upload(&a, here, "a.txt", STR("one\n"));
    CHECK_INT(r.status, 200);
    CHECK_STR(r.body, aes_text(&a,
                               "{\"filename\":\"a.txt\",\"destination\":\"%s\",\"recursive\":"
                               "false}",
                               a.dir));
    CHECK_STR(aes_get(&a, "a.txt"), "one\n");
    CHECK_INT(aes_upload(&a, here, "a.txt", STR("two")).status, 200);
    CHECK_STR(aes_get(&a, "a.txt"), "two");
    CHECK_INT(aes_upload(&a, aes_text(&a, "%s/x/y", here), "n", STR("n")).status, 200);
    CHECK_STR(aes_get(&a, "x/y/n"), "n");
    r = aes_upload(&a, "destination=relative", "f", STR("x"));
    CHECK_INT(r.status, 400);
    CHECK_STR(r.body, "{\"detail\":\"Destination must be an absolute path\"}");
    r = aes_upload(&a, aes_text(&a, "%s&recursive=true", here), "f.tar", STR("x"));
    CHECK_INT(r.status, 400);
    CHECK_STR(r.body, "{\"detail\":\"Recursive uploads must be zip files\"}");
    r = aes_upload(&a, aes_text(&a, "%s&recursive=perhaps", here), "f.zip", STR("x"));
    CHECK_INT(r.status, 422);
    CHECK_HAS(r.body, "{\"detail\":\"Invalid request parameters\",\"errors\":\"[{'type': "
                      "'bool_parsing', 'loc': ('query', 'recursive'), 'msg': ");
    r = aes_ask(&a, "POST", "/upload_file", "Content-Type: multipart/form-data; boundary=b\r\n",
                STR("--b--\r\n"));
    CHECK_INT(r.status, 422);
    CHECK_HAS(r.body, "'type': 'missing', 'loc': ('body', 'file'), 'msg': 'Field required'");
    CHECK_INT(aes_upload(&a, here, "../../up", STR("x")).status, 200); /* DEF-2 */
    CHECK_STR(aes_get(&a, "up"), "x");
    CHECK_STR(list(&a, "{}").body, "[\"x/\",\"a.txt\",\"up\"]");
    aes_close(&a);
}

AES_TEST(aes_files_are_downloaded_as_a_zip)
{
    struct aes a;

    aes_open_plain(&a, program);
    aes_run_plain(&a,
                  "mkdir -p tree/sub/empty && echo 1 > tree/a && echo 2 > tree/sub/b && ln -s a "
                  "tree/link && ln -s sub tree/dirlink");
    struct aes_answer r = aes_ask_get(&a, aes_text(&a, "/download_files?path=%s/tree", a.dir));
    CHECK_INT(r.status, 200);
    CHECK_HAS(r.head, "content-type: application/zip");
    CHECK_HAS(r.head, "content-disposition: attachment; filename=\"tree.zip\"");
    aes_put(&a, "got.zip", r.body);
    aes_run(&a, &(struct run_step){0, "unzip -Z1 got.zip | LC_ALL=C sort",
                                   .want = {"=a\nlink\nsub/b"}});
    aes_run(&a, &(struct run_step){0, "unzip -p got.zip link sub/b", .want = {"=1\n2"}});
    aes_run(&a, &(struct run_step){0, "unzip -Zl got.zip", .want = {"~ stor ", "! defN "}});
    r = aes_ask_get(&a, aes_text(&a, "/download_files?path=%s/tree/a", a.dir)); /* DEF-3 */
    CHECK_HAS(r.head, "filename=\"a.zip\"");
    aes_put(&a, "one.zip", r.body);
    aes_run(&a, &(struct run_step){0, "unzip -Z1 one.zip; unzip -p one.zip a", .want = {"=a\n1"}});
    r = aes_ask_get(&a, "/download_files?path=tree");
    CHECK_INT(r.status, 400);
    CHECK_STR(r.body, "{\"detail\":\"Path must be an absolute path\"}");
    r = aes_ask_get(&a, "/download_files?path=/no/such");
    CHECK_INT(r.status, 404);
    CHECK_STR(r.body, "{\"detail\":\"File not found\"}");
    r = aes_ask_get(&a, "/download_files");
    CHECK_INT(r.status, 422);
    CHECK_STR(r.body, "{\"detail\":\"Invalid request parameters\",\"errors\":\"[{'type': "
                      "'missing', 'loc': ('query', 'path'), 'msg': 'Field required', 'input': "
                      "None}]\"}");
    aes_close(&a);
}
