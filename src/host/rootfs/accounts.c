// SPDX-License-Identifier: Apache-2.0
/* accounts.c — passwd, group, shadow, gshadow and sudoers of a sandbox: the host's system accounts,
 * no person's name, no password, and one user that may become root. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "host/rootfs/inner.h"
#include "host/rootfs/rootfs.h"

#define FILE_MAX     (4u << 20)
#define SYSTEM_BELOW 1000 /* ids of persons start here */
#define NOBODY       65534

struct accounts {
    struct buf passwd, group, shadow, gshadow;
    bool root, nobody, sudo, users; /* seen on the host */
};

struct row {
    struct str field[7];
    uint64_t id; /* uid or gid: the third field of both files */
};

static bool is_name(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (i == 0 || (!str_is_digit(c) && c != '-' && c != '.')))
            return false;
    }
    return s.len > 0 && s.len <= 32;
}

/* One line of passwd (7 fields) or group (4); false for a comment, NIS, a person, or rubbish. */
static bool read_row(struct str line, size_t fields, struct row *ret)
{
    size_t n = 0;

    while (n < fields && line.len + 1 > 0) {
        bool more = str_cut(&line, ':', &ret->field[n++]);
        if (!more)
            break;
    }
    if (n != fields || line.len || !is_name(ret->field[0]) || !str_to_u64(ret->field[2], &ret->id))
        return false;
    return ret->id < SYSTEM_BELOW || ret->id == NOBODY;
}

static fallible read_rows(int etc, const char *name, size_t fields,
                          void (*each)(struct accounts *, const struct row *), struct accounts *a)
{
    own_done(buf) text;
    own_fd fd = openat(etc, name, O_RDONLY | O_CLOEXEC, 0);

    buf_init(&text, FILE_MAX);
    if (fd < 0)
        return errno == ENOENT ? NULL : err_sys("open the host's '%s'", name);
    TRY_WRAP(fd_read_all(fd, &text), "the host's '%s'", name);
    struct str rest = buf_str(&text), line;
    while (str_cut(&rest, '\n', &line) || line.len) {
        struct row row;
        if (read_row(line, fields, &row))
            each(a, &row);
    }
    return NULL;
}

static void add_user(struct accounts *a, struct str name, uint64_t uid, uint64_t gid,
                     struct str words, struct str home, struct str shell)
{
    buf_addf(&a->passwd, STR_FMT ":x:%llu:%llu:" STR_FMT ":" STR_FMT ":" STR_FMT "\n",
             STR_ARG(name), (unsigned long long)uid, (unsigned long long)gid, STR_ARG(words),
             STR_ARG(home), STR_ARG(shell));
    buf_addf(&a->shadow, STR_FMT ":*:19000:0:99999:7:::\n", STR_ARG(name));
}

static void on_user(struct accounts *a, const struct row *r)
{
    uint64_t gid;

    if (!str_to_u64(r->field[3], &gid))
        return;
    if (r->id == 0 && (a->root || !str_eq(r->field[0], STR("root"))))
        return; /* a second name of root would be an unwatched way in */
    a->root = a->root || r->id == 0;
    a->nobody = a->nobody || r->id == NOBODY;
    add_user(a, r->field[0], r->id, gid, r->id ? r->field[4] : STR("root"),
             r->id ? r->field[5] : STR("/root"), r->id ? r->field[6] : STR("/bin/bash"));
}

static void add_group(struct accounts *a, struct str name, uint64_t gid, const char *members)
{
    buf_addf(&a->group, STR_FMT ":x:%llu:%s\n", STR_ARG(name), (unsigned long long)gid, members);
    buf_addf(&a->gshadow, STR_FMT ":*::%s\n", STR_ARG(name), members);
}

static void on_group(struct accounts *a, const struct row *r)
{
    bool sudo = str_eq(r->field[0], STR("sudo"));

    if (str_eq(r->field[0], STR(ROOTFS_USER)))
        return;
    a->sudo = a->sudo || sudo;
    add_group(a, r->field[0], r->id, sudo ? ROOTFS_USER : "");
}

static fallible write_one(int etc, const char *name, struct buf *text, mode_t mode)
{
    TRY(buf_check(text));
    TRY(take_write(etc, name, buf_str(text), mode));
    return NULL;
}

static fallible accounts_collect(int host_etc, struct accounts *a)
{
    TRY(read_rows(host_etc, "passwd", 7, on_user, a));
    TRY(read_rows(host_etc, "group", 4, on_group, a));
    if (!a->root)
        add_user(a, STR("root"), 0, 0, STR("root"), STR("/root"), STR("/bin/bash"));
    if (!a->nobody)
        add_user(a, STR("nobody"), NOBODY, NOBODY, STR("nobody"), STR("/nonexistent"),
                 STR("/usr/sbin/nologin"));
    if (!a->sudo)
        add_group(a, STR("sudo"), 27, ROOTFS_USER);
    add_user(a, STR(ROOTFS_USER), ROOTFS_USER_ID, ROOTFS_USER_ID, STR(""),
             STR("/home/" ROOTFS_USER), STR("/bin/bash"));
    add_group(a, STR(ROOTFS_USER), ROOTFS_USER_ID, "");
    return NULL;
}

static fallible write_all(int etc, struct accounts *a)
{
    TRY(write_one(etc, "passwd", &a->passwd, 0644));
    TRY(write_one(etc, "group", &a->group, 0644));
    TRY(write_one(etc, "shadow", &a->shadow, 0640));
    TRY(write_one(etc, "gshadow", &a->gshadow, 0640));
    TRY(take_dir(etc, "sudoers.d", 0750, 0, 0));
    return take_write(etc, "sudoers",
                      STR("Defaults env_reset, !lecture, !fqdn\n"
                          "Defaults env_keep += \"HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy "
                          "https_proxy no_proxy\"\n"
                          "Defaults secure_path=\"/usr/local/sbin:/usr/local/bin:/usr/sbin:"
                          "/usr/bin:/sbin:/bin\"\n"
                          "root ALL=(ALL:ALL) NOPASSWD: ALL\n"
                          "%sudo ALL=(ALL:ALL) NOPASSWD: ALL\n" ROOTFS_USER
                          " ALL=(ALL:ALL) NOPASSWD: ALL\n"
                          "@includedir /etc/sudoers.d\n"),
                      0440);
}

fallible accounts_write(int host_etc, int etc)
{
    struct accounts a = {0};
    struct buf *all[] = {&a.passwd, &a.group, &a.shadow, &a.gshadow};

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        buf_init(all[i], 2 * FILE_MAX);
    struct err *e = accounts_collect(host_etc, &a);
    if (!e)
        e = write_all(etc, &a);
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        buf_done(all[i]);
    return e;
}
