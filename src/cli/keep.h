// SPDX-License-Identifier: Apache-2.0
/* keep.h — how long what runs changed is kept: run.keep. */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "cli/cli.h"

/* Drops what is older, and gives that age; 0: nothing is dropped by its age. */
fallible keep_expire(struct cli *cli, int state, uint64_t *ret_keep_ns);
