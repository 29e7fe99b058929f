// SPDX-License-Identifier: Apache-2.0
/* url.h — URLs, percent-encoding and query strings.
 *
 * A unix socket is "unix:/run/croft.sock" or, with something to ask for there,
 * "unix:/run/croft.sock:/path?query"; "unix:///run/croft.sock" is the same. The socket's path is
 * taken as it stands, without escapes, and becomes the host. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

struct url {
    struct str scheme;   /* "http", "https", "ws", "wss", "unix"; lower case whatever was written */
    struct str userinfo; /* "user:pass", not decoded; .p NULL when absent */
    struct str host;     /* without brackets; the socket's path for unix */
    uint16_t port;       /* the scheme's own when not given; 0 when it has none */
    struct str path;     /* with its slash; "/" when absent */
    struct str query;    /* without '?' */
    struct str fragment; /* without '#' */
};

#define URL_MAX_SOCKET 107 /* what sun_path holds */

/* Points into text, but for the scheme and an absent path. Only absolute URLs with a host; control
 * characters, spaces, bytes over 0x7e, bad escapes, bad ports, bad IPv4 and bad IPv6 are refused.
 * The error does not repeat the text, which may hold a password. */
fallible url_parse(struct str text, struct url *ret_url);

bool url_is_tls(const struct url *url); /* https and wss */
/* For Host: as the URL had it, brackets included; the port if it is not the scheme's own, or
 * with_port. "localhost" for a unix socket. */
void url_put_host(struct buf *out, const struct url *url, bool with_port);
/* Path and query, for the request line. */
void url_put_target(struct buf *out, const struct url *url);

/* Decodes %XX; plus_is_space for queries. Bad escapes and NUL, escaped or not, are refused. Gives s
 * itself when there is nothing to decode. */
fallible url_decode(struct arena *a, struct str s, bool plus_is_space, struct str *ret);
/* Escapes all but unreserved characters (and '/' when keep_slash). */
void url_encode(struct buf *out, struct str s, bool keep_slash);

struct url_param {
    struct str name, value;
};
#define URL_MAX_PARAMS 200
/* "a=1&b=2", decoded; order and duplicates kept. */
fallible url_parse_query(struct arena *a, struct str query, struct url_param **ret_params,
                         size_t *ret_count);
