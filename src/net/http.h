// SPDX-License-Identifier: Apache-2.0
/* http.h — the HTTP/1.1 codec: bytes to heads and bodies and back; no I/O, one code for server and
 * client.
 *
 * Strict where leniency smuggles: CRLF only, no folding, one Content-Length xor chunked, tokens are
 * tokens. Errors carry the status to answer with (err_http_status). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define HTTP_MAX_HEAD    (64u << 10)
#define HTTP_MAX_HEADERS 100

struct http_header {
    struct str name, value;
};

enum http_framing { HTTP_NO_BODY, HTTP_LENGTH, HTTP_CHUNKED, HTTP_UNTIL_CLOSE };

struct http_head {
    struct str method, target; /* request */
    int status;                /* response */
    struct str reason;
    unsigned minor; /* HTTP/1.minor */
    struct http_header *headers;
    size_t header_count;
    enum http_framing framing;
    uint64_t length; /* of the body, when framing is HTTP_LENGTH */
    bool keep_alive;
    bool expect_continue;
    bool upgrade; /* Connection: upgrade together with an Upgrade header */
};

/* Offset just behind the empty line that ends a head, or 0 when it has not come yet. *scanned makes
 * repeated calls linear; start with 0. Refuses a head that is over HTTP_MAX_HEAD, 431. */
fallible http_head_end(struct str data, size_t *scanned, size_t *ret_end);

/* head is exactly one head, empty line included. The result points into it; the header array is in
 * the arena. */
fallible http_parse_request(struct arena *a, struct str head, struct http_head *ret_head);
/* request_method decides whether there is a body (HEAD, CONNECT). */
fallible http_parse_response(struct arena *a, struct str head, struct str request_method,
                             struct http_head *ret_head);

/* The value of a header, .p NULL when absent; the first one if there are several. */
struct str http_header_get(const struct http_head *h, struct str name);
/* Is token one of the comma-separated elements of value? */
bool http_has_token(struct str value, struct str token);
bool http_is_token(struct str s);
bool http_is_field_value(struct str s);

/* --- bodies --- */
struct http_body {
    enum http_framing framing;
    uint64_t left; /* of the length or of the chunk */
    uint8_t state;
    uint32_t line_bytes; /* of the chunk line or the trailers */
    bool done;
};
void http_body_init(struct http_body *b, const struct http_head *head);
/* Takes bytes off the front of *in and gives the next piece of content (points into in). An empty
 * piece means: more input is needed, or done. */
fallible http_body_next(struct http_body *b, struct str *in, struct str *ret_piece);
/* The peer closed: fine for HTTP_UNTIL_CLOSE and when done, an error otherwise. */
fallible http_body_eof(struct http_body *b);

/* --- writing --- */
const char *http_reason(int status);
/* "1a2f\r\n"; the data and "\r\n" follow. Gives the length. */
size_t http_chunk_head(size_t n, char out[20]);

/* --- Range: bytes=a-b; one range only, as files need it --- */
enum http_range { HTTP_RANGE_NONE, HTTP_RANGE_OK, HTTP_RANGE_BAD };
enum http_range http_parse_range(struct str value, uint64_t size, uint64_t *ret_from,
                                 uint64_t *ret_len);
