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

void transfer_reply_problem(struct http_req *req, struct wire_problem problem)
{
    wire_put_problems(http_reply_writer(req), &problem, 1);
    http_reply_written(req, 422);
}
