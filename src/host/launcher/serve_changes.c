// SPDX-License-Identifier: Apache-2.0
/* serve_changes.c — what a sandbox changed, listed and taken over, for a server that can see
 * neither its layers nor the directories it worked on.
 *
 * A child does it while the sandbox stands still. It opens the layers and what is below them first,
 * then goes behind a fence from where it can read these, write the directories the policy lets it,
 * and nothing else; only there does it read what a guest left and what is asked for. Its answer is
 * a memory file, passed on unread. */
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
#include "host/kept/kept.h"
#include "host/launcher/disk.h"
#include "host/launcher/mounts.h"
#include "host/launcher/record.h"
#include "host/launcher/serve_job.h"
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
    struct serve_job *j;
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

static fallible run_apply(struct serve_job *j);

/* --- opening, before the fence --- */

static fallible open_uppers(const struct looking *l, struct section *x, const char *name,
                            const int *frozen, size_t count)
{
    x->uppers[0] = openat(l->uppers, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (x->uppers[0] < 0)
        return err_sys("open layer '%s'", name);
    if (count > SNAPS_LAYERS_MAX)
        return err_new(ERR_LIMIT, "%zu layers are more than can be compared", count);
    if (count)
        memcpy(x->uppers + 1, frozen, count * sizeof *frozen);
    x->src.uppers = x->uppers;
    x->src.user = l->j->serve->host.user;
    x->src.upper_count = count + 1;
    return NULL;
}

/* Several layers are looked at as the sandbox sees them: through an overlay, attached nowhere. */
static fallible changes_merge(const struct serve *s, const struct rootfs_mount *m, int *ret)
{
    const int *lowers = m->lowers + m->frozen;
    size_t count = m->lower_count - m->frozen;

    if (count == 1) {
        *ret = lowers[0];
        return NULL;
    }
    char at[BOX_STATE + sizeof "/" BOX_LOOK];
    snprintf(at, sizeof at, "%s/" BOX_LOOK, s->host.state);
    own_fd turn = s->host.by_path ? openat(s->host.look, ".", O_RDONLY | O_CLOEXEC) : -1;
    if (s->host.by_path && (turn < 0 || flock(turn, LOCK_EX) < 0)) /* others look there too */
        return err_sys("wait for '%s'", at);
    return mounts_overlay(&(struct mounts_overlay){.lowers = lowers,
                                                   .lower_count = count,
                                                   .upper = -1,
                                                   .work = -1,
                                                   .user = s->host.user,
                                                   .redirects = m->redirects,
                                                   .at = s->host.by_path ? at : NULL},
                          ret);
}

static fallible add_root(struct looking *l, const struct rootfs_mount *m)
{
    struct section *x = &l->sections[l->count];

    snprintf(x->where, sizeof x->where, "%s%s", m->where[0] ? "/" : "", m->where);
    TRY(open_uppers(l, x, m->upper, m->lowers, m->frozen));
    x->src.since_ns = CHANGES_NEVER; /* what is below is nobody's to conflict with */
    TRY(changes_merge(l->j->serve, m, &x->src.lower));
    l->count++;
    return NULL;
}

static fallible add_mount(struct looking *l, unsigned n)
{
    const struct launcher_policy *p = l->j->serve->policy;
    const struct native_mount *m = &l->record.mounts[n];
    struct section *x = &l->sections[l->count];
    char upper[BOX_NAME], work[BOX_NAME];

    if (m->root >= p->root_count || !p->roots[m->root].modes)
        return err_new(ERR_FORBIDDEN,
                       "the directory of '%s' is no longer one that sandboxes may mount",
                       m->target);
    box_upper_name(n, upper, work);
    snprintf(x->where, sizeof x->where, "%.*s", NATIVE_PATH_MAX, m->target);
    x->mount = m;
    x->root = &p->roots[m->root];
    TRY(open_uppers(l, x, upper, l->below[n].fds, l->below[n].count));
    x->src.since_ns = l->below[n].since_ns;
    TRY_WRAP(fd_open_beneath(x->root->dir, str_of(m->path), O_PATH, 0, &x->src.lower),
             "the directory of '%s'", m->target);
    TRY_WRAP(kept_look_which(l->j->dir, n, x->src.lower, &x->other), "the directory of '%s'",
             m->target);
    record_places(&l->record, n, x->places);
    x->src.places = x->places;
    if (!x->other) /* whose notes they are not */
        x->src.notes = kept_open_notes(l->j->dir, n, l->j->run == run_apply);
    l->count++;
    return NULL;
}

static fallible open_rootfs(struct looking *l)
{
    const struct serve *s = l->j->serve;
    const struct record *r = &l->record;

    if (r->image == NATIVE_IMAGE_STORED)
        return serve_image_open(s, &l->req, &l->fs);
    if (r->image >= s->policy->image_count)
        return err_new(ERR_NOT_FOUND, "its root file system is no longer on the list");
    const char *path = s->policy->images[r->image];
    if (!path)
        return rootfs_host_open(s->host.dir, &l->fs);
    int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_sys("open image '%s'", path);
    rootfs_add_lower(rootfs_add_mount(&l->fs, "", "u", "w"), dir);
    return NULL;
}

static fallible open_all(struct looking *l, bool roots)
{
    const struct serve *s = l->j->serve;
    const struct serve_box *b = l->j->box;

    TRY(record_read(l->j->dir, &l->record));
    l->req.image = l->record.image;
    memcpy(l->req.id, l->record.id, sizeof l->req.id);
    memcpy(l->req.image_name, l->record.image_name, sizeof l->req.image_name);
    memcpy(l->req.mounts, l->record.mounts, sizeof l->req.mounts);
    l->uppers = l->j->dir;
    if (b->disk == NATIVE_DISK_LOOP)
        TRY(serve_job_disk(l->j, &l->uppers));
    rootfs_init(&l->fs);
    if (roots)
        TRY(open_rootfs(l));
    TRY(serve_add_layers(s, &l->req, &l->fs, l->below));
    for (size_t i = 0; i < l->fs.mount_count; i++)
        TRY(add_root(l, &l->fs.mounts[i]));
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++) {
        const struct native_mount *m = &l->record.mounts[i];
        if (m->mode == NATIVE_OVERLAY && m->root != NATIVE_ROOT_IMAGE)
            TRY(add_mount(l, i));
    }
    return NULL;
}

static bool may_apply(const struct section *x)
{
    return x->root && x->root->modes & (LAUNCHER_APPLY | 1u << NATIVE_RW);
}

/* --- the fence --- */

static fallible go_behind(struct looking *l, bool apply)
{
    const struct serve_job *j = l->j;
    int fds[3 + NATIVE_MOUNTS] = {j->out, j->asked, j->result};
    size_t fd_count = 3;
    int works[NATIVE_MOUNTS];
    size_t work_count = 0, look_count = 0, most = 0;

    for (size_t i = 0; i < l->count; i++)
        most += l->sections[i].src.upper_count + 1;
    int *looks = mem_new((most + 1) * sizeof *looks);
    for (size_t i = 0; i < l->count; i++) {
        const struct section *x = &l->sections[i];
        memcpy(looks + look_count, x->uppers, x->src.upper_count * sizeof *looks);
        look_count += x->src.upper_count;
        if (x->src.notes > 0)
            fds[fd_count++] = x->src.notes;
        if (apply && may_apply(x))
            works[work_count++] = x->src.lower;
        else
            looks[look_count++] = x->src.lower;
    }
    return err_wrap(worker_fence(&(struct worker_fence){.root = j->serve->host.dir,
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

static fallible read_asked(struct looking *l)
{
    own_done(buf) text;
    struct json *body;

    buf_init(&text, ASKED_MAX);
    arena_init(&l->arena, 64u << 20);
    TRY(fd_read_all(l->j->asked, &text));
    struct str copy = arena_copy(&l->arena, buf_str(&text));
    TRY(arena_check(&l->arena));
    TRY_WRAP(json_parse(&l->arena, copy, NULL, &body), "what is asked for");
    return wire_decode_files(body, &l->asked);
}

/* --- the list --- */

static int by_path(const void *a, const void *b)
{
    struct str x = (*(const struct change *const *)a)->path;
    struct str y = (*(const struct change *const *)b)->path;
    int order = memcmp(x.p, y.p, x.len < y.len ? x.len : y.len);

    return order ? order : (x.len > y.len) - (x.len < y.len);
}

/* Where something is mounted there is a directory, which croft made. */
static bool is_mount_point(const struct looking *l, struct str path)
{
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++)
        if (l->record.mounts[i].mode && str_eq(path, str_of(l->record.mounts[i].target)))
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

static fallible changes_gather(struct looking *l, struct listing *ret)
{
    size_t most = 0;

    for (size_t i = 0; i < l->count; i++) {
        struct section *x = &l->sections[i];
        TRY_WRAP(changes_scan(&x->src, &x->c), "'%s'", x->where[0] ? x->where : "/");
        most += x->c.count;
    }
    ret->all = mem_try((most + 1) * sizeof *ret->all);
    if (!ret->all)
        return err_no_memory();
    for (size_t i = 0; i < l->count; i++)
        for (size_t at = 0; at < l->sections[i].c.count; at++) {
            struct section *x = &l->sections[i];
            struct change *c = &x->c.list[at];
            c->path = changes_absolute(x, c->path);
            if (c->from.len)
                c->from = changes_absolute(x, c->from);
            TRY(arena_check(&x->c.arena));
            if (!x->mount && is_mount_point(l, c->path))
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

static void put_mounts(struct jw *w, const struct looking *l)
{
    JW_ARRAY(w, "directories")
        for (size_t i = 0; i < l->count; i++) {
            const struct section *x = &l->sections[i];
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

static fallible run_diff(struct serve_job *j)
{
    struct looking *l = mem_new(sizeof *l);
    struct listing all = {0};
    own_done(buf) out;
    struct jw w;

    buf_init(&out, ANSWER_MAX);
    l->j = j;
    alarm(DIFF_S);
    TRY(open_all(l, true));
    TRY(go_behind(l, false));
    TRY(read_asked(l));
    TRY(changes_gather(l, &all));
    size_t at = l->asked.offset < all.count ? (size_t)l->asked.offset : all.count;
    size_t end = all.count - at > l->asked.limit ? at + (size_t)l->asked.limit : all.count;
    jw_init(&w, &out, JW_WEB);
    JW_OBJECT(&w, NULL) {
        jw_cstr(&w, "sandbox", l->record.id);
        put_mounts(&w, l);
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
static bool select_paths(struct looking *l, const struct section *x, const char *const **ret_paths)
{
    const struct json *asked = l->asked.paths;
    size_t n = 0;

    *ret_paths = NULL;
    if (!asked)
        return true;
    const char **list = arena_zalloc(&l->arena, (asked->count + 1) * sizeof *list);
    for (const struct json *p = asked->first; p && list; p = p->next) {
        struct str where = str_of(x->where);
        if (is_below(where, p->s))
            return true;
        if (is_below(p->s, where))
            list[n++] = arena_cstr(&l->arena, str_from(p->s, where.len + 1));
    }
    *ret_paths = list;
    return n > 0;
}

static fallible check_paths(const struct looking *l)
{
    size_t at = 0;

    for (const struct json *p = l->asked.paths ? l->asked.paths->first : NULL; p;
         p = p->next, at++) {
        bool found = false;
        for (size_t i = 0; i < l->count; i++) {
            struct str where = str_of(l->sections[i].where);
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

static fallible check_changed(const struct looking *l, const struct taking *all, size_t n)
{
    size_t at = 0;

    for (const struct json *p = l->asked.paths ? l->asked.paths->first : NULL; p;
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

static fallible changes_choose(struct looking *l, struct taking all[NATIVE_MOUNTS],
                               size_t *ret_count)
{
    size_t n = 0;

    TRY(check_paths(l));
    for (size_t i = 0; i < l->count; i++) {
        struct section *x = &l->sections[i];
        struct taking *t = &all[n];
        *t = (struct taking){.x = x, .how = {.force = l->asked.force}};
        if (!select_paths(l, x, &t->how.paths))
            continue;
        TRY(arena_check(&l->arena));
        if (!may_apply(x))
            return err_new(ERR_FORBIDDEN,
                           "'%s' may be worked on as a copy only; whoever runs the server grants "
                           "more with 'apply' in mount.NAME.modes",
                           x->where);
        if (x->other && !l->asked.force)
            return err_wrap(kept_refuse_other(), "the directory of '%s'", x->where);
        TRY_WRAP(changes_scan(&x->src, &x->c), "'%s'", x->where);
        n++;
    }
    TRY(check_changed(l, all, n));
    for (size_t i = 0; i < n && !l->asked.force; i++) { /* before anything is done */
        size_t conflicts = changes_select(&all[i].x->c, &all[i].how);
        if (conflicts)
            return err_wrap(changes_refuse(&all[i].x->c, conflicts), "'%s'", all[i].x->where);
    }
    *ret_count = n;
    return NULL;
}

static void put_applied(struct jw *w, const struct looking *l, const struct taking *all, size_t n)
{
    JW_OBJECT(w, NULL) {
        jw_cstr(w, "sandbox", l->record.id);
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
                }
    }
}

static fallible run_apply(struct serve_job *j)
{
    struct looking *l = mem_new(sizeof *l);
    struct taking all[NATIVE_MOUNTS];
    size_t count = 0;
    own_done(buf) out;
    struct jw w;

    buf_init(&out, ANSWER_MAX);
    l->j = j;
    alarm(APPLY_S);
    TRY(open_all(l, false));
    if (!l->count)
        return err_new(
            ERR_CONFLICT,
            "it has no copy-on-write mount, so there is nothing its changes could go to: "
            "start it with a mount of mode overlay, or take files out with 'croft cp'");
    TRY(go_behind(l, true));
    TRY(read_asked(l));
    TRY(changes_choose(l, all, &count));
    for (size_t i = 0; i < count; i++)
        TRY_WRAP(changes_apply(&all[i].x->src, &all[i].x->c, &all[i].how), "'%s'", all[i].x->where);
    jw_init(&w, &out, JW_WEB);
    put_applied(&w, l, all, count);
    TRY(buf_check(&out));
    return fd_write_all(j->result, buf_str(&out));
}

/* --- in the launcher --- */

static void on_changes_ended(struct serve_job *j, struct err *e)
{
    struct serve_fds fds = {.count = 0};

    e = serve_job_move_on(j, e);
    if (e && j->child.code == CLD_KILLED && j->child.status == SIGALRM) {
        err_free(e);
        e = err_new(ERR_TOO_LARGE, "there are more changes than can be gone through in %d seconds",
                    j->run == run_diff ? DIFF_S : APPLY_S);
    }
    if (!e && lseek(j->result, 0, SEEK_SET) == 0)
        fds.fds[fds.count++] = take_fd(&j->result);
    serve_job_answer(j, e, &fds);
}

fallible serve_changes(struct serve *s, struct serve_box *b, const struct native_request *r,
                       struct serve_fds *in, bool *ret_later)
{
    own_fd dir = -1;

    b->plain = false;
    TRY(serve_check_block(in, 1, false));
    if (b->tell_when_dead || b->remove_when_dead)
        return err_new(ERR_BUSY, "sandbox '%s' is being ended", b->box.id);
    if (serve_job_count(s, run_diff) + serve_job_count(s, run_apply) >= SBX_LOOKS_AT_ONCE)
        return err_new(ERR_BUSY, "the changes of %d sandboxes are being looked at: try again",
                       SBX_LOOKS_AT_ONCE);
    dir = openat(s->host.boxes, b->box.id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (dir < 0)
        return err_sys("open the directory of '%s'", b->box.id);
    struct serve_job *j =
        serve_job_new(s, r->op == NATIVE_DIFF ? run_diff : run_apply, on_changes_ended);
    j->box = b;
    j->dir = take_fd(&dir);
    j->asked = take_fd(&in->fds[0]);
    j->result = memfd_create("changes", MFD_CLOEXEC);
    j->reply = (struct native_reply){.op = r->op, .tag = r->tag};
    struct err *e = j->result < 0 ? err_sys("make a memory file") : serve_job_start_still(s, b, j);
    if (e) {
        serve_job_free(j);
        return e;
    }
    b->job = j;
    *ret_later = true;
    return NULL;
}
