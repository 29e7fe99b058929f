// SPDX-License-Identifier: Apache-2.0
#include "host/tree/tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "test/test.h"

struct lister {
    struct tree_visitor v;
    struct buf out;
    const char *skip;
};

static fallible list_one(struct tree_visitor *v, enum tree_when when, const struct tree_at *at,
                         bool *skip)
{
    struct lister *l = container_of(v, struct lister, v);

    buf_addf(&l->out, "%c%s;", "-<>"[when], at -> path.p);
    *skip = l->skip && str_eq(at->path, str_of(l->skip));
    return NULL;
}

static void put(int dir, const char *path)
{
    own_fd fd = openat(dir, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    CHECK(fd >= 0);
}

TEST(tree_walk_shows_every_entry_in_the_order_of_the_names)
{
    struct lister l = {.v.visit = list_one};
    own_fd dir = test_dir_fd();

    buf_init(&l.out, 4096);
    CHECK(mkdirat(dir, "b", 0755) == 0 && mkdirat(dir, "b/c", 0755) == 0);
    CHECK(mkdirat(dir, "a", 0755) == 0 && symlinkat("b", dir, "link") == 0);
    put(dir, "b/c/x\ny");
    put(dir, "b/z");
    put(dir, "B");
    CHECK_OK(tree_walk(dir, &l.v));
    CHECK_STR(buf_str(&l.out), "-B;<a;>a;<b;<b/c;-b/c/x\ny;>b/c;-b/z;>b;-link;");
    buf_reset(&l.out);
    l.skip = "b";
    CHECK_OK(tree_walk(dir, &l.v));
    CHECK_STR(buf_str(&l.out), "-B;<a;>a;<b;-link;");
    buf_done(&l.out);
}

/* Deeper than any path the kernel takes, and than descriptors would reach. */
static void dig(int dir, unsigned depth)
{
    own_fd at = openat(dir, ".", O_PATH | O_CLOEXEC);

    for (unsigned i = 0; i < depth; i++) {
        CHECK(mkdirat(at, "a-rather-long-name-of-a-directory", 0755) == 0);
        int next = openat(at, "a-rather-long-name-of-a-directory", O_PATH | O_CLOEXEC);
        CHECK(next >= 0);
        close(at);
        at = next;
    }
    put(at, "bottom");
}

static fallible count_one(struct tree_visitor *v, enum tree_when when, const struct tree_at *at,
                          bool *skip)
{
    struct lister *l = container_of(v, struct lister, v);

    (void)at;
    (void)skip;
    l->out.len += when != TREE_LEAVE;
    return NULL;
}

TEST(tree_of_three_thousand_levels_is_walked_and_removed)
{
    struct lister l = {.v.visit = count_one};
    own_fd dir = test_dir_fd();
    unsigned fds = test_open_fds();

    CHECK(mkdirat(dir, "top", 0755) == 0);
    own_fd top = openat(dir, "top", O_PATH | O_CLOEXEC);
    dig(top, 3000);
    CHECK_OK(tree_walk(top, &l.v));
    CHECK_INT(l.out.len, 3001);
    CHECK_OK(tree_remove(dir, "top"));
    CHECK(faccessat(dir, "top", F_OK, 0) < 0);
    CHECK_INT(test_open_fds(), fds + 1);
}

TEST(tree_remove_takes_all_kinds_of_files_and_leaves_what_links_point_to)
{
    own_fd dir = test_dir_fd();
    char name[32];

    put(dir, "kept");
    CHECK(mkdirat(dir, "t", 0755) == 0 && mkdirat(dir, "t/empty", 0) == 0);
    CHECK(mkdirat(dir, "t/full", 0755) == 0 && symlinkat("../../kept", dir, "t/full/link") == 0);
    CHECK(mkfifoat(dir, "t/fifo", 0644) == 0 && mknodat(dir, "t/white", S_IFCHR, 0) == 0);
    CHECK(symlinkat("..", dir, "t/up") == 0);
    for (unsigned i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "t/full/%u", i);
        put(dir, name);
    }
    CHECK_OK(tree_remove(dir, "t"));
    CHECK(faccessat(dir, "t", F_OK, 0) < 0 && faccessat(dir, "kept", F_OK, 0) == 0);
    CHECK_OK(tree_remove(dir, "t"));
    CHECK(symlinkat("kept", dir, "s") == 0);
    CHECK_OK(tree_remove(dir, "s"));
    CHECK(faccessat(dir, "kept", F_OK, 0) == 0);
}

TEST(tree_of_an_ordinary_user_with_closed_directories_is_removed)
{
    own_fd dir = test_dir_fd();

    if (geteuid() == 0) {
        CHECK(fchown(openat(dir, ".", O_RDONLY | O_CLOEXEC), 65534, 65534) == 0);
        CHECK(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
    }
    CHECK(mkdirat(dir, "t", 0755) == 0 && mkdirat(dir, "t/shut", 0755) == 0);
    put(dir, "t/shut/x");
    CHECK(fchmodat(dir, "t/shut", 0, 0) == 0 && fchmodat(dir, "t", 0500, 0) == 0);
    CHECK_OK(tree_remove(dir, "t"));
    CHECK(faccessat(dir, "t", F_OK, 0) < 0);
}

TEST(tree_copy_keeps_bytes_and_holes)
{
    own_fd dir = test_dir_fd();
    own_fd from = openat(dir, "from", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    own_fd to = openat(dir, "to", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    struct stat st;
    char end[8] = "";

    CHECK(pwrite(from, "start", 5, 0) == 5 && pwrite(from, "end", 3, 5ll << 30) == 3);
    CHECK_OK(tree_copy_bytes(from, to));
    CHECK(fstat(to, &st) == 0);
    CHECK_INT(st.st_size, (5ll << 30) + 3);
    CHECK(st.st_blocks < 1000);
    CHECK(pread(to, end, 5, 0) == 5);
    CHECK_STR(end, "start");
    CHECK(pread(to, end, 5, 5ll << 30) == 3 && end[0] == 'e');
}
