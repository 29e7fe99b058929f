// SPDX-License-Identifier: Apache-2.0
/* yaml_reader.h — shared by the files of the YAML reader, included by no other. */
#pragma once

#include "host/config/yaml.h"

/* The value of a plain scalar, or of one under a !!tag; NULL in *ret_value when it does not fit the
 * tag. tag is "" for a plain scalar, else the part after "tag:yaml.org,2002:". */
fallible yaml_resolve(struct arena *a, struct str text, struct str tag, struct json **ret_value);
