// SPDX-License-Identifier: Apache-2.0
/* json_write_test.c — the writer, and that a full buffer breaks nothing. */
#include <math.h>

#include "base/json.h"
#include "test/test.h"

static struct buf out = {.limit_bytes = 16 << 20};

static void put_sample(struct jw *w)
{
    JW_OBJECT(w, NULL) {
        jw_str(w, "s", STR("a\"b"));
        jw_cstr(w, "none", NULL);
        JW_ARRAY(w, "list") {
            jw_int(w, NULL, -5);
            jw_uint(w, NULL, UINT64_MAX);
            jw_double(w, NULL, 1);
            jw_bool(w, NULL, true);
            jw_null(w, NULL);
            JW_OBJECT(w, NULL) {
            }
            JW_ARRAY(w, NULL) {
            }
        }
        jw_key(w, STR("k\n"));
        jw_bool(w, NULL, false);
        jw_key(w, STR("deep"));
        JW_OBJECT(w, NULL) {
            jw_raw(w, "raw", STR("{\"x\": 1}"));
        }
        jw_int(w, "min", INT64_MIN);
    }
}

static struct str sample(unsigned flags)
{
    struct jw w;

    buf_reset(&out);
    jw_init(&w, &out, flags);
    put_sample(&w);
    CHECK_OK(buf_check(&out));
    return buf_str(&out);
}

TEST(jw_json_has_the_shape_of_the_code)
{
    CHECK_STR(
        sample(JW_WEB),
        "{\"s\":\"a\\\"b\",\"none\":null,\"list\":[-5,18446744073709551615,1.0,true,null,{},[]],"
        "\"k\\n\":false,\"deep\":{\"raw\":{\"x\": 1}},\"min\":-9223372036854775808}");
    CHECK_STR(
        sample(JW_PYTHON),
        "{\"s\": \"a\\\"b\", \"none\": null, \"list\": [-5, 18446744073709551615, 1.0, true, null, "
        "{}, []], \"k\\n\": false, \"deep\": {\"raw\": {\"x\": 1}}, \"min\": "
        "-9223372036854775808}");
    CHECK_STR(sample(JW_PYTHON | JW_INDENT2),
              "{\n  \"s\": \"a\\\"b\",\n  \"none\": null,\n  \"list\": [\n    -5,\n    "
              "18446744073709551615,\n    1.0,\n    true,\n    null,\n    {},\n    []\n  ],\n  "
              "\"k\\n\": false,\n  \"deep\": {\n    \"raw\": {\"x\": 1}\n  },\n  \"min\": "
              "-9223372036854775808\n}");
    buf_done(&out);
}

TEST(jw_json_lines_share_one_writer)
{
    struct jw w;

    jw_init(&w, &out, JW_SPACED);
    for (int i = 0; i < 2; i++) {
        JW_ARRAY(&w, NULL) {
            jw_int(&w, NULL, i);
            jw_int(&w, NULL, i);
        }
        buf_add_char(&out, '\n');
    }
    CHECK_STR(buf_str(&out), "[0, 0]\n[1, 1]\n");
    buf_done(&out);
}

static struct str quoted(struct str s, unsigned flags)
{
    struct jw w;

    buf_reset(&out);
    jw_init(&w, &out, flags);
    jw_str(&w, NULL, s);
    return buf_str(&out);
}

TEST(jw_json_escapes_as_python_with_and_without_ensure_ascii)
{
    struct str text = STR("\"\\/\b\f\n\r\t\x01\x1f\x7f \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");

    CHECK_STR(quoted(text, JW_ASCII),
              "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f \\u00e9\\u20ac\\ud83d\\ude00\"");
    CHECK_STR(quoted(text, 0), "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f "
                               "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
    CHECK_STR(quoted(STR("0123456789abcde\x7f"
                         "0123456789abcdef\x7f"),
                     JW_ASCII),
              "\"0123456789abcde\\u007f0123456789abcdef\\u007f\"");
    CHECK_STR(quoted(STR("a\0b"), 0), "\"a\\u0000b\"");
    CHECK_STR(quoted(STR(""), 0), "\"\"");
    CHECK_STR(quoted((struct str){NULL, 0}, 0), "\"\"");
    buf_done(&out);
}

TEST(jw_json_replaces_broken_utf8_as_python_does)
{
    /* as many as bytes.decode("utf-8", "replace") makes */
    CHECK_STR(quoted(STR("a\xff"
                         "b"),
                     0),
              "\"a\xef\xbf\xbd"
              "b\"");
    CHECK_STR(quoted(STR("\xe2\x82"), 0), "\"\xef\xbf\xbd\"");
    CHECK_STR(quoted(STR("\xf0\x9f\x98"), JW_ASCII), "\"\\ufffd\"");
    CHECK_STR(quoted(STR("\xf0\x9f"
                         "x"),
                     JW_ASCII),
              "\"\\ufffdx\"");
    CHECK_STR(quoted(STR("\xe0\x80\xaf"), JW_ASCII), "\"\\ufffd\\ufffd\\ufffd\"");
    CHECK_STR(quoted(STR("\xf4\x90\x80\x80"), JW_ASCII), "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
    CHECK_STR(quoted(STR("\xc3"), JW_ASCII), "\"\\ufffd\"");
    CHECK_STR(quoted(STR("\xed\xa0"), JW_ASCII), "\"\\ufffd\\ufffd\"");
    buf_done(&out);
}

TEST(jw_json_double_is_repr_and_never_nan_on_the_web)
{
    char text[JSON_DOUBLE_MAX];
    struct jw w;

    CHECK_STR(str_n(text, json_format_double(1e-7, text)), "1e-07");
    CHECK_STR(str_n(text, json_format_double(1e16, text)), "1e+16");
    CHECK_STR(str_n(text, json_format_double(-123.4, text)), "-123.4");
    CHECK_STR(str_n(text, json_format_double(1e100, text)), "1e+100");
    CHECK_STR(str_n(text, json_format_double(-0.0, text)), "-0.0");
    CHECK_STR(str_n(text, json_format_double(NAN, text)), "nan");
    CHECK_STR(str_n(text, json_format_double(-INFINITY, text)), "-inf");
    jw_init(&w, &out, JW_WEB);
    JW_ARRAY(&w, NULL) {
        jw_double(&w, NULL, NAN);
        jw_double(&w, NULL, -INFINITY);
    }
    jw_init(&w, &out, JW_ALLOW_NAN);
    JW_ARRAY(&w, NULL) {
        jw_double(&w, NULL, NAN);
        jw_double(&w, NULL, -INFINITY);
        jw_double(&w, NULL, INFINITY);
    }
    CHECK_STR(buf_str(&out), "[null,null][NaN,-Infinity,Infinity]");
    buf_done(&out);
}

/* The same text into a buffer of every size: whole, or marked as failed and within its limit. */
TEST(jw_json_into_a_full_buffer_breaks_nothing)
{
    own_done(arena) a;
    struct json *v;
    struct str text = STR("{\"k\": [\"\\u001b[0m\\n\\u00e9\\ud83d\\ude00\", 1.5, {\"x\": [null]}], "
                          "\"l\": \"plain text\"}");

    arena_init(&a, 1 << 20);
    CHECK_OK(json_parse(&a, text, NULL, &v));
    for (size_t limit = 0; limit <= text.len; limit++) {
        own_done(buf) b;

        buf_init(&b, limit);
        json_write(&b, v, JW_PYTHON);
        CHECK(b.len <= limit);
        CHECK(buf_failed(&b) == (limit < text.len));
        if (limit == text.len)
            CHECK_STR(buf_str(&b), text);
        else
            CHECK_ERR(buf_check(&b), ERR_TOO_LARGE, "more than");
    }
}

TEST(jw_json_marks_the_buffer_when_memory_runs_out)
{
    own_done(arena) a;
    own_done(buf) nested;
    struct json *v;
    unsigned n = 1;

    arena_init(&a, 1 << 20);
    buf_init(&nested, 1 << 20);
    for (int i = 0; i < 300; i++)
        buf_add_char(&nested, '[');
    for (int i = 0; i < 300; i++)
        buf_add_char(&nested, ']');
    CHECK_OK(json_parse(&a, buf_str(&nested), NULL, &v));
    for (bool fired = true; fired; n++) {
        own_done(buf) b;

        buf_init(&b, 1 << 20);
        fault_at(n);
        json_write(&b, v, JW_PYTHON);
        fired = fault_fired();
        fault_at(0);
        CHECK(b.no_memory == fired);
    }
    CHECK(n > 5);
    CHECK(json_equal(v, v));
    fault_at(1);
    CHECK(json_equal(v, v)); /* a chain needs no memory however deep */
    fault_at(0);
}
