// SPDX-License-Identifier: Apache-2.0
/* disk_test.c — limits on disk space, by each mechanism this machine has. */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "host/launcher/disk.h"
#include "test/native/kit.h"
#include "test/native/launcher_kit.h"
#include "test/program.h"
#include "test/test.h"

#define MIB (1u << 20)

static void need_loop(void)
{
    if (access("/dev/loop-control", W_OK) < 0)
        SKIP("no loop devices here");
    if (access("/usr/sbin/mkfs.ext4", X_OK) < 0 && access("/sbin/mkfs.ext4", X_OK) < 0)
        SKIP("no mkfs.ext4 here");
}

/* Images of this test that a loop device still holds. */
static unsigned count_loops(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < 256; i++) {
        own_done(buf) text;
        char path[64];
        snprintf(path, sizeof path, "/sys/block/loop%u/loop/backing_file", i);
        buf_init(&text, 8192);
        struct err *e = fd_read_file(path, &text);
        n += !e && str_find(buf_str(&text), str_of(test_dir())) >= 0;
        err_free(e);
    }
    return n;
}

static const char fill[] =
    "head -c 40000000 /dev/zero 2>&1 >big | grep -c 'No space\\|quota'; s=$(stat -c %s big);"
    "test $s -gt 24000000 -a $s -lt 36000000 && echo bounded; rm big;"
    "mkdir d; echo x >d/kept; rm -f gone; echo y >/root/z && cat /root/z";

static void run_with(const char *memory, const char *mechanism)
{
    own_done(buf) out;
    own_fd dir = test_dir_fd();
    unsigned before = count_loops(); /* the state's own may be one */
    char words[60];

    buf_init(&out, 1u << 16);
    char ws[4200];
    snprintf(ws, sizeof ws, "%s/ws", test_dir());
    CHECK_INT(mkdir(ws, 0755), 0);
    CHECK_INT(mknodat(dir, "ws/gone", S_IFREG | 0644, 0), 0);
    CHECK_INT(kit_run(ARGS("--workspace", ws, "--disk", "32M", "--memory", memory, "--name", "d",
                           "--json"),
                      ARGS("sh", "-c", fill), &out),
              0);
    CHECK_HAS(buf_str(&out), "1\nbounded\ny\n");
    snprintf(words, sizeof words, "\"disk_limit\": \"%s\"", mechanism);
    CHECK_HAS(buf_str(&out), str_of(words));
    CHECK_HAS(buf_str(&out), "\"kept\": true");
    CHECK_INT(count_loops(), before);
    buf_reset(&out);
    CHECK_INT(program_run(ARGS(test_program("croft"), "diff", "d"), &out), 0);
    CHECK_STR(buf_str(&out), "A  d/\nA  d/kept\nD  gone\n");
    CHECK_INT(program_run(ARGS(test_program("croft"), "apply", "d"), &out), 0);
    CHECK_INT(faccessat(dir, "ws/d/kept", F_OK, 0), 0);
    struct stat st;
    CHECK_INT(fstatat(dir, "ws/d/kept", &st, 0), 0);
    CHECK_INT(st.st_uid, 0);
    CHECK_INT(faccessat(dir, "ws/gone", F_OK, 0), -1);
    CHECK_INT(program_run(ARGS(test_program("croft"), "rollback", "d"), &out), 0);
    kit_check_empty("state/box");
    kit_check_empty("state/ids");
}

TEST_LIMIT(disk_limit_that_fits_memory_is_a_tmpfs_and_what_changed_is_kept, 60)
{
    struct kit k;

    kit_open(&k);
    bool shifts = disk_mechanism(&k.h, false) != NATIVE_DISK_LOOP;
    kit_close(&k);
    run_with("200M", shifts ? "tmpfs" : "loop"); /* before Linux 6.3 */
}

TEST_LIMIT(disk_limit_beyond_memory_is_an_image_that_leaves_no_loop_device, 60)
{
    need_loop();
    run_with("40M", "loop");
}

/* What is taken out at the end is a copy, and younger than the edit. */
TEST_LIMIT(edit_during_a_run_on_a_disk_of_its_own_is_a_conflict, 60)
{
    static const char script[] =
        "cd $1 && mkdir ws && cd ws && echo old >f && mkfifo ../in && exec 3<>../in\n"
        "$0 run --disk 32M --memory 200M --name d -- sh -c 'echo mine >f; echo up; read x' <&3 |\n"
        "{ read up; >../a; until [ f -nt ../a ]; do echo theirs >f; done; echo go >&3; cat; }\n"
        "$0 apply d; echo \"code $?\"; cat f";
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    CHECK_INT(kit_run(ARGS("--discard"), ARGS("true"), &out), 0); /* layers */
    buf_reset(&out);
    program_run(ARGS("bash", "-c", script, test_program("croft"), test_dir()), &out);
    CHECK_HAS(buf_str(&out), "changed in the directory too");
    CHECK_HAS(buf_str(&out), "code 1\ntheirs\n");
    CHECK_INT(program_run(ARGS(test_program("croft"), "rollback", "d"), &out), 0);
}

static bool tmpfs_has_attributes(void)
{
    own_fd fd = memfd_create("tmpfs", MFD_CLOEXEC);

    return fd >= 0 && fsetxattr(fd, "user.croft", "y", 1, 0) == 0;
}

TEST_LIMIT(ordinary_user_has_a_disk_limit_from_memory_and_no_other, 120)
{
    own_done(buf) out;
    char state[4200];

    buf_init(&out, 1u << 16);
    kit_be_nobody();
    snprintf(state, sizeof state, "%s/state", test_dir());
    kit_share_layers_as(state, "test-state-user", KIT_NOBODY);
    CHECK_INT(mkdir("ws", 0755), 0); /* with the layers mounted, the directory above is no layer */
    CHECK_INT(chown("ws", KIT_NOBODY, KIT_NOBODY), 0);
    if (!tmpfs_has_attributes()) { /* before Linux 6.6 */
        CHECK_INT(kit_as_nobody(ARGS("run", "--disk", "32M", "--bare", "--", "true"), &out), 125);
        CHECK_HAS(buf_str(&out), "on Linux 6.6 or later");
        kit_check_empty("state/box");
        return;
    }
    CHECK_INT(kit_as_nobody(ARGS("run", "--workspace", "ws", "--disk", "32M", "--name", "d",
                                 "--json", "--", "sh", "-c", fill),
                            &out),
              0);
    CHECK_HAS(buf_str(&out), "1\nbounded\ny\n");
    CHECK_HAS(buf_str(&out), "\"disk_limit\": \"tmpfs\"");
    buf_reset(&out);
    CHECK_INT(kit_as_nobody(ARGS("diff", "d"), &out), 0);
    CHECK_HAS(buf_str(&out), "A  d/kept\n");
    CHECK_INT(kit_as_nobody(ARGS("rollback", "d"), &out), 0);
    buf_reset(&out);
    char most[32];
    snprintf(most, sizeof most, "%lluM",
             (unsigned long long)sysconf(_SC_PHYS_PAGES) * 4096 / 8 * 7 >> 20);
    CHECK_INT(kit_as_nobody(ARGS("run", "--disk", most, "--bare", "--", "true"), &out), 125);
    CHECK_HAS(buf_str(&out), "three quarters of the memory");
    kit_check_empty("state/box");
}

/* A /dev that has what a start needs, and no loop devices. */
static void hide_loops(void)
{
    static const struct {
        const char *path;
        unsigned minor;
    } nodes[] = {{"/dev/null", 3}, {"/dev/zero", 5}, {"/dev/full", 7}, {"/dev/urandom", 9}};

    CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    CHECK(mount("none", "/dev", "tmpfs", 0, NULL) == 0);
    for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
        CHECK_INT(mknod(nodes[i].path, S_IFCHR | 0666, makedev(1, nodes[i].minor)), 0);
}

TEST(disk_limit_nobody_can_hold_is_refused_with_what_is_missing)
{
    own_done(buf) out;
    struct kit k;

    kit_need_root();
    if (strncmp(test_dir(), "/dev/", 5) == 0)
        SKIP("the test's files are below /dev");
    buf_init(&out, 1u << 16);
    hide_loops();
    kit_open(&k);
    if (disk_mechanism(&k.h, true) == NATIVE_DISK_PROJECT)
        SKIP("project quotas are here");
    struct native_limits l = {.disk_bytes = 64 * MIB};
    enum native_disk disk;
    CHECK_ERR(disk_choose(&k.h, &l, true, -1, &disk), ERR_UNSUPPORTED, "/dev/loop-control");
    bool tmpfs = disk_mechanism(&k.h, false) == NATIVE_DISK_TMPFS;
    CHECK_STR(str_of(disk_describe(&k.h)), tmpfs ? "tmpfs, for croft run alone" : "none");
    kit_close(&k);
    CHECK_INT(kit_run(ARGS("--discard", "--disk", "1G", "--memory", "64M"), ARGS("true"), &out),
              125);
    CHECK_HAS(buf_str(&out), "e2fsprogs");
    kit_check_empty("state/box");
}

TEST(disk_limit_too_small_to_be_one_is_refused)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    CHECK_INT(kit_run(ARGS("--discard", "--disk", "100K"), ARGS("true"), &out), 125);
    CHECK_HAS(buf_str(&out), "--disk: 102400 bytes; wanted 1M to "); /* before anything is made */
}

/* --- behind the launcher --- */

static void start_limited(struct rig *r, const char *id, const char *from, uint64_t bytes)
{
    struct native_request req = rig_request(NATIVE_START, id);
    struct native_reply reply;
    int fds[2];

    own_fd block = rig_block(ARGS("action-server", "--no-auth"), ARGS(NULL));
    req.limits.disk_bytes = bytes;
    snprintf(req.snapshot, sizeof req.snapshot, "%s", from);
    rig_ask(r, &req, &block, 1, &reply, fds);
    CHECK_STR(str_of(reply.text), "");
    CHECK_INT(reply.disk, NATIVE_DISK_LOOP);
    close(fds[0]);
    close(fds[1]);
}

static void inside(struct rig *r, const char *id, const char *name, char out[200])
{
    snprintf(out, 200, "/proc/%d/root/%s", rig_tell(r, NATIVE_INSPECT, id).pid, name);
}

static void rig_with_loops(struct rig *r)
{
    static const char *const images[] = {NULL};

    need_loop();
    rig_prepare(r, 1);
    kit_share_layers(r->state);
    r->policy.images = images;
    r->fds = test_open_fds();
}

TEST_LIMIT(disk_image_is_the_sandboxes_for_life_and_its_snapshot_is_a_copy, 60)
{
    struct rig r;
    char path[200];
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    rig_with_loops(&r);
    rig_fork(&r);
    start_limited(&r, "a", "", 32 * MIB);
    CHECK_INT(count_loops(), 1);
    inside(&r, "a", "root/file", path); /* as its root: the ids of others do not fit in */
    CHECK_INT(program_run(ARGS("nsenter", "--user", "--root", "--setuid=0", "--setgid=0", "-t",
                               strtok(path + 6, "/"), "--", "touch", "/root/file"),
                          &out),
              0);
    struct native_request snap = rig_request(NATIVE_SNAPSHOT, "a");
    strcpy(snap.snapshot, "live");
    rig_ok(&r, &snap);
    CHECK_INT(count_loops(), 1);
    start_limited(&r, "l", "live", 24 * MIB);
    inside(&r, "l", "root/file", path);
    CHECK_INT(access(path, F_OK), 0);
    rig_tell(&r, NATIVE_REMOVE, "l");
    strcpy(snap.snapshot, "point");
    rig_tell(&r, NATIVE_KILL, "a");
    CHECK_INT(count_loops(), 0);
    rig_ok(&r, &snap);
    CHECK_INT(count_loops(), 0);
    struct native_request again = rig_request(NATIVE_START, "a");
    own_fd block = rig_block(ARGS("action-server"), ARGS(NULL));
    again.limits.disk_bytes = 64 * MIB;
    rig_refused(&r, &again, &block, 1, ERR_CONFLICT, "another limit");
    close(take_fd(&block));
    start_limited(&r, "a", "", 0);
    inside(&r, "a", "root/file", path);
    CHECK_INT(access(path, F_OK), 0);
    start_limited(&r, "b", "point", 24 * MIB);
    inside(&r, "b", "root/file", path);
    CHECK_INT(access(path, F_OK), 0);
    rig_tell(&r, NATIVE_REMOVE, "a");
    rig_tell(&r, NATIVE_REMOVE, "b");
    CHECK_INT(count_loops(), 0);
    rig_close(&r);
}

TEST_LIMIT(disk_image_lives_on_when_the_launcher_is_killed, 60)
{
    struct rig r;

    rig_with_loops(&r);
    r.policy.persist = true;
    rig_fork(&r);
    start_limited(&r, "a", "", 32 * MIB);
    rig_kill(&r);
    rig_fork(&r);
    CHECK_INT(rig_tell(&r, NATIVE_INSPECT, "a").disk, NATIVE_DISK_LOOP);
    rig_tell(&r, NATIVE_REMOVE, "a");
    rig_close(&r);
    rig_reap();
    CHECK_INT(count_loops(), 0);
}

/* --- project quotas --- */

TEST_LIMIT(disk_limit_by_project_quota_is_edquot, 60)
{
    own_done(buf) out;
    char image[4200], state[4200];
    struct kit k;

    kit_need_root();
    need_loop();
    buf_init(&out, 1u << 16);
    snprintf(image, sizeof image, "%s/image", test_dir());
    snprintf(state, sizeof state, "%s/state", test_dir());
    CHECK_INT(program_run(ARGS("mkfs.ext4", "-q", "-O", "quota,project", "-E", "quotatype=prjquota",
                               image, "128M"),
                          &out),
              0);
    CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    CHECK_INT(mkdir(state, 0700), 0);
    if (program_run(ARGS("mount", "-o", "loop,prjquota", image, state), &out) != 0)
        SKIP("this kernel mounts no file system with project quotas");
    kit_open(&k);
    CHECK_INT(disk_mechanism(&k.h, true), NATIVE_DISK_PROJECT);
    kit_close(&k);
    CHECK_INT(umount2(state, MNT_DETACH), 0);
    CHECK_INT(program_run(ARGS("mount", "-o", "loop,prjquota", image, state), &out), 0);
    run_with("200M", "project");
}
