// SPDX-License-Identifier: Apache-2.0
#include "host/rootfs/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "host/tree/inner.h"
#include "host/tree/tree.h"
#include "test/test.h"

struct kit {
    int dir, host, state;
    struct rootfs r;
};

static void dir_at(int dir, const char *path, mode_t mode)
{
    own_fd fd = -1;

    CHECK_OK(fd_make_dirs(dir, str_of(path), 0755, &fd));
    CHECK(fchmod(fd, mode) == 0);
}

static void file_at(int dir, const char *path, const char *text, mode_t mode)
{
    own_fd fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    CHECK(fd >= 0);
    CHECK_OK(fd_write_all(fd, str_of(text)));
    CHECK(fchmod(fd, mode) == 0);
}

static void fill_host(int host)
{
    static const char *const dirs[] = {"usr/bin",
                                       "usr/share/secrets",
                                       "usr/lib",
                                       "etc/ssl/certs",
                                       "etc/ssl/private",
                                       "etc/apt/auth.conf.d",
                                       "etc/skel",
                                       "root",
                                       "home/ann",
                                       "opt",
                                       "srv",
                                       "var/lib/dpkg/info",
                                       "var/lib/apt/lists/partial",
                                       "var/lib/croft"};

    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        dir_at(host, dirs[i], 0755);
    CHECK(fchmodat(host, "usr/share/secrets", 0750, 0) == 0);
    CHECK(symlinkat("usr/bin", host, "bin") == 0 && symlinkat("usr/lib", host, "lib") == 0);
    file_at(host, "usr/bin/tool", "tool", 04755);
    file_at(host, "usr/bin/helper", "helper", 04750);
    file_at(host, "usr/share/secrets/open", "x", 0644);
    file_at(host, "etc/passwd",
            "root:x:0:0:The Boss:/root:/bin/zsh\ntoor:x:0:0::/root:/bin/sh\n"
            "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\nann:x:1000:1000:Ann:/home/ann:/bin/"
            "sh\n+nis::::::\nbroken:x:7\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false",
            0644);
    file_at(host, "etc/group", "root:x:0:\nsudo:x:27:ann\nann:x:1000:\nadm:x:4:ann\n", 0644);
    file_at(host, "etc/shadow", "root:$y$secret:1::::::\n", 0640);
    file_at(host, "etc/sudoers", "ann ALL=(ALL) ALL\n", 0440);
    file_at(host, "etc/machine-id", "0123456789abcdef0123456789abcdef\n", 0444);
    file_at(host, "etc/profile", "profile", 0644);
    file_at(host, "etc/services", "services", 0600);
    file_at(host, "etc/my-server.conf", "password", 0644);
    file_at(host, "etc/apt/sources.list", "deb x", 0644);
    file_at(host, "etc/apt/auth.conf.d/mirror", "password", 0644);
    file_at(host, "etc/ssl/certs/ca.crt", "ca", 0644);
    file_at(host, "etc/ssl/private/key", "key", 0644);
    file_at(host, "etc/skel/.bashrc", "rc", 0644);
    CHECK(symlinkat("/usr/share/zoneinfo/UTC", host, "etc/localtime") == 0);
    file_at(host, "root/.ssh", "key", 0644);
    file_at(host, "home/ann/diary", "x", 0644);
    file_at(host, "var/lib/dpkg/status", "Package: x\n", 0644);
    file_at(host, "var/lib/dpkg/lock", "", 0644);
    file_at(host, "var/lib/dpkg/info/x.list", "/.\n", 0644);
    file_at(host, "var/lib/apt/lists/Packages", "P", 0644);
}

static void kit_init(struct kit *k)
{
    k->dir = test_dir_fd();
    umask(022);
    CHECK_OK(fd_make_dirs(k->dir, STR("host"), 0755, &k->host));
    CHECK_OK(fd_make_dirs(k->dir, STR("state"), 0700, &k->state));
    fill_host(k->host);
    rootfs_init(&k->r);
}

static void kit_done(struct kit *k)
{
    rootfs_done(&k->r);
    close(k->host);
    close(k->state);
    close(k->dir);
}

static void open_again(struct kit *k)
{
    rootfs_done(&k->r);
    CHECK_OK(rootfs_host_open_at(k->state, k->host, &k->r));
}

static struct str text_of(const struct kit *k, const char *path, struct buf *b)
{
    own_fd fd = openat(k->r.mounts[0].lowers[0], path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        FAIL("%s: %m", path);
    buf_reset(b);
    CHECK_OK(fd_read_all(fd, b));
    return buf_str(b);
}

static bool is_there(const struct kit *k, const char *path)
{
    struct stat st;

    return fstatat(k->r.mounts[0].lowers[0], path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

TEST(rootfs_host_is_one_overlay_and_a_second_for_usr_where_it_was_or_must_be)
{
    struct kit k;
    bool root = geteuid() == 0;

    kit_init(&k);
    open_again(&k);
    CHECK_INT(k.r.mount_count, root ? 1 : 2);
    CHECK(k.r.joined == root && k.r.mounts[0].redirects == root);
    CHECK_OK(rootfs_split(&k.r));
    CHECK(!k.r.joined);
    CHECK_OK(rootfs_split(&k.r)); /* it is */
    CHECK_INT(k.r.mount_count, 2);
    CHECK_STR(k.r.mounts[0].where, "");
    CHECK_STR(k.r.mounts[0].upper, "upper");
    CHECK_INT(k.r.mounts[0].lower_count, root ? 2 : 1);
    CHECK_STR(k.r.mounts[1].where, "usr");
    CHECK_STR(k.r.mounts[1].work, "work-usr");
    CHECK_INT(k.r.mounts[1].lower_count, root ? 3 : 1);
    CHECK(k.r.mounts[1].redirects == root);
    CHECK(is_there(&k, "bin") && is_there(&k, "workspace") && is_there(&k, "proc"));
    kit_done(&k);
}

#define ASKS "test -r x || eval \"$(dircolors -b)\"\n"

TEST(rootfs_host_asks_dircolors_once_for_all_shells)
{
    struct kit k;
    own_done(buf) b;

    buf_init(&b, 1 << 16);
    kit_init(&k);
    file_at(k.host, "etc/skel/.bashrc", "a=1\n" ASKS "b=2\n", 0644);
    file_at(k.host, "usr/bin/dircolors",
            "#!/bin/sh\nprintf \"LS_COLORS='%s%s';\\nexport LS_COLORS\\n\" $TERM $1\n", 0755);
    open_again(&k);
    CHECK_STR(text_of(&k, "root/.bashrc", &b), "a=1\ntest -r x || case $TERM in xterm-256color)\n"
                                               "LS_COLORS='xterm-256color-b';\nexport LS_COLORS\n"
                                               ";;*)eval \"$(dircolors -b)\";;esac\nb=2\n");
    CHECK_STR(text_of(&k, "etc/skel/.bashrc", &b), "a=1\n" ASKS "b=2\n");
    kit_done(&k);
}

TEST(rootfs_host_takes_no_more_than_a_table_from_dircolors)
{
    static const char *const answers[] = {
        "echo \"LS_COLORS='a';rm -r x;'';\"\necho export LS_COLORS",
        "echo rm -r x",
        "exit 1",
        "kill -9 $$",
        "echo \"LS_COLORS='a';\"\necho export LS_COLORS\nexit 1",
        "while :; do echo \"LS_COLORS='a';\"; done",
    };
    own_done(buf) b;

    struct kit k;
    char script[200];

    buf_init(&b, 1 << 16);
    kit_init(&k);
    file_at(k.host, "etc/skel/.bashrc", ASKS, 0644);
    for (size_t i = 0; i <= ARRAY_LEN(answers); i++) { /* at first there is none at all */
        open_again(&k);
        CHECK_STR(text_of(&k, "root/.bashrc", &b), ASKS);
        if (i == ARRAY_LEN(answers))
            break;
        snprintf(script, sizeof script, "#!/bin/sh\n%s\n", answers[i]);
        file_at(k.host, "usr/bin/dircolors", script, 0755);
    }
    kit_done(&k);
}

TEST(rootfs_host_takes_what_is_on_the_list_and_nothing_else)
{
    struct kit k;
    static const char *const there[] = {"etc/profile",
                                        "etc/localtime",
                                        "etc/ssl/certs/ca.crt",
                                        "etc/apt/sources.list",
                                        "var/lib/dpkg/info/x.list",
                                        "var/lib/apt/lists/Packages",
                                        "root/.bashrc",
                                        "home/openhands/.bashrc",
                                        "var/cache/apt/archives/partial"};
    static const char *const absent[] = {
        "etc/services",        "etc/my-server.conf", "etc/ssl/private",
        "etc/apt/auth.conf.d", "root/.ssh",          "home/ann",
        "var/lib/croft",       "var/lib/dpkg/lock",  "usr/bin/tool"};

    kit_init(&k);
    open_again(&k);
    for (size_t i = 0; i < ARRAY_LEN(there); i++) {
        if (!is_there(&k, there[i]))
            FAIL("%s is missing", there[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(absent); i++) {
        if (is_there(&k, absent[i]))
            FAIL("%s is there", absent[i]);
    }
    kit_done(&k);
}

TEST(rootfs_host_accounts_have_no_person_and_no_password)
{
    struct kit k;
    own_done(buf) b = {.limit_bytes = 65536};

    kit_init(&k);
    open_again(&k);
    CHECK_STR(text_of(&k, "etc/passwd", &b),
              "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
              "nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"
              "openhands:x:1000:1000::/home/openhands:/bin/bash\n");
    CHECK_STR(text_of(&k, "etc/group", &b),
              "root:x:0:\nsudo:x:27:openhands\nadm:x:4:\nopenhands:x:1000:\n");
    CHECK_HAS(text_of(&k, "etc/shadow", &b), "root:*:19000:");
    CHECK(str_find(text_of(&k, "etc/shadow", &b), STR("secret")) < 0);
    CHECK_HAS(text_of(&k, "etc/sudoers", &b), "%sudo ALL=(ALL:ALL) NOPASSWD: ALL\n");
    CHECK(str_find(text_of(&k, "etc/sudoers", &b), STR("ann")) < 0);
    CHECK(str_find(text_of(&k, "etc/machine-id", &b), STR("0123456789abcdef")) < 0);
    CHECK_INT(b.len, 33);
    kit_done(&k);
}

static bool is_whiteout(int dir, const char *path)
{
    struct stat st;

    return fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISCHR(st.st_mode) &&
           st.st_rdev == 0;
}

TEST(rootfs_host_hides_what_not_everybody_may_read)
{
    struct kit k;
    struct stat st;

    kit_init(&k);
    if (geteuid() != 0)
        SKIP("needs root");
    CHECK(fchownat(k.host, "usr/share", 3, 4, 0) == 0);
    open_again(&k);
    int base = k.r.mounts[0].lowers[0];
    CHECK(is_whiteout(base, "usr/bin/helper"));
    CHECK(is_whiteout(base, "usr/share/secrets"));
    CHECK(faccessat(base, "usr/bin/tool", F_OK, 0) < 0);
    CHECK(fstatat(base, "usr/share", &st, 0) == 0);
    CHECK_INT(st.st_uid, 3);
    CHECK_INT(st.st_mode & 07777, 0755);
    kit_done(&k);
}

TEST(rootfs_host_is_made_once_and_again_when_the_host_changed)
{
    struct kit k;
    char first[ROOTFS_ID_LEN];
    own_done(buf) b = {.limit_bytes = 65536};

    kit_init(&k);
    open_again(&k);
    strcpy(first, k.r.id);
    open_again(&k);
    CHECK_STR(k.r.id, first);
    file_at(k.host, "etc/profile", "other", 0644);
    open_again(&k);
    CHECK(strcmp(k.r.id, first) != 0);
    CHECK_STR(text_of(&k, "etc/profile", &b), "other");
    kit_done(&k);
}

/* Those are copied, for /usr is part of the root's own layer. */
TEST(rootfs_host_has_the_files_at_the_top_of_usr_as_they_are_now)
{
    struct kit k;
    own_done(buf) b = {.limit_bytes = 65536};

    kit_init(&k);
    if (geteuid() != 0)
        SKIP("an ordinary user's /usr is an overlay of its own");
    file_at(k.host, "usr/note", "one", 0644);
    file_at(k.host, "usr/large", "", 0644);
    own_fd large = openat(k.host, "usr/large", O_WRONLY | O_CLOEXEC);
    CHECK_INT(ftruncate(large, 17 << 20), 0);
    open_again(&k);
    CHECK_STR(text_of(&k, "usr/note", &b), "one");
    CHECK(!is_there(&k, "usr/large")); /* a sandbox starts all the same */
    own_fd note = openat(k.host, "usr/note", O_WRONLY | O_CLOEXEC);
    CHECK_INT(write(note, "two", 3), 3); /* in its place: no directory changes */
    open_again(&k);
    CHECK_STR(text_of(&k, "usr/note", &b), "two");
    kit_done(&k);
}

static unsigned generations(const struct kit *k)
{
    struct stat st;

    CHECK(fstatat(k->state, "rootfs", &st, 0) == 0);
    return (unsigned)st.st_nlink - 2;
}

TEST(rootfs_host_lets_go_of_old_layers_nobody_uses)
{
    struct kit k;
    struct rootfs held;
    char path[300];

    kit_init(&k);
    dir_at(k.state, "box/one", 0700);
    CHECK_OK(rootfs_host_open_at(k.state, k.host, &held));
    file_at(k.host, "etc/profile", "second", 0644);
    open_again(&k);
    CHECK_INT(generations(&k), 2); /* the first is held */
    CHECK(symlinkat(held.id, k.state, "box/one/root") == 0);
    rootfs_done(&held);
    file_at(k.host, "etc/profile", "third", 0644);
    open_again(&k);
    CHECK_INT(generations(&k), 2); /* the first is noted, the second went */
    snprintf(path, sizeof path, "%s/state/box/one/root", test_dir());
    CHECK(unlink(path) == 0);
    file_at(k.host, "etc/profile", "fourth", 0644);
    rootfs_done(&k.r);
    open_again(&k);
    CHECK_INT(generations(&k), 1);
    kit_done(&k);
}

/* Holds the layers as who removes them does, until they are being opened. */
static _Noreturn void remove_under_the_hand(const struct kit *k, int told)
{
    char path[700], event[4096];
    int inotify = inotify_init1(IN_CLOEXEC);

    own_fd dir = openat(k->state, "rootfs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own_fd gen = openat(dir, k->r.id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof path, "%s/state/rootfs/%s", test_dir(), k->r.id);
    if (gen < 0 || flock(gen, LOCK_EX) < 0 || inotify_add_watch(inotify, path, IN_OPEN) < 0 ||
        write(told, "x", 1) != 1 || read(inotify, event, sizeof event) <= 0)
        _exit(1);
    own_done(buf) names = {0};
    size_t count = 0;
    struct err *e = tree_read_names(dir, 65536, &names, &count);
    for (const char *name = names.p; !e && count--; name += strlen(name) + 1)
        if (strncmp(name, "host-", 5) == 0)
            e = tree_remove(dir, name);
    if (!e)
        e = tree_remove(dir, k->r.id);
    _exit(e != NULL);
}

TEST(rootfs_host_is_made_again_when_it_is_removed_while_it_is_opened)
{
    struct kit k;
    char first[ROOTFS_ID_LEN], byte;
    int told[2], status;

    kit_init(&k);
    open_again(&k);
    strcpy(first, k.r.id);
    rootfs_done(&k.r); /* ours to hold no more */
    strcpy(k.r.id, first);
    CHECK(pipe(told) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (!pid)
        remove_under_the_hand(&k, told[1]);
    close(told[1]);
    CHECK_INT(read(told[0], &byte, 1), 1);
    close(told[0]);
    open_again(&k);
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK_INT(status, 0);
    CHECK(strcmp(k.r.id, first) != 0);
    CHECK(is_there(&k, "etc/passwd"));
    kit_done(&k);
}

TEST(rootfs_host_refresh_hides_what_became_private_deep_inside)
{
    struct kit k;
    char first[ROOTFS_ID_LEN];

    kit_init(&k);
    if (geteuid() != 0)
        SKIP("needs root");
    dir_at(k.host, "usr/lib/deep/er", 0755);
    file_at(k.host, "usr/lib/deep/er/key", "x", 0644);
    open_again(&k);
    strcpy(first, k.r.id);
    CHECK_OK(rootfs_host_refresh_at(k.state, k.host));
    open_again(&k);
    CHECK_STR(k.r.id, first); /* nothing more to hide: the same layers */
    CHECK(fchmodat(k.host, "usr/lib/deep/er/key", 0600, 0) == 0);
    open_again(&k);
    CHECK_STR(k.r.id, first); /* a look does not see it */
    CHECK_OK(rootfs_host_refresh_at(k.state, k.host));
    open_again(&k);
    CHECK(strcmp(k.r.id, first) != 0);
    CHECK(is_whiteout(k.r.mounts[0].lowers[0], "usr/lib/deep/er/key"));
    kit_done(&k);
}

TEST(rootfs_host_is_made_by_one_of_many_who_ask_at_once)
{
    struct kit k;
    pid_t pids[4];
    int status;

    kit_init(&k);
    for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
        pids[i] = fork();
        CHECK(pids[i] >= 0);
        if (!pids[i]) {
            struct err *e = rootfs_host_open_at(k.state, k.host, &k.r);
            _exit(e != NULL);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
        CHECK(waitpid(pids[i], &status, 0) == pids[i]);
        CHECK_INT(status, 0);
    }
    open_again(&k);
    struct stat st;
    CHECK(fstatat(k.state, "rootfs", &st, 0) == 0);
    CHECK_INT(st.st_nlink, 3); /* ".", ".." and one generation */
    kit_done(&k);
}

TEST(rootfs_host_leaves_nothing_when_any_step_fails)
{
    struct kit k;

    kit_init(&k);
    for (unsigned n = 1;; n += 7) {
        fault_at(n);
        struct err *e = rootfs_host_open_at(k.state, k.host, &k.r);
        bool fired = fault_fired();
        fault_at(0);
        rootfs_done(&k.r);
        if (!fired) {
            CHECK_OK(e);
            break;
        }
        struct stat st;
        if (e && str_starts(str_of(err_text(e)), STR("remove "))) /* of another one: next time */
            CHECK_OK(rootfs_host_prune(k.state));
        err_free(e); /* some steps may fail without harm */
        CHECK(fstatat(k.state, "rootfs", &st, 0) < 0 || st.st_nlink <= 3);
        if (!e) {
            CHECK(st.st_nlink == 3);
            /* of the machine itself nothing is current here: all goes */
            CHECK_OK(rootfs_host_prune(k.state));
        }
    }
    kit_done(&k);
}

TEST(rootfs_host_of_an_ordinary_user_needs_no_whiteouts)
{
    struct kit k;

    kit_init(&k);
    if (geteuid() == 0) {
        CHECK(fchownat(k.state, "", 65534, 65534, AT_EMPTY_PATH) == 0);
        CHECK(chmod(test_dir(), 0711) == 0);
        CHECK(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
    }
    open_again(&k);
    CHECK_INT(k.r.mounts[1].lower_count, 1);
    CHECK(is_there(&k, "etc/passwd") && is_there(&k, "etc/sudoers"));
    kit_done(&k);
}
