// SPDX-License-Identifier: Apache-2.0
/* view.c — the file viewer: a page around one image or PDF, for the agent's browser. The file goes
 * out as base64 in pieces. A PDF is drawn by the script in pdf.js, which is part of the page:
 * nothing is loaded from anywhere. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/b64.h"
#include "base/embed.h"
#include "guest/transfer/inner.h"
#include "net/router.h"

#define PIECE (48u << 10) /* a multiple of three: no padding but at the end */

EMBED(transfer_pdf, "src/guest/transfer/pdf.js");

static const struct {
    struct str ext, type;
} types[] = {
    {STR_INIT(".pdf"), STR_INIT("application/pdf")}, {STR_INIT(".png"), STR_INIT("image/png")},
    {STR_INIT(".jpg"), STR_INIT("image/jpeg")},      {STR_INIT(".jpeg"), STR_INIT("image/jpeg")},
    {STR_INIT(".gif"), STR_INIT("image/gif")},
};

struct view {
    int fd;
    uint64_t left;
    bool pdf;
    struct str name;
};

static void add_escaped(struct buf *b, struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        switch (s.p[i]) {
        case '&':
            buf_add_cstr(b, "&amp;");
            break;
        case '<':
            buf_add_cstr(b, "&lt;");
            break;
        case '>':
            buf_add_cstr(b, "&gt;");
            break;
        case '"':
            buf_add_cstr(b, "&quot;");
            break;
        case '\'':
            buf_add_cstr(b, "&#x27;");
            break;
        default:
            buf_add_char(b, s.p[i]);
        }
    }
}

static fallible reply_page(struct http_req *req, int status, const char *title, struct str path,
                           struct str more)
{
    own_done(buf) b;

    buf_init(&b, 256u << 10);
    buf_addf(&b, "<h1>%s</h1><p>", title);
    add_escaped(&b, path);
    buf_add_cstr(&b, "</p>");
    if (more.len) {
        buf_add_cstr(&b, "<p>");
        add_escaped(&b, more);
        buf_add_cstr(&b, "</p>");
    }
    TRY(buf_check(&b));
    http_reply(req, status, STR("text/html; charset=utf-8"), buf_str(&b));
    return NULL;
}

/* As os.path.splitext, in lower case: dots at the start of a name begin no extension. */
static struct str view_extension(struct http_req *req, struct str name)
{
    size_t start = 0, dot = name.len;

    while (start < name.len && name.p[start] == '.')
        start++;
    for (size_t i = start; i < name.len; i++)
        if (name.p[i] == '.')
            dot = i;
    struct str ext = arena_copy(&req->arena, str_from(name, dot));
    for (size_t i = 0; i < ext.len; i++)
        if (ext.p[i] >= 'A' && ext.p[i] <= 'Z')
            ((char *)ext.p)[i] |= 0x20;
    return ext;
}

/* --- the page, piece by piece --- */

static void on_view_gone(struct http_req *req)
{
    struct view *v = req->user;

    own_close(take_fd(&v->fd));
    http_reply_abort(req);
}

static void end_page(struct http_req *req)
{
    struct view *v = req->user;
    own_done(buf) b;

    buf_init(&b, 64u << 10);
    if (v->pdf) {
        buf_add_cstr(&b, "\";\n");
        struct err *e = inflate_all(EMBEDDED(transfer_pdf), &b);
        if (e) {
            err_free(e); /* no memory: the page cannot be finished, and must not look so */
            on_view_gone(req);
            return;
        }
        buf_add_cstr(&b, "</script></body></html>\n");
    } else {
        buf_add_cstr(&b, "\" alt=\"");
        add_escaped(&b, v->name);
        buf_add_cstr(&b, "\"></body></html>\n");
    }
    http_reply_write(req, buf_str(&b));
    own_close(take_fd(&v->fd));
    req->on_drain = NULL;
    req->on_gone = NULL;
    http_reply_end(req);
}

/* Whole pieces, whatever read gives: base64 has no seams then. */
static ssize_t read_piece(struct view *v, char piece[PIECE])
{
    size_t want = v->left < PIECE ? (size_t)v->left : PIECE, len = 0;

    while (len < want) {
        ssize_t n = read(v->fd, piece + len, want - len);
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        len += (size_t)n;
    }
    v->left = len < want ? 0 : v->left - len;
    return (ssize_t)len;
}

static void on_view_drain(struct http_req *req)
{
    struct view *v = req->user;
    char piece[PIECE], text[PIECE / 3 * 4 + 4];

    while (v->left && http_reply_pending(req) < STREAM_HIGH) {
        ssize_t n = read_piece(v, piece);
        if (n < 0) {
            on_view_gone(req);
            return;
        }
        http_reply_write(req, str_n(text, b64_encode(piece, (size_t)n, text, false, true)));
    }
    if (!v->left)
        end_page(req);
}

static fallible begin_page(struct http_req *req, int fd, struct str name, struct str type)
{
    own_fd file = fd;
    struct stat st;
    struct view *v = arena_new(&req->arena, struct view);
    own_done(buf) b;

    buf_init(&b, 64u << 10);
    if (!v)
        return arena_check(&req->arena);
    if (fstat(file, &st) < 0)
        return err_sys("stat");
    bool head_only = str_eq(req->head.method, STR("HEAD"));
    *v = (struct view){.left = head_only ? 0 : (uint64_t)st.st_size, .name = name};
    v->pdf = str_eq(type, STR("application/pdf"));
    buf_add_cstr(&b, "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>File Viewer - ");
    add_escaped(&b, name);
    buf_add_cstr(&b, "</title><style>body{margin:0;padding:20px;font-family:sans-serif}"
                     "img,canvas{display:block;max-width:100%;margin:0 auto 20px}"
                     "</style></head><body>\n");
    if (v->pdf)
        buf_add_cstr(&b, "<div id=\"pages\"></div><script>\nconst PDF_BASE64 = \"");
    else
        buf_addf(&b, "<img src=\"data:" STR_FMT ";base64,", STR_ARG(type));
    TRY(buf_check(&b));
    v->fd = take_fd(&file);
    req->user = v;
    req->on_drain = on_view_drain;
    req->on_gone = on_view_gone;
    http_reply_begin(req, 200, STR("text/html; charset=utf-8"), HTTP_LENGTH_UNKNOWN);
    http_reply_write(req, buf_str(&b));
    on_view_drain(req);
    return NULL;
}

/* --- the request --- */

static bool is_local(struct http_req *req)
{
    struct str peer = http_req_peer(req);

    return str_starts(peer, STR("127.0.0.1:")) || str_starts(peer, STR("[::1]:")) ||
           str_starts(peer, STR("[::ffff:127.0.0.1]:")) || str_eq(peer, STR("unix"));
}

static fallible view_file(struct http_req *req, struct str path)
{
    own_fd fd = -1;
    struct stat st;
    struct str name = transfer_base_name(path), ext = view_extension(req, name);

    TRY(arena_check(&req->arena));
    struct err *e = transfer_open(req->owner, path, O_RDONLY, &fd);
    if (e && transfer_is_missing(e)) {
        err_free(e);
        return reply_page(req, 404, "Error: File not found", path, STR(""));
    }
    if (!e && fstat(fd, &st) < 0)
        e = err_sys("stat");
    if (!e && S_ISDIR(st.st_mode))
        return reply_page(req, 400, "Error: Path is a directory", path, STR(""));
    for (size_t i = 0; i < ARRAY_LEN(types) && !e; i++)
        if (str_eq(ext, types[i].ext) && S_ISREG(st.st_mode))
            return begin_page(req, take_fd(&fd), name, types[i].type);
    struct str why = e ? str_of(err_text(e))
                       : arena_printf(&req->arena,
                                      "Unsupported file extension: " STR_FMT
                                      ". Supported extensions are: .pdf, .png, .jpg, .jpeg, .gif",
                                      STR_ARG(ext));
    struct err *failed = reply_page(req, 500, "Error viewing file", path, why);
    err_free(e);
    return failed;
}

static fallible transfer_view(struct http_req *req)
{
    struct str path = http_req_query(req, "path");

    if (!is_local(req)) {
        http_reply(req, 403, STR("text/html; charset=utf-8"),
                   STR("<h1>Access Denied</h1><p>This endpoint is only accessible from "
                       "localhost</p>"));
        return NULL;
    }
    if (!path.p) {
        http_reply_json(req, 422,
                        STR("{\"detail\":[{\"type\":\"missing\",\"loc\":[\"query\",\"path\"],"
                            "\"msg\":\"Field required\",\"input\":null}]}"));
        return NULL;
    }
    if (!str_starts(path, STR("/")))
        return reply_page(req, 400, "Error: Path must be absolute", path, STR(""));
    return view_file(req, path);
}

static fallible viewer_alive(struct http_req *req)
{
    http_reply_json(req, 200, STR("{\"status\":\"File viewer server is running\"}"));
    return NULL;
}

void transfer_add_viewer_routes(struct router *r, struct transfer *t)
{
    static const struct route routes[] = {
        {"GET", "/", viewer_alive, ROUTE_OPEN, 0},
        {"GET", "/view", transfer_view, ROUTE_OPEN, 0},
    };

    router_add(r, routes, ARRAY_LEN(routes), t);
}
