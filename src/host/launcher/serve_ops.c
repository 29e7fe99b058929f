// SPDX-License-Identifier: Apache-2.0
/* serve_ops.c — what a server may ask of the launcher. The request has been checked for form; here
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
#include "host/launcher/serve.h"
#include "host/tree/tree.h"

/* Where pid 1 finds what it is given. */
enum { AT_LOG = 1, AT_LISTEN = 3, AT_TUNNEL, AT_CONTROL, AT_READY, AT_OOM, AT_END };

#define PID1_ARGS 16
static const char *const pid1_args[] = {"croft-guest",  "init", "--listen-fd",  "3",
                                        "--connect-fd", "4",    "--control-fd", "5",
                                        "--ready-fd",   "6"};

/* --- finding
 * -------------------------------------------------------------------------------------- */

struct serve_box *serve_find(struct serve *s, const char *id)
{
    return map_get(&s->by_id, str_of(id));
}

static fallible ops_find(struct serve *s, const char *id, struct serve_box **ret_box)
{
    *ret_box = serve_find(s, id);
    if (*ret_box && (*ret_box)->start) {
        serve_start_settle(*ret_box);
        *ret_box = serve_find(s, id);
    }
    return *ret_box ? NULL : err_new(ERR_NOT_FOUND, "no sandbox '%s'", id);
}

/* --- starting
 * ------------------------------------------------------------------------------------- */

struct making {
    struct native_request req;
    struct box_spec spec;
    struct rootfs rootfs;
    struct box_root roots[ROOTFS_MOUNTS_MAX];
    int ours[AT_END]; /* ends we keep: ready, control */
    bool again;       /* it lived before */
    bool made;        /* its directory, to stand on a snapshot */
    unsigned emptied; /* BOX_EMPTIED: that was another's */
    struct box_embryo embryo;
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

static fallible open_image(struct serve *s, struct making *m)
{
    bool stored = m->req.image == NATIVE_IMAGE_STORED;
    const char *path = stored ? NULL : s->policy->images[m->req.image];

    if (stored)
        TRY(serve_image_open(s, &m->req, &m->rootfs));
    else if (!path)
        TRY(serve_fresh_open(s, &m->rootfs));
    else {
        int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0)
            return err_sys("open image '%s'", path);
        rootfs_add_lower(rootfs_add_mount(&m->rootfs, "", "u", "w"), dir);
    }
    if (m->again || m->made)
        TRY(serve_add_layers(s, &m->req, &m->rootfs, m->below));
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

static fallible take_fds(struct making *m, const struct serve_fds *in)
{
    bool log = m->req.flags & NATIVE_FD_LOG, warm = m->req.flags & NATIVE_WARM;

    TRY(serve_check_block(in, !warm, log));
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
    }
    if (m->req.flags & NATIVE_LATE)
        m->args[n++] = "--late";
    if (m->req.flags & NATIVE_WARM)
        m->args[n++] = "--await";
    else if (!(m->req.flags & NATIVE_OWN_ARGS))
        m->args[n++] = "--";
    m->spec.prefix = m->args;
}

static fallible ops_prepare(struct serve *s, struct making *m, const struct serve_fds *in)
{
    bool counted = cg_has(&s->host.cg, CG_MEMORY);

    m->spec.req = &m->req;
    m->spec.fd_count = AT_READY + 1;
    name_args(m, counted);
    m->spec.oom_at = counted ? AT_OOM : 0;
    TRY(take_fds(m, in));
    TRY(serve_open_sources(s, &m->req, m->spec.sources));
    TRY(serve_image_mounts(s, &m->req, m->again || m->made, m->spec.sources, m->below));
    TRY(open_image(s, m));
    return make_ends(m);
}

static fallible take_embryo(struct serve *s, struct box_embryo *ret_embryo)
{
    s->barren = false;
    if (!s->spare_count)
        return serve_conceive(s, ret_embryo);
    *ret_embryo = s->spare[0]; /* the oldest: the most likely to have finished its half */
    s->spare_count--;
    memmove(s->spare, s->spare + 1, s->spare_count * sizeof *s->spare);
    return NULL;
}

static fallible make_in_dir(struct serve *s, struct making *m, struct serve_box *b)
{
    own_fd dir = openat(s->host.boxes, m->req.id, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0)
        return err_sys("open the directory of '%s'", m->req.id);
    if (m->req.flags & NATIVE_FILE_LOG) {
        TRY(serve_open_log(s, dir, m->again, m->req.id, &m->log));
        m->spec.fds[AT_LOG] = m->spec.fds[AT_LOG + 1] = m->log;
    }
    TRY(serve_listen_at(s, dir, m->req.id, SERVE_NAME_SERVER, &m->spec.fds[AT_LISTEN]));
    TRY(serve_listen_at(s, dir, m->req.id, SERVE_NAME_CONNECT, &m->spec.fds[AT_TUNNEL]));
    TRY(take_embryo(s, &m->embryo));
    m->spec.flags = BOX_DIR_MADE | m->emptied | BOX_LAUNCHER | (s->policy->keep ? BOX_KEPT : 0) |
                    (m->rootfs.joined ? BOX_JOINED : 0);
    b->disk = m->spec.disk;
    return box_begin(&s->host, &m->embryo, &m->spec, &b->box);
}

static fallible choose_disk(const struct serve *s, struct making *m)
{
    own_fd dir = -1;

    if (m->again) {
        dir = openat(s->host.boxes, m->req.id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0)
            return err_sys("open the directory of '%s'", m->req.id);
    }
    return disk_choose(&s->host, &m->req.limits, true, dir, &m->spec.disk);
}

/* A life before this one left its sockets, and work directories that overlay would refuse. */
static fallible renew_dir(struct serve *s, const struct making *m)
{
    own_fd dir = openat(s->host.boxes, m->req.id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char upper[BOX_NAME], work[BOX_NAME];

    if (dir < 0)
        return err_sys("open the directory of '%s'", m->req.id);
    serve_drop_sockets(s, m->req.id);
    for (size_t i = 0; i < m->spec.root_count; i++)
        TRY(tree_remove(dir, m->roots[i].work));
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++) {
        box_upper_name(i, upper, work);
        TRY(tree_remove(dir, work));
    }
    return NULL;
}

/* Its directory holds two layers and what the launcher notes. */
static bool is_plain(const struct making *m)
{
    bool plain = m->spec.disk == NATIVE_DISK_NONE && m->spec.root_count == 1 &&
                 strcmp(m->roots[0].upper, BOX_UPPER) == 0;

    for (unsigned i = 0; i < NATIVE_MOUNTS; i++)
        plain &= !m->req.mounts[i].mode;
    return plain;
}

static fallible ops_make(struct serve *s, struct making *m, struct serve_box *b)
{
    if (m->again) {
        TRY(renew_dir(s, m));
        return make_in_dir(s, m, b);
    }
    b->plain = !m->made && is_plain(m);
    if (b->plain && serve_hull_take(s, m->req.id, &b->lives))
        m->emptied = BOX_EMPTIED;
    else if (!m->made)
        TRY(box_make_dir(&s->host, m->req.id));
    m->made = true;
    if (m->req.image == NATIVE_IMAGE_STORED)
        TRY(serve_image_note(s, &m->req));
    return make_in_dir(s, m, b);
}

/* On failure nothing of a new one is left. */
static fallible prepare_and_make(struct serve *s, struct making *m, struct serve_box *b,
                                 const struct serve_fds *in)
{
    if (m->req.snapshot[0]) {
        TRY(serve_stand(s, &m->req));
        m->made = true;
    }
    struct err *e = choose_disk(s, m);
    if (!e)
        e = ops_prepare(s, m, in);
    if (!e)
        e = ops_make(s, m, b);
    if (e && m->made) {
        err_free(serve_discard(s, m->req.id)); /* the first error is the one to tell */
        serve_drop_sockets(s, m->req.id);
    }
    if (e && !m->again)
        serve_drop_log(s, m->req.id);
    return e;
}

static fallible may_start(const struct serve *s, const struct serve_box *old,
                          struct native_request *r)
{
    if (old && old->job)
        return err_new(ERR_BUSY, "the files of sandbox '%s' are being worked on", r->id);
    if (old && old->state != NATIVE_EXITED)
        return err_new(ERR_CONFLICT, "there is a sandbox '%s'", r->id);
    if (old && r->snapshot[0])
        return err_new(ERR_CONFLICT, "sandbox '%s' has files of its own to go on from", r->id);
    if (old && serve_is_half_back(s, r->id))
        return err_new(ERR_CONFLICT, "the rollback of sandbox '%s' was cut short: ask for it again",
                       r->id);
    if (s->box_count >= s->policy->most)
        return err_new(ERR_LIMIT, "%u sandboxes run, which is the most", s->box_count);
    return serve_apply_policy(s, r);
}

static struct serve_box *new_box(struct serve *s, const struct native_request *r)
{
    bool warm = r->flags & NATIVE_WARM;
    struct serve_box *b = mem_new(sizeof *b);

    *b = (struct serve_box){.serve = s,
                            .state = warm ? NATIVE_WAITING : NATIVE_RUNNING,
                            .holds_slot = true,
                            .told = r->flags & NATIVE_TELL,
                            .control = -1};
    return b;
}

static fallible ops_start(struct serve *s, const struct native_request *r, struct serve_fds *in,
                          bool *ret_later)
{
    struct serve_box *old = NULL;
    err_free(ops_find(s, r->id, &old)); /* most often there is none */
    struct making m = {.req = *r, .again = old != NULL, .log = -1};
    struct serve_box *b = new_box(s, r);

    rootfs_init(&m.rootfs);
    memset(m.spec.sources, -1, sizeof m.spec.sources);
    memset(m.spec.fds, -1, sizeof m.spec.fds);
    memset(m.ours, -1, sizeof m.ours);
    struct err *e = may_start(s, old, &m.req);
    if (!e && m.req.image == NATIVE_IMAGE_STORED)
        e = serve_image_resolve(s, &m.req, m.again);
    if (!e)
        e = prepare_and_make(s, &m, b, in);
    if (e)
        free(b);
    else {
        if (r->flags & NATIVE_WARM) {
            b->waits = mem_new(sizeof *b->waits);
            *b->waits = m.req;
        }
        *ret_later = true;
        serve_start_watch(s, b,
                          &(struct serve_begun){.embryo = m.embryo,
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

/* --- the rest
 * ------------------------------------------------------------------------------------- */

static fallible pause_or_resume(struct serve *s, struct serve_box *b, bool pause)
{
    enum native_state from = pause ? NATIVE_RUNNING : NATIVE_PAUSED;

    if (b->state != from)
        return err_new(ERR_CONFLICT, "sandbox '%s' is not %s", b->box.id,
                       pause ? "running" : "paused");
    TRY(box_pause(&s->host, &b->box, pause));
    b->state = pause ? NATIVE_PAUSED : NATIVE_RUNNING;
    return NULL;
}

void serve_describe(const struct serve_box *b, struct native_reply *reply)
{
    reply->state = b->state;
    reply->pid = b->box.pid;
    reply->exit_code = (uint32_t)b->exit_code;
    reply->signal = (uint32_t)b->signal;
    reply->flags = b->code_unknown ? NATIVE_CODE_UNKNOWN : 0;
    reply->oom_kills = b->oom_kills;
    reply->disk = b->disk;
}

static fallible ops_inspect(struct serve *s, struct serve_box *b, struct native_reply *reply)
{
    char group[BOX_NAME];
    own_fd oom = -1;

    serve_describe(b, reply);
    if (b->state == NATIVE_EXITED)
        return NULL;
    box_group_name(b->box.slot, group);
    cg_usage(&s->host.cg, group, &reply->usage);
    uint64_t before = b->box.cpu_ns;
    reply->usage.cpu_ns -= before < reply->usage.cpu_ns ? before : reply->usage.cpu_ns;
    TRY(cg_open_oom(&s->host.cg, group, &oom));
    return oom >= 0 ? cg_read_oom(oom, &reply->oom_kills) : NULL;
}

static fallible ops_adopt(struct serve *s, struct serve_box *b, bool tell,
                          struct native_reply *reply, struct serve_fds *out)
{
    TRY(ops_inspect(s, b, reply));
    b->told = tell;
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
    return strcmp((*(struct serve_box *const *)a)->box.id, (*(struct serve_box *const *)b)->box.id);
}

static fallible ops_list(struct serve *s, const char *after, struct native_reply *reply)
{
    own_free struct serve_box **all = mem_try((s->box_count + 1) * sizeof(struct serve_box *));
    size_t count = 0;

    if (!all)
        return err_no_memory();
    LIST_EACH(b, &s->boxes, struct serve_box, link)
        if (strcmp(b->box.id, after) > 0)
            all[count++] = b;
    qsort(all, count, sizeof(struct serve_box *), by_name);
    for (size_t i = 0; i < count && i < NATIVE_LIST_MAX; i++) {
        reply->states[i] = (uint8_t)all[i]->state;
        memcpy(reply->ids[i], all[i]->box.id, NATIVE_ID_MAX);
    }
    reply->count = (uint32_t)(count < NATIVE_LIST_MAX ? count : NATIVE_LIST_MAX);
    return NULL;
}

static fallible tell_root(const struct serve *s, uint32_t index, struct native_reply *reply)
{
    if (index >= s->policy->root_count)
        return err_new(ERR_NOT_FOUND, "no root %u", index);
    const char *path = s->policy->roots[index].path;
    snprintf(reply->text, sizeof reply->text, "%s", path ? path : "");
    reply->flags = s->policy->roots[index].modes;
    reply->count = (uint32_t)s->policy->root_count;
    return NULL;
}

static fallible ops_dial(struct serve *s, const struct native_request *r, struct serve_fds *out)
{
    struct sockaddr_un a;
    own_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    TRY(serve_address(s, r->id, r->flags & NATIVE_TUNNEL ? SERVE_NAME_CONNECT : SERVE_NAME_SERVER,
                      &a));
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) < 0)
        return err_sys("connect to sandbox '%s'", r->id);
    out->fds[out->count++] = take_fd(&fd);
    return NULL;
}

static fallible ops_end(struct serve *s, struct serve_box *b, uint64_t tag,
                        struct native_reply *reply, bool *ret_later)
{
    if (b->state == NATIVE_EXITED)
        return ops_inspect(s, b, reply);
    if (b->killers == SERVE_KILLERS)
        return err_new(ERR_BUSY, "it is being killed, and %d wait for that already: try again",
                       SERVE_KILLERS);
    if (!b->killers) {
        serve_net_hold(b);
        TRY(box_kill(&s->host, &b->box));
    }
    b->tell_when_dead = *ret_later = true;
    b->kill_tags[b->killers++] = tag;
    return NULL;
}

static fallible end_and_remove(struct serve *s, struct serve_box *b, uint64_t tag,
                               struct native_reply *reply)
{
    if (b->state == NATIVE_EXITED) {
        serve_remove(s, b, reply);
        return NULL;
    }
    serve_net_hold(b);
    TRY(box_kill(&s->host, &b->box));
    b->remove_when_dead = true;
    b->remove_unasked = false;
    b->remove_tag = tag;
    return NULL;
}

fallible serve_do(struct serve *s, const struct native_request *r, struct serve_fds *in,
                  struct native_reply *reply, struct serve_fds *out, bool *ret_later)
{
    struct serve_box *b = NULL;

    if (r->op == NATIVE_START)
        return ops_start(s, r, in, ret_later);
    if (r->op == NATIVE_IMAGE_IMPORT)
        return serve_image_import(s, r, in, ret_later);
    if (r->op == NATIVE_CLAIM) {
        TRY(ops_find(s, r->id, &b));
        return serve_claim(s, b, r, in, reply, ret_later);
    }
    bool changes = r->op == NATIVE_DIFF || r->op == NATIVE_APPLY;
    if (in->count && !changes)
        return err_new(ERR_INVALID, "descriptors nobody asked for");
    if (r->op == NATIVE_SNAPSHOT_REMOVE)
        return serve_snapshot_remove(s, r, ret_later);
    if (r->op == NATIVE_SNAPSHOT_LIST)
        return serve_snapshot_list(s, r->snapshot, reply);
    if (r->op == NATIVE_IMAGE_FIND)
        return serve_image_find(s, r, out);
    if (r->op == NATIVE_LIST)
        return ops_list(s, r->id, reply);
    if (r->op == NATIVE_ROOT)
        return tell_root(s, r->image, reply);
    TRY(ops_find(s, r->id, &b));
    if (b->job && r->op != NATIVE_INSPECT && r->op != NATIVE_KILL && r->op != NATIVE_ADOPT)
        return err_new(ERR_BUSY, "the files of sandbox '%s' are being worked on", b->box.id);
    switch ((enum native_op)r->op) {
    case NATIVE_KILL:
        return ops_end(s, b, r->tag, reply, ret_later);
    case NATIVE_PAUSE:
    case NATIVE_RESUME:
        return pause_or_resume(s, b, r->op == NATIVE_PAUSE);
    case NATIVE_INSPECT:
        return ops_inspect(s, b, reply);
    case NATIVE_ADOPT:
        return ops_adopt(s, b, r->flags & NATIVE_TELL, reply, out);
    case NATIVE_SNAPSHOT:
        return serve_snapshot(s, b, r, ret_later);
    case NATIVE_DIFF:
    case NATIVE_APPLY:
        return serve_changes(s, b, r, in, ret_later);
    case NATIVE_ROLLBACK:
        return serve_rollback(s, b, r, ret_later);
    case NATIVE_CONNECT:
        return ops_dial(s, r, out);
    case NATIVE_REMOVE:
        *ret_later = true;
        return end_and_remove(s, b, r->tag, reply);
    default:
        return err_new(ERR_INVALID, "operation %u is not known", r->op);
    }
}
