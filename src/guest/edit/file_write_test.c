// SPDX-License-Identifier: Apache-2.0
#include "test/edit_kit.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static struct str write_lines(struct kit *k, const char *path, const char *text, int64_t start,
                              int64_t end)
{
    struct file_write_args args = {
        .path = str_of(path), .content = str_of(text), .start = start, .end = end};

    CHECK_OK(file_write(&k->ed.space, &args, &k->a, &k->r));
    return k->r.content;
}

static struct str write_all(struct kit *k, const char *path, const char *text)
{
    return write_lines(k, path, text, 0, -1);
}

TEST(edit_write_always_adds_a_newline)
{
    __attribute__((cleanup(kit_done))) struct kit k;
    struct stat st;

    kit_init(&k);
    CHECK_STR(write_all(&k, "n", "a"), "");
    CHECK_INT(k.r.kind, EDIT_OK);
    CHECK_STR(k.r.path, kit_path(&k, "n"));
    CHECK_STR(kit_get(&k, "n"), "a\n");
    write_all(&k, "n", "a\n");
    CHECK_STR(kit_get(&k, "n"), "a\n\n");
    write_all(&k, "n", "");
    CHECK_STR(kit_get(&k, "n"), "\n");
    CHECK(stat(kit_path(&k, "n").p, &st) == 0);
    CHECK_INT(st.st_mode & 07777, 0664);
}

TEST(edit_write_ranges)
{
    static const struct {
        int start, end;
        const char *want;
    } rows[] = {
        {0, -1, "x\ny\n"},
        {2, -1, "1\n2\nx\ny\n"},
        {1, 2, "1\nx\ny\n3\n4\n"},
        {2, 2, "1\n2\nx\ny\n3\n4\n"},
        {0, 1, "x\ny\n2\n3\n4\n"},
        {9, 9, "1\n2\n3\n4\nx\ny\n"},
        {-1, -1, "1\n2\n3\nx\ny\n"},
        {-9, -2, "x\ny\n3\n4\n"},
        {3, 1, "1\n2\n3\nx\ny\n2\n3\n4\n"},
    };
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        kit_put(&k, "four", STR("1\n2\n3\n4\n"));
        write_lines(&k, "four", "x\ny", rows[i].start, rows[i].end);
        CHECK_STR(kit_get(&k, "four"), rows[i].want);
    }
}

TEST(edit_write_leaves_line_ends_of_other_lines)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    kit_put(&k, "w", STR("1\r\n2\r\n3\n4"));
    write_lines(&k, "w", "x", 1, 2);
    CHECK_STR(kit_get(&k, "w"), "1\r\nx\r\n3\n4");
    write_lines(&k, "w", "y", 9, 9); /* the last line gets the end it was missing */
    CHECK_STR(kit_get(&k, "w"), "1\r\nx\r\n3\n4\r\ny\r\n");
    kit_put(&k, "w", STR("1\r\n2\r\n"));
    write_lines(&k, "w", "x\r\ny", 1, 1); /* asked for in either style */
    CHECK_STR(kit_get(&k, "w"), "1\r\nx\r\ny\r\n2\r\n");
    kit_put(&k, "c", STR("1\r2\r\n3\r\n"));
    write_lines(&k, "c", "", 1, 1);
    CHECK_STR(kit_get(&k, "c"), "1\r\r\n2\r\n3\r\n");
    kit_put(&k, "c", STR("1\r2\n3\n"));
    write_lines(&k, "c", "", 1, 1); /* not one \r\n out of two line ends */
    CHECK_STR(kit_get(&k, "c"), "1\n\n2\n3\n");
    kit_put(&k, "w", STR("1\r\n2\r\n"));
    write_all(&k, "w", "all\nnew");
    CHECK_STR(kit_get(&k, "w"), "all\nnew\n");
}

TEST(edit_write_keeps_mode_and_owner_and_follows_links)
{
    __attribute__((cleanup(kit_done))) struct kit k;
    struct stat st;

    kit_init(&k);
    struct str path = kit_put(&k, "f", STR("x"));
    CHECK(symlink(path.p, kit_path(&k, "l").p) == 0);
    CHECK(symlink("made", kit_path(&k, "m").p) == 0);
    if (geteuid() == 0)
        CHECK(chown(path.p, 1234, 4321) == 0);
    CHECK(chmod(path.p, 0751) == 0);
    write_all(&k, "l", "y");
    write_all(&k, "m", "z");
    CHECK_STR(kit_get(&k, "f"), "y\n");
    CHECK_STR(kit_get(&k, "made"), "z\n");
    CHECK(lstat(kit_path(&k, "l").p, &st) == 0 && S_ISLNK(st.st_mode));
    CHECK(stat(path.p, &st) == 0);
    CHECK_INT(st.st_mode & 07777, 0751);
    if (geteuid() == 0)
        CHECK(st.st_uid == 1234 && st.st_gid == 4321);
}

TEST(edit_write_makes_parents_for_their_user)
{
    __attribute__((cleanup(kit_done))) struct kit k;
    struct stat st;

    kit_init(&k);
    bool is_root = geteuid() == 0;
    k.ed.space.uid = is_root ? 1234 : geteuid();
    k.ed.space.gid = is_root ? 1234 : getegid();
    CHECK_STR(write_all(&k, "a/b/c.txt", "x"), "");
    CHECK_STR(kit_get(&k, "a/b/c.txt"), "x\n");
    static const char *const made[] = {"a", "a/b", "a/b/c.txt"};
    for (size_t i = 0; i < ARRAY_LEN(made); i++) {
        CHECK(stat(kit_path(&k, made[i]).p, &st) == 0);
        CHECK(st.st_uid == k.ed.space.uid && st.st_gid == k.ed.space.gid);
    }
    CHECK(stat(k.dir.p, &st) == 0 && st.st_uid == geteuid()); /* was there: stays as it was */
}

TEST(edit_write_says_what_is_wrong)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    CHECK_STR(write_all(&k, ".", "x"),
              arena_printf(&k.a, "Path is a directory: %s. You can only write to files", k.dir.p));
    CHECK_INT(k.r.kind, EDIT_ERROR);
    kit_put(&k, "latin", STR("caf\xe9\n"));
    CHECK_STR(write_all(&k, "latin", "x"),
              kit_says(&k, "File could not be decoded as utf-8: {}", "latin"));
    CHECK_STR(kit_get(&k, "latin"), "caf\xe9\n");
    CHECK_STR(write_all(&k, "latin/x", "x"),
              kit_says(&k, "[Errno 20] Not a directory: '{}'", "latin/x"));
    CHECK_INT(k.r.kind, EDIT_EXCEPTION);
    CHECK_STR(write_all(&k, "latin/x/y", "x"),
              kit_says(&k, "[Errno 20] Not a directory: '{}'", "latin/x"));
    CHECK_STR(write_all(&k, "s", "lone \xed\xa0\x80"),
              "'utf-8' codec can't encode character '\\ud800' in position 5: surrogates not "
              "allowed");
    CHECK(access(kit_path(&k, "s").p, F_OK) < 0);
}

TEST(edit_write_tells_when_the_owner_could_not_be_set)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    CHECK(chmod(k.dir.p, 0777) == 0 && chmod(test_dir(), 0755) == 0);
    k.ed.space.uid = k.ed.space.gid = 0;
    if (geteuid() == 0 && seteuid(65534) < 0)
        FAIL("seteuid");
    CHECK_STR(write_all(&k, "n", "x"),
              kit_says(&k,
                       "File {} written, but failed to change ownership and permissions: [Errno 1] "
                       "Operation not permitted: '{}'",
                       "n"));
    CHECK_INT(k.r.kind, EDIT_ERROR);
    if (getuid() == 0)
        CHECK(seteuid(0) == 0);
    CHECK_STR(kit_get(&k, "n"), "x\n");
}

TEST(edit_write_in_place_where_the_directory_is_not_ours)
{
    __attribute__((cleanup(kit_done))) struct kit k;
    struct stat before, after;

    if (geteuid() != 0)
        SKIP("needs root to become somebody else");
    kit_init(&k);
    struct str path = kit_put(&k, "f", STR("longer than the new text\n"));
    CHECK(chmod(path.p, 0666) == 0 && chmod(test_dir(), 0755) == 0);
    CHECK(stat(path.p, &before) == 0 && seteuid(65534) == 0);
    CHECK_STR(write_all(&k, "f", "short"), "");
    CHECK(seteuid(0) == 0 && stat(path.p, &after) == 0);
    CHECK_STR(kit_get(&k, "f"), "short\n");
    CHECK_INT(after.st_ino, before.st_ino);
}

static unsigned count_files(const char *path)
{
    DIR *d = opendir(path);
    unsigned n = 0;

    for (const struct dirent *e; d && (e = readdir(d));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

TEST(edit_write_that_is_killed_leaves_the_old_file_and_nothing_beside_it)
{
    __attribute__((cleanup(kit_done))) struct kit k;
    char text[16384];
    int status;

    kit_init(&k);
    CHECK(mkdir(kit_path(&k, "d").p, 0755) == 0);
    kit_put(&k, "d/f", STR("old\n"));
    own_fd fd = open(kit_path(&k, "d").p, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
    if (fd < 0)
        SKIP("the file system has no files without a name");
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    pid_t pid = fork();
    if (pid == 0) {
        const struct rlimit none = {0, 0}, little = {4096, 4096};
        signal(SIGXFSZ, SIG_DFL);
        setrlimit(RLIMIT_CORE, &none);
        setrlimit(RLIMIT_FSIZE, &little); /* a write beyond it ends the process */
        write_all(&k, "d/f", text);
        _exit(0);
    }
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
    CHECK_STR(kit_get(&k, "d/f"), "old\n");
    CHECK_INT(count_files(kit_path(&k, "d").p), 1);
}
