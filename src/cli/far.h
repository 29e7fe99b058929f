// SPDX-License-Identifier: Apache-2.0
/* far.h — diff, apply, rollback and snapshots of a server's sandboxes, for the commands that know
 * sandboxes of 'croft run' too. */
#pragma once

#include <stdbool.h>

#include "cli/cli.h"

/* A sandbox of this name is not here: it may be a server's. local is why; the answer is fn's, or
 * local again when no server answers. Takes local over. */
struct far;
typedef fallible far_fn(struct far *f, const char *name);
struct far_ask {
    bool json, force, patch;
    const char *const *paths; /* of diff and apply; NULL: all */
    struct str to, name;      /* of rollback; of a snapshot; .p NULL: not given */
    struct err **rest;        /* the parts left out; NULL: the caller does not ask */
};
fallible far_try(struct cli *cli, const struct far_ask *a, const char *name, far_fn *fn,
                 struct buf *out, struct err *local);

far_fn far_diff, far_apply, far_rollback, far_take;
far_fn far_remove_snapshot; /* ERR_NOT_FOUND: it has none of this name */
far_fn far_list_snapshots;  /* name is not looked at */
