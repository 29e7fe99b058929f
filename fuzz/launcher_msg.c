// SPDX-License-Identifier: Apache-2.0
/* launcher_msg.c — what passes the launcher's check is terminated, plain and known. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/native/msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void plain(const char *s, size_t max)
{
    if (!memchr(s, '\0', max) || strstr(s, "/../") || strstr(s, "//"))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct native_request r = {0};

    /* The size itself is checked first; what follows is reached with the right one. */
    err_free(native_check(data, size == sizeof r ? size + 1 : size));
    memcpy(&r, data, size < sizeof r ? size : sizeof r);
    struct err *e = native_check(&r, sizeof r);
    if (!e) { /* file names, both */
        plain(r.snapshot, sizeof r.snapshot);
        if (strchr(r.snapshot, '/') || r.snapshot[0] == '.')
            abort();
    }
    if (!e && (!memchr(r.image_name, '\0', sizeof r.image_name) || r.image_name[0] == '/' ||
               strpbrk(r.image_name, " \n\"\\")))
        abort();
    if (!e && r.op == NATIVE_START) {
        plain(r.id, sizeof r.id);
        plain(r.hostname, sizeof r.hostname);
        for (unsigned i = 0; i < NATIVE_MOUNTS; i++) {
            if (!r.mounts[i].mode)
                continue;
            plain(r.mounts[i].path, NATIVE_PATH_MAX);
            plain(r.mounts[i].target, NATIVE_PATH_MAX);
            if (r.mounts[i].path[0] == '/' || r.mounts[i].target[0] != '/')
                abort();
        }
    }
    err_free(e);
    return 0;
}
