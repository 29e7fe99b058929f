// SPDX-License-Identifier: Apache-2.0
/* dns.c — questions and answers of RFC 1035, as much as an address needs; see resolve_dns.h. */
#include <netinet/in.h>

#include "base/own.h"
#include "net/resolve_dns.h"

#define HEAD      12u
#define LABEL_MAX 63u
#define NAME_MAX_ 253u
#define POINTER   0xc0u
#define FIXED     10u /* type, class, time to live and length of a record */

static unsigned dns_get16(const char *p)
{
    return (unsigned)(uint8_t)p[0] << 8 | (uint8_t)p[1];
}

static unsigned char *dns_put16(unsigned char *p, unsigned n)
{
    *p++ = (unsigned char)(n >> 8);
    *p++ = (unsigned char)n;
    return p;
}

size_t dns_query(struct str host, uint16_t id, uint16_t type, unsigned char out[DNS_QUERY_MAX])
{
    static const unsigned char asked[] = {1, 0, 0, 1, 0, 0, 0, 0, 0, 0}; /* once, recursively */
    unsigned char *p = dns_put16(out, id);
    struct str label;

    if (str_ends(host, STR(".")))
        host = str_first(host, host.len - 1);
    if (!host.len || host.len > NAME_MAX_)
        return 0;
    memcpy(p, asked, sizeof asked);
    p += sizeof asked;
    while (str_cut(&host, '.', &label) || label.len) {
        if (!label.len || label.len > LABEL_MAX)
            return 0;
        *p++ = (unsigned char)label.len;
        memcpy(p, label.p, label.len);
        p += label.len;
    }
    *p++ = 0;
    p = dns_put16(dns_put16(p, type), 1);
    return (size_t)(p - out);
}

/* False when it does not end within the message. */
static bool skip_name(struct str *s)
{
    while (s->len) {
        unsigned n = (uint8_t)s->p[0];
        unsigned skip = n >= POINTER ? 2 : n + 1;
        if (skip > s->len)
            return false;
        *s = str_from(*s, skip);
        if (n == 0 || n >= POINTER)
            return true;
    }
    return false;
}

static void add_address(struct resolve_addrs *into, struct str data, uint16_t port)
{
    if (into->count == RESOLVE_MAX)
        return;
    struct sockaddr_storage *addr = &into->at[into->count].addr;
    struct sockaddr_in *v4 = (struct sockaddr_in *)addr;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)addr;
    bool four = data.len == sizeof v4->sin_addr;

    *addr = (struct sockaddr_storage){.ss_family = four ? AF_INET : AF_INET6};
    memcpy(four ? (void *)&v4->sin_addr : (void *)&v6->sin6_addr, data.p, data.len);
    v4->sin_port = htons(port); /* at the same place in both */
    into->at[into->count++].len = four ? sizeof *v4 : sizeof *v6;
}

enum dns_answer dns_read(struct str answer, struct str query, uint16_t port,
                         struct resolve_addrs *into)
{
    if (answer.len < query.len || query.len < HEAD || memcmp(answer.p, query.p, 2) != 0 ||
        !(answer.p[2] & 0x80) ||
        !str_eq_nocase(str_first(str_from(answer, HEAD), query.len - HEAD), str_from(query, HEAD)))
        return DNS_FOREIGN;
    unsigned code = answer.p[3] & 15, count = dns_get16(answer.p + 6);
    if (code != 0 && code != 3) /* 3: there is no such name */
        return DNS_FAILED;
    unsigned type = dns_get16(query.p + query.len - 4);
    for (struct str s = str_from(answer, query.len); count; count--) {
        if (!skip_name(&s) || s.len < FIXED || dns_get16(s.p + 8) > s.len - FIXED)
            break; /* cut off: what came before is good */
        struct str data = str_n(s.p + FIXED, dns_get16(s.p + 8));
        if (dns_get16(s.p) == type && dns_get16(s.p + 2) == 1 &&
            data.len == (type == DNS_A ? 4 : 16))
            add_address(into, data, port);
        s = str_from(s, FIXED + data.len);
    }
    return DNS_ANSWERED;
}
