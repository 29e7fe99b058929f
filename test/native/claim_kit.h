// SPDX-License-Identifier: Apache-2.0
/* claim_kit.h — warm sandboxes of a rig, and claims of them. */
#pragma once

#include "test/native/launcher_kit.h"

#define CLAIM_WAIT_MS 60000 /* whoever has not answered by then hangs */

/* Without arguments. */
struct native_request claim_ask(enum native_op op, const char *id, unsigned flags);
/* Gives its pid; the rig has its ready pipe. */
pid_t claim_warm(struct rig *r, const char *id, unsigned flags);
/* What is bound to an action server, sealed; its shell may wait so long. */
int claim_block_later(uint32_t later_ms);
int claim_block(void); /* not at all */
/* Until it answers. */
void claim_later(struct rig *r, const char *id, uint32_t later_ms);
void claim_now(struct rig *r, const char *id);
