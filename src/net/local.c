// SPDX-License-Identifier: Apache-2.0
/* local.c — see local.h. */
#include "net/local.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "net/server.h"

/* Without the port and the brackets; empty when it is not of that form. */
static struct str local_bare(struct str host)
{
    struct str port;
    uint64_t n;
    ptrdiff_t end = str_starts(host, STR("[")) ? str_find_char(host, ']') : 0;

    if (end < 0)
        return STR("");
    ptrdiff_t colon = str_find_char(str_from(host, (size_t)end), ':');
    port = colon < 0 ? STR("") : str_from(host, (size_t)(end + colon + 1));
    if (port.len && (!str_to_u64(port, &n) || n > UINT16_MAX))
        return STR("");
    if (end > 0)
        return colon > 1 || (colon < 0 && (size_t)end + 1 != host.len)
                   ? STR("")
                   : str_from(str_first(host, (size_t)end), 1);
    return colon < 0 ? host : str_first(host, (size_t)colon);
}

bool local_is_name(struct str host)
{
    struct sockaddr_storage a = {0};
    socklen_t len;

    host = local_bare(host);
    if (str_eq_nocase(host, STR("localhost")) ||
        (host.len > 10 && str_eq_nocase(str_from(host, host.len - 10), STR(".localhost"))))
        return true;
    if (!addr_numeric(host, 0, &a, &len))
        return false;
    if (a.ss_family == AF_INET)
        return ntohl(((struct sockaddr_in *)&a)->sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)&a)->sin6_addr);
}

static fallible net_local_check(const char *what, struct str host, struct str shown)
{
    if (local_is_name(host))
        return NULL;
    return err_new(ERR_FORBIDDEN,
                   "%s '" STR_FMT "' is not this machine; only a server with a key answers others",
                   what, STR_ARG(str_first(shown, 80)));
}

fallible local_check(const struct http_req *req)
{
    struct str host = http_req_header(req, STR("host"));
    struct str origin = http_req_header(req, STR("origin"));

    if (host.p)
        TRY(net_local_check("Host", host, host));
    if (!origin.p)
        return NULL;
    ptrdiff_t at = str_find(origin, STR("://"));
    struct str rest = at < 0 ? STR("") : str_from(origin, (size_t)at + 3);
    return net_local_check("Origin", rest, origin);
}
