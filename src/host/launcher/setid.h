// SPDX-License-Identifier: Apache-2.0
/* setid.h — what a sandbox of root's left in a directory of the host's, mounted writable, that
 * would run there as root: set-id bits and file capabilities. They are taken off when it has ended.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"

/* Of regular files below source (O_PATH; or that file itself) that changed since then. */
fallible setid_strip(int source, uint64_t since_wall_ns);
