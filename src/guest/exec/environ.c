// SPDX-License-Identifier: Apache-2.0
/* environ.c — the variables of everything we start: ours, without our keys, naming its user. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include "base/cfg.h"
#include "guest/exec/start.h"

#define ADDED_MAX 16

struct environ {
    struct start *s;
    const char *const *from;
    const char *added[ADDED_MAX];
    size_t added_len;
};

/* Children get neither the keys of this server nor the sockets that were passed to it. */
static bool is_secret(struct str entry)
{
    struct str name;

    str_cut(&entry, '=', &name);
    return str_fits(name,
                    "SESSION_API_KEY OH_SESSION_API_KEYS_ OH_SECRET_KEY LISTEN_FDS LISTEN_PID "
                    "LISTEN_FDNAMES",
                    str_starts) ||
           (str_starts(name, STR("CROFT_")) &&
            str_fits(name, "_KEY _TOKEN _SECRET _PASSWORD", str_ends));
}

static void environ_set(struct environ *v, const char *name, const char *value)
{
    struct str entry = arena_printf(&v->s->arena, "%s=%s", name, value);

    if (v->added_len < ADDED_MAX && entry.p)
        v->added[v->added_len++] = arena_cstr(&v->s->arena, entry);
}

/* Unless --username asked for a user, the environment's own words stand. */
static void set_account(struct environ *v, const char *name, const char *value)
{
    if (value[0] && (v->s->asked || !cfg_env_get(v->from, name)))
        environ_set(v, name, value);
}

static bool is_added(const struct environ *v, const char *entry)
{
    for (size_t i = 0; i < v->added_len; i++) {
        size_t n = strcspn(v->added[i], "=") + 1;
        if (strncmp(v->added[i], entry, n) == 0)
            return true;
    }
    return false;
}

/* git refuses to work in a directory of another user, and a mounted one may be that. */
static void trust_dir(struct environ *v)
{
    if (!v->s->foreign_dir || cfg_env_get(v->from, "GIT_CONFIG_COUNT"))
        return;
    environ_set(v, "GIT_CONFIG_COUNT", "2");
    environ_set(v, "GIT_CONFIG_KEY_0", "safe.directory");
    environ_set(v, "GIT_CONFIG_VALUE_0", v->s->dir);
    environ_set(v, "GIT_CONFIG_KEY_1", "safe.directory");
    environ_set(v, "GIT_CONFIG_VALUE_1",
                arena_cstr(&v->s->arena, arena_printf(&v->s->arena, "%s/*", v->s->dir)) ?: "");
}

/* With "." at its end, opening asks for the right to enter. */
static bool may_enter(struct str dir)
{
    char path[PATH_MAX];

    if (!str_starts(dir, STR("/")) || dir.len + 3 > sizeof path)
        return true;
    snprintf(path, sizeof path, STR_FMT "/.", STR_ARG(dir));
    own_fd fd = open(path, O_PATH | O_CLOEXEC);
    return fd >= 0 || errno != EACCES;
}

/* The directories of a list that its user may enter: we are root and could enter all. */
fallible start_enterable(const struct start *s, const char *list, struct buf *kept)
{
    const struct passwd_user *u = &s->account;
    gid_t theirs[PASSWD_GROUPS_MAX], ours[PASSWD_GROUPS_MAX];
    int count = getgroups(PASSWD_GROUPS_MAX, ours);
    struct str rest = str_of(list), dir;
    size_t n;

    TRY(passwd_groups(s->place.etc, str_of(u->name), u->gid, u->also, theirs, &n));
    if (count < 0 || setgroups(n, theirs) < 0)
        return err_sys("groups of '%s'", u->name);
    setfsgid(u->gid);
    setfsuid(u->uid);
    for (bool more = true; more;) {
        more = str_cut(&rest, ':', &dir);
        if (may_enter(dir))
            buf_addf(kept, "%s" STR_FMT, kept->len ? ":" : "", STR_ARG(dir));
    }
    setfsuid(geteuid());
    setfsgid(getegid());
    if (setgroups((size_t)count, ours) < 0)
        return err_sys("groups of this process");
    return buf_check(kept);
}

fallible start_environ(struct start *s, const struct exec_config *c)
{
    static const char *const none[] = {NULL};
    struct environ v = {.s = s, .from = c->envp ? c->envp : none};
    size_t n = 0, count = 0;
    own_done(buf) kept;

    buf_init(&kept, 1u << 20);
    if (s->known && (s->other || s->account.uid == geteuid())) {
        set_account(&v, "HOME", s->account.home);
        set_account(&v, "USER", s->account.name);
        set_account(&v, "LOGNAME", s->account.name);
        set_account(&v, "SHELL", s->account.shell);
    }
    const char *path = cfg_env_get(v.from, "PATH");
    if (path && s->other) {
        TRY(start_enterable(s, path, &kept));
        if (kept.len != strlen(path))
            environ_set(&v, "PATH", buf_cstr(&kept) ?: "");
    }
    if (!path)
        environ_set(&v, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    if (!cfg_env_get(v.from, "PAGER") && !cfg_env_get(v.from, "GIT_PAGER"))
        environ_set(&v, "GIT_PAGER", "cat"); /* in scripts too, where the alias of shells is not */
    trust_dir(&v);
    while (v.from[count])
        count++;
    const char **list = arena_alloc(&s->arena, (count + v.added_len + 1) * sizeof *list);
    TRY(arena_check(&s->arena));
    for (size_t i = 0; i < count; i++)
        if (!is_secret(str_of(v.from[i])) && !is_added(&v, v.from[i]))
            list[n++] = v.from[i];
    for (size_t i = 0; i < v.added_len; i++)
        list[n++] = v.added[i];
    list[n] = NULL;
    s->env = list;
    return NULL;
}
