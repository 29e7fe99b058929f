// SPDX-License-Identifier: Apache-2.0
/* fault_test.c — every allocation and system call of a request's way fails once: the client gets an
 * answer or an end, nothing is left behind, and the next request goes through. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/proxy/proxy.h"
#include "test/proxy_kit.h"
#include "test/test.h"

#define HOST "Host: 127.0.0.1\r\n"

/* By bare calls: the fault must strike the proxy, or the sandbox's server. */
static int dial_bare(uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = (int)syscall(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_INT(syscall(SYS_connect, fd, &a, sizeof a), 0);
    return fd;
}

/* False: there is no n-th call. */
static bool run_fault(struct str request, unsigned n)
{
    struct web_client c;
    struct pkit k;

    pkit_open(&k, NULL, NULL, 0);
    unsigned before = test_open_fds();
    web_client_init(&c, dial_bare(k.t.port), 1u << 20);
    fault_at(n);
    for (int i = 0; i < 4; i++) /* what cannot be accepted is tried again */
        web_pass(&k.web, 100);
    bool sent = web_send(&k.web, &c, request);
    for (int i = 0; i < 30; i++)
        web_pass(&k.web, 500);
    bool fired = fault_fired();
    fault_at(0);
    web_read(&k.web, &c);
    CHECK(c.len || c.eof || c.errnum || !sent);
    CHECK(!c.len || str_starts(str_n(c.p, c.len), STR("HTTP/1.1 ")));
    web_close_client(&c);
    for (int i = 0; i < 20; i++)
        web_pass(&k.web, 60000);
    CHECK_INT(k.t.open, 0);
    CHECK_INT(test_open_fds(), before);
    CHECK_INT(pkit_ask(&k, STR("GET / HTTP/1.1\r\n" HOST "\r\n")).status, 200);
    pkit_close(&k);
    return fired;
}

static void run_all(struct str request)
{
    unsigned n = 1;

    while (run_fault(request, n))
        n++;
    CHECK(n > 20 && n < 2000);
}

TEST_LIMIT(a_request_survives_every_fault_on_its_way, 120)
{
    run_all(STR("GET /a HTTP/1.1\r\n" HOST "\r\n"));
}

TEST_LIMIT(an_upload_survives_every_fault_on_its_way, 120)
{
    run_all(STR("POST /take HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                "5\r\nhello\r\n0\r\n\r\n"));
}

TEST_LIMIT(a_download_survives_every_fault_on_its_way, 120)
{
    run_all(STR("GET /stream?400000 HTTP/1.1\r\n" HOST "\r\n"));
}
