// SPDX-License-Identifier: Apache-2.0
/* serve_life.c — the launcher's sandboxes from birth to burial, and those it inherits.
 *
 * Groups and ids go when a sandbox ends, its directory when it is removed: one that has ended
 * holds files and nothing else. A sandbox of a launcher that was killed is nobody's child of ours:
 * we see it die by its pidfd, but not how. */
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
#include "host/launcher/record.h"
#include "host/launcher/disk.h"
#include "host/launcher/serve.h"
#include "host/snaps/whole.h"

void serve_insert(struct serve *s, struct serve_box *b)
{
    list_add(&s->boxes, &b->link);
    map_put(&s->by_id, str_of(b->box.id), b);
    s->box_count++;
}

bool serve_any_alive(const struct serve *s)
{
    LIST_EACH(b, &s->boxes, const struct serve_box, link)
        if (b->state != NATIVE_EXITED)
            return true;
    return false;
}

/* --- sockets --- */

void serve_socket_name(const char *id, enum serve_name kind, char out[SERVE_SOCKET_NAME])
{
    snprintf(out, SERVE_SOCKET_NAME, "%s.%c", id, kind);
}

static void life_drop(const struct serve *s, const char *id, enum serve_name kind)
{
    char name[SERVE_SOCKET_NAME];

    serve_socket_name(id, kind, name);
    unlinkat(s->sockets, name, 0); /* not there: nothing to do */
}

void serve_drop_sockets(const struct serve *s, const char *id)
{
    life_drop(s, id, SERVE_NAME_SERVER);
    life_drop(s, id, SERVE_NAME_CONNECT);
}

void serve_drop_log(const struct serve *s, const char *id)
{
    life_drop(s, id, SERVE_NAME_LOG);
}

/* --- death --- */

#define REST_MS 10000

static void on_rest(struct loop_timer *t);

void serve_rest_later(struct serve *s)
{
    loop_timer_start(s->loop, &s->rest, REST_MS, on_rest);
}

static void on_rest(struct loop_timer *t)
{
    struct serve *s = container_of(t, struct serve, rest);

    box_host_rest(&s->host);
    serve_hulls_rest(s);
    if (serve_hulls_undone(s))
        serve_rest_later(s);
}

static fallible release_slot(struct serve_box *b)
{
    struct serve *s = b->serve;

    if (!b->holds_slot)
        return NULL;
    TRY(box_remove(&s->host, &b->box, true));
    b->holds_slot = false;
    serve_net_linger(s);
    if (s->host.husk_count)
        serve_rest_later(s);
    return NULL;
}

static void read_oom(struct serve_box *b)
{
    const struct cg *cg = &b->serve->host.cg;
    char group[BOX_NAME];
    own_fd oom = -1;

    box_group_name(b->box.slot, group);
    struct err *e = cg_open_oom(cg, group, &oom);
    if (!e && oom >= 0)
        e = cg_read_oom(oom, &b->oom_kills);
    err_free(e); /* not counted is 0 */
}

static void life_warn(const char *what, const struct serve_box *b, struct err *e)
{
    if (e)
        log_warn(what, KV("id", b->box.id), KV_ERR(e));
    err_free(e);
}

static void life_ended(struct serve_box *b)
{
    b->state = NATIVE_EXITED;
    own_close_p(&b->control);
    b->control = -1;
    read_oom(b);
    life_warn("groups of a sandbox not removed", b, release_slot(b)); /* tried again at removal */
    if (!b->serve->ending && !b->plain)                               /* else it has no mounts */
        serve_strip(b->serve, b->box.id);
}

static void life_tell(struct serve_box *b)
{
    struct serve *s = b->serve;
    struct native_reply killed = {.op = NATIVE_KILL};
    serve_describe(b, &killed);
    struct native_reply removed = {.op = NATIVE_REMOVE, .tag = b->remove_tag};
    struct serve_fds none = {.count = 0};

    if (b->told && !b->tell_when_dead && !b->remove_when_dead && s->sock >= 0) {
        killed.op = NATIVE_DIED;
        memcpy(killed.ids[0], b->box.id, NATIVE_ID_MAX);
        serve_answer(s, &killed, NULL, &none);
    }
    for (unsigned i = 0; i < b->killers; i++) {
        killed.tag = b->kill_tags[i];
        serve_answer(s, &killed, NULL, &none);
    }
    b->tell_when_dead = false;
    b->killers = 0;
    if (b->remove_when_dead)
        serve_remove(s, b, b->remove_unasked ? NULL : &removed);
    if (s->sock < 0 && !serve_any_alive(s))
        s->ending = true; /* nobody asks, nothing runs */
}

static void on_box_dead(struct loop_child *c)
{
    struct serve_box *b = container_of(c, struct serve_box, child);

    b->exit_code = c->code == CLD_EXITED ? c->status : 128 + c->status;
    b->signal = c->code == CLD_EXITED ? 0 : c->status;
    b->box.pidfd = -1; /* the loop closed it */
    life_ended(b);
    life_tell(b);
}

static void on_orphan_dead(struct loop_io *io)
{
    struct serve_box *b = container_of(io, struct serve_box, orphan);

    loop_io_stop(io);
    b->code_unknown = true;
    life_ended(b);
    life_tell(b);
}

static void life_undo(struct serve *s, struct serve_box *b, bool keep)
{
    kill(b->box.pid, SIGKILL); /* our child, not reaped: the number is its own */
    while (waitpid(b->box.pid, NULL, 0) < 0 && errno == EINTR)
        ;
    b->box.pidfd = -1; /* taken over, also by a failed start */
    err_free(box_remove(&s->host, &b->box, keep));
    serve_drop_sockets(s, b->box.id);
    if (!keep)
        serve_drop_log(s, b->box.id);
}

/* The loop has the descriptor; box_kill() needs it as long as the process is there. */
fallible serve_watch(struct serve *s, struct serve_box *b, bool keep)
{
    struct err *e = loop_child_start(s->loop, &b->child, b->box.pid, b->box.pidfd, on_box_dead);

    if (e)
        life_undo(s, b, keep);
    return e;
}

/* --- burial --- */

void serve_forget(struct serve *s, struct serve_box *b)
{
    list_del(&b->link);
    if (map_get(&s->by_id, str_of(b->box.id)) == b)
        map_del(&s->by_id, str_of(b->box.id));
    s->box_count--;
    own_close_p(&b->control);
    free(b->waits);
    free(b);
}

fallible serve_bury(struct serve *s, struct serve_box *b)
{
    bool stands = serve_stands(s, b->box.id);
    struct err *e = release_slot(b);
    bool reused = b->plain && !e && serve_reuse(s, b->box.id, b->lives);
    struct err *dir = reused ? NULL : serve_discard(s, b->box.id);

    serve_drop_sockets(s, b->box.id);
    serve_drop_log(s, b->box.id);
    serve_forget(s, b);
    if (stands && !s->ending)
        serve_sweep_layers(s);
    serve_fresh_swept(s);
    if (!e)
        return dir;
    err_free(dir); /* one story is enough */
    return e;
}

void serve_replace(struct serve *s, struct serve_box *b)
{
    life_warn("groups of a sandbox not removed", b, release_slot(b));
    serve_forget(s, b);
}

void serve_remove(struct serve *s, struct serve_box *b, struct native_reply *reply)
{
    struct serve_fds none = {.count = 0};
    struct err *e = serve_bury(s, b);

    if (reply) {
        serve_answer(s, reply, e, &none);
        return;
    }
    if (e)
        log_warn("sandbox not removed", KV_ERR(e));
    err_free(e);
}

/* --- inheritance --- */

static bool slot_in_use(void *arg, unsigned slot)
{
    const struct serve *s = arg;

    LIST_EACH(b, &s->boxes, const struct serve_box, link)
        if (b->holds_slot && b->box.slot == slot)
            return true;
    return false;
}

/* Whoever took it is dead, and nobody else would let the sandbox go on. */
static bool was_for_snapshot(const struct serve *s, const char *id)
{
    own_fd dir = openat(s->host.boxes, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    return dir >= 0 && unlinkat(dir, SERVE_THAW, 0) == 0;
}

static fallible life_inherit(struct serve *s, const struct box *box, bool alive)
{
    struct serve_box *b = mem_new(sizeof *b);
    char group[BOX_NAME];
    bool frozen = false;
    own_fd dir = openat(s->host.boxes, box->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    *b = (struct serve_box){.box = *box,
                            .disk = disk_of(dir),
                            .serve = s,
                            .control = -1,
                            .adopted = true,
                            .holds_slot = alive,
                            .code_unknown = !alive,
                            .state = alive ? NATIVE_RUNNING : NATIVE_EXITED};
    serve_insert(s, b);
    if (!alive)
        return NULL;
    box_group_name(box->slot, group);
    TRY(cg_is_frozen(&s->host.cg, group, &frozen));
    if (frozen && was_for_snapshot(s, box->id)) {
        TRY(box_pause(&s->host, &b->box, false));
        frozen = false;
    }
    b->state = frozen ? NATIVE_PAUSED : NATIVE_RUNNING;
    return loop_io_start(s->loop, &b->orphan, b->box.pidfd, EPOLLIN, on_orphan_dead);
}

static fallible look_at(struct serve *s, const char *id)
{
    struct box box;
    struct record r;
    bool alive = false;
    struct err *e = box_adopt(&s->host, id, &box, &r, &alive);

    if (e && err_code(e) == ERR_NOT_FOUND) {
        err_free(e); /* another program's, see box_sweep(), or nobody's yet */
        return box_clear_unborn(&s->host, id);
    }
    if (e)
        return e;
    if (alive)
        log_info("sandbox adopted", KV("id", id));
    return alive || r.flags & RECORD_KEPT ? life_inherit(s, &box, alive)
                                          : box_clear_dir(&s->host, id);
}

static fallible each_name(int parent, const char *what,
                          fallible (*fn)(struct serve *s, const char *), struct serve *s)
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
            e = err_wrap(fn(s, at->d_name), "'%s'", at->d_name);
    closedir(d);
    return e;
}

/* Sockets of those that live, logs of all; the launcher's own was its predecessor's. */
static fallible look_at_socket(struct serve *s, const char *name)
{
    const char *dot = strrchr(name, '.');
    const struct serve_box *b = dot ? map_get(&s->by_id, str_n(name, (size_t)(dot - name))) : NULL;

    if (b && (b->state != NATIVE_EXITED || dot[1] == SERVE_NAME_LOG))
        return NULL;
    if (unlinkat(s->sockets, name, 0) < 0 && errno != ENOENT)
        return err_sys("remove an old socket");
    return NULL;
}

fallible serve_adopt_all(struct serve *s)
{
    TRY_WRAP(each_name(s->host.boxes, "sandboxes", look_at, s), "adopt sandboxes");
    TRY_WRAP(box_clear_claims(&s->host, slot_in_use, s), "clear old claims");
    TRY_WRAP(each_name(s->sockets, "sockets", look_at_socket, s), "clear old sockets");
    TRY(box_sweep(&s->host, false));
    return err_wrap(whole_sweep(s->host.dir), "clear old layers");
}

/* --- the end --- */

void serve_kill_all(struct serve *s)
{
    serve_settle_all(s);
    LIST_EACH(b, &s->boxes, struct serve_box, link)
        if (b->state != NATIVE_EXITED)
            life_warn("sandbox not killed", b, box_kill(&s->host, &b->box));
}

static void wait_for(struct serve_box *b)
{
    siginfo_t info;

    if (b->adopted)
        err_free(fd_wait(b->box.pidfd, POLLIN, BOX_WAIT_MS)); /* then its groups will not go */
    else
        while (waitid(P_PID, (id_t)b->box.pid, &info, WEXITED) < 0 && errno == EINTR)
            ;
}

static void stop_watching(struct serve_box *b)
{
    if (b->adopted) {
        loop_io_stop(&b->orphan);
        return;
    }
    loop_child_stop(&b->child);
    b->box.pidfd = -1;
}

void serve_drop_all(struct serve *s)
{
    serve_settle_all(s);
    serve_fresh_end(s);
    serve_log_end(s);
    serve_end_jobs(s);
    while (s->spare_count)
        box_drop(&s->host, &s->spare[--s->spare_count]);
    LIST_EACH(b, &s->boxes, struct serve_box, link) {
        bool alive = b->state != NATIVE_EXITED;
        if (alive)
            (s->policy->keep ? stop_watching : wait_for)(b);
        if (s->policy->keep) {
            serve_forget(s, b);
            continue;
        }
        if (alive) {
            stop_watching(b);
            life_ended(b);
        }
        struct err *e = serve_bury(s, b);
        if (e)
            log_warn("sandbox not removed", KV_ERR(e));
        err_free(e);
    }
    box_host_rest(&s->host);
    serve_gone_drain(s);
}
