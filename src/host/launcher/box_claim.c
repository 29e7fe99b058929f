// SPDX-License-Identifier: Apache-2.0
/* box_claim.c — what a warm sandbox still lacks, put into it from outside.
 *
 * Its namespaces are the host's, so we may enter them; nobody but pid 1 and its dormant server
 * lives there, but nothing here relies on that. The host name's namespace is entered by ourselves
 * and left at once; the mounts' by a child, which dies there. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/own.h"
#include "host/launcher/box_inner.h"
#include "host/launcher/identity.h"
#include "host/launcher/mounts.h"
#include "host/launcher/record.h"
#include "host/launcher/sys.h"

/* --- limits
 * --------------------------------------------------------------------------------------- */

#define CHANGED(field) (now->field == was->field ? 0 : now->field)

/* Pid 1 and its server have it from their birth; what they fork inherits it. */
static fallible limit_files(const struct box_host *h, const struct box *b, uint32_t most)
{
    struct rlimit files = {most, most};
    pid_t pids[16];
    size_t count = 0;
    char group[BOX_NAME];

    box_group_name(b->slot, group);
    TRY(cg_list(&h->cg, group, pids, ARRAY_LEN(pids), &count));
    if (!count)
        pids[count++] = b->pid;
    for (size_t i = 0; i < count; i++)
        if (prlimit(pids[i], RLIMIT_NOFILE, &files, NULL) < 0 && errno != ESRCH)
            return err_sys("limit open files to %u", most);
    return NULL;
}

static fallible set_limits(const struct box_host *h, const struct box *b,
                           const struct native_limits *now, const struct native_limits *was)
{
    struct native_limits change = {.memory_bytes = CHANGED(memory_bytes),
                                   .pids = CHANGED(pids),
                                   .cpu_milli = CHANGED(cpu_milli)};
    char group[BOX_NAME];

    box_group_name(b->slot, group);
    TRY(cg_limit(&h->cg, group, &change));
    return CHANGED(nofile) ? limit_files(h, b, now->nofile) : NULL;
}

/* --- its name
 * ------------------------------------------------------------------------------------- */

static fallible set_name(const struct box *b, int dir, const char *name)
{
    own_fd home = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);

    if (home < 0 || setns(b->pidfd, CLONE_NEWUTS) < 0)
        return err_sys("enter its namespace of names");
    int set = sethostname(name, strlen(name)), errnum = errno;
    if (setns(home, CLONE_NEWUTS) < 0)
        abort(); /* every sandbox from here on would be built in somebody else's */
    if (set < 0)
        return err_sysno(errnum, "set the host name");
    return identity_rename(dir, name);
}

/* --- mounts
 * --------------------------------------------------------------------------------------- */

static fallible attach_all(const struct box_host *h, const struct box *b,
                           const struct native_mount *mounts, const struct box_cargo *c, int root)
{
    struct ids_range ids = box_ids(h, b->slot);
    size_t at = 0;

    if (setns(b->pidfd, CLONE_NEWNS) < 0)
        return err_sys("enter its namespace of mounts");
    TRY(ids_enter(&ids)); /* directories that are missing are made as the sandbox's root */
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++) {
        struct stat st;
        if (!mounts[i].mode)
            continue;
        if (fstat(c->fds[at], &st) < 0)
            return err_sys("look at the source of '%s'", mounts[i].target);
        TRY(mounts_attach(c->fds[at++], root, mounts[i].target + 1, !S_ISDIR(st.st_mode)));
    }
    return NULL;
}

static _Noreturn void attach_and_die(const struct box_host *h, const struct box *b,
                                     const struct native_mount *mounts, const struct box_cargo *c,
                                     int root, int sock)
{
    struct err *e = attach_all(h, b, mounts, c, root);
    struct box_report r = {.kind = REPORT_ERROR};

    if (e) {
        r.code = (uint32_t)err_code(e);
        snprintf(r.text, sizeof r.text, "%s", err_text(e));
    }
    bool told = !e || send(sock, &r, sizeof r, MSG_NOSIGNAL) == sizeof r;
    _exit(e || !told ? 1 : 0);
}

static fallible in_a_child(const struct box_host *h, const struct box *b,
                           const struct native_mount *mounts, const struct box_cargo *c, int root)
{
    struct box_report r = {.kind = 0};
    int pair[2], status = 0;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys("make a socket pair");
    own_fd ours = pair[0], theirs = pair[1];
    pid_t pid = fork();
    if (pid == 0)
        attach_and_die(h, b, mounts, c, root, theirs);
    if (pid < 0)
        return err_sys("fork");
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return NULL;
    if (recv(ours, &r, sizeof r, MSG_DONTWAIT) != sizeof r)
        return err_new(ERR_INTERNAL, "who attaches its mounts died");
    r.text[sizeof r.text - 1] = '\0';
    return err_recode(err_new(ERR_INTERNAL, "%s", r.text), (enum err_code)r.code);
}

static fallible open_proc(pid_t pid, const char *what, int flags, int *ret_fd)
{
    char path[48];

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, what);
    *ret_fd = open(path, flags | O_CLOEXEC);
    return *ret_fd < 0 ? err_sys("open '%s'", path) : NULL;
}

static fallible add_mounts(struct box_host *h, const struct box *b, const struct box_spec *spec,
                           int dir)
{
    struct box_cargo c = {.count = 0};
    struct box copy = {.slot = b->slot, .home = -1, .disk = -1};
    own_fd userns = -1, root = -1;

    TRY(open_proc(b->pid, "ns/user", O_RDONLY, &userns)); /* our child, not reaped: still its own */
    TRY(open_proc(b->pid, "root", O_PATH | O_DIRECTORY, &root));
    struct err *e = box_build(h, spec, &copy, userns, dir, &c);
    if (!e)
        e = in_a_child(h, b, spec->req->mounts, &c, root);
    box_cargo_done(&c);
    own_close_p(&copy.home);
    return e;
}

static bool has_mounts(const struct native_request *r)
{
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++)
        if (r->mounts[i].mode)
            return true;
    return false;
}

/* For the next launcher: what it is mounted on decides whether it may be frozen. */
static fallible note(int dir, const struct native_request *req)
{
    struct record r;

    TRY(record_read(dir, &r));
    return record_write(dir, &r, req);
}

fallible box_claim(struct box_host *h, const struct box *b, const struct box_spec *spec,
                   const struct native_request *was)
{
    const struct native_request *req = spec->req;
    bool renamed = strcmp(req->hostname, was->hostname) != 0, mounts = has_mounts(req);
    own_fd dir = -1;

    TRY_WRAP(set_limits(h, b, &req->limits, &was->limits), "limits");
    if (!renamed && !mounts)
        return NULL;
    dir = openat(h->boxes, b->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_sys("open its directory");
    if (renamed)
        TRY_WRAP(set_name(b, dir, req->hostname), "host name");
    if (!mounts)
        return NULL;
    TRY(add_mounts(h, b, spec, dir));
    return note(dir, req);
}
