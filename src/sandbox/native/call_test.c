// SPDX-License-Identifier: Apache-2.0
/* call_test.c — a launcher that works, and one that does not answer; the test is the launcher, and
 * its clock stands still until it is moved. */
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "sandbox/native/msg.h"
#include "sandbox/sandbox.h"
#include "test/test.h"

#define WAIT_MS 8000

struct far { /* the launcher's side */
    struct clock clock;
    uint64_t now_ns;
    struct loop *loop;
    int launcher;
    struct sbx_launcher other;
    struct sbx_host host;
    struct sbx_driver *driver;
};

struct outcome {
    unsigned times;
    enum err_code code;
    char text[300];
    bool failed;
};

static uint64_t far_now(const struct clock *c)
{
    return container_of(c, struct far, clock)->now_ns;
}

static void far_open(struct far *f)
{
    int pair[2];

    *f = (struct far){.clock = {far_now, far_now}, .now_ns = NS_PER_S};
    CHECK_OK(loop_new(&f->clock, &f->loop));
    CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    f->launcher = pair[0];
    f->other.sock = pair[1];
    f->host = (struct sbx_host){.loop = f->loop,
                                .launcher = &f->other,
                                .state_dir = "/nowhere",
                                .silence_ms = WAIT_MS,
                                .most_waiting = 2};
    CHECK_OK(sbx_driver_open(sbx_backend_find(STR("native")), &f->host, &f->driver));
}

static void far_close(struct far *f)
{
    sbx_driver_close(f->driver);
    close(f->launcher);
    close(f->other.sock);
    loop_free(f->loop);
}

/* What it was asked next; op 0: nothing. */
static struct native_request far_hear(struct far *f)
{
    struct native_request req = {.op = 0};

    if (recv(f->launcher, &req, sizeof req, MSG_DONTWAIT) != (ssize_t)sizeof req)
        req.op = 0;
    return req;
}

static void far_turn(struct far *f)
{
    CHECK_OK(loop_turn(f->loop, 0));
    CHECK_OK(loop_turn(f->loop, 0)); /* what an answer leaves for later */
}

static void far_answer(struct far *f, const struct native_request *req)
{
    struct native_reply r = {.magic = NATIVE_MAGIC,
                             .version = NATIVE_VERSION,
                             .op = req->op,
                             .tag = req->tag,
                             .code = ERR_NOT_FOUND + 1,
                             .text = "none"};

    CHECK_INT(send(f->launcher, &r, sizeof r, 0), (int)sizeof r);
    far_turn(f);
}

/* A second at a time, so often; true: it was asked whether it is there, and said so if it may. */
static unsigned far_pass(struct far *f, unsigned seconds, bool answers)
{
    unsigned pings = 0;

    for (unsigned i = 0; i < seconds; i++) {
        f->now_ns += NS_PER_S + 10 * NS_PER_MS;
        far_turn(f);
        struct native_request req = far_hear(f);
        if (req.op != NATIVE_ROOT)
            continue;
        pings++;
        if (answers)
            far_answer(f, &req);
    }
    return pings;
}

static void on_output(void *arg, const char *names, size_t count, const struct err *e)
{
    struct outcome *s = arg;

    (void)names, (void)count;
    s->times++;
    s->failed = e != NULL;
    s->code = e ? err_code(e) : ERR_INTERNAL;
    snprintf(s->text, sizeof s->text, "%s", e ? err_text(e) : "");
}

static struct native_request far_asked(struct far *f, struct outcome *s)
{
    CHECK_OK(sbx_image_ask(f->driver, STR("debian:12"), on_output, s));
    far_turn(f);
    struct native_request req = far_hear(f);
    CHECK_INT(req.op, NATIVE_IMAGE_FIND);
    return req;
}

TEST(native_waits_as_long_as_it_takes_for_a_launcher_that_works)
{
    struct far f;
    struct outcome s = {0};

    far_open(&f);
    struct native_request req = far_asked(&f, &s);
    CHECK(far_pass(&f, 100, true) > 10); /* it says that it is there, and nothing more */
    CHECK_INT(s.times, 0);
    far_answer(&f, &req);
    CHECK_INT(s.times, 1);
    CHECK_INT(s.code, ERR_NOT_FOUND);
    CHECK_INT(far_pass(&f, 100, true), 0); /* nobody waits: it is left alone */
    far_close(&f);
}

TEST(native_tells_those_who_wait_that_the_launcher_does_not_answer)
{
    struct far f;
    struct outcome s = {0}, later = {0};

    far_open(&f);
    struct native_request req = far_asked(&f, &s);
    CHECK_INT(far_pass(&f, 9, false), 1);
    CHECK_INT(s.times, 1);
    CHECK_INT(s.code, ERR_BUSY);
    CHECK_HAS(str_of(s.text), "the launcher has not answered for 8000 ms (server.launcher_wait)");
    CHECK_ERR(sbx_image_ask(f.driver, STR("debian:12"), on_output, &later), ERR_BUSY, "try again");
    CHECK_OK(sbx_image_find(f.driver, STR("debian:12"), on_output, &later)); /* who has time */
    far_answer(&f, &req);
    CHECK_INT(s.times, 1); /* nobody's any more */
    req = far_hear(&f);
    CHECK_INT(req.op, NATIVE_IMAGE_FIND);
    far_answer(&f, &req);
    CHECK_INT(later.times, 1);
    req = far_asked(&f, &s);
    far_answer(&f, &req);
    CHECK_INT(s.times, 2);
    CHECK_INT(s.code, ERR_NOT_FOUND);
    far_close(&f);
}

/* We were stopped, or the machine slept: it had no chance to answer. */
TEST(native_does_not_blame_the_launcher_for_a_time_it_stood_still_itself)
{
    struct far f;
    struct outcome s = {0};

    far_open(&f);
    struct native_request req = far_asked(&f, &s);
    f.now_ns += 3600 * NS_PER_S;
    far_turn(&f);
    CHECK_INT(s.times, 0);
    far_answer(&f, &req);
    CHECK_INT(s.times, 1);
    CHECK_INT(s.code, ERR_NOT_FOUND);
    far_close(&f);
}

TEST(native_lets_no_more_wait_than_it_is_told)
{
    struct far f;
    struct outcome s[2] = {0}, more = {0};

    far_open(&f);
    struct native_request one = far_asked(&f, &s[0]), two = far_asked(&f, &s[1]);
    own(err) e = sbx_image_ask(f.driver, STR("debian:12"), on_output, &more);
    CHECK_INT(err_code(e), ERR_BUSY);
    CHECK_HAS(str_of(err_text(e)), "server.most_waiting");
    far_answer(&f, &one);
    far_answer(&f, &two);
    one = far_asked(&f, &more);
    far_answer(&f, &one);
    CHECK_INT(s[0].times + s[1].times + more.times, 3);
    far_close(&f);
}
