// SPDX-License-Identifier: Apache-2.0
/* url.c — RFC 3986 without its leniency: text that two parsers could read differently is refused.
 *
 * A host whose last label is a number must be a dotted quad. Some resolvers take "127.1" and
 * "0x7f.1" for the loopback: these never pass as a name. */
#include "net/url.h"

#include <arpa/inet.h>

enum { UNRESERVED = 1, USERINFO = 2, PATH = 4, QUERY = 8, SOCKET = 16 };

#define EVERYWHERE (UNRESERVED | USERINFO | PATH | QUERY | SOCKET)
#define INNER      (USERINFO | PATH | QUERY) /* the sub-delims */

static const uint8_t char_class[256] = {
    ['a' ... 'z'] = EVERYWHERE,
    ['A' ... 'Z'] = EVERYWHERE,
    ['0' ... '9'] = EVERYWHERE,
    ['-'] = EVERYWHERE,
    ['.'] = EVERYWHERE,
    ['_'] = EVERYWHERE,
    ['~'] = EVERYWHERE,
    ['!'] = INNER,
    ['$'] = INNER,
    ['&'] = INNER,
    ['\''] = INNER,
    ['('] = INNER,
    [')'] = INNER,
    ['*'] = INNER,
    ['+'] = INNER | SOCKET,
    [','] = INNER | SOCKET,
    [';'] = INNER,
    ['='] = INNER | SOCKET,
    [':'] = INNER,
    ['@'] = PATH | QUERY | SOCKET,
    ['/'] = PATH | QUERY | SOCKET,
    ['?'] = QUERY,
    ['['] = QUERY,
    [']'] = QUERY, /* a[]=1, as browsers send it */
};

static const struct {
    struct str name;
    uint16_t port;
} schemes[] = {
    {STR_INIT("http"), 80}, {STR_INIT("https"), 443}, {STR_INIT("ws"), 80},
    {STR_INIT("wss"), 443}, {STR_INIT("unix"), 0},
};

/* The byte that "%XX" at the front of s stands for, or -1. */
static int escape_value(struct str s)
{
    if (s.len < 3)
        return -1;
    unsigned high = str_digit(s.p[1]), low = str_digit(s.p[2]);
    return high > 15 || low > 15 ? -1 : (int)(high << 4 | low);
}

static fallible check_chars(struct str s, unsigned allowed, const char *what)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == '%' && !(allowed & SOCKET)) {
            if (escape_value(str_from(s, i)) < 0)
                return err_new(ERR_INVALID, "bad escape in the %s", what);
            i += 2;
        } else if (!(char_class[c] & allowed)) {
            return err_new(ERR_INVALID, "byte 0x%02x is not allowed in the %s", c, what);
        }
    }
    return NULL;
}

static bool is_number(struct str label)
{
    if (label.len >= 2 && label.p[0] == '0' && (label.p[1] | 0x20) == 'x')
        return true;
    for (size_t i = 0; i < label.len; i++)
        if (label.p[i] < '0' || label.p[i] > '9')
            return false;
    return label.len > 0;
}

static bool is_dotted_quad(struct str host)
{
    struct str part;
    unsigned parts = 0;
    bool more = true;

    while (more) {
        uint64_t value;
        more = str_cut(&host, '.', &part);
        if (part.len > 3 || !str_to_u64(part, &value) || value > 255)
            return false;
        if (part.len > 1 && part.p[0] == '0')
            return false; /* octal to some */
        parts++;
    }
    return parts == 4;
}

static fallible check_host_name(struct str host)
{
    struct str rest = host, label = {0}, last = {0};
    bool more = true;

    if (host.len == 0)
        return err_new(ERR_INVALID, "no host");
    if (host.len > 254) /* 253 and a last dot */
        return err_new(ERR_INVALID, "host of %zu bytes is too long", host.len);
    while (more) {
        more = str_cut(&rest, '.', &label);
        if (label.len == 0 && (more || label.p == host.p))
            return err_new(ERR_INVALID, "host '" STR_FMT "' has an empty label", STR_ARG(host));
        if (label.len > 63)
            return err_new(ERR_INVALID, "host has a label over 63 bytes");
        for (size_t i = 0; i < label.len; i++)
            if (!(char_class[(unsigned char)label.p[i]] & UNRESERVED))
                return err_new(ERR_INVALID, "byte 0x%02x is not allowed in the host",
                               (unsigned char)label.p[i]);
        if (label.len)
            last = label;
    }
    if (is_number(last) && !is_dotted_quad(host))
        return err_new(ERR_INVALID, "host '" STR_FMT "' is no IPv4 address", STR_ARG(host));
    return NULL;
}

static fallible check_ipv6(struct str host)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;

    if (host.len >= sizeof text || memchr(host.p, '\0', host.len))
        return err_new(ERR_INVALID, "bad IPv6 address");
    memcpy(text, host.p, host.len);
    text[host.len] = '\0';
    if (inet_pton(AF_INET6, text, &address) != 1)
        return err_new(ERR_INVALID,
                       "bad IPv6 address"); /* zones too: they mean nothing elsewhere */
    return NULL;
}

static fallible parse_port(struct str text, uint16_t *ret_port)
{
    uint64_t port;

    if (text.len > 5 || !str_to_u64(text, &port) || port == 0 || port > UINT16_MAX)
        return err_new(ERR_INVALID, "port must be 1 to 65535");
    *ret_port = (uint16_t)port;
    return NULL;
}

/* authority is "userinfo@host:port". */
static fallible parse_authority(struct str authority, struct url *u)
{
    ptrdiff_t at = str_find_char(authority, '@');

    if (at >= 0) {
        u->userinfo = str_first(authority, (size_t)at);
        authority = str_from(authority, (size_t)at + 1);
        TRY(check_chars(u->userinfo, USERINFO, "user"));
    }
    if (authority.len && authority.p[0] == '[') {
        ptrdiff_t end = str_find_char(authority, ']');
        if (end < 0)
            return err_new(ERR_INVALID, "'[' without ']'");
        u->host = str_n(authority.p + 1, (size_t)end - 1);
        TRY(check_ipv6(u->host));
        authority = str_from(authority, (size_t)end + 1);
        if (authority.len == 0)
            return NULL;
        if (authority.p[0] != ':')
            return err_new(ERR_INVALID, "only a port may follow ']'");
        return parse_port(str_from(authority, 1), &u->port);
    }
    bool has_port = str_cut(&authority, ':', &u->host);
    TRY(check_host_name(u->host));
    return has_port ? parse_port(authority, &u->port) : NULL;
}

/* rest is "/path?query#fragment", each part optional. */
static fallible parse_tail(struct str rest, struct url *u)
{
    struct str before;

    if (str_cut(&rest, '#', &before)) {
        u->fragment = rest;
        TRY(check_chars(u->fragment, QUERY, "fragment"));
    }
    if (str_cut(&before, '?', &u->path)) {
        u->query = before;
        TRY(check_chars(u->query, QUERY, "query"));
    }
    TRY(check_chars(u->path, PATH, "path"));
    if (u->path.len == 0)
        u->path = STR("/");
    return NULL;
}

/* rest is what follows "unix:". */
static fallible parse_unix(struct str rest, struct url *u)
{
    if (str_starts(rest, STR("//")))
        rest = str_from(rest, 2); /* an empty authority, as Docker writes it */
    bool has_target = str_cut(&rest, ':', &u->host);
    if (u->host.len < 2 || u->host.p[0] != '/')
        return err_new(ERR_INVALID, "unix: needs the absolute path of a socket");
    if (u->host.len > URL_MAX_SOCKET)
        return err_new(ERR_INVALID, "path of a socket is at most %d bytes", URL_MAX_SOCKET);
    TRY(check_chars(u->host, SOCKET, "path of the socket"));
    if (has_target && (rest.len == 0 || rest.p[0] != '/'))
        return err_new(ERR_INVALID, "what follows the socket's ':' must begin with '/'");
    return parse_tail(rest, u);
}

static fallible url_parse_parts(struct str text, struct url *u)
{
    struct str rest = text, scheme;
    size_t i = 0;

    if (!str_cut(&rest, ':', &scheme))
        return err_new(ERR_INVALID, "no scheme");
    while (i < ARRAY_LEN(schemes) && !str_eq_nocase(schemes[i].name, scheme))
        i++;
    if (i == ARRAY_LEN(schemes))
        return err_new(ERR_INVALID, "the scheme is none of http, https, ws, wss, unix");
    *u = (struct url){.scheme = schemes[i].name, .port = schemes[i].port};
    if (u->port == 0)
        return parse_unix(rest, u);
    if (!str_starts(rest, STR("//")))
        return err_new(ERR_INVALID, "'//' must follow the scheme");
    rest = str_from(rest, 2);
    size_t end = 0;
    while (end < rest.len && rest.p[end] != '/' && rest.p[end] != '?' && rest.p[end] != '#')
        end++;
    TRY(parse_authority(str_first(rest, end), u));
    return parse_tail(str_from(rest, end), u);
}

fallible url_parse(struct str text, struct url *ret_url)
{
    struct url u;

    TRY_WRAP(url_parse_parts(text, &u), "bad URL"); /* the text itself may hold a password */
    *ret_url = u;
    return NULL;
}

bool url_is_tls(const struct url *url)
{
    return str_eq(url->scheme, STR("https")) || str_eq(url->scheme, STR("wss"));
}

void url_put_host(struct buf *out, const struct url *url, bool with_port)
{
    bool v6 = str_find_char(url->host, ':') >= 0;

    if (str_eq(url->scheme, STR("unix"))) {
        buf_add(out, STR("localhost"));
        return;
    }
    buf_addf(out, v6 ? "[" STR_FMT "]" : STR_FMT, STR_ARG(url->host));
    if (with_port || url->port != (url_is_tls(url) ? 443 : 80))
        buf_addf(out, ":%u", url->port);
}

void url_put_target(struct buf *out, const struct url *url)
{
    buf_add(out, url->path);
    if (url->query.len)
        buf_addf(out, "?" STR_FMT, STR_ARG(url->query));
}

fallible url_decode(struct arena *a, struct str s, bool plus_is_space, struct str *ret)
{
    bool change = str_find_char(s, '%') >= 0 || (plus_is_space && str_find_char(s, '+') >= 0);

    if (str_find_char(s, '\0') >= 0)
        return err_new(ERR_INVALID, "NUL in a URL");
    if (!change) {
        *ret = s;
        return NULL;
    }
    char *out = arena_alloc(a, s.len + 1), *to = out;
    if (!out)
        return arena_check(a);
    for (size_t i = 0; i < s.len; i++) {
        char c = s.p[i];
        if (c == '%') {
            int value = escape_value(str_from(s, i));
            if (value <= 0)
                return err_new(ERR_INVALID, value ? "bad escape in a URL" : "%%00 in a URL");
            c = (char)value;
            i += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        *to++ = c;
    }
    *to = '\0';
    *ret = str_n(out, (size_t)(to - out));
    return NULL;
}

void url_encode(struct buf *out, struct str s, bool keep_slash)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t plain = 0; /* start of the run not yet copied */

    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if ((char_class[c] & UNRESERVED) || (keep_slash && c == '/'))
            continue;
        buf_add_mem(out, s.p + plain, i - plain);
        buf_add_mem(out, (char[]){'%', hex[c >> 4], hex[c & 15]}, 3);
        plain = i + 1;
    }
    if (plain < s.len)
        buf_add_mem(out, s.p + plain, s.len - plain);
}

fallible url_parse_query(struct arena *a, struct str query, struct url_param **ret_params,
                         size_t *ret_count)
{
    struct str rest = query, pair;
    size_t count = 0;
    bool more = true;

    for (size_t i = 0; i <= query.len; i++) /* "a&&b" has two */
        count += (i == query.len || query.p[i] == '&') && i > 0 && query.p[i - 1] != '&';
    if (count > URL_MAX_PARAMS)
        return err_new(ERR_INVALID, "a query has at most %d parameters", URL_MAX_PARAMS);
    struct url_param *params = arena_alloc(a, (count + 1) * sizeof *params);
    if (!params)
        return arena_check(a);
    count = 0;
    while (more) {
        more = str_cut(&rest, '&', &pair);
        if (pair.len == 0)
            continue;
        struct str name, value = pair;
        if (!str_cut(&value, '=', &name))
            value = STR("");
        TRY(url_decode(a, name, true, &params[count].name));
        TRY(url_decode(a, value, true, &params[count].value));
        count++;
    }
    *ret_params = params;
    *ret_count = count;
    return NULL;
}
