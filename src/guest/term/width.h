// SPDX-License-Identifier: Apache-2.0
/* width.h — how many columns a character takes: 0 (joins the one before), 1 or 2. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

unsigned term_width(uint32_t cp);
/* Whether a zero-width joiner or a skin tone ties this to its neighbour. */
bool term_width_is_pictograph(uint32_t cp);
