// SPDX-License-Identifier: Apache-2.0
/* yaml.h — YAML 1.1 as PyYAML's safe_load reads it, into the same tree as JSON.
 *
 * yes/no/on/off are booleans, 010 is eight, 1:30 is ninety. Dates and times stay strings. Keys that
 * are not strings become the text json.dumps would give them. Aliases are copied out, up to a limit
 * on the whole tree. */
#pragma once

#include "base/json.h"

#define YAML_MAX_SIZE  (4u << 20)
#define YAML_MAX_DEPTH 128
#define YAML_MAX_NODES 200000u /* of the tree, aliases expanded */

/* One document; none gives null. Errors name line and column, or the byte that is not UTF-8. */
fallible yaml_parse(struct arena *a, struct str text, struct json **ret_value);
