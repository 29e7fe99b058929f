// SPDX-License-Identifier: Apache-2.0
#include "host/launcher/cg.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/own.h"
#include "test/test.h"

static const struct native_limits some = {.memory_bytes = 64u << 20, .pids = 50, .cpu_milli = 1500};
static const struct native_limits unset;

static void put(const char *path, const char *text)
{
    char at[4200];

    snprintf(at, sizeof at, "%s/%s", test_dir(), path);
    own_fd fd = open(at, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    CHECK(fd >= 0);
    CHECK_OK(fd_write_all(fd, str_of(text)));
}

static void make(const char *path)
{
    CHECK_INT(mkdirat(test_dir_fd(), path, 0755), 0);
}

static void check_file(const char *path, const char *want)
{
    char at[4200];
    own_done(buf) text;

    buf_init(&text, 4096);
    snprintf(at, sizeof at, "%s/%s", test_dir(), path);
    CHECK_OK(fd_read_file(at, &text));
    CHECK_STR(buf_str(&text), want);
}

static void check_gone(const char *path)
{
    CHECK_INT(faccessat(test_dir_fd(), path, F_OK, 0), -1);
}

static void make_v2(void)
{
    put("cgroup.controllers", "cpuset cpu io memory hugetlb pids\n");
    put("cgroup.subtree_control", "memory\n");
}

TEST(on_v2_every_limit_has_its_file)
{
    struct cg cg;
    own_fd dir = -1;

    make_v2();
    cg_open(&cg, test_dir(), STR(""), true);
    CHECK_STR(cg_mechanism(&cg, CG_MEMORY), "v2");
    CHECK_OK(cg_make_v2(&cg, "s1", &dir));
    CHECK(dir >= 0);
    CHECK_OK(cg_make(&cg, "s1"));
    CHECK_OK(cg_limit(&cg, "s1", &unset, &some));
    check_file("croft/s1/memory.max", "67108864");
    check_file("croft/s1/pids.max", "50");
    check_file("croft/s1/cpu.max", "150000 100000");
    CHECK_OK(cg_join_v1(&cg, "s1"));               /* nothing to do: it was born there */
    check_gone("croft/s1/cgroup.subtree_control"); /* one group, none below it */
    cg_close(&cg);
}

TEST(on_v2_a_controller_is_handed_down_from_the_top)
{
    struct cg cg;

    make_v2();
    cg_open(&cg, test_dir(), STR(""), true);
    check_file("cgroup.subtree_control", "+cpu"); /* the last one that was missing */
    check_file("croft/cgroup.subtree_control", "+cpu");
    cg_close(&cg);
}

TEST(all_sandboxes_weigh_two_processes_on_each_processor_unless_somebody_chose)
{
    struct cg cg;
    char want[16];

    make("cpu");
    make("cpu/croft");
    put("cpu/croft/cpu.shares", "1024\n");
    cg_open(&cg, test_dir(), STR(""), true);
    cg_close(&cg);
    snprintf(want, sizeof want, "%d", 2048 * get_nprocs());
    check_file("cpu/croft/cpu.shares", want);
    put("cpu/croft/cpu.shares", "512\n");
    cg_open(&cg, test_dir(), STR(""), true);
    cg_close(&cg);
    check_file("cpu/croft/cpu.shares", "512\n");
    make_v2();
    make("croft");
    put("croft/cpu.weight", "100\n");
    cg_open(&cg, test_dir(), STR(""), true);
    cg_close(&cg);
    snprintf(want, sizeof want, "%d", 200 * get_nprocs());
    check_file("croft/cpu.weight", want);
}

TEST(all_sandboxes_leave_a_quarter_of_the_machines_processes_unless_somebody_chose)
{
    own_done(buf) text;
    char want[16];
    struct cg cg;

    buf_init(&text, 64);
    CHECK_OK(fd_read_file("/proc/sys/kernel/pid_max", &text));
    long all = strtol(buf_cstr(&text), NULL, 10);
    make("pids");
    make("pids/croft");
    put("pids/croft/pids.max", "max\n");
    cg_open(&cg, test_dir(), STR(""), true);
    cg_close(&cg);
    snprintf(want, sizeof want, "%ld", all - all / 4);
    check_file("pids/croft/pids.max", want);
    put("pids/croft/pids.max", "70\n");
    cg_open(&cg, test_dir(), STR(""), true);
    cg_close(&cg);
    check_file("pids/croft/pids.max", "70\n");
}

TEST(on_v1_each_controller_has_a_group_and_freezing_is_there)
{
    struct cg cg;
    own_fd dir = -1;

    make("memory");
    make("pids");
    make("cpu");
    make("freezer");
    cg_open(&cg, test_dir(), STR(""), true);
    CHECK_STR(cg_mechanism(&cg, CG_FREEZER), "v1");
    CHECK_OK(cg_make_v2(&cg, "s1", &dir));
    CHECK_INT(dir, -1);
    CHECK_OK(cg_make(&cg, "s1"));
    CHECK_OK(cg_limit(&cg, "s1", &unset, &some));
    check_file("memory/croft/s1/memory.limit_in_bytes", "67108864");
    check_file("pids/croft/s1/pids.max", "50");
    check_file("cpu/croft/s1/cpu.cfs_quota_us", "150000");
    CHECK_OK(cg_join_v1(&cg, "s1"));
    check_file("memory/croft/s1/tasks", "0");
    check_file("pids/croft/s1/tasks", "0");
    CHECK_OK(cg_freeze(&cg, "s1", true, 1000));
    check_file("freezer/croft/s1/freezer.state", "FROZEN");
    CHECK_OK(cg_freeze(&cg, "s1", false, 1000));
    check_file("freezer/croft/s1/freezer.state", "THAWED");
    cg_close(&cg);
}

TEST(on_the_hybrid_limits_go_to_v1_and_freezing_to_v2)
{
    struct cg cg;
    own_fd dir = -1;

    make("memory");
    make("pids");
    make("freezer");
    make("unified");
    put("unified/cgroup.controllers", "hugetlb\n");
    cg_open(&cg, test_dir(), STR(""), true);
    CHECK_STR(cg_mechanism(&cg, CG_MEMORY), "v1");
    CHECK_STR(cg_mechanism(&cg, CG_FREEZER), "v2");
    CHECK_STR(cg_mechanism(&cg, CG_CPU), "none");
    CHECK_OK(cg_make_v2(&cg, "s1", &dir));
    CHECK_OK(cg_make(&cg, "s1"));
    put("unified/croft/s1/cgroup.events", "populated 1\nfrozen 1\n");
    CHECK_OK(cg_freeze(&cg, "s1", true, 1000));
    check_file("unified/croft/s1/cgroup.freeze", "1");
    CHECK_ERR(cg_limit(&cg, "s1", &unset, &some), ERR_UNSUPPORTED,
              "a cpu limit needs the 'cpu' control");
    cg_close(&cg);
}

TEST(a_group_that_does_not_freeze_is_not_waited_for_forever)
{
    struct cg cg;
    own_fd dir = -1;

    make_v2();
    cg_open(&cg, test_dir(), STR(""), true);
    CHECK_OK(cg_make_v2(&cg, "s1", &dir));
    put("croft/s1/cgroup.events", "populated 1\nfrozen 0\n");
    CHECK_ERR(cg_freeze(&cg, "s1", true, 1), ERR_TIMEOUT, "did not freeze");
    cg_close(&cg);
}

TEST(without_control_groups_a_limit_is_refused_and_nothing_else_fails)
{
    struct cg cg;
    own_fd dir = -1, oom = -1;

    cg_open(&cg, "/nowhere", STR(""), true);
    CHECK(!cg_has(&cg, CG_MEMORY));
    CHECK_OK(cg_make_v2(&cg, "s1", &dir));
    CHECK_OK(cg_make(&cg, "s1"));
    CHECK_OK(cg_limit(&cg, "s1", &unset, &(struct native_limits){0}));
    CHECK_ERR(cg_limit(&cg, "s1", &unset, &some), ERR_UNSUPPORTED, "croft doctor");
    CHECK_ERR(cg_freeze(&cg, "s1", true, 1), ERR_UNSUPPORTED, "pause needs");
    CHECK_OK(cg_open_oom(&cg, "s1", &oom));
    CHECK_INT(oom, -1);
    CHECK_OK(cg_remove(&cg, "s1"));
    cg_close(&cg);
}

TEST(a_name_is_claimed_once_on_a_machine_whatever_the_hierarchy)
{
    struct cg cg;
    bool taken = true;

    make("memory");
    cg_open(&cg, test_dir(), STR(""), true);
    CHECK_OK(cg_claim(&cg, "s1", &taken));
    CHECK(!taken);
    CHECK_OK(cg_claim(&cg, "s1", &taken));
    CHECK(taken);
    CHECK_OK(cg_claim(&cg, "s2", &taken));
    CHECK(!taken);
    cg_close(&cg);
}

TEST(removing_may_be_done_twice)
{
    struct cg cg;

    make("memory");
    cg_open(&cg, test_dir(), STR(""), true);
    CHECK_OK(cg_make(&cg, "s1"));
    CHECK_OK(cg_remove(&cg, "s1"));
    check_gone("memory/croft/s1");
    CHECK_OK(cg_remove(&cg, "s1"));
    cg_close(&cg);
}

TEST(kills_for_want_of_memory_are_read_from_either_file)
{
    char at[4200];
    uint64_t kills = 9;

    put("v1", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
    put("v2", "low 0\nhigh 0\nmax 12\noom 4\noom_kill 2\noom_group_kill 0\n");
    put("none", "nothing\n");
    snprintf(at, sizeof at, "%s/v1", test_dir());
    own_fd v1 = open(at, O_RDONLY | O_CLOEXEC);
    CHECK_OK(cg_read_oom(v1, &kills));
    CHECK_INT(kills, 3);
    own_fd v2 = openat(test_dir_fd(), "v2", O_RDONLY | O_CLOEXEC);
    CHECK_OK(cg_read_oom(v2, &kills));
    CHECK_INT(kills, 2);
    own_fd none = openat(test_dir_fd(), "none", O_RDONLY | O_CLOEXEC);
    CHECK_ERR(cg_read_oom(none, &kills), ERR_CORRUPT, "oom_kill");
}

TEST(a_group_knows_who_is_in_it_and_whether_it_is_frozen)
{
    struct cg cg;
    own_fd dir = -1;
    bool yes = false;

    make_v2();
    cg_open(&cg, test_dir(), STR(""), true);
    CHECK_OK(cg_make_v2(&cg, "s1", &dir));
    put("croft/s1/cgroup.procs", "17\n4711\n");
    put("croft/s1/cgroup.freeze", "1\n");
    CHECK_OK(cg_holds(&cg, "s1", 4711, &yes));
    CHECK(yes);
    CHECK_OK(cg_holds(&cg, "s1", 471, &yes));
    CHECK(!yes);
    CHECK_OK(cg_is_frozen(&cg, "s1", &yes));
    CHECK(yes);
    put("croft/s1/cgroup.freeze", "0\n");
    CHECK_OK(cg_is_frozen(&cg, "s1", &yes));
    CHECK(!yes);
    close(take_fd(&dir));
    cg_close(&cg);
}

/* --- a group that somebody gave us --- */

static bool become_ordinary(void)
{
    return geteuid() != 0 || (chmod(test_dir(), 0555) == 0 && setresgid(65534, 65534, 65534) == 0 &&
                              setresuid(65534, 65534, 65534) == 0);
}

static void give(const char *path)
{
    if (geteuid() == 0)
        CHECK_INT(fchownat(test_dir_fd(), path, 65534, 65534, 0), 0);
}

TEST(on_v2_a_delegated_group_takes_the_place_of_the_top)
{
    struct cg cg;
    bool taken;

    make_v2();
    make("user.slice");
    make("user.slice/mine");
    give("user.slice/mine");
    put("user.slice/mine/cgroup.controllers", "cpu memory pids\n");
    put("user.slice/mine/cgroup.subtree_control", "cpu memory\n");
    give("user.slice/mine/cgroup.subtree_control");
    CHECK(become_ordinary());
    cg_open(&cg, test_dir(), STR("0::/user.slice/mine\n"), true);
    CHECK_STR(cg_mechanism(&cg, CG_MEMORY), "v2, delegated to you");
    CHECK_OK(cg_claim(&cg, "s1", &taken));
    CHECK_OK(cg_limit(&cg, "s1", &unset, &some));
    check_file("user.slice/mine/cgroup.subtree_control", "+cpu"); /* the last that was missing */
    check_file("user.slice/mine/croft/s1/memory.max", "67108864");
    cg_close(&cg);
}

TEST(on_v1_each_controller_is_looked_for_where_this_process_is)
{
    static const char member[] = "7:name=systemd:/x\n4:memory:/mine\n3:cpu,cpuacct:/no/such\n"
                                 "2:pids:/mine/../..\n1:freezer:/theirs\n0::/\n";
    struct cg cg;

    make("memory");
    make("memory/mine");
    give("memory/mine");
    make("cpu");
    make("pids");
    make("pids/mine");
    make("freezer");
    make("freezer/theirs");
    CHECK(become_ordinary());
    cg_open(&cg, test_dir(), str_of(member), true);
    CHECK_STR(cg_mechanism(&cg, CG_MEMORY), "v1, delegated to you");
    for (unsigned c = CG_PIDS; c < CG_COUNT; c++)
        CHECK_STR(cg_mechanism(&cg, c), "none");
    cg_close(&cg);
}

TEST(member_lines_that_are_none_are_passed_over)
{
    static const char *const bad[] = {"\n\n",        "0:",      "0::",       "::/",
                                      "0::relative", "a:b:c:d", "0::/../up", "0::/\n"};
    struct cg cg;

    make_v2();
    CHECK(become_ordinary());
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        cg_open(&cg, test_dir(), str_of(bad[i]), true);
        CHECK(!cg_has(&cg, CG_MEMORY));
        cg_close(&cg);
    }
}

/* Memory is the one by which it is claimed here, and the first of its controllers. */
TEST(a_claim_stays_as_long_as_any_other_group_of_its_name)
{
    struct cg cg;
    bool taken = true;

    make("memory");
    make("pids");
    cg_open(&cg, test_dir(), STR(""), true);
    cg.plain = false;
    CHECK_OK(cg_claim(&cg, "s1", &taken));
    CHECK_OK(cg_make(&cg, "s1"));
    make("pids/croft/s1/busy");
    CHECK_ERR(cg_remove(&cg, "s1"), ERR_CONFLICT, "s1");
    CHECK_OK(cg_claim(&cg, "s1", &taken));
    CHECK(taken);
    CHECK_INT(unlinkat(test_dir_fd(), "pids/croft/s1/busy", AT_REMOVEDIR), 0);
    CHECK_OK(cg_remove(&cg, "s1"));
    check_gone("memory/croft/s1");
    check_gone("pids/croft/s1");
    cg_close(&cg);
}
