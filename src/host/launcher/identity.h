// SPDX-License-Identifier: Apache-2.0
/* identity.h — the files that name a sandbox: /etc/machine-id, hostname and hosts.
 *
 * They are a layer of the sandbox's own, box/<ID>/self, right above its image's: what it changes
 * lies above that, a restart finds the same machine id, and a fork, which has a directory of its
 * own, another. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define IDENTITY_DIR "self"

struct rng;

/* Would the layer be merged with this image? Where /etc is a link it would take its place. */
bool identity_fits(const int *lowers, size_t count); /* topmost first */
/* box: the sandbox's directory, as its root sees it. */
fallible identity_make(int box, const char *hostname, struct rng *rng, int *ret_layer);
/* Another name for it, where it has these files; it runs, and sees it at once. */
fallible identity_rename(int box, const char *hostname);
/* Its files, so that the directories above them can go; what is not there is fine. */
void identity_empty(int box);
