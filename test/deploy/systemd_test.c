// SPDX-License-Identifier: Apache-2.0
/* systemd_test.c — the unit files as systemd itself reads them, without a running systemd. */
#include <stdio.h>
#include <stdlib.h>

#include "test/test.h"

/* What is left is what making sandboxes takes: each line of the unit says so. */
#define EXPOSURE_MAX "55"

static int shell(const char *command)
{
    int status = system(command);

    CHECK(status >= 0);
    return status;
}

TEST(the_unit_is_as_closed_as_making_sandboxes_allows)
{
    if (shell("command -v systemd-analyze >/dev/null") != 0)
        SKIP("no systemd-analyze here (package systemd)");
    CHECK_INT(shell("systemd-analyze security --offline=true --threshold=" EXPOSURE_MAX
                    " deploy/systemd/croft.service >/dev/null"),
              0);
}

TEST(systemd_understands_every_line_of_the_units)
{
    char command[9000];

    if (shell("command -v systemd-analyze >/dev/null") != 0)
        SKIP("no systemd-analyze here (package systemd)");
    snprintf(command, sizeof command,
             "cd '%s' && cp \"$OLDPWD\"/deploy/systemd/croft.* . && "
             "sed -i 's,^ExecStart=[^ ]*,ExecStart=/bin/true,;/^Documentation/d' croft.service && "
             "systemd-analyze verify ./croft.service ./croft.socket >out 2>&1; "
             "grep -v 'not-found\\|^$' out && cat out >&2; ! grep -q 'croft\\.' out",
             test_dir());
    CHECK_INT(shell(command), 0);
}

/* mixed and control-group would kill every sandbox with a server that fails. */
TEST(the_unit_lets_sandboxes_outlive_their_server)
{
    CHECK_INT(shell("grep -qx KillMode=process deploy/systemd/croft.service"), 0);
    CHECK_INT(shell("grep -qx Delegate=yes deploy/systemd/croft.service"), 0);
}

TEST(the_unit_has_the_devices_disk_limits_need)
{
    CHECK_INT(shell("grep -qx 'DeviceAllow=/dev/loop-control rw' deploy/systemd/croft.service"), 0);
    CHECK_INT(shell("grep -qx 'DeviceAllow=block-loop rw' deploy/systemd/croft.service"), 0);
}
