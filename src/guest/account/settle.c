// SPDX-License-Identifier: Apache-2.0
/* settle.c — a user by number. It needs places to write to and a name: without a line in passwd
 * there is no sudo, no whoami, and no ssh. */
#include "guest/account/account.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/own.h"
#include "guest/account/tree.h"

#define WORKSPACE "/workspace"

/* A client's HOME is in its line too: a server that is started again goes by that. */
static void give_account(struct passwd_user *u, const char *home)
{
    static const struct account_place place = {PASSWD_ETC, "/home"};

    own_fd etc = open(PASSWD_ETC, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!tree_is_ours(etc)) /* a mount of the host: its owner asked for no users in it */
        return;
    if (home && (home[strcspn(home, ":\n")] || strlen(home) >= sizeof u->home))
        return;
    if (home)
        strcpy(u->home, home);
    struct err *e = account_of_number(&place, u);
    if (e) {
        log_warn("that number has no account", KV_ERR(e));
        u->name[0] = '\0';
    }
    err_free(e);
}

void account_settle(struct passwd_user *u, const char *home, bool inside)
{
    if (!u->home[0] && !home) {
        snprintf(u->home, sizeof u->home, "/home/%u", u->uid);
        mkdir("/home", 0755);
        if ((mkdir(u->home, 0755) < 0 && errno != EEXIST) || lchown(u->home, u->uid, u->gid) < 0)
            snprintf(u->home, sizeof u->home, "/tmp");
    }
    if (inside && u->uid && !u->name[0])
        give_account(u, home);
}

void account_settle_workspace(const struct passwd_user *u)
{
    own_fd dir = open(WORKSPACE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (tree_is_ours(dir) && fstat(dir, &st) == 0 &&
        fchown(dir, u->uid, u->also ? u->also - 1 : u->gid) == 0 && u->also)
        fchmod(dir, (st.st_mode | 02070) & 07777); /* what is made there is the group's too */
}
