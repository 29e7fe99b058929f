// SPDX-License-Identifier: Apache-2.0
#include "host/images/images.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "base/json.h"
#include "test/program.h"
#include "test/tar_kit.h"

struct kit {
    int state;
    struct arena a;
    struct image_import how;
    struct image image;
};

static void kit_init(struct kit *k)
{
    own_fd dir = test_dir_fd();

    *k = (struct kit){.state = -1};
    umask(022);
    CHECK_OK(fd_make_dirs(dir, STR("state"), 0700, &k->state));
    arena_init(&k->a, 64u << 20);
}

static void kit_done(struct kit *k)
{
    arena_done(&k->a);
    close(k->state);
}

static fallible import(struct kit *k, const struct buf *archive)
{
    own_fd fd = tar_file(archive);

    return images_import(k->state, fd, &k->how, &k->a, &k->image);
}

static unsigned count_in(const struct kit *k, const char *path)
{
    struct stat st;

    CHECK(fstatat(k->state, path, &st, 0) == 0);
    return (unsigned)st.st_nlink - 2;
}

/* Adds a blob under its digest to an archive, and gives the digest as hex. */
static void put_blob(struct buf *to, struct str data, const char *prefix, const char *suffix,
                     char hex[65])
{
    uint8_t digest[SHA256_LEN];
    char name[200];

    sha256(data, digest);
    hash_hex(digest, sizeof digest, hex);
    snprintf(name, sizeof name, "%s%s%s", prefix, hex, suffix);
    TAR_PUT(to, .name = name, .data = data);
}

struct two { /* an image of two layers */
    struct buf lower, upper, config, archive;
    char lower_id[65], upper_id[65], config_id[65];
};

static void two_init(struct two *t)
{
    buf_init(&t->lower, 1u << 20);
    buf_init(&t->upper, 1u << 20);
    buf_init(&t->config, 1u << 20);
    buf_init(&t->archive, 4u << 20);
    TAR_PUT(&t->lower, .name = "etc/", .type = '5', .mode = 0755);
    TAR_PUT(&t->lower, .name = "etc/old", .data = STR("old"));
    TAR_PUT(&t->lower, .name = "etc/kept", .data = STR("kept"));
    TAR_PUT(&t->lower, .name = "var/gone", .data = STR("x"));
    tar_end(&t->lower);
    TAR_PUT(&t->upper, .name = "etc/.wh.old");
    TAR_PUT(&t->upper, .name = "var/.wh..wh..opq");
    TAR_PUT(&t->upper, .name = "var/new", .data = STR("new"));
    tar_end(&t->upper);
}

static void two_done(struct two *t)
{
    buf_done(&t->lower);
    buf_done(&t->upper);
    buf_done(&t->config);
    buf_done(&t->archive);
}

static void put_config(struct two *t, const char *prefix, const char *suffix)
{
    buf_addf(
        &t->config,
        "{\"architecture\":\"amd64\",\"config\":{\"Env\":[\"A=b\"],\"Cmd\":[\"sh\"],\"Labels\":{}},"
        "\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"sha256:%s\",\"sha256:%s\"]}}",
        t->lower_id, t->upper_id);
    put_blob(&t->archive, buf_str(&t->config), prefix, suffix, t->config_id);
}

static void make_docker(struct two *t)
{
    char manifest[600];

    two_init(t);
    put_blob(&t->archive, buf_str(&t->lower), "", ".tar", t->lower_id);
    put_blob(&t->archive, buf_str(&t->upper), "", ".tar", t->upper_id);
    put_config(t, "", ".json");
    snprintf(manifest, sizeof manifest,
             "[{\"Config\":\"%s.json\",\"RepoTags\":[\"two:latest\"],\"Layers\":[\"%s.tar\",\"%s."
             "tar\"]}]",
             t->config_id, t->lower_id, t->upper_id);
    TAR_PUT(&t->archive, .name = "manifest.json", .data = str_of(manifest));
    tar_end(&t->archive);
}

static void make_oci(struct two *t)
{
    char text[1200], id[65];

    two_init(t);
    TAR_PUT(&t->archive, .name = "oci-layout", .data = STR("{\"imageLayoutVersion\":\"1.0.0\"}"));
    put_blob(&t->archive, buf_str(&t->lower), "blobs/sha256/", "", t->lower_id);
    put_blob(&t->archive, buf_str(&t->upper), "blobs/sha256/", "", t->upper_id);
    put_config(t, "blobs/sha256/", "");
    snprintf(text, sizeof text,
             "{\"config\":{\"digest\":\"sha256:%s\"},\"layers\":[{\"digest\":\"sha256:%s\"},"
             "{\"digest\":\"sha256:%s\"}]}",
             t->config_id, t->lower_id, t->upper_id);
    put_blob(&t->archive, str_of(text), "blobs/sha256/", "", id);
    snprintf(
        text, sizeof text,
        "{\"manifests\":[{\"digest\":\"sha256:%064d\",\"platform\":{\"architecture\":\"s390x\"}},"
        "{\"digest\":\"sha256:%s\",\"annotations\":{\"org.opencontainers.image.ref.name\":"
        "\"oci:1\"}}]}",
        0, id);
    TAR_PUT(&t->archive, .name = "index.json", .data = str_of(text));
    tar_end(&t->archive);
}

static void check_two(struct kit *k, const struct two *t)
{
    struct rootfs r;
    struct stat st;

    CHECK_STR(k->image.id, t->config_id);
    CHECK_INT(k->image.layer_count, 2);
    CHECK_STR(k->image.layers[1], t->upper_id);
    CHECK_STR(json_at(json_get(k->image.config, STR("Env")), 0)->s, "A=b");
    CHECK(json_get(k->image.config, STR("Labels")) == NULL);
    rootfs_init(&r);
    CHECK_OK(images_open(k->state, &k->image, &r));
    CHECK_INT(r.mounts[0].lower_count, 2);
    CHECK(fstatat(r.mounts[0].lowers[0], "etc/old", &st, 0) == 0 && S_ISCHR(st.st_mode));
    CHECK(fstatat(r.mounts[0].lowers[1], "etc/kept", &st, 0) == 0 && S_ISREG(st.st_mode));
    own_fd var = openat(r.mounts[0].lowers[0], "var", O_RDONLY | O_CLOEXEC);
    char value[4];
    CHECK_INT(fgetxattr(var, geteuid() == 0 ? "trusted.overlay.opaque" : "user.overlay.opaque",
                        value, sizeof value),
              1);
    rootfs_done(&r);
}

TEST(image_import_reads_a_docker_archive)
{
    struct kit k;
    struct two t;

    kit_init(&k);
    make_docker(&t);
    CHECK_OK(import(&k, &t.archive));
    CHECK_STR(k.image.name, "two:latest");
    check_two(&k, &t);
    CHECK_OK(images_find(k.state, "two", &k.a, &k.image));
    two_done(&t);
    kit_done(&k);
}

/* Imports a layer with this file, or none, below the two; makes the upper hide bin/bash or not. */
static bool lacks_bash(const char *file, const char *upper)
{
    struct kit k;
    own_done(buf) lower, top, archive;
    char text[400], id[2][65];

    kit_init(&k);
    buf_init(&lower, 1u << 20);
    buf_init(&top, 1u << 20);
    buf_init(&archive, 1u << 20);
    TAR_PUT(&lower, .name = file, .mode = 0755, .data = STR("x"));
    tar_end(&lower);
    TAR_PUT(&top, .name = upper, .data = STR(""));
    tar_end(&top);
    put_blob(&archive, buf_str(&lower), "", ".tar", id[0]);
    put_blob(&archive, buf_str(&top), "", ".tar", id[1]);
    snprintf(text, sizeof text,
             "[{\"Config\":\"c.json\",\"RepoTags\":[\"b:1\"],\"Layers\":[\"%s.tar\",\"%s.tar\"]}]",
             id[0], id[1]);
    TAR_PUT(&archive, .name = "manifest.json", .data = str_of(text));
    snprintf(text, sizeof text,
             "{\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"sha256:%s\",\"sha256:%s\"]}}", id[0],
             id[1]);
    TAR_PUT(&archive, .name = "c.json", .data = str_of(text));
    tar_end(&archive);
    CHECK_OK(import(&k, &archive));
    CHECK_OK(images_find(k.state, "b:1", &k.a, &k.image)); /* as the record has it */
    bool lacks = k.image.no_bash;
    kit_done(&k);
    return lacks;
}

TEST(image_import_notes_that_there_is_no_bash)
{
    CHECK(lacks_bash("bin/sh", "etc/x"));
    CHECK(!lacks_bash("bin/bash", "etc/x"));
    CHECK(!lacks_bash("usr/bin/bash", "etc/x"));
    CHECK(!lacks_bash("bin/sh", "bin/bash"));
    CHECK(lacks_bash("bin/bash", "bin/.wh.bash"));
}

/* By any names, in any order: the list may come last. */
TEST(image_import_knows_a_docker_archive_by_its_list_wherever_that_is)
{
    static const char manifest[] = "[{\"Config\":\"c.json\",\"RepoTags\":[\"odd:1\"],\"Layers\":"
                                   "[\"one.tar\",\"sha256:two\"]}]";
    struct kit k;
    struct two t;

    kit_init(&k);
    make_docker(&t);
    buf_reset(&t.archive);
    TAR_PUT(&t.archive, .name = "c.json", .data = buf_str(&t.config));
    TAR_PUT(&t.archive, .name = "sha256:two", .data = buf_str(&t.upper));
    TAR_PUT(&t.archive, .name = "one.tar", .data = buf_str(&t.lower));
    TAR_PUT(&t.archive, .name = "manifest.json", .data = str_of(manifest));
    tar_end(&t.archive);
    CHECK_OK(import(&k, &t.archive));
    CHECK_STR(k.image.name, "odd:1");
    check_two(&k, &t);
    two_done(&t);
    kit_done(&k);
}

TEST(image_import_takes_the_later_of_two_members_of_one_name)
{
    static const char old[] = "[{\"Config\":\"c.json\",\"RepoTags\":[\"old:1\"],\"Layers\":"
                              "[\"one.tar\",\"two.tar\"]}]";
    static const char new[] = "[{\"Config\":\"c.json\",\"RepoTags\":[\"new:1\"],\"Layers\":"
                              "[\"one.tar\",\"two.tar\"]}]";
    struct kit k;
    struct two t;

    kit_init(&k);
    make_docker(&t);
    buf_reset(&t.archive);
    TAR_PUT(&t.archive, .name = "manifest.json", .data = str_of(old));
    TAR_PUT(&t.archive, .name = "c.json", .data = buf_str(&t.config));
    for (unsigned i = 0; i < 2; i++) /* as one that two images share */
        TAR_PUT(&t.archive, .name = "one.tar", .data = buf_str(&t.lower));
    TAR_PUT(&t.archive, .name = "two.tar", .data = STR("half of i"));
    TAR_PUT(&t.archive, .name = "two.tar", .data = buf_str(&t.upper));
    TAR_PUT(&t.archive, .name = "manifest.json", .data = str_of(new));
    size_t whole = t.archive.len;
    tar_end(&t.archive);
    CHECK_OK(import(&k, &t.archive));
    CHECK_STR(k.image.name, "new:1");
    check_two(&k, &t);
    CHECK_OK(images_remove(k.state, &k.image, NULL, NULL));
    /* what it says of its layers holds, whichever of them comes last */
    t.archive.len = whole;
    TAR_PUT(&t.archive, .name = "two.tar", .data = buf_str(&t.lower));
    tar_end(&t.archive);
    CHECK_ERR(import(&k, &t.archive), ERR_CORRUPT, "digest");
    t.archive.len = whole;
    TAR_PUT(&t.archive, .name = "two.tar", .type = '2', .link = "nowhere");
    tar_end(&t.archive);
    CHECK_ERR(import(&k, &t.archive), ERR_INVALID, "'two.tar' and does not hold it");
    two_done(&t);
    kit_done(&k);
}

TEST(image_import_reads_an_oci_archive_of_several_machines)
{
    struct kit k;
    struct two t;

    kit_init(&k);
    make_oci(&t);
    CHECK_OK(import(&k, &t.archive));
    CHECK_STR(k.image.name, "oci:1");
    check_two(&k, &t);
    two_done(&t);
    kit_done(&k);
}

TEST(image_layers_are_kept_once_and_go_with_the_last_image)
{
    struct kit k;
    struct two t;
    struct image first;

    kit_init(&k);
    make_docker(&t);
    CHECK_OK(import(&k, &t.archive));
    first = k.image;
    k.how.name = "rootfs";
    CHECK_OK(import(&k, &t.lower)); /* the same bytes, as a root file system */
    CHECK_INT(k.image.layer_count, 1);
    CHECK_STR(k.image.id, t.lower_id);
    CHECK_INT(count_in(&k, "images/layers"), 2);
    CHECK_OK(images_remove(k.state, &first, NULL, NULL));
    CHECK_INT(count_in(&k, "images/layers"), 1);
    CHECK_ERR(images_find(k.state, "two", &k.a, &first), ERR_NOT_FOUND, "croft image ls");
    CHECK_OK(images_remove(k.state, &k.image, NULL, NULL));
    CHECK_INT(count_in(&k, "images/layers"), 0);
    two_done(&t);
    kit_done(&k);
}

TEST(image_imported_under_several_names_has_them_all)
{
    struct kit k;
    struct two t;
    struct image found;

    kit_init(&k);
    make_docker(&t);
    CHECK_OK(import(&k, &t.archive));
    k.how.name = "three:1";
    CHECK_OK(import(&k, &t.archive));
    k.how.name = "four:latest";
    CHECK_OK(import(&k, &t.archive));
    CHECK_OK(import(&k, &t.archive)); /* once more changes nothing */
    CHECK_OK(images_find(k.state, "two", &k.a, &found));
    CHECK_STR(found.name, "four:latest");
    CHECK_INT(found.alias_count, 2);
    CHECK_OK(images_find(k.state, "three:1", &k.a, &found));
    CHECK_OK(images_find(k.state, "four", &k.a, &found));
    k.how.name = "four:latest";
    CHECK_OK(import(&k, &t.lower)); /* another image takes one name */
    CHECK_OK(images_find(k.state, "four", &k.a, &found));
    CHECK_STR(found.id, t.lower_id);
    CHECK_OK(images_find(k.state, "three:1", &k.a, &found));
    CHECK_INT(found.alias_count, 1);
    CHECK_OK(images_find(k.state, "two", &k.a, &found));
    two_done(&t);
    kit_done(&k);
}

TEST(image_is_found_by_a_name_before_the_digits_of_another)
{
    struct kit k;
    struct two t;
    struct image found;
    char digits[4];

    kit_init(&k);
    make_docker(&t);
    CHECK_OK(import(&k, &t.archive));
    snprintf(digits, sizeof digits, "%.3s", t.config_id);
    CHECK_OK(images_find(k.state, digits, &k.a, &found));
    CHECK_STR(found.id, t.config_id);
    CHECK_ERR(images_find_sure(k.state, digits, &k.a, &found), ERR_NOT_FOUND, "no image");
    k.how.name = digits;
    CHECK_OK(import(&k, &t.lower));
    CHECK_OK(images_find(k.state, digits, &k.a, &found));
    CHECK_STR(found.id, t.lower_id);
    CHECK_ERR(images_find(k.state, "", &k.a, &found), ERR_NOT_FOUND, "no image");
    two_done(&t);
    kit_done(&k);
}

TEST(image_name_moves_to_the_newest)
{
    struct kit k;
    struct two t;
    struct image *list;
    size_t count;

    kit_init(&k);
    make_docker(&t);
    k.how.name = "same";
    CHECK_OK(import(&k, &t.lower));
    CHECK_OK(import(&k, &t.upper));
    CHECK_OK(images_list(k.state, &k.a, &list, &count));
    CHECK_INT(count, 2);
    CHECK_STR(list[0].name, "");
    CHECK_STR(list[0].id, t.lower_id);
    CHECK_STR(list[1].name, "same");
    CHECK_STR(list[1].id, t.upper_id);
    two_done(&t);
    kit_done(&k);
}

static void refuses(struct kit *k, struct buf *archive, enum err_code code, const char *part)
{
    CHECK_ERR(import(k, archive), code, part);
    CHECK_INT(count_in(k, "images/layers"), 0);
    CHECK_INT(count_in(k, "images/tmp"), 0);
    CHECK_INT(count_in(k, "images"), 2);
    buf_reset(archive);
}

TEST(image_import_refuses_hostile_archives_and_leaves_nothing)
{
    struct kit k;
    struct two t;
    own_done(buf) b;

    kit_init(&k);
    buf_init(&b, 1u << 20);
    TAR_PUT(&b, .name = "bin/", .type = '5', .mode = 0755);
    TAR_PUT(&b, .name = "x/../../evil");
    refuses(&k, &b, ERR_INVALID, "layer 1 of 1: tar archive");
    TAR_PUT(&b, .name = "l", .type = '2', .link = "/tmp");
    TAR_PUT(&b, .name = "l/evil");
    refuses(&k, &b, ERR_INVALID, "no directory");
    TAR_PUT(&b, .name = "manifest.json", .data = STR("[{\"Config\":\"../../etc/shadow\"}]"));
    tar_end(&b);
    refuses(&k, &b, ERR_INVALID, "does not hold it");
    TAR_PUT(&b, .name = "manifest.json", .data = STR("nonsense"));
    tar_end(&b);
    refuses(&k, &b, ERR_INVALID, "manifest.json");
    buf_add_cstr(&b, "this is no archive at all");
    refuses(&k, &b, ERR_INVALID, "tar archive");
    make_docker(&t);
    t.archive.p[512 + 512 + 512] ^= 1; /* the bytes of etc/old in the first layer */
    refuses(&k, &t.archive, ERR_CORRUPT, "digest");
    two_done(&t);
    k.how.name = "bad name";
    TAR_PUT(&b, .name = "a");
    tar_end(&b);
    refuses(&k, &b, ERR_INVALID, "--name");
    kit_done(&k);
}

TEST_LIMIT(image_import_fails_cleanly_at_every_step, 120)
{
    struct kit k;
    own_done(buf) b;

    kit_init(&k);
    buf_init(&b, 1u << 20);
    TAR_PUT(&b, .name = "etc/", .type = '5', .mode = 0755);
    TAR_PUT(&b, .name = "etc/file", .data = STR("x"));
    tar_end(&b);
    own_fd fd = tar_file(&b);
    for (unsigned n = 1;; n += 3) { /* every import waits for the disk */
        unsigned fds = test_open_fds();
        fault_at(n); /* counts on in the workers too, each from where it was forked */
        struct err *e = images_import(k.state, fd, &k.how, &k.a, &k.image);
        bool fired = fault_fired();
        fault_at(0);
        CHECK_INT(test_open_fds(), fds);
        if (!fired && !e)
            break;
        if (!e) /* a step whose failure does no harm */
            CHECK_OK(images_remove(k.state, &k.image, NULL, NULL));
        k.image = (struct image){0};
        err_free(e);
        arena_done(&k.a); /* it remembers that it was refused memory */
        arena_init(&k.a, 64u << 20);
        struct stat st;
        if (fstatat(k.state, "images/layers", &st, 0) == 0 &&
            fstatat(k.state, "images/tmp", &st, 0) == 0)
            CHECK_OK(
                images_import(k.state, fd, &k.how, &k.a, &k.image)); /* nothing is in its way */
        if (k.image.id.p)
            CHECK_OK(images_remove(k.state, &k.image, NULL, NULL));
        k.image = (struct image){0};
    }
    CHECK_INT(count_in(&k, "images/layers"), 1);
    kit_done(&k);
}

/* --- with the programs people use --- */

static void sh(const char *script)
{
    char command[3000];

    snprintf(command, sizeof command, "cd %s && %s", test_dir(), script);
    if (system(command) != 0) /* NOLINT(cert-env33-c): our own words */
        FAIL("failed: %s", command);
}

static fallible import_path(struct kit *k, const char *name)
{
    char path[300];

    snprintf(path, sizeof path, "%s/%s", test_dir(), name);
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    return images_import(k->state, fd, &k->how, &k->a, &k->image);
}

TEST(image_import_reads_what_tar_writes_in_every_compression)
{
    struct kit k;
    struct str id = {0};
    static const char *const names[] = {"r.tar", "r.tar.gz", "r.tar.zst", "r.tar.xz", "gnu.tar"};

    kit_init(&k);
    if (access("/usr/bin/zstd", X_OK) < 0 || access("/usr/bin/xz", X_OK) < 0)
        SKIP("needs zstd and xz");
    sh("mkdir -p r/bin "
       "r/a/very/long/path/that/goes/on/and/on/and/on/and/on/and/on/until/it/no/longer/"
       "fits/into/one/hundred/bytes && head -c 300000 /dev/urandom >r/bin/data && ln r/bin/data "
       "r/hard "
       "&& ln -s bin/data r/soft && echo x "
       ">r/a/very/long/path/that/goes/on/and/on/and/on/and/on/and/"
       "on/until/it/no/longer/fits/into/one/hundred/bytes/file && tar --format=pax --sort=name "
       "--pax-option=delete=atime,delete=ctime -C r -cf r.tar . && gzip -k r.tar && zstd -q r.tar "
       "&& "
       "xz -k -0 r.tar && tar --format=gnu -C r -cf gnu.tar .");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CHECK_OK(import_path(&k, names[i]));
        if (i == 0)
            id = k.image.id;
        if (i < 4)
            CHECK_STR(k.image.id, id); /* the digest is of the tar, not of its packing */
        char script[400];
        snprintf(script, sizeof script, "diff -r --no-dereference r state/images/layers/" STR_FMT,
                 STR_ARG(k.image.id));
        sh(script);
    }
    sh("gzip -c r.tar | head -c 1000 >cut.tar.gz");
    CHECK_ERR(import_path(&k, "cut.tar.gz"), ERR_INVALID, "gzip data is broken or cut short");
    kit_done(&k);
}

TEST(image_import_reads_a_compressed_docker_archive_from_a_pipe)
{
    struct kit k;
    struct two t;
    int ends[2];

    kit_init(&k);
    make_docker(&t);
    own_fd file = tar_file(&t.archive);
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    pid_t pid = program_start(&(struct program){
        .argv = ARGS("gzip", "-c"), .fds = (const int[]){file, ends[1]}, .fd_count = 2});
    close(ends[1]);
    CHECK_OK(images_import(k.state, ends[0], &k.how, &k.a, &k.image));
    CHECK_INT(program_wait(pid), 0);
    close(ends[0]);
    check_two(&k, &t);
    two_done(&t);
    kit_done(&k);
}

TEST(image_import_works_for_an_ordinary_user)
{
    struct kit k;
    struct two t;

    if (geteuid() == 0) {
        CHECK(chown(test_dir(), 65534, 65534) == 0);
        CHECK(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0 &&
              prctl(PR_SET_DUMPABLE, 1) == 0); /* as a process of that user is from birth */
    }
    kit_init(&k);
    make_docker(&t);
    CHECK_OK(import(&k, &t.archive));
    check_two(&k, &t);
    CHECK_OK(images_remove(k.state, &k.image, NULL, NULL));
    CHECK_INT(count_in(&k, "images/layers"), 0);
    two_done(&t);
    kit_done(&k);
}
