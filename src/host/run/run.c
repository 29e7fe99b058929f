// SPDX-License-Identifier: Apache-2.0
/* run.c — see run.h. */
#include "host/run/run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/rng.h"
#include "host/images/images.h"
#include "host/kept/kept.h"
#include "host/launcher/box.h"
#include "host/launcher/disk.h"
#include "host/launcher/identity.h"
#include "host/launcher/layers.h"
#include "host/launcher/setid.h"
#include "host/tree/tree.h"
#include "host/rootfs/rootfs.h"
#include "host/run/given.h"
#include "host/run/relay.h"
#include "host/snaps/merge.h"
#include "host/snaps/snaps.h"
#include "host/snaps/whole.h"

/* --- what to start
 * -------------------------------------------------------------------------------- */

static fallible add_strings(struct buf *b, const char *const *list, uint32_t *ret_count)
{
    uint32_t n = 0;

    for (; list[n]; n++)
        buf_add_mem(b, list[n], strlen(list[n]) + 1);
    *ret_count += n;
    return buf_check(b);
}

static fallible make_block(const struct run_spec *s, struct native_request *req, int *ret_fd)
{
    own_done(buf) b;
    own_fd fd = memfd_create("croft-args", MFD_CLOEXEC);

    buf_init(&b, NATIVE_BLOCK_MAX);
    if (fd < 0)
        return err_sys("make a memfd");
    TRY(add_strings(&b, s->argv, &req->argc));
    TRY_WRAP(add_strings(&b, s->env, &req->envc), "arguments and environment");
    TRY(fd_write_all(fd, buf_str(&b)));
    *ret_fd = take_fd(&fd);
    return NULL;
}

enum { RUN_END_FD = 3 }; /* inside */

struct plan {
    struct native_request req;
    struct box_spec spec;
    struct rootfs rootfs;
    struct box_root roots[ROOTFS_MOUNTS_MAX];
    struct snaps_stack below;
    const char *pid1[16];
    struct given given; /* as they were before it ran */
    uint64_t began_wall_ns;
    bool unlimited;
    bool made; /* its directory: something is noted in it before it starts */
    int end;   /* gets the exit code when all but pid 1 is dead; -1: its death tells */
};

static void plan_done(struct plan *p)
{
    own_close_p(&p->spec.block);
    own_close_p(&p->end);
    own_close_p(&p->spec.fds[RUN_END_FD]);
    rootfs_done(&p->rootfs);
    snaps_stack_done(&p->below);
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++)
        own_close_p(&p->spec.sources[i]);
}

/* Before anything runs: whoever is killed leaves a note for the sweep. */
static fallible make_dir(const struct box_host *h, const struct run_spec *s, struct plan *p)
{
    if (p->made)
        return NULL;
    TRY(box_make_dir(h, s->id));
    p->made = true;
    p->spec.flags |= BOX_DIR_MADE;
    return NULL;
}

static fallible plan_mounts(const struct box_host *h, const struct run_spec *s, struct plan *p)
{
    if (s->mount_count > NATIVE_MOUNTS)
        return err_new(ERR_LIMIT, "%zu mounts, at most %d", s->mount_count, NATIVE_MOUNTS);
    for (size_t i = 0; i < s->mount_count; i++) {
        struct native_mount *m = &p->req.mounts[i];
        if (!native_target_ok(s->mounts[i].target, strlen(s->mounts[i].target) + 1) ||
            strlen(s->mounts[i].target) >= sizeof m->target)
            return err_new(ERR_INVALID, "'%s' is no place to mount on", s->mounts[i].target);
        m->mode = s->mounts[i].mode;
        strcpy(m->path, ".");
        strcpy(m->target, s->mounts[i].target);
        p->spec.sources[i] = open(s->mounts[i].source, O_PATH | O_CLOEXEC);
        if (p->spec.sources[i] < 0)
            return err_sys("open '%s'", s->mounts[i].source);
        if (m->mode != NATIVE_RW || h->user)
            continue;
        TRY(make_dir(h, s, p));
        TRY(box_note_writable(h, s->id, (unsigned)i, s->mounts[i].source));
    }
    return NULL;
}

static fallible plan_fork(const struct box_host *h, const struct run_spec *s, struct plan *p)
{
    if (!s->from)
        return NULL;
    if (!s->mount_count || s->mounts[0].mode != NATIVE_OVERLAY ||
        !str_eq(str_of(s->mounts[0].source), s->from->source))
        return err_new(ERR_INVALID, "snapshot '" STR_FMT "' is of '" STR_FMT "'",
                       STR_ARG(s->from->name), STR_ARG(s->from->source));
    struct str state = str_of(h->state);
    if (str_starts(state, s->from->source) && state.p[s->from->source.len] == '/')
        return err_new(ERR_INVALID,
                       "the state directory '%s' lies in the workspace: layers may not lie in each "
                       "other; set CROFT_SERVER_STATE_DIR",
                       h->state);
    TRY(snaps_open(h->dir, s->from, &p->below));
    p->spec.layers[0] = p->below.fds;
    p->spec.layer_count[0] = p->below.count;
    return NULL;
}

/* Its root file system goes on from the snapshot's, whose layers are noted in its directory first:
 * nobody may sweep them from then on. */
static fallible plan_whole(const struct box_host *h, const struct run_spec *s, struct plan *p)
{
    own_fd whole = -1;

    TRY(whole_open(h->dir, s->whole, &whole));
    TRY_WRAP(whole_check_fits(whole, &p->rootfs), "snapshot '%s'", s->whole);
    TRY(make_dir(h, s, p));
    own_fd box = openat(h->boxes, s->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (box < 0)
        return err_sys("open the sandbox's directory");
    TRY(whole_stand(h->dir, s->whole, box));
    for (size_t i = 0; i < p->rootfs.mount_count; i++)
        TRY(whole_add_below(h->dir, box, &p->rootfs.mounts[i]));
    return NULL;
}

static fallible plan_root(const struct box_host *h, const struct run_spec *s, struct plan *p)
{
    if (s->root) {
        int root = open(s->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root < 0)
            return err_sys("open root file system '%s'", s->root);
        rootfs_add_lower(rootfs_add_mount(&p->rootfs, "", "u", "w"), root);
    } else if (s->image)
        TRY_WRAP(images_open(h->dir, s->image, &p->rootfs), "the image as a root");
    else
        TRY_WRAP(rootfs_host_open_or_make(h->dir, s->on_making, s->arg, &p->rootfs),
                 "this machine's system as a root");
    if (s->whole)
        TRY(plan_whole(h, s, p));
    for (size_t i = 0; i < p->rootfs.mount_count; i++) {
        const struct rootfs_mount *m = &p->rootfs.mounts[i];
        p->roots[i] = (struct box_root){.where = m->where,
                                        .upper = m->upper,
                                        .work = m->work,
                                        .lowers = m->lowers,
                                        .lower_count = m->lower_count,
                                        .frozen = m->frozen};
    }
    p->spec.roots = p->roots;
    p->spec.root_count = p->rootfs.mount_count;
    p->spec.root_id = p->rootfs.id;
    return NULL;
}

static fallible check_id(const char *id)
{
    if (native_id_ok(id, strlen(id) + 1) && strlen(id) < NATIVE_ID_MAX)
        return NULL;
    return err_new(ERR_INVALID, "'%.80s' is no name for a sandbox: letters, digits, '-', '_'", id);
}

/* Gives false when a default has nobody to enforce it. */
static bool plan_limits(const struct box_host *h, const struct run_spec *s,
                        struct native_limits *limits)
{
    bool memory = cg_has(&h->cg, CG_MEMORY), pids = cg_has(&h->cg, CG_PIDS);

    *limits = s->limits;
    if (!limits->memory_bytes && memory)
        limits->memory_bytes = s->otherwise.memory_bytes;
    if (!limits->pids && pids)
        limits->pids = s->otherwise.pids;
    return memory && pids;
}

static fallible plan_fds(const struct run_spec *s, struct plan *p)
{
    const int theirs[] = {s->in, s->out, s->err};
    int ends[2];

    if (!s->tty)
        TRY(given_check(theirs));
    given_note(&p->given, theirs);
    p->spec.fd_count = s->last ? RUN_END_FD + 1 : RUN_END_FD;
    for (size_t i = 0; i < ARRAY_LEN(theirs); i++)
        p->spec.fds[i] = s->tty ? -1 : theirs[i];
    if (!s->last)
        return NULL;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys("make a pipe");
    p->end = ends[0];
    p->spec.fds[RUN_END_FD] = ends[1];
    return NULL;
}

static fallible plan_make(const struct box_host *h, const struct run_spec *s, struct plan *p)
{
    /* pid 1 reaps and passes signals on; the command is its child. */
    const char *const pid1[] = {"croft-guest", "init", "--exec", "--cwd", s->workdir};
    const char *const as_user[] = {"--user", s->user}, *const told[] = {"--end-fd", "3"};
    size_t n = ARRAY_LEN(pid1);

    memcpy(p->pid1, pid1, sizeof pid1);
    if (strcmp(s->user, "root") != 0) {
        memcpy(p->pid1 + n, as_user, sizeof as_user);
        n += ARRAY_LEN(as_user);
    }
    if (s->last) {
        memcpy(p->pid1 + n, told, sizeof told);
        n += ARRAY_LEN(told);
    }
    p->pid1[n] = "--";
    p->req.magic = NATIVE_MAGIC;
    p->req.version = NATIVE_VERSION;
    p->req.op = NATIVE_START;
    p->req.flags = s->no_new_privs ? NATIVE_NO_NEW_PRIVS : 0;
    p->unlimited = !plan_limits(h, s, &p->req.limits);
    TRY(disk_choose(h, &p->req.limits, false, -1, &p->spec.disk));
    strcpy(p->req.id, s->id);
    strcpy(p->req.hostname, s->id);
    p->spec.req = &p->req;
    p->spec.prefix = p->pid1;
    p->spec.flags = BOX_DIE_WITH_PARENT | (s->tty ? BOX_TTY : 0) | (s->last ? BOX_LEAVE_LAYERS : 0);
    struct winsize size;
    if (s->tty && ioctl(s->in, TIOCGWINSZ, &size) == 0) {
        p->spec.tty_rows = size.ws_row;
        p->spec.tty_cols = size.ws_col;
    }
    TRY(plan_fds(s, p));
    TRY(plan_mounts(h, s, p));
    TRY(plan_fork(h, s, p));
    TRY(plan_root(h, s, p));
    TRY(make_block(s, &p->req, &p->spec.block));
    return native_check(&p->req, sizeof p->req);
}

/* --- what is left
 * --------------------------------------------------------------------------------- */

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

/* What stays of a disk of its own goes where it would have been without one. */
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
        TRY_WRAP(merge_layers(&(const int){from}, 1, false, to), "keep what changed");
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

/* Root's alone: an ordinary user's set-id file is his own. */
static fallible strip_set_ids(const struct box_host *h, const struct run_spec *s,
                              const struct plan *p)
{
    for (size_t i = 0; i < s->mount_count && !h->user; i++)
        if (s->mounts[i].mode == NATIVE_RW)
            TRY(setid_strip(p->spec.sources[i], p->began_wall_ns));
    return NULL;
}

static fallible tidy(struct box_host *h, const struct run_spec *s, const struct plan *p,
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

/* Nobody waits for the removal: a child does it, which holds nothing of the caller's. It is forked
 * while the command runs, and starts at a word of ours. It shares our lock on the state, so whoever
 * wants to see everything gone waits for that. */
struct broom {
    pid_t pid; /* -1: none */
    int word;
};

static _Noreturn void broom_live(struct box_host *h, const struct run_spec *s, const struct plan *p,
                                 struct box *b, int word)
{
    char byte;

    setsid();
    own_close_p(&b->tty);
    own_close_p(&b->disk);
    b->tty = b->disk = -1;
    for (int fd = 0; fd <= 2; fd++)
        close(fd);
    if (recv(word, &byte, 1, 0) != 1)
        _exit(0); /* somebody else does it, or the next sweep */
    struct err *e = tidy(h, s, p, b, false);
    box_host_spread(h); /* for the next ones */
    if (!e && !s->root && !s->image && rootfs_host_is_stale(h->dir))
        e = rootfs_host_refresh(h->dir);
    int code = e ? 1 : 0; /* what is left is found by the next sweep */
    err_free(e);
    _exit(code);
}

static struct broom broom_start(struct box_host *h, const struct run_spec *s, const struct plan *p,
                                struct box *b)
{
    struct broom none = {-1, -1};
    sigset_t all, before;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return none;
    sigfillset(&all); /* our terminal hangs up when we end, on it too if it has not run yet */
    sigprocmask(SIG_BLOCK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) {
        close(pair[0]);
        broom_live(h, s, p, b, pair[1]);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return none;
    }
    return (struct broom){pid, pair[0]};
}

/* What is kept may be applied or dropped by the very next command, so that is tidied up first. */
static fallible broom_end(struct broom *broom, struct box_host *h, const struct run_spec *s,
                          const struct plan *p, struct box *b, bool keep)
{
    bool taken = !keep && broom->pid > 0 && send(broom->word, "", 1, MSG_NOSIGNAL) == 1;

    own_close_p(&broom->word);
    if (taken) {
        own_close_p(&b->pidfd);
        own_close_p(&b->tty);
        own_close_p(&b->disk);
        own_close_p(&b->home);
        return NULL;
    }
    while (broom->pid > 0 && waitpid(broom->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return tidy(h, s, p, b, keep);
}

/* A word of pid 1: everybody else in there is dead, and so is it in a moment. Without one it died
 * in some other way, or was not asked. */
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

/* So that diff and apply find the directories again. */
static fallible note_sources(const struct box_host *h, const struct run_spec *s)
{
    own_fd dir = openat(h->boxes, s->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0)
        return err_sys("open the sandbox's directory");
    for (size_t i = 0; i < s->mount_count && s->keep; i++) {
        if (s->mounts[i].mode == NATIVE_OVERLAY)
            TRY(kept_note(dir, (unsigned)i, s->mounts[i].source));
    }
    if (s->from)
        TRY(snaps_note(dir, 0, s->from));
    return s->image ? kept_note_image(dir, s->image->id) : NULL;
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

static fallible live(struct box_host *h, const struct run_spec *s, const struct plan *p,
                     struct box *b, struct run_result *result)
{
    struct relay r = {
        .in = s->in, .out = s->out, .master = b->tty, .pidfd = b->pidfd, .end = p->end};
    struct err *e = note_sources(h, s);

    if (!e)
        e = relay_run(&r, &result->unread);
    if (e)
        err_free(box_kill(h, b)); /* the relay's error is the one to tell */
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
    for (size_t i = 0; i < s->mount_count && s->keep && dir >= 0 && !result->kept; i++)
        kept_forget(dir, (unsigned)i);
    if (dir >= 0 && (result->kept || s->image)) { /* what its root was made of may go from now on */
        unlinkat(dir, "image", 0);
        unlinkat(dir, "root", 0);
    }
    return count_hits(h, b, result);
}

/* The embryo gets ready while we look at the rest of the plan. */
static fallible run_box(struct box_host *h, const struct run_spec *s, struct plan *p,
                        struct run_result *result)
{
    struct box_embryo embryo;
    struct box b;
    uint64_t begin = clock_mono_ns(&clock_system);

    p->began_wall_ns = clock_wall_ns(&clock_system);
    TRY(box_conceive(h, s->id, &embryo));
    struct err *e = plan_make(h, s, p);
    if (e)
        box_drop(h, &embryo);
    else
        e = box_start(h, &embryo, &p->spec, &b);
    if (e && p->made)
        err_free(tree_remove(h->boxes, s->id)); /* the first error is the one to tell */
    TRY(e);
    result->unlimited = p->unlimited;
    result->limits = p->req.limits;
    result->disk = p->spec.disk;
    result->start_ns = clock_mono_ns(&clock_system) - begin;
    own_close_p(&p->spec.fds[RUN_END_FD]);
    p->spec.fds[RUN_END_FD] = -1; /* pid 1 has it, alone */
    struct broom broom = broom_start(h, s, p, &b);
    e = live(h, s, p, &b, result);
    result->run_ns = clock_mono_ns(&clock_system) - begin - result->start_ns;
    struct err *end = broom_end(&broom, h, s, p, &b, result->kept);
    if (!e)
        return end;
    err_free(end);
    return e;
}

fallible run_sandbox(const struct run_spec *spec, struct run_result *ret_result)
{
    struct plan p = {.spec = {.block = -1, .fds[RUN_END_FD] = -1}, .end = -1};
    struct box_host h;

    for (unsigned i = 0; i < NATIVE_MOUNTS; i++)
        p.spec.sources[i] = -1;
    rootfs_init(&p.rootfs);
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
