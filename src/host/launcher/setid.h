// SPDX-License-Identifier: Apache-2.0
/* setid.h — set-id bits and file capabilities that a sandbox left in a writable directory of the
 * host's, where they would run as root. They are taken off when it has ended. */
#pragma once

#include <stdint.h>

#include "base/err.h"

/* Takes set-id bits off regular files below source (O_PATH; or that file itself) that changed
 * since. */
fallible setid_strip(int source, uint64_t since_wall_ns);
