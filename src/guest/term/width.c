// SPDX-License-Identifier: Apache-2.0
/* width.c — a table of the places where the width changes, searched by halves.
 *
 * A variation selector does not make a narrow character wide: tmux draws it so, too. */
#include "guest/term/width.h"

#include "base/own.h"
#include "guest/term/width_table.h"

unsigned term_width(uint32_t cp)
{
    if (cp < 0x300)
        return 1;
    if ((cp >= 0x4e00 && cp <= 0x9fff) || (cp >= 0xac00 && cp <= 0xd7a3)) /* Chinese, Korean */
        return 2;
    if (cp >= 0x2500 && cp <= 0x25fc) /* lines and boxes */
        return 1;
    const uint32_t *at = width_changes;
    uint32_t want = cp << 8 | 0xff;

    for (size_t n = ARRAY_LEN(width_changes); n > 1;) {
        size_t half = n / 2;
        at += at[half] <= want ? half : 0;
        n -= half;
    }
    return *at & 0xff;
}

bool term_width_is_pictograph(uint32_t cp)
{
    return (cp >= 0x2190 && cp <= 0x2bff) || (cp >= 0x1f000 && cp <= 0x1faff);
}
