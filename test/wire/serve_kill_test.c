// SPDX-License-Identifier: Apache-2.0
/* serve_kill_test.c — the server is killed; what it acknowledged is there when the next one comes.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "test/native/kit.h"
#include "test/program.h"
#include "test/serve_kit.h"

static const char *status_of(struct serve *s, const char *session)
{
    return serve_field(s, serve_want(s, 200, "GET", serve_text(s, "/sessions/%s", session), NULL),
                       "status");
}

TEST_LIMIT(serve_killed_gives_its_runtimes_to_the_next_server, 120)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    struct json *a = serve_start(&s, "a", "'environment':{'COLOUR':'red'}");
    struct json *b = serve_start(&s, "b", ""), *c = serve_start(&s, "c", "");
    CHECK_STR(serve_exec(&s, a, "cd /tmp; X=kept; echo ok"), "ok");
    serve_tell(&s, "/pause", b);
    serve_tell(&s, "/stop", c);
    serve_kill(&s);

    serve_run(&s, NULL);
    struct json *again = serve_want(&s, 200, "GET", "/sessions/a", NULL);
    CHECK_STR(serve_field(&s, again, "status"), "running");
    CHECK_STR(serve_field(&s, again, "url"), serve_field(&s, a, "url"));
    CHECK_STR(serve_field(&s, again, "session_api_key"), serve_field(&s, a, "session_api_key"));
    CHECK_STR(serve_exec(&s, a, "echo $X $COLOUR; pwd"), "kept red\n/tmp");
    CHECK_STR(status_of(&s, "b"), "paused");
    CHECK_INT(serve_visit(&s, b, "/alive"), 503);
    serve_tell(&s, "/resume", b);
    CHECK_INT(serve_visit(&s, b, "/alive"), 200);
    CHECK_STR(status_of(&s, "c"), "stopped");
    serve_close(&s);
}

/* Starts until it is killed; what was answered is noted in the pipe. */
static _Noreturn void load(struct serve *s, unsigned round, int note)
{
    for (unsigned i = 0;; i++) {
        const char *session = serve_text(s, "r%u-%u", round, i);
        struct serve_answer a = serve_ask(
            s, "POST", "/start", serve_text(s, "{'image':'host','session_id':'%s'}", session));
        if (a.status != 200)
            _exit(1);
        const char *line = serve_text(s, "%s %s\n", session, serve_field(s, a.json, "runtime_id"));
        if (write(note, line, strlen(line)) < 0)
            _exit(1);
    }
}

static void read_some(int fd, struct buf *into, unsigned lines)
{
    char byte;

    while (lines && read(fd, &byte, 1) == 1) {
        buf_add_char(into, byte);
        lines -= byte == '\n';
    }
}

static void check_all(struct serve *s, struct str noted)
{
    struct str line, session;

    while (str_cut(&noted, '\n', &line)) {
        str_cut(&line, ' ', &session);
        struct json *r = serve_start(s, serve_text(s, STR_FMT, STR_ARG(session)), "");
        CHECK_STR(json_get_str(r, "runtime_id", STR("")), line);
        CHECK_INT(serve_visit(s, r, "/alive"), 200);
        serve_tell(s, "/stop", r);
    }
}

/* Five times here, CROFT_SOAK_SERVER_KILLS in make soak. serve_close() looks for orphans. */
TEST_LIMIT(serve_killed_under_load_again_and_again_loses_nothing_it_acknowledged, 1800)
{
    struct serve s = {.key = NULL};
    const char *text = getenv("CROFT_SOAK_SERVER_KILLS");
    unsigned rounds = text && *text ? (unsigned)atoi(text) : 5;

    serve_open(&s);
    for (unsigned round = 0; round < rounds; round++) {
        own_done(buf) noted;
        int ends[2];

        buf_init(&noted, 1u << 20);
        CHECK_INT(pipe(ends), 0);
        pid_t pid = fork();
        if (pid == 0)
            load(&s, round, ends[1]);
        close(ends[1]);
        read_some(ends[0], &noted, 1 + (unsigned)rng_below(rng_system(), 8));
        serve_kill(&s);
        program_wait(pid); /* its connection is gone: so is it */
        read_some(ends[0], &noted, 1000000);
        close(ends[0]);
        serve_run(&s, NULL);
        check_all(&s, buf_str(&noted));
    }
    serve_close(&s);
}

/* As if the machine had been started anew: what its rows say ran cannot run. */
TEST_LIMIT(serve_takes_rows_of_another_boot_for_stopped, 120)
{
    static const char script[] =
        "import sqlite3,sys\n"
        "d=sqlite3.connect(sys.argv[1])\n"
        "d.execute(\"UPDATE meta SET value='another' WHERE name='boot'\")\n"
        "d.commit()\n";
    struct serve s = {.key = NULL};
    own_done(buf) out;

    serve_open(&s);
    serve_start(&s, "runs", "");
    serve_tell(&s, "/pause", serve_start(&s, "paused", ""));
    serve_kill(&s);
    buf_init(&out, 4096);
    CHECK_INT(
        program_run(ARGS("python3", "-c", script, serve_text(&s, "%s/server/croft.db", s.state)),
                    &out),
        0);
    serve_run(&s, NULL);
    for (unsigned i = 0; i < 2; i++) {
        const struct json *r =
            serve_want(&s, 200, "GET", i ? "/sessions/paused" : "/sessions/runs", NULL);
        CHECK_STR(serve_field(&s, r, "status"), "stopped");
        CHECK_HAS(json_get_str(r, "status_detail", STR("")), "started anew");
    }
    struct json *again = serve_start(&s, "runs", ""); /* a session goes on with a new one */
    CHECK_HAS(serve_exec(&s, again, "echo here"), "here");
    serve_close(&s);
}

TEST_LIMIT(serve_of_an_ordinary_user_starts_claims_and_takes_over_too, 180)
{
    struct serve s = {.key = NULL};

    serve_prepare_user(&s);
    serve_run(&s, NULL);
    struct json *a = serve_start(&s, "a", "'environment':{'COLOUR':'blue'}");
    CHECK_STR(serve_exec(&s, a, "X=kept; echo $COLOUR; id -u"), "blue\n0");
    serve_kill(&s);
    serve_run(&s, NULL);
    CHECK_STR(status_of(&s, "a"), "running");
    CHECK_STR(serve_exec(&s, a, "echo $X"), "kept");
    serve_tell(&s, "/stop", a);
    serve_close(&s);
}
