// SPDX-License-Identifier: Apache-2.0
/* zone_test.c — a sandbox has the machine's time zone: its clock is read by people. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include "test/native/kit.h"
#include "test/program.h"
#include "test/test.h"

#define ZONE "/usr/share/zoneinfo/Asia/Tokyo"

/* In a mount namespace of the test's own the machine's /etc is a copy with another zone. */
static void move_to_tokyo(void)
{
    own_done(buf) out;
    char etc[300];

    buf_init(&out, 1u << 16);
    snprintf(etc, sizeof etc, "%s/etc", test_dir());
    CHECK_INT(program_run(ARGS("cp", "-a", "/etc", etc), &out), 0);
    CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    CHECK(mount(etc, "/etc", NULL, MS_BIND, NULL) == 0);
    CHECK_INT(program_run(ARGS("ln", "-sfn", ZONE, "/etc/localtime"), &out), 0);
    unsetenv("TZ"); /* which croft run passes on */
}

TEST_LIMIT(croft_run_has_the_time_zone_of_the_machine, 120)
{
    own_done(buf) out;
    char state[300];

    kit_need_root();
    if (access(ZONE, R_OK) < 0)
        SKIP("needs tzdata");
    buf_init(&out, 1u << 16);
    move_to_tokyo();
    snprintf(state, sizeof state, "%s/state", test_dir());
    setenv("CROFT_SERVER_STATE_DIR", state, 1);
    CHECK_INT(program_run(ARGS("date", "+%Z"), &out), 0);
    CHECK_STR(buf_str(&out), "JST\n"); /* outside: it is the test that moved */
    buf_reset(&out);
    CHECK_INT(program_run(
                  ARGS(test_program("croft"), "run", "--bare", "--", "sh", "-c", "date +%Z"), &out),
              0);
    CHECK_HAS(buf_str(&out), "JST\n"); /* after a word that layers are made */
}
