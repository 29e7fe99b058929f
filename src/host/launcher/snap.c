// SPDX-License-Identifier: Apache-2.0
/* snap.c — snapshots of the launcher's sandboxes, and sandboxes that go on from one.
 *
 * Copying, flattening and sweeping take as long as a guest's tree is large, so a child does them.
 * It is root, for overlay's own attributes are hidden from every other user namespace, and behind a
 * fence (snaps/fence.h). It dies with the launcher. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/own.h"
#include "host/launcher/disk.h"
#include "host/record/record.h"
#include "host/launcher/inner.h"
#include "host/launcher/job.h"
#include "host/launcher/snap.h"
#include "host/snaps/fence.h"
#include "host/snaps/whole.h"
#include "host/tree/tree.h"

/* --- children --- */

static fallible open_box(const struct launcher *l, const char *id, int *ret_dir)
{
    *ret_dir = openat(l->host.boxes, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return *ret_dir < 0 ? err_sys("open the directory of '%s'", id) : NULL;
}

static fallible snap_unfreeze(const struct launcher_job *j)
{
    if (j->box->state != NATIVE_EXITED)
        TRY(box_pause(&j->launcher->host, &j->box->box, false));
    unlinkat(j->dir, LAUNCHER_THAW, 0); /* left behind it does no harm */
    return NULL;
}

/* disk: where upper layers are, if not in the box's directory. */
static fallible snap_fence(const struct launcher_job *j, int disk)
{
    return snaps_fence(j->launcher->host.dir, j->dir, disk, j->out);
}

static fallible run_flatten(struct launcher_job *j)
{
    TRY(snap_fence(j, -1));
    TRY(whole_flatten(j->launcher->host.dir, j->name));
    return snaps_sweep(j->launcher->host.dir);
}

static fallible run_remove(struct launcher_job *j)
{
    TRY(snap_fence(j, -1));
    return whole_remove(j->launcher->host.dir, j->name);
}

static void start_or_warn(struct launcher *l, const char *name, const char *id,
                          fallible (*run)(struct launcher_job *j));

/* The old layers are mounted as long as it runs; it moves when it does not. */
static fallible snap_restand(struct launcher *l, const struct launcher_job *j)
{
    const struct launcher_box *b = launcher_find(l, j->id);
    own_fd dir = -1;

    if (!b || b->state != NATIVE_EXITED)
        return NULL;
    TRY(open_box(l, j->id, &dir));
    TRY(whole_restand(l->host.dir, j->name, dir));
    launcher_sweep_layers(l);
    return NULL;
}

fallible launcher_job_move_on(struct launcher_job *j, struct err *e)
{
    if (j->box)
        j->box->job = NULL;
    if (!j->thaw)
        return e;
    struct err *stuck = snap_unfreeze(j);
    if (!e)
        return stuck;
    err_free(stuck); /* the first error is the one to tell */
    return e;
}

static void on_snap_ended(struct launcher_job *j, struct err *e)
{
    struct launcher *l = j->launcher;
    struct launcher_fds none = {.count = 0};

    e = launcher_job_move_on(j, e);
    if (j->reply.op == NATIVE_SNAPSHOT && !e) /* the next server may have looked for it already */
        start_or_warn(l, j->name, "", j->unasked ? run_remove : run_flatten);
    if (j->id[0] && !e)
        e = snap_restand(l, j);
    launcher_job_answer(j, e, &none);
}

static struct launcher_job *snap_job(struct launcher *l, fallible (*run)(struct launcher_job *j))
{
    return launcher_job_new(l, run, on_snap_ended);
}

static void start_or_warn(struct launcher *l, const char *name, const char *id,
                          fallible (*run)(struct launcher_job *j))
{
    struct launcher_job *j = snap_job(l, run);

    snprintf(j->name, sizeof j->name, "%s", name);
    snprintf(j->id, sizeof j->id, "%s", id);
    struct err *e = launcher_job_start(j);
    if (!e)
        return;
    log_warn("snapshots", KV_ERR(e));
    err_free(e);
    launcher_job_free(j);
}

static fallible run_sweep(struct launcher_job *j)
{
    TRY(snap_fence(j, -1));
    return snaps_sweep(j->launcher->host.dir);
}

void launcher_sweep_layers(struct launcher *l)
{
    start_or_warn(l, "", "", run_sweep);
}

void launcher_snap_cut(struct launcher_job *j)
{
    if (j->box)
        j->box->job = NULL;
    if (j->thaw)
        err_free(snap_unfreeze(j)); /* the next launcher can resume it */
}

/* --- taking one --- */

/* Refuses a sandbox with host directories it may write: their changes would be missing silently. */
static fallible check_mounts(int box)
{
    struct record r;

    TRY(record_read(box, &r));
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++)
        if (r.mounts[i].mode == NATIVE_RW)
            return err_new(ERR_UNSUPPORTED,
                           "'%.*s' is a directory of the host's, which no snapshot can hold",
                           NATIVE_PATH_MAX, r.mounts[i].target);
    return NULL;
}

/* How much it was is said as text, which every version can read. */
static fallible copy_from(struct launcher_job *j, int uppers)
{
    struct whole_taken taken = {0};

    TRY(whole_take(j->launcher->host.dir, j->dir, uppers, j->name, true, &taken));
    snprintf(j->reply.text, sizeof j->reply.text, "%llu", (unsigned long long)taken.copied_bytes);
    return NULL;
}

static fallible run_copy(struct launcher_job *j)
{
    TRY(snap_fence(j, -1));
    return copy_from(j, j->dir);
}

fallible launcher_job_disk(const struct launcher_job *j, int *ret_disk)
{
    if (j->box->state != NATIVE_EXITED)
        return disk_look(j->dir, ret_disk);
    return disk_open(&j->launcher->host, NATIVE_DISK_LOOP, j->dir, 0, -1, ret_disk);
}

/* Files in an image of its own are copied too: layers of the store are in one file system. */
static fallible run_copy_disk(struct launcher_job *j)
{
    own_fd disk = -1;

    TRY(launcher_job_disk(j, &disk));
    TRY(snap_fence(j, disk));
    return copy_from(j, disk);
}

fallible launcher_job_start_still(struct launcher *l, struct launcher_box *b,
                                  struct launcher_job *j)
{
    if (b->state == NATIVE_WAITING)
        return err_new(ERR_CONFLICT, "sandbox '%s' waits for its claim: it has no files yet",
                       b->box.id);
    if (b->state == NATIVE_EXITED)
        return launcher_job_start(j);
    if (b->state == NATIVE_RUNNING && !cg_has(&l->host.cg, CG_FREEZER))
        return err_new(ERR_UNSUPPORTED,
                       "sandbox '%s' runs and cannot be paused here: stop it "
                       "first",
                       b->box.id);
    j->thaw = b->state == NATIVE_RUNNING;
    if (!j->thaw)
        return launcher_job_start(j);
    if (symlinkat("snapshot", j->dir, LAUNCHER_THAW) < 0 && errno != EEXIST)
        return err_sys("note that it is to go on");
    struct err *e = box_pause(&l->host, &b->box, true);
    if (!e)
        e = launcher_job_start(j);
    if (e)
        err_free(snap_unfreeze(j)); /* the first error is the one to tell */
    return e;
}

static fallible take_dead(struct launcher *l, const char *name, const char *id, int dir)
{
    struct whole_taken taken = {0};

    TRY(whole_take(l->host.dir, dir, dir, name, false, &taken));
    if (taken.deepest > SNAPS_FLATTEN_AT)
        start_or_warn(l, name, id, run_flatten);
    return NULL;
}

fallible launcher_snapshot(struct launcher *l, struct launcher_box *b,
                           const struct native_request *r, bool *ret_later)
{
    own_fd dir = -1;

    if (b->killers || b->removal)
        return err_new(ERR_BUSY, "sandbox '%s' is being ended", b->box.id);
    TRY(whole_check_new(l->host.dir, r->snapshot));
    TRY(open_box(l, b->box.id, &dir));
    TRY(check_mounts(dir));
    bool disk = b->disk == NATIVE_DISK_LOOP;
    if (b->state == NATIVE_EXITED && !disk)
        return take_dead(l, r->snapshot, b->box.id, dir);
    struct launcher_job *j = snap_job(l, disk ? run_copy_disk : run_copy);
    j->box = b;
    j->dir = take_fd(&dir);
    j->reply = (struct native_reply){.op = r->op, .tag = r->tag};
    snprintf(j->name, sizeof j->name, "%s", r->snapshot);
    struct err *e = launcher_job_start_still(l, b, j);
    if (e) {
        launcher_job_free(j);
        return e;
    }
    b->job = j;
    *ret_later = true;
    return NULL;
}

/* --- the others --- */

fallible launcher_snapshot_remove(struct launcher *l, const struct native_request *r,
                                  bool *ret_later)
{
    own_fd dir = -1;

    TRY(whole_open(l->host.dir, r->snapshot, &dir));
    struct launcher_job *j = snap_job(l, run_remove);
    j->reply = (struct native_reply){.op = r->op, .tag = r->tag};
    snprintf(j->name, sizeof j->name, "%s", r->snapshot);
    struct err *e = launcher_job_start(j);
    if (e)
        launcher_job_free(j);
    *ret_later = !e;
    return e;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

fallible launcher_snapshot_list(struct launcher *l, const char *after, struct native_reply *reply)
{
    own_done(buf) names;
    size_t count = 0;

    buf_init(&names, 16u << 20);
    TRY(whole_list(l->host.dir, &names, &count));
    own_free const char **sorted = mem_new((count + 1) * sizeof *sorted);
    const char *at = names.p;
    for (size_t i = 0; i < count; i++, at += strlen(at) + 1)
        sorted[i] = at;
    qsort(sorted, count, sizeof *sorted, by_name);
    for (size_t i = 0; i < count && reply->count < NATIVE_LIST_MAX; i++)
        if (strcmp(sorted[i], after) > 0 && strlen(sorted[i]) < NATIVE_ID_MAX)
            strcpy(reply->ids[reply->count++], sorted[i]);
    return NULL;
}

/* --- going on from one --- */

/* Layers fit what they were above, and nothing else. */
static fallible check_fits(int whole, const struct native_request *r)
{
    struct record of;

    TRY(record_read(whole, &of));
    if (of.image != r->image)
        return err_new(ERR_INVALID, "the snapshot is of image %u, not %u", of.image, r->image);
    if (strncmp(of.image_name, r->image_name, sizeof of.image_name) != 0)
        return err_new(ERR_INVALID, "the snapshot is of image %.12s, not %.12s", of.image_name,
                       r->image_name);
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++) {
        const struct native_mount *was = &of.mounts[i], *is = &r->mounts[i];
        bool same = is->mode == was->mode && is->root == was->root &&
                    strncmp(is->path, was->path, sizeof is->path) == 0 &&
                    strncmp(is->target, was->target, sizeof is->target) == 0;
        if (was->mode == NATIVE_OVERLAY && !same)
            return err_new(ERR_INVALID, "mount %u: the snapshot has '%.*s' there", i,
                           NATIVE_PATH_MAX, was->target);
    }
    return NULL;
}

static fallible snap_stand(const struct launcher *l, const struct native_request *r)
{
    own_fd whole = -1, box = -1;

    TRY(whole_open(l->host.dir, r->snapshot, &whole));
    TRY_WRAP(check_fits(whole, r), "snapshot '%s'", r->snapshot);
    TRY(open_box(l, r->id, &box));
    return whole_stand(l->host.dir, r->snapshot, box);
}

fallible launcher_stand(const struct launcher *l, const struct native_request *r)
{
    TRY(box_make_dir(&l->host, r->id));
    struct err *e = snap_stand(l, r);
    if (e)
        err_free(tree_remove(l->host.boxes, r->id)); /* the first error is the one to tell */
    return e;
}

/* A sandbox of the host's system made before /usr was joined to the root's overlay, or of a
 * snapshot made before. */
static bool has_own_usr(const struct launcher *l, int box)
{
    const struct launcher_policy *p = l->policy;
    struct record r;

    if (whole_has(box, ROOTFS_UPPER_USR))
        return true;
    own(err) e = record_read(box, &r); /* most often it has not begun yet */
    return !e && !(r.flags & RECORD_JOINED) && r.image < p->image_count && !p->images[r.image];
}

fallible launcher_add_layers(const struct launcher *l, const struct native_request *r,
                             struct rootfs *fs, struct snaps_stack below[NATIVE_MOUNTS])
{
    own_fd box = -1;

    TRY(open_box(l, r->id, &box));
    if (fs->joined && has_own_usr(l, box))
        TRY(rootfs_split(fs));
    for (size_t i = 0; i < fs->mount_count; i++)
        TRY(whole_add_below(l->host.dir, box, &fs->mounts[i]));
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++) {
        char upper[BOX_NAME], work[BOX_NAME];
        box_upper_name(i, upper, work);
        if (r->mounts[i].mode == NATIVE_OVERLAY)
            TRY(whole_layers(l->host.dir, box, upper, &below[i]));
    }
    return NULL;
}

/* --- removal --- */

bool launcher_stands(const struct launcher *l, const char *id)
{
    struct stat st;
    own_fd box = -1;

    if (fstatat(l->host.dir, "snap", &st, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    struct err *e = open_box(l, id, &box);
    bool stands = !e && whole_stands(box);
    err_free(e); /* nothing to be seen: nothing stands */
    return stands;
}

/* --- rollback --- */

bool launcher_is_half_back(const struct launcher *l, const char *id)
{
    char path[NATIVE_ID_MAX + 16];

    snprintf(path, sizeof path, "%s/%s", id, WHOLE_RESET);
    return faccessat(l->host.boxes, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static fallible run_rollback(struct launcher_job *j)
{
    TRY(snap_fence(j, -1));
    TRY(whole_reset(j->launcher->host.dir, j->dir, j->name[0] ? j->name : NULL));
    return snaps_sweep(j->launcher->host.dir);
}

/* Its layers must fit what it is made of, as those of a start. */
static fallible check_way_back(const struct launcher *l, const struct native_request *r, int dir)
{
    struct native_request is = {.op = NATIVE_START};
    struct record of;
    own_fd whole = -1;

    if (mkdirat(l->host.dir, "snap", 0700) < 0 && errno != EEXIST) /* the fence wants it there */
        return err_sys("make the store of layers");
    if (!r->snapshot[0])
        return NULL;
    TRY(record_read(dir, &of));
    is.image = of.image;
    memcpy(is.image_name, of.image_name, sizeof is.image_name);
    memcpy(is.mounts, of.mounts, sizeof is.mounts);
    TRY(whole_open(l->host.dir, r->snapshot, &whole));
    TRY_WRAP(check_fits(whole, &is), "snapshot '%s'", r->snapshot);
    if (whole_has(whole, "upper") && whole_has(whole, ROOTFS_UPPER_USR) != has_own_usr(l, dir))
        return err_new(ERR_UNSUPPORTED,
                       "snapshot '%s': its /usr is layered as another version of croft does: "
                       "start a sandbox from it instead",
                       r->snapshot);
    return NULL;
}

fallible launcher_rollback(struct launcher *l, struct launcher_box *b,
                           const struct native_request *r, bool *ret_later)
{
    own_fd dir = -1;

    if (b->state != NATIVE_EXITED)
        return err_new(ERR_CONFLICT, "sandbox '%s' runs: stop it first", b->box.id);
    if (b->disk == NATIVE_DISK_LOOP)
        return err_new(
            ERR_UNSUPPORTED,
            "the disk of sandbox '%s' is an image of its own, which cannot be rolled back",
            b->box.id);
    TRY(open_box(l, b->box.id, &dir));
    TRY(check_way_back(l, r, dir));
    struct launcher_job *j = snap_job(l, run_rollback);
    j->box = b;
    j->dir = take_fd(&dir);
    j->reply = (struct native_reply){.op = r->op, .tag = r->tag};
    snprintf(j->name, sizeof j->name, "%s", r->snapshot);
    struct err *e = launcher_job_start(j);
    if (e) {
        launcher_job_free(j);
        return e;
    }
    b->job = j;
    *ret_later = true;
    return NULL;
}
