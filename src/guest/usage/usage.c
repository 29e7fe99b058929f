// SPDX-License-Identifier: Apache-2.0
/* usage.c — see usage.h. */
#include "guest/usage/usage.h"

#include "base/embed.h"
#include "base/fd.h"

EMBED(usage, "usage");

void usage_print(int fd)
{
    own_done(buf) text;

    buf_init(&text, 1u << 16);
    err_free(inflate_all(EMBEDDED(usage), &text)); /* as whole as memory lasts */
    err_free(fd_write_all(fd, buf_str(&text)));
}
