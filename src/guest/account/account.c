// SPDX-License-Identifier: Apache-2.0
/* account.c — see account.h. Every file is replaced as a whole, its mode and owner kept; one that
 * is a mount of its own cannot be, and is written in place. */
#include "guest/account/account.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "guest/account/tree.h"

#define FILE_BYTES   (16u << 20)
#define NAME_MAX_LEN 32
#define DAY_S        86400
#define TRIES        100

static fallible check_name(struct str name)
{
    bool fine = name.len && name.len <= NAME_MAX_LEN && name.p[0] != '-';

    for (size_t i = 0; fine && i < name.len; i++) {
        char c = name.p[i];
        fine = (c >= 'a' && c <= 'z') || c == '_' || c == '-' || (i && str_is_digit(c));
    }
    if (fine)
        return NULL;
    return err_new(ERR_INVALID,
                   "--username '" STR_FMT "' cannot be created: at most %d of a-z, 0-9, _ and -, a "
                   "letter first",
                   STR_ARG(str_first(name, 80)), NAME_MAX_LEN);
}

/* --- one file --- */

/* False in *ret_there when there is no such file; that is no error. */
static fallible account_load(int dir, const char *name, struct buf *text, struct stat *st,
                             bool *ret_there)
{
    own_fd fd = openat(dir, name, O_RDONLY | O_CLOEXEC);

    buf_init(text, FILE_BYTES);
    *ret_there = fd >= 0;
    if (fd < 0)
        return errno == ENOENT ? NULL : err_sys("open '%s'", name);
    if (fstat(fd, st) < 0)
        return err_sys("stat '%s'", name);
    TRY_WRAP(fd_read_all(fd, text), "read '%s'", name);
    if (text->len && text->p[text->len - 1] != '\n')
        buf_add_char(text, '\n');
    return buf_check(text);
}

static fallible write_in_place(int dir, const char *name, struct str text)
{
    own_fd fd = openat(dir, name, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return err_sys("open '%s'", name);
    TRY_WRAP(fd_write_all(fd, text), "write '%s'", name);
    if (ftruncate(fd, (off_t)text.len) < 0)
        return err_sys("write '%s'", name);
    return NULL;
}

static fallible account_store(int dir, const char *name, const struct buf *text,
                              const struct stat *st)
{
    TRY(buf_check(text));
    mode_t mask = umask(0); /* or passwd would be unreadable for a moment */
    struct err *e = fd_replace_file(dir, name, buf_str(text), st->st_mode & 07777);
    umask(mask);
    if (e && err_errno(e) == EBUSY) {
        err_free(e);
        return write_in_place(dir, name, buf_str(text));
    }
    if (!e && fchownat(dir, name, st->st_uid, st->st_gid, 0) < 0)
        e = err_sys("chown '%s'", name);
    return e;
}

/* Adds the line unless one begins with `known` already; or the member to the group whose line does,
 * in the last of the four fields that group and gshadow have. A file that is missing stays so. */
static fallible account_add(int dir, const char *name, struct str known, struct str text,
                            bool member)
{
    own_done(buf) old = {0};
    own_done(buf) next;
    struct stat st;
    bool there, found = false;

    buf_init(&next, FILE_BYTES + 4096);
    TRY(account_load(dir, name, &old, &st, &there));
    struct str rest = buf_str(&old), line, field;
    while (!found && rest.len) {
        str_cut(&rest, '\n', &line);
        found = str_starts(line, known);
    }
    if (!there || member != found)
        return NULL;
    size_t end = old.len;
    if (member) {
        end = (size_t)(line.p - old.p) + line.len;
        for (int i = 0; i < 3; i++)
            str_cut(&line, ':', &field);
        if (passwd_lists(line, text))
            return NULL;
    }
    buf_add(&next, str_n(old.p, end));
    if (member && line.len)
        buf_add_char(&next, ',');
    buf_add(&next, text);
    if (!member)
        buf_add_char(&next, '\n');
    buf_add(&next, str_from(buf_str(&old), end));
    return account_store(dir, name, &next, &st);
}

/* --- the whole --- */

static fallible make_home(const struct account_place *place, const struct passwd_user *u)
{
    char skel[300];

    if (mkdir(place->homes, 0755) < 0 && errno != EEXIST)
        return err_sys("make '%s'", place->homes);
    bool made = mkdir(u->home, 0755) == 0;
    if (!made && errno != EEXIST)
        return err_sys("make '%s'", u->home);
    own_fd home = open(u->home, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (home < 0)
        return err_sys("open '%s'", u->home);
    snprintf(skel, sizeof skel, "%s/skel", place->etc);
    own_fd from = made ? open(skel, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (from >= 0)
        TRY_WRAP(tree_copy(from, home, u->uid, u->gid), "fill '%s'", u->home);
    if (fchown(home, u->uid, u->gid) < 0)
        return err_sys("chown '%s'", u->home);
    return NULL;
}

/* In the group sudo, or with a group and a rule of its own: neither needs a password for it. */
static fallible write_all(int dir, const struct passwd_user *u, bool own)
{
    static const char *const files[] = {"group", "gshadow", "shadow", "sudoers", "passwd"};
    char text[1200];
    const char *name = u->name;
    struct str line, rest;

    snprintf(text, sizeof text,
             "%s:x:%u:\n%s:!::\n%s:!:%lld::::::\n%s ALL=(ALL) NOPASSWD:ALL\n%s:x:%u:%u::%s:%s\n",
             name, u->gid, name, name, (long long)(clock_wall_ns(&clock_system) / NS_PER_S / DAY_S),
             own ? name : "%sudo", name, u->uid, u->gid, u->home, u->shell);
    rest = str_of(text);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        str_cut(&rest, '\n', &line);
        bool join = i < 2 && !own;
        TRY(account_add(dir, files[i],
                        join     ? STR("sudo:")
                        : i == 3 ? line
                                 : str_first(line, strlen(name) + 1),
                        join ? str_of(name) : line, join));
    }
    return NULL;
}

static fallible find_free(const struct account_place *place, uid_t first, uid_t *ret_uid)
{
    struct passwd_user other;

    for (uid_t uid = first; uid - first < TRIES; uid++) {
        struct err *e = passwd_by_uid(place->etc, uid, &other);
        if (!e)
            continue;
        if (err_code(e) != ERR_NOT_FOUND)
            return e;
        err_free(e);
        *ret_uid = uid;
        return NULL;
    }
    return err_new(ERR_INVALID, "--user-id %u and the %d after it are taken: give another one",
                   first, TRIES - 1);
}

/* By any line that begins so, one that is broken too. Without a passwd there is no telling. */
static fallible is_taken(int dir, const char *name, bool *ret)
{
    own_done(buf) text = {0};
    struct stat st;
    bool there;
    struct str line, rest;
    size_t len = strlen(name);

    TRY(account_load(dir, "passwd", &text, &st, &there));
    if (!there)
        return err_new(ERR_NOT_FOUND, "there is no passwd");
    *ret = false;
    for (rest = buf_str(&text); rest.len && !*ret;) {
        str_cut(&rest, '\n', &line);
        *ret = line.len > len && memcmp(line.p, name, len) == 0 && line.p[len] == ':';
    }
    return NULL;
}

/* Under the lock that useradd and its kin take. */
static fallible account_make_user(const struct account_place *place, struct passwd_user *u,
                                  bool own)
{
    own_fd dir = open(place->etc, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own_fd fd = openat(dir, ".pwd.lock", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    if (fd < 0 || fcntl(fd, F_SETLK, &all) < 0)
        return err_sys("lock '%s/.pwd.lock', which programs that change users hold", place->etc);
    if (own) {
        bool taken;
        TRY(is_taken(dir, "openhands", &taken));
        snprintf(u->name, sizeof u->name, taken ? "u%u" : "openhands", u->uid);
        TRY(is_taken(dir, u->name, &taken));
        if (taken) /* a rule for that name would be another user's */
            return err_new(ERR_CONFLICT, "'%s' is another user", u->name);
    } else {
        TRY(find_free(place, u->uid, &u->uid));
        TRY(make_home(place, u));
    }
    return write_all(dir, u, own);
}

fallible account_make(const struct account_place *place, struct str name, uid_t uid,
                      struct passwd_user *ret_user)
{
    struct passwd_user u = {.uid = uid, .shell = "/bin/bash"};

    TRY(check_name(name));
    snprintf(u.name, sizeof u.name, STR_FMT, STR_ARG(name));
    snprintf(u.home, sizeof u.home, "%s/%s", place->homes, u.name);
    TRY(account_make_user(place, &u, false));
    *ret_user = u;
    return NULL;
}

fallible account_of_number(const struct account_place *place, struct passwd_user *u)
{
    snprintf(u->shell, sizeof u->shell, "/bin/%ssh", access("/bin/bash", X_OK) == 0 ? "ba" : "");
    return account_make_user(place, u, true);
}
