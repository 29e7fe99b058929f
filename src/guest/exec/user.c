// SPDX-License-Identifier: Apache-2.0
/* user.c — the user of commands. Never more than was asked for: what cannot be done is refused. */
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cfg.h"
#include "base/log.h"
#include "guest/exec/start.h"
#include "guest/held/held.h"

#define DEFAULT_UID 1000

static fallible user_find(struct start *s, struct err *e)
{
    if (e && err_code(e) == ERR_NOT_FOUND) {
        err_free(e);
        return NULL;
    }
    s->known = !e;
    return err_wrap(e, "look up the user");
}

/* In a sandbox of a user without further ids there is root alone: no call takes another number. */
static bool is_alone(uid_t uid)
{
    setfsuid(uid);
    bool alone = (uid_t)setfsuid(geteuid()) != uid;
    prctl(PR_SET_DUMPABLE, 0); /* which that may undo, by a setting of the machine's */
    return alone;
}

/* The user is found, or made. Root only. */
static fallible user_ensure(struct start *s, const struct exec_config *c, uid_t uid)
{
    if (s->known) {
        if (c->uid != EXEC_NO_UID && c->uid != s->account.uid)
            log_warn("that user is there with another number; it is kept",
                     KV("user", s->account.name), KV("asked", c->uid), KV("is", s->account.uid));
        return NULL;
    }
    TRY_WRAP(account_make(&s->place, c->username, uid, &s->account),
             "create the user of --username (make it in the image or leave it out)");
    s->known = true;
    if (s->account.uid != uid)
        log_warn("that number is somebody else's; the next free one is taken",
                 KV("user", s->account.name), KV("asked", uid), KV("is", s->account.uid));
    log_info("user created", KV("user", s->account.name), KV("uid", s->account.uid));
    return NULL;
}

static fallible find_group(struct start *s, const struct exec_config *c)
{
    const char *group = cfg_env_get(c->envp, "SANDBOX_GROUP_ID");

    if (group && group[0])
        TRY_WRAP(passwd_group(s->place.etc, str_of(group), &s->group),
                 "SANDBOX_GROUP_ID '%.40s': a group's name or number is wanted", group);
    return NULL;
}

static fallible be_other(struct start *s, const struct exec_config *c)
{
    if (geteuid() != 0)
        return err_new(ERR_INVALID,
                       "--username '" STR_FMT
                       "': only root can run commands as another user; leave "
                       "it out, start as root, or set SU_TO_USER=false",
                       STR_ARG(str_first(c->username, 80)));
    s->other = true;
    s->user = (struct proc_user){.name = s->account.name,
                                 .home = s->account.home[0] ? s->account.home : "/",
                                 .uid = s->account.uid,
                                 .gid = s->account.gid,
                                 .also = s->account.also};
    return NULL;
}

fallible start_user(struct start *s, const struct exec_config *c)
{
    const char *me = cfg_env_get(c->envp, "USER");
    bool root = geteuid() == 0, as_asked = start_flag(c->envp, "SU_TO_USER", true) &&
                                           !start_flag(c->envp, "LOCAL_RUNTIME_MODE", false);
    bool usual = str_eq(c->username, STR("root")) || str_eq(c->username, STR("openhands"));

    if (c->user.len) {
        TRY_WRAP(passwd_find(s->place.etc, c->user, &s->account), "--user");
        s->known = s->asked = true;
        s->give = root;
        if (root) {
            account_settle(&s->account, cfg_env_get(c->envp, "HOME"), c->held && c->held->inside);
            account_settle_workspace(&s->account);
        }
        s->group = s->account.also ? s->account.also - 1 : s->account.gid;
        return s->account.uid == geteuid() && s->account.gid == getegid() && !s->account.also
                   ? NULL
                   : be_other(s, c);
    }
    if (!c->username.len)
        return user_find(s, passwd_by_uid(s->place.etc, geteuid(), &s->account));
    TRY(find_group(s, c));
    TRY(user_find(s, passwd_by_name(s->place.etc, c->username, &s->account)));
    bool said = me && str_eq(str_of(me), c->username); /* the environment is that user's already */
    bool own_machine = said && !usual; /* of a developer: nothing of it is ours to change */
    if (root && !own_machine && !str_eq(c->username, STR("root"))) {
        uid_t uid = c->uid == EXEC_NO_UID ? DEFAULT_UID : c->uid;
        if (is_alone(s->known ? s->account.uid : uid)) {
            log_warn(
                "this sandbox has no user but root: commands run as root (croft doctor: users)",
                KV("asked", c->username));
            s->give = true;
            s->group = 0;
            return user_find(s, passwd_by_uid(s->place.etc, 0, &s->account));
        }
        TRY(user_ensure(s, c, uid));
    }
    s->give = root && s->known && !own_machine;
    bool we_are = s->known ? s->account.uid == geteuid() : root && str_eq(c->username, STR("root"));
    s->asked = as_asked && !(said && we_are);
    if (we_are || !as_asked)
        return NULL;
    if (!s->known && root)
        return err_new(ERR_INVALID, "--username '" STR_FMT "': there is no such user",
                       STR_ARG(str_first(c->username, 80)));
    return be_other(s, c);
}
