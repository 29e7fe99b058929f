// SPDX-License-Identifier: Apache-2.0
/* wants.h — what POST /croft/v1/sandboxes may ask for beyond a start: limits, a host name, and
 * directories of the host. Impossible values are refused here; what this server does not grant is
 * refused by the server. */
#pragma once

#include "base/json.h"

#define WIRE_MOUNTS   8
#define WIRE_PATH_MAX 255

struct wire_mount {
    struct str source, target; /* absolute and plain: of the host, in the sandbox */
    struct str mode;           /* "ro", "rw" or "overlay" */
};

struct wire_wants {
    uint64_t memory_bytes, disk_bytes, pids, cpu_milli; /* 0: not given */
    struct str hostname;                                /* .p NULL: not given */
    struct wire_mount mounts[WIRE_MOUNTS];
    size_t mount_count;
};

/* Members of an object: memory and disk (bytes, or "512M"), cpus, pids, hostname, mounts. *ret_any:
 * one of them is there. Points into the body. */
fallible wire_decode_wants(const struct json *body, struct wire_wants *ret_wants, bool *ret_any);
/* Members of an open object, those that are given; what is put so can be decoded again. */
void wire_put_wants(struct jw *w, const struct wire_wants *wants);
