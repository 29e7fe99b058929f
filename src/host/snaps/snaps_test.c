// SPDX-License-Identifier: Apache-2.0
#include "host/snaps/snaps.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/overlay/overlay.h"
#include "test/test.h"

struct kit {
    int state, box;
    struct arena a;
    struct snap snap;
};

static void sh(const char *script)
{
    char command[3000];

    snprintf(command, sizeof command, "cd %s && %s", test_dir(), script);
    if (system(command) != 0) /* NOLINT(cert-env33-c): our own words */
        FAIL("failed: %s", command);
}

/* A directory "work" and a sandbox "b" that changed its copy. */
static void kit_init(struct kit *k)
{
    own_fd dir = test_dir_fd();
    char path[300];

    umask(022);
    sh("mkdir -p work/d state/box/b/m0u/d && echo 1 >work/a && echo 2 >work/d/b && "
       "echo one >state/box/b/m0u/a && mknod state/box/b/m0u/d/b c 0 0");
    CHECK_OK(fd_make_dirs(dir, STR("state"), 0700, &k->state));
    CHECK_OK(fd_make_dirs(dir, STR("state/box/b"), 0700, &k->box));
    snprintf(path, sizeof path, "%s/work", test_dir());
    CHECK_OK(overlay_note(k->box, 0, path));
    arena_init(&k->a, 16u << 20);
}

static void kit_done(struct kit *k)
{
    arena_done(&k->a);
    close(k->state);
    close(k->box);
}

static unsigned layers(const struct kit *k)
{
    struct stat st;

    CHECK(fstatat(k->state, "snap/layers", &st, 0) == 0);
    return (unsigned)st.st_nlink - 2;
}

TEST(snapshot_freezes_the_upper_layer_and_leaves_an_empty_one)
{
    struct kit k;
    struct snaps_stack stack;
    struct stat before, after;

    kit_init(&k);
    CHECK(fstatat(k.box, "m0u/a", &before, 0) == 0);
    CHECK_OK(snaps_take(k.state, k.box, 0, "one", false, &k.a, &k.snap));
    CHECK_INT(k.snap.layer_count, 1);
    CHECK_HAS(k.snap.source, "/work");
    sh("test -d state/box/b/m0u && test -z \"$(ls -A state/box/b/m0u)\"");
    CHECK_OK(snaps_open(k.state, &k.snap, &stack));
    CHECK(fstatat(stack.fds[0], "a", &after, 0) == 0);
    CHECK_INT(after.st_ino, before.st_ino); /* moved, not copied */
    snaps_stack_done(&stack);
    CHECK_OK(snaps_open_noted(k.state, k.box, 0, &stack));
    CHECK_INT(stack.count, 1);
    snaps_stack_done(&stack);
    CHECK_ERR(snaps_take(k.state, k.box, 0, "one", false, &k.a, &k.snap), ERR_CONFLICT, "already");
    CHECK_ERR(snaps_take(k.state, k.box, 0, "../x", false, &k.a, &k.snap), ERR_INVALID, "no name");
    CHECK_ERR(snaps_find(k.state, "two", &k.a, &k.snap), ERR_NOT_FOUND, "croft snapshot ls");
    kit_done(&k);
}

TEST(snapshot_of_a_sandbox_that_lives_is_a_copy)
{
    struct kit k;
    struct snaps_stack stack;

    kit_init(&k);
    sh("ln state/box/b/m0u/a state/box/b/m0u/hard && ln -s a state/box/b/m0u/soft && "
       "mkfifo state/box/b/m0u/pipe && chmod 500 state/box/b/m0u/d");
    CHECK_OK(snaps_take(k.state, k.box, 0, "live", true, &k.a, &k.snap));
    sh("echo more >>state/box/b/m0u/a"); /* it goes on, in the same file */
    CHECK_OK(snaps_open(k.state, &k.snap, &stack));
    CHECK(fchdir(stack.fds[0]) == 0);
    CHECK_INT(system("test \"$(cat a)\" = one && test \"$(readlink soft)\" = a && test -c d/b && "
                     "test -p pipe && test $(stat -c %a d) = 500"), /* NOLINT(cert-env33-c) */
              0);
    snaps_stack_done(&stack);
    CHECK_OK(snaps_open_noted(k.state, k.box, 0, &stack));
    CHECK_INT(stack.count, 0); /* the sandbox itself stands where it stood */
    kit_done(&k);
}

TEST(snapshot_layers_go_when_nobody_stands_on_them)
{
    struct kit k;
    struct snap *list;
    size_t count;

    kit_init(&k);
    CHECK_OK(snaps_take(k.state, k.box, 0, "one", false, &k.a, &k.snap));
    sh("echo two >state/box/b/m0u/two");
    CHECK_OK(snaps_take(k.state, k.box, 0, "two", false, &k.a, &k.snap));
    CHECK_INT(k.snap.layer_count, 2);
    CHECK_OK(snaps_list(k.state, &k.a, &list, &count));
    CHECK_INT(count, 2);
    CHECK_STR(list[0].name, "one");
    CHECK_OK(snaps_remove(k.state, "one"));
    CHECK_INT(layers(&k), 2); /* "two" stands on both */
    CHECK_OK(snaps_remove(k.state, "two"));
    CHECK_INT(layers(&k), 2); /* the sandbox still does */
    CHECK_OK(snaps_take(k.state, k.box, 0, "three", false, &k.a, &k.snap));
    sh("rm -r state/box/b");
    CHECK_OK(snaps_remove(k.state, "three"));
    CHECK_INT(layers(&k), 0);
    kit_done(&k);
}

static void mount_stack(const struct kit *k, const char *where)
{
    struct snaps_stack stack;
    char options[8000], script[400];
    size_t n = 0;

    snprintf(script, sizeof script, "mkdir -p %s up-%s wk-%s", where, where, where);
    sh(script);
    CHECK_OK(snaps_open(k->state, &k->snap, &stack));
    CHECK(fchdir(k->state) == 0);
    n += (size_t)snprintf(options, sizeof options, "lowerdir=");
    for (size_t i = 0; i < k->snap.layer_count; i++)
        n += (size_t)snprintf(options + n, sizeof options - n,
                              "snap/layers/%s:", k->snap.layers[i].p);
    snprintf(options + n, sizeof options - n, "../work,upperdir=../up-%s,workdir=../wk-%s", where,
             where);
    snprintf(script, sizeof script, "%s/%s", test_dir(), where);
    if (mount("overlay", script, "overlay", 0, options) < 0)
        FAIL("mount %s: %m", options);
    snaps_stack_done(&stack);
}

static void own_mounts(void)
{
    if (geteuid() != 0)
        SKIP("needs root");
    CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
}

TEST(forks_of_a_snapshot_see_it_and_not_each_other)
{
    struct kit k;

    own_mounts();
    kit_init(&k);
    CHECK_OK(snaps_take(k.state, k.box, 0, "one", false, &k.a, &k.snap));
    mount_stack(&k, "left");
    mount_stack(&k, "right");
    sh("test \"$(cat left/a right/a)\" = \"$(printf 'one\\none')\" && test ! -e left/d/b && "
       "echo L >>left/a && rm right/a && test \"$(cat left/a)\" = \"$(printf 'one\\nL')\" && "
       "test ! -e right/a && test \"$(cat work/a)\" = 1");
    sh("umount left right");
    kit_done(&k);
}

TEST(snapshot_flattened_is_one_layer_that_says_the_same)
{
    struct kit k;
    char script[600];

    own_mounts();
    kit_init(&k);
    for (int i = 0; i < SNAPS_FLATTEN_AT; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        snprintf(script, sizeof script,
                 "cd state/box/b/m0u && echo %d >f%d && mkdir -p deep && echo %d >deep/same && "
                 "if [ %d = 7 ]; then mknod f3 c 0 0; fi",
                 i, i, i, i);
        sh(script);
        CHECK_OK(snaps_take(k.state, k.box, 0, name, false, &k.a, &k.snap));
    }
    CHECK_OK(snaps_flatten(k.state, k.box, 0, "s19")); /* not long enough yet */
    CHECK_OK(snaps_take(k.state, k.box, 0, "flat", false, &k.a, &k.snap));
    CHECK_INT(k.snap.layer_count, SNAPS_FLATTEN_AT + 1);
    mount_stack(&k, "long");
    CHECK_OK(snaps_flatten(k.state, k.box, 0, "flat"));
    CHECK_OK(snaps_find(k.state, "flat", &k.a, &k.snap));
    CHECK_INT(k.snap.layer_count, 1);
    struct snaps_stack noted;
    CHECK_OK(snaps_open_noted(k.state, k.box, 0, &noted));
    CHECK_INT(noted.count, 1);
    snaps_stack_done(&noted);
    mount_stack(&k, "flat");
    sh("diff -r long flat && test ! -e flat/f3 && test \"$(cat flat/deep/same)\" = 19 && "
       "test ! -e flat/d/b && umount long flat");
    kit_done(&k);
}

TEST(snapshot_works_for_an_ordinary_user)
{
    struct kit k;

    if (geteuid() == 0) {
        CHECK(chown(test_dir(), 65534, 65534) == 0);
        CHECK(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
    }
    kit_init(&k);
    CHECK_OK(snaps_take(k.state, k.box, 0, "copy", true, &k.a, &k.snap));
    CHECK_OK(snaps_take(k.state, k.box, 0, "one", false, &k.a, &k.snap));
    CHECK_OK(snaps_remove(k.state, "copy"));
    CHECK_INT(layers(&k), 1);
    kit_done(&k);
}
