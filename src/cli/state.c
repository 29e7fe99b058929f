// SPDX-License-Identifier: Apache-2.0
/* state.c — see state.h. */
#include "cli/state.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/config/settings.h"
#include "host/subids/subids.h"

fallible cli_state_path(struct cli *cli, struct arena *a, struct str *ret_path)
{
    struct settings s;
    struct str path = {0};
    int none = 0;
    struct err *e = settings_begin(&s, NULL, &none, NULL);

    if (!e)
        e = settings_load(&s, (struct str){0}, cli->envp);
    if (!e)
        e = settings_state_dir(&s, a, cli->envp, geteuid() == 0, &path);
    if (!e)
        path = arena_copy(a, path); /* the settings' own memory goes */
    settings_done(&s);
    if (e)
        return e;
    TRY(arena_check(a));
    if (!path.len || path.p[0] != '/')
        return err_new(ERR_INVALID, "state directory '" STR_FMT "': wanted an absolute path",
                       STR_ARG(path));
    *ret_path = path;
    return NULL;
}

static fallible open_path(struct str path, int *ret_fd)
{
    struct stat st;
    own_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;

    if (root < 0)
        return err_sys("open '/'");
    while (str_starts(path, STR("/")))
        path = str_from(path, 1);
    if (!path.len)
        return err_new(ERR_INVALID, "it is closed to others, so it cannot be '/'");
    fd = openat(root, path.p, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct err *e = fd < 0 ? fd_make_dirs(root, path, 0700, &fd) : NULL;
    if (e && (err_errno(e) == EACCES || err_errno(e) == EROFS))
        return err_wrap(e, "set XDG_STATE_HOME or CROFT_SERVER_STATE_DIR to one you may write in");
    TRY(e);
    if (fstat(fd, &st) < 0)
        return err_sys("look at it");
    if (st.st_uid != geteuid())
        return err_new(ERR_FORBIDDEN, "belongs to user %u, not to us", (unsigned)st.st_uid);
    if ((st.st_mode & 066) && fchmod(fd, 0700) < 0) /* a server may pass through */
        return err_sys("close it to others");
    *ret_fd = take_fd(&fd);
    return NULL;
}

fallible cli_open_state(struct cli *cli, int *ret_fd)
{
    own_done(arena) a;
    struct subids ids;
    struct str path;

    arena_init(&a, 1u << 20);
    TRY(cli_state_path(cli, &a, &path));
    subids_find(&ids);
    if (ids.count) /* what inner users made can be read and removed among their ids only */
        TRY(subids_enter(&ids));
    TRY_WRAP(open_path(path, ret_fd), "state directory '" STR_FMT "'", STR_ARG(path));
    return NULL;
}
