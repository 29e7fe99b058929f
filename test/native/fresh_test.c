// SPDX-License-Identifier: Apache-2.0
/* fresh_test.c — the host changes while its sandboxes run: new ones see it, old ones do not, and
 * nobody waits for the layers. /etc is a copy of the test's own. */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "host/rootfs/rootfs.h"
#include "test/native/kit.h"
#include "test/native/launcher_kit.h"
#include "test/program.h"
#include "test/test.h"

static void own_etc(void)
{
    own_done(buf) out;
    char path[4200];

    buf_init(&out, 1u << 16);
    CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    snprintf(path, sizeof path, "%s/etc", test_dir());
    CHECK_INT(program_run(ARGS("cp", "-a", "/etc", path), &out), 0);
    CHECK_INT(mount(path, "/etc", NULL, MS_BIND, NULL), 0);
}

static unsigned generations(const struct rig *r)
{
    char path[4400];
    unsigned n = 0;

    snprintf(path, sizeof path, "%s/rootfs", r->state);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        n += strncmp(e->d_name, "gen-", 4) == 0;
    if (d)
        closedir(d);
    return n;
}

/* Until there are so many. */
static void wait_generations(const struct rig *r, unsigned want)
{
    char path[4400], events[4096];

    snprintf(path, sizeof path, "%s/rootfs", r->state);
    CHECK(mkdir(path, 0700) == 0 || access(path, F_OK) == 0);
    own_fd fd = inotify_init1(IN_CLOEXEC);
    CHECK(inotify_add_watch(fd, path, IN_CREATE | IN_MOVE | IN_DELETE) >= 0);
    while (generations(r) != want) {
        CHECK_OK(fd_wait(fd, POLLIN, 60000));
        CHECK(read(fd, events, sizeof events) > 0);
    }
}

static bool sees(struct rig *r, const char *id, const char *name)
{
    char path[200];

    snprintf(path, sizeof path, "/proc/%d/root/%s", rig_tell(r, NATIVE_INSPECT, id).pid, name);
    return access(path, F_OK) == 0;
}

static void begin(struct rig *r)
{
    static const char *const images[] = {NULL};

    rig_prepare(r, 1);
    own_etc();
    r->policy.images = images;
    CHECK_INT(mkdir(r->state, 0700), 0);
    r->fds = test_open_fds();
    rig_fork(r);
    wait_generations(r, 1); /* by itself: nobody has asked for a sandbox */
}

static void change_host(void)
{
    own_fd fd = open("/etc/profile.d/croft-test.sh", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    CHECK(fd >= 0);
}

TEST_LIMIT(host_that_changed_a_moment_ago_is_seen_by_the_very_next_start, 200)
{
    struct rig r;

    begin(&r);
    rig_start(&r, "a");
    rig_start(&r, "b"); /* of what the first has looked at */
    CHECK(!sees(&r, "b", "etc/profile.d/croft-test.sh"));
    change_host();
    rig_start(&r, "c");
    CHECK(sees(&r, "c", "etc/profile.d/croft-test.sh"));
    for (unsigned i = 0; i < 3; i++)
        rig_tell(&r, NATIVE_REMOVE, (const char *[]){"a", "b", "c"}[i]);
    rig_close(&r);
}

TEST_LIMIT(changed_host_is_seen_by_new_sandboxes_before_they_are_asked_for, 200)
{
    struct rig r;

    begin(&r);
    rig_start(&r, "a");
    CHECK(!sees(&r, "a", "etc/profile.d/croft-test.sh"));
    change_host();
    wait_generations(&r, 2);
    rig_start(&r, "b");
    CHECK(sees(&r, "b", "etc/profile.d/croft-test.sh"));
    CHECK(!sees(&r, "a", "etc/profile.d/croft-test.sh"));
    CHECK_INT(generations(&r), 2);
    rig_tell(&r, NATIVE_REMOVE, "a");
    wait_generations(&r, 1); /* those of before went with the last who stood on them */
    CHECK(sees(&r, "b", "etc/profile.d/croft-test.sh"));
    rig_tell(&r, NATIVE_REMOVE, "b");
    rig_close(&r);
}
