// SPDX-License-Identifier: Apache-2.0
/* proxy_name.c — a name lies inside what it was found in, an id is an id, and prefix and rest make
 * the path again. Input: a domain, a line end, then a path, a host or a cookie. */
#include "host/proxy/name.h"

#include <stdlib.h>

#include "host/proxy/proxy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_id(struct str id)
{
    if (!id.len || id.len > NAME_ID_MAX)
        abort();
    for (size_t i = 0; i < id.len; i++)
        if (id.p[i] <= ' ' || id.p[i] == '/' || id.p[i] == '%' || id.p[i] == '?')
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = str_n(data, size), domain, label, id;
    char bytes[NAME_ID_MAX];
    struct proxy_name n;
    int service;

    str_cut(&text, '\n', &domain);
    if (name_by_path(text, &n)) {
        check_id(n.id);
        if (n.path.p[0] != '/' || n.service < -1 || n.service >= PROXY_SERVICES)
            abort();
        bool added = n.prefix.len == text.len; /* a slash of our own */
        if (n.prefix.p != text.p || (!added && n.prefix.len + n.path.len != text.len))
            abort();
    }
    if (name_by_host(text, domain, bytes, &label)) {
        check_id(label);
        if (label.p != bytes || label.len + domain.len > text.len)
            abort();
        if (name_split_label(label, &service, &id)) {
            check_id(id);
            if (id.len + name_of_service(service).len + 1 != label.len)
                abort();
        }
    }
    if (name_cookie_path(text, &id) && id.len &&
        (id.p <= text.p || id.p + id.len > text.p + text.len))
        abort();
    return 0;
}
