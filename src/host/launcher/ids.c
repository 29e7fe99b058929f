// SPDX-License-Identifier: Apache-2.0
/* ids.c — see ids.h. */
#include "host/launcher/ids.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/log.h"
#include "base/rng.h"
#include "host/kernel/confine.h"
#include "host/kernel/sys.h"

/* --- ranges --- */

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

/* --- the user namespace --- */

static fallible write_map(int proc, const char *file, const struct ids_range *r, uint32_t base,
                          uint32_t sub)
{
    char lines[96];
    int n = snprintf(lines, sizeof lines, "0 %" PRIu32 " %" PRIu32 "\n", base, r->count);
    own_fd fd = openat(proc, file, O_WRONLY | O_CLOEXEC);

    if (r->sub_count)
        n += snprintf(lines + n, sizeof lines - (size_t)n, "%" PRIu32 " %" PRIu32 " %" PRIu32 "\n",
                      r->count, sub, r->sub_count);
    if (fd < 0 || write(fd, lines, (size_t)n) != n)
        return err_sys("write %s", file);
    return NULL;
}

static bool has_no_projects(void)
{
    own_fd fd = open("/proc/self/projid_map", O_RDONLY | O_CLOEXEC);
    char byte;

    return fd < 0 || read(fd, &byte, 1) == 0;
}

/* Writes the map of project ids, so that no process inside writes it, once, for the next sandbox of
 * the slot. Where the launcher has no such ids, no namespace below it can have any. */
static fallible fill_projects(int proc)
{
    static const char line[] = "0 0 1\n";
    own_fd fd = openat(proc, "projid_map", O_WRONLY | O_CLOEXEC);

    if (fd >= 0 && write(fd, line, sizeof line - 1) == sizeof line - 1)
        return NULL;
    int why = errno;
    return why == EPERM && has_no_projects() ? NULL : err_sysno(why, "write projid_map");
}

static fallible map_and_open(pid_t pid, const struct ids_range *r, int *ret_ns)
{
    char path[32];

    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    own_fd proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (proc < 0)
        return err_sys("open '%s'", path);
    TRY(write_map(proc, "uid_map", r, r->uid, r->sub_uid));
    TRY(write_map(proc, "gid_map", r, r->gid, r->sub_gid));
    TRY(fill_projects(proc));
    own_fd ns = openat(proc, "ns/user", O_RDONLY | O_CLOEXEC);
    if (ns < 0)
        return err_sys("open the user namespace");
    *ret_ns = take_fd(&ns);
    return NULL;
}

_Noreturn static int hold(void *parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == *(const pid_t *)parent) /* else it died before that */
        pause();
    _exit(0);
}

void ids_reap(struct ids_holder *h)
{
    while (h->pid && waitpid(h->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    h->pid = 0;
}

static fallible act_as(uint32_t uid)
{
    if (syscall(SYS_setresuid, -1, uid, -1) < 0)
        return err_sys("own the user namespace as %" PRIu32, uid);
    return confine_raise_caps();
}

/* A failure is worth a second try. */
static fallible try_act_as(uint32_t uid)
{
    struct err *e = act_as(uid);

    if (!e)
        return NULL;
    err_free(e);
    return act_as(uid);
}

fallible ids_own(struct ids_owner *o, uint32_t owner)
{
    *o = (struct ids_owner){geteuid(), prctl(PR_GET_DUMPABLE)};
    if (o->me == owner)
        return NULL;
    struct err *e = try_act_as(owner);
    if (e)
        ids_disown(o);
    else /* or the change of user hides what shares our memory from ourselves */
        prctl(PR_SET_DUMPABLE, 1);
    return e;
}

void ids_disown(const struct ids_owner *o)
{
    if (o->me == geteuid())
        return;
    struct err *e = try_act_as(o->me);
    if (e) { /* stuck between two users: the next launcher takes over */
        log_error("cannot be who we were", KV_ERR(e));
        _exit(1);
    }
    prctl(PR_SET_DUMPABLE, o->dumpable == 1 ? 1 : 0);
}

/* The namespace exists when clone returns. Its first process shares the launcher's memory (no page
 * tables are copied), runs nothing, and is killed once the descriptor is there.
 *
 * The kernel also charges the user that made a namespace for its watches, queued signals, message
 * queues and processes. That user is the range's own root, so one sandbox cannot use up
 * another's. */
fallible ids_make_userns(struct ids_holder *h, const struct ids_range *r, int *ret_ns)
{
    const int flags = CLONE_VM | CLONE_NEWUSER | SIGCHLD;
    struct ids_owner o;

    ids_reap(h); /* it has our stack */
    h->parent = getpid();
    TRY(ids_own(&o, r->uid));
    pid_t pid = clone(hold, h->stack + sizeof h->stack, flags, &h->parent);
    struct err *e =
        pid < 0 ? sys_not_of_disk(err_sys("make a user namespace")) : map_and_open(pid, r, ret_ns);
    ids_disown(&o);
    h->pid = pid > 0 ? pid : 0;
    if (h->pid)
        kill(h->pid, SIGKILL);
    return e;
}

/* --- files of the range's root --- */

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
