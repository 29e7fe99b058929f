// SPDX-License-Identifier: Apache-2.0
/* utf8.h — UTF-8 as it arrives: whole, in pieces, or broken. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

bool utf8_valid(struct str s); /* RFC 3629: no surrogates, no overlong forms, up to U+10FFFF */

/* Validation over several pieces; state starts at 0. False as soon as no continuation could be
 * valid. At the end the state must be 0 again, or the text stopped inside a character. */
bool utf8_feed(uint32_t *state, struct str piece);

size_t utf8_count(struct str s); /* code points; each broken byte counts as one */
/* Bytes taken by the first n code points. */
size_t utf8_offset(struct str s, size_t n);
/* Decodes one code point and gives its length; a broken byte gives U+FFFD and 1. s not empty. */
size_t utf8_decode(struct str s, uint32_t *ret_cp);
size_t utf8_encode(uint32_t cp, char out[4]); /* U+FFFD for what is no code point */
uint32_t utf8_lower(uint32_t cp);             /* as Python, where the lower case is one character */
/* Appends s with what is broken replaced by U+FFFD the way Python's errors="replace" does. */
void utf8_add_replaced(struct buf *b, struct str s);
/* Controls, and what turns the direction of writing or has no width: a terminal acts on them. */
bool utf8_is_trap(uint32_t cp);
/* Appends s for a terminal: traps and broken bytes as \xNN, byte by byte. */
void utf8_add_shown(struct buf *b, struct str s);
