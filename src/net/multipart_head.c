// SPDX-License-Identifier: Apache-2.0
/* multipart_head.c — headers with parameters, as browsers, curl and Python write them.
 *
 * In a quoted value \" and \\ stand for the second character (curl, Python), and %22 for a quote
 * (browsers). Any other backslash or percent sign is itself: browsers escape neither.
 *
 * filename*= (RFC 5987, UTF-8 only) counts when there is no filename=. RFC 7578 forbids it, but
 * some clients send nothing else for a name beyond ASCII. */
#include "net/multipart_head.h"

#include "base/utf8.h"
#include "net/http.h"

struct param {
    struct str name, value; /* value without its quotes, not yet decoded */
    bool quoted;
};

static void skip_blanks(struct str *s)
{
    while (s->len && (s->p[0] == ' ' || s->p[0] == '\t'))
        *s = str_from(*s, 1);
}

static fallible quoted_off(struct str *s, struct str *ret_value)
{
    size_t i = 1;

    while (i < s->len && s->p[i] != '"')
        i += s->p[i] == '\\' && i + 1 < s->len && (s->p[i + 1] == '"' || s->p[i + 1] == '\\') ? 2
                                                                                              : 1;
    if (i >= s->len)
        return err_new(ERR_INVALID, "a quoted value does not end");
    *ret_value = str_n(s->p + 1, i - 1);
    *s = str_from(*s, i + 1);
    return NULL;
}

/* Takes "; name=value" off *s. At the end gives an empty name. */
static fallible param_off(struct str *s, struct param *ret)
{
    *ret = (struct param){.name = STR("")};
    skip_blanks(s);
    if (s->len == 0)
        return NULL;
    if (s->p[0] != ';')
        return err_new(ERR_INVALID, "no ';' before a parameter");
    *s = str_from(*s, 1);
    skip_blanks(s);
    if (s->len == 0)
        return NULL; /* a ';' too many does no harm */
    if (!str_cut(s, '=', &ret->name) || !http_is_token(ret->name))
        return err_new(ERR_INVALID, "bad parameter");
    ret->quoted = s->len && s->p[0] == '"';
    if (ret->quoted)
        return quoted_off(s, &ret->value);
    size_t n = 0;
    while (n < s->len && s->p[n] != ';' && s->p[n] != ' ' && s->p[n] != '\t')
        n++;
    ret->value = str_first(*s, n);
    *s = str_from(*s, n);
    if (!http_is_token(ret->value))
        return err_new(ERR_INVALID, "bad value of parameter '" STR_FMT "'", STR_ARG(ret->name));
    return NULL;
}

static bool boundary_ok(struct str b)
{
    if (b.len == 0 || b.len > MULTIPART_MAX_BOUNDARY || b.p[b.len - 1] == ' ')
        return false;
    for (size_t i = 0; i < b.len; i++) {
        char c = b.p[i];
        bool word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!word && (c == '\0' || !strchr("'()+_,-./:=? ", c)))
            return false;
    }
    return true;
}

fallible multipart_boundary(struct str content_type, struct str *ret_boundary)
{
    struct str type = STR("multipart/form-data"), rest = content_type, boundary = {0};
    struct param p;

    if (!str_eq_nocase(str_first(rest, type.len), type))
        return err_new(ERR_INVALID, "not multipart/form-data");
    rest = str_from(rest, type.len);
    do {
        TRY(param_off(&rest, &p));
        if (!str_eq_nocase(p.name, STR("boundary")))
            continue;
        if (boundary.p)
            return err_new(ERR_INVALID, "more than one boundary");
        boundary = p.value;
    } while (p.name.len);
    if (!boundary.p)
        return err_new(ERR_INVALID, "no boundary");
    if (!boundary_ok(boundary))
        return err_new(ERR_INVALID, "the boundary is not 1 to %d of the characters allowed in it",
                       MULTIPART_MAX_BOUNDARY);
    *ret_boundary = boundary;
    return NULL;
}

/* Decodes in place: the value lies in the head's own buffer, and decoding only shortens. */
static struct str part_unquote(struct str value)
{
    char *out = (char *)value.p;
    size_t n = 0;

    for (size_t i = 0; i < value.len; i++) {
        char c = value.p[i];
        if (c == '\\' && i + 1 < value.len && (value.p[i + 1] == '"' || value.p[i + 1] == '\\'))
            c = value.p[++i];
        else if (str_starts(str_from(value, i), STR("%22")))
            c = '"', i += 2;
        out[n++] = c;
    }
    return str_n(out, n);
}

/* UTF-8'language'percent-encoded, in place. */
static fallible decode_extended(struct str value, struct str *ret)
{
    struct str charset, language;

    if (!str_cut(&value, '\'', &charset) || !str_cut(&value, '\'', &language) ||
        !str_eq_nocase(charset, STR("utf-8")))
        return err_new(ERR_INVALID, "filename* is not UTF-8''…");
    char *out = (char *)value.p;
    size_t n = 0;
    for (size_t i = 0; i < value.len; i++) {
        char c = value.p[i];
        if (c == '%') {
            unsigned high = i + 2 < value.len ? str_digit(value.p[i + 1]) : 16;
            unsigned low = i + 2 < value.len ? str_digit(value.p[i + 2]) : 16;
            if (high > 15 || low > 15)
                return err_new(ERR_INVALID, "bad escape in filename*");
            c = (char)(high << 4 | low);
            i += 2;
        }
        out[n++] = c;
    }
    *ret = str_n(out, n);
    return NULL;
}

static fallible check_text(struct str s, const char *what)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
            return err_new(ERR_INVALID, "control character in the %s", what);
    if (!utf8_valid(s))
        return err_new(ERR_INVALID, "the %s is not UTF-8", what);
    return NULL;
}

/* Cuts the name after its last slash of either kind: old browsers sent the whole path. */
static fallible plain_filename(struct str *name)
{
    TRY(check_text(*name, "filename"));
    for (size_t i = name->len; i > 0; i--)
        if (name->p[i - 1] == '/' || name->p[i - 1] == '\\') {
            *name = str_from(*name, i);
            break;
        }
    if (str_eq(*name, STR(".")) || str_eq(*name, STR("..")))
        return err_new(ERR_INVALID, "the filename is a directory");
    return NULL;
}

static fallible parse_disposition(struct str value, struct multipart_part *part)
{
    struct str kind = STR("form-data"), rest = value, extended = {0};
    struct param p;

    if (!str_eq_nocase(str_first(rest, kind.len), kind))
        return err_new(ERR_INVALID, "not form-data");
    rest = str_from(rest, kind.len);
    do {
        TRY(param_off(&rest, &p));
        struct str *to = str_eq_nocase(p.name, STR("name"))        ? &part->name
                         : str_eq_nocase(p.name, STR("filename"))  ? &part->filename
                         : str_eq_nocase(p.name, STR("filename*")) ? &extended
                                                                   : NULL;
        if (to && to->p)
            return err_new(ERR_INVALID, "'" STR_FMT "' is given twice", STR_ARG(p.name));
        if (to)
            *to = p.quoted ? part_unquote(p.value) : p.value;
    } while (p.name.len);
    if (!part->name.p)
        return err_new(ERR_INVALID, "no name");
    TRY(check_text(part->name, "name"));
    if (extended.p && !part->filename.p)
        TRY(decode_extended(extended, &part->filename));
    return part->filename.p ? plain_filename(&part->filename) : NULL;
}

static fallible check_encoding(struct str value)
{
    if (!str_eq_nocase(value, STR("binary")) && !str_eq_nocase(value, STR("8bit")) &&
        !str_eq_nocase(value, STR("7bit")))
        return err_new(ERR_INVALID, "Content-Transfer-Encoding is not spoken here");
    return NULL;
}

static fallible parse_line(struct str line, struct multipart_part *part)
{
    struct str name;

    if (!str_cut(&line, ':', &name) || !http_is_token(name))
        return err_new(ERR_INVALID, "bad header");
    line = str_trim(line);
    if (!http_is_field_value(line))
        return err_new(ERR_INVALID, "control character in a header");
    if (str_eq_nocase(name, STR("content-disposition"))) {
        if (part->name.p)
            return err_new(ERR_INVALID, "more than one Content-Disposition");
        TRY_WRAP(parse_disposition(line, part), "Content-Disposition");
    } else if (str_eq_nocase(name, STR("content-type")) && line.len) {
        part->content_type = line;
    } else if (str_eq_nocase(name, STR("content-transfer-encoding"))) {
        TRY(check_encoding(line));
    }
    return NULL;
}

fallible multipart_parse_head(struct buf *head, struct multipart_part *ret_part)
{
    struct multipart_part part = {.content_type = STR("text/plain")};
    struct str rest = buf_str(head), line;

    while (str_cut(&rest, '\n', &line)) {
        if (line.len == 0 || line.p[line.len - 1] != '\r')
            return err_new(ERR_INVALID, "a line ends in LF without CR");
        line.len--;
        if (line.len)
            TRY(parse_line(line, &part));
    }
    if (!part.name.p)
        return err_new(ERR_INVALID, "no Content-Disposition");
    *ret_part = part;
    return NULL;
}
