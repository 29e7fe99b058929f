// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include "base/hash_impl.h"
#include "base/own.h"
#include "base/rng.h"
#include "test/test.h"

struct vector {
    const char *text, *digest;
};

/* FIPS 180-4 examples and NIST CAVP short messages, as text where they are text */
static const struct vector sha256_vectors[] = {
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnop"
     "qrsmnopqrstnopqrstu",
     "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    {"\xd3", "28969cdfa74a12c82f3bad960b0b000aca2ac329deea5c2328ebc6f2ba9802c1"},
    {"\x11\xaf", "5ca7133fa735326081558ac312c620eeca9970d1e70a4b95533d956f072d1f98"},
    {"\xb4\x19\x0e", "dff2e73091f6c05e528896c4c831b9448653dc2ff043528f6769437bc7b975c2"},
    {"\x74\xba\x25\x21", "b16aa56be3880d18cd41e68384cf1ec8c17680c45a02b1575dc1518923ae8b0e"},
};

static const struct vector sha1_vectors[] = {
    {"", "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
    {"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "84983e441c3bd26ebaae4aa1f95129e5e54670f1"},
    {"\x36", "c1dfd96eea8cc2b62785275bca38ac261256e278"},
    {"\x19\x5a", "0a1c2d555bbe431ad6288af5a54f93e0449c9232"},
    {"\xdf\x4b\xd2", "bf36ed5d74727dfd5d7854ec6b1d49468d8ee8aa"},
    /* RFC 6455 §1.3: the handshake this is here for */
    {"dGhlIHNhbXBsZSBub25jZQ==258EAFA5-E914-47DA-95CA-C5AB0DC85B11",
     "b37a4f2cc0624f1690f64606cf385945b2bec4ea"},
};

static const char *hex_of(const uint8_t *p, size_t n)
{
    static char text[2 * SHA256_LEN + 1];

    hash_hex(p, n, text);
    return text;
}

/* Pads by hand, so that either compression can be asked for. */
static void sha256_by(void (*blocks)(uint32_t state[8], const uint8_t *p, size_t n), struct str s,
                      uint8_t out[SHA256_LEN])
{
    struct sha256 h;
    uint8_t last[128] = {0};
    size_t whole = s.len / 64, rest = s.len % 64, size = rest < 56 ? 64 : 128;

    sha256_init(&h);
    blocks(h.state, (const uint8_t *)s.p, whole);
    memcpy(last, s.p + whole * 64, rest);
    last[rest] = 0x80;
    for (int i = 0; i < 8; i++)
        last[size - 1 - (size_t)i] = (uint8_t)((uint64_t)s.len * 8 >> (8 * i));
    blocks(h.state, last, size / 64);
    for (int i = 0; i < SHA256_LEN; i++)
        out[i] = (uint8_t)(h.state[i / 4] >> (24 - i % 4 * 8));
}

TEST(sha256_gives_the_published_digests)
{
    for (size_t i = 0; i < ARRAY_LEN(sha256_vectors); i++) {
        uint8_t out[SHA256_LEN];
        sha256(str_of(sha256_vectors[i].text), out);
        CHECK_STR(hex_of(out, sizeof out), sha256_vectors[i].digest);
    }
}

TEST(sha256_in_portable_c_gives_the_published_digests)
{
    for (size_t i = 0; i < ARRAY_LEN(sha256_vectors); i++) {
        uint8_t out[SHA256_LEN];
        sha256_by(sha256_blocks_scalar, str_of(sha256_vectors[i].text), out);
        CHECK_STR(hex_of(out, sizeof out), sha256_vectors[i].digest);
    }
}

TEST(sha256_by_the_processor_equals_portable_c_at_every_length)
{
    struct rng_fixed fixed;
    struct rng *rng = rng_fixed_init(&fixed, 1);
    char data[1000];

    if (!sha256_ni_usable())
        SKIP("this processor has no SHA instructions");
    rng->fill(rng, data, sizeof data);
    for (size_t n = 0; n <= sizeof data; n++) {
        uint8_t scalar[SHA256_LEN], ni[SHA256_LEN];
        sha256_by(sha256_blocks_scalar, str_n(data, n), scalar);
        sha256_by(sha256_blocks_ni, str_n(data, n), ni);
        CHECK(memcmp(scalar, ni, sizeof ni) == 0);
        sha256(str_n(data, n), ni);
        CHECK(memcmp(scalar, ni, sizeof ni) == 0);
    }
}

TEST(sha256_of_a_million_letters_a_is_the_published_one)
{
    static char letters[1000];
    struct sha256 h;
    uint8_t out[SHA256_LEN];

    memset(letters, 'a', sizeof letters);
    sha256_init(&h);
    for (int i = 0; i < 1000; i++)
        sha256_add(&h, letters, sizeof letters);
    sha256_done(&h, out);
    CHECK_STR(hex_of(out, sizeof out),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(sha256_does_not_care_how_the_input_was_cut)
{
    struct rng_fixed fixed;
    struct rng *rng = rng_fixed_init(&fixed, 2);
    char data[700];

    rng->fill(rng, data, sizeof data);
    for (int round = 0; round < 500; round++) {
        size_t n = rng_below(rng, sizeof data + 1), at = 0;
        uint8_t whole[SHA256_LEN], pieces[SHA256_LEN];
        struct sha256 h;
        sha256_init(&h);
        while (at < n) {
            size_t some = rng_below(rng, 130);
            some = some < n - at ? some : n - at;
            sha256_add(&h, data + at, some);
            at += some;
        }
        sha256_done(&h, pieces);
        sha256(str_n(data, n), whole);
        CHECK(memcmp(whole, pieces, sizeof whole) == 0);
    }
}

TEST(sha1_gives_the_published_digests)
{
    static char million[1000000];
    uint8_t out[SHA1_LEN];

    for (size_t i = 0; i < ARRAY_LEN(sha1_vectors); i++) {
        sha1(str_of(sha1_vectors[i].text), out);
        CHECK_STR(hex_of(out, sizeof out), sha1_vectors[i].digest);
    }
    memset(million, 'a', sizeof million);
    sha1(str_n(million, sizeof million), out);
    CHECK_STR(hex_of(out, sizeof out), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

static struct str repeated(char *into, char c, size_t n)
{
    memset(into, c, n);
    return str_n(into, n);
}

TEST(hmac_gives_the_digests_of_rfc_4231)
{
    char k1[20], k3[20], d3[50], k6[131], d4[50], counting[25];
    for (size_t i = 0; i < sizeof counting; i++)
        counting[i] = (char)(i + 1);
    const struct {
        struct str key, data;
        const char *digest;
    } vectors[] = {
        {repeated(k1, 0x0b, 20), STR("Hi There"),
         "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {STR("Jefe"), STR("what do ya want for nothing?"),
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {repeated(k3, (char)0xaa, 20), repeated(d3, (char)0xdd, 50),
         "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
        {str_n(counting, 25), repeated(d4, (char)0xcd, 50),
         "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
        {repeated(k6, (char)0xaa, 131),
         STR("Test Using Larger Than Block-Size Key - Hash Key First"),
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
        {repeated(k6, (char)0xaa, 131),
         STR("This is a test using a larger than block-size key and a larger than block-size data. "
             "The key needs to be hashed before being used by the HMAC algorithm."),
         "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
    };

    for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
        struct hmac_sha256 h;
        uint8_t out[SHA256_LEN];
        hmac_sha256_init(&h, vectors[i].key);
        hmac_sha256_add(&h, vectors[i].data.p, 3);
        hmac_sha256_add(&h, vectors[i].data.p + 3, vectors[i].data.len - 3);
        hmac_sha256_done(&h, out);
        CHECK_STR(hex_of(out, sizeof out), vectors[i].digest);
    }
}

TEST(hash_equal_sees_any_one_byte_and_the_length)
{
    char a[40], b[40];

    memset(a, 7, sizeof a);
    memset(b, 7, sizeof b);
    CHECK(hash_equal(str_n(a, 40), str_n(b, 40)));
    CHECK(hash_equal(STR(""), (struct str){NULL, 0}));
    CHECK(!hash_equal(str_n(a, 40), str_n(b, 39)));
    for (size_t i = 0; i < sizeof a; i++) {
        b[i] ^= 0x10;
        CHECK(!hash_equal(str_n(a, 40), str_n(b, 40)));
        b[i] ^= 0x10;
    }
}

TEST(hash_hex_writes_lower_case_and_a_terminator)
{
    char out[9];

    hash_hex("\x00\x9f\xab\xff", 4, out);
    CHECK_STR(out, "009fabff");
}
