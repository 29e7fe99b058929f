// SPDX-License-Identifier: Apache-2.0
/* http_body_test.c — chunks, trailers, counted bodies and ranges, whole and byte by byte. */
#include <stdio.h>

#include "net/http.h"
#include "test/test.h"

struct row {
    const char *name;
    struct str bytes;
    int status;              /* 0: accepted */
    const char *body, *rest; /* rest NULL: not done at the end of bytes */
};

#define OK(name, bytes, body, rest)                                                                \
    {                                                                                              \
        name, STR_INIT(bytes), 0, body, rest                                                       \
    }
#define NO(name, bytes)                                                                            \
    {                                                                                              \
        name, STR_INIT(bytes), 400, NULL, NULL                                                     \
    }
#define X256                                                                                       \
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"                             \
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"                             \
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"                             \
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static const struct row chunked[] = {
    OK("empty", "0\r\n\r\n", "", ""),
    OK("one", "5\r\nhello\r\n0\r\n\r\n", "hello", ""),
    OK("two", "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", "hello", ""),
    OK("hex", "A\r\n0123456789\r\n0a\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789", ""),
    OK("zeros", "0005\r\nhello\r\n000\r\n\r\n", "hello", ""),
    OK("CRLF in data", "4\r\n\r\n\r\n\r\n0\r\n\r\n", "\r\n\r\n", ""),
    OK("extension", "5;a=b\r\nhello\r\n0;c\r\n\r\n", "hello", ""),
    OK("empty extension", "5;\r\nhello\r\n0\r\n\r\n", "hello", ""),
    OK("quoted extension", "5;a=\"b;c\"\r\nhello\r\n0\r\n\r\n", "hello", ""),
    OK("trailer", "0\r\nX: y\r\nZ:\r\n\r\n", "", ""),
    OK("the next request is left", "1\r\na\r\n0\r\n\r\nGET /", "a", "GET /"),
    OK("an LF behind the end is the next one's", "0\r\n\r\n\n", "", "\n"),
    OK("not yet", "5\r\nhel", "hel", NULL),
    OK("no last chunk", "5\r\nhello\r\n", "hello", NULL),
    OK("no end of trailers", "0\r\n", "", NULL),
    OK("half an end", "0\r\n\r", "", NULL),
    NO("no size", "\r\nhello\r\n0\r\n\r\n"),
    NO("no size but extension", ";a\r\n\r\n"),
    NO("sign", "+5\r\nhello\r\n0\r\n\r\n"),
    NO("minus", "-5\r\nhello\r\n0\r\n\r\n"),
    NO("0x", "0x5\r\nhello\r\n0\r\n\r\n"),
    NO("0x0", "0x0\r\n\r\n"),
    NO("g", "g\r\n\r\n"),
    NO("underscore", "1_0\r\n\r\n"),
    NO("space before", " 5\r\nhello\r\n0\r\n\r\n"),
    NO("space behind", "5 \r\nhello\r\n0\r\n\r\n"),
    NO("tab behind", "5\t\r\nhello\r\n0\r\n\r\n"),
    NO("space before the extension", "5 ;a\r\nhello\r\n0\r\n\r\n"),
    NO("overflow", "10000000000000005\r\nhello\r\n0\r\n\r\n"),
    NO("2^64", "10000000000000000\r\n\r\n"),
    NO("all ones", "ffffffffffffffff\r\n\r\n"),
    NO("bare LF behind the size", "5\nhello\r\n0\r\n\r\n"),
    NO("CR without LF", "5\rhello\r\n0\r\n\r\n"),
    NO("CR in the extension", "5;a\rb\r\nhello\r\n0\r\n\r\n"),
    NO("LF in the extension", "5;a\nb\r\nhello\r\n0\r\n\r\n"),
    NO("NUL in the extension", "5;a\0b\r\nhello\r\n0\r\n\r\n"),
    NO("long extension", "5;" X256 "\r\nhello\r\n0\r\n\r\n"),
    NO("zeros without end", X256 X256),
    NO("longer than said", "4\r\nhello\r\n0\r\n\r\n"),
    NO("shorter than said", "6\r\nhello\r\n0\r\n\r\n"),
    NO("LF behind the data", "5\r\nhello\n0\r\n\r\n"),
    NO("nothing behind the data", "5\r\nhello0\r\n\r\n"),
    NO("LF ends the trailers", "0\r\n\n"),
    NO("LF ends a trailer", "0\r\nX: y\n\r\n"),
    NO("folded trailer", "0\r\nX: y\r\n z\r\n\r\n"),
    NO("trailer without name", "0\r\n: y\r\n\r\n"),
    NO("trailer without colon", "0\r\nX\r\n\r\n"),
    NO("space before the colon", "0\r\nX : y\r\n\r\n"),
    NO("NUL in a trailer", "0\r\nX: \0\r\n\r\n"),
    NO("CR in a trailer", "0\r\nX: a\rb\r\n\r\n"),
    NO("a request in the trailers", "0\r\nGET /admin HTTP/1.1\r\nHost: a\r\n\r\n"),
};

static const struct row counted[] = {
    /* of five bytes */
    OK("exact", "hello", "hello", ""),
    OK("with the next", "helloGET /", "hello", "GET /"),
    OK("short", "hel", "hel", NULL),
    OK("binary", "\0\r\n\r\n", "\0\r\n\r\n", ""),
};

/* Fed in pieces of step bytes, as they come from a socket that keeps what was not taken. */
static void check_row(const struct row *row, const struct http_head *head, size_t step)
{
    struct http_body b;
    struct buf got;
    struct err *e = NULL;
    size_t at = 0;

    buf_init(&got, 1u << 20);
    http_body_init(&b, head);
    while (!e && !b.done && at < row->bytes.len) {
        struct str in = str_first(str_from(row->bytes, at), step), piece, before = in;
        while (!e && !b.done && in.len) {
            e = http_body_next(&b, &in, &piece);
            CHECK(!piece.len || (piece.p >= before.p && piece.p + piece.len <= in.p));
            buf_add(&got, piece);
        }
        at += before.len - in.len;
    }
    int status = e ? err_http_status(err_code(e)) : 0;
    if (status != row->status)
        FAIL("'%s' in steps of %zu: %d (%s)", row->name, step, status, e ? err_text(e) : "taken");
    err_free(e);
    if (!row->status) {
        size_t len = row->rest ? row->bytes.len : 0;
        CHECK_INT(b.done, row->rest != NULL);
        if (row->rest)
            CHECK_STR(str_from(row->bytes, at), str_from(row->bytes, len - strlen(row->rest)));
        if (strlen(row->body) || !got.len)
            CHECK_STR(buf_str(&got), row->body);
        e = http_body_eof(&b);
        CHECK_INT(e != NULL, row->rest == NULL);
        err_free(e);
    }
    buf_done(&got);
}

TEST(chunked_bodies_are_read_strictly)
{
    struct http_head h = {.framing = HTTP_CHUNKED};

    for (size_t i = 0; i < ARRAY_LEN(chunked); i++)
        for (size_t step = 1; step < 8; step++)
            check_row(&chunked[i], &h, step == 7 ? 4096 : step);
}

TEST(counted_bodies_end_where_they_said)
{
    struct http_head h = {.framing = HTTP_LENGTH, .length = 5};

    for (size_t i = 0; i < ARRAY_LEN(counted); i++)
        for (size_t step = 1; step < 8; step++)
            check_row(&counted[i], &h, step);
}

TEST(a_body_until_close_ends_with_the_connection)
{
    struct http_head h = {.framing = HTTP_UNTIL_CLOSE};
    struct http_body b;
    struct str in = STR("anything\r\n"), piece;

    http_body_init(&b, &h);
    CHECK_OK(http_body_next(&b, &in, &piece));
    CHECK_STR(piece, "anything\r\n");
    CHECK(!b.done && !in.len);
    CHECK_OK(http_body_eof(&b));
    CHECK(b.done);
}

TEST(trailers_have_a_limit)
{
    struct http_head h = {.framing = HTTP_CHUNKED};
    struct http_body b;
    struct str in = STR("0\r\n"), piece;
    struct err *e = NULL;
    int lines = 0;

    http_body_init(&b, &h);
    CHECK_OK(http_body_next(&b, &in, &piece));
    for (; !e && lines < 10000; lines++) {
        in = STR("X-Trailer: 0123456789\r\n");
        e = http_body_next(&b, &in, &piece);
    }
    CHECK_ERR(e, ERR_HEADERS_TOO_LARGE, "trailers");
    CHECK(lines > 300 && lines < 400);
}

TEST(a_chunk_head_is_hexadecimal)
{
    char out[20];

    CHECK_STR(str_n(out, http_chunk_head(0x1a2f, out)), "1a2f\r\n");
    CHECK_STR(str_n(out, http_chunk_head(SIZE_MAX, out)), "ffffffffffffffff\r\n");
}

static const struct {
    const char *value;
    uint64_t size;
    enum http_range kind;
    uint64_t from, len;
} ranges[] = {
    {"bytes=0-4", 10, HTTP_RANGE_OK, 0, 5},
    {"bytes=0-0", 10, HTTP_RANGE_OK, 0, 1},
    {"bytes=9-9", 10, HTTP_RANGE_OK, 9, 1},
    {"bytes=5-", 10, HTTP_RANGE_OK, 5, 5},
    {"bytes=0-", 10, HTTP_RANGE_OK, 0, 10},
    {"bytes=0-99", 10, HTTP_RANGE_OK, 0, 10},
    {"bytes=9-18446744073709551615", 10, HTTP_RANGE_OK, 9, 1},
    {"bytes=-3", 10, HTTP_RANGE_OK, 7, 3},
    {"bytes=-10", 10, HTTP_RANGE_OK, 0, 10},
    {"bytes=-99", 10, HTTP_RANGE_OK, 0, 10},
    {"bytes=-18446744073709551615", 10, HTTP_RANGE_OK, 0, 10},
    {"bytes=10-", 10, HTTP_RANGE_BAD, 0, 0},
    {"bytes=10-20", 10, HTTP_RANGE_BAD, 0, 0},
    {"bytes=-0", 10, HTTP_RANGE_BAD, 0, 0},
    {"bytes=0-", 0, HTTP_RANGE_BAD, 0, 0},
    {"bytes=-1", 0, HTTP_RANGE_BAD, 0, 0},
    {"bytes=4-3", 10, HTTP_RANGE_NONE, 0, 0},
    {"bytes=", 10, HTTP_RANGE_NONE, 0, 0},
    {"bytes=-", 10, HTTP_RANGE_NONE, 0, 0},
    {"bytes=a-b", 10, HTTP_RANGE_NONE, 0, 0},
    {"bytes=1", 10, HTTP_RANGE_NONE, 0, 0},
    {"bytes=0-1,3-4", 10, HTTP_RANGE_NONE, 0, 0},
    {"bytes=+1-2", 10, HTTP_RANGE_NONE, 0, 0},
    {"bytes= 1-2", 10, HTTP_RANGE_NONE, 0, 0},
    {"bytes=1-2 ", 10, HTTP_RANGE_NONE, 0, 0},
    {"bytes=--1", 10, HTTP_RANGE_NONE, 0, 0},
    {"bytes=1-2-3", 10, HTTP_RANGE_NONE, 0, 0},
    {"bytes=18446744073709551616-", 10, HTTP_RANGE_NONE, 0, 0},
    {"lines=0-4", 10, HTTP_RANGE_NONE, 0, 0},
    {"", 10, HTTP_RANGE_NONE, 0, 0},
};

TEST(ranges_are_read_or_ignored)
{
    for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
        uint64_t from = 0, len = 0;
        enum http_range kind =
            http_parse_range(str_of(ranges[i].value), ranges[i].size, &from, &len);
        if (kind != ranges[i].kind || from != ranges[i].from || len != ranges[i].len)
            FAIL("'%s' of %llu: kind %d, %llu+%llu", ranges[i].value,
                 (unsigned long long)ranges[i].size, (int)kind, (unsigned long long)from,
                 (unsigned long long)len);
    }
}
