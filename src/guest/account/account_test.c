// SPDX-License-Identifier: Apache-2.0
/* In a directory of the test's own: nothing of this machine's users is touched. */
#include "guest/account/account.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/account/tree.h"
#include "test/test.h"

static char etc[300], homes[300];

static void put(const char *name, const char *text, mode_t mode)
{
    char path[400];

    snprintf(path, sizeof path, "%s/%s", etc, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && fchmod(fd, mode) == 0);
    CHECK_OK(fd_write_all(fd, str_of(text)));
    close(fd);
}

static struct account_place place(void)
{
    char skel[400];

    if (geteuid() != 0)
        SKIP("only root can give files away");
    snprintf(etc, sizeof etc, "%s/etc", test_dir());
    snprintf(homes, sizeof homes, "%s/home", test_dir());
    snprintf(skel, sizeof skel, "%s/skel", etc);
    CHECK_INT(mkdir(etc, 0755), 0);
    CHECK_INT(mkdir(skel, 0755), 0);
    put("passwd", "root:x:0:0:root:/root:/bin/bash\nnode:x:1000:1000::/home/node:/bin/sh", 0644);
    return (struct account_place){etc, homes};
}

static struct str text_of(const char *name, struct buf *into)
{
    char path[400];

    snprintf(path, sizeof path, "%s/%s", etc, name);
    buf_init(into, 1u << 20);
    CHECK_OK(fd_read_file(path, into));
    return buf_str(into);
}

TEST(account_is_written_into_every_file_that_is_there)
{
    struct account_place p = place();
    own_done(buf) b;
    struct passwd_user u;
    struct stat st;
    char path[500];

    put("group", "root:x:0:\nsudo:x:27:bo\nnode:x:1000:\n", 0644);
    put("gshadow", "root:*::\nsudo:*::\n", 0640);
    put("shadow", "root:*:19000:0:99999:7:::\n", 0640);
    put("sudoers", "root ALL=(ALL:ALL) ALL\n@includedir /etc/sudoers.d\n", 0440);
    put("skel/.bashrc", "# hello\n", 0640);
    CHECK_OK(account_make(&p, STR("openhands"), 1500, &u));
    CHECK_INT(u.uid, 1500);
    CHECK_INT(u.gid, 0);
    CHECK_OK(passwd_by_name(etc, STR("openhands"), &u));
    CHECK_STR(u.shell, "/bin/bash");
    CHECK_STR(text_of("group", &b), "root:x:0:\nsudo:x:27:bo,openhands\nnode:x:1000:\n");
    buf_done(&b);
    CHECK_STR(text_of("gshadow", &b), "root:*::\nsudo:*::openhands\n");
    buf_done(&b);
    CHECK_HAS(text_of("shadow", &b), "99999:7:::\nopenhands:!:");
    buf_done(&b);
    CHECK_STR(text_of("sudoers", &b), "root ALL=(ALL:ALL) ALL\n@includedir /etc/sudoers.d\n%sudo "
                                      "ALL=(ALL) NOPASSWD:ALL\n");
    snprintf(path, sizeof path, "%s/sudoers", etc);
    CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0440);
    snprintf(path, sizeof path, "%s/shadow", etc);
    CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0640);
    snprintf(path, sizeof path, "%s/openhands", homes);
    CHECK(stat(path, &st) == 0 && st.st_uid == 1500 && (st.st_mode & 07777) == 0755);
    snprintf(path, sizeof path, "%s/openhands/.bashrc", homes);
    CHECK(stat(path, &st) == 0 && st.st_uid == 1500 && (st.st_mode & 07777) == 0640);
}

TEST(account_needs_no_sudo_no_shadow_no_skel)
{
    struct account_place p = place();
    struct passwd_user u;
    own_done(buf) b;
    char path[400];

    snprintf(path, sizeof path, "%s/skel", etc);
    CHECK_INT(rmdir(path), 0);
    CHECK_OK(account_make(&p, STR("dev"), 1000, &u));
    CHECK_INT(u.uid, 1001); /* 1000 is node's */
    CHECK_HAS(text_of("passwd", &b),
              "/home/node:/bin/sh\ndev:x:1001:0::"); /* on a line of its own */
    snprintf(path, sizeof path, "%s/group", etc);
    CHECK(access(path, F_OK) < 0);
}

TEST(account_of_a_number_has_a_name_that_is_free_and_a_rule_of_its_own)
{
    struct account_place p = place();
    struct passwd_user u = {.uid = 10001, .gid = 10002, .home = "/home/10001"}, v = u;
    own_done(buf) b;

    put("group", "root:x:0:\nsudo:x:27:bo\n", 0644);
    put("gshadow", "root:*::\n", 0640);
    put("shadow", "root:*:19000:0:99999:7:::\n", 0640);
    put("sudoers", "root ALL=(ALL:ALL) ALL\n", 0440);
    CHECK_OK(account_of_number(&p, &u));
    CHECK_STR(u.name, "openhands");
    v.uid = 10003;
    CHECK_OK(account_of_number(&p, &v));
    CHECK_STR(v.name, "u10003");
    CHECK_OK(passwd_by_uid(etc, 10001, &u));
    CHECK_STR(u.home, "/home/10001");
    CHECK_STR(text_of("group", &b),
              "root:x:0:\nsudo:x:27:bo\nopenhands:x:10002:\nu10003:x:10002:\n");
    buf_done(&b);
    CHECK_STR(text_of("gshadow", &b), "root:*::\nopenhands:!::\nu10003:!::\n");
    buf_done(&b);
    CHECK_HAS(text_of("shadow", &b), "99999:7:::\nopenhands:!:");
    buf_done(&b);
    CHECK_STR(text_of("sudoers", &b), "root ALL=(ALL:ALL) ALL\nopenhands ALL=(ALL) NOPASSWD:ALL\n"
                                      "u10003 ALL=(ALL) NOPASSWD:ALL\n");
}

TEST(account_of_a_number_is_not_made_under_a_name_that_is_anothers)
{
    static const char *const taken[] = {"openhands:x:7:7::/:/bin/sh\nu10001:x:8:8::/:/bin/sh\n",
                                        "openhands:broken\nu10001:\n"};
    struct account_place p = place();
    struct passwd_user u = {.uid = 10001, .gid = 10001, .home = "/home/10001"};
    own_done(buf) b;
    char path[400];

    put("sudoers", "root ALL=(ALL:ALL) ALL\n", 0440);
    for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
        put("passwd", taken[i], 0644);
        CHECK_ERR(account_of_number(&p, &u), ERR_CONFLICT, "u10001");
    }
    snprintf(path, sizeof path, "%s/passwd", etc);
    CHECK_INT(unlink(path), 0);
    CHECK_ERR(account_of_number(&p, &u), ERR_NOT_FOUND, "passwd");
    CHECK_STR(text_of("sudoers", &b), "root ALL=(ALL:ALL) ALL\n");
}

TEST(account_refuses_names_that_would_break_the_files)
{
    static const char *const bad[] = {
        "",   "-x",  "a:b", "a\nb", "A",
        "9a", "a b", "a/b", "..",   "abcdefghijklmnopqrstuvwxyzabcdefg"};
    struct account_place p = place();
    struct passwd_user u;
    own_done(buf) b;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_ERR(account_make(&p, str_of(bad[i]), 1500, &u), ERR_INVALID, "--username");
    CHECK_STR(text_of("passwd", &b),
              "root:x:0:0:root:/root:/bin/bash\nnode:x:1000:1000::/home/node:/bin/sh");
}

TEST(account_is_whole_or_not_there_whatever_fails)
{
    struct account_place p = place();
    struct passwd_user u;

    put("group", "sudo:x:27:\n", 0644);
    put("shadow", "root:*:19000:0:99999:7:::\n", 0640);
    put("skel/.profile", "# x\n", 0644);
    for (unsigned n = 1;; n++) {
        unsigned fds = test_open_fds();
        fault_at(n);
        struct err *e = account_make(&p, STR("dev"), 1500, &u);
        bool fired = fault_fired();
        fault_at(0);
        CHECK_INT(test_open_fds(), fds);
        struct err *missing = passwd_by_name(etc, STR("dev"), &u);
        /* only the sync of its directory comes after the line in passwd */
        if (e && !missing && !str_starts(str_of(err_text(e)), STR("write 'passwd'")))
            FAIL("call %u failed (%s), yet the user is there", n, err_text(e));
        bool there = !missing;
        err_free(missing);
        err_free(e);
        if (!fired) {
            CHECK(there);
            return;
        }
        if (there)
            put("passwd", "root:x:0:0:root:/root:/bin/bash\n", 0644);
    }
}

TEST(tree_is_given_without_following_links)
{
    char path[500], outside[500];
    struct tree_count count;
    struct stat st;

    place();
    snprintf(outside, sizeof outside, "%s/passwd", etc);
    CHECK_INT(mkdir(homes, 0755), 0);
    snprintf(path, sizeof path, "%s/a", homes);
    CHECK_INT(mkdir(path, 0755), 0);
    snprintf(path, sizeof path, "%s/a/link", homes);
    CHECK_INT(symlink(outside, path), 0);
    snprintf(path, sizeof path, "%s/up", homes);
    CHECK_INT(symlink(etc, path), 0);
    int dir = open(homes, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tree_give(dir, 1500, 7, false, &count);
    CHECK_INT(count.seen, 3);
    CHECK_INT(count.failed, 0);
    CHECK(stat(outside, &st) == 0 && st.st_uid == 0);
    CHECK(lstat(path, &st) == 0 && st.st_uid == 1500 && st.st_gid == 7);
    snprintf(path, sizeof path, "%s/a", homes);
    CHECK(stat(path, &st) == 0 && st.st_uid == 1500);
    close(dir);
}
