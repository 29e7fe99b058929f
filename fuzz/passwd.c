// SPDX-License-Identifier: Apache-2.0
/* passwd.c — any bytes as lines of passwd and group: terminated fields, slices inside the line. */
#include <stdlib.h>

#include "base/passwd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = str_n(data, size), line, name, members;
    struct passwd_user u;
    gid_t gid;

    while (rest.len) {
        str_cut(&rest, '\n', &line);
        if (passwd_parse(line, &u) &&
            (!u.name[0] || strlen(u.home) >= sizeof u.home || u.uid == (uid_t)-1))
            abort();
        if (passwd_parse_group(line, &name, &gid, &members) && passwd_lists(members, name) &&
            str_find(members, name) < 0)
            abort();
    }
    return 0;
}
