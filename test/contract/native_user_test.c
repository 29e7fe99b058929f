// SPDX-License-Identifier: Apache-2.0
/* The contract, kept by `native` for an ordinary user: one id, no limits, no pause; the walls
 * stand. */
#include <grp.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "test/contract/contract.h"
#include "test/native/kit.h"

#define USER_CAPS                                                                                  \
    (SBX_CAN_SNAPSHOT | SBX_CAN_EXPOSE | SBX_CAN_BIND | SBX_CAN_LOG | SBX_HIDES_FILES |            \
     SBX_CAN_CLAIM | SBX_CAN_LIST | SBX_HIDES_PROCESSES | SBX_HIDES_NETWORK | SBX_CAN_MOUNT |      \
     SBX_IS_HERE)

static void become_nobody(struct contract *c)
{
    if (geteuid() == 0) {
        kit_be_nobody();
        kit_share_layers_as(c->state_dir, "test-state-user", KIT_NOBODY);
        CHECK(setgroups(0, NULL) == 0);
        CHECK(setresgid(KIT_NOBODY, KIT_NOBODY, KIT_NOBODY) == 0);
        CHECK(setresuid(KIT_NOBODY, KIT_NOBODY, KIT_NOBODY) == 0);
        CHECK(prctl(PR_SET_DUMPABLE, 1) == 0); /* as one who logged in */
    }
    contract_native_fork(c);
    c->host.native_caps = USER_CAPS;
}

const struct contract_backend contract_native_user = {
    .name = "native", .prepare = become_nobody, .finish = contract_native_end};

#define CONTRACT_TEST_native_user(row, caps) CONTRACT_TEST(native_user, row, caps)
CONTRACT_TESTS(native_user, &contract_native_user)
