// SPDX-License-Identifier: Apache-2.0
/* setup.h — the cells we run for ourselves: the first of a kernel, and the change of directory. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

/* Its output ends in the path of the interpreter. Leaves `sys` behind, as the original does. */
void setup_put_first(struct buf *code, bool magics, bool skills);
void setup_put_chdir(struct buf *code, struct str cwd);
/* The last line of what the first cell printed. */
struct str setup_interpreter(struct str printed);
