// SPDX-License-Identifier: Apache-2.0
/* browse.c — there is no browser: both actions say so, in the words of the original. */
#include "guest/exec/act.h"

static fallible browse_start(struct act *act)
{
    act_error(act, STR("Browser functionality is not supported or disabled."));
    return NULL;
}

ACT_HANDLER(browse) = {.type = WIRE_ACT_BROWSE, .start = browse_start};
ACT_HANDLER(browse_interactive) = {.type = WIRE_ACT_BROWSE_INTERACTIVE, .start = browse_start};
