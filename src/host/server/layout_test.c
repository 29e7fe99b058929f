// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "host/server/layout.h"
#include "test/test.h"

TEST(server_state_below_a_directory_that_is_missing_can_be_reached_by_its_user)
{
    struct layout l;
    struct stat st;
    char path[300];

    if (geteuid() != 0)
        SKIP("needs root");
    CHECK_INT(chmod(test_dir(), 0755), 0);
    snprintf(path, sizeof path, "%s/a/b", test_dir());
    CHECK_OK(layout_open(&l, path));
    layout_close(&l);
    snprintf(path, sizeof path, "%s/a", test_dir());
    CHECK_INT(stat(path, &st), 0);
    CHECK_INT(st.st_mode & 07777, 0711);
}

TEST(server_state_below_a_directory_closed_to_its_user_names_that)
{
    struct layout l;
    char path[300];

    if (geteuid() != 0)
        SKIP("needs root");
    CHECK_INT(chmod(test_dir(), 0755), 0);
    snprintf(path, sizeof path, "%s/closed", test_dir());
    CHECK_INT(mkdir(path, 0700), 0);
    strcat(path, "/state");
    CHECK_ERR(layout_open(&l, path), ERR_FORBIDDEN, "/closed' is closed (mode 0700) to user");
    CHECK_ERR(layout_open(&l, path), ERR_FORBIDDEN,
              "directory (CROFT_SERVER_STATE_DIR, --state of");
    layout_close(&l);
}

/* An access list: owner, one user by number, group, mask, others. */
static bool set_acl(const char *path, unsigned uid, unsigned user_may, unsigned others_may)
{
    struct {
        uint32_t version;
        struct {
            uint16_t tag, may;
            uint32_t id;
        } entries[5];
    } acl = {2,
             {{1, 7, -1u},
              {2, (uint16_t)user_may, uid},
              {4, 0, -1u},
              {16, 7, -1u},
              {32, (uint16_t)others_may, -1u}}};

    return setxattr(path, "system.posix_acl_access", &acl, sizeof acl, 0) == 0;
}

TEST(server_state_is_reached_as_access_lists_say_and_not_modes_alone)
{
    struct layout l;
    char closed[300], path[320];

    if (geteuid() != 0)
        SKIP("needs root");
    CHECK_INT(chmod(test_dir(), 0755), 0);
    snprintf(closed, sizeof closed, "%s/listed", test_dir());
    snprintf(path, sizeof path, "%s/state", closed);
    CHECK_INT(mkdir(closed, 0700), 0);
    CHECK_OK(launcher_find_user((uid_t)-1, &l.user));
    unsigned uid = l.user.uid;
    if (!set_acl(closed, uid, 1, 0))
        SKIP("no access lists on this file system");
    CHECK_OK(layout_open(&l, path)); /* closed by its mode, and open to this user */
    layout_close(&l);
    CHECK(set_acl(closed, uid, 0, 7)); /* and the other way round */
    CHECK_ERR(layout_open(&l, path), ERR_FORBIDDEN, "an access list");
    layout_close(&l);
}
