// SPDX-License-Identifier: Apache-2.0
/* echo.c — see echo.h. */
#include "test/echo/echo.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/log.h"
#include "loop/loop.h"
#include "net/file.h"
#include "net/router.h"
#include "net/server.h"
#include "out/tls.h"
#include "test/echo/inner.h"

static fallible handle_alive(struct http_req *req)
{
    http_reply_json(req, 200, STR("{\"status\":\"ok\"}"));
    return NULL;
}

/* A small document built per request: what bench/http asks for. */
static fallible handle_info(struct http_req *req)
{
    struct echo *e = req->owner;
    struct jw w;

    buf_reset(&e->scratch);
    jw_init(&w, &e->scratch, JW_WEB);
    JW_OBJECT(&w, NULL) {
        jw_double(&w, "uptime", (double)(loop_now_ns(e->loop) - e->start_ns) / 1e9);
        jw_double(&w, "idle_time", 0.25);
        JW_OBJECT(&w, "resources") {
            jw_double(&w, "cpu_percent", 12.5);
            jw_int(&w, "memory_rss", 20480000);
            jw_int(&w, "memory_vms", 104857600);
            jw_str(&w, "state", STR("running"));
        }
    }
    http_reply_json(req, 200, buf_str(&e->scratch));
    return NULL;
}

static fallible handle_json(struct http_req *req)
{
    struct json *doc;
    own_done(buf) out;

    buf_init(&out, 64u << 20);
    TRY(http_req_json(req, &doc));
    json_write(&out, doc, JW_WEB);
    TRY(buf_check(&out));
    http_reply_json(req, 200, buf_str(&out));
    return NULL;
}

/* --- a body of any size, counted and hashed as it comes --- */

struct sink {
    struct sha256 hash;
    uint64_t bytes;
};

static fallible on_sink_body(struct http_req *req, struct str piece)
{
    struct sink *s = req->user;
    uint8_t sum[SHA256_LEN];
    char hex[2 * SHA256_LEN + 1];

    if (piece.len) {
        sha256_add(&s->hash, piece.p, piece.len);
        s->bytes += piece.len;
        return NULL;
    }
    sha256_done(&s->hash, sum);
    hash_hex(sum, sizeof sum, hex);
    struct str body = arena_printf(&req->arena, "{\"bytes\":%llu,\"sha256\":\"%s\"}",
                                   (unsigned long long)s->bytes, hex);
    if (!body.p)
        return arena_check(&req->arena);
    http_reply_json(req, 200, body);
    return NULL;
}

static fallible handle_sink(struct http_req *req)
{
    struct sink *s = arena_new(&req->arena, struct sink);

    if (!s)
        return arena_check(&req->arena);
    sha256_init(&s->hash);
    req->user = s;
    req->on_body = on_sink_body;
    return NULL;
}

/* --- an answer of any size, made as the peer takes it --- */

struct flood {
    uint64_t left;
};

static void on_flood_drain(struct http_req *req)
{
    struct flood *f = req->user;
    char piece[32u << 10];

    memset(piece, 'x', sizeof piece);
    while (f->left && http_reply_pending(req) < STREAM_HIGH) {
        size_t n = f->left < sizeof piece ? (size_t)f->left : sizeof piece;
        http_reply_write(req, str_n(piece, n));
        f->left -= n;
    }
    if (f->left)
        return;
    req->on_drain = NULL;
    req->on_gone = NULL;
    http_reply_end(req);
}

static fallible query_number(struct http_req *req, const char *name, uint64_t otherwise,
                             uint64_t max, uint64_t *ret)
{
    struct str text = http_req_query(req, name);

    *ret = otherwise;
    if (text.p && (!str_to_u64(text, ret) || *ret > max))
        return err_new(ERR_UNPROCESSABLE, "query parameter '%s' must be a number from 0 to %llu",
                       name, (unsigned long long)max);
    return NULL;
}

static fallible handle_flood(struct http_req *req)
{
    struct flood *f = arena_new(&req->arena, struct flood);

    if (!f)
        return arena_check(&req->arena);
    TRY(query_number(req, "bytes", 1 << 20, UINT64_C(1) << 40, &f->left));
    req->user = f;
    req->on_drain = on_flood_drain;
    req->on_gone = http_reply_abort;
    http_reply_begin(req, 200, STR("application/octet-stream"), HTTP_LENGTH_UNKNOWN);
    on_flood_drain(req);
    return NULL;
}

/* --- an answer that comes later --- */

struct late {
    struct loop_timer timer;
    struct http_req *req;
};

static void on_late(struct loop_timer *t)
{
    struct late *l = container_of(t, struct late, timer);

    http_reply_json(l->req, 200, STR("{\"late\":true}"));
}

static void on_late_gone(struct http_req *req)
{
    struct late *l = req->user;

    loop_timer_stop(&l->timer);
    http_reply_abort(req);
}

static fallible handle_late(struct http_req *req)
{
    struct echo *e = req->owner;
    struct late *l = arena_new(&req->arena, struct late);
    uint64_t ms;

    if (!l)
        return arena_check(&req->arena);
    TRY(query_number(req, "ms", 10, 60000, &ms));
    l->req = req;
    req->user = l;
    req->on_gone = on_late_gone;
    loop_timer_start(e->loop, &l->timer, ms, on_late);
    return NULL;
}

static fallible handle_download(struct http_req *req)
{
    struct echo *e = req->owner;
    struct str path = http_req_param(req, "path");
    int fd;

    if (e->dir_fd < 0)
        return err_new(ERR_NOT_FOUND, "no directory is served; start with --dir DIR");
    TRY(fd_open_beneath(e->dir_fd, path, O_RDONLY | O_NONBLOCK, 0, &fd));
    return file_reply(req, fd, path, (struct str){NULL, 0}, false);
}

static const struct route routes[] = {
    {"GET", "/alive", handle_alive, .flags = ROUTE_OPEN},
    {"GET", "/info", handle_info},
    {"POST", "/echo", handle_json},
    {"POST", "/sink", handle_sink, .flags = ROUTE_STREAM},
    {"GET", "/flood", handle_flood},
    {"GET", "/late", handle_late},
    {"GET", "/files/{path...}", handle_download},
};

static fallible check_key(void *echo, struct http_req *req)
{
    const struct echo *e = echo;
    struct str key = http_req_header(req, STR("x-api-key"));

    if (e->config->key.p && !(key.p && hash_equal(key, e->config->key)))
        return err_new(ERR_UNAUTHORIZED, "X-API-Key is missing or wrong");
    return NULL;
}

static void on_drained(void *ctx)
{
    struct echo *e = ctx;

    loop_stop(e->loop);
}

static void on_term(struct loop_signal *s)
{
    struct echo *e = container_of(s, struct echo, term);

    http_server_drain(e->server, on_drained, e);
}

static void on_interrupt(struct loop_signal *s)
{
    loop_stop(s->loop);
}

static void on_hangup(struct loop_signal *s)
{
    struct echo *e = container_of(s, struct echo, hangup);
    own(err) error = tls_server_reload(e->tls);

    if (error)
        log_warn("certificate kept", KV_ERR(error));
    else
        log_info("certificate reloaded");
}

static fallible echo_serve(struct echo *e)
{
    char name[160];
    int fd;

    TRY(listen_open(e->config->listen, &fd));
    TRY(http_server_listen(e->server, fd));
    TRY(loop_signal_start(e->loop, &e->term, SIGTERM, on_term));
    TRY(loop_signal_start(e->loop, &e->interrupt, SIGINT, on_interrupt));
    if (e->tls)
        TRY(loop_signal_start(e->loop, &e->hangup, SIGHUP, on_hangup));
    TRY(listen_name(fd, e->config->tls_cert.p != NULL, name, sizeof name));
    printf("%s\n", name);
    fflush(stdout);
    return loop_run(e->loop);
}

static fallible open_dir(struct echo *e)
{
    char path[4096];

    if (!e->config->dir.p)
        return NULL;
    snprintf(path, sizeof path, STR_FMT, STR_ARG(str_first(e->config->dir, sizeof path - 1)));
    e->dir_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (e->dir_fd < 0)
        return err_sys("open '%s'", path);
    return NULL;
}

static fallible open_tls(struct echo *e)
{
    own_done(arena) a;
    struct tls_config files;

    arena_init(&a, 64u << 10);
    if (!e->config->tls_cert.p)
        return NULL;
    files.certificate = arena_cstr(&a, e->config->tls_cert);
    files.key = arena_cstr(&a, e->config->tls_key.p ? e->config->tls_key : e->config->tls_cert);
    if (a.failed)
        return arena_check(&a);
    return tls_server_new(&files, &e->tls);
}

static fallible echo_serve_loop(struct echo *e, const struct router *router)
{
    own(net) net = NULL;

    TRY(open_dir(e));
    TRY(open_tls(e));
    TRY(net_new(e->loop, &net));
    struct http_server_config config = {
        .router = router,
        .filter = e->tls ? tls_server_filter : NULL,
        .filter_ctx = e->tls,
    };
    TRY(http_server_new(net, &config, &e->server));
    struct err *error = echo_serve(e);
    loop_signal_stop(&e->term);
    loop_signal_stop(&e->interrupt);
    loop_signal_stop(&e->hangup);
    http_server_free(e->server);
    return error;
}

fallible echo_run(struct loop *loop, const struct echo_config *config)
{
    static const char *const any[] = {"*", NULL};
    struct echo e = {.loop = loop, .config = config, .dir_fd = -1, .start_ns = loop_now_ns(loop)};
    own(router) router =
        router_new(&(struct router_config){.auth = check_key, .ctx = &e, .cors_origins = any});

    buf_init(&e.scratch, 64u << 10);
    router_add(router, routes, ARRAY_LEN(routes), &e);
    echo_add_streams(router, &e);
    struct err *error = echo_serve_loop(&e, router);
    own_close(e.dir_fd);
    tls_server_free(e.tls);
    buf_done(&e.scratch);
    return error;
}
