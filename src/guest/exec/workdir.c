// SPDX-License-Identifier: Apache-2.0
/* workdir.c — the working directory: there, and its user's with all that is in it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "guest/exec/start.h"
#include "guest/exec/tree.h"
#include "guest/keep/keep.h"

/* As mkdir -p: what fails on the way shows when the last one is opened. */
static void make_dirs(const char *path)
{
    char part[PATH_MAX];
    mode_t mask = umask(002); /* its group may write, whatever ours was */

    for (size_t i = 1; i <= strlen(path) && i < sizeof part; i++) {
        if (path[i] != '/' && path[i])
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        mkdir(part, 0777);
    }
    umask(mask);
}

/* Not being able to is no reason not to serve: it may be a mount of its own. */
static void give(struct start *s, int dir, const struct stat *st)
{
    struct tree_count count = {0};

    if ((st->st_uid != s->account.uid || st->st_gid != s->group) &&
        fchown(dir, s->account.uid, s->group) < 0)
        count = (struct tree_count){.failed = 1, .first_errno = errno};
    else
        tree_give(dir, s->account.uid, s->group, &count);
    if (count.failed)
        log_warn("not all of the working directory could be given to its user", KV("dir", s->dir),
                 KV("user", s->account.name), KV("failed", count.failed),
                 KV("first", strerror(count.first_errno)));
    /* after the change of owner, which may clear bits */
    if ((st->st_mode & 060) != 060 && fchmod(dir, (st->st_mode | 060) & 07777) < 0)
        log_warn("the group of the working directory may not write", KV("dir", s->dir));
}

fallible start_workdir(struct start *s, const struct exec_config *c)
{
    own_fd dir = -1;
    struct stat st;

    s->dir = arena_cstr(&s->arena, c->working_dir);
    TRY(arena_check(&s->arena));
    if (s->dir[0] != '/' || strlen(s->dir) != c->working_dir.len)
        return err_new(ERR_INVALID, "--working-dir '%.200s' must be an absolute path", s->dir);
    if (access(s->dir, F_OK) < 0)
        make_dirs(s->dir);
    dir = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || fstat(dir, &st) < 0)
        return err_sys("--working-dir '%.200s'", s->dir);
    /* once in the life of a sandbox: what root made there since is root's */
    bool to_give = s->give && !(c->keep && !list_empty(&c->keep->things));
    if (to_give && s->dir[strspn(s->dir, "/")])
        give(s, dir, &st);
    else if (to_give)
        log_warn("the working directory is the root of all: it stays whose it is");
    if (s->other) {
        own_done(buf) kept;
        buf_init(&kept, PATH_MAX);
        TRY_WRAP(start_enterable(s, s->dir, &kept), "--working-dir");
        if (!kept.len)
            return err_new(ERR_INVALID, "--working-dir '%.200s': user %u may not enter it", s->dir,
                           s->user.uid);
    }
    s->foreign_dir = fstat(dir, &st) == 0 && st.st_uid != (s->other ? s->user.uid : geteuid());
    return NULL;
}
