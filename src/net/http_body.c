// SPDX-License-Identifier: Apache-2.0
/* http_body.c — the bytes behind a head: counted, chunked, or up to the end. */
#include <stdio.h>

#include "net/http.h"

enum chunk_state {
    CH_SIZE,      /* first hex digit */
    CH_SIZE_MORE, /* further digits */
    CH_EXT,       /* chunk extension, ignored */
    CH_SIZE_LF,   /* LF after the size line */
    CH_DATA,
    CH_DATA_CR, /* CRLF after the data */
    CH_DATA_LF,
    CH_TRAILER, /* first byte of a trailer line, or CR of the end */
    CH_TRAILER_NAME,
    CH_TRAILER_VALUE,
    CH_TRAILER_LF,
    CH_END_LF,
};

#define CHUNK_LINE_MAX 256u /* size and extension */
#define TRAILER_MAX    (8u << 10)

void http_body_init(struct http_body *b, const struct http_head *head)
{
    *b = (struct http_body){
        .framing = head->framing,
        .left = head->framing == HTTP_LENGTH ? head->length : 0,
        .done = head->framing == HTTP_NO_BODY,
        .state = CH_SIZE,
    };
}

static fallible bad_chunk(const char *what)
{
    return err_new(ERR_INVALID, "bad chunk: %s", what);
}

static bool is_text(char c)
{
    return ((uint8_t)c >= ' ' && c != 0x7f) || c == '\t';
}

static fallible size_digit(struct http_body *b, char c)
{
    unsigned digit = str_digit(c);

    if (digit > 15)
        return bad_chunk("the size is not hexadecimal");
    if (b->left >> 58)
        return bad_chunk("the size is too large");
    b->left = b->left << 4 | digit;
    b->state = CH_SIZE_MORE;
    return NULL;
}

static fallible size_line_byte(struct http_body *b, char c)
{
    if (++b->line_bytes > CHUNK_LINE_MAX)
        return bad_chunk("the size line is too long");
    switch ((enum chunk_state)b->state) {
    case CH_SIZE:
        return size_digit(b, c);
    case CH_SIZE_MORE:
        if (c == '\r')
            b->state = CH_SIZE_LF;
        else if (c == ';')
            b->state = CH_EXT;
        else
            return size_digit(b, c);
        return NULL;
    case CH_EXT:
        if (c == '\r')
            b->state = CH_SIZE_LF;
        else if (!is_text(c))
            return bad_chunk("control character in an extension");
        return NULL;
    default: /* CH_SIZE_LF */
        if (c != '\n')
            return bad_chunk("CR without LF");
        b->line_bytes = 0;
        b->state = b->left ? CH_DATA : CH_TRAILER;
        return NULL;
    }
}

static fallible trailer_byte(struct http_body *b, char c)
{
    if (++b->line_bytes > TRAILER_MAX)
        return err_new(ERR_HEADERS_TOO_LARGE, "the trailers are over %u bytes", TRAILER_MAX);
    switch ((enum chunk_state)b->state) {
    case CH_TRAILER:
        if (c == '\r')
            b->state = CH_END_LF;
        else if (!http_is_token(str_n(&c, 1)))
            return bad_chunk("bad trailer");
        else
            b->state = CH_TRAILER_NAME;
        return NULL;
    case CH_TRAILER_NAME: /* "GET / HTTP/1.1" here would be a request to another parser */
        if (c == ':')
            b->state = CH_TRAILER_VALUE;
        else if (!http_is_token(str_n(&c, 1)))
            return bad_chunk("bad trailer");
        return NULL;
    case CH_TRAILER_VALUE:
        if (c == '\r')
            b->state = CH_TRAILER_LF;
        else if (!is_text(c))
            return bad_chunk("control character in a trailer");
        return NULL;
    default: /* CH_TRAILER_LF, CH_END_LF */
        if (c != '\n')
            return bad_chunk("CR without LF");
        b->done = b->state == CH_END_LF;
        b->state = CH_TRAILER;
        return NULL;
    }
}

static fallible frame_byte(struct http_body *b, char c)
{
    if (b->state <= CH_SIZE_LF)
        return size_line_byte(b, c);
    if (b->state >= CH_TRAILER)
        return trailer_byte(b, c);
    if (c != (b->state == CH_DATA_CR ? '\r' : '\n'))
        return bad_chunk("no CRLF behind the data");
    b->state = b->state == CH_DATA_CR ? CH_DATA_LF : CH_SIZE;
    return NULL;
}

static struct str body_counted(struct http_body *b, struct str *in)
{
    struct str piece = str_first(*in, b->left < in->len ? (size_t)b->left : in->len);

    *in = str_from(*in, piece.len);
    b->left -= piece.len;
    return piece;
}

fallible http_body_next(struct http_body *b, struct str *in, struct str *ret_piece)
{
    *ret_piece = str_n(in->p, 0);
    switch (b->framing) {
    case HTTP_NO_BODY:
        return NULL;
    case HTTP_UNTIL_CLOSE:
        *ret_piece = *in;
        *in = str_from(*in, in->len);
        return NULL;
    case HTTP_LENGTH:
        *ret_piece = body_counted(b, in);
        b->done = b->left == 0;
        return NULL;
    case HTTP_CHUNKED:
        break;
    }
    while (in->len && !b->done) {
        if (b->state == CH_DATA) {
            *ret_piece = body_counted(b, in);
            if (b->left == 0)
                b->state = CH_DATA_CR;
            return NULL;
        }
        TRY(frame_byte(b, in->p[0]));
        *in = str_from(*in, 1);
    }
    return NULL;
}

fallible http_body_eof(struct http_body *b)
{
    if (b->framing == HTTP_UNTIL_CLOSE)
        b->done = true;
    if (!b->done)
        return err_new(ERR_CLOSED, "the connection ended inside the body");
    return NULL;
}

size_t http_chunk_head(size_t n, char out[20])
{
    return (size_t)snprintf(out, 20, "%zx\r\n", n);
}
