// SPDX-License-Identifier: Apache-2.0
/* yaml_reader.h — what the files of the YAML reader share; nobody else includes it. */
#pragma once

#include "host/config/yaml.h"

/* What a plain scalar, or one under a !!tag, means; NULL in *ret_value when it does not fit the
 * tag. tag is "" for a plain scalar, else the part after "tag:yaml.org,2002:". */
fallible yaml_resolve(struct arena *a, struct str text, struct str tag, struct json **ret_value);
