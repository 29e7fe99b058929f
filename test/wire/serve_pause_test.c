// SPDX-License-Identifier: Apache-2.0
/* serve_pause_test.c — a real sandbox, frozen and thawed again and again under its visitors: some
 * look, some run commands, one uploads, one watches a shell as server-sent events, one has an
 * upgraded connection to a port inside. Whoever asked is answered; what was under way goes on.
 *
 * A few pauses here, CROFT_SOAK_PAUSES in make soak. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/http.h"
#include "test/serve_kit.h"

enum kind { LOOK, RUN, UPLOAD, WATCH, TALK };
enum { VISITORS = 10, UPLOAD_BYTES = 256 << 10, PIECE = 8 << 10, WORDS = 6000 };

struct visitor {
    enum kind kind;
    int fd; /* -1: none */
    struct buf in;
    bool asked;
    size_t sent; /* of an upload */
    unsigned ok, paused;
    unsigned seen; /* of a watch: lines that commands wrote */
    uint64_t since_ns;
};

struct party {
    struct serve s;
    struct json *r;
    const char *url;
    struct visitor all[VISITORS];
    struct buf upload; /* the whole request */
    char words[WORDS]; /* what is said on the upgraded connection */
};

static int connect_url(const char *url)
{
    struct wire w;

    wire_at(&w, url);
    return wire_connect(&w);
}

static void send_all(int fd, struct str text)
{
    CHECK_INT(send(fd, text.p, text.len, MSG_NOSIGNAL), (long long)text.len);
}

/* --- asking --- */

static void make_upload(struct party *p)
{
    static const char head[] = "--b\r\nContent-Disposition: form-data; name=\"file\"; "
                               "filename=\"f\"\r\n\r\n";
    static const char tail[] = "\r\n--b--\r\n";

    buf_init(&p->upload, 2 * UPLOAD_BYTES);
    buf_addf(&p->upload,
             "POST /upload_file?destination=/tmp/up HTTP/1.1\r\nHost: localhost\r\n"
             "X-Session-API-Key: %s\r\nContent-Type: multipart/form-data; boundary=b\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             serve_field(&p->s, p->r, "session_api_key"),
             UPLOAD_BYTES + sizeof head - 1 + sizeof tail - 1, head);
    for (int i = 0; i < UPLOAD_BYTES / 16; i++)
        buf_add_cstr(&p->upload, "a line as other\n");
    buf_add_cstr(&p->upload, tail);
}

/* A piece at a time, so that it is under way over many pauses. A refusal may come before its end,
 * and the rest is then nobody's. */
static void send_piece(struct party *p, struct visitor *v)
{
    size_t left = p->upload.len - v->sent;
    ssize_t n = send(v->fd, p->upload.p + v->sent, left < PIECE ? left : PIECE,
                     MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n > 0)
        v->sent += (size_t)n;
    else
        CHECK(errno == EAGAIN || errno == EPIPE || errno == ECONNRESET);
}

static void ask(struct party *p, struct visitor *v)
{
    static const char body[] = "{\"action\":{\"action\":\"run\",\"args\":{\"command\":\"echo "
                               "\u00a7\",\"blocking\":true}}}";
    const char *text = "GET /alive HTTP/1.1\r\nHost: localhost\r\n\r\n";

    if (v->kind == WATCH)
        return;
    v->asked = true;
    v->since_ns = clock_mono_ns(&clock_system);
    if (v->kind == TALK) {
        send_all(v->fd, str_n(p->words, WORDS));
        return;
    }
    if (v->kind == UPLOAD) {
        v->fd = connect_url(p->url);
        v->sent = 0;
        return;
    }
    if (v->kind == RUN)
        text = serve_text(&p->s,
                          "POST /execute_action HTTP/1.1\r\nHost: localhost\r\n"
                          "X-Session-API-Key: %s\r\nContent-Type: application/json\r\n"
                          "Content-Length: %zu\r\n\r\n%s",
                          serve_field(&p->s, p->r, "session_api_key"), sizeof body - 1, body);
    send_all(v->fd, str_of(text));
}

/* --- answers --- */

static void take_answer(struct visitor *v)
{
    struct http_head h;
    struct arena a;
    size_t scanned = 0, end = 0;

    CHECK_OK(http_head_end(buf_str(&v->in), &scanned, &end));
    if (!end)
        return;
    arena_init(&a, 1u << 20);
    CHECK_OK(http_parse_response(&a, str_first(buf_str(&v->in), end), STR("GET"), &h));
    if (v->in.len - end >= h.length) {
        if (h.status != 200 && h.status != 503)
            FAIL(STR_FMT, STR_ARG(buf_str(&v->in)));
        CHECK(h.status == 200 || http_header_get(&h, STR("retry-after")).p);
        CHECK(h.status == 503 || v->kind != UPLOAD || v->sent > UPLOAD_BYTES);
        CHECK_INT(v->in.len, end + h.length);
        *(h.status == 200 ? &v->ok : &v->paused) += 1;
        v->in.len = 0;
        v->asked = false;
        if (v->kind == UPLOAD) {
            close(v->fd);
            v->fd = -1;
        }
    }
    arena_done(&a);
}

/* Only commands write the second byte of their character: no frame of HTTP or of an event cuts it.
 */
static void take_events(struct visitor *v)
{
    for (size_t i = 0; i < v->in.len; i++)
        v->seen += (unsigned char)v->in.p[i] == 0xa7;
    v->in.len = 0;
}

static void take_words(const struct party *p, struct visitor *v)
{
    if (v->in.len < WORDS)
        return;
    CHECK(str_eq(buf_str(&v->in), str_n(p->words, WORDS)));
    v->in.len = 0;
    v->asked = false;
    v->ok++;
}

static void look(const struct party *p, struct visitor *v)
{
    ssize_t n = recv(v->fd, buf_reserve(&v->in, 65536), 65536, MSG_DONTWAIT);

    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0)
        FAIL("visitor of kind %d lost its connection: %s", v->kind, n ? strerror(errno) : "end");
    buf_commit(&v->in, (size_t)n);
    if (v->kind == WATCH)
        take_events(v);
    else if (v->kind == TALK)
        take_words(p, v);
    else
        take_answer(v);
}

/* So many times all look whether something came, and ask again who was answered; nobody waits
 * longer than a minute. */
static void drive(struct party *p, unsigned rounds, bool ask_more)
{
    struct pollfd fds[VISITORS];

    while (rounds--) {
        for (int i = 0; i < VISITORS; i++) {
            struct visitor *v = &p->all[i];
            if (!v->asked && ask_more)
                ask(p, v);
            if (v->kind == UPLOAD && v->asked && v->sent < p->upload.len)
                send_piece(p, v);
            fds[i] = (struct pollfd){v->asked || v->kind == WATCH ? v->fd : -1, POLLIN, 0};
            if (v->asked && clock_mono_ns(&clock_system) - v->since_ns > 60 * NS_PER_S)
                FAIL("visitor %d of kind %d hangs", i, v->kind);
        }
        poll(fds, VISITORS, 1);
        for (int i = 0; i < VISITORS; i++)
            if (fds[i].revents)
                look(p, &p->all[i]);
    }
}

static bool is_any_asked(const struct party *p)
{
    for (int i = 0; i < VISITORS; i++)
        if (p->all[i].asked)
            return true;
    return false;
}

static unsigned sum(const struct party *p, enum kind kind)
{
    unsigned ok = 0;

    for (int i = 0; i < VISITORS; i++)
        ok += p->all[i].kind == kind ? p->all[i].ok : 0;
    return ok;
}

/* --- the whole --- */

/* A connection whose answer has begun with this status line. */
static int open_stream(struct party *p, const char *target, const char *more, const char *status)
{
    int fd = connect_url(p->url);
    own_done(buf) got;

    buf_init(&got, 65536);
    wire_send(fd, str_of(serve_text(&p->s,
                                    "GET %s HTTP/1.1\r\nHost: localhost\r\n"
                                    "X-Session-API-Key: %s\r\n%s\r\n",
                                    target, serve_field(&p->s, p->r, "session_api_key"), more)));
    while (str_find(buf_str(&got), STR("\r\n\r\n")) < 0) {
        CHECK_INT(recv(fd, buf_reserve(&got, 1), 1, 0), 1); /* not one byte of what follows */
        buf_commit(&got, 1);
    }
    CHECK_HAS(buf_str(&got), str_of(status));
    return fd;
}

static void start_echo(struct party *p)
{
    static const char program[] =
        "import socket, threading\n"
        "def talk(c):\n"
        " h = b''\n"
        " while not h.endswith(b'\\r\\n\\r\\n'):\n"
        "  d = c.recv(1)\n"
        "  if not d: return\n"
        "  h += d\n"
        " c.sendall(b'HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\n'\n"
        "           b'Upgrade: websocket\\r\\n\\r\\n')\n"
        " while d := c.recv(65536): c.sendall(d)\n"
        "s = socket.create_server(('127.0.0.1', 12000))\n"
        "while True: threading.Thread(target=talk, args=(s.accept()[0],)).start()\n";

    serve_put(&p->s, p->r, "/tmp/echo.py", str_of(program));
    serve_exec(&p->s, p->r,
               "(python3 /tmp/echo.py >/dev/null 2>&1 &); "
               "until (: </dev/tcp/127.0.0.1/12000) 2>/dev/null; do :; done");
}

static void party_open(struct party *p, const char *config)
{
    static const enum kind kinds[VISITORS] = {LOOK, LOOK,   LOOK, RUN,   LOOK,
                                              LOOK, UPLOAD, RUN,  WATCH, TALK};

    serve_prepare(&p->s);
    serve_run_with(&p->s, config);
    p->r = serve_start(&p->s, "one", "");
    p->url = serve_field(&p->s, p->r, "url");
    start_echo(p);
    make_upload(p);
    for (int i = 0; i < WORDS; i++)
        p->words[i] = (char)(i * 7);
    for (int i = 0; i < VISITORS; i++) {
        struct visitor *v = &p->all[i];
        *v = (struct visitor){.kind = kinds[i], .fd = -1};
        buf_init(&v->in, 1u << 20);
        if (v->kind == WATCH)
            v->fd = open_stream(p, "/croft/v1/shells/default/output?encoding=text", "", " 200 ");
        else if (v->kind == TALK)
            v->fd = open_stream(
                p, serve_text(&p->s, "/%s/work-1/", serve_field(&p->s, p->r, "runtime_id")),
                "Connection: Upgrade\r\nUpgrade: websocket\r\n", " 101 ");
        else if (v->kind != UPLOAD)
            v->fd = connect_url(p->url);
    }
}

/* All are answered, and what went through is whole. Gives how many were told that it is paused. */
static unsigned party_close(struct party *p)
{
    unsigned paused = 0;

    while (is_any_asked(p))
        drive(p, 1, false);
    uint64_t since_ns = clock_mono_ns(&clock_system);
    for (const struct visitor *v = &p->all[VISITORS - 2]; v->seen < sum(p, RUN);) {
        if (clock_mono_ns(&clock_system) - since_ns > 60 * NS_PER_S)
            FAIL("%u of %u commands were seen", v->seen, sum(p, RUN));
        drive(p, 1, false);
    }
    CHECK_INT(p->all[VISITORS - 2].seen, sum(p, RUN));
    CHECK(sum(p, UPLOAD) > 0);
    CHECK_STR(serve_exec(&p->s, p->r, "sort -u /tmp/up/f; wc -c < /tmp/up/f"),
              serve_text(&p->s, "a line as other\n%d", UPLOAD_BYTES));
    for (int i = 0; i < VISITORS; i++) {
        paused += p->all[i].paused;
        if (p->all[i].fd >= 0)
            close(p->all[i].fd);
        buf_done(&p->all[i].in);
    }
    buf_done(&p->upload);
    serve_tell(&p->s, "/stop", p->r);
    serve_close(&p->s);
    return paused;
}

static unsigned pauses(unsigned here)
{
    const char *text = getenv("CROFT_SOAK_PAUSES");

    return text && *text ? (unsigned)atoi(text) : here;
}

TEST_LIMIT(serve_pauses_a_busy_sandbox_again_and_again_and_nothing_hangs, 900)
{
    struct party p = {0};
    unsigned many = pauses(250);

    party_open(&p, "");
    for (unsigned i = 0; i < many; i++) {
        drive(&p, 1 + i % 3, true);
        CHECK_STR(json_get_str(serve_tell(&p.s, "/pause", p.r), "status", STR("")), "paused");
        drive(&p, 1 + i % 2, true);
        CHECK_STR(json_get_str(serve_tell(&p.s, "/resume", p.r), "status", STR("")), "running");
    }
    CHECK(sum(&p, LOOK) + sum(&p, RUN) > many);
    CHECK(sum(&p, TALK) > 0);
    CHECK(party_close(&p) > 0);
}

/* Nobody resumes it but those who come; what was under way when it was paused waits for one. */
TEST_LIMIT(serve_wakes_a_paused_sandbox_for_who_comes_again_and_again_and_nothing_hangs, 900)
{
    struct party p = {0};
    unsigned many = pauses(50);

    party_open(&p, "[server]\nresume_on_request = true\n");
    for (unsigned i = 0; i < many; i++) {
        drive(&p, 1 + i % 3, true);
        CHECK_STR(json_get_str(serve_tell(&p.s, "/pause", p.r), "status", STR("")), "paused");
        drive(&p, i % 2, true);
        CHECK_INT(serve_visit(&p.s, p.r, "/alive"), 200);
    }
    CHECK(sum(&p, LOOK) + sum(&p, RUN) > many);
    CHECK(sum(&p, TALK) > 0);
    CHECK_INT(party_close(&p), 0);
}
