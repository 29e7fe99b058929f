// SPDX-License-Identifier: Apache-2.0
/* http_test.c — what a head may be and what is refused; each row is read whole and byte by byte.
 * Bodies are in http_body_test.c. */
#include "net/http.h"

#include <stdio.h>
#include <stdlib.h>

#include "test/test.h"

#define HOST "Host: a\r\n"
#define GET  "GET / HTTP/1.1\r\n" HOST
#define POST "POST / HTTP/1.1\r\n" HOST
#define OLD  "POST / HTTP/1.0\r\n" HOST
#define END  "\r\n"

enum { NONE = HTTP_NO_BODY, LEN = HTTP_LENGTH, CHUNKED = HTTP_CHUNKED, CLOSE = HTTP_UNTIL_CLOSE };
enum { KEEP = 1, EXPECT = 2, UPGRADE = 4 };

struct row {
    const char *name;
    struct str bytes;
    int status; /* 0: accepted */
    int framing;
    unsigned flags;
    uint64_t length;
    const char *method; /* of the request, for responses */
};

/* OK(name, bytes, framing, flags [, length [, method]]) */
#define OK(name, bytes, framing, ...) OK_(name, bytes, framing, __VA_ARGS__, 0, NULL, )
#define OK_(name, bytes, framing, flags, length, method, ...)                                      \
    {                                                                                              \
        name, STR_INIT(bytes), 0, framing, flags, length, method                                   \
    }
#define NO(name, bytes, status)                                                                    \
    {                                                                                              \
        name, STR_INIT(bytes), status, 0, 0, 0, NULL                                               \
    }

static const struct row request_lines[] = {
    OK("plain", GET END, NONE, KEEP),
    OK("1.0 closes", "GET / HTTP/1.0\r\n" END, NONE, 0),
    OK("1.0 keep-alive", "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n" END, NONE, KEEP),
    OK("unknown method", "BREW /pot HTTP/1.1\r\n" HOST END, NONE, KEEP),
    OK("lower-case method is a method", "get / HTTP/1.1\r\n" HOST END, NONE, KEEP),
    OK("method of odd tokens", "M-S!#$%&'*+.^_`|~ / HTTP/1.1\r\n" HOST END, NONE, KEEP),
    OK("query", "GET /a?b=c&d=%20 HTTP/1.1\r\n" HOST END, NONE, KEEP),
    OK("absolute form", "GET http://a/b HTTP/1.1\r\n" HOST END, NONE, KEEP),
    OK("absolute form, no path", "GET http://a HTTP/1.1\r\n" HOST END, NONE, KEEP),
    OK("absolute https", "GET https://a:8443/b?c HTTP/1.1\r\n" HOST END, NONE, KEEP),
    OK("OPTIONS *", "OPTIONS * HTTP/1.1\r\n" HOST END, NONE, KEEP),
    OK("CONNECT", "CONNECT a:443 HTTP/1.1\r\n" HOST END, NONE, KEEP),
    OK("one empty line first", "\r\n" GET END, NONE, KEEP),
    OK("two empty lines first", "\r\n\r\n" GET END, NONE, KEEP),
    NO("three empty lines first", "\r\n\r\n\r\n" GET END, 400),
    NO("bare LF first", "\n" GET END, 400),
    NO("no version", "GET /\r\n" HOST END, 400),
    NO("HTTP/0.9 simple request", "GET / \r\n" END, 400),
    NO("1.2", "GET / HTTP/1.2\r\n" HOST END, 505),
    NO("2.0", "GET / HTTP/2.0\r\n" HOST END, 505),
    NO("0.9", "GET / HTTP/0.9\r\n" HOST END, 505),
    NO("1.10", "GET / HTTP/1.10\r\n" HOST END, 400),
    NO("01.1", "GET / HTTP/01.1\r\n" HOST END, 400),
    NO("lower-case http", "GET / http/1.1\r\n" HOST END, 400),
    NO("letters in the version", "GET / HTTP/1.x\r\n" HOST END, 400),
    NO("comma in the version", "GET / HTTP/1,1\r\n" HOST END, 400),
    NO("other protocol", "GET / HTCPCP/1.0\r\n" HOST END, 400),
    NO("two spaces", "GET  / HTTP/1.1\r\n" HOST END, 400),
    NO("two spaces before the version", "GET /  HTTP/1.1\r\n" HOST END, 400),
    NO("space at the end", "GET / HTTP/1.1 \r\n" HOST END, 400),
    NO("space at the start", " GET / HTTP/1.1\r\n" HOST END, 400),
    NO("tabs", "GET\t/\tHTTP/1.1\r\n" HOST END, 400),
    NO("no target", "GET HTTP/1.1\r\n" HOST END, 400),
    NO("empty method", " / HTTP/1.1\r\n" HOST END, 400),
    NO("method with a colon", "GE:T / HTTP/1.1\r\n" HOST END, 400),
    NO("method with a brace", "G{T / HTTP/1.1\r\n" HOST END, 400),
    NO("space in the target", "GET /a b HTTP/1.1\r\n" HOST END, 400),
    NO("NUL in the target", "GET /a\0b HTTP/1.1\r\n" HOST END, 400),
    NO("control in the target", "GET /a\x01 HTTP/1.1\r\n" HOST END, 400),
    NO("DEL in the target", "GET /a\x7f HTTP/1.1\r\n" HOST END, 400),
    NO("byte over 0x7f in the target", "GET /\xc3\xa4 HTTP/1.1\r\n" HOST END, 400),
    NO("fragment", "GET /a#b HTTP/1.1\r\n" HOST END, 400),
    NO("relative path", "GET a/b HTTP/1.1\r\n" HOST END, 400),
    NO("GET *", "GET * HTTP/1.1\r\n" HOST END, 400),
    NO("other scheme", "GET ftp://a/b HTTP/1.1\r\n" HOST END, 400),
    NO("URL without host", "GET http:///b HTTP/1.1\r\n" HOST END, 400),
    NO("URL without anything", "GET http:// HTTP/1.1\r\n" HOST END, 400),
    NO("URL with user", "GET http://u@a/ HTTP/1.1\r\n" HOST END, 400),
    NO("CONNECT to a path", "CONNECT /a:1 HTTP/1.1\r\n" HOST END, 400),
    NO("CONNECT without port", "CONNECT a HTTP/1.1\r\n" HOST END, 400),
    NO("CR inside the line", "GET /\r HTTP/1.1\r\n" HOST END, 400),
    NO("CR CR LF", "GET / HTTP/1.1\r\r\n" HOST END, 400),
    NO("LF ends the line", "GET / HTTP/1.1\n" HOST END, 400),
    NO("TLS hello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
};

static const struct row request_fields[] = {
    OK("no Host in 1.0", "GET / HTTP/1.0\r\n" END, NONE, 0),
    OK("Host with port", "GET / HTTP/1.1\r\nHost: a.b:80\r\n" END, NONE, KEEP),
    OK("IPv6 Host", "GET / HTTP/1.1\r\nHost: [::1]:80\r\n" END, NONE, KEEP),
    OK("empty Host", "GET / HTTP/1.1\r\nHost:\r\n" END, NONE, KEEP),
    OK("any case", "GET / HTTP/1.1\r\nhOSt: a\r\n" END, NONE, KEEP),
    OK("no space behind the colon", "GET / HTTP/1.1\r\nHost:a\r\n" END, NONE, KEEP),
    OK("blanks round the value", "GET / HTTP/1.1\r\nHost: \t a \t \r\n" END, NONE, KEEP),
    OK("empty value", GET "X:\r\n" END, NONE, KEEP),
    OK("tab in a value", GET "X: a\tb\r\n" END, NONE, KEEP),
    OK("obs-text in a value", GET "X: \xe4\xff\r\n" END, NONE, KEEP),
    OK("odd tokens in a name", GET "!#$%&'*+-.^_`|~0aZ: 1\r\n" END, NONE, KEEP),
    OK("close", GET "Connection: close\r\n" END, NONE, 0),
    OK("close among others", GET "Connection: foo , CLOSE,bar\r\n" END, NONE, 0),
    OK("close wins over keep-alive", GET "Connection: keep-alive, close\r\n" END, NONE, 0),
    OK("close in a second header", GET "Connection: x\r\nConnection: close\r\n" END, NONE, 0),
    OK("closed is not close", GET "Connection: closed\r\n" END, NONE, KEEP),
    OK("upgrade", GET "Connection: Upgrade\r\nUpgrade: websocket\r\n" END, NONE, KEEP | UPGRADE),
    OK("Upgrade alone", GET "Upgrade: websocket\r\n" END, NONE, KEEP),
    OK("upgrade token alone", GET "Connection: upgrade\r\n" END, NONE, KEEP),
    OK("upgrade with a body is none",
       POST "Connection: upgrade\r\nUpgrade: x\r\nContent-Length: 3\r\n" END, LEN, KEEP, 3),
    NO("no Host in 1.1", "GET / HTTP/1.1\r\n" END, 400),
    NO("two Hosts", GET HOST END, 400),
    NO("two Hosts in 1.0", "GET / HTTP/1.0\r\n" HOST HOST END, 400),
    NO("Host with space", "GET / HTTP/1.1\r\nHost: a b\r\n" END, 400),
    NO("Host with path", "GET / HTTP/1.1\r\nHost: a/b\r\n" END, 400),
    NO("Host with user", "GET / HTTP/1.1\r\nHost: u@a\r\n" END, 400),
    NO("Host list", "GET / HTTP/1.1\r\nHost: a,b\r\n" END, 400),
    NO("Host with obs-text", "GET / HTTP/1.1\r\nHost: \xe4\r\n" END, 400),
    NO("space before the colon", "GET / HTTP/1.1\r\nHost : a\r\n" END, 400),
    NO("tab before the colon", GET "X\t: a\r\n" END, 400),
    NO("space in a name", GET "X Y: a\r\n" END, 400),
    NO("no colon", GET "X\r\n" END, 400),
    NO("no name", GET ": a\r\n" END, 400),
    NO("NUL in a name", GET "X\0: a\r\n" END, 400),
    NO("obs-text in a name", GET "X\xe4: a\r\n" END, 400),
    NO("bracket in a name", GET "X[]: a\r\n" END, 400),
    NO("obs-fold with space", GET "X: a\r\n b\r\n" END, 400),
    NO("obs-fold with tab", GET "X: a\r\n\tb\r\n" END, 400),
    NO("fold before the first header", "GET / HTTP/1.1\r\n Host: a\r\n" HOST END, 400),
    NO("line of one space", GET " \r\n" END, 400),
    NO("NUL in a value", GET "X: a\0b\r\n" END, 400),
    NO("control in a value", GET "X: a\x1f\r\n" END, 400),
    NO("DEL in a value", GET "X: a\x7f\r\n" END, 400),
    NO("CR in a value", GET "X: a\rb\r\n" END, 400),
    NO("CR at the end of a value", GET "X: a\r\r\n" END, 400),
    NO("a header behind a lone CR", GET "X: a\rContent-Length: 5\r\n" END, 400),
    NO("bare LF ends a header", "GET / HTTP/1.1\r\nHost: a\nX: b\r\n" END, 400),
    NO("bare LF ends the head", GET "\n", 400),
    NO("LF CR", GET "\n\r\n", 400),
    NO("other expectation", POST "Expect: 200-ok\r\nContent-Length: 1\r\n" END, 417),
    NO("bad expectation before a good one",
       POST "Expect: x\r\nExpect: 100-continue\r\nContent-Length: 1\r\n" END, 417),
};

static const struct row request_framing[] = {
    OK("length", POST "Content-Length: 5\r\n" END, LEN, KEEP, 5),
    OK("length 0", POST "Content-Length: 0\r\n" END, NONE, KEEP),
    OK("length with blanks round it", POST "Content-Length: \t5 \r\n" END, LEN, KEEP, 5),
    OK("length with zeros before", POST "Content-Length: 0005\r\n" END, LEN, KEEP, 5),
    OK("length in 1.0", OLD "Content-Length: 5\r\n" END, LEN, 0, 5),
    OK("largest length", POST "Content-Length: 9223372036854775807\r\n" END, LEN, KEEP, INT64_MAX),
    OK("GET with a body", GET "Content-Length: 2\r\n" END, LEN, KEEP, 2),
    OK("chunked", POST "Transfer-Encoding: chunked\r\n" END, CHUNKED, KEEP),
    OK("Chunked", POST "transfer-encoding:Chunked\r\n" END, CHUNKED, KEEP),
    OK("no body", POST END, NONE, KEEP),
    OK("expect", POST "Expect: 100-Continue\r\nContent-Length: 5\r\n" END, LEN, KEEP | EXPECT, 5),
    OK("expect chunked", POST "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n" END, CHUNKED,
       KEEP | EXPECT),
    OK("expect without a body", GET "Expect: 100-continue\r\n" END, NONE, KEEP),
    OK("expect in 1.0 is ignored", OLD "Expect: 100-continue\r\nContent-Length: 5\r\n" END, LEN, 0,
       5),
    OK("not that header", POST "X-Content-Length: 5\r\n" END, NONE, KEEP),
    NO("+5", POST "Content-Length: +5\r\n" END, 400),
    NO("-1", POST "Content-Length: -1\r\n" END, 400),
    NO("-0", POST "Content-Length: -0\r\n" END, 400),
    NO("0x5", POST "Content-Length: 0x5\r\n" END, 400),
    NO("5.0", POST "Content-Length: 5.0\r\n" END, 400),
    NO("1e2", POST "Content-Length: 1e2\r\n" END, 400),
    NO("5, 5", POST "Content-Length: 5, 5\r\n" END, 400),
    NO("5,", POST "Content-Length: 5,\r\n" END, 400),
    NO("5 5", POST "Content-Length: 5 5\r\n" END, 400),
    NO("5\\t5", POST "Content-Length: 5\t5\r\n" END, 400),
    NO("empty length", POST "Content-Length:\r\n" END, 400),
    NO("blank length", POST "Content-Length:  \r\n" END, 400),
    NO("words", POST "Content-Length: five\r\n" END, 400),
    NO("quoted", POST "Content-Length: \"5\"\r\n" END, 400),
    NO("Arabic digits", POST "Content-Length: \xd9\xa5\r\n" END, 400),
    NO("over 63 bits", POST "Content-Length: 9223372036854775808\r\n" END, 400),
    NO("over 64 bits", POST "Content-Length: 18446744073709551621\r\n" END, 400),
    NO("far over", POST "Content-Length: 99999999999999999999999999999\r\n" END, 400),
    NO("twice the same", POST "Content-Length: 5\r\nContent-Length: 5\r\n" END, 400),
    NO("twice", POST "Content-Length: 5\r\ncontent-length: 6\r\n" END, 400),
    NO("empty and 5", POST "Content-Length:\r\nContent-Length: 5\r\n" END, 400),
    NO("length and chunked", POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n" END, 400),
    NO("chunked and length", POST "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n" END, 400),
    NO("length and identity", POST "Content-Length: 5\r\nTransfer-Encoding: identity\r\n" END, 400),
    NO("length and empty encoding", POST "Content-Length: 5\r\nTransfer-Encoding:\r\n" END, 400),
    NO("chunked in 1.0", OLD "Transfer-Encoding: chunked\r\n" END, 400),
    NO("xchunked", POST "Transfer-Encoding: xchunked\r\n" END, 501),
    NO("chunkedx", POST "Transfer-Encoding: chunkedx\r\n" END, 501),
    NO("chunked, chunked", POST "Transfer-Encoding: chunked, chunked\r\n" END, 501),
    NO("chunked twice", POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n" END,
       400),
    NO("identity and chunked",
       POST "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n" END, 400),
    NO("gzip", POST "Transfer-Encoding: gzip\r\n" END, 501),
    NO("gzip, chunked", POST "Transfer-Encoding: gzip, chunked\r\n" END, 501),
    NO("chunked, gzip", POST "Transfer-Encoding: chunked, gzip\r\n" END, 501),
    NO("identity", POST "Transfer-Encoding: identity\r\n" END, 501),
    NO("empty encoding", POST "Transfer-Encoding:\r\n" END, 501),
    NO("chunked with a parameter", POST "Transfer-Encoding: chunked;q=1\r\n" END, 501),
    NO("quoted chunked", POST "Transfer-Encoding: \"chunked\"\r\n" END, 501),
    NO("comma before chunked", POST "Transfer-Encoding: ,chunked\r\n" END, 501),
    NO("vertical tab before chunked", POST "Transfer-Encoding: \vchunked\r\n" END, 400),
    NO("no-break space before chunked",
       POST "Transfer-Encoding: \xa0"
            "chunked\r\n" END,
       501),
    NO("space before the colon", POST "Transfer-Encoding : chunked\r\n" END, 400),
    NO("folded chunked", POST "Transfer-Encoding:\r\n chunked\r\n" END, 400),
    NO("CR before chunked", POST "Transfer-Encoding: \rchunked\r\n" END, 400),
    NO("hidden behind a bare LF", POST "X: y\nTransfer-Encoding: chunked\r\n" END, 400),
};

#define ST(line) "HTTP/1.1 " line "\r\n"
static const struct row responses[] = {
    OK("until close", ST("200 OK") END, CLOSE, 0),
    OK("length", ST("200 OK") "Content-Length: 5\r\n" END, LEN, KEEP, 5),
    OK("length 0", ST("200 OK") "Content-Length: 0\r\n" END, NONE, KEEP),
    OK("chunked", ST("200 OK") "Transfer-Encoding: chunked\r\n" END, CHUNKED, KEEP),
    OK("close", ST("200 OK") "Connection: close\r\nContent-Length: 5\r\n" END, LEN, 0, 5),
    OK("1.0", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n" END, LEN, 0, 5),
    OK("1.0 kept", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n" END, LEN,
       KEEP, 5),
    OK("1.0 kept but until close", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n" END, CLOSE, 0),
    OK("no reason", ST("200 ") END, CLOSE, 0),
    OK("not even a space", ST("200") END, CLOSE, 0),
    OK("reason with obs-text", ST("200 K\xe4se") END, CLOSE, 0),
    OK("204 has none", ST("204 No Content") END, NONE, KEEP),
    OK("304 has none", ST("304 Not Modified") "Content-Length: 5\r\n" END, NONE, KEEP, 5),
    OK("100 has none", ST("100 Continue") END, NONE, KEEP),
    OK("101", ST("101 Switching") "Connection: upgrade\r\nUpgrade: websocket\r\n" END, NONE,
       KEEP | UPGRADE),
    OK("HEAD has none", ST("200 OK") "Content-Length: 5\r\n" END, NONE, KEEP, 5, "HEAD"),
    OK("HEAD chunked has none", ST("200 OK") "Transfer-Encoding: chunked\r\n" END, NONE, KEEP, 0,
       "HEAD"),
    OK("CONNECT has none", ST("200 OK") END, NONE, KEEP, 0, "CONNECT"),
    OK("CONNECT refused has one", ST("403 No") "Content-Length: 5\r\n" END, LEN, KEEP, 5,
       "CONNECT"),
    OK("status 599", ST("599 x") "Content-Length: 0\r\n" END, NONE, KEEP),
    NO("empty line first", "\r\n" ST("200 OK") END, 400),
    NO("2.0", "HTTP/2.0 200 OK\r\n" END, 505),
    NO("no version", "200 OK\r\n" END, 400),
    NO("ICY", "ICY 200 OK\r\n" END, 400),
    NO("two digits", ST("20 OK") END, 400),
    NO("four digits", ST("2000 OK") END, 400),
    NO("letters", ST("2x0 OK") END, 400),
    NO("sign", ST("+20 OK") END, 400),
    NO("099", ST("099 OK") END, 400),
    NO("two spaces", ST(" 200 OK") END, 400),
    NO("CR in the reason", ST("200 O\rK") END, 400),
    NO("NUL in the reason", ST("200 O\0K") END, 400),
    NO("bare LF", "HTTP/1.1 200 OK\n" END, 400),
    NO("obs-fold", ST("200 OK") "X: a\r\n b\r\n" END, 400),
    NO("length and chunked", ST("200 OK") "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n" END,
       400),
    NO("two lengths", ST("200 OK") "Content-Length: 5\r\nContent-Length: 6\r\n" END, 400),
    NO("bad length", ST("200 OK") "Content-Length: 5, 5\r\n" END, 400),
    NO("gzip", ST("200 OK") "Transfer-Encoding: gzip\r\n" END, 501),
    NO("chunked in 1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n" END, 400),
};

/* The head end is looked for in growing pieces of step bytes, then the head is parsed. */
static struct err *read_head(struct arena *a, const struct row *row, bool response, size_t step,
                             struct http_head *ret)
{
    size_t scanned = 0, end = 0;

    for (size_t n = step < row->bytes.len ? step : row->bytes.len; !end;
         n += step < row->bytes.len - n ? step : row->bytes.len - n) {
        TRY(http_head_end(str_first(row->bytes, n), &scanned, &end));
        if (!end && n == row->bytes.len)
            FAIL("%s: the head has no end", row->name);
        if (end)
            CHECK_INT(end, n);
    }
    if (response)
        return http_parse_response(a, row->bytes, str_of(row->method), ret);
    return http_parse_request(a, row->bytes, ret);
}

static void check_row(const struct row *row, bool response, size_t step)
{
    struct arena a;
    struct http_head h;

    arena_init(&a, 1u << 20);
    struct err *e = read_head(&a, row, response, step, &h);
    int status = e ? err_http_status(err_code(e)) : 0;
    if (status != row->status)
        FAIL("'%s' in steps of %zu: %d (%s), want %d", row->name, step, status,
             e ? err_text(e) : "accepted", row->status);
    if (!e) {
        unsigned flags = (h.keep_alive ? KEEP : 0) | (h.expect_continue ? EXPECT : 0) |
                         (h.upgrade ? UPGRADE : 0);
        if ((int)h.framing != row->framing || h.length != row->length || flags != row->flags)
            FAIL("'%s': framing %d length %llu flags %u", row->name, (int)h.framing,
                 (unsigned long long)h.length, flags);
    }
    err_free(e);
    arena_done(&a);
}

static void check_rows(const struct row *rows, size_t count, bool response)
{
    for (size_t i = 0; i < count; i++)
        for (size_t step = 1; step <= 3; step++)
            check_row(&rows[i], response, step == 3 ? rows[i].bytes.len : step);
}

TEST(request_lines_are_read_strictly)
{
    check_rows(request_lines, ARRAY_LEN(request_lines), false);
}

TEST(request_fields_are_read_strictly)
{
    check_rows(request_fields, ARRAY_LEN(request_fields), false);
}

TEST(the_length_of_a_request_has_one_reading)
{
    check_rows(request_framing, ARRAY_LEN(request_framing), false);
}

TEST(responses_are_read_strictly)
{
    check_rows(responses, ARRAY_LEN(responses), true);
}

TEST(the_parts_of_a_head_are_slices_of_it)
{
    struct str text = STR("\r\nPUT /a?b HTTP/1.1\r\nHost: h\r\nX: 1\r\nx:  two \r\n\r\n");
    struct arena a;
    struct http_head h;

    arena_init(&a, 1u << 20);
    CHECK_OK(http_parse_request(&a, text, &h));
    CHECK_STR(h.method, "PUT");
    CHECK_STR(h.target, "/a?b");
    CHECK_INT(h.minor, 1);
    CHECK_INT(h.header_count, 3);
    CHECK_STR(h.headers[2].name, "x");
    CHECK_STR(h.headers[2].value, "two");
    CHECK_STR(http_header_get(&h, STR("x")), "1");
    CHECK(http_header_get(&h, STR("y")).p == NULL);
    CHECK_OK(http_parse_response(&a, STR("HTTP/1.0 404 Not  Here\r\n\r\n"), STR("GET"), &h));
    CHECK_INT(h.status, 404);
    CHECK_STR(h.reason, "Not  Here");
    arena_done(&a);
}

/* A head of size bytes, filled up with one header. */
static char *long_head(size_t size, char filler)
{
    struct str start = STR(GET "X: ");
    char *p = malloc(size);

    CHECK(p != NULL);
    memset(p, filler, size);
    memcpy(p, start.p, start.len);
    memcpy(p + size - 4, "\r\n\r\n", 4);
    return p;
}

TEST(a_head_may_have_its_limit_and_not_a_byte_more)
{
    size_t scanned = 0, end = 0;
    char *fits = long_head(HTTP_MAX_HEAD, 'a'), *over = long_head(HTTP_MAX_HEAD + 1, 'a');

    CHECK_OK(http_head_end(str_n(fits, HTTP_MAX_HEAD), &scanned, &end));
    CHECK_INT(end, HTTP_MAX_HEAD);
    scanned = 0;
    CHECK_ERR(http_head_end(str_n(over, HTTP_MAX_HEAD + 1), &scanned, &end), ERR_HEADERS_TOO_LARGE,
              "head");
    scanned = 0;
    for (size_t n = 1; n <= HTTP_MAX_HEAD; n++)
        CHECK_OK(http_head_end(str_n(over, n), &scanned, &end));
    CHECK_INT(end, 0);
    CHECK_ERR(http_head_end(str_n(over, HTTP_MAX_HEAD + 1), &scanned, &end), ERR_HEADERS_TOO_LARGE,
              "head");
    free(fits);
    free(over);
}

TEST(what_lies_beyond_the_limit_does_not_change_the_verdict)
{
    size_t scanned = 0, end = 0, size = HTTP_MAX_HEAD + 4000;
    char *p = long_head(size, 'a');

    p[HTTP_MAX_HEAD + 100] = '\n'; /* bare: a 400, had it come in time */
    CHECK_ERR(http_head_end(str_n(p, size), &scanned, &end), ERR_HEADERS_TOO_LARGE, "head");
    free(p);
}

static struct err *parse_many(unsigned headers)
{
    struct buf b;
    struct arena a;
    struct http_head h;

    buf_init(&b, 1u << 20);
    arena_init(&a, 1u << 20);
    buf_add_cstr(&b, GET);
    for (unsigned i = 1; i < headers; i++)
        buf_addf(&b, "h%u: v\r\n", i);
    buf_add_cstr(&b, "\r\n");
    struct err *e = http_parse_request(&a, buf_str(&b), &h);
    if (!e)
        CHECK_INT(h.header_count, headers);
    buf_done(&b);
    arena_done(&a);
    return e;
}

TEST(there_may_be_a_hundred_headers)
{
    CHECK_OK(parse_many(HTTP_MAX_HEADERS));
    CHECK_ERR(parse_many(HTTP_MAX_HEADERS + 1), ERR_HEADERS_TOO_LARGE, "headers");
}

TEST(a_head_that_the_arena_cannot_hold_is_refused)
{
    struct arena a;
    struct http_head h;

    arena_init(&a, 16);
    CHECK_ERR(http_parse_request(&a, STR(GET END), &h), ERR_NO_MEMORY, "memory");
    arena_done(&a);
}

TEST(tokens_are_found_in_lists)
{
    CHECK(http_has_token(STR("a, b ,c"), STR("B")));
    CHECK(http_has_token(STR(",,c"), STR("c")));
    CHECK(!http_has_token(STR("ab"), STR("a")));
    CHECK(!http_has_token(STR(""), STR("a")));
    CHECK(http_is_token(STR("a-b")) && !http_is_token(STR("")) && !http_is_token(STR("a b")));
    CHECK(http_is_field_value(STR("a b")) && !http_is_field_value(STR("a\r\nb")));
}
