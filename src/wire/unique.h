// SPDX-License-Identifier: Apache-2.0
/* unique.h — members that are there twice. JSON leaves open which counts, and readers differ: what
 * one of them checked is not what another one does. */
#pragma once

#include "base/json.h"

/* tree is what was made of text, with one member of each name. ERR_UNPROCESSABLE names the first
 * that text has twice: "environment.A: it is there twice". */
fallible wire_check_unique(struct str text, const struct json *tree);
