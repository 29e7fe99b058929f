// SPDX-License-Identifier: Apache-2.0
/* box_mounts.c — the layers and mounts of a sandbox, built outside it and attached nowhere yet. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "host/overlay/overlay.h"
#include "host/launcher/box_inner.h"
#include "host/launcher/disk.h"
#include "host/launcher/identity.h"
#include "host/launcher/mounts.h"
#include "host/launcher/reuse/reuse.h"
#include "host/tree/tree.h"

#define LENT "lent" /* beside upper layers, while overlays are made of them */

void box_upper_name(unsigned mount, char out_upper[BOX_NAME], char out_work[BOX_NAME])
{
    snprintf(out_upper, BOX_NAME, "m%uu", mount);
    snprintf(out_work, BOX_NAME, "m%uw", mount);
}

void box_cargo_done(struct box_cargo *c)
{
    for (size_t i = c->lent; i < c->count; i++)
        own_close_p(&c->fds[i]);
}

struct build {
    struct box_host *h;
    const struct box_spec *spec;
    int dir;     /* box/<ID> */
    int shifted; /* what upper layers are in, through an idmapped mount */
    int userns;
    const char *machine_id;
    bool reuses;                   /* copies of layers, which are: */
    struct reuse_part copies;      /* see reuse/layers.c */
    char at[BOX_STATE + BOX_NAME]; /* where layers are lent, in shifted; "": no need to */
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

static fallible copy_layer(struct build *b, const struct box_root *r, size_t layer, int *ret_mount)
{
    size_t root = 0;

    while (root < b->spec->root_count && b->spec->roots + root != r)
        root++;
    if (!b->reuses || root >= b->spec->root_count || root >= REUSE_ROOTS || r->frozen ||
        layer >= REUSE_LAYERS_EACH)
        return mounts_clone(r->lowers[layer], b->userns, true, ret_mount);
    return reuse_copy_layer(&b->copies, (unsigned)(root * REUSE_LAYERS_EACH + layer),
                            r->lowers[layer], b->userns, ret_mount);
}

/* Layers are idmapped copies; without a range of ids to shift into, the directories themselves.
 * names is reached through such a copy already. at: where they are lent, NULL: nowhere. */
static fallible clone_lowers(struct build *b, const struct box_root *r, int names, const char *at,
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
            TRY(copy_layer(b, r, i, &mount));
        if (mount < 0)
            return err_sys("copy a descriptor");
        lowers->fds[lowers->count++] = mount;
        if (at && !b->h->user)
            TRY(mounts_lend(mount, at));
    }
    return NULL;
}

static fallible mounts_stack(struct build *b, const struct box_root *r, bool throw_away, int names,
                             int *ret_mount)
{
    struct stack lowers = {.count = 0};
    own_fd upper = -1, work = -1;
    struct err *e = open_pair(b, r->upper, r->work, &upper, &work);
    const char *at = b->at[0] ? b->at : NULL;

    if (!e)
        e = clone_lowers(b, r, names, at, &lowers);
    if (!e)
        e = mounts_overlay(&(struct mounts_overlay){.lowers = lowers.fds,
                                                    .lower_count = lowers.count,
                                                    .upper = upper,
                                                    .work = work,
                                                    .throw_away = throw_away,
                                                    .user = b->h->user,
                                                    .redirects = r->redirects,
                                                    .at = at},
                           ret_mount);
    while (lowers.count && (e || !(b->spec->flags & BOX_LEAVE_LAYERS)))
        own_close(lowers.fds[--lowers.count]);
    return e;
}

static fallible build_mount(struct build *b, unsigned n, int *ret_mount)
{
    const struct native_mount *m = &b->spec->req->mounts[n];
    int source = b->spec->sources[n];
    char upper[BOX_NAME], work[BOX_NAME];

    if (m->mode != NATIVE_OVERLAY)
        return mounts_clone(source, b->userns, m->mode == NATIVE_RO, ret_mount);
    box_upper_name(n, upper, work);
    if (m->root != NATIVE_ROOT_IMAGE)
        TRY(overlay_note_which(b->dir, n, source, b->h->user));
    int lowers[BOX_LOWERS];
    size_t above = b->spec->layer_count[n];
    if (above >= BOX_LOWERS)
        return err_new(ERR_LIMIT, "%zu layers, at most %d", above + 1, BOX_LOWERS);
    if (above)
        memcpy(lowers, b->spec->layers[n], above * sizeof *lowers);
    lowers[above] = source;
    struct box_root r = {.upper = upper, .work = work, .lowers = lowers, .lower_count = above + 1};
    return mounts_stack(b, &r, false, -1, ret_mount);
}

/* A directory that croft's own state lies in takes no layer from there: it keeps its names. */
static fallible build_root(struct build *b, const struct box_root *r, int *ret_mount)
{
    bool named = !r->where[0] && identity_fits(r->lowers + r->frozen, r->lower_count - r->frozen);
    own_fd names = -1;

    if (named)
        TRY(identity_make(b->h->names >= 0 ? b->h->names : b->shifted,
                          b->h->names >= 0 ? b->spec->req->id : IDENTITY_DIR,
                          b->spec->req->hostname, b->machine_id, &names));
    struct err *e = mounts_stack(b, r, true, names, ret_mount);
    if (!e || names < 0 || err_errno(e) != ELOOP)
        return e;
    err_free(e);
    TRY(tree_remove(b->shifted, r->work)); /* the first try's, which overlay would refuse */
    return mounts_stack(b, r, true, -1, ret_mount);
}

static fallible build_all(struct build *b, struct box_cargo *c)
{
    const struct box_spec *s = b->spec;
    int mount = -1;

    for (size_t i = 0; i < s->root_count; i++) {
        TRY_WRAP(build_root(b, &s->roots[i], &mount), "root file system '/%s'", s->roots[i].where);
        c->fds[c->count++] = mount;
    }
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++) {
        if (!s->req->mounts[i].mode)
            continue;
        TRY_WRAP(build_mount(b, i, &mount), "mount '%s'", s->req->mounts[i].target);
        c->fds[c->count++] = mount;
    }
    return NULL;
}

/* Lent mounts are attached inside the mount of the upper layers, so one call takes all back. */
static fallible lend_home(struct build *b)
{
    char at[sizeof b->at];
    int n = snprintf(at, sizeof at, "%.*s/" BOX_PLACE, BOX_STATE - 1, b->h->state);

    if (mkdirat(b->shifted, LENT, 0700) < 0 && errno != EEXIST)
        return err_sys("make a place for layers");
    TRY(mounts_lend(b->shifted, at));
    snprintf(at + n, sizeof at - (size_t)n, "/" LENT);
    strcpy(b->at, at);
    return NULL;
}

static void take_home_back(struct build *b)
{
    *strrchr(b->at, '/') = '\0';
    mounts_take_back(b->at);
    unlinkat(b->shifted, LENT, AT_REMOVEDIR); /* if it stays it is empty and does no harm */
}

/* box/<ID> with the sandbox's ids. */
static fallible open_home(struct build *b, int *ret_home)
{
    own_fd all = -1;

    if (!b->reuses)
        return mounts_clone(b->dir, b->userns, false, ret_home);
    TRY(reuse_copy_layer(&b->copies, REUSE_HOME, b->h->boxes, b->userns, &all));
    *ret_home = openat(all, b->spec->req->id, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *ret_home < 0 ? err_sys("open its directory") : NULL;
}

/* Copies of layers that are attached, left open or an ordinary user's are not used again. */
static bool may_reuse(const struct box_host *h, const struct box_spec *spec)
{
    return h->reuse && !h->by_path && spec->root_count && !(spec->flags & BOX_LEAVE_LAYERS) &&
           spec->root_id && *spec->root_id;
}

static fallible build_as_owner(struct build *b, const struct box *box, struct box_cargo *c)
{
    struct ids_range ids = box_ids(b->h, box->slot);

    TRY(ids_enter(&ids));
    struct err *err = b->h->by_path ? lend_home(b) : NULL;
    if (!err)
        err = build_all(b, c);
    if (b->at[0])
        take_home_back(b);
    struct err *back = ids_leave();
    if (!err)
        return back;
    err_free(back);
    return err;
}

static fallible build_in_home(struct build *b, struct box *box, struct box_cargo *c)
{
    const struct box_spec *spec = b->spec;

    TRY(open_home(b, &box->home));
    TRY(disk_open(b->h, spec->disk, b->dir, spec->req->limits.disk_bytes, b->userns, &box->disk));
    b->shifted = box->disk >= 0 ? box->disk : box->home;
    return build_as_owner(b, box, c);
}

fallible box_build(struct box_host *h, const struct box_spec *spec, struct box *box, int userns,
                   int dir, const char *machine_id, struct box_cargo *c)
{
    struct build b = {.h = h,
                      .spec = spec,
                      .dir = dir,
                      .userns = h->user ? -1 : userns,
                      .machine_id = machine_id,
                      .reuses = may_reuse(h, spec)};

    if (b.reuses)
        reuse_take_layers(h, box->slot, spec->root_id, &b.copies);
    struct err *e = build_in_home(&b, box, c);
    if (b.reuses)
        reuse_put(h->reuse, REUSE_LAYERS, &b.copies);
    return e;
}
