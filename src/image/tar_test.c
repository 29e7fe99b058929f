// SPDX-License-Identifier: Apache-2.0
#include "image/tar.h"

#include "test/tar_kit.h"

struct kit {
    struct buf made;
    struct source_mem mem;
    struct tar tar;
    const struct tar_entry *e;
};

static void kit_init(struct kit *k)
{
    buf_init(&k->made, 4u << 20);
}

static void kit_read(struct kit *k)
{
    source_mem_init(&k->mem, k->made.p, k->made.len);
    tar_init(&k->tar, &k->mem.source);
}

static const struct tar_entry *next(struct kit *k)
{
    CHECK_OK(tar_next(&k->tar, &k->e));
    return k->e;
}

static void kit_done(struct kit *k)
{
    tar_done(&k->tar);
    buf_done(&k->made);
}

/* The error of reading all of it. */
static void refused(struct kit *k, const char *part)
{
    struct err *e = NULL;

    kit_read(k);
    do
        e = tar_next(&k->tar, &k->e);
    while (!e && k->e);
    CHECK_ERR(e, ERR_INVALID, part);
    kit_done(k);
    kit_init(k);
}

TEST(tar_reads_names_types_and_data)
{
    struct kit k;
    char data[16];
    size_t n;

    kit_init(&k);
    TAR_PUT(&k.made, .name = "./", .type = '5', .mode = 0755);
    TAR_PUT(&k.made, .name = "/a/./b//c", .data = STR("hello"), .mode = 04711, .uid = 7);
    TAR_PUT(&k.made, .name = "skipped", .data = STR("xxxxxxxxxxxxxxxxxxxx"));
    TAR_PUT(&k.made, .name = "l", .type = '2', .link = "/../x");
    TAR_PUT(&k.made, .name = "h", .type = '1', .link = "./a/b/c");
    TAR_PUT(&k.made, .name = "d", .type = '3');
    tar_end(&k.made);
    kit_read(&k);
    CHECK_STR(next(&k)->path, "");
    CHECK_INT(k.e->type, TAR_DIR);
    CHECK_STR(next(&k)->path, "a/b/c");
    CHECK_INT(k.e->mode, 04711);
    CHECK_INT(k.e->uid, 7);
    CHECK_INT(k.e->mtime_s, 1000000000);
    CHECK_OK(tar_read(&k.tar, data, sizeof data, &n));
    CHECK_STR(str_n(data, n), "hello");
    CHECK_STR(next(&k)->path, "skipped");
    CHECK_STR(next(&k)->target, "/../x");
    CHECK_INT(k.e->type, TAR_LINK);
    CHECK_STR(next(&k)->target, "a/b/c");
    CHECK_INT(next(&k)->type, TAR_DEVICE);
    CHECK(next(&k) == NULL);
    kit_done(&k);
}

TEST(tar_reads_long_names_of_both_kinds)
{
    struct kit k;
    char name[300], gnu[301];

    kit_init(&k);
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    name[150] = '/';
    memcpy(gnu, name, sizeof name);
    TAR_PUT(&k.made, .name = "././@LongLink", .type = 'L', .data = str_n(gnu, sizeof name));
    TAR_PUT(&k.made, .name = "nnn");
    tar_pax(&k.made, "path", name);
    TAR_PUT(&k.made, .name = "short");
    tar_pax(&k.made, "SCHILY.xattr.user.k", "v=w");
    TAR_PUT(&k.made, .name = "x");
    TAR_PUT(&k.made, .name = "plain");
    tar_end(&k.made);
    kit_read(&k);
    CHECK_STR(next(&k)->path, name);
    CHECK_STR(next(&k)->path, name);
    CHECK_STR(next(&k)->path, "x");
    CHECK_INT(k.e->xattr_count, 1);
    CHECK_STR(k.e->xattrs[0].name, "user.k");
    CHECK_STR(k.e->xattrs[0].value, "v=w");
    CHECK_STR(next(&k)->path, "plain");
    CHECK_INT(k.e->xattr_count, 0);
    CHECK(next(&k) == NULL);
    kit_done(&k);
}

TEST(tar_refuses_what_no_careful_program_writes)
{
    struct kit k;

    kit_init(&k);
    TAR_PUT(&k.made, .name = "a/../../etc/passwd");
    refused(&k, "'..'");
    TAR_PUT(&k.made, .name = "h", .type = '1', .link = "../x");
    refused(&k, "'..'");
    TAR_PUT(&k.made, .name = "a");
    k.made.p[3] = 'x';
    refused(&k, "checksum");
    TAR_PUT(&k.made, .name = "a", .data = STR("data"));
    k.made.len -= 510;
    refused(&k, "middle of a file");
    TAR_PUT(&k.made, .name = "a");
    k.made.len -= 100;
    refused(&k, "cut short");
    TAR_PUT(&k.made, .name = "s", .type = 'S');
    refused(&k, "--sparse");
    TAR_PUT(&k.made, .name = "v", .type = 'V');
    refused(&k, "does not know");
    tar_pax(&k.made, "size", "99999999999999999999");
    TAR_PUT(&k.made, .name = "a");
    refused(&k, "number");
    TAR_PUT(&k.made, .name = "pax", .type = 'x', .data = STR("999 path=x\n"));
    TAR_PUT(&k.made, .name = "a");
    refused(&k, "broken");
    TAR_PUT(&k.made, .name = "l", .type = '2');
    refused(&k, "link to nothing");
    TAR_PUT(&k.made, .name = "L", .type = 'L', .data = STR("name"));
    tar_end(&k.made);
    refused(&k, "without its file");
    kit_done(&k);
}
