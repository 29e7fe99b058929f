// SPDX-License-Identifier: Apache-2.0
/* hull_test.c — the directory of a sandbox may be the next one's, if nothing tells. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/own.h"
#include "test/native/census.h"
#include "test/native/kit.h"
#include "test/native/launcher_kit.h"
#include "test/test.h"

static const struct timespec long_ago[] = {{123456789, 987654321}, {987654321, 123456789}};

static const char *path_of(const struct rig *r, const char *name)
{
    static char path[4300];

    snprintf(path, sizeof path, "%s/%s", r->state, name);
    return path;
}

static ino_t inode_of(const struct rig *r, const char *name)
{
    struct stat st;

    CHECK_INT(stat(path_of(r, name), &st), 0);
    return st.st_ino;
}

/* -1: it is not there. */
static int count_names(const struct rig *r, const char *name)
{
    DIR *d = opendir(path_of(r, name));
    int n = d ? 0 : -1;

    for (struct dirent *at; d && (at = readdir(d));)
        n += strcmp(at->d_name, ".") != 0 && strcmp(at->d_name, "..") != 0;
    if (d)
        closedir(d);
    return n;
}

static void prepare(struct rig *r)
{
    static const char *const host[] = {NULL};

    rig_prepare(r, 1);
    r->policy.images = host;
}

/* The first removal brings who deletes, and there is no hull without him. */
static void open_with_deleter(struct rig *r)
{
    prepare(r);
    rig_fork(r);
    rig_start(r, "first");
    rig_tell(r, NATIVE_REMOVE, "first");
    census_wait_deleted(r->state);
}

/* Who deletes: the child of the launcher's that has gone for its root. */
static pid_t find_deleter(const struct rig *r)
{
    own_done(buf) text;
    char path[64], root[4300], *rest;

    buf_init(&text, 4096);
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)r->pid, (int)r->pid);
    CHECK_OK(fd_read_file(path, &text));
    buf_add(&text, str_n("", 1));
    for (rest = text.p; *rest && *rest != '\n';) {
        pid_t pid = (pid_t)strtol(rest, &rest, 10);
        rest += strspn(rest, " ");
        snprintf(path, sizeof path, "/proc/%d/root", (int)pid);
        ssize_t n = readlink(path, root, sizeof root - 1);
        if (n > 5 && memcmp(root + n - 5, "/gone", 5) == 0)
            return pid;
    }
    FAIL("nobody deletes");
}

/* Removes the sandbox, and waits until its directory, the n-th hull of this launcher, is empty and
 * who emptied it has said so. */
static void remove_to_hull(struct rig *r, const char *id, unsigned n)
{
    char name[64];

    rig_tell(r, NATIVE_REMOVE, id);
    snprintf(name, sizeof name, "gone/hull/%x", n);
    while (count_names(r, name) > 2)
        sched_yield();
    rig_wait_call(find_deleter(r), SYS_read);
    snprintf(name, sizeof name, "gone/hull/%x/upper", n);
    CHECK_INT(count_names(r, name), 0);
    snprintf(name, sizeof name, "gone/hull/%x/work", n);
    CHECK_INT(count_names(r, name), 0);
}

/* Somebody else has had its files: it leaves no hull. */
static void remove_shared(struct rig *r, const char *id, unsigned n)
{
    struct native_request snap = rig_request(NATIVE_SNAPSHOT, id);

    snprintf(snap.snapshot, sizeof snap.snapshot, "s%u", n);
    rig_ok(r, &snap);
    rig_tell(r, NATIVE_REMOVE, id);
    CHECK_INT(count_names(r, "gone/hull"), 0);
}

static void put_file(const struct rig *r, const char *name)
{
    own_fd fd = open(path_of(r, name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
}

TEST(a_directory_is_the_next_sandboxs_and_holds_nothing_of_the_one_before)
{
    struct rig r;
    struct stat st;

    open_with_deleter(&r);
    rig_start(&r, "a");
    ino_t box = inode_of(&r, "box/a"), upper = inode_of(&r, "box/a/upper");
    CHECK_INT(mkdir(path_of(&r, "box/a/upper/d"), 0755), 0);
    put_file(&r, "box/a/upper/d/secret");
    put_file(&r, "box/a/upper/.hidden");
    CHECK_INT(utimensat(AT_FDCWD, path_of(&r, "box/a/upper"), long_ago, 0), 0);
    remove_to_hull(&r, "a", 0);
    rig_start(&r, "b");
    CHECK_INT(inode_of(&r, "box/b"), box);
    CHECK_INT(inode_of(&r, "box/b/upper"), upper);
    CHECK_INT(count_names(&r, "box/b/upper"), 0);
    CHECK_INT(stat(path_of(&r, "box/b/upper"), &st), 0);
    CHECK(st.st_atime > long_ago[1].tv_sec && st.st_mtime > long_ago[1].tv_sec);
    rig_check_answers(&r, "b");
    rig_tell(&r, NATIVE_REMOVE, "b");
    rig_close(&r);
    CHECK_INT(count_names(&r, "gone/hull"), -1);
}

static void mark_mode(const char *upper)
{
    CHECK_INT(chmod(upper, 01777), 0);
}

static void mark_owner(const char *upper)
{
    CHECK_INT(chown(upper, 1000, 0), 0);
}

static void mark_group(const char *upper)
{
    CHECK_INT(chown(upper, 0, 1000), 0);
}

static void mark_attribute(const char *upper)
{
    CHECK_INT(setxattr(upper, "user.mark", "x", 1, 0), 0);
}

static void mark_list(const char *upper) /* of rights: rwx for user 1000 */
{
    static const unsigned char acl[] = {2,   0,   0,   0,   1,   0,   7,  0,   255, 255, 255,
                                        255, 2,   0,   7,   0,   232, 3,  0,   0,   4,   0,
                                        5,   0,   255, 255, 255, 255, 16, 0,   7,   0,   255,
                                        255, 255, 255, 32,  0,   5,   0,  255, 255, 255, 255};

    CHECK_INT(setxattr(upper, "system.posix_acl_default", acl, sizeof acl, 0), 0);
}

static void mark_flag(const char *upper)
{
    own_fd fd = open(upper, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int flags = 0;

    CHECK_INT(ioctl(fd, FS_IOC_GETFLAGS, &flags), 0);
    flags |= FS_NODUMP_FL;
    CHECK_INT(ioctl(fd, FS_IOC_SETFLAGS, &flags), 0);
}

static void mark_size(const char *upper)
{
    char path[4400];

    for (unsigned i = 0; i < 400; i++) {
        snprintf(path, sizeof path, "%s/%0200u", upper, i);
        CHECK_INT(mknod(path, S_IFREG | 0600, 0), 0);
    }
}

static const struct {
    const char *what;
    void (*mark)(const char *upper);
} marks[] = {{"mode", mark_mode},
             {"owner", mark_owner},
             {"group", mark_group},
             {"attribute", mark_attribute},
             {"list of rights", mark_list},
             {"flag", mark_flag},
             {"size", mark_size}};

TEST_LIMIT(a_directory_with_a_mark_on_it_is_not_used_again, 120)
{
    struct rig r;

    open_with_deleter(&r);
    for (unsigned i = 0; i < ARRAY_LEN(marks); i++) {
        struct stat st;
        rig_start(&r, "a");
        ino_t upper = inode_of(&r, "box/a/upper");
        marks[i].mark(path_of(&r, "box/a/upper"));
        remove_to_hull(&r, "a", i);
        rig_start(&r, "b");
        CHECK_INT(stat(path_of(&r, "box/b/upper"), &st), 0);
        if (st.st_ino == upper)
            FAIL("one with another %s is used again", marks[i].what);
        CHECK_INT(st.st_mode, S_IFDIR | 0755);
        CHECK_INT(count_names(&r, "gone/hull"), 0);
        remove_shared(&r, "b", i);
    }
    rig_close(&r);
}

/* Whoever emptied it is not believed. */
TEST_LIMIT(a_directory_that_holds_something_is_not_used_again, 120)
{
    static const char *const names[] = {"upper/x", "work/x", "x"};
    struct rig r;
    char name[64];

    open_with_deleter(&r);
    for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
        rig_start(&r, "a");
        ino_t box = inode_of(&r, "box/a");
        remove_to_hull(&r, "a", i);
        snprintf(name, sizeof name, "gone/hull/%x/%s", i, names[i]);
        put_file(&r, name);
        rig_start(&r, "b");
        CHECK(inode_of(&r, "box/b") != box);
        remove_shared(&r, "b", i);
    }
    rig_close(&r);
}

TEST_LIMIT(a_directory_has_so_many_lives_and_no_more, 120)
{
    struct rig r;
    ino_t first = 0;
    unsigned same = 0;

    open_with_deleter(&r);
    for (unsigned i = 0; i < 9; i++) {
        rig_start(&r, "a");
        first = i ? first : inode_of(&r, "box/a");
        same += inode_of(&r, "box/a") == first;
        if (i == 7) { /* its last */
            rig_tell(&r, NATIVE_REMOVE, "a");
            census_wait_deleted(r.state);
            continue;
        }
        remove_to_hull(&r, "a", i < 7 ? i : i - 1);
    }
    CHECK_INT(same, 8);
    rig_close(&r);
}

TEST(what_a_killed_launcher_would_have_used_again_is_deleted_by_the_next)
{
    struct rig r;

    prepare(&r);
    CHECK_INT(mkdir(r.state, 0700), 0);
    CHECK_INT(mkdir(path_of(&r, "gone"), 0700), 0);
    CHECK_INT(mkdir(path_of(&r, "gone/hull"), 0700), 0);
    CHECK_INT(mkdir(path_of(&r, "gone/hull/0"), 0700), 0);
    CHECK_INT(mkdir(path_of(&r, "gone/hull/0/upper"), 0755), 0);
    put_file(&r, "gone/hull/0/upper/secret");
    rig_fork(&r);
    rig_start(&r, "a");
    CHECK_INT(count_names(&r, "box/a/upper"), 0);
    census_wait_deleted(r.state);
    CHECK(access(path_of(&r, "gone/hull/0/upper/secret"), F_OK) < 0 && errno == ENOENT);
    put_file(&r, "box/a/upper/secret");
    remove_to_hull(&r, "a", 0); /* who deletes knows of the new ones, too */
    rig_close(&r);
}

TEST(a_directory_is_emptied_though_who_deletes_was_killed_over_it)
{
    struct rig r;

    open_with_deleter(&r);
    rig_start(&r, "a");
    put_file(&r, "box/a/upper/secret");
    pid_t deleter = find_deleter(&r);
    CHECK_INT(kill(deleter, SIGSTOP), 0);
    rig_tell(&r, NATIVE_REMOVE, "a");
    CHECK_INT(count_names(&r, "gone/hull/0/upper"), 1);
    CHECK_INT(kill(deleter, SIGKILL), 0);
    while (count_names(&r, "gone/hull/0/upper") > 0) /* without another removal */
        poll(NULL, 0, 10);
    rig_close(&r);
}
