// SPDX-License-Identifier: Apache-2.0
/* pyrepr.h — a JSON tree as Python's repr() prints it.
 *
 * Some texts of the protocol are Python values in disguise: the `errors` string of a refused
 * request, the message of an MCP action. The characters that print as themselves are those of
 * Python 3.12 (Unicode 15.0). */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"

void pyrepr_add(struct buf *out, const struct json *v); /* NULL prints None */
void pyrepr_add_str(struct buf *out, struct str s);     /* quotes chosen as Python does */
bool pyrepr_is_printable(uint32_t cp);                  /* str.isprintable() of one character */
