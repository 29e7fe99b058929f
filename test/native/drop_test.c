// SPDX-License-Identifier: Apache-2.0
/* drop_test.c — the server of a croft that root started: it can do its work and nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "host/launcher/drop.h"
#include "host/kernel/sys.h"
#include "test/native/kit.h"
#include "test/native/launcher_kit.h"
#include "test/program.h"
#include "test/test.h"

static char sockets[300], secret[300];

/* A launcher for a server that is nobody, in a place nobody can get to. */
static void open_for_nobody(struct rig *r, struct launcher_user *user)
{
    kit_need_root();
    rig_prepare(r, 1);
    CHECK_OK(launcher_find_user((uid_t)-1, user));
    CHECK(user->uid != 0);
    CHECK_INT(chmod(test_dir(), 0711), 0);
    snprintf(sockets, sizeof sockets, "%s/sockets", test_dir());
    snprintf(secret, sizeof secret, "%s/secret", test_dir());
    own_fd fd = open(secret, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    close(take_fd(&fd));
    r->policy.sockets = sockets;
    r->policy.server = user->uid;
    rig_fork(r);
}

/* Runs as the server would, in a process of its own, which has the launcher's socket. */
static void as_server(struct rig *r, const struct launcher_user *user, void (*fn)(struct rig *r))
{
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK_OK(launcher_drop_privileges(user));
        fn(r);
        _exit(0);
    }
    CHECK_INT(program_wait(pid), 0);
}

static void do_all(struct rig *r)
{
    rig_start(r, "a");
    rig_check_answers(r, "a");
    rig_tell(r, NATIVE_PAUSE, "a");
    rig_tell(r, NATIVE_RESUME, "a");
    rig_check_answers(r, "a");
    CHECK_INT(rig_tell(r, NATIVE_INSPECT, "a").state, NATIVE_RUNNING);
    rig_tell(r, NATIVE_KILL, "a");
    rig_start(r, "a");
    rig_tell(r, NATIVE_REMOVE, "a");
}

TEST(a_server_without_privilege_does_all_its_work)
{
    struct rig r;
    struct launcher_user user;

    open_for_nobody(&r, &user);
    as_server(&r, &user, do_all);
    rig_close(&r);
}

#define REFUSED(call, want)                                                                        \
    do {                                                                                           \
        errno = 0;                                                                                 \
        CHECK_INT(call, -1);                                                                       \
        CHECK_INT(errno, want);                                                                    \
    } while (0)

static void check_status(const char *line)
{
    own_done(buf) text;

    buf_init(&text, 1u << 16);
    CHECK_OK(fd_read_file("/proc/self/status", &text));
    CHECK_HAS(buf_str(&text), str_of(line));
}

static void try_files(struct rig *r)
{
    char path[4300];

    REFUSED(open(secret, O_RDONLY | O_CLOEXEC), EACCES);
    REFUSED(open("/etc/shadow", O_RDONLY | O_CLOEXEC), EACCES);
    REFUSED(open(r->state, O_RDONLY | O_CLOEXEC), EACCES);
    snprintf(path, sizeof path, "%s/box/a/record", r->state);
    REFUSED(open(path, O_RDONLY | O_CLOEXEC), EACCES);
    snprintf(path, sizeof path, "%s/x", sockets);
    REFUSED(symlink("/run", path), EACCES);
    snprintf(path, sizeof path, "%s/a.s", sockets);
    REFUSED(unlink(path), EACCES);
    REFUSED(open(sockets, O_RDONLY | O_CLOEXEC), EACCES);
}

static void try_processes(struct rig *r, pid_t inside, int pidfd)
{
    char path[64];

    REFUSED(kill(r->pid, 0), EPERM);
    REFUSED(kill(inside, 0), EPERM);
    REFUSED(kill(getppid(), 0), EPERM);
    REFUSED(sys_pidfd_kill(pidfd, 0), EPERM);
    REFUSED(syscall(SYS_pidfd_getfd, pidfd, 3, 0), EPERM);
    REFUSED(setns(pidfd, CLONE_NEWNS | CLONE_NEWPID), EPERM);
    REFUSED(ptrace(PTRACE_SEIZE, inside, NULL, NULL), EPERM);
    REFUSED(ptrace(PTRACE_SEIZE, r->pid, NULL, NULL), EPERM);
    snprintf(path, sizeof path, "/proc/%d/mem", (int)r->pid);
    REFUSED(open(path, O_RDWR | O_CLOEXEC), EACCES);
    snprintf(path, sizeof path, "/proc/%d/root/", (int)inside);
    REFUSED(open(path, O_PATH | O_CLOEXEC), EACCES);
}

static void try_all(struct rig *r)
{
    struct native_request req = rig_request(NATIVE_ADOPT, "a");
    struct native_reply reply;
    int fds[2];

    rig_start(r, "a");
    rig_ask(r, &req, NULL, 0, &reply, fds);
    CHECK(reply.pid > 1 && fds[0] >= 0);
    try_files(r);
    try_processes(r, reply.pid, fds[0]);
    REFUSED(setuid(0), EPERM);
    REFUSED(setgid(0), EPERM);
    REFUSED(setgroups(0, NULL), EPERM);
    REFUSED(mount("none", "/tmp", "tmpfs", 0, NULL), EPERM);
    REFUSED(chroot("/tmp"), EPERM);
    check_status("CapInh:\t0000000000000000");
    check_status("CapPrm:\t0000000000000000");
    check_status("CapBnd:\t0000000000000000");
    check_status("CapAmb:\t0000000000000000");
    check_status("NoNewPrivs:\t1");
    CHECK_INT(prctl(PR_GET_DUMPABLE), 0);
    close(fds[0]);
}

TEST(a_server_without_privilege_reaches_nothing_of_the_hosts)
{
    struct rig r;
    struct launcher_user user;

    open_for_nobody(&r, &user);
    as_server(&r, &user, try_all);
    rig_close(&r);
}

/* Another user of the machine, not the server's. */
TEST(only_the_server_connects_to_a_sandbox_or_the_launcher)
{
    struct rig r;
    struct launcher_user user, stranger = {12345, 12345};
    static const char *const names[] = {"a.s", "a.c", "launcher"};

    kit_need_root();
    open_for_nobody(&r, &user);
    close(r.sock);
    CHECK_INT(program_wait(r.pid), 0);
    r.policy.persist = true;
    rig_fork(&r);
    rig_start(&r, "a");
    pid_t pid = fork();
    if (pid == 0) {
        CHECK_OK(launcher_drop_privileges(&stranger));
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
            struct sockaddr_un a = {.sun_family = AF_UNIX};
            int type = i < 2 ? SOCK_STREAM : SOCK_SEQPACKET;
            own_fd fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
            snprintf(a.sun_path, sizeof a.sun_path, "%.80s/%s", sockets, names[i]);
            REFUSED(connect(fd, (struct sockaddr *)&a, sizeof a), EACCES);
        }
        _exit(0);
    }
    CHECK_INT(program_wait(pid), 0);
    rig_tell(&r, NATIVE_REMOVE, "a");
    rig_close(&r);
}

TEST(root_is_no_user_for_a_server)
{
    CHECK_ERR(launcher_drop_privileges(&(struct launcher_user){0, 65534}), ERR_INVALID,
              "not be root");
    CHECK_ERR(launcher_drop_privileges(&(struct launcher_user){65534, 0}), ERR_INVALID,
              "not be root");
}

/* A directory that is another's could lead the launcher, which connects there too, anywhere. */
TEST(a_directory_of_sockets_that_is_not_ours_is_refused)
{
    struct rig r;

    rig_prepare(&r, 0);
    snprintf(sockets, sizeof sockets, "%s/sockets", test_dir());
    CHECK_INT(mkdir(sockets, 0700), 0);
    CHECK_INT(chown(sockets, 65534, 65534), 0);
    r.policy.sockets = sockets;
    rig_fork(&r);
    CHECK_INT(program_wait(r.pid), 1);
    close(r.sock);
}

/* In a mount namespace with other accounts. */
static void with_accounts(const char *text)
{
    char path[300];

    snprintf(path, sizeof path, "%s/passwd", test_dir());
    own_fd fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    CHECK_OK(fd_write_all(fd, str_of(text)));
    CHECK_INT(unshare(CLONE_NEWNS), 0);
    CHECK_INT(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    CHECK_INT(mount(path, "/etc/passwd", NULL, MS_BIND, NULL), 0);
}

TEST(a_server_has_a_user_of_its_own_unless_nobody_has_its_files)
{
    struct launcher_user u;

    kit_need_root();
    with_accounts("root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n"
                  "croft:x:987:986::/:/bin/sh\n");
    CHECK_OK(launcher_find_user((uid_t)-1, &u));
    CHECK(u.uid == 987 && u.gid == 986 && !u.shared);
    CHECK_OK(launcher_find_user(987, &u));
    CHECK(u.uid == 987 && !u.shared);
    CHECK_OK(launcher_find_user(0, &u)); /* it was killed before it gave them away */
    CHECK(u.uid == 987 && !u.shared);
    CHECK_OK(launcher_find_user(65534, &u));
    CHECK(u.uid == 65534 && u.shared);
}

static void check_doctor_warns(void)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    CHECK_INT(program_run(ARGS(test_program("croft"), "doctor"), &out), 0);
    kit_settle();
    CHECK_HAS(buf_str(&out), "A server would be 'nobody' here: ");
    CHECK_HAS(buf_str(&out), "useradd");
}

TEST_LIMIT(a_server_that_is_nobody_is_told_that_others_are_too, 60)
{
    struct launcher_user u;
    char state[4200];

    kit_need_root();
    with_accounts("root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n");
    CHECK_OK(launcher_find_user((uid_t)-1, &u));
    CHECK(u.uid == 65534 && u.shared);
    snprintf(state, sizeof state, "%s/state", test_dir());
    setenv("CROFT_SERVER_STATE_DIR", state, 1);
    check_doctor_warns();
}

TEST_LIMIT(a_server_that_stays_nobody_for_its_files_is_told_so, 60)
{
    char state[4200], server[4300];

    kit_need_root();
    with_accounts("root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n"
                  "croft:x:987:986::/:/bin/sh\n");
    snprintf(state, sizeof state, "%s/state", test_dir());
    snprintf(server, sizeof server, "%s/server", state);
    CHECK_INT(mkdir(state, 0711), 0);
    CHECK_INT(mkdir(server, 0700), 0);
    CHECK_INT(chown(server, 65534, 65534), 0);
    setenv("CROFT_SERVER_STATE_DIR", state, 1);
    check_doctor_warns();
}
