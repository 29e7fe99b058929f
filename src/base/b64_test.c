// SPDX-License-Identifier: Apache-2.0
#include "base/b64.h"

#include "base/rng.h"
#include "test/test.h"

static const struct {
    const char *plain, *text;
} rfc4648[] = {{"", ""},
               {"f", "Zg=="},
               {"fo", "Zm8="},
               {"foo", "Zm9v"},
               {"foob", "Zm9vYg=="},
               {"fooba", "Zm9vYmE="},
               {"foobar", "Zm9vYmFy"},
               {"\xfb\xff\xfe", "+//+"}};

TEST(base64_gives_and_takes_the_vectors_of_rfc_4648)
{
    own_done(buf) b;

    buf_init(&b, 100);
    for (size_t i = 0; i < ARRAY_LEN(rfc4648); i++) {
        buf_reset(&b);
        b64_add(&b, str_of(rfc4648[i].plain));
        CHECK_STR(buf_str(&b), rfc4648[i].text);
        buf_reset(&b);
        CHECK_OK(b64_decode(str_of(rfc4648[i].text), &b));
        CHECK_STR(buf_str(&b), rfc4648[i].plain);
    }
}

TEST(base64_for_urls_uses_its_own_letters_and_may_leave_padding_out)
{
    char out[8];

    CHECK_STR(str_n(out, b64_encode("\xfb\xff\xfe", 3, out, true, true)), "-__-");
    CHECK_STR(str_n(out, b64_encode("f", 1, out, true, false)), "Zg");
    CHECK_STR(str_n(out, b64_encode("fo", 2, out, true, false)), "Zm8");
    CHECK_STR(str_n(out, b64_encode("fo", 2, out, false, true)), "Zm8=");
    CHECK_INT(b64_len(0), 0);
    CHECK_INT(b64_len(4), 8);
}

TEST(base64_refuses_what_is_not_exactly_it_and_adds_nothing)
{
    static const char *const wrong[] = {"Z",
                                        "Zg",
                                        "Zg=",
                                        "Zm9vYg",
                                        "Zg==Zg==",
                                        "Zm8=Zm8=",
                                        "Zm9v\n",
                                        "Zm9v\nZm9",
                                        " Zm9",
                                        "Zm 9",
                                        "-__-",
                                        "====",
                                        "Z===",
                                        "Zg=A",
                                        "=Zg=",
                                        "Zh==",
                                        "Zm9=",
                                        "Zm9vZm9\x80",
                                        "Zm9*",
                                        "Zm9vZ=g=",
                                        "Zm9v====",
                                        "Zm9vZm9v=",
                                        "\xff\xff\xff\xff"};
    own_done(buf) b;

    buf_init(&b, 100);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        CHECK_ERR(b64_decode(str_of(wrong[i]), &b), ERR_INVALID, "base64");
        CHECK_INT(b.len, 0);
    }
    CHECK_ERR(b64_decode(STR("Zm\0v"), &b), ERR_INVALID, "byte 0x00 at 2");
    CHECK_ERR(b64_decode(STR("Zm9vZm9?"), &b), ERR_INVALID, "byte 0x3f at 7");
}

TEST(base64_round_trips_every_length_and_byte)
{
    own_done(buf) text, back;
    struct rng_fixed fixed;
    struct rng *rng = rng_fixed_init(&fixed, 3);
    char data[300];

    buf_init(&text, 1000);
    buf_init(&back, 1000);
    rng->fill(rng, data, sizeof data);
    for (size_t n = 0; n <= sizeof data; n++) {
        buf_reset(&text);
        buf_reset(&back);
        b64_add(&text, str_n(data, n));
        CHECK_INT(text.len, b64_len(n));
        CHECK_OK(b64_decode(buf_str(&text), &back));
        CHECK_STR(buf_str(&back), str_n(data, n));
    }
}

TEST(base64_respects_the_limit_of_the_buffer)
{
    own_done(buf) b;

    buf_init(&b, 6);
    CHECK_OK(b64_decode(STR("Zm9vYmFy"), &b)); /* six bytes, not one more asked for */
    buf_reset(&b);
    CHECK_ERR(b64_decode(STR("Zm9vYmFyZg=="), &b), ERR_TOO_LARGE, "6");
    buf_reset(&b);
    b64_add(&b, STR("12345"));
    CHECK(b.over_limit && b.len == 0);
}
