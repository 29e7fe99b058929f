// SPDX-License-Identifier: Apache-2.0
/* merge.h — several layers as one directory; private to snaps. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Fills the empty directory with what the layers, topmost first, say together. It stands in for
 * them over any lower directory, so it has their whiteouts and opaque directories. link: files are
 * shared with the layers, which then must never change. Otherwise their bytes are copied, and
 * *copied_bytes, unless it is NULL, grows by them. */
fallible merge_layers(const int *layers, size_t count, bool link, int into, uint64_t *copied_bytes);
