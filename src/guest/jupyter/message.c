// SPDX-License-Identifier: Apache-2.0
/* message.c — see message.h. */
#include "guest/jupyter/message.h"

#include "base/clock.h"
#include "base/hash.h"

#define DELIMITER STR("<IDS|MSG>")
#define HEX_LEN   (size_t)(2 * SHA256_LEN)
#define HEAD_SIZE (64u << 10) /* of a header; the kernel's are 200 bytes */

enum { SIGNATURE = 1, HEADER, PARENT, METADATA, CONTENT }; /* after the delimiter */

static void message_sign(struct str key, const struct str parts[4], char out[HEX_LEN + 1])
{
    struct hmac_sha256 h;
    uint8_t digest[SHA256_LEN];

    hmac_sha256_init(&h, key);
    for (unsigned i = 0; i < 4; i++)
        hmac_sha256_add(&h, parts[i].p, parts[i].len);
    hmac_sha256_done(&h, digest);
    hash_hex(digest, sizeof digest, out);
}

static void put_header(const struct message_out *m, struct buf *out)
{
    char date[CLOCK_ISO_MAX];
    struct jw w;

    size_t date_len = clock_format_iso(m->wall_ns, true, date);
    jw_init(&w, out, JW_ASCII);
    JW_OBJECT(&w, NULL) {
        jw_str(&w, "msg_id", m->id);
        jw_str(&w, "session", m->session);
        jw_str(&w, "username", STR("croft"));
        jw_str(&w, "date", str_n(date, date_len));
        jw_str(&w, "msg_type", m->type);
        jw_str(&w, "version", STR("5.3"));
    }
}

fallible message_put(const struct message_out *m, struct str key, struct buf *store,
                     struct str parts[MESSAGE_PARTS])
{
    char signature[HEX_LEN + 1];

    put_header(m, store);
    size_t header_len = store->len;
    TRY(buf_check(store));
    struct str signed_parts[4] = {buf_str(store), STR("{}"), STR("{}"), m->content};
    message_sign(key, signed_parts, signature);
    buf_add_mem(store, signature, HEX_LEN);
    TRY(buf_check(store));
    parts[0] = DELIMITER;
    parts[1] = str_n(store->p + header_len, HEX_LEN);
    parts[2] = str_n(store->p, header_len);
    parts[3] = parts[4] = STR("{}");
    parts[5] = m->content;
    return NULL;
}

static fallible find_delimiter(const struct zmtp_message *z, unsigned *ret_at)
{
    unsigned at = 0;

    while (at < z->count && !str_eq(z->parts[at], DELIMITER))
        at++;
    if (at + CONTENT >= z->count)
        return err_new(ERR_UPSTREAM, "a kernel message without its parts");
    *ret_at = at;
    return NULL;
}

static fallible parse_heads(const struct str *part, struct arena *a, struct message *ret_message)
{
    struct json_limits limits = {.size_bytes = HEAD_SIZE, .depth = 8};
    struct json *header, *parent;
    struct message m = {.content_text = part[CONTENT]};

    TRY_WRAP(json_parse(a, part[HEADER], &limits, &header), "header of a kernel message");
    TRY_WRAP(json_parse(a, part[PARENT], &limits, &parent), "parent of a kernel message");
    TRY_WRAP(json_want_str(header, "msg_type", &m.type), "header of a kernel message");
    m.parent_id = json_get_str(parent, "msg_id", STR(""));
    *ret_message = m;
    return NULL;
}

fallible message_parse(const struct zmtp_message *z, struct str key, struct arena *a,
                       struct message *ret_message)
{
    char signature[HEX_LEN + 1];
    unsigned at = 0;

    if (z->dropped_bytes)
        return err_new(ERR_TOO_LARGE, "a kernel message lost %llu bytes",
                       (unsigned long long)z->dropped_bytes);
    TRY(find_delimiter(z, &at));
    message_sign(key, z->parts + at + HEADER, signature);
    if (!hash_equal(z->parts[at + SIGNATURE], str_n(signature, HEX_LEN)))
        return err_new(ERR_FORBIDDEN, "a kernel message with a wrong signature");
    return parse_heads(z->parts + at, a, ret_message);
}

fallible message_parse_head(const struct zmtp_message *z, struct arena *a,
                            struct message *ret_message)
{
    unsigned at = 0;

    TRY(find_delimiter(z, &at));
    return parse_heads(z->parts + at, a, ret_message);
}
