// SPDX-License-Identifier: Apache-2.0
/* plan.c — see plan.h. */
#include "host/run/plan.h"

#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "host/images/images.h"
#include "host/overlay/overlay.h"
#include "host/launcher/box_sweep.h"
#include "host/launcher/disk.h"
#include "host/snaps/whole.h"

void plan_init(struct plan *p)
{
    *p = (struct plan){.spec = {.block = -1, .fds[RUN_END_FD] = -1}, .end = -1};
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++)
        p->spec.sources[i] = -1;
    rootfs_init(&p->rootfs);
}

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

void plan_done(struct plan *p)
{
    own_close_p(&p->spec.block);
    own_close_p(&p->end);
    own_close_p(&p->spec.fds[RUN_END_FD]);
    rootfs_done(&p->rootfs);
    snaps_stack_done(&p->below);
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++)
        own_close_p(&p->spec.sources[i]);
}

/* Before anything runs: a run that is killed has left a note for the sweep. */
static fallible make_dir(const struct box_host *h, const struct run_spec *s, struct plan *p)
{
    if (p->made)
        return NULL;
    struct err *e = box_make_dir(h, s->id);
    if (e && err_code(e) == ERR_CONFLICT) {
        err_free(e);
        return err_new(
            ERR_CONFLICT,
            "there is a sandbox '%s' already, running or kept: 'croft rollback %s' drops "
            "what it changed, or take another --name",
            s->id, s->id);
    }
    TRY(e);
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
    if (s->from->which.len) { /* the layers are that one's, whatever has its name now */
        TRY(make_dir(h, s, p));
        own_fd box = openat(h->boxes, s->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (box < 0)
            return err_sys("open the sandbox's directory");
        TRY(overlay_note_text(box, 0, s->from->which.p));
    }
    TRY(snaps_open(h->dir, s->from, &p->below));
    p->spec.layers[0] = p->below.fds;
    p->spec.layer_count[0] = p->below.count;
    return NULL;
}

/* Its root file system goes on from the snapshot's. The layers are noted in its directory first:
 * from then on they are not swept. */
static fallible plan_whole(const struct box_host *h, const struct run_spec *s, struct plan *p)
{
    own_fd whole = -1;

    TRY(whole_open(h->dir, s->whole, &whole));
    if (whole_has(whole, ROOTFS_UPPER_USR))
        TRY(rootfs_split(&p->rootfs));
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
                                        .frozen = m->frozen,
                                        .redirects = m->redirects};
    }
    p->spec.roots = p->roots;
    p->spec.root_count = p->rootfs.mount_count;
    p->spec.root_id = p->rootfs.id;
    p->spec.flags |= p->rootfs.joined ? BOX_JOINED : 0;
    return NULL;
}

/* Gives false when nothing here can enforce a default. */
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

/* So that diff and apply find the directories again, after a kill too. */
static fallible note_sources(const struct box_host *h, const struct run_spec *s, struct plan *p)
{
    bool any = s->from || s->image;

    for (size_t i = 0; i < s->mount_count; i++)
        any |= s->keep && s->mounts[i].mode == NATIVE_OVERLAY;
    if (!any)
        return NULL;
    TRY(make_dir(h, s, p));
    own_fd dir = openat(h->boxes, s->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_sys("open the sandbox's directory");
    char command[OVERLAY_COMMAND_MAX];
    overlay_put_command(s->argv, command);
    TRY(overlay_note_run(dir, command));
    for (size_t i = 0; i < s->mount_count && s->keep; i++) {
        if (s->mounts[i].mode == NATIVE_OVERLAY)
            TRY(overlay_note(dir, (unsigned)i, s->mounts[i].source));
    }
    if (s->from)
        TRY(snaps_note(dir, 0, s->from));
    return s->image ? overlay_note_image(dir, s->image->id) : NULL;
}

fallible plan_make(const struct box_host *h, const struct run_spec *s, struct plan *p)
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
    TRY(native_check(&p->req, sizeof p->req));
    return note_sources(h, s, p);
}
