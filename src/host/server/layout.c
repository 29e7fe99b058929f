// SPDX-License-Identifier: Apache-2.0
/* layout.c — see layout.h. */
#include "host/server/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"

#define WALK_FAILED 125
#define SOCKET_ROOM                                                                                \
    32 /* "/sock/", an id and ".s": paths of sockets are short, by the kernel's rule */

static bool has_acl(const char *path)
{
    return getxattr(path, "system.posix_acl_access", NULL, 0) > 0;
}

/* path is the number-th directory on the way to the state directory; false: there are fewer. */
static bool way_at(const struct layout *l, int number, char *path, size_t size)
{
    const char *at = l->state;

    for (int i = 0; i < number && at; i++)
        at = strchr(at + 1, '/');
    if (!at)
        return false;
    snprintf(path, size, "%.*s", (int)(at - l->state), l->state);
    return true;
}

/* A child becomes the server's user and tries each directory, because access lists count too. Its
 * exit code is the number of the first closed one, 0: none. */
static _Noreturn void layout_walk(const struct layout *l)
{
    char path[sizeof l->state];
    int number = 1;

    if (setgroups(0, NULL) < 0 || setresgid(l->user.gid, l->user.gid, l->user.gid) < 0 ||
        setresuid(l->user.uid, l->user.uid, l->user.uid) < 0)
        _exit(WALK_FAILED);
    for (; way_at(l, number, path, sizeof path); number++)
        if (access(path, X_OK) < 0 && errno == EACCES)
            _exit(number < WALK_FAILED ? number : WALK_FAILED);
    _exit(0);
}

/* Can the server's user pass through the directories above? An error of SQLite would not say which
 * one is closed. */
static fallible check_way(const struct layout *l)
{
    char path[sizeof l->state];
    struct stat st;
    int status;

    if (!l->separate)
        return NULL;
    pid_t pid = fork();
    if (pid == 0)
        layout_walk(l);
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return err_sys("try the way to it");
    int number = WIFEXITED(status) ? WEXITSTATUS(status) : WALK_FAILED;
    if (!number)
        return NULL;
    if (number == WALK_FAILED || !way_at(l, number, path, sizeof path) || stat(path, &st) < 0)
        return err_new(ERR_INTERNAL, "the way to it cannot be tried as user %u", l->user.uid);
    return err_new(
        ERR_FORBIDDEN,
        "'%s' is closed (mode %04o%s) to user %u, as whom the server runs: 'chmod o+x "
        "%s'%s, or name another directory (CROFT_SERVER_STATE_DIR, --state of 'croft serve')",
        path, st.st_mode & 07777, has_acl(path) ? " and an access list" : "", l->user.uid, path,
        has_acl(path) ? ", 'getfacl' shows who else may" : "");
}

static fallible open_state(struct layout *l, int *ret_dir)
{
    own_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), dir = -1;
    struct stat st;

    if (root < 0)
        return err_sys("open '/'");
    dir = open(l->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        TRY(fd_make_dirs(root, str_of(l->state + 1), l->separate ? 0711 : 0700, &dir));
    if (fstat(dir, &st) < 0)
        return err_sys("look at it");
    if (st.st_uid != geteuid())
        return err_new(ERR_FORBIDDEN, "belongs to user %u, not to us", st.st_uid);
    if (fchmod(dir, l->separate ? 0711 : 0700) < 0)
        return err_sys("set its mode");
    *ret_dir = take_fd(&dir);
    return NULL;
}

/* The server's user made what lies in it: root follows no link there. */
static fallible open_own(const struct layout *l, int state, int *ret_dir)
{
    if (mkdirat(state, "server", 0700) < 0 && errno != EEXIST)
        return err_sys("make 'server'");
    own_fd dir = openat(state, "server", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || fchmod(dir, 0700) < 0)
        return err_sys("open 'server'");
    if (l->separate && fchown(dir, l->user.uid, l->user.gid) < 0)
        return err_sys("give 'server' to user %u", l->user.uid);
    *ret_dir = take_fd(&dir);
    return NULL;
}

static fallible open_builds(struct layout *l, int own)
{
    if (mkdirat(own, "build", 0700) < 0 && errno != EEXIST)
        return err_sys("make 'build'");
    own_fd dir = openat(own, "build", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || (l->separate && fchown(dir, l->user.uid, l->user.gid) < 0))
        return err_sys("open 'build'");
    l->builds_dir = openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return l->builds_dir < 0 ? err_sys("open 'build'") : NULL;
}

/* A lock of this process: the launcher does not inherit it, and it ends with the server. */
static fallible layout_lock(int state, int *ret_lock)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    own_fd fd = openat(state, "server.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return err_sys("open 'server.lock'");
    if (fcntl(fd, F_SETLK, &lock) < 0) {
        if (errno != EAGAIN && errno != EACCES)
            return err_sys("lock 'server.lock'");
        return err_new(ERR_BUSY, "another 'croft serve' uses it; stop that one, or name another "
                                 "(CROFT_SERVER_STATE_DIR, --state of 'croft serve')");
    }
    *ret_lock = take_fd(&fd);
    return NULL;
}

static fallible open_all(struct layout *l)
{
    own_fd state = -1, own = -1;

    TRY(open_state(l, &state));
    if (l->separate)
        TRY(launcher_find_user(launcher_user_before(state), &l->user));
    TRY(check_way(l));
    TRY(open_own(l, state, &own));
    TRY(open_builds(l, own));
    return layout_lock(state, &l->lock);
}

fallible layout_open(struct layout *l, const char *state)
{
    struct sockaddr_un un;

    *l = (struct layout){.lock = -1, .builds_dir = -1, .separate = geteuid() == 0};
    if (state[0] != '/')
        return err_new(ERR_INVALID, "state directory '%s': wanted an absolute path", state);
    if (strlen(state) + SOCKET_ROOM >= sizeof un.sun_path)
        return err_new(ERR_INVALID, "state directory '%s': %zu characters at most", state,
                       sizeof un.sun_path - SOCKET_ROOM - 1);
    snprintf(l->state, sizeof l->state, "%s", state);
    snprintf(l->own, sizeof l->own, "%s/server", state);
    snprintf(l->sockets, sizeof l->sockets, "%s/sock", state);
    snprintf(l->rows, sizeof l->rows, "%s/croft.db", l->own);
    snprintf(l->builds, sizeof l->builds, "%s/build", l->own);
    snprintf(l->outputs, sizeof l->outputs, "%s/out", l->own);
    snprintf(l->api, sizeof l->api, "%s/api.sock", l->own);
    return err_wrap(open_all(l), "state directory '%s'", state);
}

void layout_close(struct layout *l)
{
    own_close_p(&l->lock);
    own_close_p(&l->builds_dir);
    l->builds_dir = -1;
    l->lock = -1;
}
