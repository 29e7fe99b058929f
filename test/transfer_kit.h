// SPDX-License-Identifier: Apache-2.0
/* transfer_kit.h — a server with the routes of transfer over the test's directory. */
#pragma once

#include "base/rng.h"
#include "guest/transfer/transfer.h"
#include "test/web.h"
#include "test/zip_kit.h"

struct kit {
    struct transfer transfer;
    struct web web;
};

__attribute__((unused)) static void kit_open_web(struct kit *k, bool bounded)
{
    struct http_server_config config = {.ctx = &k->transfer};

    k->transfer = (struct transfer){
        .work_dir = test_dir(), .root_fd = -1, .uid = (uid_t)-1, .gid = (gid_t)-1};
    if (bounded) {
        k->transfer.root = test_dir();
        k->transfer.root_fd = kit_dir();
    }
    web_open(&k->web, NULL, 0, NULL, &config);
    transfer_add_routes(k->web.router, &k->transfer);
    transfer_add_viewer_routes(k->web.router, &k->transfer);
}

__attribute__((unused)) static struct web_answer kit_send(struct kit *k, struct str request)
{
    static struct web_client c;

    web_connect(&k->web, &c, 8u << 20);
    web_send(&k->web, &c, request);
    web_turns(&k->web, 400); /* archives are unpacked a megabyte at a turn */
    struct web_answer a = web_take(&k->web, &c);
    web_close_client(&c);
    web_turns(&k->web, 3);
    return a;
}

__attribute__((unused)) static struct web_answer kit_get(struct kit *k, const char *path,
                                                         const char *query)
{
    own_done(buf) b;

    buf_init(&b, 64u << 10);
    buf_addf(&b, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path);
    if (query) {
        buf_reset(&b);
        buf_addf(&b, "GET %s?path=", path);
        url_encode(&b, str_of(query), true);
        buf_add_cstr(&b, " HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    return kit_send(k, buf_str(&b));
}

/* The path of a name in the test's directory; the last four stay. */
__attribute__((unused)) static const char *kit_path(const char *name)
{
    static char paths[4][400];
    static unsigned next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", test_dir(), name);
    return path;
}

/* A form with one file; query as "destination=…" without escapes. */
__attribute__((unused)) static void kit_form(struct buf *b, const char *query, const char *field,
                                             const char *filename, struct str content)
{
    own_done(buf) body;

    buf_init(&body, 64u << 20);
    buf_addf(&body,
             "--B\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"%s\"\r\n"
             "Content-Type: application/octet-stream\r\n\r\n",
             field, filename);
    buf_add(&body, content);
    buf_add_cstr(&body, "\r\n--B--\r\n");
    buf_init(b, 64u << 20);
    buf_addf(b,
             "POST /upload_file?%s HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; "
             "boundary=B\r\nContent-Length: %zu\r\n\r\n",
             query, body.len);
    buf_add(b, buf_str(&body));
}

__attribute__((unused)) static struct web_answer
kit_upload(struct kit *k, const char *query, const char *filename, struct str content)
{
    own_done(buf) b;

    kit_form(&b, query, "file", filename, content);
    return kit_send(k, buf_str(&b));
}

__attribute__((unused)) static const char *kit_into(const char *name, const char *more)
{
    static char query[600];

    snprintf(query, sizeof query, "destination=%s/%s%s", test_dir(), name, more);
    return query;
}

__attribute__((unused)) static struct str kit_file(const char *name)
{
    static struct buf content;
    own_fd fd = kit_open(name, O_RDONLY);

    buf_done(&content);
    buf_init(&content, 64u << 20);
    CHECK_OK(fd_read_all(fd, &content));
    return buf_str(&content);
}

__attribute__((unused)) static void kit_close_web(struct kit *k)
{
    web_close(&k->web);
}
