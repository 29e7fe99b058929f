// SPDX-License-Identifier: Apache-2.0
/* space.c — paths as pathlib reads them, opened with or without a boundary. Saving is in save.c. */
#include "guest/edit/space.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "base/fd.h"

#define OPEN_ALWAYS (O_CLOEXEC | O_NOCTTY | O_NONBLOCK)

/* POSIX gives a path with exactly two leading slashes a meaning of its own; pathlib keeps them. */
static struct str leading_slashes(struct str path)
{
    if (!str_starts(path, STR("/")))
        return STR("");
    return str_starts(path, STR("//")) && !str_starts(path, STR("///")) ? STR("//") : STR("/");
}

struct str space_normal(struct arena *a, struct str path)
{
    char *out = arena_alloc(a, path.len + 2);
    struct str lead = leading_slashes(path), rest = path, name;
    size_t n = 0;

    if (!out)
        return (struct str){NULL, 0};
    memcpy(out, lead.p, lead.len);
    n = lead.len;
    while (rest.len) {
        str_cut(&rest, '/', &name);
        if (name.len == 0 || str_eq(name, STR(".")))
            continue;
        if (n > lead.len)
            out[n++] = '/';
        memcpy(out + n, name.p, name.len);
        n += name.len;
    }
    if (n == 0)
        out[n++] = '.';
    return str_n(out, n);
}

struct str space_join(struct arena *a, struct str base, struct str path)
{
    own_done(buf) b;

    buf_init(&b, SIZE_MAX / 2);
    if (str_starts(path, STR("/")))
        return space_normal(a, path);
    buf_add(&b, base);
    buf_add_char(&b, '/');
    buf_add(&b, path);
    if (buf_failed(&b)) {
        a->failed = true;
        return (struct str){NULL, 0};
    }
    return space_normal(a, buf_str(&b));
}

struct str space_parent(struct str path)
{
    size_t n = path.len;

    while (n > 0 && path.p[n - 1] != '/')
        n--;
    while (n > 1 && path.p[n - 1] == '/')
        n--;
    return str_first(path, n);
}

/* As pathlib: a name that starts or ends with its only dot has none. */
struct str space_suffix(struct str path)
{
    size_t slash = path.len;
    while (slash > 0 && path.p[slash - 1] != '/')
        slash--;
    struct str name = str_from(path, slash);

    for (size_t i = name.len; i > 1; i--)
        if (name.p[i - 1] == '.')
            return i == name.len ? STR("") : str_from(name, i - 1);
    return STR("");
}

bool space_is_outside(const struct err *e)
{
    return e && err_errno(e) == EXDEV;
}

static fallible space_outside(struct str path)
{
    return err_sysno(EXDEV, "'" STR_FMT "' is outside the workspace", STR_ARG(path));
}

/* The part of path below the root, "." for the root itself. */
static fallible below_root(const struct edit_space *s, struct str path, struct str *ret_rest)
{
    bool is_top = str_eq(s->root, STR("/"));

    if (str_eq(path, s->root)) {
        *ret_rest = STR(".");
        return NULL;
    }
    if (!str_starts(path, s->root) || (!is_top && path.p[s->root.len] != '/'))
        return space_outside(path);
    struct str rest = str_from(path, s->root.len);
    while (str_starts(rest, STR("/")))
        rest = str_from(rest, 1);
    *ret_rest = rest.len ? rest : STR(".");
    return NULL;
}

fallible space_open(const struct edit_space *s, struct str path, int flags, int *ret_fd)
{
    char text[PATH_MAX];
    flags |= (flags & O_PATH) ? O_CLOEXEC : OPEN_ALWAYS;

    if (s->root.len) {
        struct str rest = STR(".");
        TRY(below_root(s, path, &rest));
        return fd_open_beneath(s->root_fd, rest, flags, 0, ret_fd);
    }
    if (path.len && memchr(path.p, '\0', path.len))
        return err_new(ERR_INVALID, "the path holds a NUL byte");
    if (path.len >= sizeof text)
        return err_sysno(ENAMETOOLONG, "open a path of %zu bytes", path.len);
    memcpy(text, path.p, path.len);
    text[path.len] = '\0';
    int fd = open(text, flags);
    if (fd < 0)
        return err_sys("open '%s'", text);
    *ret_fd = fd;
    return NULL;
}

fallible space_stat(const struct edit_space *s, struct str path, struct stat *ret_st)
{
    own_fd fd = -1;

    TRY(space_open(s, path, O_PATH, &fd));
    if (fstat(fd, ret_st) < 0)
        return err_sys("look at '" STR_FMT "'", STR_ARG(path));
    return NULL;
}

fallible space_load(const struct edit_space *s, struct str path, struct buf *into,
                    struct stat *ret_st)
{
    own_fd fd = -1;
    struct stat st;

    TRY(space_open(s, path, O_RDONLY, &fd));
    if (fstat(fd, &st) < 0)
        return err_sys("look at '" STR_FMT "'", STR_ARG(path));
    if (!S_ISREG(st.st_mode))
        return err_sysno(S_ISDIR(st.st_mode) ? EISDIR : EINVAL, "read '" STR_FMT "'",
                         STR_ARG(path));
    TRY_WRAP(fd_read_all(fd, into), "read '" STR_FMT "'", STR_ARG(path));
    *ret_st = st;
    return NULL;
}
