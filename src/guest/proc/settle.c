// SPDX-License-Identifier: Apache-2.0
/* settle.c — a user by number, whom no image knows, needs places to write to. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/passwd.h"
#include "guest/proc/proc.h"

#define WORKSPACE "/workspace"

void proc_settle(struct passwd_user *u, const char *home)
{
    struct stat st;
    struct statfs root, fs;

    if (!u->home[0] && !home) {
        snprintf(u->home, sizeof u->home, "/home/%u", u->uid);
        mkdir("/home", 0755);
        if ((mkdir(u->home, 0755) < 0 && errno != EEXIST) || lchown(u->home, u->uid, u->gid) < 0)
            snprintf(u->home, sizeof u->home, "/tmp");
    }
    /* On another kind of file system than the root's (of copies both are overlays) it is a
     * directory of the host, which stays as it is. */
    if (lstat(WORKSPACE, &st) == 0 && S_ISDIR(st.st_mode) && statfs("/", &root) == 0 &&
        statfs(WORKSPACE, &fs) == 0 && fs.f_type == root.f_type &&
        lchown(WORKSPACE, u->uid, u->also ? u->also - 1 : u->gid) == 0 && u->also)
        chmod(WORKSPACE, (st.st_mode | 02070) & 07777); /* what is made there is the group's too */
}
