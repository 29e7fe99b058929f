// SPDX-License-Identifier: Apache-2.0
/* list.c — POST /list_files. Names are sorted as Python sorts their lower-case forms, the slash of
 * a directory included: "a-b/" comes before "a/". */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/utf8.h"
#include "guest/transfer/inner.h"
#include "net/router.h"

struct name {
    struct str text, lower;
    bool dir;
};

struct names {
    struct arena *arena;
    struct name *p;
    size_t count, cap;
};

static int by_name(const void *a, const void *b)
{
    const struct name *x = a, *y = b;

    if (x->dir != y->dir)
        return x->dir ? -1 : 1;
    int order = str_cmp(x->lower, y->lower);
    return order ? order : str_cmp(x->text, y->text);
}

static struct str list_lower(struct names *n, struct str s)
{
    char *out = arena_alloc(n->arena, 3 * s.len + 4); /* a broken byte takes three */
    size_t len = 0;

    if (!out)
        return (struct str){NULL, 0};
    while (s.len) {
        uint32_t cp;
        size_t used = utf8_decode(s, &cp);
        len += utf8_encode(utf8_lower(cp), out + len);
        s = str_from(s, used);
    }
    return str_n(out, len);
}

static fallible add_name(struct names *n, const char *text, bool dir)
{
    if (n->count == n->cap) {
        size_t cap = n->cap ? 2 * n->cap : 64;
        struct name *p = arena_alloc(n->arena, cap * sizeof *p);
        if (!p)
            return arena_check(n->arena);
        if (n->count)
            memcpy(p, n->p, n->count * sizeof *p);
        n->p = p;
        n->cap = cap;
    }
    struct name *name = &n->p[n->count++];
    name->dir = dir;
    name->text = arena_printf(n->arena, "%s%s", text, dir ? "/" : "");
    name->lower = list_lower(n, name->text);
    return arena_check(n->arena);
}

static fallible read_names(struct names *n, DIR *d)
{
    const struct dirent *e;
    struct stat st;

    while ((e = readdir(d))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (fstatat(dirfd(d), e->d_name, &st, 0) == 0) /* a dangling link is no file */
            TRY(add_name(n, e->d_name, S_ISDIR(st.st_mode)));
    }
    return NULL;
}

static fallible list_dir(const struct transfer *t, struct str path, struct names *n)
{
    int fd = -1;

    TRY(transfer_open(t, path, O_RDONLY | O_DIRECTORY, &fd));
    DIR *d = fdopendir(fd);
    if (!d) {
        struct err *e = err_sys("open directory");
        own_close(fd);
        return e;
    }
    struct err *e = read_names(n, d);
    closedir(d);
    if (!e && n->count)
        qsort(n->p, n->count, sizeof *n->p, by_name);
    return e;
}

static fallible reply_names(struct http_req *req, const struct names *n)
{
    struct jw *w = http_reply_writer(req);

    JW_ARRAY(w, NULL) {
        for (size_t i = 0; i < n->count; i++)
            jw_str(w, NULL, n->p[i].text);
    }
    http_reply_written(req, 200);
    return NULL;
}

/* The body's path, .p NULL for none; false when upstream would fall over it. */
static bool read_path(struct http_req *req, struct str *ret_path)
{
    struct json *body = NULL;
    struct err *e =
        json_parse(&req->arena, req->body, &(struct json_limits){.allow_nan = true}, &body);

    if (e || body->type != JSON_OBJECT) {
        err_free(e);
        return false;
    }
    const struct json *path = json_get(body, STR("path"));
    *ret_path = path && path->type == JSON_STR ? path->s : (struct str){NULL, 0};
    return !path || path->type == JSON_STR || path->type == JSON_NULL;
}

/* POST /list_files {"path": …}: names, directories first with a slash; [] for whatever fails. */
static fallible transfer_list_files(struct http_req *req)
{
    const struct transfer *t = req->owner;
    struct names names = {.arena = &req->arena};
    struct str path;

    if (!read_path(req, &path)) {
        http_reply_json(
            req, 500,
            STR("{\"detail\":\"An unexpected error occurred. Please try again later.\"}"));
        return NULL;
    }
    if (!path.p)
        path = str_of(t->work_dir);
    else if (str_find_char(path, '\0') >= 0) /* names nothing */
        return reply_names(req, &names);
    else if (!str_starts(path, STR("/")))
        path = arena_printf(&req->arena, "%s/" STR_FMT, t->work_dir, STR_ARG(path));
    TRY(arena_check(&req->arena));
    struct err *e = list_dir(t, path, &names);
    if (e && err_code(e) == ERR_TOO_LARGE)
        return e;
    if (e)
        names.count = 0; /* upstream's answer to every error */
    err_free(e);
    return reply_names(req, &names);
}

void transfer_add_routes(struct router *r, struct transfer *t)
{
    static const struct route routes[] = {
        {"POST", "/list_files", transfer_list_files, 0, 0},
        {"POST", "/upload_file", transfer_upload_file, ROUTE_STREAM, 0},
        {"GET", "/download_files", transfer_download_files, 0, 0},
    };

    router_add(r, routes, ARRAY_LEN(routes), t);
}
