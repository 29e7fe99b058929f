// SPDX-License-Identifier: Apache-2.0
#include "sandbox/native/msg.h"

#include <stdio.h>
#include <string.h>

#include "test/test.h"

static struct native_request good(void)
{
    struct native_request r = {.magic = NATIVE_MAGIC,
                               .version = NATIVE_VERSION,
                               .op = NATIVE_START,
                               .id = "a1",
                               .hostname = "box",
                               .argc = 1};

    r.mounts[0] = (struct native_mount){.mode = NATIVE_RW, .path = "a/b", .target = "/workspace"};
    return r;
}

TEST(an_honest_request_passes)
{
    struct native_request r = good();

    CHECK_OK(native_check(&r, sizeof r));
}

TEST(a_request_of_another_size_or_version_is_refused)
{
    struct native_request r = good();

    CHECK_ERR(native_check(&r, sizeof r - 1), ERR_INVALID, "bytes instead of");
    r.version++;
    CHECK_ERR(native_check(&r, sizeof r), ERR_INVALID, "version");
    r = good();
    r.magic = 0;
    CHECK_ERR(native_check(&r, sizeof r), ERR_INVALID, "not a request");
}

TEST(operations_flags_and_modes_nobody_knows_are_refused)
{
    struct native_request r = good();

    r.op = NATIVE_OP_END;
    CHECK_ERR(native_check(&r, sizeof r), ERR_INVALID, "operation");
    r = good();
    r.flags = 1u << 31;
    CHECK_ERR(native_check(&r, sizeof r), ERR_INVALID, "flags");
    r = good();
    r.mounts[0].mode = 9;
    CHECK_ERR(native_check(&r, sizeof r), ERR_INVALID, "mode 9");
    r = good();
    r.network = 7;
    CHECK_ERR(native_check(&r, sizeof r), ERR_INVALID, "network 7");
}

TEST(ids_are_names_and_nothing_else)
{
    static const char *const bad[] = {"", ".", "..", ".a", "-a", "a/b", "a b", "a\n", "ä"};
    struct native_request r = good();

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        memset(r.id, 0, sizeof r.id);
        strcpy(r.id, bad[i]);
        CHECK_ERR(native_check(&r, sizeof r), ERR_INVALID, "id");
    }
    memset(r.id, 'a', sizeof r.id); /* not terminated */
    CHECK_ERR(native_check(&r, sizeof r), ERR_INVALID, "id");
}

TEST(sources_stay_below_their_root)
{
    static const char *const bad[] = {"", "/etc", "..", "a/../b", "a//b", "a/", "./a", "a/\x01"};
    struct native_request r = good();

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        strcpy(r.mounts[0].path, bad[i]);
        CHECK_ERR(native_check(&r, sizeof r), ERR_INVALID, "source");
    }
    strcpy(r.mounts[0].path, ".");
    CHECK_OK(native_check(&r, sizeof r));
    memset(r.mounts[0].path, 'a', sizeof r.mounts[0].path);
    CHECK_ERR(native_check(&r, sizeof r), ERR_INVALID, "source");
}

TEST(targets_are_absolute_and_plain)
{
    static const char *const bad[] = {"", "/", "a", "/a/..", "/a/./b", "//a", "/a/"};
    struct native_request r = good();

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        strcpy(r.mounts[0].target, bad[i]);
        CHECK_ERR(native_check(&r, sizeof r), ERR_INVALID, "target");
    }
}

TEST(arguments_have_a_count_that_can_be_true)
{
    struct native_request r = good();

    r.argc = 0;
    CHECK_ERR(native_check(&r, sizeof r), ERR_INVALID, "too few");
    r.argc = 1u << 20;
    CHECK_ERR(native_check(&r, sizeof r), ERR_INVALID, "too many");
}

TEST(snapshots_are_names_and_asked_for_by_name)
{
    static const char *const bad[] = {".", "..", ".a", "-a", "a/b", "../x", "a b", "a\n", "ä"};
    struct native_request r = good();

    strcpy(r.snapshot, "point-1");
    CHECK_OK(native_check(&r, sizeof r));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        memset(r.snapshot, 0, sizeof r.snapshot);
        strcpy(r.snapshot, bad[i]);
        CHECK_ERR(native_check(&r, sizeof r), ERR_INVALID, "snapshot");
    }
    memset(r.snapshot, 'a', sizeof r.snapshot); /* not terminated */
    CHECK_ERR(native_check(&r, sizeof r), ERR_INVALID, "snapshot");
    memset(r.snapshot, 0, sizeof r.snapshot);
    r.op = NATIVE_SNAPSHOT;
    CHECK_ERR(native_check(&r, sizeof r), ERR_INVALID, "snapshot");
    r.op = NATIVE_SNAPSHOT_REMOVE;
    CHECK_ERR(native_check(&r, sizeof r), ERR_INVALID, "snapshot");
    r.op = NATIVE_SNAPSHOT_LIST;
    CHECK_OK(native_check(&r, sizeof r));
}

TEST(images_are_names_or_ids)
{
    static const char *const bad[] = {"", "a b", "-a", "/a", "a\n", "ä", "a;b", "a'"};
    struct native_request r = good();

    snprintf(r.image_name, sizeof r.image_name, "one");
    CHECK_ERR(native_check(&r, sizeof r), ERR_INVALID, "nobody asked for");
    r.image = NATIVE_IMAGE_STORED;
    CHECK_OK(native_check(&r, sizeof r));
    r.op = NATIVE_IMAGE_FIND;
    snprintf(r.image_name, sizeof r.image_name, "example.com:5000/a/b_c:1.0-x@sha256");
    CHECK_OK(native_check(&r, sizeof r));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        memset(r.image_name, 0, sizeof r.image_name);
        strcpy(r.image_name, bad[i]);
        CHECK_ERR(native_check(&r, sizeof r), ERR_INVALID, "not a name");
    }
    memset(r.image_name, 'a', sizeof r.image_name);
    CHECK_ERR(native_check(&r, sizeof r), ERR_INVALID, "no end");
}

TEST(a_claim_names_the_image_it_must_stand_on_or_none)
{
    struct native_request r = good();

    r.op = NATIVE_CLAIM;
    r.argc = 0;
    CHECK_OK(native_check(&r, sizeof r));
    snprintf(r.image_name, sizeof r.image_name, "0123abcd");
    CHECK_OK(native_check(&r, sizeof r));
    r.image_name[0] = '/';
    CHECK_ERR(native_check(&r, sizeof r), ERR_INVALID, "not a name");
}
