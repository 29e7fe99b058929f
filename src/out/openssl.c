// SPDX-License-Identifier: Apache-2.0
/* openssl.c — see openssl.h. */
#include "out/openssl.h"

#include <dlfcn.h>
#include <string.h>

#include "base/mem.h"

#define LIBRARY "libssl.so.3"

struct openssl openssl;

#define OPENSSL_NAME(name) #name,
static const char *const names[] = {OPENSSL_FUNCTIONS(OPENSSL_NAME)};

_Static_assert(sizeof openssl == sizeof names, "a slot for each name, in the same order");

fallible openssl_load(void)
{
    struct openssl fresh;

    if (OPENSSL_init_ssl)
        return NULL;
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return err_new(ERR_UNSUPPORTED, "TLS needs OpenSSL 3 (%s): install libssl3", dlerror());
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        void *at = dlsym(library, names[i]);
        if (!at) {
            dlclose(library);
            return err_new(ERR_UNSUPPORTED, "TLS needs another OpenSSL: " LIBRARY " has no %s",
                           names[i]);
        }
        memcpy((char *)&fresh + i * sizeof at, &at, sizeof at);
    }
    openssl = fresh; /* and stays until the process ends */
    return NULL;
}
