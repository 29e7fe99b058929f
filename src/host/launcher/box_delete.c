// SPDX-License-Identifier: Apache-2.0
/* box_delete.c — the directory of a sandbox goes, which holds next to nothing in most cases. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "host/launcher/box_inner.h"
#include "host/launcher/disk.h"
#include "host/launcher/identity.h"
#include "host/record/record.h"
#include "host/tree/tree.h"

/* "w", "work-usr", "m0w": only overlay itself writes there. Below an upper layer a guest chose
 * every name, and one that is a link would lead elsewhere. */
static bool is_work(const char *name)
{
    return name[0] == 'w' || (name[0] == 'm' && name[strlen(name) - 1] == 'w');
}

/* Removes what overlay leaves in its work directory, by name; the directory stays. */
static void clear_work(int dir, const char *name)
{
    static const char *const below[] = {"/work/incompat/volatile", "/work/incompat", "/work"};
    char path[320];

    snprintf(path, sizeof path, "%s/work/incompat/volatile/dirty", name);
    unlinkat(dir, path, 0);
    for (size_t i = 0; i < ARRAY_LEN(below); i++) {
        snprintf(path, sizeof path, "%s%s", name, below[i]);
        unlinkat(dir, path, AT_REMOVEDIR);
    }
}

/* False: it holds something, or something that is none of our layers. */
static bool remove_layer(int dir, const char *name)
{
    if (strcmp(name, IDENTITY_DIR) == 0) {
        identity_drop(dir, IDENTITY_DIR);
        return faccessat(dir, IDENTITY_DIR, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
    }
    if (is_work(name))
        clear_work(dir, name);
    return unlinkat(dir, name, AT_REMOVEDIR) == 0;
}

/* Most sandboxes leave empty layers and what overlay made in their work directories: gone by name,
 * without listing any of it. Gives false when more is there, which is for tree_remove; the record
 * goes when nothing else is left. */
static bool remove_skeleton(int dir)
{
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
    bool bare = true;

    if (!d) {
        own_close_p(&copy);
        return false;
    }
    for (struct dirent *at; (at = readdir(d));) {
        if (at->d_name[0] == '.')
            continue;
        bool ours = strcmp(at->d_name, RECORD) == 0 || strcmp(at->d_name, "root") == 0 ||
                    (strcmp(at->d_name, DISK_IMAGE) == 0 && unlinkat(dir, DISK_IMAGE, 0) == 0);
        bare &= at->d_type == DT_DIR ? remove_layer(dir, at->d_name) : ours;
    }
    closedir(d);
    return bare && unlinkat(dir, RECORD, 0) == 0 &&
           (unlinkat(dir, "root", 0) == 0 || errno == ENOENT);
}

fallible box_delete(int parent, const char *name)
{
    own_fd dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    if (dir >= 0 && remove_skeleton(dir) && unlinkat(parent, name, AT_REMOVEDIR) == 0)
        return NULL;
    return tree_remove(parent, name);
}

fallible box_remove_dir(const struct box_host *h, const char *id)
{
    own_fd dir = openat(h->boxes, id, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    if (dir >= 0)
        disk_forget(dir);
    return box_delete(h->boxes, id);
}
