// SPDX-License-Identifier: Apache-2.0
/* serve_launcher_test.c — the one process that makes sandboxes is killed under a server that lives.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "test/program.h"
#include "test/serve_kit.h"

TEST_LIMIT(serve_leaves_when_its_launcher_is_killed_and_the_next_takes_over, 120)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    struct json *one = serve_start(&s, "one", "");
    CHECK_STR(serve_exec(&s, one, "X=kept; echo ok"), "ok");
    CHECK_INT(kill(serve_launcher(&s), SIGKILL), 0);
    CHECK_INT(program_wait(s.wire.pid),
              1); /* by itself, so that a service manager starts it anew */

    serve_run(&s, NULL);
    CHECK_STR(serve_exec(&s, one, "echo $X"), "kept");
    serve_start(&s, "two", "");
    serve_close(&s);
}

TEST_LIMIT(serve_tells_who_asked_a_launcher_that_is_killed_and_forgets_nothing, 120)
{
    static const char body[] = "{\"image\":\"host\",\"session_id\":\"new\"}";
    struct serve s = {.key = NULL};
    own_done(buf) got;

    serve_open(&s);
    struct json *old = serve_start(&s, "old", "");
    pid_t launcher = serve_launcher(&s);
    CHECK_INT(kill(launcher, SIGSTOP), 0); /* it has heard and says nothing */
    int pause = wire_connect(&s.wire), start = wire_connect(&s.wire);
    const char *which =
        serve_text(&s, "{\"runtime_id\":\"%s\"}", serve_field(&s, old, "runtime_id"));
    wire_send(pause, str_of(serve_text(&s,
                                       "POST /pause HTTP/1.1\r\nHost: localhost\r\n"
                                       "Content-Length: %zu\r\n\r\n%s",
                                       strlen(which), which)));
    wire_send(start, str_of(serve_text(&s,
                                       "POST /start HTTP/1.1\r\nHost: localhost\r\n"
                                       "Content-Length: %zu\r\n\r\n%s",
                                       sizeof body - 1, body)));
    while (serve_get(&s, "/sessions/new").status != 200)
        ; /* it is being worked on */
    CHECK_INT(kill(launcher, SIGKILL), 0);
    buf_init(&got, 1u << 20);
    wire_read_answer(pause, &got);
    CHECK_HAS(buf_str(&got), "HTTP/1.1 503 ");
    CHECK_HAS(buf_str(&got), "retry-after: 1\r\n");
    got.len = 0;
    wire_read_answer(start, &got);
    CHECK_HAS(buf_str(&got), "HTTP/1.1 503 ");
    CHECK_HAS(buf_str(&got), "the launcher is gone");
    close(pause);
    close(start);
    CHECK_INT(program_wait(s.wire.pid), 1);

    serve_run(&s, NULL);
    CHECK_INT(serve_visit(&s, old, "/alive"), 200);
    serve_start(&s, "new", "");
    serve_close(&s);
}
