// SPDX-License-Identifier: Apache-2.0
/* fence.h — for a child that copies, flattens or sweeps layers, which a guest wrote. From then on
 * it can reach the store of layers and one sandbox's directory, and nothing else of the machine. */
#pragma once

#include "base/err.h"

/* box: the sandbox's directory, -1: none; uppers: where its upper layers are, if not there, -1. out
 * stays open, -1: none. The store exists. */
fallible snaps_fence(int state, int box, int uppers, int out);
