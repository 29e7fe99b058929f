// SPDX-License-Identifier: Apache-2.0
/* keep.c — see keep.h. */
#include "cli/keep.h"

#include "base/clock.h"
#include "host/config/settings.h"
#include "host/overlay/overlay.h"

struct keep_settings {
    uint64_t ms;
};

static const struct cfg_row rows[] = {
    CFG_MS(
        keep_settings, ms, "run.keep", "30d",
        "How long the changes of a 'croft run' are kept; older ones are dropped when a run keeps "
        "its own, and by 'croft diff --list'. 0: for good.",
        .flag = ""),
};
CFG_TABLE(keep) = {rows, ARRAY_LEN(rows), .size = sizeof(struct keep_settings)};

fallible keep_expire(struct cli *cli, int state, uint64_t *ret_keep_ns)
{
    struct settings s;
    int none = 0;
    struct err *e = settings_begin(&s, NULL, &none, NULL);

    if (!e)
        e = settings_load(&s, (struct str){0}, cli->envp);
    *ret_keep_ns =
        e ? 0 : ((const struct keep_settings *)settings_of(&s, CFG_TABLE_OF(keep)))->ms * NS_PER_MS;
    settings_done(&s);
    TRY(e);
    uint64_t now = clock_wall_ns(&clock_system);
    return *ret_keep_ns && *ret_keep_ns < now ? overlay_expire(state, now - *ret_keep_ns) : NULL;
}
