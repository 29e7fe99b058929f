// SPDX-License-Identifier: Apache-2.0
/* record.h — what is known of a sandbox when its maker is dead: box/<ID>/record, written by rename
 * before the sandbox runs. Fixed size, machine-local, never sent anywhere. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "sandbox/native/msg.h"

#define RECORD         "record"
#define RECORD_NEW     "record.new"

#define RECORD_BOOT    40 /* the kernel's name for this run of the machine */
#define RECORD_MACHINE 40

enum {
    RECORD_LAUNCHER = 1u << 0, /* a launcher made it, and the next one answers for it */
    RECORD_PERSIST = 1u << 1,  /* its files stay when it has ended, until it is removed */
    RECORD_JOINED = 1u << 2,   /* its /usr is in the root's overlay, if it has the host's */
};

struct record {
    uint32_t magic, version, slot, image;
    uint32_t flags;
    int32_t pid;
    uint64_t which; /* tells this process from a later one of its number */
    char boot[RECORD_BOOT];
    char machine_id[RECORD_MACHINE]; /* as it stands in its /etc, for its next life */
    uint64_t made_wall_ns;
    struct native_limits limits;
    uint64_t cpu_ns; /* counted by its groups before it began */
    char id[NATIVE_ID_MAX];
    char image_name[NATIVE_IMAGE_MAX]; /* of NATIVE_IMAGE_STORED */
    struct native_mount mounts[NATIVE_MOUNTS];
};

/* life: slot, flags, pid, which, boot, machine_id and cpu_ns; the rest is filled in. */
fallible record_write(int dir, const struct record *life, const struct native_request *req);
/* By the kernel's own number of it, or when it began, in ticks. */
fallible record_which(pid_t pid, int pidfd, uint64_t *ret_which);
/* pidfd: of r->pid, which may be another process by now. */
fallible record_is(const struct record *r, int pidfd, bool *ret_same);
/* "": the kernel does not say; then pid, start time and group must do. An id that cannot be read is
 * an error: if it were known only sometimes, every living sandbox would seem to be of another
 * boot. */
fallible record_boot(char out[static RECORD_BOOT]);
/* Those of older versions too. ERR_UNSUPPORTED for one of an unknown version, which may be a living
 * sandbox's all the same; ERR_CORRUPT for what is no record. */
fallible record_read(int dir, struct record *ret_record);
/* The places inside mount n where others are mounted, relative to it; NULL at the end. Borrows. */
void record_places(const struct record *r, unsigned n, const char *ret[NATIVE_MOUNTS + 1]);
