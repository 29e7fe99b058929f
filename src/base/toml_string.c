// SPDX-License-Identifier: Apache-2.0
/* toml_string.c — the four kinds of TOML string.
 *
 * A string without escapes and without CRLF points into the text; any other is copied once, into a
 * block as long as its source, which no unescaping can outgrow. */
#include "base/toml_reader.h"

#include "base/utf8.h"

struct kind {
    char quote;
    bool multi_line;
    bool escapes;
};

static bool has_three(const struct toml *t, char quote)
{
    struct str rest = toml_rest(t);

    return rest.len >= 3 && rest.p[0] == quote && rest.p[1] == quote && rest.p[2] == quote;
}

/* Up to two quotes may stand directly before the three that close. */
static size_t quotes_here(const struct toml *t, char quote)
{
    size_t n = 0;

    while (n < 5 && t->at + n < t->text.len && t->text.p[t->at + n] == quote)
        n++;
    return n;
}

static fallible check_char(const struct toml *t, const struct kind *k)
{
    int c = toml_peek(t);

    if (c < 0)
        return toml_error(t, t->at, "the string is not closed");
    if (c == '\n' || (c == '\r' && t->at + 1 < t->text.len && t->text.p[t->at + 1] == '\n'))
        return k->multi_line ? NULL
                             : toml_error(t, t->at, "the string is not closed on its line (%s)",
                                          "use three quotes for text of several lines");
    if (c == '\r')
        return toml_error(t, t->at, "a carriage return without a line feed");
    if ((c < 0x20 && c != '\t') || c == 0x7f)
        return toml_error(t, t->at, "control character U+%04X in a string%s", (unsigned)c,
                          k->escapes ? " (write it as an escape)" : "");
    return NULL;
}

/* \uXXXX or \UXXXXXXXX, at the letter. */
static fallible read_code_point(struct toml *t, char *out, size_t *len)
{
    size_t digits = t->text.p[t->at] == 'u' ? 4 : 8, start = t->at - 1;
    uint32_t cp = 0;

    for (size_t i = 1; i <= digits; i++) {
        unsigned v = t->at + i < t->text.len ? str_digit(t->text.p[t->at + i]) : 16;
        if (v > 15)
            return toml_error(t, start, "\\%c needs %zu hexadecimal digits", t->text.p[t->at],
                              digits);
        cp = cp << 4 | v;
    }
    if (cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
        return toml_error(t, start, "U+%04X is not a character", cp);
    *len += utf8_encode(cp, out + *len);
    t->at += 1 + digits;
    return NULL;
}

/* A backslash that ends a line takes all white space up to the next text with it. */
static bool skip_line_end(struct toml *t)
{
    size_t at = t->at;

    while (at < t->text.len && (t->text.p[at] == ' ' || t->text.p[at] == '\t'))
        at++;
    if (at < t->text.len && t->text.p[at] == '\r')
        at++;
    if (at >= t->text.len || t->text.p[at] != '\n')
        return false;
    while (at < t->text.len && strchr(" \t\r\n", t->text.p[at]) && t->text.p[at])
        at++;
    /* A lone CR is left for check_char to refuse. */
    if (t->text.p[at - 1] == '\r')
        at--;
    for (size_t i = t->at; i < at; i++)
        if (t->text.p[i] == '\r' && t->text.p[i + 1] != '\n')
            at = i;
    t->at = at;
    return true;
}

/* After the backslash. */
static fallible read_escape(struct toml *t, const struct kind *k, char *out, size_t *len)
{
    static const char letters[] = "btnfr\"\\", bytes[] = "\b\t\n\f\r\"\\";
    int c = toml_peek(t);

    if (c == 'u' || c == 'U')
        return read_code_point(t, out, len);
    const char *found = c > 0 ? strchr(letters, c) : NULL;
    if (found) {
        out[(*len)++] = bytes[found - letters];
        t->at++;
        return NULL;
    }
    if (k->multi_line && skip_line_end(t))
        return NULL;
    if (c < 0x21 || c > 0x7e)
        return toml_error(t, t->at - 1, "a backslash with nothing to escape");
    return toml_error(t, t->at - 1, "unknown escape \\%c (use \\\\ for a backslash)", c);
}

/* True when the closing quotes were here: they are passed, extra quotes are content. */
static bool close_string(struct toml *t, const struct kind *k, size_t *ret_extra)
{
    *ret_extra = 0;
    if (toml_peek(t) != k->quote)
        return false;
    if (!k->multi_line) {
        t->at++;
        return true;
    }
    size_t n = quotes_here(t, k->quote);
    if (n < 3)
        return false;
    *ret_extra = n - 3;
    t->at += n;
    return true;
}

/* Offset of the end if the content can be borrowed as it stands; otherwise the first byte that
 * needs work. */
static size_t plain_run(const struct toml *t, const struct kind *k)
{
    size_t at = t->at;

    for (; at < t->text.len; at++) {
        unsigned char c = (unsigned char)t->text.p[at];
        if (c == (unsigned char)k->quote || (c == '\\' && k->escapes) || c == 0x7f ||
            (c < 0x20 && c != '\t'))
            break;
    }
    return at;
}

static fallible read_body(struct toml *t, const struct kind *k, char *out, size_t *len)
{
    size_t extra;

    while (!close_string(t, k, &extra)) {
        size_t end = plain_run(t, k);
        memcpy(out + *len, t->text.p + t->at, end - t->at);
        *len += end - t->at;
        t->at = end;
        if (toml_peek(t) == k->quote) {
            if (k->multi_line && quotes_here(t, k->quote) < 3)
                out[(*len)++] = t->text.p[t->at++];
            continue;
        }
        TRY(check_char(t, k));
        if (k->escapes && toml_peek(t) == '\\') {
            t->at++;
            TRY(read_escape(t, k, out, len));
            continue;
        }
        t->at += toml_peek(t) == '\r';
        out[(*len)++] = t->text.p[t->at++];
    }
    memset(out + *len, k->quote, extra);
    *len += extra;
    return NULL;
}

/* The place of the closing quotes, or the end: bounds the copy. */
static size_t source_length(const struct toml *t, const struct kind *k)
{
    size_t at = t->at;

    for (; at < t->text.len; at++) {
        if (k->escapes && t->text.p[at] == '\\') {
            at++;
            continue;
        }
        if (!k->multi_line && (t->text.p[at] == k->quote || t->text.p[at] == '\n'))
            break;
        if (k->multi_line && t->text.p[at] == k->quote && at + 2 < t->text.len &&
            t->text.p[at + 1] == k->quote && t->text.p[at + 2] == k->quote)
            break;
    }
    return (at < t->text.len ? at : t->text.len) - t->at + 2;
}

static fallible read_kind(struct toml *t, const struct kind *k, struct str *ret_value)
{
    size_t start = t->at, end = plain_run(t, k);

    if (!k->multi_line && end < t->text.len && t->text.p[end] == k->quote) {
        *ret_value = str_n(t->text.p + start, end - start);
        t->at = end + 1;
        return NULL;
    }
    size_t room = source_length(t, k), len = 0;
    char *out = arena_alloc(t->arena, room);
    if (!out)
        return arena_check(t->arena);
    TRY(read_body(t, k, out, &len));
    *ret_value = str_n(out, len);
    return NULL;
}

fallible toml_read_string(struct toml *t, struct str *ret_value)
{
    char quote = t->text.p[t->at];
    struct kind k = {quote, has_three(t, quote), quote == '"'};

    t->at += k.multi_line ? 3 : 1;
    if (k.multi_line) { /* a line feed right after the quotes is not content */
        if (str_starts(toml_rest(t), STR("\r\n")))
            t->at += 2;
        else if (toml_peek(t) == '\n')
            t->at++;
    }
    return read_kind(t, &k, ret_value);
}

static bool is_bare(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

fallible toml_read_key_string(struct toml *t, struct str *ret_value)
{
    int c = toml_peek(t);

    if (c == '"' || c == '\'') {
        if (has_three(t, (char)c))
            return toml_error(t, t->at, "a key cannot be a string of several lines");
        return toml_read_string(t, ret_value);
    }
    size_t start = t->at;
    while (is_bare(toml_peek(t)))
        t->at++;
    if (t->at == start)
        return toml_expected(t, "a key");
    *ret_value = str_n(t->text.p + start, t->at - start);
    return NULL;
}
