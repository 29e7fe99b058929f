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
#include <sys/stat.h>
#include <sys/syscall.h>
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
