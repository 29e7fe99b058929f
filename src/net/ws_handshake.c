// SPDX-License-Identifier: Apache-2.0
/* ws_handshake.c — RFC 6455 section 4 and the parameters of RFC 7692 section 7.1.
 *
 * client_max_window_bits is the exception: an offer may have it without a value, an answer may not.
 * A server may answer with it only if it was offered. */
#include "net/ws_handshake.h"

#include "base/b64.h"
#include "base/hash.h"

#define GUID      "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define BITS_MIN  8
#define BITS_MAX  15
#define BITS_BARE 0xff /* client_max_window_bits without a value */

void ws_accept_for(struct str key, char out[WS_ACCEPT_LEN])
{
    char text[WS_KEY_LEN + sizeof GUID - 1];
    uint8_t digest[SHA1_LEN];

    memcpy(text, key.p, WS_KEY_LEN);
    memcpy(text + WS_KEY_LEN, GUID, sizeof GUID - 1);
    sha1(str_n(text, sizeof text), digest);
    b64_encode(digest, sizeof digest, out, false, true);
}

static bool has_token_in(const struct http_head *head, struct str name, struct str token)
{
    for (size_t i = 0; i < head->header_count; i++)
        if (str_eq_nocase(head->headers[i].name, name) &&
            http_has_token(head->headers[i].value, token))
            return true;
    return false;
}

static bool is_once(const struct http_head *head, struct str name)
{
    unsigned n = 0;

    for (size_t i = 0; i < head->header_count; i++)
        n += str_eq_nocase(head->headers[i].name, name);
    return n == 1;
}

static bool is_key(struct str key)
{
    own_done(buf) raw;

    buf_init(&raw, WS_KEY_LEN);
    if (key.len != WS_KEY_LEN)
        return false;
    struct err *e = b64_decode(key, &raw);
    err_free(e);
    return !e && raw.len == 16;
}

fallible ws_check_request(const struct http_head *head)
{
    struct str key = http_header_get(head, STR("Sec-WebSocket-Key"));

    if (!str_eq(head->method, STR("GET")))
        return err_new(ERR_INVALID, "a WebSocket is opened with GET");
    if (head->minor < 1)
        return err_new(ERR_INVALID, "a WebSocket needs HTTP/1.1");
    if (head->framing != HTTP_NO_BODY && head->length)
        return err_new(ERR_INVALID, "a WebSocket request has no body");
    if (!head->upgrade || !has_token_in(head, STR("Upgrade"), STR("websocket")))
        return err_new(ERR_UPGRADE, "this address speaks WebSocket only");
    if (!is_once(head, STR("Sec-WebSocket-Version")) ||
        !str_eq(http_header_get(head, STR("Sec-WebSocket-Version")), STR("13")))
        return err_new(ERR_UPGRADE, "only WebSocket version 13 is spoken");
    if (!is_once(head, STR("Sec-WebSocket-Key")) || !is_key(key))
        return err_new(ERR_INVALID, "Sec-WebSocket-Key is not 16 bytes in base64");
    return NULL;
}

bool ws_offers_protocol(const struct http_head *head, struct str protocol)
{
    struct str name = STR("Sec-WebSocket-Protocol"), one;

    for (size_t i = 0; i < head->header_count; i++) {
        struct str rest = head->headers[i].value;
        if (!str_eq_nocase(head->headers[i].name, name))
            continue;
        while (rest.len) {
            str_cut(&rest, ',', &one);
            if (str_eq(str_trim(one), protocol)) /* unlike HTTP's own tokens, case counts */
                return true;
        }
    }
    return false;
}

/* --- extensions: token *( ";" token [ "=" ( token / quoted token ) ] ), separated by commas --- */

static void skip_blanks(struct str *s)
{
    while (s->len && (*s->p == ' ' || *s->p == '\t'))
        *s = str_from(*s, 1);
}

static bool take_char(struct str *s, char c)
{
    skip_blanks(s);
    if (!s->len || *s->p != c)
        return false;
    *s = str_from(*s, 1);
    return true;
}

static bool take_token(struct str *s, struct str *ret_token)
{
    size_t n = 0;

    skip_blanks(s);
    while (n < s->len && http_is_token(str_n(s->p + n, 1)))
        n++;
    *ret_token = str_first(*s, n);
    *s = str_from(*s, n);
    return n > 0;
}

static bool take_value(struct str *s, struct str *ret_value)
{
    if (!take_char(s, '"'))
        return take_token(s, ret_value);
    ptrdiff_t end = str_find_char(*s, '"');
    if (end < 0)
        return false;
    *ret_value = str_first(*s, (size_t)end);
    *s = str_from(*s, (size_t)end + 1);
    return http_is_token(*ret_value);
}

struct offer {
    bool server_forgets, client_forgets;
    uint8_t server_bits, client_bits; /* 0: not there */
    bool unkeepable;                  /* well formed, but nothing we know */
};

static uint8_t bits_of(struct str value)
{
    uint64_t bits;

    if (!value.len || *value.p == '0' || !str_to_u64(value, &bits) || bits < BITS_MIN ||
        bits > BITS_MAX)
        return 0;
    return (uint8_t)bits;
}

static void note_param(struct offer *o, struct str name, struct str value)
{
    bool *flag = str_eq(name, STR("server_no_context_takeover"))   ? &o->server_forgets
                 : str_eq(name, STR("client_no_context_takeover")) ? &o->client_forgets
                                                                   : NULL;
    uint8_t *bits = str_eq(name, STR("server_max_window_bits"))   ? &o->server_bits
                    : str_eq(name, STR("client_max_window_bits")) ? &o->client_bits
                                                                  : NULL;

    if (flag) {
        o->unkeepable |= *flag || value.p;
        *flag = true;
    } else if (bits && !*bits) {
        *bits = value.p ? bits_of(value) : bits == &o->client_bits ? BITS_BARE : 0;
        o->unkeepable |= !*bits;
    } else {
        o->unkeepable = true; /* unknown, or twice */
    }
}

/* One extension off the front of *s. */
static bool take_offer(struct str *s, struct str *ret_name, struct offer *ret_offer)
{
    *ret_offer = (struct offer){0};
    if (!take_token(s, ret_name))
        return false;
    while (take_char(s, ';')) {
        struct str name, value = {0};
        if (!take_token(s, &name) || (take_char(s, '=') && !take_value(s, &value)))
            return false;
        note_param(ret_offer, name, value);
    }
    skip_blanks(s);
    return !s->len || *s->p == ',';
}

/* Calls fn for each offer of permessage-deflate until it gives false. */
static fallible each_offer(const struct http_head *head, bool deflate_only,
                           bool (*fn)(void *ctx, const struct offer *o), void *ctx)
{
    bool more = true;

    for (size_t i = 0; i < head->header_count; i++) {
        struct str rest = head->headers[i].value, name;
        struct offer o;
        if (!str_eq_nocase(head->headers[i].name, STR("Sec-WebSocket-Extensions")))
            continue;
        do {
            if (take_char(&rest, ',')) /* empty elements may be */
                continue;
            skip_blanks(&rest);
            if (!rest.len)
                break;
            if (!take_offer(&rest, &name, &o))
                return err_new(ERR_INVALID, "Sec-WebSocket-Extensions is not well formed");
            if (str_eq(name, STR("permessage-deflate")))
                more = more && fn(ctx, &o);
            else if (deflate_only)
                return err_new(ERR_INVALID, "an extension that was not offered");
        } while (rest.len);
    }
    return NULL;
}

static uint8_t handshake_least(uint8_t a, uint8_t b)
{
    return a < b ? a : b;
}

struct choice {
    struct ws_deflate_terms *terms;
    unsigned count;
    bool bad;
};

static bool handshake_choose(void *ctx, const struct offer *o)
{
    struct ws_deflate_terms *t = ctx;

    if (o->unkeepable)
        return true; /* perhaps the next one */
    *t = (struct ws_deflate_terms){
        .on = true,
        .send_bits =
            o->server_bits ? handshake_least(o->server_bits, WS_DEFLATE_BITS) : WS_DEFLATE_BITS,
        .receive_bits =
            o->client_bits ? handshake_least(o->client_bits, WS_DEFLATE_BITS) : BITS_MAX,
        .receive_forgets = true,
        .name_send_bits = o->server_bits,
        .name_receive_bits = o->client_bits,
    };
    return false;
}

fallible ws_choose_deflate(const struct http_head *head, struct ws_deflate_terms *ret_terms)
{
    struct ws_deflate_terms terms = {0};

    TRY(each_offer(head, false, handshake_choose, &terms));
    *ret_terms = terms;
    return NULL;
}

void ws_put_answer(struct buf *out, const struct http_head *head, struct str protocol,
                   const struct ws_deflate_terms *terms)
{
    char accept[WS_ACCEPT_LEN];

    ws_accept_for(http_header_get(head, STR("Sec-WebSocket-Key")), accept);
    buf_add(out, STR("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                     "Connection: Upgrade\r\nSec-WebSocket-Accept: "));
    buf_add_mem(out, accept, sizeof accept);
    if (protocol.len)
        buf_addf(out, "\r\nSec-WebSocket-Protocol: " STR_FMT, STR_ARG(protocol));
    if (terms->on)
        buf_add(out, STR("\r\nSec-WebSocket-Extensions: permessage-deflate; "
                         "server_no_context_takeover; client_no_context_takeover"));
    if (terms->name_send_bits)
        buf_addf(out, "; server_max_window_bits=%u", terms->send_bits);
    if (terms->name_receive_bits)
        buf_addf(out, "; client_max_window_bits=%u", terms->receive_bits);
    buf_add(out, STR("\r\n\r\n"));
}

/* --- the client's side --- */

void ws_put_request(struct buf *out, const struct ws_ask *ask)
{
    buf_addf(out, "GET " STR_FMT " HTTP/1.1\r\nHost: " STR_FMT "\r\n", STR_ARG(ask->target),
             STR_ARG(ask->host));
    buf_add(out, STR("Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                     "Sec-WebSocket-Key: "));
    buf_add_mem(out, ask->key, sizeof ask->key);
    if (ask->protocol.len)
        buf_addf(out, "\r\nSec-WebSocket-Protocol: " STR_FMT, STR_ARG(ask->protocol));
    if (ask->deflate)
        buf_addf(out,
                 "\r\nSec-WebSocket-Extensions: permessage-deflate; "
                 "server_no_context_takeover; client_no_context_takeover; "
                 "client_max_window_bits=%d",
                 WS_DEFLATE_BITS);
    buf_add(out, STR("\r\n"));
    buf_add(out, ask->headers);
    buf_add(out, STR("\r\n"));
}

static bool handshake_agree(void *ctx, const struct offer *o)
{
    struct choice *c = ctx;

    c->count++;
    c->bad |= o->unkeepable || o->client_bits > WS_DEFLATE_BITS; /* BITS_BARE included */
    *c->terms = (struct ws_deflate_terms){
        .on = true,
        .send_bits = o->client_bits ? o->client_bits : WS_DEFLATE_BITS,
        .receive_bits = o->server_bits ? o->server_bits : BITS_MAX,
        .receive_forgets =
            o->server_forgets, /* a server that keeps them all the same is followed */
    };
    return true;
}

static fallible check_extensions(const struct http_head *head, bool asked,
                                 struct ws_deflate_terms *ret_terms)
{
    struct ws_deflate_terms terms = {0};
    struct choice c = {.terms = &terms};

    TRY(each_offer(head, true, handshake_agree, &c));
    if (c.count > 1 || c.bad || (c.count && !asked))
        return err_new(ERR_INVALID, "compression was not asked for like that");
    *ret_terms = terms;
    return NULL;
}

fallible ws_check_answer(const struct http_head *head, const struct ws_ask *ask,
                         struct ws_deflate_terms *ret_terms)
{
    char accept[WS_ACCEPT_LEN];
    struct str protocol = http_header_get(head, STR("Sec-WebSocket-Protocol"));

    if (head->status != 101)
        return err_new(ERR_UPSTREAM, "the server answered %d", head->status);
    if (!head->upgrade || !has_token_in(head, STR("Upgrade"), STR("websocket")))
        return err_new(ERR_UPSTREAM, "the server did not switch to WebSocket");
    ws_accept_for(str_n(ask->key, sizeof ask->key), accept);
    if (!is_once(head, STR("Sec-WebSocket-Accept")) ||
        !str_eq(http_header_get(head, STR("Sec-WebSocket-Accept")), str_n(accept, sizeof accept)))
        return err_new(ERR_UPSTREAM, "Sec-WebSocket-Accept does not fit the key");
    if (protocol.p && (!ask->protocol.len || !str_eq(protocol, ask->protocol)))
        return err_new(ERR_UPSTREAM, "the server chose a sub-protocol that was not offered");
    struct err *e = check_extensions(head, ask->deflate, ret_terms);
    return e ? err_recode(e, ERR_UPSTREAM) : NULL;
}
