// SPDX-License-Identifier: Apache-2.0
/* history.h — the bytes files had before they were edited, on disk, newest last.
 *
 * A directory per path (named by its hash) holds numbered files. At most HISTORY_PER_PATH stay for
 * a path and HISTORY_PATHS paths; the oldest go first. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define HISTORY_PER_PATH 10
#define HISTORY_PATHS    256

/* dir is a private directory held open. Nothing is kept of a push that fails. */
fallible history_push(int dir, struct str path, struct str data);
/* Appends the newest entry, which stays until history_drop. */
fallible history_last(int dir, struct str path, struct buf *into, bool *ret_found);
fallible history_drop(int dir, struct str path); /* the newest; none is fine */
