// SPDX-License-Identifier: Apache-2.0
/* resolve_dns_test.c — the small resolver against a name server of our own, on loopback. */
#include "net/resolve_dns.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "loop/loop.h"
#include "test/test.h"

struct fix {
    struct loop *loop;
    struct loop_io io;
    int fd;
    char hosts[128], servers[128];
    struct resolve_dns_config config;
    char asked[2000]; /* names in the order they were asked for A */
    unsigned broken;  /* questions still to be answered with a failure */
    bool silent;
    bool done;
    struct err *e;
    char got[400];
};

static void name_of(const unsigned char *p, char *out)
{
    for (; *p; p += *p + 1) {
        memcpy(out, p + 1, *p);
        out += *p;
        *out++ = p[*p + 1] ? '.' : '\0';
    }
}

/* good.example has both kinds of address behind an alias; everything else is unknown. */
static size_t make_answer(struct fix *f, unsigned char *m, size_t n)
{
    static const unsigned char alias[] = {0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 9, 0, 2, 0xc0, 12};
    char name[300];
    unsigned type = m[n - 3];

    name_of(m + 12, name);
    m[2] = 0x81;
    m[3] = 0x80;
    if (type == DNS_A) {
        strcat(f->asked, name);
        strcat(f->asked, " ");
    }
    if (f->broken) {
        f->broken--;
        m[3] |= 2;
        return n;
    }
    if (strcasecmp(name, "good.example") != 0) {
        m[3] |= 3;
        return n;
    }
    m[7] = 2;
    memcpy(m + n, alias, sizeof alias);
    n += sizeof alias;
    unsigned char record[] = {0xc0, 12, 0, (unsigned char)type, 0, 1, 0, 0, 0, 9, 0, 4};
    struct in6_addr six;
    inet_pton(AF_INET6, "2001:db8::7", &six);
    record[11] = type == DNS_A ? 4 : 16;
    memcpy(m + n, record, sizeof record);
    n += sizeof record;
    memcpy(m + n, type == DNS_A ? (const void *)"\x0a\1\2\3" : &six, record[11]);
    return n + record[11];
}

static void on_question(struct loop_io *io)
{
    struct fix *f = container_of(io, struct fix, io);
    unsigned char m[700];
    struct sockaddr_storage from;
    socklen_t len = sizeof from;
    ssize_t n = recvfrom(f->fd, m, 512, 0, (struct sockaddr *)&from, &len);

    if (n <= 16 || f->silent)
        return;
    size_t size = make_answer(f, m, (size_t)n);
    m[0] ^= 1; /* to another question: must not count */
    sendto(f->fd, m, size, 0, (struct sockaddr *)&from, len);
    m[0] ^= 1;
    sendto(f->fd, m, size, 0, (struct sockaddr *)&from, len);
}

static void on_done(void *owner, struct err *e, const struct resolve_addrs *addrs)
{
    struct fix *f = owner;
    char text[64];

    f->done = true;
    f->e = e;
    for (size_t i = 0; addrs && i < addrs->count; i++) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)&addrs->at[i].addr;
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)v4;
        bool four = v4->sin_family == AF_INET;
        inet_ntop(v4->sin_family, four ? (const void *)&v4->sin_addr : &v6->sin6_addr, text,
                  sizeof text);
        size_t at = strlen(f->got);
        snprintf(f->got + at, sizeof f->got - at, "%s %u,", text, ntohs(v4->sin_port));
    }
}

static void fix_open(struct fix *f, const char *hosts, const char *servers)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;

    *f = (struct fix){.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    CHECK(bind(f->fd, (struct sockaddr *)&addr, len) == 0);
    CHECK(getsockname(f->fd, (struct sockaddr *)&addr, &len) == 0);
    CHECK_OK(loop_new(&clock_system, &f->loop));
    CHECK_OK(loop_io_start(f->loop, &f->io, f->fd, EPOLLIN, on_question));
    snprintf(f->hosts, sizeof f->hosts, "%s/hosts", test_dir());
    snprintf(f->servers, sizeof f->servers, "%s/resolv.conf", test_dir());
    FILE *h = fopen(f->hosts, "we"), *s = fopen(f->servers, "we");
    CHECK(h && s);
    fputs(hosts, h);
    fputs(servers, s);
    fclose(h);
    fclose(s);
    f->config = (struct resolve_dns_config){f->hosts, f->servers, ntohs(addr.sin_port), 60000};
}

static void fix_close(struct fix *f)
{
    loop_io_stop(&f->io);
    close(f->fd);
    err_free(f->e);
    loop_free(f->loop);
}

static const char *resolve(struct fix *f, const char *host)
{
    struct resolve_dns *r = NULL;

    err_free(f->e);
    f->e = NULL;
    f->done = false;
    f->got[0] = f->asked[0] = '\0';
    CHECK_OK(resolve_dns_start(f->loop, &f->config, str_of(host), 80, on_done, f, &r));
    CHECK(!f->done);
    while (!f->done)
        CHECK_OK(loop_turn(f->loop, -1));
    return f->e ? err_text(f->e) : f->got;
}

TEST(a_name_is_found_in_the_hosts_file_or_by_a_name_server)
{
    struct fix f;

    fix_open(&f, "# none\n10.9.8.7 one two # three\n::2\tTWO\nnonsense four\n",
             "nameserver 127.0.0.1\nsearch a.test  example\n");
    CHECK_STR(resolve(&f, "one"), "10.9.8.7 80,");
    CHECK_STR(resolve(&f, "Two"), "10.9.8.7 80,::2 80,");
    CHECK_STR(f.asked, "");
    CHECK_STR(resolve(&f, "good.example"), "10.1.2.3 80,2001:db8::7 80,");
    CHECK_STR(f.asked, "good.example ");
    CHECK_STR(resolve(&f, "good"), "10.1.2.3 80,2001:db8::7 80,");
    CHECK_STR(f.asked, "good.a.test good.example ");
    CHECK_HAS(resolve(&f, "bad.name"), "resolve 'bad.name': there is no such name");
    CHECK_STR(f.asked, "bad.name bad.name.a.test bad.name.example ");
    CHECK_HAS(resolve(&f, "three."), "no such name");
    CHECK_STR(f.asked, "three ");
    CHECK_HAS(resolve(&f, "a..b"), "no such name");
    fix_close(&f);
}

TEST(a_name_server_that_fails_or_is_away_gives_way_to_the_next)
{
    struct fix f;
    struct resolve_dns *r = NULL;

    fix_open(&f, "", "nameserver 127.0.0.2\nnameserver 127.0.0.1\noptions ndots:2\nsearch x\n");
    CHECK_STR(resolve(&f, "good.example."), "10.1.2.3 80,2001:db8::7 80,");
    CHECK_STR(resolve(&f, "good.example"), "10.1.2.3 80,2001:db8::7 80,");
    CHECK_STR(f.asked, "good.example.x good.example ");
    f.broken = 1;
    CHECK_STR(resolve(&f, "good.example."), "10.1.2.3 80,2001:db8::7 80,");
    f.broken = 1000;
    CHECK_HAS(resolve(&f, "good.example."), "no name server answers");
    f.broken = 0;
    f.silent = true;
    f.config.wait_ms = 1;
    CHECK_HAS(resolve(&f, "good.example."), "no name server answers");
    f.done = false;
    CHECK_OK(resolve_dns_start(f.loop, &f.config, STR("good.example"), 80, on_done, &f, &r));
    CHECK_OK(loop_turn(f.loop, 0));
    resolve_dns_cancel(r);
    CHECK(!f.done);
    CHECK_ERR(resolve_dns_start(f.loop, &f.config, STR(""), 80, on_done, &f, &r), ERR_INVALID, "");
    fix_close(&f);
}
