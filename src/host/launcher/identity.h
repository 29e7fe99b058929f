// SPDX-License-Identifier: Apache-2.0
/* identity.h — the files that name a sandbox: /etc/machine-id, hostname and hosts.
 *
 * They are a layer of the sandbox's own right above its image's: what it changes lies above that.
 * They last as long as its processes. A launcher keeps them in memory (box_host.names, by id),
 * croft run in box/<ID>/self. The machine id is in the record, for the next life. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define IDENTITY_DIR "self"

/* Would the layer be merged with this image? Where /etc is a link it would take its place. */
bool identity_fits(const int *lowers, size_t count); /* topmost first */
/* A directory of this name, owned by the user that makes it: the sandbox's root. */
fallible identity_make(int parent, const char *name, const char *hostname, const char *machine_id,
                       int *ret_layer);
/* Another name for it, where it has these files; it runs, and sees it at once. */
fallible identity_rename(int parent, const char *name, const char *hostname);
void identity_drop(int parent, const char *name); /* what is not there is fine */
