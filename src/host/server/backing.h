// SPDX-License-Identifier: Apache-2.0
/* backing.h — which backend a server's sandboxes are of, and what those that are not `native` need
 * instead of a launcher. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

struct layout;
struct proxy_config;
struct sbx_host;
struct settings;
struct tls_client;

struct backing {
    struct tls_client *tls; /* to another server; NULL: nobody needs it */
    int guest;              /* croft-guest; -1: nobody needs it */
};

bool backing_is_native(const struct settings *s);
/* What only native sandboxes can have is refused, not missed later. */
fallible backing_check(const struct settings *s);
/* The state is this backend's from now on; ERR_CONFLICT: it is another's. */
fallible backing_claim(const struct layout *l, struct str backend);
/* CROFT_CA_FILE of envp has the certificates to trust; without it the system's are. */
fallible backing_open(struct backing *b, struct str backend, const char *const *envp,
                      struct proxy_config *proxy);
/* What its driver is lent, beside what all get. */
fallible backing_lend(struct backing *b, struct str backend, struct str guest,
                      struct sbx_host *host);
void backing_close(struct backing *b);
