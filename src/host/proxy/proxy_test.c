// SPDX-License-Identifier: Apache-2.0
/* proxy_test.c — requests through the proxy and their answers; who is found by what; refusals. */
#include "host/proxy/proxy.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test/proxy_kit.h"
#include "test/test.h"

#define REQ(method, path, headers)                                                                 \
    STR(method " " path " HTTP/1.1\r\nHost: 127.0.0.1\r\n" headers "\r\n")
#define AT(host, path, headers) STR("GET " path " HTTP/1.1\r\nHost: " host "\r\n" headers "\r\n")

TEST(a_request_goes_in_without_keys_and_hop_by_hop_headers)
{
    struct pkit k;

    pkit_open(&k, NULL, NULL, 0);
    struct web_answer a = pkit_ask(
        &k, STR("POST /a%2Fb?c=d HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: secret\r\n"
                "X-Session-API-Key: theirs\r\nTE: trailers\r\nX-Drop: 1\r\nX-Keep: 2\r\n"
                "Connection: x-drop, keep-alive\r\nAuthorization: Bearer croft_abc\r\n"
                "Accept: a\r\nAccept: b\r\nKeep-Alive: 3\r\nContent-Length: 5\r\n\r\nhello"));
    CHECK_STR(a.body, "POST /a%2Fb?c=d\nHost: 127.0.0.1\nX-Session-API-Key: theirs\nX-Keep: 2\n"
                      "Accept: a\nAccept: b\nX-Forwarded-For: 127.0.0.1\n"
                      "X-Forwarded-Host: 127.0.0.1\nX-Forwarded-Proto: http\n"
                      "Content-Length: 5\n\nhello");
    a = pkit_ask(&k, REQ("GET", "/", "Authorization: Bearer other\r\n"));
    CHECK_HAS(a.body, "Authorization: Bearer other\n");
    pkit_close(&k);
}

TEST(answers_pass_with_their_own_heads)
{
    static const struct raw_script script = {
        .answers = {STR_INIT(
            "HTTP/1.1 201 Made It\r\nDate: then\r\nServer: theirs\r\nX-A: 1\r\nX-A: 2\r\n"
            "Connection: x-b\r\nX-B: gone\r\nKeep-Alive: 5\r\nContent-Length: 5\r\n\r\nhello")}};
    struct pkit k;

    pkit_open(&k, NULL, &script, 1);
    struct web_answer a = pkit_ask(&k, REQ("GET", "/x", ""));
    CHECK_STR(a.head, "HTTP/1.1 201 Made It\r\ncontent-length: 5\r\nDate: then\r\n"
                      "Server: theirs\r\nX-A: 1\r\nX-A: 2\r\n\r\n");
    CHECK_STR(a.body, "hello");
    pkit_close(&k);
}
