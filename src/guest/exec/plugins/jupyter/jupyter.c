// SPDX-License-Identifier: Apache-2.0
/* jupyter.c — the plugin of Python cells: ready when a kernel could be started. It is started by
 * the first cell; until then it costs nothing. */
#include "guest/exec/parts/python/python.h"
#include "guest/exec/plugin.h"
#include "guest/jupyter/kernel.h"

static fallible jupyter_start(struct plugin *p)
{
    struct kernel *kernel;

    TRY(python_kernel(p->exec, &kernel));
    TRY(kernel_probe(kernel));
    plugin_ready(p);
    return NULL;
}

PLG_PLUGIN(jupyter) = {.name = "jupyter", .lazy = true, .start = jupyter_start};
