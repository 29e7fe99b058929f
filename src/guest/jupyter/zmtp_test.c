// SPDX-License-Identifier: Apache-2.0
/* zmtp_test.c — the codec against bytes of libzmq 4.3.4, in every split, and peers that lie. */
#include "guest/jupyter/zmtp.h"

#include <limits.h>

#include "test/test.h"

#define GREETING_(major, mech)                                                                     \
    "\xff\0\0\0\0\0\0\0\1\x7f" major mech "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"                       \
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define GREETING     GREETING_("\3\1", "NULL")
#define READY_ROUTER "\4\x29\5READY\13Socket-Type\0\0\0\6ROUTER\10Identity\0\0\0\0"
#define READY_PUB    "\4\x19\5READY\13Socket-Type\0\0\0\3PUB"

/* What the reader tells, one line per event: "ready", "message 3 <a|b|c>", "fail <why>". */
static void tell(struct zmtp *z, enum zmtp_event ev, struct buf *out)
{
    if (ev == ZMTP_READY)
        buf_add_cstr(out, "ready\n");
    if (ev == ZMTP_FAIL)
        buf_addf(out, "fail %s\n", err_text(z->why));
    if (ev != ZMTP_MESSAGE)
        return;
    for (unsigned i = 0; i < z->message.count; i++)
        buf_addf(out, "%s%.*s", i ? "|" : "message ", STR_ARG(str_first(z->message.parts[i], 20)));
    if (z->message.dropped_bytes)
        buf_addf(out, " dropped %llu", (unsigned long long)z->message.dropped_bytes);
    buf_add_char(out, '\n');
}

static void feed(struct zmtp *z, struct str piece, struct buf *out)
{
    enum zmtp_event ev;

    do {
        ev = zmtp_next(z, &piece);
        tell(z, ev, out);
    } while (ev != ZMTP_NONE);
    CHECK_INT(piece.len, 0);
}

static void check(enum zmtp_role role, struct str in, size_t limit, const char *want)
{
    for (size_t step = 1; step <= in.len; step = step < 80 ? step + 1 : step * 2) {
        own_done(buf) out;
        own_done(zmtp) z;
        buf_init(&out, 1u << 20);
        zmtp_init(&z, role, limit);
        for (size_t at = 0; at < in.len; at += step)
            feed(&z, str_first(str_from(in, at), step), &out);
        CHECK_STR(buf_str(&out), want);
    }
    for (size_t cut = 0; cut <= in.len; cut++) {
        own_done(buf) out;
        own_done(zmtp) z;
        buf_init(&out, 1u << 20);
        zmtp_init(&z, role, limit);
        feed(&z, str_first(in, cut), &out);
        feed(&z, str_from(in, cut), &out);
        CHECK_STR(buf_str(&out), want);
    }
}

TEST(zmtp_reads_what_libzmq_sends_in_every_split)
{
    check(ZMTP_DEALER, STR(GREETING READY_ROUTER "\1\1a\1\0\0\3xyz"), 0, "ready\nmessage a||xyz\n");
    check(ZMTP_SUB, STR(GREETING READY_PUB "\0\0\0\2hi"), 0, "ready\nmessage \nmessage hi\n");
    check(ZMTP_DEALER, STR(GREETING READY_ROUTER "\3\0\0\0\0\0\0\0\2ab\2\0\0\0\0\0\0\0\1c"), 0,
          "ready\nmessage ab|c\n");
}

TEST(zmtp_skips_commands_also_between_the_parts_of_a_message)
{
    check(ZMTP_DEALER, STR(GREETING READY_ROUTER "\4\5\4PING\1\1a\4\0\0\1b"), 0,
          "ready\nmessage a|b\n");
    check(ZMTP_DEALER, STR(GREETING READY_ROUTER "\6\0\0\0\0\0\0\0\5\4PING\0\1b"), 0,
          "ready\nmessage b\n");
}

TEST(zmtp_refuses_peers_that_do_not_speak_it)
{
    check(ZMTP_DEALER, STR("HTTP/1.1 400 Bad Request\r\n"), 0,
          "fail the peer does not speak ZMTP\n");
    check(ZMTP_DEALER, STR(GREETING_("\2\0", "NULL")), 0, "fail the peer speaks ZMTP 2, not 3\n");
    check(ZMTP_DEALER, STR(GREETING_("\3\0", "CURV")), 0,
          "fail the peer wants another mechanism than NULL\n");
    check(ZMTP_DEALER, STR(GREETING READY_PUB), 0,
          "fail the peer is a 'PUB' socket, of no use here\n");
    check(ZMTP_SUB, STR(GREETING READY_ROUTER), 0,
          "fail the peer is a 'ROUTER' socket, of no use here\n");
    check(ZMTP_SUB, STR(GREETING "\4\6\5READY"), 0,
          "fail the peer is a '' socket, of no use here\n");
    check(ZMTP_SUB, STR(GREETING "\4\12\5ERROR\3bad"), 0, "fail the peer refused: 'bad'\n");
    check(ZMTP_SUB, STR(GREETING "\0\1a"), 0, "fail the peer sent a message before READY\n");
    check(ZMTP_SUB, STR(GREETING "\4\5\4PING"), 0, "fail the peer sent a command before READY\n");
}

TEST(zmtp_refuses_frames_that_lie)
{
    static const struct {
        struct str frame;
        const char *why;
    } cases[] = {
        {STR_INIT("\x08\1a"), "reserved frame flags 0x08"},
        {STR_INIT("\5\1a"), "a command in pieces"},
        {STR_INIT("\6\0\0\0\0\0\0\x10\1"), "a command of 4097 bytes"},
        {STR_INIT("\2\0\0\0\1\0\0\0\1"), "a part of 4294967297 bytes"},
        {STR_INIT("\2\xff\xff\xff\xff\xff\xff\xff\xff"), "a part of 18446744073709551615 bytes"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        own_done(buf) in, out;
        own_done(zmtp) z;
        buf_init(&in, 4096);
        buf_init(&out, 4096);
        zmtp_init(&z, ZMTP_DEALER, 0);
        buf_add(&in, STR(GREETING READY_ROUTER));
        buf_add(&in, cases[i].frame);
        feed(&z, buf_str(&in), &out);
        CHECK_HAS(buf_str(&out), cases[i].why);
        feed(&z, STR("\0\1a"), &out); /* it stays failed, and is told once */
        CHECK(str_ends(buf_str(&out), STR("\n")));
        CHECK_INT(str_find(buf_str(&out), STR("message a")), -1);
    }
}

TEST(zmtp_refuses_broken_ready_properties)
{
    static const struct str bodies[] = {STR_INIT("\5READY\0"), STR_INIT("\5READY\13Socket-Typ"),
                                        STR_INIT("\5READY\13Socket-Type\0\0\0\6ROUT"),
                                        STR_INIT("\5READY\13Socket-Type\xff\xff\xff\xff"
                                                 "DEALER"),
                                        STR_INIT("\5READY\13Socket-Type\0\0\0\6ROUTER\1")};
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        own_done(buf) in;
        buf_init(&in, 4096);
        buf_add(&in, STR(GREETING "\4"));
        buf_add_char(&in, (char)bodies[i].len);
        buf_add(&in, bodies[i]);
        check(ZMTP_DEALER, buf_str(&in), 0, "fail the peer's READY is broken\n");
    }
}

TEST(zmtp_drops_what_is_over_the_limit_and_goes_on)
{
    check(ZMTP_DEALER, STR(GREETING READY_ROUTER "\1\2ab\1\6cdefgh\0\1i\0\1j"), 4,
          "ready\nmessage ab||i dropped 6\nmessage j\n");
}

TEST(zmtp_refuses_a_message_of_endless_parts)
{
    own_done(buf) in, out;
    own_done(zmtp) z;

    buf_init(&in, 4096);
    buf_init(&out, 4096);
    zmtp_init(&z, ZMTP_DEALER, 0);
    buf_add(&in, STR(GREETING READY_ROUTER));
    for (unsigned i = 0; i <= ZMTP_PARTS_MAX; i++)
        zmtp_put_part(&in, STR(""), true);
    feed(&z, buf_str(&in), &out);
    CHECK_STR(buf_str(&out), "ready\nfail the peer sent more than 64 parts\n");
}

TEST(zmtp_keeps_no_large_memory_between_messages)
{
    own_done(buf) in, out;
    own_done(zmtp) z;
    char *big = calloc(1, 1u << 20);

    buf_init(&in, 4u << 20);
    buf_init(&out, 4096);
    zmtp_init(&z, ZMTP_DEALER, 0);
    buf_add(&in, STR(GREETING READY_ROUTER));
    zmtp_put_part(&in, str_n(big, 1u << 20), false);
    zmtp_put_part(&in, STR("small"), false);
    feed(&z, buf_str(&in), &out);
    CHECK(z.body.cap <= 64u << 10);
    free(big);
}

TEST(zmtp_writes_the_bytes_the_protocol_wants)
{
    own_done(buf) out;
    own_free char *big = calloc(1, 300);

    buf_init(&out, 4096);
    zmtp_put_greeting(&out);
    CHECK_INT(out.len, ZMTP_GREETING_LEN);
    CHECK(str_starts(buf_str(&out), STR("\xff\0\0\0\0\0\0\0\0\x7f\3\0NULL\0")));
    buf_reset(&out);
    zmtp_put_ready(&out, ZMTP_DEALER);
    CHECK_STR(buf_str(&out), STR("\4\x29\5READY\13Socket-Type\0\0\0\6DEALER\10Identity\0\0\0\0"));
    buf_reset(&out);
    zmtp_put_ready(&out, ZMTP_SUB);
    CHECK_STR(buf_str(&out), STR("\4\x19\5READY\13Socket-Type\0\0\0\3SUB"));
    buf_reset(&out);
    zmtp_put_subscription(&out);
    CHECK_STR(buf_str(&out), STR("\0\1\1"));
    buf_reset(&out);
    zmtp_put_part(&out, str_n(big, 255), true);
    CHECK(str_starts(buf_str(&out), STR("\1\xff\0")));
    buf_reset(&out);
    zmtp_put_part(&out, str_n(big, 300), false);
    CHECK(str_starts(buf_str(&out), STR("\2\0\0\0\0\0\0\1\x2c\0")));
}

TEST(zmtp_out_of_memory_is_a_failure_of_the_peer_alone)
{
    struct str in = STR(GREETING READY_ROUTER "\1\1a\0\3xyz");

    for (unsigned n = 1;; n++) {
        own_done(zmtp) z;
        struct str rest = in;
        enum zmtp_event ev, last = ZMTP_NONE;
        zmtp_init(&z, ZMTP_DEALER, 0);
        fault_at(n);
        while ((ev = zmtp_next(&z, &rest)) != ZMTP_NONE)
            last = ev;
        bool fired = fault_fired();
        fault_at(0);
        CHECK_INT(last, fired ? ZMTP_FAIL : ZMTP_MESSAGE);
        if (!fired)
            return;
    }
}
