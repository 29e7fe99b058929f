// SPDX-License-Identifier: Apache-2.0
/* fd_beneath_test.c — openat2 and the walk are held against one table and against a process that
 * swaps a directory for a link while they look. */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "test/test.h"

#define CREATE  (O_WRONLY | O_CREAT)
#define TMPFILE (O_WRONLY | O_TMPFILE)

static void put_file(int dir, const char *name, const char *text)
{
    own_fd fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    CHECK(fd >= 0);
    CHECK_OK(fd_write_all(fd, str_of(text)));
}

/* top/outside/secret and top/root/…, with links that try all that links can; gives root. */
static int make_tree(const char *top)
{
    static const struct {
        const char *name, *target;
    } links[] = {{"root/self", "."},
                 {"root/out", "../outside"},
                 {"root/abs", "/etc"},
                 {"root/abs_file", "/etc/passwd"},
                 {"root/up", ".."},
                 {"root/again", "../root/file"},
                 {"root/loop", "pool"},
                 {"root/pool", "loop"},
                 {"root/dangling", "nothing"},
                 {"root/dangling_out", "../nothing"},
                 {"root/to_dir", "a/b"},
                 {"root/to_dir_slash", "a/b/"},
                 {"root/to_file", "a/file"},
                 {"root/to_link", "to_dir"},
                 {"root/to_new_dir", "nothing/"},
                 {"root/a/up", ".."},
                 {"root/a/upup", "../.."},
                 {"root/a/b/sneaky", "../../../outside/secret"},
                 {"root/a/b/home", "../../file"}};
    own_fd top_fd = test_dir_fd();
    char name[16], target[16];

    CHECK(mkdirat(top_fd, top, 0755) == 0);
    own_fd t = openat(top_fd, top, O_PATH | O_DIRECTORY);
    static const char *const dirs[] = {"outside", "root", "root/a", "root/a/b"};
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        CHECK(mkdirat(t, dirs[i], 0755) == 0);
    put_file(t, "outside/secret", "secret");
    put_file(t, "root/file", "content");
    put_file(t, "root/a/file", "content");
    put_file(t, "root/a/b/file", "content");
    for (size_t i = 0; i < ARRAY_LEN(links); i++)
        CHECK(symlinkat(links[i].target, t, links[i].name) == 0);
    int root = openat(t, "root", O_PATH | O_DIRECTORY);
    put_file(root, "l0", "end");
    for (int i = 1; i <= 41; i++) { /* li needs i links to be followed */
        snprintf(name, sizeof name, "l%d", i);
        snprintf(target, sizeof target, "l%d", i - 1);
        CHECK(symlinkat(target, root, name) == 0);
    }
    return root;
}

struct verdict {
    int errnum;
    off_t size;
    char where[300]; /* beneath the top of the tree */
};

/* A fallible function's pointer type loses its attribute here, so each is called by name. */
enum way { KERNEL, WALK };

static struct verdict judge(enum way way, int root, const char *top, const char *path, int flags)
{
    struct verdict v = {0};
    own_fd fd = -1;
    struct err *e = way == KERNEL ? fd_open_beneath(root, str_of(path), flags, 0644, &fd)
                                  : fd_open_beneath_walk(root, str_of(path), flags, 0644, &fd);

    if (e) {
        v.errnum = err_errno(e);
        err_free(e);
        return v;
    }
    char link[40], at[300];
    struct stat st;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, at, sizeof at - 1);
    CHECK(n > 0 && fstat(fd, &st) == 0);
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    at[n] = '\0';
    const char *below = top ? strstr(at, top) : at;
    CHECK(below != NULL);
    snprintf(v.where, sizeof v.where, "%s", below + (top ? strlen(top) : 0));
    v.where[strcspn(v.where, "#")] = '\0'; /* the number of an O_TMPFILE */
    v.size = S_ISDIR(st.st_mode) ? 0 : st.st_size;
    return v;
}

static const struct {
    const char *path;
    int flags, errnum;
    const char *where; /* below the tree when errnum is 0 */
} cases[] = {
    {"file", O_RDONLY, 0, "/root/file"},
    {".", O_RDONLY, 0, "/root"},
    {"./", O_RDONLY, 0, "/root"},
    {"./a//b/./file", O_RDONLY, 0, "/root/a/b/file"},
    {"a/b/../file", O_RDONLY, 0, "/root/a/file"},
    {"a/..", O_RDONLY | O_DIRECTORY, 0, "/root"},
    {"a/../", O_PATH, 0, "/root"},
    {"..", O_RDONLY, EXDEV, ""},
    {"../root/file", O_RDONLY, EXDEV, ""},
    {"a/../../root/file", O_RDONLY, EXDEV, ""},
    {"a/b/../../..", O_RDONLY, EXDEV, ""},
    {"/", O_RDONLY, EXDEV, ""},
    {"/etc/passwd", O_RDONLY, EXDEV, ""},
    {"out/secret", O_RDONLY, EXDEV, ""},
    {"out", O_RDONLY, EXDEV, ""},
    {"abs/passwd", O_RDONLY, EXDEV, ""},
    {"abs_file", O_RDONLY, EXDEV, ""},
    {"abs_file", O_WRONLY | O_TRUNC, EXDEV, ""},
    {"up/outside/secret", O_RDONLY, EXDEV, ""},
    {"again", O_RDONLY, EXDEV, ""},
    {"a/upup/outside/secret", O_RDONLY, EXDEV, ""},
    {"a/b/sneaky", O_RDONLY, EXDEV, ""},
    {"a/b/sneaky", O_PATH, EXDEV, ""},
    {"a/b/sneaky", O_PATH | O_NOFOLLOW, 0, "/root/a/b/sneaky"},
    {"a/b/sneaky", O_RDONLY | O_NOFOLLOW, ELOOP, ""},
    {"a/b/home", O_RDONLY, 0, "/root/file"},
    {"a/up/a/up/file", O_RDONLY, 0, "/root/file"},
    {"self/self/self/file", O_RDONLY, 0, "/root/file"},
    {"loop", O_RDONLY, ELOOP, ""},
    {"loop/x", O_RDONLY, ELOOP, ""},
    {"l40", O_RDONLY, 0, "/root/l0"},
    {"l41", O_RDONLY, ELOOP, ""},
    {"to_dir/file", O_RDONLY, 0, "/root/a/b/file"},
    {"to_dir", O_RDONLY | O_DIRECTORY, 0, "/root/a/b"},
    {"to_dir", O_RDONLY | O_NOFOLLOW, ELOOP, ""},
    {"to_dir", O_RDONLY | O_NOFOLLOW | O_DIRECTORY, ENOTDIR, ""},
    {"to_dir/", O_RDONLY | O_NOFOLLOW, 0, "/root/a/b"},
    {"to_link/", O_RDONLY | O_NOFOLLOW, 0, "/root/a/b"},
    {"to_dir_slash", O_RDONLY, 0, "/root/a/b"},
    {"to_file/", O_RDONLY, ENOTDIR, ""},
    {"to_file", O_RDONLY | O_DIRECTORY, ENOTDIR, ""},
    {"to_file", O_PATH, 0, "/root/a/file"},
    {"file/", O_RDONLY, ENOTDIR, ""},
    {"file/.", O_RDONLY, ENOTDIR, ""},
    {"file/x", O_RDONLY, ENOTDIR, ""},
    {"file/..", O_RDONLY, ENOTDIR, ""},
    {"missing", O_RDONLY, ENOENT, ""},
    {"missing/..", O_RDONLY, ENOENT, ""},
    {"dangling", O_RDONLY, ENOENT, ""},
    {"a", O_WRONLY, EISDIR, ""},
    {"new", CREATE, 0, "/root/new"},
    {"a/new", CREATE | O_EXCL, 0, "/root/a/new"},
    {"file", CREATE | O_EXCL, EEXIST, ""},
    {"file", CREATE | O_TRUNC, 0, "/root/file"},
    {"to_file", CREATE | O_TRUNC, 0, "/root/a/file"},
    {"to_file", CREATE | O_EXCL, EEXIST, ""},
    {"to_file", CREATE | O_NOFOLLOW, ELOOP, ""},
    {"dangling", CREATE, 0, "/root/nothing"},
    {"dangling", CREATE | O_EXCL, EEXIST, ""},
    {"dangling_out", CREATE, EXDEV, ""},
    {"to_new_dir", CREATE, EISDIR, ""},
    {"missing/new", CREATE, ENOENT, ""},
    {"new/", CREATE, EISDIR, ""},
    {"a/", CREATE, EISDIR, ""},
    {"a", CREATE, EISDIR, ""},
    {".", CREATE, EISDIR, ""},
    {".", CREATE | O_EXCL, EEXIST, ""},
    {"../new", CREATE, EXDEV, ""},
    {"out/new", CREATE, EXDEV, ""},
    {"new", CREATE | O_DIRECTORY, EINVAL, ""},
    {"file", O_PATH | O_TRUNC, EINVAL, ""},
    {"a", TMPFILE, 0, "/root/a/"},
    {"to_dir", TMPFILE, 0, "/root/a/b/"},
    {"to_dir", TMPFILE | O_NOFOLLOW, ENOTDIR, ""},
    {".", TMPFILE, 0, "/root/"},
    {"out", TMPFILE, EXDEV, ""},
    {"file", TMPFILE, ENOTDIR, ""},
};

TEST(opening_beneath_gives_the_same_verdict_by_openat2_and_by_the_walk)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (enum way way = KERNEL; way <= WALK; way++) {
            char top[32];
            snprintf(top, sizeof top, "tree%zu-%d", i, (int)way);
            own_fd root = make_tree(top);
            unsigned before = test_open_fds();
            struct verdict v = judge(way, root, top, cases[i].path, cases[i].flags);
            if (v.errnum != cases[i].errnum || strcmp(v.where, cases[i].where) != 0)
                FAIL("%s of '%s' with flags 0%o: errno %d at '%s', want %d at '%s'",
                     way == WALK ? "walk" : "openat2", cases[i].path, (unsigned)cases[i].flags,
                     v.errnum, v.where, cases[i].errnum, cases[i].where);
            if (cases[i].flags & O_TRUNC)
                CHECK_INT(v.size, 0);
            CHECK_INT(test_open_fds(), before);
        }
}

TEST(opening_beneath_never_follows_a_magic_link)
{
    static const char *const paths[] = {
        "self/exe",    "self/root/etc/passwd", "self/cwd",       "self/fd/1",       "self/fd/0",
        "self/ns/net", "thread-self/exe",      "self/task/self", "self/fd/1/../..", "self/status",
        "mounts",      "thread-self/status",   "self/fd/pipe",   "net/dev"};
    own_fd proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int pipes[2];

    CHECK(pipe2(pipes, O_CLOEXEC) == 0);
    CHECK(dup2(pipes[0], 0) == 0); /* self/fd/0 reads "pipe:[…]" */
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct verdict kernel = judge(KERNEL, proc, NULL, paths[i], O_RDONLY);
        struct verdict walk = judge(WALK, proc, NULL, paths[i], O_RDONLY);
        if (kernel.errnum != walk.errnum || strcmp(kernel.where, walk.where) != 0)
            FAIL("'%s': openat2 %d at '%s', walk %d at '%s'", paths[i], kernel.errnum, kernel.where,
                 walk.errnum, walk.where);
        if (i < 6)
            CHECK_INT(walk.errnum, ELOOP);
    }
}

TEST(opening_beneath_refuses_an_empty_path_a_nul_and_a_path_that_is_too_long)
{
    own_fd root = make_tree("t");
    static char lots[5000];
    int fd = -1;

    memset(lots, 'x', sizeof lots);
    CHECK_ERR(fd_open_beneath(root, STR(""), O_RDONLY, 0, &fd), ERR_INVALID, "empty");
    CHECK_ERR(fd_open_beneath_walk(root, STR(""), O_RDONLY, 0, &fd), ERR_INVALID, "empty");
    CHECK_ERR(fd_open_beneath(root, STR("file\0x"), O_RDONLY, 0, &fd), ERR_INVALID, "NUL");
    CHECK_ERR(fd_open_beneath_walk(root, STR("file\0x"), O_RDONLY, 0, &fd), ERR_INVALID, "NUL");
    CHECK_ERR(fd_open_beneath(root, str_n(lots, 5000), O_RDONLY, 0, &fd), ERR_INVALID, "long");
    CHECK_ERR(fd_open_beneath_walk(root, str_n(lots, 300), O_RDONLY, 0, &fd), ERR_INVALID, "long");
    for (size_t i = 0; i < sizeof lots; i += 2)
        memcpy(lots + i, "a/", 2);
    own_fd deep = take_fd(&root);
    for (int i = 0; i < 130; i++) {
        CHECK(i < 1 || mkdirat(deep, "a", 0755) == 0);
        int next = openat(deep, "a", O_PATH | O_DIRECTORY | O_CLOEXEC);
        own_close(deep);
        deep = next;
    }
    own_fd base = test_dir_fd();
    own_fd again = openat(base, "t/root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    unsigned before = test_open_fds();
    CHECK_ERR(fd_open_beneath_walk(again, str_n(lots, 260), O_RDONLY, 0, &fd), ERR_INVALID, "long");
    CHECK_INT(test_open_fds(), before);
    CHECK_ERR(fd_open_beneath(again, STR("../outside/secret"), O_RDONLY, 0, &fd), ERR_FORBIDDEN,
              "open '../outside/secret'");
    CHECK_INT(fd, -1);
}

/* Exchanges two names for ever; the runner ends it with the test. */
static pid_t start_swapping(int dir, const char *a, int other, const char *b)
{
    pid_t pid = fork();

    CHECK(pid >= 0);
    while (pid == 0)
        syscall(SYS_renameat2, dir, a, other, b, 2 /* RENAME_EXCHANGE */);
    return pid;
}

static ino_t inode_of(int dir, const char *path)
{
    struct stat st;

    CHECK(fstatat(dir, path, &st, 0) == 0);
    return st.st_ino;
}

/* 20000 opens, and on until both outcomes were seen: otherwise nothing raced. */
static void race(enum way way, int root, const char *path, ino_t secret)
{
    unsigned opened = 0, refused = 0;
    uint64_t end = clock_mono_ns(&clock_system) + test_slow() * 20 * NS_PER_S;

    while (opened + refused < 20000 || !opened || !refused) {
        own_fd fd = -1;
        struct err *e = way == KERNEL ? fd_open_beneath(root, str_of(path), O_RDONLY, 0, &fd)
                                      : fd_open_beneath_walk(root, str_of(path), O_RDONLY, 0, &fd);
        if (e) {
            refused++;
            err_free(e);
            continue;
        }
        struct stat st;
        CHECK(fstat(fd, &st) == 0);
        CHECK(st.st_ino != secret);
        opened++;
        if (clock_mono_ns(&clock_system) > end)
            FAIL("no race in time: %u opened, %u refused", opened, refused);
    }
}

static void race_a_link(enum way way)
{
    own_fd root = make_tree("t");

    put_file(root, "a/secret", "harmless");
    pid_t pid = start_swapping(root, "a", root, "out");
    race(way, root, "a/secret", inode_of(root, "../outside/secret"));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

TEST(openat2_never_escapes_while_a_directory_and_a_link_are_swapped)
{
    race_a_link(KERNEL);
}

TEST(the_walk_never_escapes_while_a_directory_and_a_link_are_swapped)
{
    race_a_link(WALK);
}

/* The directory we stand in is moved out of the root: ".." must not lead to its new neighbours. */
static void race_a_move(enum way way)
{
    own_fd root = make_tree("t");
    own_fd outside = openat(root, "../outside", O_PATH | O_DIRECTORY | O_CLOEXEC);

    put_file(root, "a/secret", "harmless");
    CHECK(mkdirat(outside, "b", 0755) == 0); /* without "home": seen as a refusal */
    put_file(root, "a/b/mine", "");
    pid_t pid = start_swapping(root, "a/b", outside, "b");
    race(way, root, "a/b/mine", 0);
    for (int i = 0; i < 20000; i++) {
        own_fd fd = -1;
        struct stat st;
        struct str path = STR("a/b/../secret");
        struct err *e = way == KERNEL ? fd_open_beneath(root, path, O_RDONLY, 0, &fd)
                                      : fd_open_beneath_walk(root, path, O_RDONLY, 0, &fd);
        CHECK_OK(e); /* busy as it is, the path is always there */
        CHECK(fstat(fd, &st) == 0);
        CHECK(st.st_ino != inode_of(outside, "secret"));
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

TEST(openat2_never_escapes_while_a_directory_is_moved_out)
{
    race_a_move(KERNEL);
}

TEST(the_walk_never_escapes_while_a_directory_is_moved_out)
{
    race_a_move(WALK);
}

TEST(the_walk_closes_all_it_opened_whatever_call_fails)
{
    own_fd root = make_tree("t");
    unsigned before = test_open_fds(), n = 1;

    for (bool fired = true; fired; n++) {
        own_fd fd = -1;
        fault_at(n);
        struct err *e = fd_open_beneath_walk(root, STR("a/b/../../to_link/home"), O_RDONLY, 0, &fd);
        fired = fault_fired();
        fault_at(0);
        CHECK((e != NULL) == (fd < 0));
        CHECK(e || !fired);
        err_free(e);
        own_close(take_fd(&fd));
        CHECK_INT(test_open_fds(), before);
    }
    CHECK(n > 10);
}

TEST(make_dirs_makes_what_is_missing_and_stays_beneath)
{
    own_fd root = make_tree("t");
    own_fd made = -1, again = -1, here = -1;
    unsigned before = test_open_fds();
    int fd = -1;

    CHECK_OK(fd_make_dirs(root, STR("x/y//z/"), 0755, &made));
    put_file(made, "in_z", "");
    CHECK(faccessat(root, "x/y/z/in_z", F_OK, 0) == 0);
    CHECK_OK(fd_make_dirs(root, STR("x/y/z"), 0755, &again));
    CHECK_OK(fd_make_dirs(root, STR("."), 0755, &here));
    CHECK_OK(fd_make_dirs(root, STR("to_dir/q"), 0755, &fd));
    own_close(take_fd(&fd));
    CHECK(faccessat(root, "a/b/q", F_OK, 0) == 0);
    CHECK_ERR(fd_make_dirs(root, STR("out/q"), 0755, &fd), ERR_FORBIDDEN, "out");
    CHECK_ERR(fd_make_dirs(root, STR("new/../../q"), 0755, &fd), ERR_FORBIDDEN, "new/../..");
    CHECK_ERR(fd_make_dirs(root, STR("/"), 0755, &fd), ERR_FORBIDDEN, "/");
    CHECK_ERR(fd_make_dirs(root, STR("/q"), 0755, &fd), ERR_FORBIDDEN, "/q");
    CHECK_ERR(fd_make_dirs(root, STR(""), 0755, &fd), ERR_INVALID, "empty");
    CHECK_ERR(fd_make_dirs(root, STR("n/\0"), 0755, &fd), ERR_INVALID, "NUL");
    CHECK_ERR(fd_make_dirs(root, STR("file/q"), 0755, &fd), ERR_NOT_FOUND, "file/q");
    CHECK_ERR(fd_make_dirs(root, STR("dangling/q"), 0755, &fd), ERR_NOT_FOUND, "dangling");
    CHECK(faccessat(root, "n", F_OK, 0) < 0 && faccessat(root, "../q", F_OK, 0) < 0);
    CHECK_INT(fd, -1);
    CHECK_INT(test_open_fds(), before + 3);
}
