// SPDX-License-Identifier: Apache-2.0
/* slice.h — who answers goes before who works.
 *
 * Whoever asks for short slices of the processor gets them early (Linux 6.12; older ones do not
 * mind), and no more time in all: what sandboxes have to do does not delay the news of them. */
#pragma once

#include <stdbool.h>

/* Of this process, and of its children and later threads if so wanted. */
void slice_short(bool children_too);
