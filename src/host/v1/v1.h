// SPDX-License-Identifier: Apache-2.0
/* v1.h — /croft/v1: what croft adds to the Runtime API. The same runtimes, by the same rules. */
#pragma once

#include <stddef.h>

#include "net/router.h"

extern const struct route v1_routes[];
extern const size_t v1_route_count;
