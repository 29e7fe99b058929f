// SPDX-License-Identifier: Apache-2.0
/* file_test.c — files as answers: ranges, conditions, and files that change while they are sent. */
#include "net/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/server.h"
#include "test/test.h"
#include "test/web.h"

static char path[300];

static fallible give(struct http_req *req)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return err_sys("open");
    struct str type = {NULL, 0};
    return file_reply(req, fd, STR("n\xc3\xa4me \".html"), type, req->query.len > 0);
}

static const struct route routes[] = {{"GET", "/f", give, 0, 0}};

static void make_file(size_t size)
{
    snprintf(path, sizeof path, "%s/file", test_dir());
    FILE *f = fopen(path, "w");
    CHECK(f != NULL);
    for (size_t i = 0; i < size; i++)
        putc((int)('a' + i % 26), f);
    fclose(f);
}

static struct web_answer ask(struct web *w, const char *headers)
{
    char req[500];

    snprintf(req, sizeof req, "GET /f HTTP/1.1\r\nHost: a\r\n%s\r\n", headers);
    return web_ask(w, str_of(req));
}

TEST(a_file_comes_whole_with_its_type_and_tag)
{
    struct web w;

    make_file(26);
    web_open(&w, WEB_ROUTES(routes), NULL, NULL);
    struct web_answer a = ask(&w, "");
    CHECK_INT(a.status, 200);
    CHECK_STR(a.body, "abcdefghijklmnopqrstuvwxyz");
    CHECK_HAS(a.head, "content-type: text/html; charset=utf-8\r\ncontent-length: 26\r\n");
    CHECK_HAS(a.head, "etag: \"");
    CHECK_HAS(a.head, "accept-ranges: bytes\r\n");
    CHECK(str_find(a.head, STR("disposition")) < 0);
    a = web_ask(&w, STR("GET /f?download HTTP/1.1\r\nHost: a\r\n\r\n"));
    CHECK_HAS(a.head, "content-disposition: attachment; filename*=UTF-8''n%C3%A4me%20%22.html\r\n");
    web_close(&w);
}

TEST(an_empty_file_is_an_empty_answer)
{
    struct web w;

    make_file(0);
    web_open(&w, WEB_ROUTES(routes), NULL, NULL);
    struct web_answer a = ask(&w, "");
    CHECK_INT(a.status, 200);
    CHECK_INT(a.body.len, 0);
    CHECK_HAS(a.head, "content-length: 0\r\n");
    CHECK_INT(ask(&w, "Range: bytes=0-\r\n").status, 416);
    web_close(&w);
}

TEST(ranges_are_given_as_asked)
{
    static const struct {
        const char *range;
        int status;
        const char *body, *head;
    } rows[] = {
        {"bytes=0-2", 206, "abc", "content-range: bytes 0-2/26\r\n"},
        {"bytes=23-", 206, "xyz", "content-range: bytes 23-25/26\r\n"},
        {"bytes=-2", 206, "yz", "content-range: bytes 24-25/26\r\n"},
        {"bytes=0-999", 206, "abcdefghijklmnopqrstuvwxyz", "content-range: bytes 0-25/26\r\n"},
        {"bytes=26-", 416, NULL, "content-range: bytes */26\r\n"},
        {"bytes=0-1,3-4", 200, "abcdefghijklmnopqrstuvwxyz", ""},
        {"nonsense", 200, "abcdefghijklmnopqrstuvwxyz", ""},
    };
    struct web w;
    char headers[200];

    make_file(26);
    web_open(&w, WEB_ROUTES(routes), NULL, NULL);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        snprintf(headers, sizeof headers, "Range: %s\r\n", rows[i].range);
        struct web_answer a = ask(&w, headers);
        CHECK_INT(a.status, rows[i].status);
        CHECK_HAS(a.head, rows[i].head);
        if (rows[i].body)
            CHECK_STR(a.body, rows[i].body);
    }
    web_close(&w);
}

/* The tag of the file, quotes included. */
static void get_etag(struct web *w, char *out, size_t size)
{
    struct str head = ask(w, "").head;
    struct str rest = str_from(head, (size_t)str_find(head, STR("etag: ")) + 6), tag;

    str_cut(&rest, '\r', &tag);
    snprintf(out, size, STR_FMT, STR_ARG(tag));
}

TEST(conditions_are_kept)
{
    static const struct {
        const char *format;
        int status;
    } rows[] = {
        {"If-None-Match: %s\r\n", 304},
        {"If-None-Match: W/%s\r\n", 304},
        {"If-None-Match: \"x\", %s\r\n", 304},
        {"If-None-Match: *\r\n%.0s", 304},
        {"If-None-Match: \"x\"\r\n%.0s", 200},
        {"If-Range: %s\r\nRange: bytes=0-0\r\n", 206},
        {"If-Range: W/%s\r\nRange: bytes=0-0\r\n", 200},
        {"If-Range: \"x\"\r\nRange: bytes=0-0\r\n%.0s", 200},
        {"If-Range: \"x\"\r\nRange: bytes=99-\r\n%.0s", 200},
        {"If-None-Match: %s\r\nRange: bytes=0-0\r\n", 304},
    };
    struct web w;
    char tag[100], headers[300];

    make_file(26);
    web_open(&w, WEB_ROUTES(routes), NULL, NULL);
    get_etag(&w, tag, sizeof tag);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(headers, sizeof headers, rows[i].format, tag);
#pragma GCC diagnostic pop
        struct web_answer a = ask(&w, headers);
        if (a.status != rows[i].status)
            FAIL("'%s': %d", headers, a.status);
        if (a.status == 304)
            CHECK_INT(a.body.len, 0);
    }
    make_file(25); /* another file now */
    snprintf(headers, sizeof headers, "If-None-Match: %s\r\n", tag);
    CHECK_INT(ask(&w, headers).status, 200);
    web_close(&w);
}

TEST(head_tells_the_length_and_ignores_ranges)
{
    struct web w;
    struct web_client c;

    make_file(26);
    web_open(&w, WEB_ROUTES(routes), NULL, NULL);
    web_connect(&w, &c, 4096);
    CHECK(web_send(&w, &c, STR("HEAD /f HTTP/1.1\r\nHost: a\r\nRange: bytes=0-0\r\n\r\n")));
    web_read(&w, &c);
    CHECK_HAS(str_n(c.p, c.len), "HTTP/1.1 200 OK\r\n");
    CHECK_HAS(str_n(c.p, c.len), "content-length: 26\r\n");
    CHECK(str_ends(str_n(c.p, c.len), STR("\r\n\r\n")));
    c.len = 0;
    CHECK(web_send(&w, &c, STR("GET /f HTTP/1.1\r\nHost: a\r\n\r\n")));
    CHECK_INT(web_take(&w, &c).body.len, 26);
    web_close_client(&c);
    web_close(&w);
}

TEST(what_is_not_a_file_is_refused)
{
    struct web w;
    unsigned fds;

    web_open(&w, WEB_ROUTES(routes), NULL, NULL);
    snprintf(path, sizeof path, "%s", test_dir());
    fds = test_open_fds();
    CHECK_INT(ask(&w, "").status, 400);
    snprintf(path, sizeof path, "/dev/zero");
    CHECK_INT(ask(&w, "").status, 400);
    CHECK_INT(test_open_fds(), fds);
    web_close(&w);
}

TEST(a_large_file_arrives_whole_and_nothing_stays_open)
{
    struct web w;
    struct web_client c;
    unsigned fds;

    make_file(5000000);
    web_open(&w, WEB_ROUTES(routes), NULL, NULL);
    fds = test_open_fds();
    web_connect(&w, &c, 6000000);
    CHECK(web_send(&w, &c, STR("GET /f HTTP/1.1\r\nHost: a\r\n\r\n")));
    struct web_answer a = web_take(&w, &c);
    CHECK_INT(a.body.len, 5000000);
    for (size_t i = 0; i < a.body.len; i++)
        if (a.body.p[i] != (char)('a' + i % 26))
            FAIL("byte %zu differs", i);
    CHECK(web_send(&w, &c, STR("GET /f HTTP/1.1\r\nHost: a\r\n\r\n")));
    web_turns(&w, 2);
    web_close_client(&c); /* in the middle of it */
    web_turns(&w, 4);
    CHECK_INT(test_open_fds(), fds);
    web_close(&w);
}

TEST(a_file_that_shrinks_while_it_is_sent_cuts_the_connection)
{
    struct web w;
    struct web_client c;
    unsigned fds = test_open_fds();

    make_file(5000000);
    web_open(&w, WEB_ROUTES(routes), NULL, NULL);
    web_connect(&w, &c, 6000000);
    CHECK(web_send(&w, &c, STR("GET /f HTTP/1.1\r\nHost: a\r\n\r\n")));
    web_turns(&w, 2);
    CHECK_INT(truncate(path, 1000), 0);
    web_read(&w, &c);
    CHECK(c.eof || c.errnum);
    CHECK(c.len < 5000000);
    web_close_client(&c);
    web_close(&w);
    CHECK_INT(test_open_fds(), fds);
}

TEST(types_are_guessed_from_names)
{
    CHECK_STR(file_type_of(STR("a.html")), "text/html; charset=utf-8");
    CHECK_STR(file_type_of(STR("a.tar.GZ")), "application/gzip");
    CHECK_STR(file_type_of(STR(".html")), "application/octet-stream");
    CHECK_STR(file_type_of(STR("html")), "application/octet-stream");
    CHECK_STR(file_type_of(STR("")), "application/octet-stream");
}
