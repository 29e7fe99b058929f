// SPDX-License-Identifier: Apache-2.0
/* ops.c — what a server may ask of the launcher. The request has been checked for form; here
 * it is held against the policy. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/own.h"
#include "host/launcher/disk.h"
#include "host/launcher/inner.h"
#include "host/launcher/names.h"
#include "host/launcher/snap.h"
#include "host/launcher/start.h"
#include "host/tree/tree.h"

/* The descriptor numbers of pid 1. */
enum { AT_LOG = 1, AT_LISTEN = 3, AT_TUNNEL, AT_CONTROL, AT_READY, AT_OOM, AT_MEMORY, AT_END };

#define PID1_ARGS 16
static const char *const pid1_args[] = {"croft-guest",  "init", "--listen-fd",  "3",
                                        "--connect-fd", "4",    "--control-fd", "5",
                                        "--ready-fd",   "6"};

/* --- finding --- */

struct launcher_box *launcher_find(struct launcher *l, const char *id)
{
    return map_get(&l->by_id, str_of(id));
}

static fallible ops_find(struct launcher *l, const char *id, struct launcher_box **ret_box)
{
    *ret_box = launcher_find(l, id);
    if (*ret_box && (*ret_box)->start) {
        launcher_start_settle(*ret_box);
        *ret_box = launcher_find(l, id);
    }
    return *ret_box ? NULL : err_new(ERR_NOT_FOUND, "no sandbox '%s'", id);
}

/* --- starting --- */

struct making {
    struct native_request req;
    struct box_spec spec;
    struct rootfs rootfs;
    struct box_root roots[ROOTFS_MOUNTS_MAX];
    int ours[AT_END]; /* ends we keep: ready, control */
    bool again;       /* it lived before */
    bool made;        /* its directory, to stand on a snapshot */
    struct box_spare spare;
    int log;
    const char *args[PID1_ARGS];
    struct snaps_stack below[NATIVE_MOUNTS];
};

static void making_done(struct making *m)
{
    rootfs_done(&m->rootfs);
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++)
        snaps_stack_done(&m->below[i]);
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++)
        own_close_p(&m->spec.sources[i]);
    for (unsigned i = AT_LISTEN; i < m->spec.fd_count; i++)
        own_close_p(&m->spec.fds[i]);
    for (unsigned i = 0; i < AT_END; i++)
        own_close_p(&m->ours[i]);
    own_close_p(&m->log);
}

static fallible open_image(struct launcher *l, struct making *m)
{
    bool stored = m->req.image == NATIVE_IMAGE_STORED;
    const char *path = stored ? NULL : l->policy->images[m->req.image];

    if (stored)
        TRY(launcher_image_open(l, &m->req, &m->rootfs));
    else if (!path)
        TRY(host_layers_open(l, &m->rootfs));
    else {
        int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0)
            return err_sys("open image '%s'", path);
        rootfs_add_lower(rootfs_add_mount(&m->rootfs, "", "u", "w"), dir);
    }
    if (m->again || m->made)
        TRY(launcher_add_layers(l, &m->req, &m->rootfs, m->below));
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++) {
        m->spec.layers[i] = m->below[i].fds;
        m->spec.layer_count[i] = m->below[i].count;
    }
    for (size_t i = 0; i < m->rootfs.mount_count; i++) {
        const struct rootfs_mount *at = &m->rootfs.mounts[i];
        m->roots[i] = (struct box_root){.where = at->where,
                                        .upper = at->upper,
                                        .work = at->work,
                                        .lowers = at->lowers,
                                        .lower_count = at->lower_count,
                                        .frozen = at->frozen,
                                        .redirects = at->redirects};
    }
    m->spec.roots = m->roots;
    m->spec.root_count = m->rootfs.mount_count;
    m->spec.root_id = m->rootfs.id;
    return NULL;
}

static fallible take_fds(struct making *m, const struct launcher_fds *in)
{
    bool log = m->req.flags & NATIVE_FD_LOG, warm = m->req.flags & NATIVE_WARM;

    TRY(launcher_check_block(in, !warm, log));
    m->spec.block = warm ? -1 : in->fds[0];
    if (log)
        m->spec.fds[AT_LOG] = m->spec.fds[AT_LOG + 1] = in->fds[!warm];
    return NULL;
}

static fallible make_ends(struct making *m)
{
    int ready[2], control[2];

    if (pipe2(ready, O_CLOEXEC) < 0)
        return err_sys("make a pipe");
    m->ours[AT_READY] = ready[0];
    m->spec.fds[AT_READY] = ready[1];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) < 0)
        return err_sys("make a control connection");
    m->ours[AT_CONTROL] = control[0];
    m->spec.fds[AT_CONTROL] = control[1];
    return NULL;
}

static void name_args(struct making *m, bool counted)
{
    size_t n = ARRAY_LEN(pid1_args);

    memcpy(m->args, pid1_args, sizeof pid1_args);
    if (counted) {
        m->args[n++] = "--oom-fd";
        m->args[n++] = "7";
        m->args[n++] = "--memory-fd";
        m->args[n++] = "8";
    }
    if (m->req.flags & NATIVE_WARM)
        m->args[n++] = "--await";
    else if (!(m->req.flags & NATIVE_OWN_ARGS))
        m->args[n++] = "--";
    m->spec.prefix = m->args;
}

static fallible ops_prepare(struct launcher *l, struct making *m, const struct launcher_fds *in)
{
    bool counted = cg_has(&l->host.cg, CG_MEMORY);

    m->spec.req = &m->req;
    m->spec.fd_count = AT_READY + 1;
    name_args(m, counted);
    m->spec.oom_at = counted ? AT_OOM : 0;
    TRY(take_fds(m, in));
    TRY(launcher_open_sources(l, &m->req, m->spec.sources));
    TRY(launcher_image_mounts(l, &m->req, m->again || m->made, m->spec.sources, m->below));
    TRY(open_image(l, m));
    return make_ends(m);
}

static fallible make_in_dir(struct launcher *l, struct making *m, struct launcher_box *b)
{
    own_fd dir = openat(l->host.boxes, m->req.id, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0)
        return err_sys("open the directory of '%s'", m->req.id);
    if (m->req.flags & NATIVE_FILE_LOG) {
        TRY(launcher_open_log(l, dir, m->again, m->req.id, &m->log));
        m->spec.fds[AT_LOG] = m->spec.fds[AT_LOG + 1] = m->log;
    }
    TRY(launcher_listen_at(l, dir, m->req.id, LAUNCHER_NAME_SERVER, &m->spec.fds[AT_LISTEN]));
    TRY(launcher_listen_at(l, dir, m->req.id, LAUNCHER_NAME_CONNECT, &m->spec.fds[AT_TUNNEL]));
    TRY(spares_take(l, &m->spare));
    m->spec.flags = BOX_DIR_MADE | BOX_LAUNCHER | (l->policy->persist ? BOX_PERSIST : 0) |
                    (m->rootfs.joined ? BOX_JOINED : 0);
    b->disk = m->spec.disk;
    return box_begin(&l->host, &m->spare, &m->spec, &b->box);
}

static fallible choose_disk(const struct launcher *l, struct making *m)
{
    own_fd dir = -1;

    if (m->again) {
        dir = openat(l->host.boxes, m->req.id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0)
            return err_sys("open the directory of '%s'", m->req.id);
    }
    return disk_choose(&l->host, &m->req.limits, true, dir, &m->spec.disk);
}

/* A life before this one left its sockets, and work directories that overlay would refuse. */
static fallible renew_dir(struct launcher *l, const struct making *m)
{
    own_fd dir = openat(l->host.boxes, m->req.id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char upper[BOX_NAME], work[BOX_NAME];

    if (dir < 0)
        return err_sys("open the directory of '%s'", m->req.id);
    launcher_drop_sockets(l, m->req.id);
    for (size_t i = 0; i < m->spec.root_count; i++)
        TRY(tree_remove(dir, m->roots[i].work));
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++) {
        box_upper_name(i, upper, work);
        TRY(tree_remove(dir, work));
    }
    return NULL;
}

static fallible ops_make(struct launcher *l, struct making *m, struct launcher_box *b)
{
    if (m->again) {
        TRY(renew_dir(l, m));
        return make_in_dir(l, m, b);
    }
    if (!m->made)
        TRY(box_make_dir(&l->host, m->req.id));
    m->made = true;
    if (m->req.image == NATIVE_IMAGE_STORED)
        TRY(launcher_image_note(l, &m->req));
    return make_in_dir(l, m, b);
}

/* On failure nothing of a new one is left. */
static fallible prepare_and_make(struct launcher *l, struct making *m, struct launcher_box *b,
                                 const struct launcher_fds *in)
{
    if (m->req.snapshot[0]) {
        TRY(launcher_stand(l, &m->req));
        m->made = true;
    }
    struct err *e = choose_disk(l, m);
    if (!e)
        e = ops_prepare(l, m, in);
    if (!e)
        e = ops_make(l, m, b);
    if (e && m->made) {
        err_free(deleter_discard(l, m->req.id)); /* the first error is the one to tell */
        launcher_drop_sockets(l, m->req.id);
    }
    if (e && !m->again)
        launcher_drop_log(l, m->req.id);
    return e;
}

static fallible may_start(const struct launcher *l, const struct launcher_box *old,
                          struct native_request *r)
{
    if (old && old->job)
        return err_new(ERR_BUSY, "the files of sandbox '%s' are being worked on", r->id);
    if (old && old->state != NATIVE_EXITED)
        return err_new(ERR_CONFLICT, "there is a sandbox '%s'", r->id);
    if (old && r->snapshot[0])
        return err_new(ERR_CONFLICT, "sandbox '%s' has files of its own to go on from", r->id);
    if (old && launcher_is_half_back(l, r->id))
        return err_new(ERR_CONFLICT, "the rollback of sandbox '%s' was cut short: ask for it again",
                       r->id);
    if (l->box_count >= l->policy->most)
        return err_new(ERR_LIMIT, "%u sandboxes run, which is the most", l->box_count);
    return launcher_apply_policy(l, r);
}

static struct launcher_box *new_box(struct launcher *l, const struct native_request *r)
{
    bool warm = r->flags & NATIVE_WARM;
    struct launcher_box *b = mem_new(sizeof *b);

    *b = (struct launcher_box){.launcher = l,
                               .state = warm ? NATIVE_WAITING : NATIVE_RUNNING,
                               .holds_slot = true,
                               .tells_end = r->flags & NATIVE_TELL,
                               .control = -1};
    return b;
}

static fallible ops_start(struct launcher *l, const struct native_request *r,
                          struct launcher_fds *in, bool *ret_later)
{
    struct launcher_box *old = NULL;
    err_free(ops_find(l, r->id, &old)); /* most often there is none */
    struct making m = {.req = *r, .again = old != NULL, .log = -1};
    struct launcher_box *b = new_box(l, r);

    rootfs_init(&m.rootfs);
    memset(m.spec.sources, -1, sizeof m.spec.sources);
    memset(m.spec.fds, -1, sizeof m.spec.fds);
    memset(m.ours, -1, sizeof m.ours);
    struct err *e = may_start(l, old, &m.req);
    if (!e && m.req.image == NATIVE_IMAGE_STORED)
        e = launcher_image_resolve(l, &m.req, m.again);
    if (!e)
        e = prepare_and_make(l, &m, b, in);
    if (e)
        free(b);
    else {
        if (r->flags & NATIVE_WARM) {
            b->waits = mem_new(sizeof *b->waits);
            *b->waits = m.req;
        }
        *ret_later = true;
        launcher_start_watch(l, b,
                             &(struct launcher_begun){.spare = m.spare,
                                                      .flags = m.spec.flags,
                                                      .tag = r->tag,
                                                      .ready = take_fd(&m.ours[AT_READY]),
                                                      .control = take_fd(&m.ours[AT_CONTROL]),
                                                      .made = m.made,
                                                      .old = old});
    }
    making_done(&m);
    return e;
}

/* --- the rest --- */

static fallible pause_or_resume(struct launcher *l, struct launcher_box *b, bool pause)
{
    enum native_state from = pause ? NATIVE_RUNNING : NATIVE_PAUSED;

    if (b->state != from)
        return err_new(ERR_CONFLICT, "sandbox '%s' is not %s", b->box.id,
                       pause ? "running" : "paused");
    TRY(box_pause(&l->host, &b->box, pause));
    b->state = pause ? NATIVE_PAUSED : NATIVE_RUNNING;
    return NULL;
}

void launcher_describe(const struct launcher_box *b, struct native_reply *reply)
{
    reply->state = b->state;
    reply->pid = b->box.pid;
    reply->exit_code = (uint32_t)b->exit_code;
    reply->signal = (uint32_t)b->signal;
    reply->flags = b->code_unknown ? NATIVE_CODE_UNKNOWN : 0;
    reply->oom_kills = b->oom_kills;
    reply->disk = b->disk;
}

static fallible ops_inspect(struct launcher *l, struct launcher_box *b, struct native_reply *reply)
{
    char group[BOX_NAME];
    own_fd oom = -1;

    launcher_describe(b, reply);
    if (b->state == NATIVE_EXITED)
        return NULL;
    box_group_name(b->box.slot, group);
    cg_usage(&l->host.cg, group, &reply->usage);
    uint64_t before = b->box.cpu_ns;
    reply->usage.cpu_ns -= before < reply->usage.cpu_ns ? before : reply->usage.cpu_ns;
    TRY(cg_open_oom(&l->host.cg, group, &oom));
    return oom >= 0 ? cg_read_oom(oom, &reply->oom_kills) : NULL;
}

static fallible ops_adopt(struct launcher *l, struct launcher_box *b, bool tell,
                          struct native_reply *reply, struct launcher_fds *out)
{
    TRY(ops_inspect(l, b, reply));
    b->tells_end = tell;
    if (b->state == NATIVE_EXITED || tell)
        return NULL;
    int watched = b->adopted ? b->orphan.fd : b->child.io.fd;
    int copy = fcntl(watched, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
        return err_sys("copy a descriptor");
    out->fds[out->count++] = copy;
    return NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct launcher_box *const *)a)->box.id,
                  (*(struct launcher_box *const *)b)->box.id);
}

static fallible ops_list(struct launcher *l, const char *after, struct native_reply *reply)
{
    own_free struct launcher_box **all =
        mem_try((l->box_count + 1) * sizeof(struct launcher_box *));
    size_t count = 0;

    if (!all)
        return err_no_memory();
    LIST_EACH(b, &l->boxes, struct launcher_box, link)
        if (strcmp(b->box.id, after) > 0)
            all[count++] = b;
    qsort(all, count, sizeof(struct launcher_box *), by_name);
    for (size_t i = 0; i < count && i < NATIVE_LIST_MAX; i++) {
        reply->states[i] = (uint8_t)all[i]->state;
        memcpy(reply->ids[i], all[i]->box.id, NATIVE_ID_MAX);
    }
    reply->count = (uint32_t)(count < NATIVE_LIST_MAX ? count : NATIVE_LIST_MAX);
    return NULL;
}

static fallible tell_root(const struct launcher *l, uint32_t index, struct native_reply *reply)
{
    if (index >= l->policy->root_count)
        return err_new(ERR_NOT_FOUND, "no root %u", index);
    const char *path = l->policy->roots[index].path;
    snprintf(reply->text, sizeof reply->text, "%s", path ? path : "");
    reply->flags = l->policy->roots[index].modes;
    reply->count = (uint32_t)l->policy->root_count;
    return NULL;
}

static fallible ops_dial(struct launcher *l, const struct native_request *r,
                         struct launcher_fds *out)
{
    struct sockaddr_un a;
    own_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    TRY(launcher_address(
        l, r->id, r->flags & NATIVE_TUNNEL ? LAUNCHER_NAME_CONNECT : LAUNCHER_NAME_SERVER, &a));
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) < 0)
        return err_sys("connect to sandbox '%s'", r->id);
    out->fds[out->count++] = take_fd(&fd);
    return NULL;
}

static fallible ops_end(struct launcher *l, struct launcher_box *b, uint64_t tag,
                        struct native_reply *reply, bool *ret_later)
{
    if (b->state == NATIVE_EXITED)
        return ops_inspect(l, b, reply);
    if (b->killers == LAUNCHER_KILLERS)
        return err_new(ERR_BUSY, "it is being killed, and %d wait for that already: try again",
                       LAUNCHER_KILLERS);
    if (!b->killers) {
        TRY(box_kill(&l->host, &b->box));
    }
    *ret_later = true;
    b->kill_tags[b->killers++] = tag;
    return NULL;
}

static fallible end_and_remove(struct launcher *l, struct launcher_box *b, uint64_t tag,
                               struct native_reply *reply)
{
    if (b->state == NATIVE_EXITED) {
        launcher_remove(l, b, reply);
        return NULL;
    }
    TRY(box_kill(&l->host, &b->box));
    b->removal = REMOVAL_ASKED;
    b->remove_tag = tag;
    return NULL;
}

fallible launcher_do(struct launcher *l, const struct native_request *r, struct launcher_fds *in,
                     struct native_reply *reply, struct launcher_fds *out, bool *ret_later)
{
    struct launcher_box *b = NULL;

    if (r->op == NATIVE_START)
        return ops_start(l, r, in, ret_later);
    if (r->op == NATIVE_IMAGE_IMPORT)
        return launcher_image_import(l, r, in, ret_later);
    if (r->op == NATIVE_CLAIM) {
        TRY(ops_find(l, r->id, &b));
        return launcher_claim(l, b, r, in, reply, ret_later);
    }
    bool changes = r->op == NATIVE_DIFF || r->op == NATIVE_APPLY;
    if (in->count && !changes)
        return err_new(ERR_INVALID, "descriptors nobody asked for");
    if (r->op == NATIVE_SNAPSHOT_REMOVE)
        return launcher_snapshot_remove(l, r, ret_later);
    if (r->op == NATIVE_SNAPSHOT_LIST)
        return launcher_snapshot_list(l, r->snapshot, reply);
    if (r->op == NATIVE_IMAGE_FIND)
        return launcher_image_find(l, r, out);
    if (r->op == NATIVE_LIST)
        return ops_list(l, r->id, reply);
    if (r->op == NATIVE_ROOT)
        return tell_root(l, r->image, reply);
    TRY(ops_find(l, r->id, &b));
    if (b->job && r->op != NATIVE_INSPECT && r->op != NATIVE_KILL && r->op != NATIVE_ADOPT)
        return err_new(ERR_BUSY, "the files of sandbox '%s' are being worked on", b->box.id);
    switch ((enum native_op)r->op) {
    case NATIVE_KILL:
        return ops_end(l, b, r->tag, reply, ret_later);
    case NATIVE_PAUSE:
    case NATIVE_RESUME:
        return pause_or_resume(l, b, r->op == NATIVE_PAUSE);
    case NATIVE_INSPECT:
        return ops_inspect(l, b, reply);
    case NATIVE_ADOPT:
        return ops_adopt(l, b, r->flags & NATIVE_TELL, reply, out);
    case NATIVE_SNAPSHOT:
        return launcher_snapshot(l, b, r, ret_later);
    case NATIVE_DIFF:
    case NATIVE_APPLY:
        return launcher_changes(l, b, r, in, ret_later);
    case NATIVE_ROLLBACK:
        return launcher_rollback(l, b, r, ret_later);
    case NATIVE_CONNECT:
        return ops_dial(l, r, out);
    case NATIVE_REMOVE:
        *ret_later = true;
        return end_and_remove(l, b, r->tag, reply);
    default:
        return err_new(ERR_INVALID, "operation %u is not known", r->op);
    }
}
