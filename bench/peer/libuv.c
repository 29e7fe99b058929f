// SPDX-License-Identifier: Apache-2.0
/* libuv.c — the least a libuv server can do: find the end of the head, answer fixed JSON. No header
 * is looked at, so this is what a loop alone costs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#define BODY                                                                                       \
    "{\"uptime\":12.345678,\"idle_time\":0.25,\"resources\":{\"cpu_percent\":12.5,"                \
    "\"memory_rss\":20480000,\"memory_vms\":104857600,\"state\":\"running\"}}"

static char answer[512];
static size_t answer_len;

static void on_alloc(uv_handle_t *h, size_t n, uv_buf_t *buf)
{
    static char page[65536];

    (void)h;
    (void)n;
    *buf = uv_buf_init(page, sizeof page);
}

static void on_closed(uv_handle_t *h)
{
    free(h);
}

static void on_written(uv_write_t *w, int status)
{
    (void)status;
    free(w);
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    if (n < 0) {
        uv_close((uv_handle_t *)s, on_closed);
        return;
    }
    if (n < 4 || !memmem(buf->base, (size_t)n, "\r\n\r\n", 4))
        return;
    uv_buf_t out = uv_buf_init(answer, (unsigned)answer_len);
    if (uv_try_write(s, &out, 1) != (int)out.len) {
        uv_write_t *w = malloc(sizeof *w);
        uv_write(w, s, &out, 1, on_written);
    }
}

static void on_connection(uv_stream_t *listener, int status)
{
    uv_tcp_t *c = malloc(sizeof *c);

    (void)status;
    uv_tcp_init(listener->loop, c);
    if (uv_accept(listener, (uv_stream_t *)c) == 0) {
        uv_tcp_nodelay(c, 1);
        uv_read_start((uv_stream_t *)c, on_alloc, on_read);
    } else {
        uv_close((uv_handle_t *)c, on_closed);
    }
}

int main(int argc, char **argv)
{
    struct sockaddr_in addr;
    uv_tcp_t listener;

    answer_len = (size_t)snprintf(answer, sizeof answer,
                                  "HTTP/1.1 200 OK\r\ndate: Sun, 15 Nov 2026 09:06:31 GMT\r\n"
                                  "content-type: application/json\r\ncontent-length: %zu\r\n\r\n%s",
                                  sizeof BODY - 1, BODY);
    uv_ip4_addr("127.0.0.1", argc > 1 ? atoi(argv[1]) : 0, &addr);
    uv_tcp_init(uv_default_loop(), &listener);
    if (uv_tcp_bind(&listener, (const struct sockaddr *)&addr, 0) ||
        uv_listen((uv_stream_t *)&listener, 1024, on_connection))
        return 1;
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
