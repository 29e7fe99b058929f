// SPDX-License-Identifier: Apache-2.0
/* spares.c — see spares.h. */
#include "host/launcher/spares.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "host/launcher/inner.h"

/* Claimed in the launcher's name, for its slot may be used again by another sandbox. */
static fallible spares_make(struct launcher *l, struct box_spare *ret_spare)
{
    char claim[32];

    snprintf(claim, sizeof claim, "+%d", (int)getpid());
    return box_prepare_spare(&l->host, claim, ret_spare);
}

static bool is_short(const struct launcher *l)
{
    return !l->ending && !l->spares.failed && l->spares.count < l->policy->spares &&
           l->spares.count < ARRAY_LEN(l->spares.at);
}

static void on_refill(struct loop_later *later)
{
    struct launcher *l = container_of(later, struct launcher, spares.refill);
    struct spares *s = &l->spares;

    if (!is_short(l)) {
        box_tidy(&l->host);
        return;
    }
    struct err *e = spares_make(l, &s->at[s->count]);
    if (e)
        log_warn("no spare process", KV_ERR(e));
    s->failed = e != NULL; /* the next start makes its own, and tries again */
    s->count += e == NULL;
    err_free(e);
}

/* One per idle turn, so that a request never waits for more than one. */
bool spares_refill(struct launcher *l)
{
    if (!is_short(l) && !box_is_untidy(&l->host))
        return false;
    loop_later(l->loop, &l->spares.refill, on_refill);
    return true;
}

fallible spares_take(struct launcher *l, struct box_spare *ret_spare)
{
    struct spares *s = &l->spares;

    s->failed = false;
    if (!s->count)
        return spares_make(l, ret_spare);
    *ret_spare = s->at[0]; /* the oldest has most likely finished its first half */
    s->count--;
    memmove(s->at, s->at + 1, s->count * sizeof *s->at);
    return NULL;
}

void spares_drop(struct launcher *l)
{
    while (l->spares.count)
        box_drop_spare(&l->host, &l->spares.at[--l->spares.count]);
}
