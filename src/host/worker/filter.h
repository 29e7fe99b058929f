// SPDX-License-Identifier: Apache-2.0
/* filter.h — the system calls a worker may make; every other is answered EPERM. */
#pragma once

#include "base/err.h"

fallible filter_install(void); /* needs no_new_privs; for good */
