// SPDX-License-Identifier: Apache-2.0
/* files.c — listing, upload and download. */
#include "guest/exec/inner.h"
#include "guest/transfer/transfer.h"

static void files_add_routes(struct exec *e, void *state)
{
    (void)state;
    transfer_add_routes(e->router, &e->transfer);
}

EXEC_PART(files) = {.add_routes = files_add_routes};
