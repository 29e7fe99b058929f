// SPDX-License-Identifier: Apache-2.0
/* life.c — the ends of the launcher's sandboxes, and those of an earlier launcher.
 *
 * Groups and ids go when a sandbox ends, its directory when it is removed: between the two it is
 * files and nothing else. A sandbox of a launcher that was killed is no child of this one: its
 * pidfd tells that it ended, not how. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/own.h"
#include "host/record/record.h"
#include "host/launcher/box_sweep.h"
#include "host/launcher/disk.h"
#include "host/launcher/inner.h"
#include "host/launcher/job.h"
#include "host/launcher/names.h"
#include "host/launcher/reuse/reuse.h"
#include "host/launcher/snap.h"
#include "host/launcher/start.h"
#include "host/snaps/whole.h"

void launcher_insert(struct launcher *l, struct launcher_box *b)
{
    list_add(&l->boxes, &b->link);
    map_put(&l->by_id, str_of(b->box.id), b);
    l->box_count++;
}

bool launcher_any_alive(const struct launcher *l)
{
    LIST_EACH(b, &l->boxes, const struct launcher_box, link)
        if (b->state != NATIVE_EXITED)
            return true;
    return false;
}

/* --- an end --- */

static fallible release_slot(struct launcher_box *b)
{
    struct launcher *l = b->launcher;

    if (!b->holds_slot)
        return NULL;
    TRY(box_remove(&l->host, &b->box, true));
    b->holds_slot = false;
    return NULL;
}

static void read_oom(struct launcher_box *b)
{
    const struct cg *cg = &b->launcher->host.cg;
    char group[BOX_NAME];
    own_fd oom = -1;

    box_group_name(b->box.slot, group);
    struct err *e = cg_open_oom(cg, group, &oom);
    if (!e && oom >= 0)
        e = cg_read_oom(oom, &b->oom_kills);
    err_free(e); /* not counted is 0 */
}

static void life_warn(const char *what, const struct launcher_box *b, struct err *e)
{
    if (e)
        log_warn(what, KV("id", b->box.id), KV_ERR(e));
    err_free(e);
}

static void life_ended(struct launcher_box *b)
{
    b->state = NATIVE_EXITED;
    own_close_p(&b->control);
    b->control = -1;
    read_oom(b);
    life_warn("groups of a sandbox not removed", b, release_slot(b)); /* tried again at removal */
    if (!b->launcher->ending)
        launcher_strip(b->launcher, b->box.id);
}

static void life_tell(struct launcher_box *b)
{
    struct launcher *l = b->launcher;
    struct native_reply killed = {.op = NATIVE_KILL};
    launcher_describe(b, &killed);
    struct native_reply removed = {.op = NATIVE_REMOVE, .tag = b->remove_tag};
    struct launcher_fds none = {.count = 0};

    if (b->tells_end && !b->killers && !b->removal && l->sock >= 0) {
        killed.op = NATIVE_DIED;
        memcpy(killed.ids[0], b->box.id, NATIVE_ID_MAX);
        launcher_answer(l, &killed, NULL, &none);
    }
    for (unsigned i = 0; i < b->killers; i++) {
        killed.tag = b->kill_tags[i];
        launcher_answer(l, &killed, NULL, &none);
    }
    b->killers = 0;
    if (b->removal)
        launcher_remove(l, b, b->removal == REMOVAL_ASKED ? &removed : NULL);
    if (l->sock < 0 && !launcher_any_alive(l))
        l->ending = true; /* no server is there, no sandbox runs */
}

static void on_box_dead(struct loop_child *c)
{
    struct launcher_box *b = container_of(c, struct launcher_box, child);

    b->exit_code = c->code == CLD_EXITED ? c->status : 128 + c->status;
    b->signal = c->code == CLD_EXITED ? 0 : c->status;
    b->box.pidfd = -1; /* the loop closed it */
    life_ended(b);
    life_tell(b);
}

static void on_orphan_dead(struct loop_io *io)
{
    struct launcher_box *b = container_of(io, struct launcher_box, orphan);

    loop_io_stop(io);
    b->code_unknown = true;
    life_ended(b);
    life_tell(b);
}

static void life_undo(struct launcher *l, struct launcher_box *b, bool keep)
{
    kill(b->box.pid, SIGKILL); /* our child, not reaped: the number is its own */
    while (waitpid(b->box.pid, NULL, 0) < 0 && errno == EINTR)
        ;
    b->box.pidfd = -1; /* taken over, also by a failed start */
    err_free(box_remove(&l->host, &b->box, keep));
    launcher_drop_sockets(l, b->box.id);
    if (!keep)
        launcher_drop_log(l, b->box.id);
}

/* The loop has the descriptor; box_kill() needs it as long as the process is there. */
fallible launcher_watch(struct launcher *l, struct launcher_box *b, bool keep)
{
    struct err *e = loop_child_start(l->loop, &b->child, b->box.pid, b->box.pidfd, on_box_dead);

    if (e)
        life_undo(l, b, keep);
    return e;
}

/* --- removal --- */

void launcher_forget(struct launcher *l, struct launcher_box *b)
{
    list_del(&b->link);
    if (map_get(&l->by_id, str_of(b->box.id)) == b)
        map_del(&l->by_id, str_of(b->box.id));
    l->box_count--;
    own_close_p(&b->control);
    free(b->waits);
    free(b);
}

fallible launcher_delete(struct launcher *l, struct launcher_box *b)
{
    bool stands = launcher_stands(l, b->box.id);
    struct err *e = release_slot(b);
    struct err *dir = deleter_discard(l, b->box.id);

    launcher_drop_sockets(l, b->box.id);
    launcher_drop_log(l, b->box.id);
    launcher_forget(l, b);
    if (stands && !l->ending)
        launcher_sweep_layers(l);
    host_layers_box_gone(l);
    if (!e)
        return dir;
    err_free(dir); /* one story is enough */
    return e;
}

void launcher_replace(struct launcher *l, struct launcher_box *b)
{
    life_warn("groups of a sandbox not removed", b, release_slot(b));
    launcher_forget(l, b);
}

void launcher_remove(struct launcher *l, struct launcher_box *b, struct native_reply *reply)
{
    struct launcher_fds none = {.count = 0};
    struct err *e = launcher_delete(l, b);

    if (reply) {
        launcher_answer(l, reply, e, &none);
        return;
    }
    if (e)
        log_warn("sandbox not removed", KV_ERR(e));
    err_free(e);
}

/* --- those of an earlier launcher --- */

static bool slot_in_use(void *arg, unsigned slot)
{
    const struct launcher *l = arg;

    LIST_EACH(b, &l->boxes, const struct launcher_box, link)
        if (b->holds_slot && b->box.slot == slot)
            return true;
    return false;
}

/* The launcher that froze it is dead, and only this one can let the sandbox go on. */
static bool was_for_snapshot(const struct launcher *l, const char *id)
{
    own_fd dir = openat(l->host.boxes, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    return dir >= 0 && unlinkat(dir, LAUNCHER_THAW, 0) == 0;
}

static fallible life_adopt(struct launcher *l, const struct box *box, bool alive)
{
    struct launcher_box *b = mem_new(sizeof *b);
    char group[BOX_NAME];
    bool frozen = false;
    own_fd dir = openat(l->host.boxes, box->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    *b = (struct launcher_box){.box = *box,
                               .disk = disk_of(dir),
                               .launcher = l,
                               .control = -1,
                               .adopted = true,
                               .holds_slot = alive,
                               .code_unknown = !alive,
                               .state = alive ? NATIVE_RUNNING : NATIVE_EXITED};
    launcher_insert(l, b);
    if (!alive)
        return NULL;
    box_group_name(box->slot, group);
    TRY(cg_is_frozen(&l->host.cg, group, &frozen));
    if (frozen && was_for_snapshot(l, box->id)) {
        TRY(box_pause(&l->host, &b->box, false));
        frozen = false;
    }
    b->state = frozen ? NATIVE_PAUSED : NATIVE_RUNNING;
    return loop_io_start(l->loop, &b->orphan, b->box.pidfd, EPOLLIN, on_orphan_dead);
}

static fallible look_at(struct launcher *l, const char *id)
{
    struct box box;
    struct record r;
    bool alive = false;
    struct err *e = box_adopt(&l->host, id, &box, &r, &alive);

    if (e && err_code(e) == ERR_NOT_FOUND) {
        err_free(e); /* a croft run's, see box_sweep(), or of a start that was cut short */
        return box_clear_unrecorded(&l->host, id);
    }
    if (e)
        return e;
    if (alive)
        log_info("sandbox adopted", KV("id", id));
    return alive || r.flags & RECORD_PERSIST ? life_adopt(l, &box, alive)
                                             : box_clear_dir(&l->host, id);
}

static fallible each_name(int parent, const char *what,
                          fallible (*fn)(struct launcher *l, const char *), struct launcher *l)
{
    int fd = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    struct err *e = NULL;

    if (!d) {
        own_close_p(&fd);
        return err_sys("list the %s", what);
    }
    for (struct dirent *at; !e && (at = readdir(d));)
        if (at->d_name[0] != '.')
            e = err_wrap(fn(l, at->d_name), "'%s'", at->d_name);
    closedir(d);
    return e;
}

/* Sockets of those that live, logs of all; the launcher's own was its predecessor's. */
static fallible look_at_socket(struct launcher *l, const char *name)
{
    const char *dot = strrchr(name, '.');
    const struct launcher_box *b =
        dot ? map_get(&l->by_id, str_n(name, (size_t)(dot - name))) : NULL;

    if (b && (b->state != NATIVE_EXITED || dot[1] == LAUNCHER_NAME_LOG))
        return NULL;
    if (unlinkat(l->sockets, name, 0) < 0 && errno != ENOENT)
        return err_sys("remove an old socket");
    return NULL;
}

fallible launcher_adopt_all(struct launcher *l)
{
    TRY_WRAP(each_name(l->host.boxes, "sandboxes", look_at, l), "adopt sandboxes");
    TRY_WRAP(box_clear_claims(&l->host, slot_in_use, l), "clear old claims");
    TRY_WRAP(each_name(l->sockets, "sockets", look_at_socket, l), "clear old sockets");
    TRY(box_sweep(&l->host, false));
    return err_wrap(whole_sweep(l->host.dir), "clear old layers");
}

/* --- the end --- */

void launcher_kill_all(struct launcher *l)
{
    launcher_settle_all(l);
    LIST_EACH(b, &l->boxes, struct launcher_box, link)
        if (b->state != NATIVE_EXITED)
            life_warn("sandbox not killed", b, box_kill(&l->host, &b->box));
}

static void wait_for(struct launcher_box *b)
{
    siginfo_t info;

    if (b->adopted)
        err_free(fd_wait(b->box.pidfd, POLLIN, BOX_WAIT_MS)); /* then its groups will not go */
    else
        while (waitid(P_PID, (id_t)b->box.pid, &info, WEXITED) < 0 && errno == EINTR)
            ;
}

static void stop_watching(struct launcher_box *b)
{
    if (b->adopted) {
        loop_io_stop(&b->orphan);
        return;
    }
    loop_child_stop(&b->child);
    b->box.pidfd = -1;
}

void launcher_drop_all(struct launcher *l)
{
    launcher_settle_all(l);
    host_layers_end(l);
    launcher_log_end(l);
    launcher_end_jobs(l);
    spares_drop(l);
    LIST_EACH(b, &l->boxes, struct launcher_box, link) {
        bool alive = b->state != NATIVE_EXITED;
        if (alive)
            (l->policy->persist ? stop_watching : wait_for)(b);
        if (l->policy->persist) {
            launcher_forget(l, b);
            continue;
        }
        if (alive) {
            stop_watching(b);
            life_ended(b);
        }
        struct err *e = launcher_delete(l, b);
        if (e)
            log_warn("sandbox not removed", KV_ERR(e));
        err_free(e);
    }
    reuse_clear(l->host.reuse);
    deleter_drain(l);
}
