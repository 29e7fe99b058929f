// SPDX-License-Identifier: Apache-2.0
/* strip.c — takes set-id files out of directories that a sandbox had writable (setid.h), by a child
 * for each directory, which can reach that one and nothing else. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/own.h"
#include "host/record/record.h"
#include "host/launcher/job.h"
#include "host/launcher/setid.h"
#include "host/worker/worker.h"

static fallible strip_box(struct launcher_job *j)
{
    struct stat st;

    if (fstat(j->dir, &st) < 0)
        return err_sys("look at a mounted directory");
    if (S_ISDIR(st.st_mode))
        TRY(worker_fence(&(struct worker_fence){
            .root = j->dir, .work = {j->dir, -1, -1}, .look = -1, .fds = &j->out, .fd_count = 1}));
    return setid_strip(j->dir, j->since_wall_ns);
}

static void on_stripped(struct launcher_job *j, struct err *e)
{
    if (e)
        log_warn("set-id files may be left in a mounted directory", KV("id", j->id), KV_ERR(e));
    err_free(e);
}

static fallible strip_start(struct launcher *l, const struct record *r,
                            const struct native_mount *m)
{
    own_fd source = -1;

    if (m->root >= l->policy->root_count)
        return err_new(ERR_NOT_FOUND, "its directory is no longer on the list");
    TRY(fd_open_beneath(l->policy->roots[m->root].dir, str_of(m->path), O_PATH, 0, &source));
    struct launcher_job *j = launcher_job_new(l, strip_box, on_stripped);
    j->dir = take_fd(&source);
    j->since_wall_ns = r->made_wall_ns;
    memcpy(j->id, r->id, sizeof j->id);
    struct err *e = launcher_job_start(j);
    if (e)
        launcher_job_free(j);
    return e;
}

void launcher_strip(struct launcher *l, const char *id)
{
    own_fd dir = openat(l->host.boxes, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    struct record r = {.flags = 0};
    struct err *e = l->host.user ? NULL : record_read(dir, &r);

    for (unsigned i = 0; i < NATIVE_MOUNTS && !e && !l->host.user; i++)
        if (r.mounts[i].mode == NATIVE_RW)
            e = strip_start(l, &r, &r.mounts[i]);
    if (e)
        log_warn("set-id files may be left in a mounted directory", KV("id", id), KV_ERR(e));
    err_free(e);
}
