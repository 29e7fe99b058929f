// SPDX-License-Identifier: Apache-2.0
/* binary.h — whether a file looks binary, judged as binaryornot 0.4.4 does from its name and its
 * first bytes. Where that asks a charset detector we ask whether it is UTF-8 or marked UTF-16. */
#pragma once

#include <stdbool.h>

#include "guest/edit/edit.h"

#define BINARY_LOOK_BYTES 1024

bool binary_bytes(struct str start); /* at most BINARY_LOOK_BYTES of it are looked at */
bool binary_name(struct str path);
/* Missing, unreadable and empty files are text. */
bool binary_file(const struct edit_space *s, struct str path);
