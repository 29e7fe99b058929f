// SPDX-License-Identifier: Apache-2.0
/* claim_kit.h — warm sandboxes of a rig, and claims of them. */
#pragma once

#include "test/native/launcher_kit.h"

#define CLAIM_WAIT_MS 60000 /* whoever has not answered by then hangs */

/* Without arguments. */
struct native_request claim_ask(enum native_op op, const char *id, unsigned flags);
/* Gives its pid; the rig has its ready pipe. */
pid_t claim_warm(struct rig *r, const char *id, unsigned flags);
int claim_block(void); /* what is bound to an action server, sealed */
/* Until it listens. */
void claim_bind(struct rig *r, const char *id);
/* Until it answers. */
void claim_now(struct rig *r, const char *id);
