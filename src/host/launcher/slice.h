// SPDX-License-Identifier: Apache-2.0
/* slice.h — the launcher and the server are scheduled before the sandboxes.
 *
 * A process that asks for short slices of the processor gets them early (from Linux 6.12; older
 * kernels ignore it), and no more time in all. So what sandboxes have to do does not delay the news
 * of them. */
#pragma once

#include <stdbool.h>

/* Applies to this process, and to its children and later threads if so wanted. */
void slice_short(bool children_too);
