// SPDX-License-Identifier: Apache-2.0
/* bench/json.c — JSON read and written per second, ours and CPython's, on events as agents send
 * them. Both read the same bytes in the same run; CPU time, best of several rounds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/rng.h"

#define EVENTS     2000
#define ROUNDS     20
#define ARENA_SIZE (1 << 20)
#define BAR_PARSE  3.0
#define BAR_WRITE  2.0

enum { PARSE, WRITE, PARSE_WEB, WRITE_WEB, MEASURES };

struct corpus {
    struct buf text; /* events, one per line */
    struct str lines[EVENTS];
};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "bench/json: %s\n", what);
    exit(1);
}

/* --- the events --- */

static void make_output(struct rng *rng, struct buf *out, size_t want)
{
    static const char *const lines[] = {
        "\x1b[32mPASSED\x1b[0m tests/test_%u.py::test_\"quoted\"\n",
        "-rw-r--r-- 1 user user %u Nov 15 09:06 main.c\n",
        "  File \"/workspace/app.py\", line %u, in <module>\n",
        "\tr\xc3\xa9sum\xc3\xa9 \xe2\x80\x94 \xe2\x9c\x93 %u d\xc3\xa9j\xc3\xa0 vu\r\n",
        "Collecting numpy==1.%u \xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e \xf0\x9f\x9a\x80\n",
        "src/net/http.c:%u:12: warning: unused variable 'n' [-Wunused-variable]\n",
        "\n",
    };

    while (out->len < want)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        buf_addf(out, lines[rng_below(rng, ARRAY_LEN(lines))], (unsigned)rng_below(rng, 100000));
#pragma GCC diagnostic pop
}

static void put_action(struct jw *w, unsigned id)
{
    char text[96];

    JW_OBJECT(w, NULL) {
        jw_uint(w, "id", id);
        jw_cstr(w, "timestamp", "2026-11-15T09:06:31.123456");
        jw_cstr(w, "source", "agent");
        jw_cstr(w, "message", "Running command: pytest -q && echo \"done\"");
        jw_cstr(w, "action", "run");
        JW_OBJECT(w, "args") {
            snprintf(text, sizeof text, "cd /workspace && grep -rn \"def test_%u\" . | head\n", id);
            jw_cstr(w, "command", text);
            jw_bool(w, "is_input", false);
            jw_cstr(w, "thought", "Let me look at the tests first; they say what is expected.");
            jw_bool(w, "blocking", false);
            jw_cstr(w, "confirmation_state", "confirmed");
            jw_null(w, "cwd");
        }
        jw_double(w, "timeout", 120.0);
    }
}

static void put_observation(struct jw *w, unsigned id, struct str content)
{
    JW_OBJECT(w, NULL) {
        jw_uint(w, "id", id);
        jw_cstr(w, "timestamp", "2026-11-15T09:06:32.654321");
        jw_cstr(w, "source", "agent");
        jw_cstr(w, "message", "Command executed with exit code 0.");
        jw_uint(w, "cause", id - 1);
        jw_cstr(w, "observation", "run");
        jw_str(w, "content", content);
        JW_OBJECT(w, "extras") {
            jw_cstr(w, "command", "cd /workspace && grep -rn \"def test\" . | head\n");
            JW_OBJECT(w, "metadata") {
                jw_int(w, "exit_code", id % 7 ? 0 : -1);
                jw_uint(w, "pid", 4000 + id);
                jw_cstr(w, "username", "openhands");
                jw_cstr(w, "hostname", "sandbox-7f3a");
                jw_cstr(w, "working_dir", "/workspace");
                jw_cstr(w, "py_interpreter_path", "/openhands/micromamba/bin/python");
                jw_cstr(w, "prefix", "");
                jw_cstr(w, "suffix", "\n[The command completed with exit code 0.]");
                jw_double(w, "seconds", id * 0.0625 + 0.1);
            }
            jw_bool(w, "hidden", false);
        }
        jw_bool(w, "success", id % 7 != 0);
    }
}

static void make_corpus(struct corpus *c)
{
    struct rng_fixed fixed;
    struct rng *rng = rng_fixed_init(&fixed, 2026);
    size_t starts[EVENTS + 1];
    own_done(buf) content;

    buf_init(&content, 1 << 20);
    buf_init(&c->text, 64 << 20);
    for (unsigned i = 0; i < EVENTS; i++) {
        struct jw w;
        starts[i] = c->text.len;
        jw_init(&w, &c->text, JW_PYTHON);
        buf_reset(&content);
        make_output(rng, &content, 200 + rng_below(rng, 1400));
        if (i % 2)
            put_observation(&w, i, buf_str(&content));
        else
            put_action(&w, i);
        buf_add_char(&c->text, '\n');
    }
    starts[EVENTS] = c->text.len;
    for (unsigned i = 0; i < EVENTS; i++)
        c->lines[i] = str_n(c->text.p + starts[i], starts[i + 1] - starts[i] - 1);
}

/* --- ours --- */

static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double parse_all(const struct str *lines)
{
    struct arena a;
    double start = cpu_seconds();

    arena_init(&a, ARENA_SIZE);
    for (unsigned i = 0; i < EVENTS; i++) {
        struct json *v;
        if (json_parse(&a, lines[i], NULL, &v))
            die("an event was refused");
        arena_reset(&a);
    }
    arena_done(&a);
    return cpu_seconds() - start;
}

static double write_all(struct json *const *values, unsigned flags)
{
    double start = cpu_seconds();

    for (unsigned i = 0; i < EVENTS; i++) {
        own_done(buf) out; /* a new one each time, as json.dumps makes a new string */
        buf_init(&out, ARENA_SIZE);
        json_write(&out, values[i], flags);
        if (buf_failed(&out))
            die("out of memory");
    }
    return cpu_seconds() - start;
}

static void least(double *into, double seconds)
{
    if (*into == 0 || seconds < *into)
        *into = seconds;
}

static void measure_ours(struct corpus *c, struct corpus *web, double seconds[MEASURES])
{
    static struct json *values[EVENTS];
    struct arena a;

    arena_init(&a, 256 << 20);
    buf_init(&web->text, 64 << 20);
    size_t at = 0;
    for (unsigned i = 0; i < EVENTS; i++) {
        if (json_parse(&a, c->lines[i], NULL, &values[i]))
            die("an event was refused");
        json_write(&web->text, values[i], JW_WEB);
        web->lines[i].len = web->text.len - at;
        at = web->text.len;
    }
    at = 0;
    for (unsigned i = 0; i < EVENTS; i++) {
        web->lines[i].p = web->text.p + at;
        at += web->lines[i].len;
    }
    for (int round = 0; round < ROUNDS; round++) {
        least(&seconds[PARSE], parse_all(c->lines));
        least(&seconds[WRITE], write_all(values, JW_PYTHON));
        least(&seconds[PARSE_WEB], parse_all(web->lines));
        least(&seconds[WRITE_WEB], write_all(values, JW_WEB));
    }
    arena_done(&a);
}

/* --- Python's --- */

static void measure_python(const struct corpus *c, double seconds[MEASURES])
{
    char path[] = "/tmp/croft-bench-json-XXXXXX", command[256];
    int fd = mkstemp(path);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

    if (!file || fwrite(c->text.p, 1, c->text.len, file) != c->text.len || fclose(file))
        die("no temporary file");
    snprintf(command, sizeof command, "/usr/bin/python3 -P bench/json.py %s %d", path, ROUNDS);
    FILE *answer = popen(command, "r");
    if (!answer || fscanf(answer, "%lf %lf %lf %lf\n", &seconds[0], &seconds[1], &seconds[2],
                          &seconds[3]) != 4)
        die("python3 bench/json.py gave no figures");
    own_free char *again = malloc(c->text.len + 1);
    size_t n = again ? fread(again, 1, c->text.len + 1, answer) : 0;
    pclose(answer);
    unlink(path);
    if (n != c->text.len || memcmp(again, c->text.p, n) != 0)
        die("json.dumps writes other bytes than ours");
}

int main(void)
{
    static const char *const names[MEASURES] = {"parse, json.dumps form", "write, json.dumps form",
                                                "parse, web form", "write, web form"};
    static struct corpus events, web;
    double ours[MEASURES] = {0}, python[MEASURES];

    make_corpus(&events);
    measure_ours(&events, &web, ours);
    measure_python(&events, python);
    printf("%u events, %zu bytes (%zu in web form), CPU time, best of %d\n", EVENTS,
           events.text.len, web.text.len, ROUNDS);
    printf("%-24s %10s %14s %7s\n", "", "ours MB/s", "CPython MB/s", "ratio");
    for (int i = 0; i < MEASURES; i++) {
        double mb = (double)(i < PARSE_WEB ? events.text.len : web.text.len) / 1e6;
        printf("%-24s %10.0f %14.0f %6.1fx\n", names[i], mb / ours[i], mb / python[i],
               python[i] / ours[i]);
    }
    double parse = python[PARSE] / ours[PARSE], write = python[WRITE] / ours[WRITE];
    printf("bench/json: parse %.1fx write %.1fx CPython\n", parse, write);
    buf_done(&events.text);
    buf_done(&web.text);
    return parse < BAR_PARSE || write < BAR_WRITE;
}
