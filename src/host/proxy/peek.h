// SPDX-License-Identifier: Apache-2.0
/* peek.h — one word out of the beginning of a JSON text that passes by. */
#pragma once

#include "base/str.h"

#define PEEK_BYTES 4096 /* no search goes further */

/* The value of a member of an object that is nested so deep (1: the outermost), if it is a plain
 * string and all of it is there. Empty otherwise; nothing is said of the rest of the text. */
struct str peek_member(struct str text, unsigned depth, struct str key);
