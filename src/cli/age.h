// SPDX-License-Identifier: Apache-2.0
/* age.h — how long ago something was, in a few characters. */
#pragma once

#include <stdint.h>

#include "base/buf.h"

/* A column: "5s", "90m", "3h", "12d", and "-" for what is not yet. */
void cli_put_age(struct buf *out, uint64_t wall_ns);
/* The same characters for how long something takes, and no column. */
void cli_put_span(struct buf *out, uint64_t ns);
