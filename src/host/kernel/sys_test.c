// SPDX-License-Identifier: Apache-2.0
/* sys_test.c — what the kernel's errors are taken for. */
#include "host/kernel/sys.h"

#include <errno.h>

#include "test/test.h"

TEST(a_limit_of_the_kernel_is_told_from_a_disk_that_is_full)
{
    own(err) limit = sys_not_of_disk(err_sysno(ENOSPC, "clone"));
    own(err) other = sys_not_of_disk(err_sysno(EPERM, "clone"));

    CHECK_INT(err_code(limit), ERR_LIMIT);
    CHECK_HAS(str_of(err_text(limit)), "user.max_*_namespaces");
    CHECK_INT(err_code(other), ERR_FORBIDDEN);
}
