// SPDX-License-Identifier: Apache-2.0
/* run_limits.h — the limits of 'croft run', as flags name them. */
#pragma once

#include <stdint.h>

#include "base/err.h"

struct run_limits { /* 0: as it comes */
    uint64_t memory, disk, pids, nofile;
    double cpus;
};

uint64_t run_all_memory(void); /* of the machine, bytes */
/* An error names the flag, the least and the most. state: the directory on the disk that counts. */
fallible run_limits_check(const struct run_limits *limits, const char *state);
/* Adds the state directory's name to an error if its disk is full. NULL stays NULL. */
fallible run_limits_explain(struct err *e, const char *state);
