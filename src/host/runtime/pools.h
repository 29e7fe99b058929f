// SPDX-License-Identifier: Apache-2.0
/* pools.h — the pools of the settings, at the start and when they are read anew.
 *
 * Without any there is one, named "default", of the host's own system. */
#pragma once

#include "base/err.h"

struct manager;
struct settings;

fallible pools_open(struct manager *m, const struct settings *settings);
fallible pools_check(struct manager *m, const struct settings *settings); /* could they be? */
/* Those that are there and not in the settings any more. */
void pools_drop(struct manager *m, const struct settings *settings);
