// SPDX-License-Identifier: Apache-2.0
/* tls_filter_test.c — our client against our server on one loop: trust, cuts, pauses, and that
 * waiting costs no turns. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "test/site.h"
#include "test/test.h"

struct caller {
    struct stream *stream;
    struct buf got;
    struct err *why;
    bool eof;
    size_t seen;
};

static size_t on_caller_data(struct stream *s, struct str data)
{
    struct caller *c = stream_owner(s);

    buf_add(&c->got, data);
    return data.len;
}

static void on_caller_eof(struct stream *s)
{
    struct caller *c = stream_owner(s);

    c->eof = true;
}

static void on_caller_error(struct stream *s, struct err *why)
{
    struct caller *c = stream_owner(s);

    c->why = why;
    stream_close(take(&c->stream));
}

static const struct stream_events caller_events = {
    .on_data = on_caller_data,
    .on_eof = on_caller_eof,
    .on_error = on_caller_error,
};

/* Connects to the site as host and asks; nothing has moved yet. */
static void caller_open(struct caller *c, struct site *site, const char *ca, const char *host,
                        struct str request)
{
    struct sockaddr_storage addr;
    socklen_t len;
    struct tls_client *client;
    int fd;

    *c = (struct caller){0};
    buf_init(&c->got, SITE_BYTES + (1u << 20));
    CHECK_OK(tls_client_new(ca, &client));
    CHECK(addr_numeric(STR("127.0.0.1"), (uint16_t)site->port, &addr, &len));
    CHECK_OK(connect_start(&addr, len, &fd));
    CHECK_OK(stream_new(site->net, fd, &caller_events, c, &c->stream));
    stream_set_idle(c->stream, 20000);
    CHECK_OK(tls_client_filter(client, c->stream, str_of(host)));
    tls_client_free(client); /* the connection keeps what it needs */
    stream_write(c->stream, request);
}

static void caller_run(struct caller *c, struct site *site)
{
    while (!c->eof && !c->why)
        CHECK_OK(loop_turn(site->loop, 1000));
}

static void caller_close(struct caller *c)
{
    stream_close(c->stream);
    err_free(c->why);
    buf_done(&c->got);
}

TEST(a_client_gets_an_answer_and_a_goodbye)
{
    static const char *const hosts[] = {"localhost", "127.0.0.1"};
    struct site site;
    struct caller c;

    site_open(&site, NULL);
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        caller_open(&c, &site, site.cert.certificate, hosts[i], STR("GET /hello HTTP/1.0\r\n\r\n"));
        caller_run(&c, &site);
        CHECK(c.eof && !c.why);
        CHECK_HAS(buf_str(&c.got), "\r\n\r\nhello");
        caller_close(&c);
    }
    site_close(&site);
}

static void check_distrust(struct site *site, const char *ca, const char *host, const char *why)
{
    struct caller c;

    caller_open(&c, site, ca, host, STR("GET /hello HTTP/1.0\r\n\r\n"));
    caller_run(&c, site);
    CHECK_INT(c.got.len, 0);
    CHECK_ERR(take(&c.why), ERR_UPSTREAM, why);
    caller_close(&c);
}

TEST(a_client_distrusts_other_names_and_unknown_signers)
{
    struct site site;
    struct test_cert other;

    site_open(&site, NULL);
    test_cert_make("other", &other);
    check_distrust(&site, site.cert.certificate, "example.org", "not trusted: hostname mismatch");
    check_distrust(&site, site.cert.certificate, "127.0.0.2", "not trusted: IP address mismatch");
    check_distrust(&site, other.certificate, "localhost", "not trusted: self-signed certificate");
    check_distrust(&site, NULL, "localhost", "not trusted: self-signed certificate");
    site_close(&site);
}

TEST(what_a_client_may_trust_must_be_readable)
{
    struct tls_client *client;

    CHECK_ERR(tls_client_new("/none.pem", &client), ERR_NOT_FOUND, "trusted certificates '/none");
    CHECK_ERR(tls_client_new("/dev/null", &client), ERR_INVALID, "is it PEM?");
}

TEST(a_connection_cut_short_is_an_error_not_an_end)
{
    struct site site;
    struct caller c;

    site_open(&site, NULL);
    caller_open(&c, &site, site.cert.certificate, "localhost", STR("GET /cut HTTP/1.0\r\n\r\n"));
    caller_run(&c, &site);
    CHECK(!c.eof);
    CHECK_INT(err_errno(c.why), ECONNRESET);
    CHECK(c.got.len >= 1000);
    caller_close(&c);
    site_close(&site);
}

/* Nothing happens, so ten turns of 20 ms last as long. */
static void check_asleep(struct loop *loop)
{
    uint64_t start = clock_mono_ns(&clock_system);

    for (int i = 0; i < 10; i++)
        CHECK_OK(loop_turn(loop, 20));
    CHECK(clock_mono_ns(&clock_system) - start > 100 * NS_PER_MS);
}

TEST(waiting_for_a_handshake_with_output_queued_does_not_spin)
{
    struct site site;
    struct caller c;
    int pair[2];
    struct tls_client *client;

    site_open(&site, NULL);
    c = (struct caller){0};
    buf_init(&c.got, 1000);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    CHECK_OK(tls_client_new(site.cert.certificate, &client));
    CHECK_OK(stream_new(site.net, pair[0], &caller_events, &c, &c.stream));
    CHECK_OK(tls_client_filter(client, c.stream, STR("localhost")));
    stream_write(c.stream, STR("early"));
    for (int i = 0; i < 5; i++)
        CHECK_OK(loop_turn(site.loop, 0));
    check_asleep(site.loop);
    stream_close_when_sent(take(&c.stream)); /* a goodbye without a handshake is none */
    check_asleep(site.loop);
    close(pair[1]);
    CHECK_OK(loop_turn(site.loop, 100));
    caller_close(&c);
    tls_client_free(client);
    site_close(&site);
}

TEST(a_paused_download_waits_without_spinning_and_loses_nothing)
{
    struct site site;
    struct caller c;

    site_open(&site, NULL);
    caller_open(&c, &site, site.cert.certificate, "localhost", STR("GET /down HTTP/1.0\r\n\r\n"));
    while (c.got.len == 0)
        CHECK_OK(loop_turn(site.loop, 1000));
    for (int i = 0; i < 5; i++) {
        stream_pause(c.stream);
        for (int turn = 0; turn < 100; turn++) /* until the pipes are full */
            CHECK_OK(loop_turn(site.loop, 0));
        size_t before = c.got.len;
        check_asleep(site.loop);
        CHECK_INT(c.got.len, before);
        stream_resume(c.stream);
        while (c.got.len == before)
            CHECK_OK(loop_turn(site.loop, 1000));
    }
    caller_run(&c, &site);
    CHECK(c.eof);
    struct str all = buf_str(&c.got);
    struct str body = str_from(all, (size_t)str_find(all, STR("\r\n\r\n")) + 4);
    CHECK_INT(body.len, SITE_BYTES);
    for (size_t i = 0; i < body.len; i++)
        if ((unsigned char)body.p[i] != site_byte(i))
            FAIL("byte %zu differs", i);
    caller_close(&c);
    site_close(&site);
}

TEST(an_answer_to_a_paused_client_waits_without_spinning)
{
    const struct str request = STR("GET /hello HTTP/1.1\r\nhost: x\r\n\r\n");
    struct site site;
    struct caller c;

    site_open(&site, NULL);
    caller_open(&c, &site, site.cert.certificate, "localhost", request);
    while (!str_ends(buf_str(&c.got), STR("hello")))
        CHECK_OK(loop_turn(site.loop, 1000));
    size_t before = c.got.len;
    stream_pause(c.stream);
    stream_write(c.stream, request);
    for (int i = 0; i < 20; i++)
        CHECK_OK(loop_turn(site.loop, 1));
    check_asleep(site.loop);
    CHECK_INT(c.got.len, before);
    stream_resume(c.stream);
    while (c.got.len < 2 * before)
        CHECK_OK(loop_turn(site.loop, 1000));
    caller_close(&c);
    site_close(&site);
}

static size_t on_piece_then_pause(struct stream *s, struct str data)
{
    stream_pause(s);
    return on_caller_data(s, data);
}

TEST_LIMIT(records_a_filter_holds_come_after_resume, 20)
{
    static const struct stream_events pausing_events = {
        .on_data = on_piece_then_pause,
        .on_eof = on_caller_eof,
        .on_error = on_caller_error,
    };
    struct site site;
    struct caller c;

    site_open(&site, NULL);
    caller_open(&c, &site, site.cert.certificate, "localhost",
                STR("GET /down HTTP/1.1\r\nhost: x\r\n\r\n"));
    stream_set_events(c.stream, &pausing_events, &c);
    while (!str_ends(buf_str(&c.got), STR("0\r\n\r\n"))) { /* the server keeps the connection */
        CHECK(!c.why && !c.eof);
        CHECK_OK(loop_turn(site.loop, 1000));
        stream_resume(c.stream);
    }
    CHECK(c.got.len > SITE_BYTES);
    caller_close(&c);
    site_close(&site);
}

/* One byte of input held by the filter is told of once the owner wants it again. */
static size_t on_one_then_pause(struct stream *s, struct str data)
{
    struct caller *c = stream_owner(s);

    c->seen++;
    buf_add(&c->got, str_first(data, 1));
    stream_pause(s);
    return 1;
}

TEST(input_held_back_comes_byte_by_byte_when_asked_for)
{
    static const struct stream_events slow_events = {
        .on_data = on_one_then_pause,
        .on_eof = on_caller_eof,
        .on_error = on_caller_error,
    };
    struct site site;
    struct caller c;

    site_open(&site, NULL);
    caller_open(&c, &site, site.cert.certificate, "localhost", STR("GET /hello HTTP/1.0\r\n\r\n"));
    stream_set_events(c.stream, &slow_events, &c);
    while (!c.eof && !c.why) {
        CHECK_OK(loop_turn(site.loop, 1000));
        stream_resume(c.stream);
    }
    CHECK(c.eof && c.seen == c.got.len);
    CHECK_HAS(buf_str(&c.got), "\r\n\r\nhello");
    caller_close(&c);
    site_close(&site);
}
