// SPDX-License-Identifier: Apache-2.0
/* upload_test.c — forms to a directory; nothing is left of those that fail. */
#include "net/upload.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "test/test.h"

#define TYPE        STR("multipart/form-data; boundary=B")
#define FIELD(n, v) "--B\r\nContent-Disposition: form-data; name=\"" n "\"\r\n\r\n" v "\r\n"
#define FILE_(n, f, v)                                                                             \
    "--B\r\nContent-Disposition: form-data; name=\"" n "\"; filename=\"" f                         \
    "\"\r\nContent-Type: application/octet-stream\r\n\r\n" v "\r\n"
#define END "--B--\r\n"

static struct err *send_form(const struct upload_config *config, struct str body, size_t piece,
                             struct upload **ret)
{
    own(upload) u = NULL;

    TRY(upload_new(TYPE, config, &u));
    for (; body.len; body = str_from(body, piece))
        TRY(upload_feed(u, str_first(body, piece)));
    TRY(upload_end(u));
    *ret = take(&u);
    return NULL;
}

static unsigned files_in_dir(void)
{
    unsigned n = 0;
    DIR *d = opendir(test_dir());

    CHECK(d != NULL);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

static void check_file(int dir, const char *name, const char *want)
{
    own_fd fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    own_done(buf) got;

    buf_init(&got, 1 << 20);
    if (fd < 0)
        FAIL("no file '%s'", name);
    CHECK_OK(fd_read_all(fd, &got));
    CHECK_STR(buf_str(&got), want);
}

TEST(files_go_to_the_directory_and_fields_to_memory)
{
    own_fd dir = test_dir_fd();
    struct upload_config config = {.dir = dir};

    for (size_t piece = 1; piece < 40; piece += 3) {
        own(upload) u = NULL;
        CHECK_OK(send_form(&config,
                           STR(FIELD("path", "/workspace") FILE_("f", "one.txt", "1\r\n2")
                                   FIELD("path", "second") FILE_("f", "two", "") END),
                           piece, &u));
        CHECK_STR(upload_field(u, STR("path")), "/workspace");
        CHECK(upload_field(u, STR("none")).p == NULL);
        CHECK_STR(upload_fields(u)->next->value, "second");
        const struct upload_file *f = upload_files(u);
        CHECK_STR(f->name, "one.txt");
        CHECK_STR(f->field, "f");
        CHECK_STR(f->content_type, "application/octet-stream");
        CHECK_INT(f->size_bytes, 4);
        CHECK_STR(f->next->name, "two");
        CHECK(f->next->next == NULL);
        check_file(dir, "one.txt", "1\r\n2");
        check_file(dir, "two", "");
        CHECK_INT(files_in_dir(), 2);
    }
}

TEST(hostile_names_stay_inside_the_directory)
{
    own_fd dir = test_dir_fd();
    struct upload_config config = {.dir = dir};
    struct upload *u;

    CHECK_OK(send_form(&config,
                       STR(FILE_("a", "../../etc/passwd", "1") FILE_("b", "C:\\\\x", "2")
                               FILE_("c", "/abs/olute", "3") END),
                       7, &u));
    upload_free(u);
    check_file(dir, "passwd", "1");
    check_file(dir, "x", "2");
    check_file(dir, "olute", "3");
    CHECK_ERR(send_form(&config, STR(FILE_("a", "..", "1") END), 9, &u), ERR_INVALID, "directory");
    CHECK_ERR(send_form(&config, STR(FILE_("a", "x\0y", "1") END), 9, &u), ERR_INVALID, "control");
    CHECK_ERR(send_form(&config, STR(FILE_("a", "", "1") END), 9, &u), ERR_INVALID,
              "without a name");
    CHECK_ERR(send_form(&config, STR(FILE_("a", "x", "1") FILE_("b", "x", "1") END), 9, &u),
              ERR_INVALID, "sent twice");
    CHECK_INT(files_in_dir(), 3);
}

TEST(an_empty_file_input_is_no_file)
{
    own_fd dir = test_dir_fd();
    struct upload_config config = {.dir = dir};
    own(upload) u = NULL;

    CHECK_OK(send_form(&config, STR(FILE_("a", "", "") FIELD("b", "2") END), 9, &u));
    CHECK(upload_files(u) == NULL);
    CHECK_STR(upload_field(u, STR("b")), "2");
    CHECK_INT(files_in_dir(), 0);
}

TEST(a_link_with_the_name_of_a_file_is_replaced_not_followed)
{
    own_fd dir = test_dir_fd();
    struct upload_config config = {.dir = dir};
    own(upload) u = NULL;
    struct stat st;

    CHECK(symlinkat("/nonexistent/target", dir, "a") == 0);
    CHECK_OK(send_form(&config, STR(FILE_("f", "a", "new") END), 9, &u));
    CHECK(fstatat(dir, "a", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode));
    check_file(dir, "a", "new");
}

TEST(limits_are_named_and_leave_nothing)
{
    own_fd dir = test_dir_fd();
    struct upload_config config = {.dir = dir, .file_bytes = 4, .field_bytes = 6};
    struct upload *u;

    CHECK_OK(send_form(
        &config, STR(FILE_("f", "a", "1234") FIELD("x", "123") FIELD("y", "456") END), 100, &u));
    upload_free(u);
    for (size_t piece = 1; piece < 200; piece += 9) {
        CHECK_ERR(send_form(&config, STR(FILE_("f", "b", "12345") END), piece, &u), ERR_TOO_LARGE,
                  "over 4 bytes");
        CHECK_ERR(send_form(&config, STR(FIELD("x", "1234") FIELD("y", "567") END), piece, &u),
                  ERR_TOO_LARGE, "at most 6 bytes");
    }
    CHECK_INT(files_in_dir(), 1);
}

TEST(a_form_that_stops_early_leaves_nothing)
{
    own_fd dir = test_dir_fd();
    struct upload_config config = {.dir = dir};
    struct str body = STR(FILE_("f", "a", "1234") FILE_("g", "b", "5678"));
    struct upload *u;
    unsigned fds = test_open_fds();

    for (size_t n = 0; n <= body.len; n++)
        CHECK_ERR(send_form(&config, str_first(body, n), 5, &u), ERR_INVALID, "stops before");
    CHECK_INT(files_in_dir(), 0);
    CHECK_INT(test_open_fds(), fds);
}

TEST(a_directory_in_the_way_is_an_error_and_leaves_nothing_else)
{
    own_fd dir = test_dir_fd();
    struct upload_config config = {.dir = dir};
    struct upload *u;

    CHECK(mkdirat(dir, "a", 0700) == 0);
    CHECK_ERR(send_form(&config, STR(FILE_("f", "a", "1") FILE_("g", "b", "2") END), 50, &u),
              ERR_INVALID, "name file 'a'");
    CHECK_INT(files_in_dir(), 1);
}

TEST(a_full_disk_is_a_clean_error)
{
    own_fd dir = test_dir_fd();
    struct upload_config config = {.dir = dir};
    unsigned n = 0, fds = test_open_fds();
    bool full = false;

    for (;;) {
        struct upload *u = NULL;
        fault_at(++n);
        struct err *e =
            send_form(&config, STR(FIELD("x", "y") FILE_("f", "a", "1234") END), 50, &u);
        bool fired = fault_fired();
        fault_at(0);
        full |= e && strstr(err_text(e), "No space left");
        CHECK(fired ? e != NULL : e == NULL);
        err_free(e);
        upload_free(u);
        CHECK_INT(test_open_fds(), fds);
        CHECK_INT(files_in_dir(), fired ? 0 : 1);
        if (!fired)
            break;
    }
    CHECK(full);
    CHECK(n > 5);
}
