// SPDX-License-Identifier: Apache-2.0
/* ws_frame_test.c — the codec against the table of cases, in every split and both roles. */
#include "net/ws_frame.h"

#include <stdlib.h>

#include "base/own.h"
#include "base/rng.h"
#include "net/ws.h"
#include "net/ws_cases.h"
#include "test/test.h"

#define PRINT_LIMIT  (1u << 16)
#define RANDOM_RUNS  12
#define BYTEWISE_MAX 300000 /* longer cases are cut at random only */

static void feed(struct ws_reader *r, struct str piece, struct buf *told)
{
    for (;;) {
        struct ws_event ev = ws_reader_next(r, &piece);
        if (ev.kind == WS_EV_NONE)
            break;
        ws_case_print(told, &ev);
    }
    CHECK_INT(piece.len, 0);
}

/* max: longest piece; 0: all at once. Each piece is a copy of its own size, for ASan's sake. */
static void run(const struct ws_case *c, enum ws_role role, struct str in, size_t max,
                struct rng *rng)
{
    struct ws_deflate_terms terms = ws_case_terms(c);
    struct ws_reader r;
    own_done(buf) told;

    buf_init(&told, PRINT_LIMIT);
    ws_reader_init(&r, role, ws_case_limit(c), &terms);
    while (in.len) {
        size_t n = max == 0 ? in.len : max == 1 ? 1 : 1 + rng_below(rng, max);
        struct str piece = str_first(in, n);
        own_free char *copy = malloc(piece.len);
        memcpy(copy, piece.p, piece.len);
        feed(&r, str_n(copy, piece.len), &told);
        in = str_from(in, piece.len);
    }
    CHECK(r.message.cap <= ws_case_limit(c));
    if (!r.kind)
        CHECK(!r.message.p && (!r.inflate || !terms.receive_forgets));
    ws_reader_done(&r);
    if (!str_eq(buf_str(&told), str_of(c->out)))
        FAIL("%s (%s, pieces of %zu): told '" STR_FMT "', expected '%s'", c->name,
             role == WS_SERVER ? "server" : "client", max, STR_ARG(buf_str(&told)), c->out);
}

static void run_all(enum ws_role role)
{
    struct rng_fixed fixed;
    struct rng *rng = rng_fixed_init(&fixed, 7);

    for (size_t i = 0; i < ws_case_count; i++) {
        own_done(buf) in;
        buf_init(&in, 32u << 20);
        ws_case_bytes(&ws_cases[i], role, &in);
        CHECK_OK(buf_check(&in));
        run(&ws_cases[i], role, buf_str(&in), 0, rng);
        if (in.len <= BYTEWISE_MAX)
            run(&ws_cases[i], role, buf_str(&in), 1, rng);
        for (unsigned k = 0; k < RANDOM_RUNS; k++)
            run(&ws_cases[i], role, buf_str(&in), k % 2 ? 1 + in.len / 2 : 9, rng);
    }
}

TEST(ws_cases_hold_for_a_server_in_every_split)
{
    run_all(WS_SERVER);
}

TEST(ws_cases_hold_for_a_client_in_every_split)
{
    run_all(WS_CLIENT);
}

TEST(ws_cases_are_many)
{
    CHECK(ws_case_count >= 120);
}

TEST(ws_mask_copy_matches_the_definition_at_every_offset_and_length)
{
    const uint8_t key[4] = {0x11, 0x82, 0xf3, 0x04};
    uint8_t from[70], to[71];

    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (uint8_t)(i * 37);
    for (size_t skip = 0; skip < 9; skip++)
        for (size_t n = 0; n + skip <= sizeof from; n++)
            for (uint64_t at = 0; at < 9; at++) {
                to[n] = 0xee;
                ws_mask_copy(to, from + skip, n, key, at);
                for (size_t i = 0; i < n; i++)
                    CHECK_INT(to[i], from[skip + i] ^ key[(at + i) % 4]);
                CHECK_INT(to[n], 0xee);
            }
}

TEST(ws_head_put_uses_the_shortest_length)
{
    static const struct {
        uint64_t len;
        const char *head;
    } rows[] = {
        {0, "8100"},
        {125, "817d"},
        {126, "817e007e"},
        {65535, "817effff"},
        {65536, "817f0000000000010000"},
        {1ull << 40, "817f0000010000000000"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint8_t head[WS_HEAD_MAX];
        own_done(buf) hex;
        buf_init(&hex, 64);
        size_t n = ws_head_put(head, WS_FIN | WS_OP_TEXT, rows[i].len, NULL);
        for (size_t k = 0; k < n; k++)
            buf_addf(&hex, "%02x", head[k]);
        CHECK_STR(buf_str(&hex), rows[i].head);
    }
}

TEST(ws_reader_allocates_what_came_not_what_was_claimed)
{
    struct ws_reader r;
    struct str in = STR("\x82\x7f\0\0\0\0\x3f\xff\xff\xff"
                        "abc");

    ws_reader_init(&r, WS_CLIENT, 1u << 30, NULL);
    CHECK_INT(ws_reader_next(&r, &in).kind, WS_EV_NONE);
    CHECK_INT(r.message.len, 3);
    CHECK(r.message.cap <= 64);
    ws_reader_done(&r);
}

TEST(ws_reader_tells_a_whole_unmasked_message_where_it_lies)
{
    struct ws_reader r;
    struct str in = STR("\x81\x05Hello"), all = in;

    ws_reader_init(&r, WS_CLIENT, 1000, NULL);
    struct ws_event ev = ws_reader_next(&r, &in);
    CHECK_STR(ev.data, "Hello");
    CHECK(ev.data.p == all.p + 2);
    ws_reader_done(&r);
}

TEST(ws_reader_survives_every_failing_allocation)
{
    for (size_t i = 0; i < ws_case_count; i++) {
        own_done(buf) in;
        buf_init(&in, 32u << 20);
        ws_case_bytes(&ws_cases[i], WS_SERVER, &in);
        for (unsigned n = 1; n < 30 && in.len < 70000; n++) {
            struct ws_deflate_terms terms = ws_case_terms(&ws_cases[i]);
            struct ws_reader r;
            struct str rest = buf_str(&in);
            struct ws_event ev;
            ws_reader_init(&r, WS_SERVER, ws_case_limit(&ws_cases[i]), &terms);
            fault_at(n);
            do
                ev = ws_reader_next(&r, &rest);
            while (ev.kind != WS_EV_NONE && ev.kind != WS_EV_FAIL);
            bool fired = fault_fired();
            fault_at(0);
            if (fired) {
                CHECK_INT(ev.kind, WS_EV_FAIL);
                CHECK(ev.code == WS_INTERNAL || str_find_char(str_of(ws_cases[i].out), 'X') >= 0);
            }
            ws_reader_done(&r);
            if (!fired)
                break;
        }
    }
}
