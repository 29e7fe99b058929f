// SPDX-License-Identifier: Apache-2.0
/* path.c — paths of clients, and refusals: see inner.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/fd.h"
#include "guest/transfer/inner.h"

#define OPEN_FLAGS (O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/* The part of path below the boundary, "." for the boundary itself. */
static fallible below_root(const struct transfer *t, struct str path, struct str *ret_rest)
{
    struct str root = str_of(t->root);

    while (root.len && root.p[root.len - 1] == '/')
        root.len--;
    struct str rest = str_from(path, root.len);
    if (!str_starts(path, root) || (rest.len && rest.p[0] != '/'))
        return err_new(ERR_FORBIDDEN, "Path is outside of '%s'", t->root);
    while (rest.len && rest.p[0] == '/')
        rest = str_from(rest, 1);
    *ret_rest = rest.len ? rest : STR(".");
    return NULL;
}

fallible transfer_open(const struct transfer *t, struct str path, int flags, int *ret_fd)
{
    char text[4096];
    struct str rest = path;

    if (t->root) {
        TRY(below_root(t, path, &rest));
        return fd_open_beneath(t->root_fd, rest, flags | OPEN_FLAGS, 0, ret_fd);
    }
    if (path.len >= sizeof text)
        return err_sysno(ENAMETOOLONG, "open a path of %zu bytes", path.len);
    if (memchr(path.p, '\0', path.len))
        return err_sysno(ENOENT, "open a path with a zero byte");
    memcpy(text, path.p, path.len);
    text[path.len] = '\0';
    int fd = open(text, flags | OPEN_FLAGS, 0);
    if (fd < 0)
        return err_sys("open '%s'", text);
    *ret_fd = fd;
    return NULL;
}

fallible transfer_open_above(const struct transfer *t, struct str path, int *ret_fd,
                             struct str *ret_rest)
{
    struct str have = path;

    for (;;) {
        struct err *e =
            transfer_open(t, have.len ? have : STR("/"), O_RDONLY | O_DIRECTORY, ret_fd);
        if (!e || err_errno(e) != ENOENT || !have.len) {
            *ret_rest = str_from(path, have.len);
            while (ret_rest->len && ret_rest->p[0] == '/')
                *ret_rest = str_from(*ret_rest, 1);
            return e;
        }
        err_free(e);
        while (have.len && have.p[have.len - 1] == '/')
            have.len--;
        while (have.len && have.p[have.len - 1] != '/')
            have.len--;
    }
}

bool transfer_is_missing(const struct err *e)
{
    int errnum = err_errno(e);

    return errnum == ENOENT || errnum == ENOTDIR || errnum == ELOOP || errnum == ENAMETOOLONG;
}

struct str transfer_base_name(struct str path)
{
    while (path.len && path.p[path.len - 1] == '/')
        path.len--;
    size_t start = path.len;
    while (start && path.p[start - 1] != '/')
        start--;
    return str_from(path, start);
}

/* --- refusals --- */

static void add_repr(struct buf *b, struct str s)
{
    char quote = str_find_char(s, '\'') >= 0 && str_find_char(s, '"') < 0 ? '"' : '\'';

    buf_add_char(b, quote);
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == '\\' || c == (unsigned char)quote)
            buf_addf(b, "\\%c", c);
        else if (c == '\n' || c == '\r' || c == '\t')
            buf_addf(b, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
        else if (c < 0x20 || c == 0x7f)
            buf_addf(b, "\\x%02x", c);
        else
            buf_add_char(b, (char)c);
    }
    buf_add_char(b, quote);
}

static fallible put_errors(struct http_req *req, struct jw *w, const void *errors)
{
    (void)req;
    JW_OBJECT(w, NULL) {
        jw_cstr(w, "detail", "Invalid request parameters");
        jw_str(w, "errors", buf_str(errors));
    }
    return NULL;
}

void transfer_reply_missing(struct http_req *req, const char *place, const char *field)
{
    own_done(buf) b;

    buf_init(&b, 4096);
    buf_addf(&b,
             "[{'type': 'missing', 'loc': ('%s', '%s'), 'msg': 'Field required', 'input': None}]",
             place, field);
    http_reply_with(req, 422, put_errors, &b);
}

void transfer_reply_bad_bool(struct http_req *req, const char *field, struct str value)
{
    own_done(buf) b;

    buf_init(&b, 16u << 10);
    buf_addf(&b,
             "[{'type': 'bool_parsing', 'loc': ('query', '%s'), 'msg': 'Input should be a valid "
             "boolean, unable to interpret input', 'input': ",
             field);
    add_repr(&b, str_first(value, 1000));
    buf_add_cstr(&b, "}]");
    http_reply_with(req, 422, put_errors, &b);
}

bool transfer_parse_bool(struct str s, bool *ret_value)
{
    static const char *const words[2][6] = {{"0", "off", "f", "false", "n", "no"},
                                            {"1", "on", "t", "true", "y", "yes"}};

    for (int v = 0; v < 2; v++)
        for (size_t i = 0; i < ARRAY_LEN(words[v]); i++)
            if (str_eq_nocase(s, str_of(words[v][i]))) {
                *ret_value = v;
                return true;
            }
    return false;
}
