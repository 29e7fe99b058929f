// SPDX-License-Identifier: Apache-2.0
/* The contract, kept by `native` for an ordinary user: one id, no limits, no pause; the walls
 * stand. And for one who has a range of ids: what users there make, removed, frozen, forked. */
#include <grp.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "test/contract/contract.h"
#include "test/native/kit.h"

#define USER_CAPS                                                                                  \
    (SBX_CAN_SNAPSHOT | SBX_CAN_EXPOSE | SBX_CAN_BIND | SBX_CAN_LOG | SBX_HIDES_FILES |            \
     SBX_CAN_CLAIM | SBX_CAN_LIST | SBX_HIDES_PROCESSES | SBX_HIDES_NETWORK | SBX_CAN_MOUNT |      \
     SBX_IS_HERE | SBX_LIMITS_FILES)

static void become_nobody(struct contract *c, const char *layers)
{
    if (geteuid() == 0) {
        kit_be_nobody();
        kit_share_layers_as(c->state_dir, layers, KIT_NOBODY);
        CHECK(setgroups(0, NULL) == 0);
        CHECK(setresgid(KIT_NOBODY, KIT_NOBODY, KIT_NOBODY) == 0);
        CHECK(setresuid(KIT_NOBODY, KIT_NOBODY, KIT_NOBODY) == 0);
        CHECK(prctl(PR_SET_DUMPABLE, 1) == 0); /* as one who logged in */
    }
    contract_native_fork(c);
    c->launcher.caps = USER_CAPS;
}

static void with_one_id(struct contract *c)
{
    become_nobody(c, "test-state-user");
}

static void with_a_range(struct contract *c)
{
    kit_sub_ids(KIT_SUB_IDS);
    become_nobody(c, "test-state-range");
    c->launcher.caps |= SBX_CAN_USER;
}

const struct contract_backend contract_native_user = {
    .name = "native", .prepare = with_one_id, .finish = contract_native_end};

#define CONTRACT_TEST_native_user(row, caps) CONTRACT_TEST(native_user, row, caps)
CONTRACT_TESTS(native_user, &contract_native_user)

const struct contract_backend contract_native_range = {
    .name = "native", .prepare = with_a_range, .finish = contract_native_end};

#define IN_RANGE(row) CONTRACT_TEST(native_range, row, 0)
static const struct contract_backend *const contract_of_native_range = &contract_native_range;
IN_RANGE(runs_commands)
IN_RANGE(stops_and_starts_again)
IN_RANGE(leaves_nothing_when_removed)
IN_RANGE(runs_two_at_once_apart)
IN_RANGE(refuses_by_name_what_it_lacks)
IN_RANGE(leaks_nothing_over_many_lives)
IN_RANGE(shows_a_workspace_of_the_host)
IN_RANGE(forks_a_snapshot)
IN_RANGE(forks_a_fork)
IN_RANGE(snapshots_what_is_stopped)
IN_RANGE(mounts_at_the_claim)
IN_RANGE(runs_as_the_user_of_the_spec)
IN_RANGE(runs_a_command_as_given)
IN_RANGE(hides_the_hosts_files)
IN_RANGE(hides_the_hosts_processes)
IN_RANGE(hides_the_hosts_network)

/* What a user beside root made is his in a fork too, and goes with it. */
static void keeps_owners(struct contract *c)
{
    struct sbx_spec as = {.has_user = true, .uid = 10001, .gid = 10002};
    struct sbx *s = contract_started(c, &as);

    CHECK_STR(contract_command(c, s, NULL,
                               "umask 077; mkdir ~/d 2>/dev/null || mkdir /tmp/d; "
                               "cd ~/d 2>/dev/null || cd /tmp/d; echo mine >f; cat f")
                  .text,
              "mine");
    CHECK_OK(contract_stop(c, s));
    CHECK_OK(contract_snapshot(c, s, "theirs"));
    struct sbx *fork;
    CHECK_OK(sbx_fork(c->driver, STR("theirs"), &as, &fork));
    CHECK_OK(contract_start(c, fork));
    CHECK_STR(contract_command(c, fork, NULL,
                               "cat ~/d/f /tmp/d/f 2>/dev/null; "
                               "stat -c %u:%g ~/d/f /tmp/d/f 2>/dev/null")
                  .text,
              "mine\n10001:10002");
    contract_end(c, fork);
    contract_end(c, s);
    char names[100];
    CHECK_OK(contract_snapshots(c, "theirs", names, sizeof names));
}

TEST(an_inner_users_files_are_his_in_a_fork_and_go_with_it)
{
    contract_run(&contract_native_range, SBX_CAN_USER, keeps_owners);
}
