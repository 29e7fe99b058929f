// SPDX-License-Identifier: Apache-2.0
/* env.h — environments as execve takes them, and programs found by the PATH in one. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

/* Value in an environment, or NULL. */
const char *proc_env_get(char *const *env, const char *name);
/* A copy with more variables in front ("NAME=value"); what they name in env is left out. */
char **proc_env_with(struct arena *a, char *const *env, char *const *more);
/* The path of a program: itself if it holds a slash, else the first in PATH of env. */
fallible proc_find_program(struct arena *a, const char *name, char *const *env,
                           const char **ret_path);
