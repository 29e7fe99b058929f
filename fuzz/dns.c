// SPDX-License-Identifier: Apache-2.0
/* dns — any bytes as the answer to a question of ours, with the question put in front so that more
 * than the first check is reached. */
#include <stdlib.h>

#include "net/resolve_dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char query[DNS_QUERY_MAX], answer[2000];

    for (int type = DNS_A; type <= DNS_AAAA; type += DNS_AAAA - DNS_A) {
        struct resolve_addrs addrs = {0};
        size_t n = dns_query(STR("good.example"), 7, (uint16_t)type, query);
        size_t more = size < sizeof answer - n ? size : sizeof answer - n;
        dns_read(str_n(data, size), str_n(query, n), 1, &addrs);
        memcpy(answer, query, n);
        answer[2] |= 0x80;
        answer[7] = 20;
        memcpy(answer + n, data, more);
        if (dns_read(str_n(answer, n + more), str_n(query, n), 1, &addrs) != DNS_ANSWERED)
            abort();
        if (addrs.count > RESOLVE_MAX)
            abort();
        dns_query(str_n(data, size), 7, (uint16_t)type, query);
    }
    return 0;
}
