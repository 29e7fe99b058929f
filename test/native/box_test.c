// SPDX-License-Identifier: Apache-2.0
/* box_test.c — native sandboxes, one at a time: they start, hold, and leave nothing. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/rng.h"
#include "host/launcher/box_sweep.h"
#include "test/native/kit.h"
#include "test/test.h"

/* Runs a script to its end and gives what it printed. */
static int run(struct kit *k, const char *script, struct buf *out)
{
    struct kit_box b;
    struct box box;

    kit_prepare(k, &b, "t1", script);
    kit_start(k, &b, &box);
    return kit_end(k, &b, &box, out);
}

TEST(a_native_sandbox_runs_a_program_and_gives_its_exit_code)
{
    struct kit k;
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    kit_open(&k);
    CHECK_INT(run(&k, "echo hello; exit 7", &out), 7);
    CHECK_STR(buf_str(&out), "hello\n");
    kit_close(&k);
}

/* By its path: since kit_open() we may be in another namespace of mounts than before. */
static int open_src(void)
{
    char path[4200];

    snprintf(path, sizeof path, "%s/src", test_dir());
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(fd >= 0);
    return fd;
}

/* As Linux does before 6.13; every kernel still can. */
TEST(a_native_sandbox_starts_where_overlays_take_their_layers_by_path)
{
    struct kit k;
    struct kit_box b;
    struct box box;
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    kit_need_root();
    CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    kit_open(&k);
    k.h.by_path = true;
    own_fd dir = test_dir_fd();
    CHECK_INT(mkdirat(dir, "src", 0755), 0);
    CHECK_INT(mknodat(dir, "src/theirs", S_IFREG | 0644, 0), 0);
    kit_prepare(&k, &b, "t1",
                "ls /copy; rm /copy/theirs; echo x >/copy/mine; touch /etc/new; id -u");
    b.req.mounts[0] = (struct native_mount){.mode = NATIVE_OVERLAY, .path = "."};
    strcpy(b.req.mounts[0].target, "/copy");
    b.spec.sources[0] = open_src();
    kit_start(&k, &b, &box);
    CHECK_OK(fd_read_all(b.out, &out));
    CHECK_INT(kit_wait(&box), 0);
    CHECK_STR(buf_str(&out), "theirs\n0\n");
    struct stat st;
    CHECK_INT(fstatat(k.h.boxes, "t1/m0u/mine", &st, 0), 0);
    CHECK_INT(st.st_uid, 0);
    CHECK_INT(fstatat(k.h.boxes, "t1/u/etc/new", &st, 0), 0);
    CHECK_INT(faccessat(dir, "src/theirs", F_OK, 0), 0);
    CHECK_OK(box_remove(&k.h, &box, false));
    kit_forget(&b);
    close(b.spec.sources[0]);
    close(take_fd(&dir));
    kit_close(&k); /* which counts mounts */
}

TEST(a_native_sandbox_sees_itself_alone)
{
    struct kit k;
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    kit_open(&k);
    CHECK_INT(run(&k,
                  "id -u; hostname; ls -d /proc/[0-9]* | wc -l; ls /sys/class/net 2>/dev/null;"
                  "grep -c : /proc/net/dev; cat /proc/self/uid_map | tr -s ' ';"
                  "ls /proc/self/fd | wc -l",
                  &out),
              0);
    /* one interface (two header lines have no colon after a name: lo and the headings) */
    CHECK_HAS(buf_str(&out), "0\nbox\n");
    CHECK_HAS(buf_str(&out), " 65536\n");
    kit_close(&k);
}

TEST(a_native_sandbox_can_reconfigure_nothing)
{
    static const char script[] = "mount -t tmpfs none /mnt 2>/dev/null && echo mounted;"
                                 "umount /proc 2>/dev/null && echo unmounted;"
                                 "unshare -U true 2>/dev/null && echo userns;"
                                 "unshare -n true 2>/dev/null && echo netns;"
                                 "hostname other 2>/dev/null && echo hostname;"
                                 "echo 1 2>/dev/null >/proc/sys/vm/drop_caches && echo sysctl;"
                                 "echo h 2>/dev/null >/proc/sysrq-trigger;"
                                 "mknod /dev/x c 1 1 2>/dev/null && echo node;"
                                 "ip link add d0 type dummy 2>/dev/null && echo link;"
                                 "dmesg >/dev/null 2>&1 && echo dmesg;"
                                 "[ /proc/keys -ef /dev/null ] || [ ! -e /proc/keys ] || echo null;"
                                 "chmod 600 /proc/keys 2>/dev/null && echo chmod;"
                                 "echo end";
    struct kit k;
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    kit_open(&k);
    CHECK_INT(run(&k, script, &out), 0);
    CHECK_STR(buf_str(&out), "end\n");
    kit_close(&k);
}

TEST(a_native_sandbox_writes_into_its_own_layer_with_plain_ids)
{
    struct kit k;
    struct kit_box b;
    struct box box;
    struct stat st;

    kit_open(&k);
    kit_prepare(&k, &b, "t1", "echo x >/root-made; touch /theirs; chown 1000:1000 /theirs");
    kit_start(&k, &b, &box);
    CHECK_INT(kit_wait(&box), 0);
    CHECK_INT(fstatat(k.h.boxes, "t1/u/root-made", &st, 0), 0);
    CHECK_INT(st.st_uid, 0);
    CHECK_INT(fstatat(k.h.boxes, "t1/u/theirs", &st, 0), 0);
    CHECK_INT(st.st_uid, 1000);
    CHECK_INT(access("/root-made", F_OK), -1);
    CHECK_OK(box_remove(&k.h, &box, false));
    kit_forget(&b);
    kit_close(&k);
}

TEST(mounts_are_read_only_writable_or_a_copy_as_asked)
{
    static const char *const targets[] = {"/t/ro", "/t/rw", "/t/copy"};
    struct kit k;
    struct kit_box b;
    struct box box;
    struct stat st;
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    own_fd dir = test_dir_fd();
    kit_open(&k);
    CHECK_INT(mkdirat(dir, "src", 0755), 0);
    kit_prepare(&k, &b, "t1",
                "for m in ro rw copy; do { echo $m >/t/$m/$m; } 2>/dev/null && echo $m; done");
    own_fd src = open_src();
    for (unsigned i = 0; i < 3; i++) {
        b.req.mounts[i] = (struct native_mount){.mode = NATIVE_RO + i, .path = "."};
        strcpy(b.req.mounts[i].target, targets[i]);
        b.spec.sources[i] = src;
    }
    kit_start(&k, &b, &box);
    CHECK_OK(fd_read_all(b.out, &out));
    CHECK_INT(kit_wait(&box), 0);
    CHECK_STR(buf_str(&out), "rw\ncopy\n");
    CHECK_INT(fstatat(src, "rw", &st, 0), 0);
    CHECK_INT(fstatat(src, "copy", &st, 0), -1);
    CHECK_INT(fstatat(k.h.boxes, "t1/m2u/copy", &st, 0), 0);
    CHECK_OK(box_remove(&k.h, &box, false));
    kit_forget(&b);
    close(take_fd(&src));
    kit_close(&k);
}

TEST(a_sandbox_of_a_name_that_is_taken_is_refused_and_the_first_lives)
{
    struct kit k;
    struct kit_box b, other;
    struct box box, none;
    own_done(buf) out;

    buf_init(&out, 4096);
    kit_open(&k);
    kit_prepare(&k, &b, "t1", "read x; echo alive");
    int in[2];
    CHECK_INT(pipe2(in, O_CLOEXEC), 0);
    b.spec.fds[0] = in[0];
    kit_start(&k, &b, &box);
    kit_prepare(&k, &other, "t1", "true");
    CHECK_ERR(kit_try(&k, &other, &none), ERR_CONFLICT, "of this name already");
    kit_forget(&other);
    CHECK_OK(fd_write_all(in[1], STR("go\n")));
    CHECK_INT(kit_end(&k, &b, &box, &out), 0);
    CHECK_STR(buf_str(&out), "alive\n");
    close(in[0]);
    close(in[1]);
    kit_close(&k);
}

TEST(killing_a_sandbox_ends_all_that_runs_in_it)
{
    struct kit k;
    struct kit_box b;
    struct box box;
    char c;

    kit_open(&k);
    kit_prepare(&k, &b, "t1", "(setsid sleep 1000 &) ; echo up; sleep 1000");
    kit_start(&k, &b, &box);
    CHECK_INT(read(b.out, &c, 1), 1);
    CHECK_OK(box_kill(&k.h, &box));
    CHECK_INT(kit_end(&k, &b, &box, NULL), 128 + 9);
    kit_close(&k);
}

TEST(a_paused_sandbox_does_nothing_until_it_is_resumed)
{
    struct kit k;
    struct kit_box b;
    struct box box;
    char c = 0;
    int in[2];

    kit_open(&k);
    if (!cg_has(&k.h.cg, CG_FREEZER))
        SKIP("no control group that freezes");
    kit_prepare(&k, &b, "t1", "echo up; read x; echo down");
    CHECK_INT(pipe2(in, O_CLOEXEC), 0);
    b.spec.fds[0] = in[0];
    kit_start(&k, &b, &box);
    CHECK_INT(read(b.out, &c, 1), 1);
    CHECK_OK(box_pause(&k.h, &box, true));
    CHECK_OK(fd_write_all(in[1], STR("x\n")));
    char rest[8];
    CHECK_INT(read(b.out, rest, sizeof rest), 2); /* what came before the pause */
    CHECK_OK(fd_set_nonblocking(b.out));
    CHECK_INT(read(b.out, rest, sizeof rest), -1);
    CHECK_INT(errno, EAGAIN);
    CHECK_OK(box_pause(&k.h, &box, false));
    CHECK_OK(fd_wait(b.out, 1 /* POLLIN */, 20000));
    CHECK_INT(kit_end(&k, &b, &box, NULL), 0);
    close(in[0]);
    close(in[1]);
    kit_close(&k);
}

TEST(a_paused_sandbox_can_be_killed)
{
    struct kit k;
    struct kit_box b;
    struct box box;
    char c;

    kit_open(&k);
    if (!cg_has(&k.h.cg, CG_FREEZER))
        SKIP("no control group that freezes");
    kit_prepare(&k, &b, "t1", "echo up; sleep 1000");
    kit_start(&k, &b, &box);
    CHECK_INT(read(b.out, &c, 1), 1);
    CHECK_OK(box_pause(&k.h, &box, true));
    CHECK_OK(box_kill(&k.h, &box));
    CHECK_INT(kit_end(&k, &b, &box, NULL), 128 + 9);
    kit_close(&k);
}

TEST(fifty_sandboxes_one_after_the_other_leave_nothing)
{
    struct kit k;

    kit_open(&k);
    for (unsigned i = 0; i < 50; i++)
        CHECK_INT(run(&k, "exit 3", NULL), 3);
    kit_close(&k);
}

TEST(links_a_sandbox_leaves_in_its_layer_lead_the_removal_nowhere)
{
    struct kit k;
    struct kit_box b;
    struct box box;
    char script[512];
    own_fd dir = test_dir_fd();

    kit_open(&k);
    CHECK_INT(mkdirat(dir, "src", 0755), 0);
    CHECK_INT(mkdirat(dir, "incompat", 0755), 0);
    CHECK_INT(mkdirat(dir, "incompat/volatile", 0755), 0);
    snprintf(script, sizeof script, "ln -s %s /t/work", test_dir());
    kit_prepare(&k, &b, "t1", script);
    own_fd src = open_src();
    b.req.mounts[0] = (struct native_mount){.mode = NATIVE_OVERLAY, .path = ".", .target = "/t"};
    b.spec.sources[0] = src;
    kit_start(&k, &b, &box);
    CHECK_INT(kit_end(&k, &b, &box, NULL), 0);
    CHECK_INT(faccessat(dir, "incompat/volatile", F_OK, 0), 0);
    close(take_fd(&src));
    kit_close(&k);
}

/* Older kernels read some ids as signed numbers. */
TEST(a_native_sandbox_starts_with_ids_above_two_to_the_31)
{
    enum { NEAR = 4096 }; /* ranges below, tried first */
    struct kit k;
    struct kit_box b;
    struct box box;
    char name[16];
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    kit_open(&k);
    for (unsigned i = 0; i < NEAR; i++) {
        snprintf(name, sizeof name, "%u", i);
        CHECK_INT(symlinkat("taken", k.h.ids, name), 0);
    }
    kit_prepare(&k, &b, "t1", "stat -c %g /dev/pts/ptmx; id -u");
    kit_start(&k, &b, &box);
    CHECK(box.slot >= NEAR);
    for (unsigned i = 0; i < NEAR; i++) {
        snprintf(name, sizeof name, "%u", i);
        CHECK_INT(unlinkat(k.h.ids, name, 0), 0);
    }
    CHECK_INT(kit_end(&k, &b, &box, &out), 0);
    CHECK_STR(buf_str(&out), "0\n0\n");
    kit_close(&k);
}

TEST(a_spare_process_nobody_wants_leaves_nothing)
{
    struct kit k;
    struct box_spare e;

    kit_open(&k);
    CHECK_OK(box_prepare_spare(&k.h, "t1", &e));
    box_drop_spare(&k.h, &e);
    kit_close(&k);
}

/* The n-th call, ours or the sandbox's, for every n: the start either works or says which step
 * failed, and leaves nothing. */
TEST_LIMIT(every_call_of_a_start_may_fail_and_nothing_is_left, 120)
{
    struct kit k;
    unsigned failed = 0, ok = 0;

    kit_open(&k);
    fault_share();
    for (unsigned n = 1; n < 400 && ok < 12; n++) {
        struct kit_box b;
        struct box box;
        kit_prepare(&k, &b, "t1", "exit 0");
        fault_at(n);
        struct err *e = kit_try(&k, &b, &box);
        fault_at(0);
        failed += e != NULL;
        ok = e ? 0 : ok + 1; /* some failures are survived; a run of successes is the end */
        printf("call %u, %s: %s\n", n, fault_fired() ? fault_name() : "none",
               e ? err_text(e) : "it started");
        if (e) {
            CHECK(fault_fired()); /* nothing else is wrong with it */
            CHECK(strchr(err_text(e), ':') != NULL);
            err_free(e);
            kit_forget(&b);
        } else {
            own_close_p(&b.spec.fds[1]);
            b.spec.fds[1] = -1;
            kit_end(&k, &b, &box, NULL);
        }
        kit_check_empty("state/box");
        kit_check_empty("state/ids");
    }
    CHECK(failed > 80);
    CHECK_INT(ok, 12);
    kit_close(&k);
}

static bool in_use(void *arg, unsigned slot)
{
    (void)arg, (void)slot;
    return false;
}

/* Whose a group is is noted in an attribute that not every kernel, nor every root, can set. */
static bool takes_notes(const struct cg *cg, unsigned slot)
{
    char path[64];
    int parent = cg->v2;

    for (unsigned c = 0; c < CG_COUNT && parent < 0; c++)
        parent = cg->v1[c];
    snprintf(path, sizeof path, "/proc/self/fd/%d/s%u", parent, slot);
    return setxattr(path, "trusted.croft-test", "", 0, 0) == 0;
}

/* Two states of one machine choose among the same slots. A claim that outlived its group, because
 * who held it was killed before it could give that back too, gives no right to another's. */
TEST(what_is_left_of_a_claim_does_not_end_the_sandbox_of_another_state)
{
    struct kit k;
    struct box_host other;
    struct box_spare e;
    char state[4200], name[16];

    kit_open(&k);
    if (!cg_has(&k.h.cg, CG_PIDS) && k.h.cg.v2 < 0)
        SKIP("there are no control groups here");
    snprintf(state, sizeof state, "%s/other", test_dir());
    CHECK_OK(box_host_open(&other, state, rng_system()));
    CHECK_OK(box_prepare_spare(&other, "+1", &e));
    if (!takes_notes(&other.cg, e.slot)) {
        box_drop_spare(&other, &e);
        SKIP("control groups take no trusted attributes here");
    }
    snprintf(name, sizeof name, "%u", e.slot);
    CHECK_INT(symlinkat("+1", k.h.ids, name), 0);
    CHECK_OK(box_clear_claims(&k.h, in_use, NULL));
    kit_check_empty("state/ids");
    CHECK_INT(waitpid(e.pid, NULL, WNOHANG | __WALL), 0);
    CHECK_INT(symlinkat("+1", k.h.ids, name), 0);
    CHECK_OK(box_sweep(&k.h, false));
    kit_check_empty("state/ids");
    CHECK_INT(waitpid(e.pid, NULL, WNOHANG | __WALL), 0);
    box_drop_spare(&other, &e);
    box_host_close(&other);
    kit_close(&k);
}
