// SPDX-License-Identifier: Apache-2.0
/* http.c — heads; bodies are in http_body.c. See http.h for what is refused and why. */
#include "net/http.h"

#include "base/own.h"

enum { C_TOKEN = 1, C_VALUE = 2, C_TARGET = 4 };

/* One byte per character: what it may be part of. */
static const uint8_t classes[256] = {
    ['\t'] = C_VALUE,
    [' '] = C_VALUE,
    ['!'] = C_TOKEN | C_VALUE | C_TARGET,
    ['"'] = C_VALUE | C_TARGET, /* in targets by browsers' leave */
    ['#' ... '\''] = C_TOKEN | C_VALUE | C_TARGET,
    ['(' ... ')'] = C_VALUE | C_TARGET,
    ['*' ... '+'] = C_TOKEN | C_VALUE | C_TARGET,
    [','] = C_VALUE | C_TARGET,
    ['-' ... '.'] = C_TOKEN | C_VALUE | C_TARGET,
    ['/'] = C_VALUE | C_TARGET,
    ['0' ... '9'] = C_TOKEN | C_VALUE | C_TARGET,
    [':' ... '@'] = C_VALUE | C_TARGET,
    ['A' ... 'Z'] = C_TOKEN | C_VALUE | C_TARGET,
    ['[' ... ']'] = C_VALUE | C_TARGET,
    ['^' ... 'z'] = C_TOKEN | C_VALUE | C_TARGET,
    ['{'] = C_VALUE | C_TARGET,
    ['|'] = C_TOKEN | C_VALUE | C_TARGET,
    ['}'] = C_VALUE | C_TARGET,
    ['~'] = C_TOKEN | C_VALUE | C_TARGET,
    [0x80 ... 0xff] = C_VALUE, /* obs-text */
};

static bool all_of(struct str s, uint8_t class)
{
    for (size_t i = 0; i < s.len; i++)
        if (!(classes[(uint8_t)s.p[i]] & class))
            return false;
    return true;
}

bool http_is_token(struct str s)
{
    return s.len > 0 && all_of(s, C_TOKEN);
}

bool http_is_field_value(struct str s)
{
    return all_of(s, C_VALUE);
}

/* Empty lines before a request line are skipped, two at the most. */
static size_t leading_empty_lines(struct str data)
{
    size_t n = 0;

    while (n < 4 && str_starts(str_from(data, n), STR("\r\n")))
        n += 2;
    return n;
}

fallible http_head_end(struct str data, size_t *scanned, size_t *ret_end)
{
    struct str seen = str_first(data, HTTP_MAX_HEAD); /* or the verdict would depend on the split */
    size_t lead = leading_empty_lines(seen), at = *scanned > lead ? *scanned : lead;

    *ret_end = 0;
    while (at < seen.len) {
        const char *lf = memchr(seen.p + at, '\n', seen.len - at);
        if (!lf)
            break;
        size_t i = (size_t)(lf - data.p);
        if (i == 0 || data.p[i - 1] != '\r')
            return err_new(ERR_INVALID, "a line of the head ends in LF without CR");
        at = i + 1;
        if (i - 1 == lead)
            return err_new(ERR_INVALID, "too many empty lines before the request");
        if (i >= 2 && data.p[i - 2] == '\n') {
            *ret_end = at;
            break;
        }
    }
    *scanned = *ret_end ? at : seen.len;
    if (!*ret_end && data.len > HTTP_MAX_HEAD)
        return err_new(ERR_HEADERS_TOO_LARGE, "the head is over %u bytes", HTTP_MAX_HEAD);
    return NULL;
}

/* Takes one line without its CRLF off *s; the caller knows that every LF has its CR. */
static bool line_off(struct str *s, struct str *ret_line)
{
    const char *lf = memchr(s->p, '\n', s->len);

    if (!lf || lf == s->p)
        return false;
    *ret_line = str_n(s->p, (size_t)(lf - s->p) - 1);
    *s = str_from(*s, ret_line->len + 2);
    return true;
}

static struct str trim_blanks(struct str s)
{
    while (s.len && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = str_from(s, 1);
    while (s.len && (s.p[s.len - 1] == ' ' || s.p[s.len - 1] == '\t'))
        s.len--;
    return s;
}

static fallible parse_field(struct str line, struct http_header *ret)
{
    size_t n = 0;

    if (line.p[0] == ' ' || line.p[0] == '\t')
        return err_new(ERR_INVALID, "a header is folded over several lines");
    while (n < line.len && (classes[(uint8_t)line.p[n]] & C_TOKEN))
        n++;
    if (n == 0 || n == line.len || line.p[n] != ':')
        return err_new(ERR_INVALID, "bad header name in '" STR_FMT "'",
                       STR_ARG(str_first(line, n < 40 ? n : 40)));
    ret->name = str_first(line, n);
    ret->value = trim_blanks(str_from(line, n + 1));
    if (!all_of(ret->value, C_VALUE))
        return err_new(ERR_INVALID, "header '" STR_FMT "' holds a control character",
                       STR_ARG(str_first(ret->name, 40)));
    return NULL;
}

/* The headers that framing needs, gathered in one pass. */
struct framing {
    unsigned hosts, lengths, encodings;
    struct str length, encoding;
    bool close, keep_alive, upgrade_token, upgrade, expect, bad_expect;
};

static bool name_is(struct str name, struct str lower)
{
    return name.len == lower.len && str_eq_nocase(name, lower);
}

static void note_connection(struct framing *f, struct str value)
{
    f->close |= http_has_token(value, STR("close"));
    f->keep_alive |= http_has_token(value, STR("keep-alive"));
    f->upgrade_token |= http_has_token(value, STR("upgrade"));
}

static void note_field(struct framing *f, const struct http_header *h)
{
    switch (h->name.len) {
    case 4:
        f->hosts += name_is(h->name, STR("host"));
        break;
    case 6:
        if (name_is(h->name, STR("expect"))) {
            f->expect = str_eq_nocase(h->value, STR("100-continue"));
            f->bad_expect |= !f->expect;
        }
        break;
    case 7:
        f->upgrade |= name_is(h->name, STR("upgrade")) && h->value.len;
        break;
    case 10:
        if (name_is(h->name, STR("connection")))
            note_connection(f, h->value);
        break;
    case 14:
        if (name_is(h->name, STR("content-length"))) {
            f->lengths++;
            f->length = h->value;
        }
        break;
    case 17:
        if (name_is(h->name, STR("transfer-encoding"))) {
            f->encodings++;
            f->encoding = h->value;
        }
        break;
    }
}

static fallible parse_fields(struct arena *a, struct str lines, struct http_head *h,
                             struct framing *f)
{
    struct str line;
    size_t count = 0;

    for (size_t i = 0; i + 1 < lines.len; i++)
        count += lines.p[i] == '\n';
    if (count > HTTP_MAX_HEADERS)
        return err_new(ERR_HEADERS_TOO_LARGE, "more than %d headers", HTTP_MAX_HEADERS);
    h->headers = arena_alloc(a, (count + 1) * sizeof *h->headers);
    if (!h->headers)
        return arena_check(a);
    h->header_count = 0;
    while (line_off(&lines, &line) && line.len) {
        TRY(parse_field(line, &h->headers[h->header_count]));
        note_field(f, &h->headers[h->header_count]);
        h->header_count++;
    }
    return NULL;
}

/* Content-Length xor chunked, each once: anything else is how requests are smuggled. */
static fallible decide_framing(struct http_head *h, const struct framing *f)
{
    if (f->lengths && f->encodings)
        return err_new(ERR_INVALID, "both Content-Length and Transfer-Encoding");
    if (f->lengths > 1)
        return err_new(ERR_INVALID, "more than one Content-Length");
    if (f->encodings > 1)
        return err_new(ERR_INVALID, "more than one Transfer-Encoding");
    if (f->encodings) {
        if (h->minor == 0)
            return err_new(ERR_INVALID, "Transfer-Encoding in HTTP/1.0");
        if (!str_eq_nocase(f->encoding, STR("chunked")))
            return err_new(ERR_UNSUPPORTED, "Transfer-Encoding is not 'chunked'");
        h->framing = HTTP_CHUNKED;
    } else if (f->lengths) {
        if (f->length.len > 19 || !str_to_u64(f->length, &h->length) || h->length > INT64_MAX)
            return err_new(ERR_INVALID, "Content-Length is not a number");
        h->framing = h->length ? HTTP_LENGTH : HTTP_NO_BODY;
    }
    h->keep_alive = h->minor ? !f->close : f->keep_alive && !f->close;
    h->upgrade = f->upgrade && f->upgrade_token && h->framing != HTTP_LENGTH &&
                 h->framing != HTTP_CHUNKED; /* its body would be read as the new protocol */
    return NULL;
}

static fallible parse_version(struct str s, unsigned *ret_minor)
{
    if (s.len != 8 || !str_starts(s, STR("HTTP/")) || s.p[6] != '.' || s.p[5] < '0' ||
        s.p[5] > '9' || s.p[7] < '0' || s.p[7] > '9')
        return err_new(ERR_INVALID, "not HTTP");
    if (s.p[5] != '1' || s.p[7] > '1')
        return err_new(ERR_HTTP_VERSION, "only HTTP/1.1 and HTTP/1.0 are spoken here");
    *ret_minor = (unsigned)(s.p[7] - '0');
    return NULL;
}

static bool host_ok(struct str host)
{
    for (size_t i = 0; i < host.len; i++) {
        uint8_t c = (uint8_t)host.p[i];
        if (c <= ' ' || c >= 0x7f || memchr("/\\@?#,\"<>^`{|}", c, 14))
            return false;
    }
    return true;
}

/* "/path", "*" for OPTIONS, "host:port" for CONNECT, or a URL with a host. */
static bool target_form_ok(struct str method, struct str target)
{
    struct str rest;

    if (str_eq(method, STR("CONNECT")))
        return host_ok(target) && str_find_char(target, ':') > 0;
    if (target.p[0] == '/')
        return true;
    if (str_eq(target, STR("*")))
        return str_eq(method, STR("OPTIONS"));
    if (str_starts(target, STR("http://")))
        rest = str_from(target, 7);
    else if (str_starts(target, STR("https://")))
        rest = str_from(target, 8);
    else
        return false;
    size_t n = 0;
    while (n < rest.len && rest.p[n] != '/' && rest.p[n] != '?')
        n++;
    return n > 0 && host_ok(str_first(rest, n));
}

static fallible parse_request_line(struct str line, struct http_head *h)
{
    struct str rest = line;

    if (!str_cut(&rest, ' ', &h->method) || !http_is_token(h->method))
        return err_new(ERR_INVALID, "bad method in the request line");
    if (!str_cut(&rest, ' ', &h->target) || !h->target.len || !all_of(h->target, C_TARGET))
        return err_new(ERR_INVALID, "bad target in the request line");
    TRY(parse_version(rest, &h->minor));
    if (str_find_char(h->target, '#') >= 0)
        return err_new(ERR_INVALID, "the target holds a fragment");
    if (!target_form_ok(h->method, h->target))
        return err_new(ERR_INVALID, "the target is neither a path nor a URL");
    return NULL;
}

fallible http_parse_request(struct arena *a, struct str head, struct http_head *ret_head)
{
    struct http_head h = {0};
    struct framing f = {0};
    struct str rest = str_from(head, leading_empty_lines(head)), line;

    if (!line_off(&rest, &line))
        return err_new(ERR_INVALID, "no request line");
    TRY(parse_request_line(line, &h));
    TRY(parse_fields(a, rest, &h, &f));
    TRY(decide_framing(&h, &f));
    if (f.hosts > 1 || (f.hosts == 0 && h.minor))
        return err_new(ERR_INVALID, f.hosts ? "more than one Host" : "no Host header");
    if (f.hosts && !host_ok(http_header_get(&h, STR("host"))))
        return err_new(ERR_INVALID, "bad Host header");
    if (f.bad_expect)
        return err_new(ERR_EXPECTATION, "Expect is not '100-continue'");
    h.expect_continue = f.expect && h.minor && h.framing != HTTP_NO_BODY;
    *ret_head = h;
    return NULL;
}

static fallible parse_status_line(struct str line, struct http_head *h)
{
    struct str rest = line, version, code;
    uint64_t status;

    if (!str_cut(&rest, ' ', &version))
        return err_new(ERR_INVALID, "bad status line");
    TRY(parse_version(version, &h->minor));
    str_cut(&rest, ' ', &code);
    if (code.len != 3 || !str_to_u64(code, &status) || status < 100)
        return err_new(ERR_INVALID, "bad status code");
    if (!all_of(rest, C_VALUE))
        return err_new(ERR_INVALID, "control character in the status line");
    h->status = (int)status;
    h->reason = rest;
    return NULL;
}

fallible http_parse_response(struct arena *a, struct str head, struct str request_method,
                             struct http_head *ret_head)
{
    struct http_head h = {.framing = HTTP_UNTIL_CLOSE};
    struct framing f = {0};
    struct str rest = head, line;

    if (!line_off(&rest, &line))
        return err_new(ERR_INVALID, "no status line");
    TRY(parse_status_line(line, &h));
    TRY(parse_fields(a, rest, &h, &f));
    TRY(decide_framing(&h, &f));
    if (h.status < 200 || h.status == 204 || h.status == 304 ||
        str_eq(request_method, STR("HEAD")) ||
        (str_eq(request_method, STR("CONNECT")) && h.status < 300))
        h.framing = HTTP_NO_BODY;
    if (h.framing == HTTP_UNTIL_CLOSE)
        h.keep_alive = false;
    *ret_head = h;
    return NULL;
}

struct str http_header_get(const struct http_head *h, struct str name)
{
    for (size_t i = 0; i < h->header_count; i++)
        if (name_is(h->headers[i].name, name))
            return h->headers[i].value;
    return (struct str){NULL, 0};
}

bool http_has_token(struct str value, struct str token)
{
    struct str one;

    while (value.len) {
        str_cut(&value, ',', &one);
        if (str_eq_nocase(trim_blanks(one), token))
            return true;
    }
    return false;
}

enum http_range http_parse_range(struct str value, uint64_t size, uint64_t *ret_from,
                                 uint64_t *ret_len)
{
    struct str rest = value, first;
    uint64_t from, to;

    if (!str_starts(rest, STR("bytes=")) || str_find_char(rest, ',') >= 0)
        return HTTP_RANGE_NONE; /* other units and several ranges may be ignored: whole file */
    rest = str_from(rest, 6);
    if (!str_cut(&rest, '-', &first))
        return HTTP_RANGE_NONE;
    if (!first.len) { /* the last n bytes */
        if (!str_to_u64(rest, &to))
            return HTTP_RANGE_NONE;
        if (to == 0 || size == 0)
            return HTTP_RANGE_BAD;
        from = to < size ? size - to : 0;
        to = size - 1;
    } else {
        if (!str_to_u64(first, &from))
            return HTTP_RANGE_NONE;
        if (!rest.len)
            to = UINT64_MAX;
        else if (!str_to_u64(rest, &to) || to < from)
            return HTTP_RANGE_NONE;
        if (from >= size)
            return HTTP_RANGE_BAD;
        if (to >= size)
            to = size - 1;
    }
    *ret_from = from;
    *ret_len = to - from + 1;
    return HTTP_RANGE_OK;
}

const char *http_reason(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {
        {100, "Continue"},
        {101, "Switching Protocols"},
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {206, "Partial Content"},
        {301, "Moved Permanently"},
        {302, "Found"},
        {303, "See Other"},
        {304, "Not Modified"},
        {307, "Temporary Redirect"},
        {308, "Permanent Redirect"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {402, "Payment Required"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {411, "Length Required"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {416, "Range Not Satisfiable"},
        {417, "Expectation Failed"},
        {422, "Unprocessable Entity"},
        {426, "Upgrade Required"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };

    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Unknown";
}
