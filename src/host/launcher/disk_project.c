// SPDX-License-Identifier: Apache-2.0
/* disk_project.c — project quotas: every file below a marked directory counts for its project.
 *
 * No process in another user namespace can change a mark. The number is random and lasts as long as
 * the sandbox's directory: frozen layers keep counting for it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"
#include "base/rng.h"
#include "base/str.h"
#include "host/launcher/disk_inner.h"

#define BLOCK 1024u /* what the kernel counts limits in */
#define TRIES 16

static int project_quota(int fd, int what, uint32_t project, void *arg)
{
    return (int)syscall(SYS_quotactl_fd, fd, QCMD((unsigned)what, PRJQUOTA), project, arg);
}

/* ext4 made for quotas counts even when it was mounted without prjquota; then it refuses nothing.
 */
bool disk_has_projects(int state)
{
    struct fs_quota_statv now = {.qs_version = FS_QSTATV_VERSION1};

    return project_quota(state, Q_XGETQSTATV, 0, &now) == 0 && now.qs_flags & FS_QUOTA_PDQ_ENFD;
}

static bool read_note(int box, uint32_t *ret_project)
{
    char text[16];
    uint64_t number;
    ssize_t n = readlinkat(box, DISK_NOTE, text, sizeof text);

    if (n <= 0 || !str_to_u64(str_n(text, (size_t)n), &number) || number > UINT32_MAX)
        return false;
    *ret_project = (uint32_t)number;
    return true;
}

/* One nothing belongs to. */
static fallible new_project(const struct box_host *h, int box, uint32_t *ret_project)
{
    char text[16];

    for (unsigned i = 0; i < TRIES; i++) {
        struct if_dqblk now = {0};
        uint32_t project = 0x40000000u | (uint32_t)rng_below(h->rng, 0x3fffffffu);
        if (project_quota(box, Q_GETQUOTA, project, &now) < 0 && errno != ESRCH && errno != ENOENT)
            return err_sys("look at a project's quota");
        if (now.dqb_curspace || now.dqb_curinodes || now.dqb_bhardlimit)
            continue;
        snprintf(text, sizeof text, "%" PRIu32, project);
        if (symlinkat(text, box, DISK_NOTE) < 0)
            return err_sys("note its project");
        *ret_project = project;
        return NULL;
    }
    return err_new(ERR_LIMIT, "no project is free for its disk limit");
}

static fallible set_limit(int fd, uint32_t project, uint64_t bytes)
{
    struct if_dqblk limit = {.dqb_bhardlimit = (bytes + BLOCK - 1) / BLOCK,
                             .dqb_valid = QIF_BLIMITS};

    return project_quota(fd, Q_SETQUOTA, project, &limit) < 0 ? err_sys("set its disk limit")
                                                              : NULL;
}

fallible disk_project_make(const struct box_host *h, int box, uint64_t bytes)
{
    uint32_t project;

    if (read_note(box, &project))
        return bytes ? set_limit(box, project, bytes) : NULL;
    TRY(new_project(h, box, &project));
    return set_limit(box, project, bytes);
}

fallible disk_count(enum native_disk disk, int box, int layer)
{
    struct fsxattr attr;
    uint32_t project;

    if (disk != NATIVE_DISK_PROJECT)
        return NULL;
    if (!read_note(box, &project))
        return err_new(ERR_INTERNAL, "its project is not noted");
    own_fd fd = openat(layer, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || ioctl(fd, FS_IOC_FSGETXATTR, &attr) < 0)
        return err_sys("look at a layer's project");
    attr.fsx_projid = project;
    attr.fsx_xflags |= FS_XFLAG_PROJINHERIT;
    return ioctl(fd, FS_IOC_FSSETXATTR, &attr) < 0 ? err_sys("mark a layer's project") : NULL;
}

void disk_forget(int box)
{
    uint32_t project;

    if (read_note(box, &project))
        err_free(set_limit(box, project, 0)); /* a limit of nothing does no harm */
}
