// SPDX-License-Identifier: Apache-2.0
/* workdir.c — the working directory: there, and its user's with all that is in it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "guest/account/tree.h"
#include "guest/exec/start.h"
#include "guest/held/held.h"

/* As mkdir -p: what fails on the way shows when the last one is opened. */
static void make_dirs(char *path)
{
    mode_t mask = umask(002); /* its group may write, whatever ours was */

    for (char *end = path; *end;) {
        end += 1 + strcspn(end + 1, "/");
        char slash = *end;
        *end = '\0';
        mkdir(path, 0777);
        *end = slash;
    }
    umask(mask);
}

/* Not being able to is no reason not to serve: it may be a mount of its own. */
static void workdir_give(struct start *s, int dir, bool ours, const struct stat *st)
{
    struct tree_count count = {0};

    if ((st->st_uid == s->account.uid && st->st_gid == s->group) ||
        fchown(dir, s->account.uid, s->group) == 0)
        tree_give(dir, s->account.uid, s->group, ours, &count);
    else
        count = (struct tree_count){.failed = 1, .first_errno = errno};
    /* its group may write; after the change of owner, which may clear bits */
    if ((st->st_mode & 060) != 060 && fchmod(dir, (st->st_mode | 060) & 07777) < 0)
        count = (struct tree_count){.failed = count.failed + 1, .first_errno = errno};
    if (count.failed)
        log_warn("not all of the working directory became its user's", KV("dir", s->dir),
                 KV("user", s->account.name), KV("failed", count.failed),
                 KV("first", strerror(count.first_errno)));
}

fallible start_workdir(struct start *s, const struct exec_config *c)
{
    own_fd dir = -1;
    struct stat st;

    s->dir = arena_cstr(&s->arena, c->working_dir);
    TRY(arena_check(&s->arena));
    if (s->dir[0] != '/' || strlen(s->dir) != c->working_dir.len)
        return err_new(ERR_INVALID, "--working-dir '%.200s' must be an absolute path", s->dir);
    bool made = access(s->dir, F_OK) < 0;
    if (made)
        make_dirs((char *)s->dir);
    dir = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || fstat(dir, &st) < 0)
        return err_sys("--working-dir '%.200s'", s->dir);
    /* once in the life of a sandbox: what root made there since is root's */
    bool to_give = s->give && !(c->held && c->held->again);
    bool ours = c->held != NULL; /* elsewhere mounts may be meant to be given */
    if (to_give && s->dir[strspn(s->dir, "/")] && (made || !ours || tree_is_ours(dir)))
        workdir_give(s, dir, ours, &st);
    else if (to_give) /* the root of all, or the host's */
        log_warn("the working directory stays whose it is", KV("dir", s->dir));
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
