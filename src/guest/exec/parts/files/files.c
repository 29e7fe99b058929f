// SPDX-License-Identifier: Apache-2.0
/* files.c — listing, upload and download; req->app begins with the struct they work from. */
#include "guest/exec/inner.h"
#include "guest/transfer/transfer.h"

EXEC_PART(files) = {.add_routes = transfer_add_routes};
