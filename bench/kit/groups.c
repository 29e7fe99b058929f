// SPDX-License-Identifier: Apache-2.0
/* groups.c — removes the control groups of a bench's peers, in every hierarchy; see peers.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/own.h"
#include "bench/kit/peers.h"

#define CGROUPS "/sys/fs/cgroup"

static void kill_members(int dir)
{
    own_fd fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    own_done(buf) text;
    struct str rest, line;
    uint64_t pid;

    buf_init(&text, 1u << 16);
    if (fd < 0)
        return;
    err_free(fd_read_all(fd, &text)); /* the next try meets the rest */
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

bool peers_remove_groups(const char *name)
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
