// SPDX-License-Identifier: Apache-2.0
/* What a shell writes into its FIFO, and the counter of killed processes: any program inside can
 * write the one, and the other comes from a file. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "guest/held/held.h"
#include "guest/shell/shell_inner.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size ? size : 1);
    struct str rest = str_n(copy, size);

    memcpy(copy, data, size);
    held_parse_oom(rest);
    for (;;) {
        struct shell_report r;
        bool ok;
        size_t used = shell_report_parse(rest, &r, &ok);
        if (used > rest.len)
            abort();
        if (used == 0)
            break;
        if (ok && (r.pid <= 0 || r.exit_code < 0 || r.exit_code > 255 ||
                   r.sequence.len + r.path.len + r.working_dir.len > used))
            abort();
        rest = str_from(rest, used);
    }
    free(copy);
    return 0;
}
