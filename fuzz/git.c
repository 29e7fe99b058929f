// SPDX-License-Identifier: Apache-2.0
/* git.c — what git says, file names of strangers included, as JSON that reads back. */
#include "base/json.h"
#include "guest/exec/actions/run/git.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str s = str_n(data, size), printed;
    struct git_ask ask;
    struct arena a;
    struct json *v;

    arena_init(&a, 64u << 20);
    git_parse(s, &ask);
    struct err *e = git_print_changes(&a, s, &printed);
    if (!e)
        e = json_parse(&a, printed, NULL, &v);
    if (!e && git_print_diff(&a, s, &printed))
        e = json_parse(&a, printed, NULL, &v);
    if (e)
        __builtin_trap();
    arena_done(&a);
    return 0;
}
