// SPDX-License-Identifier: Apache-2.0
/* passwd.c — see passwd.h. */
#include "base/passwd.h"

#include <errno.h>
#include <stdio.h>

#include "base/fd.h"

#define FILE_BYTES (16u << 20)
#define FIELDS     7

static size_t passwd_split(struct str line, struct str fields[FIELDS])
{
    size_t n = 0;
    bool more = line.len > 0;

    while (more && n < FIELDS)
        more = str_cut(&line, ':', &fields[n++]);
    return more ? FIELDS + 1 : n;
}

static bool passwd_copy(struct str from, char *to, size_t size)
{
    if (from.len >= size || (from.len && memchr(from.p, '\0', from.len)))
        return false;
    if (from.len)
        memcpy(to, from.p, from.len);
    to[from.len] = '\0';
    return true;
}

static bool parse_id(struct str text, unsigned *ret)
{
    uint64_t n;

    if (!str_to_u64(text, &n) || n >= UINT32_MAX) /* the last one means "none" to the kernel */
        return false;
    *ret = (unsigned)n;
    return true;
}

bool passwd_parse(struct str line, struct passwd_user *ret_user)
{
    struct str f[FIELDS];
    struct passwd_user u = {.also = 0};

    if (passwd_split(line, f) != FIELDS || !f[0].len || !parse_id(f[2], &u.uid) ||
        !parse_id(f[3], &u.gid) || !passwd_copy(f[0], u.name, sizeof u.name) ||
        !passwd_copy(f[5], u.home, sizeof u.home) || !passwd_copy(f[6], u.shell, sizeof u.shell))
        return false;
    *ret_user = u;
    return true;
}

bool passwd_parse_group(struct str line, struct str *ret_name, gid_t *ret_gid,
                        struct str *ret_members)
{
    struct str f[FIELDS];

    if (passwd_split(line, f) != 4 || !f[0].len || !parse_id(f[2], ret_gid))
        return false;
    *ret_name = f[0];
    *ret_members = f[3];
    return true;
}

bool passwd_lists(struct str members, struct str name)
{
    struct str one;

    while (members.len) {
        str_cut(&members, ',', &one);
        if (str_eq(one, name))
            return true;
    }
    return false;
}

static fallible passwd_load(const char *etc, const char *name, struct buf *into)
{
    char path[512];

    buf_init(into, FILE_BYTES);
    snprintf(path, sizeof path, "%s/%s", etc, name);
    struct err *e = fd_read_file(path, into);
    if (e && err_errno(e) == ENOENT) {
        err_free(e);
        return NULL;
    }
    return e;
}

static fallible find_user(const char *etc, struct str name, uid_t uid, struct passwd_user *ret_user)
{
    own_done(buf) file = {0};
    struct str rest, line;
    struct passwd_user u;

    TRY(passwd_load(etc, "passwd", &file));
    for (rest = buf_str(&file); rest.len;) {
        str_cut(&rest, '\n', &line);
        if (!passwd_parse(line, &u) || (name.p ? !str_eq(str_of(u.name), name) : u.uid != uid))
            continue;
        *ret_user = u;
        return NULL;
    }
    if (name.p)
        return err_new(ERR_NOT_FOUND, "no user '" STR_FMT "'", STR_ARG(str_first(name, 80)));
    return err_new(ERR_NOT_FOUND, "no user with number %u", uid);
}

fallible passwd_by_name(const char *etc, struct str name, struct passwd_user *ret_user)
{
    return find_user(etc, name.p ? name : STR(""), 0, ret_user);
}

fallible passwd_by_uid(const char *etc, uid_t uid, struct passwd_user *ret_user)
{
    return find_user(etc, str_n(NULL, 0), uid, ret_user);
}

fallible passwd_find(const char *etc, struct str text, struct passwd_user *ret_user)
{
    struct passwd_user u = {.uid = 0};
    struct str rest = text, who, group;
    bool has_group = str_cut(&rest, ':', &who), number = parse_id(who, &u.uid);
    struct err *e = find_user(etc, number ? str_n(NULL, 0) : who, u.uid, ret_user);

    if (e && number && err_code(e) == ERR_NOT_FOUND) {
        err_free(e);
        *ret_user = u;
    } else if (e)
        return e;
    bool more = str_cut(&rest, ':', &group);
    if (has_group && (group.len || !more))
        TRY(passwd_group(etc, group, &ret_user->gid));
    if (more) {
        TRY(passwd_group(etc, rest, &ret_user->also));
        ret_user->also++;
    }
    return NULL;
}

struct group {
    struct str name, members;
    gid_t gid;
};

static bool next_group(struct str *rest, struct group *ret)
{
    struct str line;

    while (rest->len) {
        str_cut(rest, '\n', &line);
        if (passwd_parse_group(line, &ret->name, &ret->gid, &ret->members))
            return true;
    }
    return false;
}

fallible passwd_group(const char *etc, struct str group, gid_t *ret_gid)
{
    own_done(buf) file = {0};
    struct group g;

    if (parse_id(group, ret_gid))
        return NULL;
    TRY(passwd_load(etc, "group", &file));
    for (struct str rest = buf_str(&file); next_group(&rest, &g);) {
        if (!str_eq(g.name, group))
            continue;
        *ret_gid = g.gid;
        return NULL;
    }
    return err_new(ERR_NOT_FOUND, "no group '" STR_FMT "'", STR_ARG(str_first(group, 80)));
}

fallible passwd_groups(const char *etc, struct str user, gid_t first, gid_t also,
                       gid_t ret_gids[PASSWD_GROUPS_MAX], size_t *ret_count)
{
    own_done(buf) file = {0};
    struct group g;
    size_t n = 1;

    ret_gids[0] = first;
    if (also)
        ret_gids[n++] = also - 1;
    TRY(passwd_load(etc, "group", &file));
    for (struct str rest = buf_str(&file); next_group(&rest, &g);) {
        if (g.gid == first || !passwd_lists(g.members, user))
            continue;
        if (n == PASSWD_GROUPS_MAX)
            return err_new(ERR_LIMIT, "user '" STR_FMT "' is in more than %d groups",
                           STR_ARG(str_first(user, 80)), PASSWD_GROUPS_MAX);
        ret_gids[n++] = g.gid;
    }
    *ret_count = n;
    return NULL;
}
