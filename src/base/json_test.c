// SPDX-License-Identifier: Apache-2.0
/* json_test.c — what the reader takes, how it says no, and that no input makes it slow or deep. */
#include "base/json.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "test/test.h"

static const struct json_limits with_nan = {.allow_nan = true};

static struct err *parse_error(struct str text, const struct json_limits *limits)
{
    own_done(arena) a;
    struct json *v = NULL;

    arena_init(&a, 64 << 20);
    struct err *e = json_parse(&a, text, limits, &v);
    CHECK((e == NULL) == (v != NULL)); /* ret_value is written only on success */
    return e;
}

#define REFUSES(text, part)     CHECK_ERR(parse_error(STR(text), NULL), ERR_INVALID, part)
#define GIVES(text, flags, out) check_gives(__LINE__, STR(text), flags, STR(out))

static void check_gives(int line, struct str text, unsigned flags, struct str want)
{
    own_done(arena) a;
    own_done(buf) out;
    struct json *v;

    arena_init(&a, 64 << 20);
    buf_init(&out, 64 << 20);
    test_check_ok(__FILE__, line, text.p, json_parse(&a, text, &with_nan, &v));
    json_write(&out, v, flags);
    CHECK_OK(buf_check(&out));
    test_check_str(__FILE__, line, text.p, buf_str(&out), want);
}

TEST(json_keeps_numbers_as_python_prints_them)
{
    GIVES("123.4", 0, "123.4");
    GIVES("0.1", 0, "0.1");
    GIVES("1.0", 0, "1.0");
    GIVES("1e16", 0, "1e+16");
    GIVES("1e15", 0, "1000000000000000.0");
    GIVES("1e-7", 0, "1e-07");
    GIVES("0.0001", 0, "0.0001");
    GIVES("0.00001", 0, "1e-05");
    GIVES("1.5E300", 0, "1.5e+300");
    GIVES("-0.0", 0, "-0.0");
    GIVES("-0", 0, "0");
    GIVES("9007199254740993", 0, "9007199254740993");
    GIVES("9007199254740993.0", 0, "9007199254740992.0");
    GIVES("5e-324", 0, "5e-324");
    GIVES("2e-324", 0, "0.0");
    GIVES("1.7976931348623157e308", 0, "1.7976931348623157e+308");
}

TEST(json_keeps_integers_of_any_size)
{
    own_done(arena) a;
    struct json *v;

    GIVES("12345678901234567890", 0, "12345678901234567890");
    GIVES("-170141183460469231731687303715884105728", 0,
          "-170141183460469231731687303715884105728");
    GIVES("9223372036854775807", 0, "9223372036854775807");
    GIVES("-9223372036854775808", 0, "-9223372036854775808");
    arena_init(&a, 1 << 20);
    CHECK_OK(json_parse(
        &a,
        STR("[9223372036854775807,9223372036854775808,-9223372036854775808,-9223372036854775809]"),
        NULL, &v));
    CHECK_INT(json_at(v, 0)->type, JSON_INT);
    CHECK(json_at(v, 0)->i == INT64_MAX);
    CHECK_INT(json_at(v, 1)->type, JSON_BIGINT);
    CHECK_STR(json_at(v, 1)->s, "9223372036854775808");
    CHECK_INT(json_at(v, 2)->type, JSON_INT);
    CHECK(json_at(v, 2)->i == INT64_MIN);
    CHECK_INT(json_at(v, 3)->type, JSON_BIGINT);
}

TEST(json_takes_nan_and_infinity_only_when_asked)
{
    REFUSES("[NaN]", "line 1 column 2: NaN is not allowed here");
    REFUSES("[1, Infinity]", "line 1 column 5: Infinity is not allowed here");
    REFUSES("-Infinity", "line 1 column 1: -Infinity is not allowed here");
    REFUSES("[1e999]", "line 1 column 2: the number 1e999 is too large for a double");
    REFUSES("[-1e999]", "the number -1e999 is too large");
    GIVES("[NaN,Infinity,-Infinity,1e999,-1e999]", JW_ALLOW_NAN,
          "[NaN,Infinity,-Infinity,Infinity,-Infinity]");
    GIVES("[NaN,Infinity,-Infinity,1e999]", JW_WEB, "[null,null,null,null]");
}

TEST(json_keeps_key_order_and_the_last_duplicate_in_the_first_place)
{
    GIVES("{\"b\":1,\"a\":2,\"c\":3}", 0, "{\"b\":1,\"a\":2,\"c\":3}");
    GIVES("{\"a\":1,\"b\":2,\"a\":3}", 0, "{\"a\":3,\"b\":2}");
    GIVES("{\"a\":1,\"a\":2,\"a\":3}", 0, "{\"a\":3}");
    GIVES("{\"x\":0,\"a\":1,\"\\u0061\":[2],\"y\":5}", 0, "{\"x\":0,\"a\":[2],\"y\":5}");
    GIVES("{\"a\":{\"k\":1,\"k\":2},\"b\":1,\"a\":{\"k\":3,\"k\":4}}", 0,
          "{\"a\":{\"k\":4},\"b\":1}");
    GIVES("{\"\":1,\"\":2}", 0, "{\"\":2}");
}

/* {"k0":0,…} with n names, each given `times` times. */
static void many_keys(struct buf *b, unsigned n, unsigned times)
{
    buf_add_char(b, '{');
    for (unsigned i = 0; i < n * times; i++)
        buf_addf(b, "%s\"key%u\":%u", i ? "," : "", i % n, i);
    buf_add_char(b, '}');
}

TEST(json_keeps_the_last_duplicate_in_large_objects_too)
{
    for (unsigned n = 14; n < 40; n++) {
        own_done(arena) a;
        own_done(buf) b;
        struct json *v;
        unsigned i = 0;

        arena_init(&a, 1 << 20);
        buf_init(&b, 1 << 20);
        many_keys(&b, n, 3);
        CHECK_OK(json_parse(&a, buf_str(&b), NULL, &v));
        CHECK_INT(v->count, n);
        for (const struct json *m = v->first; m; m = m->next, i++) {
            CHECK_STR(m->key, arena_printf(&a, "key%u", i));
            CHECK_INT(m->i, n * 2 + i);
            CHECK((m->next == NULL) == (m == v->last));
        }
        CHECK_INT(i, n);
    }
}

TEST(json_stays_linear_on_objects_with_very_many_keys)
{
    own_done(arena) a;
    own_done(buf) text;
    struct json *v;

    arena_init(&a, 1 << 30);
    buf_init(&text, 64 << 20);
    many_keys(&text, 300000, 1);
    CHECK_OK(json_parse(&a, buf_str(&text), NULL, &v)); /* each with each: over the time limit */
    CHECK_INT(v->count, 300000);
}

TEST(json_decodes_escapes_and_keeps_plain_strings_in_place)
{
    own_done(arena) a;
    struct json *v;
    struct str text =
        STR("[\"plain\", \"\\\"\\\\\\/\\b\\f\\n\\r\\t\", \"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\","
            " \"a\\u0000b\", \"\xe2\x82\xac\\n\xf0\x9f\x98\x80\", \"\"]");

    arena_init(&a, 1 << 20);
    CHECK_OK(json_parse(&a, text, NULL, &v));
    CHECK(json_at(v, 0)->s.p == text.p + 2);
    CHECK_STR(json_at(v, 0)->s, "plain");
    CHECK_STR(json_at(v, 1)->s, "\"\\/\b\f\n\r\t");
    CHECK_STR(json_at(v, 2)->s, "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    CHECK_STR(json_at(v, 3)->s, STR("a\0b"));
    CHECK_STR(json_at(v, 4)->s, "\xe2\x82\xac\n\xf0\x9f\x98\x80");
    CHECK_STR(json_at(v, 5)->s, "");
    CHECK(json_at(v, 6) == NULL);
}

TEST(json_elements_have_no_name)
{
    own_done(arena) a;
    struct json *v;

    arena_init(&a, 1 << 20);
    CHECK_OK(json_parse(&a, STR("{\"k\":[1,{\"x\":2},3,[],4]}"), NULL, &v));
    CHECK_STR(v->first->key, "k");
    CHECK(v->key.p == NULL);
    for (const struct json *m = v->first->first; m; m = m->next)
        CHECK(m->key.p == NULL && m->key.len == 0);
}

TEST(json_reads_nothing_behind_the_text)
{
    own_done(arena) a;
    struct json *v;
    struct str digits = STR("0.1234567890123456789012345e9");

    arena_init(&a, 1 << 20);
    CHECK_OK(json_parse(&a, str_first(digits, digits.len - 2), NULL, &v));
    CHECK(v->d == 0.1234567890123456789012345);
    CHECK_OK(json_parse(&a, str_first(STR("123"), 1), NULL, &v));
    CHECK_INT(v->i, 1);
}

TEST(json_keeps_lone_surrogates)
{
    own_done(arena) a;
    struct json *v;

    arena_init(&a, 1 << 20);
    CHECK_OK(json_parse(&a, STR("\"\\ud800\""), NULL, &v));
    CHECK_STR(v->s, "\xed\xa0\x80");
    GIVES("\"x\\ud800y\\uDFFF\"", JW_ASCII, "\"x\\ud800y\\udfff\"");
    GIVES("\"x\\ud800y\\uDFFF\"", 0, "\"x\\ud800y\\udfff\"");
    GIVES("\"\\ude00\\ud83d\"", 0, "\"\\ude00\\ud83d\"");
    GIVES("\"\\ud83d\\ud83d\\ude00\"", 0, "\"\\ud83d\xf0\x9f\x98\x80\"");
    GIVES("{\"\\udfaa\":0}", JW_ASCII, "{\"\\udfaa\":0}");
}

TEST(json_refuses_text_that_is_not_utf8_and_says_where)
{
    REFUSES("[\"ab\xff\"]", "line 1 column 5: the text is not UTF-8 here (byte 0xff)");
    REFUSES("{\"k\":\n\"\xc3\xa9\xc3\"}",
            "line 2 column 3: the text is not UTF-8 here (byte 0xc3)");
    REFUSES("[\"\\n\xed\xa0\x80\"]", "line 1 column 5: the text is not UTF-8");
    REFUSES("{\"\xc0\xaf\":1}", "line 1 column 3: the text is not UTF-8");
    REFUSES("\xfe[]", "line 1 column 1: the text is not UTF-8");
    REFUSES("\"0123456789abcdef0123456789abcdef\xe2\x82",
            "line 1 column 34: the text is not UTF-8");
}

TEST(json_errors_name_line_column_and_what_was_expected)
{
    REFUSES("{\"a\": 1,\n \"b\": [1,\n 2   ; 3]}",
            "line 3 column 6: expected ',' or ']' in an array");
    REFUSES("{\n\n  \"a\" x}", "line 3 column 7: expected ':' after a name in an object");
    REFUSES("{\"a\":1 \"b\":2}", "line 1 column 8: expected ',' or '}' in an object");
    REFUSES("{\"a\":1,}", "line 1 column 8: expected a name in double quotes after ','");
    REFUSES("{a:1}", "line 1 column 2: expected a name in double quotes or '}' in an object");
    REFUSES("[1,]", "line 1 column 4: expected a value");
    REFUSES("", "line 1 column 1: expected a value, but the text ends");
    REFUSES("[1", "line 1 column 3: expected ',' or ']' in an array, but the text ends");
    REFUSES("[\"abc", "line 1 column 6: a string is never closed");
    REFUSES("[\"a\nb\"]", "line 1 column 4: control character \\u000a in a string must be escaped");
    REFUSES("[\"\xc3\xa9\\q\"]", "line 1 column 4: no such escape in a string");
    REFUSES("[\"\\u12g4\"]", "line 1 column 3: expected four hexadecimal digits after \\u");
    REFUSES("[01]", "line 1 column 2: a number may not begin with 0");
    REFUSES("[1.]", "line 1 column 4: expected a digit after '.'");
    REFUSES("[1e]", "line 1 column 4: expected a digit in the exponent");
    REFUSES("[-]", "line 1 column 3: expected a digit after '-'");
    REFUSES("{} {}", "line 1 column 4: nothing may follow the document");
}

TEST(json_limits_size_and_depth)
{
    const struct json_limits small = {.size_bytes = 10}, flat = {.depth = 2};

    CHECK_OK(parse_error(STR("[1,2,3,45]"), &small));
    CHECK_ERR(parse_error(STR("[1,2,3,456]"), &small), ERR_TOO_LARGE,
              "JSON text of 11 bytes, more than 10 are not taken");
    CHECK_OK(parse_error(STR("[[],{},[1]]"), &flat));
    CHECK_ERR(parse_error(STR("[[],{},[[1]]]"), &flat), ERR_INVALID,
              "line 1 column 9: nested deeper than 2 levels");
    CHECK_ERR(parse_error(STR("{\"a\":{\"a\":{}}}"), &flat), ERR_INVALID, "nested deeper than 2");
}

#define DEEP 1000000

static void *parse_and_write_deep(void *text)
{
    struct arena a;
    struct buf out;
    struct json *v, *w;
    struct str *s = text;

    arena_init(&a, 1 << 30);
    buf_init(&out, 1 << 30);
    CHECK_OK(json_parse(&a, *s, &(struct json_limits){.depth = DEEP}, &v));
    CHECK_OK(json_parse(&a, *s, &(struct json_limits){.depth = DEEP}, &w));
    json_write(&out, v, 0);
    CHECK_STR(buf_str(&out), *s);
    CHECK(json_equal(v, w));
    buf_done(&out);
    arena_done(&a);
    return NULL;
}

TEST(json_of_any_depth_fits_a_small_stack)
{
    own_free char *text = malloc(2 * DEEP);
    struct str s = str_n(text, 2 * DEEP);
    pthread_attr_t attr;
    pthread_t thread;

    memset(text, '[', DEEP);
    memset(text + DEEP, ']', DEEP);
    CHECK_ERR(parse_error(s, NULL), ERR_INVALID, "column 513: nested deeper than 512 levels");
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 128 << 10);
    CHECK_INT(pthread_create(&thread, &attr, parse_and_write_deep, &s), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
}

TEST(json_reads_very_long_numbers_in_linear_time)
{
    size_t n = 4 << 20;
    own_free char *text = malloc(n);
    own_done(arena) a;
    struct json *v;

    memset(text, '7', n);
    arena_init(&a, 64 << 20);
    CHECK_OK(json_parse(&a, str_n(text, n), NULL, &v));
    CHECK_INT(v->type, JSON_BIGINT);
    CHECK_INT(v->s.len, n);
    text[1] = '.';
    CHECK_OK(json_parse(&a, str_n(text, n), NULL, &v));
    CHECK(v->d == 7.777777777777778);
    text[n - 3] = 'e';
    text[n - 2] = '+';
    CHECK_OK(json_parse(&a, str_n(text, n), NULL, &v));
    CHECK(v->d == 7.777777777777778e7);
}

/* A document that touches every way the reader asks for memory. */
static void everything(struct buf *b)
{
    buf_add_cstr(b, "{\"plain\":\"x\",\"long\":\"");
    for (int i = 0; i < 3000; i++)
        buf_add_cstr(b, "line\\n");
    buf_add_cstr(b, "\",\"many\":");
    many_keys(b, 100, 2);
    buf_add_cstr(b, ",\"list\":[");
    for (int i = 0; i < 500; i++)
        buf_addf(b, "%s[%d,\"\\t%d\"]", i ? "," : "", i, i);
    buf_add_cstr(b, "],\"real\":1.2345678901234567890123}");
}

TEST(json_answers_every_failed_allocation_with_an_error)
{
    own_done(buf) text;
    unsigned n = 1;

    buf_init(&text, 1 << 20);
    everything(&text);
    for (;; n++) {
        own_done(arena) a;
        struct json *v = NULL;

        arena_init(&a, 16 << 20);
        fault_at(n);
        struct err *e = json_parse(&a, buf_str(&text), NULL, &v);
        bool fired = fault_fired();
        fault_at(0);
        if (!fired) {
            CHECK_OK(e);
            break;
        }
        CHECK(e != NULL && v == NULL);
        CHECK_INT(err_code(e), ERR_NO_MEMORY);
        err_free(e);
    }
    CHECK(n > 5);
}

TEST(json_stays_inside_the_arena_it_was_given)
{
    own_done(buf) text;
    bool enough = false;

    buf_init(&text, 1 << 20);
    everything(&text);
    for (size_t limit = 0; !enough; limit += 1024) {
        own_done(arena) a;
        struct json *v = NULL;

        CHECK(limit < 1 << 20);
        arena_init(&a, limit);
        struct err *e = json_parse(&a, buf_str(&text), NULL, &v);
        CHECK(a.used_bytes <= limit + (256 << 10)); /* the arena rounds up to a chunk */
        enough = e == NULL;
        CHECK(enough == (v != NULL));
        if (e)
            CHECK_ERR(e, ERR_NO_MEMORY, "bytes of memory");
    }
}
