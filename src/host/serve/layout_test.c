// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/serve/layout.h"
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
    layout_close(&l);
}
