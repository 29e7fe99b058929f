// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "guest/edit/history.h"
#include "guest/edit/space.h"
#include "test/edit_kit.h"

TEST(edit_paths_are_normal_as_in_pathlib)
{
    static const struct {
        const char *path, *want, *suffix;
    } rows[] = {
        {"", ".", ""},
        {".", ".", ""},
        {"/", "/", ""},
        {"//", "//", ""},
        {"///a", "/a", ""},
        {"//a", "//a", ""},
        {"a//b/./c/", "a/b/c", ""},
        {"./a", "a", ""},
        {"/..", "/..", ""},
        {"a/../b", "a/../b", ""},
        {"/./", "/", ""},
        {"/a/x.tar.gz", "/a/x.tar.gz", ".gz"},
        {"/a.d/b", "/a.d/b", ""},
        {".bashrc", ".bashrc", ""},
        {"a.", "a.", ""},
    };
    struct arena a;

    arena_init(&a, 1u << 20);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_STR(space_normal(&a, str_of(rows[i].path)), rows[i].want);
        CHECK_STR(space_suffix(str_of(rows[i].path)), rows[i].suffix);
    }
    CHECK_STR(space_join(&a, STR("/w"), STR("x/./y")), "/w/x/y");
    CHECK_STR(space_join(&a, STR("/w"), STR("/x")), "/x");
    CHECK_STR(space_parent(STR("/a/b")), "/a");
    CHECK_STR(space_parent(STR("/a")), "/");
    CHECK_STR(space_parent(STR("a")), "");
    arena_done(&a);
}

#define REFUSED                                                                                    \
    "You're not allowed to access this path: {}. You can only access paths inside the workspace."

TEST(edit_boundary_holds_for_every_command)
{
    static const char *const names[] = {"../out", "to_out", "abs",        "up/out",
                                        "up/new", "to_new", "d/../../out"};
    static const char *const commands[] = {"view", "str_replace", "insert", "undo_edit", "create"};
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    struct str out = kit_put(&k, "../out", STR("secret\n"));
    CHECK(mkdir(kit_path(&k, "d").p, 0755) == 0);
    CHECK(symlink("../out", kit_path(&k, "to_out").p) == 0);
    CHECK(symlink("../new", kit_path(&k, "to_new").p) == 0);
    CHECK(symlink(out.p, kit_path(&k, "abs").p) == 0);
    CHECK(symlink("..", kit_path(&k, "up").p) == 0);
    kit_fence(&k);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct str path = kit_path(&k, names[i]);
        struct file_read_args in = {.path = path, .end = -1};
        struct file_write_args to = {.path = path, .content = STR("x"), .end = -1};
        struct str says = kit_says(&k, REFUSED, names[i]);
        CHECK_OK(file_read(&k.ed.space, &in, &k.a, &k.r));
        CHECK_STR(k.r.content, says);
        CHECK_OK(file_write(&k.ed.space, &to, &k.a, &k.r));
        CHECK_STR(k.r.content, says);
        for (size_t c = 0; c < ARRAY_LEN(commands); c++)
            CHECK_STR(kit_edit(&k, (struct editor_args){.file_text = STR("x"), .old_str = STR("s")},
                               commands[c], names[i]),
                      arena_printf(&k.a, "ERROR:\n" STR_FMT, STR_ARG(says)));
    }
    CHECK_STR(kit_get(&k, "../out"), "secret\n");
    CHECK(access(kit_path(&k, "../new").p, F_OK) < 0);
}

TEST(edit_boundary_refuses_other_absolute_paths)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    kit_fence(&k);
    struct str near = arena_printf(&k.a, "%sx/f", k.dir.p); /* the root is a prefix, not a parent */
    struct str paths[] = {STR("/etc/passwd"), STR("/"), near, STR("//etc")};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct file_read_args in = {.path = paths[i], .end = -1};
        CHECK_OK(file_read(&k.ed.space, &in, &k.a, &k.r));
        CHECK(str_starts(k.r.content, STR("You're not allowed to access this path: ")));
        struct file_write_args to = {.path = paths[i], .content = STR("x"), .end = -1};
        CHECK_OK(file_write(&k.ed.space, &to, &k.a, &k.r));
        CHECK(str_starts(k.r.content, STR("You're not allowed to access this path: ")));
    }
}

TEST(edit_boundary_allows_what_is_inside)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    CHECK(mkdir(kit_path(&k, "d").p, 0755) == 0);
    CHECK(symlink("../d/real", kit_path(&k, "d/link").p) == 0);
    CHECK(symlink("..", kit_path(&k, "d/up").p) == 0);
    CHECK(symlink("/etc", kit_path(&k, "out").p) == 0);
    kit_fence(&k);
    struct file_write_args to = {.path = STR("d/link"), .content = STR("x"), .end = -1};
    CHECK_OK(file_write(&k.ed.space, &to, &k.a, &k.r));
    CHECK_STR(k.r.content, "");
    CHECK_STR(kit_get(&k, "d/real"), "x\n");
    kit_insert(&k, "d/up/d/link", "0", "y");
    CHECK_STR(kit_get(&k, "d/real"), "y\nx\n");
    to.path = STR("d/up/new/dir/f");
    CHECK_OK(file_write(&k.ed.space, &to, &k.a, &k.r));
    CHECK_STR(kit_get(&k, "new/dir/f"), "x\n");
    struct editor_args view = {.command = STR("view"), .path = k.dir};
    CHECK_OK(editor_run(&k.ed, &view, &k.a, &k.r));
    CHECK_HAS(k.r.content, "/out"); /* shown as a name, not looked into */
    CHECK(str_find(k.r.content, STR("/out/")) < 0);
}

/* A stranger turns a directory into a link to the outside and back, all the time. */
static pid_t start_flipper(struct kit *k)
{
    char a[512], b[512];

    snprintf(a, sizeof a, "%s/flip", k->dir.p);
    snprintf(b, sizeof b, "%s/other", k->dir.p);
    CHECK(symlink("../outside", b) == 0);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    char t[512];
    snprintf(t, sizeof t, "%s/third", k->dir.p);
    for (;;) {
        rename(a, t);
        rename(b, a);
        rename(a, b);
        rename(t, a);
    }
}

TEST(edit_boundary_holds_while_links_are_being_swapped)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    CHECK(mkdir(kit_path(&k, "../outside").p, 0755) == 0);
    CHECK(mkdir(kit_path(&k, "flip").p, 0755) == 0);
    kit_put(&k, "../outside/f", STR("outside\n"));
    kit_put(&k, "flip/f", STR("inside\n"));
    kit_fence(&k);
    pid_t pid = start_flipper(&k);
    for (int i = 0; i < 2000; i++) {
        struct file_write_args to = {.path = STR("flip/f"), .content = STR("inside"), .end = -1};
        struct file_read_args in = {.path = STR("flip/f"), .end = -1};
        CHECK_OK(file_write(&k.ed.space, &to, &k.a, &k.r));
        CHECK_OK(file_read(&k.ed.space, &in, &k.a, &k.r));
        CHECK(str_find(k.r.content, STR("outside\n")) < 0);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    CHECK_STR(kit_get(&k, "../outside/f"), "outside\n");
    CHECK(!kit_has_leftovers(&k));
}

TEST(edit_link_loops_end)
{
    __attribute__((cleanup(kit_done))) struct kit k;
    struct file_write_args to = {.path = STR("loop"), .content = STR("x"), .end = -1};

    kit_init(&k);
    CHECK(symlink("loop", kit_path(&k, "loop").p) == 0);
    for (int fenced = 0; fenced < 2; fenced++) {
        CHECK_OK(file_write(&k.ed.space, &to, &k.a, &k.r));
        CHECK_STR(k.r.content,
                  kit_says(&k, "[Errno 40] Too many levels of symbolic links: '{}'", "loop"));
        if (!fenced)
            kit_fence(&k);
    }
}

TEST(edit_notices_that_a_file_was_changed_meanwhile)
{
    __attribute__((cleanup(kit_done))) struct kit k;
    struct stat st;

    kit_init(&k);
    struct str path = kit_put(&k, "f", STR("old"));
    CHECK_OK(space_stat(&k.ed.space, path, &st));
    kit_put(&k, "g", STR("new"));
    CHECK(rename(kit_path(&k, "g").p, path.p) == 0);
    struct space_save save = {.path = path, .data = STR("mine"), .old = &st};
    CHECK_ERR(space_save(&k.ed.space, &save, NULL), ERR_IO, "was changed by somebody else");
    CHECK_STR(kit_get(&k, "f"), "new");
    save.old = NULL; /* a new file takes nobody's place */
    CHECK_ERR(space_save(&k.ed.space, &save, NULL), ERR_CONFLICT, "rename");
    CHECK_STR(kit_get(&k, "f"), "new");
    CHECK(!kit_has_leftovers(&k));
}

TEST(edit_on_a_full_disk_leaves_the_old_file)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    if (geteuid() != 0)
        SKIP("needs root to mount");
    kit_init(&k);
    if (mount("none", k.dir.p, "tmpfs", MS_NOSUID | MS_NODEV, "size=64k") < 0)
        SKIP("cannot mount a tmpfs: %m");
    char *big = malloc(48 << 10);
    CHECK(big);
    memset(big, 'x', 48 << 10);
    big[(48 << 10) - 1] = '\0';
    kit_put(&k, "f", STR("old\n"));
    kit_put(&k, "ballast", str_n(big, 40 << 10));
    struct file_write_args to = {.path = STR("f"), .content = str_of(big), .end = -1};
    CHECK_OK(file_write(&k.ed.space, &to, &k.a, &k.r));
    bool told = str_starts(k.r.content, STR("[Errno 28] No space left on device: "));
    bool kept = str_eq(kit_get(&k, "f"), STR("old\n"));
    to.path = STR("new");
    CHECK_OK(file_write(&k.ed.space, &to, &k.a, &k.r));
    bool none = access(kit_path(&k, "new").p, F_OK) < 0;
    struct str said = kit_insert(&k, "f", "0", big);
    bool left = kit_has_leftovers(&k);
    umount2(k.dir.p, MNT_DETACH);
    free(big);
    CHECK(told && kept && none && !left);
    CHECK_HAS(said, "ERROR:\nRan into [Errno 28] No space left on device: ");
}

TEST(edit_history_forgets_the_oldest_path)
{
    struct buf b;
    bool found;
    char path[32];

    buf_init(&b, 1000);
    for (int i = 0; i <= HISTORY_PATHS; i++) {
        snprintf(path, sizeof path, "/f%d", i);
        CHECK_OK(history_push(test_dir_fd(), str_of(path), STR("x")));
        if (i == 0)
            utimensat(test_dir_fd(), ".", NULL, 0);
    }
    CHECK_OK(history_last(test_dir_fd(), str_of(path), &b, &found));
    CHECK(found);
    CHECK_STR(buf_str(&b), "x");
    CHECK_OK(history_drop(test_dir_fd(), str_of(path)));
    CHECK_OK(history_drop(test_dir_fd(), str_of(path))); /* none is fine */
    CHECK_OK(history_last(test_dir_fd(), str_of(path), &b, &found));
    CHECK(!found);
    buf_done(&b);
}
