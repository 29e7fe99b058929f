// SPDX-License-Identifier: Apache-2.0
/* The contract, kept by `local`. */
#include "test/contract/contract.h"

static const struct contract_backend local = {.name = "local"};

#define CONTRACT_TEST_local(row, caps) CONTRACT_TEST(local, row, caps)
CONTRACT_TESTS(local, &local)
