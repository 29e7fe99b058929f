// SPDX-License-Identifier: Apache-2.0
/* sm.h — declared state machines: a table says which state may follow which. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sm_state {
    const char *name;
    uint32_t to; /* TO(x) | TO(y); 0 for a final state */
};

#define TO(state) (1u << (state))

struct sm {
    const struct sm_state *states;
    const char *what; /* "session"; for the trace */
    unsigned now;
};

void sm_init(struct sm *m, const struct sm_state *states, const char *what, unsigned first);
bool sm_may(const struct sm *m, unsigned to);
/* Asserts the edge and logs it at debug level with the object's id. */
void sm_move(struct sm *m, unsigned to, const char *id);
const char *sm_name(const struct sm *m);
