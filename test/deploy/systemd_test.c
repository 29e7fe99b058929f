// SPDX-License-Identifier: Apache-2.0
/* systemd_test.c — the unit files as systemd itself reads them, without a running systemd; under a
 * real one: make vm-systemd. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/serve_kit.h"
#include "test/test.h"
#include "test/v1_kit.h"

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
    CHECK_INT(shell("grep -qw CROFT_SERVER_AT_EXIT=keep deploy/systemd/croft.service"), 0);
}

TEST(the_unit_has_the_devices_disk_limits_need)
{
    CHECK_INT(shell("grep -qx 'DeviceAllow=/dev/loop-control rw' deploy/systemd/croft.service"), 0);
    CHECK_INT(shell("grep -qx 'DeviceAllow=block-loop rw' deploy/systemd/croft.service"), 0);
}

/* --- a server with no more than the unit leaves it --- */

static struct str unit_line(struct serve *s, const char *key)
{
    own_done(buf) text;
    struct str rest, line;

    buf_init(&text, 1u << 16);
    CHECK_OK(fd_read_file("deploy/systemd/croft.service", &text));
    for (rest = buf_str(&text); rest.len;) {
        str_cut(&rest, '\n', &line);
        if (str_starts(line, str_of(key)))
            return arena_copy(&s->arena, str_from(line, strlen(key)));
    }
    FAIL("no %s in the unit", key);
}

/* In the kernel's order. */
static const char caps[] =
    "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE "
    "NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO "
    "SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME "
    "SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG "
    "WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE";

static bool has_cap(struct str list, struct str name)
{
    struct str word;

    while (list.len) {
        str_cut(&list, ' ', &word);
        if (str_eq(str_from(word, sizeof "CAP_" - 1), name))
            return true;
    }
    return false;
}

static void drop_caps(struct str keep)
{
    struct str rest = str_of(caps), name;

    for (unsigned long cap = 0; rest.len; cap++) {
        str_cut(&rest, ' ', &name);
        if (!has_cap(keep, name))
            CHECK_INT(prctl(PR_CAPBSET_DROP, cap, 0, 0, 0), 0);
    }
}

TEST(what_the_unit_leaves_is_enough_to_make_and_remove_sandboxes)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    drop_caps(unit_line(&s, "CapabilityBoundingSet="));
    umask((mode_t)strtoul(unit_line(&s, "UMask=").p, NULL, 8));
    serve_run(&s, NULL);
    struct json *r = serve_start(&s, "a", ""); /* warm */
    CHECK_HAS(serve_exec(&s, r, "ls -ld / /etc; id -un"), STR("drwxr-xr-x"));
    struct json *cold = make(&s, "b", "'disk':'32M'");
    CHECK_HAS(serve_exec(&s, cold, "df -m --output=size / | tail -n 1"), STR("3"));
    serve_tell(&s, "/stop", cold);
    serve_tell(&s, "/stop", r);
    serve_close(&s);
}
