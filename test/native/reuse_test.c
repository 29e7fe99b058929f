// SPDX-License-Identifier: Apache-2.0
/* reuse_test.c — the next sandbox is made of parts of the last, and sees nothing of it. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/own.h"
#include "host/launcher/box_inner.h"
#include "host/launcher/box_sweep.h"
#include "host/launcher/reuse/reuse.h"
#include "host/tree/tree.h"
#include "test/native/kit.h"
#include "test/native/launcher_kit.h"
#include "test/test.h"

#define MNT_ID_UNIQUE 0x4000  /* STATX_, since Linux 6.8 */
#define LAYERS        "gen-a" /* copies of them are kept with a used slot */

static void open_many(struct kit *k)
{
    struct rlimit files;

    kit_need_root();
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) { /* as a server does for its launcher */
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    kit_open(k);
    if (!cg_has(&k->h.cg, CG_MEMORY) || !cg_has(&k->h.cg, CG_PIDS))
        SKIP("no control groups that count memory and processes");
    CHECK_OK(box_host_many(&k->h));
    k->h.reuse = reuse_new(&k->h, NULL);
    if (!k->h.reuse)
        SKIP("too few files may be open");
}

static void run(struct kit *k, const struct native_limits *limits, const char *script,
                struct box *ret_box, struct buf *out)
{
    struct kit_box b;

    kit_prepare(k, &b, "t1", script);
    b.req.limits = *limits;
    b.spec.root_id = LAYERS;
    kit_start(k, &b, ret_box);
    CHECK_INT(kit_end(k, &b, ret_box, out), 0);
}

/* The number in a file of a slot's group, UINT64_MAX for "max" and all that is more than a long. */
static uint64_t number(const struct kit *k, enum cg_controller c, unsigned slot, const char *v1,
                       const char *v2)
{
    const struct cg *cg = &k->h.cg;
    char path[64], text[64] = "";
    uint64_t n;

    snprintf(path, sizeof path, "s%u/%s", slot, cg->on_v2[c] ? v2 : v1);
    own_fd fd = openat(cg->on_v2[c] ? cg->v2 : cg->v1[c], path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    bool is = str_to_u64(str_trim(str_of(text)), &n);
    return is && n < INT64_MAX / 4096 * 4096 ? n : UINT64_MAX;
}

TEST(a_sandbox_made_of_a_used_slot_has_the_limits_it_asked_for)
{
    static const struct native_limits tight = {
        .memory_bytes = 64u << 20, .pids = 40, .cpu_milli = 500};
    static const struct native_limits none;
    struct kit k;
    struct kit_box b;
    struct box first, second;

    open_many(&k);
    run(&k, &tight, "exit 0", &first, NULL);
    CHECK_INT(reuse_count(k.h.reuse, REUSE_SLOT), 1);
    CHECK_INT(number(&k, CG_PIDS, first.slot, "pids.max", "pids.max"), 40);
    kit_prepare(&k, &b, "t1", "exit 0");
    b.req.limits = none;
    kit_start(&k, &b, &second);
    CHECK_INT(second.slot, first.slot);
    CHECK_INT(reuse_count(k.h.reuse, REUSE_SLOT), 0);
    CHECK(second.cpu_ns > 0);
    CHECK(number(&k, CG_PIDS, second.slot, "pids.max", "pids.max") == UINT64_MAX);
    CHECK(number(&k, CG_MEMORY, second.slot, "memory.limit_in_bytes", "memory.max") == UINT64_MAX);
    if (!k.h.cg.on_v2[CG_CPU] && cg_has(&k.h.cg, CG_CPU))
        CHECK(number(&k, CG_CPU, second.slot, "cpu.cfs_quota_us", "") == UINT64_MAX);
    CHECK_INT(kit_end(&k, &b, &second, NULL), 0);
    run(&k, &tight, "exit 0", &second, NULL);
    CHECK_INT(second.slot, first.slot);
    CHECK_INT(number(&k, CG_MEMORY, first.slot, "memory.limit_in_bytes", "memory.max"), 64u << 20);
    kit_close(&k);
}

TEST(a_used_slot_that_shows_any_trace_is_not_used_again)
{
    static const struct native_limits small = {.memory_bytes = 32u << 20};
    static const struct native_limits none;
    struct kit k;
    struct kit_box b;
    struct box box;

    open_many(&k);
    if (!cg_has(&k.h.cg, CG_FREEZER))
        SKIP("no control group that freezes");
    kit_prepare(&k, &b, "t1", "sleep 1000"); /* it stood still when it died */
    kit_start(&k, &b, &box);
    CHECK_OK(box_pause(&k.h, &box, true));
    CHECK_OK(box_kill(&k.h, &box));
    CHECK_INT(kit_end(&k, &b, &box, NULL), 128 + SIGKILL);
    CHECK_INT(reuse_count(k.h.reuse, REUSE_SLOT), 0);
    /* something was killed in it for want of memory */
    run(&k, &small, "(head -c 64m /dev/zero | tail -c 64m >/dev/null) 2>/dev/null; exit 0", &box,
        NULL);
    CHECK_INT(reuse_count(k.h.reuse, REUSE_SLOT), 0);
    /* it went well: the next is made of it, and so on */
    for (unsigned i = 0; i < 3; i++) {
        run(&k, &none, "exit 0", &box, NULL);
        CHECK_INT(reuse_count(k.h.reuse, REUSE_SLOT), 1);
    }
    kit_close(&k);
}

/* root_id NULL: nothing is. Gives the inode of the note, 0 for none. */
static ino_t noted(struct kit *k, const char *id, const char *root_id)
{
    struct kit_box b;
    struct box box;
    struct stat st = {0};
    char path[64], text[80];

    kit_prepare(k, &b, id, "exit 0");
    b.spec.root_id = root_id;
    own_fd before = openat(k->h.boxes, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (before >= 0) {
        b.spec.flags = BOX_DIR_MADE;
        CHECK_OK(tree_remove(before, "w"));
    }
    kit_start(k, &b, &box);
    snprintf(path, sizeof path, "%s/root", id);
    ssize_t n = readlinkat(k->h.boxes, path, text, sizeof text);
    CHECK_INT(n, root_id ? (ssize_t)strlen(root_id) : -1);
    CHECK(!root_id || memcmp(text, root_id, (size_t)n) == 0);
    CHECK_INT(fstatat(k->h.boxes, path, &st, AT_SYMLINK_NOFOLLOW), root_id ? 0 : -1);
    CHECK_INT(kit_wait(&box), 0);
    kit_forget(&b);
    CHECK_OK(box_remove(&k->h, &box, true));
    return st.st_ino;
}

TEST(sandboxes_of_the_same_layers_note_them_by_one_link)
{
    struct kit k;

    open_many(&k);
    ino_t first = noted(&k, "t1", "gen-a");
    CHECK(noted(&k, "t2", "gen-a") == first);
    CHECK(noted(&k, "t3", "gen-b") != first);
    CHECK(noted(&k, "t2", "gen-a") != first); /* the last one made is gen-b's */
    CHECK_INT(noted(&k, "t2", NULL), 0);
    for (unsigned i = 1; i <= 3; i++) {
        char id[8];
        snprintf(id, sizeof id, "t%u", i);
        CHECK_OK(box_remove_dir(&k.h, id));
    }
    noted(&k, "t1", "gen-a"); /* of one that has no name any more no name can be made */
    CHECK_OK(box_remove_dir(&k.h, "t1"));
    kit_close(&k);
}

/* Copy n of the layers `id` for a slot, as a build makes it: which mount that is. */
static uint64_t copy_of_dir(struct kit *k, uint32_t slot, const char *id, unsigned n, int dir)
{
    struct reuse_part p;
    struct statx x;
    int fd = -1;

    reuse_take_layers(&k->h, slot, id, &p);
    CHECK_OK(reuse_copy_layer(&p, n, dir, -1, &fd));
    reuse_put(k->h.reuse, REUSE_LAYERS, &p);
    CHECK_INT(statx(fd, "", AT_EMPTY_PATH, MNT_ID_UNIQUE, &x), 0);
    close(fd);
    return x.stx_mnt_id;
}

static uint64_t copy_of(struct kit *k, uint32_t slot, const char *id, unsigned n)
{
    return copy_of_dir(k, slot, id, n, k->root);
}

TEST(copies_of_layers_are_used_again_for_the_same_slot_and_layers)
{
    struct kit k;

    open_many(&k);
    if (k.h.by_path)
        SKIP("layers are lent here");
    uint64_t first = copy_of(&k, 7, "gen-a", 0);
    CHECK(copy_of(&k, 7, "gen-a", 0) == first);
    CHECK(copy_of(&k, 7, "gen-a", 1) != first);
    CHECK(copy_of(&k, 8, "gen-a", 0) != first);
    CHECK(copy_of(&k, 7, "gen-a", 0) == first);
    uint64_t other = copy_of(&k, 7, "gen-b", 0);
    CHECK(other != first);
    reuse_drop_layers(&k.h, 7);
    CHECK(copy_of(&k, 7, "gen-b", 0) != other);
    kit_close(&k);
}

TEST(a_copy_of_layers_is_not_used_for_other_directories_of_the_same_id)
{
    struct kit k;
    own_fd dir = test_dir_fd();

    CHECK_INT(mkdirat(dir, "again", 0755), 0);
    own_fd again = openat(dir, "again", O_PATH | O_DIRECTORY | O_CLOEXEC);
    open_many(&k);
    if (k.h.by_path)
        SKIP("layers are lent here");
    uint64_t first = copy_of(&k, 7, LAYERS, 0), beside = copy_of(&k, 7, LAYERS, 1);
    uint64_t second = copy_of_dir(&k, 7, LAYERS, 0, again);
    CHECK(second != first);
    CHECK(copy_of_dir(&k, 7, LAYERS, 0, again) == second);
    CHECK(copy_of(&k, 7, LAYERS, 1) == beside);
    kit_close(&k);
}

TEST(of_parts_that_are_more_than_there_is_room_for_the_oldest_goes)
{
    struct kit k;
    struct reuse_part p;

    open_many(&k);
    for (uint32_t i = 0; i <= REUSE_MOST; i++) {
        reuse_part_init(&p, i);
        p.fds[0] = open("/", O_PATH | O_CLOEXEC);
        reuse_put(k.h.reuse, REUSE_LAYERS, &p);
    }
    CHECK_INT(reuse_count(k.h.reuse, REUSE_LAYERS), REUSE_MOST);
    CHECK(!reuse_take(k.h.reuse, REUSE_LAYERS, 0, &p));
    CHECK(!reuse_take(k.h.reuse, REUSE_SLOT, REUSE_ANY, &p));
    CHECK(reuse_take(k.h.reuse, REUSE_LAYERS, REUSE_ANY, &p));
    CHECK_INT(p.slot, REUSE_MOST);
    reuse_part_done(&p);
    kit_close(&k); /* which finds every descriptor closed */
}

TEST(parts_that_nobody_takes_for_a_while_go_one_at_a_time)
{
    struct kit k;
    struct reuse_part p;

    open_many(&k);
    for (uint32_t i = 0; i < 2; i++) {
        reuse_part_init(&p, i);
        reuse_put(k.h.reuse, REUSE_LAYERS, &p);
    }
    uint64_t now = clock_mono_ns(&clock_system), late = now + 2 * REUSE_AGE_MS * NS_PER_MS;
    uint64_t wait_ms = reuse_tidy(k.h.reuse, now);
    CHECK(wait_ms > 0 && wait_ms <= REUSE_AGE_MS);
    CHECK_INT(reuse_count(k.h.reuse, REUSE_LAYERS), 2);
    CHECK_INT(reuse_tidy(k.h.reuse, late), 1);
    CHECK_INT(reuse_count(k.h.reuse, REUSE_LAYERS), 1);
    CHECK_INT(reuse_tidy(k.h.reuse, late), 0);
    CHECK_INT(reuse_count(k.h.reuse, REUSE_LAYERS), 0);
    kit_close(&k);
}

TEST(a_sandbox_made_of_a_used_slot_sees_itself_alone)
{
    static const char look[] = "set -- /proc/[0-9]*; echo $#; hostname; cat /proc/self/*id_map;"
                               "ls -A /dev/shm; cat /x /tmp/used-trace 2>/dev/null;"
                               "cat /proc/sysvipc/shm | wc -l";
    static const struct native_limits none;
    struct kit k;
    struct box first, second;
    own_done(buf) before, after;

    buf_init(&before, 1u << 16);
    buf_init(&after, 1u << 16);
    open_many(&k);
    run(&k, &none, look, &first, &before);
    run(&k, &none,
        "echo 7 7 1 2>/dev/null >/proc/self/projid_map && exit 1;"
        "echo a >/x; echo a >/dev/shm/a; echo a >/tmp/used-trace; ipcmk -M 100 >/dev/null; exit 0",
        &second, NULL);
    CHECK_INT(second.slot, first.slot);
    run(&k, &none, look, &second, &after);
    CHECK_INT(second.slot, first.slot);
    CHECK(str_eq(buf_str(&after), buf_str(&before)));
    kit_close(&k);
}

/* As every_call_of_a_start_may_fail_and_nothing_is_left, of the other way to be made. */
static void fail_from_used_slot(bool of_others)
{
    static const struct native_limits none;
    struct kit k;
    unsigned ok = 0, failed = 0;

    open_many(&k);
    fault_share();
    for (unsigned n = 1; n < 400 && ok < 12; n++) {
        struct kit_box b;
        struct box box;
        run(&k, &none, "exit 0", &box, NULL);
        CHECK_INT(reuse_count(k.h.reuse, REUSE_SLOT), 1);
        kit_prepare(&k, &b, "t1", "exit 0");
        b.spec.root_id = of_others ? "gen-b" : LAYERS;
        fault_at(n);
        struct err *e = kit_try(&k, &b, &box);
        fault_at(0);
        failed += e != NULL;
        ok = e ? 0 : ok + 1;
        printf("call %u, %s: %s\n", n, fault_fired() ? fault_name() : "none",
               e ? err_text(e) : "it started");
        if (e) {
            CHECK(fault_fired()); /* nothing else is wrong with it */
            CHECK(strchr(err_text(e), ':') != NULL);
            CHECK_INT(reuse_count(k.h.reuse, REUSE_SLOT), 0);
            kit_check_empty("state/ids");
            kit_forget(&b);
        } else {
            own_close_p(&b.spec.fds[1]);
            b.spec.fds[1] = -1;
            kit_end(&k, &b, &box, NULL);
        }
        err_free(e);
        kit_check_empty("state/box");
    }
    CHECK(failed > 50);
    kit_close(&k);
}

TEST_LIMIT(every_call_of_a_start_from_a_used_slot_may_fail_and_nothing_is_left, 120)
{
    fail_from_used_slot(false);
}

TEST_LIMIT(every_call_of_a_start_from_a_used_slot_of_other_layers_may_fail_and_nothing_is_left, 120)
{
    fail_from_used_slot(true);
}

/* Its own last step is what fails, and whatever else does meanwhile: what was made of it is taken
 * back in spite of that, or by the next sweep. */
TEST_LIMIT(a_call_may_fail_while_a_start_is_undone_and_nothing_is_left, 120)
{
    static const struct native_limits none;
    struct kit k;

    open_many(&k);
    fault_share();
    for (unsigned n = 1, fired = true; fired; n++) {
        struct kit_box b;
        struct box box;
        run(&k, &none, "exit 0", &box, NULL);
        kit_prepare(&k, &b, "t1", "exit 0");
        b.spec.root_id = LAYERS;
        b.req.argc++; /* more than it is given */
        fault_at(n);
        struct err *e = kit_try(&k, &b, &box);
        fault_at(0);
        fired = fault_fired();
        CHECK(n < 400);
        printf("call %u, %s: %s\n", n, fired ? fault_name() : "none", e ? err_text(e) : "no word");
        if (e)
            kit_forget(&b);
        else /* who cannot say what failed seems to have been exec'd, and to have ended */
            CHECK_INT(kit_end(&k, &b, &box, NULL), 125);
        if (!fired)
            CHECK(e && strstr(err_text(e), "fewer arguments than announced"));
        err_free(e);
        kit_check_empty("state/box");
        reuse_clear(k.h.reuse);
        CHECK_OK(box_sweep(&k.h, false));
        kit_check_empty("state/ids");
    }
    kit_close(&k);
}

/* It is dead, most often, before it is told what to become. */
TEST(a_start_whose_process_failed_tells_why)
{
    struct kit k;

    kit_open(&k);
    fault_always("unshare");
    for (unsigned i = 0; i < 20; i++) {
        struct kit_box b;
        struct box box;
        kit_prepare(&k, &b, "t1", "exit 0");
        struct err *e = kit_try(&k, &b, &box);
        CHECK(e);
        CHECK_HAS(str_of(err_text(e)), "make a network namespace");
        err_free(e);
        kit_forget(&b);
    }
    fault_always(NULL);
    kit_close(&k);
}

/* Runs one that lives until it is killed; gives a descriptor of its network namespace. */
static int end_with_net(struct kit *k, unsigned *ret_slot)
{
    struct kit_box b;
    struct box box;
    char path[64];

    kit_prepare(k, &b, "t1", "exec sleep 1000");
    kit_start(k, &b, &box);
    snprintf(path, sizeof path, "/proc/%d/ns/net", (int)box.pid);
    int net = open(path, O_RDONLY | O_CLOEXEC);
    *ret_slot = box.slot;
    CHECK_OK(box_kill(&k->h, &box));
    CHECK_INT(kit_end(k, &b, &box, NULL), 128 + SIGKILL);
    CHECK(net >= 0);
    return net;
}

TEST(a_sandbox_made_of_a_used_slot_has_a_network_of_its_own)
{
    struct kit k;
    struct stat first, second;
    unsigned slot, again;

    open_many(&k);
    own_fd net = end_with_net(&k, &slot); /* open, so that its number is not another's */
    CHECK_INT(reuse_count(k.h.reuse, REUSE_SLOT), 1);
    own_fd next = end_with_net(&k, &again);
    CHECK_INT(again, slot);
    CHECK(fstat(net, &first) == 0 && fstat(next, &second) == 0);
    CHECK(first.st_ino != second.st_ino);
    own_close_p(&net);
    own_close_p(&next);
    net = next = -1;
    kit_close(&k);
}

static uint32_t first_id(pid_t pid)
{
    char path[64];
    unsigned inside = 0, outside = 0;

    snprintf(path, sizeof path, "/proc/%d/uid_map", (int)pid);
    FILE *f = fopen(path, "re");
    CHECK(f && fscanf(f, "%u %u", &inside, &outside) == 2);
    fclose(f);
    return outside;
}

/* The fourth at the latest: one spare process is ahead of each removal. */
TEST(a_launcher_uses_slots_again_but_not_under_the_address_sanitizer)
{
    struct rig r;
    struct kit k;
    uint32_t ids[4];
    bool again = false;

    open_many(&k); /* skips where nothing can be used again */
    kit_close(&k);
    rig_open(&r, 1);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        rig_start(&r, "a");
        ids[i] = first_id(rig_tell(&r, NATIVE_INSPECT, "a").pid);
        rig_tell(&r, NATIVE_REMOVE, "a");
        for (size_t n = 0; n < i; n++)
            again |= ids[n] == ids[i];
    }
    CHECK_INT(again, reuse_by_default());
    rig_close(&r);
}
