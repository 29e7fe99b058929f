// SPDX-License-Identifier: Apache-2.0
/* patch.h — the lines of 'croft diff --patch', as patch(1) takes them. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

struct change;
struct changes_source;

/* Adds what the change did to a file's lines; in words where it has none to show: links, devices,
 * binary files, those over PATCH_FILE_MAX, and what is no longer there. */
#define PATCH_FILE_MAX (1u << 20)
fallible patch_put(struct buf *out, const struct changes_source *src, const struct change *c);
