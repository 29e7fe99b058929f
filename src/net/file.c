// SPDX-License-Identifier: Apache-2.0
/* file.c — files go out through a window of the stream's queue, refilled as the peer takes it. */
#include "net/file.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "net/server.h"

#define PIECE STREAM_HIGH

struct file_send {
    int fd;
    uint64_t at, left;
};

struct str file_type_of(struct str name)
{
    static const struct {
        const char *ext;
        struct str type;
    } types[] = {
        {".html", STR_INIT("text/html; charset=utf-8")},
        {".css", STR_INIT("text/css; charset=utf-8")},
        {".js", STR_INIT("text/javascript; charset=utf-8")},
        {".mjs", STR_INIT("text/javascript; charset=utf-8")},
        {".json", STR_INIT("application/json")},
        {".txt", STR_INIT("text/plain; charset=utf-8")},
        {".md", STR_INIT("text/markdown; charset=utf-8")},
        {".csv", STR_INIT("text/csv; charset=utf-8")},
        {".xml", STR_INIT("application/xml")},
        {".svg", STR_INIT("image/svg+xml")},
        {".png", STR_INIT("image/png")},
        {".jpg", STR_INIT("image/jpeg")},
        {".jpeg", STR_INIT("image/jpeg")},
        {".gif", STR_INIT("image/gif")},
        {".webp", STR_INIT("image/webp")},
        {".ico", STR_INIT("image/x-icon")},
        {".pdf", STR_INIT("application/pdf")},
        {".zip", STR_INIT("application/zip")},
        {".gz", STR_INIT("application/gzip")},
        {".wasm", STR_INIT("application/wasm")},
        {".woff2", STR_INIT("font/woff2")},
        {".mp4", STR_INIT("video/mp4")},
        {".webm", STR_INIT("video/webm")},
        {".mp3", STR_INIT("audio/mpeg")},
        {".wav", STR_INIT("audio/wav")},
    };

    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (name.len > strlen(types[i].ext) &&
            str_eq_nocase(str_from(name, name.len - strlen(types[i].ext)), str_of(types[i].ext)))
            return types[i].type;
    return STR("application/octet-stream");
}

static void send_done(struct http_req *req, bool whole)
{
    struct file_send *f = req->user;

    own_close(f->fd);
    req->on_drain = NULL;
    req->on_gone = NULL;
    if (whole)
        http_reply_end(req);
    else
        http_reply_abort(req); /* fewer bytes than promised: the peer must not think it has all */
}

static void on_file_gone(struct http_req *req)
{
    send_done(req, false);
}

static void on_file_drain(struct http_req *req)
{
    struct file_send *f = req->user;

    while (f->left && http_reply_pending(req) < STREAM_HIGH) {
        size_t want = f->left < PIECE ? (size_t)f->left : PIECE;
        char *piece = http_reply_reserve(req, want);
        if (!piece)
            return; /* on_file_gone is coming */
        ssize_t n = pread(f->fd, piece, want, (off_t)f->at);
        if (n <= 0) { /* it shrank, or the disk failed */
            send_done(req, false);
            return;
        }
        http_reply_commit(req, (size_t)n);
        f->at += (uint64_t)n;
        f->left -= (uint64_t)n;
    }
    if (!f->left)
        send_done(req, true);
}

/* Changes whenever the content may have: size, time of change, inode. */
static struct str make_etag(struct http_req *req, const struct stat *st)
{
    return arena_printf(&req->arena, "\"%llx-%llx-%llx%09lx\"", (unsigned long long)st->st_ino,
                        (unsigned long long)st->st_size, (unsigned long long)st->st_mtim.tv_sec,
                        (unsigned long)st->st_mtim.tv_nsec);
}

static void put_disposition(struct http_req *req, struct str name)
{
    own_done(buf) value;

    buf_init(&value, 4096);
    buf_add_cstr(&value, "attachment; filename*=UTF-8''");
    url_encode(&value, name, false);
    http_reply_header(req, STR("content-disposition"), buf_str(&value));
}

/* RFC 9110 13.1.2: a list, "*", and weak forms count. */
static bool etag_listed(struct str list, struct str etag)
{
    struct str one;

    while (list.len) {
        str_cut(&list, ',', &one);
        one = str_trim(one);
        if (str_starts(one, STR("W/")))
            one = str_from(one, 2);
        if (str_eq(one, etag) || str_eq(one, STR("*")))
            return true;
    }
    return false;
}

/* Ranges are for GET alone (RFC 9110 14.2). */
static bool range_applies(struct http_req *req, struct str etag)
{
    struct str condition = http_req_header(req, STR("if-range"));

    return str_eq(req->head.method, STR("GET")) && (!condition.p || str_eq(condition, etag));
}

fallible file_reply(struct http_req *req, int fd, struct str name, struct str content_type,
                    bool attachment)
{
    own_fd file = fd;
    struct stat st;
    struct file_send *f = arena_new(&req->arena, struct file_send);

    if (!f)
        return arena_check(&req->arena);
    if (fstat(file, &st) < 0)
        return err_sys("stat '" STR_FMT "'", STR_ARG(str_first(name, 200)));
    if (!S_ISREG(st.st_mode))
        return err_new(ERR_INVALID, "'" STR_FMT "' is not a regular file",
                       STR_ARG(str_first(name, 200)));
    uint64_t size = (uint64_t)st.st_size, from = 0, len = size;
    struct str etag = make_etag(req, &st), range = http_req_header(req, STR("range"));
    if (!etag.p)
        return arena_check(&req->arena);
    http_reply_header(req, STR("etag"), etag);
    http_reply_header(req, STR("accept-ranges"), STR("bytes"));
    if (etag_listed(http_req_header(req, STR("if-none-match")), etag)) {
        http_reply(req, 304, STR(""), STR(""));
        return NULL;
    }
    int status = 200;
    enum http_range kind = HTTP_RANGE_NONE;
    if (range.p && range_applies(req, etag))
        kind = http_parse_range(range, size, &from, &len);
    if (kind == HTTP_RANGE_BAD) {
        http_reply_header(req, STR("content-range"),
                          arena_printf(&req->arena, "bytes */%llu", (unsigned long long)size));
        return err_new(ERR_RANGE, "the range lies outside of %llu bytes", (unsigned long long)size);
    }
    if (kind == HTTP_RANGE_OK) {
        status = 206;
        http_reply_header(
            req, STR("content-range"),
            arena_printf(&req->arena, "bytes %llu-%llu/%llu", (unsigned long long)from,
                         (unsigned long long)(from + len - 1), (unsigned long long)size));
    }
    if (attachment)
        put_disposition(req, name);
    http_reply_begin(req, status, content_type.p ? content_type : file_type_of(name), len);
    bool head_only = str_eq(req->head.method, STR("HEAD"));
    *f = (struct file_send){take_fd(&file), from, head_only ? 0 : len};
    req->user = f;
    req->on_drain = on_file_drain;
    req->on_gone = on_file_gone;
    on_file_drain(req);
    return NULL;
}
