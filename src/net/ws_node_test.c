// SPDX-License-Identifier: Apache-2.0
/* ws_node_test.c — the npm package ws as a real peer, where it is installed:
 * npm install --prefix build/npm ws. The checks are in test/wire/ws_peer.mjs. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/ws.h"
#include "net/ws_peer.h"
#include "test/program.h"
#include "test/test.h"

struct node {
    struct loop_child child;
    bool ended;
};

static void on_node_end(struct loop_child *c)
{
    container_of(c, struct node, child)->ended = true;
}

/* in and out: ends of pipes for the child, or -1. */
static void node_start(struct node *n, struct ws_rig *r, const char *mode, const char *url, int in,
                       int out)
{
    char modules[512], script[512];

    snprintf(modules, sizeof modules, "%s", test_source("build/npm/node_modules"));
    snprintf(script, sizeof script, "%s", test_source("test/wire/ws_peer.mjs"));
    if (access(modules, R_OK) != 0)
        SKIP("npm package ws is not there (npm install --prefix build/npm ws)");
    *n = (struct node){.ended = false};
    pid_t pid = program_start(&(struct program){
        .argv = ARGS("node", script, modules, mode, url), .fds = (int[]){in, out}, .fd_count = 2});
    CHECK_OK(loop_child_start(r->loop, &n->child, pid, -1, on_node_end));
}

static bool has_ended(void *ctx)
{
    return ((struct node *)ctx)->ended;
}

TEST_LIMIT(ws_server_satisfies_a_real_client, 120)
{
    struct ws_rig r;
    struct node node;
    char url[64];
    int fd;

    ws_rig_init(&r);
    CHECK_OK(listen_open(STR("127.0.0.1:0"), &fd));
    CHECK_OK(listen_name(fd, false, url, sizeof url));
    CHECK_OK(http_server_listen(r.server, fd));
    snprintf(r.url, sizeof r.url, "ws%s/echo", url + strlen("http"));
    r.quiet = true;
    node_start(&node, &r, "check", r.url, -1, -1);
    ws_rig_until(&r, has_ended, &node);
    if (node.child.code == CLD_EXITED && node.child.status == 127)
        SKIP("node is not there");
    CHECK_INT(node.child.code, CLD_EXITED);
    CHECK_INT(node.child.status, 0);
    r.ws = NULL;
    ws_rig_done(&r);
}

struct talk {
    struct ws *ws;
    unsigned echoed, wrong;
    size_t size;
    int code;
};

static const size_t sizes[] = {0, 1, 125, 126, 300, 65535, 65536, 1u << 20};

static void send_next(struct talk *t)
{
    static char text[1u << 20];

    if (t->echoed == 2 * ARRAY_LEN(sizes)) {
        ws_close(t->ws, WS_NORMAL, STR(""));
        return;
    }
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + i * i % 23);
    t->size = sizes[t->echoed / 2];
    ws_send(t->ws, t->echoed % 2 ? WS_BINARY : WS_TEXT, str_n(text, t->size));
}

static void on_open(struct ws *ws)
{
    send_next(ws_owner(ws));
}

static void on_message(struct ws *ws, enum ws_kind kind, struct str data)
{
    struct talk *t = ws_owner(ws);

    t->wrong += data.len != t->size || kind != (t->echoed % 2 ? WS_BINARY : WS_TEXT);
    for (size_t i = 0; i < data.len; i++)
        t->wrong += data.p[i] != (char)('a' + i * i % 23);
    t->echoed++;
    send_next(t);
}

static void on_close(struct ws *ws, int code, struct str reason)
{
    struct talk *t = ws_owner(ws);

    (void)reason;
    t->ws = NULL;
    t->code = code;
}

static const struct ws_events talk_events = {
    .on_open = on_open, .on_message = on_message, .on_close = on_close};

static bool has_finished(void *ctx)
{
    return !((struct talk *)ctx)->ws;
}

TEST_LIMIT(ws_client_satisfies_a_real_server, 120)
{
    struct ws_rig r;
    struct node node;
    char url[100];
    int in[2], out[2];

    ws_rig_init(&r);
    CHECK(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
    node_start(&node, &r, "serve", "", in[0], out[1]);
    close(in[0]);
    close(out[1]);
    ssize_t n = read(out[0], url, sizeof url);
    if (n <= 0) {
        ws_rig_until(&r, has_ended, &node);
        if (node.child.status == 127)
            SKIP("node is not there");
        FAIL("node ended with %d", node.child.status);
    }
    for (int no_deflate = 0; no_deflate < 2; no_deflate++) {
        struct talk t = {.echoed = 0};
        struct ws_config config = {.no_deflate = no_deflate};
        CHECK_OK(
            ws_rig_connect(&r, str_trim(str_n(url, (size_t)n)), &config, &talk_events, &t, &t.ws));
        ws_rig_until(&r, has_finished, &t);
        CHECK_INT(t.wrong, 0);
        CHECK_INT(t.echoed, 2 * ARRAY_LEN(sizes));
        CHECK_INT(t.code, WS_NORMAL);
    }
    close(in[1]); /* ends it */
    ws_rig_until(&r, has_ended, &node);
    close(out[0]);
    ws_rig_done(&r);
}
