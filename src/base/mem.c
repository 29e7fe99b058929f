// SPDX-License-Identifier: Apache-2.0
/* mem.c — cleared memory; see mem.h for when it may abort. */
#include "base/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void *or_abort(void *p, size_t size)
{
    if (p)
        return p;
    char text[64];
    int n = snprintf(text, sizeof text, "croft: out of memory (%zu bytes)\n", size);
    ssize_t said = write(STDERR_FILENO, text, (size_t)n);
    (void)said; /* nothing more can be done */
    abort();
}

void *mem_new(size_t size)
{
    return or_abort(calloc(1, size), size);
}

void *mem_try(size_t size)
{
    return calloc(1, size);
}

char *mem_dup_cstr(const char *s)
{
    size_t size = strlen(s) + 1;
    return memcpy(mem_new(size), s, size);
}

/* The page we are in is left; nothing else is ever mapped near. */
__attribute__((noinline)) void mem_trim_stack(void)
{
    const uintptr_t page = 4096, deep = 64 * page;
    uintptr_t end = ((uintptr_t)__builtin_frame_address(0) - 512) & ~(page - 1);

    madvise((void *)(end - deep), deep, MADV_DONTNEED); /* where there is no stack: none to give */
}
