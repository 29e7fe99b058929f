// SPDX-License-Identifier: Apache-2.0
/* shell_keys.h — input as keys: "C-c" is a control character, any other text is typed and entered.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

/* The lower-case x of "C-x", 0 if text is anything else. */
char shell_keys_control(struct str text);
/* named: UP, ENTER and their like are keys too. tty: how Enter must be typed depends on its mode.
 */
void shell_keys_bytes(struct buf *b, struct str text, bool named, int tty);
/* One key; false if there is none of that name. */
bool shell_keys_one(struct buf *b, struct str key);
