// SPDX-License-Identifier: Apache-2.0
/* toml.h — TOML 1.0, whole, read into the same tree as JSON.
 *
 * Dates and times become strings as written, with a capital T between and Z at the end. inf and
 * nan are doubles. Errors name line and column. */
#pragma once

#include "base/json.h"

#define TOML_MAX_SIZE  (4u << 20)
#define TOML_MAX_DEPTH 128

/* The tree points into text: keep it alive as long as the arena. */
fallible toml_parse(struct arena *a, struct str text, struct json **ret_table);
