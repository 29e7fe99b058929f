// SPDX-License-Identifier: Apache-2.0
/* wipe.h — removes a directory with all in it, however a guest has left it: deep, unreadable, or
 * with names made to lead elsewhere. Follows no link and crosses no mount. */
#pragma once

#include "base/err.h"

fallible wipe(int parent, const char *name); /* what is not there is fine */
