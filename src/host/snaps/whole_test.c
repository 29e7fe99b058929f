// SPDX-License-Identifier: Apache-2.0
#include "host/snaps/whole.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "host/tree/tree.h"
#include "test/test.h"

struct place {
    int state, box;
};

static void place_open(struct place *p)
{
    own_fd dir = test_dir_fd(), upper = -1;

    CHECK_OK(fd_make_dirs(dir, STR("state"), 0700, &p->state));
    CHECK_OK(fd_make_dirs(dir, STR("state/box/b"), 0700, &p->box));
    CHECK_OK(fd_make_dirs(p->box, STR("u"), 0755, &upper));
    CHECK_OK(fd_replace_file(p->box, "record", STR("r"), 0600));
}

static void place_close(struct place *p)
{
    close(p->state);
    close(p->box);
}

static void put(const struct place *p, const char *name)
{
    char path[40];

    snprintf(path, sizeof path, "u/%s", name);
    own_fd fd = openat(p->box, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    CHECK(fd >= 0);
}

static size_t layers_below(const struct place *p)
{
    struct snaps_stack below;

    CHECK_OK(whole_layers(p->state, p->box, "u", &below));
    size_t count = below.count;
    snaps_stack_done(&below);
    return count;
}

static uint64_t since_of_fork(const struct place *p, const char *snapshot)
{
    own_fd dir = test_dir_fd(), box = -1;
    struct snaps_stack below;

    CHECK_OK(fd_make_dirs(dir, STR("fork"), 0700, &box));
    CHECK_OK(whole_stand(p->state, snapshot, box));
    CHECK_OK(whole_layers(p->state, box, "u", &below));
    snaps_stack_done(&below);
    CHECK_OK(tree_remove(dir, "fork"));
    return below.since_ns;
}

TEST(stopped_sandbox_moves_to_the_flattened_stack_and_keeps_its_files)
{
    struct place p;
    struct snaps_stack below;
    char name[32];

    place_open(&p);
    for (unsigned i = 0; i <= SNAPS_FLATTEN_AT; i++) {
        snprintf(name, sizeof name, "s%u", i);
        put(&p, name);
        CHECK_OK(whole_take(p.state, p.box, p.box, name, false, NULL));
    }
    CHECK_INT(layers_below(&p), SNAPS_FLATTEN_AT + 1);
    CHECK_OK(whole_flatten(p.state, name));
    CHECK_INT(layers_below(&p), SNAPS_FLATTEN_AT + 1); /* not under its feet */
    CHECK_OK(whole_restand(p.state, name, p.box));
    CHECK_OK(whole_layers(p.state, p.box, "u", &below));
    CHECK_INT(below.count, 1);
    CHECK_INT(faccessat(below.fds[0], "s0", F_OK, 0), 0);
    CHECK_INT(faccessat(below.fds[0], "s20", F_OK, 0), 0);
    snaps_stack_done(&below);
    place_close(&p);
}

/* Whatever the directory's own side changed since counts as a conflict. */
TEST(copies_and_flattened_layers_know_when_what_they_hold_began)
{
    struct place p;
    struct statx x;
    char name[32];

    place_open(&p);
    CHECK_INT(statx(p.box, "u", 0, STATX_BTIME, &x), 0);
    uint64_t began = (uint64_t)x.stx_btime.tv_sec * NS_PER_S + x.stx_btime.tv_nsec;
    CHECK_OK(whole_take(p.state, p.box, p.box, "copy", true, NULL));
    CHECK_INT(since_of_fork(&p, "copy"), began);
    for (unsigned i = 0; i <= SNAPS_FLATTEN_AT; i++) {
        snprintf(name, sizeof name, "s%u", i);
        CHECK_OK(whole_take(p.state, p.box, p.box, name, false, NULL));
    }
    CHECK_INT(since_of_fork(&p, name), 0); /* its lowest layer is the upper of then */
    CHECK_OK(whole_flatten(p.state, name));
    CHECK_INT(since_of_fork(&p, name), began);
    CHECK_OK(whole_restand(p.state, name, p.box));
    CHECK_OK(whole_take(p.state, p.box, p.box, "on", true, NULL));
    CHECK_INT(since_of_fork(&p, "on"), began);
    place_close(&p);
}

TEST(sandbox_that_went_on_since_is_not_moved)
{
    struct place p;
    char name[32];

    place_open(&p);
    for (unsigned i = 0; i <= SNAPS_FLATTEN_AT; i++) {
        snprintf(name, sizeof name, "s%u", i);
        CHECK_OK(whole_take(p.state, p.box, p.box, name, false, NULL));
    }
    CHECK_OK(whole_take(p.state, p.box, p.box, "after", false, NULL));
    CHECK_OK(whole_flatten(p.state, name));
    CHECK_OK(whole_restand(p.state, name, p.box));
    CHECK_INT(layers_below(&p), SNAPS_FLATTEN_AT + 2);
    place_close(&p);
}

/* As if somebody had died there: what was put aside, and an upper that is not made yet. */
static void cut_short(const struct place *p)
{
    CHECK_INT(symlinkat("-", p->box, WHOLE_RESET), 0);
    CHECK_INT(renameat(p->box, "u", p->box, ".old-u"), 0);
}

TEST(reset_empties_a_sandbox_also_when_one_before_was_cut_short)
{
    struct place p;

    place_open(&p);
    put(&p, "one");
    CHECK_OK(whole_take(p.state, p.box, p.box, "first", false, NULL));
    put(&p, "two");
    for (int i = 0; i < 3; i++) {
        if (i > 0)
            cut_short(&p);
        if (i == 2)
            CHECK_INT(mkdirat(p.box, "u", 0755), 0); /* it had come a step further */
        CHECK_OK(whole_reset(p.state, p.box, i == 1 ? "first" : NULL));
        CHECK_INT(layers_below(&p), i == 1);
        CHECK_INT(unlinkat(p.box, "u", AT_REMOVEDIR), 0); /* it is empty */
        CHECK_INT(mkdirat(p.box, "u", 0755), 0);
        CHECK(faccessat(p.box, ".old-u", F_OK, 0) < 0);
        CHECK(faccessat(p.box, WHOLE_RESET, F_OK, AT_SYMLINK_NOFOLLOW) < 0);
        put(&p, "more");
    }
    place_close(&p);
}
