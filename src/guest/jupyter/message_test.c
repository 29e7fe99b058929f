// SPDX-License-Identifier: Apache-2.0
/* message_test.c — signatures made and checked; what is no message is refused. */
#include "guest/jupyter/message.h"

#include "test/test.h"

#define KEY STR("a0436f6c-1916-498b-8eb9-e81ab9368e84")

static void make(struct buf *store, struct zmtp_message *ret)
{
    struct message_out m = {.id = STR("m1"),
                            .session = STR("s1"),
                            .type = STR("execute_request"),
                            .content = STR("{\"code\":\"1+1\"}"),
                            .wall_ns = 1700000000ull * 1000000000};
    *ret = (struct zmtp_message){.count = MESSAGE_PARTS};
    CHECK_OK(message_put(&m, KEY, store, ret->parts));
}

TEST(message_signature_is_the_one_jupyter_client_makes)
{
    own_done(buf) store;
    struct zmtp_message z;

    buf_init(&store, 4096);
    make(&store, &z);
    CHECK_STR(z.parts[0], "<IDS|MSG>");
    CHECK_STR(z.parts[2], "{\"msg_id\":\"m1\",\"session\":\"s1\",\"username\":\"croft\","
                          "\"date\":\"2023-11-14T22:13:20+00:00\",\"msg_type\":\"execute_request\","
                          "\"version\":\"5.3\"}");
    /* python3 -c 'import hmac; print(hmac.new(KEY, b"".join(parts[2:]), "sha256").hexdigest())' */
    CHECK_STR(z.parts[1], "256f390ab1649a08c6c5056e65fd0263239618c00c04c15767abaac0e735a3ef");
}

TEST(message_is_read_back_and_a_changed_byte_is_refused)
{
    own_done(buf) store;
    own_done(arena) a;
    struct zmtp_message z;
    struct message m;

    buf_init(&store, 4096);
    arena_init(&a, 1u << 20);
    make(&store, &z);
    CHECK_OK(message_parse(&z, KEY, &a, &m));
    CHECK_STR(m.type, "execute_request");
    CHECK_STR(m.parent_id, "");
    CHECK_STR(m.content_text, "{\"code\":\"1+1\"}");
    CHECK_ERR(message_parse(&z, STR("other key"), &a, &m), ERR_FORBIDDEN, "wrong signature");
    struct str signature = z.parts[1];
    z.parts[1] = str_first(signature, 63);
    CHECK_ERR(message_parse(&z, KEY, &a, &m), ERR_FORBIDDEN, "wrong signature");
    z.parts[1] = signature;
    z.parts[5] = STR("{\"code\":\"1+2\"}");
    CHECK_ERR(message_parse(&z, KEY, &a, &m), ERR_FORBIDDEN, "wrong signature");
}

TEST(message_without_its_parts_is_refused)
{
    own_done(arena) a;
    struct message m;
    struct zmtp_message z = {.count = 0};

    arena_init(&a, 1u << 20);
    CHECK_ERR(message_parse(&z, KEY, &a, &m), ERR_UPSTREAM, "without its parts");
    z.count = 5;
    z.parts[0] = STR("<IDS|MSG>");
    CHECK_ERR(message_parse(&z, KEY, &a, &m), ERR_UPSTREAM, "without its parts");
    z.count = 6;
    z.parts[2] = STR("[1");
    CHECK_ERR(message_parse_head(&z, &a, &m), ERR_INVALID, "header of a kernel message");
    z.parts[2] = STR("{\"msg_type\":7}");
    z.parts[3] = STR("{}");
    CHECK_ERR(message_parse_head(&z, &a, &m), ERR_UNPROCESSABLE, "msg_type");
}

TEST(message_that_lost_bytes_still_tells_whose_it_is)
{
    own_done(arena) a;
    struct message m;
    struct zmtp_message z = {.count = 7, .dropped_bytes = 9};

    arena_init(&a, 1u << 20);
    z.parts[0] = STR("stream");
    z.parts[1] = STR("<IDS|MSG>");
    z.parts[3] = STR("{\"msg_type\":\"stream\"}");
    z.parts[4] = STR("{\"msg_id\":\"m7\"}");
    CHECK_ERR(message_parse(&z, KEY, &a, &m), ERR_TOO_LARGE, "lost 9 bytes");
    CHECK_OK(message_parse_head(&z, &a, &m));
    CHECK_STR(m.type, "stream");
    CHECK_STR(m.parent_id, "m7");
}

TEST(message_out_of_memory_is_an_error_and_leaks_nothing)
{
    for (unsigned n = 1;; n++) {
        own_done(buf) store;
        own_done(arena) a;
        struct zmtp_message z = {.count = MESSAGE_PARTS};
        struct message_out out = {.id = STR("m1"), .type = STR("t"), .content = STR("{}")};
        struct message m;
        buf_init(&store, 4096);
        arena_init(&a, 1u << 20);
        fault_at(n);
        struct err *e = message_put(&out, KEY, &store, z.parts);
        if (!e)
            e = message_parse(&z, KEY, &a, &m);
        bool fired = fault_fired();
        fault_at(0);
        CHECK_INT(e != NULL, fired);
        err_free(e);
        if (!fired)
            return;
    }
}
