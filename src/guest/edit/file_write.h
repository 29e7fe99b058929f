// SPDX-License-Identifier: Apache-2.0
/* file_write.h — the `write` action: a file made whole, or a range of its lines replaced.
 *
 * Every piece between \n is a line, so one newline is always added at the end. */
#pragma once

#include <stdint.h>

#include "guest/edit/edit.h"

struct file_write_args {
    struct str path, content;
    int64_t start, end; /* old[:start] stays before the new lines and, unless end is -1, old[end:]
                           after them; negative ones count from the end as in Python */
};

/* The error is for want of memory only; all else is a result. */
fallible file_write(const struct edit_space *s, const struct file_write_args *args, struct arena *a,
                    struct edit_result *ret_result);
