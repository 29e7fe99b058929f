// SPDX-License-Identifier: Apache-2.0
/* box_bare.c — a mount namespace with nothing in it, which a launcher's sandboxes start with copies
 * of.
 *
 * A copy of the machine's would have to be left by pivot_root(), which looks at every process of
 * the machine (0.7 ms with 1,000 sandboxes). All its mounts would be copied and dropped again,
 * behind a grace period.
 *
 * In a copy of this one the new root is mounted over '/': below it is an empty file system,
 * read-only. A process that got out of its root would be there again, because no path leads from a
 * mount on '/' to what it covers. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "base/own.h"
#include "host/launcher/box_inner.h"
#include "host/launcher/mounts.h"
#include "host/kernel/sys.h"

/* Directories for proc and for its root, until a sandbox has its own root. */
static fallible bare_fill(int fs)
{
    if (mkdirat(fs, "proc", 0555) < 0 || mkdirat(fs, BOX_PLACE, 0755) < 0)
        return err_sys("fill it");
    return NULL;
}

static fallible bare_make(const struct box_host *h)
{
    static const char *const options[] = {"mode=755", "size=64k", NULL};
    struct mount_attr sealed = {.attr_set = MOUNT_ATTR_RDONLY};
    char at[BOX_STATE + 8];
    own_fd fs = -1;

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_sys("make a namespace");
    TRY(mounts_new("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, &fs));
    TRY(bare_fill(fs));
    snprintf(at, sizeof at, "%s/" BOX_PLACE, h->state);
    if (sys_move_mount(fs, AT_FDCWD, at) < 0 || chdir(at) < 0)
        return err_sys("mount it");
    if (sys_pivot_root(".", ".") < 0 || umount2(".", MNT_DETACH) < 0)
        return err_sys("let go of all else");
    return sys_mount_setattr(fs, &sealed) < 0 ? err_sys("seal it") : NULL;
}

static _Noreturn void make_and_wait(const struct box_host *h, int sock)
{
    struct err *e = bare_make(h);
    struct box_report r = {.code = e ? err_code(e) : 0};

    if (e)
        snprintf(r.text, sizeof r.text, "%s", err_text(e));
    (void)!send(sock, &r, sizeof r, MSG_NOSIGNAL);
    (void)!read(sock, &r, 1); /* until the launcher has opened it, or is gone */
    _exit(0);
}

static fallible open_of(pid_t pid, int sock, int *ret_ns)
{
    struct box_report r;
    char path[48];

    if (recv(sock, &r, sizeof r, 0) != sizeof r)
        return err_new(ERR_INTERNAL, "the child died");
    r.text[sizeof r.text - 1] = '\0';
    if (r.code)
        return err_recode(err_new(ERR_INTERNAL, "%s", r.text), (enum err_code)r.code);
    snprintf(path, sizeof path, "/proc/%d/ns/mnt", (int)pid);
    *ret_ns = open(path, O_RDONLY | O_CLOEXEC);
    return *ret_ns < 0 ? err_sys("open '%s'", path) : NULL;
}

fallible box_bare_open(struct box_host *h)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys("make a socket pair");
    own_fd ours = pair[0], theirs = pair[1];
    pid_t pid = fork();
    if (pid == 0) {
        own_close(take_fd(&ours));
        make_and_wait(h, theirs);
    }
    if (pid < 0)
        return err_sys("fork");
    own_close(take_fd(&theirs));
    struct err *e = open_of(pid, ours, &h->bare);
    own_close(take_fd(&ours));
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return err_wrap(e, "make an empty namespace of mounts");
}
