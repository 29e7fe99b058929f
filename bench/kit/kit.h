// SPDX-License-Identifier: Apache-2.0
/* kit.h — what the benches share: figures and their bars, a croft-guest to talk to, a bash on a
 * pty.
 *
 * Every failure ends the bench: a figure from a run that went wrong is worse than none. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

_Noreturn void kit_die(const char *what);  /* with errno */
void kit_must(struct err *e);              /* takes it over */
void kit_check(bool ok, const char *what); /* with errno */
void kit_shell(const char *command);       /* which must succeed */
double kit_now_ms(void);
double kit_ms_since(uint64_t start_ns); /* of clock_mono_ns */

/* --- figures --- */
struct kit_series {
    double *ms;
    size_t count, cap;
};
void kit_add(struct kit_series *s, double ms);
/* Prints min, p50, p95, p99 and N, and gives the p50. */
double kit_print(const char *name, struct kit_series *s);
/* Prints what, the figure, the bar and PASS or MISS; a figure below the bar passes, or above it. */
void kit_at_most(const char *what, double got, double bar, const char *unit);
void kit_at_least(const char *what, double got, double bar, const char *unit);

/* --- a guest, with a directory of its own and one connection --- */
struct kit_guest {
    pid_t pid;
    int fd;
    char dir[64], address[96];
    char *answer; /* of the last request, head and body */
    size_t answer_len, answer_cap;
};
void kit_guest_start(
    struct kit_guest *g); /* build/croft-guest beside the bench; it answers /alive */
void kit_guest_stop(struct kit_guest *g); /* removes the directory too */
/* One request over the connection; the body of the answer, which must be a 200. */
struct str kit_post(struct kit_guest *g, const char *path, const char *body);
/* A `run` action; its exit code must be 0. */
struct str kit_run(struct kit_guest *g, const char *command, unsigned timeout_s);
long kit_status_kb(pid_t pid, const char *field); /* a line of /proc/PID/status, such as VmHWM */

/* --- a program on a pty --- */
int kit_pty(const char *const *argv, pid_t *ret_pid);
/* Types the line into a bash and reads until it has run; its end is told by a marker. */
void kit_type(int master, const char *line);
void kit_end(pid_t pid); /* kills and reaps */
