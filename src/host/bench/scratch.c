// SPDX-License-Identifier: Apache-2.0
/* scratch.c — see scratch.h. */
#include "host/bench/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/own.h"
#include "host/launcher/launcher.h"
#include "host/kernel/sys.h"
#include "host/tree/tree.h"

#define CGROUPS      "/sys/fs/cgroup"
#define PARENT_MAX   40
#define HANDED_MAX   8
#define JANITOR_WORD 3
#define POLITE_MS    60000 /* for one that was asked to end, and may have sandboxes to end */
#define TRIES        50    /* of what another process' death may hold up */
#define PAUSE_MS     100   /* between them */

static void pause_a_moment(void)
{
    struct pollfd none = {.fd = -1};

    poll(&none, 1, PAUSE_MS);
}

/* --- control groups --- */

static void kill_members(int dir)
{
    own_fd fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    own_done(buf) text;
    struct str rest, line;
    uint64_t pid;

    buf_init(&text, 1u << 16);
    if (fd < 0)
        return;
    err_free(fd_read_all(fd, &text)); /* who is missed is met at the next try */
    for (rest = buf_str(&text); rest.len;) {
        str_cut(&rest, '\n', &line);
        if (str_to_u64(line, &pid) && pid > 1 && pid < INT32_MAX)
            kill((pid_t)pid, SIGKILL);
    }
}

/* Groups hold files that cannot be unlinked: a walk of its own. */
static bool remove_group(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        return errno == ENOENT;
    kill_members(fd);
    DIR *d = fdopendir(fd);
    if (!d) {
        close(fd);
        return false;
    }
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_type == DT_DIR && e->d_name[0] != '.')
            remove_group(fd, e->d_name);
    closedir(d);
    return unlinkat(parent, name, AT_REMOVEDIR) == 0;
}

static bool remove_groups_once(const char *name)
{
    DIR *d = opendir(CGROUPS);
    bool gone = true;

    if (!d)
        return true;
    gone &= remove_group(dirfd(d), name);
    for (struct dirent *e; (e = readdir(d));) {
        own_fd fd = e->d_type == DT_DIR && e->d_name[0] != '.'
                        ? openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                        : -1;
        if (fd >= 0)
            gone &= remove_group(fd, name);
    }
    closedir(d);
    return gone;
}

/* --- the janitor --- */

static void end_handed(int pidfd)
{
    sys_pidfd_kill(pidfd, SIGTERM);
    struct err *e = fd_wait(pidfd, POLLIN, POLITE_MS);
    if (!e)
        return;
    err_free(e);
    sys_pidfd_kill(pidfd, SIGKILL);
    err_free(fd_wait(pidfd, POLLIN, POLITE_MS)); /* a process in the kernel's hands is not ours */
}

static bool has_claims(const char *state)
{
    char path[SCRATCH_DIR + 32];
    bool any = false;

    snprintf(path, sizeof path, "%s/ids", state);
    DIR *d = opendir(path);
    if (!d)
        return false;
    for (struct dirent *e; (e = readdir(d));)
        any |= e->d_name[0] != '.';
    closedir(d);
    return any;
}

/* What was killed with its sandboxes alive: the next launcher of a state takes them over, and ends
 * them when its server goes. */
static void end_sandboxes(const struct scratch *s)
{
    char state[SCRATCH_DIR + 16];
    int sock;
    pid_t pid;

    snprintf(state, sizeof state, "%s/state", s->dir);
    for (unsigned i = 0; i < TRIES && has_claims(state); i++) {
        struct launcher_policy policy = {.state = state, .most = 1};
        struct err *e = launcher_fork(&policy, &sock, &pid);
        if (!e) {
            close(sock);
            waitpid(pid, NULL, 0);
        }
        err_free(e); /* busy: the one before is still ending */
        if (has_claims(state))
            pause_a_moment();
    }
}

static _Noreturn void be_janitor(const struct scratch *s, int word)
{
    int handed[HANDED_MAX], fds[1];
    size_t count = 0, n = 0, got = 0;
    char byte;

    for (;;) { /* until nobody holds the other end */
        struct err *e = fd_recv(word, &byte, 1, &n, fds, 1, &got);
        bool over = e || n == 0;
        err_free(e);
        if (over)
            break;
        if (got && count < HANDED_MAX)
            handed[count++] = fds[0];
    }
    while (count > 0)
        end_handed(handed[--count]);
    end_sandboxes(s);
    bool groups = false, files = false;
    for (unsigned i = 0; i < TRIES && !(groups && files); i++) {
        groups = groups || remove_groups_once(s->group);
        struct err *e = tree_remove(AT_FDCWD, s->dir);
        files = !e;
        err_free(e);
        if (!(groups && files))
            pause_a_moment();
    }
    _exit((groups ? 0 : 1) | (files ? 0 : 2));
}

/* It holds nothing of the bench's: another's end of a pipe in its hands would be one too many. */
static void leave_everybody(int word)
{
    static const int deaf[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP};

    setsid();
    dup3(word, JANITOR_WORD, O_CLOEXEC); /* the same number, if it has it: then it stays */
    sys_close_range(JANITOR_WORD + 1, ~0u, 0);
    for (size_t i = 0; i < ARRAY_LEN(deaf); i++)
        signal(deaf[i], SIG_IGN);
}

/* --- the bench's side --- */

fallible scratch_open(struct scratch *s, const char *parent)
{
    int pair[2];

    *s = (struct scratch){.word = -1, .janitor = -1};
    if (parent[0] != '/' || strlen(parent) > PARENT_MAX || strpbrk(parent, ",:"))
        return err_new(ERR_INVALID,
                       "directory for temporary files '%.100s': wanted an absolute path of at "
                       "most %d letters without commas and colons",
                       parent, PARENT_MAX);
    snprintf(s->dir, sizeof s->dir, "%s/croft-bench-XXXXXX", parent);
    if (!mkdtemp(s->dir) || chmod(s->dir, 0755) < 0)
        return err_sys("make directory '%s'", s->dir);
    snprintf(s->group, sizeof s->group, "%s", strrchr(s->dir, '/') + 1);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ||
        (s->janitor = fork()) < 0) {
        struct err *e = err_sys("start a janitor");
        rmdir(s->dir);
        return e;
    }
    if (s->janitor == 0) {
        leave_everybody(pair[1]);
        be_janitor(s, JANITOR_WORD);
    }
    close(pair[1]);
    s->word = pair[0];
    return NULL;
}

fallible scratch_hand(const struct scratch *s, int pidfd)
{
    return fd_send(s->word, STR("p"), &pidfd, 1);
}

fallible scratch_close(struct scratch *s)
{
    int status = 0;

    if (s->janitor <= 0)
        return NULL;
    close(s->word);
    waitpid(s->janitor, &status, 0);
    s->janitor = -1;
    if (status)
        return err_new(ERR_INTERNAL, "control groups '%s' or directory '%s' could not be removed",
                       s->group, s->dir);
    return NULL;
}
