// SPDX-License-Identifier: Apache-2.0
/* ids.c — see ids.h. */
#include "host/launcher/ids.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/rng.h"
#include "host/launcher/confine.h"
#include "host/launcher/sys.h"

/* --- ranges
 * --------------------------------------------------------------------------------------- */

#define NEAR_SLOTS 4096u /* at first; keeps ids below 2^31 while there is room */
#define TRIES      256u

fallible ids_claim(int dir, const char *id, struct rng *rng, unsigned *ret_slot)
{
    for (unsigned i = 0; i < TRIES; i++) {
        unsigned from = i < 8 ? NEAR_SLOTS << i / 2 : IDS_SLOTS; /* a full place costs two tries */
        unsigned slot = (unsigned)rng_below(rng, from < IDS_SLOTS ? from : IDS_SLOTS);
        char name[16];
        snprintf(name, sizeof name, "%u", slot);
        if (symlinkat(id, dir, name) == 0) {
            *ret_slot = slot;
            return NULL;
        }
        if (errno != EEXIST)
            return err_sys("claim a range of user ids");
    }
    return err_new(ERR_LIMIT, "no range of user ids is free; too many sandboxes");
}

fallible ids_release(int dir, unsigned slot)
{
    char name[16];

    snprintf(name, sizeof name, "%u", slot);
    if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
        return err_sys("give back a range of user ids");
    return NULL;
}

/* --- the user namespace
 * --------------------------------------------------------------------------- */

static fallible write_map(int proc, const char *file, uint32_t base, uint32_t count)
{
    char line[64];
    int n = snprintf(line, sizeof line, "0 %" PRIu32 " %" PRIu32 "\n", base, count);
    own_fd fd = openat(proc, file, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, line, (size_t)n) != n)
        return err_sys("write %s", file);
    return NULL;
}

static fallible map_and_open(pid_t pid, const struct ids_range *r, int *ret_ns)
{
    char path[32];

    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    own_fd proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (proc < 0)
        return err_sys("open '%s'", path);
    TRY(write_map(proc, "uid_map", r->uid, r->count));
    TRY(write_map(proc, "gid_map", r->gid, r->count));
    own_fd ns = openat(proc, "ns/user", O_RDONLY | O_CLOEXEC);
    if (ns < 0)
        return err_sys("open the user namespace");
    *ret_ns = take_fd(&ns);
    return NULL;
}

_Noreturn static int hold(void *unused)
{
    (void)unused;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        pause();
}

/* The namespace exists when clone returns; nobody has to wait for its first process, which shares
 * our memory (no page tables are copied), runs nothing, and is killed once the descriptor is ours.
 */
fallible ids_make_userns(const struct ids_range *r, int *ret_ns)
{
    _Alignas(16) char stack[8192];
    pid_t pid = clone(hold, stack + sizeof stack, CLONE_VM | CLONE_NEWUSER | SIGCHLD, NULL);

    if (pid < 0)
        return err_sys("make a user namespace");
    struct err *e = map_and_open(pid, r, ret_ns);
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return e;
}

static fallible write_self(const char *file, const char *text)
{
    own_fd fd = open(file, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        return err_sys("write %s", file);
    return NULL;
}

fallible ids_own_namespaces(void)
{
    char uid[32], gid[32];

    snprintf(uid, sizeof uid, "%u %u 1\n", geteuid(), geteuid());
    snprintf(gid, sizeof gid, "%u %u 1\n", getegid(), getegid());
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return err_sys("not root, and no user namespace to be had; 'croft doctor' says why");
    TRY(write_self("/proc/self/uid_map", uid));
    TRY(write_self("/proc/self/setgroups", "deny"));
    TRY(write_self("/proc/self/gid_map", gid));
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_sys("keep mounts to ourselves");
    return NULL;
}

/* --- files of the range's root
 * -------------------------------------------------------------------- */

static fallible files_as(uint32_t uid, uint32_t gid)
{
    setfsgid(gid);
    setfsuid(uid);
    if ((uint32_t)setfsuid((uid_t)-1) != uid || (uint32_t)setfsgid((gid_t)-1) != gid)
        return err_new(ERR_FORBIDDEN, "cannot make files as user %" PRIu32, uid);
    return confine_raise_caps();
}

fallible ids_enter(const struct ids_range *r)
{
    struct err *e = files_as(r->uid, r->gid);

    if (e)
        err_free(ids_leave()); /* the first error is the one to tell */
    return e;
}

fallible ids_leave(void)
{
    return files_as(geteuid(), getegid());
}
