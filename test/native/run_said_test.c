// SPDX-License-Identifier: Apache-2.0
/* run_said_test.c — croft run: what it says of limits that were met. */
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
