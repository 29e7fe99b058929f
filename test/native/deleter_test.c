// SPDX-License-Identifier: Apache-2.0
/* deleter_test.c — requests do not wait for other sandboxes, and what was removed goes from the
 * disk whichever process dies meanwhile. */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/own.h"
#include "host/tree/tree.h"
#include "test/native/census.h"
#include "test/native/kit.h"
#include "test/native/launcher_kit.h"
#include "test/program.h"
#include "test/test.h"

/* Its first child that is not `but`; 0: none. */
static pid_t child_of(pid_t parent, pid_t but)
{
    own_done(buf) text;
    char path[64], *rest;

    buf_init(&text, 4096);
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
    CHECK_OK(fd_read_file(path, &text));
    for (rest = text.len ? text.p : NULL; rest;) {
        pid_t pid = (pid_t)strtol(rest, &rest, 10);
        if (!pid || pid != but)
            return pid;
    }
    return 0;
}

static void leave_removed(const struct rig *r, const char *name)
{
    char path[4300];

    snprintf(path, sizeof path, "%s/gone", r->state);
    CHECK(mkdir(r->state, 0700) == 0 || access(r->state, F_OK) == 0);
    CHECK(mkdir(path, 0700) == 0 || access(path, F_OK) == 0);
    snprintf(path, sizeof path, "%s/gone/%s", r->state, name);
    CHECK_INT(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/gone/%s/upper", r->state, name);
    CHECK_INT(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/gone/%s/upper/file", r->state, name);
    own_fd fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
}

TEST(what_a_killed_launcher_removed_is_deleted_by_the_next)
{
    struct rig r;

    rig_prepare(&r, 0);
    leave_removed(&r, "old");
    rig_fork(&r);
    census_wait_deleted(r.state);
    leave_removed(&r, "0"); /* the name that the launcher would use first */
    rig_start(&r, "a");
    rig_tell(&r, NATIVE_REMOVE, "a");
    census_wait_deleted(r.state);
    rig_close(&r);
}

TEST(a_deleter_may_be_killed_and_the_next_removal_deletes_it_all)
{
    struct rig r;

    rig_prepare(&r, 0);
    rig_fork(&r);
    rig_start(&r, "a");
    pid_t box = rig_tell(&r, NATIVE_INSPECT, "a").pid;
    rig_start(&r, "b");
    rig_tell(&r, NATIVE_REMOVE, "b");
    pid_t deleter = child_of(r.pid, box);
    CHECK(deleter > 0);
    CHECK_INT(kill(deleter, SIGKILL), 0);
    leave_removed(&r, "left");
    rig_tell(&r, NATIVE_REMOVE, "a");
    rig_start(&r, "c");
    rig_tell(&r, NATIVE_REMOVE, "c");
    census_wait_deleted(r.state);
    rig_close(&r);
}

static unsigned count_gone(const struct rig *r)
{
    char path[4300];
    unsigned n = 0;

    snprintf(path, sizeof path, "%s/gone", r->state);
    DIR *d = opendir(path);
    CHECK(d != NULL);
    for (struct dirent *at; (at = readdir(d));)
        n += at->d_name[0] != '.';
    closedir(d);
    return n;
}

static void start_and_remove(struct rig *r, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        rig_start(r, "a");
        rig_tell(r, NATIVE_REMOVE, "a");
    }
}

TEST_LIMIT(removed_files_do_not_pile_up_when_no_deleter_can_be_started, 300)
{
    struct rig r;

    fault_share();
    rig_open(&r, 0);
    fault_always("fork");
    start_and_remove(&r, 260);
    CHECK_INT(count_gone(&r), 256); /* the others were deleted at once */
    fault_always(NULL);
    census_wait_deleted(r.state); /* without another removal */
    rig_close(&r);
}

/* It stands still, as a nice process does on a busy machine. */
TEST_LIMIT(a_deleter_is_nice_until_too_many_wait_for_it, 120)
{
    struct rig r;

    if (geteuid() != 0)
        test_skip("only root may make another process less nice");
    rig_open(&r, 0);
    start_and_remove(&r, 1);
    pid_t deleter = child_of(r.pid, 0);
    CHECK(deleter > 0);
    census_wait_deleted(r.state);
    CHECK_INT(getpriority(PRIO_PROCESS, (id_t)deleter), 10);
    CHECK_INT(kill(deleter, SIGSTOP), 0);
    start_and_remove(&r, 62); /* and the first one, if that is not counted yet */
    CHECK_INT(getpriority(PRIO_PROCESS, (id_t)deleter), 10);
    start_and_remove(&r, 2);
    CHECK_INT(getpriority(PRIO_PROCESS, (id_t)deleter), 0);
    CHECK_INT(kill(deleter, SIGCONT), 0);
    census_wait_deleted(r.state);
    rig_close(&r);
}

static void ask(const struct rig *r, enum native_op op, const char *id, uint64_t tag)
{
    struct native_request req = rig_request(op, id);
    own_fd block = rig_block(ARGS("action-server", "--no-auth"), ARGS("PATH=/usr/bin:/bin"));

    req.tag = tag;
    req.envc = 1;
    CHECK_OK(fd_send(r->sock, str_n(&req, sizeof req), &block, op == NATIVE_START));
}

static struct native_reply answer_of(const struct rig *r)
{
    struct native_reply reply;
    size_t n = 0, count = 0;
    int fds[2] = {-1, -1};

    CHECK_OK(fd_wait(r->sock, POLLIN, 60000));
    CHECK_OK(fd_recv(r->sock, &reply, sizeof reply, &n, fds, 2, &count));
    own_close_p(&fds[0]);
    own_close_p(&fds[1]);
    return reply;
}

static uint64_t next_answer(const struct rig *r)
{
    struct native_reply reply = answer_of(r);

    CHECK_STR(str_of(reply.text), "");
    return reply.tag;
}

/* The spare stands still, as one does on a busy machine. */
TEST(only_requests_for_a_starting_sandbox_wait_for_its_start)
{
    struct rig r;

    rig_open(&r, 1);
    rig_tell(&r, NATIVE_LIST, "");
    rig_tell(&r, NATIVE_LIST, "");
    pid_t spare = child_of(r.pid, 0);
    CHECK(spare > 0);
    rig_wait_call(spare, SYS_recvmsg); /* it has done what it can do alone */
    CHECK_INT(kill(spare, SIGSTOP), 0);
    ask(&r, NATIVE_START, "slow", 1);
    ask(&r, NATIVE_LIST, "", 2);
    CHECK_INT(next_answer(&r), 2);
    ask(&r, NATIVE_START, "quick", 3);
    CHECK_INT(next_answer(&r), 3);
    ask(&r, NATIVE_REMOVE, "quick", 4);
    CHECK_INT(next_answer(&r), 4);
    CHECK_INT(kill(spare, SIGCONT), 0);
    CHECK_INT(next_answer(&r), 1);
    rig_check_answers(&r, "slow");
    ask(&r, NATIVE_REMOVE, "slow", 5);
    CHECK_INT(next_answer(&r), 5);
    rig_close(&r);
}

/* A child of the launcher's has copies of its descriptors. If a spare's end were among them, the
 * news of that spare's exec would come when the child ends. */
TEST(a_start_is_told_while_a_child_of_the_launchers_works_on_and_on)
{
    struct native_request import = rig_request(NATIVE_IMAGE_IMPORT, "");
    struct rig r;
    own_fd dir = test_dir_fd(), store = -1, lock = -1;

    rig_prepare(&r, 1);
    r.policy.import_images = true;
    rig_fork(&r);
    rig_tell(&r, NATIVE_LIST, "");
    CHECK_OK(fd_make_dirs(dir, STR("state/images"), 0700, &store));
    CHECK_OK(tree_lock(store, &lock)); /* the child waits for it */
    own_fd archive = memfd_create("archive", MFD_CLOEXEC);
    rig_tell(&r, NATIVE_LIST, ""); /* there is a spare */
    snprintf(import.image_name, sizeof import.image_name, "x");
    import.tag = 1;
    CHECK_OK(fd_send(r.sock, str_n(&import, sizeof import), &archive, 1));
    rig_tell(&r, NATIVE_LIST, ""); /* the child is forked */
    ask(&r, NATIVE_START, "a", 2);
    CHECK_INT(next_answer(&r), 2);
    rig_check_answers(&r, "a");
    close(take_fd(&lock));
    CHECK_INT(answer_of(&r).tag, 1);
    ask(&r, NATIVE_REMOVE, "a", 3);
    CHECK_INT(next_answer(&r), 3);
    close(take_fd(&archive));
    close(take_fd(&store));
    rig_close(&r);
}

/* One that is refused is answered at once. */
TEST(what_is_quick_goes_before_starts_that_came_earlier)
{
    struct rig r;

    rig_open(&r, 0);
    rig_start(&r, "a");
    rig_start(&r, "b");
    CHECK_INT(kill(r.pid, SIGSTOP), 0);
    ask(&r, NATIVE_START, "b", 1);
    ask(&r, NATIVE_INSPECT, "b", 2);
    ask(&r, NATIVE_INSPECT, "a", 3);
    CHECK_INT(kill(r.pid, SIGCONT), 0);
    CHECK_INT(answer_of(&r).tag, 3);
    CHECK_INT(answer_of(&r).tag, 1);
    CHECK_INT(answer_of(&r).tag, 2); /* about the same sandbox: in its order */
    rig_close(&r);
}

TEST(removal_of_a_sandbox_that_is_starting_comes_after_its_start)
{
    struct rig r;

    rig_open(&r, 0);
    ask(&r, NATIVE_START, "a", 1);
    ask(&r, NATIVE_REMOVE, "a", 2);
    CHECK_INT(next_answer(&r), 1);
    CHECK_INT(next_answer(&r), 2);
    rig_close(&r);
}
