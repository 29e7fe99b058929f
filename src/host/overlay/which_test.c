// SPDX-License-Identifier: Apache-2.0
#include "host/overlay/overlay.h"
#include "test/changes_kit.h"

TEST(overlay_knows_its_directory_when_that_was_copied_up)
{
    char path[400];
    struct kit k;

    kit_init(&k);
    if (geteuid() != 0)
        SKIP("needs root");
    sh(&k, k.lower, "mkdir d other");
    mount_merged(&k);
    own_fd box = open(test_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof path, "%s/d", k.merged);
    own_fd before = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK_OK(overlay_note_which(box, 0, before, false));
    pass_a_step(&k);
    sh(&k, k.merged, "echo 1 >d/new");
    own_fd after = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool is_other = true;
    CHECK_OK(overlay_look_which(box, 0, after, &is_other));
    CHECK(!is_other);
    snprintf(path, sizeof path, "%s/other", k.merged);
    own_fd other = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK_OK(overlay_look_which(box, 0, other, &is_other));
    CHECK(is_other);
    CHECK(umount2(k.merged, MNT_DETACH) == 0);
    kit_done(&k);
}
