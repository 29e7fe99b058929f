// SPDX-License-Identifier: Apache-2.0
/* layer_cache.c — the copies of layers that overlays are made of, with the ids of one range.
 *
 * They are the launcher's own: no sandbox has them, an overlay makes private copies of its own. To
 * make one is cheap, but to close one that is mounted nowhere waits for a grace period of RCU, and
 * a sandbox takes three. So who makes many keeps them for the next one with the same range and
 * layers, and closes them with the range, or when nobody has needed them for a while: sandboxes
 * that stay have none. Of those that are more than there is room for, the oldest go. */
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/own.h"
#include "host/launcher/box_inner.h"
#include "host/launcher/mounts.h"

#define KEPT    256 /* ranges: some more than sandboxes are warm and on their way */
#define FILES   (4 * KEPT * LAYER_CACHE_COPIES) /* of fewer descriptors none are spent here */
#define NOBODY  UINT32_MAX
#define ID_SIZE 72

struct overlay_range {
    char id[ID_SIZE]; /* of the layers; those of another go */
    uint64_t used_ns;
    int fds[LAYER_CACHE_COPIES];
};

struct layer_cache {
    uint32_t slots[KEPT]; /* apart from the rest: all that is looked through */
    unsigned next;
    struct overlay_range ranges[KEPT];
};

static void let_go(struct layer_cache *k, unsigned at)
{
    for (unsigned i = 0; i < LAYER_CACHE_COPIES && k->slots[at] != NOBODY; i++)
        own_close_p(&k->ranges[at].fds[i]);
    k->slots[at] = NOBODY;
}

/* KEPT: it is not there. */
static unsigned kept_find(const struct layer_cache *k, unsigned slot)
{
    unsigned at = 0;

    while (at < KEPT && k->slots[at] != slot)
        at++;
    return at;
}

static struct overlay_range *range_for(struct layer_cache *k, unsigned slot, const char *id)
{
    unsigned at = kept_find(k, slot);

    if (at == KEPT || strcmp(k->ranges[at].id, id) != 0) {
        at = at < KEPT ? at : k->next++ % KEPT;
        let_go(k, at);
        k->slots[at] = slot;
        strcpy(k->ranges[at].id, id);
        memset(k->ranges[at].fds, -1, sizeof k->ranges[at].fds);
    }
    k->ranges[at].used_ns = clock_mono_ns(&clock_system);
    return &k->ranges[at];
}

struct layer_cache *layer_cache_new(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur < FILES)
        return NULL;
    struct layer_cache *k = mem_new(sizeof *k);
    for (unsigned i = 0; i < KEPT; i++)
        k->slots[i] = NOBODY;
    return k;
}

void layer_cache_drop(struct box_host *h, unsigned slot)
{
    unsigned at = h->layer_cache ? kept_find(h->layer_cache, slot) : KEPT;

    if (at < KEPT)
        let_go(h->layer_cache, at);
}

void layer_cache_clear(struct box_host *h)
{
    for (unsigned i = 0; h->layer_cache && i < KEPT; i++)
        let_go(h->layer_cache, i);
}

bool layer_cache_tidy(struct box_host *h, uint64_t before_ns, bool *ret_more)
{
    struct layer_cache *k = h->layer_cache;
    unsigned old = KEPT, count = 0;

    for (unsigned i = 0; k && i < KEPT; i++) {
        count += k->slots[i] != NOBODY;
        if (k->slots[i] != NOBODY && k->ranges[i].used_ns < before_ns)
            old = i;
    }
    if (old < KEPT)
        let_go(k, old);
    *ret_more = count > (old < KEPT);
    return old < KEPT;
}

/* An image that was removed and came again has its id, and other directories. */
static bool is_of(int copy, int dir)
{
    struct stat was, is;

    return fstat(copy, &was) == 0 && fstat(dir, &is) == 0 && was.st_dev == is.st_dev &&
           was.st_ino == is.st_ino;
}

fallible layer_cache_copy(struct box_host *h, unsigned slot, const char *id, unsigned n, int dir,
                          int userns, int *ret_mount)
{
    if (!h->layer_cache || n >= LAYER_CACHE_COPIES || !id || !*id || strlen(id) >= ID_SIZE)
        return mounts_clone(dir, userns, n != LAYER_CACHE_HOME, ret_mount);
    int *fd = &range_for(h->layer_cache, slot, id)->fds[n];
    if (*fd >= 0 && !is_of(*fd, dir))
        own_close(take_fd(fd));
    if (*fd < 0)
        TRY(mounts_clone(dir, userns, n != LAYER_CACHE_HOME, fd));
    *ret_mount = fcntl(*fd, F_DUPFD_CLOEXEC, 0);
    return *ret_mount < 0 ? err_sys("copy a descriptor") : NULL;
}
