// SPDX-License-Identifier: Apache-2.0
/* run.c — see run.h. */
#include "host/run/run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/rng.h"
#include "host/images/images.h"
#include "host/overlay/overlay.h"
#include "host/launcher/box.h"
#include "host/launcher/box_sweep.h"
#include "host/launcher/disk.h"
#include "host/launcher/identity.h"
#include "host/launcher/layers.h"
#include "host/launcher/setid.h"
#include "host/tree/tree.h"
#include "host/rootfs/rootfs.h"
#include "host/run/left.h"
#include "host/run/plan.h"
#include "host/run/relay.h"
#include "host/snaps/merge.h"
#include "host/snaps/snaps.h"
#include "host/snaps/whole.h"

/* --- what is left --- */

static bool is_empty(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    unsigned entries = 0;

    if (!d) {
        own_close_p(&fd);
        return true;
    }
    while (entries < 3 && readdir(d))
        entries++;
    closedir(d);
    return entries < 3;
}

/* Files of a disk of its own that stay go where they would be without one. */
static fallible take_out(const struct run_spec *s, const struct box *b)
{
    for (size_t i = 0; i < s->mount_count && s->keep; i++) {
        char upper[BOX_NAME], work[BOX_NAME];
        box_upper_name((unsigned)i, upper, work);
        if (s->mounts[i].mode != NATIVE_OVERLAY || is_empty(b->disk, upper))
            continue;
        if (mkdirat(b->home, upper, 0755) < 0)
            return err_sys("make a directory for what changed");
        own_fd from = openat(b->disk, upper, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        own_fd to = openat(b->home, upper, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (from < 0 || to < 0)
            return err_sys("open what changed");
        TRY_WRAP(merge_layers(&(const int){from}, 1, false, to, NULL), "keep what changed");
        TRY(snaps_note_copy(b->home, (unsigned)i, from));
    }
    return NULL;
}

static fallible take_out_as(const struct box_host *h, const struct run_spec *s, const struct box *b)
{
    struct ids_range ids = box_ids(h, b->slot);

    TRY(ids_enter(&ids));
    struct err *e = take_out(s, b), *back = ids_leave();
    if (!e)
        return back;
    err_free(back);
    return e;
}

static bool has_changes(const struct run_spec *s, int dir)
{
    bool any = false;

    for (size_t i = 0; i < s->mount_count && s->keep; i++) {
        char upper[BOX_NAME], work[BOX_NAME];
        box_upper_name((unsigned)i, upper, work);
        any |= s->mounts[i].mode == NATIVE_OVERLAY && !is_empty(dir, upper);
    }
    return any;
}

/* Only the upper layers of mounts are worth keeping. */
static fallible thin_out(const struct run_spec *s, const struct plan *p, int dir)
{
    for (size_t i = 0; i < s->mount_count; i++) {
        char upper[BOX_NAME], work[BOX_NAME];
        box_upper_name((unsigned)i, upper, work);
        TRY(tree_remove(dir, work));
    }
    for (size_t i = 0; i < p->spec.root_count; i++) {
        TRY(tree_remove(dir, p->roots[i].upper));
        TRY(tree_remove(dir, p->roots[i].work));
    }
    TRY(tree_remove(dir, DISK_IMAGE));
    return tree_remove(dir, IDENTITY_DIR);
}

/* As root alone: an ordinary user's set-id file gives nothing but that user. One that fails does
 * not stop the next. */
static fallible strip_set_ids(const struct box_host *h, const struct run_spec *s,
                              const struct plan *p)
{
    struct err *first = NULL;

    for (size_t i = 0; i < s->mount_count && !h->user; i++) {
        if (s->mounts[i].mode != NATIVE_RW)
            continue;
        struct err *e = setid_strip(p->spec.sources[i], p->began_wall_ns);
        if (first)
            err_free(e);
        else
            first = e;
    }
    return first;
}

static fallible run_tidy(struct box_host *h, const struct run_spec *s, const struct plan *p,
                         struct box *b, bool keep)
{
    own_fd dir = openat(h->boxes, s->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0)
        return err_sys("open the sandbox's directory");
    TRY_WRAP(fd_wait(b->pidfd, POLLIN, BOX_WAIT_MS), "its pid 1");
    TRY(strip_set_ids(h, s, p));
    if (keep)
        TRY(thin_out(s, p, dir));
    TRY(box_remove(h, b, keep));
    return box_sweep(h, true);
}

/* A child removes the sandbox, so that croft run ends at once. It is forked while the command runs,
 * holds no descriptor of the caller's, and starts at a byte from croft run. It shares the lock on
 * the state: a sweep that wants all gone waits for it. */
struct deleter {
    pid_t pid; /* -1: none */
    int word;
};

static _Noreturn void deleter_live(struct box_host *h, const struct run_spec *s,
                                   const struct plan *p, struct box *b, int word)
{
    char byte;

    setsid();
    own_close_p(&b->tty);
    own_close_p(&b->disk);
    b->tty = b->disk = -1;
    int none = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd <= 2; fd++) /* what is opened next must not be where errors go */
        none < 0 ? close(fd) : dup2(none, fd);
    if (recv(word, &byte, 1, 0) != 1)
        _exit(0); /* croft run itself does it, or the next sweep */
    int gathered = left_listen();
    struct err *e = run_tidy(h, s, p, b, false);
    left_keep(h->dir, gathered, e);
    box_host_spread(h); /* for the next ones */
    if (!e && !s->root && !s->image && rootfs_host_is_stale(h->dir))
        e = rootfs_host_refresh(h->dir);
    int code = e ? 1 : 0; /* what is left is found by the next sweep */
    err_free(e);
    _exit(code);
}

static struct deleter deleter_start(struct box_host *h, const struct run_spec *s,
                                    const struct plan *p, struct box *b)
{
    struct deleter none = {-1, -1};
    sigset_t all, before;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return none;
    sigfillset(&all); /* our terminal hangs up when we end, on it too if it has not run yet */
    sigprocmask(SIG_BLOCK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) {
        close(pair[0]);
        deleter_live(h, s, p, b, pair[1]);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return none;
    }
    return (struct deleter){pid, pair[0]};
}

/* Changes that stay may be applied or dropped by the very next command, so they are made ready
 * first. */
static fallible deleter_end(struct deleter *deleter, struct box_host *h, const struct run_spec *s,
                            const struct plan *p, struct box *b, bool keep)
{
    bool taken = !keep && deleter->pid > 0 && send(deleter->word, "", 1, MSG_NOSIGNAL) == 1;

    own_close_p(&deleter->word);
    if (taken) {
        own_close_p(&b->pidfd);
        own_close_p(&b->tty);
        own_close_p(&b->disk);
        own_close_p(&b->home);
        return NULL;
    }
    while (deleter->pid > 0 && waitpid(deleter->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    int gathered = left_listen();
    struct err *e = run_tidy(h, s, p, b, keep);
    left_keep(h->dir, gathered, NULL); /* the caller tells an error */
    return e;
}

/* A word of pid 1: all other processes inside are dead, and so is it in a moment. Without one it
 * died in some other way, or was not asked. */
static fallible wait_end(const struct plan *p, const struct box *b, struct run_result *result)
{
    siginfo_t info;
    uint8_t code;

    if (p->end >= 0 && read(p->end, &code, 1) == 1) {
        result->exit_code = code;
        return NULL;
    }

    while (waitid(P_PIDFD, (id_t)b->pidfd, &info, WEXITED) < 0)
        if (errno != EINTR)
            return err_sys("wait for the sandbox");
    result->exit_code = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
    return NULL;
}

static bool is_full(const struct run_spec *s, const struct plan *p, int disk, int dir)
{
    char upper[BOX_NAME], work[BOX_NAME];

    if (disk >= 0)
        return disk_is_full(disk, ".");
    box_upper_name(0, upper, work);
    bool over = s->mount_count && s->mounts[0].mode == NATIVE_OVERLAY;
    return disk_is_full(dir, over ? upper : p->roots[0].upper);
}

/* Which limits it met. */
static fallible count_hits(const struct box_host *h, const struct box *b, struct run_result *result)
{
    char group[BOX_NAME];
    own_fd oom = -1;

    box_group_name(b->slot, group);
    if (result->limits.pids)
        result->pids_denied = cg_pids_denied(&h->cg, group);
    TRY(cg_open_oom(&h->cg, group, &oom));
    return oom >= 0 ? cg_read_oom(oom, &result->oom_kills) : NULL;
}

/* A run that leaves nothing is the last one over its directories all the same. */
static void note_what_is_left(const struct box_host *h, const struct run_spec *s, int dir,
                              bool kept)
{
    struct overlay_run run = {.wall_ns = clock_wall_ns(&clock_system),
                              .end = s->keep ? OVERLAY_NOTHING : OVERLAY_DISCARDED};
    char real[PATH_MAX];

    if (kept) {
        overlay_note_end(dir);
        return;
    }
    snprintf(run.id, sizeof run.id, "%s", s->id);
    overlay_put_command(s->argv, run.command);
    for (size_t i = 0; i < s->mount_count; i++) {
        if (s->mounts[i].mode != NATIVE_OVERLAY)
            continue;
        if (s->keep && dir >= 0)
            overlay_forget(dir, (unsigned)i);
        if (realpath(s->mounts[i].source, real))
            overlay_note_last(h->dir, real, &run);
    }
}

static fallible run_live(struct box_host *h, const struct run_spec *s, const struct plan *p,
                         struct box *b, struct run_result *result)
{
    struct relay r = {.in = s->in,
                      .out = s->out,
                      .master = b->tty,
                      .pidfd = b->pidfd,
                      .end = p->end,
                      .before = &p->signals};
    struct err *e = relay_run(&r, &result->unread);

    if (e) {
        sigprocmask(SIG_SETMASK, &p->signals, NULL);
        err_free(box_kill(h, b)); /* the relay's error is the one to tell */
    }
    struct err *end = wait_end(p, b, result);
    given_restore(&p->given);
    if (e) {
        err_free(end);
        return e;
    }
    TRY(end);
    own_fd dir = openat(h->boxes, s->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    result->disk_full = result->limits.disk_bytes && is_full(s, p, b->disk, dir);
    if (b->disk >= 0)
        TRY(take_out_as(h, s, b));
    result->kept = dir >= 0 && has_changes(s, dir);
    note_what_is_left(h, s, dir, result->kept);
    if (dir >= 0 && (result->kept || s->image)) { /* what its root was made of may go from now on */
        unlinkat(dir, "image", 0);
        unlinkat(dir, "root", 0);
    }
    return count_hits(h, b, result);
}

static fallible start_held(struct box_host *h, struct plan *p, struct box_spare *spare,
                           struct box *ret_box)
{
    relay_hold(&p->signals);
    struct err *e = box_start(h, spare, &p->spec, ret_box);
    if (e)
        sigprocmask(SIG_SETMASK, &p->signals, NULL);
    return e;
}

/* The spare gets ready while we look at the rest of the plan. */
static fallible run_box(struct box_host *h, const struct run_spec *s, struct plan *p,
                        struct run_result *result)
{
    struct box_spare spare;
    struct box b;
    uint64_t begin = clock_mono_ns(&clock_system);

    p->began_wall_ns = clock_wall_ns(&clock_system);
    TRY(box_prepare_spare(h, s->id, &spare));
    struct err *e = plan_make(h, s, p);
    if (e)
        box_drop_spare(h, &spare);
    else
        e = start_held(h, p, &spare, &b);
    if (e && p->made)
        err_free(tree_remove(h->boxes, s->id)); /* the first error is the one to tell */
    TRY(e);
    result->unlimited = p->unlimited;
    result->limits = p->req.limits;
    result->disk = p->spec.disk;
    result->start_ns = clock_mono_ns(&clock_system) - begin;
    own_close_p(&p->spec.fds[RUN_END_FD]);
    p->spec.fds[RUN_END_FD] = -1; /* pid 1 has it, alone */
    struct deleter deleter = deleter_start(h, s, p, &b);
    e = run_live(h, s, p, &b, result);
    result->run_ns = clock_mono_ns(&clock_system) - begin - result->start_ns;
    struct err *end = deleter_end(&deleter, h, s, p, &b, result->kept);
    if (!e)
        return end;
    err_free(end);
    return e;
}

static fallible check_id(const char *id)
{
    if (native_id_ok(id, strlen(id) + 1) && strlen(id) < NATIVE_ID_MAX)
        return NULL;
    return err_new(ERR_INVALID, "'%.80s' is no name for a sandbox: letters, digits, '-', '_'", id);
}

fallible run_sandbox(const struct run_spec *spec, struct run_result *ret_result)
{
    struct plan p;
    struct box_host h;

    plan_init(&p);
    *ret_result = (struct run_result){0};
    TRY(box_host_open(&h, spec->state, rng_system()));
    struct err *e = check_id(spec->id);
    if (!e)
        e = layers_require(&h, spec->require);
    if (!e && strcmp(spec->user, "root") != 0)
        e = err_wrap(layers_require(&h, STR("users")), "run as '%s'", spec->user);
    if (!e)
        e = run_box(&h, spec, &p, ret_result);
    plan_done(&p);
    box_host_close(&h);
    return e;
}
