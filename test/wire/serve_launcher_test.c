// SPDX-License-Identifier: Apache-2.0
/* serve_launcher_test.c — the one process that makes sandboxes is killed under a server that lives.
 */
#include <fcntl.h>
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

static void wait_until_it_waits(pid_t pid)
{
    char path[40];

    snprintf(path, sizeof path, "/proc/%d/wchan", (int)pid);
    for (unsigned i = 0; i < 3000; i++) {
        own_done(buf) text;
        buf_init(&text, 4096);
        CHECK_OK(fd_read_file(path, &text));
        if (str_find(buf_str(&text), STR("epoll")) >= 0)
            return;
        usleep(10000); /* a deadline against a hang, nothing is measured */
    }
    FAIL("the server never waits for its launcher");
}

/* One that joined the launcher of the one before, and has not yet asked it for all. */
static pid_t take_over(struct serve *s, pid_t launcher)
{
    int log[2];

    CHECK_INT(pipe2(log, O_CLOEXEC), 0);
    own_fd nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    pid_t pid = program_start(
        &(struct program){.argv = ARGS(test_program("croft"), "serve", "--listen", "127.0.0.1:0",
                                       "--state", s->state, "--log-level", "info"),
                          .fds = (int[]){nowhere, nowhere, log[1]},
                          .fd_count = 3});
    close(log[1]);
    serve_read_until(log[0], "an ordinary user now"); /* what it asks for next is adoption */
    CHECK_INT(kill(launcher, SIGSTOP), 0);
    wait_until_it_waits(pid);
    CHECK_INT(kill(launcher, SIGKILL), 0);
    for (char page[4096]; read(log[0], page, sizeof page) > 0;)
        ;
    close(log[0]);
    return pid;
}

TEST_LIMIT(serve_whose_launcher_dies_while_it_takes_over_leaves_all_to_the_next, 120)
{
    struct serve s = {.key = NULL};
    struct json *all[6];

    serve_open(&s);
    for (unsigned i = 0; i < ARRAY_LEN(all); i++)
        all[i] = serve_start(&s, serve_text(&s, "s%u", i), "");
    CHECK_STR(serve_exec(&s, all[0], "X=kept; echo ok"), "ok");
    serve_tell(&s, "/pause", all[1]);
    pid_t launcher = serve_launcher(&s);
    serve_kill(&s);
    CHECK_INT(program_wait(take_over(&s, launcher)), 1);

    serve_run(&s, NULL);
    CHECK_STR(serve_exec(&s, all[0], "echo $X"), "kept");
    serve_tell(&s, "/resume", all[1]);
    for (unsigned i = 0; i < ARRAY_LEN(all); i++)
        CHECK_INT(serve_visit(&s, all[i], "/alive"), 200);
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
    if (str_starts(buf_str(&got), STR("HTTP/1.1 200 "))) /* we came after its moment of grace */
        CHECK_HAS(buf_str(&got), "\"status\":\"starting\"");
    else
        CHECK_HAS(buf_str(&got), "the launcher is gone");
    close(pause);
    close(start);
    CHECK_INT(program_wait(s.wire.pid), 1);

    serve_run(&s, NULL);
    CHECK_INT(serve_visit(&s, old, "/alive"), 200);
    serve_start(&s, "new", "");
    serve_close(&s);
}
