// SPDX-License-Identifier: Apache-2.0
/* python.h — the kernel of the server's Python cells. */
#pragma once

#include "base/err.h"

struct exec;
struct kernel;

/* Made by the first call; its process is started by its first cell. */
fallible python_kernel(struct exec *e, struct kernel **ret_kernel);
