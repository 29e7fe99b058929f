// SPDX-License-Identifier: Apache-2.0
/* run_said_test.c — croft run: what it says of limits that were met, of changes that are none, and
 * of flags and disks that do not do. */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "test/native/kit.h"
#include "test/program.h"
#include "test/test.h"

static void check_said(const char *const *flags, const char *script, const char *words)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    kit_run(flags, ARGS("sh", "-c", script), &out);
    CHECK_HAS(buf_str(&out), str_of(words));
}

TEST(croft_run_says_that_its_processes_were_too_many)
{
    static const char script[] = "for i in 1 2 3 4 5 6 7 8 9; do sleep 1 & done; wait";

    check_said(ARGS("--discard", "--pids", "8"), script, "too many (limit 8); try --pids\n");
    check_said(ARGS("--discard", "--pids", "8", "--json"), script, "\"pids\": 8, ");
    check_said(ARGS("--discard", "--json"), "true", "\"pids_denied\": 0, \"disk_full\": false, ");
}

TEST(croft_run_says_that_its_disk_was_full)
{
    static const char script[] = "head -c 40000000 /dev/zero >/root/big";

    check_said(ARGS("--discard", "--disk", "32M"), script,
               "no disk space was left inside (limit 32 MiB); try --disk\n");
    check_said(ARGS("--discard", "--disk", "32M", "--json"), script, "\"disk_full\": true, ");
    check_said(ARGS("--discard", "--disk", "32M", "--json"), "true", "\"disk_full\": false, ");
}

TEST(croft_run_that_wrote_what_was_there_keeps_nothing_and_says_nothing)
{
    own_done(buf) out;
    own_fd dir = test_dir_fd();

    buf_init(&out, 1u << 16);
    CHECK_INT(mknodat(dir, "f", S_IFREG | 0644, 0), 0);
    CHECK_INT(kit_run(ARGS(), ARGS("touch", "f"), &out), 0);
    CHECK_STR(buf_str(&out), "");
    kit_check_empty("state/box");
    CHECK_INT(kit_run(ARGS("--json"), ARGS("touch", "f"), &out), 0);
    CHECK_HAS(buf_str(&out), "\"kept\": false, \"changes\": {\"added\": 0, ");
    kit_check_empty("state/box");
}

TEST(croft_run_puts_a_directory_of_the_workspace_where_the_command_looks_for_it)
{
    own_done(buf) out;
    own_fd dir = test_dir_fd();

    buf_init(&out, 1u << 16);
    CHECK_INT(mkdirat(dir, "out", 0755), 0);
    CHECK_INT(chdir(test_dir()), 0);
    CHECK_INT(kit_run(ARGS("--rw", "out"), ARGS("sh", "-c", "echo x >out/made"), &out), 0);
    CHECK_STR(buf_str(&out), "");
    CHECK_INT(faccessat(dir, "out/made", F_OK, 0), 0);
    CHECK_INT(kit_run(ARGS("--rw", "nowhere"), ARGS("true"), &out), 125);
    CHECK_HAS(buf_str(&out), "'nowhere': No such file or directory");
}

TEST(croft_run_does_not_take_the_end_of_its_flags_for_a_value)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    CHECK_INT(kit_run(ARGS("--env"), ARGS("true"), &out), 125);
    CHECK_HAS(buf_str(&out), "--env needs a value");
}

TEST(croft_run_names_the_state_directory_when_its_disk_is_full)
{
    own_done(buf) out;
    char state[4200], words[4300];

    kit_need_root();
    snprintf(state, sizeof state, "%s/state", test_dir());
    CHECK_INT(mkdir(state, 0700), 0);
    CHECK_INT(unshare(CLONE_NEWNS), 0);
    CHECK_INT(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    CHECK_INT(mount("tmpfs", state, "tmpfs", 0, "size=64k,mode=700"), 0);
    buf_init(&out, 1u << 16);
    program_run(ARGS("sh", "-c", "cat /dev/zero >\"$0/fill\"", state), &out);
    buf_reset(&out);
    CHECK_INT(kit_run(ARGS("--discard"), ARGS("true"), &out), 125);
    snprintf(words, sizeof words, "the disk of the state directory '%s' is full: ", state);
    CHECK_HAS(buf_str(&out), str_of(words));
    CHECK_INT(umount2(state, MNT_DETACH), 0);
}
