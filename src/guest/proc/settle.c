// SPDX-License-Identifier: Apache-2.0
/* settle.c — a user by number, whom no image knows, needs places to write to. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/own.h"
#include "base/passwd.h"
#include "guest/proc/proc.h"

#define WORKSPACE "/workspace"

bool proc_ours(int dir)
{
    struct statfs root, fs;

    return statfs("/", &root) == 0 && fstatfs(dir, &fs) == 0 && fs.f_type == root.f_type &&
           fs.f_flags == root.f_flags;
}

void proc_settle(struct passwd_user *u, const char *home)
{
    struct stat st;

    if (!u->home[0] && !home) {
        snprintf(u->home, sizeof u->home, "/home/%u", u->uid);
        mkdir("/home", 0755);
        if ((mkdir(u->home, 0755) < 0 && errno != EEXIST) || lchown(u->home, u->uid, u->gid) < 0)
            snprintf(u->home, sizeof u->home, "/tmp");
    }
    own_fd dir = open(WORKSPACE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (proc_ours(dir) && fstat(dir, &st) == 0 &&
        fchown(dir, u->uid, u->also ? u->also - 1 : u->gid) == 0 && u->also)
        fchmod(dir, (st.st_mode | 02070) & 07777); /* what is made there is the group's too */
}
