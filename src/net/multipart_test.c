// SPDX-License-Identifier: Apache-2.0
/* multipart_test.c — forms whole, cut at every place, and hostile. */
#include "net/multipart.h"

#include <stdio.h>

#include "test/test.h"

#define TYPE STR("multipart/form-data; boundary=xYz")
#define LONG                                                                                       \
    "multipart/form-data; "                                                                        \
    "boundary=1234567890123456789012345678901234567890123456789012345678901234567890"
#define PLAIN "Content-Disposition: form-data; name=\"a\"\r\n"

struct log {
    struct buf text;
    size_t pieces;
};

static fallible on_part(void *ctx, const struct multipart_part *p)
{
    struct log *l = ctx;

    buf_addf(&l->text, "<" STR_FMT "|%s" STR_FMT "|" STR_FMT ">", STR_ARG(p->name),
             p->filename.p ? "" : "-", STR_ARG(p->filename), STR_ARG(p->content_type));
    return NULL;
}

static fallible on_data(void *ctx, struct str piece)
{
    struct log *l = ctx;

    CHECK(piece.len > 0);
    buf_add(&l->text, piece);
    l->pieces++;
    return NULL;
}

static fallible on_part_end(void *ctx)
{
    struct log *l = ctx;

    buf_add_cstr(&l->text, ".");
    return NULL;
}

static const struct multipart_events events = {on_part, on_data, on_part_end};

static struct err *feed(struct str body, size_t first, size_t piece, struct log *l)
{
    own(multipart) m = NULL;

    buf_init(&l->text, 4u << 20);
    l->pieces = 0;
    TRY(multipart_new(TYPE, &events, l, &m));
    TRY(multipart_feed(m, str_first(body, first)));
    for (body = str_from(body, first); body.len; body = str_from(body, piece))
        TRY(multipart_feed(m, str_first(body, piece)));
    return multipart_end(m);
}

static void check_form(struct str body, const char *want)
{
    struct log l;

    for (size_t cut = 0; cut <= body.len; cut++) {
        CHECK_OK(feed(body, cut, body.len, &l));
        CHECK_STR(buf_str(&l.text), want);
        buf_done(&l.text);
    }
    for (size_t piece = 1; piece < 12; piece++) {
        CHECK_OK(feed(body, 0, piece, &l));
        CHECK_STR(buf_str(&l.text), want);
        buf_done(&l.text);
    }
}

static void check_refused(struct str body, const char *why)
{
    struct log l;

    for (size_t cut = 0; cut <= body.len; cut++) {
        CHECK_ERR(feed(body, cut, body.len, &l), ERR_INVALID, why);
        buf_done(&l.text);
    }
}

TEST(parts_come_the_same_however_the_bytes_are_cut)
{
    static const struct {
        struct str body;
        const char *want;
    } cases[] = {
        {STR_INIT("--xYz\r\n" PLAIN "\r\n1\r\n--xYz--\r\n"), "<a|-|text/plain>1."},
        {STR_INIT("--xYz\r\n" PLAIN "\r\n1\r\n--xYz--"), "<a|-|text/plain>1."},
        {STR_INIT("--xYz\r\n" PLAIN "\r\n\r\n--xYz--\r\n"), "<a|-|text/plain>."},
        {STR_INIT("--xYz\r\n" PLAIN "\r\n--xYz--\r\n"), "<a|-|text/plain>."},
        {STR_INIT("preamble\r\n--xY\r\n--xYz \t\r\n" PLAIN
                  "\r\n1\r\n--xYz-- \r\nepilogue\r\n--xYz"),
         "<a|-|text/plain>1."},
        {STR_INIT("--xYz\r\n" PLAIN "\r\n\r\r\n\r\n--xY\r\n-\r\n--\r\r\n--xYz\r\n" PLAIN
                  "\r\n--x\n--xYz\r\n--xYz--"),
         "<a|-|text/plain>\r\r\n\r\n--xY\r\n-\r\n--\r.<a|-|text/plain>--x\n--xYz."},
        {STR_INIT("--xYz\r\ncontent-disposition:form-data;name=a ; filename=b.txt\r\n"
                  "Content-Type: image/png; x=y \r\nX-Other: z\r\n\r\n1\r\n--xYz--"),
         "<a|b.txt|image/png; x=y>1."},
        {STR_INIT("--xYz--"), ""},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check_form(cases[i].body, cases[i].want);
}

TEST(names_are_read_as_browsers_and_curl_write_them)
{
    static const struct {
        const char *params, *want;
    } cases[] = {
        {"name=\"a\"; filename=\"b c.txt\"", "a|b c.txt"},
        {"name=\"a%22b\"; filename=\"c%22d\"", "a\"b|c\"d"},
        {"name=\"a\\\"b\"; filename=\"c\\\"d\"", "a\"b|c\"d"},
        {"name=\"a\"; filename=\"100%.txt\"", "a|100%.txt"},
        {"name=\"a\"; filename=\"\xc3\xa4.txt\"", "a|\xc3\xa4.txt"},
        {"name=\"\xe2\x82\xac\"", "\xe2\x82\xac|-"},
        {"name=\"a;b=c\"; filename=\";\"", "a;b=c|;"},
        {"name=\"\"", "|-"},
        {"name=\"a\"; filename=\"\"", "a|"},
        {"name=\"a\"; filename=\"../../etc/passwd\"", "a|passwd"},
        {"name=\"a\"; filename=\"/etc/passwd\"", "a|passwd"},
        {"name=\"a\"; filename=\"C:\\x\"", "a|x"},
        {"name=\"a\"; filename=\"C:\\\\dir\\\\x\"", "a|x"},
        {"name=\"a\"; filename=\"dir/\"", "a|"},
        {"name=\"a\"; filename=\"..%2f..%2fx\"", "a|..%2f..%2fx"},
        {"name=\"a\"; filename*=UTF-8''%e2%82%ac%20x.txt", "a|\xe2\x82\xac x.txt"},
        {"name=\"a\"; filename*=utf-8'en'%2e%2e%2fx", "a|x"},
        {"name=\"a\"; filename=\"b\"; filename*=UTF-8''c", "a|b"},
        {"filename=\"b\"; name=\"a\"; other=\"x\";", "a|b"},
        {"NAME=a; FileName=b", "a|b"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char body[400], want[100];
        snprintf(body, sizeof body,
                 "--xYz\r\nContent-Disposition: form-data; %s\r\n\r\n1\r\n--xYz--\r\n",
                 cases[i].params);
        snprintf(want, sizeof want, "<%s|text/plain>1.", cases[i].want);
        check_form(str_of(body), want);
    }
}

TEST(bad_names_are_refused)
{
    static const struct {
        struct str params;
        const char *why;
    } cases[] = {
        {STR_INIT("filename=b"), "no name"},
        {STR_INIT("name=a; name=b"), "twice"},
        {STR_INIT("name=a; filename=b; filename=c"), "twice"},
        {STR_INIT("name=\"a"), "does not end"},
        {STR_INIT("name=\"a\\\""), "does not end"},
        {STR_INIT("name=\"a\" filename=\"b\""), "';'"},
        {STR_INIT("name"), "bad parameter"},
        {STR_INIT("na me=a"), "bad parameter"},
        {STR_INIT("name="), "bad value"},
        {STR_INIT("name=a\"b"), "bad value"},
        {STR_INIT("name=\"a\0b\""), "control"},
        {STR_INIT("name=a; filename=\"a\tb\""), "control"},
        {STR_INIT("name=a; filename=\"\xff\""), "UTF-8"},
        {STR_INIT("name=\"\xc0\xaf\""), "UTF-8"},
        {STR_INIT("name=a; filename=\"..\""), "directory"},
        {STR_INIT("name=a; filename=\"x/..\""), "directory"},
        {STR_INIT("name=a; filename=\".\""), "directory"},
        {STR_INIT("name=a; filename*=UTF-8''a%00b"), "control"},
        {STR_INIT("name=a; filename*=UTF-8''a%0"), "escape"},
        {STR_INIT("name=a; filename*=latin1''a"), "UTF-8"},
        {STR_INIT("name=a; filename*=a"), "UTF-8"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        own_done(buf) body;
        buf_init(&body, 1000);
        buf_add_cstr(&body, "--xYz\r\nContent-Disposition: form-data; ");
        buf_add(&body, cases[i].params);
        buf_add_cstr(&body, "\r\n\r\n1\r\n--xYz--\r\n");
        check_refused(buf_str(&body), cases[i].why);
    }
}

TEST(broken_forms_are_refused)
{
    static const struct {
        struct str body;
        const char *why;
    } cases[] = {
        {STR_INIT(""), "stops before"},
        {STR_INIT("no form at all"), "stops before"},
        {STR_INIT("--xYz"), "stops before"},
        {STR_INIT("--xYz-"), "stops before"},
        {STR_INIT("--xYz\r\n" PLAIN "\r\n1"), "stops before"},
        {STR_INIT("--xYz\r\n" PLAIN "\r\n1\r\n--xYz"), "stops before"},
        {STR_INIT("--xYz\r\n" PLAIN "\r\n1\r\n--xYz\r\n"), "stops before"},
        {STR_INIT("--xYz\r\n" PLAIN "\r\n1\r\n--xYzz\r\n"), "boundary is followed"},
        {STR_INIT("--xYz\r\n" PLAIN "\r\n1\r\n--xYz-x\r\n"), "boundary is followed"},
        {STR_INIT("--xYz\n" PLAIN "\r\n1"), "boundary is followed"},
        {STR_INIT("--xYz\rx"), "boundary is followed"},
        {STR_INIT("--xYz--x"), "boundary is followed"},
        {STR_INIT("--xYz\r\n\r\n1\r\n--xYz--"), "no Content-Disposition"},
        {STR_INIT("--xYz\r\nX: y\r\n\r\n1\r\n--xYz--"), "no Content-Disposition"},
        {STR_INIT("--xYz\r\n" PLAIN PLAIN "\r\n1\r\n--xYz--"), "more than one"},
        {STR_INIT("--xYz\r\nContent-Disposition: attachment; name=a\r\n\r\n1\r\n--xYz--"),
         "not form-data"},
        {STR_INIT("--xYz\r\nContent-Disposition: form-data; name=a\n\r\n\r\n"), "LF without CR"},
        {STR_INIT("--xYz\r\n bad: x\r\n\r\n"), "bad header"},
        {STR_INIT("--xYz\r\nbad\r\n\r\n"), "bad header"},
        {STR_INIT("--xYz\r\n" PLAIN "Content-Transfer-Encoding: base64\r\n\r\n"), "Encoding"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check_refused(cases[i].body, cases[i].why);
}

TEST(only_forms_with_a_sane_boundary_are_taken)
{
    static const char *good[] = {
        "multipart/form-data; boundary=a",
        "Multipart/Form-Data;charset=utf-8;Boundary=\"a b:c=?\"",
        "multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW",
        LONG,
    };
    static const char *bad[] = {
        "",
        "text/plain",
        "multipart/mixed; boundary=a",
        "multipart/form-data",
        "multipart/form-datax; boundary=a",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=\"\"",
        "multipart/form-data; boundary=\"a \"",
        "multipart/form-data; boundary=\"a\tb\"",
        "multipart/form-data; boundary=\"a\\\"b\"",
        "multipart/form-data; boundary=a; boundary=b",
        "multipart/form-data boundary=a",
    };
    struct multipart *m;

    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        CHECK_OK(multipart_new(str_of(good[i]), &events, NULL, &m));
        multipart_free(m);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_ERR(multipart_new(str_of(bad[i]), &events, NULL, &m), ERR_INVALID, "Content-Type");
    CHECK_ERR(multipart_new(STR(LONG "1"), &events, NULL, &m), ERR_INVALID, "1 to 70");
}

TEST(parts_and_heads_have_a_limit)
{
    own_done(buf) body;
    struct log l;

    buf_init(&body, 1 << 20);
    for (unsigned i = 0; i < MULTIPART_MAX_PARTS; i++)
        buf_add_cstr(&body, "--xYz\r\n" PLAIN "\r\n1\r\n");
    size_t full = body.len;
    buf_add_cstr(&body, "--xYz--");
    CHECK_OK(feed(buf_str(&body), 0, 1000, &l));
    buf_done(&l.text);
    body.len = full;
    buf_add_cstr(&body, "--xYz\r\n" PLAIN "\r\n1\r\n--xYz--");
    CHECK_ERR(feed(buf_str(&body), 0, 1000, &l), ERR_TOO_LARGE, "at most 1000 parts");
    buf_done(&l.text);

    buf_reset(&body);
    buf_add_cstr(&body, "--xYz\r\n" PLAIN "X: ");
    while (body.len < MULTIPART_MAX_HEAD + 7)
        buf_add_char(&body, 'x');
    for (size_t piece = 1; piece < 20000; piece += 1777) {
        CHECK_ERR(feed(buf_str(&body), 0, piece, &l), ERR_INVALID, "stops before");
        buf_done(&l.text);
    }
    buf_add_char(&body, 'x');
    for (size_t piece = 1; piece < 20000; piece += 1777) {
        CHECK_ERR(feed(buf_str(&body), 0, piece, &l), ERR_TOO_LARGE, "16384");
        buf_done(&l.text);
    }
}

TEST(bulk_data_passes_in_large_pieces)
{
    own_done(buf) body;
    struct log l;

    buf_init(&body, 4u << 20);
    buf_add_cstr(&body, "--xYz\r\n" PLAIN "\r\n");
    for (unsigned i = 0; i < 1u << 20; i++)
        buf_add_char(&body, i % 61 ? (char)(i * 7) : '\r');
    buf_add_cstr(&body, "\r\n--xYz--");
    CHECK_OK(feed(buf_str(&body), 0, 64u << 10, &l));
    CHECK(l.pieces <= 2 * (1u << 20) / (64u << 10) + 2);
    buf_done(&l.text);
}

static fallible refuse_part(void *ctx, const struct multipart_part *p)
{
    (void)ctx;
    (void)p;
    return err_new(ERR_FORBIDDEN, "not this one");
}

TEST(an_error_of_a_callback_is_final)
{
    static const struct multipart_events refusing = {refuse_part, on_data, on_part_end};
    own(multipart) m = NULL;

    CHECK_OK(multipart_new(TYPE, &refusing, NULL, &m));
    CHECK_ERR(multipart_feed(m, STR("--xYz\r\n" PLAIN "\r\n1")), ERR_FORBIDDEN, "not this one");
    CHECK_ERR(multipart_feed(m, STR("1\r\n--xYz--")), ERR_INVALID, "before");
    CHECK_ERR(multipart_end(m), ERR_INVALID, "stops");
}
