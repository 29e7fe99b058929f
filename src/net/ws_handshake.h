// SPDX-License-Identifier: Apache-2.0
/* ws_handshake.h — the opening handshake of both sides, heads only; no I/O.
 *
 * A malformed header refuses the handshake. A well-formed offer that we cannot take is declined,
 * and the next one is tried (RFC 7692, section 5.1). */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "net/http.h"
#include "net/ws_deflate.h"

#define WS_KEY_LEN    24
#define WS_ACCEPT_LEN 28

/* The proof that a server has read the key. */
void ws_accept_for(struct str key, char out[WS_ACCEPT_LEN]);

/* ERR_INVALID, or ERR_UPGRADE for what another request could do better. */
fallible ws_check_request(const struct http_head *head);
/* The first offer that we can keep; .on false when there is none. */
fallible ws_choose_deflate(const struct http_head *head, struct ws_deflate_terms *ret_terms);
bool ws_offers_protocol(const struct http_head *head, struct str protocol);
/* The whole 101; head passed ws_check_request. protocol empty: none. */
void ws_put_answer(struct buf *out, const struct http_head *head, struct str protocol,
                   const struct ws_deflate_terms *terms);

struct ws_ask {
    struct str host, target, protocol; /* protocol empty: none */
    struct str headers;                /* "Name: value\r\n"… */
    char key[WS_KEY_LEN];
    bool deflate;
};
void ws_put_request(struct buf *out, const struct ws_ask *ask);
/* ERR_UPSTREAM when the server did not agree to what was asked. */
fallible ws_check_answer(const struct http_head *head, const struct ws_ask *ask,
                         struct ws_deflate_terms *ret_terms);
