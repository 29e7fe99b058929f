// SPDX-License-Identifier: Apache-2.0
/* croft bench: what it prints is about this machine; how fast that is, no test asks. */
#include <stdio.h>
#include <stdlib.h>

#include "test/native/kit.h"
#include "test/program.h"
#include "test/test.h"

TEST(croft_bench_prints_every_row_without_a_failure)
{
    own_done(buf) out;
    char state[300];

    kit_need_root();
    buf_init(&out, 1u << 16);
    snprintf(state, sizeof state, "%s/state", test_dir());
    setenv("CROFT_SERVER_STATE_DIR", state, 1);
    kit_share_layers(state);
    CHECK_INT(program_run(ARGS(test_program("croft"), "bench", "--runs", "2", "--json"), &out), 0);
    CHECK_HAS(buf_str(&out), "\"what\": \"pause\", \"n\": 2, \"failed\": 0");
    CHECK_HAS(buf_str(&out), "\"what\": \"end and remove\", \"n\": 2, \"failed\": 0");
    CHECK_HAS(buf_str(&out), "exec to exit\", \"n\": 2, \"failed\": 0");
    kit_settle();
    kit_check_empty("state/box");
}

TEST(croft_bench_refuses_a_number_of_runs_that_makes_no_sense)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    CHECK_INT(program_run(ARGS(test_program("croft"), "bench", "--runs", "0"), &out), 2);
    CHECK_HAS(buf_str(&out), "--runs: from 1 to 10000");
}
