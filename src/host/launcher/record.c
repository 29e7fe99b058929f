// SPDX-License-Identifier: Apache-2.0
/* record.c — see record.h. */
#include "host/launcher/record.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/own.h"

#define RECORD_MAGIC   0x43525843u
#define RECORD_VERSION 1

/* Not synced: after a crash of the machine there is no sandbox left to adopt. */
fallible record_write(int dir, unsigned slot, const struct native_request *req)
{
    struct record r = {.magic = RECORD_MAGIC,
                       .version = RECORD_VERSION,
                       .slot = slot,
                       .image = req->image,
                       .made_wall_ns = clock_wall_ns(&clock_system),
                       .limits = req->limits};

    memcpy(r.id, req->id, sizeof r.id);
    memcpy(r.mounts, req->mounts, sizeof r.mounts);
    own_fd fd = openat(dir, "record.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys("write the record");
    TRY_WRAP(fd_write_all(fd, str_n(&r, sizeof r)), "the record");
    if (renameat(dir, "record.new", dir, "record") < 0)
        return err_sys("put the record in place");
    return NULL;
}

fallible record_read(int dir, struct record *ret_record)
{
    own_fd fd = openat(dir, "record", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct record r;

    if (fd < 0)
        return err_sys("open the record");
    ssize_t n = read(fd, &r, sizeof r);
    if (n < 0)
        return err_sys("read the record");
    if (n != sizeof r || r.magic != RECORD_MAGIC || r.version != RECORD_VERSION ||
        !native_id_ok(r.id, sizeof r.id))
        return err_new(ERR_CORRUPT, "not a record of this version");
    *ret_record = r;
    return NULL;
}
