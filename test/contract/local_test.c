// SPDX-License-Identifier: Apache-2.0
/* The contract, kept by `local`. */
#include <errno.h>
#include <signal.h>

#include "test/contract/contract.h"

static const struct contract_backend local = {.name = "local"};

#define CONTRACT_TEST_local(row, caps) CONTRACT_TEST(local, row, caps)
CONTRACT_TESTS(local, &local)

static void is_left(struct contract *c)
{
    struct sbx *s = contract_started(c, NULL);
    struct sbx_info info;

    sbx_inspect(s, &info);
    CHECK(kill(info.pid, 0) == 0);
    sbx_driver_close(c->driver);
    CHECK(kill(info.pid, 0) < 0 && errno == ESRCH);
    CHECK_OK(sbx_driver_open(sbx_backend_find(STR("local")), &c->host, &c->driver));
}

TEST(contract_local_ends_what_is_left_when_its_driver_closes)
{
    contract_run(&local, 0, is_left);
}
