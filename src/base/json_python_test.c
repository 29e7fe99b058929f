// SPDX-License-Identifier: Apache-2.0
/* json_python_test.c — random documents and numbers, ours against Python's byte for byte. */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/rng.h"
#include "test/json/python.h"
#include "test/test.h"

/* --- documents --- */

struct maker {
    struct rng *rng;
    struct buf *out;
    unsigned left; /* values it may still make */
};

static unsigned below(struct maker *m, unsigned n)
{
    return (unsigned)rng_below(m->rng, n);
}

static void make_space(struct maker *m)
{
    static const char *const spaces[] = {"", "", "", " ", "\n", "\t ", "\r\n    "};

    buf_add_cstr(m->out, spaces[below(m, ARRAY_LEN(spaces))]);
}

static void make_code_point(struct maker *m)
{
    static const char *const ready[] = {"é",
                                        "€",
                                        "日本語",
                                        "😀",
                                        "\xf4\x8f\xbf\xbf",
                                        "\x7f",
                                        "\\n",
                                        "\\\"",
                                        "\\\\",
                                        "\\/",
                                        "\\b\\f\\r\\t",
                                        "\\u001b[31m",
                                        "\\u0000",
                                        "\\u007f",
                                        "\\u00e9",
                                        "\\uFFFF",
                                        "\\ud83d\\ude00",
                                        "\\ud83d",
                                        "\\ude00",
                                        "\\ud83d\\ud83d\\ude00",
                                        "/",
                                        "<&>"};

    if (below(m, 3)) {
        for (unsigned n = below(m, 30); n--;)
            buf_add_char(m->out, "abcdefghijklmnopqrstuvwxyz 0123456789.,:{}[]"[below(m, 44)]);
        return;
    }
    if (below(m, 4) == 0)
        buf_addf(m->out, "\\u%04x", below(m, 65536));
    else
        buf_add_cstr(m->out, ready[below(m, ARRAY_LEN(ready))]);
}

static void make_string(struct maker *m)
{
    buf_add_char(m->out, '"');
    for (unsigned n = below(m, 6); n--;)
        make_code_point(m);
    buf_add_char(m->out, '"');
}

static void make_number(struct maker *m)
{
    static const char *const ready[] = {"0",
                                        "-0",
                                        "-0.0",
                                        "1.0",
                                        "1e16",
                                        "1e15",
                                        "1e-7",
                                        "1e-4",
                                        "1e-5",
                                        "123.4",
                                        "0.1",
                                        "1e22",
                                        "1e23",
                                        "5e-324",
                                        "1e999",
                                        "-1e999",
                                        "NaN",
                                        "-Infinity",
                                        "9223372036854775807",
                                        "-9223372036854775808",
                                        "9223372036854775808",
                                        "2.2250738585072011e-308"};

    switch (below(m, 5)) {
    case 0:
        buf_add_cstr(m->out, ready[below(m, ARRAY_LEN(ready))]);
        return;
    case 1:
        buf_addf(m->out, "%d", (int)below(m, 2000) - 1000);
        return;
    case 2:
        buf_addf(m->out, "%lld", (long long)rng_u64(m->rng));
        return;
    case 3:
        buf_addf(m->out, "%u.%u", below(m, 100000), below(m, 1000000));
        return;
    default:
        buf_add_cstr(m->out, below(m, 2) ? "-" : "");
        buf_add_char(m->out, (char)('1' + below(m, 9)));
        for (unsigned n = below(m, 25); n--;)
            buf_add_char(m->out, (char)('0' + below(m, 10)));
        if (below(m, 2))
            buf_addf(m->out, ".%u", below(m, 1000000000));
        if (below(m, 2))
            buf_addf(m->out, "%c%d", "eE"[below(m, 2)], (int)below(m, 660) - 330);
    }
}

static void make_key(struct maker *m)
{
    if (below(m, 2)) /* few names, so that some come twice */
        buf_addf(m->out, "\"%s%u\"", below(m, 8) ? "k" : "\\u006b", below(m, 12));
    else
        make_string(m);
}

static void make_value(struct maker *m, unsigned depth)
{
    static const char *const words[] = {"null", "true", "false"};
    unsigned kind = below(m, depth > 12 || m->left == 0 ? 4 : 8);
    bool object = kind & 1;

    if (m->left)
        m->left--;
    make_space(m);
    if (kind == 0) {
        buf_add_cstr(m->out, words[below(m, 3)]);
    } else if (kind < 3) {
        make_string(m);
    } else if (kind == 3) {
        make_number(m);
    } else {
        unsigned n = below(m, 8) ? below(m, 6) : below(m, 60);
        buf_add_char(m->out, object ? '{' : '[');
        make_space(m);
        for (unsigned i = 0; i < n; i++) {
            if (i)
                buf_add_char(m->out, ',');
            if (object) {
                make_space(m);
                make_key(m);
                make_space(m);
                buf_add_char(m->out, ':');
            }
            make_value(m, depth + 1);
        }
        buf_add_char(m->out, object ? '}' : ']');
    }
    make_space(m);
}

static void compare_documents(uint64_t seed, unsigned count, unsigned broken)
{
    struct rng_fixed fixed;
    struct python_batch batch;
    struct buf text;
    struct maker m = {.rng = rng_fixed_init(&fixed, seed), .out = &text};

    python_begin(&batch);
    buf_init(&text, 16 << 20);
    for (unsigned i = 0; i < count; i++) {
        buf_reset(&text);
        m.left = 60;
        make_value(&m, 0);
        for (unsigned n = broken ? below(&m, broken) : 0; n--;)
            text.p[below(&m, (unsigned)text.len)] = "\"\\{}[],:0-e.u \ntn"[below(&m, 17)];
        python_add(&batch, buf_str(&text));
    }
    buf_done(&text);
    python_run(&batch);
    python_compare(&batch);
    python_done(&batch);
}

TEST_LIMIT(json_writes_random_documents_as_python_in_every_mode, 120)
{
    compare_documents(1, 3000, 0);
}

TEST_LIMIT(json_refuses_broken_documents_when_python_does, 120)
{
    compare_documents(2, 3000, 3);
}

/* --- numbers --- */

static double from_bits(uint64_t bits)
{
    double d;

    memcpy(&d, &bits, sizeof d);
    return d;
}

static void add_bits(struct buf *b, uint64_t bits)
{
    buf_add_mem(b, &bits, sizeof bits);
}

TEST_LIMIT(json_prints_doubles_as_python_repr, 120)
{
    static const char script[] =
        "import sys, struct\n"
        "d = sys.stdin.buffer.read()\n"
        "print('\\n'.join(map(repr, struct.unpack('<%dd' % (len(d) // 8), d))))\n";
    struct rng_fixed fixed;
    struct rng *rng = rng_fixed_init(&fixed, 3);
    own_done(buf) bits;
    own_done(buf) answers;

    buf_init(&bits, 16 << 20);
    buf_init(&answers, 64 << 20);
    for (unsigned i = 0; i < 200000; i++)
        add_bits(&bits, rng_u64(rng));
    for (uint64_t e = 0; e < 0x7ff; e++) /* powers of two and both neighbours: uneven boundaries */
        for (uint64_t i = 0; i < 3; i++)
            add_bits(&bits, (e << 52) + i - (e > 0));
    for (unsigned i = 0; i < 50000; i++) { /* few digits, as people write them */
        char text[32];
        snprintf(text, sizeof text, "%ue%d", (unsigned)rng_below(rng, 1000000),
                 (int)rng_below(rng, 40) - 20);
        double d = strtod(text, NULL);
        uint64_t u;
        memcpy(&u, &d, sizeof u);
        add_bits(&bits, u);
    }
    python_script(script, buf_str(&bits), &answers);
    struct str rest = buf_str(&answers), want;
    for (size_t i = 0; i < bits.len / 8; i++) {
        uint64_t u;
        char text[JSON_DOUBLE_MAX];
        CHECK(str_cut(&rest, '\n', &want));
        memcpy(&u, bits.p + i * 8, 8);
        CHECK_STR(str_n(text, json_format_double(from_bits(u), text)), want);
    }
}

TEST_LIMIT(json_reads_decimals_as_python_float, 120)
{
    static const char script[] =
        "import sys, struct\n"
        "for l in sys.stdin: sys.stdout.buffer.write(struct.pack('<d', float(l)))\n";
    struct rng_fixed fixed;
    own_done(buf) text;
    own_done(buf) answers;
    struct maker m = {.rng = rng_fixed_init(&fixed, 4), .out = &text};

    buf_init(&text, 64 << 20);
    buf_init(&answers, 64 << 20);
    for (unsigned i = 0; i < 150000; i++) {
        unsigned most = i % 3 ? 19 : i % 9 ? 40 : 800;
        buf_addf(&text, "%s%u.", below(&m, 2) ? "-" : "", below(&m, 10));
        for (unsigned n = 1 + below(&m, most); n--;)
            buf_add_char(&text, (char)('0' + below(&m, 10)));
        buf_addf(&text, "e%d\n", (int)below(&m, 700) - 350);
    }
    for (unsigned i = 0; i < 50000; i++) { /* exactly between two doubles */
        uint64_t u = rng_u64(m.rng) & 0x7fefffffffffffffu;
        u = (u & 0x000fffffffffffffu) | (uint64_t)(1023 + below(&m, 60)) << 52;
        long double middle = ((long double)from_bits(u) + (long double)from_bits(u + 1)) / 2;
        buf_addf(&text, "%.60Lf\n", middle);
    }
    python_script(script, buf_str(&text), &answers);
    struct str rest = buf_str(&text), line;
    for (size_t i = 0; str_cut(&rest, '\n', &line); i++) {
        own_done(arena) a;
        struct json *v;
        arena_init(&a, 1 << 16);
        CHECK_OK(json_parse(&a, line, &(struct json_limits){.allow_nan = true}, &v));
        if (memcmp(&v->d, answers.p + i * 8, 8) != 0)
            FAIL("%.*s is not read as Python reads it", (int)line.len, line.p);
    }
}
