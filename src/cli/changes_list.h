// SPDX-License-Identifier: Apache-2.0
/* changes_list.h — 'croft diff --list': every sandbox that has left changes. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

fallible changes_list(int state, bool json, struct buf *out);
