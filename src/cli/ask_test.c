// SPDX-License-Identifier: Apache-2.0
#include "cli/ask.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "test/program.h"
#include "test/raw.h"
#include "test/test.h"

struct asking {
    struct cli cli;
    const char *env[2];
    char host[300];
    struct raw raw;
    struct ask k;
};

/* CROFT_HOST is a server that answers so. */
static void ask_begin(struct asking *a, const struct raw_script *script)
{
    *a = (struct asking){.cli = {.out = -1, .err = -1}};
    snprintf(a->host, sizeof a->host, "CROFT_HOST=unix:%s/s", test_dir());
    a->env[0] = a->host;
    a->cli.envp = a->env;
    CHECK_OK(ask_open(&a->k, &a->cli));
    raw_start(&a->raw, a->k.loop, a->host + sizeof "CROFT_HOST=" - 1, script, 1);
}

static void ask_end(struct asking *a)
{
    raw_stop(&a->raw);
    ask_close(&a->k);
}

/* Its body ends with the connection. */
#define ANSWER(status, body)                                                                       \
    {                                                                                              \
        .answers = {STR_INIT("HTTP/1.1 " status " X\r\n\r\n" body)}, .end = RAW_CLOSE              \
    }

static void check_says(const struct raw_script *script, enum err_code code, const char *part)
{
    struct asking a;
    struct ask_answer r;

    ask_begin(&a, script);
    CHECK_ERR(ask_json(&a.k, "GET", STR("/x"), (struct str){0}, &r), code, part);
    ask_end(&a);
}

TEST(ask_gives_the_detail_of_a_refusal)
{
    static const struct raw_script plain = ANSWER("404", "{\"detail\":\"a 404\"}"),
                                   deep = ANSWER("409", "{\"detail\":{\"message\":\"a 409\"}}"),
                                   named = ANSWER("503", "{\"error\":\"a 503\"}");

    check_says(&plain, ERR_NOT_FOUND, "a 404");
    check_says(&deep, ERR_CONFLICT, "a 409");
    check_says(&named, ERR_BUSY, "a 503");
}

TEST(ask_says_that_what_answers_is_no_croft_server)
{
    static const struct raw_script empty = ANSWER("502", ""),
                                   page = ANSWER("404", "<html>\nno\n</"),
                                   other = ANSWER("404", "{}"), moved = ANSWER("301", ""),
                                   fine = ANSWER("200", "<html>");

    check_says(&empty, ERR_UPSTREAM, "/s' answered 502, which is not what a croft server says");
    check_says(&page, ERR_UPSTREAM, "CROFT_HOST '/");
    check_says(&page, ERR_UPSTREAM, "/s' answered 404, which is not");
    check_says(&other, ERR_UPSTREAM, "/s' answered 404, which is not");
    check_says(&moved, ERR_UPSTREAM, "/s' answered 301, which is not");
    check_says(&fine, ERR_UPSTREAM, "/s' answered 200, which is not");
}

TEST(ask_says_it_of_a_stream_and_a_sandbox_too)
{
    struct asking a;
    static const struct raw_script any = ANSWER("502", "");

    ask_begin(&a, &any);
    CHECK_OK(ask_refused(&a.k, 204, STR("")));
    CHECK_ERR(ask_refused(&a.k, 502, STR("<html>")), ERR_UPSTREAM,
              "answered 502, which is not what a croft server says");
    CHECK_ERR(ask_refused(&a.k, 422, STR("{\"detail\":\"no\"}")), ERR_INVALID, "no");
    ask_end(&a);
}

TEST(ask_takes_a_host_and_a_port_for_http)
{
    static const char *const hosts[][2] = {{"CROFT_HOST=localhost:3000", "http://localhost:3000"},
                                           {"CROFT_HOST=10.0.0.1:80", "http://10.0.0.1:80"},
                                           {"CROFT_HOST=https://a:1", "https://a:1"},
                                           {"CROFT_HOST=ftp://x:1", NULL},
                                           {"CROFT_HOST=host:name", NULL},
                                           {"CROFT_HOST=localhost", NULL},
                                           {"CROFT_HOST=:3000", NULL}};

    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        struct cli cli = {.out = -1, .err = -1, .envp = ARGS(hosts[i][0])};
        struct ask k;
        struct err *e = ask_open(&k, &cli);
        if (hosts[i][1]) {
            CHECK_OK(e);
            CHECK_STR(k.url, hosts[i][1]);
        } else {
            CHECK_ERR(e, ERR_INVALID, "wanted http://HOST:PORT");
        }
        ask_close(&k);
    }
}

/* Somebody listens, and that is all. */
TEST(ask_says_that_it_waits_and_gives_up)
{
    static const struct raw_script silent = {.end = RAW_KEEP};
    struct asking a;
    struct ask_answer r;
    int said[2];
    own_done(buf) text;

    buf_init(&text, 4096);
    ask_begin(&a, &silent);
    CHECK_INT(pipe2(said, O_CLOEXEC), 0);
    a.cli.err = said[1];
    a.cli.command = cli_command_find("ps");
    a.k.wait_ms = 50;
    a.k.late_ms = 1;
    CHECK_ERR(ask_json(&a.k, "GET", STR("/x"), (struct str){0}, &r), ERR_TIMEOUT,
              "no answer from '/");
    a.k.tells = true; /* a terminal */
    CHECK_ERR(ask_json(&a.k, "GET", STR("/x"), (struct str){0}, &r), ERR_TIMEOUT,
              "/s', which may be no croft");
    close(said[1]);
    CHECK_OK(fd_read_all(said[0], &text));
    close(said[0]);
    CHECK_HAS(buf_str(&text), "croft ps: waiting for an answer of ");
    CHECK_INT(str_find(str_from(buf_str(&text), 1), STR("croft ps")),
              -1); /* the first told nobody */
    ask_end(&a);
}
