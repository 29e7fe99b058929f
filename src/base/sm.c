// SPDX-License-Identifier: Apache-2.0
/* sm.c — see sm.h. */
#include "base/sm.h"

#include <assert.h>

#include "base/log.h"

void sm_init(struct sm *m, const struct sm_state *states, const char *what, unsigned first)
{
    *m = (struct sm){states, what, first};
}

bool sm_may(const struct sm *m, unsigned to)
{
    return (m->states[m->now].to & TO(to)) != 0;
}

void sm_move(struct sm *m, unsigned to, const char *id)
{
    log_debug("state", KV("what", m->what), KV("id", id), KV("from", m->states[m->now].name),
              KV("to", m->states[to].name));
    assert(sm_may(m, to));
    m->now = to;
}

const char *sm_name(const struct sm *m)
{
    return m->states[m->now].name;
}
