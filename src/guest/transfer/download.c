// SPDX-License-Identifier: Apache-2.0
/* download.c — GET /download_files: the zip is made as the peer takes it. The first piece is made
 * before the answer begins, so that what goes wrong at once is answered with a status. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/log.h"
#include "guest/transfer/inner.h"
#include "wire/api.h"

#define FIRST (4u << 10)
#define PIECE STREAM_HIGH

struct download {
    struct zip_out *zip;
};

static void download_end(struct http_req *req, struct err *e)
{
    struct download *d = req->user;

    zip_out_free(take(&d->zip));
    req->on_drain = NULL;
    req->on_gone = NULL;
    if (!e) {
        http_reply_end(req);
        return;
    }
    log_warn("download cut", KV_ERR(e));
    err_free(e);
    http_reply_abort(req);
}

static void on_download_gone(struct http_req *req)
{
    struct download *d = req->user;

    zip_out_free(take(&d->zip));
    req->on_drain = NULL;
    http_reply_abort(req);
}

static void on_download_drain(struct http_req *req)
{
    struct download *d = req->user;

    while (http_reply_pending(req) < STREAM_HIGH) {
        size_t n = 0;
        char *piece = http_reply_reserve(req, PIECE);
        if (!piece)
            return; /* on_download_gone is coming */
        struct err *e = zip_out_next(d->zip, piece, PIECE, &n);
        if (e || !n) {
            download_end(req, e);
            return;
        }
        http_reply_commit(req, n);
    }
}

/* Starlette's form: plain when quoting changes nothing. */
static void put_disposition(struct http_req *req, struct str base)
{
    struct str name = arena_printf(&req->arena, STR_FMT ".zip", STR_ARG(base));
    own_done(buf) quoted, value;

    buf_init(&quoted, 4096);
    buf_init(&value, 8192);
    url_encode(&quoted, name, true);
    if (str_eq(buf_str(&quoted), name))
        buf_addf(&value, "attachment; filename=\"" STR_FMT "\"", STR_ARG(name));
    else
        buf_addf(&value, "attachment; filename*=utf-8''" STR_FMT, STR_ARG(buf_str(&quoted)));
    http_reply_header(req, STR("content-disposition"), buf_str(&value));
}

static fallible open_zip(const struct transfer *t, struct str path, bool exact,
                         struct zip_out **ret_zip)
{
    own_fd fd = -1;
    struct stat st;
    struct zip_out_config config = {
        .exact = exact, .bounded = t->root != NULL, .boundary = t->root_fd};

    struct err *e = transfer_open(t, path, O_RDONLY, &fd);
    if (e && transfer_is_missing(e)) {
        err_free(e);
        return err_new(ERR_NOT_FOUND, "File not found");
    }
    TRY(e);
    if (fstat(fd, &st) < 0)
        return err_sys("stat");
    if (S_ISREG(st.st_mode))
        return zip_out_file(take_fd(&fd), transfer_base_name(path), &config, ret_zip);
    if (!S_ISDIR(st.st_mode))
        return err_new(ERR_INVALID, "Path is neither a directory nor a regular file");
    if (t->root) { /* the way from the boundary to the tree, for links that go through it */
        config.boundary_path = str_from(path, strlen(t->root));
        while (str_starts(config.boundary_path, STR("/")))
            config.boundary_path = str_from(config.boundary_path, 1);
    }
    return zip_out_tree(take_fd(&fd), &config, ret_zip);
}

fallible transfer_download_files(struct http_req *req)
{
    struct str path = http_req_query(req, "path");
    struct download *d = arena_new(&req->arena, struct download);
    own(zip_out) zip = NULL;
    char piece[FIRST];
    size_t n = 0;
    bool exact = false;

    if (!d)
        return arena_check(&req->arena);
    if (!path.p) {
        transfer_reply_problem(req, wire_problem_missing("query", "path", NULL));
        return NULL;
    }
    if (!str_starts(path, STR("/")))
        return err_new(ERR_INVALID, "Path must be an absolute path");
    wire_parse_bool(http_req_query(req, "exact"), &exact); /* our own: see zip.h */
    TRY(open_zip(req->owner, path, exact, &zip));
    TRY(zip_out_next(zip, piece, sizeof piece, &n));
    put_disposition(req, transfer_base_name(path));
    http_reply_begin(req, 200, STR("application/zip"), HTTP_LENGTH_UNKNOWN);
    if (str_eq(req->head.method, STR("HEAD"))) {
        http_reply_end(req);
        return NULL;
    }
    d->zip = take(&zip);
    req->user = d;
    req->on_drain = on_download_drain;
    req->on_gone = on_download_gone;
    http_reply_write(req, str_n(piece, n));
    on_download_drain(req);
    return NULL;
}
