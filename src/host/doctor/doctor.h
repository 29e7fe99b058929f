// SPDX-License-Identifier: Apache-2.0
/* doctor.h — which isolation is real here: a sandbox is started, and a program in it tries what it
 * must not be able to do. Each act has its control: it works out here, so a probe that fails for
 * some other reason does not pass for a wall. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum doctor_verdict { DOCTOR_HELD, DOCTOR_OPEN, DOCTOR_UNKNOWN };

struct doctor_act {
    const char *name, *what;
    bool (*outside)(const struct doctor_act *a, const char *arg); /* NULL: no control */
    bool (*inside)(const struct doctor_act *a, const char *arg);  /* true: it could be done */
};

extern const struct doctor_act doctor_acts[];
extern const size_t doctor_acts_len;

struct doctor_report {
    struct err *trouble; /* no sandbox could be started: why; owned */
    enum doctor_verdict acts[16];
    double start_ms;
};

/* state as in run.h. self is the path of croft; `croft doctor --inside` is the program that
 * tries. */
void doctor_examine(const char *state, struct doctor_report *ret_report);
/* The program: arguments as doctor_examine gives them; prints a line per act. */
int doctor_inside(int argc, char **argv);
