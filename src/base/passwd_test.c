// SPDX-License-Identifier: Apache-2.0
#include "base/passwd.h"

#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "test/test.h"

static void put(const char *name, const char *text)
{
    CHECK_OK(fd_replace_file(test_dir_fd(), name, str_of(text), 0644));
}

TEST(passwd_finds_users_by_name_and_number)
{
    struct passwd_user u;

    put("passwd", "# comment\nroot:x:0:0:root:/root:/bin/bash\n\nbad\nwide:x:1:2:::/:x\n"
                  "al:x:1000:100:Al,,,:/home/al:/bin/sh\nsame:x:1000:5::/:/bin/false");
    CHECK_OK(passwd_by_name(test_dir(), STR("al"), &u));
    CHECK_INT(u.uid, 1000);
    CHECK_INT(u.gid, 100);
    CHECK_STR(u.home, "/home/al");
    CHECK_STR(u.shell, "/bin/sh");
    CHECK_OK(passwd_by_uid(test_dir(), 1000, &u));
    CHECK_STR(u.name, "al");
    CHECK_OK(passwd_by_name(test_dir(), STR("same"), &u)); /* a last line without its end */
    CHECK_ERR(passwd_by_name(test_dir(), STR("wide"), &u), ERR_NOT_FOUND, "no user 'wide'");
    CHECK_ERR(passwd_by_name(test_dir(), STR(""), &u), ERR_NOT_FOUND, "no user ''");
    CHECK_ERR(passwd_by_uid(test_dir(), 7, &u), ERR_NOT_FOUND, "number 7");
    CHECK_ERR(passwd_by_uid("/nowhere", 0, &u), ERR_NOT_FOUND, "number 0");
}

TEST(passwd_finds_a_user_and_group_in_the_words_of_an_image)
{
    static const struct {
        const char *text;
        unsigned uid, gid;
    } good[] = {{"al", 1000, 100},  {"1000", 1000, 100},    {"al:www", 1000, 33},
                {"al:7", 1000, 7},  {"1000:www", 1000, 33}, {"77", 77, 0},
                {"77:www", 77, 33}, {"77:88", 77, 88}};
    struct passwd_user u;

    put("passwd", "root:x:0:0:root:/root:/bin/bash\nal:x:1000:100:Al,,,:/home/al:/bin/sh\n");
    put("group", "root:x:0:\nwww:x:33:al\n");
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        CHECK_OK(passwd_find(test_dir(), str_of(good[i].text), &u));
        if (u.uid != good[i].uid || u.gid != good[i].gid)
            FAIL("'%s' is %u:%u", good[i].text, u.uid, u.gid);
    }
    CHECK_ERR(passwd_find(test_dir(), STR("bo"), &u), ERR_NOT_FOUND, "no user 'bo'");
    CHECK_OK(passwd_find(test_dir(), STR("al::www"), &u));
    CHECK_INT(u.also, 34);
    CHECK_OK(passwd_find(test_dir(), STR("7:8:0"), &u));
    CHECK_INT(u.gid, 8);
    CHECK_INT(u.also, 1);
    CHECK_ERR(passwd_find(test_dir(), STR("al:bo"), &u), ERR_NOT_FOUND, "no group 'bo'");
    CHECK_ERR(passwd_find(test_dir(), STR("al:"), &u), ERR_NOT_FOUND, "no group ''");
}

TEST(passwd_refuses_lines_that_would_be_somebody_else)
{
    static const char *const bad[] = {
        "",           ":x:1:1::/:/bin/sh",      "a:x:-1:0::/:",         "a:x:4294967295:0::/:",
        "a:x::0::/:", "a:x:1 :0::/:/bin/false", "a:x:1:1::/:/bin/sh:z", "a:x:1:1:::",
    };
    struct passwd_user u;
    char line[600];

    for (size_t i = 0; i < ARRAY_LEN(bad) - 1; i++)
        if (passwd_parse(str_of(bad[i]), &u))
            FAIL("taken: %s", bad[i]);
    CHECK(passwd_parse(str_of(bad[ARRAY_LEN(bad) - 1]), &u)); /* empty home and shell are fine */
    snprintf(line, sizeof line, "%0100d:x:1:1::/:/bin/sh", 7);
    CHECK(!passwd_parse(str_of(line), &u));
}

TEST(passwd_finds_the_groups_of_a_user)
{
    gid_t gids[PASSWD_GROUPS_MAX], gid;
    size_t n;
    own_done(buf) many;

    put("group", "root:x:0:\nsudo:x:27:bo,al\nals:x:28:als\nvideo:x:44:al\nbad:x::al\n");
    CHECK_OK(passwd_groups(test_dir(), STR("al"), 100, 0, gids, &n));
    CHECK_INT(n, 3);
    CHECK_INT(gids[0], 100);
    CHECK_INT(gids[1], 27);
    CHECK_INT(gids[2], 44);
    CHECK_OK(passwd_groups(test_dir(), STR("al"), 27, 0, gids, &n));
    CHECK_INT(n, 2);
    CHECK_OK(passwd_group(test_dir(), STR("video"), &gid));
    CHECK_INT(gid, 44);
    CHECK_OK(passwd_group(test_dir(), STR("12"), &gid));
    CHECK_INT(gid, 12);
    CHECK_ERR(passwd_group(test_dir(), STR("nope"), &gid), ERR_NOT_FOUND, "no group 'nope'");
    buf_init(&many, 1u << 20);
    for (int i = 0; i < PASSWD_GROUPS_MAX; i++)
        buf_addf(&many, "g%d:x:%d:al\n", i, 200 + i);
    put("group", buf_cstr(&many));
    CHECK_ERR(passwd_groups(test_dir(), STR("al"), 1, 0, gids, &n), ERR_LIMIT, "more than 64");
}

TEST(passwd_agrees_with_libc_about_this_machine)
{
    struct passwd_user u;

    setpwent();
    for (const struct passwd *pw; (pw = getpwent());) {
        struct err *e = passwd_by_name(PASSWD_ETC, str_of(pw->pw_name), &u);
        if (e) { /* from another name service, or longer than we read */
            err_free(e);
            continue;
        }
        CHECK_INT(u.uid, pw->pw_uid);
        CHECK_INT(u.gid, pw->pw_gid);
        CHECK_STR(u.home, pw->pw_dir);
        CHECK_STR(u.shell, pw->pw_shell);
    }
    endpwent();
    CHECK_OK(passwd_by_uid(PASSWD_ETC, 0, &u));
    CHECK_STR(u.name, "root");
}
