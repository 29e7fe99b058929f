// SPDX-License-Identifier: Apache-2.0
/* drop.c — see drop.h. */
#include "host/launcher/drop.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "base/passwd.h"
#include "host/kernel/confine.h"

/* By a child: libc loads libraries for it, which would be copied with every sandbox of ours. */
static bool ask_name_services(const char *name, struct launcher_user *ret_user)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    own_fd from = ends[0], to = ends[1];
    pid_t pid = fork();
    if (pid == 0) {
        const struct passwd *p = getpwnam(name);
        struct launcher_user u = {.uid = p ? p->pw_uid : 0, .gid = p ? p->pw_gid : 0};
        _exit(!p || write(to, &u, sizeof u) != sizeof u);
    }
    own_close_p(&to);
    to = -1;
    bool found = pid > 0 && read(from, ret_user, sizeof *ret_user) == sizeof *ret_user;
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return found;
}

static bool drop_find(const char *name, struct launcher_user *ret_user)
{
    struct passwd_user known;
    struct err *e = passwd_by_name(PASSWD_ETC, str_of(name), &known);

    if (e) {
        err_free(e); /* it is not there, or not to be read */
        return ask_name_services(name, ret_user);
    }
    *ret_user = (struct launcher_user){.uid = known.uid, .gid = known.gid};
    return true;
}

fallible launcher_find_user(uid_t before, struct launcher_user *ret_user)
{
    static const char *const names[] = {"croft", "nobody"};
    bool found = false;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct launcher_user u;
        if (!drop_find(names[i], &u) || u.uid == 0 || u.gid == 0 || (found && u.uid != before))
            continue;
        u.shared = i > 0;
        *ret_user = u;
        found = true;
    }
    return found ? NULL
                 : err_new(ERR_NOT_FOUND, "no user for the server: add one with "
                                          "'useradd --system --no-create-home croft'");
}

uid_t launcher_user_before(int state)
{
    struct stat st;

    return fstatat(state, "server", &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_uid : (uid_t)-1;
}

/* A change of ids that is not one would leave a server that is root and believed not to be. */
static bool is_gone_for_good(const struct launcher_user *u)
{
    uid_t r, e, s;
    gid_t rg, eg, sg;

    return getresuid(&r, &e, &s) == 0 && r == u->uid && e == u->uid && s == u->uid &&
           getresgid(&rg, &eg, &sg) == 0 && rg == u->gid && eg == u->gid && sg == u->gid &&
           getgroups(0, NULL) == 0 && setuid(0) < 0;
}

fallible launcher_drop_privileges(const struct launcher_user *user)
{
    if (user->uid == 0 || user->gid == 0)
        return err_new(ERR_INVALID, "the server's user must not be root");
    TRY(confine_bounding_set(0)); /* takes a capability that goes with the ids */
    if (setgroups(0, NULL) < 0)
        return err_sys("leave all groups");
    if (setresgid(user->gid, user->gid, user->gid) < 0)
        return err_sys("become group %u", user->gid);
    if (setresuid(user->uid, user->uid, user->uid) < 0)
        return err_sys("become user %u", user->uid);
    TRY(confine_set_caps(0)); /* those to inherit stay with a change of ids */
    TRY(confine_no_new_privs());
    if (prctl(PR_SET_DUMPABLE, 0) < 0)
        return err_sys("forbid tracing");
    if (!is_gone_for_good(user))
        return err_new(ERR_INTERNAL, "still root after giving it up");
    return NULL;
}
