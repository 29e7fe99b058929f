// SPDX-License-Identifier: Apache-2.0
#include "host/launcher/setid.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "host/tree/tree.h"
#include "test/test.h"

static mode_t mode_of(int dir, const char *name)
{
    struct stat st;

    CHECK_INT(fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    return st.st_mode & 07777;
}

TEST(set_id_bits_of_what_changed_since_are_taken_off_and_no_others)
{
    uint64_t now = clock_wall_ns(&clock_system);
    own_fd dir = test_dir_fd();

    CHECK_INT(mkdirat(dir, "tree", 0755), 0);
    CHECK_INT(mkdirat(dir, "tree/deep", 0755), 0);
    CHECK_INT(mknodat(dir, "tree/deep/file", S_IFREG | 0755, 0), 0);
    CHECK_INT(mknodat(dir, "outside", S_IFREG | 0755, 0), 0);
    CHECK_INT(symlinkat("../outside", dir, "tree/link"), 0);
    CHECK_INT(fchmodat(dir, "outside", 06755, 0), 0);
    CHECK_INT(fchmodat(dir, "tree/deep/file", 06755, 0), 0);
    CHECK_INT(fchmodat(dir, "tree/deep", 02775, 0), 0);
    own_fd tree = openat(dir, "tree", O_PATH | O_CLOEXEC);
    CHECK_OK(setid_strip(tree, now + 3600 * UINT64_C(1000000000)));
    CHECK_INT(mode_of(dir, "tree/deep/file"), 06755); /* older than that */
    CHECK_OK(setid_strip(tree, now));
    CHECK_INT(mode_of(dir, "tree/deep/file"), 0755);
    CHECK_INT(mode_of(dir, "tree/deep"), 02775); /* of a directory it gives nobody anything */
    CHECK_INT(mode_of(dir, "outside"), 06755);   /* no link is followed */
    own_fd file = openat(dir, "outside", O_PATH | O_CLOEXEC);
    CHECK_OK(setid_strip(file, now)); /* a file mounted by itself */
    CHECK_INT(mode_of(dir, "outside"), 0755);
}

/* As deep as no path is long: nothing a sandbox leaves there keeps the walk from what lies behind.
 */
TEST_LIMIT(set_id_bits_are_taken_off_behind_a_directory_deeper_than_any_path, 120)
{
    const struct timespec old[2] = {{1, 0}, {1, 0}};
    uint64_t now = clock_wall_ns(&clock_system);
    char name[251];
    own_fd dir = test_dir_fd();

    memset(name, 'd', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    CHECK_INT(mkdirat(dir, "tree", 0755), 0);
    CHECK_INT(mkdirat(dir, "tree/m", 0755), 0);
    int at = openat(dir, "tree/m", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; i < 34000; i++) {
        CHECK_INT(mkdirat(at, name, 0755), 0);
        int in = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK(in >= 0 && close(at) == 0);
        at = in;
    }
    const char *const files[] = {"tree/a", "tree/z"};
    for (unsigned i = 0; i < 2; i++) {
        CHECK_INT(mknodat(dir, files[i], S_IFREG | 0755, 0), 0);
        CHECK_INT(fchmodat(dir, files[i], 04755, 0), 0);
    }
    CHECK_INT(mknodat(at, "deepest", S_IFREG | 0755, 0), 0);
    CHECK_INT(fchmodat(at, "deepest", 04755, 0), 0);
    CHECK_INT(utimensat(at, "deepest", old, 0), 0); /* which only the kernel's own stamp survives */
    own_fd tree = openat(dir, "tree", O_PATH | O_CLOEXEC);
    CHECK_OK(setid_strip(tree, now));
    CHECK_INT(mode_of(dir, "tree/a"), 0755);
    CHECK_INT(mode_of(dir, "tree/z"), 0755);
    CHECK_INT(mode_of(at, "deepest"), 0755);
    close(at);
    CHECK_OK(tree_remove(dir, "tree"));
}
