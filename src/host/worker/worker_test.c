// SPDX-License-Identifier: Apache-2.0
#include "host/worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "test/test.h"

struct kit {
    int root, secret, given;
    struct buf answer;
};

static void kit_init(struct kit *k)
{
    own_fd dir = test_dir_fd();

    if (geteuid() == 0)
        CHECK(chmod(test_dir(), 0711) == 0);
    CHECK_OK(fd_make_dirs(dir, STR("root"), 0755, &k->root));
    k->secret = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    k->given = open(test_dir(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    CHECK(k->secret >= 0 && k->given >= 0);
    buf_init(&k->answer, 4096);
}

static void kit_done(struct kit *k)
{
    close(k->root);
    close(k->secret);
    close(k->given);
    buf_done(&k->answer);
}

static fallible run(struct kit *k, struct err *(*inside)(void *arg, int out))
{
    struct worker_job job = {inside, k, k->root, &k->given, 1};

    buf_reset(&k->answer);
    return worker_run(&job, &k->answer);
}

static fallible try_to_leave(void *arg, int out)
{
    struct kit *k = arg;
    char byte;
    struct stat st;

    if (open("/etc/passwd", O_RDONLY) >= 0 || openat(k->root, "../../../etc/passwd", O_RDONLY) >= 0)
        return err_new(ERR_INTERNAL, "a file of the host");
    if (read(k->secret, &byte, 1) >= 0)
        return err_new(ERR_INTERNAL, "a descriptor it was not given");
    if (socket(AF_UNIX, SOCK_STREAM, 0) >= 0 || fork() >= 0 || kill(getppid(), 0) >= 0)
        return err_new(ERR_INTERNAL, "a socket, a process or a signal");
    if (unshare(CLONE_NEWUSER) >= 0 || chroot(".") >= 0 || mount("x", "/", "tmpfs", 0, NULL) >= 0)
        return err_new(ERR_INTERNAL, "a namespace, a root or a mount");
    if (syscall(SYS_execve, "/bin/sh", NULL, NULL) >= 0 || setuid(1) >= 0)
        return err_new(ERR_INTERNAL, "a program or another user");
    if (fstatat(k->root, ".", &st, 0) < 0 || pwrite(k->given, "x", 1, 0) != 1)
        return err_sys("what it was given");
    return fd_write_all(out, STR("sealed"));
}

TEST(worker_reaches_its_root_and_its_descriptors_and_nothing_else)
{
    struct kit k;
    unsigned fds;

    kit_init(&k);
    fds = test_open_fds();
    CHECK_OK(run(&k, try_to_leave));
    CHECK_STR(buf_str(&k.answer), "sealed");
    CHECK_INT(test_open_fds(), fds);
    kit_done(&k);
}

TEST(worker_of_an_ordinary_user_is_sealed_as_well)
{
    struct kit k;

    kit_init(&k);
    if (geteuid() == 0)
        CHECK(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0 &&
              prctl(PR_SET_DUMPABLE, 1) == 0); /* as a process of that user is from birth */
    CHECK_OK(run(&k, try_to_leave));
    kit_done(&k);
}

static fallible fail(void *arg, int out)
{
    (void)arg;
    TRY(fd_write_all(out, STR("some")));
    return err_new(ERR_CONFLICT, "no such luck");
}

static fallible fail_as_last(void *arg, int out)
{
    (void)arg;
    (void)out;
    return err_new(ERR_GONE, "it was there");
}

static fallible flood(void *arg, int out)
{
    char much[5000] = "";

    (void)arg;
    return fd_write_all(out, str_n(much, sizeof much));
}

static fallible crash(void *arg, int out)
{
    (void)arg;
    (void)out;
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
    _exit(3); /* signals are not among what it may send */
}

TEST(worker_says_why_it_failed)
{
    struct kit k;

    kit_init(&k);
    CHECK_ERR(run(&k, fail), ERR_CONFLICT, "no such luck");
    CHECK_ERR(run(&k, fail_as_last), ERR_GONE, "it was there");
    CHECK_ERR(run(&k, flood), ERR_TOO_LARGE, "");
    CHECK_ERR(run(&k, crash), ERR_INTERNAL, "the worker");
    kit_done(&k);
}

static fallible own_files(void *arg, int out)
{
    const struct kit *k = arg;
    own_fd fd = openat(k->root, "f", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    (void)out;
    if (fd < 0 || fchown(fd, 1000, 2000) < 0 || fchmod(fd, 04755) < 0)
        return err_sys("own a file");
    if (mknodat(k->root, "white", S_IFCHR, 0) < 0)
        return err_sys("make a whiteout");
    if (mknodat(k->root, "null", S_IFCHR | 0666, 0x103) == 0)
        return err_new(ERR_INTERNAL, "made a device");
    return NULL;
}

TEST(worker_gives_files_to_the_ids_of_a_sandbox)
{
    struct kit k;
    struct stat st;

    if (geteuid() != 0)
        SKIP("needs root");
    kit_init(&k);
    CHECK_OK(run(&k, own_files));
    CHECK(fstatat(k.root, "f", &st, 0) == 0);
    CHECK_INT(st.st_uid, 1000);
    CHECK_INT(st.st_gid, 2000);
    CHECK_INT(st.st_mode & 07777, 04755);
    kit_done(&k);
}

/* --- a fence --- */

struct fenced {
    int root, work, look, other, secret;
};

/* Gives what was possible, as letters; all small ones must be there and no capital. */
static void try_all(const struct fenced *f, char *out)
{
    struct stat st;
    bool root = geteuid() == 0;
    own_fd made = openat(f->work, "made", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    own_fd seen = openat(f->look, "seen", O_RDONLY | O_CLOEXEC);

    *out++ = made >= 0 ? 'a' : '-';
    *out++ =
        fsetxattr(made, root ? "trusted.overlay.x" : "user.overlay.x", "y", 1, 0) == 0 ? 'b' : '-';
    *out++ = mknodat(f->work, "gone", S_IFCHR, 0) == 0 ? 'c' : '-';
    *out++ = seen >= 0 ? 'd' : '-';
    *out++ = linkat(f->work, "made", f->work, "link", 0) == 0 ? 'e' : '-';
    *out++ = openat(f->look, "new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0 ? 'A' : '.';
    *out++ = openat(f->look, "seen", O_WRONLY | O_CLOEXEC) >= 0 ? 'B' : '.';
    *out++ = openat(f->root, "other/file", O_RDONLY | O_CLOEXEC) >= 0 ? 'C' : '.';
    *out++ = mkdirat(f->root, "x", 0700) == 0 ? 'D' : '.';
    *out++ = fstat(f->secret, &st) == 0 || fstat(f->other, &st) == 0 ? 'E' : '.';
    *out++ = open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0 ? 'F' : '.';
    *out++ = socket(AF_UNIX, SOCK_STREAM, 0) >= 0 ? 'G' : '.';
    *out++ = syscall(SYS_fork) >= 0 ? 'H' : '.';
    *out++ = unshare(CLONE_NEWNS) == 0 ? 'I' : '.';
    *out++ = mount("none", "/", "tmpfs", 0, NULL) == 0 ? 'J' : '.';
    *out++ = kill(getppid(), 0) == 0 ? 'K' : '.';
    *out++ = ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0 ? 'L' : '.';
    *out++ = syscall(SYS_execve, "/proc/self/exe", NULL, NULL) == 0 ? 'M' : '.';
    *out++ = fchdir(f->root) == 0 && chroot("..") == 0 ? 'N' : '.';
    *out = '\0';
}

static void in_fence(struct fenced *f, int out)
{
    char said[64] = "";
    struct err *e = worker_fence(&(struct worker_fence){
        .root = f->root, .work = {f->work, -1, -1}, .look = f->look, .fds = &out, .fd_count = 1});

    if (e)
        snprintf(said, sizeof said, "%.60s", err_text(e));
    else
        try_all(f, said);
    _exit(write(out, said, strlen(said)) < 0);
}

static void check_fence(bool as_nobody)
{
    own_fd dir = test_dir_fd();
    struct fenced f = {.secret = open("/etc/passwd", O_RDONLY | O_CLOEXEC)};
    char said[64];
    int ends[2];

    if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) < 2)
        SKIP("this kernel has no Landlock that would do");
    CHECK_OK(fd_make_dirs(dir, STR("root"), 0755, &f.root));
    CHECK_OK(fd_make_dirs(f.root, STR("work"), 0755, &f.work));
    CHECK_OK(fd_make_dirs(f.root, STR("look"), 0755, &f.look));
    CHECK_OK(fd_make_dirs(f.root, STR("other"), 0755, &f.other));
    CHECK_OK(fd_replace_file(f.look, "seen", STR("x"), 0600));
    CHECK_OK(fd_replace_file(f.other, "file", STR("x"), 0600));
    CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
    if (as_nobody)
        CHECK(fchown(f.work, 65534, 65534) == 0 && fchmodat(f.look, "seen", 0644, 0) == 0 &&
              fchmodat(f.other, "file", 0644, 0) == 0 && chmod(test_dir(), 0755) == 0);
    pid_t pid = fork();
    if (pid == 0 && as_nobody && (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)))
        _exit(9);
    if (pid == 0)
        in_fence(&f, ends[1]);
    close(ends[1]);
    ssize_t n = read(ends[0], said, sizeof said - 1);
    CHECK(n > 0);
    said[n] = '\0';
    CHECK_STR(str_of(said), "abcde..............");
    int status;
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK_INT(status, 0);
}

TEST(fence_leaves_the_named_directories_and_nothing_else)
{
    check_fence(false);
}

TEST(fence_holds_an_ordinary_user_too)
{
    if (geteuid() != 0)
        SKIP("needs root to become somebody else");
    check_fence(true);
}
