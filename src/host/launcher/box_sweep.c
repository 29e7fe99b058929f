// SPDX-License-Identifier: Apache-2.0
/* box_sweep.c — removes what a killed croft could not. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "host/launcher/box.h"
#include "host/tree/tree.h"

/* Something ran in it: what it wrote into a copy of the user's files is kept, the rest goes. */
static fallible sweep_dir(const struct box_host *h, const char *id)
{
    own_fd dir = openat(h->boxes, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    bool keep = false;

    if (dir < 0)
        return errno == ENOENT ? NULL : err_sys("open '%s'", id);
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++) {
        char upper[BOX_NAME], work[BOX_NAME];
        box_upper_name(i, upper, work);
        /* An empty one goes; one that holds something cannot. */
        keep |= unlinkat(dir, upper, AT_REMOVEDIR) < 0 && errno != ENOENT;
        TRY(tree_remove(dir, work));
    }
    return keep ? NULL : tree_remove(h->boxes, id);
}

static fallible sweep_claim(struct box_host *h, const char *name)
{
    char id[NATIVE_ID_MAX + 1], group[BOX_NAME];
    uint64_t slot;
    ssize_t n = readlinkat(h->ids, name, id, sizeof id);

    if (n <= 0 || n >= NATIVE_ID_MAX || !str_to_u64(str_of(name), &slot) || slot >= IDS_SLOTS)
        return NULL; /* not a claim of ours */
    id[n] = '\0';
    box_group_name((unsigned)slot, group);
    bool alive = true;
    TRY(cg_populated(&h->cg, group, &alive));
    if (alive)
        return NULL;
    TRY(cg_remove(&h->cg, group));
    if (native_id_ok(id, sizeof id))
        TRY(sweep_dir(h, id));
    return ids_release(h->ids, (unsigned)slot);
}

static fallible sweep_all(struct box_host *h)
{
    int fd = openat(h->ids, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    struct err *e = NULL;

    if (!d) {
        own_close_p(&fd);
        return err_sys("list the claims");
    }
    for (struct dirent *at; !e && (at = readdir(d));)
        e = sweep_claim(h, at->d_name);
    closedir(d);
    return e;
}

fallible box_sweep(struct box_host *h)
{
    if (flock(h->boxes, LOCK_EX | LOCK_NB) < 0)
        return flock(h->boxes, LOCK_SH) < 0 ? err_sys("lock 'box'") : NULL; /* others are at work */
    struct err *e = sweep_all(h);
    if (flock(h->boxes, LOCK_SH) < 0 && !e)
        e = err_sys("lock 'box'");
    return e;
}
