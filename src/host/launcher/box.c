// SPDX-License-Identifier: Apache-2.0
/* box.c — see box.h. This side stays outside; box_child.c is what it clones. */
#include "host/launcher/box.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/rng.h"
#include "host/launcher/box_inner.h"
#include "host/launcher/disk.h"
#include "host/launcher/identity.h"
#include "host/record/record.h"
#include "host/kernel/sys.h"
#include "host/launcher/mounts.h"
#include "host/launcher/reuse/reuse.h"
#include "host/tree/tree.h"

void box_group_name(unsigned slot, char out[BOX_NAME])
{
    snprintf(out, BOX_NAME, "s%u", slot);
}

/* --- spares --- */

#define CLAIM_TRIES 256

static const struct box_spare no_spare = {.pid = 0, .pidfd = -1, .sock = -1, .userns = -1};

static void box_reap(pid_t pid)
{
    while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
        ;
}

/* Control groups and ids go with the process. Errors here would hide the one that brought us here,
 * and what could not be removed is found again by its claim. */
void box_forget_slot(struct box_host *h, unsigned slot)
{
    char group[BOX_NAME];

    reuse_drop_layers(h, slot);
    box_group_name(slot, group);
    struct err *e = cg_remove(&h->cg, group);
    if (!e)
        e = ids_release(h->ids, slot);
    err_free(e);
}

void box_clear_fd_slot(struct box_host *h)
{
    fd_slot_clear(&h->fd_slot);
}

bool box_is_untidy(const struct box_host *h)
{
    return h->holder.pid || h->fd_slot.waits >= 0;
}

void box_tidy(struct box_host *h)
{
    ids_reap(&h->holder);
    box_clear_fd_slot(h);
}

static fallible box_spawn(struct box_host *h, struct box_spare *e)
{
    int pair[2];
    own_fd group = -1;
    char name[BOX_NAME];

    box_group_name(e->slot, name);
    TRY(cg_make_v2(&h->cg, name, &group));
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys("make a socket pair");
    own_fd theirs = pair[1];
    e->sock = pair[0];
    TRY(fd_slot_put(&h->fd_slot, theirs));
    struct clone_args args = {.flags = CLONE_PIDFD | CLONE_NEWPID | CLONE_FILES |
                                       (h->bare < 0 ? CLONE_NEWNS : 0) |
                                       (group >= 0 ? CLONE_INTO_CGROUP : 0),
                              .pidfd = (uintptr_t)&e->pidfd,
                              .exit_signal = SIGCHLD,
                              .cgroup = group >= 0 ? (uint64_t)group : 0};
    mem_trim_stack(); /* else the child copies it, and copies it again when it writes there */
    pid_t pid = sys_clone3(&args);
    if (pid == 0) {
        if (h->bare >= 0 && setns(h->bare, CLONE_NEWNS) < 0)
            _exit(125);
        box_child(h, e, fd_slot_leave(&h->fd_slot));
    }
    struct err *err = pid < 0 ? sys_not_of_disk(err_sys("clone")) : NULL;
    fd_slot_given(&h->fd_slot, pid < 0 ? -1 : e->pidfd);
    e->pid = pid < 0 ? 0 : pid;
    return err;
}

static fallible box_make_spare(struct box_host *h, struct box_spare *e)
{
    struct ids_range ids = box_ids(h, e->slot);

    TRY(box_spawn(h, e));
    return e->userns >= 0 ? NULL : ids_make_userns(&h->holder, &ids, &e->userns);
}

/* Claims are kept per state directory, control groups are the machine's: a slot is ours when both
 * are, so that two states never share a range of ids. */
static fallible claim_slot(struct box_host *h, const char *claim, unsigned *ret_slot)
{
    for (unsigned tries = 0; tries < CLAIM_TRIES; tries++) {
        char group[BOX_NAME];
        bool taken = false;
        TRY(ids_claim(h->ids, claim, h->rng, ret_slot));
        box_group_name(*ret_slot, group);
        struct err *e = cg_claim(&h->cg, group, &taken);
        if (!e && !taken)
            return NULL;
        struct err *back = ids_release(h->ids, *ret_slot);
        if (back) { /* once more; what stays is the next sweep's */
            err_free(back);
            back = ids_release(h->ids, *ret_slot);
        }
        if (e)
            err_free(back); /* the first error is the one to tell */
        TRY(e ? e : back);
    }
    return err_new(ERR_LIMIT, "no range of user ids is free; too many sandboxes");
}

fallible box_prepare_spare(struct box_host *h, const char *claim, struct box_spare *ret_spare)
{
    struct box_spare e = no_spare;

    box_clear_fd_slot(h);
    if (!reuse_take_slot(h, &e))
        TRY(claim_slot(h, claim, &e.slot));
    uint64_t begun = clock_mono_ns(&clock_system);
    struct err *err = box_make_spare(h, &e);
    e.made_ns = clock_mono_ns(&clock_system) - begun;
    if (err)
        box_drop_spare(h, &e);
    else
        *ret_spare = e;
    return err;
}

static void close_spare(struct box_spare *e)
{
    own_close_p(&e->pidfd);
    own_close_p(&e->sock);
    own_close_p(&e->userns);
    *e = no_spare;
}

void box_drop_spare(struct box_host *h, struct box_spare *e)
{
    unsigned slot = e->slot;

    if (e->pid) {
        kill(e->pid, SIGKILL);
        box_reap(e->pid);
    }
    box_tidy(h);
    close_spare(e);
    box_forget_slot(h, slot);
}

/* --- start --- */

static fallible put_prefix(struct box_order *o, const char *const *list)
{
    size_t at = 0;

    for (; list && *list; list++) {
        size_t n = strlen(*list) + 1;
        if (at + n > sizeof o->prefix)
            return err_new(ERR_LIMIT, "too many arguments for pid 1");
        memcpy(o->prefix + at, *list, n);
        at += n;
        o->prefix_count++;
    }
    return NULL;
}

static fallible send_order(const struct box_spare *e, const struct box_spec *s,
                           const struct box_cargo *c)
{
    struct box_order order = {.req = *s->req, .flags = s->flags, .slot = e->slot};
    int fds[FD_PASS_MAX];
    size_t count = c->count;

    memcpy(fds, c->fds, count * sizeof *fds);
    order.fd_count = s->fd_count;
    order.root_count = (uint32_t)s->root_count;
    order.oom_at = s->oom_at;
    order.was = e->limits;
    order.tty_rows = s->tty_rows;
    order.tty_cols = s->tty_cols;
    TRY(put_prefix(&order, s->prefix));
    for (size_t i = 0; i < s->root_count; i++)
        snprintf(order.where[i], sizeof order.where[i], "%s", s->roots[i].where);
    for (unsigned i = 0; i < s->fd_count; i++) {
        if (s->fds[i] < 0)
            continue;
        if (count == FD_PASS_MAX)
            return err_new(ERR_LIMIT, "more descriptors than can be passed");
        order.fd_given |= 1u << i;
        fds[count++] = s->fds[i];
    }
    return fd_send(e->sock, str_n(&order, sizeof order), fds, count);
}

/* The child's socket closes when it is exec'd; before that it may send its terminal, or its end,
 * which *ret_said tells. One that dies with an order unread resets the socket first: what it said
 * comes behind that. */
static fallible listen_to(const struct box_spare *e, int wait_ms, int *ret_tty, bool *ret_said)
{
    struct err *reset = NULL;

    for (;;) {
        struct box_report r;
        int tty = -1;
        size_t n = 0, count = 0;
        struct err *err = fd_wait(e->sock, POLLIN, wait_ms);
        if (!err)
            err = fd_recv(e->sock, &r, sizeof r, &n, &tty, 1, &count);
        if (err && !reset && err_errno(err) == ECONNRESET) {
            reset = err;
            continue;
        }
        if (reset && (err || n == 0)) {
            err_free(err);
            return reset;
        }
        err_free(reset);
        reset = NULL;
        if (err || n == 0)
            return err;
        if (n == sizeof r && r.kind == REPORT_TTY && count == 1) {
            own_close_p(ret_tty);
            *ret_tty = tty;
            continue;
        }
        own_close_p(&tty);
        *ret_said = true;
        r.text[sizeof r.text - 1] = '\0';
        return err_recode(err_new(ERR_INTERNAL, "%s", r.text), (enum err_code)r.code);
    }
}

/* The child had ended before it was told what to become: why, it may have said itself. */
static fallible why_not_sent(const struct box_spare *e, struct err *err)
{
    int tty = -1;
    bool said = false;

    if (err_errno(err) != EPIPE && err_errno(err) != ECONNRESET)
        return err;
    struct err *why = listen_to(e, 0, &tty, &said);
    own_close_p(&tty);
    err_free(said ? err : why);
    return said ? why : err;
}

/* Another name of the link that was made last, if it says the same, takes no inode. */
static bool put_note(struct box_host *h, int dir, const char *id)
{
    if (h->noted >= 0 && strcmp(h->noted_id, id) == 0) {
        if (linkat(h->noted, "", dir, "root", AT_EMPTY_PATH) == 0)
            return true;
        if (errno == EEXIST)
            return false;
    }
    if (symlinkat(id, dir, "root") < 0)
        return false;
    if (!h->many || strlen(id) >= sizeof h->noted_id)
        return true;
    own_close_p(&h->noted);
    h->noted = openat(dir, "root", O_PATH | O_NOFOLLOW | O_CLOEXEC); /* else the next makes one */
    strcpy(h->noted_id, id);
    return true;
}

/* So that host/rootfs keeps these layers as long as the sandbox has its directory. */
static fallible note_root(struct box_host *h, int dir, const char *id)
{
    if (!id || !*id) {
        unlinkat(dir, "root", 0); /* of its life before */
        return NULL;
    }
    if (put_note(h, dir, id))
        return NULL;
    if (errno == EEXIST && unlinkat(dir, "root", 0) == 0 && put_note(h, dir, id))
        return NULL;
    return err_sys("note its root file system");
}

/* The others are its own to write, see box_child.c. */
static fallible box_limit(const struct box_host *h, const struct box_spare *e,
                          const struct native_limits *limits)
{
    char group[BOX_NAME];
    struct native_limits was = cg_part(&h->cg, &e->limits, true);
    struct native_limits now = cg_part(&h->cg, limits, true);

    box_group_name(e->slot, group);
    return cg_limit(&h->cg, group, &was, &now);
}

static uint32_t record_flags(const struct box_spec *spec)
{
    return (spec->flags & BOX_LAUNCHER ? RECORD_LAUNCHER : 0) |
           (spec->flags & BOX_PERSIST ? RECORD_PERSIST : 0) |
           (spec->flags & BOX_JOINED ? RECORD_JOINED : 0);
}

/* The machine id of its life before. If death tore the record, a new one is made. */
static void choose_machine_id(const struct box_host *h, int dir, char out[RECORD_MACHINE])
{
    struct record before;
    struct err *e = record_read(dir, &before);

    if (!e && strnlen(before.machine_id, RECORD_MACHINE) == RNG_HEX_LEN)
        memcpy(out, before.machine_id, RNG_HEX_LEN + 1);
    else
        rng_hex(h->rng, out);
    err_free(e); /* most often there is none */
}

static fallible box_order_start(struct box_host *h, struct box_spare *e,
                                const struct box_spec *spec, struct box *box)
{
    own_fd dir = openat(h->boxes, spec->req->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct box_cargo c = {.fds = {e->userns, h->exe, spec->block >= 0 ? spec->block : h->exe},
                          .count = ORDER_FIXED,
                          .lent = ORDER_FIXED};
    uint64_t begun = clock_mono_ns(&clock_system);

    if (dir < 0)
        return err_sys("open its directory");
    struct record life = {
        .slot = e->slot, .pid = e->pid, .flags = record_flags(spec), .cpu_ns = e->cpu_ns};
    memcpy(life.boot, h->boot, sizeof life.boot);
    choose_machine_id(h, dir, life.machine_id);
    struct err *err = record_which(e->pid, e->pidfd, &life.which);
    if (!err)
        err = record_write(dir, &life, spec->req);
    if (!err)
        err = note_root(h, dir, spec->root_id);
    if (!err)
        err = box_limit(h, e, &spec->req->limits);
    if (!err)
        err = box_build(h, spec, box, e->userns, dir, life.machine_id, &c);
    box_clear_fd_slot(h); /* or the launcher would hold the end that is to close */
    if (!err && (err = send_order(e, spec, &c)))
        err = why_not_sent(e, err);
    box_cargo_done(&c);
    e->ordered_ns = clock_mono_ns(&clock_system);
    box->phase_ns[NATIVE_MOUNTING] = e->ordered_ns - begun;
    return err;
}

fallible box_make_dir(const struct box_host *h, const char *id)
{
    if (mkdirat(h->boxes, id, 0700) == 0)
        return NULL;
    if (errno == EEXIST)
        return err_new(ERR_CONFLICT, "there is one of this name already");
    return err_sys("make the directory of '%s'", id);
}

/* A failed removal is tried once more: the sandbox's claim goes, so no sweep would find it. */
static void remove_unstarted(const struct box_host *h, const char *id)
{
    struct err *e = tree_remove(h->boxes, id);

    if (e) {
        err_free(e);
        e = tree_remove(h->boxes, id);
    }
    if (e) /* the start's own error is the one to tell its caller */
        log_warn("a sandbox that did not start is left on the disk", KV("id", id), KV_ERR(e));
    err_free(e);
}

static void undo_start(struct box_host *h, struct box_spare *e, unsigned flags, const char *id,
                       struct box *b)
{
    own_close_p(&b->home);
    own_close_p(&b->tty);
    own_close_p(&b->disk);
    b->home = b->tty = b->disk = -1;
    kill(e->pid, SIGKILL); /* it holds mounts of the directory */
    box_reap(e->pid);
    e->pid = 0;
    if (h->names >= 0)
        identity_drop(h->names, id);
    if (!(flags & BOX_DIR_MADE)) /* its maker knows what else is in it */
        remove_unstarted(h, id);
    box_drop_spare(h, e);
}

fallible box_begin(struct box_host *h, struct box_spare *e, const struct box_spec *spec,
                   struct box *ret_box)
{
    struct box b = {.slot = e->slot,
                    .pid = e->pid,
                    .pidfd = -1,
                    .tty = -1,
                    .disk = -1,
                    .home = -1,
                    .userns = -1,
                    .limits = spec->req->limits,
                    .cpu_ns = e->cpu_ns,
                    .single_use = !h->reuse || spec->req->flags & NATIVE_NESTED};
    const char *id = spec->req->id;

    b.phase_ns[NATIVE_NAMESPACES] = e->made_ns;
    memcpy(b.id, id, sizeof b.id);
    struct err *err = spec->flags & BOX_DIR_MADE ? NULL : box_make_dir(h, id);
    if (err)
        box_drop_spare(h, e);
    else if ((err = box_order_start(h, e, spec, &b)))
        undo_start(h, e, spec->flags, id, &b);
    else if (b.disk < 0 && !(spec->flags & BOX_LEAVE_LAYERS)) {
        own_close_p(&b.home);
        b.home = -1;
    }
    if (!err)
        *ret_box = b;
    return err;
}

fallible box_end(struct box_host *h, struct box_spare *e, unsigned flags, int wait_ms,
                 struct box *b)
{
    bool said = false;
    struct err *err = listen_to(e, wait_ms, &b->tty, &said);

    b->phase_ns[NATIVE_EXEC] = clock_mono_ns(&clock_system) - e->ordered_ns;
    if (err) {
        undo_start(h, e, flags, b->id, b);
        return err;
    }
    b->pidfd = take_fd(&e->pidfd);
    if (!b->single_use)
        b->userns = take_fd(&e->userns);
    close_spare(e);
    return NULL;
}

fallible box_start(struct box_host *h, struct box_spare *e, const struct box_spec *spec,
                   struct box *ret_box)
{
    struct box b;

    TRY_WRAP(box_begin(h, e, spec, &b), "start sandbox '%s'", spec->req->id);
    TRY_WRAP(box_end(h, e, spec->flags, BOX_WAIT_MS, &b), "start sandbox '%s'", spec->req->id);
    *ret_box = b;
    return NULL;
}

/* --- life and end --- */

fallible box_kill(const struct box_host *h, const struct box *b)
{
    char group[BOX_NAME];

    box_group_name(b->slot, group);
    if (sys_pidfd_kill(b->pidfd, SIGKILL) < 0 && errno != ESRCH)
        return err_sys("kill sandbox '%s'", b->id);
    /* All others go with pid 1; a frozen v1 group dies when it thaws, and of an adopted sandbox
     * nothing is certain. Other groups are not killed as a whole, for they may be used again:
     * Linux 6.18 kills every process that is cloned into a group that was killed once. */
    return b->single_use && cg_has(&h->cg, CG_FREEZER) ? cg_kill(&h->cg, group) : NULL;
}

fallible box_pause(const struct box_host *h, struct box *b, bool paused)
{
    char group[BOX_NAME];

    b->single_use = true;
    box_group_name(b->slot, group);
    return cg_freeze(&h->cg, group, paused, BOX_WAIT_MS);
}

fallible box_remove(struct box_host *h, struct box *b, bool keep)
{
    char group[BOX_NAME];

    box_group_name(b->slot, group);
    own_close_p(&b->pidfd);
    own_close_p(&b->tty);
    own_close_p(&b->disk);
    own_close_p(&b->home);
    b->pidfd = b->tty = b->disk = b->home = -1;
    if (h->names >= 0 && !b->names_dropped)
        identity_drop(h->names, b->id);
    b->names_dropped = true;
    bool used = reuse_put_slot(h, b);
    own_close_p(&b->userns);
    b->userns = -1;
    if (!used) {
        reuse_drop_layers(h, b->slot);
        TRY(cg_remove(&h->cg, group));
    }
    if (!keep)
        TRY(box_remove_dir(h, b->id));
    return used ? NULL : ids_release(h->ids, b->slot);
}
