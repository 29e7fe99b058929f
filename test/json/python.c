// SPDX-License-Identifier: Apache-2.0
/* python.c — see python.h. */
#include "test/json/python.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"
#include "test/test.h"

static const unsigned modes[] = {
    JW_PYTHON,
    JW_ALLOW_NAN,
    JW_ALLOW_NAN | JW_SPACED,
    JW_ALLOW_NAN | JW_ASCII,
    JW_ALLOW_NAN | JW_ASCII | JW_INDENT2,
    JW_ALLOW_NAN | JW_INDENT2,
};

/* A lone surrogate has no UTF-8: without ensure_ascii we print it as \udXXX. */
static const char script[] =
    "import json, struct, sys\n"
    "sys.set_int_max_str_digits(0)\n"
    "sys.setrecursionlimit(10000)\n"
    "i, o = sys.stdin.buffer, sys.stdout.buffer\n"
    "modes = [{}, dict(ensure_ascii=False, separators=(',', ':')), dict(ensure_ascii=False),\n"
    "         dict(separators=(',', ':')), dict(indent=2), dict(ensure_ascii=False, indent=2)]\n"
    "def put(b): o.write(struct.pack('<I', len(b)) + b)\n"
    "def escape(e):\n"
    "    return ''.join('\\\\u%04x' % ord(c) for c in e.object[e.start:e.end]), e.end\n"
    "import codecs; codecs.register_error('escape', escape)\n"
    "while head := i.read(4):\n"
    "    text = i.read(struct.unpack('<I', head)[0])\n"
    "    try: v = json.loads(text)\n"
    "    except ValueError: v, bad = None, True\n"
    "    else: bad = False\n"
    "    for m in modes: put(b'refused' if bad else json.dumps(v, **m).encode('utf-8', "
    "'escape'))\n";

void python_begin(struct python_batch *b)
{
    *b = (struct python_batch){0};
    buf_init(&b->sent, 256 << 20);
    buf_init(&b->answers, 512 << 20);
}

void python_done(struct python_batch *b)
{
    buf_done(&b->sent);
    buf_done(&b->answers);
}

void python_add(struct python_batch *b, struct str document)
{
    uint32_t n = (uint32_t)document.len;

    buf_add_mem(&b->sent, &n, sizeof n);
    buf_add(&b->sent, document);
    b->count++;
}

static void write_file(const char *path, struct str s)
{
    FILE *f = fopen(path, "w");

    CHECK(f && fwrite(s.p, 1, s.len, f) == s.len);
    fclose(f);
}

void python_script(const char *text, struct str input, struct buf *answers)
{
    char code[300], in[300], command[1024];

    if (access("/usr/bin/python3", X_OK) < 0)
        SKIP("no /usr/bin/python3");
    snprintf(code, sizeof code, "%s/code.py", test_dir());
    snprintf(in, sizeof in, "%s/in", test_dir());
    write_file(code, str_of(text));
    write_file(in, input);
    snprintf(command, sizeof command, "/usr/bin/python3 '%s' < '%s'", code, in);
    FILE *f = popen(command, "r");
    CHECK(f != NULL);
    for (;;) {
        char *to = buf_reserve(answers, 1 << 16);
        CHECK(to != NULL);
        size_t n = fread(to, 1, 1 << 16, f);
        if (n == 0)
            break;
        buf_commit(answers, n);
    }
    CHECK_INT(pclose(f), 0);
}

void python_run(struct python_batch *b)
{
    CHECK_OK(buf_check(&b->sent));
    python_script(script, buf_str(&b->sent), &b->answers);
}

static struct str next(struct str *s)
{
    uint32_t n;

    CHECK(s->len >= sizeof n);
    memcpy(&n, s->p, sizeof n);
    CHECK(s->len - sizeof n >= n);
    struct str item = str_n(s->p + sizeof n, n);
    *s = str_from(*s, sizeof n + n);
    return item;
}

static void compare_one(struct str document, struct str *answers)
{
    own_done(arena) a;
    own_done(buf) out;
    struct json *v = NULL;

    arena_init(&a, 256 << 20);
    buf_init(&out, 256 << 20);
    struct err *e = json_parse(&a, document, &(struct json_limits){.allow_nan = true}, &v);
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        struct str want = next(answers);
        buf_reset(&out);
        if (e)
            buf_add_cstr(&out, "refused");
        else
            json_write(&out, v, modes[i]);
        if (!str_eq(buf_str(&out), want))
            printf("mode %zu of: %.*s%s%s\n", i, (int)(document.len < 2000 ? document.len : 2000),
                   document.p, e ? "\nrefused: " : "", e ? err_text(e) : "");
        CHECK_STR(buf_str(&out), want);
    }
    err_free(e);
}

void python_compare(struct python_batch *b)
{
    struct str sent = buf_str(&b->sent), answers = buf_str(&b->answers);

    for (unsigned i = 0; i < b->count; i++)
        compare_one(next(&sent), &answers);
    CHECK_INT(answers.len, 0);
}
