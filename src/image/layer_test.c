// SPDX-License-Identifier: Apache-2.0
#include "image/layer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "test/tar_kit.h"

struct kit {
    struct buf made, opaque;
    struct layer_sink sink;
    int dir;
    struct layer_limits limits;
    struct layer_result result;
};

static fallible on_opaque(struct layer_sink *s, struct str path)
{
    struct kit *k = container_of(s, struct kit, sink);

    buf_addf(&k->opaque, STR_FMT ";", STR_ARG(path));
    return NULL;
}

static void kit_init(struct kit *k)
{
    own_fd dir = test_dir_fd();

    *k = (struct kit){.sink = {on_opaque}, .limits = {1u << 20, 1000}};
    buf_init(&k->made, 4u << 20);
    buf_init(&k->opaque, 4096);
    umask(0);
    CHECK_OK(fd_make_dirs(dir, STR("layer"), 0755, &k->dir));
}

static void kit_done(struct kit *k)
{
    close(k->dir);
    buf_done(&k->made);
    buf_done(&k->opaque);
}

static fallible unpack(struct kit *k)
{
    struct source_mem mem;

    tar_end(&k->made);
    source_mem_init(&mem, k->made.p, k->made.len);
    struct err *e =
        layer_unpack(&mem.source, k->dir, geteuid() == 0, &k->limits, &k->sink, &k->result);
    buf_reset(&k->made);
    return e;
}

static struct stat look(const struct kit *k, const char *path)
{
    struct stat st;

    if (fstatat(k->dir, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        FAIL("%s: %m", path);
    return st;
}

TEST(layer_has_files_links_modes_times_and_attributes)
{
    struct kit k;
    struct stat st;
    char value[8];

    kit_init(&k);
    TAR_PUT(&k.made, .name = "bin/", .type = '5', .mode = 0500, .uid = 5);
    tar_pax(&k.made, "SCHILY.xattr.user.kept", "yes");
    TAR_PUT(&k.made, .name = "bin/tool", .mode = 04755, .uid = 6, .data = STR("tool"));
    TAR_PUT(&k.made, .name = "bin/same", .type = '1', .link = "bin/tool");
    TAR_PUT(&k.made, .name = "abs", .type = '2', .link = "/etc/passwd");
    TAR_PUT(&k.made, .name = "deep/er/file", .data = STR("x"));
    CHECK_OK(unpack(&k));
    CHECK_INT(k.result.entries, 5);
    st = look(&k, "bin");
    CHECK_INT(st.st_mode & 07777, 0500);
    CHECK_INT(st.st_mtim.tv_sec, 1000000000);
    st = look(&k, "bin/tool");
    CHECK_INT(st.st_mode & 07777, 04755);
    CHECK_INT(st.st_nlink, 2);
    CHECK_INT(st.st_uid, geteuid() == 0 ? 6 : geteuid());
    CHECK(S_ISLNK(look(&k, "abs").st_mode));
    own_fd fd = openat(k.dir, "bin/same", O_RDONLY | O_CLOEXEC);
    CHECK(fgetxattr(fd, "user.kept", value, sizeof value) == 3);
    look(&k, "deep/er/file");
    CHECK(fchmodat(k.dir, "bin", 0755, 0) == 0);
    kit_done(&k);
}

TEST(layer_turns_whiteouts_into_those_of_overlay)
{
    struct kit k;
    struct stat st;

    kit_init(&k);
    TAR_PUT(&k.made, .name = "etc/.wh.passwd");
    TAR_PUT(&k.made, .name = "var/.wh..wh..opq");
    TAR_PUT(&k.made, .name = ".wh..wh.plnk");
    TAR_PUT(&k.made, .name = "var/new");
    CHECK_OK(unpack(&k));
    st = look(&k, "etc/passwd");
    CHECK(S_ISCHR(st.st_mode) && st.st_rdev == 0);
    CHECK_STR(buf_str(&k.opaque), "var;");
    CHECK(fstatat(k.dir, ".wh..wh.plnk", &st, 0) < 0);
    kit_done(&k);
}

TEST(layer_leaves_devices_out_and_foreign_attributes_too)
{
    struct kit k;
    char value[8];

    kit_init(&k);
    TAR_PUT(&k.made, .name = "dev/sda", .type = '4');
    TAR_PUT(&k.made, .name = "dev/pipe", .type = '6');
    tar_pax(&k.made, "SCHILY.xattr.trusted.overlay.redirect", "/etc");
    TAR_PUT(&k.made, .name = "a/", .type = '5', .mode = 0755);
    tar_pax(&k.made, "SCHILY.xattr.user.overlay.whiteout", "y");
    TAR_PUT(&k.made, .name = "b");
    CHECK_OK(unpack(&k));
    CHECK_INT(k.result.left_out, 2);
    struct stat st;
    CHECK(fstatat(k.dir, "dev/sda", &st, 0) < 0 && errno == ENOENT);
    own_fd a = openat(k.dir, "a", O_RDONLY | O_CLOEXEC),
           b = openat(k.dir, "b", O_RDONLY | O_CLOEXEC);
    CHECK(fgetxattr(a, "trusted.overlay.redirect", value, sizeof value) < 0);
    CHECK(fgetxattr(b, "user.overlay.whiteout", value, sizeof value) < 0);
    kit_done(&k);
}

static void refuses(struct kit *k, enum err_code code, const char *part)
{
    CHECK_ERR(unpack(k), code, part);
    kit_done(k);
    char path[300];
    snprintf(path, sizeof path, "rm -rf %s/layer", test_dir());
    CHECK_INT(system(path), 0); /* NOLINT(cert-env33-c): our own words */
    kit_init(k);
}

static void check_text(const struct kit *k, const char *path, const char *want)
{
    own_done(buf) text;
    own_fd fd = openat(k->dir, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    buf_init(&text, 100);
    CHECK(fd >= 0);
    CHECK_OK(fd_read_all(fd, &text));
    CHECK_STR(buf_str(&text), want);
}

TEST(layer_has_the_later_of_two_entries_of_one_name)
{
    struct kit k;

    kit_init(&k);
    TAR_PUT(&k.made, .name = "target", .data = STR("target"));
    TAR_PUT(&k.made, .name = "f", .data = STR("first, and longer"));
    TAR_PUT(&k.made, .name = "other", .type = '1', .link = "f");
    TAR_PUT(&k.made, .name = "f", .mode = 0640, .data = STR("second"));
    TAR_PUT(&k.made, .name = "f", .type = '1', .link = "f"); /* itself: nothing is lost */
    TAR_PUT(&k.made, .name = "link", .type = '2', .link = "target");
    TAR_PUT(&k.made, .name = "link", .data = STR("no link"));
    TAR_PUT(&k.made, .name = "d", .type = '2', .link = "..");
    TAR_PUT(&k.made, .name = "d/", .type = '5', .mode = 0711);
    TAR_PUT(&k.made, .name = "d/in", .data = STR("in"));
    TAR_PUT(&k.made, .name = "d/", .type = '5', .mode = 0750);
    TAR_PUT(&k.made, .name = "empty/", .type = '5', .mode = 0755);
    TAR_PUT(&k.made, .name = "empty", .type = '2', .link = "/");
    TAR_PUT(&k.made, .name = "hard", .data = STR("x"));
    TAR_PUT(&k.made, .name = "hard", .type = '1', .link = "target");
    CHECK_OK(unpack(&k));
    check_text(&k, "f", "second");
    CHECK_INT(look(&k, "f").st_mode & 07777, 0640);
    check_text(&k, "other", "first, and longer");
    check_text(&k, "target", "target");
    check_text(&k, "link", "no link");
    check_text(&k, "d/in", "in");
    CHECK_INT(look(&k, "d").st_mode, S_IFDIR | 0750);
    CHECK(S_ISLNK(look(&k, "empty").st_mode));
    CHECK_INT(look(&k, "hard").st_ino, look(&k, "target").st_ino);
    kit_done(&k);
}

TEST(layer_keeps_what_it_hides_below_and_has_itself)
{
    struct kit k;

    kit_init(&k);
    TAR_PUT(&k.made, .name = "a/.wh.before");
    TAR_PUT(&k.made, .name = "a/before", .data = STR("x"));
    TAR_PUT(&k.made, .name = "a/after", .data = STR("y"));
    TAR_PUT(&k.made, .name = "a/.wh.after");
    TAR_PUT(&k.made, .name = "a/.wh.gone");
    TAR_PUT(&k.made, .name = "a/.wh.gone");
    TAR_PUT(&k.made, .name = "a/.wh.d");
    TAR_PUT(&k.made, .name = "a/d/", .type = '5', .mode = 0755);
    TAR_PUT(&k.made, .name = "e/", .type = '5', .mode = 0755);
    TAR_PUT(&k.made, .name = ".wh.e");
    CHECK_OK(unpack(&k));
    check_text(&k, "a/before", "x");
    check_text(&k, "a/after", "y");
    CHECK(S_ISCHR(look(&k, "a/gone").st_mode));
    CHECK(S_ISDIR(look(&k, "a/d").st_mode) && S_ISDIR(look(&k, "e").st_mode));
    CHECK_STR(buf_str(&k.opaque), "a/d;e;");
    kit_done(&k);
}

TEST(layer_does_not_go_through_links_or_over_directories_in_use)
{
    struct kit k;

    kit_init(&k);
    TAR_PUT(&k.made, .name = "out", .type = '2', .link = "..");
    TAR_PUT(&k.made, .name = "out/evil", .data = STR("x"));
    refuses(&k, ERR_INVALID, "'out' goes through something that is no directory");
    TAR_PUT(&k.made, .name = "d/", .type = '5', .mode = 0755);
    TAR_PUT(&k.made, .name = "d", .type = '2', .link = "..");
    TAR_PUT(&k.made, .name = "d/evil", .data = STR("x"));
    refuses(&k, ERR_INVALID, "'d' goes through something that is no directory");
    TAR_PUT(&k.made, .name = "d/in", .data = STR("x"));
    TAR_PUT(&k.made, .name = "d", .data = STR("x"));
    refuses(&k, ERR_CONFLICT, "'d': before it there is a directory");
    TAR_PUT(&k.made, .name = "d/in", .data = STR("x"));
    TAR_PUT(&k.made, .name = "d", .type = '1', .link = "d/in");
    refuses(&k, ERR_CONFLICT, "'d': before it there is a directory");
    TAR_PUT(&k.made, .name = "l", .type = '2', .link = "/etc");
    TAR_PUT(&k.made, .name = "h", .type = '1', .link = "l/shadow");
    refuses(&k, ERR_INVALID, "link to 'l/shadow'");
    TAR_PUT(&k.made, .name = "h", .type = '1', .link = "not/there");
    refuses(&k, ERR_NOT_FOUND, "not/there");
    TAR_PUT(&k.made, .name = "d/", .type = '5', .mode = 0755);
    TAR_PUT(&k.made, .name = "h", .type = '1', .link = "d");
    refuses(&k, ERR_INVALID, "no file");
    TAR_PUT(&k.made, .name = "x/.wh...");
    refuses(&k, ERR_INVALID, "whiteout of nothing");
    CHECK(faccessat(k.dir, "../evil", F_OK, 0) < 0);
    kit_done(&k);
}

TEST(layer_has_limits)
{
    struct kit k;

    kit_init(&k);
    k.limits.entries = 1;
    TAR_PUT(&k.made, .name = "a");
    TAR_PUT(&k.made, .name = "b");
    refuses(&k, ERR_TOO_LARGE, "more than 1 entries");
    k.limits.bytes = 1000;
    TAR_PUT(&k.made, .name = "a", .data = STR("x"));
    refuses(&k, ERR_TOO_LARGE, "more than 1000 bytes");
    if (geteuid() == 0) {
        TAR_PUT(&k.made, .name = "a", .uid = 65536);
        refuses(&k, ERR_INVALID, "beyond the 65536 ids");
    }
    kit_done(&k);
}
