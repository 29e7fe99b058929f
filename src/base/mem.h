// SPDX-License-Identifier: Apache-2.0
/* mem.h — memory of sizes we chose, and of sizes a peer caused.
 *
 * mem_new aborts: a program that cannot have a hundred bytes at start has nothing to say.
 * Whatever a peer can cause (a connection, a request, a buffer) asks with mem_try. */
#pragma once

#include <stddef.h>

void *mem_new(size_t size) __attribute__((malloc, returns_nonnull, alloc_size(1)));
void *mem_try(size_t size) __attribute__((malloc, alloc_size(1), warn_unused_result));
/* Gives used pages of the stack below the caller back to the machine: for a process about to
 * wait. */
void mem_trim_stack(void);
char *mem_dup_cstr(const char *s) __attribute__((malloc, returns_nonnull));
