// SPDX-License-Identifier: Apache-2.0
/* record.h — what is known of a sandbox when everybody who made it is dead: box/<ID>/record,
 * written by rename before the sandbox runs. Fixed size, machine-local, never sent anywhere. */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "sandbox/native/msg.h"

struct record {
    uint32_t magic, version, slot, image;
    uint64_t made_wall_ns;
    struct native_limits limits;
    char id[NATIVE_ID_MAX];
    struct native_mount mounts[NATIVE_MOUNTS];
};

fallible record_write(int dir, unsigned slot, const struct native_request *req);
/* ERR_CORRUPT for anything that is not a record of this version. */
fallible record_read(int dir, struct record *ret_record);
