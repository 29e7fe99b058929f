// SPDX-License-Identifier: Apache-2.0
/* record.c — see record.h. */
#include "host/record/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/own.h"

#define RECORD_MAGIC   0x43525843u
#define RECORD_VERSION 6
#define RECORD_OLDEST  3
#define STAT_STARTED   20 /* words of /proc/PID/stat after the name, before the one we want */

/* --- which process --- */

#define BY_INODE (1ull << 63)
#define PIDFS    0x50494446 /* since Linux 6.9: one inode per process, whose number never returns */

static bool inode_of(int pidfd, uint64_t *ret_which)
{
    struct statfs fs;
    struct stat st;

    if (fstatfs(pidfd, &fs) < 0 || fs.f_type != PIDFS || fstat(pidfd, &st) < 0)
        return false;
    *ret_which = st.st_ino | BY_INODE;
    return true;
}

/* The name is in brackets and may hold anything, brackets and spaces included. */
static fallible record_started(pid_t pid, uint64_t *ret_ticks)
{
    char path[32], text[1024];
    struct str rest, word = {.len = 0};

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (n < 0)
        return err_sys("read '%s'", path);
    text[n] = '\0';
    const char *end = strrchr(text, ')');
    rest = end ? str_of(end + 1) : str_of("");
    for (unsigned i = 0; i <= STAT_STARTED; i++)
        str_cut(&rest, ' ', &word);
    if (!str_to_u64(word, ret_ticks))
        return err_new(ERR_CORRUPT, "'%s' has no start time", path);
    return NULL;
}

fallible record_which(pid_t pid, int pidfd, uint64_t *ret_which)
{
    return inode_of(pidfd, ret_which) ? NULL : record_started(pid, ret_which);
}

fallible record_is(const struct record *r, int pidfd, bool *ret_same)
{
    uint64_t which = 0;

    *ret_same = false;
    if (r->which & BY_INODE) {
        struct stat st;
        if (fstat(pidfd, &st) < 0) /* or one that lives were taken for another */
            return err_sys("look at process %d", r->pid);
        which = st.st_ino | BY_INODE;
    } else
        TRY(record_started(r->pid, &which));
    *ret_same = which == r->which;
    return NULL;
}

/* --- the file --- */

fallible record_boot(char out[static RECORD_BOOT])
{
    own_fd fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

    out[0] = '\0';
    if (fd < 0 && errno == ENOENT)
        return NULL;
    ssize_t n = fd >= 0 ? read(fd, out, RECORD_BOOT - 1) : -1;
    if (n < 0)
        return err_sys("read the machine's boot id");
    out[n] = '\0';
    return NULL;
}

/* Not synced: after a crash of the machine there is no sandbox left to adopt. */
fallible record_write(int dir, const struct record *life, const struct native_request *req)
{
    struct record r = *life;

    r.magic = RECORD_MAGIC;
    r.version = RECORD_VERSION;
    r.image = req->image;
    r.made_wall_ns = clock_wall_ns(&clock_system);
    r.limits = req->limits;
    memcpy(r.id, req->id, sizeof r.id);
    memcpy(r.image_name, req->image_name, sizeof r.image_name);
    memcpy(r.mounts, req->mounts, sizeof r.mounts);
    own_fd fd =
        openat(dir, "record.new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys("write the record");
    TRY_WRAP(fd_write_all(fd, str_n(&r, sizeof r)), "the record");
    if (renameat(dir, "record.new", dir, RECORD) < 0)
        return err_sys("put the record in place");
    return NULL;
}

/* The fields that a version added, in their order; older records have them as zero. */
static const struct {
    uint32_t since;
    size_t at, bytes;
} added[] = {{5, offsetof(struct record, machine_id), sizeof((struct record){0}).machine_id},
             {4, offsetof(struct record, cpu_ns), sizeof((struct record){0}).cpu_ns}};

/* Gives the length it would have now. */
static size_t record_widen(struct record *r, size_t len)
{
    char *bytes = (char *)r;

    for (size_t i = 0; i < ARRAY_LEN(added); i++) {
        size_t at = added[i].at, more = added[i].bytes;
        if (r->version >= added[i].since || len < at || len + more > sizeof *r)
            continue;
        memmove(bytes + at + more, bytes + at, len - at);
        memset(bytes + at, 0, more);
        len += more;
    }
    return len;
}

fallible record_read(int dir, struct record *ret_record)
{
    own_fd fd = openat(dir, RECORD, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct record r;

    if (fd < 0)
        return err_sys("open the record");
    ssize_t n = read(fd, &r, sizeof r);
    if (n < 0)
        return err_sys("read the record");
    if ((size_t)n < offsetof(struct record, slot) || r.magic != RECORD_MAGIC)
        return err_new(ERR_CORRUPT, "not a record");
    if (r.version < RECORD_OLDEST || r.version > RECORD_VERSION)
        return err_new(ERR_UNSUPPORTED, "a record of version %u; this croft reads %u to %u",
                       r.version, RECORD_OLDEST, RECORD_VERSION);
    if (record_widen(&r, (size_t)n) != sizeof r || !native_id_ok(r.id, sizeof r.id))
        return err_new(ERR_CORRUPT, "not a whole record");
    r.version = RECORD_VERSION;
    *ret_record = r;
    return NULL;
}

void record_places(const struct record *r, unsigned n, const char *ret[NATIVE_MOUNTS + 1])
{
    size_t count = 0, len = strnlen(r->mounts[n].target, NATIVE_PATH_MAX);

    for (unsigned i = 0; i < NATIVE_MOUNTS; i++) {
        const struct native_mount *m = &r->mounts[i];
        if (i != n && m->mode && strncmp(m->target, r->mounts[n].target, len) == 0 &&
            m->target[len] == '/')
            ret[count++] = m->target + len + 1;
    }
    ret[count] = NULL;
}
