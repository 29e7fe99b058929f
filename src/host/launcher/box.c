// SPDX-License-Identifier: Apache-2.0
/* box.c — see box.h. This side stays outside; box_child.c is what it clones. */
#include "host/launcher/box.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "base/own.h"
#include "host/launcher/box_inner.h"
#include "host/launcher/disk.h"
#include "host/launcher/identity.h"
#include "host/launcher/record.h"
#include "host/launcher/sys.h"
#include "host/launcher/mounts.h"
#include "host/tree/tree.h"

void box_upper_name(unsigned mount, char out_upper[BOX_NAME], char out_work[BOX_NAME])
{
    snprintf(out_upper, BOX_NAME, "m%uu", mount);
    snprintf(out_work, BOX_NAME, "m%uw", mount);
}

void box_group_name(unsigned slot, char out[BOX_NAME])
{
    snprintf(out, BOX_NAME, "s%u", slot);
}

/* --- embryos
 * -------------------------------------------------------------------------------------- */

#define CLAIM_TRIES 256

static const struct box_embryo no_embryo = {.pid = 0, .pidfd = -1, .sock = -1, .userns = -1};

static void reap(pid_t pid)
{
    while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
        ;
}

/* Control groups and ids go with the process. Errors here would hide the one that brought us here,
 * and what could not be removed is found again by its claim. */
static void forget(struct box_host *h, unsigned slot)
{
    char group[BOX_NAME];

    box_group_name(slot, group);
    struct err *e = cg_remove(&h->cg, group);
    if (!e)
        e = ids_release(h->ids, slot);
    err_free(e);
}

static fallible spawn(struct box_host *h, struct box_embryo *e)
{
    int pair[2];
    own_fd group = -1;
    char name[BOX_NAME];

    box_group_name(e->slot, name);
    TRY(cg_make_v2(&h->cg, name, &group));
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys("make a socket pair");
    struct clone_args args = {.flags = CLONE_PIDFD | CLONE_NEWPID | CLONE_NEWNS |
                                       (group >= 0 ? CLONE_INTO_CGROUP : 0),
                              .pidfd = (uintptr_t)&e->pidfd,
                              .exit_signal = SIGCHLD,
                              .cgroup = group >= 0 ? (uint64_t)group : 0};
    pid_t pid = sys_clone3(&args);
    if (pid == 0) {
        close(pair[0]);
        box_child(h, e->slot, pair[1]);
    }
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return err_sys("clone");
    }
    e->pid = pid;
    e->sock = pair[0];
    return NULL;
}

static fallible conceive(struct box_host *h, struct box_embryo *e)
{
    struct ids_range ids = box_ids(h, e->slot);

    TRY(spawn(h, e));
    return ids_make_userns(&ids, &e->userns);
}

/* Claims are kept per state directory, control groups are the machine's: a slot is ours when both
 * are, so that two states never share a range of ids. */
static fallible claim_slot(struct box_host *h, const char *claim, unsigned *ret_slot)
{
    for (unsigned tries = 0; tries < CLAIM_TRIES; tries++) {
        char group[BOX_NAME];
        TRY(ids_claim(h->ids, claim, h->rng, ret_slot));
        box_group_name(*ret_slot, group);
        struct err *e = cg_claim(&h->cg, group);
        if (!e)
            return NULL;
        bool taken = err_code(e) == ERR_CONFLICT;
        struct err *back = ids_release(h->ids, *ret_slot);
        if (!taken || back) {
            err_free(back);
            return e;
        }
        err_free(e);
    }
    return err_new(ERR_LIMIT, "no range of user ids is free; too many sandboxes");
}

fallible box_conceive(struct box_host *h, const char *claim, struct box_embryo *ret_embryo)
{
    struct box_embryo e = no_embryo;

    TRY(claim_slot(h, claim, &e.slot));
    struct err *err = conceive(h, &e);
    if (err)
        box_drop(h, &e);
    else
        *ret_embryo = e;
    return err;
}

static void close_embryo(struct box_embryo *e)
{
    own_close_p(&e->pidfd);
    own_close_p(&e->sock);
    own_close_p(&e->userns);
    *e = no_embryo;
}

void box_drop(struct box_host *h, struct box_embryo *e)
{
    unsigned slot = e->slot;

    if (e->pid) {
        kill(e->pid, SIGKILL);
        reap(e->pid);
    }
    close_embryo(e);
    forget(h, slot);
}

/* --- mounts
 * --------------------------------------------------------------------------------------- */

/* Everything that travels with an order, owned until it is sent. */
struct cargo {
    int fds[FD_PASS_MAX];
    size_t count;
    size_t lent; /* the first so many are not ours to close */
};

static void cargo_done(struct cargo *c)
{
    for (size_t i = c->lent; i < c->count; i++)
        own_close_p(&c->fds[i]);
}

static void add(struct cargo *c, int fd)
{
    c->fds[c->count++] = fd;
}

struct build {
    struct box_host *h;
    const struct box_spec *spec;
    int dir;     /* box/<ID> */
    int shifted; /* what upper layers are in, through an idmapped mount */
    int userns;
};

static fallible open_pair(const struct build *b, const char *upper, const char *work,
                          int *ret_upper, int *ret_work)
{
    bool made = mkdirat(b->shifted, upper, 0755) == 0 || errno == EEXIST; /* it lived before */
    if (made && b->spec->disk != NATIVE_DISK_NONE)
        TRY(tree_remove(b->shifted, work)); /* of that life, which overlay would refuse */
    if (!made || mkdirat(b->shifted, work, 0700) < 0)
        return err_sys("make an upper layer");
    own_fd u = openat(b->shifted, upper, O_PATH | O_DIRECTORY | O_CLOEXEC);
    own_fd w = openat(b->shifted, work, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (u < 0 || w < 0)
        return err_sys("open an upper layer");
    TRY(disk_count(b->spec->disk, b->dir, u));
    TRY(disk_count(b->spec->disk, b->dir, w));
    *ret_upper = take_fd(&u);
    *ret_work = take_fd(&w);
    return NULL;
}

struct stack {
    int fds[BOX_LOWERS];
    size_t count;
};

/* Layers are idmapped copies; without a range of ids to shift into, the directories themselves.
 * names is reached through such a copy already. */
static fallible clone_lowers(const struct build *b, const struct box_root *r, int names,
                             struct stack *lowers)
{
    if (r->lower_count + (names >= 0) > BOX_LOWERS)
        return err_new(ERR_LIMIT, "%zu layers, at most %d", r->lower_count, BOX_LOWERS);
    for (size_t i = 0; i < r->lower_count; i++) {
        int mount = -1;
        if (names >= 0 && i == r->frozen) {
            lowers->fds[lowers->count++] = fcntl(names, F_DUPFD_CLOEXEC, 0);
            if (lowers->fds[lowers->count - 1] < 0)
                return err_sys("copy a descriptor");
        }
        if (b->h->user)
            mount = fcntl(r->lowers[i], F_DUPFD_CLOEXEC, 0);
        else
            TRY(mounts_clone(r->lowers[i], b->userns, true, &mount));
        if (mount < 0)
            return err_sys("copy a descriptor");
        lowers->fds[lowers->count++] = mount;
    }
    return NULL;
}

static fallible stack(const struct build *b, const struct box_root *r, bool throw_away, int names,
                      int *ret_mount)
{
    struct stack lowers = {.count = 0};
    own_fd upper = -1, work = -1;
    struct err *e = open_pair(b, r->upper, r->work, &upper, &work);

    if (!e)
        e = clone_lowers(b, r, names, &lowers);
    if (!e)
        e = mounts_overlay(&(struct mounts_overlay){.lowers = lowers.fds,
                                                    .lower_count = lowers.count,
                                                    .upper = upper,
                                                    .work = work,
                                                    .throw_away = throw_away,
                                                    .user = b->h->user},
                           ret_mount);
    while (lowers.count)
        own_close(lowers.fds[--lowers.count]);
    return e;
}

static fallible build_mount(const struct build *b, unsigned n, int *ret_mount)
{
    const struct native_mount *m = &b->spec->req->mounts[n];
    int source = b->spec->sources[n];
    char upper[BOX_NAME], work[BOX_NAME];

    if (m->mode != NATIVE_OVERLAY)
        return mounts_clone(source, b->userns, m->mode == NATIVE_RO, ret_mount);
    box_upper_name(n, upper, work);
    int lowers[BOX_LOWERS];
    size_t above = b->spec->layer_count[n];
    if (above >= BOX_LOWERS)
        return err_new(ERR_LIMIT, "%zu layers, at most %d", above + 1, BOX_LOWERS);
    if (above)
        memcpy(lowers, b->spec->layers[n], above * sizeof *lowers);
    lowers[above] = source;
    struct box_root r = {.upper = upper, .work = work, .lowers = lowers, .lower_count = above + 1};
    return stack(b, &r, false, -1, ret_mount);
}

/* A directory that croft's own state lies in takes no layer from there: it keeps its names. */
static fallible build_root(struct build *b, const struct box_root *r, int *ret_mount)
{
    bool named = !r->where[0] && identity_fits(r->lowers + r->frozen, r->lower_count - r->frozen);
    own_fd names = -1;

    if (named)
        TRY(identity_make(b->shifted, b->spec->req->hostname, b->h->rng, &names));
    struct err *e = stack(b, r, true, names, ret_mount);
    if (!e || names < 0 || err_errno(e) != ELOOP)
        return e;
    err_free(e);
    TRY(tree_remove(b->shifted, r->work)); /* the first try's, which overlay would refuse */
    return stack(b, r, true, -1, ret_mount);
}

static fallible build_all(struct build *b, const struct box_embryo *e, struct cargo *c)
{
    const struct box_spec *s = b->spec;
    int mount = -1;

    add(c, e->userns);
    add(c, b->h->exe);
    add(c, s->block);
    c->lent = c->count;
    for (size_t i = 0; i < s->root_count; i++) {
        TRY_WRAP(build_root(b, &s->roots[i], &mount), "root file system '/%s'", s->roots[i].where);
        add(c, mount);
    }
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++) {
        if (!s->req->mounts[i].mode)
            continue;
        TRY_WRAP(build_mount(b, i, &mount), "mount '%s'", s->req->mounts[i].target);
        add(c, mount);
    }
    return NULL;
}

static fallible prepare(struct box_host *h, const struct box_embryo *e, const struct box_spec *spec,
                        int dir, struct cargo *c, struct box *box)
{
    struct build b = {.h = h, .spec = spec, .dir = dir, .userns = h->user ? -1 : e->userns};

    TRY(mounts_clone(dir, b.userns, false, &box->home));
    TRY(disk_open(h, spec->disk, dir, spec->req->limits.disk_bytes, b.userns, &box->disk));
    b.shifted = box->disk >= 0 ? box->disk : box->home;
    struct ids_range ids = box_ids(h, e->slot);
    TRY(ids_enter(&ids));
    struct err *err = build_all(&b, e, c);
    struct err *back = ids_leave();
    if (err) {
        err_free(back);
        return err;
    }
    return back;
}

/* --- start
 * ---------------------------------------------------------------------------------------- */

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

static fallible send_order(const struct box_embryo *e, const struct box_spec *s, struct cargo *c)
{
    struct box_order order = {.req = *s->req, .flags = s->flags, .slot = e->slot};
    int fds[FD_PASS_MAX];
    size_t count = c->count;

    memcpy(fds, c->fds, count * sizeof *fds);
    order.fd_count = s->fd_count;
    order.root_count = (uint32_t)s->root_count;
    order.oom_at = s->oom_at;
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

/* The child's socket closes when it is exec'd; before that it may send its terminal, or its end. */
static fallible wait_for_exec(const struct box_embryo *e, int *ret_tty)
{
    for (;;) {
        struct box_report r;
        int tty = -1;
        size_t n = 0, count = 0;
        TRY(fd_wait(e->sock, POLLIN, BOX_WAIT_MS));
        TRY(fd_recv(e->sock, &r, sizeof r, &n, &tty, 1, &count));
        if (n == 0)
            return NULL;
        if (n == sizeof r && r.kind == REPORT_TTY && count == 1) {
            own_close_p(ret_tty);
            *ret_tty = tty;
            continue;
        }
        own_close_p(&tty);
        r.text[sizeof r.text - 1] = '\0';
        return err_recode(err_new(ERR_INTERNAL, "%s", r.text), (enum err_code)r.code);
    }
}

/* So that host/rootfs keeps these layers as long as the sandbox has its directory. */
static fallible note_root(int dir, const char *id)
{
    unlinkat(dir, "root", 0); /* of its life before */
    if (id && *id && symlinkat(id, dir, "root") < 0)
        return err_sys("note its root file system");
    return NULL;
}

static uint32_t record_flags(const struct box_spec *spec)
{
    return (spec->flags & BOX_LAUNCHER ? RECORD_LAUNCHER : 0) |
           (spec->flags & BOX_KEPT ? RECORD_KEPT : 0);
}

static fallible start(struct box_host *h, struct box_embryo *e, const struct box_spec *spec,
                      struct box *box)
{
    own_fd dir = openat(h->boxes, spec->req->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct cargo c = {.count = 0};

    if (dir < 0)
        return err_sys("open its directory");
    struct record life = {.slot = e->slot, .pid = e->pid, .flags = record_flags(spec)};
    memcpy(life.boot, h->boot, sizeof life.boot);
    struct err *err = record_write(dir, &life, spec->req);
    if (!err)
        err = note_root(dir, spec->root_id);
    if (!err)
        err = prepare(h, e, spec, dir, &c, box);
    if (!err)
        err = send_order(e, spec, &c);
    cargo_done(&c);
    if (!err)
        err = wait_for_exec(e, &box->tty);
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

static fallible start_in_dir(struct box_host *h, struct box_embryo *e, const struct box_spec *spec,
                             struct box *ret_box)
{
    struct box b = {.slot = e->slot, .pid = e->pid, .tty = -1, .disk = -1, .home = -1};

    if (!(spec->flags & BOX_DIR_MADE))
        TRY(box_make_dir(h, spec->req->id));
    struct err *err = start(h, e, spec, &b);
    if (err || b.disk < 0)
        own_close_p(&b.home);
    if (err) {
        own_close_p(&b.tty);
        own_close_p(&b.disk);
        kill(e->pid, SIGKILL); /* it holds mounts of the directory */
        reap(e->pid);
        e->pid = 0;
        if (!(spec->flags & BOX_DIR_MADE)) /* who made it knows what else is in it */
            err_free(tree_remove(h->boxes, spec->req->id)); /* the first error is the one to tell */
        return err;
    }
    b.home = b.disk < 0 ? -1 : b.home;
    memcpy(b.id, spec->req->id, sizeof b.id);
    b.pidfd = take_fd(&e->pidfd);
    *ret_box = b;
    return NULL;
}

fallible box_start(struct box_host *h, struct box_embryo *e, const struct box_spec *spec,
                   struct box *ret_box)
{
    struct err *err = start_in_dir(h, e, spec, ret_box);

    if (err)
        box_drop(h, e);
    else
        close_embryo(e);
    return err_wrap(err, "start sandbox '%s'", spec->req->id);
}

/* --- life and end
 * --------------------------------------------------------------------------------- */

fallible box_kill(const struct box_host *h, const struct box *b)
{
    char group[BOX_NAME];

    box_group_name(b->slot, group);
    if (sys_pidfd_kill(b->pidfd, SIGKILL) < 0 && errno != ESRCH)
        return err_sys("kill sandbox '%s'", b->id);
    if (!cg_has(&h->cg, CG_FREEZER))
        return NULL;
    return cg_kill(&h->cg, group); /* a frozen v1 group dies when it thaws */
}

fallible box_pause(const struct box_host *h, const struct box *b, bool paused)
{
    char group[BOX_NAME];

    box_group_name(b->slot, group);
    return cg_freeze(&h->cg, group, paused, BOX_WAIT_MS);
}

/* "w", "work-usr", "m0w": only overlay itself writes there. Below an upper layer a guest chose
 * every name, and one that is a link would lead elsewhere. */
static bool is_work(const char *name)
{
    return name[0] == 'w' || (name[0] == 'm' && name[strlen(name) - 1] == 'w');
}

/* False: it holds something, or something that is none of our layers. */
static bool remove_layer(int dir, const char *name)
{
    static const char *const below[] = {"/work/incompat/volatile", "/work/incompat", "/work"};
    char path[320];

    if (strcmp(name, IDENTITY_DIR) == 0)
        identity_empty(dir);
    if (is_work(name)) {
        snprintf(path, sizeof path, "%s/work/incompat/volatile/dirty", name);
        unlinkat(dir, path, 0);
        for (size_t i = 0; i < ARRAY_LEN(below); i++) {
            snprintf(path, sizeof path, "%s%s", name, below[i]);
            unlinkat(dir, path, AT_REMOVEDIR);
        }
    }
    return unlinkat(dir, name, AT_REMOVEDIR) == 0;
}

/* Most sandboxes leave empty layers and what overlay made in their work directories: gone by name,
 * without listing any of it. Gives false when more is there, which is for tree_remove; the record
 * goes when nothing else is left. */
static bool remove_skeleton(int dir)
{
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
    bool bare = true;

    if (!d) {
        own_close_p(&copy);
        return false;
    }
    for (struct dirent *at; (at = readdir(d));) {
        if (at->d_name[0] == '.')
            continue;
        bool ours = strcmp(at->d_name, "record") == 0 || strcmp(at->d_name, "root") == 0 ||
                    (strcmp(at->d_name, DISK_IMAGE) == 0 && unlinkat(dir, DISK_IMAGE, 0) == 0);
        bare &= at->d_type == DT_DIR ? remove_layer(dir, at->d_name) : ours;
    }
    closedir(d);
    return bare && unlinkat(dir, "record", 0) == 0 &&
           (unlinkat(dir, "root", 0) == 0 || errno == ENOENT);
}

fallible box_remove_dir(const struct box_host *h, const char *id)
{
    own_fd dir = openat(h->boxes, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    if (dir >= 0)
        disk_forget(dir);
    if (dir >= 0 && remove_skeleton(dir) && unlinkat(h->boxes, id, AT_REMOVEDIR) == 0)
        return NULL;
    return tree_remove(h->boxes, id);
}

fallible box_remove(const struct box_host *h, struct box *b, bool keep)
{
    char group[BOX_NAME];

    box_group_name(b->slot, group);
    own_close_p(&b->pidfd);
    own_close_p(&b->tty);
    own_close_p(&b->disk);
    own_close_p(&b->home);
    b->pidfd = b->tty = b->disk = b->home = -1;
    TRY(cg_remove(&h->cg, group));
    if (!keep)
        TRY(box_remove_dir(h, b->id));
    return ids_release(h->ids, b->slot);
}
