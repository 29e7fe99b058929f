// SPDX-License-Identifier: Apache-2.0
/* tar_pax.h — extended headers; private to tar.c. */
#pragma once

#include "image/tar.h"

/* Lets the records in t->global and t->pax change the entry, its path and its link. */
fallible tar_pax_apply(struct tar *t);
