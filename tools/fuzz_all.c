// SPDX-License-Identifier: Apache-2.0
/* fuzz_all.c — gives libFuzzer the target that FUZZ_TARGET names, of all in fuzz/. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int target_fn(const uint8_t *data, size_t size);

#define TARGET(name) target_fn fuzz_##name;
TARGETS
#undef TARGET

static const struct {
    const char *name;
    target_fn *run;
} targets[] = {
#define TARGET(name) {#name, fuzz_##name},
    TARGETS
#undef TARGET
};

static target_fn *target;

target_fn LLVMFuzzerTestOneInput;
int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *name = getenv("FUZZ_TARGET");

    (void)argc;
    (void)argv;
    for (size_t i = 0; name && i < sizeof targets / sizeof *targets; i++)
        if (strcmp(targets[i].name, name) == 0)
            target = targets[i].run;
    if (target)
        return 0;
    fprintf(stderr, "fuzz: FUZZ_TARGET '%s' is no file in fuzz/\n", name ? name : "");
    exit(2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return target(data, size);
}
