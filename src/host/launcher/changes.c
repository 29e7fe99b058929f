// SPDX-License-Identifier: Apache-2.0
/* changes.c — what a sandbox changed, listed and applied for a server that can see neither its
 * layers nor the directories it worked on.
 *
 * A child does it while the sandbox stands still. It opens the layers and what is below them, and
 * then goes behind a fence: it can read these and write the directories that the policy lets it.
 * Only there does it read what a guest left and what was asked for. Its answer is a memory file,
 * passed on unread. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/own.h"
#include "host/changes/changes.h"
#include "host/overlay/overlay.h"
#include "host/launcher/disk.h"
#include "host/launcher/mounts.h"
#include "host/record/record.h"
#include "host/launcher/job.h"
#include "host/launcher/snap.h"
#include "host/launcher/start.h"
#include "host/worker/worker.h"
#include "sandbox/backend.h"
#include "wire/files.h"

#define DIFF_S     120 /* a sandbox stands still no longer for being looked at */
#define APPLY_S    600
#define ASKED_MAX  (8u << 20) /* bytes of what is asked for */
#define PAGE_BYTES (8u << 20) /* a page ends when it is so long */
#define ANSWER_MAX (16u << 20)

struct section { /* an overlay of the sandbox's */
    int uppers[1 + SNAPS_LAYERS_MAX];
    struct changes_source src;
    char where[NATIVE_PATH_MAX + 1];  /* in the sandbox, "" is its root */
    const struct native_mount *mount; /* NULL: of its root file system */
    const struct launcher_root *root; /* of a mount */
    bool other;                       /* not the directory it lay over: only has its name */
    const char *places[NATIVE_MOUNTS + 1];
    struct changes c;
};

struct looking {
    struct launcher_job *j;
    struct record record;
    struct native_request req; /* what it was made of, as far as layers go */
    struct rootfs fs;
    struct snaps_stack below[NATIVE_MOUNTS];
    int uppers; /* directory of its upper layers */
    struct section sections[ROOTFS_MOUNTS_MAX + NATIVE_MOUNTS];
    size_t count;
    struct arena arena;
    struct wire_files asked;
};

static fallible run_apply(struct launcher_job *j);

/* --- opening, before the fence --- */

static fallible open_uppers(const struct looking *look, struct section *x, const char *name,
                            const int *frozen, size_t count)
{
    x->uppers[0] = openat(look->uppers, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (x->uppers[0] < 0)
        return err_sys("open layer '%s'", name);
    if (count > SNAPS_LAYERS_MAX)
        return err_new(ERR_LIMIT, "%zu layers are more than can be compared", count);
    if (count)
        memcpy(x->uppers + 1, frozen, count * sizeof *frozen);
    x->src.uppers = x->uppers;
    x->src.user = look->j->launcher->host.user;
    x->src.upper_count = count + 1;
    return NULL;
}

/* Several layers are looked at as the sandbox sees them: through an overlay, attached nowhere. */
static fallible changes_merge(const struct launcher *l, const struct rootfs_mount *m, int *ret)
{
    const int *lowers = m->lowers + m->frozen;
    size_t count = m->lower_count - m->frozen;

    if (count == 1) {
        *ret = lowers[0];
        return NULL;
    }
    char at[BOX_STATE + sizeof "/" BOX_LOOK];
    snprintf(at, sizeof at, "%s/" BOX_LOOK, l->host.state);
    own_fd turn = l->host.by_path ? openat(l->host.look, ".", O_RDONLY | O_CLOEXEC) : -1;
    if (l->host.by_path && (turn < 0 || flock(turn, LOCK_EX) < 0)) /* others look there too */
        return err_sys("wait for '%s'", at);
    return mounts_overlay(&(struct mounts_overlay){.lowers = lowers,
                                                   .lower_count = count,
                                                   .upper = -1,
                                                   .work = -1,
                                                   .user = l->host.user,
                                                   .redirects = m->redirects,
                                                   .at = l->host.by_path ? at : NULL},
                          ret);
}

static fallible add_root(struct looking *look, const struct rootfs_mount *m)
{
    struct section *x = &look->sections[look->count];

    snprintf(x->where, sizeof x->where, "%s%s", m->where[0] ? "/" : "", m->where);
    TRY(open_uppers(look, x, m->upper, m->lowers, m->frozen));
    x->src.since_ns = CHANGES_NEVER; /* nothing else changes what is below */
    TRY(changes_merge(look->j->launcher, m, &x->src.lower));
    look->count++;
    return NULL;
}

static fallible add_mount(struct looking *look, unsigned n)
{
    const struct launcher_policy *p = look->j->launcher->policy;
    const struct native_mount *m = &look->record.mounts[n];
    struct section *x = &look->sections[look->count];
    char upper[BOX_NAME], work[BOX_NAME];

    if (m->root >= p->root_count || !p->roots[m->root].modes)
        return err_new(ERR_FORBIDDEN,
                       "the directory of '%s' is no longer one that sandboxes may mount",
                       m->target);
    box_upper_name(n, upper, work);
    snprintf(x->where, sizeof x->where, "%.*s", NATIVE_PATH_MAX, m->target);
    x->mount = m;
    x->root = &p->roots[m->root];
    TRY(open_uppers(look, x, upper, look->below[n].fds, look->below[n].count));
    x->src.since_ns = look->below[n].since_ns;
    TRY_WRAP(fd_open_beneath(x->root->dir, str_of(m->path), O_PATH, 0, &x->src.lower),
             "the directory of '%s'", m->target);
    TRY_WRAP(overlay_look_which(look->j->dir, n, x->src.lower, &x->other), "the directory of '%s'",
             m->target);
    record_places(&look->record, n, x->places);
    x->src.places = x->places;
    if (!x->other) /* the notes are of that directory */
        x->src.notes = overlay_open_notes(look->j->dir, n, look->j->run == run_apply);
    look->count++;
    return NULL;
}

static fallible open_rootfs(struct looking *look)
{
    const struct launcher *l = look->j->launcher;
    const struct record *r = &look->record;

    if (r->image == NATIVE_IMAGE_STORED)
        return launcher_image_open(l, &look->req, &look->fs);
    if (r->image >= l->policy->image_count)
        return err_new(ERR_NOT_FOUND, "its root file system is no longer on the list");
    const char *path = l->policy->images[r->image];
    if (!path)
        return rootfs_host_open(l->host.dir, &look->fs);
    int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_sys("open image '%s'", path);
    rootfs_add_lower(rootfs_add_mount(&look->fs, "", "u", "w"), dir);
    return NULL;
}

static fallible open_all(struct looking *look, bool roots)
{
    const struct launcher *l = look->j->launcher;
    const struct launcher_box *b = look->j->box;

    TRY(record_read(look->j->dir, &look->record));
    look->req.image = look->record.image;
    memcpy(look->req.id, look->record.id, sizeof look->req.id);
    memcpy(look->req.image_name, look->record.image_name, sizeof look->req.image_name);
    memcpy(look->req.mounts, look->record.mounts, sizeof look->req.mounts);
    look->uppers = look->j->dir;
    if (b->disk == NATIVE_DISK_LOOP)
        TRY(launcher_job_disk(look->j, &look->uppers));
    rootfs_init(&look->fs);
    if (roots)
        TRY(open_rootfs(look));
    TRY(launcher_add_layers(l, &look->req, &look->fs, look->below));
    for (size_t i = 0; i < look->fs.mount_count; i++)
        TRY(add_root(look, &look->fs.mounts[i]));
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++) {
        const struct native_mount *m = &look->record.mounts[i];
        if (m->mode == NATIVE_OVERLAY && m->root != NATIVE_ROOT_IMAGE)
            TRY(add_mount(look, i));
    }
    return NULL;
}

static bool may_apply(const struct section *x)
{
    return x->root && x->root->modes & (LAUNCHER_APPLY | 1u << NATIVE_RW);
}

/* --- the fence --- */

static fallible go_behind(struct looking *look, bool apply)
{
    const struct launcher_job *j = look->j;
    int fds[3 + NATIVE_MOUNTS] = {j->out, j->asked, j->result};
    size_t fd_count = 3;
    int works[NATIVE_MOUNTS];
    size_t work_count = 0, look_count = 0, most = 0;

    for (size_t i = 0; i < look->count; i++)
        most += look->sections[i].src.upper_count + 1;
    int *looks = mem_new((most + 1) * sizeof *looks);
    for (size_t i = 0; i < look->count; i++) {
        const struct section *x = &look->sections[i];
        memcpy(looks + look_count, x->uppers, x->src.upper_count * sizeof *looks);
        look_count += x->src.upper_count;
        if (x->src.notes > 0)
            fds[fd_count++] = x->src.notes;
        if (apply && may_apply(x))
            works[work_count++] = x->src.lower;
        else
            looks[look_count++] = x->src.lower;
    }
    return err_wrap(worker_fence(&(struct worker_fence){.root = j->launcher->host.dir,
                                                        .work = {-1, -1, -1},
                                                        .look = -1,
                                                        .fds = fds,
                                                        .fd_count = fd_count,
                                                        .works = works,
                                                        .work_count = work_count,
                                                        .looks = looks,
                                                        .look_count = look_count}),
                    "confine who looks at changes");
}

static fallible read_asked(struct looking *look)
{
    own_done(buf) text;
    struct json *body;

    buf_init(&text, ASKED_MAX);
    arena_init(&look->arena, 64u << 20);
    TRY(fd_read_all(look->j->asked, &text));
    struct str copy = arena_copy(&look->arena, buf_str(&text));
    TRY(arena_check(&look->arena));
    TRY_WRAP(json_parse(&look->arena, copy, NULL, &body), "what is asked for");
    return wire_decode_files(body, &look->asked);
}

/* --- the list --- */

static int by_path(const void *a, const void *b)
{
    struct str x = (*(const struct change *const *)a)->path;
    struct str y = (*(const struct change *const *)b)->path;
    int order = memcmp(x.p, y.p, x.len < y.len ? x.len : y.len);

    return order ? order : (x.len > y.len) - (x.len < y.len);
}

/* At a mount point croft made a directory: that is no change of the sandbox's. */
static bool is_mount_point(const struct looking *look, struct str path)
{
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++)
        if (look->record.mounts[i].mode && str_eq(path, str_of(look->record.mounts[i].target)))
            return true;
    return false;
}

static struct str changes_absolute(struct section *x, struct str path)
{
    return arena_printf(&x->c.arena, "%s/" STR_FMT, x->where, STR_ARG(path));
}

struct listing {
    const struct change **all;
    size_t count, kinds[CHANGE_KINDS], conflicts;
};

static fallible changes_gather(struct looking *look, struct listing *ret)
{
    size_t most = 0;

    for (size_t i = 0; i < look->count; i++) {
        struct section *x = &look->sections[i];
        TRY_WRAP(changes_scan(&x->src, &x->c), "'%s'", x->where[0] ? x->where : "/");
        most += x->c.count;
    }
    ret->all = mem_try((most + 1) * sizeof *ret->all);
    if (!ret->all)
        return err_no_memory();
    for (size_t i = 0; i < look->count; i++)
        for (size_t at = 0; at < look->sections[i].c.count; at++) {
            struct section *x = &look->sections[i];
            struct change *c = &x->c.list[at];
            c->path = changes_absolute(x, c->path);
            if (c->from.len)
                c->from = changes_absolute(x, c->from);
            TRY(arena_check(&x->c.arena));
            if (!x->mount && is_mount_point(look, c->path))
                continue;
            ret->kinds[c->kind]++;
            ret->conflicts += c->conflict;
            ret->all[ret->count++] = c;
        }
    qsort(ret->all, ret->count, sizeof *ret->all, by_path);
    return NULL;
}

static void put_counts(struct jw *w, const struct listing *all)
{
    JW_OBJECT(w, "counts") {
        for (size_t i = 0; i < CHANGE_KINDS; i++)
            jw_uint(w, change_words[i], all->kinds[i]);
        jw_uint(w, "conflicts", all->conflicts);
    }
    jw_uint(w, "total", all->count);
}

static void put_mounts(struct jw *w, const struct looking *look)
{
    JW_ARRAY(w, "directories")
        for (size_t i = 0; i < look->count; i++) {
            const struct section *x = &look->sections[i];
            if (!x->mount)
                continue;
            JW_OBJECT(w, NULL) {
                jw_cstr(w, "target", x->where);
                jw_bool(w, "may_apply", may_apply(x));
                if (x->other)
                    jw_bool(w, "other_directory", true);
            }
        }
}

static fallible run_diff(struct launcher_job *j)
{
    struct looking *look = mem_new(sizeof *look);
    struct listing all = {0};
    own_done(buf) out;
    struct jw w;

    buf_init(&out, ANSWER_MAX);
    look->j = j;
    alarm(DIFF_S);
    TRY(open_all(look, true));
    TRY(go_behind(look, false));
    TRY(read_asked(look));
    TRY(changes_gather(look, &all));
    size_t at = look->asked.offset < all.count ? (size_t)look->asked.offset : all.count;
    size_t end = all.count - at > look->asked.limit ? at + (size_t)look->asked.limit : all.count;
    jw_init(&w, &out, JW_WEB);
    JW_OBJECT(&w, NULL) {
        jw_cstr(&w, "sandbox", look->record.id);
        put_mounts(&w, look);
        put_counts(&w, &all);
        JW_ARRAY(&w, "changes")
            for (; at < end && out.len < PAGE_BYTES; at++)
                changes_put_one(&w, all.all[at]);
        if (at < all.count)
            jw_uint(&w, "next", at);
        else
            jw_null(&w, "next");
    }
    TRY(buf_check(&out));
    return fd_write_all(j->result, buf_str(&out));
}

/* --- taking them over --- */

static bool is_below(struct str path, struct str dir)
{
    return str_starts(path, dir) && (path.len == dir.len || path.p[dir.len] == '/');
}

/* Which of the paths that are asked for are in this section: *ret_paths NULL is all of it. */
static bool select_paths(struct looking *look, const struct section *x,
                         const char *const **ret_paths)
{
    const struct json *asked = look->asked.paths;
    size_t n = 0;

    *ret_paths = NULL;
    if (!asked)
        return true;
    const char **list = arena_zalloc(&look->arena, (asked->count + 1) * sizeof *list);
    for (const struct json *p = asked->first; p && list; p = p->next) {
        struct str where = str_of(x->where);
        if (is_below(where, p->s))
            return true;
        if (is_below(p->s, where))
            list[n++] = arena_cstr(&look->arena, str_from(p->s, where.len + 1));
    }
    *ret_paths = list;
    return n > 0;
}

static fallible check_paths(const struct looking *look)
{
    size_t at = 0;

    for (const struct json *p = look->asked.paths ? look->asked.paths->first : NULL; p;
         p = p->next, at++) {
        bool found = false;
        for (size_t i = 0; i < look->count; i++) {
            struct str where = str_of(look->sections[i].where);
            found |= is_below(p->s, where) || is_below(where, p->s);
        }
        if (!found)
            return err_new(ERR_UNPROCESSABLE,
                           "paths[%zu]: it is below no copy-on-write mount of the sandbox", at);
    }
    return NULL;
}

struct taking {
    struct section *x;
    struct changes_apply how;
};

static fallible check_changed(const struct looking *look, const struct taking *all, size_t n)
{
    size_t at = 0;

    for (const struct json *p = look->asked.paths ? look->asked.paths->first : NULL; p;
         p = p->next, at++) {
        bool found = false;
        for (size_t i = 0; i < n; i++) {
            struct str where = str_of(all[i].x->where);
            found |= is_below(where, p->s) ||
                     (is_below(p->s, where) &&
                      changes_have(&all[i].x->c, str_from(p->s, where.len + 1)));
        }
        if (!found)
            return err_new(ERR_UNPROCESSABLE, "paths[%zu]: nothing of that name has changed", at);
    }
    return NULL;
}

static fallible changes_choose(struct looking *look, struct taking all[NATIVE_MOUNTS],
                               size_t *ret_count)
{
    size_t n = 0;

    TRY(check_paths(look));
    for (size_t i = 0; i < look->count; i++) {
        struct section *x = &look->sections[i];
        struct taking *t = &all[n];
        *t = (struct taking){.x = x, .how = {.force = look->asked.force}};
        if (!select_paths(look, x, &t->how.paths))
            continue;
        TRY(arena_check(&look->arena));
        if (!may_apply(x))
            return err_new(ERR_FORBIDDEN,
                           "'%s' may be worked on as a copy only; whoever runs the server grants "
                           "more with 'apply' in mount.NAME.modes",
                           x->where);
        if (x->other && !look->asked.force)
            return err_wrap(overlay_refuse_other(), "the directory of '%s'", x->where);
        TRY_WRAP(changes_scan(&x->src, &x->c), "'%s'", x->where);
        n++;
    }
    TRY(check_changed(look, all, n));
    for (size_t i = 0; i < n && !look->asked.force; i++) { /* before anything is done */
        size_t conflicts = changes_select(&all[i].x->c, &all[i].how);
        if (conflicts)
            return err_wrap(changes_refuse(&all[i].x->c, conflicts), "'%s'", all[i].x->where);
    }
    *ret_count = n;
    return NULL;
}

static void put_applied(struct jw *w, const struct looking *look, const struct taking *all,
                        size_t n)
{
    JW_OBJECT(w, NULL) {
        jw_cstr(w, "sandbox", look->record.id);
        JW_ARRAY(w, "directories")
            for (size_t i = 0; i < n; i++)
                JW_OBJECT(w, NULL) {
                    jw_cstr(w, "target", all[i].x->where);
                    if (all[i].x->other)
                        jw_bool(w, "other_directory", true);
                    jw_uint(w, "applied", all[i].how.applied);
                    jw_uint(w, "skipped", all[i].how.skipped);
                    if (all[i].how.mounted)
                        jw_uint(w, "mounted", all[i].how.mounted);
                    if (all[i].how.deep)
                        jw_uint(w, "deep", all[i].how.deep);
                }
    }
}

static fallible run_apply(struct launcher_job *j)
{
    struct looking *look = mem_new(sizeof *look);
    struct taking all[NATIVE_MOUNTS];
    size_t count = 0;
    own_done(buf) out;
    struct jw w;

    buf_init(&out, ANSWER_MAX);
    look->j = j;
    alarm(APPLY_S);
    TRY(open_all(look, false));
    if (!look->count)
        return err_new(
            ERR_CONFLICT,
            "it has no copy-on-write mount, so there is nothing its changes could go to: "
            "start it with a mount of mode overlay, or take files out with 'croft cp'");
    TRY(go_behind(look, true));
    TRY(read_asked(look));
    TRY(changes_choose(look, all, &count));
    for (size_t i = 0; i < count; i++)
        TRY_WRAP(changes_apply(&all[i].x->src, &all[i].x->c, &all[i].how), "'%s'", all[i].x->where);
    jw_init(&w, &out, JW_WEB);
    put_applied(&w, look, all, count);
    TRY(buf_check(&out));
    return fd_write_all(j->result, buf_str(&out));
}

/* --- in the launcher --- */

static void on_changes_ended(struct launcher_job *j, struct err *e)
{
    struct launcher_fds fds = {.count = 0};

    e = launcher_job_move_on(j, e);
    if (e && j->child.code == CLD_KILLED && j->child.status == SIGALRM) {
        err_free(e);
        e = err_new(ERR_TOO_LARGE, "there are more changes than can be gone through in %d seconds",
                    j->run == run_diff ? DIFF_S : APPLY_S);
    }
    if (!e && lseek(j->result, 0, SEEK_SET) == 0)
        fds.fds[fds.count++] = take_fd(&j->result);
    launcher_job_answer(j, e, &fds);
}

fallible launcher_changes(struct launcher *l, struct launcher_box *b,
                          const struct native_request *r, struct launcher_fds *in, bool *ret_later)
{
    own_fd dir = -1;

    TRY(launcher_check_block(in, 1, false));
    if (b->killers || b->removal)
        return err_new(ERR_BUSY, "sandbox '%s' is being ended", b->box.id);
    if (launcher_job_count(l, run_diff) + launcher_job_count(l, run_apply) >= SBX_LOOKS_AT_ONCE)
        return err_new(ERR_BUSY, "the changes of %d sandboxes are being looked at: try again",
                       SBX_LOOKS_AT_ONCE);
    dir = openat(l->host.boxes, b->box.id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (dir < 0)
        return err_sys("open the directory of '%s'", b->box.id);
    struct launcher_job *j =
        launcher_job_new(l, r->op == NATIVE_DIFF ? run_diff : run_apply, on_changes_ended);
    j->box = b;
    j->dir = take_fd(&dir);
    j->asked = take_fd(&in->fds[0]);
    j->result = memfd_create("changes", MFD_CLOEXEC);
    j->reply = (struct native_reply){.op = r->op, .tag = r->tag};
    struct err *e =
        j->result < 0 ? err_sys("make a memory file") : launcher_job_start_still(l, b, j);
    if (e) {
        launcher_job_free(j);
        return e;
    }
    b->job = j;
    *ret_later = true;
    return NULL;
}
