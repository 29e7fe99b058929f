// SPDX-License-Identifier: Apache-2.0
/* image.c — images of the store, also those that came after the fork.
 *
 * The server cannot see the store. It asks for a name and gets the record, starts by id, and hands
 * in archives. A child unpacks these by workers, as 'croft image import' does.
 *
 * An image with a record is whole, so only the id is checked. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/own.h"
#include "host/images/images.h"
#include "host/overlay/overlay.h"
#include "host/launcher/job.h"

#define RECORDS_BYTES (64u << 20) /* of all images, when one is looked for by its name */
#define IMPORTS       2           /* at a time */

fallible launcher_image_find(struct launcher *l, const struct native_request *r,
                             struct launcher_fds *out)
{
    own_done(arena) a;
    struct image image;
    int fd;

    arena_init(&a, RECORDS_BYTES);
    if (!l->policy->stored_images)
        return err_new(ERR_FORBIDDEN, "the store of images is not open to servers");
    TRY(images_find_sure(l->host.dir, r->image_name, &a, &image));
    TRY(images_open_record(l->host.dir, &image, &fd));
    out->fds[out->count++] = fd;
    return NULL;
}

/* --- by name --- */

/* A record comes and goes by rename and unlink, which the directory's time tells. */
static fallible forget_old(struct launcher *l)
{
    struct stat st;

    if (fstatat(l->host.dir, "images", &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? NULL : err_sys("look at the store of images");
    if (st.st_mtim.tv_sec == l->image_names.changed.tv_sec &&
        st.st_mtim.tv_nsec == l->image_names.changed.tv_nsec)
        return NULL;
    memset(l->image_names.at, 0, sizeof l->image_names.at);
    l->image_names.changed = st.st_mtim;
    return NULL;
}

static fallible look_up(struct launcher *l, const char *name, struct image_name **ret_entry)
{
    struct image_names *names = &l->image_names;
    own_done(arena) a;
    struct image image;

    arena_init(&a, RECORDS_BYTES);
    for (unsigned i = 0; i < ARRAY_LEN(names->at); i++)
        if (strcmp(names->at[i].name, name) == 0) {
            *ret_entry = &names->at[i];
            return NULL;
        }
    TRY(images_find_sure(l->host.dir, name, &a, &image));
    struct image_name *entry = &names->at[names->next++ % ARRAY_LEN(names->at)];
    snprintf(entry->name, sizeof entry->name, "%s", name);
    snprintf(entry->id, sizeof entry->id, STR_FMT, STR_ARG(image.id));
    *ret_entry = entry;
    return NULL;
}

fallible launcher_image_resolve(struct launcher *l, struct native_request *r, bool again)
{
    char path[NATIVE_ID_MAX + 8], id[72];
    struct image_name *entry;

    snprintf(path, sizeof path, "%s/image", r->id);
    ssize_t n = again ? readlinkat(l->host.boxes, path, id, sizeof id) : -1;
    if (n == IMAGE_ID_LEN) {
        snprintf(r->image_name, sizeof r->image_name, "%.*s", IMAGE_ID_LEN, id);
        return NULL;
    }
    if (again)
        return err_new(ERR_CONFLICT, "sandbox '%s' did not run on an image of the store", r->id);
    TRY(forget_old(l));
    TRY(look_up(l, r->image_name, &entry));
    memset(r->image_name, 0, sizeof r->image_name);
    memcpy(r->image_name, entry->id, IMAGE_ID_LEN);
    return NULL;
}

fallible launcher_image_open(const struct launcher *l, const struct native_request *r,
                             struct rootfs *ret)
{
    own_done(arena) a;
    struct image image;

    arena_init(&a, RECORDS_BYTES);
    TRY(images_get(l->host.dir, str_of(r->image_name), &a, &image));
    return images_open(l->host.dir, &image, ret);
}

fallible launcher_image_note(const struct launcher *l, const struct native_request *r)
{
    own_fd dir = openat(l->host.boxes, r->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    if (dir < 0)
        return err_sys("open the directory of '%s'", r->id);
    return overlay_note_image(dir, str_of(r->image_name));
}

/* --- as mounts --- */

static fallible open_mount(const struct launcher *l, const char *name, int *source,
                           struct snaps_stack *below)
{
    own_done(arena) a;
    struct image image;
    struct rootfs r;

    arena_init(&a, RECORDS_BYTES);
    rootfs_init(&r);
    TRY(images_find_sure(l->host.dir, name, &a, &image));
    if (image.layer_count > SNAPS_LAYERS_MAX + 1)
        return err_new(ERR_LIMIT, "image '%.80s' has %zu layers, and %d can be mounted", name,
                       image.layer_count, SNAPS_LAYERS_MAX + 1);
    struct err *e = images_open(l->host.dir, &image, &r);
    if (!e) {
        struct rootfs_mount *m = &r.mounts[0];
        *source = take_fd(&m->lowers[m->lower_count - 1]);
        for (size_t i = 0; i + 1 < m->lower_count; i++)
            below->fds[below->count++] = take_fd(&m->lowers[i]);
    }
    rootfs_done(&r);
    return e;
}

fallible launcher_image_mounts(const struct launcher *l, const struct native_request *r,
                               bool before, int sources[NATIVE_MOUNTS],
                               struct snaps_stack below[NATIVE_MOUNTS])
{
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++) {
        const struct native_mount *m = &r->mounts[i];
        if (!m->mode || m->root != NATIVE_ROOT_IMAGE)
            continue;
        if (before)
            return err_new(ERR_UNSUPPORTED, "mount '%s': images are mounted in new sandboxes only",
                           m->target);
        TRY_WRAP(open_mount(l, m->path, &sources[i], &below[i]), "mount '%s'", m->target);
    }
    return NULL;
}

/* --- importing --- */

static fallible run_import(struct launcher_job *j)
{
    own_done(arena) a;
    struct image_import how = {.name = j->name, .limit_bytes = j->launcher->policy->import_bytes};
    struct image image;

    arena_init(&a, RECORDS_BYTES);
    TRY_WRAP(images_import(j->launcher->host.dir, j->dir, &how, &a, &image), "import '%s'",
             j->name);
    snprintf(j->reply.text, sizeof j->reply.text, STR_FMT, STR_ARG(image.id));
    return NULL;
}

static void on_imported(struct launcher_job *j, struct err *e)
{
    struct launcher_fds none = {.count = 0};

    launcher_job_answer(j, e, &none);
}

fallible launcher_image_import(struct launcher *l, const struct native_request *r,
                               struct launcher_fds *in, bool *ret_later)
{
    struct stat st;

    if (!l->policy->import_images)
        return err_new(ERR_FORBIDDEN, "servers may not add images");
    if (in->count != 1 || fstat(in->fds[0], &st) < 0 || !S_ISREG(st.st_mode))
        return err_new(ERR_INVALID, "the archive must be one regular file");
    if (launcher_job_count(l, run_import) >= IMPORTS)
        return err_new(ERR_BUSY, "%d images are being imported: try again", IMPORTS);
    struct launcher_job *j = launcher_job_new(l, run_import, on_imported);
    j->reply = (struct native_reply){.op = r->op, .tag = r->tag};
    j->dir = take_fd(&in->fds[0]);
    snprintf(j->name, sizeof j->name, "%s", r->image_name);
    struct err *e = launcher_job_start(j);
    if (e)
        launcher_job_free(j);
    *ret_later = !e;
    return e;
}
