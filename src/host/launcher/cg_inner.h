// SPDX-License-Identifier: Apache-2.0
/* cg_inner.h — between cg.c and cg_open.c. */
#pragma once

#include "host/launcher/cg.h"

bool cg_put(const struct cg *cg, int dir, const char *file, const char *text);
