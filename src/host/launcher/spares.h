// SPDX-License-Identifier: Apache-2.0
/* spares.h — spare processes, made ahead of starts while the launcher has nothing else to do. */
#pragma once

#include "host/launcher/box.h"
#include "loop/loop.h"

struct launcher;

struct spares {
    struct box_spare at[64]; /* the oldest first */
    unsigned count;
    struct loop_later refill;
    bool failed; /* none could be made: not again before the next start */
};

/* One that waits, or a new one. */
fallible spares_take(struct launcher *l, struct box_spare *ret_spare);
/* Makes one in this turn of the loop, or tidies up. False: there is nothing to do. */
bool spares_refill(struct launcher *l);
void spares_drop(struct launcher *l);
