// SPDX-License-Identifier: Apache-2.0
/* json_suite_test.c — the verdicts in test/json/cases.txt, and Python's on the same texts. */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "test/json/python.h"
#include "test/test.h"

struct suite {
    struct buf file;
    struct str rest;
    unsigned line;
    struct buf text; /* of the case at hand */
    char verdict;
};

static void suite_open(struct suite *s)
{
    *s = (struct suite){0};
    buf_init(&s->file, 1 << 20);
    buf_init(&s->text, 4 << 20);
    FILE *f = fopen(test_source("test/json/cases.txt"), "r");
    CHECK(f != NULL);
    char *to = buf_reserve(&s->file, 1 << 18);
    buf_commit(&s->file, fread(to, 1, 1 << 18, f));
    fclose(f);
    s->rest = buf_str(&s->file);
}

static void suite_close(struct suite *s)
{
    buf_done(&s->file);
    buf_done(&s->text);
}

static void expand(struct buf *out, struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.p[i] != '%') {
            buf_add_char(out, s.p[i]);
            continue;
        }
        if (s.p[i + 1] != '{') {
            char hex[3] = {s.p[i + 1], s.p[i + 2], 0};
            buf_add_char(out, (char)strtol(hex, NULL, 16));
            i += 2;
            continue;
        }
        char *what;
        long n = strtol(s.p + i + 2, &what, 10);
        const char *last = memchr(what, '}', (size_t)(s.p + s.len - what));
        CHECK(*what == '*' && last);
        own_done(buf) once;
        buf_init(&once, 256);
        expand(&once, str_n(what + 1, (size_t)(last - what - 1)));
        while (n--)
            buf_add(out, buf_str(&once));
        i = (size_t)(last - s.p);
    }
}

static bool suite_next(struct suite *s)
{
    struct str line;

    while (str_cut(&s->rest, '\n', &line) || line.len) {
        s->line++;
        if (line.len == 0 || line.p[0] == '#')
            continue;
        s->verdict = line.p[0];
        CHECK(line.len == 1 || line.p[1] == ' ');
        buf_reset(&s->text);
        expand(&s->text, str_from(line, 2));
        return true;
    }
    return false;
}

static bool taken(struct str text, bool allow_nan)
{
    own_done(arena) a;
    struct json *v = NULL;

    arena_init(&a, 64 << 20);
    struct err *e = json_parse(&a, text, &(struct json_limits){.allow_nan = allow_nan}, &v);
    if (e) {
        CHECK(v == NULL);
        CHECK_INT(err_code(e), ERR_INVALID);
        CHECK(str_starts(str_of(err_text(e)), STR("line ")));
        err_free(e);
    }
    return v != NULL;
}

TEST(json_takes_and_refuses_the_texts_of_the_public_suite)
{
    struct suite s;
    unsigned count[3] = {0};

    suite_open(&s);
    while (suite_next(&s)) {
        CHECK(strchr("ynf", s.verdict));
        if (taken(buf_str(&s.text), false) != (s.verdict == 'y'))
            FAIL("test/json/cases.txt:%u: not %c by default", s.line, s.verdict);
        if (taken(buf_str(&s.text), true) != (s.verdict != 'n'))
            FAIL("test/json/cases.txt:%u: not %c with allow_nan", s.line, s.verdict);
        count[s.verdict == 'y' ? 0 : s.verdict == 'n' ? 1 : 2]++;
    }
    suite_close(&s);
    CHECK(count[0] > 120 && count[1] > 250 && count[2] >= 12); /* the file was read whole */
}

TEST(json_cut_anywhere_is_refused_or_whole)
{
    struct suite s;

    suite_open(&s);
    while (suite_next(&s)) {
        struct str text = buf_str(&s.text);
        for (size_t n = 0; n < text.len && n < 300; n++) {
            own_free char *exact = malloc(n + 1); /* so that ASan sees a read past the end */
            memcpy(exact + 1, text.p, n);
            bool open = n && (text.p[0] == '[' || text.p[0] == '{' || text.p[0] == '"');
            if (taken(str_n(exact + 1, n), true) && open && s.verdict == 'y')
                CHECK_STR(str_trim(text),
                          str_trim(str_n(exact + 1, n))); /* only space was cut off */
        }
    }
    suite_close(&s);
}

TEST(json_decides_on_the_suite_as_python_does)
{
    struct suite s;
    struct python_batch batch;

    python_begin(&batch);
    suite_open(&s);
    while (suite_next(&s))
        if (s.verdict != 'n')
            python_add(&batch, buf_str(&s.text));
    suite_close(&s);
    python_run(&batch);
    python_compare(&batch);
    python_done(&batch);
}
